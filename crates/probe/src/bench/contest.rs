//! The rounds of one kind in one condition: every system once in each round and case, directly after a run of its
//! baseline.

use std::path::PathBuf;
use std::time::Duration;

use super::case::{Beside, Case};
use super::kind::{self, Kind};
use super::part::{About, Part};
use super::run::Settings;
use super::sockperf::{PingPong, Sockperf};
use crate::laboratory::condition::{FIFO_PRIORITY, HIGH_PRIORITY, Places};
use crate::laboratory::foreign;
use crate::laboratory::process::{RunLimits, RunResult};
use crate::laboratory::program::{Program, Shape};
use crate::laboratory::samples::{Pairs, RunSummary, Samples};
use crate::laboratory::session::{Session, Turn, TurnCase};
use crate::laboratory::system::{Plan, System};
use crate::laboratory::{LaboratoryError, OURS, RAW, Role, Variant};
use crate::limits::BENCH_ROUNDS_MAX;

/// The systems of one kind and what their runs have measured.
pub(super) struct Contest<'s> {
    kind: Kind,
    places: &'s Places,
    cases: Vec<Case>,
    raw: System,
    contenders: Vec<Contender>,
    /// The runs, by case, then by contender.
    pairs: Vec<Vec<Pairs>>,
    /// Removed with the contest.
    _files: ScratchFiles,
}

struct Contender {
    system: System,
    /// The same system with one object, if it is the baseline.
    alone: Option<System>,
}

/// The parameters of a contest.
pub(super) struct Subject<'s> {
    pub(super) kind: Kind,
    pub(super) variant: Variant,
    pub(super) cases: Vec<Case>,
    pub(super) places: &'s Places,
    pub(super) settings: &'s Settings,
}

impl<'s> Contest<'s> {
    /// Starts all systems. A foreign system that cannot be started is skipped.
    pub(super) fn start(
        session: &mut Session<'_>,
        subject: Subject<'s>,
        programs: &[(&'static str, Program)],
    ) -> Result<Self, LaboratoryError> {
        let own = session.own();
        let shape = Shape {
            variant: subject.variant,
            ..Shape::default()
        };
        let raw = start(session, &subject, RAW, (&own, &own), shape)?;
        let mut files = ScratchFiles(Vec::new());
        let mut contenders = Vec::new();
        // The other variants exist in our ORB only.
        let foreign = match subject.variant {
            Variant::Plain => programs,
            _ => &[],
        };
        let all = std::iter::once((OURS, own.clone())).chain(foreign.iter().cloned());
        for (name, program) in all {
            match contender(session, &subject, (name, &program, &own), &mut files) {
                Ok(contender) => contenders.push(contender),
                Err(error) if name == OURS => return Err(error),
                Err(error) => session.skip(name, &format!("{}: {error}", subject.kind.word())),
            }
        }
        let row = || contenders.iter().map(|_| Pairs::default()).collect();
        Ok(Self {
            kind: subject.kind,
            places: subject.places,
            pairs: subject.cases.iter().map(|_| row()).collect(),
            cases: subject.cases,
            raw,
            contenders,
            _files: files,
        })
    }

    fn limits(&self, session: &Session<'_>) -> RunLimits {
        let limits = session.limits();
        let budget = match self.kind {
            // Rare calls need longer runs, which stay below the kernel's limit for real-time threads.
            Kind::Rate | Kind::Priority => REAL_TIME_RUN.min(limits.budget * 3),
            _ => limits.budget,
        };
        RunLimits { budget, ..limits }
    }

    /// Runs all rounds; round 0 is a warm-up. Returns false if they have ended early.
    pub(super) fn run(&mut self, session: &mut Session<'_>) -> Result<bool, LaboratoryError> {
        let sizes = self.sizes()?;
        let systems = self.contenders.iter().map(|it| it.system.name).collect();
        let systems: Vec<&'static str> = systems;
        let case = |case: &Case| TurnCase {
            name: format!(
                "{}: {} {}: ",
                self.kind.word(),
                case.operation.word(),
                case.size
            ),
            systems: systems.clone(),
        };
        let cases: Vec<TurnCase> = self.cases.iter().map(case).collect();
        let rounds = session.setup.rounds.min(BENCH_ROUNDS_MAX);
        Ok(
            session.take_turns(0..=rounds, &cases, &mut |session, turn| {
                let case = self.cases[turn.case];
                let name = self.contenders[turn.system].system.name;
                let now = format!("{} {} over {name}", case.operation.word(), case.size);
                session.show(turn.round, format!("{}: {now}", self.kind.word()));
                self.turn(turn, sizes[turn.case], self.limits(session))
            }),
        )
    }

    fn sizes(&self) -> Result<Vec<(usize, usize)>, LaboratoryError> {
        let reference = &self.contenders[0].system.reference;
        let sizes = self.cases.iter().map(|case| case.message_sizes(reference));
        sizes.collect()
    }

    /// One pair, or several in the warm-up round. Returns false if the user wants to end.
    fn turn(
        &mut self,
        turn: Turn,
        sizes: (usize, usize),
        limits: RunLimits,
    ) -> Result<bool, LaboratoryError> {
        let is_warm_up = turn.round == 0;
        // A just-in-time compiler has not compiled either run of the pair yet.
        let times = match self.contenders[turn.system].system.name {
            foreign::JACORB if is_warm_up => JIT_WARM_UPS,
            _ => 1,
        };
        for _ in 0..times {
            let Some((called, baseline)) = self.pair(turn, sizes, limits)? else {
                return Ok(false);
            };
            if !is_warm_up && !self.pairs[turn.case][turn.system].add(&called, &baseline) {
                return Err(LaboratoryError::EndFailed {
                    what: self.contenders[turn.system].system.name.to_owned(),
                    reason: format!("too few round trips within {:?}", limits.budget),
                });
            }
        }
        Ok(true)
    }

    /// A run of the baseline, and directly after it one of the system. Returns `None` if the user wants to end.
    fn pair(
        &mut self,
        turn: Turn,
        sizes: (usize, usize),
        limits: RunLimits,
    ) -> Result<Option<(RunResult, RunResult)>, LaboratoryError> {
        let case = self.cases[turn.case];
        let contender = &mut self.contenders[turn.system];
        let baseline = match case.beside {
            Beside::RawTcp => send_raw(&mut self.raw, case, sizes, limits)?,
            Beside::Octets => call(&mut contender.system, case.as_octets(), limits)?,
            Beside::OneObject => match &mut contender.alone {
                Some(alone) => call(alone, case, limits)?,
                None => None,
            },
        };
        self.places.rest(limits.budget);
        let Some(baseline) = baseline else {
            return Ok(None);
        };
        let called = call(&mut contender.system, case, limits)?;
        self.places.rest(limits.budget);
        Ok(called.map(|called| (called, baseline)))
    }

    /// Adds the measurements to `part`.
    pub(super) fn results(&self, part: &mut Part) -> Result<(), LaboratoryError> {
        for ((case, sizes), row) in self.cases.iter().zip(self.sizes()?).zip(&self.pairs) {
            let factors = [
                ("payload_octets", case.size as f64),
                ("request_octets", sizes.0 as f64),
                ("reply_octets", sizes.1 as f64),
            ];
            for (contender, pairs) in self.contenders.iter().zip(row) {
                let name = contender.system.name;
                let (system, words) = match case.beside {
                    Beside::RawTcp => (RAW, case.operation.word().to_owned()),
                    Beside::Octets => (name, case.as_octets().words()),
                    Beside::OneObject => (name, format!("{}, one object", case.operation.word())),
                };
                let own = pairs.system.measurement(name, &case.words(), &factors);
                let words = format!("{words}, directly before {name}");
                let beside = pairs.baseline.measurement(system, &words, &factors);
                for (about, measurement) in [(About::Case(*case), own), (About::Baseline, beside)] {
                    if let Some(measurement) = measurement {
                        part.add(about, measurement);
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds pairs of the baseline and sockperf to `part`. Their failure is noted and ends nothing else.
    pub(super) fn check_baseline(&mut self, session: &mut Session<'_>, part: &mut Part) {
        if foreign::find("sockperf").is_none() {
            session.skip("sockperf", "call: sockperf not installed");
            return;
        }
        let mut samples = Samples::default();
        let checked = self.compare_with_sockperf(session, &mut samples);
        match checked {
            Ok(octets) => {
                let factors = [("payload_octets", octets as f64)];
                if let Some(found) = samples.measurement(RAW, "beside sockperf", &factors) {
                    part.add(About::BaselineCheck, found);
                }
            }
            Err(error) => session.skip("sockperf", &format!("call: {error}")),
        }
    }

    fn compare_with_sockperf(
        &mut self,
        session: &mut Session<'_>,
        samples: &mut Samples,
    ) -> Result<usize, LaboratoryError> {
        let sizes = self.sizes()?;
        let smallest = sizes.iter().map(|(request, _)| *request).min();
        let octets = smallest.unwrap_or(SOCKPERF_SIZE_MIN).max(SOCKPERF_SIZE_MIN);
        let sockperf = Sockperf::start((self.places.server, self.places.client))?;
        let limits = self.limits(session);
        let rounds = session.setup.rounds;
        for _ in 0..CHECK_ROUNDS.min(rounds) {
            session.show(rounds, "the baseline beside sockperf".to_owned());
            let Some(ours) = send_raw(&mut self.raw, kind::SMALL, (octets, octets), limits)? else {
                break;
            };
            self.places.rest(limits.budget);
            let PingPong { p50_ns, p99_ns, .. } = sockperf.run(octets)?;
            self.places.rest(limits.budget);
            let Some(summary) = RunSummary::of(&ours) else {
                continue;
            };
            samples.add_run(&ours, &summary);
            samples.add_value("sockperf_p50_ns", p50_ns);
            let ratios = [
                ("p50_ratio", summary.p50_ns.map(|ns| ns / p50_ns)),
                ("p99_ratio", summary.p99_ns.map(|ns| ns / p99_ns)),
            ];
            for (name, ratio) in ratios {
                if let Some(ratio) = ratio {
                    samples.add_value(name, ratio);
                }
            }
        }
        Ok(octets)
    }
}

/// One run of calls. Returns `None` if the user wants to end.
pub(super) fn call(
    system: &mut System,
    case: Case,
    limits: RunLimits,
) -> Result<Option<RunResult>, LaboratoryError> {
    let period_ns = case.period_ns.unwrap_or(0);
    system.run(case.operation.word(), (case.count(), 0), period_ns, limits)
}

/// The same over raw TCP, with messages of `sizes` octets there and back.
fn send_raw(
    raw: &mut System,
    case: Case,
    sizes: (usize, usize),
    limits: RunLimits,
) -> Result<Option<RunResult>, LaboratoryError> {
    let kind = if case.is_stream() {
        "raw-stream"
    } else {
        "raw"
    };
    raw.run(kind, sizes, case.period_ns.unwrap_or(0), limits)
}

fn contender(
    session: &mut Session<'_>,
    subject: &Subject<'_>,
    (name, program, own): (&'static str, &Program, &Program),
    files: &mut ScratchFiles,
) -> Result<Contender, LaboratoryError> {
    // Beside a load, our client calls every server: the servers are compared.
    let client = if subject.kind == Kind::Priority {
        own
    } else {
        program
    };
    let shape = Shape {
        variant: subject.variant,
        ..Shape::default()
    };
    let programs = (program, client);
    let system = start(session, subject, name, programs, shape.clone())?;
    if subject.kind != Kind::Objects {
        return Ok(Contender {
            system,
            alone: None,
        });
    }
    let shape = Shape {
        objects: subject.settings.objects,
        references: Some(files.file(name)),
        ..shape
    };
    Ok(Contender {
        alone: Some(system),
        system: start(session, subject, name, programs, shape)?,
    })
}

fn start(
    session: &mut Session<'_>,
    subject: &Subject<'_>,
    name: &'static str,
    (server, client): (&Program, &Program),
    shape: Shape,
) -> Result<System, LaboratoryError> {
    let places = subject.places;
    let ((server_role, client_role), load_role) = match name {
        RAW => (Role::RAW, Role::RawLoad),
        _ => (Role::ORB, Role::OrbLoad),
    };
    let is_priority = subject.kind == Kind::Priority;
    let place = if is_priority {
        places.client.at(HIGH_PRIORITY)
    } else {
        places.client
    };
    // Foreign servers have no lanes.
    let has_lanes = is_priority && server.is_own && name != RAW;
    session.start(&Plan {
        name,
        server: (server, server_role, places.server),
        client: (client, client_role, place),
        load: is_priority.then_some((client, load_role, places.client)),
        shape: Shape {
            clients: subject.settings.low_clients,
            lanes: has_lanes.then_some((HIGH_PRIORITY, FIFO_PRIORITY)),
            ..shape
        },
    })
}

/// Files that are removed with the contest.
struct ScratchFiles(Vec<PathBuf>);

impl ScratchFiles {
    fn file(&mut self, name: &str) -> PathBuf {
        let name = format!("deckwatch-bench-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        self.0.push(path.clone());
        path
    }
}

impl Drop for ScratchFiles {
    fn drop(&mut self) {
        for path in &self.0 {
            // The server may have failed before it wrote the file.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Longer runs of real-time threads that never sleep are throttled by the kernel once a second.
pub(super) const REAL_TIME_RUN: Duration = Duration::from_millis(850);

/// Pairs that warm up a just-in-time compiler.
const JIT_WARM_UPS: usize = 8;

/// Pairs with sockperf, each of which takes more than a second.
const CHECK_ROUNDS: usize = 3;

/// The smallest message that sockperf sends.
const SOCKPERF_SIZE_MIN: usize = 14;
