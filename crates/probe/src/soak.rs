//! A soak: all servers under mixed load for hours, with faults by a seed, and a trend of their memory, descriptors,
//! threads and times of calls is a FAIL.
//!
//! | module | what it is |
//! | --- | --- |
//! | `server` | a server as a child process: its start, faults, samples and the calls that its clients made |
//! | `plan` | the faults, their times and their servers, from a seed |
//! | `faults` | carrying out one fault |
//! | `objects`, `names`, `channels` | clients that come and go, and the control |
//! | `document` | the checks and the result |
//!
//! The thread that runs the soak starts and ends all processes, so that the kernel kills them if it dies.

mod channels;
mod document;
mod faults;
mod names;
mod objects;
mod plan;
mod server;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use deckwatch_meter::experiment::ExperimentDocument;
use deckwatch_meter::provenance::Readings;
use deckwatch_os::clock::{monotonic_ns, sleep_until};
use deckwatch_os::signal;

pub use faults::FaultKind;

use crate::laboratory::LaboratoryError;
use crate::laboratory::certificates::Certificates;
use channels::Accounts;
use faults::Faults;
use names::Bindings;
use server::{Kind, Server};

/// The parameters of a soak.
#[derive(Clone, Debug)]
pub struct SoakSetup {
    /// This program.
    pub program: PathBuf,
    /// Its version and commit.
    pub version: String,
    /// The result folder; the words of each server go to a file in it.
    pub folder: PathBuf,
    /// How long the servers are under load.
    pub time: Duration,
    /// The seed of faults and clients.
    pub seed: u64,
    /// The kinds of faults.
    pub faults: Vec<FaultKind>,
}

/// Progress, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoakProgress {
    /// How long the load will last.
    pub left: Duration,
    /// Calls that succeeded so far.
    pub calls: u64,
    /// Calls that failed outside of declared faults.
    pub failed: u64,
    /// The last fault, in words.
    pub fault: Option<String>,
}

/// What the threads of a soak share.
struct Scene {
    servers: Vec<Server>,
    /// The control: round trips over plain TCP.
    machine: Server,
    bindings: Bindings,
    accounts: [Accounts; 3],
    begin_ns: i64,
    seed: u64,
    /// No more load.
    is_over: AtomicBool,
    /// No more consumers.
    is_drained: AtomicBool,
}

impl Scene {
    fn server(&self, kind: Kind) -> &Server {
        let found = self.servers.iter().find(|server| server.kind == kind);
        found.unwrap_or(&self.machine)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }
}

/// Runs a soak.
///
/// # Errors
/// [`LaboratoryError`] if a server cannot be started, or a signal ends the soak before it has begun. A later signal ends
/// it early: what was found until then is judged.
pub fn run(
    setup: &SoakSetup,
    tell: &mut dyn FnMut(&SoakProgress),
) -> Result<ExperimentDocument, LaboratoryError> {
    let (started_at, before) = (SystemTime::now(), Readings::take());
    let work = Work::make()?;
    let servers: Result<Vec<Server>, _> = Kind::SERVERS
        .into_iter()
        .map(|kind| Server::start(kind, setup, &work))
        .collect();
    let scene = Scene {
        servers: servers?,
        machine: Server::control(),
        bindings: Bindings::default(),
        accounts: Accounts::all(),
        begin_ns: monotonic_ns(),
        seed: setup.seed,
        is_over: AtomicBool::new(false),
        is_drained: AtomicBool::new(false),
    };
    if let Some(signal) = signal::ending() {
        return Err(LaboratoryError::Interrupted(signal));
    }
    let mut faults = Faults::new(setup, &scene);
    let (shared, interval) = (&scene, interval(setup.time));
    std::thread::scope(|scope| {
        objects::start(scope, shared);
        names::start(scope, shared);
        channels::start(scope, shared);
        scope.spawn(move || sample(shared, interval));
        watch(setup, shared, &mut faults, tell);
        // Consumers of dead clients are found out by pushes, so that the load goes on until they are.
        faults.finish(shared);
        shared.is_over.store(true, Relaxed);
        channels::drain(shared);
        shared.is_drained.store(true, Relaxed);
    });
    Ok(document::document(
        setup,
        &scene,
        &faults,
        (started_at, &before),
    ))
}

/// Carries out the faults until the time is over or the user ends the soak. Starts servers again that have died.
fn watch(
    setup: &SoakSetup,
    scene: &Scene,
    faults: &mut Faults,
    tell: &mut dyn FnMut(&SoakProgress),
) {
    let end_ns = scene.begin_ns + nanoseconds(setup.time);
    while monotonic_ns() < end_ns && signal::ending().is_none() {
        faults.turn(scene, monotonic_ns() - scene.begin_ns);
        for server in &scene.servers {
            server.revive_if_dead();
        }
        let left = end_ns.saturating_sub(monotonic_ns());
        tell(&SoakProgress {
            left: Duration::from_nanos(left.unsigned_abs()),
            calls: scene.servers.iter().map(Server::calls).sum(),
            failed: scene.servers.iter().map(Server::failed).sum(),
            fault: faults.last(),
        });
        sleep_until(monotonic_ns() + TURN_NS);
    }
}

/// Samples all servers until the load ends.
fn sample(scene: &Scene, interval: Duration) {
    let mut due_ns = scene.begin_ns;
    while !scene.is_over() {
        let now_ns = monotonic_ns();
        if now_ns < due_ns {
            sleep_until(due_ns.min(now_ns + TURN_NS));
            continue;
        }
        due_ns += nanoseconds(interval);
        let at_s = seconds(now_ns - scene.begin_ns);
        for server in scene.servers.iter().chain([&scene.machine]) {
            server.sample(at_s);
        }
    }
}

/// The time between two samples: some hundred points for a trend, and at least ten seconds of a long soak.
fn interval(time: Duration) -> Duration {
    (time / 240).clamp(Duration::from_millis(100), Duration::from_secs(10))
}

/// The time after each start of a server that is not judged: caches, pools and the allocator fill.
fn warm_up(time: Duration) -> Duration {
    (time / 6).clamp(Duration::from_secs(1), Duration::from_secs(600))
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// Sockets, stores, the access table and the certificates, removed when this is dropped.
struct Work {
    folder: PathBuf,
    certificates: Certificates,
}

impl Work {
    fn make() -> Result<Self, LaboratoryError> {
        let name = format!("deckwatch-soak-{}", std::process::id());
        let work = Self {
            certificates: Certificates::make()?,
            folder: std::env::temp_dir().join(name),
        };
        let made = std::fs::create_dir_all(&work.folder)
            .and_then(|()| std::fs::write(work.access(), ACCESS_TABLE));
        made.map_err(|source| LaboratoryError::File {
            path: work.folder.clone(),
            source,
        })?;
        Ok(work)
    }

    fn access(&self) -> PathBuf {
        self.folder.join("access.toml")
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // What cannot be removed lies in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The clients of the soak may all that they do, and nothing else.
const ACCESS_TABLE: &str = r#"
[[allow]]
who = ["127.0.0.0/8"]
may = ["resolve", "bind", "supply", "consume", "observe"]
"#;

/// How often faults and processes are looked at.
const TURN_NS: i64 = 50_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_of_eight_is_never_lost_to_the_warm_up_and_a_minute_has_points_for_a_trend() {
        let of = |seconds| Duration::from_secs(seconds);
        assert_eq!(warm_up(of(8 * 3_600)), of(600));
        assert_eq!(interval(of(8 * 3_600)), of(10));
        assert_eq!(warm_up(of(60)), of(10));
        assert_eq!(interval(of(60)), Duration::from_millis(250));
    }
}
