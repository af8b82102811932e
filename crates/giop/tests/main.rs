//! Messages, fragments, and octets recorded from foreign ORBs.

mod foreign;
mod fragments;
mod messages;
