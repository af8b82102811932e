//! The real-time event channel: servants of RtecEventChannelAdmin, wire-compatible with TAO's.
//!
//! # The road of an event
//!
//! ```text
//! supplier --push--> ProxyPushConsumer -> index by source and type -> filter of each candidate -> dispatching -> consumer
//! ```
//!
//! * Of an event that is pushed alone, the header alone is decoded. Its octets are forwarded as they came to every
//!   consumer that takes their byte order and code sets. Anything else is encoded at most once for each form.
//! * An event that several consumers match is sent to each once, in the order in which they connected.
//! * A supplier with publications reaches the consumers that may match one of them (TAO's per-supplier filtering); a
//!   supplier without publications reaches all.
//! * An event reaches other channels only while its `ttl` is above 0, and one is taken off on the way. A consumer leads
//!   to another channel if its `ConsumerQOS` has `is_gateway`, or if its reference is to a ProxyPushConsumer:
//!   [`crate::federation`].
//! * Every event that a consumer should have had and does not get is counted: [`Loss`].

mod admission;
mod channel;
mod consumer;
mod counters;
mod hop;
mod inlet;
mod observers;
mod options;
mod pushed;
mod qos;
mod rated;
mod reports;
mod restore;
mod scheduling;
mod shared;
mod supplier;
mod timeouts;

pub(crate) use hop::{Window, drawn_identity};
pub(crate) use inlet::{Arrival, Inlet, gateway_qos};

pub use channel::RtEventChannel;
pub use consumer::ConsumerReport;
pub use counters::{Loss, RtCounts};
pub use options::RtChannelOptions;
pub use qos::RtInfo;
pub use scheduling::{Scheduling, SchedulingError};
