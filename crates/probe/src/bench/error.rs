//! Why a bench cannot go on.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a bench cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// A process of the bench cannot be started.
    #[error("{what} cannot be started: {source}")]
    CannotStart {
        /// Which.
        what: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A process of the bench has ended, or said what it should not.
    #[error("{what} cannot go on: {reason}")]
    EndFailed {
        /// Which.
        what: String,
        /// Its own words, or what was found.
        reason: String,
    },
    /// A process of the bench does not answer.
    #[error("{what} has not answered within {patience:?}.")]
    Silent {
        /// Which.
        what: String,
        /// How long was waited.
        patience: Duration,
    },
    /// A foreign program cannot be built.
    #[error("{what} cannot be built: {reason}")]
    CannotBuild {
        /// Which.
        what: String,
        /// What the tool said.
        reason: String,
    },
    /// A file cannot be written.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The machine has too few processors for the condition.
    #[error(
        "Two processors are needed for this condition, and this process may use only {0}; try `--condition pinned`."
    )]
    TooFewProcessors(usize),
    /// A process may not have as many connections open as are asked for.
    #[error(
        "{connections} connections are more open files than a process may have here, which is {limit}: ask for fewer with --connections, or raise \
         the limit (`ulimit -Hn`, RLIMIT_NOFILE)."
    )]
    TooManyConnections {
        /// How many are asked for.
        connections: usize,
        /// The hard limit.
        limit: u64,
    },
    /// A reference that our own server gave cannot be used.
    #[error("The reference of our own server cannot be used: {0}.")]
    Reference(String),
    /// Nothing of the kinds asked for is measured in the conditions asked for.
    #[error(
        "Nothing of this is measured in that condition: ask for other conditions, or for all by leaving them out."
    )]
    Nothing,
    /// The user wants to end before anything was measured.
    #[error("Ended by {0} before a round was whole.")]
    Interrupted(&'static str),
    /// Something of the system's that an end needs.
    #[error("{doing}: {source}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}
