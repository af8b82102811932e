//! The COS event channel (OMG Event Service 1.2). Any number of suppliers push events of any type, or the channel pulls
//! them; the channel pushes them to any number of consumers, or the consumers pull them.
//!
//! A supplier's push never waits for a consumer: each consumer has a bounded queue. One thread serves all consumers that
//! are pushed to ([`deckwatch_orb::delivery`]); one thread asks all suppliers that the channel pulls from.
//!
//! The [real-time event channel](rt) is wire-compatible with TAO's: consumers get what their [filters](filter) emit, and
//! events are [dispatched](dispatch) by priority, deadline or laxity. Channels on several hosts are
//! [federated](federation).

#![forbid(unsafe_code)]

mod admin;
mod beside;
mod channel;
pub mod client;
mod clients;
mod consumers;
mod cos;
mod counters;
pub mod dispatch;
mod event;
mod farewells;
pub mod federation;
pub mod filter;
pub mod fuzzing;
mod gate;
mod group;
pub mod handler_times;
mod home;
mod kept;
pub mod limits;
mod objects;
mod peers;
mod raise;
pub mod received;
mod restore;
pub mod rt;
mod scheduler;
mod shared;
mod status;
mod store;
mod suppliers;

pub use channel::EventChannel;
pub use cos::{
    EventChannelFactory, OperationFault, TypedEventChannel, TypedInterface, TypedInterfaceError,
};
pub use counters::ChannelCounts;
pub use deckwatch_orb::delivery::WhenFull;
pub use deckwatch_orb::{Access, Refusal};
pub use gate::MEMBER_OPERATIONS;
pub use group::{GroupCounts, GroupOptions, RtGroupMember, Standing};
pub use scheduler::{SchedulerCounts, SchedulerOptions, SchedulingService};
pub use shared::ChannelOptions;
pub use store::{ChannelStore, ChannelStoreError};

/// Generated from `idl/omg`, `idl/omnievents` and `idl/rtec`.
mod idl {
    include!(concat!(env!("OUT_DIR"), "/CosEventComm.rs"));
    include!(concat!(env!("OUT_DIR"), "/CosEventChannelAdmin.rs"));
    include!(concat!(env!("OUT_DIR"), "/CosTypedEventComm.rs"));
    include!(concat!(env!("OUT_DIR"), "/CosTypedEventChannelAdmin.rs"));
    include!(concat!(env!("OUT_DIR"), "/CosLifeCycle.rs"));
    include!(concat!(env!("OUT_DIR"), "/omniEvents.rs"));
    include!(concat!(env!("OUT_DIR"), "/channel_status.rs"));
    include!(concat!(env!("OUT_DIR"), "/channel_group.rs"));
    include!(concat!(env!("OUT_DIR"), "/TimeBase.rs"));
    include!(concat!(env!("OUT_DIR"), "/RtecBase.rs"));
    include!(concat!(env!("OUT_DIR"), "/RtecDefaultEventData.rs"));
    include!(concat!(env!("OUT_DIR"), "/RtecEventComm.rs"));
    include!(concat!(env!("OUT_DIR"), "/RtecEventChannelAdmin.rs"));
    include!(concat!(env!("OUT_DIR"), "/RtecScheduler.rs"));
    include!(concat!(env!("OUT_DIR"), "/event_federation.rs"));
    include!(concat!(env!("OUT_DIR"), "/execution_times.rs"));
}

pub use idl::{
    EventPayload, RtecEventData, channel_group, cos_event_channel_admin, cos_event_comm,
    cos_life_cycle, cos_typed_event_channel_admin, cos_typed_event_comm, deckwatch,
    deckwatch_federation, deckwatch_scheduling, rtec_base, rtec_event_channel_admin,
    rtec_event_comm, rtec_scheduler, time_base,
};

/// The interfaces of omniEvents.
pub mod omni_events {
    pub use crate::idl::omni_events::*;
    pub use crate::idl::{event, event_channel_admin, ft};
}
