//! The lines between the coordinator and a far host, besides those of the part itself.

use serde::{Deserialize, Serialize};

use crate::part::ProcessPlan;

/// A line from a far host that is not the part's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "far", rename_all = "kebab-case")]
pub(crate) enum FarWord {
    /// The first line.
    Hello {
        /// Version and build of the program.
        build: String,
    },
    /// The answer to `ping T1`, with its stamp and two of the far host's CLOCK_MONOTONIC.
    Pong {
        /// The stamp in the question.
        t1_ns: i64,
        /// When the question was read.
        t2_ns: i64,
        /// When the answer was written.
        t3_ns: i64,
    },
    /// A file follows: so many octets, then [`FarWord::FileEnd`].
    File {
        /// Its place in [`FarPlan::returns`].
        index: usize,
        /// Its octets.
        size_bytes: u64,
    },
    /// The end of a file.
    FileEnd {
        /// The digest of its octets.
        sha256: String,
    },
    /// The part has ended, and its files are written. This is the last line.
    End {
        /// How the part ended, as the rest of a sentence; `None` if it ended successfully.
        how: Option<String>,
    },
}

/// The first line to a far host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FarPlan {
    /// The run that the part belongs to. A far host takes part in one run at a time.
    pub(crate) run: String,
    /// The processors that the part may use; empty for all.
    pub(crate) processors: Vec<u32>,
    /// The files that the part reads.
    pub(crate) files: Vec<CarriedFile>,
    /// The files that the part creates and that are written back, by their names in its folder.
    pub(crate) returns: Vec<String>,
    /// The plan of the part. Its paths are relative to the part's folder.
    pub(crate) plan: ProcessPlan,
}

/// A file that the part reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CarriedFile {
    /// Its path in the part's folder.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
}

/// The question whose answer is a pong.
pub(crate) const PING: &str = "ping ";

/// The option of `deckwatch part` on a far host.
pub(crate) const FAR: &str = "--far";
