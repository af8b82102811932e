//! The errors of a part of a run, with their texts.

use std::net::SocketAddr;
use std::time::Duration;

use deckwatch_meter::pacing::ScheduleError;
use deckwatch_orb::{BuildError, SystemException};
use thiserror::Error;

use crate::body::BodyError;
use crate::capture::CaptureError;
use crate::limits::TAP_INTERFACES_MAX;
use crate::part::ProgramFault;
use crate::record::RecordError;

/// Returns why a socket cannot be had at a local address, and what to do about a port that another program has. The
/// kernel chooses the port 0.
#[must_use]
pub fn socket_fault(address: SocketAddr, error: &std::io::Error) -> String {
    if error.kind() != std::io::ErrorKind::AddrInUse {
        return error.to_string();
    }
    let what_to_do = if address.port() == 0 {
        "no port is free. End programs that hold ports (`ss -tunap` lists them), or widen net.ipv4.ip_local_port_range"
    } else {
        "another program has this port. End that program (`ss -tunap` names it), or choose another port"
    };
    format!("{error}: {what_to_do}")
}

/// Why a part cannot run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PartError {
    /// The message cannot be created.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The record file cannot be created or read.
    #[error(transparent)]
    Records(#[from] RecordError),
    /// The schedule has no messages, or too many.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The message is too large for the carrier.
    #[error(
        "A message over {carrier} has at most {size_bytes_max} octets, and this one has {size_bytes}. \
         Choose a smaller type or another carrier."
    )]
    MessageTooLarge {
        /// The carrier's name.
        carrier: &'static str,
        /// Octets of the message.
        size_bytes: usize,
        /// The largest message that the carrier accepts.
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
    /// The plan has no destinations, or they are not numbered in order.
    #[error("A supplier needs destinations, numbered from 0 in order.")]
    Destinations,
    /// The endpoint of a raw receiver is not an address.
    #[error("The endpoint of {host} is `{endpoint}`, which is not address:port.")]
    Endpoint {
        /// The destination's host.
        host: String,
        /// The endpoint as announced.
        endpoint: String,
    },
    /// Handling a message takes too long.
    #[error(
        "Handling a message takes {asked:?}, and at most {most:?} are allowed. Check its unit."
    )]
    HandleFor {
        /// The time in the plan.
        asked: Duration,
        /// The limit.
        most: Duration,
    },
    /// A socket cannot be created or connected.
    #[error("{carrier} at {address}: {}", socket_fault(*address, error))]
    Socket {
        /// The carrier's name.
        carrier: &'static str,
        /// The local address, or the peer's address for a connection.
        address: SocketAddr,
        /// The system's error.
        error: std::io::Error,
    },
    /// The part's ORB cannot be created.
    #[error(transparent)]
    Orb(#[from] BuildError),
    /// The part's ORB did not shut down.
    #[error("The ORB cannot be shut down: {0}.")]
    Shutdown(SystemException),
    /// The part's servant cannot be activated in its adapter.
    #[error("The servant cannot be activated: {0}.")]
    Activation(String),
    /// The consumer's reference cannot be used.
    #[error("The consumer's reference cannot be used: {0}.")]
    Reference(SystemException),
    /// The consumer's reference is nil.
    #[error("The consumer's reference is nil.")]
    NilReference,
    /// The consumer's reference denotes no object.
    #[error("The consumer's reference leads to no object; the consumer has ended.")]
    NoConsumer,
    /// The carrier's parts are played by a program.
    #[error(
        "{carrier} is a program of its own. Only `deckwatch run` and `deckwatch carriers check` can measure it."
    )]
    OtherProcess {
        /// The carrier's name.
        carrier: &'static str,
    },
    /// The program of an external carrier failed.
    #[error("The program of carrier {carrier} {fault}")]
    Program {
        /// The carrier's name.
        carrier: &'static str,
        /// How it failed.
        fault: ProgramFault,
    },
    /// The carrier has no broker.
    #[error("The carrier {carrier} has no broker.")]
    NoBroker {
        /// The carrier's name.
        carrier: &'static str,
    },
    /// The naming service does not start.
    #[error("The naming service cannot be started: {0}.")]
    NamesNotStarted(String),
    /// The naming service does not answer.
    #[error("The naming service {reference}: {error}.")]
    Names {
        /// The reference of the naming service.
        reference: String,
        /// The exception that it raised.
        error: SystemException,
    },
    /// The reference does not denote a naming service.
    #[error("{0} is not a naming service.")]
    NotNames(String),
    /// The event channel does not start.
    #[error("The event channel cannot be started: {0}.")]
    ChannelNotStarted(String),
    /// The plan does not say where to find the event channel.
    #[error("The plan does not say where the event channel is found.")]
    ChannelUnplanned,
    /// The event channel cannot be resolved by its name.
    #[error("The event channel {name}: {reason}.")]
    Channel {
        /// Its name in the naming service.
        name: String,
        /// The naming service's error.
        reason: String,
    },
    /// The event channel refuses the part's connection.
    #[error("The event channel refuses the connection: {0}.")]
    ChannelRefused(String),
    /// The event channel's name cannot be bound.
    #[error("The name {name} cannot be bound: {reason}.")]
    NameNotBound {
        /// The name.
        name: String,
        /// The naming service's error.
        reason: String,
    },
    /// The host's interfaces cannot be listed.
    #[error("The network interfaces cannot be listed: {0}.")]
    Interfaces(std::io::Error),
    /// An interface of the plan does not exist.
    #[error("There is no interface `{name}` on {host}.")]
    NoInterface {
        /// The interface.
        name: String,
        /// The host.
        host: String,
    },
    /// There is no interface to capture on, or there are too many.
    #[error("A tap takes 1 to {TAP_INTERFACES_MAX} interfaces; {host} has {count}.")]
    InterfaceCount {
        /// The host.
        host: String,
        /// The number of its interfaces.
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
        /// The system's error.
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
        /// The system's error.
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
