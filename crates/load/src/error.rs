//! [`LoadError`]: why a load cannot be carried out.

use std::io;

use crate::limits::{LIFETIME_S_MAX, LOOPS_MAX, REAL_TIME_SHARE_MAX};

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
    /// The class is not permitted.
    #[error(
        "SCHED_FIFO {priority} cannot be set ({source}). It needs CAP_SYS_NICE: run as root, or use the class `other`."
    )]
    Class {
        /// The priority.
        priority: u8,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel refuses something that a load needs.
    #[error("{doing} failed ({source}).")]
    System {
        /// What was done.
        doing: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

impl LoadError {
    /// For `map_err`.
    pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { doing, source }
    }
}

fn list(numbers: &[u32]) -> String {
    let words: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    words.join(", ")
}
