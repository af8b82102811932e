//! The interval between transactions: what was asked for, and what was kept.

use std::time::Duration;

use deckwatch_meter::experiment::Measurement;

use super::SIZE;
use super::point::Iteration;
use crate::laboratory::caution::Caution;
use crate::limits::{INTERVAL_MISSED_SHARE_MAX, INTERVAL_SLACK};

/// Adds the intervals that were kept. One that is longer by more than [`INTERVAL_SLACK`] of it was missed.
pub(super) fn add(point: &mut Measurement, every: Duration, iterations: &[Iteration]) {
    let all: Vec<i64> = iterations
        .iter()
        .flat_map(|one| &one.intervals_ns)
        .copied()
        .collect();
    if every.is_zero() || all.is_empty() {
        return;
    }
    let asked_ns = every.as_nanos() as f64;
    let missed = all
        .iter()
        .filter(|ns| **ns as f64 > asked_ns * (1.0 + INTERVAL_SLACK));
    let missed = missed.count() as f64 / all.len() as f64;
    let mean_ns = all.iter().map(|ns| *ns as f64).sum::<f64>() / all.len() as f64;
    for (key, value) in [
        (ASKED, asked_ns),
        (MEAN, mean_ns),
        (
            "interval_max_ns",
            all.iter().copied().max().unwrap_or(0) as f64,
        ),
        (MISSED, missed),
    ] {
        point.values.insert(key.to_owned(), value);
    }
}

/// A warning for each point that missed its interval: on average, or too often.
pub(super) fn cautions(points: &[Measurement]) -> Vec<Caution> {
    let caution = |point: &Measurement| {
        let value = |key: &str| point.values.get(key).copied();
        let (asked_ns, mean_ns, missed) = (value(ASKED)?, value(MEAN)?, value(MISSED)?);
        let is_missed =
            mean_ns > asked_ns * (1.0 + INTERVAL_SLACK) || missed > INTERVAL_MISSED_SHARE_MAX;
        is_missed.then(|| Caution::IntervalMissed {
            what: format!(
                "{} at {} octets",
                point.system,
                point.factors.get(SIZE).copied().unwrap_or_default()
            ),
            asked_ns,
            mean_ns,
            missed,
        })
    };
    points.iter().filter_map(caution).collect()
}

const ASKED: &str = "interval_asked_ns";
const MEAN: &str = "interval_mean_ns";
const MISSED: &str = "interval_missed_share";

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn point(intervals_ns: Vec<i64>, every: Duration) -> Measurement {
        let mut point = Measurement {
            system: "udp".to_owned(),
            case: String::new(),
            group: String::new(),
            factors: BTreeMap::from([(SIZE.to_owned(), 64.0)]),
            values: BTreeMap::new(),
            runs: BTreeMap::new(),
            ends: Vec::new(),
            samples: 0,
            histogram: Vec::new(),
        };
        let iteration = Iteration {
            intervals_ns,
            ..Iteration::default()
        };
        add(&mut point, every, &[iteration]);
        point
    }

    #[test]
    fn an_interval_that_was_kept_is_no_warning() {
        let kept = point(vec![1_001_000; 99], Duration::from_millis(1));
        assert_eq!(kept.values["interval_missed_share"], 0.0);
        assert_eq!(kept.values["interval_mean_ns"], 1_001_000.0);
        assert!(cautions(&[kept]).is_empty());
        let none = point(vec![5; 9], Duration::ZERO);
        assert!(none.values.is_empty() && cautions(&[none]).is_empty());
    }

    #[test]
    fn an_interval_that_was_missed_on_average_or_too_often_is_a_warning() {
        let slow = point(vec![1_200_000; 99], Duration::from_millis(1));
        let often = (0..100).map(|place| 1_000_000 + i64::from(place % 20 == 0) * 200_000);
        let often = point(often.collect(), Duration::from_millis(1));
        assert_eq!(often.values["interval_missed_share"], 0.05);
        let found = cautions(&[slow, often]);
        assert_eq!(found.len(), 2);
        let words = found[0].to_string();
        assert!(
            words.contains("udp at 64 octets") && words.contains("1.200 ms"),
            "{words}"
        );
    }

    #[test]
    fn an_interval_at_the_limit_is_kept_and_either_limit_alone_makes_a_warning() {
        let longest = 1_000_000.0 * (1.0 + INTERVAL_SLACK);
        let kept = point(vec![longest as i64; 9], Duration::from_millis(1));
        assert_eq!(kept.values[MISSED], 0.0);
        let with = |mean_ns: f64, missed: f64| {
            let mut point = kept.clone();
            point.values.insert(MEAN.to_owned(), mean_ns);
            point.values.insert(MISSED.to_owned(), missed);
            cautions(&[point]).len()
        };
        assert_eq!(with(longest, INTERVAL_MISSED_SHARE_MAX), 0);
        assert_eq!(with(longest + 1.0, 0.0), 1);
        assert_eq!(with(1_000_000.0, INTERVAL_MISSED_SHARE_MAX + 0.001), 1);
    }
}
