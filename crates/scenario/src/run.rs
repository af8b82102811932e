//! Runs a mission: makes the testbed, starts every process in its place, watches the schedule, and judges what was
//! measured.
//!
//! The order: testbed, loads, naming services, event channels, consumers, packet taps, suppliers; when all are ready,
//! the schedule starts. After the last message and the drain all stop; records and captures are joined, judged and
//! written. However the run ends, its processes end and its testbed is removed. The next run removes what a killed
//! coordinator leaves.

mod child;
mod conclude;
mod crew;
mod document;
mod environment;
mod folder;
mod observe;
mod plans;
mod start;
mod watch;

use std::path::PathBuf;
use std::time::SystemTime;

use deckwatch_meter::provenance::Readings;
use deckwatch_meter::result::{ResultDocument, Warning};
use deckwatch_testbed::{Environment, HostSpec, LOOPBACK, Testbed, TestbedError, preset};

pub use folder::{ResultFolder, clean_work_folders};
pub use observe::{Interrupt, Observer, Phase, RunProgress, StreamProgress};

use crate::mission::Mission;
use crate::stream::{Stream, StreamError, streams};
use crew::Crew;
use folder::WorkFolder;
use plans::Planner;

/// How a mission is to be run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The program whose hidden subcommand `part` plays the parts: this program.
    pub program: PathBuf,
    /// Version of this program, with its commit where that is known.
    pub version: String,
    /// Where the result goes: a folder that is empty or not there; one in `results/` named after mission and time if
    /// none is given.
    pub output: Option<PathBuf>,
    /// Whether hosts and network are emulated where that is permitted.
    pub emulation: bool,
    /// Whether packet captures are kept in the result folder.
    pub keep_captures: bool,
}

/// What a run left.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The result document, as it was written.
    pub document: ResultDocument,
    /// The result folder.
    pub folder: PathBuf,
    /// The signal that ended it early.
    pub interrupted_by: Option<&'static str>,
    /// Why the folder does not hold all of the result, a whole sentence; none where it does.
    pub unwritten: Option<String>,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The streams cannot be made.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The testbed cannot be made.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// A folder cannot be made or written.
    #[error("The folder {} cannot be written ({error}). Name another with --output.", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The result folder holds something already.
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
    /// A process cannot be started.
    #[error("The {process} cannot be started ({error}).")]
    CannotStart {
        /// What it was to be.
        process: String,
        /// Why.
        error: std::io::Error,
    },
    /// A process that the run needs did not become ready.
    #[error("The {process} did not become ready: {how}. Nothing was measured.")]
    NotReady {
        /// What it was to be.
        process: String,
        /// What became of it.
        how: String,
    },
    /// The run was interrupted before its schedule started.
    #[error(
        "The run was interrupted by {signal} before its schedule started. Nothing was measured."
    )]
    Interrupted {
        /// What interrupted it.
        signal: &'static str,
    },
    /// The result cannot be made, or not written.
    #[error("The result cannot be kept: {0}")]
    Result(String),
}

/// Runs a mission to its end, or to an early one, and writes its result. What was measured and cannot be written,
/// because a disk is full, is still returned.
///
/// To be called from a thread that lives as long as the run: its processes die with the thread that started them.
///
/// # Errors
/// [`RunError`]; then nothing was measured, no process is left, and no testbed.
pub fn run(
    mission: &Mission,
    settings: &Settings,
    interrupt: &Interrupt,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    let streams = streams(mission)?;
    let started_at = SystemTime::now();
    // Dropped last: nothing of this run is in it then.
    let result_folder = ResultFolder::make(settings.output.as_deref(), &mission.name, started_at)?;
    observer.phase(Phase::Testbed, "Making hosts and network");
    let testbed = make_testbed(mission, settings, observer)?;
    clean_work_folders();
    let work = WorkFolder::make(records_size(mission, &streams), result_folder.path())?;
    let planner = Planner {
        mission,
        testbed: &testbed,
        work: work.path(),
        names: vec![None; mission.hosts.len()],
    };
    // Dropped before testbed and work folder, which the processes use.
    let crew = Crew::new(settings.program.clone());
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
    if matches!(testbed.environment(), Environment::Namespaces) {
        // This process is in none of the hosts' network namespaces: its own counters do not belong to this run.
        disturbance.udp_receive_overflows = None;
        disturbance.udp_send_errors = None;
    }
    run.conclude(&measured, disturbance, started_at, result_folder.path())
}

/// A run under way.
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
) -> Result<Testbed, RunError> {
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
        // Without the privilege nothing can be left to remove either.
        Err(error) => tracing::info!(%error, "leftovers were not removed"),
    }
    let host =
        |host: &crate::mission::Host| HostSpec::new(host.name.clone()).on(host.processors.clone());
    let hosts: Vec<HostSpec> = mission.hosts.iter().map(host).collect();
    let network = if settings.emulation {
        mission.network.clone()
    } else {
        preset(LOOPBACK)?
    };
    Ok(Testbed::create(&network, &hosts)?)
}

/// Octets of all record files, generously.
fn records_size(mission: &Mission, streams: &[Stream]) -> u64 {
    let of = |stream: &Stream| {
        let messages =
            stream.plan.schedule.expected_messages() * mission.flows[stream.flow].to.len() as f64;
        messages * RECORD_SIZES + FILE_SIZE
    };
    streams.iter().map(of).sum::<f64>() as u64
}

/// Octets of one message's records at supplier and consumer, with a quarter more for duplicates.
const RECORD_SIZES: f64 = 100.0;
/// Octets of the files of a stream that hold no message.
const FILE_SIZE: f64 = 1e6;
