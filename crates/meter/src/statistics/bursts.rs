//! Bounds of a share of late messages that come in bursts.
//!
//! **Assumption.** Late messages come in bursts. The bursts are independent of each other, and a burst holds at most
//! `c` late messages.
//!
//! **Why `c` is assumed and not estimated.** Let `m` be the expected number of late messages of a run. The number of
//! bursts is about Poisson with a mean of at least `m / c`, so a run sees no burst with a probability of up to
//! `exp(-m / c)`. A run without a late message thus bounds `m` by `3 c` (`-ln 0.05` is 3) and holds nothing from which
//! `c` could be estimated.
//!
//! **The bound.** `n` messages with `k` late ones are worth `n / w` independent messages with `k / w` late ones, and
//! the bounds are those of Clopper and Pearson for these numbers. The weight is
//!
//! ```text
//! w = c + (c - 1) k / (k + 2.75 c)
//! ```
//!
//! * For `c = 1`, the weight is 1 and the bounds are exact.
//! * Without a late message, the weight is `c`, which is exact for bursts of `c` each.
//! * With many late messages, the weight tends to `2 c - 1`. This is the design effect (variance over that of
//!   independent messages) of bursts of geometric length with the mean `c`, those of a Markov chain. So the bounds hold
//!   for a Markov chain whose bursts have `c` messages on average, too.
//!
//! The middle term is an upper envelope of the exact weight for geometric lengths. Tests compute the probability of a
//! wrong conclusion by Panjer's recursion (ASTIN Bulletin 12, 1981), for many distributions of the length.

use super::proportion::{chance_of_at_least, exact_bounds, lower_bound_beyond, upper_bound_within};
use crate::result::VerdictKind;

/// A count of late messages that come in bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InBursts {
    /// Late messages.
    pub late: f64,
    /// All messages.
    pub count: f64,
    /// The largest number of late messages in a burst; at least 1.
    pub burst: u64,
}

impl InBursts {
    /// Returns how many messages are worth one independent message.
    #[must_use]
    pub fn weight(&self) -> f64 {
        let burst = self.burst.max(1) as f64;
        burst + (burst - 1.0) * self.late / (self.late + MIDDLE * burst)
    }

    /// Returns the one-sided 95% lower and upper bounds of the share.
    #[must_use]
    pub fn bounds(&self) -> (f64, f64) {
        let weight = self.weight();
        exact_bounds(self.late / weight, self.count / weight)
    }

    /// Returns true if the upper bound is at most `share`.
    #[must_use]
    pub fn is_within(&self, share: f64) -> bool {
        let weight = self.weight();
        upper_bound_within(self.late / weight, self.count / weight, share)
    }

    /// Returns true if the lower bound is at least `share`.
    #[must_use]
    pub fn is_beyond(&self, share: f64) -> bool {
        let weight = self.weight();
        lower_bound_beyond(self.late / weight, self.count / weight, share)
    }

    /// Returns PASS, FAIL or UNPROVEN for a budget that allows `share`.
    #[must_use]
    pub fn kind(&self, share: f64) -> VerdictKind {
        if self.is_within(share) {
            VerdictKind::Pass
        } else if self.late > 0.0 && self.is_beyond(share) {
            VerdictKind::Fail
        } else {
            VerdictKind::Unproven
        }
    }

    /// Returns the probability of at least as many late messages if their share is `share`; 1 without late messages.
    #[must_use]
    pub fn chance_at(&self, share: f64) -> f64 {
        let weight = self.weight();
        chance_of_at_least(self.late / weight, self.count / weight, share)
    }

    /// Returns the largest burst for which `holds` is true, up to the number of messages. `holds` must not become true
    /// for a longer burst again. Returns `None` if it is false for bursts of 1.
    pub fn longest(&self, holds: impl Fn(&Self) -> bool) -> Option<u64> {
        let at = |burst| holds(&Self { burst, ..*self });
        if !at(1) {
            return None;
        }
        let (mut holding, mut beyond) = (1, (self.count as u64).max(1) + 1);
        while beyond - holding > 1 {
            let middle = holding + (beyond - holding) / 2;
            if at(middle) {
                holding = middle;
            } else {
                beyond = middle;
            }
        }
        Some(holding)
    }
}

/// The number of bursts' worth of late messages at which the weight is in the middle between its two ends. Larger
/// values make the upper bound too low for a few bursts of geometric length.
const MIDDLE: f64 = 2.75;

#[cfg(test)]
mod tests {
    use super::*;

    fn none_late(count: u64, burst: u64) -> InBursts {
        InBursts {
            late: 0.0,
            count: count as f64,
            burst,
        }
    }

    /// Returns the probabilities of 0, 1, ... `most` late messages, of which `mean` are expected. `sizes[k]` is the
    /// probability of a burst of `k + 1`.
    fn chances(mean: f64, sizes: &[f64], most: usize) -> Vec<f64> {
        let sizes_mean: f64 = (1..).zip(sizes).map(|(k, size)| f64::from(k) * size).sum();
        let bursts = mean / sizes_mean;
        let mut chances = vec![(-bursts).exp()];
        for late in 1..=most {
            let sum: f64 = (1..=late.min(sizes.len()))
                .map(|size| size as f64 * sizes[size - 1] * chances[late - size])
                .sum();
            chances.push(bursts / late as f64 * sum);
        }
        chances
    }

    /// Returns distributions of the length of bursts: of one length each, of two lengths, uniform, and geometric.
    fn distributions(burst: usize) -> Vec<(String, Vec<f64>)> {
        let mut all = vec![("uniform".to_owned(), vec![1.0 / burst as f64; burst])];
        for long in 1..=burst {
            for short in [1, long / 2, long - 1] {
                for share in [0.0, 0.1, 0.5, 0.9, 0.97] {
                    let mut sizes = vec![0.0; burst];
                    sizes[long - 1] = 1.0 - share;
                    sizes[short.max(1) - 1] += share;
                    all.push((format!("{share} of {short}, else {long}"), sizes));
                }
            }
        }
        for mean in 2..=burst {
            let leave = 1.0 / mean as f64;
            let geometric = (0..20 * mean).map(|k| leave * (1.0 - leave).powi(k as i32));
            all.push((format!("geometric, mean {mean}"), geometric.collect()));
        }
        all
    }

    /// The number of messages is so large that their number of bursts is Poisson.
    const MANY: f64 = 1e7;

    #[test]
    fn at_the_edge_a_wrong_conclusion_comes_in_at_most_5_percent_of_runs() {
        for burst in [1_usize, 2, 3, 6, 10] {
            let distributions = distributions(burst);
            for step in 0..14 {
                let mean = 1.4_f64.powi(step);
                let share = mean / MANY;
                let at = |late: usize| InBursts {
                    late: late as f64,
                    count: MANY,
                    burst: burst as u64,
                };
                let within = (0..).find(|&late| !at(late).is_within(share));
                let below = (0..).find(|&late| at(late).is_beyond(share));
                let (within, below) = (within.expect("a first"), below.expect("a first"));
                for (name, sizes) in &distributions {
                    let chances = chances(mean, sizes, below);
                    let pass: f64 = chances[..within].iter().sum();
                    let fail = 1.0 - chances[..below].iter().sum::<f64>();
                    assert!(
                        pass <= 0.0501 && fail <= 0.0501,
                        "bursts of at most {burst}, {mean} late expected, {name}: {pass} and {fail}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_run_without_a_late_message_bounds_bursts_of_a_third_of_the_budget() {
        for (count, share, expected) in [
            (9_984, 0.000_3, None),
            (9_985, 0.000_3, Some(1)),
            (100_000, 0.000_3, Some(10)),
            (1_000_000, 0.000_3, Some(100)),
            (1_000, 0.05, Some(17)),
        ] {
            let longest = none_late(count, 1).longest(|bursts| bursts.is_within(share));
            assert_eq!(longest, expected, "{count} messages, {share}");
        }
    }

    #[test]
    fn independent_messages_have_the_exact_bounds() {
        for (late, count) in [(0.0, 100.0), (3.0, 10_000.0), (883.0, 1e5)] {
            let alone = InBursts {
                late,
                count,
                burst: 1,
            };
            assert_eq!(alone.bounds(), exact_bounds(late, count));
        }
    }

    #[test]
    fn a_share_is_within_or_beyond_where_the_bounds_say_so() {
        for (late, burst) in [(40.0, 1), (40.0, 3), (7.0, 10)] {
            let bursts = InBursts {
                late,
                count: 1_000.0,
                burst,
            };
            let (lower, upper) = bursts.bounds();
            assert!(bursts.is_beyond(lower * 0.999_999));
            assert!(!bursts.is_beyond(lower * 1.000_001));
            assert!(bursts.is_within(upper * 1.000_001));
            assert!(!bursts.is_within(upper * 0.999_999));
            // At the lower bound, as many late messages have a probability of 5%.
            assert!((bursts.chance_at(lower) - 0.05).abs() < 1e-9);
            let kinds = [lower * 0.9, (lower + upper) / 2.0, upper * 1.1];
            assert_eq!(
                kinds.map(|share| bursts.kind(share)),
                [VerdictKind::Fail, VerdictKind::Unproven, VerdictKind::Pass]
            );
        }
        // 2 c - 1 of very many, c of none: the weight lies between them.
        let weight = |late| {
            InBursts {
                late,
                count: 1e6,
                burst: 3,
            }
            .weight()
        };
        assert_eq!(weight(0.0), 3.0);
        assert!((weight(2.75 * 3.0) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn the_longest_burst_is_the_last_that_holds_and_at_most_all_messages() {
        let ten = none_late(10, 1);
        for last in 1..=10 {
            assert_eq!(ten.longest(|one| one.burst <= last), Some(last));
        }
        assert_eq!(ten.longest(|_| true), Some(10));
        assert_eq!(ten.longest(|_| false), None);
        assert_eq!(none_late(0, 1).longest(|_| true), Some(1));
    }

    #[test]
    fn longer_bursts_widen_both_bounds() {
        for late in [0.0, 1.0, 7.0, 40.0, 300.0] {
            let mut before = (1.0, 0.0);
            for burst in 1..200 {
                let bounds = InBursts {
                    late,
                    count: 20_000.0,
                    burst,
                }
                .bounds();
                assert!(
                    bounds.0 <= before.0 && bounds.1 >= before.1,
                    "{late} late, bursts of {burst}: {bounds:?} after {before:?}"
                );
                before = bounds;
            }
        }
    }
}
