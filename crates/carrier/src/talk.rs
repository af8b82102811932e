//! What a part writes while it runs (lines of JSON on standard output) and reads (lines of words on standard input).
//!
//! The end of a part's standard input means that the coordinator is gone: the part ends too.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use deckwatch_meter::result::Warning;
use serde::{Deserialize, Serialize};

/// One line from a part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum PartEvent {
    /// It waits for `go`.
    Ready(Ready),
    /// How far it is, about four times a second.
    Progress(Progress),
    /// It has finished, and its files are whole. The last line.
    Done(Done),
    /// It cannot go on. The last line.
    Error {
        /// In whole sentences: what, and what to do.
        text: String,
    },
}

/// A part waits for `go`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ready {
    /// What others reach it by: `address:port` of a raw consumer, the stringified IOR of a servant or channel, the
    /// `corbaloc:` of a naming service. Empty where none does.
    pub endpoint: String,
    /// Where it listens; its port is one for the taps.
    pub listening: Option<SocketAddr>,
    /// Octets of one message's CDR encoding.
    pub size_bytes: Option<u64>,
    /// The scheduling that it got, in words.
    pub scheduling: String,
    /// What was asked for and refused, and what to do; what cannot be measured here.
    pub warnings: Vec<Warning>,
}

/// How far a part is. Counts are from the start, warm-up included; those that a role does not have stay zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// Messages whose turn has come, over all destinations (supplier).
    pub sent: u64,
    /// Of these, those that the local side refused (supplier).
    pub send_errors: u64,
    /// Messages received, duplicates included (consumer, channel), packets (tap).
    pub received: u64,
    /// Of these, received more than the deadline after due, warm-up left out (consumer).
    pub late: u64,
    /// Dropped by a full receive buffer (consumer, tap), a full queue (channel).
    pub overflows: u64,
}

/// A part has finished.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Done {
    /// The last counts.
    pub progress: Progress,
    /// What the reader of the result must know.
    pub warnings: Vec<Warning>,
}

/// One line to a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartCommand {
    /// The schedule starts then, nanoseconds of CLOCK_MONOTONIC.
    Go {
        /// The start.
        start_ns: i64,
    },
    /// Finish, and write `done`.
    Stop,
}

impl fmt::Display for PartCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Go { start_ns } => write!(f, "go {start_ns}"),
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
            (Some("go"), Some(start)) => start.parse().ok().map(|start_ns| Self::Go { start_ns }),
            _ => None,
        };
        match (command, words.next()) {
            (Some(command), None) => Ok(command),
            _ => Err(UnknownCommand),
        }
    }
}

/// A line that is neither `go START_NS` nor `stop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("A part understands `go START_NS` and `stop`.")]
pub struct UnknownCommand;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_as_they_are_written() {
        for command in [PartCommand::Stop, PartCommand::Go { start_ns: 12_345 }] {
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
