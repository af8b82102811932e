//! What an experiment found: every measurement with its whole histogram, and the figures drawn of them. `result.json` in the experiment's folder.
//!
//! A figure is kept as the numbers on its axes, so that a report is drawn years later by a program that knows nothing of what was measured.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::result::{Provenance, ResultError, Warning, load_versioned, save_whole};
use crate::statistics::percentiles;

/// The version of this document's shape; readers accept this one and all before it.
pub const EXPERIMENT_SCHEMA_VERSION: u32 = 1;

/// A whole experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentDocument {
    /// Version of the document's shape, [`EXPERIMENT_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// `invert`, `costs`, `invoke` or `marshal`.
    pub experiment: String,
    /// What it is about, in a line.
    pub title: String,
    /// The paper, its section and figures.
    pub source: String,
    /// When, where, with what.
    pub provenance: Provenance,
    /// Processors and scheduling classes of both ends, in words.
    pub condition: String,
    /// What was asked for, by name, in words.
    pub parameters: BTreeMap<String, String>,
    /// All that was measured, in the order of the systems and their cases.
    pub measurements: Vec<Measurement>,
    /// The paper's figures, from these measurements.
    pub figures: Vec<Figure>,
    /// Systems and parts that are not here, and why.
    pub skipped: Vec<Skip>,
    /// What the experiment says about its own numbers.
    pub warnings: Vec<Warning>,
}

/// One system in one case. Names of values end with their unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// Which ORB, or raw TCP.
    pub system: String,
    /// What was done, in words.
    pub case: String,
    /// What was varied: `servants`, `payload_octets`, `low_clients`, ...
    pub factors: BTreeMap<String, f64>,
    /// What was found: `p50_ns`, `jitter_ns`, `throughput_bit_s`, `locks_per_request`, ... A percentile that the sample does not support is not here.
    pub values: BTreeMap<String, f64>,
    /// Calls measured.
    pub samples: u64,
    /// All of them: up to so many nanoseconds, so many of them; exact to three digits.
    pub histogram: Vec<(u64, u64)>,
}

/// A figure as numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// What it shows.
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
    /// What a reader must know, in sentences.
    pub notes: Vec<String>,
}

/// How the points of a figure are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FigureKind {
    /// By lines, over a numeric axis.
    Lines,
    /// Not at all: a bar a point, over the axis's words.
    Bars,
}

/// What an axis carries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AxisNote {
    /// In words, with the unit.
    pub label: String,
    /// `ns`, `share`, `octets`, `bit/s` or empty for a plain number.
    pub unit: String,
    /// Steps are factors, not differences.
    pub is_logarithmic: bool,
    /// The words at 0, 1, 2, ... where the axis of bars has words.
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
    /// Its name in the figure.
    pub label: String,
    /// By rising `x`.
    pub points: Vec<Point>,
}

/// One point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// On the horizontal axis.
    pub x: f64,
    /// On the vertical axis.
    pub y: f64,
}

/// Something that is not here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skip {
    /// Which.
    pub what: String,
    /// Why.
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

    /// Writes the document: first beside its place, then moved there, so that no reader ever finds half of one.
    ///
    /// # Errors
    /// [`ResultError`] where it cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), ResultError> {
        save_whole(self, path)
    }

    /// A curve over one factor: of all measurements that `wanted` accepts and that have both, in order of the factor.
    #[must_use]
    pub fn curve(
        measurements: &[Measurement],
        label: &str,
        factor: &str,
        value: &str,
        wanted: impl Fn(&Measurement) -> bool,
    ) -> Curve {
        let point = |of: &Measurement| {
            Some(Point {
                x: *of.factors.get(factor)?,
                y: *of.values.get(value)?,
            })
        };
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

/// The times of a measurement by name: mean, jitter (the standard deviation, as the papers have it), percentiles that the sample supports, extremes.
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

/// The JSON Schema of an experiment's document, as it is published in `docs/schema`.
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
    }

    #[test]
    fn a_curve_is_in_order_of_its_factor_and_leaves_out_what_was_not_found() {
        let measurement = |clients: f64, value: Option<f64>| Measurement {
            system: "one".to_owned(),
            case: "high".to_owned(),
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
    fn the_published_schema_is_current() {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/experiment-1.json");
        if std::env::var_os("DECKWATCH_WRITE_SCHEMA").is_some() {
            std::fs::write(&path, experiment_json_schema()).expect("written");
        }
        let published = std::fs::read_to_string(&path).expect("docs/schema/experiment-1.json");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert!(
            value(&published) == value(&experiment_json_schema()),
            "run this test once with DECKWATCH_WRITE_SCHEMA=1 and commit docs/schema/experiment-1.json"
        );
    }
}
