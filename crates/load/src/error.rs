//! [`LoadError`]: why a load cannot be carried out.

use std::io;
use std::net::SocketAddr;

use crate::limits::{
    BURST_MAX, LIFETIME_S_MAX, LOOPS_MAX, MESSAGE_OCTETS_MAX, MESSAGE_OCTETS_MIN,
    REAL_TIME_SHARE_MAX,
};

/// Why a load cannot be carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The number of loops is out of bounds.
    #[error("A load has 1 to {LOOPS_MAX} loops.")]
    Loops,
    /// A burst counts to 0.
    #[error("A burst counts to at least 1.")]
    Burst,
    /// The lifetime is out of bounds.
    #[error("A load lives for more than 0 and at most {LIFETIME_S_MAX} seconds.")]
    Lifetime,
    /// A share that is none.
    #[error(
        "A share of {share} cannot be held. Write a number above 0 and at most 1, such as 0.5."
    )]
    Share {
        /// The share.
        share: f64,
    },
    /// A real-time class would starve the machine.
    #[error(
        "A real-time load of {share} would starve the rest of the machine. Write at most {REAL_TIME_SHARE_MAX}, or use the class `other`."
    )]
    RealTimeShare {
        /// The share.
        share: f64,
    },
    /// A real-time class without a bound of its processor time.
    #[error(
        "The loops of the paper do not run in a real-time class: they would starve the machine. Give a share, or use the class `other`."
    )]
    RealTimeLoops,
    /// A priority that no class has.
    #[error("A priority of SCHED_FIFO is 1 to 99.")]
    Priority,
    /// A processor that cannot be loaded.
    #[error("Processor {processor} cannot be used. This process may use {}.", list(.allowed))]
    NoSuchProcessor {
        /// The processor.
        processor: u32,
        /// Processors that this process may use.
        allowed: Vec<u32>,
    },
    /// The size of a message is out of bounds.
    #[error("A message has {MESSAGE_OCTETS_MIN} to {MESSAGE_OCTETS_MAX} octets.")]
    MessageSize,
    /// The size of a burst is out of bounds.
    #[error("A burst has 1 to {BURST_MAX} messages.")]
    BurstSize,
    /// A rate that no schedule has.
    #[error(
        "The rate cannot be kept: its messages would be less than a nanosecond or more than a month apart, or too many."
    )]
    Rate,
    /// A share of a link that is not known.
    #[error("A share needs the rate of the link. Give the link, or a rate in bits a second.")]
    NoLink,
    /// No route leads to the sink.
    #[error("It is not known which interface leads to {to}. Name it.")]
    NoInterface {
        /// The sink.
        to: SocketAddr,
    },
    /// The counters of the interface cannot be read.
    #[error("The counters of the interface {name} cannot be read ({error}).")]
    Interface {
        /// The interface.
        name: String,
        /// The kernel's error.
        error: io::Error,
    },
    /// The sink does not answer.
    #[error("No sink can be reached at {to} ({error}). Start `deckwatch load net --serve` there.")]
    Connect {
        /// The sink.
        to: SocketAddr,
        /// The kernel's error.
        error: io::Error,
    },
    /// The connection to the sink broke.
    #[error("The connection to {to} broke ({error}).")]
    Connection {
        /// The sink.
        to: SocketAddr,
        /// The kernel's error.
        error: io::Error,
    },
    /// A sink cannot listen.
    #[error("A sink cannot listen at {at} ({error}). Choose another address or port.")]
    Listen {
        /// The address.
        at: SocketAddr,
        /// The kernel's error.
        error: io::Error,
    },
    /// The class is not permitted.
    #[error(
        "SCHED_FIFO {priority} cannot be set ({error}). It needs CAP_SYS_NICE: run as root, or use the class `other`."
    )]
    Class {
        /// The priority.
        priority: u8,
        /// The kernel's error.
        error: io::Error,
    },
    /// The kernel refuses something that a load needs.
    #[error("{doing} failed ({error}).")]
    System {
        /// What was done.
        doing: &'static str,
        /// The kernel's error.
        error: io::Error,
    },
}

impl LoadError {
    /// For `map_err`.
    pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::System { doing, error }
    }
}

fn list(numbers: &[u32]) -> String {
    let words: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    words.join(", ")
}
