//! The guard of the baseline: pairs of raw TCP and sockperf, one in each round of a contest. A baseline that is slower
//! than a second instrument would flatter every ORB, so nothing is judged beside it.

use deckwatch_meter::experiment::{EndNote, Measurement};

use super::command::{Buffers, Command};
use super::kind::SMALL;
use super::sockperf::{PingPong, Sockperf};
use crate::laboratory::LaboratoryError;
use crate::laboratory::condition::Places;
use crate::laboratory::process::{RunLimits, RunResult};
use crate::laboratory::samples::{RunSummary, Samples};
use crate::laboratory::system::System;

/// Pairs of raw TCP and sockperf.
pub(super) struct Guard {
    /// The baseline without a load.
    raw: System,
    sockperf: Sockperf,
    /// Size of a message, both ways.
    octets: usize,
    samples: Samples,
}

/// The result of a guard.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Guarded {
    /// Raw TCP is as fast as sockperf.
    Holds,
    /// Raw TCP is slower, or an end of it differs from what was asked for; in words.
    Fails(String),
    /// There was no second instrument.
    Absent,
}

impl Guard {
    /// Starts sockperf's server for messages of `request_octets`.
    pub(super) fn start(
        raw: System,
        places: &Places,
        spins: bool,
        request_octets: usize,
    ) -> Result<Self, LaboratoryError> {
        Ok(Self {
            raw,
            sockperf: Sockperf::start((places.server, places.client), spins)?,
            octets: request_octets.max(SOCKPERF_SIZE_MIN),
            samples: Samples::default(),
        })
    }

    /// One pair. In every second round raw TCP is first. Returns false if the user wants to end.
    pub(super) fn pair(
        &mut self,
        places: &Places,
        round: usize,
        limits: RunLimits,
    ) -> Result<bool, LaboratoryError> {
        let mut found = (None, None);
        for is_raw in [!round.is_multiple_of(2), round.is_multiple_of(2)] {
            if is_raw {
                let sizes = (self.octets, self.octets);
                let command = Command::raw(SMALL, sizes, Buffers::default(), limits);
                let Some((ran, ends)) = command.run(&mut self.raw, true)? else {
                    return Ok(false);
                };
                self.samples.note_ends(ends);
                found.0 = Some(ran);
            } else {
                let (ran, ends) = self.sockperf.run(self.octets)?;
                self.samples.note_ends(ends);
                found.1 = Some(ran);
            }
            places.rest(limits.budget);
        }
        if let (Some(raw), Some(sockperf)) = &found {
            add(&mut self.samples, raw, sockperf);
        }
        Ok(true)
    }

    /// The pairs as a measurement of `system`.
    pub(super) fn measurement(&self, system: &str) -> Option<Measurement> {
        let factors = [("payload_octets", self.octets as f64)];
        self.samples
            .measurement(system, "beside sockperf", &factors)
    }
}

/// Adds a pair of runs, unless raw TCP's is too short for a median.
fn add(samples: &mut Samples, raw: &RunResult, sockperf: &PingPong) {
    let Some(summary) = RunSummary::of(raw) else {
        return;
    };
    samples.add_run(raw, &summary);
    samples.add_value("sockperf_p50_ns", sockperf.p50_ns);
    let ratios = [
        ("p50_ratio", summary.p50_ns.map(|ns| ns / sockperf.p50_ns)),
        ("p99_ratio", summary.p99_ns.map(|ns| ns / sockperf.p99_ns)),
    ];
    for (name, ratio) in ratios {
        if let Some(ratio) = ratio {
            samples.add_value(name, ratio);
        }
    }
}

impl Guarded {
    /// The result of the pairs in `found`; without pairs the baseline is unguarded.
    pub(super) fn of(found: Option<&Measurement>) -> Self {
        let Some((found, ratio)) = found.and_then(|it| Some((it, it.ratio("p50_ratio")?))) else {
            return Self::Absent;
        };
        let different = found.ends.iter().find_map(EndNote::difference);
        if let Some(difference) = different {
            return Self::Fails(format!("of the baseline's guard, {difference}"));
        }
        if ratio.median > RAW_OVER_SOCKPERF_MAX {
            return Self::Fails(format!(
                "the baseline is slowed: raw TCP takes {:.3} times as long as sockperf, and at most {RAW_OVER_SOCKPERF_MAX} \
                 times is expected",
                ratio.median
            ));
        }
        Self::Holds
    }
}

/// Raw TCP may take longer than sockperf by three percent. The other side has no bound: a faster baseline flatters no ORB.
const RAW_OVER_SOCKPERF_MAX: f64 = 1.03;

/// The smallest message that sockperf sends.
const SOCKPERF_SIZE_MIN: usize = 14;

#[cfg(test)]
mod tests {
    use super::*;

    fn guarded(ratios: &[f64], differs: Option<&str>) -> Guarded {
        let mut samples = Samples::default();
        for ratio in ratios {
            samples.add_value("p50_ratio", *ratio);
        }
        let end = EndNote {
            end: "server".to_owned(),
            differs: differs.map(str::to_owned),
            ..EndNote::default()
        };
        samples.note_ends(vec![end]);
        Guarded::of(
            samples
                .measurement("raw TCP", "beside sockperf", &[])
                .as_ref(),
        )
    }

    #[test]
    fn a_baseline_that_is_slower_than_sockperf_by_more_than_three_percent_is_refused() {
        assert_eq!(guarded(&[1.02, 1.05, 1.0], None), Guarded::Holds);
        assert_eq!(guarded(&[0.7], None), Guarded::Holds);
        let Guarded::Fails(words) = guarded(&[1.02, 1.031, 1.04], None) else {
            panic!("slower by 3.1%");
        };
        assert!(words.contains("1.031 times as long as sockperf"), "{words}");
    }

    #[test]
    fn a_baseline_without_pairs_is_unguarded_and_a_displaced_one_is_refused() {
        assert_eq!(guarded(&[], None), Guarded::Absent);
        assert_eq!(Guarded::of(None), Guarded::Absent);
        let Guarded::Fails(words) = guarded(&[1.0], Some("SCHED_OTHER")) else {
            panic!("displaced");
        };
        assert_eq!(words, "of the baseline's guard, the server: SCHED_OTHER");
    }

    #[test]
    fn a_pair_has_the_ratios_of_raw_tcp_over_sockperf() {
        let mut samples = Samples::default();
        let sockperf = PingPong {
            count: 2_000,
            p50_ns: 8_000.0,
            p99_ns: 20_000.0,
        };
        let times = |count| RunResult::RoundTrips(vec![10_000; count]);
        add(&mut samples, &times(2), &sockperf);
        assert_eq!(samples.measurement("raw TCP", "", &[]), None, "too short");
        add(&mut samples, &times(2_000), &sockperf);
        let found = samples.measurement("raw TCP", "", &[]).expect("a pair");
        assert_eq!(found.samples, 2_000);
        let values = ["p50_ratio", "p99_ratio", "sockperf_p50_ns"].map(|name| found.values[name]);
        assert_eq!(values, [1.25, 0.5, 8_000.0]);
    }
}
