//! What a bench found: pairs, ratios, and where they come from. `result.json` in the bench's folder.

use deckwatch_meter::histogram::LatencyHistogram;
use deckwatch_meter::result::{Provenance, Warning};
use deckwatch_meter::statistics::percentiles;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::case::Case;
use super::kind::Kind;
use super::process::Ran;
use super::variant::Variant;

/// A whole bench. Every time is in nanoseconds; those of calls are round trips.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bench {
    /// Version of this document's shape.
    pub schema_version: u32,
    /// The kind that was asked for, or `all`.
    pub bench: String,
    /// When, where, with what.
    pub provenance: Provenance,
    /// Rounds that were asked for.
    pub rounds: usize,
    /// The table: what is aimed at, and how we and the others stand.
    pub standings: Vec<Standing>,
    /// What was measured, a kind and condition each.
    pub parts: Vec<Part>,
    /// Peers that are not here, or not for everything, and why.
    pub skipped: Vec<Skip>,
    /// What the peers cannot do, or what of them cannot be seen.
    pub notes: Vec<String>,
    /// What the bench says about its own numbers.
    pub warnings: Vec<Warning>,
}

/// The present version of the document's shape.
pub(super) const SCHEMA_VERSION: u32 = 2;

/// The JSON Schema of a bench's result, as it is published in `docs/schema`.
#[must_use]
pub fn json_schema() -> String {
    let schema = schemars::schema_for!(Bench);
    format!("{:#}\n", schema.as_value())
}

/// What one kind found in one condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// The kind.
    pub kind: Kind,
    /// Processors and class of both ends, in words.
    pub condition: String,
    /// Targets hold for this condition.
    pub is_judged: bool,
    /// How our ends wait, and over what they talk.
    pub variant: Variant,
    /// One entry an operation and size.
    pub cases: Vec<CaseResult>,
    /// One entry a peer and way of serving.
    pub counts: Vec<CountResult>,
    /// One entry a peer and number of connections.
    pub memory: Vec<MemoryResult>,
    /// The baseline beside a second instrument.
    pub baseline_check: Option<BaselineCheck>,
}

/// A line of the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Standing {
    /// What is measured, over what.
    pub measure: String,
    /// Processors and class, in words.
    pub condition: String,
    /// Our own.
    pub ours: Option<Ratio>,
    /// What is aimed at, in words.
    pub target: String,
    /// The same of others.
    pub peers: Vec<PeerRatio>,
    /// Whether ours is what is aimed at; none where that is not to be judged here, or was not measured.
    pub is_met: Option<bool>,
}

/// What is measured, of a peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PeerRatio {
    /// Its name.
    pub peer: String,
    /// The same as of ours.
    pub ratio: Ratio,
}

/// What the server of a peer does for one request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountResult {
    /// Its name.
    pub peer: String,
    /// How it waits, and over what it talks.
    pub variant: Variant,
    /// Requests that were counted.
    pub requests: u64,
    /// Calls of the C library's allocator a request; none where it cannot be counted.
    pub allocations: Option<f64>,
    /// Mutexes taken a request; none where they cannot be seen.
    pub mutex_locks: Option<f64>,
    /// Waits for locks and conditions a request.
    pub waits: Option<f64>,
    /// System calls a request.
    pub system_calls: Option<f64>,
}

/// Memory of the server of a peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryResult {
    /// Its name.
    pub peer: String,
    /// Connections that are open, each of which has had a call answered.
    pub connections: usize,
    /// Octets of memory that it has, the part that is shared with others whole.
    pub resident_octets: u64,
    /// The same without what files stand behind: what it has taken itself.
    pub anonymous_octets: u64,
}

/// One operation at one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseResult {
    /// What was sent, and beside what.
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

/// One peer beside its baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PeerResult {
    /// Its name.
    pub peer: String,
    /// Round trips or messages measured.
    pub samples: u64,
    /// Those of the baseline.
    pub baseline_samples: u64,
    /// Median of the runs' time a call or message.
    pub mean_ns: f64,
    /// Median of the runs' p50; none of streams.
    pub p50_ns: Option<f64>,
    /// Median of the runs' p99; none where a run was too short for it.
    pub p99_ns: Option<f64>,
    /// Median of the baseline's time a call or message.
    pub baseline_mean_ns: f64,
    /// Median of the p50 of the baseline's runs.
    pub baseline_p50_ns: Option<f64>,
    /// Median of the p99 of the baseline's runs.
    pub baseline_p99_ns: Option<f64>,
    /// p50 over the p50 of the baseline's run before it.
    pub p50_ratio: Option<Ratio>,
    /// p99 over the p99 of the baseline's run before it.
    pub p99_ratio: Option<Ratio>,
    /// What it carries in a time, over what the baseline carried in as much.
    pub rate_ratio: Ratio,
    /// What all of this comes from.
    pub pairs: Vec<Pair>,
    /// All round trips: up to so many nanoseconds, so many of them; exact to three digits.
    pub histogram: Vec<(u64, u64)>,
    /// All round trips of the baseline.
    pub baseline_histogram: Vec<(u64, u64)>,
}

/// What is kept of the runs of one peer at one case.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) pairs: Vec<Pair>,
    histogram: LatencyHistogram,
    baseline_histogram: LatencyHistogram,
}

impl Kept {
    /// Keeps a run of the peer and the run of its baseline before it. False: too short to say anything of.
    pub(super) fn keep(&mut self, peer: &Ran, baseline: &Ran) -> bool {
        let (Some(of_peer), Some(of_baseline)) = (RunSummary::of(peer), RunSummary::of(baseline))
        else {
            return false;
        };
        self.pairs.push(Pair {
            peer: of_peer,
            baseline: of_baseline,
        });
        for (histogram, ran) in [
            (&mut self.histogram, peer),
            (&mut self.baseline_histogram, baseline),
        ] {
            if let Ran::RoundTrips(all) = ran {
                all.iter().for_each(|ns| histogram.record(i64::from(*ns)));
            }
        }
        true
    }
}

/// Ratios of pairs: the middle one, and between which the middle half lies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Of one value that was not found from pairs.
    #[must_use]
    pub const fn exactly(value: f64) -> Self {
        Self {
            median: value,
            lower_quartile: value,
            upper_quartile: value,
            pairs: 1,
        }
    }

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

/// A run of a peer and the run of its baseline directly before it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// The peer.
    pub peer: RunSummary,
    /// Its baseline.
    pub baseline: RunSummary,
}

impl Pair {
    /// p50 over the baseline's.
    pub(super) fn p50(&self) -> Option<f64> {
        Some(self.peer.p50_ns? / self.baseline.p50_ns?)
    }

    /// p99 over the baseline's.
    pub(super) fn p99(&self) -> Option<f64> {
        Some(self.peer.p99_ns? / self.baseline.p99_ns?)
    }

    /// What is carried in a time over what the baseline carried.
    pub(super) fn rate(&self) -> Option<f64> {
        Some(self.baseline.mean_ns / self.peer.mean_ns)
    }
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// Round trips or messages.
    pub samples: u64,
    /// Nanoseconds for each of them.
    pub mean_ns: f64,
    /// Half of the round trips took at most this, nanoseconds.
    pub p50_ns: Option<f64>,
    /// All but one in a hundred took at most this, nanoseconds; none where there are too few to say.
    pub p99_ns: Option<f64>,
    /// The longest, nanoseconds.
    pub max_ns: Option<f64>,
}

impl RunSummary {
    /// Of one run; none of too few round trips.
    pub(super) fn of(ran: &Ran) -> Option<Self> {
        let round_trips_ns = match ran {
            Ran::RoundTrips(round_trips_ns) => round_trips_ns,
            Ran::Sum { count: 0, .. } => return None,
            Ran::Sum { count, elapsed_ns } => {
                return Some(Self {
                    samples: *count,
                    mean_ns: *elapsed_ns as f64 / *count as f64,
                    p50_ns: None,
                    p99_ns: None,
                    max_ns: None,
                });
            }
        };
        let values: Vec<i64> = round_trips_ns.iter().map(|ns| i64::from(*ns)).collect();
        let known = percentiles(&values, 0);
        let named = |name| {
            let found = known.iter().find(|percentile| percentile.name == name);
            found.map(|percentile| percentile.value as f64)
        };
        Some(Self {
            samples: values.len() as u64,
            mean_ns: values.iter().sum::<i64>() as f64 / values.len() as f64,
            p50_ns: Some(named("p50")?),
            p99_ns: named("p99"),
            max_ns: values.iter().max().map(|ns| *ns as f64),
        })
    }
}

impl PeerResult {
    /// From its pairs; none of none.
    pub(super) fn of(peer: &str, kept: &Kept) -> Option<Self> {
        let pairs = &kept.pairs;
        let ratio = |of: fn(&Pair) -> Option<f64>| Ratio::of(pairs.iter().filter_map(of).collect());
        let median = |of: fn(&Pair) -> Option<f64>| ratio(of).map(|values| values.median);
        Some(Self {
            peer: peer.to_owned(),
            samples: pairs.iter().map(|pair| pair.peer.samples).sum(),
            baseline_samples: pairs.iter().map(|pair| pair.baseline.samples).sum(),
            mean_ns: median(|pair| Some(pair.peer.mean_ns))?,
            p50_ns: median(|pair| pair.peer.p50_ns),
            p99_ns: median(|pair| pair.peer.p99_ns),
            baseline_mean_ns: median(|pair| Some(pair.baseline.mean_ns))?,
            baseline_p50_ns: median(|pair| pair.baseline.p50_ns),
            baseline_p99_ns: median(|pair| pair.baseline.p99_ns),
            p50_ratio: ratio(Pair::p50),
            p99_ratio: ratio(Pair::p99),
            rate_ratio: ratio(Pair::rate)?,
            pairs: pairs.clone(),
            histogram: kept.histogram.recorded().collect(),
            baseline_histogram: kept.baseline_histogram.recorded().collect(),
        })
    }
}

/// Our raw TCP ping-pong beside sockperf's, of the same octets both ways.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skip {
    /// Which.
    pub peer: String,
    /// Why.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(p50_us: u32, p99_us: u32) -> Ran {
        let at = |index| if index % 50 == 49 { p99_us } else { p50_us };
        Ran::RoundTrips((0..2_000).map(|index| at(index) * 1_000).collect())
    }

    #[test]
    fn a_ratio_is_of_each_pair_and_the_middle_of_them_is_told() {
        let mut kept = Kept::default();
        for (raw, peer) in [(10, 15), (20, 22), (40, 100)] {
            assert!(kept.keep(&run(peer, 3 * peer), &run(raw, 2 * raw)));
        }
        let result = PeerResult::of("ours", &kept).expect("pairs");
        let p50 = result.p50_ratio.expect("round trips");
        assert_eq!(p50.median, 1.5);
        assert_eq!(p50.lower_quartile, 1.3);
        assert_eq!(p50.upper_quartile, 2.0);
        assert_eq!(result.p99_ratio.expect("enough").median, 2.25);
        assert_eq!(
            (result.samples, result.p50_ns, result.baseline_p50_ns),
            (6_000, Some(22_000.0), Some(20_000.0))
        );
        let counted: u64 = result.histogram.iter().map(|(_, count)| count).sum();
        assert_eq!(counted, result.samples);
    }

    #[test]
    fn a_stream_of_half_the_messages_in_the_same_time_has_half_the_rate() {
        let mut kept = Kept::default();
        let ran = |count, elapsed_ns| Ran::Sum { count, elapsed_ns };
        assert!(kept.keep(&ran(50, 1_000), &ran(100, 1_000)));
        assert!(!kept.keep(&ran(0, 1_000), &ran(100, 1_000)));
        let result = PeerResult::of("ours", &kept).expect("a pair");
        assert_eq!(result.rate_ratio.median, 0.5);
        assert_eq!((result.mean_ns, result.p50_ns), (20.0, None));
    }

    #[test]
    fn a_percentile_that_a_run_cannot_support_is_not_told() {
        let of = |count| RunSummary::of(&Ran::RoundTrips(vec![7; count]));
        assert_eq!(of(100).expect("a median").p99_ns, None);
        assert_eq!(of(5), None);
        assert_eq!(Ratio::of(Vec::new()), None);
    }

    #[test]
    fn the_published_schema_is_current() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema");
        let path = format!("{folder}/bench-{SCHEMA_VERSION}.json");
        if std::env::var_os("DECKWATCH_WRITE_SCHEMA").is_some() {
            std::fs::write(&path, json_schema()).expect("written");
        }
        let published = std::fs::read_to_string(&path).expect("a published schema");
        // As values: the order of members is not part of a schema, and depends on how serde_json was built.
        let value = |text: &str| -> serde_json::Value { serde_json::from_str(text).expect("JSON") };
        assert_eq!(
            value(&published),
            value(&json_schema()),
            "run this test once with DECKWATCH_WRITE_SCHEMA=1 and commit {path}"
        );
    }
}
