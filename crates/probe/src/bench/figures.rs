//! A bench in the form that reports are drawn from: its numbers by peer, ratios, counts and memory as figures, the table of targets as facts.

use std::collections::BTreeMap;
use std::path::Path;

use deckwatch_meter::experiment::{
    AxisNote, Curve, EXPERIMENT_SCHEMA_VERSION, ExperimentDocument, Figure, FigureKind,
    Measurement, Point, Skip,
};
use deckwatch_meter::result::{ResultError, load_versioned};
use serde::Deserialize;

use super::document::{
    Bench, CaseResult, CountResult, MemoryResult, Part, PeerResult, Ratio, SCHEMA_VERSION, Standing,
};

impl Bench {
    /// Reads a bench's document; none where there is none of a bench.
    ///
    /// # Errors
    /// [`ResultError`]: it is damaged, or of a later version.
    pub fn load(path: &Path) -> Result<Option<Self>, ResultError> {
        #[derive(Deserialize)]
        struct Named {
            #[serde(rename = "bench")]
            _kind: String,
        }
        match load_versioned::<Named>(path, u32::MAX) {
            Ok(_) => load_versioned(path, SCHEMA_VERSION).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// The same as an experiment, whose report it shares.
    #[must_use]
    pub fn as_experiment(&self) -> ExperimentDocument {
        let mut conditions: Vec<&str> = Vec::new();
        for part in &self.parts {
            if !conditions.contains(&part.condition.as_str()) {
                conditions.push(&part.condition);
            }
        }
        let mut parameters: BTreeMap<String, String> =
            self.standings.iter().map(Standing::words).collect();
        parameters.insert("rounds".to_owned(), self.rounds.to_string());
        if !self.notes.is_empty() {
            parameters.insert("what peers cannot do".to_owned(), self.notes.join("; "));
        }
        let skipped = self.skipped.iter().map(|skip| Skip {
            what: skip.peer.clone(),
            reason: skip.reason.clone(),
        });
        ExperimentDocument {
            schema_version: EXPERIMENT_SCHEMA_VERSION,
            experiment: format!("bench {}", self.bench),
            title: "What calls, messages, objects and priorities cost".to_owned(),
            source: "each run directly behind a run of what it is compared with, the medians of the ratios of those pairs"
                .to_owned(),
            provenance: self.provenance.clone(),
            condition: conditions.join("; "),
            parameters,
            measurements: self.parts.iter().flat_map(Part::measurements).collect(),
            figures: self.parts.iter().flat_map(Part::figures).collect(),
            skipped: skipped.collect(),
            warnings: self.warnings.clone(),
        }
    }
}

impl Standing {
    /// What is measured where, and how it stands.
    fn words(&self) -> (String, String) {
        let met = match self.is_met {
            Some(true) => "met",
            Some(false) => "NOT met",
            None => "not judged",
        };
        let ratio = |of: &Ratio| match of.pairs {
            1 => format!("{:.3}", of.median),
            _ => format!(
                "{:.3} ({:.3}-{:.3})",
                of.median, of.lower_quartile, of.upper_quartile
            ),
        };
        let ours = self.ours.as_ref().map_or("-".to_owned(), ratio);
        let mut words = format!("{ours}, {}: {met}", self.target);
        for peer in &self.peers {
            words += &format!("; {} {}", peer.peer, ratio(&peer.ratio));
        }
        (format!("{} · {}", self.measure, self.condition), words)
    }
}

/// A ratio of a peer's result.
type RatioOf = fn(&PeerResult) -> Option<Ratio>;

const RATIOS: [(&str, &str, RatioOf); 3] = [
    ("p50_ratio", "p50 over what it is beside", |it| it.p50_ratio),
    ("p99_ratio", "p99 over what it is beside", |it| it.p99_ratio),
    ("rate_ratio", "rate over what it is beside", |it| {
        Some(it.rate_ratio)
    }),
];

type CountOf = fn(&CountResult) -> Option<f64>;

const COUNTS: [(&str, CountOf); 4] = [
    ("allocations", |it| it.allocations),
    ("mutex locks", |it| it.mutex_locks),
    ("waits", |it| it.waits),
    ("system calls", |it| it.system_calls),
];

impl Part {
    fn measurements(&self) -> Vec<Measurement> {
        let place = |what: &str| {
            let Self {
                kind,
                variant,
                condition,
                ..
            } = self;
            format!("{}: {what}{} · {condition}", kind.word(), variant.words())
        };
        let of_case = |case: &CaseResult, peer: &PeerResult| {
            let times = [
                ("mean_ns", Some(peer.mean_ns)),
                ("p50_ns", peer.p50_ns),
                ("p99_ns", peer.p99_ns),
                ("beside_mean_ns", Some(peer.baseline_mean_ns)),
                ("beside_p50_ns", peer.baseline_p50_ns),
                ("beside_p99_ns", peer.baseline_p99_ns),
            ];
            let ratios = RATIOS.map(|(name, _, of)| (name, of(peer).map(|it| it.median)));
            Measurement {
                system: peer.peer.clone(),
                case: place(case.case.kind.word()),
                factors: named([("payload_octets", Some(case.case.size as f64))]),
                values: named(times.into_iter().chain(ratios)),
                samples: peer.samples,
                histogram: peer.histogram.clone(),
            }
        };
        let of_counts = |it: &CountResult| Measurement {
            system: it.peer.clone(),
            case: place(&format!("a request{}", it.variant.words())),
            factors: BTreeMap::new(),
            values: named(COUNTS.map(|(name, of)| (name, of(it)))),
            samples: it.requests,
            histogram: Vec::new(),
        };
        let of_memory = |it: &MemoryResult| Measurement {
            system: it.peer.clone(),
            case: place("a server"),
            factors: named([("connections", Some(it.connections as f64))]),
            values: named([
                ("resident_octets", Some(it.resident_octets as f64)),
                ("anonymous_octets", Some(it.anonymous_octets as f64)),
            ]),
            samples: it.connections as u64,
            histogram: Vec::new(),
        };
        let cases = self.cases.iter();
        cases
            .flat_map(|case| case.peers.iter().map(move |peer| of_case(case, peer)))
            .chain(self.counts.iter().map(of_counts))
            .chain(self.memory.iter().map(of_memory))
            .collect()
    }

    fn figures(&self) -> Vec<Figure> {
        let figure = |what: &str, words: Vec<String>, unit: &str, curves: Vec<Curve>| Figure {
            title: format!("{}{}: {what}", self.kind.word(), self.variant.words()),
            source: self.condition.clone(),
            kind: FigureKind::Bars,
            x: AxisNote {
                words,
                ..AxisNote::new("", "", false)
            },
            y: AxisNote::new(what, unit, false),
            curves,
            notes: Vec::new(),
        };
        let mut figures = Vec::new();
        let cases: Vec<String> = (self.cases.iter())
            .map(|it| format!("{} {}", it.case.kind.word(), it.case.size))
            .collect();
        for (_, what, of) in RATIOS {
            let points = self.cases.iter().enumerate().flat_map(|(at, case)| {
                let ratios = case
                    .peers
                    .iter()
                    .filter_map(move |peer| Some((peer, of(peer)?)));
                ratios.map(move |(peer, ratio)| (peer.peer.clone(), at, ratio.median))
            });
            figures.push(figure(what, cases.clone(), "", curves(points)));
        }
        let counts = self.counts.iter().flat_map(|it| {
            let label = format!("{}{}", it.peer, it.variant.words());
            let all = COUNTS.iter().enumerate();
            all.filter_map(move |(at, (_, of))| Some((label.clone(), at, of(it)?)))
        });
        let words = COUNTS.map(|(name, _)| name.to_owned()).to_vec();
        figures.push(figure("counts of a request", words, "", curves(counts)));
        let mut sizes: Vec<usize> = self.memory.iter().map(|it| it.connections).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let memory = self.memory.iter().filter_map(|it| {
            let at = sizes.iter().position(|size| *size == it.connections)?;
            Some((it.peer.clone(), at, it.resident_octets as f64))
        });
        let words = sizes.iter().map(|it| format!("{it} connections")).collect();
        figures.push(figure("resident memory", words, "octets", curves(memory)));
        figures.retain(|figure| !figure.curves.is_empty());
        figures
    }
}

/// Those that are there.
fn named(all: impl IntoIterator<Item = (&'static str, Option<f64>)>) -> BTreeMap<String, f64> {
    let there = |(name, value): (&str, Option<f64>)| Some((name.to_owned(), value?));
    all.into_iter().filter_map(there).collect()
}

/// Bars by label, each at its word.
fn curves(bars: impl Iterator<Item = (String, usize, f64)>) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for (label, at, y) in bars {
        let point = Point { x: at as f64, y };
        match curves.iter_mut().find(|curve| curve.label == label) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve {
                label,
                points: vec![point],
            }),
        }
    }
    curves
}
