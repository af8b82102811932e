//! Intervals for the mean and the median of values that depend on the ones before them.
//!
//! A machine that is slow now is slow in a moment too. An interval that takes such values as independent is too narrow.
//! Batch means: the values, in their order, are cut into as many batches as there are degrees of freedom to spend. The
//! batches are so long that one hardly depends on the other, and the interval is Student's of their means. The medians
//! of the batches do the same for the median.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// An interval that has the true value in 95 of 100 cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Half of the width, as a share of this value. A value of 0 has none.
    #[must_use]
    pub fn share_of(&self, value: f64) -> Option<f64> {
        (value != 0.0).then(|| (self.high - self.low) / 2.0 / value.abs())
    }
}

/// Returns the interval of the mean of values in the order of their measurement. Less than two values have none.
#[must_use]
pub fn mean_interval(values: &[f64]) -> Option<Interval> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    around(
        mean,
        &batched(values, |batch| {
            batch.iter().sum::<f64>() / batch.len() as f64
        }),
    )
}

/// Returns the interval of the median of values in the order of their measurement. Less than twenty values have
/// none.
#[must_use]
pub fn median_interval(values: &[f64]) -> Option<Interval> {
    if values.len() < 2 * MEDIAN_BATCH_MIN {
        return None;
    }
    around(median(values), &batched(values, median))
}

/// The statistic of each batch. The batches differ by one value at most.
fn batched(values: &[f64], statistic: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let batches = BATCHES.min(values.len());
    let edge = |number: usize| number * values.len() / batches;
    (0..batches)
        .map(|number| statistic(&values[edge(number)..edge(number + 1)]))
        .collect()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2])
}

/// Student's interval around `value` by the spread of the batches.
fn around(value: f64, batches: &[f64]) -> Option<Interval> {
    let count = batches.len() as f64;
    if batches.len() < 2 {
        return None;
    }
    let mean = batches.iter().sum::<f64>() / count;
    let squares: f64 = batches.iter().map(|batch| (batch - mean).powi(2)).sum();
    let student = StudentsT::new(0.0, 1.0, count - 1.0).ok()?;
    let half = student.inverse_cdf(TWO_SIDED) * (squares / (count - 1.0) / count).sqrt();
    Some(Interval {
        low: value - half,
        high: value + half,
    })
}

/// Number of batches. Fewer make Student's quantile large, and more make the batches short.
const BATCHES: usize = 20;

/// Values of a batch from which a median says something.
const MEDIAN_BATCH_MIN: usize = 10;

/// The quantile of both ends of a 95% interval.
const TWO_SIDED: f64 = 0.975;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::noise::depending;
    use crate::statistics::simulated::Random;

    fn naive(values: &[f64]) -> Interval {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|of| (of - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let half = 1.96 * (variance / count).sqrt();
        Interval {
            low: mean - half,
            high: mean + half,
        }
    }

    const RUNS: u32 = 400;

    /// The shares of runs in which each interval has the true value, which is 0.
    fn covered(kept: f64) -> [f64; 3] {
        let mut random = Random::new(11);
        let mut hits = [0; 3];
        for _ in 0..RUNS {
            let values = depending(kept, 1_000, &mut random);
            let found = [
                mean_interval(&values).expect("many"),
                median_interval(&values).expect("many"),
                naive(&values),
            ];
            for (hits, found) in hits.iter_mut().zip(found) {
                *hits += u32::from((found.low..=found.high).contains(&0.0));
            }
        }
        hits.map(|hits| f64::from(hits) / f64::from(RUNS))
    }

    #[test]
    fn intervals_of_values_that_depend_on_each_other_have_the_truth_in_95_of_100_cases() {
        for kept in [0.0, 0.8] {
            let [means, medians, naive] = covered(kept);
            assert!((0.93..=0.97).contains(&means), "{kept}: mean {means}");
            assert!((0.93..=0.97).contains(&medians), "{kept}: median {medians}");
            assert_eq!(naive < 0.6, kept > 0.0, "{kept}: naive {naive}");
        }
    }

    #[test]
    fn few_values_have_the_interval_of_student_or_none() {
        assert_eq!(mean_interval(&[5.0]), None);
        // t(1) is 12.706, the standard error 1.
        let two = mean_interval(&[1.0, 3.0]).expect("two");
        assert!((two.high - 14.706).abs() < 1e-3, "{two:?}");
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        let found = mean_interval(&[1.0, 2.0, 3.0]).expect("three");
        // t(2) is 4.303, the standard error 0.577.
        assert!((found.high - 4.484).abs() < 1e-3, "{found:?}");
        assert!((found.share_of(2.0).expect("not 0") - 1.242).abs() < 1e-3);
        assert_eq!(found.share_of(0.0), None);
        assert_eq!(median_interval(&[1.0; 19]), None);
        let same = Interval {
            low: 1.0,
            high: 1.0,
        };
        assert_eq!(median_interval(&[1.0; 20]), Some(same));
    }
}
