//! The errors of a schedule.

use std::fmt;

use crate::limits::{SCHEDULE_DURATION_MAX, SCHEDULE_MESSAGES_MAX};

/// Why a schedule cannot be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The period is zero.
    PeriodZero,
    /// A burst has no message.
    BurstEmpty,
    /// A burst lasts as long as its period or longer.
    BurstsOverlap,
    /// There is no message after the warm-up.
    NothingToJudge,
    /// The schedule has more than [`SCHEDULE_MESSAGES_MAX`] messages.
    TooManyMessages,
    /// The schedule is longer than [`SCHEDULE_DURATION_MAX`].
    TooLong,
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PeriodZero => f.write_str("The period is zero."),
            Self::BurstEmpty => f.write_str("A burst needs at least one message."),
            Self::BurstsOverlap => {
                f.write_str("A burst lasts longer than the period between bursts.")
            }
            Self::NothingToJudge => f.write_str("No message is left to judge after the warm-up."),
            Self::TooManyMessages => write!(
                f,
                "The schedule has more than {SCHEDULE_MESSAGES_MAX} messages."
            ),
            Self::TooLong => write!(
                f,
                "The schedule is longer than {} days.",
                SCHEDULE_DURATION_MAX.as_secs() / 86_400
            ),
        }
    }
}

impl std::error::Error for ScheduleError {}
