//! The longest burst that a sample holds, found by the statistics of extremes.
//!
//! **Method.** The gaps between rare events that come in clusters are a mixture: short gaps within clusters and
//! exponential gaps between them. The extremal index is the share of the latter, the inverse of the mean size of a
//! cluster. It is estimated by the intervals estimator of C. A. T. Ferro and J. Segers ("Inference for clusters of
//! extreme values", J. R. Statist. Soc. B 65, 2003, equations 5 and 6), and the events are cut into clusters at the
//! largest gaps, as that paper does (section 4).
//!
//! **Why this estimator.** The runs estimator and the blocks estimator need a length that the user would have to
//! choose: how far apart two events of one cluster may be, and how long a block is. Both depend on the disturbance,
//! which is not known. The intervals estimator needs no such length. A test holds it against both.
//!
//! Two things differ from the paper. The sample is closed to a circle, so that the time before the first and after the
//! last event counts as a gap: without it, a sample with one cluster looks regular. Events next to each other are
//! always of one cluster.
//!
//! **Chance.** Independent events have short gaps too. A cluster of `k` events within `w` messages is longer than
//! chance makes it if, with independent events, fewer than 5% of samples would have one like it.

use super::proportion::chance_of_at_least;
use crate::limits::CONFIDENCE;

/// The longest bursts of a sample, in events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Longest {
    /// The longest burst; 0 if there are no events.
    pub seen: u64,
    /// The longest burst that is longer than chance makes it; at most `seen`, and 1 if there is none.
    pub beyond_chance: u64,
}

/// Returns the longest bursts of the events at the ascending `positions` of `count` messages.
#[must_use]
pub fn longest_bursts(count: u64, positions: &[u64]) -> Longest {
    let separation = separation(count, positions);
    let share = positions.len() as f64 / count.max(1) as f64;
    let mut longest = Longest {
        seen: 0,
        beyond_chance: u64::from(!positions.is_empty()),
    };
    for burst in positions.chunk_by(|one, next| next - one <= separation) {
        let size = burst.len() as u64;
        longest.seen = longest.seen.max(size);
        if size > longest.beyond_chance {
            let further = burst[burst.len() - 1] - burst[0];
            let chance = chance_of_at_least((size - 1) as f64, further as f64, share);
            if chance * positions.len() as f64 <= 1.0 - CONFIDENCE {
                longest.beyond_chance = size;
            }
        }
    }
    longest
}

/// Returns the largest gap between two events of one cluster.
fn separation(count: u64, positions: &[u64]) -> u64 {
    let mut gaps = gaps(count, positions);
    gaps.sort_unstable_by(|a, b| b.cmp(a));
    let clusters = (extremal_index_of(&gaps) * gaps.len() as f64) as usize;
    // Equal gaps are all between clusters or all within them.
    gaps.get(clusters.max(1)).copied().unwrap_or(1).max(1)
}

/// Returns the gaps between events, on a circle.
fn gaps(count: u64, positions: &[u64]) -> Vec<u64> {
    let (Some(first), Some(last)) = (positions.first(), positions.last()) else {
        return Vec::new();
    };
    let around = count.saturating_sub(*last) + first;
    let between = positions.windows(2).map(|pair| pair[1] - pair[0]);
    between.chain([around]).collect()
}

/// Returns the intervals estimate of the extremal index, from 0 to 1; 1 without gaps.
fn extremal_index_of(gaps: &[u64]) -> f64 {
    // Beyond gaps of 2, the estimate without the bias of whole numbers (equation 6 of the paper).
    let biased = gaps.iter().all(|&gap| gap <= 2);
    let (less, lesser) = if biased { (0.0, 0.0) } else { (1.0, 2.0) };
    let sum: f64 = gaps.iter().map(|&gap| gap as f64 - less).sum();
    let squares: f64 = gaps
        .iter()
        .map(|&gap| (gap as f64 - less) * (gap as f64 - lesser))
        .sum();
    if squares <= 0.0 {
        return 1.0;
    }
    (2.0 * sum * sum / (gaps.len() as f64 * squares)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::simulated::{Process, Random};

    fn bursts(count: u64, positions: &[u64]) -> (u64, u64) {
        let longest = longest_bursts(count, positions);
        (longest.seen, longest.beyond_chance)
    }

    #[test]
    fn one_burst_is_seen_whole() {
        assert_eq!(bursts(10_000, &[]), (0, 0));
        assert_eq!(bursts(10_000, &[17]), (1, 1));
        assert_eq!(bursts(10_000, &[17, 18]), (2, 2));
        assert_eq!(bursts(10_000, &(500..530).collect::<Vec<_>>()), (30, 30));
        let gappy: Vec<u64> = (0..12).map(|k| 700 + 2 * k).collect();
        assert_eq!(bursts(10_000, &gappy), (12, 12));
    }

    #[test]
    fn the_longer_of_two_bursts_counts() {
        let two: Vec<u64> = (100..104).chain(6_000..6_011).collect();
        assert_eq!(bursts(10_000, &two), (11, 11));
    }

    #[test]
    fn events_far_apart_are_bursts_of_one() {
        assert_eq!(bursts(10_000, &[17, 5_018]), (1, 1));
        let even: Vec<u64> = (0..100).map(|k| 100 * k + 50).collect();
        assert_eq!(bursts(10_000, &even).1, 1);
    }

    #[test]
    fn where_all_messages_are_late_chance_makes_one_long_burst() {
        assert_eq!(bursts(400, &(0..400).collect::<Vec<_>>()), (400, 1));
    }

    #[test]
    fn independent_events_seldom_make_a_burst_beyond_chance() {
        let mut random = Random::new(7);
        for share in [0.000_3, 0.01, 0.05, 0.5] {
            let runs = if share < 0.1 { 200 } else { 40 };
            let beyond = (0..runs)
                .filter(|_| {
                    let positions = Process::Independent.positions(10_000, share, &mut random);
                    longest_bursts(10_000, &positions).beyond_chance > 1
                })
                .count();
            assert!(beyond <= runs / 10, "share {share}: {beyond} of {runs}");
        }
    }

    /// The runs estimator (R. L. Smith and I. Weissman, J. R. Statist. Soc. B 56, 1994): the share of events that are
    /// followed by `run` messages without an event.
    fn by_runs(positions: &[u64], run: u64) -> f64 {
        let ends = positions.windows(2).filter(|pair| pair[1] - pair[0] > run);
        (ends.count() + 1) as f64 / positions.len() as f64
    }

    /// The blocks estimator: the number of blocks with an event over the number of events.
    fn by_blocks(positions: &[u64], block: u64) -> f64 {
        let blocks = positions.chunk_by(|one, next| one / block == next / block);
        blocks.count() as f64 / positions.len() as f64
    }

    #[test]
    fn the_extremal_index_is_that_of_the_paper() {
        // By equation 6: 2 * (4 * 2 + 87)^2 / (5 * (4 * 2 * 1 + 87 * 86)).
        let index = extremal_index_of(&[3, 3, 3, 3, 88]);
        assert!((index - 18_050.0 / 37_450.0).abs() < 1e-12, "{index}");
        assert_eq!(extremal_index_of(&[1, 2, 1]), 1.0);
        assert_eq!(extremal_index_of(&[]), 1.0);
    }

    #[test]
    fn three_estimators_of_the_extremal_index_agree_on_a_markov_chain() {
        let mut random = Random::new(11);
        for burst in [3_u64, 10, 30] {
            let positions = Process::Markov { burst }.positions(2_000_000, 0.001, &mut random);
            let truth = 1.0 / burst as f64;
            let intervals = extremal_index_of(&gaps(2_000_000, &positions));
            let (runs, blocks) = (by_runs(&positions, 1), by_blocks(&positions, 5 * burst));
            for (name, index) in [("intervals", intervals), ("runs", runs), ("blocks", blocks)] {
                assert!(
                    (index / truth - 1.0).abs() < 0.35,
                    "{name}, bursts of {burst}: {index}, and {truth} is true"
                );
            }
        }
    }
}
