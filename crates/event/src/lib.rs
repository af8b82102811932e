//! The COS event channel (OMG Event Service 1.2). Events of any type are pushed by any number of suppliers and pushed
//! to any number of consumers.
//!
//! A supplier's push never waits for a consumer: each consumer has a bounded queue and a thread of its own.

#![forbid(unsafe_code)]

mod admin;
mod channel;
mod counters;
pub mod filter;
pub mod limits;
mod outlet;
mod raise;
mod shared;
mod suppliers;

pub use channel::EventChannel;
pub use counters::ChannelCounts;
pub use shared::ChannelOptions;

/// Generated from `idl/omg` and `idl/rtec`.
mod idl {
    include!(concat!(env!("OUT_DIR"), "/CosEventComm.rs"));
    include!(concat!(env!("OUT_DIR"), "/CosEventChannelAdmin.rs"));
    include!(concat!(env!("OUT_DIR"), "/TimeBase.rs"));
    include!(concat!(env!("OUT_DIR"), "/RtecBase.rs"));
    include!(concat!(env!("OUT_DIR"), "/RtecDefaultEventData.rs"));
    include!(concat!(env!("OUT_DIR"), "/RtecEventComm.rs"));
    include!(concat!(env!("OUT_DIR"), "/RtecEventChannelAdmin.rs"));
    include!(concat!(env!("OUT_DIR"), "/RtecScheduler.rs"));
}

pub use idl::{
    EventPayload, RtecEventData, cos_event_channel_admin, cos_event_comm, rtec_base,
    rtec_event_channel_admin, rtec_event_comm, rtec_scheduler, time_base,
};
