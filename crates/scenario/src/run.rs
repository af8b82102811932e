//! Runs a mission: makes the testbed, starts every process on its host, supervises the schedule, and judges the
//! measurement.
//!
//! The processes start in this order: loads, naming services, event channels, consumers, packet taps, suppliers. The
//! schedule starts when all are ready. After the last message and the drain, all processes stop. The records and
//! captures are then joined, judged and written. However the run ends, its processes end and its testbed is removed. If
//! the coordinator is killed, the next run removes what it leaves.

mod child;
mod clocks;
mod conclude;
mod crew;
mod document;
mod entries;
mod environment;
mod folder;
mod loads;
mod observe;
mod plans;
mod start;
mod station;
mod taken;
mod watch;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use deckwatch_carrier::carriers::CarrierRef;
use deckwatch_meter::provenance::Readings;
use deckwatch_meter::result::{ResultDocument, Warning};
use deckwatch_testbed::{
    Environment, HostSpec, LOOPBACK, RelayProgram, Testbed, TestbedError, preset,
};

pub(crate) use child::{Line, from_far, killed_by};
pub use folder::{ResultFolder, clean_work_folders};
pub use observe::{Interrupt, Observer, Phase, RunProgress, StreamProgress};

use crate::mission::{Location, Mission};
use crate::reach::{self, ReachError};
use crate::room::Room;
use crate::stream::{Stream, StreamError, streams};
use child::Common;
use crew::Crew;
use folder::WorkFolder;
use plans::Planner;
use station::Station;

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The path of this program: its hidden subcommand `part` runs the other processes.
    pub program: PathBuf,
    /// Version of this program, with its commit if known.
    pub version: String,
    /// Version and build of this program. A far host must have the same.
    pub build: String,
    /// The result folder, which must be empty or absent. The default is a folder in `results/`, named after mission and
    /// time.
    pub output: Option<PathBuf>,
    /// Whether hosts and network are emulated, if that is permitted.
    pub emulation: bool,
    /// Whether packet captures are kept in the result folder.
    pub keep_captures: bool,
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The result document, as it was written.
    pub document: ResultDocument,
    /// The result folder.
    pub folder: PathBuf,
    /// The signal that ended the run early.
    pub interrupted_by: Option<&'static str>,
    /// The reason why the folder does not hold the whole result, as a sentence; `None` if it does.
    pub unwritten: Option<String>,
}

/// The reason why a run has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The streams cannot be made.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The testbed cannot be made.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// A far host cannot be used.
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// A folder cannot be made or written.
    #[error("The folder {} cannot be written ({error}). Name another with --output.", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The result folder is not empty.
    #[error("The folder {} is not empty. Name a new one with --output.", path.display())]
    FolderTaken {
        /// The folder.
        path: PathBuf,
    },
    /// Another run writes into the result folder.
    #[error("Another run writes into the folder {}. Name a new one with --output.", path.display())]
    FolderInUse {
        /// The folder.
        path: PathBuf,
    },
    /// The memory file system has no room for records and captures.
    #[error("{refusal} Nothing was started.")]
    NoRoom {
        /// What is missing and what to do, in whole sentences.
        refusal: String,
    },
    /// A process cannot be started.
    #[error("The {process} cannot be started ({error}).")]
    CannotStart {
        /// The process.
        process: String,
        /// Why.
        error: std::io::Error,
    },
    /// Programs of external carriers did not become ready.
    #[error("The {process} did not become ready: {how}. Nothing was measured.")]
    CarriersNotReady {
        /// The first of the processes.
        process: String,
        /// How it failed.
        how: String,
        /// The carriers, each with its reason.
        carriers: Vec<(CarrierRef, String)>,
    },
    /// A process that the run needs did not become ready.
    #[error("The {process} did not become ready: {how}. Nothing was measured.")]
    NotReady {
        /// The process.
        process: String,
        /// How it failed.
        how: String,
    },
    /// The run was interrupted before its schedule started.
    #[error(
        "The run was interrupted by {signal} before its schedule started. Nothing was measured."
    )]
    Interrupted {
        /// The signal.
        signal: &'static str,
    },
    /// The result cannot be made.
    #[error("The result cannot be kept: {0}")]
    Result(String),
}

/// Runs a mission to its end, or until it is interrupted, and writes its result. A result that cannot be written, for
/// example because a disk is full, is still returned.
///
/// Call this from a thread that lives as long as the run: the kernel kills the processes when the thread that started
/// them ends.
///
/// # Errors
/// [`RunError`]. Then nothing was measured, and no process and no testbed is left.
pub fn run(
    mission: &Mission,
    settings: &Settings,
    interrupt: &Interrupt,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    let streams = streams(mission)?;
    // What killed runs left there takes room.
    clean_work_folders();
    if let Some(refusal) = Room::of(mission, &streams).refusal() {
        return Err(RunError::NoRoom { refusal });
    }
    let started_at = SystemTime::now();
    // Dropped last, when the work folder in it is already removed.
    let result_folder = ResultFolder::make(settings.output.as_deref(), &mission.name, started_at)?;
    if mission.far_hosts().next().is_some() {
        observer.phase(Phase::Reach, "Reaching far hosts");
        reach::check(mission, &settings.build)?;
    }
    let mut mission = mission.clone();
    for (carrier, missing) in reach::missing_adapters(&mission)? {
        if !mission.leave_out(carrier, missing.to_string()) {
            return Err(missing.into());
        }
        observer.notice(&format!("The carrier {carrier} is left out: {missing}"));
    }
    observer.phase(Phase::Testbed, "Making hosts and network");
    let testbed = make_testbed(&mission, settings, observer)?;
    let scene = Scene {
        settings,
        testbed: testbed.as_ref(),
        result_folder: result_folder.path(),
        started_at,
    };
    loop {
        match attempt(&mission, &scene, interrupt, observer) {
            Err(RunError::CarriersNotReady {
                process,
                how,
                carriers,
            }) => {
                for (carrier, reason) in carriers {
                    if !mission.leave_out(carrier, reason.clone()) {
                        return Err(RunError::NotReady { process, how });
                    }
                    observer.notice(&format!("The carrier {carrier} is left out: {reason}."));
                }
            }
            ended => return ended,
        }
    }
}

/// What the attempts of one run have in common.
struct Scene<'r> {
    settings: &'r Settings,
    testbed: Option<&'r Testbed>,
    result_folder: &'r Path,
    started_at: SystemTime,
}

/// Runs a mission on its testbed.
fn attempt(
    mission: &Mission,
    scene: &Scene<'_>,
    interrupt: &Interrupt,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    let &Scene {
        settings,
        testbed,
        result_folder,
        started_at,
    } = scene;
    let streams = streams(mission)?;
    let work = WorkFolder::make()?;
    let name_of_run = name_of_run(SystemTime::now());
    let planner = Planner {
        mission,
        testbed,
        stations: Station::all(mission, testbed),
        work: work.path(),
        names: vec![None; mission.hosts.len()],
        brokers: vec![None; streams.len()],
        run: name_of_run.clone(),
    };
    // Dropped before the testbed and the work folder: its processes use both.
    let crew = Crew::new(Common {
        program: settings.program.clone(),
        build: settings.build.clone(),
        run: name_of_run,
    });
    let mut run = Run {
        mission,
        settings,
        streams: &streams,
        planner,
        crew,
        interrupt,
        observer,
        warnings: Vec::new(),
    };
    run.start_all()?;
    let readings = Readings::take();
    let measured = run.measure();
    let mut disturbance = readings.until(&Readings::take());
    // With dead wires every message is lost, and nothing is said about the mission.
    testbed.map_or(Ok(()), Testbed::check)?;
    run.warnings.extend(relay_overflow(testbed)?);
    let environment = testbed.map(Testbed::environment);
    if environment == Some(Environment::Namespaces) {
        // This process is outside the hosts' network namespaces, so that its own counters do not belong to this run.
        disturbance.udp_receive_overflows = None;
        disturbance.udp_send_errors = None;
    }
    disturbance.taken = measured
        .taken
        .iter()
        .map(|taken| taken.time.clone())
        .collect();
    run.conclude(&measured, disturbance, started_at, result_folder)
}

/// Returns a warning if the relay lost frames that a real network would have carried.
fn relay_overflow(testbed: Option<&Testbed>) -> Result<Option<Warning>, RunError> {
    let state = testbed.map_or(Ok(None), Testbed::relay_state)?;
    let lost = state.map_or(0, |state| state.overflowed);
    Ok((lost > 0).then(|| Warning {
        kind: "relay-overflow".to_owned(),
        text: format!(
            "The relay of the network was too late to receive {lost} frames, which are lost. This machine cannot relay \
             so many packets a second; run with --emulation shaper."
        ),
    }))
}

/// A run in progress.
struct Run<'r> {
    mission: &'r Mission,
    settings: &'r Settings,
    streams: &'r [Stream],
    planner: Planner<'r>,
    crew: Crew,
    interrupt: &'r Interrupt,
    observer: &'r mut dyn Observer,
    warnings: Vec<Warning>,
}

fn make_testbed(
    mission: &Mission,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<Option<Testbed>, RunError> {
    match Testbed::clean_leftovers() {
        Ok(removed) if removed.is_empty() => {}
        Ok(removed) => observer.notice(&format!(
            "Removed what {} run(s) that were killed had left behind: {}.",
            removed.len(),
            removed
                .iter()
                .map(|standing| standing.owner.to_string())
                .collect::<Vec<_>>()
                .join(", ")
        )),
        // Without the privilege, no earlier run has left anything to remove.
        Err(error) => tracing::info!(%error, "leftovers were not removed"),
    }
    let host =
        |host: &crate::mission::Host| HostSpec::new(host.name.clone()).on(host.processors.clone());
    let emulated = mission
        .hosts
        .iter()
        .filter(|host| host.location == Location::Emulated);
    let hosts: Vec<HostSpec> = emulated.map(host).collect();
    if hosts.is_empty() {
        return Ok(None);
    }
    let network = if settings.emulation {
        mission.network.clone()
    } else {
        preset(LOOPBACK)?
    };
    let relay = RelayProgram::at(settings.program.clone());
    Ok(Some(Testbed::create_by(&relay, &network, &hosts)?))
}

/// Returns the name of the run on far hosts, which no other run has.
fn name_of_run(started_at: SystemTime) -> String {
    let since = started_at
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    format!("{}x{:x}", std::process::id(), since.as_nanos())
}
