//! One end as a process: it reads commands, and answers with lines and round trips.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use deckwatch_os::signal;

use super::error::LaboratoryError;
use crate::limits::{
    BENCH_SAMPLES_MAX, END_LINE_SIZE_MAX, END_OUTPUTS_MAX, END_PATIENCE, REAL_TIME_UNBLOCKED_MAX,
};

/// Output of an end.
enum Output {
    Line(String),
    RoundTrips(Vec<u32>),
}

/// One process.
pub(crate) struct End {
    what: String,
    child: Child,
    /// The process that does the work.
    process: u32,
    input: Option<ChildStdin>,
    output: Receiver<Output>,
}

/// The result of one run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RunResult {
    /// Each round trip in nanoseconds.
    RoundTrips(Vec<u32>),
    /// A number of messages and the nanoseconds that they took.
    Sum { count: u64, elapsed_ns: u64 },
}

impl End {
    pub(crate) fn start(what: String, mut command: Command) -> Result<Self, LaboratoryError> {
        let cannot = |source| LaboratoryError::CannotStart {
            what: what.clone(),
            source,
        };
        // In a process group of its own, so that Ctrl-C reaches this program alone, which ends its processes itself.
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(cannot)?;
        let input = child.stdin.take();
        let stdout = child.stdout.take();
        let (sender, output) = sync_channel(END_OUTPUTS_MAX);
        let end = Self {
            what,
            process: child.id(),
            child,
            input,
            output,
        };
        let reader = std::thread::Builder::new().spawn(move || read_output(stdout?, &sender));
        reader.map_err(|source| LaboratoryError::CannotStart {
            what: format!("The reader thread of {}", end.what),
            source,
        })?;
        Ok(end)
    }

    /// Its next output, within `patience`. Returns `None` if the user wants to end.
    fn receive(&mut self, patience: Duration) -> Result<Option<Output>, LaboratoryError> {
        let until = Instant::now() + patience;
        loop {
            match self.output.recv_timeout(POLL_INTERVAL) {
                Ok(output) => return Ok(Some(output)),
                Err(RecvTimeoutError::Disconnected) => return Err(self.exit_error()),
                Err(RecvTimeoutError::Timeout) if signal::ending().is_some() => return Ok(None),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= until => {
                    return Err(LaboratoryError::Silent {
                        what: self.what.clone(),
                        patience,
                    });
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    pub(crate) fn failed(&self, reason: &str) -> LaboratoryError {
        LaboratoryError::EndFailed {
            what: self.what.clone(),
            reason: reason.to_owned(),
        }
    }

    /// Its first line: whether it is in the real-time class, and its reference.
    pub(crate) fn greeting(&mut self) -> Result<(bool, String), LaboratoryError> {
        let Some(line) = self.receive_line(END_PATIENCE)? else {
            let signal = signal::ending().unwrap_or("a signal");
            return Err(LaboratoryError::Interrupted(signal));
        };
        let mut words = line.as_str();
        if let Some((before, process)) = line.split_once(" of process ") {
            words = before;
            self.process = process.parse().map_err(|_| self.failed(&line))?;
        }
        match words.split_once(' ') {
            Some((class @ ("fifo" | "other"), reference)) => {
                Ok((class == "fifo", reference.to_owned()))
            }
            _ => Err(self.failed(&format!("its first line is '{line}'"))),
        }
    }

    /// The id of the process that does the work.
    pub(crate) fn process(&self) -> u32 {
        self.process
    }

    /// Closes its standard input, which ends it. It is waited for when it is dropped.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Its next line, within `patience`. Returns `None` if the user wants to end.
    pub(crate) fn receive_line(
        &mut self,
        patience: Duration,
    ) -> Result<Option<String>, LaboratoryError> {
        match self.receive(patience)? {
            Some(Output::Line(line)) => Ok(Some(line)),
            Some(Output::RoundTrips(_)) => Err(self.failed("it answered without a command")),
            None => Ok(None),
        }
    }

    /// Its next line, if one comes within [`POLL_INTERVAL`].
    pub(crate) fn next_line(&mut self) -> Result<Option<String>, LaboratoryError> {
        match self.output.recv_timeout(POLL_INTERVAL) {
            Ok(Output::Line(line)) => Ok(Some(line)),
            Ok(Output::RoundTrips(_)) => Err(self.failed("it answered without a command")),
            Err(RecvTimeoutError::Disconnected) => Err(self.exit_error()),
            Err(RecvTimeoutError::Timeout) => Ok(None),
        }
    }

    pub(crate) fn send_line(&mut self, line: &str) -> Result<(), LaboratoryError> {
        let input = self.input.as_mut();
        match input.map(|input| writeln!(input, "{line}")) {
            Some(Ok(())) => Ok(()),
            _ => Err(self.exit_error()),
        }
    }

    /// How many of our own locks the server has taken since its first such question. Returns `None` if the user wants
    /// to end.
    pub(crate) fn own_locks(&mut self) -> Result<Option<u64>, LaboratoryError> {
        self.send_line("locks")?;
        let Some(line) = self.receive_line(END_PATIENCE)? else {
            return Ok(None);
        };
        let count = line.strip_prefix("locks ").map(str::parse);
        let count = count.and_then(Result::ok);
        count.map(Some).ok_or_else(|| self.failed(&line))
    }

    /// The error for a process that no longer answers: its exit status, if it has ended.
    fn exit_error(&mut self) -> LaboratoryError {
        match self.await_exit(EXIT_LOOKS) {
            None => self.failed("it closed its output and has not ended"),
            Some(status) if status.signal() == Some(SIGKILL) => self.failed(&format!(
                "it was killed by signal 9: by a user, or by the kernel for want of memory, or because a real-time thread ran \
                 for {REAL_TIME_UNBLOCKED_MAX:?} without blocking"
            )),
            Some(status) => self.failed(&format!("it has ended ({status})")),
        }
    }

    /// Replaces an error of this server's client by the exit of the server, if the server has died.
    pub(crate) fn blame_exit<T>(
        &mut self,
        result: Result<T, LaboratoryError>,
    ) -> Result<T, LaboratoryError> {
        result.map_err(|error| match error {
            LaboratoryError::Interrupted(_) => error,
            _ => self.died().unwrap_or(error),
        })
    }

    /// How it has ended, if it has.
    pub(crate) fn died(&mut self) -> Option<LaboratoryError> {
        // Its connections close a moment before its exit is visible.
        let exit = self.await_exit(EXIT_LOOKS_BLAME);
        exit.map(|_| self.exit_error())
    }

    /// Its exit status, if it ends within `looks` intervals.
    fn await_exit(&mut self, looks: usize) -> Option<ExitStatus> {
        for _ in 0..looks {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(EXIT_LOOK);
        }
        None
    }

    /// One run of a client that answers with round trips. Returns `None` if the user wants to end.
    pub(crate) fn run(
        &mut self,
        kind: &str,
        sizes: (usize, usize),
        limits: RunLimits,
    ) -> Result<Option<Vec<u32>>, LaboratoryError> {
        self.begin(kind, sizes, 0, limits)?;
        match self.finish(limits)? {
            Some(RunResult::RoundTrips(round_trips)) => Ok(Some(round_trips)),
            Some(RunResult::Sum { .. }) => Err(self.failed("it answered with a sum")),
            None => Ok(None),
        }
    }

    /// Starts a run of a client, with one call each `period_ns`, or without pause if that is 0.
    pub(crate) fn begin(
        &mut self,
        kind: &str,
        (there, back): (usize, usize),
        period_ns: u64,
        limits: RunLimits,
    ) -> Result<(), LaboratoryError> {
        let RunLimits { count, budget } = limits;
        let budget_ns = budget.as_nanos();
        self.send_line(&format!(
            "{kind} {there} {back} {count} {budget_ns} {period_ns}"
        ))
    }

    /// The result of the run that [`Self::begin`] started. Returns `None` if the user wants to end.
    pub(crate) fn finish(
        &mut self,
        limits: RunLimits,
    ) -> Result<Option<RunResult>, LaboratoryError> {
        let Some(line) = self.receive_line(limits.budget + END_PATIENCE)? else {
            return Ok(None);
        };
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["sum", count, elapsed_ns] => {
                let number = |text: &str| text.parse().map_err(|_| self.failed(&line));
                let (count, elapsed_ns) = (number(count)?, number(elapsed_ns)?);
                Ok(Some(RunResult::Sum { count, elapsed_ns }))
            }
            ["ok", _] => match self.receive(END_PATIENCE)? {
                Some(Output::RoundTrips(all)) => Ok(Some(RunResult::RoundTrips(all))),
                Some(Output::Line(line)) => Err(self.failed(&line)),
                None => Ok(None),
            },
            _ => Err(self.failed(line.strip_prefix("error ").unwrap_or(&line))),
        }
    }
}

/// Reads lines, and the round trips after each `ok COUNT`, until the output ends, a line is too long, or `sender` has no
/// receiver.
fn read_output(stdout: ChildStdout, sender: &SyncSender<Output>) -> Option<()> {
    let mut stdout = BufReader::new(stdout);
    let mut line = String::new();
    let limit = END_LINE_SIZE_MAX;
    while (&mut stdout).take(limit).read_line(&mut line).ok()? != 0 {
        if line.len() as u64 == limit {
            return None;
        }
        let words = std::mem::take(&mut line);
        let count = words.strip_prefix("ok ");
        let count = count.and_then(|count| count.trim().parse().ok());
        sender.send(Output::Line(words.trim().to_owned())).ok()?;
        if let Some(count) = count {
            let mut octets = vec![0; 4 * BENCH_SAMPLES_MAX.min(count)];
            stdout.read_exact(&mut octets).ok()?;
            let all = octets.as_chunks().0.iter();
            let all = all.map(|ns| u32::from_ne_bytes(*ns)).collect();
            sender.send(Output::RoundTrips(all)).ok()?;
        }
    }
    Some(())
}

/// When a run ends: at the first of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunLimits {
    /// Number of round trips or messages.
    pub(crate) count: usize,
    /// Time.
    pub(crate) budget: Duration,
}

/// How often a wait checks whether the user wants to end.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Sleeps for `time`, or until the user wants to end.
pub(crate) fn rest(time: Duration) {
    let until = Instant::now() + time;
    while signal::ending().is_none() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(POLL_INTERVAL));
    }
}

impl Drop for End {
    fn drop(&mut self) {
        // The end of its input ends it. A process that hangs is killed.
        self.input = None;
        // In the middle of a run it would read the end of its input only after the run.
        let looks = match signal::ending() {
            None => EXIT_LOOKS,
            Some(_) => EXIT_LOOKS_ENDING,
        };
        if self.await_exit(looks).is_some() {
            return;
        }
        // It may have ended meanwhile.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The signal that no process survives.
const SIGKILL: i32 = 9;

/// How often the exit of a process is checked.
const EXIT_LOOKS: usize = 100;
/// The same if the user wants to end.
const EXIT_LOOKS_ENDING: usize = 10;
/// The same if a client of the process has failed.
const EXIT_LOOKS_BLAME: usize = 10;
/// The time between two checks.
const EXIT_LOOK: Duration = Duration::from_millis(20);
