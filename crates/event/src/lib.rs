//! The COS event channel (OMG Event Service 1.2). Events of any type are pushed by any number of suppliers and pushed
//! to any number of consumers.
//!
//! A supplier's push never waits for a consumer: each consumer has a bounded queue and a thread of its own.

#![forbid(unsafe_code)]

mod admin;
mod channel;
mod counters;
pub mod limits;
mod outlet;
mod raise;
mod shared;
mod suppliers;

pub use channel::EventChannel;
pub use counters::ChannelCounts;
pub use shared::ChannelOptions;

/// Generated from `idl/omg`.
mod idl {
    include!(concat!(env!("OUT_DIR"), "/CosEventComm.rs"));
    include!(concat!(env!("OUT_DIR"), "/CosEventChannelAdmin.rs"));
}

pub use idl::{cos_event_channel_admin, cos_event_comm};
