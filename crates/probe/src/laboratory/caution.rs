//! Reasons to doubt the numbers of a bench or an experiment: the stable kind and the sentence of each warning.

use std::fmt;

use deckwatch_meter::result::Warning;

use super::{BROKEN_OFF, ENDED_EARLY, Inserted};

/// A reason to doubt the numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Caution {
    /// An end did not get its real-time class.
    NotRealTime,
    /// This program was built without optimisation.
    DebugBuild,
    /// A failure ended the measurement.
    BrokenOff {
        /// The error.
        reason: String,
    },
    /// The user ended the measurement.
    EndedEarly,
    /// Our servants did additional work.
    ServantWork(Inserted),
    /// The kernel throttles the real-time threads of long runs.
    LongRuns,
    /// The ratios of the pairs differ much.
    Spread {
        /// Width of the middle half over the median.
        share: f64,
    },
    /// Raw TCP or a system call took another time after the runs than before.
    StateChanged {
        /// The change, as a share.
        share: f64,
    },
    /// A case has no result.
    NothingMeasured,
    /// Other programs took the processor of the factoring thread.
    FactoringDisturbed {
        /// The share of the processor that the thread had without calls.
        share: f64,
    },
    /// The high-priority client made fewer calls than its schedule has.
    ScheduleNotKept {
        /// The system.
        system: &'static str,
        /// Number of low-priority clients.
        low_clients: usize,
        /// Calls made in a run.
        made: usize,
        /// Calls in the schedule.
        expected: f64,
    },
    /// Transactions did not begin at the interval that was asked for.
    IntervalMissed {
        /// The system and its case.
        what: String,
        /// The interval that was asked for.
        asked_ns: f64,
        /// The mean of the intervals.
        mean_ns: f64,
        /// Share of the intervals that were too long.
        missed: f64,
    },
    /// The bound of two clocks is as large as a one-way latency.
    NotComparable {
        /// The system and its case.
        what: String,
        /// The bound; `None` if nothing bounds the clocks.
        bound_ns: Option<f64>,
    },
}

impl Caution {
    /// The word that programs recognise the warning by.
    const fn kind(&self) -> &'static str {
        match self {
            Self::NotRealTime => "not-real-time",
            Self::DebugBuild => "debug-build",
            Self::BrokenOff { .. } => BROKEN_OFF,
            Self::EndedEarly => ENDED_EARLY,
            Self::ServantWork(Inserted::Delay(_)) => "servant-delay",
            Self::ServantWork(_) => "servant-inserted",
            Self::LongRuns => "long-runs",
            Self::Spread { .. } => "spread",
            Self::StateChanged { .. } => "state-changed",
            Self::NothingMeasured => "nothing-measured",
            Self::FactoringDisturbed { .. } => "factoring-disturbed",
            Self::ScheduleNotKept { .. } => "schedule-not-kept",
            Self::IntervalMissed { .. } => "interval-missed",
            Self::NotComparable { .. } => "not-comparable",
        }
    }
}

impl fmt::Display for Caution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRealTime => f.write_str(
                "Not every end got SCHED_FIFO, which needs CAP_SYS_NICE or RLIMIT_RTPRIO: other threads take the processor in between.",
            ),
            Self::DebugBuild => {
                f.write_str("This is a debug build: build with --release to compare with others.")
            }
            Self::BrokenOff { reason } => write!(f, "The measurement could not go on: {reason}"),
            Self::EndedEarly => f.write_str("The measurement was ended before its last round."),
            Self::ServantWork(inserted) => {
                let words = inserted.words().unwrap_or_default();
                write!(f, "Our servants did additional work in each request: {words}.")
            }
            Self::LongRuns => f.write_str(
                "Real-time runs of more than 0.9 s are throttled by the kernel, which keeps a twentieth of each second for others.",
            ),
            Self::Spread { share } => {
                let percent = share * 1e2;
                write!(
                    f,
                    "The middle half of some ratios lies {percent:.0}% apart: repeat on a quieter machine, or with more rounds."
                )
            }
            Self::StateChanged { share } => {
                let percent = share * 1e2;
                write!(
                    f,
                    "The machine changed its state: raw TCP or a system call took {percent:.0}% more or less time after the runs than before. Repeat before you compare with other results."
                )
            }
            Self::NothingMeasured => f.write_str("Some sizes were not measured at all."),
            Self::FactoringDisturbed { share } => {
                let percent = share * 1e2;
                write!(
                    f,
                    "Without calls, the factoring thread had only {percent:.0}% of its processor: what the servers left of it cannot be compared."
                )
            }
            Self::ScheduleNotKept {
                system,
                low_clients,
                made,
                expected,
            } => write!(
                f,
                "{system}: beside {low_clients} clients the high-priority one made {made} of {expected:.0} calls in a run."
            ),
            Self::IntervalMissed {
                what,
                asked_ns,
                mean_ns,
                missed,
            } => write!(
                f,
                "{what}: a transaction began every {:.3} ms on average, and every {:.3} ms was asked for; {:.1}% of the intervals \
                 were more than a tenth too long. Ask for a longer interval, or for a faster place of the ends.",
                mean_ns / 1e6,
                asked_ns / 1e6,
                missed * 1e2
            ),
            Self::NotComparable { what, bound_ns } => not_comparable(f, what, *bound_ns),
        }
    }
}

fn not_comparable(f: &mut fmt::Formatter<'_>, what: &str, bound_ns: Option<f64>) -> fmt::Result {
    match bound_ns {
        Some(ns) => write!(
            f,
            "{what}: a one-way latency is NOT COMPARABLE. The clocks of both hosts are known within {:.1} us of each other, and it is \
             not longer.",
            ns / 1e3
        ),
        None => write!(
            f,
            "{what}: one-way latencies are NOT COMPARABLE. A clock has jumped, or nothing relates the clocks of both hosts."
        ),
    }
}

impl From<Caution> for Warning {
    fn from(caution: Caution) -> Self {
        Self {
            kind: caution.kind().to_owned(),
            text: caution.to_string(),
        }
    }
}
