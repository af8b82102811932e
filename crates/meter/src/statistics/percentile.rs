//! The percentiles that a sample supports, with intervals that allow for autocorrelation.

use super::{clustering, lower_bound_beyond, upper_bound_within};
use crate::limits::SAMPLES_BEYOND_MIN;

/// The percentiles reported: the name in files, and the share of samples at or below it.
pub const PERCENTILES: [(&str, f64); 7] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
    ("p99.999", 0.999_99),
];

/// One percentile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentile {
    /// The name, as in [`PERCENTILES`].
    pub name: &'static str,
    /// The smallest value that at least this share of the samples does not exceed.
    pub value: i64,
    /// Lower end of the interval, one-sided 95%.
    pub lower: i64,
    /// Upper end of the interval, one-sided 95%; `None` if it is beyond the samples.
    pub upper: Option<i64>,
}

/// Returns the percentiles of `values` (in order of time) and of `lost` further messages, which count as larger than
/// every value (RFC 6703 section 3.1). A percentile is reported only if at least [`SAMPLES_BEYOND_MIN`] samples are
/// beyond it and its value is that of a received message.
///
/// The interval's ends are order statistics (H. A. David and H. N. Nagaraja, "Order Statistics", 3rd edition, 2003,
/// section 7.1). Each end misses the true percentile of independent values with a probability of at most 5%, for every
/// sample size: the number of samples beyond the true percentile is binomial. If the samples beyond the percentile
/// [cluster](clustering), the effective sample size is used in its place. That is an estimate: a short run that holds
/// few clusters, or none, promises too much.
#[must_use]
pub fn percentiles(values: &[i64], lost: u64) -> Vec<Percentile> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let count = sorted.len() as u64 + lost;
    PERCENTILES
        .iter()
        .filter_map(|&(name, share)| {
            let rank = rank(count, share);
            if count < rank + SAMPLES_BEYOND_MIN {
                return None;
            }
            let value = *sorted.get(usize::try_from(rank - 1).ok()?)?;
            let (lower, upper) = interval(values, &sorted, lost, (share, value));
            Some(Percentile {
                name,
                value,
                lower: lower.unwrap_or(value),
                upper,
            })
        })
        .collect()
}

/// Returns the position, from 1, of the smallest value that at least `share` of `count` samples do not exceed.
fn rank(count: u64, share: f64) -> u64 {
    // In binary, the product of 0.99 and 1000 is not 990; the margin is far below one sample.
    ((share * count as f64 - 1e-6).ceil().max(1.0) as u64).min(count.max(1))
}

/// Returns the ends of the interval of the percentile `share`, whose estimate is `value`. An end is `None` if it is
/// beyond the samples.
fn interval(
    values: &[i64],
    sorted: &[i64],
    lost: u64,
    (share, value): (f64, i64),
) -> (Option<i64>, Option<i64>) {
    let count = values.len() as u64 + lost;
    let beyond: Vec<u64> = (0..)
        .zip(values)
        .filter(|&(_, &other)| other > value)
        .map(|(position, _)| position)
        .collect();
    let worth = clustering(values.len() as u64, &beyond).map_or(1.0, |clustering| {
        clustering.effective_count / values.len() as f64
    });
    let (most_beyond, least_beyond) = samples_beyond(count, worth, 1.0 - share);
    let with_beyond = |beyond: u64| {
        let position = usize::try_from(count.checked_sub(beyond + 1)?).ok()?;
        sorted.get(position).copied()
    };
    let lower = least_beyond.and_then(|least| with_beyond(least - 1));
    (lower, most_beyond.and_then(with_beyond))
}

/// Returns two numbers of samples, of `count` samples that are worth `worth` each, for a share of `beyond` that exceeds
/// the true percentile:
///
/// * the largest number `k` so that at most `k` samples beyond the percentile have a probability of at most 5%;
/// * the smallest number `k` so that at least `k` have a probability of at most 5%.
fn samples_beyond(count: u64, worth: f64, beyond: f64) -> (Option<u64>, Option<u64>) {
    let trials = count as f64 * worth;
    let improbably_few = |k: u64| upper_bound_within(k as f64 * worth, trials, beyond);
    let improbably_many = |k: u64| lower_bound_beyond(k as f64 * worth, trials, beyond);
    let first = |holds: &dyn Fn(u64) -> bool| {
        let (mut low, mut high) = (0, count + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    };
    let few_end = first(&|k| k > count || !improbably_few(k));
    let many_begin = first(&|k| k > count || improbably_many(k));
    (
        few_end.checked_sub(1),
        Some(many_begin).filter(|&begin| begin <= count),
    )
}

#[cfg(test)]
mod tests {
    use rand_pcg::Pcg64;
    use rand_pcg::rand_core::Rng as _;

    use super::*;

    fn names(values: &[i64], lost: u64) -> Vec<&'static str> {
        percentiles(values, lost)
            .iter()
            .map(|percentile| percentile.name)
            .collect()
    }

    #[test]
    fn a_percentile_without_ten_samples_beyond_is_refused() {
        let values: Vec<i64> = (1..=1_000).collect();
        assert_eq!(names(&values, 0), ["p50", "p90", "p95", "p99"]);
        assert_eq!(names(&values[..999], 0), ["p50", "p90", "p95"]);
        assert_eq!(names(&values[..20], 0), ["p50"]);
        assert!(names(&values[..19], 0).is_empty());
        assert!(names(&[], 0).is_empty());
    }

    #[test]
    fn percentiles_are_the_least_values_that_the_share_does_not_exceed() {
        let values: Vec<i64> = (1..=1_000).rev().collect();
        let found: Vec<i64> = percentiles(&values, 0)
            .iter()
            .map(|percentile| percentile.value)
            .collect();
        assert_eq!(found, [500, 900, 950, 990]);
    }

    #[test]
    fn lost_messages_lie_beyond_every_value() {
        let values: Vec<i64> = (1..=900).collect();
        let found = percentiles(&values, 100);
        assert_eq!(
            found
                .iter()
                .map(|percentile| (percentile.name, percentile.value))
                .collect::<Vec<_>>(),
            [("p50", 500), ("p90", 900)]
        );
        assert_eq!(found[1].upper, None, "it may as well be a lost one");
        assert!(names(&[], 5_000).is_empty());
    }

    /// Returns the probabilities that the interval's upper end is below the true percentile, and that its lower end is
    /// above it, from the binomial distribution of the samples beyond the percentile.
    fn misses(count: u64, share: f64) -> (f64, f64) {
        let (most_beyond, least_beyond) = samples_beyond(count, 1.0, 1.0 - share);
        let (trials, beyond) = (count as f64, 1.0 - share);
        let log_of = |k: f64| {
            use statrs::function::gamma::ln_gamma;
            ln_gamma(trials + 1.0) - ln_gamma(k + 1.0) - ln_gamma(trials - k + 1.0)
                + k * beyond.ln()
                + (trials - k) * share.ln()
        };
        let chance = |numbers: std::ops::RangeInclusive<u64>| -> f64 {
            numbers.map(|k| log_of(k as f64).exp()).sum()
        };
        (
            most_beyond.map_or(0.0, |most| chance(0..=most)),
            least_beyond.map_or(0.0, |least| chance(least..=count)),
        )
    }

    #[test]
    fn an_end_of_an_interval_misses_in_at_most_5_percent_of_samples_of_any_size() {
        let sizes = (20_u64..1_500)
            .step_by(7)
            .chain((1_500..12_000).step_by(331))
            .chain([20_000, 50_000]);
        for count in sizes {
            for share in [0.5, 0.9, 0.95, 0.99, 0.999] {
                if count < rank(count, share) + SAMPLES_BEYOND_MIN {
                    continue;
                }
                let (upper, lower) = misses(count, share);
                let limit = 0.05 + 1e-9;
                assert!(
                    upper <= limit && lower <= limit,
                    "{share} of {count}: {upper} and {lower}"
                );
                // The next order statistic inwards misses too often: no end is further out than it must be.
                let (most, least) = samples_beyond(count, 1.0, 1.0 - share);
                let (trials, beyond) = (count as f64, 1.0 - share);
                assert!(most.is_none_or(|most| !upper_bound_within(
                    most as f64 + 1.0,
                    trials,
                    beyond
                )));
                assert!(least.is_none_or(|least| !lower_bound_beyond(
                    least as f64 - 1.0,
                    trials,
                    beyond
                )));
            }
        }
    }

    #[test]
    fn the_interval_of_the_median_of_twenty_reaches_from_the_sixth_to_the_fifteenth_value() {
        // As in published tables: beyond each end, an outcome has a probability of 2.07%; one value further in, 5.77%.
        let values: Vec<i64> = (0..20).map(|index| 1 + index * 7 % 20).collect();
        let [median] = percentiles(&values, 0)[..] else {
            panic!("only the median")
        };
        let found = (median.lower, median.value, median.upper);
        assert_eq!(found, (6, 10, Some(15)));
    }

    #[test]
    fn intervals_cover_the_true_percentile() {
        let mut random = Pcg64::new(5, 5);
        let (mut below, mut above) = (0, 0);
        for _ in 0..1_000 {
            let values: Vec<i64> = (0..500)
                .map(|_| i64::from(random.next_u32() >> 12))
                .collect();
            let p90 = percentiles(&values, 0)[1];
            let truth = 943_718; // 0.9 * 2^20
            below += u32::from(p90.upper.is_some_and(|upper| upper < truth));
            above += u32::from(p90.lower > truth);
        }
        assert!(
            (10..75).contains(&below) && (10..75).contains(&above),
            "{below} and {above} of 1000 miss"
        );
    }

    /// The slowest 1% of the messages come in blocks of ten. Such a run may hold no block at all.
    #[test]
    fn upper_ends_miss_more_often_where_long_latencies_come_in_blocks_of_ten() {
        let mut random = Pcg64::new(2026, 7);
        let mut uniform = move || f64::from(random.next_u32()) / f64::from(u32::MAX);
        for (count, misses_percent) in [(1_000, 35.0), (2_000, 14.0)] {
            let runs = 1_000;
            let mut missed = 0;
            for _ in 0..runs {
                let mut values = Vec::with_capacity(count + 10);
                while values.len() < count {
                    // 10 p / (10 p + 1 - p) = 1%
                    let is_block = uniform() < 0.001_009;
                    let (base, more) = if is_block { (1_000_000, 10) } else { (0, 1) };
                    values.extend((0..more).map(|_| base + (uniform() * 1e6) as i64));
                }
                values.truncate(count);
                let found = percentiles(&values, 0);
                let p99 = found.iter().find(|one| one.name == "p99").expect("enough");
                missed += u32::from(p99.upper.is_some_and(|upper| upper < 1_000_000));
            }
            let percent = f64::from(missed) * 100.0 / f64::from(runs);
            println!("{count} messages: the upper end of p99 misses in {percent:.1}% of runs");
            assert!((percent - misses_percent).abs() < 4.5, "{count}: {percent}");
        }
    }

    #[test]
    fn the_samples_beyond_are_those_of_the_binomial_distribution() {
        // Of five: at most two beyond nine tenths in 0.9%, three in 8.1%; and five in 59%.
        assert_eq!(samples_beyond(5, 1.0, 0.9), (Some(2), None));
        assert_eq!(samples_beyond(5, 1.0, 0.1), (None, Some(3)));
        assert_eq!(samples_beyond(1_000, 1.0, 0.1), (Some(84), Some(117)));
        // Samples that are worth a half or a quarter each (by the incomplete beta function of another program).
        assert_eq!(samples_beyond(1_000, 0.5, 0.1), (Some(77), Some(124)));
        assert_eq!(samples_beyond(400, 0.25, 0.5), (Some(165), Some(235)));
    }

    #[test]
    fn samples_that_equal_the_percentile_or_are_below_it_do_not_cluster_beyond_it() {
        // A tenth is above, one in ten messages; the others are in a long run of low ones and one of equal ones.
        let values: Vec<i64> = (0..1_000)
            .map(|index| match index {
                _ if index % 10 == 9 => 1_000 + index / 10,
                ..500 => 7,
                _ => 8,
            })
            .collect();
        let p90 = percentiles(&values, 0)[1];
        // At most 84 of 1,000 are beyond in 4.9% of samples, so the end has 84 above it.
        assert_eq!((p90.value, p90.upper), (8, Some(1_015)));
    }

    #[test]
    fn clustered_excesses_reach_further_to_both_sides() {
        // Ranks, of which the highest twentieth is spread or in a row.
        let spread: Vec<i64> = (0..2_000)
            .map(|index| {
                if index % 20 == 19 {
                    1_900 + index / 20
                } else {
                    index - index / 20
                }
            })
            .collect();
        let mut clustered = spread.clone();
        clustered.sort_unstable();
        let ends = |values: &[i64]| {
            let p95 = percentiles(values, 0)[2];
            (p95.lower, p95.upper.unwrap_or(i64::MAX))
        };
        let (near, far) = (ends(&spread), ends(&clustered));
        assert!(far.0 < near.0 && far.1 > near.1, "{near:?}, {far:?}");
    }

    #[test]
    fn clustered_excesses_widen_the_interval() {
        let spread: Vec<i64> = (0..2_000)
            .map(|index| {
                if index % 10 == 9 {
                    1_000 + index
                } else {
                    index % 7
                }
            })
            .collect();
        let mut clustered = spread.clone();
        clustered.sort_by_key(|value| *value >= 1_000);
        let width = |values: &[i64]| {
            let p95 = percentiles(values, 0)[2];
            p95.upper.map_or(i64::MAX, |upper| upper - p95.lower)
        };
        assert!(width(&clustered) > width(&spread));
    }
}
