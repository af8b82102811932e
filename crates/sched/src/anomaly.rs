//! What is wrong with declared operations or their schedule (`RtecScheduler::Scheduling_Anomaly`).

use std::fmt;

use crate::info::Handle;
use crate::measured::Measured;
use crate::operations::Operations;
use crate::words::in_words;

/// Something wrong, and how bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// The operation concerned; `None` for the whole set.
    pub of: Option<Handle>,
    /// What is wrong.
    pub fact: AnomalyFact,
}

/// How bad an anomaly is (`RtecScheduler::Anomaly_Severity`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// No schedule exists.
    Fatal,
    /// A deadline is missed, or an operation is not scheduled.
    Error,
    /// A declaration is doubtful.
    Warning,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnomalyFact {
    /// The operation is on a cycle of dependencies, or between two.
    Cycle,
    /// The operation has neither a period nor an enabled dependency that gives it one.
    Unresolved,
    /// The operation has threads and no period.
    ThreadsWithoutPeriod,
    /// All executions together take more time than there is.
    UtilisationAboveOne,
    /// The operation can miss its deadline.
    MissesDeadline {
        /// Its worst response time, or a bound of it; `None`: there is none.
        worst_ns: Option<u64>,
        /// Its deadline.
        deadline_ns: u64,
    },
    /// The declared period is not that of the events that trigger the operation.
    RateMismatch {
        /// The declared period.
        declared_ns: u64,
        /// The shortest period of those events.
        propagated_ns: u64,
    },
    /// The typical execution time is above the worst.
    TypicalAboveWorst,
    /// The worst-case execution time is 0.
    CostsNothing,
    /// Executions took longer than the declared worst case.
    ExceedsWorstCase(Measured),
    /// As [`Self::MissesDeadline`], with the measured execution times.
    MissesDeadlineAsMeasured {
        /// Its worst response time, or a bound of it; `None`: there is none.
        worst_ns: Option<u64>,
        /// Its deadline.
        deadline_ns: u64,
    },
    /// As [`Self::UtilisationAboveOne`], with the measured execution times.
    UtilisationAboveOneAsMeasured,
    /// With the measured execution times, times do not fit 64 bits or the analysis takes too long.
    NotAnalysedAsMeasured,
}

impl AnomalyFact {
    /// Returns how bad it is.
    #[must_use]
    pub const fn severity(self) -> Severity {
        match self {
            Self::Cycle | Self::UtilisationAboveOne => Severity::Fatal,
            Self::Unresolved | Self::ThreadsWithoutPeriod | Self::MissesDeadline { .. } => {
                Severity::Error
            }
            Self::RateMismatch { .. }
            | Self::TypicalAboveWorst
            | Self::CostsNothing
            | Self::ExceedsWorstCase(_)
            | Self::MissesDeadlineAsMeasured { .. }
            | Self::UtilisationAboveOneAsMeasured
            | Self::NotAnalysedAsMeasured => Severity::Warning,
        }
    }

    /// Whether the set is infeasible with the measured execution times because of it.
    #[must_use]
    pub const fn is_fault_as_measured(self) -> bool {
        matches!(
            self,
            Self::MissesDeadlineAsMeasured { .. }
                | Self::UtilisationAboveOneAsMeasured
                | Self::NotAnalysedAsMeasured
        )
    }
}

impl Anomaly {
    /// Returns how bad it is.
    #[must_use]
    pub const fn severity(self) -> Severity {
        self.fact.severity()
    }

    /// Returns a sentence about it, with the operation's entry point.
    #[must_use]
    pub fn describe(self, operations: &Operations) -> String {
        match self.of.and_then(|handle| operations.get(handle).ok()) {
            Some(info) => format!("{}: {}", info.entry_point, self.fact),
            None => self.fact.to_string(),
        }
    }
}

impl fmt::Display for AnomalyFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Cycle => f.write_str("it depends on itself through a cycle of dependencies"),
            Self::Unresolved => {
                f.write_str("it has no period, and no enabled dependency gives it one")
            }
            Self::ThreadsWithoutPeriod => f.write_str("it has threads, but no period"),
            Self::UtilisationAboveOne => {
                f.write_str("all executions together take more time than there is")
            }
            Self::MissesDeadline {
                worst_ns: Some(worst),
                deadline_ns,
            } => write!(
                f,
                "its response can take {}; its deadline is {}",
                in_words(worst),
                in_words(deadline_ns)
            ),
            Self::MissesDeadline {
                worst_ns: None,
                deadline_ns,
            } => write!(
                f,
                "no bound of its response time was found; its deadline is {}",
                in_words(deadline_ns)
            ),
            Self::RateMismatch {
                declared_ns,
                propagated_ns,
            } => write!(
                f,
                "its declared period is {}; its events come every {}",
                in_words(declared_ns),
                in_words(propagated_ns)
            ),
            Self::TypicalAboveWorst => f.write_str("its typical execution time is above its worst"),
            Self::CostsNothing => f.write_str("its worst-case execution time is 0"),
            Self::ExceedsWorstCase(measured) => measured.fmt(f),
            Self::MissesDeadlineAsMeasured {
                worst_ns,
                deadline_ns,
            } => {
                let declared = Self::MissesDeadline {
                    worst_ns,
                    deadline_ns,
                };
                write!(f, "{AS_MEASURED}, {declared}")
            }
            Self::UtilisationAboveOneAsMeasured => {
                write!(f, "{AS_MEASURED}, {}", Self::UtilisationAboveOne)
            }
            Self::NotAnalysedAsMeasured => {
                write!(f, "{AS_MEASURED}, no schedule can be computed")
            }
        }
    }
}

const AS_MEASURED: &str = "with the measured execution times";
