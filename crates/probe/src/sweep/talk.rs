//! What the coordinator and an end of a sweep write to each other: one line of JSON each.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use deckwatch_carrier::carrier::{ChannelAt, NetworkPriority, SocketSettings};
use deckwatch_carrier::carriers::CarrierRef;
use deckwatch_meter::clock::Window;
use serde::{Deserialize, Serialize};

/// One order to an end. Each has one [`Answer`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Order {
    /// Opens a flow and its receiver. Closes the flow before it.
    Listen(Listen),
    /// Connects the flow's sender to the other end.
    Connect {
        /// The endpoint that the other end announced.
        endpoint: String,
        /// The channel that takes this end's messages, if the carrier needs one.
        channel: Option<ChannelAt>,
        /// A full send buffer is waited for. Otherwise it is a sendto error.
        waits: bool,
    },
    /// Forgets the messages until now, and expects these.
    Expect {
        /// The first sequence number.
        first: u64,
        /// NUM_MESSAGES.
        messages: u64,
        /// Each message is passed on, or answered, by one of the same size.
        passes_on: bool,
        /// The messages come without pause: a receiver that can takes many with one system call, and stamps them alike.
        in_bulk: bool,
    },
    /// Sends messages one at a time, and waits for each answer.
    Transact {
        /// The first sequence number.
        first: u64,
        /// NUM_MESSAGES.
        messages: u64,
        /// Least time between two messages; zero for none.
        every: Duration,
    },
    /// Sends messages without pause.
    Stream {
        /// The first sequence number.
        first: u64,
        /// NUM_MESSAGES.
        messages: u64,
        /// As many messages with each system call as the carrier can. Otherwise each has a call of its own.
        in_bulk: bool,
    },
    /// Reports what has arrived, when this many messages are there or no more come.
    Report {
        /// Number of messages that the other end's send has accepted.
        accepted: u64,
    },
    /// Answers questions about this host's clock, until the end of the process.
    Respond {
        /// The address of this end's host.
        address: IpAddr,
    },
    /// Asks the other host about its clock, until the end of the process.
    Probe {
        /// Where the other end answers.
        peer: SocketAddr,
        /// The address of this end's host.
        from: IpAddr,
    },
    /// Returns what was found of the other clock until now, and a little beyond.
    Relate,
    /// Closes the flow.
    Close,
}

/// How a flow is opened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Listen {
    pub(crate) carrier: CarrierRef,
    /// MESSAGE_SIZE.
    pub(crate) size_octets: u32,
    /// The address of this end's host.
    pub(crate) address: IpAddr,
    /// The channel that this end consumes from, if the carrier needs one.
    pub(crate) channel: Option<ChannelAt>,
    /// Settings of the sender's socket. The receive buffer has the octets of the send buffer.
    pub(crate) socket: SocketSettings,
    /// Objects that take turns, if the carrier has objects.
    pub(crate) servants: u32,
    /// How messages share connections with those of the other direction.
    pub(crate) ways: Ways,
    /// Priority of the packets that this end sends.
    pub(crate) network_priority: NetworkPriority,
}

/// How messages share connections with those of the other direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Ways {
    /// This end sends over one connection and receives over another.
    Apart,
    /// This end connects, and receives over the same connection.
    Connecting,
    /// This end sends over the connection that it accepts.
    Accepting,
}

/// An end's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    /// The receiver's endpoint.
    Listening {
        /// As in `Order::Connect`.
        endpoint: String,
    },
    /// Questions about the clock are answered here.
    Answering {
        /// The address and port.
        address: SocketAddr,
    },
    /// The windows since the last time, in order.
    Related(Vec<Window>),
    /// The order is done.
    Done,
    /// For each message of `Transact`: when it was sent, and when its answer was received (0: never).
    Transactions(Vec<(i64, i64)>),
    /// The result of `Stream`.
    Streamed(Streamed),
    /// The result of `Report`.
    Arrived(Arrived),
    /// The order cannot be done.
    Failed {
        /// The reason.
        text: String,
    },
}

/// The transmitter's view of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Streamed {
    pub(crate) start_a_ns: i64,
    pub(crate) stop_a_ns: i64,
    /// Sends that were refused for another reason than a full queue of the interface.
    pub(crate) send_errors: u64,
    /// Sends that were refused because the interface's queue was full.
    pub(crate) queue_drops: u64,
}

/// The receiver's view of a stream, or of the messages that it passed on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Arrived {
    /// Different messages.
    pub(crate) received: u64,
    pub(crate) duplicates: u64,
    /// Messages that the receiver's socket dropped.
    pub(crate) overflows: u64,
    /// Messages that it could not pass on, because send refused.
    pub(crate) refused: u64,
    pub(crate) first_ns: i64,
    pub(crate) last_ns: i64,
    /// Sequence number, receipt and send of each message that was passed on.
    pub(crate) answered: Vec<(u64, i64, i64)>,
}
