//! How an operation is invoked: one way and two ways, by a stub and by a request made at run time, at subjects with generated and with dynamic
//! skeletons; without parameters over the number of subjects, and over sizes (section 3.5.1.1 and 3.3.2.1 of the FFI report).

use std::collections::BTreeMap;

use deckwatch_meter::experiment::{
    AxisNote, Curve, ExperimentDocument, Figure, FigureKind, Measurement,
};

use super::kind::ElementKind;
use super::stage::{Extra, Found, Kept, Stage, Staging, System};
use crate::bench::BenchError;
use crate::bench::Progress;

/// What `deckwatch invoke` measures.
#[derive(Clone, Debug)]
pub struct Invoke {
    /// What every experiment is told.
    pub staging: Staging,
    /// Numbers of subjects that are active at the server.
    pub servants: Vec<usize>,
    /// Octets of payload of octets and of ComplexStructs.
    pub sizes: Vec<usize>,
}

/// One manner of calling.
#[derive(Clone, Copy, PartialEq)]
struct Case {
    way: &'static str,
    invocation: &'static str,
    servant: &'static str,
    what: &'static str,
    spread: &'static str,
    servants: usize,
    size: usize,
}

impl Case {
    fn manner(self) -> String {
        format!(
            "{} {} at {} servants",
            self.way, self.invocation, self.servant
        )
    }

    fn words(self) -> String {
        match (self.what, self.spread) {
            ("nothing", "one") => format!("{}, one of them called", self.manner()),
            ("nothing", _) => format!("{}, each in its turn", self.manner()),
            (what, _) => format!("{}, {what}", self.manner()),
        }
    }

    fn count(self) -> usize {
        match self.what {
            "structs" => ElementKind::Struct.count(self.size),
            "octets" => self.size,
            _ => 0,
        }
    }

    fn payload(self) -> usize {
        match self.what {
            "structs" => self.count() * ElementKind::Struct.size(),
            _ => self.count(),
        }
    }

    fn kind(self) -> String {
        let Self {
            way,
            invocation,
            what,
            servant,
            spread,
            ..
        } = self;
        format!("call/{way}/{invocation}/{what}/{servant}/{spread}")
    }
}

const WAYS: [&str; 2] = ["two-way", "one-way"];
const INVOCATIONS: [&str; 2] = ["static", "dynamic"];
const SERVANTS: [&str; 2] = ["static", "dynamic"];

/// Runs the experiment. A wish to end ends it early, with what was measured until then.
///
/// # Errors
/// [`BenchError`]; a foreign peer that is not installed is no error but skipped.
pub fn invoke(
    asked: &Invoke,
    tell: &mut dyn FnMut(&Progress),
) -> Result<ExperimentDocument, BenchError> {
    let mut stage = Stage::new(&asked.staging, tell)?;
    let mut systems = vec![stage.ours(Extra::default())?];
    systems.extend(stage.omniorb(Extra::default()));
    let cases = cases(asked);
    stage.expect(cases.len() * systems.len());
    let mut kept: Vec<Vec<Kept>> = cases
        .iter()
        .map(|_| systems.iter().map(|_| Kept::default()).collect())
        .collect();
    'rounds: for round in 0..asked.staging.rounds {
        stage.begin_round(round);
        for (case, kept) in cases.iter().zip(&mut kept) {
            for turn in 0..systems.len() {
                let index = (turn + round) % systems.len();
                let (system, kept) = (&mut systems[index], &mut kept[index]);
                let name = system.name;
                let measure = |stage: &mut Stage<'_>| {
                    let measured = measure(stage, system, *case, kept);
                    system.server.or_its_end(measured)
                };
                if !stage.turn(name, measure) {
                    break 'rounds;
                }
            }
        }
    }
    let mut measurements = Vec::new();
    for (case, kept) in cases.iter().zip(&kept) {
        for (system, kept) in systems.iter().zip(kept) {
            let factors = [
                ("servants", case.servants as f64),
                ("payload_octets", case.payload() as f64),
            ];
            measurements.extend(kept.measurement(system.name, &case.words(), &factors));
        }
    }
    let names: Vec<&str> = systems.iter().map(|system| system.name).collect();
    let figures = figures(&names, &measurements);
    stage.finish(Found {
        experiment: "invoke",
        title: "One-way and two-way, static and dynamic invocation",
        source: "FFI/RAPPORT-2001/05922, sections 3.3.2.1 and 3.5.1.1",
        condition: None,
        parameters: BTreeMap::from([
            ("servants".to_owned(), format!("{:?}", asked.servants)),
            ("sizes".to_owned(), format!("{:?} octets", asked.sizes)),
        ]),
        measurements,
        figures,
        warnings: Vec::new(),
    })
}

fn cases(asked: &Invoke) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut manners = Vec::new();
    for servant in SERVANTS {
        for way in WAYS {
            for invocation in INVOCATIONS {
                manners.push((way, invocation, servant));
            }
        }
    }
    // Subjects are activated anew where their number or kind changes: as seldom as may be.
    for servant in SERVANTS {
        for &servants in &asked.servants {
            for &(way, invocation, _) in manners.iter().filter(|manner| manner.2 == servant) {
                for spread in ["each", "one"] {
                    if spread == "one" && servants == 1 {
                        continue;
                    }
                    cases.push(Case {
                        way,
                        invocation,
                        servant,
                        what: "nothing",
                        spread,
                        servants,
                        size: 0,
                    });
                }
            }
        }
    }
    for (way, invocation, servant) in manners {
        for what in ["octets", "structs"] {
            for &size in &asked.sizes {
                let case = Case {
                    way,
                    invocation,
                    servant,
                    what,
                    spread: "each",
                    servants: 1,
                    size,
                };
                let same =
                    |other: &Case| other.kind() == case.kind() && other.count() == case.count();
                if !cases.iter().any(same) {
                    cases.push(case);
                }
            }
        }
    }
    cases
}

fn measure(
    stage: &mut Stage<'_>,
    system: &mut System,
    case: Case,
    kept: &mut Kept,
) -> Result<bool, BenchError> {
    let now = format!(
        "{}, {} active, over {}",
        case.words(),
        case.servants,
        system.name
    );
    if !stage.begin_run(now) {
        return Ok(false);
    }
    let limits = stage.limits();
    let sizes = (case.count(), case.servants);
    let Some(times_ns) = system.client.run(&case.kind(), sizes, limits)? else {
        return Ok(false);
    };
    kept.times(&times_ns);
    stage.rest();
    Ok(true)
}

const LATENCY: (&str, &str) = ("p50_ns", "median");
const JITTER: (&str, &str) = ("jitter_ns", "jitter (standard deviation)");

fn figures(systems: &[&str], measurements: &[Measurement]) -> Vec<Figure> {
    let mut figures = Vec::new();
    let time_of = |way: &str| match way {
        "two-way" => "round trip",
        _ => "time until the caller goes on",
    };
    for way in WAYS {
        for (ending, spread) in [("each in its turn", "each"), ("one of them called", "one")] {
            for of in [LATENCY, JITTER] {
                // The jitter of one called among many says nothing more.
                if of == JITTER && spread == "one" {
                    continue;
                }
                let curves = manners(systems, |system, manner, label| {
                    let case = format!("{way} {manner}, {ending}");
                    ExperimentDocument::curve(measurements, label, "servants", of.0, |one| {
                        one.system == system && one.case == case
                    })
                });
                figures.push(Figure {
                    title: format!("{way}, no parameters, {ending}: {}", of.1),
                    source: "section 3.5.1.1, over the numbers of servants of 3.3.2.1".to_owned(),
                    kind: FigureKind::Lines,
                    x: AxisNote::new("servants active at the server", "", false),
                    y: AxisNote::new(&format!("{}, {}", time_of(way), of.1), "ns", false),
                    curves,
                    notes: Vec::new(),
                });
            }
        }
        for what in ["octets", "structs"] {
            let curves = manners(systems, |system, manner, label| {
                let case = format!("{way} {manner}, {what}");
                ExperimentDocument::curve(measurements, label, "payload_octets", LATENCY.0, |one| {
                    one.system == system && one.case == case
                })
            });
            figures.push(Figure {
                title: format!("{way}, sequence of {what}: {}", LATENCY.1),
                source: "section 3.5.1.1, over sizes".to_owned(),
                kind: FigureKind::Lines,
                x: AxisNote::new("payload of a request", "octets", true),
                y: AxisNote::new(&format!("{}, {}", time_of(way), LATENCY.1), "ns", true),
                curves,
                notes: Vec::new(),
            });
        }
    }
    figures
}

/// A curve for each system, invocation and servant; those without points are left out.
fn manners(systems: &[&str], curve: impl Fn(&str, &str, &str) -> Curve) -> Vec<Curve> {
    let mut curves = Vec::new();
    for system in systems {
        for invocation in INVOCATIONS {
            for servant in SERVANTS {
                let manner = format!("{invocation} at {servant} servants");
                let short = match (invocation, servant) {
                    ("static", "static") => "stub to skeleton",
                    ("static", _) => "stub to DSI",
                    (_, "static") => "DII to skeleton",
                    _ => "DII to DSI",
                };
                curves.push(curve(system, &manner, &format!("{system}, {short}")));
            }
        }
    }
    curves.retain(|curve| !curve.points.is_empty());
    curves
}
