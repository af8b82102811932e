//! The COS event channel (OMG Event Service 1.2): events of any type from any number of suppliers to any number of consumers, pushed on both sides.
//!
//! A supplier's push never waits for a consumer: each consumer has a bounded queue and a thread of its own.

#![forbid(unsafe_code)]

mod admin;
mod channel;
mod counters;
pub mod limits;
mod outlet;
mod suppliers;

pub use channel::{ChannelOptions, EventChannel};
pub use counters::ChannelCounts;

/// Generated from `idl/omg`.
mod idl {
    include!(concat!(env!("OUT_DIR"), "/CosEventComm.rs"));
    include!(concat!(env!("OUT_DIR"), "/CosEventChannelAdmin.rs"));
}

pub use idl::{cos_event_channel_admin, cos_event_comm};
