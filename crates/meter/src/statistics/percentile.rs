//! The percentiles that a sample supports, with intervals that allow for autocorrelation.

use super::{clustering, exact_bounds};
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
/// The interval is R. S. Woodruff's ("Confidence intervals for medians and other position measures", JASA 47, 1952). It
/// takes the exact bounds of the share of samples beyond the percentile, widened if those samples
/// [cluster](clustering), and reads the values at these shares from the sample.
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
            let (lower, upper) = interval(values, &sorted, lost, value);
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

fn interval(values: &[i64], sorted: &[i64], lost: u64, value: i64) -> (Option<i64>, Option<i64>) {
    let count = values.len() as u64 + lost;
    let beyond: Vec<u64> = (0..)
        .zip(values)
        .filter(|&(_, &other)| other > value)
        .map(|(position, _)| position)
        .collect();
    let worth = clustering(values.len() as u64, &beyond).map_or(1.0, |clustering| {
        clustering.effective_count / values.len() as f64
    });
    let share = (beyond.len() as u64 + lost) as f64 / count as f64;
    let (least_beyond, most_beyond) =
        exact_bounds(share * count as f64 * worth, count as f64 * worth);
    let at = |share: f64| {
        sorted
            .get(usize::try_from(rank(count, share) - 1).unwrap_or(usize::MAX))
            .copied()
    };
    (at(1.0 - most_beyond), at(1.0 - least_beyond))
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
