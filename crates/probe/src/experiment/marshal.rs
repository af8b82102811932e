//! The cost of marshalling: a sequence of char against one of ComplexStruct, and every basic type, over sizes (figures
//! 7 to 9 of the submarine paper). Latency is a round trip with the sequence both ways (`inout`, as in figure 7).
//! Throughput is a stream of one-ways, timed until the server has served the last.

use std::collections::BTreeMap;

use deckwatch_meter::experiment::{
    AxisNote, Curve, ExperimentDocument, Figure, FigureKind, Measurement, Point,
};

use crate::laboratory::condition::Places;
use crate::laboratory::payload::message_sizes;
use crate::laboratory::process::RunResult;
use crate::laboratory::program::Shape;
use crate::laboratory::samples::Samples;
use crate::laboratory::session::{Found, Session, TurnCase};
use crate::laboratory::system::{Plan, System};
use crate::laboratory::{
    Condition, ElementKind, LaboratoryError, OURS, Progress, RAW, Role, Setup,
};

/// The parameters of `deckwatch marshal`.
#[derive(Clone, Debug)]
pub struct Marshal {
    /// The parameters of every experiment.
    pub setup: Setup,
    /// Processors and scheduling class of both ends.
    pub condition: Condition,
    /// The element types.
    pub kinds: Vec<ElementKind>,
    /// Payload sizes in octets.
    pub sizes: Vec<usize>,
}

/// One type at one size.
#[derive(Clone, Copy, PartialEq)]
struct Case {
    kind: ElementKind,
    count: usize,
}

impl Case {
    fn payload(self) -> usize {
        self.kind.size() * self.count
    }
}

/// Runs the experiment. If the user wants to end, it ends early with what was measured until then.
///
/// # Errors
/// [`LaboratoryError`]: nothing was measured. A foreign ORB that is not installed is skipped.
pub fn marshal(
    asked: &Marshal,
    tell: &mut dyn FnMut(&Progress),
) -> Result<ExperimentDocument, LaboratoryError> {
    let mut session = Session::new(&asked.setup, tell);
    let places = session.enter(asked.condition)?;
    let mut systems = session.subjects(&places, &Shape::default())?;
    let own = session.own();
    let both = (places.server, places.client);
    let raw = session.start(&Plan::pair(RAW, &own, Role::RAW, both, Shape::default()))?;
    systems.push(raw);
    let names = System::names(&systems);
    let cases = cases(asked);
    let ours = systems[0].reference.clone();
    let sizes: Result<Vec<[usize; 3]>, _> =
        cases.iter().map(|case| wire_sizes(*case, &ours)).collect();
    let sizes = sizes?;
    // Two runs in each turn.
    session.expect_runs(cases.len() * systems.len() * 2);
    let mut samples: Vec<Vec<Samples>> = (cases.iter())
        .map(|_| systems.iter().map(|_| Samples::default()).collect())
        .collect();
    let rounds = 1..=asked.setup.rounds;
    let turns = TurnCase::alike(cases.len(), &names);
    session.take_turns(rounds, &turns, &mut |session, turn| {
        let run = Run {
            round: turn.round,
            case: cases[turn.case],
            sizes: sizes[turn.case],
            places: &places,
        };
        let system = &mut systems[turn.system];
        run.measure(session, system, &mut samples[turn.case][turn.system])
    });
    let mut measurements = Vec::new();
    for (case, samples) in cases.iter().zip(&samples) {
        for (name, samples) in names.iter().zip(samples) {
            let factors = [
                ("payload_octets", case.payload() as f64),
                ("elements", case.count as f64),
            ];
            measurements.extend(samples.measurement(name, case.kind.word(), &factors));
        }
    }
    let figures = figures(asked, &measurements);
    let kinds: Vec<&str> = asked.kinds.iter().map(|kind| kind.word()).collect();
    session.finish(Found {
        experiment: "marshal".to_owned(),
        title: "What marshalling costs, type by type",
        source: "Talbert and Weaver, Real-Time Event Channel Performance on a Submarine Communications Network, figures 7 to 9",
        condition: places.words(),
        parameters: BTreeMap::from([
            ("types".to_owned(), kinds.join(", ")),
            ("sizes".to_owned(), format!("{:?} octets", asked.sizes)),
        ]),
        measurements,
        figures,
        ..Found::default()
    })
}

/// Every type at every size. Sizes with the same number of elements are one case.
fn cases(asked: &Marshal) -> Vec<Case> {
    let mut cases = Vec::new();
    for &kind in &asked.kinds {
        for &size in &asked.sizes {
            let count = kind.count(size);
            let case = Case { kind, count };
            if !cases.contains(&case) {
                cases.push(case);
            }
        }
    }
    cases
}

/// Octets of our request, of our reply, and of our one-way.
fn wire_sizes(case: Case, reference: &str) -> Result<[usize; 3], LaboratoryError> {
    let Case { kind, count } = case;
    let (process, stream) = kind.operations();
    let (there, back) = message_sizes(
        reference,
        process,
        |w| kind.write(count, w),
        |w| kind.write(count, w),
    )?;
    let (one_way, _) = message_sizes(reference, stream, |w| kind.write(count, w), |_| Ok(()))?;
    Ok([there, back, one_way])
}

/// One turn: the round trips and the stream of one case.
struct Run<'p> {
    round: usize,
    case: Case,
    /// Of our messages there and back, and of our one-way. Raw TCP sends as many octets.
    sizes: [usize; 3],
    places: &'p Places,
}

impl Run<'_> {
    /// Returns false if the user wants to end.
    fn measure(
        &self,
        session: &mut Session<'_>,
        system: &mut System,
        samples: &mut Samples,
    ) -> Result<bool, LaboratoryError> {
        let Case { kind, count } = self.case;
        let (word, [there, back, one_way]) = (kind.word(), self.sizes);
        let is_raw = system.name == RAW;
        let runs = if is_raw {
            [
                ("raw".to_owned(), (there, back)),
                ("raw-stream".to_owned(), (one_way, 0)),
            ]
        } else {
            ["process", "stream"].map(|what| (format!("{what}/{word}"), (count, 0)))
        };
        for ((kind, sizes), what) in runs.into_iter().zip(["latency", "throughput"]) {
            let octets = self.case.payload();
            let now = format!("{what} of {octets} octets of {word} over {}", system.name);
            if !session.begin_run(self.round, &now) {
                return Ok(false);
            }
            let limits = session.limits();
            let Some(ran) = system.run(&kind, sizes, 0, limits)? else {
                return Ok(false);
            };
            self.add(&ran, samples);
            self.places.rest(limits.budget);
        }
        if is_raw {
            samples.add_value("request_octets", there as f64);
            samples.add_value("reply_octets", back as f64);
        }
        Ok(true)
    }

    fn add(&self, ran: &RunResult, samples: &mut Samples) {
        match ran {
            RunResult::RoundTrips(times_ns) => samples.add_times(times_ns),
            RunResult::Sum { count, elapsed_ns } => {
                let bits = 8.0 * self.case.payload() as f64 * *count as f64;
                let rate = bits * 1e9 / (*elapsed_ns).max(1) as f64;
                samples.add_value("throughput_bit_s", rate);
            }
        }
    }
}

const LATENCY: Value = ("p50_ns", "round trip, median", "ns");
const THROUGHPUT: Value = ("throughput_bit_s", "throughput of payload", "bit/s");

fn figures(asked: &Marshal, measurements: &[Measurement]) -> Vec<Figure> {
    let mut systems: Vec<&str> = Vec::new();
    for measurement in measurements {
        if !systems.contains(&measurement.system.as_str()) {
            systems.push(&measurement.system);
        }
    }
    let curve = |label: String, system: &str, kind: ElementKind, value: &str| {
        ExperimentDocument::curve(measurements, &label, "payload_octets", value, |of| {
            of.system == system && of.case == kind.word()
        })
    };
    let mut figures = Vec::new();
    let pair = [ElementKind::Char, ElementKind::Struct];
    if pair.iter().all(|kind| asked.kinds.contains(kind)) {
        for (title, source, of) in PAPER {
            let orbs = systems.iter().filter(|system| **system != RAW);
            let curves = orbs.flat_map(|system| {
                pair.map(|kind| curve(format!("{system}, {}", kind.idl()), system, kind, of.0))
            });
            let raw = curve(RAW.to_owned(), RAW, ElementKind::Char, of.0);
            figures.push(over_size(title, source, of, curves.chain([raw])));
        }
    }
    let largest = asked.sizes.iter().max().copied().unwrap_or(0);
    figures.push(bars(asked, measurements, &systems, largest, LATENCY));
    figures.push(bars(asked, measurements, &systems, largest, THROUGHPUT));
    for &kind in &asked.kinds {
        for (what, of) in [("latency", LATENCY), ("throughput", THROUGHPUT)] {
            let curves = systems
                .iter()
                .map(|system| curve((*system).to_owned(), system, kind, of.0));
            let title = format!("sequence<{}>: {what}", kind.idl());
            let source = "as figures 8 and 9, for each basic type";
            figures.push(over_size(&title, source, of, curves));
        }
    }
    figures
}

type Value = (&'static str, &'static str, &'static str);

const PAPER: [(&str, &str, Value); 2] = [
    (
        "Simple sequence against complex struct: latency",
        "figure 8",
        LATENCY,
    ),
    (
        "Simple sequence against complex struct: throughput",
        "figure 9",
        THROUGHPUT,
    ),
];

fn over_size(title: &str, source: &str, of: Value, curves: impl Iterator<Item = Curve>) -> Figure {
    Figure {
        title: title.to_owned(),
        source: source.to_owned(),
        kind: FigureKind::Lines,
        x: AxisNote::new("payload of a message", "octets", true),
        y: AxisNote::new(of.1, of.2, true),
        curves: curves.filter(|curve| !curve.points.is_empty()).collect(),
        notes: Vec::new(),
    }
}

/// Every type at the largest size, with one bar for each system.
fn bars(
    asked: &Marshal,
    measurements: &[Measurement],
    systems: &[&str],
    size: usize,
    of: Value,
) -> Figure {
    let mut x = AxisNote::new("element of the sequence", "", false);
    x.words = asked
        .kinds
        .iter()
        .map(|kind| kind.word().to_owned())
        .collect();
    let value = |system: &str, kind: ElementKind| {
        let payload = (kind.count(size) * kind.size()) as f64;
        let found = measurements.iter().find(|one| {
            one.system == system
                && one.case == kind.word()
                && one.factors.get("payload_octets") == Some(&payload)
        })?;
        found.values.get(of.0).copied()
    };
    let curve = |system: &&str| Curve {
        label: (*system).to_owned(),
        points: (0..)
            .zip(&asked.kinds)
            .filter_map(|(place, kind)| Some(Point::new(f64::from(place), value(system, *kind)?)))
            .collect(),
    };
    Figure {
        title: format!("Every basic type at {size} octets: {}", of.1),
        source: "as figures 8 and 9, at one size".to_owned(),
        kind: FigureKind::Bars,
        x,
        y: AxisNote::new(of.1, of.2, false),
        curves: systems.iter().map(curve).collect(),
        notes: vec![format!(
            "{OURS} and the others send the same elements; raw TCP as many octets as our messages have."
        )],
    }
}
