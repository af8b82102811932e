//! One process of a bench: told lines, it answers with lines and with round trips.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use deckwatch_os::signal;

use super::error::BenchError;
use crate::limits::{BENCH_SAMPLES_MAX, END_PATIENCE, REAL_TIME_UNBLOCKED_MAX};

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

/// What a run came to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ran {
    /// Each round trip, nanoseconds.
    RoundTrips(Vec<u32>),
    /// So many messages in so many nanoseconds.
    Sum { count: u64, elapsed_ns: u64 },
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
        let listen = move || {
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
        };
        let end = Self {
            what,
            child,
            input,
            said,
        };
        let listening = std::thread::Builder::new().spawn(listen);
        listening.map_err(|source| BenchError::CannotStart {
            what: format!("A thread that listens to {}", end.what),
            source,
        })?;
        Ok(end)
    }

    /// What it says next, within `patience`; `None` where the user wants to end.
    pub(crate) fn hear(&mut self, patience: Duration) -> Result<Option<Said>, BenchError> {
        let until = Instant::now() + patience;
        loop {
            match self.said.recv_timeout(LOOK) {
                Ok(said) => return Ok(Some(said)),
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
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

    /// The kernel's number of the process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Ends its input, which is what ends it; it is waited for where it is dropped.
    pub(crate) fn dismiss(&mut self) {
        self.input = None;
    }

    /// Its next line, within `patience`; `None` where the user wants to end.
    pub(crate) fn hear_line(&mut self, patience: Duration) -> Result<Option<String>, BenchError> {
        match self.hear(patience)? {
            Some(Said::Line(line)) => Ok(Some(line)),
            Some(Said::Samples(_)) => Err(self.failed("it answered twice")),
            None => Ok(None),
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
            _ => Err(self.ended()),
        }
    }

    /// Why nothing more comes of it: how it ended, where it has.
    fn ended(&mut self) -> BenchError {
        match self.await_exit(EXIT_LOOKS) {
            None => self.failed("it no longer speaks, and has not ended"),
            Some(status) if status.signal() == Some(SIGKILL) => self.failed(&format!(
                "it was killed by signal 9: by somebody, or by the kernel, for want of memory or because a real-time thread ran for \
                 {REAL_TIME_UNBLOCKED_MAX:?} without blocking"
            )),
            Some(status) => self.failed(&format!("it has ended ({status})")),
        }
    }

    /// What came of its client; that it has died itself, where the client failed for it.
    pub(crate) fn or_its_end<T>(&mut self, came: Result<T, BenchError>) -> Result<T, BenchError> {
        came.map_err(|error| match error {
            BenchError::Interrupted(_) => error,
            // Its connections are closed a moment before it can be seen to have ended.
            _ if self.await_exit(EXIT_LOOKS_BLAME).is_some() => self.ended(),
            _ => error,
        })
    }

    /// How it ended, if it does soon.
    fn await_exit(&mut self, looks: usize) -> Option<ExitStatus> {
        for _ in 0..looks {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(EXIT_LOOK);
        }
        None
    }

    /// One run of a client whose round trips are asked for; `None` where the user wants to end.
    pub(crate) fn run(
        &mut self,
        kind: &str,
        sizes: (usize, usize),
        limits: RunLimits,
    ) -> Result<Option<Vec<u32>>, BenchError> {
        self.begin(kind, sizes, 0, limits)?;
        match self.finish(limits)? {
            Some(Ran::RoundTrips(samples)) => Ok(Some(samples)),
            Some(Ran::Sum { .. }) => Err(self.failed("it answered with a sum")),
            None => Ok(None),
        }
    }

    /// Tells a client to run, a call each `period_ns`, 0 for no pause.
    pub(crate) fn begin(
        &mut self,
        kind: &str,
        (there, back): (usize, usize),
        period_ns: u64,
        limits: RunLimits,
    ) -> Result<(), BenchError> {
        let RunLimits { count, budget } = limits;
        let budget_ns = budget.as_nanos();
        self.tell(&format!(
            "{kind} {there} {back} {count} {budget_ns} {period_ns}\n"
        ))
    }

    /// What a client that was told to run has to tell; `None` where the user wants to end.
    pub(crate) fn finish(&mut self, limits: RunLimits) -> Result<Option<Ran>, BenchError> {
        let Some(said) = self.hear_line(limits.budget + END_PATIENCE)? else {
            return Ok(None);
        };
        let words: Vec<&str> = said.split(' ').collect();
        match words[..] {
            ["sum", count, elapsed_ns] => {
                let number = |text: &str| text.parse().map_err(|_| self.failed(&said));
                let (count, elapsed_ns) = (number(count)?, number(elapsed_ns)?);
                Ok(Some(Ran::Sum { count, elapsed_ns }))
            }
            ["ok", _] => match self.hear(END_PATIENCE)? {
                Some(Said::Samples(samples)) => Ok(Some(Ran::RoundTrips(samples))),
                Some(Said::Line(line)) => Err(self.failed(&line)),
                None => Ok(None),
            },
            _ => Err(self.failed(said.strip_prefix("error ").unwrap_or(&said))),
        }
    }
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunLimits {
    /// Round trips or messages.
    pub(crate) count: usize,
    /// Time.
    pub(crate) budget: Duration,
}

/// How often the wish to end is looked at.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// Does nothing for so long, or until the user wants to end.
pub(crate) fn rest(time: Duration) {
    let until = Instant::now() + time;
    while signal::ending().is_none() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(LOOK));
    }
}

impl Drop for End {
    fn drop(&mut self) {
        // The end of its input is what ends it; one that hangs is killed.
        self.input = None;
        // In the middle of a run it would not hear of it before the run's end.
        let looks = match signal::ending() {
            None => EXIT_LOOKS,
            Some(_) => EXIT_LOOKS_ENDING,
        };
        if self.await_exit(looks).is_some() {
            return;
        }
        let _ended_meanwhile = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// The signal that nobody survives.
const SIGKILL: i32 = 9;

/// How often, and how far apart, a process that shall end is looked at.
const EXIT_LOOKS: usize = 100;
/// The same where the user wants to end.
const EXIT_LOOKS_ENDING: usize = 10;
/// The same where a client of it has failed.
const EXIT_LOOKS_BLAME: usize = 10;
const EXIT_LOOK: Duration = Duration::from_millis(20);
