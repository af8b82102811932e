//! The cost of invocations: one-way and two-way, static and dynamic, at servants with generated and with dynamic
//! skeletons. They are measured without parameters over the number of servants, and over sizes (sections 3.5.1.1 and
//! 3.3.2.1 of the FFI report).

use std::collections::BTreeMap;

use deckwatch_meter::experiment::{
    AxisNote, Curve, ExperimentDocument, Figure, FigureKind, Measurement,
};

use crate::laboratory::program::Shape;
use crate::laboratory::samples::Samples;
use crate::laboratory::session::{Found, Session, TurnCase};
use crate::laboratory::system::System;
use crate::laboratory::{Condition, ElementKind, LaboratoryError, Progress, Setup};

/// The parameters of `deckwatch invoke`.
#[derive(Clone, Debug)]
pub struct Invoke {
    /// The parameters of every experiment.
    pub setup: Setup,
    /// Processors and scheduling class of both ends.
    pub condition: Condition,
    /// Numbers of active servants.
    pub servants: Vec<usize>,
    /// Payload sizes in octets, for sequences of octet and of ComplexStruct.
    pub sizes: Vec<usize>,
}

/// One manner of calling, at one size and number of servants.
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

/// Runs the experiment. If the user wants to end, it ends early with what was measured until then.
///
/// # Errors
/// [`LaboratoryError`]: nothing was measured. A foreign ORB that is not installed is skipped.
pub fn invoke(
    asked: &Invoke,
    tell: &mut dyn FnMut(&Progress),
) -> Result<ExperimentDocument, LaboratoryError> {
    let mut session = Session::new(&asked.setup, tell);
    let places = session.enter(asked.condition)?;
    let mut systems = session.subjects(&places, &Shape::default())?;
    let names = System::names(&systems);
    let cases = cases(asked);
    session.expect_runs(cases.len() * systems.len());
    let mut samples: Vec<Vec<Samples>> = (cases.iter())
        .map(|_| systems.iter().map(|_| Samples::default()).collect())
        .collect();
    let rounds = 1..=asked.setup.rounds;
    let turns = TurnCase::alike(cases.len(), &names);
    session.take_turns(rounds, &turns, &mut |session, turn| {
        let (case, system) = (cases[turn.case], &mut systems[turn.system]);
        let (words, count) = (case.words(), case.servants);
        let now = format!("{words}, {count} active, over {}", system.name);
        if !session.begin_run(turn.round, &now) {
            return Ok(false);
        }
        let limits = session.limits();
        let sizes = (case.count(), case.servants);
        let ran = system.client.run(&case.kind(), sizes, limits);
        let Some(times_ns) = system.server.blame_exit(ran)? else {
            return Ok(false);
        };
        samples[turn.case][turn.system].add_times(&times_ns);
        places.rest(limits.budget);
        Ok(true)
    });
    let mut measurements = Vec::new();
    for (case, samples) in cases.iter().zip(&samples) {
        for (name, samples) in names.iter().zip(samples) {
            let factors = [
                ("servants", case.servants as f64),
                ("payload_octets", case.payload() as f64),
            ];
            measurements.extend(samples.measurement(name, &case.words(), &factors));
        }
    }
    let figures = figures(&names, &measurements);
    session.finish(Found {
        experiment: "invoke".to_owned(),
        title: "One-way and two-way, static and dynamic invocation",
        source: "FFI/RAPPORT-2001/05922, sections 3.3.2.1 and 3.5.1.1",
        condition: places.words(),
        parameters: BTreeMap::from([
            ("servants".to_owned(), format!("{:?}", asked.servants)),
            ("sizes".to_owned(), format!("{:?} octets", asked.sizes)),
        ]),
        measurements,
        figures,
        ..Found::default()
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
    // Servants are activated again when their number or kind changes: this order does that least often.
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
                // The jitter of one servant among many shows nothing new.
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

/// A curve for each system, invocation and servant. Curves without points are left out.
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
