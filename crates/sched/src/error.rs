//! The reasons why a schedule cannot be computed.

use std::fmt;

use crate::info::Handle;

/// The reason why a schedule cannot be computed. An infeasible schedule is a result, not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchedError {
    /// More operations than [`crate::limits::OPERATIONS_MAX`].
    TooManyOperations,
    /// More dependencies than [`crate::limits::DEPENDENCIES_MAX`].
    TooManyDependencies,
    /// More pairs of an operation and a timer than [`crate::limits::STREAMS_MAX`].
    TooManyStreams,
    /// An entry point longer than [`crate::limits::ENTRY_POINT_BYTES_MAX`].
    EntryPointTooLong,
    /// Another operation has this entry point.
    DuplicateEntryPoint(Handle),
    /// No operation has this handle.
    UnknownOperation(Handle),
    /// No such dependency is declared.
    UnknownDependency(Handle),
    /// A sum or a product of times does not fit 64 bits of nanoseconds (584 years).
    TimeOverflow,
    /// The hyperperiod (the least common multiple of the periods) does not fit 64 bits of nanoseconds. The analysis of
    /// a full processor needs it.
    HyperperiodOverflow,
    /// The analysis takes more work than [`crate::limits::WORK_MAX`].
    TooLong,
    /// The strategy needs more priorities than the dispatcher has.
    TooFewPriorities {
        /// Priorities that the strategy needs.
        needed: u32,
        /// Priorities that the dispatcher has.
        available: u32,
    },
}

impl fmt::Display for SchedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyOperations => f.write_str("There are too many operations."),
            Self::TooManyDependencies => f.write_str("There are too many dependencies."),
            Self::TooManyStreams => f.write_str("Too many timers trigger too many operations."),
            Self::EntryPointTooLong => f.write_str("The entry point is too long."),
            Self::DuplicateEntryPoint(handle) => {
                write!(f, "Operation {handle} has the same entry point.")
            }
            Self::UnknownOperation(handle) => write!(f, "There is no operation {handle}."),
            Self::UnknownDependency(handle) => {
                write!(f, "No such dependency on operation {handle} is declared.")
            }
            Self::TimeOverflow => {
                f.write_str("A sum of times is longer than 584 years (64 bits of nanoseconds).")
            }
            Self::HyperperiodOverflow => f.write_str(
                "The processor is full, and the hyperperiod is longer than 584 years: the analysis has no end.",
            ),
            Self::TooLong => f.write_str("The analysis takes too long."),
            Self::TooFewPriorities { needed, available } => write!(
                f,
                "The strategy needs {needed} priorities; the dispatcher has {available}."
            ),
        }
    }
}

impl std::error::Error for SchedError {}
