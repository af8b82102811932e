//! Why a run cannot be judged: each reason for INVALID, and its sentence.

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
    /// The verdict depends on messages that the supplier sent late by its own fault.
    ScheduleNotKept {
        /// Late messages blamed on the supplier.
        messages: u64,
    },
    /// The verdict depends on processor time that no mission declares as taken.
    TimeWithheld {
        /// By the hypervisor.
        stolen: Duration,
        /// By the control group's quota.
        throttled: Duration,
        /// Late messages that it may have caused.
        messages: u64,
    },
    /// The verdict depends on the error of the clocks.
    ClocksDecide {
        /// Its bound.
        error: Duration,
    },
    /// The capture lacks too many packets to blame a layer.
    CaptureDropped {
        /// How many.
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
