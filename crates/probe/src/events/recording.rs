//! Recordings: events in a file that survives a crash of the recorder.
//!
//! A file begins with [`MAGIC`] and the version of the format, 12 octets. Records follow:
//!
//! | octets | content |
//! | --- | --- |
//! | 4 | length of the body, little-endian |
//! | 4 | CRC-32 (IEEE 802.3) of the four octets before and of the body, little-endian |
//! | length | the body: a kind, then what the kind says |
//!
//! | kind | body behind it |
//! | --- | --- |
//! | 1 | [`Head`] as JSON: the first record |
//! | 2 | an event: byte order (0 big, 1 little), six zeros, then in CDR (GIOP 1.2, UTF-8, UTF-16, alignment from here) `unsigned long long` nanoseconds since the start, `boolean` has_header, `RtecEventComm::EventHeader`, `sequence<octet>` payload, `any` |
//! | 3 | [`End`] as JSON: the last record of a recording that was ended in order |
//!
//! Each event is one write. What the kernel has taken is in the file, even if the recorder is killed. At most the last
//! record is torn, and a reader finds that by its length and checksum.

mod read;
mod write;

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Event;

pub use read::{Recording, Survey, Tail, Wanted, survey};
pub use write::Recorder;

/// The first octets of a recording.
pub const MAGIC: [u8; 8] = *b"DWEVENTS";

/// The version of the format, behind [`MAGIC`] as a little-endian number of four octets.
pub const VERSION: u32 = 1;

/// Octets in front of the first record.
const PREAMBLE_SIZE: usize = 12;

/// Octets in front of the body of a record.
const FRAME_SIZE: usize = 8;

/// Octets of the body of an event in front of its CDR.
const EVENT_HEAD_SIZE: usize = 8;

const KIND_HEAD: u8 = 1;
const KIND_EVENT: u8 = 2;
const KIND_END: u8 = 3;

/// What was recorded, where and when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// When the recording started, UTC (RFC 3339).
    pub started: String,
    /// The channel, as the user named it.
    pub channel: String,
    /// The host of the recorder.
    pub host: String,
    /// The version of Deckwatch.
    pub deckwatch: String,
}

/// The counts of a recording that was ended in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Events in the file.
    pub events: u64,
    /// Events that came faster than they were written.
    pub dropped: u64,
    /// Events of the recorder that the channel dropped; `None` if it did not report that. In files of earlier versions:
    /// those of all its consumers together.
    #[serde(default)]
    pub dropped_by_channel: Option<u64>,
    /// Events that were not asked for: of other types, or beyond the number of them.
    pub unwanted: u64,
    /// Events with a state that no TypeCode describes, in code sets that the file does not have.
    pub unwritten: u64,
}

/// An event of a recording.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Time from the start of the recording to the receipt of the event.
    pub after: Duration,
    /// The event.
    pub event: Event,
}

/// Why a recording cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The operating system's reason.
    #[error(transparent)]
    File(#[from] io::Error),
    /// The file is something else.
    #[error("it is no recording of events: it does not begin with {}", String::from_utf8_lossy(&MAGIC))]
    NotARecording,
    /// The file is of another version.
    #[error("it has version {0} of the format; this program reads version {VERSION}")]
    Version(u32),
    /// A record that is not the last one is damaged.
    #[error(
        "the record at octet {offset} is damaged ({fact}); {events} events before it are whole"
    )]
    Damaged {
        /// Where the record begins.
        offset: u64,
        /// What is wrong with it.
        fact: String,
        /// Events before it.
        events: u64,
    },
}

/// The checksum of a record.
fn checksum(len: [u8; 4], body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&len);
    hasher.update(body);
    hasher.finalize()
}

#[cfg(test)]
mod tests;
