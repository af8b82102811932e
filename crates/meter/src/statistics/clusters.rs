//! Late messages cluster: one delay of a processor makes many of them late. This module computes how many independent
//! messages a sample is worth.
//!
//! **Method.** The messages, in order of due time, are cut into 20, 40, 80, ... batches of at least two. Two values are
//! tested for each number of batches:
//!
//! * The dispersion of the batches' counts, `D = sum (c_j - p s_j)^2 / (s_j p (1 - p))` with `s_j` messages in batch
//!   `j`. For independent lates it is about chi-squared, with one degree of freedom fewer than there are batches.
//! * The number of pairs of lates that share a batch. For independent lates it has about the Poisson distribution,
//!   which is the right one while lates are few.
//!
//! If both are beyond the 95% point of their distribution, lates cluster. Both levels are shared among the batch sizes,
//! after Bonferroni. Then `D / (batches - 1)` estimates the design effect: how many times the variance of the share
//! exceeds the binomial.
//!
//! The effective number of messages is their number over the largest design effect, times the squared ratio of
//! Student's t at `count - 1` and at `batches - 1` degrees of freedom, since the design effect itself was estimated.
//! The exact bounds are then computed for that number: E. L. Korn and B. I. Graubard, "Confidence intervals for
//! proportions with small expected number of positive counts estimated from survey data", Survey Methodology 24, 1998.
//! Batches replace the survey clusters of that paper (batch means: B. Schmeiser, "Batch size effects in the analysis of
//! simulation output", Operations Research 30, 1982; the 20 is from there).
//!
//! **Limits.** The method only widens. It cannot find clusters longer than a twentieth of the run, or clusters of a
//! kind that did not occur. With fewer than 40 messages or two lates it reports no clusters. A test measures the
//! coverage on a seeded Markov process.

use statrs::distribution::{ChiSquared, ContinuousCDF, DiscreteCDF, Poisson, StudentsT};

use crate::limits::{BATCHES_MIN, CONFIDENCE};

/// The result of the test for clusters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clustering {
    /// Ratio of the variance of the share to that of independent lates; above 1.
    pub design_effect: f64,
    /// Effective sample size.
    pub effective_count: f64,
    /// The number of batches from which it was computed.
    pub batches: u64,
}

/// Returns how much the messages at the ascending positions `late` of `count` cluster. Returns `None` if they do not
/// cluster, or are too few to decide.
#[must_use]
pub fn clustering(count: u64, late: &[u64]) -> Option<Clustering> {
    let share = late.len() as f64 / count.max(1) as f64;
    if late.len() < 2 || share >= 1.0 || count < 2 * BATCHES_MIN {
        return None;
    }
    let sizes: Vec<u64> =
        std::iter::successors(Some(BATCHES_MIN), |batches| batches.checked_mul(2))
            .take_while(|batches| batches * 2 <= count)
            .collect();
    let tail = (1.0 - CONFIDENCE) / sizes.len() as f64;
    let dispersions: Vec<(u64, f64)> = sizes
        .iter()
        .map(|&batches| (batches, dispersion(count, late, share, batches)))
        .collect();
    let detected = dispersions.iter().any(|&(batches, dispersion)| {
        let by_dispersion = ChiSquared::new((batches - 1) as f64)
            .map_or(1.0, |chi_squared| chi_squared.sf(dispersion));
        by_dispersion < tail && chance_of_pairs(count, late, batches) < tail
    });
    if !detected {
        return None;
    }
    let worth = |&(batches, dispersion): &(u64, f64)| {
        let design_effect = dispersion / (batches - 1) as f64;
        let effective_count = count as f64 / design_effect * student_ratio(count, batches);
        Clustering {
            design_effect,
            effective_count,
            batches,
        }
    };
    dispersions
        .iter()
        .map(worth)
        .filter(|clustering| clustering.design_effect > 1.0)
        .min_by(|a, b| a.effective_count.total_cmp(&b.effective_count))
}

/// Returns the dispersion of the counts of lates over `batches` batches whose sizes differ by at most one. Visits only
/// batches that contain lates.
fn dispersion(count: u64, late: &[u64], share: f64, batches: u64) -> f64 {
    let first_of =
        |batch: u64| (u128::from(batch) * u128::from(count) / u128::from(batches)) as u64;
    let empty = count as f64 * share / (1.0 - share);
    late.chunk_by(|a, b| batch_of(count, batches, *a) == batch_of(count, batches, *b))
        .fold(empty, |dispersion, chunk| {
            let batch = batch_of(count, batches, chunk[0]);
            let size = (first_of(batch + 1) - first_of(batch)) as f64;
            let expected = size * share;
            let excess = chunk.len() as f64 - expected;
            dispersion + (excess * excess - expected * expected) / (expected * (1.0 - share))
        })
}

/// Returns the probability of at least as many pairs of lates in one batch as were seen, if lates are independent. The
/// number of pairs is about Poisson while lates are few.
fn chance_of_pairs(count: u64, late: &[u64], batches: u64) -> f64 {
    let pairs_of = |number: f64| number * (number - 1.0) / 2.0;
    let seen: f64 = late
        .chunk_by(|a, b| batch_of(count, batches, *a) == batch_of(count, batches, *b))
        .map(|chunk| pairs_of(chunk.len() as f64))
        .sum();
    let size = count as f64 / batches as f64;
    let expected = pairs_of(late.len() as f64) * (size - 1.0) / (count as f64 - 1.0);
    if seen < 1.0 {
        return 1.0;
    }
    Poisson::new(expected).map_or(1.0, |poisson| poisson.sf(seen as u64 - 1))
}

/// Returns the index of the batch that holds a position: the last batch that begins at or before it.
fn batch_of(count: u64, batches: u64, position: u64) -> u64 {
    match (position + 1).checked_mul(batches) {
        // Much faster than the division of 128 bits, and large enough for every run.
        Some(product) => (product - 1) / count,
        None => {
            let product = (u128::from(position) + 1) * u128::from(batches);
            ((product - 1) / u128::from(count)) as u64
        }
    }
}

/// Returns (t at count - 1 / t at batches - 1)^2, at most one.
fn student_ratio(count: u64, batches: u64) -> f64 {
    let quantile = |freedom: u64| {
        StudentsT::new(0.0, 1.0, freedom as f64)
            .map_or(f64::NAN, |student| student.inverse_cdf(CONFIDENCE))
    };
    let ratio = (quantile(count - 1) / quantile(batches - 1)).powi(2);
    if ratio.is_finite() {
        ratio.min(1.0)
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use rand_pcg::Pcg64;
    use rand_pcg::rand_core::Rng as _;

    use super::*;
    use crate::statistics::{Asked, LateShare, exact_bounds};

    /// Returns the late messages of a two-state Markov chain: in the long run `share` of all, in clusters of mean
    /// length `length`.
    fn markov(random: &mut Pcg64, count: u64, share: f64, length: f64) -> Vec<u64> {
        let mut uniform = || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let leave = 1.0 / length;
        let enter = leave * share / (1.0 - share);
        let mut late = uniform() < share;
        (0..count)
            .filter(|_| {
                late = if late {
                    uniform() >= leave
                } else {
                    uniform() < enter
                };
                late
            })
            .collect()
    }

    /// Returns three shares of runs: those whose exact upper bound covers the true share, those whose widened bound
    /// does, and those that were widened.
    fn coverage(share: f64, length: f64, count: u64) -> (f64, f64, f64) {
        let runs = 1_000;
        let mut random = Pcg64::new(2_026, 11);
        let (mut exact, mut widened, mut wide) = (0, 0, 0);
        for _ in 0..runs {
            let late = markov(&mut random, count, share, length);
            let found = LateShare::new(count, &late, Asked::by_mission(1));
            exact += u32::from(exact_bounds(late.len() as f64, count as f64).1 >= share);
            widened += u32::from(found.rate.upper >= share);
            wide += u32::from(found.rate.widened);
        }
        let of = f64::from(runs);
        (
            f64::from(exact) / of,
            f64::from(widened) / of,
            f64::from(wide) / of,
        )
    }

    #[test]
    fn clustered_lates_are_covered_by_the_widened_bound_and_not_by_the_exact_one() {
        for length in [4.0, 10.0, 25.0] {
            let (exact, widened, wide) = coverage(0.02, length, 10_000);
            assert!(
                exact < 0.90,
                "clusters of {length}: the exact bound covers {exact}, so that this process shows nothing"
            );
            assert!(
                widened >= 0.92,
                "clusters of {length}: covered in {widened}"
            );
            assert!(wide > 0.9, "clusters of {length}: widened in {wide}");
        }
    }

    #[test]
    fn independent_lates_are_seldom_taken_for_clusters() {
        for share in [0.0005, 0.02, 0.3] {
            let (exact, widened, wide) = coverage(share, 1.0 / (1.0 - share), 10_000);
            assert!(exact >= 0.93 && widened >= exact);
            assert!(wide < 0.15, "share {share}: widened in {wide}");
        }
    }

    #[test]
    fn one_cluster_is_worth_about_one_event() {
        let late: Vec<u64> = (5_000..5_030).collect();
        let found = clustering(10_000, &late).expect("thirty in a row");
        assert!(
            found.design_effect > 25.0 && found.design_effect < 35.0,
            "{found:?}"
        );
        let share = LateShare::new(10_000, &late, Asked::by_mission(1));
        assert!(
            share.rate.widened && share.rate.lower < 0.000_3 && share.rate.upper > 0.01,
            "{share:?}"
        );
    }

    #[test]
    fn evenly_spread_lates_are_no_cluster() {
        let late: Vec<u64> = (0..100).map(|index| index * 100 + 50).collect();
        assert_eq!(clustering(10_000, &late), None);
        assert_eq!(clustering(10_000, &[7]), None);
        assert_eq!(clustering(10_000, &[]), None);
        assert_eq!(clustering(39, &[7, 8]), None);
        assert_eq!(clustering(50, &(0..50).collect::<Vec<_>>()), None);
    }

    fn is_cluster(count: u64, late: &[u64]) -> bool {
        clustering(count, late).is_some()
    }

    #[test]
    fn two_in_one_of_twenty_batches_cluster_and_in_one_of_forty_of_three_sizes_do_not() {
        // The smallest sample that has 20 batches of two.
        assert!(is_cluster(40, &[2, 3]) && !is_cluster(39, &[2, 3]));
        // 20 batches alone: a pair in one of them has a probability of 3.6%, and the dispersion one of 1.9%.
        assert!(is_cluster(70, &[4, 5]));
        // 20, 40 and 80 batches share the level: 5% / 3. The pair in one of 40 has a probability of 1.9%.
        assert!(!is_cluster(160, &[4, 6]));
    }

    #[test]
    fn dispersion_and_pairs_must_both_be_improbable() {
        // Chi-squared with 19 degrees of freedom exceeds 30.893 in 4.1%, with 20 in 5.7%; the pairs have 2.7%.
        let near = [
            13, 14, 15, 26, 28, 39, 42, 50, 52, 55, 57, 58, 59, 60, 61, 62,
        ];
        assert!(is_cluster(63, &near));
        // The dispersion has 2.8%, the pair 19%.
        assert!(!is_cluster(69, &[1, 2, 33, 48]));
    }

    #[test]
    fn the_effect_and_the_effective_number_are_those_of_the_strictest_batches() {
        // Ten in a row: the dispersion over 20 batches is 191.919, and the ratio of Student's t squared 0.906575.
        let found = clustering(1_000, &(500..510).collect::<Vec<_>>()).expect("ten in a row");
        assert_eq!(found.batches, 20);
        assert!((found.design_effect - 10.101_010).abs() < 1e-6);
        assert!(
            (found.effective_count - 89.750_905).abs() < 1e-5,
            "{found:?}"
        );
    }

    #[test]
    fn pairs_have_the_probability_of_a_poisson_number() {
        // Three pairs, where 3 * 4 / 99 are expected; one pair, where 2.5 / 69 are.
        let three = chance_of_pairs(100, &[0, 1, 2], 20);
        assert!((three - 0.000_271_097_825).abs() < 1e-12, "{three}");
        let one = chance_of_pairs(70, &[4, 5], 20);
        assert!((one - 0.035_583_365_290).abs() < 1e-12, "{one}");
        assert_eq!(chance_of_pairs(100, &[0, 50], 20), 1.0);
    }

    #[test]
    fn the_ratio_of_students_t_is_that_of_tables_and_at_most_one() {
        // 1.6604 and 1.7291.
        assert!((student_ratio(100, 20) - 0.922_070).abs() < 1e-6);
        assert_eq!(student_ratio(20, 100), 1.0);
        assert_eq!(student_ratio(1, 20), 1.0);
    }

    #[test]
    fn a_position_is_in_the_last_batch_that_begins_at_or_before_it() {
        let begins = |count: u64, batches: u64, batch: u64| {
            (u128::from(batch) * u128::from(count) / u128::from(batches)) as u64
        };
        for (count, batches) in [(10, 3), (103, 20), (103, 40), (40, 20)] {
            for position in 0..count {
                let last = (0..batches).rfind(|&batch| begins(count, batches, batch) <= position);
                assert_eq!(Some(batch_of(count, batches, position)), last, "{position}");
            }
        }
        // Products beyond 64 bits; the batches of the second count are of one size.
        let batches = 1 << 20;
        for count in [u64::MAX, 1 << 63] {
            for batch in [1, 7, batches - 1] {
                let first = begins(count, batches, batch);
                assert_eq!(batch_of(count, batches, first), batch);
                assert_eq!(batch_of(count, batches, first - 1), batch - 1);
            }
            assert_eq!(batch_of(count, batches, count - 1), batches - 1);
        }
    }

    #[test]
    fn dispersion_is_the_sum_over_all_batches() {
        let (count, late) = (103_u64, [0_u64, 5, 6, 7, 51, 102]);
        let share = 6.0 / 103.0;
        for batches in [20, 40] {
            let plain: f64 = (0..batches)
                .map(|batch| {
                    let (from, to) = (batch * count / batches, (batch + 1) * count / batches);
                    let seen = late
                        .iter()
                        .filter(|&&position| (from..to).contains(&position))
                        .count() as f64;
                    let size = (to - from) as f64;
                    (seen - size * share).powi(2) / (size * share * (1.0 - share))
                })
                .sum();
            assert!((dispersion(count, &late, share, batches) - plain).abs() < 1e-9);
        }
    }
}
