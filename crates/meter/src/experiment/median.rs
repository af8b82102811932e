//! The interval of a median, exact for whatever distribution: between two of the ordered values. The number of values
//! below the median is binomial with a share of one half (W. R. Thompson, "On confidence ranges for the median", Annals
//! of Mathematical Statistics 7, 1936).

/// The interval does not hold the median with at most this probability.
const MISS: f64 = 0.05;

/// The smallest number of values that has an interval: all six of them are on one side in 2 of 64 cases.
pub const INTERVAL_VALUES_MIN: usize = 6;

/// The interval of the median of values in the order in which they were found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MedianInterval {
    /// The lower end.
    pub lower: f64,
    /// The upper end.
    pub upper: f64,
    /// Successive values resemble each other, so that the interval is wider than that of independent ones.
    pub is_widened: bool,
}

/// Returns the 95% interval of the median of `values`, which are in order of time. Returns `None` if there are too few,
/// or too few that are independent.
#[must_use]
pub fn median_interval(values: &[f64]) -> Option<MedianInterval> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (count, worth) = (values.len(), independent_count(values, &sorted));
    let rank = if worth == count {
        interval_rank(count)?
    } else {
        // As far from the ends, as a share, as among the independent values.
        let share = interval_rank(worth)? as f64 / (worth + 1) as f64;
        ((share * (count + 1) as f64) as usize).max(1)
    };
    Some(MedianInterval {
        lower: *sorted.get(rank - 1)?,
        upper: *sorted.get(count - rank)?,
        is_widened: worth != count,
    })
}

/// Returns the rank, from 1, of the ordered value at the lower end; the upper end has the same rank from above. It is
/// the largest rank at which both ends miss the median with at most 5% together.
fn interval_rank(count: usize) -> Option<usize> {
    let mut ln_share = -(count as f64) * std::f64::consts::LN_2;
    let mut below = ln_share.exp();
    let mut rank = 0;
    while 2.0 * below <= MISS {
        rank += 1;
        ln_share += ((count - rank + 1) as f64 / rank as f64).ln();
        below += ln_share.exp();
    }
    (rank > 0).then_some(rank)
}

/// Returns how many independent values these are worth, from the autocorrelation of their sides of the median at one
/// step. The estimate is used only if it is larger than 95% of those of independent values.
fn independent_count(values: &[f64], sorted: &[f64]) -> usize {
    let count = values.len();
    if count < INTERVAL_VALUES_MIN {
        return count;
    }
    let median = f64::midpoint(sorted[(count - 1) / 2], sorted[count / 2]);
    let side = |value: &f64| {
        if *value == median {
            0.0
        } else {
            (value - median).signum()
        }
    };
    let all: f64 = values.iter().map(|value| side(value).powi(2)).sum();
    let successive = values.windows(2).map(|two| side(&two[0]) * side(&two[1]));
    let correlation = successive.sum::<f64>() / all.max(1.0);
    let usual = ONE_SIDED_95 / (count as f64).sqrt();
    if correlation <= usual {
        return count;
    }
    // Of a first-order autoregressive process. A correlation near 1 leaves one value.
    let worth = count as f64 * (1.0 - correlation) / (1.0 + correlation);
    (worth as usize).max(1)
}

/// The standard normal deviate that 95% do not exceed.
const ONE_SIDED_95: f64 = 1.645;

#[cfg(test)]
mod tests {
    use rand_pcg::Pcg64;
    use rand_pcg::rand_core::Rng as _;

    use super::*;

    /// The same rank in whole numbers: 40 times the number of outcomes below is at most all 2^n.
    fn exact_rank(count: usize) -> Option<usize> {
        let (mut term, mut below, mut rank) = (1_u128, 1_u128, 0);
        while 40 * below <= 1 << count {
            rank += 1;
            term = term * (count - rank + 1) as u128 / rank as u128;
            below += term;
        }
        (rank > 0).then_some(rank)
    }

    #[test]
    fn ranks_are_those_of_the_binomial_distribution() {
        for count in 1..=110 {
            assert_eq!(interval_rank(count), exact_rank(count), "{count}");
        }
        // Tables of the sign test have these.
        let known = [
            (5, None),
            (6, Some(1)),
            (8, Some(1)),
            (9, Some(2)),
            (12, Some(3)),
        ];
        for (count, rank) in
            known
                .into_iter()
                .chain([(15, Some(4)), (25, Some(8)), (100, Some(40))])
        {
            assert_eq!(interval_rank(count), rank, "{count}");
        }
        // The normal approximation, where powers of two are beyond a double.
        assert_eq!(interval_rank(10_000), Some(4_902));
    }

    #[test]
    fn the_ends_are_values_of_the_sample_and_five_have_none() {
        let found = median_interval(&[9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0, 5.0]);
        let found = found.expect("nine");
        assert_eq!((found.lower, found.upper), (2.0, 8.0));
        assert!(!found.is_widened);
        assert_eq!(median_interval(&[1.0, 5.0, 2.0, 4.0, 3.0]), None);
        assert_eq!(median_interval(&[]), None);
    }

    #[test]
    fn values_that_follow_their_predecessors_have_a_wider_interval_or_none() {
        // A machine that changes its state in the middle of nine rounds.
        let drift: Vec<f64> = (0..9).map(f64::from).collect();
        assert_eq!(median_interval(&drift), None);
        let slow: Vec<f64> = (0..60)
            .map(|index| f64::from(index / 10 % 2 * 100 + index))
            .collect();
        let mixed: Vec<f64> = (0..60).map(|index| slow[index * 7 % 60]).collect();
        let width = |values: &[f64]| {
            let found = median_interval(values).expect("sixty");
            (found.upper - found.lower, found.is_widened)
        };
        let ((wide, is_widened), (narrow, is_other)) = (width(&slow), width(&mixed));
        assert!(is_widened && !is_other && wide > narrow, "{wide}, {narrow}");
    }

    #[test]
    fn a_widened_interval_has_the_rank_of_the_independent_values_as_a_share() {
        // Successive values are on one side 56 times of 61 and change it 5 times: the correlation is 51 / 62, and the
        // 62 values are worth 62 * 11 / 113 = 6. Their lower end is the first of 6, at 1 / 7: the ninth of 62.
        let values: Vec<f64> = (0..62)
            .map(|index| f64::from(index / 11 % 2 * 100 + index))
            .collect();
        let found = median_interval(&values).expect("six are enough");
        assert_eq!((found.lower, found.upper), (8.0, 142.0));
        assert!(found.is_widened);
    }

    #[test]
    fn intervals_miss_the_true_median_in_at_most_one_case_of_twenty() {
        const RUNS: usize = 4_000;
        let mut random = Pcg64::new(11, 3);
        for count in [6, 9, 15, 40] {
            let mut missed = 0;
            let mut widened = 0;
            for _ in 0..RUNS {
                // Skewed, as ratios are; its median is 0.5 squared.
                let one = || (f64::from(random.next_u32()) / f64::from(u32::MAX)).powi(2);
                let values: Vec<f64> = std::iter::repeat_with(one).take(count).collect();
                let Some(found) = median_interval(&values) else {
                    widened += 1;
                    continue;
                };
                widened += usize::from(found.is_widened);
                missed += usize::from(found.lower > 0.25 || found.upper < 0.25);
            }
            // Five percent, and three standard deviations of a sample of this size.
            assert!(missed as f64 <= 0.0604 * RUNS as f64, "{count}: {missed}");
            assert!(missed > RUNS / 200, "{count}: {missed}");
            assert!(widened < RUNS / 10, "{count}: {widened}");
        }
    }
}
