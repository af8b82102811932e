//! Faults: servers that are killed or stopped, messages that end half-way, and consumers that fall silent or die.

use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use deckwatch_meter::experiment::SoakFault;
use deckwatch_os::clock::{monotonic_ns, sleep_until};
use deckwatch_os::namespace::{GroupSignal, Placement, signal_process_group};
use deckwatch_os::signal;

use super::channels::Accounts;
use super::plan::{Due, plan};
use super::server::{Kind, Server};
use super::{Scene, SoakSetup, nanoseconds, seconds};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A server is killed (SIGKILL) and started again at the same endpoint.
    Kill,
    /// A server is stopped (SIGSTOP) for some seconds.
    Stop,
    /// A connection ends in the middle of a message.
    Cut,
    /// A consumer of a channel is stopped, and killed later.
    Silence,
    /// A consumer of a channel is killed.
    Death,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::Kill,
        Self::Stop,
        Self::Cut,
        Self::Silence,
        Self::Death,
    ];

    /// Its name.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Stop => "stop",
            Self::Cut => "cut",
            Self::Silence => "silence",
            Self::Death => "death",
        }
    }
}

/// The faults of a soak in progress.
pub(super) struct Faults {
    due: std::vec::IntoIter<Due>,
    next: Option<Due>,
    setup: SoakSetup,
    begin_ns: i64,
    /// What ends later, and when.
    open: Vec<(i64, Open)>,
    /// Those that were carried out.
    pub(super) done: Vec<SoakFault>,
}

/// A fault that lasts.
enum Open {
    Stopped(Kind),
    /// A consumer as a process of its own; stopped first if it shall be silent.
    Consumer(Consumer),
}

/// A process that consumes events, killed when this is dropped.
struct Consumer(Child);

impl Drop for Consumer {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Faults {
    pub(super) fn new(setup: &SoakSetup, scene: &Scene) -> Self {
        let mut due = plan(setup.time, setup.seed, &setup.faults).into_iter();
        Self {
            next: due.next(),
            due,
            setup: setup.clone(),
            begin_ns: scene.begin_ns,
            open: Vec::new(),
            done: Vec::new(),
        }
    }

    /// Ends what is over and begins what is due.
    pub(super) fn turn(&mut self, scene: &Scene, elapsed_ns: i64) {
        let (over, open): (Vec<_>, Vec<_>) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|(until_ns, _)| *until_ns <= elapsed_ns);
        self.open = open;
        for (_, fault) in over {
            end(scene, fault);
        }
        // One a turn: the signals are looked at between two.
        if let Some(due) = self.next
            && nanoseconds(due.at) <= elapsed_ns
        {
            self.next = self.due.next();
            self.begin(scene, due);
        }
    }

    /// The last fault, in words.
    pub(super) fn last(&self) -> Option<String> {
        let last = self.done.last()?;
        Some(format!("{} of {}", last.kind, last.server))
    }

    /// Ends what lasts, and waits until the channels have found out about all consumers that died.
    pub(super) fn finish(&mut self, scene: &Scene) {
        for (_, fault) in std::mem::take(&mut self.open) {
            end(scene, fault);
        }
        let until_ns = monotonic_ns() + nanoseconds(FORGOTTEN_WITHIN);
        scene.accounts.iter().for_each(Accounts::forget_consumers);
        let is_over = || monotonic_ns() >= until_ns || signal::ending().is_some();
        for account in &scene.accounts {
            while !account.has_own_consumers() && !is_over() {
                sleep_until(monotonic_ns() + super::TURN_NS);
            }
        }
    }

    fn begin(&mut self, scene: &Scene, due: Due) {
        let server = scene.server(due.server);
        let at_ns = monotonic_ns();
        let until_ns = at_ns - self.begin_ns + nanoseconds(due.lasts);
        match due.kind {
            FaultKind::Kill => {
                let of_it = scene.accounts.iter().filter(|one| one.is_of(due.server));
                of_it.for_each(Accounts::begin_life);
                server.kill_and_restart();
            }
            FaultKind::Stop if self.is_stopped(due.server) => return,
            FaultKind::Stop => {
                server.stop();
                self.open.push((until_ns, Open::Stopped(due.server)));
            }
            // A listener that has gone is found out by the clients.
            FaultKind::Cut => drop(cut(server, self.done.len())),
            FaultKind::Silence | FaultKind::Death => match self.consumer(server) {
                Ok(consumer) => {
                    if due.kind == FaultKind::Silence {
                        // It stops once it has had the time to connect.
                        sleep_until(monotonic_ns() + nanoseconds(CONNECTS_WITHIN));
                        let _ = signal_process_group(consumer.0.id(), GroupSignal::Stop);
                    }
                    self.open.push((until_ns, Open::Consumer(consumer)));
                }
                Err(error) => server.note_failure(format!("a consumer cannot be started: {error}")),
            },
        }
        let excused_s = match due.kind {
            FaultKind::Kill => seconds(monotonic_ns() - at_ns),
            FaultKind::Stop => due.lasts.as_secs_f64(),
            _ => 0.0,
        };
        self.done.push(SoakFault {
            at_s: seconds(at_ns - self.begin_ns),
            kind: due.kind.word().to_owned(),
            server: due.server.name().to_owned(),
            excused_s,
        });
    }

    fn is_stopped(&self, kind: Kind) -> bool {
        let is_it = |(_, open): &(i64, Open)| matches!(open, Open::Stopped(of) if *of == kind);
        self.open.iter().any(is_it)
    }

    fn consumer(&self, server: &Server) -> std::io::Result<Consumer> {
        let placement = Placement {
            own_group: true,
            dies_with_parent: true,
            ..Placement::default()
        };
        let mut command = Command::new(&self.setup.program);
        command.args(["events", "echo", &server.reference()]);
        placement.apply(&mut command)?;
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().map(Consumer)
    }
}

fn end(scene: &Scene, fault: Open) {
    match fault {
        Open::Stopped(kind) => scene.server(kind).go_on(),
        Open::Consumer(consumer) => drop(consumer),
    }
}

/// Sends a part of a message and closes the connection: of the header, or of the body that it announces.
fn cut(server: &Server, number: usize) -> std::io::Result<()> {
    let mut message = b"GIOP\x01\x02\x01\x00\x00\x40\x00\x00".to_vec();
    message.resize(if number.is_multiple_of(2) { 5 } else { 1_000 }, 0);
    match server.endpoint.strip_prefix("unix:") {
        Some(path) => UnixStream::connect(path)?.write_all(&message),
        None => {
            let address = server.endpoint.trim_start_matches("tls:");
            TcpStream::connect(address)?.write_all(&message)
        }
    }
}

/// The longest time for a channel to drop the consumers that died, under load.
const FORGOTTEN_WITHIN: Duration = Duration::from_secs(40);

/// The time that a consumer gets to start and connect.
const CONNECTS_WITHIN: Duration = Duration::from_millis(700);
