//! The events that a part writes (lines of JSON on standard output) and the commands that it reads (lines of words on
//! standard input).
//!
//! The end of a part's standard input means that the coordinator is gone: the part then ends too.

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use deckwatch_meter::clock::{SyncState, Window};
use deckwatch_meter::result::Warning;
use serde::{Deserialize, Serialize};

/// One line from a part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum PartEvent {
    /// The part waits for `go`.
    Ready(Ready),
    /// The part's progress, about four times a second.
    Progress(Progress),
    /// What a clock part has found of one peer.
    Clock(Related),
    /// The state of the host's clock, at the end of a clock part.
    Sync(SyncState),
    /// The part has finished, and its files are complete. This is its last line.
    Done(Done),
    /// The part failed. This is its last line.
    Error {
        /// The error and its remedy, in whole sentences.
        text: String,
    },
}

/// A part waits for `go`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ready {
    /// The address for other parts: `address:port` of a raw consumer, the stringified IOR of a servant or channel, the
    /// `corbaloc:` of a naming service. Empty if the part has none.
    pub endpoint: String,
    /// The address that the part listens on; the taps capture its port.
    pub listening: Option<SocketAddr>,
    /// Octets of one message's CDR encoding.
    pub size_bytes: Option<u64>,
    /// The scheduling that the part runs with, in words.
    pub scheduling: String,
    /// The requests that the kernel refused, with their remedies, and what cannot be measured on this host.
    pub warnings: Vec<Warning>,
    /// The process id of the program that plays the part, if the carrier is external.
    pub program: Option<u32>,
    /// The settings that the program took over, or has no equal for.
    pub settings: Settings,
}

/// What an external carrier did with the settings of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Settings that the middleware took over.
    pub honoured: BTreeSet<Setting>,
    /// Settings that it has no equal for.
    pub ignored: BTreeSet<Setting>,
}

/// A setting of a flow that a middleware may take over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// The CORBA priority of the flow.
    Priority,
    /// The deadline, as the bound of a send or as a contract between the ends.
    Deadline,
    /// What is done about lost messages.
    Reliability,
    /// The messages that are kept for a slow consumer.
    History,
    /// The differentiated services code point of the packets.
    Dscp,
    /// The SO_PRIORITY of the packets.
    SocketPriority,
    /// The IDL type of the flow, as the middleware's own type.
    IdlType,
    /// Locked memory. A program does not inherit it.
    LockedMemory,
    /// Octets of the receive buffer.
    ReceiveBuffer,
}

impl Setting {
    /// All settings.
    pub const ALL: [Self; 9] = [
        Self::Priority,
        Self::Deadline,
        Self::Reliability,
        Self::History,
        Self::Dscp,
        Self::SocketPriority,
        Self::IdlType,
        Self::LockedMemory,
        Self::ReceiveBuffer,
    ];

    /// Returns the word of the protocol and of results.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Priority => "priority",
            Self::Deadline => "deadline",
            Self::Reliability => "reliability",
            Self::History => "history",
            Self::Dscp => "dscp",
            Self::SocketPriority => "socket-priority",
            Self::IdlType => "idl-type",
            Self::LockedMemory => "locked-memory",
            Self::ReceiveBuffer => "receive-buffer",
        }
    }
}

/// The progress of a part. Counts begin at the start and include the warm-up; counts that a role does not have stay
/// zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// Messages that have become due, over all destinations (supplier).
    pub sent: u64,
    /// Of these, messages that the local side refused (supplier).
    pub send_errors: u64,
    /// Messages received, duplicates included (consumer, channel), or packets (tap).
    pub received: u64,
    /// Of these, messages received more than the deadline after due, without the warm-up (consumer).
    pub late: u64,
    /// Messages dropped by a full receive buffer (consumer, tap) or a full queue (channel).
    pub overflows: u64,
}

/// What a clock part has found of one peer's clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Related {
    /// The peer's place in the plan.
    pub peer: usize,
    /// The relation of its clock to that of the part.
    pub window: Window,
}

/// A part has finished.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Done {
    /// The final counts.
    pub progress: Progress,
    /// Facts that the reader of the result must know.
    pub warnings: Vec<Warning>,
}

/// One line to a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartCommand {
    /// Start the schedule at this time, nanoseconds of CLOCK_MONOTONIC.
    Go {
        /// The start time.
        start_ns: i64,
    },
    /// Write the progress at once. Only channels do.
    Count,
    /// Finish and write `done`.
    Stop,
}

impl fmt::Display for PartCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Go { start_ns } => write!(f, "go {start_ns}"),
            Self::Count => f.write_str("count"),
            Self::Stop => f.write_str("stop"),
        }
    }
}

impl FromStr for PartCommand {
    type Err = UnknownCommand;

    fn from_str(line: &str) -> Result<Self, UnknownCommand> {
        let mut words = line.split_ascii_whitespace();
        let command = match (words.next(), words.next()) {
            (Some("stop"), None) => Some(Self::Stop),
            (Some("count"), None) => Some(Self::Count),
            (Some("go"), Some(start)) => start.parse().ok().map(|start_ns| Self::Go { start_ns }),
            _ => None,
        };
        match (command, words.next()) {
            (Some(command), None) => Ok(command),
            _ => Err(UnknownCommand),
        }
    }
}

/// A line that is none of `go START_NS`, `count` and `stop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("A part understands `go START_NS`, `count` and `stop`.")]
pub struct UnknownCommand;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_as_they_are_written() {
        for command in [
            PartCommand::Stop,
            PartCommand::Count,
            PartCommand::Go { start_ns: 12_345 },
        ] {
            assert_eq!(command.to_string().parse(), Ok(command));
        }
        for line in ["", "go", "go soon", "go 1 2", "stop now", "halt"] {
            assert_eq!(line.parse::<PartCommand>(), Err(UnknownCommand), "{line}");
        }
    }

    #[test]
    fn events_are_told_apart_by_their_first_word() {
        let event = PartEvent::Progress(Progress {
            sent: 7,
            ..Progress::default()
        });
        let line = serde_json::to_string(&event).expect("plain data");
        assert!(
            line.starts_with(r#"{"event":"progress","sent":7"#),
            "{line}"
        );
        assert_eq!(
            serde_json::from_str::<PartEvent>(r#"{"event":"progress","sent":7}"#)
                .expect("absent counts are zero"),
            event
        );
    }
}
