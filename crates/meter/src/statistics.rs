//! What a sample can and cannot say: exact bounds of a share, wider where lates cluster; percentiles that are
//! supported, with their intervals.

mod clusters;
mod percentile;
mod proportion;

pub use clusters::{Clustering, clustering};
pub use percentile::{PERCENTILES, Percentile, percentiles};
pub use proportion::{exact_bounds, upper_bound_within};

use crate::limits::SCHEDULE_MESSAGES_MAX;
use crate::result::{LateBudget, LateRate};

/// The share of late messages with bounds, and what the bounds were made from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LateShare {
    /// Estimate and one-sided 95% bounds.
    pub rate: LateRate,
    /// Messages judged.
    pub count: u64,
    /// Late among them.
    pub late: u64,
    /// Effective sample size: `count` unless lates cluster.
    pub effective_count: f64,
}

impl LateShare {
    /// The share of late messages among `count`, of which those at the ascending positions `late` were late.
    ///
    /// The bounds are Clopper and Pearson's; where lates cluster they are taken of the [effective](clustering) number
    /// of messages, and never narrower than the exact ones of all messages.
    #[must_use]
    pub fn new(count: u64, late: &[u64]) -> Self {
        let late_count = late.len() as u64;
        let exact = exact_bounds(late_count as f64, count as f64);
        let estimate = if count == 0 {
            0.0
        } else {
            late_count as f64 / count as f64
        };
        let effective_count = clustering(count, late).map(|clustering| clustering.effective_count);
        let (lower, upper) = effective_count.map_or(exact, |effective_count| {
            let wide = exact_bounds(estimate * effective_count, effective_count);
            (exact.0.min(wide.0), exact.1.max(wide.1))
        });
        let widened = (lower, upper) != exact;
        let effective_count = effective_count.unwrap_or(count as f64);
        let rate = LateRate {
            estimate,
            lower,
            upper,
            widened,
        };
        Self {
            rate,
            count,
            late: late_count,
            effective_count,
        }
    }

    /// As if `excused` of the late ones had been in time; clustering is taken to be the same.
    #[must_use]
    pub fn without(&self, excused: u64) -> Self {
        self.with_late(self.late.saturating_sub(excused))
    }

    /// As if so many had been late; clustering is taken to be the same, where any are left.
    #[must_use]
    pub fn with_late(&self, late: u64) -> Self {
        if late == 0 {
            return Self::new(self.count, &[]);
        }
        let late = late.min(self.count);
        let estimate = if self.count == 0 {
            0.0
        } else {
            late as f64 / self.count as f64
        };
        let exact = exact_bounds(late as f64, self.count as f64);
        let wide = exact_bounds(estimate * self.effective_count, self.effective_count);
        let rate = if self.rate.widened {
            LateRate {
                estimate,
                lower: exact.0.min(wide.0),
                upper: exact.1.max(wide.1),
                widened: true,
            }
        } else {
            LateRate {
                estimate,
                lower: exact.0,
                upper: exact.1,
                widened: false,
            }
        };
        Self {
            rate,
            late,
            ..*self
        }
    }

    /// Messages still to be sent before the budget is proved, if none of them is late, and if as large a share of them
    /// as now.
    #[must_use]
    pub fn messages_needed(&self, budget: LateBudget) -> MessagesNeeded {
        let worth = if self.count == 0 {
            1.0
        } else {
            self.effective_count / self.count as f64
        };
        let allowed = allowed_share(budget);
        let proved = |more: u64, more_late: f64| {
            let (count, late) = ((self.count + more) as f64, self.late as f64 + more_late);
            upper_bound_within(late * worth, count * worth, allowed)
        };
        let share = self.rate.estimate;
        MessagesNeeded {
            if_none_late: least(|more| proved(more, 0.0)),
            at_present_rate: least(|more| proved(more, share * more as f64)),
        }
    }
}

/// How many messages more would prove a budget; `None` where no number up to [`SCHEDULE_MESSAGES_MAX`] would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessagesNeeded {
    /// If none of them is late.
    pub if_none_late: Option<u64>,
    /// If the share of late ones stays what it is.
    pub at_present_rate: Option<u64>,
}

/// The share of late messages that a budget allows.
#[must_use]
pub fn allowed_share(budget: LateBudget) -> f64 {
    if budget.of == 0 {
        0.0
    } else {
        budget.late as f64 / budget.of as f64
    }
}

/// The least number for which `proved` holds, given that it holds from some number on.
fn least(proved: impl Fn(u64) -> bool) -> Option<u64> {
    if proved(0) {
        return Some(0);
    }
    // Doubling first: large numbers are costly to try and seldom needed.
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
