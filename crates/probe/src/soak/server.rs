//! A server of a soak: a child process, the faults declared for it, its samples, and the calls of its clients.

use std::fmt::Debug;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};

use deckwatch_meter::experiment::{MACHINE, Quantity};
use deckwatch_orb::Tls;
use deckwatch_os::clock::monotonic_ns;
use deckwatch_os::namespace::{GroupSignal, Placement, signal_process_group};

use super::{SoakSetup, Work};
use crate::laboratory::{LaboratoryError, certificates};
use crate::limits::{END_PATIENCE, P99_SAMPLES_MIN, SOAK_WORDS_MAX};

/// The servers of a soak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Names,
    Channel,
    RealTimeChannel,
    TcpObject,
    UnixObject,
    SharedObject,
    TlsObject,
    /// The control, which is no server.
    Machine,
}

impl Kind {
    pub(super) const SERVERS: [Self; 7] = [
        Self::Names,
        Self::Channel,
        Self::RealTimeChannel,
        Self::TcpObject,
        Self::UnixObject,
        Self::SharedObject,
        Self::TlsObject,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Names => "names",
            Self::Channel => "channel",
            Self::RealTimeChannel => "real-time channel",
            Self::TcpObject => "object over TCP",
            Self::UnixObject => "object over a unix socket",
            Self::SharedObject => "object over shared memory",
            Self::TlsObject => "object over TLS",
            Self::Machine => MACHINE,
        }
    }

    pub(super) const fn is_channel(self) -> bool {
        matches!(self, Self::Channel | Self::RealTimeChannel)
    }
}

/// A server, or the control, which has no process.
pub(super) struct Server {
    pub(super) kind: Kind,
    /// Where it listens: an endpoint of ours.
    pub(super) endpoint: String,
    /// What its clients show over TLS.
    pub(super) tls: Option<Tls>,
    command: Box<dyn Fn() -> Command + Send + Sync>,
    words: PathBuf,
    child: Mutex<Option<Child>>,
    process: AtomicU32,
    /// How often it was started.
    lives: AtomicU32,
    reference: Mutex<String>,
    /// Times in which its calls may fail, CLOCK_MONOTONIC; the last may be open.
    excused: Mutex<Vec<(i64, i64)>>,
    calls: AtomicU64,
    excused_failures: AtomicU64,
    failures: AtomicU64,
    /// The first failures, in words.
    first_failures: Mutex<Vec<String>>,
    /// Times of calls since the last point, nanoseconds.
    times_ns: Mutex<Vec<u64>>,
    /// The samples of each life.
    samples: Mutex<Vec<Life>>,
}

/// The samples of one life of a server: seconds and values.
#[derive(Clone, Debug, Default)]
struct Life {
    number: u32,
    points: [Vec<(f64, f64)>; 4],
}

impl Server {
    /// Starts a server and waits for its reference.
    pub(super) fn start(
        kind: Kind,
        setup: &SoakSetup,
        work: &Work,
    ) -> Result<Self, LaboratoryError> {
        let folder = &work.folder;
        let endpoint = match kind {
            Kind::UnixObject => format!("unix:{}", folder.join("object.socket").display()),
            Kind::SharedObject => format!("shm:{}", folder.join("shared.socket").display()),
            Kind::TlsObject => format!("tls:127.0.0.1:{}", free_port()?),
            _ => format!("127.0.0.1:{}", free_port()?),
        };
        let file = |kind_of_file: &str| format!("{}.{kind_of_file}", kind.name().replace(' ', "-"));
        let (store, audit) = (folder.join(file("store")), folder.join(file("audit")));
        let (access, certificates) = (work.access(), work.certificates.folder().to_owned());
        let mut server = Self::empty(kind);
        server.endpoint.clone_from(&endpoint);
        server.words = setup.folder.join(file("log"));
        if kind == Kind::TlsObject {
            server.tls = Some(certificates::load(&certificates)?);
        }
        let program = setup.program.clone();
        server.command = Box::new(move || {
            let mut command = Command::new(&program);
            match kind {
                Kind::Names => command.args(["names", "serve", "--store"]).arg(&store),
                Kind::Channel | Kind::RealTimeChannel => {
                    command.args(["channel", "--store"]).arg(&store);
                    command.args(["--queue", "1000", "--when-full", "disconnect:30"])
                }
                _ => command.args(["laboratory-end", "orb-server"]),
            };
            match kind {
                Kind::Names | Kind::Channel | Kind::RealTimeChannel => {
                    command.arg("--access").arg(&access);
                    command.arg("--audit").arg(&audit);
                }
                Kind::TlsObject => {
                    command.arg("--certificates").arg(&certificates);
                }
                _ => {}
            }
            if kind == Kind::RealTimeChannel {
                command.arg("--real-time");
            }
            command.args(["--listen", &endpoint]);
            command
        });
        server.begin_life()?;
        Ok(server)
    }

    /// The control, to which clients tell their times alone.
    pub(super) fn control() -> Self {
        Self::empty(Kind::Machine)
    }

    fn empty(kind: Kind) -> Self {
        Self {
            kind,
            endpoint: String::new(),
            tls: None,
            command: Box::new(|| Command::new("")),
            words: PathBuf::new(),
            child: Mutex::default(),
            process: AtomicU32::new(0),
            lives: AtomicU32::new(0),
            reference: Mutex::default(),
            excused: Mutex::default(),
            calls: AtomicU64::new(0),
            excused_failures: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            first_failures: Mutex::default(),
            times_ns: Mutex::default(),
            samples: Mutex::default(),
        }
    }

    /// Starts its process and waits for the reference that it prints.
    fn begin_life(&self) -> Result<(), LaboratoryError> {
        let what = || format!("The server of {}", self.kind.name());
        let cannot = |source| LaboratoryError::CannotStart {
            what: what(),
            source,
        };
        let placement = Placement {
            own_group: true,
            dies_with_parent: true,
            ..Placement::default()
        };
        let mut command = (self.command)();
        placement.apply(&mut command).map_err(cannot)?;
        let words = File::options().create(true).append(true).open(&self.words);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(words.map_err(cannot)?);
        let mut child = command.spawn().map_err(cannot)?;
        self.process.store(child.id(), Relaxed);
        let stdout = child.stdout.take();
        *locked(&self.child) = Some(child);
        let (sender, receiver) = channel();
        // It ends with the output of the server.
        std::thread::spawn(move || {
            let lines = stdout.map(BufReader::new).into_iter();
            for line in lines.flat_map(BufReader::lines).map_while(Result::ok) {
                let _ = sender.send(line); // Only the first is waited for.
            }
        });
        let line = receiver.recv_timeout(END_PATIENCE);
        let line = line.map_err(|_| LaboratoryError::Silent {
            what: what(),
            patience: END_PATIENCE,
        })?;
        // An end of the laboratory prints its scheduling class first.
        let reference = line.rsplit(' ').next().unwrap_or_default();
        reference.clone_into(&mut locked(&self.reference));
        self.lives.fetch_add(1, Relaxed);
        Ok(())
    }

    pub(super) fn reference(&self) -> String {
        locked(&self.reference).clone()
    }

    pub(super) fn lives(&self) -> u32 {
        self.lives.load(Relaxed)
    }

    /// Kills it and starts it again.
    pub(super) fn kill_and_restart(&self) {
        self.excuse();
        self.end_life();
        self.try_again();
        self.excuse_no_longer(GRACE_NS);
    }

    /// Stops its process; calls are excused until [`Self::go_on`].
    pub(super) fn stop(&self) {
        self.excuse();
        // It may have died, which is found out elsewhere.
        let _ = signal_process_group(self.process.load(Relaxed), GroupSignal::Stop);
    }

    pub(super) fn go_on(&self) {
        let _ = signal_process_group(self.process.load(Relaxed), GroupSignal::Continue);
        self.excuse_no_longer(GRACE_NS);
    }

    /// Starts a server again that has ended by itself, and notes that.
    pub(super) fn revive_if_dead(&self) {
        let ended = match locked(&self.child).as_mut().map(Child::try_wait) {
            Some(Ok(Some(status))) => format!("it has died: {status}"),
            None => "it was not started again".to_owned(),
            Some(_) => return,
        };
        self.note_failure(ended);
        self.excuse();
        self.end_life();
        self.try_again();
        self.excuse_no_longer(GRACE_NS);
    }

    fn try_again(&self) {
        if let Err(error) = self.begin_life() {
            self.note_failure(error.to_string());
            self.end_life();
        }
    }

    fn end_life(&self) {
        if let Some(mut child) = locked(&self.child).take() {
            // It may have ended before.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn excuse(&self) {
        locked(&self.excused).push((monotonic_ns(), i64::MAX));
    }

    /// Ends all open times: a kill also ends a stop.
    fn excuse_no_longer(&self, grace_ns: i64) {
        let until_ns = monotonic_ns() + grace_ns;
        for (_, until) in locked(&self.excused).iter_mut() {
            *until = (*until).min(until_ns);
        }
    }

    /// Whether a declared fault lies within a time.
    pub(super) fn is_excused(&self, from_ns: i64, until_ns: i64) -> bool {
        let excused = locked(&self.excused);
        let overlaps = |&(from, until): &(i64, i64)| from <= until_ns && from_ns <= until;
        excused.iter().rev().any(overlaps)
    }

    /// Makes a call and notes its time, or its failure. Returns `None` if it failed.
    pub(super) fn call<T, E: Debug>(
        &self,
        what: &str,
        call: impl FnOnce() -> Result<T, E>,
    ) -> Option<T> {
        let from_ns = monotonic_ns();
        let result = call();
        let until_ns = monotonic_ns();
        match result {
            Ok(value) => {
                self.calls.fetch_add(1, Relaxed);
                // The times of a channel are those of events, from push to receipt.
                if !self.kind.is_channel() {
                    self.note_time(from_ns, until_ns);
                }
                Some(value)
            }
            Err(error) => {
                self.note_failed_call((from_ns, until_ns), &format!("{what}: {error:?}"));
                None
            }
        }
    }

    /// Notes the time of a call, or of an event through a channel. Times within a declared fault are left out.
    pub(super) fn note_time(&self, from_ns: i64, until_ns: i64) {
        if !self.is_excused(from_ns, until_ns) {
            let mut times = locked(&self.times_ns);
            if times.len() < TIMES_MAX {
                times.push((until_ns - from_ns).unsigned_abs());
            }
        }
    }

    /// Notes that a call failed in this time.
    pub(super) fn note_failed_call(&self, (from_ns, until_ns): (i64, i64), words: &str) {
        if self.is_excused(from_ns, until_ns) {
            self.excused_failures.fetch_add(1, Relaxed);
        } else {
            self.note_failure(words.to_owned());
        }
    }

    /// Notes what must not happen.
    pub(super) fn note_failure(&self, words: String) {
        self.failures.fetch_add(1, Relaxed);
        let mut first = locked(&self.first_failures);
        if first.len() < SOAK_WORDS_MAX {
            first.push(words);
        }
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Relaxed)
    }

    pub(super) fn failed(&self) -> u64 {
        self.failures.load(Relaxed)
    }

    pub(super) fn excused_failures(&self) -> u64 {
        self.excused_failures.load(Relaxed)
    }

    pub(super) fn first_failures(&self) -> Vec<String> {
        locked(&self.first_failures).clone()
    }

    /// Takes a sample of its process, and a 99th percentile once there are calls enough for one.
    pub(super) fn sample(&self, at_s: f64) {
        let number = self.lives();
        let mut found = [None; 4];
        let now_ns = monotonic_ns();
        if self.kind != Kind::Machine && !self.is_excused(now_ns, now_ns) {
            let taken = resources(self.process.load(Relaxed));
            for (found, value) in found.iter_mut().zip(taken.into_iter().flatten()) {
                *found = Some(value);
            }
        }
        let mut times = locked(&self.times_ns);
        if times.len() as u64 >= P99_SAMPLES_MIN {
            times.sort_unstable();
            found[3] = Some(times[times.len() * 99 / 100] as f64);
            times.clear();
        }
        drop(times);
        let mut samples = locked(&self.samples);
        if samples.last().is_none_or(|life| life.number != number) {
            samples.push(Life {
                number,
                ..Life::default()
            });
        }
        if let Some(life) = samples.last_mut() {
            for (points, value) in life.points.iter_mut().zip(found) {
                points.extend(value.map(|value| (at_s, value)));
            }
        }
    }

    /// The points of a quantity, in segments of a life each.
    pub(super) fn segments(&self, quantity: Quantity) -> Vec<Vec<(f64, f64)>> {
        let index = Quantity::ALL.iter().position(|one| *one == quantity);
        let samples = locked(&self.samples);
        let of = |life: &Life| life.points[index.unwrap_or_default()].clone();
        samples.iter().map(of).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A stopped process is killed as others are.
        self.end_life();
    }
}

/// Memory, descriptors and threads of a process; `None` once it has ended.
fn resources(process: u32) -> Option<[f64; 3]> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let number = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    let descriptors = std::fs::read_dir(format!("/proc/{process}/fd")).ok()?;
    Some([
        (number("RssAnon:")? + number("RssShmem:")?) * 1_024.0,
        descriptors.count() as f64,
        number("Threads:")?,
    ])
}

/// A free port of the loopback interface. The server that takes it keeps it over its restarts.
fn free_port() -> Result<u16, LaboratoryError> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let address = listener.map_err(|source| LaboratoryError::System {
        doing: "A port cannot be found",
        source,
    })?;
    Ok(address.port())
}

/// A thread that panicked has left nothing half done here.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls may fail for so long after a fault has ended: connections are made anew, and what waited is served.
const GRACE_NS: i64 = 3_000_000_000;

/// Times kept for one percentile.
const TIMES_MAX: usize = 1 << 18;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_within_a_declared_fault_are_excused_and_others_are_not() {
        let server = Server::control();
        let before = monotonic_ns();
        server.note_failed_call((before, before), "too early");
        server.excuse();
        let within = monotonic_ns();
        server.note_failed_call((before, within), "overlaps");
        server.excuse_no_longer(0);
        let after = monotonic_ns() + 1;
        server.note_failed_call((after, after + 5), "too late");
        assert_eq!((server.failed(), server.excused_failures()), (2, 1));
        assert_eq!(server.first_failures(), ["too early", "too late"]);
    }

    #[test]
    fn a_percentile_is_taken_of_a_thousand_calls_outside_of_faults() {
        let server = Server::control();
        for time in 1..=999 {
            server.note_time(0, time * 1_000);
        }
        server.sample(1.0);
        server.note_time(0, 1_000_000);
        server.sample(2.0);
        let found = server.segments(Quantity::P99);
        assert_eq!(found, [vec![(2.0, 991_000.0)]]);
        assert_eq!(server.segments(Quantity::Memory), [vec![]]);
    }

    #[test]
    fn this_process_has_memory_descriptors_and_threads() {
        let found = resources(std::process::id()).expect("it runs");
        assert!(
            found[0] > 100_000.0 && found[1] >= 3.0 && found[2] >= 1.0,
            "{found:?}"
        );
        assert_eq!(resources(u32::MAX), None);
    }
}
