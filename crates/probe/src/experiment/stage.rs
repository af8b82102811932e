//! What the experiments share: the systems' processes, the turns they take, and the document that comes of it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

use deckwatch_meter::experiment::{
    EXPERIMENT_SCHEMA_VERSION, ExperimentDocument, Figure, Measurement, Skip, time_values,
};
use deckwatch_meter::histogram::LatencyHistogram;
use deckwatch_meter::provenance::{self, Readings};
use deckwatch_meter::result::{ClockNote, Warning};
use deckwatch_os::schedule::set_affinity;
use deckwatch_os::signal;

use super::end::EndRole;
use crate::bench::condition::{Condition, Places};
use crate::bench::foreign::OMNIORB_SUBJECTS;
use crate::bench::process::{End, RunLimits, rest};
use crate::bench::program::Place;
use crate::bench::{BROKEN_OFF, BenchError, ENDED_EARLY, Progress};
use crate::limits::BENCH_SAMPLES_MAX;

/// What every experiment is told.
#[derive(Clone, Debug)]
pub struct Staging {
    /// This program.
    pub program: PathBuf,
    /// Its version and commit.
    pub version: String,
    /// Where both ends run.
    pub condition: Condition,
    /// How often everything is measured.
    pub rounds: usize,
    /// How long one run may take.
    pub run_budget: Duration,
    /// A delay put into every subject, to see that it shows.
    pub servant_delay: Duration,
    /// Locks put into each call of our subjects, to see that they are counted.
    pub servant_locks: u32,
}

/// Names of the systems, as they stand in every document.
pub(super) const OURS: &str = "deckwatch";
pub(super) const OMNIORB: &str = "omniorb";
pub(super) const RAW: &str = "raw TCP";

/// Real-time threads that leave nothing are stalled once a second: they rest between runs for a share of their time.
const REST_SHARE: u32 = 2;

/// A server and its client.
pub(super) struct System {
    pub(super) name: &'static str,
    pub(super) reference: String,
    pub(super) server: End,
    pub(super) client: End,
}

/// What a server is told besides.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extra {
    pub(super) factors: bool,
}

/// An experiment that is going on.
pub(super) struct Stage<'t> {
    pub(super) staging: Staging,
    pub(super) places: Places,
    pub(super) skipped: Vec<Skip>,
    pub(super) is_placed: bool,
    is_whole: bool,
    /// Systems that have failed.
    out: Vec<&'static str>,
    /// Why it cannot go on.
    broken_off: Option<BenchError>,
    tell: &'t mut dyn FnMut(&Progress),
    round: usize,
    done: usize,
    of: usize,
    started_at: SystemTime,
    before: Readings,
}

impl<'t> Stage<'t> {
    /// Takes the places of the condition; the experiment itself stays out of the way.
    pub(super) fn new(
        staging: &Staging,
        tell: &'t mut dyn FnMut(&Progress),
    ) -> Result<Self, BenchError> {
        let places = staging.condition.places()?;
        let _stays = set_affinity(&places.own);
        Ok(Self {
            staging: staging.clone(),
            is_placed: !places.is_refused,
            places,
            skipped: Vec::new(),
            is_whole: true,
            out: Vec::new(),
            broken_off: None,
            tell,
            round: 0,
            done: 0,
            of: 0,
            started_at: SystemTime::now(),
            before: Readings::take(),
        })
    }

    /// Our ORB's processes.
    pub(super) fn ours(&mut self, extra: Extra) -> Result<System, BenchError> {
        let places = (self.places.server, self.places.client);
        let mut server = self.server_command(places.0, extra);
        let mut server = self.start("The server of deckwatch", &mut server)?;
        let (reference, placed) = greeted(&mut server, places.0)?;
        let client = self.client(OURS, places.1, &reference)?;
        self.is_placed &= placed;
        Ok(System {
            name: OURS,
            reference,
            server,
            client,
        })
    }

    /// A server of our ORB, as a command.
    pub(super) fn server_command(&self, place: Place, extra: Extra) -> Command {
        let mut command = self.own(EndRole::Server, place);
        let delay = self.staging.servant_delay.as_nanos().to_string();
        command.args(["--servant-delay-ns", &delay]);
        let locks = self.staging.servant_locks.to_string();
        command.args(["--servant-locks", &locks]);
        if extra.factors {
            command.arg("--factors");
        }
        command
    }

    /// A client of one of the systems.
    pub(super) fn client(
        &mut self,
        system: &'static str,
        place: Place,
        reference: &str,
    ) -> Result<End, BenchError> {
        let mut command = if system == OMNIORB {
            let mut command = Command::new(OMNIORB_SUBJECTS.program(&self.staging.program)?);
            command.arg("client");
            foreign_place(&mut command, place);
            command.arg(reference);
            command
        } else {
            let mut command = self.own(EndRole::Client, place);
            command.args(["--reference", reference]);
            command
        };
        let mut client = self.start(&format!("The client of {system}"), &mut command)?;
        let (_, placed) = greeted(&mut client, place)?;
        self.is_placed &= placed;
        Ok(client)
    }

    /// omniORB's processes; none where it is not here or fails, which is noted.
    pub(super) fn omniorb(&mut self, extra: Extra) -> Option<System> {
        let started = self.start_omniorb(extra);
        self.or_skip(OMNIORB, started).flatten()
    }

    /// What came of a foreign system; none where it failed, which is noted.
    pub(super) fn or_skip<T>(
        &mut self,
        system: &'static str,
        came: Result<T, BenchError>,
    ) -> Option<T> {
        came.map_err(|error| self.skip(system, &error.to_string()))
            .ok()
    }

    fn start_omniorb(&mut self, extra: Extra) -> Result<Option<System>, BenchError> {
        let places = (self.places.server, self.places.client);
        let Some(mut server) = self.omniorb_server(places.0, extra)? else {
            return Ok(None);
        };
        let (reference, placed) = greeted(&mut server, places.0)?;
        self.is_placed &= placed;
        let client = self.client(OMNIORB, places.1, &reference)?;
        Ok(Some(System {
            name: OMNIORB,
            reference,
            server,
            client,
        }))
    }

    /// Its server, which has not been heard yet.
    pub(super) fn omniorb_server(
        &mut self,
        place: Place,
        extra: Extra,
    ) -> Result<Option<End>, BenchError> {
        if let Some(reason) = OMNIORB_SUBJECTS.missing() {
            self.skip(OMNIORB, &reason);
            return Ok(None);
        }
        let mut command = Command::new(OMNIORB_SUBJECTS.program(&self.staging.program)?);
        command.arg("server");
        foreign_place(&mut command, place);
        command.arg(self.staging.servant_delay.as_nanos().to_string());
        command.arg(if extra.factors { "factors" } else { "-" });
        Ok(Some(self.start("The server of omniorb", &mut command)?))
    }

    /// A process of this program in a hidden role.
    pub(super) fn own(&self, role: EndRole, place: Place) -> Command {
        let mut command = Command::new(&self.staging.program);
        command.args(["experiment-end", role.word()]);
        if let Some(processor) = place.processor {
            command.args(["--processor", &processor.to_string()]);
        }
        if let Some(fifo) = place.fifo {
            command.args(["--fifo", &fifo.to_string()]);
        }
        command
    }

    pub(super) fn start(&self, what: &str, command: &mut Command) -> Result<End, BenchError> {
        let taken = std::mem::replace(command, Command::new(&self.staging.program));
        End::start(what.to_owned(), taken)
    }

    /// Something that is not here, told once.
    pub(super) fn skip(&mut self, what: &str, reason: &str) {
        let skip = Skip {
            what: what.to_owned(),
            reason: reason.to_owned(),
        };
        if !self.skipped.contains(&skip) {
            self.skipped.push(skip);
        }
    }

    /// So many runs come in a round.
    pub(super) fn expect(&mut self, runs_a_round: usize) {
        self.of = runs_a_round * self.staging.rounds;
    }

    /// The round that begins, from 0.
    pub(super) fn begin_round(&mut self, round: usize) {
        self.round = round;
    }

    /// A run begins; false where the user wants to end.
    pub(super) fn begin_run(&mut self, now: String) -> bool {
        self.done += 1;
        (self.tell)(&Progress {
            round: self.round + 1,
            rounds: self.staging.rounds,
            now: format!("{now} (run {} of {})", self.done, self.of.max(self.done)),
        });
        let goes_on = signal::ending().is_none();
        self.is_whole &= goes_on;
        goes_on
    }

    /// Lets a system take its turn; false where the experiment ends. One that is foreign and fails is left out from then on; without ours, or
    /// raw TCP, there is nothing to go on with, and what was measured is kept.
    pub(super) fn turn(
        &mut self,
        system: &'static str,
        measure: impl FnOnce(&mut Self) -> Result<bool, BenchError>,
    ) -> bool {
        if self.out.contains(&system) {
            return true;
        }
        let measured = measure(self);
        match measured {
            Err(ref error) if system == OMNIORB && !matches!(error, BenchError::Interrupted(_)) => {
                self.out.push(system);
                let _noted = self.or_skip(system, measured);
                true
            }
            Ok(true) => true,
            Ok(false) | Err(BenchError::Interrupted(_)) => {
                self.is_whole = false;
                false
            }
            Err(error) => {
                self.broken_off = Some(error);
                false
            }
        }
    }

    /// How long a run may take.
    pub(super) fn limits(&self) -> RunLimits {
        RunLimits {
            count: RUN_COUNT_MAX.min(BENCH_SAMPLES_MAX),
            budget: self.staging.run_budget,
        }
    }

    /// Lets the kernel's other threads run.
    pub(super) fn rest(&self) {
        if self.places.server.fifo.is_some() {
            rest(self.staging.run_budget / REST_SHARE);
        }
    }

    /// What the experiment says about itself.
    fn warnings(&self) -> Vec<Warning> {
        let broken_off = self.broken_off.as_ref().map(ToString::to_string);
        let mut warnings = Vec::new();
        let mut warn = |holds: bool, kind: &str, text: &str| {
            if holds {
                warnings.push(Warning {
                    kind: kind.to_owned(),
                    text: text.to_owned(),
                });
            }
        };
        warn(!self.is_placed, "not-real-time", NOT_REAL_TIME);
        warn(cfg!(debug_assertions), "debug-build", DEBUG_BUILD);
        warn(
            broken_off.is_some(),
            BROKEN_OFF,
            &format!(
                "The experiment could not go on: {}",
                broken_off.as_deref().unwrap_or_default()
            ),
        );
        warn(!self.is_whole, ENDED_EARLY, WAS_ENDED);
        let delay = self.staging.servant_delay;
        warn(
            !delay.is_zero(),
            "servant-delay",
            &format!("The subjects were told to keep busy for {delay:?} in each call."),
        );
        warn(
            self.staging.servant_locks > 0,
            "servant-locks",
            &format!(
                "Our subjects were told to take a lock {} times in each call.",
                self.staging.servant_locks
            ),
        );
        warnings
    }

    /// The document of what was found.
    ///
    /// # Errors
    /// What broke it off, or [`BenchError::Interrupted`], where nothing was.
    pub(super) fn finish(self, found: Found) -> Result<ExperimentDocument, BenchError> {
        if found.measurements.is_empty() {
            let interrupted = BenchError::Interrupted(signal::ending().unwrap_or("a signal"));
            return Err(self.broken_off.unwrap_or(interrupted));
        }
        let disturbance = self.before.until(&Readings::take());
        let mut warnings = disturbance.warnings();
        warnings.extend(found.warnings);
        warnings.extend(self.warnings());
        let run = provenance::Run {
            version: self.staging.version,
            mission_path: String::new(),
            mission_text: String::new(),
            clock: ClockNote {
                shared: true,
                note: "round trips by CLOCK_MONOTONIC of the calling end".to_owned(),
                conversion_error_ns: 0,
            },
        };
        let mut parameters = found.parameters;
        parameters.insert("rounds".to_owned(), self.staging.rounds.to_string());
        parameters.insert(
            "run time".to_owned(),
            format!("{:?}", self.staging.run_budget),
        );
        Ok(ExperimentDocument {
            schema_version: EXPERIMENT_SCHEMA_VERSION,
            experiment: found.experiment.to_owned(),
            title: found.title.to_owned(),
            source: found.source.to_owned(),
            provenance: provenance::provenance(run, self.started_at, &disturbance),
            condition: found.condition.unwrap_or_else(|| self.places.words()),
            parameters,
            measurements: found.measurements,
            figures: found.figures,
            skipped: self.skipped,
            warnings,
        })
    }
}

const NOT_REAL_TIME: &str = "Not every end got SCHED_FIFO, which needs CAP_SYS_NICE or RLIMIT_RTPRIO: others take the processor in between.";
const DEBUG_BUILD: &str = "This is a debug build: build with --release to compare with others.";
const WAS_ENDED: &str = "The experiment was ended before its last round.";

/// Calls of one run: with the budget's end, whichever is first.
const RUN_COUNT_MAX: usize = 100_000;

/// What one experiment has found.
pub(super) struct Found {
    pub(super) experiment: &'static str,
    pub(super) title: &'static str,
    pub(super) source: &'static str,
    pub(super) condition: Option<String>,
    pub(super) parameters: BTreeMap<String, String>,
    pub(super) measurements: Vec<Measurement>,
    pub(super) figures: Vec<Figure>,
    pub(super) warnings: Vec<Warning>,
}

/// What an end got: its reference, and whether the class is the one asked for.
pub(super) fn greeted(end: &mut End, place: Place) -> Result<(String, bool), BenchError> {
    let (is_fifo, reference) = end.greeting()?;
    Ok((reference, is_fifo == place.fifo.is_some()))
}

fn foreign_place(command: &mut Command, place: Place) {
    let or_none = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
    command
        .arg(or_none(place.processor.map(|number| number.to_string())))
        .arg(or_none(place.fifo.map(|number| number.to_string())));
}

/// What is kept of one system in one case, over all rounds.
#[derive(Debug, Default)]
pub(super) struct Kept {
    times_ns: Vec<i64>,
    histogram: LatencyHistogram,
    /// Other values by name, one a round.
    values: BTreeMap<String, Vec<f64>>,
}

impl Kept {
    /// Keeps the calls of a run.
    pub(super) fn times(&mut self, times_ns: &[u32]) {
        for ns in times_ns {
            self.times_ns.push(i64::from(*ns));
            self.histogram.record(i64::from(*ns));
        }
    }

    /// Keeps a value of a run.
    pub(super) fn value(&mut self, name: &str, value: f64) {
        self.values.entry(name.to_owned()).or_default().push(value);
    }

    /// The measurement; none of nothing. Of values of several rounds the median counts.
    pub(super) fn measurement(
        &self,
        system: &str,
        case: &str,
        factors: &[(&str, f64)],
    ) -> Option<Measurement> {
        if self.times_ns.is_empty() && self.values.is_empty() {
            return None;
        }
        let mut values = time_values(&self.times_ns);
        for (name, all) in &self.values {
            let mut sorted = all.clone();
            sorted.sort_by(f64::total_cmp);
            let middle = sorted.len() / 2;
            let median = if sorted.len() % 2 == 1 {
                sorted[middle]
            } else {
                f64::midpoint(sorted[middle - 1], sorted[middle])
            };
            values.insert(name.clone(), median);
        }
        let factors = factors
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value));
        Some(Measurement {
            system: system.to_owned(),
            case: case.to_owned(),
            factors: factors.collect(),
            values,
            samples: self.times_ns.len() as u64,
            histogram: self.histogram.recorded().collect(),
        })
    }
}
