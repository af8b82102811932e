//! The gateway between channels in this process and zenoh on loopback TCP.

mod command;
mod congestion;
mod crossing;
mod foreign;
mod returning;
mod support;
