//! Why a part of a run cannot be played: each fact, and its words.

use std::net::SocketAddr;
use std::time::Duration;

use deckwatch_meter::pacing::ScheduleError;
use deckwatch_orb::{BuildError, SystemException};
use thiserror::Error;

use crate::body::BodyError;
use crate::capture::CaptureError;
use crate::limits::TAP_INTERFACES_MAX;
use crate::record::RecordError;

/// Why a part cannot be played.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PartError {
    /// The message cannot be made.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The records cannot be kept.
    #[error(transparent)]
    Records(#[from] RecordError),
    /// The schedule has no messages, or too many.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The message does not fit the carrier.
    #[error(
        "A message over {carrier} has at most {size_bytes_max} octets, and this one has {size_bytes}. \
         Choose a smaller type or another carrier."
    )]
    MessageTooLarge {
        /// The carrier's name.
        carrier: &'static str,
        /// Octets of the message.
        size_bytes: usize,
        /// The most that the carrier takes.
        size_bytes_max: u32,
    },
    /// The member that carries the sequence number is too small for the schedule.
    #[error(
        "The stream has {messages} messages, and its sequence member holds no number above {sequence_max}. \
         Shorten the run or name a larger member as `sequence`."
    )]
    SequenceTooSmall {
        /// Messages of the schedule.
        messages: u64,
        /// The largest number that the member holds.
        sequence_max: u64,
    },
    /// The plan's destinations are none, or not numbered in order.
    #[error("A supplier needs destinations, numbered from 0 in order.")]
    Destinations,
    /// The endpoint of a raw receiver is no address.
    #[error("The endpoint of {host} is `{endpoint}`, which is not address:port.")]
    Endpoint {
        /// The destination's host.
        host: String,
        /// The word.
        endpoint: String,
    },
    /// Handling a message takes too long.
    #[error(
        "Handling a message takes {asked:?}, and at most {most:?} are allowed. Check its unit."
    )]
    HandleFor {
        /// As planned.
        asked: Duration,
        /// The limit.
        most: Duration,
    },
    /// A socket cannot be made or connected.
    #[error("{carrier} at {address}: {error}")]
    Socket {
        /// The carrier's name.
        carrier: &'static str,
        /// This end, or the one that it was to be connected to.
        address: SocketAddr,
        /// What the kernel answered.
        error: std::io::Error,
    },
    /// The ORB of the part cannot be made.
    #[error(transparent)]
    Orb(#[from] BuildError),
    /// The ORB of the part did not shut down.
    #[error("The ORB cannot be shut down: {0}.")]
    Shutdown(SystemException),
    /// The servant of the part cannot be reached through its adapter.
    #[error("The servant cannot be activated: {0}.")]
    Activation(String),
    /// The consumer's reference is unusable.
    #[error("The consumer's reference cannot be used: {0}.")]
    Reference(SystemException),
    /// The consumer's reference is nil.
    #[error("The consumer's reference is nil.")]
    NilReference,
    /// The consumer's reference leads to no object.
    #[error("The consumer's reference leads to no object; the consumer has ended.")]
    NoConsumer,
    /// The naming service does not start.
    #[error("The naming service cannot be started: {0}.")]
    NamesNotStarted(String),
    /// The naming service does not answer.
    #[error("The naming service {reference}: {error}.")]
    Names {
        /// Its reference.
        reference: String,
        /// What it raised.
        error: SystemException,
    },
    /// The reference of the naming service leads to something else.
    #[error("{0} is not a naming service.")]
    NotNames(String),
    /// The event channel does not start.
    #[error("The event channel cannot be started: {0}.")]
    ChannelNotStarted(String),
    /// The plan lacks the place of the event channel.
    #[error("The plan does not say where the event channel is found.")]
    ChannelUnplanned,
    /// The event channel is not found by its name.
    #[error("The event channel {name}: {reason}.")]
    Channel {
        /// Its name in the naming service.
        name: String,
        /// What the naming service answered.
        reason: String,
    },
    /// The event channel does not let the part connect.
    #[error("The event channel refuses the connection: {0}.")]
    ChannelRefused(String),
    /// The event channel's name cannot be bound.
    #[error("The name {name} cannot be bound: {reason}.")]
    NameNotBound {
        /// The name.
        name: String,
        /// What the naming service answered.
        reason: String,
    },
    /// The host's interfaces are unknown.
    #[error("The network interfaces cannot be listed: {0}.")]
    Interfaces(std::io::Error),
    /// An interface of the plan is not there.
    #[error("There is no interface `{name}` on {host}.")]
    NoInterface {
        /// The interface.
        name: String,
        /// The host.
        host: String,
    },
    /// No interface to capture on, or too many.
    #[error("A tap takes 1 to {TAP_INTERFACES_MAX} interfaces; {host} has {count}.")]
    InterfaceCount {
        /// The host.
        host: String,
        /// Its interfaces.
        count: usize,
    },
    /// The kernel refuses a packet socket.
    #[error(
        "A tap on {interface} of {host} is refused ({error}): packet sockets need CAP_NET_RAW."
    )]
    Tap {
        /// The interface.
        interface: String,
        /// The host.
        host: String,
        /// What the kernel answered.
        error: std::io::Error,
    },
    /// The capture cannot be written.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The note beside a capture cannot be written.
    #[error("The note of {path} cannot be written: {error}.")]
    CaptureNote {
        /// The capture.
        path: String,
        /// What the kernel answered.
        error: std::io::Error,
    },
}

impl PartError {
    pub(crate) const fn socket(
        carrier: &'static str,
        address: SocketAddr,
        error: std::io::Error,
    ) -> Self {
        Self::Socket {
            carrier,
            address,
            error,
        }
    }
}
