//! One conclusion from many tests: S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian
//! Journal of Statistics 6, 1979.
//!
//! A PASS of all destinations needs no correction: it is wrong only if the PASS of a destination over its budget is
//! wrong. A FAIL of one destination among many does: of 17 destinations at the edge of their budgets, each with a wrong
//! FAIL in 5% of runs, at least one FAILs in 58% of runs.

use crate::limits::CONFIDENCE;

/// Returns for each of the `chances` the level at which its destination FAILs among `tests` destinations, or `None` if
/// it does not. A chance is the probability of at least as many late messages at the edge of the budget. Destinations
/// that are not listed are taken not to FAIL. The probability of one or more wrong FAILs is at most 5%.
#[must_use]
pub fn fails_of_many(chances: &[f64], tests: usize) -> Vec<Option<f64>> {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_by(|&a, &b| chances[a].total_cmp(&chances[b]));
    let mut levels = vec![None; chances.len()];
    for (rank, index) in order.into_iter().enumerate() {
        let level = (1.0 - CONFIDENCE) / tests.saturating_sub(rank).max(1) as f64;
        if chances[index] > level {
            break;
        }
        levels[index] = Some(level);
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(chances: &[f64], tests: usize) -> Vec<bool> {
        let levels = fails_of_many(chances, tests);
        levels.iter().map(Option::is_some).collect()
    }

    #[test]
    fn one_test_needs_no_correction() {
        assert_eq!(fails(&[0.049], 1), [true]);
        assert_eq!(fails(&[0.051], 1), [false]);
        assert_eq!(fails(&[1.0 - CONFIDENCE], 1), [true]);
        assert!(fails(&[], 17).is_empty());
    }

    #[test]
    fn the_smallest_chance_of_many_must_be_smaller() {
        assert_eq!(fails(&[0.02], 17), [false]);
        assert_eq!(fails(&[0.002_9], 17), [true]);
    }

    #[test]
    fn each_further_chance_is_held_against_the_tests_that_are_left() {
        // Of four tests: 0.0125, 0.0167, 0.025, 0.05.
        assert_eq!(
            fails(&[0.016, 0.010, 0.024, 0.049], 4),
            [true, true, true, true]
        );
        // The second fails its level, so that the third is not looked at.
        assert_eq!(
            fails(&[0.020, 0.010, 0.021, 0.9], 4),
            [false, true, false, false]
        );
    }
}
