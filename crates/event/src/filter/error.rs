//! Why a list is no filter.

use std::fmt;

use crate::limits::{FILTER_ENTRIES_MAX, FILTER_NESTING_MAX, FILTER_TIMERS_MAX, TIMEOUT_MIN};

/// What is wrong with a list, and at which entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// What is wrong.
    pub fact: FilterFact,
    /// Index of the entry, from 0.
    pub entry: u32,
}

/// What is wrong with an entry of a filter's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterFact {
    /// The list is longer than [`FILTER_ENTRIES_MAX`].
    TooManyEntries,
    /// The entry is nested deeper than [`FILTER_NESTING_MAX`].
    TooDeep,
    /// The number of a group's operands is negative.
    CountNegative,
    /// The list ends before the operands of this entry.
    OperandsMissing(u32),
    /// The list ends before the masks of this entry.
    MasksMissing,
    /// The list ends before the values of this entry.
    ValuesMissing,
    /// The filter has more than [`FILTER_TIMERS_MAX`] timeouts.
    TooManyTimers,
    /// A timeout that repeats is shorter than [`TIMEOUT_MIN`].
    TimeoutTooShort,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dependency {}: ", self.entry)?;
        match self.fact {
            FilterFact::TooManyEntries => {
                write!(
                    f,
                    "the list has more than {FILTER_ENTRIES_MAX} entries. Connect several consumers."
                )
            }
            FilterFact::TooDeep => write!(
                f,
                "the expression is nested deeper than {FILTER_NESTING_MAX} levels. Write a flatter one."
            ),
            FilterFact::CountNegative => f.write_str(
                "the number of operands is negative. Write in `source` how many follow, or 0 for all up to the next \
                 group.",
            ),
            FilterFact::OperandsMissing(count) => write!(
                f,
                "{count} of its operands are missing. Write them behind it, or correct the number in `source`."
            ),
            FilterFact::MasksMissing => {
                f.write_str("its masks are missing. Write an entry with both masks behind it.")
            }
            FilterFact::ValuesMissing => {
                f.write_str("its values are missing. Write an entry with both values behind the masks.")
            }
            FilterFact::TooManyTimers => {
                write!(f, "the filter has more than {FILTER_TIMERS_MAX} timeouts.")
            }
            FilterFact::TimeoutTooShort => write!(
                f,
                "the timeout repeats in less than {TIMEOUT_MIN:?}. Write a longer `creation_time`, in units of 100 ns."
            ),
        }
    }
}

impl std::error::Error for FilterError {}
