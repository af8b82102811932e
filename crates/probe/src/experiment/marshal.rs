//! What marshalling costs: a sequence of char against one of ComplexStruct, and every basic type, over sizes (figures 7 to 9 of the submarine
//! paper). Latency is a round trip with the sequence in both ways (`inout`, as in figure 7); throughput is a stream of one-ways, timed until the
//! server has served the last.

use std::collections::BTreeMap;

use deckwatch_meter::experiment::{
    AxisNote, Curve, ExperimentDocument, Figure, FigureKind, Measurement, Point,
};

use super::kind::ElementKind;
use super::stage::{Extra, Found, Kept, OURS, RAW, Stage, Staging, System};
use crate::bench::case::message_sizes;
use crate::bench::peer::{Peer, Plan};
use crate::bench::process::Ran;
use crate::bench::program::{Program, Shape};
use crate::bench::{BenchError, Inserted, Progress, Role};

/// What `deckwatch marshal` measures.
#[derive(Clone, Debug)]
pub struct Marshal {
    /// What every experiment is told.
    pub staging: Staging,
    /// The types.
    pub kinds: Vec<ElementKind>,
    /// Octets of payload.
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

/// Runs the experiment. A wish to end ends it early, with what was measured until then.
///
/// # Errors
/// [`BenchError`]; a foreign peer that is not installed is no error but skipped.
pub fn marshal(
    asked: &Marshal,
    tell: &mut dyn FnMut(&Progress),
) -> Result<ExperimentDocument, BenchError> {
    let mut stage = Stage::new(&asked.staging, tell)?;
    let mut systems = vec![stage.ours(Extra::default())?];
    systems.extend(stage.omniorb(Extra::default()));
    let mut raw = raw(&mut stage)?;
    let cases = cases(asked);
    // Two kinds of runs, and raw TCP among the systems.
    stage.expect(cases.len() * (systems.len() + 1) * 2);
    let mut kept: Vec<Vec<Kept>> = cases
        .iter()
        .map(|_| (0..=systems.len()).map(|_| Kept::default()).collect())
        .collect();
    'rounds: for round in 0..asked.staging.rounds {
        stage.begin_round(round);
        for (case, kept) in cases.iter().zip(&mut kept) {
            for turn in 0..=systems.len() {
                let index = (turn + round) % (systems.len() + 1);
                let kept = &mut kept[index];
                let goes_on = match systems.get_mut(index) {
                    Some(system) => stage.turn(system.name, |stage| {
                        let measured = measure(stage, system, *case, kept);
                        system.server.or_its_end(measured)
                    }),
                    None => stage.turn(RAW, |stage| {
                        let sizes = wire_sizes(*case, &systems[0])?;
                        measure_raw(stage, &mut raw, (*case, sizes), kept)
                    }),
                };
                if !goes_on {
                    break 'rounds;
                }
            }
        }
    }
    let mut measurements = Vec::new();
    for (case, kept) in cases.iter().zip(&kept) {
        let names = systems.iter().map(|system| system.name).chain([RAW]);
        for (name, kept) in names.zip(kept) {
            let factors = [
                ("payload_octets", case.payload() as f64),
                ("elements", case.count as f64),
            ];
            measurements.extend(kept.measurement(name, case.kind.word(), &factors));
        }
    }
    let figures = figures(asked, &measurements);
    let kinds: Vec<&str> = asked.kinds.iter().map(|kind| kind.word()).collect();
    stage.finish(Found {
        experiment: "marshal",
        title: "What marshalling costs, type by type",
        source: "Talbert and Weaver, Real-Time Event Channel Performance on a Submarine Communications Network, figures 7 to 9",
        condition: None,
        parameters: BTreeMap::from([
            ("types".to_owned(), kinds.join(", ")),
            ("sizes".to_owned(), format!("{:?} octets", asked.sizes)),
        ]),
        measurements,
        figures,
        warnings: Vec::new(),
    })
}

/// Every type at every size, without those that come to as many elements as the one before.
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

/// Octets of our messages there and back, and of our one-way.
fn wire_sizes(case: Case, ours: &System) -> Result<[usize; 3], BenchError> {
    let Case { kind, count } = case;
    let (process, stream) = kind.operations();
    let (there, back) = message_sizes(
        &ours.reference,
        process,
        |w| kind.write(count, w),
        |w| kind.write(count, w),
    )?;
    let (one_way, _) = message_sizes(
        &ours.reference,
        stream,
        |w| kind.write(count, w),
        |_| Ok(()),
    )?;
    Ok([there, back, one_way])
}

/// The round trips and the stream of one system in one case; false where the user wants to end.
fn measure(
    stage: &mut Stage<'_>,
    system: &mut System,
    case: Case,
    kept: &mut Kept,
) -> Result<bool, BenchError> {
    let word = case.kind.word();
    for (what, way) in [("process", "latency"), ("stream", "throughput")] {
        let now = format!(
            "{way} of {} octets of {word} over {}",
            case.payload(),
            system.name
        );
        if !stage.begin_run(now) {
            return Ok(false);
        }
        let limits = stage.limits();
        let client = &mut system.client;
        client.begin(&format!("{what}/{word}"), (case.count, 0), 0, limits)?;
        let Some(ran) = client.finish(limits)? else {
            return Ok(false);
        };
        keep(ran, case, kept);
        stage.rest();
    }
    Ok(true)
}

fn keep(ran: Ran, case: Case, kept: &mut Kept) {
    match ran {
        Ran::RoundTrips(times_ns) => kept.times(&times_ns),
        Ran::Sum { count, elapsed_ns } => {
            let bits = 8.0 * case.payload() as f64 * count as f64;
            kept.value("throughput_bit_s", bits * 1e9 / elapsed_ns.max(1) as f64);
        }
    }
}

/// Raw TCP, the same as in `deckwatch bench`.
fn raw(stage: &mut Stage<'_>) -> Result<Peer, BenchError> {
    let own = Program::Own {
        path: stage.staging.program.clone(),
        inserted: Inserted::Nothing,
    };
    let peer = Peer::start(&Plan {
        name: RAW,
        server: (&own, Role::RawServer, stage.places.server),
        client: (&own, Role::RawClient, stage.places.client),
        load: None,
        shape: Shape::default(),
    })?;
    stage.is_placed &= peer.is_placed;
    Ok(peer)
}

/// The same of raw TCP, with as many octets as our messages have.
fn measure_raw(
    stage: &mut Stage<'_>,
    raw: &mut Peer,
    (case, [there, back, one_way]): (Case, [usize; 3]),
    kept: &mut Kept,
) -> Result<bool, BenchError> {
    for (kind, sizes) in [("raw", (there, back)), ("raw-stream", (one_way, 0))] {
        let word = case.kind.word();
        let now = format!("{} octets of {word} over {RAW}", case.payload());
        if !stage.begin_run(now) {
            return Ok(false);
        }
        let Some(ran) = raw.run(kind, sizes, 0, stage.limits())? else {
            return Ok(false);
        };
        keep(ran, case, kept);
        stage.rest();
    }
    kept.value("request_octets", there as f64);
    kept.value("reply_octets", back as f64);
    Ok(true)
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

/// Every type at the largest size, a bar a system.
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
            .filter_map(|(place, kind)| {
                Some(Point {
                    x: f64::from(place),
                    y: value(system, *kind)?,
                })
            })
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
