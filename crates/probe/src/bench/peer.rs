//! The processes of one peer: a server and a client of it, started once and told to run again and again.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use deckwatch_os::signal;

use super::case::Case;
use super::end::Role;
use super::error::BenchError;
use crate::limits::{BENCH_SAMPLES_MAX, END_PATIENCE};

/// Where an end runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) processor: Option<u32>,
    pub(crate) fifo: Option<u8>,
}

/// How an end of a peer is started.
#[derive(Clone, Debug)]
pub(crate) enum Program {
    /// This program in a hidden role.
    Own {
        path: PathBuf,
        servant_delay: Duration,
    },
    /// A foreign one: `PATH server|client PROCESSOR FIFO [REFERENCE]`, with `-` for what is not wanted.
    Foreign { path: PathBuf },
}

impl Program {
    fn command(&self, role: Role, place: Place, reference: Option<&str>) -> Command {
        let is_server = matches!(role, Role::RawServer | Role::OrbServer);
        match self {
            Self::Own {
                path,
                servant_delay,
            } => {
                let mut command = Command::new(path);
                command.args(["bench", "end", role.word()]);
                if let Some(processor) = place.processor {
                    command.args(["--processor", &processor.to_string()]);
                }
                if let Some(fifo) = place.fifo {
                    command.args(["--fifo", &fifo.to_string()]);
                }
                if role == Role::OrbServer {
                    let delay = servant_delay.as_nanos().to_string();
                    command.args(["--servant-delay-ns", &delay]);
                }
                command.args(
                    reference
                        .map(|reference| ["--reference", reference])
                        .into_iter()
                        .flatten(),
                );
                command
            }
            Self::Foreign { path } => {
                let or_none = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
                let mut command = Command::new(path);
                command
                    .arg(if is_server { "server" } else { "client" })
                    .arg(or_none(place.processor.map(|number| number.to_string())))
                    .arg(or_none(place.fifo.map(|number| number.to_string())))
                    .args(reference);
                command
            }
        }
    }
}

/// What an end says.
pub(crate) enum Said {
    Line(String),
    Samples(Vec<u32>),
}

/// One process.
pub(crate) struct End {
    what: String,
    child: Child,
    input: Option<ChildStdin>,
    said: Receiver<Said>,
}

impl End {
    pub(crate) fn start(what: String, mut command: Command) -> Result<Self, BenchError> {
        let cannot = |source| BenchError::CannotStart {
            what: what.clone(),
            source,
        };
        // A group of its own: Ctrl-C is for the bench, which ends its processes itself.
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(cannot)?;
        let input = child.stdin.take();
        let (tell, said) = channel();
        let output = child.stdout.take();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output?);
            let mut line = String::new();
            while output.read_line(&mut line).ok()? != 0 {
                let words = std::mem::take(&mut line);
                let count = words
                    .strip_prefix("ok ")
                    .and_then(|count| count.trim().parse().ok());
                tell.send(Said::Line(words.trim().to_owned())).ok()?;
                if let Some(count) = count {
                    let mut octets = vec![0; 4 * BENCH_SAMPLES_MAX.min(count)];
                    output.read_exact(&mut octets).ok()?;
                    let samples = octets.as_chunks().0.iter();
                    tell.send(Said::Samples(
                        samples.map(|ns| u32::from_ne_bytes(*ns)).collect(),
                    ))
                    .ok()?;
                }
            }
            Some(())
        });
        Ok(Self {
            what,
            child,
            input,
            said,
        })
    }

    /// What it says next, within `patience`; `None` where the user wants to end.
    pub(crate) fn hear(&mut self, patience: Duration) -> Result<Option<Said>, BenchError> {
        let until = Instant::now() + patience;
        loop {
            match self.said.recv_timeout(LOOK) {
                Ok(said) => return Ok(Some(said)),
                Err(RecvTimeoutError::Disconnected) => return Err(self.failed("it has ended")),
                Err(RecvTimeoutError::Timeout) if signal::ending().is_some() => return Ok(None),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= until => {
                    return Err(BenchError::Silent {
                        what: self.what.clone(),
                        patience,
                    });
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    pub(crate) fn failed(&self, reason: &str) -> BenchError {
        BenchError::EndFailed {
            what: self.what.clone(),
            reason: reason.to_owned(),
        }
    }

    /// Its first words: whether it is in the real-time class, and its reference.
    pub(crate) fn greeting(&mut self) -> Result<(bool, String), BenchError> {
        match self.hear(END_PATIENCE)? {
            Some(Said::Line(line)) => match line.split_once(' ') {
                Some((class @ ("fifo" | "other"), reference)) => {
                    Ok((class == "fifo", reference.to_owned()))
                }
                _ => Err(self.failed(&format!("it began with '{line}'"))),
            },
            Some(Said::Samples(_)) => Err(self.failed("it answered before it was asked")),
            None => Err(BenchError::Interrupted(
                signal::ending().unwrap_or("a signal"),
            )),
        }
    }

    pub(crate) fn tell(&mut self, line: &str) -> Result<(), BenchError> {
        use std::io::Write as _;
        let told = self
            .input
            .as_mut()
            .map(|input| input.write_all(line.as_bytes()));
        match told {
            Some(Ok(())) => Ok(()),
            _ => Err(self.failed("it no longer listens")),
        }
    }

    /// One run of a client; `None` where the user wants to end.
    pub(crate) fn run(
        &mut self,
        kind: &str,
        (there, back): (usize, usize),
        limits: RunLimits,
    ) -> Result<Option<Vec<u32>>, BenchError> {
        self.begin_run(kind, (there, back), limits)?;
        self.finish_run(limits)
    }

    /// Tells a client to run.
    pub(crate) fn begin_run(
        &mut self,
        kind: &str,
        (there, back): (usize, usize),
        limits: RunLimits,
    ) -> Result<(), BenchError> {
        let RunLimits { count, budget } = limits;
        let budget_ns = budget.as_nanos();
        self.tell(&format!("{kind} {there} {back} {count} {budget_ns}\n"))
    }

    /// What a client that was told to run has measured; `None` where the user wants to end.
    pub(crate) fn finish_run(&mut self, limits: RunLimits) -> Result<Option<Vec<u32>>, BenchError> {
        match self.hear(limits.budget + END_PATIENCE)? {
            Some(Said::Line(line)) if line.starts_with("ok ") => {}
            Some(Said::Line(line)) => return Err(self.failed(&line)),
            Some(Said::Samples(_)) => return Err(self.failed("it answered twice")),
            None => return Ok(None),
        }
        match self.hear(END_PATIENCE)? {
            Some(Said::Samples(samples)) => Ok(Some(samples)),
            Some(Said::Line(line)) => Err(self.failed(&line)),
            None => Ok(None),
        }
    }
}

/// How often the wish to end is looked at.
const LOOK: Duration = Duration::from_millis(50);

impl Drop for End {
    fn drop(&mut self) {
        // The end of its input is what ends it; one that hangs is killed.
        self.input = None;
        for _ in 0..EXIT_LOOKS {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(EXIT_LOOK);
        }
        let _ended_meanwhile = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// How often, and how far apart, a process that shall end is looked at.
const EXIT_LOOKS: usize = 100;
const EXIT_LOOK: Duration = Duration::from_millis(20);

/// A server and its client.
pub(crate) struct Peer {
    /// Its name in tables.
    pub(crate) name: &'static str,
    /// Both ends got the class that was asked for.
    pub(crate) is_placed: bool,
    /// What its server gave.
    pub(crate) reference: String,
    client: End,
    _server: End,
}

impl Peer {
    /// Starts both ends.
    pub(crate) fn start(
        name: &'static str,
        program: &Program,
        roles: (Role, Role),
        places: (Place, Place),
    ) -> Result<Self, BenchError> {
        let mut server = End::start(
            format!("The server of {name}"),
            program.command(roles.0, places.0, None),
        )?;
        let (server_fifo, reference) = server.greeting()?;
        let mut client = End::start(
            format!("The client of {name}"),
            program.command(roles.1, places.1, Some(&reference)),
        )?;
        let (client_fifo, _) = client.greeting()?;
        let wanted = places.0.fifo.is_some();
        Ok(Self {
            name,
            is_placed: server_fifo == wanted && client_fifo == wanted,
            reference,
            client,
            _server: server,
        })
    }

    /// One run of calls; `None` where the user wants to end.
    pub(crate) fn call(
        &mut self,
        case: Case,
        limits: RunLimits,
    ) -> Result<Option<Vec<u32>>, BenchError> {
        self.client.run(case.word(), (case.count(), 0), limits)
    }

    /// One run of plain messages of so many octets there and back.
    pub(crate) fn exchange(
        &mut self,
        sizes: (usize, usize),
        limits: RunLimits,
    ) -> Result<Option<Vec<u32>>, BenchError> {
        self.client.run("raw", sizes, limits)
    }
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunLimits {
    /// Round trips.
    pub(crate) count: usize,
    /// Time.
    pub(crate) budget: Duration,
}
