//! The reasons why a run cannot be judged (INVALID), each with its sentence and its remedy.

use std::fmt;
use std::time::Duration;

use crate::disturbance::TakenTime;
use crate::host_entry::HostEntry;
use crate::words;

/// Why a run cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidReason {
    /// No flow, or no destination.
    NothingToJudge,
    /// The schedule has no message after the warm-up.
    NoMessage,
    /// The verdict depends on messages that the supplier, by its own fault, sent late.
    ScheduleNotKept {
        /// Number of late messages blamed on the supplier.
        messages: u64,
        /// The supplier's host.
        host: HostEntry,
        /// The supplier's threads already have a real-time class.
        real_time: bool,
    },
    /// The verdict depends on processor time that was withheld without a declaration in the mission.
    TimeWithheld {
        /// Time that the hypervisor withheld.
        stolen: Duration,
        /// Time that the control group's quota withheld.
        throttled: Duration,
        /// The thread of the run that lost the most time to processes outside the run.
        taken: Option<TakenTime>,
        /// Number of late messages that it may have caused.
        messages: u64,
    },
    /// The verdict depends on the error of the clocks.
    ClocksDecide {
        /// Upper bound of the error.
        error: Duration,
    },
    /// A load that the mission needs missed its target.
    LoadMissed {
        /// The load and what it reached, in words.
        load: String,
    },
    /// The records of a part cannot be read, although it did not die.
    RecordsUnread {
        /// The part and its host, in words.
        part: String,
        /// Why they cannot be read.
        reason: String,
    },
    /// The capture lacks too many packets to blame a layer.
    CaptureDropped {
        /// Number of packets dropped.
        packets: u64,
    },
}

impl fmt::Display for InvalidReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingToJudge => f.write_str("There is nothing to judge."),
            Self::NoMessage => f.write_str("No message was judged."),
            Self::ScheduleNotKept { messages, .. } => {
                let late = match messages {
                    1 => "1 message is".to_owned(),
                    more => format!("{} are", words::messages(*more)),
                };
                write!(
                    f,
                    "The schedule was not kept: {late} late by the supplier's own fault, although the mission declares no disturbance of its host."
                )
            }
            Self::TimeWithheld {
                stolen,
                throttled,
                taken,
                messages,
            } => {
                let mut causes = Vec::new();
                if !stolen.is_zero() {
                    let time = words::duration(*stolen);
                    causes.push(format!("{time} stolen by the hypervisor"));
                }
                if !throttled.is_zero() {
                    causes.push(format!("{} by throttling", words::duration(*throttled)));
                }
                causes.extend(taken.as_ref().map(TakenTime::as_cause));
                write!(
                    f,
                    "Processor time was withheld ({}), enough to have made {} late.",
                    causes.join(", "),
                    words::messages(*messages)
                )
            }
            Self::ClocksDecide { error } => write!(
                f,
                "The clocks' error, up to {}, is larger than the slack: it decides which messages are late.",
                words::duration(*error)
            ),
            Self::LoadMissed { load } => write!(
                f,
                "A load that the mission needs missed its target: {load}."
            ),
            Self::RecordsUnread { part, reason } => {
                write!(f, "The records of the {part} cannot be used: {reason}.")
            }
            Self::CaptureDropped { packets } => write!(
                f,
                "The capture dropped {} packets: which layer took the time cannot be said.",
                words::count(*packets)
            ),
        }
    }
}

impl InvalidReason {
    /// Returns what to do before the next run, with the line for the mission's file where one helps.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::NothingToJudge => {
                "Write a flow with a destination into the mission's file: [[flows]], with to = [\"HOST\"].".to_owned()
            }
            Self::NoMessage => {
                "Let the flow last longer than its warm-up: count = 10_000, or duration = \"20s\".".to_owned()
            }
            Self::ScheduleNotKept { host, real_time, .. } => {
                host.to_keep_its_schedule(*real_time)
            }
            Self::TimeWithheld { stolen, throttled, taken, .. } => match taken {
                Some(taken) if taken.time >= (*stolen).max(*throttled) => taken.remedy(),
                _ if throttled > stolen => {
                    AGAINST_A_QUOTA.to_owned()
                }
                _ => AGAINST_A_HYPERVISOR.to_owned(),
            },
            Self::ClocksDecide { .. } => {
                "Run both ends on one machine, where they read one clock, or synchronise the clocks to much less than the slack.".to_owned()
            }
            Self::LoadMissed { .. } => {
                "End what else uses the processor or link, give the load's host a processor of its own, or remove must_hold from the load.".to_owned()
            }
            Self::RecordsUnread { .. } => {
                "Run it again; if it happens again, look at the memory of the machine, and at what else writes to the run's folder.".to_owned()
            }
            Self::CaptureDropped { .. } => {
                "Give each host processors of its own (`processors` in its entry in `hosts`), or send less in one run: \
                 fewer carriers, a lower rate, a smaller count."
                    .to_owned()
            }
        }
    }
}

/// What to do where the control group's quota withheld processor time.
pub(super) const AGAINST_A_QUOTA: &str =
    "Take the quota off the container or service (docker run without --cpus; systemd: CPUQuota=).";
/// What to do where the hypervisor withheld processor time.
pub(super) const AGAINST_A_HYPERVISOR: &str = "Run on a machine whose hypervisor does not share its processors; \
    `deckwatch doctor` shows the share that is stolen.";
