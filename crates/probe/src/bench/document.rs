//! What a bench found: pairs, ratios, and where they come from. `result.json` in the bench's folder.

use deckwatch_meter::histogram::LatencyHistogram;
use deckwatch_meter::result::{Provenance, Warning};
use deckwatch_meter::statistics::percentiles;
use serde::Serialize;

use super::case::Case;

/// A whole bench of calls. Every time is a round trip in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallBench {
    /// Version of this document's shape.
    pub schema_version: u32,
    /// `call`.
    pub bench: &'static str,
    /// When, where, with what.
    pub provenance: Provenance,
    /// Processors and class of both ends, in words.
    pub condition: String,
    /// Rounds that were asked for.
    pub rounds: usize,
    /// One entry a kind and size.
    pub cases: Vec<CaseResult>,
    /// The baseline beside a second instrument.
    pub baseline_check: Option<BaselineCheck>,
    /// Peers that are not here, and why.
    pub skipped: Vec<Skip>,
    /// What the bench says about its own numbers.
    pub warnings: Vec<Warning>,
}

/// The present version of the document's shape.
pub(super) const SCHEMA_VERSION: u32 = 1;

/// One kind at one size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseResult {
    /// What was sent.
    pub case: Case,
    /// Octets or structs of it.
    pub count: usize,
    /// Octets of our request on the wire, which raw TCP carries too.
    pub request_octets: usize,
    /// Octets of our reply on the wire, which raw TCP carries too.
    pub reply_octets: usize,
    /// One entry a peer.
    pub peers: Vec<PeerResult>,
}

/// One peer beside raw TCP.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PeerResult {
    /// Its name.
    pub peer: String,
    /// Round trips measured.
    pub samples: u64,
    /// Round trips of raw TCP measured beside them.
    pub raw_samples: u64,
    /// Median of the pairs' p50.
    pub p50_ns: f64,
    /// Median of the pairs' p99; none where a run was too short for it.
    pub p99_ns: Option<f64>,
    /// Median of the p50 of the raw runs.
    pub raw_p50_ns: f64,
    /// Median of the p99 of the raw runs.
    pub raw_p99_ns: Option<f64>,
    /// p50 over the p50 of the raw run before it.
    pub p50_ratio: Ratio,
    /// p99 over the p99 of the raw run before it.
    pub p99_ratio: Option<Ratio>,
    /// What all of this comes from.
    pub pairs: Vec<Pair>,
    /// All round trips: up to so many nanoseconds, so many of them; exact to three digits.
    pub histogram: Vec<(u64, u64)>,
    /// All round trips of raw TCP beside them.
    pub raw_histogram: Vec<(u64, u64)>,
}

/// What is kept of the runs of one peer at one case.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) pairs: Vec<Pair>,
    histogram: LatencyHistogram,
    raw_histogram: LatencyHistogram,
}

impl Kept {
    /// Keeps a run of the peer and the run of raw TCP before it. False: too short to say anything of.
    pub(super) fn keep(&mut self, round_trips_ns: &[u32], raw_ns: &[u32]) -> bool {
        let (Some(peer), Some(raw)) = (RunSummary::of(round_trips_ns), RunSummary::of(raw_ns))
        else {
            return false;
        };
        self.pairs.push(Pair { peer, raw });
        for (histogram, all) in [
            (&mut self.histogram, round_trips_ns),
            (&mut self.raw_histogram, raw_ns),
        ] {
            all.iter().for_each(|ns| histogram.record(i64::from(*ns)));
        }
        true
    }
}

/// Ratios of pairs: the middle one, and between which the middle half lies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The middle one.
    pub median: f64,
    /// The lower quartile.
    pub lower_quartile: f64,
    /// The upper quartile.
    pub upper_quartile: f64,
    /// How many.
    pub pairs: usize,
}

impl Ratio {
    /// Of these; none of none.
    #[must_use]
    pub fn of(mut ratios: Vec<f64>) -> Option<Self> {
        ratios.sort_by(f64::total_cmp);
        Some(Self {
            median: quantile(&ratios, 0.5)?,
            lower_quartile: quantile(&ratios, 0.25)?,
            upper_quartile: quantile(&ratios, 0.75)?,
            pairs: ratios.len(),
        })
    }
}

/// Of ascending values, between neighbours in proportion.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let place = share * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (
        sorted[place.floor() as usize],
        sorted[place.ceil() as usize],
    );
    Some(below + (above - below) * place.fract())
}

/// A run of a peer and the run of raw TCP directly before it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// The peer.
    pub peer: RunSummary,
    /// Raw TCP.
    pub raw: RunSummary,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RunSummary {
    /// Round trips.
    pub samples: u64,
    /// Half of them took at most this, nanoseconds.
    pub p50_ns: f64,
    /// All but one in a hundred took at most this, nanoseconds; none where there are too few to say.
    pub p99_ns: Option<f64>,
    /// The longest, nanoseconds.
    pub max_ns: f64,
}

impl RunSummary {
    /// Of one run's round trips, in order of time; none of too few.
    pub(super) fn of(round_trips_ns: &[u32]) -> Option<Self> {
        let values: Vec<i64> = round_trips_ns.iter().map(|ns| i64::from(*ns)).collect();
        let known = percentiles(&values, 0);
        let named = |name| {
            let found = known.iter().find(|percentile| percentile.name == name);
            found.map(|percentile| percentile.value as f64)
        };
        Some(Self {
            samples: values.len() as u64,
            p50_ns: named("p50")?,
            p99_ns: named("p99"),
            max_ns: *values.iter().max()? as f64,
        })
    }
}

impl PeerResult {
    /// From its pairs; none of none.
    pub(super) fn of(peer: &str, kept: &Kept) -> Option<Self> {
        let pairs = &kept.pairs;
        let median = |of: fn(&Pair) -> Option<f64>| {
            Ratio::of(pairs.iter().filter_map(of).collect()).map(|values| values.median)
        };
        let p99_ratio = |pair: &Pair| Some(pair.peer.p99_ns? / pair.raw.p99_ns?);
        Some(Self {
            peer: peer.to_owned(),
            samples: pairs.iter().map(|pair| pair.peer.samples).sum(),
            raw_samples: pairs.iter().map(|pair| pair.raw.samples).sum(),
            p50_ns: median(|pair| Some(pair.peer.p50_ns))?,
            p99_ns: median(|pair| pair.peer.p99_ns),
            raw_p50_ns: median(|pair| Some(pair.raw.p50_ns))?,
            raw_p99_ns: median(|pair| pair.raw.p99_ns),
            p50_ratio: Ratio::of(
                pairs
                    .iter()
                    .map(|pair| pair.peer.p50_ns / pair.raw.p50_ns)
                    .collect(),
            )?,
            p99_ratio: Ratio::of(pairs.iter().filter_map(p99_ratio).collect()),
            pairs: pairs.clone(),
            histogram: kept.histogram.recorded().collect(),
            raw_histogram: kept.raw_histogram.recorded().collect(),
        })
    }
}

/// Our raw TCP ping-pong beside sockperf's, of the same octets both ways.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BaselineCheck {
    /// Octets each way.
    pub octets: usize,
    /// Median of our p50.
    pub raw_p50_ns: f64,
    /// Median of sockperf's p50, whole round trips.
    pub sockperf_p50_ns: f64,
    /// Our p50 over sockperf's, run by run.
    pub p50_ratio: Ratio,
    /// Our p99 over sockperf's, run by run.
    pub p99_ratio: Option<Ratio>,
}

/// A peer that is not here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skip {
    /// Which.
    pub peer: String,
    /// Why.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(p50_us: u32, p99_us: u32) -> Vec<u32> {
        let at = |index| if index % 50 == 49 { p99_us } else { p50_us };
        (0..2_000).map(|index| at(index) * 1_000).collect()
    }

    #[test]
    fn a_ratio_is_of_each_pair_and_the_middle_of_them_is_told() {
        let mut kept = Kept::default();
        for (raw, peer) in [(10, 15), (20, 22), (40, 100)] {
            assert!(kept.keep(&run(peer, 3 * peer), &run(raw, 2 * raw)));
        }
        let result = PeerResult::of("ours", &kept).expect("pairs");
        assert_eq!(result.p50_ratio.median, 1.5);
        assert_eq!(result.p50_ratio.lower_quartile, 1.3);
        assert_eq!(result.p50_ratio.upper_quartile, 2.0);
        assert_eq!(result.p99_ratio.expect("enough").median, 2.25);
        assert_eq!(
            (result.samples, result.p50_ns, result.raw_p50_ns),
            (6_000, 22_000.0, 20_000.0)
        );
        let counted: u64 = result.histogram.iter().map(|(_, count)| count).sum();
        assert_eq!(counted, result.samples);
    }

    #[test]
    fn a_percentile_that_a_run_cannot_support_is_not_told() {
        assert_eq!(RunSummary::of(&[7; 100]).expect("a median").p99_ns, None);
        assert_eq!(RunSummary::of(&[7; 5]), None);
        assert_eq!(Ratio::of(Vec::new()), None);
    }
}
