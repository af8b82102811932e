//! The interface of a carrier: the middleware, or the plain transport, that carries a stream's messages.
//!
//! A carrier is one file in `carriers/` and one line in the table of [`crate::carriers`]. No other code compares
//! carriers:
//!
//! * the parts of a run call [`Carrier::connect`] and [`Carrier::listen`] and respect [`Carrier::needs`];
//! * blame reads [`Carrier::road`];
//! * the join reads [`Carrier::framing`];
//! * the conformance suite (`tests/conformance/`) checks each carrier against [`Carrier::delivery`] and the contract of
//!   [`Sender`].

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use deckwatch_meter::blame::Road;
use serde::{Deserialize, Serialize};

use crate::arrival::Shared;
use crate::body::Body;
use crate::error::PartError;
use crate::external::External;
use crate::limits::BODY_SIZE_MAX;
use crate::receiver::Receiver;
use crate::scheduling::Scheduling;
use crate::sender::Sender;

/// A middleware or a plain transport that carries a stream's messages.
pub trait Carrier: Sync {
    /// The carrier's name in mission files, on the command line and in results.
    fn name(&self) -> &'static str;

    /// How the carrier transports a message, in a few words, for help texts and the schema of mission files.
    fn summary(&self) -> &'static str;

    /// The layers that a message passes. Blame names only these layers.
    ///
    /// Without middleware the carrier owns its sockets: both ends read the kernel's stamps. With middleware each
    /// destination has a sending thread, because a call may block.
    fn road(&self) -> Road;

    /// How the join finds messages in captured packets.
    fn framing(&self) -> Framing;

    /// What happens to messages that a sender accepted.
    fn delivery(&self) -> Delivery;

    /// Whether a connection can carry answers too ([`crate::receiver::Receiver::answering`], [`Sender::answers`]).
    fn carries_answers(&self) -> bool {
        false
    }

    /// What the carrier needs in addition to a sender and its receivers.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Returns the program that plays the carrier's parts, if the carrier is not built in. Such a carrier has neither
    /// senders nor receivers in this process.
    fn external(&self) -> Option<&External> {
        None
    }

    /// Creates a sender, connected to one destination.
    ///
    /// # Errors
    /// [`PartError`] if the kernel, the middleware or the destination refuses.
    fn connect(&self, to: &ConnectTo<'_>) -> Result<Box<dyn Sender>, PartError>;

    /// Creates a receiver, listening at one destination.
    ///
    /// # Errors
    /// [`PartError`] if the kernel or the middleware refuses.
    fn listen(&self, at: &ListenAt<'_>) -> Result<Box<dyn Receiver>, PartError>;
}

/// How the join finds messages in captured packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The captures contain no messages: they do not leave the host, or the join cannot parse their protocol.
    Unseen,
    /// One UDP datagram for each message, which contains only its body.
    Datagram,
    /// A TCP stream. Each message follows its length in four octets, big-endian.
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
    /// The payload of the one event of an `RtecEventComm::EventSet` is the body's encoding.
    EventSet,
}

/// What happens to messages that a sender accepted, while their receiver reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Each message arrives once, in the order of sending.
    InOrder,
    /// Messages may be lost, duplicated or reordered.
    BestEffort,
}

/// What a carrier needs in addition to a sender and its receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// An event channel for each stream, and a naming service to find it, on the supplier's host.
    pub channel: Option<ChannelKind>,
    /// A broker for each stream, on the supplier's host. The program of an external carrier plays it.
    pub broker: bool,
    /// One send serves all destinations. Senders then have only the records of destination 0.
    pub one_slot: bool,
    /// Several objects of one server can take turns ([`ReceiverSettings::servants`]).
    pub has_servants: bool,
    /// Octets of the largest message.
    pub size_bytes_max: u32,
}

/// The kinds of event channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// CosEventChannelAdmin.
    Cos,
    /// RtecEventChannelAdmin.
    RealTime,
}

impl Default for Needs {
    fn default() -> Self {
        Self {
            channel: None,
            broker: false,
            one_slot: false,
            has_servants: false,
            size_bytes_max: BODY_SIZE_MAX,
        }
    }
}

/// The parameters of a sender.
#[derive(Clone, Copy, Debug)]
pub struct ConnectTo<'a> {
    /// The address of the supplier's host, from which the sender sends.
    pub address: IpAddr,
    /// Name of the destination's host, for messages to the user.
    pub host: &'a str,
    /// The endpoint that the receiver announced; empty if the stream has a channel. Those of several objects are
    /// separated by spaces.
    pub endpoint: &'a str,
    /// Where to find the stream's event channel, if the carrier needs one.
    pub channel: Option<&'a ChannelAt>,
    /// Priority of the packets.
    pub network_priority: NetworkPriority,
    /// Settings of the socket, if the carrier owns it.
    pub socket: SocketSettings,
    /// The stream's deadline: it bounds the time that one send may take.
    pub deadline: Duration,
    /// The message, with the sequence number 0.
    pub body: &'a Body,
}

/// Settings of a raw sender's socket. A middleware owns its sockets, and ignores them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketSettings {
    /// The send buffer.
    pub send_buffer: BufferSize,
    /// A TCP sender holds back a small segment until earlier ones are acknowledged (Nagle; TCP_NODELAY is off).
    pub delays: bool,
    /// The kernel stamps no message, which makes sending faster.
    pub unstamped: bool,
}

/// The size of a socket's buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BufferSize {
    /// The size that this program chooses for a mission.
    #[default]
    Own,
    /// As the kernel makes it.
    Kernel,
    /// So many octets.
    Octets(u32),
}

impl BufferSize {
    /// Returns the octets to ask the kernel for, or `None` to leave the buffer as it is.
    #[must_use]
    pub const fn asked(self, own: u32) -> Option<u32> {
        match self {
            Self::Own => Some(own),
            Self::Kernel => None,
            Self::Octets(octets) => Some(octets),
        }
    }
}

/// Settings of a receiver that only some carriers honour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverSettings {
    /// The receive buffer of a raw receiver's socket.
    pub receive_buffer: BufferSize,
    /// Objects of one server that take turns, for a carrier with objects; 0 and 1 are one object.
    pub servants: u32,
    /// The kernel stamps no message, which makes receiving faster.
    pub unstamped: bool,
}

impl ReceiverSettings {
    /// One object, and a receive buffer of so many octets; `None` selects this program's own size.
    #[must_use]
    pub const fn buffering(octets: Option<u32>) -> Self {
        let receive_buffer = match octets {
            Some(octets) => BufferSize::Octets(octets),
            None => BufferSize::Own,
        };
        Self {
            receive_buffer,
            servants: 1,
            unstamped: false,
        }
    }
}

impl ConnectTo<'_> {
    /// Parses the endpoint of a raw receiver.
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

/// The parameters of a receiver.
#[derive(Clone, Copy, Debug)]
pub struct ListenAt<'a> {
    /// The address of the destination's host. The receiver chooses the port.
    pub address: IpAddr,
    /// Where to find the stream's event channel, if the carrier needs one.
    pub channel: Option<&'a ChannelAt>,
    /// Settings that only some carriers honour.
    pub settings: ReceiverSettings,
    /// Scheduling of the threads that the middleware creates.
    pub scheduling: &'a Scheduling,
    /// The flow's CORBA priority, if it has one.
    pub priority: Option<u16>,
    /// Priority of the packets that the receiver sends.
    pub network_priority: NetworkPriority,
    /// The stream's deadline: it bounds the time that one call may take.
    pub deadline: Duration,
    /// The message, with the sequence number 0.
    pub body: &'a Body,
    /// Counters of the part.
    pub shared: &'a Arc<Shared>,
}

/// Where to find an event channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelAt {
    /// The naming service: the `corbaloc:` that its part announced as endpoint.
    pub names: String,
    /// The channel's name in the naming service, for example `deckwatch/NAV`.
    pub name: String,
}

/// The priority of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkPriority {
    /// Differentiated services code point, 0..=63 (46 is expedited forwarding).
    pub dscp: Option<u8>,
    /// SO_PRIORITY, which selects a band of the queueing discipline; a value above 6 needs CAP_NET_ADMIN.
    pub socket_priority: Option<u32>,
}
