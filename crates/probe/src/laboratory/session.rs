//! A bench or an experiment in progress: the turns of its systems, and the document that it leaves.

mod document;
mod forecast;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use deckwatch_meter::experiment::Skip;
use deckwatch_meter::provenance::Readings;
use deckwatch_os::schedule::set_affinity;
use deckwatch_os::signal;

use super::condition::{Condition, Places};
use super::end::Role;
use super::error::LaboratoryError;
use super::foreign::{self, Foreign};
use super::inserted::Inserted;
use super::process::{RunLimits, rest};
use super::program::{Program, Shape};
use super::system::{Plan, System};
use super::{OMNIORB, OURS};
use crate::limits::BENCH_SAMPLES_MAX;

pub(crate) use document::Found;
use forecast::Forecast;

/// The parameters of every bench and experiment.
#[derive(Clone, Debug)]
pub struct Setup {
    /// This program.
    pub program: PathBuf,
    /// Its version and commit.
    pub version: String,
    /// Number of rounds.
    pub rounds: usize,
    /// Duration of one run. Below one second, the kernel does not throttle real-time threads.
    pub run_budget: Duration,
    /// What our servants do in addition, to check that it shows.
    pub inserted: Inserted,
    /// Foreign ORBs that are left out.
    pub without: Vec<String>,
}

/// Progress, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The round; 0 is the warm-up round.
    pub round: usize,
    /// Number of rounds.
    pub rounds: usize,
    /// The present run.
    pub now: String,
    /// How long the whole will probably take; zero while that is unknown.
    pub total: Duration,
    /// How long the rest of it will probably take.
    pub left: Duration,
}

/// One turn: one system in one case of one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) round: usize,
    pub(crate) case: usize,
    pub(crate) system: usize,
}

/// One case of a round: its name in the reasons for skips, and the systems that take turns.
pub(crate) struct TurnCase {
    pub(crate) name: String,
    pub(crate) systems: Vec<&'static str>,
}

impl TurnCase {
    /// `count` cases without names and with the same systems.
    pub(crate) fn alike(count: usize, systems: &[&'static str]) -> Vec<Self> {
        let one = |_| Self {
            name: String::new(),
            systems: systems.to_vec(),
        };
        (0..count).map(one).collect()
    }
}

/// A bench or an experiment in progress.
pub(crate) struct Session<'t> {
    pub(crate) setup: Setup,
    pub(crate) skipped: Vec<Skip>,
    /// All ends got the scheduling class that was asked for.
    pub(crate) is_placed: bool,
    /// The user has not ended it early.
    pub(crate) is_whole: bool,
    /// Why it cannot go on.
    pub(crate) broken_off: Option<LaboratoryError>,
    tell: &'t mut dyn FnMut(&Progress),
    runs_done: usize,
    runs_expected: usize,
    forecast: Forecast,
    started_at: SystemTime,
    before: Readings,
}

impl<'t> Session<'t> {
    pub(crate) fn new(setup: &Setup, tell: &'t mut dyn FnMut(&Progress)) -> Self {
        Self {
            setup: setup.clone(),
            skipped: Vec::new(),
            is_placed: true,
            is_whole: true,
            broken_off: None,
            tell,
            runs_done: 0,
            runs_expected: 0,
            forecast: Forecast::default(),
            started_at: SystemTime::now(),
            before: Readings::take(),
        }
    }

    /// Takes the places of a condition. This process moves to the processors that are left.
    pub(crate) fn enter(&mut self, condition: Condition) -> Result<Places, LaboratoryError> {
        let places = condition.places()?;
        self.move_away(&places);
        Ok(places)
    }

    /// Moves this process away from the processors of the ends. If it may not move, its own work shows as pressure.
    pub(crate) fn move_away(&mut self, places: &Places) {
        self.is_placed &= !places.is_refused;
        let _ = set_affinity(&places.own);
    }

    /// This program, for the ends of our own.
    pub(crate) fn own(&self) -> Program {
        Program {
            path: self.setup.program.clone(),
            is_own: true,
            inserted: self.setup.inserted,
        }
    }

    /// A foreign program, built on demand. Returns `None` if it is left out or cannot be built; the reason is noted.
    pub(crate) fn foreign(&mut self, peer: &Foreign) -> Option<Program> {
        let name = peer.name;
        if self.setup.without.iter().any(|it| it == name) {
            self.skip(name, "left out as asked");
            return None;
        }
        if let Some(reason) = peer.missing() {
            self.skip(name, &reason);
            return None;
        }
        self.show(0, format!("building {name}"));
        let begun = Instant::now();
        let built = peer.program(&self.setup.program);
        self.forecast.leave_out(begun.elapsed());
        let path = self.or_skip(name, built)?;
        Some(Program {
            path,
            is_own: false,
            inserted: self.setup.inserted,
        })
    }

    /// omniORB's program, as [`Self::foreign`].
    pub(crate) fn omniorb(&mut self) -> Option<Program> {
        let peer = foreign::ALL.iter().find(|peer| peer.name == OMNIORB);
        peer.and_then(|peer| self.foreign(peer))
    }

    /// Starts a system and notes whether it got its scheduling class.
    pub(crate) fn start(&mut self, plan: &Plan<'_>) -> Result<System, LaboratoryError> {
        let system = System::start(plan)?;
        self.is_placed &= system.is_placed;
        Ok(system)
    }

    /// Starts a server and a client of subjects: our ORB's, and omniORB's if it is available.
    pub(crate) fn subjects(
        &mut self,
        places: &Places,
        shape: &Shape,
    ) -> Result<Vec<System>, LaboratoryError> {
        let both = (places.server, places.client);
        let shape = || Shape {
            subjects: true,
            ..shape.clone()
        };
        let own = self.own();
        let ours = self.start(&Plan::pair(OURS, &own, Role::ORB, both, shape()))?;
        let mut systems = vec![ours];
        if let Some(omniorb) = self.omniorb() {
            let started = self.start(&Plan::pair(OMNIORB, &omniorb, Role::ORB, both, shape()));
            systems.extend(self.or_skip(OMNIORB, started));
        }
        Ok(systems)
    }

    /// Returns the value of a foreign system. If it has failed, notes the reason and returns `None`.
    pub(crate) fn or_skip<T>(
        &mut self,
        system: &str,
        result: Result<T, LaboratoryError>,
    ) -> Option<T> {
        result
            .map_err(|error| self.skip(system, &error.to_string()))
            .ok()
    }

    /// Notes a system or part that is not measured, once.
    pub(crate) fn skip(&mut self, what: &str, reason: &str) {
        let skip = Skip {
            what: what.to_owned(),
            reason: reason.to_owned(),
        };
        if !self.skipped.contains(&skip) {
            self.skipped.push(skip);
        }
    }

    /// Sets the number of runs in a round, for the display of progress.
    pub(crate) fn expect_runs(&mut self, in_a_round: usize) {
        self.runs_expected = in_a_round * self.setup.rounds;
        let runs = u32::try_from(self.runs_expected).unwrap_or(u32::MAX);
        self.plan(self.run_time().saturating_mul(runs));
    }

    /// A run and the rest after it.
    fn run_time(&self) -> Duration {
        self.setup.run_budget + self.setup.run_budget / REST_SHARE
    }

    /// Begins with the time that the whole will probably take.
    pub(crate) fn plan(&mut self, planned: Duration) {
        self.forecast = Forecast::begin(planned, Instant::now());
    }

    /// Notes that so much more of the planned time is done.
    pub(crate) fn spend(&mut self, planned: Duration) {
        let done = self.forecast.done() + planned;
        self.forecast.set_done(done);
    }

    /// How much of the planned time is done.
    pub(crate) fn done(&self) -> Duration {
        self.forecast.done()
    }

    /// Notes that so much of the planned time is done altogether.
    pub(crate) fn set_done(&mut self, planned: Duration) {
        self.forecast.set_done(planned);
    }

    /// Shows the progress in rounds.
    pub(crate) fn show(&mut self, round: usize, now: String) {
        self.show_step(round, self.setup.rounds, now);
    }

    /// Shows the progress in other steps than rounds.
    pub(crate) fn show_step(&mut self, round: usize, rounds: usize, now: String) {
        let (total, left) = self.forecast.at(Instant::now());
        (self.tell)(&Progress {
            round,
            rounds,
            now,
            total,
            left,
        });
    }

    /// Begins a run and shows it with its number. Returns false if the user wants to end.
    pub(crate) fn begin_run(&mut self, round: usize, now: &str) -> bool {
        let runs = u32::try_from(self.runs_done).unwrap_or(u32::MAX);
        self.set_done(self.run_time().saturating_mul(runs));
        self.runs_done += 1;
        let (done, expected) = (self.runs_done, self.runs_expected.max(self.runs_done));
        self.show(round, format!("{now} (run {done} of {expected})"));
        signal::ending().is_none()
    }

    /// Gives each system its turn in each case of each round. The system that begins changes with each round. `measure`
    /// returns false if the user wants to end.
    ///
    /// A foreign system that fails is left out from then on. A failure of our own ends or of raw TCP ends the turns,
    /// and what was measured is kept. Returns false if the turns have ended early.
    pub(crate) fn take_turns(
        &mut self,
        rounds: RangeInclusive<usize>,
        cases: &[TurnCase],
        measure: &mut dyn FnMut(&mut Self, Turn) -> Result<bool, LaboratoryError>,
    ) -> bool {
        let mut failed: Vec<&'static str> = Vec::new();
        let first = *rounds.start();
        for round in rounds {
            for (case, TurnCase { name, systems }) in cases.iter().enumerate() {
                for turn in 0..systems.len() {
                    let system = (turn + round - first) % systems.len();
                    let peer = systems[system];
                    if failed.contains(&peer) {
                        continue;
                    }
                    let turn = Turn {
                        round,
                        case,
                        system,
                    };
                    let measured = match signal::ending() {
                        None => measure(self, turn),
                        Some(_) => Ok(false),
                    };
                    match measured {
                        Ok(true) => {}
                        Err(error) if signal::ending().is_none() => {
                            if !foreign::PEERS.contains(&peer) {
                                self.broken_off = Some(error);
                                return false;
                            }
                            failed.push(peer);
                            self.skip(peer, &format!("{name}{error}"));
                        }
                        // The signal may be what made it fail.
                        _ => {
                            self.is_whole = false;
                            return false;
                        }
                    }
                }
            }
        }
        true
    }

    /// The limits of a run.
    pub(crate) fn limits(&self) -> RunLimits {
        RunLimits {
            count: RUN_COUNT_MAX,
            budget: self.setup.run_budget,
        }
    }
}

impl Places {
    /// Sleeps between runs, so that the kernel does not throttle real-time threads.
    pub(crate) fn rest(&self, run_time: Duration) {
        if matches!(self.condition, Condition::Pinned | Condition::TwoCores) {
            rest(run_time / REST_SHARE);
        }
    }
}

/// The kernel throttles real-time threads that leave nothing of a second: they rest for this share of a run's time.
const REST_SHARE: u32 = 2;

/// Calls of one run; its time may end it earlier.
const RUN_COUNT_MAX: usize = 100_000;
const _: () = assert!(RUN_COUNT_MAX <= BENCH_SAMPLES_MAX);
