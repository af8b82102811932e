//! The due time of each message: an absolute, open-loop schedule, which supplier and judge compute independently.
//!
//! A due time depends only on the schedule, never on the clock or on earlier messages. A supplier that was delayed
//! sends overdue messages at once and skips none. The judge computes the same due times and so sees the whole delay.
//! All arithmetic, including that of the exponential gaps, uses integers: hosts with different mathematics libraries
//! agree to the nanosecond.
//!
//! ```
//! use std::time::Duration;
//! use deckwatch_meter::pacing::{Arrivals, Extent, Schedule};
//!
//! let schedule = Schedule {
//!     start_ns: 1_000_000,
//!     offset: Duration::ZERO,
//!     arrivals: Arrivals::Periodic { period: Duration::from_millis(50) },
//!     extent: Extent::Count { messages: 400 },
//!     warm_up: 20,
//! };
//! schedule.check().expect("a sound schedule");
//! assert_eq!(schedule.dues().count(), 420);
//! let due = schedule.dues().nth(20).expect("the first that is judged");
//! assert_eq!((due.sequence, due.due_ns, due.warm_up), (20, 1_001_000_000, false));
//! ```

mod error;
mod nanoseconds;

use std::time::Duration;

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng as _;
use serde::{Deserialize, Serialize};

pub use error::ScheduleError;

use crate::limits::{DRAIN_DEADLINES, DRAIN_MIN, SCHEDULE_DURATION_MAX, SCHEDULE_MESSAGES_MAX};

/// The due times of the messages of one flow over one carrier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// Start of the run's schedule, nanoseconds of CLOCK_MONOTONIC; the same for all flows of a run.
    pub start_ns: i64,
    /// Time from the start to the beginning of this flow; it separates the carriers that share a flow.
    #[serde(rename = "offset_ns", with = "nanoseconds")]
    pub offset: Duration,
    /// The arrival process.
    pub arrivals: Arrivals,
    /// The length of the judged part, which follows the warm-up.
    pub extent: Extent,
    /// Number of warm-up messages before the judged part. They follow the same process and are sent and marked, but not
    /// judged.
    pub warm_up: u64,
}

/// An arrival process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Arrivals {
    /// One message in each period, the first at its beginning.
    Periodic {
        /// Time between messages.
        #[serde(rename = "period_ns", with = "nanoseconds")]
        period: Duration,
    },
    /// Independent, exponentially distributed gaps (RFC 2330 section 11.1.1), one before the first message.
    Poisson {
        /// Mean gap.
        #[serde(rename = "mean_period_ns", with = "nanoseconds")]
        mean_period: Duration,
        /// Seed of the gaps; two flows with the same seed have the same due times.
        seed: u64,
    },
    /// `size` messages, `gap` apart, in each period.
    Bursts {
        /// Time from the first message of one burst to the first of the next.
        #[serde(rename = "period_ns", with = "nanoseconds")]
        period: Duration,
        /// Messages in a burst.
        size: u32,
        /// Time between messages of one burst; zero to send them back to back.
        #[serde(rename = "gap_ns", with = "nanoseconds")]
        gap: Duration,
    },
}

/// The length of the judged part of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Extent {
    /// This many messages after the warm-up.
    Count {
        /// Messages judged.
        messages: u64,
    },
    /// The messages due within this time, counted from the first judged message, which is always included.
    Duration {
        /// The length of the judged part.
        #[serde(rename = "duration_ns", with = "nanoseconds")]
        duration: Duration,
    },
}

impl Arrivals {
    /// Returns the word in the result document: `periodic`, `poisson` or `bursts`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Periodic { .. } => "periodic",
            Self::Poisson { .. } => "poisson",
            Self::Bursts { .. } => "bursts",
        }
    }

    /// Returns the mean number of messages a second.
    #[must_use]
    pub fn rate_hz(&self) -> f64 {
        match *self {
            Self::Periodic { period } => period.as_secs_f64().recip(),
            Self::Poisson { mean_period, .. } => mean_period.as_secs_f64().recip(),
            Self::Bursts { period, size, .. } => f64::from(size) / period.as_secs_f64(),
        }
    }

    /// Returns how many messages are due while a stall lasts, at most; for a Poisson process, on average. At least 1.
    #[must_use]
    pub fn messages_within(&self, stall: Duration) -> u64 {
        let (period, size) = match *self {
            Self::Periodic { period } => (period, 1),
            Self::Poisson { mean_period, .. } => (mean_period, 1),
            Self::Bursts { period, size, .. } => (period, u64::from(size)),
        };
        let periods = stall.as_nanos().div_ceil(period.as_nanos().max(1));
        u64::try_from(periods)
            .unwrap_or(u64::MAX)
            .saturating_mul(size)
            .max(1)
    }

    /// Returns the period of a strictly periodic flow, the only kind to which the inter-arrival rule applies.
    #[must_use]
    pub const fn period(&self) -> Option<Duration> {
        match *self {
            Self::Periodic { period } => Some(period),
            Self::Poisson { .. } | Self::Bursts { .. } => None,
        }
    }
}

impl Schedule {
    /// Checks that the schedule can be kept. Iterating an invalid schedule is safe but useless.
    ///
    /// # Errors
    /// [`ScheduleError`] for a period of zero, bursts that overlap or are empty, nothing to judge, or more than
    /// [`SCHEDULE_MESSAGES_MAX`] messages or [`SCHEDULE_DURATION_MAX`].
    pub fn check(&self) -> Result<(), ScheduleError> {
        let period = match self.arrivals {
            Arrivals::Periodic { period } | Arrivals::Bursts { period, .. } => period,
            Arrivals::Poisson { mean_period, .. } => mean_period,
        };
        if period.is_zero() {
            return Err(ScheduleError::PeriodZero);
        }
        if let Arrivals::Bursts { size, gap, .. } = self.arrivals {
            if size == 0 {
                return Err(ScheduleError::BurstEmpty);
            }
            if gap.as_nanos() * u128::from(size - 1) >= period.as_nanos() {
                return Err(ScheduleError::BurstsOverlap);
            }
        }
        let messages = self.expected_messages();
        if messages <= self.warm_up as f64 {
            return Err(ScheduleError::NothingToJudge);
        }
        if messages > SCHEDULE_MESSAGES_MAX as f64 {
            return Err(ScheduleError::TooManyMessages);
        }
        let long = SCHEDULE_DURATION_MAX.as_secs_f64();
        if period > SCHEDULE_DURATION_MAX
            || self.offset > SCHEDULE_DURATION_MAX
            || messages / self.arrivals.rate_hz() > long
        {
            return Err(ScheduleError::TooLong);
        }
        Ok(())
    }

    /// Returns the due times in order, each with its sequence number. Each call returns the same times.
    #[must_use]
    pub fn dues(&self) -> Dues {
        let base_ns = self.start_ns.saturating_add(saturating_ns(self.offset));
        let gaps = match self.arrivals {
            Arrivals::Periodic { period } => Gaps::Regular {
                period_ns: saturating_ns(period),
                size: 1,
                gap_ns: 0,
            },
            Arrivals::Bursts { period, size, gap } => Gaps::Regular {
                period_ns: saturating_ns(period),
                size: u64::from(size.max(1)),
                gap_ns: saturating_ns(gap),
            },
            Arrivals::Poisson { mean_period, seed } => Gaps::Exponential {
                mean_ns: u64::try_from(mean_period.as_nanos()).unwrap_or(u64::MAX),
                random: Pcg64::new(u128::from(seed), PCG_STREAM),
                since_base_ns: 0,
            },
        };
        let until = match self.extent {
            Extent::Count { messages } => Until::Sequence(self.warm_up.saturating_add(messages)),
            Extent::Duration { duration } => Until::AfterFirstJudged(saturating_ns(duration)),
        };
        Dues {
            gaps,
            base_ns,
            until,
            warm_up: self.warm_up,
            sequence: 0,
        }
    }

    /// Returns the number of messages that the schedule sends, warm-up included. It is exact for a count and for
    /// regular arrivals, and the mean for a Poisson process over a duration.
    #[must_use]
    pub fn expected_messages(&self) -> f64 {
        let judged = match (self.extent, &self.arrivals) {
            (Extent::Count { messages }, _) => messages as f64,
            (Extent::Duration { duration }, Arrivals::Poisson { .. }) => {
                1.0 + duration.as_secs_f64() * self.arrivals.rate_hz()
            }
            (Extent::Duration { duration }, &Arrivals::Periodic { period }) => duration
                .as_nanos()
                .div_ceil(period.as_nanos().max(1))
                .max(1)
                as f64,
            (Extent::Duration { duration }, &Arrivals::Bursts { period, size, gap }) => {
                messages_of_bursts(duration, period, size, gap, self.warm_up) as f64
            }
        };
        self.warm_up as f64 + judged
    }
}

/// Returns the time for which late messages are awaited after the last one: the larger of ten deadlines and one second.
#[must_use]
pub fn drain(deadline: Duration) -> Duration {
    deadline.saturating_mul(DRAIN_DEADLINES).max(DRAIN_MIN)
}

/// One message of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Sequence number, from 0.
    pub sequence: u64,
    /// The due time, nanoseconds of CLOCK_MONOTONIC.
    pub due_ns: i64,
    /// True if the message belongs to the warm-up.
    pub warm_up: bool,
}

/// The due times of a schedule, in order. Its `next` allocates nothing and makes no system call.
#[derive(Clone, Debug)]
pub struct Dues {
    gaps: Gaps,
    base_ns: i64,
    until: Until,
    warm_up: u64,
    sequence: u64,
}

#[derive(Clone, Debug)]
enum Gaps {
    Regular {
        period_ns: i64,
        size: u64,
        gap_ns: i64,
    },
    Exponential {
        mean_ns: u64,
        random: Pcg64,
        since_base_ns: u128,
    },
}

#[derive(Clone, Copy, Debug)]
enum Until {
    Sequence(u64),
    AfterFirstJudged(i64),
    Instant(i64),
}

impl Iterator for Dues {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        let sequence = self.sequence;
        if matches!(self.until, Until::Sequence(end) if sequence >= end) {
            return None;
        }
        let due_ns = self.gaps.due_ns(self.base_ns, sequence);
        match self.until {
            Until::AfterFirstJudged(duration_ns) if sequence == self.warm_up => {
                self.until = Until::Instant(due_ns.saturating_add(duration_ns.max(1)));
            }
            Until::Instant(end_ns) if due_ns >= end_ns => {
                self.until = Until::Sequence(0);
                return None;
            }
            _ => {}
        }
        self.sequence += 1;
        Some(Due {
            sequence,
            due_ns,
            warm_up: sequence < self.warm_up,
        })
    }
}

impl std::iter::FusedIterator for Dues {}

impl Gaps {
    /// Called once for each sequence number, in order; only the exponential form keeps state.
    fn due_ns(&mut self, base_ns: i64, sequence: u64) -> i64 {
        let since_base = match self {
            Self::Regular {
                period_ns,
                size,
                gap_ns,
            } => {
                i128::from(sequence / *size) * i128::from(*period_ns)
                    + i128::from(sequence % *size) * i128::from(*gap_ns)
            }
            Self::Exponential {
                mean_ns,
                random,
                since_base_ns,
            } => {
                *since_base_ns += exponential(random, *mean_ns);
                i128::try_from(*since_base_ns).unwrap_or(i128::MAX)
            }
        };
        i64::try_from(since_base.saturating_add(i128::from(base_ns))).unwrap_or(i64::MAX)
    }
}

/// Returns an exponentially distributed number with this mean, by comparisons only: von Neumann, "Various techniques
/// used in connection with random digits", 1951. A run of falling uniform numbers of odd length gives the fraction; its
/// probability is exp(-x) if its first number is x. Each run of even length before it adds a whole mean. The result is
/// exact except for the 2^-64 resolution of the uniform numbers, and the same on every machine.
fn exponential(random: &mut Pcg64, mean_ns: u64) -> u128 {
    let mut whole = 0_u128;
    loop {
        let first = random.next_u64();
        let (mut previous, mut run) = (first, 1_u32);
        loop {
            let next = random.next_u64();
            if next >= previous {
                break;
            }
            (previous, run) = (next, run + 1);
        }
        if run % 2 == 1 {
            return whole * u128::from(mean_ns) + ((u128::from(first) * u128::from(mean_ns)) >> 64);
        }
        whole += 1;
    }
}

fn messages_of_bursts(
    duration: Duration,
    period: Duration,
    size: u32,
    gap: Duration,
    warm_up: u64,
) -> u128 {
    let (period, size, gap) = (
        period.as_nanos().max(1),
        u128::from(size.max(1)),
        gap.as_nanos(),
    );
    let warm_up = u128::from(warm_up);
    // The judged part may begin inside a burst: count the messages due before its end, less the warm-up.
    let end = (warm_up / size) * period + (warm_up % size) * gap + duration.as_nanos().max(1);
    let in_last = match (end % period, gap) {
        (0, _) => 0,
        (_, 0) => size,
        (into_burst, gap) => into_burst.div_ceil(gap).min(size),
    };
    ((end / period) * size + in_last).saturating_sub(warm_up)
}

fn saturating_ns(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// Stream of the generator. Any number is valid, but a change would alter every Poisson schedule.
const PCG_STREAM: u128 = 0x6465_636b_7761_7463_685f_6475_6573;

#[cfg(test)]
mod tests;
