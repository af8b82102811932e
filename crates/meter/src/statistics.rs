//! The conclusions that a sample supports: bounds of a share that hold for bursts, many tests at once, and percentiles
//! with their intervals.

mod batches;
mod bursts;
mod clusters;
mod longest;
mod many;
#[cfg(test)]
mod noise;
mod percentile;
mod proportion;
pub mod simulated;
mod trend;

pub use batches::{Interval, mean_interval, median_interval};
pub use bursts::InBursts;
pub use clusters::{Clustering, clustering};
pub use longest::{Longest, longest_bursts};
pub use many::fails_of_many;
pub use percentile::{PERCENTILES, Percentile, percentiles};
pub use proportion::{chance_of_at_least, exact_bounds, lower_bound_beyond, upper_bound_within};
pub use trend::{Judged, Trend, judge_trends};

use crate::limits::{CONFIDENCE, SCHEDULE_MESSAGES_MAX};
use crate::result::{AskedBy, Bursts, LateBudget, LateRate, VerdictKind};

/// The largest burst of late messages for which a verdict must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Late messages in the burst; at least 1.
    pub burst: u64,
    /// Where the number comes from.
    pub by: AskedBy,
}

impl Asked {
    /// Returns the burst that the mission file asks for.
    #[must_use]
    pub const fn by_mission(burst: u64) -> Self {
        Self {
            burst: if burst == 0 { 1 } else { burst },
            by: AskedBy::Mission,
        }
    }
}

/// The share of late messages, its bounds, and the numbers from which the bounds were computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LateShare {
    /// The estimate and its one-sided 95% bounds.
    pub rate: LateRate,
    /// Number of messages judged.
    pub count: u64,
    /// Number of late messages among them.
    pub late: u64,
    /// The burst asked for.
    pub asked: Asked,
    /// The longest bursts of late messages.
    pub longest: Longest,
    /// The largest burst for which the bounds hold: the longest of the burst asked for, the longest burst beyond
    /// chance, and the burst that explains the [clustering] of the late messages.
    pub assumed: u64,
}

impl LateShare {
    /// Computes the share of late messages among `count`, where the messages at the ascending positions `late` were
    /// late.
    #[must_use]
    pub fn new(count: u64, late: &[u64], asked: Asked) -> Self {
        let (longest, assumed) = assumed(count, late, asked.burst);
        Self::restored(count, late.len() as u64, asked, longest, assumed)
    }

    /// Returns the share of a result that was judged before.
    #[must_use]
    pub(crate) fn restored(
        count: u64,
        late: u64,
        asked: Asked,
        longest: Longest,
        assumed: u64,
    ) -> Self {
        let unfinished = Self {
            rate: LateRate::default(),
            count,
            late: 0,
            asked,
            longest,
            assumed,
        };
        unfinished.with_late(late)
    }

    /// Returns the share as if `excused` of the late messages had been in time; the bursts are assumed to be the same.
    #[must_use]
    pub fn without(&self, excused: u64) -> Self {
        self.with_late(self.late.saturating_sub(excused))
    }

    /// Returns the share as if `late` messages had been late; the bursts are assumed to be the same, if any message is
    /// late.
    #[must_use]
    pub fn with_late(&self, late: u64) -> Self {
        let late = late.min(self.count);
        let assumed = if late == 0 {
            self.asked.burst
        } else {
            self.assumed
        };
        let changed = Self {
            late,
            assumed,
            ..*self
        };
        let in_bursts = changed.in_bursts();
        let (lower, upper) = in_bursts.bounds();
        let estimate = if self.count == 0 {
            0.0
        } else {
            late as f64 / self.count as f64
        };
        let rate = LateRate {
            estimate,
            lower,
            upper,
            widened: in_bursts.weight() > 1.0,
        };
        Self { rate, ..changed }
    }

    fn in_bursts(&self) -> InBursts {
        InBursts {
            late: self.late as f64,
            count: self.count as f64,
            burst: self.assumed,
        }
    }

    /// Returns PASS, FAIL or UNPROVEN for a budget.
    #[must_use]
    pub fn kind(&self, budget: LateBudget) -> VerdictKind {
        self.in_bursts().kind(allowed_share(budget))
    }

    /// Returns the probability of at least as many late messages at the edge of the budget.
    #[must_use]
    pub fn chance_within(&self, budget: LateBudget) -> f64 {
        self.in_bursts().chance_at(allowed_share(budget))
    }

    /// Returns what the bounds and the verdict `kind` say of bursts. `level` is the probability of a wrong FAIL.
    #[must_use]
    pub fn bursts(&self, budget: LateBudget, kind: VerdictKind, level: f64) -> Bursts {
        let (allowed, in_bursts) = (allowed_share(budget), self.in_bursts());
        let holds_for = if kind == VerdictKind::Fail {
            in_bursts.longest(|bursts| bursts.chance_at(allowed) <= level)
        } else {
            in_bursts.longest(|bursts| bursts.is_within(allowed))
        };
        Bursts {
            asked: self.asked.burst,
            asked_by: self.asked.by,
            seen: self.longest.seen,
            assumed: self.assumed,
            holds_for,
        }
    }

    /// Returns how many more messages must be sent to prove the budget: if none of them is late, and if the share of
    /// late messages stays as it is.
    #[must_use]
    pub fn messages_needed(&self, budget: LateBudget) -> MessagesNeeded {
        let allowed = allowed_share(budget);
        let proved = |more: u64, more_late: f64| {
            let later = InBursts {
                late: self.late as f64 + more_late,
                count: (self.count + more) as f64,
                burst: self.assumed,
            };
            later.is_within(allowed)
        };
        let share = self.rate.estimate;
        MessagesNeeded {
            if_none_late: least(|more| proved(more, 0.0)),
            at_present_rate: least(|more| proved(more, share * more as f64)),
        }
    }
}

/// Returns the longest bursts of the late messages at these positions, and the largest burst for which bounds must hold
/// if `asked` is asked for.
fn assumed(count: u64, late: &[u64], asked: u64) -> (Longest, u64) {
    let longest = longest_bursts(count, late);
    // The design effect of bursts of geometric length with the mean c is 2 c - 1.
    let explaining = clustering(count, late).map_or(1, |clustering| {
        let weight = count as f64 / clustering.effective_count;
        f64::midpoint(weight, 1.0).ceil() as u64
    });
    let assumed = asked.max(longest.beyond_chance).max(explaining);
    (longest, assumed.clamp(1, count.max(asked).max(1)))
}

/// The probability of a wrong FAIL of one destination alone.
pub const FAIL_LEVEL: f64 = 1.0 - CONFIDENCE;

/// How many more messages would prove a budget; `None` if no number up to [`SCHEDULE_MESSAGES_MAX`] would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessagesNeeded {
    /// The number if none of them is late.
    pub if_none_late: Option<u64>,
    /// The number if the share of late messages stays as it is.
    pub at_present_rate: Option<u64>,
}

/// Returns the share of late messages that a budget allows.
#[must_use]
pub fn allowed_share(budget: LateBudget) -> f64 {
    if budget.of == 0 {
        0.0
    } else {
        budget.late as f64 / budget.of as f64
    }
}

/// Returns the smallest number for which `proved` holds. `proved` must hold for all numbers above it too.
fn least(proved: impl Fn(u64) -> bool) -> Option<u64> {
    if proved(0) {
        return Some(0);
    }
    // Doubling first: large numbers are expensive to test and seldom needed.
    let (mut low, mut high) = (1, 1);
    while !proved(high) {
        if high >= SCHEDULE_MESSAGES_MAX {
            return None;
        }
        (low, high) = (high + 1, (high * 2).min(SCHEDULE_MESSAGES_MAX));
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if proved(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}

#[cfg(test)]
mod tests;
