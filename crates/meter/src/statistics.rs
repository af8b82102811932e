//! The conclusions that a sample supports: exact bounds of a share, widened if late messages cluster, and percentiles
//! with their intervals.

mod clusters;
mod percentile;
mod proportion;

pub use clusters::{Clustering, clustering};
pub use percentile::{PERCENTILES, Percentile, percentiles};
pub use proportion::{exact_bounds, upper_bound_within};

use crate::limits::SCHEDULE_MESSAGES_MAX;
use crate::result::{LateBudget, LateRate};

/// The share of late messages, its bounds, and the numbers from which the bounds were computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LateShare {
    /// The estimate and its one-sided 95% bounds.
    pub rate: LateRate,
    /// Number of messages judged.
    pub count: u64,
    /// Number of late messages among them.
    pub late: u64,
    /// Effective sample size: `count`, unless late messages cluster.
    pub effective_count: f64,
}

impl LateShare {
    /// Computes the share of late messages among `count`, where the messages at the ascending positions `late` were
    /// late.
    ///
    /// The bounds are those of Clopper and Pearson. If late messages cluster, the bounds are computed for the
    /// [effective](clustering) number of messages. They are never narrower than the exact bounds for all messages.
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

    /// Returns the share as if `excused` of the late messages had been in time; the clustering is assumed to be the
    /// same.
    #[must_use]
    pub fn without(&self, excused: u64) -> Self {
        self.with_late(self.late.saturating_sub(excused))
    }

    /// Returns the share as if `late` messages had been late; the clustering is assumed to be the same, if any are
    /// left.
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

    /// Returns how many more messages must be sent to prove the budget: if none of them is late, and if the share of
    /// late messages stays as it is.
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
