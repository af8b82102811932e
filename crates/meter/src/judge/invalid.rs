//! The reasons why a run cannot be judged (INVALID), with their sentences.

use std::fmt;
use std::time::Duration;

use crate::words;

/// Why a run cannot be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidReason {
    /// No flow, or no destination.
    NothingToJudge,
    /// The schedule has no message after the warm-up.
    NoMessage,
    /// The verdict depends on messages that the supplier, by its own fault, sent late.
    ScheduleNotKept {
        /// Number of late messages blamed on the supplier.
        messages: u64,
    },
    /// The verdict depends on processor time that was withheld without a declaration in the mission.
    TimeWithheld {
        /// Time that the hypervisor withheld.
        stolen: Duration,
        /// Time that the control group's quota withheld.
        throttled: Duration,
        /// Number of late messages that it may have caused.
        messages: u64,
    },
    /// The verdict depends on the error of the clocks.
    ClocksDecide {
        /// Upper bound of the error.
        error: Duration,
    },
    /// The capture lacks too many packets to blame a layer.
    CaptureDropped {
        /// Number of packets dropped.
        packets: u64,
    },
}

impl fmt::Display for InvalidReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NothingToJudge => f.write_str("There is nothing to judge."),
            Self::NoMessage => f.write_str("No message was judged."),
            Self::ScheduleNotKept { messages } => {
                let late = match messages {
                    1 => "1 message is".to_owned(),
                    more => format!("{} are", words::messages(more)),
                };
                write!(
                    f,
                    "The schedule was not kept: {late} late by the supplier's own fault, although the mission declares no disturbance of its host."
                )
            }
            Self::TimeWithheld {
                stolen,
                throttled,
                messages,
            } => write!(
                f,
                "Processor time was withheld ({} stolen by the hypervisor, {} by throttling), enough to have made {} late.",
                words::duration(stolen),
                words::duration(throttled),
                words::messages(messages)
            ),
            Self::ClocksDecide { error } => write!(
                f,
                "The clocks' error, up to {}, is larger than the slack: it decides which messages are late.",
                words::duration(error)
            ),
            Self::CaptureDropped { packets } => write!(
                f,
                "The capture dropped {} packets: which layer took the time cannot be said.",
                words::count(packets)
            ),
        }
    }
}
