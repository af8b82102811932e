//! The result document: the run, its environment, and its results. `result.json` in the run's folder.
//!
//! All times are nanoseconds of CLOCK_MONOTONIC of the run's kernel; all latencies are one-way. The samples are beside
//! the document in `samples.parquet` ([`crate::samples`]), the histograms in `histograms/*.hlog`. A reader needs no
//! other file to interpret the numbers.

mod file;
mod load;

use std::collections::BTreeMap;

pub use file::{ResultError, json_schema, load_versioned, save_whole};
pub use load::{LoadReached, LoadResult};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blame::Road;
use crate::caution::Caution;
use crate::clock::SyncState;
use crate::sample::Layer;

/// The version of this document's structure. Readers accept this version and all earlier ones.
pub const SCHEMA_VERSION: u32 = 1;

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResultDocument {
    /// Version of the document's shape, [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Name of the mission, from its file, with the variant's where one was chosen.
    pub mission: String,
    /// The variant of the mission that was chosen.
    #[serde(default)]
    pub variant: Option<String>,
    /// What a paper printed of the experiment that this run repeats, where the mission gives it.
    #[serde(default)]
    pub published: Option<Published>,
    /// When, where, with what the run was made.
    pub provenance: Provenance,
    /// The network and hosts as they were emulated, or why they were not.
    pub environment: Environment,
    /// One entry for each flow over each carrier.
    pub flows: Vec<FlowResult>,
    /// The worst of all flows.
    pub verdict: Verdict,
    /// Warnings of the run about itself.
    pub warnings: Vec<Warning>,
    /// Processes that ended before they should have.
    pub deaths: Vec<Death>,
    /// Carriers of `--carriers all` that were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// What a paper printed of the experiment that a run repeats, in the paper's own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Published {
    /// The paper and the place in it.
    pub source: String,
    /// Number and caption of the figure.
    pub figure: String,
    /// Its late messages.
    pub late: String,
}

/// Where a number comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// The command line, word by word.
    pub command: Vec<String>,
    /// Version of this program, and its commit where it was built in a checkout.
    pub version: String,
    /// `release` or `debug`.
    pub profile: String,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// How long the run took, seconds.
    pub duration_s: f64,
    /// The mission file's path and whole text.
    pub mission_path: String,
    /// The mission file's text.
    pub mission_text: String,
    /// SHA-like digest is not needed: the text is kept. Facts of the machine by name, for example `kernel`,
    /// `cpu_model`, `governor`, `clocksource`, `rt_runtime_us`.
    pub machine: BTreeMap<String, String>,
    /// Readings before, during and after: `steal_ticks`, `psi_cpu_some_us`, `udp_rcvbuf_errors`, ... as differences
    /// over the run.
    pub disturbance: BTreeMap<String, f64>,
    /// The clock of all stamps, and how kernel stamps were converted to it.
    pub clock: ClockNote,
}

/// What the stamps are worth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockNote {
    /// True where both ends of every flow read one clock, so that one-way latency is exact.
    pub shared: bool,
    /// In words, for the report.
    pub note: String,
    /// Bound of the error of a converted kernel stamp, nanoseconds.
    pub conversion_error_ns: u64,
    /// Where the ends have different clocks: bound of the error of a one-way latency, nanoseconds. Absent if the clocks
    /// are not related; then one-way latency is not claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_error_ns: Option<u64>,
    /// The same at 95% confidence, if the shortest times of both directions between the hosts are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_assumed_ns: Option<u64>,
    /// What keeps the clocks of the hosts right, by host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sync: BTreeMap<String, SyncState>,
}

/// Hosts and network of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// `namespaces` or `loopback`.
    pub kind: String,
    /// The network's name, for example `gigabit-ethernet`, and its parameters in words.
    pub network: String,
    /// What the network does as a real one, and what it does not; absent on loopback and in older documents.
    #[serde(default)]
    pub fidelity: Option<Fidelity>,
    /// Why loopback, where namespaces were asked for.
    pub fallback_reason: Option<String>,
    /// Hosts by name, with their addresses.
    pub hosts: BTreeMap<String, String>,
    /// Loads in words, by host.
    pub loads: Vec<String>,
    /// The same as data; absent in older documents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_results: Vec<LoadResult>,
}

/// What an emulated network does as a real one, and what it does not, a clause each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fidelity {
    /// What is emulated.
    pub emulated: Vec<String>,
    /// What is not, with the size of the difference.
    pub not_emulated: Vec<String>,
}

/// One flow over one carrier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowResult {
    /// Index used in the samples' `flow` column.
    pub index: u16,
    /// Name of the flow in the mission file.
    pub name: String,
    /// Name of the carrier, for example `udp` or `event`.
    pub carrier: String,
    /// Place of the carrier among those of the program that wrote the document, by which reports colour it; absent in
    /// older documents.
    #[serde(default)]
    pub carrier_index: Option<u16>,
    /// The layers that the carrier's messages pass; absent in older documents.
    #[serde(default)]
    pub road: Option<Road>,
    /// The IDL type, or `octets`.
    pub type_name: String,
    /// Octets of one message's CDR encoding.
    pub size_bytes: u64,
    /// Supplier's host.
    pub from: String,
    /// Mean messages a second by the schedule.
    pub rate_hz: f64,
    /// `periodic`, `poisson`, `bursts`.
    pub arrivals: String,
    /// Deadline after due, nanoseconds.
    pub deadline_ns: u64,
    /// Allowed late messages, as in "3 in 10_000".
    pub budget: LateBudget,
    /// Scheduling class asked for and got, in words.
    pub scheduling: String,
    /// What the middleware did with the flow's settings; absent if the carrier is built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<FlowSettings>,
    /// Layers reported together because a stamp was not to be had, for example "middleware and stack".
    pub merged_layers: Vec<String>,
    /// Per destination; the worst decides.
    pub destinations: Vec<DestinationResult>,
    /// The worst of the destinations.
    pub verdict: Verdict,
}

/// What the middleware of an external carrier did with the settings of a flow, each by its word.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowSettings {
    /// Settings that the middleware took over.
    pub honoured: Vec<String>,
    /// Settings that it has no equal for, or did not report.
    pub ignored: Vec<String>,
}

impl FlowSettings {
    /// Returns the settings in words.
    #[must_use]
    pub fn in_words(&self) -> String {
        let listed = |words: &[String]| match words {
            [] => "none".to_owned(),
            words => words.join(", "),
        };
        let (honoured, ignored) = (listed(&self.honoured), listed(&self.ignored));
        format!("honoured: {honoured}; ignored: {ignored}")
    }
}

/// A carrier that the run left out because its program did not start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// The carrier's name.
    pub carrier: String,
    /// Why, with what to do.
    pub reason: String,
}

impl ResultDocument {
    /// Returns the warnings of the run, as they are shown: those that differ only in the carrier are one.
    #[must_use]
    pub fn folded_warnings(&self) -> Vec<Warning> {
        let carriers: Vec<&str> = self
            .flows
            .iter()
            .map(|flow| flow.carrier.as_str())
            .collect();
        crate::caution::fold(&self.warnings, &carriers)
    }
}

impl FlowResult {
    /// Returns the destination whose verdict is the flow's: the worst, and of equal ones that with the largest upper
    /// bound.
    #[must_use]
    pub fn deciding(&self) -> Option<&DestinationResult> {
        deciding(&self.destinations)
    }

    /// Returns the layers that the carrier's messages pass. For older documents: the layers for which they have times.
    #[must_use]
    pub fn road(&self) -> Road {
        let names = |layer: Layer| {
            self.destinations
                .iter()
                .flat_map(|destination| destination.layers_ns.keys())
                .any(|name| name.contains(layer.name()))
        };
        self.road.unwrap_or_else(|| Road {
            middleware: names(Layer::Middleware),
            channel: names(Layer::Channel),
        })
    }
}

/// Returns the destination that decides the flow's verdict.
pub(crate) fn deciding(destinations: &[DestinationResult]) -> Option<&DestinationResult> {
    destinations.iter().max_by(|a, b| {
        let upper = a.late_rate.upper.total_cmp(&b.late_rate.upper);
        a.verdict.kind.cmp(&b.verdict.kind).then(upper)
    })
}

/// Late messages a mission allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LateBudget {
    /// At most this many late messages ...
    pub late: u64,
    /// ... in this many.
    pub of: u64,
}

/// One flow over one carrier at one destination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DestinationResult {
    /// Index used in the samples' `destination_index` column.
    pub index: u16,
    /// Destination host.
    pub host: String,
    /// Counts; warm-up left out.
    pub counts: Counts,
    /// Share of late messages with one-sided 95% bounds, which hold for the assumed `bursts`.
    pub late_rate: LateRate,
    /// The bursts of late messages for which bounds and verdict hold; absent in older documents.
    #[serde(default)]
    pub bursts: Option<Bursts>,
    /// Latency from due to received, nanoseconds: percentiles that the sample supports, by name (`p50`, `p90`, `p99`,
    /// `p99.9`, ...), with `min` and `max`.
    pub latency_ns: BTreeMap<String, u64>,
    /// Of the percentiles among these, where they lie: one-sided 95% bounds if latencies are independent, widened
    /// where the run shows that long ones cluster.
    #[serde(default)]
    pub latency_intervals_ns: BTreeMap<String, Interval>,
    /// The same for the gap between arrivals.
    pub inter_arrival_ns: BTreeMap<String, u64>,
    /// Bound of the error of these latencies that the clocks of the two ends cause, nanoseconds; absent if both ends
    /// read one clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_error_ns: Option<u64>,
    /// The same at 95% confidence, if the shortest times of both directions between the hosts are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_assumed_ns: Option<u64>,
    /// Late messages by the layer blamed.
    pub blame: BTreeMap<String, u64>,
    /// Mean nanoseconds a late message spent in each layer, by layer in order of the road.
    pub late_layers_ns: BTreeMap<String, u64>,
    /// Median nanoseconds of all messages in each layer.
    pub layers_ns: BTreeMap<String, u64>,
    /// Execution times of the consumer's handler beside its declared worst case; absent if the mission declares none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<HandlerResult>,
    /// Verdict of this destination.
    pub verdict: Verdict,
}

/// Execution times of a consumer's handler: processor time of its thread, of each judged message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HandlerResult {
    /// Declared worst-case execution time, nanoseconds.
    pub worst_case_ns: u64,
    /// Messages whose handling was measured.
    pub executions: u64,
    /// Messages whose handling took longer than the worst case.
    pub exceeded: u64,
    /// Longest execution time, nanoseconds.
    pub longest_ns: u64,
    /// Late messages blamed on the application that waited behind a message whose handling took longer than the worst
    /// case.
    pub late_behind: u64,
}

impl DestinationResult {
    /// Whether its latencies can be compared with the deadline of the flow: they cannot if the error of the clocks is as
    /// large.
    #[must_use]
    pub fn is_comparable(&self, deadline_ns: u64) -> bool {
        self.clock_error_ns
            .is_none_or(|error_ns| error_ns < deadline_ns)
    }
}

/// Counts of one destination; `due` is the number judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Messages due in the judged part.
    pub due: u64,
    /// Received at least once.
    pub received: u64,
    /// Received more than the deadline after due, or lost.
    pub late: u64,
    /// Never received within the drain.
    pub lost: u64,
    /// Gaps between arrivals greater than period plus deadline (the paper's rule).
    pub late_by_inter_arrival: u64,
    /// Arrived after one with a higher sequence number.
    pub out_of_order: u64,
    /// Second and later copies.
    pub duplicates: u64,
    /// Sends that returned an error, a refusal by the peer included.
    pub send_errors: u64,
    /// Dropped by a full receive buffer of this flow.
    pub receive_overflows: u64,
    /// Messages of the warm-up, not judged.
    pub warm_up: u64,
}

/// Where a percentile lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// One-sided 95% lower bound, nanoseconds.
    pub lower: u64,
    /// One-sided 95% upper bound, nanoseconds; none if the messages are too few, or too many were lost.
    pub upper: Option<u64>,
}

/// Share of late messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LateRate {
    /// late / due.
    pub estimate: f64,
    /// One-sided 95% lower bound.
    pub lower: f64,
    /// One-sided 95% upper bound.
    pub upper: f64,
    /// True where the bounds are wider than the exact binomial ones, because they allow for bursts.
    pub widened: bool,
}

/// The bursts in which late messages may come. Bounds and verdict hold if bursts are independent of each other and no
/// burst has more late messages than assumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bursts {
    /// Late messages in the largest burst for which the verdict must hold.
    pub asked: u64,
    /// Where that number comes from.
    pub asked_by: AskedBy,
    /// Late messages in the longest burst of the run; 0 if none was late.
    pub seen: u64,
    /// The largest burst for which the bounds of the late rate hold: at least `asked`, and at least the longest burst
    /// of the run that is longer than chance makes it.
    pub assumed: u64,
    /// The largest burst for which the verdict holds. For UNPROVEN and INVALID: for which the budget is proved. None if
    /// it is not proved even for bursts of 1.
    pub holds_for: Option<u64>,
}

/// Where the burst comes from for which a verdict must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AskedBy {
    /// The mission file, by `clusters` or `stall`.
    Mission,
    /// The deadline: a stall as long as the deadline holds up this many messages.
    Deadline,
    /// The longest disturbance that the run saw, at latencies below the deadline.
    Disturbance,
}

/// Whether the mission's budget is met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The word.
    pub kind: VerdictKind,
    /// In whole sentences, why.
    pub reasons: Vec<String>,
    /// For INVALID, and for UNPROVEN where processor time was withheld: in whole sentences, what to do before the next
    /// run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remedies: Vec<String>,
    /// For UNPROVEN: how many messages more would prove it, if none or as many as now are late.
    pub messages_needed: Option<u64>,
}

/// The four verdicts, ordered from best to worst.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum VerdictKind {
    /// The upper bound of the late rate is within the budget.
    Pass,
    /// Neither yet.
    Unproven,
    /// The lower bound of the late rate is above the budget.
    Fail,
    /// The run cannot be judged.
    Invalid,
}

impl VerdictKind {
    /// Its name, as in a result document.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Unproven => "UNPROVEN",
            Self::Fail => "FAIL",
            Self::Invalid => "INVALID",
        }
    }
}

/// Something the reader must know before trusting a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// A short stable word, for example `merged-layers`, `schedule-not-kept`, `capture-dropped`.
    pub kind: String,
    /// The sentence.
    pub text: String,
}

impl From<Caution> for Warning {
    fn from(caution: Caution) -> Self {
        Self {
            kind: caution.kind().to_owned(),
            text: caution.to_string(),
        }
    }
}

/// A process that died.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Death {
    /// What it was, for example `consumer of NAV over event at SONAR`.
    pub process: String,
    /// How it ended, for example `killed by signal 9`.
    pub how: String,
    /// When, nanoseconds since the schedule's start.
    pub at_ns: i64,
}
