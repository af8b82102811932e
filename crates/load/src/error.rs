//! [`LoadError`]: why a load cannot be carried out.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::limits::{
    BURST_MAX, DISK_RESERVE_BYTES, DISK_SIZE_MIN, LIFETIME_S_MAX, LOOPS_MAX, MEMORY_RESERVE_BYTES,
    MEMORY_SIZE_MIN, MESSAGE_OCTETS_MAX, MESSAGE_OCTETS_MIN, REAL_TIME_SHARE_MAX,
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
    /// Too little memory for a load.
    #[error("A load on memory takes at least {}.", mib(MEMORY_SIZE_MIN))]
    MemorySize,
    /// More memory than the machine can give.
    #[error(
        "{} of memory cannot be taken: {} are available, and {} of them stay for the rest of the machine. Write at most {}.",
        mib(*size_bytes),
        mib(*available_bytes),
        mib(MEMORY_RESERVE_BYTES),
        mib(available_bytes.saturating_sub(MEMORY_RESERVE_BYTES))
    )]
    MemoryRoom {
        /// The size of the load.
        size_bytes: u64,
        /// Memory that can be taken without swapping.
        available_bytes: u64,
    },
    /// Too small a file for a load.
    #[error("A load on a disk has a file of at least {}.", mib(DISK_SIZE_MIN))]
    DiskSize,
    /// More than the disk has free.
    #[error(
        "A file of {} has no room in {}: {} are free, and {} of them stay free. Write at most {}, or choose another folder.",
        mib(*size_bytes),
        path.display(),
        mib(*room_bytes),
        mib(DISK_RESERVE_BYTES),
        mib(room_bytes.saturating_sub(DISK_RESERVE_BYTES))
    )]
    DiskRoom {
        /// The folder.
        path: PathBuf,
        /// The size of the load.
        size_bytes: u64,
        /// Free octets of its file system.
        room_bytes: u64,
    },
    /// The folder of a load cannot be written.
    #[error("The folder {} cannot be used ({error}). Choose one that can be written.", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The kernel's error.
        error: io::Error,
    },
    /// The program that makes the pressure is not installed.
    #[error(
        "Loads on memory and disks are made by the program stress-ng, which is not installed on this host. Install the package: apt-get install stress-ng."
    )]
    StressAbsent,
    /// The program that makes the pressure failed.
    #[error("stress-ng ended before its time. It wrote: {words}")]
    Stress {
        /// Its last words.
        words: String,
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

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}
