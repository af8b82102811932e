//! The result of a bench or an experiment: every measurement with its whole histogram, and the figures drawn from them.
//! `result.json` in the result folder.
//!
//! A figure is kept as the numbers on its axes. A program that knows nothing of the experiment can still draw the
//! report.

mod ends;
mod median;
mod soak;
mod standing;

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::result::{Fidelity, Provenance, ResultError, Warning, load_versioned, save_whole};
use crate::statistics::percentiles;

pub use ends::{EndNote, MachineState};
pub use median::{INTERVAL_VALUES_MIN, MedianInterval, median_interval};
pub use soak::{MACHINE, Quantity, Soak, SoakCheck, SoakFault, SoakSeries, SoakTrend};
pub use standing::{Bound, PeerRatio, Ratio, Standing, TargetVerdict};

/// The version of this document's shape. Readers accept this version and all earlier ones.
pub const EXPERIMENT_SCHEMA_VERSION: u32 = 2;

/// A whole bench or experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentDocument {
    /// Version of the document's shape, [`EXPERIMENT_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// `invert`, `costs`, `invoke`, `marshal`, or `bench` and its kind.
    pub experiment: String,
    /// The subject, in one line.
    pub title: String,
    /// The paper, its section and figures; of a bench, the method.
    pub source: String,
    /// Time, machine and program.
    pub provenance: Provenance,
    /// Processors and scheduling classes of both ends, in words.
    pub condition: String,
    /// Parameters of the experiment, by name, in words.
    pub parameters: BTreeMap<String, String>,
    /// Performance targets and the results against them; only a bench has targets.
    #[serde(default)]
    pub standings: Vec<Standing>,
    /// What raw TCP and a system call take on this machine, before and after; only a bench has them.
    #[serde(default)]
    pub machine_states: Vec<MachineState>,
    /// All measurements, in the order of the systems and their cases.
    pub measurements: Vec<Measurement>,
    /// The figures, drawn from these measurements.
    pub figures: Vec<Figure>,
    /// Systems and parts that are missing, and why.
    pub skipped: Vec<Skip>,
    /// Known limits of the compared systems, in words.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Reasons to doubt these numbers.
    pub warnings: Vec<Warning>,
    /// What the emulated network does as a real one, and what it does not; absent without one, and in older documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fidelity: Option<Fidelity>,
    /// The verdict of a soak; others have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak: Option<Soak>,
}

/// One system in one case. Names of values end with their unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// An ORB, or raw TCP.
    pub system: String,
    /// The operation measured, in words.
    pub case: String,
    /// The kind of bench and its condition. Empty in an experiment, which has one condition.
    #[serde(default)]
    pub group: String,
    /// The varied parameters: `servants`, `payload_octets`, `low_clients`, ...
    pub factors: BTreeMap<String, f64>,
    /// The results: `p50_ns`, `jitter_ns`, `throughput_bit_s`, `locks_per_request`, ... A percentile that the sample
    /// does not support is missing.
    pub values: BTreeMap<String, f64>,
    /// The values that were found once in each run, in the order of the rounds. `values` has their medians.
    #[serde(default)]
    pub runs: BTreeMap<String, Vec<f64>>,
    /// The ends as the kernel described them during the warm-up run; only a bench has them.
    #[serde(default)]
    pub ends: Vec<EndNote>,
    /// Number of calls or messages measured.
    pub samples: u64,
    /// All samples: upper bound in nanoseconds, number of samples; exact to three digits.
    pub histogram: Vec<(u64, u64)>,
}

impl Measurement {
    /// Median and quartiles of a value over the runs. Returns `None` if no run has it.
    #[must_use]
    pub fn ratio(&self, value: &str) -> Option<Ratio> {
        Ratio::of(self.runs.get(value)?.clone())
    }
}

/// A figure as numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// The title.
    pub title: String,
    /// The figure of the paper that it repeats.
    pub source: String,
    /// How the points are joined.
    pub kind: FigureKind,
    /// The horizontal axis.
    pub x: AxisNote,
    /// The vertical axis.
    pub y: AxisNote,
    /// The lines, or the groups of bars.
    pub curves: Vec<Curve>,
    /// Notes for the reader, in sentences.
    pub notes: Vec<String>,
}

/// How the points of a figure are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FigureKind {
    /// Lines over a numeric axis.
    Lines,
    /// One bar for each point, over the words of the axis.
    Bars,
}

/// The label and scale of an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AxisNote {
    /// The quantity, in words.
    pub label: String,
    /// `ns`, `share`, `octets`, `bit/s` or empty for a plain number.
    pub unit: String,
    /// The scale is logarithmic.
    pub is_logarithmic: bool,
    /// The words at 0, 1, 2, ...; only the horizontal axis of bars has words.
    pub words: Vec<String>,
}

impl AxisNote {
    /// An axis with a label and unit.
    #[must_use]
    pub fn new(label: &str, unit: &str, is_logarithmic: bool) -> Self {
        Self {
            label: label.to_owned(),
            unit: unit.to_owned(),
            is_logarithmic,
            words: Vec::new(),
        }
    }
}

/// One line of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// Its name in the key of the figure.
    pub label: String,
    /// In ascending order of `x`.
    pub points: Vec<Point>,
}

/// One point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// On the horizontal axis.
    pub x: f64,
    /// On the vertical axis.
    pub y: f64,
    /// The lower end of the error bar, if the point has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper end of the error bar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

impl Point {
    /// A point without an error bar.
    #[must_use]
    pub const fn new(x: f64, y: f64) -> Self {
        Self {
            x,
            y,
            low: None,
            high: None,
        }
    }
}

/// A system or part that was not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skip {
    /// Its name.
    pub what: String,
    /// The reason.
    pub reason: String,
}

impl ExperimentDocument {
    /// Reads a document of this version or an earlier one.
    ///
    /// # Errors
    /// [`ResultError`]: the file cannot be read, is too large, is damaged, or is of a later version.
    pub fn load(path: &Path) -> Result<Self, ResultError> {
        load_versioned(path, EXPERIMENT_SCHEMA_VERSION)
    }

    /// Writes the document to a temporary file and renames it, so that no reader sees half of it.
    ///
    /// # Errors
    /// [`ResultError`]: the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), ResultError> {
        save_whole(self, path)
    }

    /// A curve of `value` over `factor`, in order of the factor. Measurements that `wanted` refuses, or that lack one
    /// of the two, are left out.
    #[must_use]
    pub fn curve(
        measurements: &[Measurement],
        label: &str,
        factor: &str,
        value: &str,
        wanted: impl Fn(&Measurement) -> bool,
    ) -> Curve {
        let point =
            |of: &Measurement| Some(Point::new(*of.factors.get(factor)?, *of.values.get(value)?));
        let mut points: Vec<Point> = (measurements.iter().filter(|of| wanted(of)))
            .filter_map(point)
            .collect();
        points.sort_by(|one, other| one.x.total_cmp(&other.x));
        Curve {
            label: label.to_owned(),
            points,
        }
    }
}

/// Returns statistics of times, by name: mean, jitter (the standard deviation, as in the papers), minimum, maximum, and
/// the percentiles that the sample supports.
#[must_use]
pub fn time_values(times_ns: &[i64]) -> BTreeMap<String, f64> {
    let mut values = BTreeMap::new();
    let (Some(least), Some(greatest)) = (times_ns.iter().min(), times_ns.iter().max()) else {
        return values;
    };
    let count = times_ns.len() as f64;
    let mean = times_ns.iter().map(|ns| *ns as f64).sum::<f64>() / count;
    values.insert("mean_ns".to_owned(), mean);
    values.insert("min_ns".to_owned(), *least as f64);
    values.insert("max_ns".to_owned(), *greatest as f64);
    if times_ns.len() > 1 {
        let squares: f64 = times_ns.iter().map(|ns| (*ns as f64 - mean).powi(2)).sum();
        values.insert("jitter_ns".to_owned(), (squares / (count - 1.0)).sqrt());
    }
    for percentile in percentiles(times_ns, 0) {
        values.insert(format!("{}_ns", percentile.name), percentile.value as f64);
    }
    values
}

/// The JSON Schema of [`ExperimentDocument`], as published in `docs/schema`.
#[must_use]
pub fn experiment_json_schema() -> String {
    let schema = schemars::schema_for!(ExperimentDocument);
    format!("{:#}\n", schema.as_value())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_the_standard_deviation_and_a_percentile_beyond_the_sample_is_not_there() {
        let values = time_values(&[10, 20, 30, 40]);
        assert_eq!(values["mean_ns"], 25.0);
        assert!(
            (values["jitter_ns"] - 12.909_944).abs() < 1e-3,
            "{values:?}"
        );
        assert!(!values.contains_key("p50_ns"), "{values:?}");
        let many: Vec<i64> = (1..=1_000).collect();
        let values = time_values(&many);
        assert_eq!((values["p50_ns"], values["p99_ns"]), (500.0, 990.0));
        assert!(!values.contains_key("p99.9_ns"));
        assert!(time_values(&[]).is_empty());
        let one = time_values(&[5]);
        assert_eq!((one["mean_ns"], one.get("jitter_ns")), (5.0, None));
    }

    #[test]
    fn a_curve_is_in_order_of_its_factor_and_leaves_out_what_was_not_found() {
        let measurement = |clients: f64, value: Option<f64>| Measurement {
            system: "one".to_owned(),
            case: "high".to_owned(),
            group: String::new(),
            runs: BTreeMap::new(),
            ends: Vec::new(),
            factors: BTreeMap::from([("low_clients".to_owned(), clients)]),
            values: value
                .map(|value| ("p50_ns".to_owned(), value))
                .into_iter()
                .collect(),
            samples: 1,
            histogram: Vec::new(),
        };
        let all = [
            measurement(10.0, Some(3.0)),
            measurement(0.0, Some(1.0)),
            measurement(5.0, None),
        ];
        let curve =
            ExperimentDocument::curve(&all, "one", "low_clients", "p50_ns", |of| of.case == "high");
        let points: Vec<(f64, f64)> = curve
            .points
            .iter()
            .map(|point| (point.x, point.y))
            .collect();
        assert_eq!(points, [(0.0, 1.0), (10.0, 3.0)]);
    }

    #[test]
    fn the_ratio_of_a_value_is_that_of_its_runs() {
        let mut measurement: Measurement = serde_json::from_value(serde_json::json!({
            "system": "one", "case": "high", "factors": {}, "values": {}, "samples": 1, "histogram": []
        }))
        .expect("a measurement");
        assert_eq!(measurement.ratio("p50"), None);
        let runs = vec![3.0, 1.0, 2.0];
        measurement.runs.insert("p50".to_owned(), runs.clone());
        assert_eq!(measurement.ratio("p50"), Ratio::of(runs));
        assert_eq!(
            measurement.ratio("p50").map(|ratio| ratio.median),
            Some(2.0)
        );
    }

    #[test]
    fn a_document_reads_back_as_it_was_saved() {
        let document: ExperimentDocument = serde_json::from_value(serde_json::json!({
            "schema_version": 2, "experiment": "costs", "title": "t", "source": "s",
            "provenance": {
                "command": [], "version": "1", "profile": "debug", "started_at": "now", "duration_s": 1.5,
                "mission_path": "", "mission_text": "", "machine": {}, "disturbance": {},
                "clock": { "shared": true, "note": "", "conversion_error_ns": 0 }
            },
            "condition": "one processor", "parameters": {}, "measurements": [], "figures": [],
            "skipped": [], "warnings": []
        }))
        .expect("a document");
        let name = format!("deckwatch-meter-experiment-{}.json", std::process::id());
        let path = std::env::temp_dir().join(name);
        document.save(&path).expect("saved");
        let found = ExperimentDocument::load(&path);
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(found.expect("loaded"), document);
    }

    #[test]
    fn the_published_schema_is_current() {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/experiment-2.json");
        if std::env::var_os("DECKWATCH_WRITE_SCHEMA").is_some() {
            std::fs::write(&path, experiment_json_schema()).expect("written");
        }
        let published = std::fs::read_to_string(&path).expect("docs/schema/experiment-2.json");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert!(
            value(&published) == value(&experiment_json_schema()),
            "run this test once with DECKWATCH_WRITE_SCHEMA=1 and commit docs/schema/experiment-2.json"
        );
    }
}
