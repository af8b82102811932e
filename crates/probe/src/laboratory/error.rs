//! Errors that end a bench or an experiment.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a bench or an experiment cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaboratoryError {
    /// A process cannot be started.
    #[error("{what} cannot be started: {source}")]
    CannotStart {
        /// Its name.
        what: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A process has ended, or printed an unexpected line.
    #[error("{what} cannot go on: {reason}")]
    EndFailed {
        /// Its name.
        what: String,
        /// Its own words, or the exit status.
        reason: String,
    },
    /// A process does not answer.
    #[error("{what} has not answered within {patience:?}.")]
    Silent {
        /// Its name.
        what: String,
        /// The time waited.
        patience: Duration,
    },
    /// A foreign program cannot be built.
    #[error("{what} cannot be built: {reason}")]
    CannotBuild {
        /// Its name.
        what: String,
        /// The first error of the build.
        reason: String,
    },
    /// A finished part of a sweep was measured with other parameters.
    #[error("{path} cannot be resumed: {differs}. Give the same options, or another folder.")]
    Differs {
        /// The journal.
        path: PathBuf,
        /// The parameters that differ, with both values.
        differs: String,
    },
    /// The settings of a sweep need too many processes.
    #[error(
        "The settings need {ends} processes at once, and at most {limit} are allowed. Compare fewer carriers, streams or hops \
         in one sweep."
    )]
    TooManyEnds {
        /// The number needed.
        ends: u32,
        /// The limit.
        limit: u32,
    },
    /// A way has more hops than hosts are named.
    #[error(
        "A way of {hops} hops passes {between} hosts, and --via names {named}. Name as many with --via, in the order of the \
         way.", between = hops - 1
    )]
    TooFewHosts {
        /// The hops.
        hops: u32,
        /// The hosts named.
        named: usize,
    },
    /// A way between far hosts has more than one hop.
    #[error(
        "A way of {hops} hops is measured on an emulated network alone. Between hosts of --hosts leave --hops out, or give \
         --network in place of --hosts."
    )]
    FarHops {
        /// The hops.
        hops: u32,
    },
    /// Nothing can be measured: all that was asked for is left out.
    #[error("Nothing can be measured: {reasons}.")]
    AllLeftOut {
        /// What is left out, each with the reason.
        reasons: String,
    },
    /// The hosts of an emulated network cannot be made or used.
    #[error(transparent)]
    Testbed(#[from] deckwatch_testbed::TestbedError),
    /// This machine cannot emulate networks.
    #[error("{network} cannot be emulated here: {reason} Leave --network out to measure loopback.")]
    NotEmulated {
        /// The network.
        network: String,
        /// The reason, as a sentence.
        reason: String,
    },
    /// A file cannot be used.
    #[error("{path}: {source}")]
    File {
        /// The file.
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
        "{connections} connections are more open files than a process may have here, which is {limit}: ask for fewer with \
         --connections, or raise the limit (`ulimit -Hn`, RLIMIT_NOFILE)."
    )]
    TooManyConnections {
        /// The number asked for.
        connections: usize,
        /// The hard limit.
        limit: u64,
    },
    /// The reference of our own server cannot be used.
    #[error("The reference of our own server cannot be used: {0}.")]
    Reference(String),
    /// None of the kinds is measured in any of the conditions.
    #[error(
        "Nothing of this is measured in that condition: ask for other conditions, or for all by leaving them out."
    )]
    Nothing,
    /// The user ended it before anything was measured.
    #[error("Ended by {0} before a round was whole.")]
    Interrupted(&'static str),
    /// A system call of an end has failed.
    #[error("{doing}: {source}")]
    System {
        /// The step that failed.
        doing: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}
