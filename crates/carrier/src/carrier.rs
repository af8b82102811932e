//! What a carrier is: one middleware, or none, that a stream's messages go over.
//!
//! A carrier is one file in `carriers/` and one line in the table of [`crate::carriers`]. No other code compares
//! carriers:
//!
//! * the parts of a run call [`Carrier::connect`] and [`Carrier::listen`] and keep to [`Carrier::needs`];
//! * blame reads [`Carrier::road`];
//! * the join reads [`Carrier::framing`];
//! * the conformance suite (`tests/conformance/`) holds each carrier to [`Carrier::delivery`] and to what [`Sender`]
//!   promises.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use deckwatch_meter::blame::Road;
use serde::{Deserialize, Serialize};

use crate::arrival::Shared;
use crate::body::Body;
use crate::error::PartError;
use crate::limits::BODY_SIZE_MAX;
use crate::receiver::Receiver;
use crate::scheduling::Scheduling;
use crate::sender::Sender;
use crate::stamp_clock::StampClock;

/// One middleware, or none, that a stream's messages go over.
pub trait Carrier: Sync {
    /// The word for it in mission files, on the command line and in results.
    fn name(&self) -> &'static str;

    /// How it carries a message, in a few words, for help texts and the schema of mission files.
    fn summary(&self) -> &'static str;

    /// The layers that a message passes. Blame names no others.
    ///
    /// Without middleware the carrier owns its sockets: both ends read the kernel's stamps and packets get their
    /// priority. With middleware each destination has a sending thread, because a call may block.
    fn road(&self) -> Road;

    /// How the join finds messages in captured packets.
    fn framing(&self) -> Framing;

    /// What happens to messages that a sender accepted.
    fn delivery(&self) -> Delivery;

    /// What it needs beside a sender and its receivers.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// A sender to one destination, connected.
    ///
    /// # Errors
    /// [`PartError`] when the kernel, the middleware or the destination refuses.
    fn connect(&self, to: &ConnectTo<'_>) -> Result<Box<dyn Sender>, PartError>;

    /// A receiver at one destination, listening.
    ///
    /// # Errors
    /// [`PartError`] when the kernel or the middleware refuses.
    fn listen(&self, at: &ListenAt<'_>) -> Result<Box<dyn Receiver>, PartError>;
}

/// How messages are found in captured packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The captures show no messages: they do not leave the host, or their protocol is not read.
    Unseen,
    /// One UDP datagram a message, its body alone.
    Datagram,
    /// A TCP stream; each message behind its length in four octets, big-endian.
    Length,
    /// A TCP stream of GIOP messages; each message is the argument of a request.
    Giop {
        /// The operation that carries the stream's messages.
        operation: &'static str,
        /// How the argument carries the message.
        argument: Argument,
    },
}

/// The form of a message that is the argument of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A value of the flow's type.
    Value,
    /// An `any` that holds a value of the flow's type.
    Any,
}

/// What happens to messages that a sender accepted, while their receiver takes messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Each message arrives once, in the order sent.
    InOrder,
    /// Messages may be lost, doubled or reordered.
    BestEffort,
}

/// What a carrier needs beside a sender and its receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// An event channel for each stream, and a naming service to find it, on the supplier's host.
    pub channel: bool,
    /// A message is sent once for all destinations. Senders then have the records of destination 0 only.
    pub one_slot: bool,
    /// Octets of the largest message.
    pub size_bytes_max: u32,
}

impl Default for Needs {
    fn default() -> Self {
        Self {
            channel: false,
            one_slot: false,
            size_bytes_max: BODY_SIZE_MAX,
        }
    }
}

/// What a sender is made from.
#[derive(Clone, Copy, Debug)]
pub struct ConnectTo<'a> {
    /// The address of the supplier's host, from which it sends.
    pub address: IpAddr,
    /// Name of the destination's host, for messages to the user.
    pub host: &'a str,
    /// What the receiver announced as its endpoint; empty if the stream has a channel.
    pub endpoint: &'a str,
    /// Where the stream's event channel is found, if the carrier needs one.
    pub channel: Option<&'a ChannelAt>,
    /// Priority of the packets.
    pub network_priority: NetworkPriority,
    /// The stream's deadline: bounds the time that one send may take.
    pub deadline: Duration,
    /// The message, with its sequence number 0.
    pub body: &'a Body,
    /// Brings the kernel's stamps to CLOCK_MONOTONIC.
    pub clock: &'a Arc<StampClock>,
}

impl ConnectTo<'_> {
    /// The endpoint of a raw receiver.
    ///
    /// # Errors
    /// [`PartError::Endpoint`] if it is not `address:port`.
    pub fn socket_address(&self) -> Result<SocketAddr, PartError> {
        self.endpoint.parse().map_err(|_| PartError::Endpoint {
            host: self.host.to_owned(),
            endpoint: self.endpoint.to_owned(),
        })
    }
}

/// What a receiver is made from.
#[derive(Clone, Copy, Debug)]
pub struct ListenAt<'a> {
    /// The address of the destination's host. The receiver chooses the port.
    pub address: IpAddr,
    /// Where the stream's event channel is found, if the carrier needs one.
    pub channel: Option<&'a ChannelAt>,
    /// Octets of the socket's receive buffer; none for the default of this program.
    pub receive_buffer_bytes: Option<u32>,
    /// Scheduling of threads that the middleware makes.
    pub scheduling: &'a Scheduling,
    /// The stream's deadline: bounds the time that one call may take.
    pub deadline: Duration,
    /// The message, with its sequence number 0.
    pub body: &'a Body,
    /// Brings the kernel's stamps to CLOCK_MONOTONIC.
    pub clock: &'a Arc<StampClock>,
    /// Counters of the part.
    pub shared: &'a Arc<Shared>,
}

/// Where an event channel is found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelAt {
    /// The naming service: the endpoint that its part announced, a `corbaloc:`.
    pub names: String,
    /// The channel's name in it, for example `deckwatch/NAV`.
    pub name: String,
}

/// The priority of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkPriority {
    /// Differentiated services code point, 0..=63 (46 is expedited forwarding).
    pub dscp: Option<u8>,
    /// The queueing discipline's band selector, SO_PRIORITY; above 6 it needs CAP_NET_ADMIN.
    pub socket_priority: Option<u32>,
}
