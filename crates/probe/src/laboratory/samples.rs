//! The samples of one system in one case, over all rounds.

use std::collections::BTreeMap;

use deckwatch_meter::experiment::{EndNote, Measurement, Ratio, time_values};
use deckwatch_meter::histogram::LatencyHistogram;
use deckwatch_meter::statistics::percentiles;

use super::process::RunResult;

/// What the runs of one system in one case have measured.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    /// The calls of all runs, if their statistics are taken over all of them.
    times_ns: Vec<i64>,
    histogram: LatencyHistogram,
    count: u64,
    /// Values found once in each run, by name.
    runs: BTreeMap<String, Vec<f64>>,
    /// The ends, as they were read back.
    ends: Vec<EndNote>,
}

impl Samples {
    /// Adds ends that were read back. An end of the same name is replaced.
    pub(crate) fn note_ends(&mut self, ends: Vec<EndNote>) {
        self.ends
            .retain(|it| ends.iter().all(|other| other.end != it.end));
        self.ends.extend(ends);
    }

    /// Adds the calls of a run. Their statistics are taken over all runs.
    pub(crate) fn add_times(&mut self, times_ns: &[u32]) {
        self.times_ns
            .extend(times_ns.iter().map(|ns| i64::from(*ns)));
        self.record(times_ns);
    }

    /// Adds a value of a run.
    pub(crate) fn add_value(&mut self, name: &str, value: f64) {
        self.runs.entry(name.to_owned()).or_default().push(value);
    }

    /// Adds a run whose statistics are values of their own.
    pub(crate) fn add_run(&mut self, ran: &RunResult, summary: &RunSummary) {
        match ran {
            RunResult::RoundTrips(times_ns) => self.record(times_ns),
            RunResult::Sum { count, .. } => self.count += count,
        }
        for (name, value) in summary.values("") {
            self.add_value(&name, value);
        }
    }

    fn record(&mut self, times_ns: &[u32]) {
        for ns in times_ns {
            self.histogram.record(i64::from(*ns));
        }
        self.count += times_ns.len() as u64;
    }

    /// The measurement, with the median of each run's values. Returns `None` if nothing was measured.
    pub(crate) fn measurement(
        &self,
        system: &str,
        case: &str,
        factors: &[(&str, f64)],
    ) -> Option<Measurement> {
        if self.count == 0 && self.runs.is_empty() {
            return None;
        }
        let mut values = time_values(&self.times_ns);
        for (name, all) in self.runs.iter().filter(|(name, _)| *name != SYSTEM_FIRST) {
            let middle = Ratio::of(all.clone());
            values.extend(middle.map(|ratio| (name.clone(), ratio.median)));
        }
        let factors = factors
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value));
        Some(Measurement {
            system: system.to_owned(),
            case: case.to_owned(),
            group: String::new(),
            factors: factors.collect(),
            values,
            runs: self.runs.clone(),
            ends: self.ends.clone(),
            samples: self.count,
            histogram: self.histogram.recorded().collect(),
        })
    }
}

/// Runs of a system, each directly after a run of its baseline.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    pub(crate) system: Samples,
    pub(crate) baseline: Samples,
}

impl Pairs {
    /// Adds a run of the system and the run of its baseline before it. Returns false if one of them is too short for a
    /// median.
    pub(crate) fn add(
        &mut self,
        system: &RunResult,
        baseline: &RunResult,
        is_system_first: bool,
    ) -> bool {
        let (Some(own), Some(beside)) = (RunSummary::of(system), RunSummary::of(baseline)) else {
            return false;
        };
        self.system.add_run(system, &own);
        self.baseline.add_run(baseline, &beside);
        self.system
            .add_value(SYSTEM_FIRST, f64::from(u8::from(is_system_first)));
        for (name, value) in beside.values("beside_") {
            self.system.add_value(&name, value);
        }
        let ratios = [
            ("p50_ratio", own.ratio(&beside, |run| run.p50_ns)),
            ("p99_ratio", own.ratio(&beside, |run| run.p99_ns)),
            ("rate_ratio", Some(beside.mean_ns / own.mean_ns)),
        ];
        for (name, ratio) in ratios {
            if let Some(ratio) = ratio {
                self.system.add_value(name, ratio);
            }
        }
        true
    }
}

/// The value that says for each pair whether the system ran first (1) or its baseline (0); it has no median.
const SYSTEM_FIRST: &str = "system_first";

/// The statistics of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RunSummary {
    /// Nanoseconds for each round trip or message.
    pub(crate) mean_ns: f64,
    /// The median of the round trips; a stream has none.
    pub(crate) p50_ns: Option<f64>,
    /// The 99th percentile, if the run has enough round trips for it.
    pub(crate) p99_ns: Option<f64>,
    /// The longest round trip.
    pub(crate) max_ns: Option<f64>,
}

impl RunSummary {
    /// Returns `None` if the run is too short for a median.
    pub(crate) fn of(ran: &RunResult) -> Option<Self> {
        let times_ns = match ran {
            RunResult::RoundTrips(times_ns) => times_ns,
            RunResult::Sum { count: 0, .. } => return None,
            RunResult::Sum { count, elapsed_ns } => {
                return Some(Self {
                    mean_ns: *elapsed_ns as f64 / *count as f64,
                    p50_ns: None,
                    p99_ns: None,
                    max_ns: None,
                });
            }
        };
        let values: Vec<i64> = times_ns.iter().map(|ns| i64::from(*ns)).collect();
        let known = percentiles(&values, 0);
        let named = |name| {
            let found = known.iter().find(|percentile| percentile.name == name);
            found.map(|percentile| percentile.value as f64)
        };
        Some(Self {
            mean_ns: values.iter().sum::<i64>() as f64 / values.len() as f64,
            p50_ns: Some(named("p50")?),
            p99_ns: named("p99"),
            max_ns: values.iter().max().map(|ns| *ns as f64),
        })
    }

    /// The statistics by name.
    fn values(&self, prefix: &str) -> impl Iterator<Item = (String, f64)> + use<> {
        let all = [
            ("mean_ns", Some(self.mean_ns)),
            ("p50_ns", self.p50_ns),
            ("p99_ns", self.p99_ns),
            ("max_ns", self.max_ns),
        ];
        let prefix = prefix.to_owned();
        let named =
            move |(name, value): (&str, Option<f64>)| Some((format!("{prefix}{name}"), value?));
        all.into_iter().filter_map(named)
    }

    fn ratio(&self, baseline: &Self, of: impl Fn(&Self) -> Option<f64>) -> Option<f64> {
        Some(of(self)? / of(baseline)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(p50_us: u32, p99_us: u32) -> RunResult {
        let at = |index| if index % 50 == 49 { p99_us } else { p50_us };
        RunResult::RoundTrips((0..2_000).map(|index| at(index) * 1_000).collect())
    }

    fn measured(pairs: &Pairs) -> Measurement {
        let measured = pairs.system.measurement("ours", "octets", &[]);
        measured.expect("pairs")
    }

    #[test]
    fn a_ratio_is_of_each_pair_and_the_middle_of_them_is_told() {
        let mut pairs = Pairs::default();
        for (raw, own) in [(10, 15), (20, 22), (40, 100)] {
            assert!(pairs.add(&run(own, 3 * own), &run(raw, 2 * raw), raw == 20));
        }
        let result = measured(&pairs);
        let p50 = result.ratio("p50_ratio").expect("round trips");
        assert_eq!(p50.median, 1.5);
        assert_eq!(p50.lower_quartile, 1.3);
        assert_eq!(p50.upper_quartile, 2.0);
        assert_eq!(result.values["p99_ratio"], 2.25);
        assert_eq!(
            (
                result.samples,
                result.values["p50_ns"],
                result.values["beside_p50_ns"]
            ),
            (6_000, 22_000.0, 20_000.0)
        );
        assert_eq!(result.runs["system_first"], [0.0, 1.0, 0.0]);
        assert!(!result.values.contains_key("system_first"));
        let counted: u64 = result.histogram.iter().map(|(_, count)| count).sum();
        assert_eq!(counted, result.samples);
    }

    #[test]
    fn a_stream_of_half_the_messages_in_the_same_time_has_half_the_rate() {
        let mut pairs = Pairs::default();
        let ran = |count, elapsed_ns| RunResult::Sum { count, elapsed_ns };
        assert!(pairs.add(&ran(50, 1_000), &ran(100, 1_000), true));
        assert!(!pairs.add(&ran(0, 1_000), &ran(100, 1_000), true));
        let result = measured(&pairs);
        assert_eq!(result.values["rate_ratio"], 0.5);
        assert_eq!((result.values["mean_ns"], result.samples), (20.0, 50));
        assert!(!result.values.contains_key("p50_ns"));
    }

    #[test]
    fn a_percentile_that_a_run_cannot_support_is_not_told() {
        let of = |count| RunSummary::of(&RunResult::RoundTrips(vec![7; count]));
        assert_eq!(of(100).expect("a median").p99_ns, None);
        assert_eq!(of(5), None);
        assert_eq!(Samples::default().measurement("ours", "octets", &[]), None);
    }

    #[test]
    fn calls_of_all_runs_have_their_statistics_together() {
        let mut samples = Samples::default();
        samples.add_times(&[1_000; 60]);
        samples.add_times(&[3_000; 140]);
        let found = samples.measurement("ours", "octets", &[]).expect("times");
        assert_eq!((found.samples, found.values["p50_ns"]), (200, 3_000.0));
        let counted: u64 = found.histogram.iter().map(|(_, count)| count).sum();
        assert_eq!(counted, 200);
    }

    #[test]
    fn the_mean_of_a_run_is_the_sum_over_the_count() {
        let mut times = vec![10; 90];
        times.extend([20; 110]);
        let summary = RunSummary::of(&RunResult::RoundTrips(times)).expect("enough");
        assert_eq!(summary.mean_ns, 15.5);
        assert_eq!((summary.p50_ns, summary.max_ns), (Some(20.0), Some(20.0)));
    }

    #[test]
    fn an_end_that_is_noted_again_replaces_the_one_of_its_name() {
        let end = |name: &str, asked: &str| EndNote {
            end: name.to_owned(),
            asked: asked.to_owned(),
            ..EndNote::default()
        };
        let mut samples = Samples::default();
        samples.note_ends(vec![end("client", "first"), end("server", "first")]);
        samples.note_ends(vec![end("server", "second")]);
        let noted = samples.ends.iter().map(|it| (&*it.end, &*it.asked));
        let noted: Vec<_> = noted.collect();
        assert_eq!(noted, [("client", "first"), ("server", "second")]);
    }
}
