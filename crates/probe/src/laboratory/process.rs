//! One end as a process: it reads commands, and answers with lines and round trips.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use deckwatch_os::clock::monotonic_ns;
use deckwatch_os::signal;
use deckwatch_text::escaped;

use super::error::LaboratoryError;
use crate::limits::{
    BENCH_SAMPLES_MAX, END_LINE_SIZE_MAX, END_OUTPUTS_MAX, END_PATIENCE, FAR_BEAT, FAR_SILENCE_MAX,
    REAL_TIME_UNBLOCKED_MAX,
};

/// Output of an end.
enum Output {
    Line(String),
    RoundTrips(Vec<u32>),
    /// What no end writes. Nothing after it is read.
    Wrong(String),
}

/// One process.
pub(crate) struct End {
    what: String,
    child: Child,
    /// The process that does the work.
    process: u32,
    input: Option<ChildStdin>,
    output: Receiver<Output>,
    /// When octets of its output were last read.
    heard_ns: Arc<AtomicI64>,
    /// It writes a line in each [`FAR_BEAT`]: a longer silence is a fault.
    beats: bool,
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
        let heard_ns = Arc::new(AtomicI64::new(monotonic_ns()));
        let end = Self {
            what,
            process: child.id(),
            child,
            input,
            output,
            heard_ns: Arc::clone(&heard_ns),
            beats: false,
        };
        let read = move || {
            let stdout = Heard {
                of: stdout?,
                at_ns: heard_ns,
            };
            read_output(stdout, &sender)
        };
        let reader = std::thread::Builder::new().spawn(read);
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
                Ok(Output::Wrong(fact)) => return Err(self.failed(&fact)),
                Ok(output) => return Ok(Some(output)),
                Err(RecvTimeoutError::Disconnected) => return Err(self.exit_error()),
                Err(RecvTimeoutError::Timeout) if signal::ending().is_some() => return Ok(None),
                Err(RecvTimeoutError::Timeout)
                    if self.beats && self.silence() > FAR_SILENCE_MAX =>
                {
                    return Err(self.stalled());
                }
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

    /// From now on, a silence longer than [`FAR_SILENCE_MAX`] is a fault: the end writes at least a line in each
    /// [`FAR_BEAT`].
    pub(crate) fn expect_beats(&mut self) {
        self.beats = true;
    }

    /// The time since octets of its output were read.
    fn silence(&self) -> Duration {
        let silent_ns = monotonic_ns() - self.heard_ns.load(Ordering::Relaxed);
        Duration::from_nanos(u64::try_from(silent_ns).unwrap_or(0))
    }

    fn stalled(&self) -> LaboratoryError {
        self.failed(&format!(
            "the pipe from there has carried nothing for {FAR_SILENCE_MAX:?}: the program, its host, or the \
             way to it stands still"
        ))
    }

    /// Returns the fault of an end that has missed beats, when its silence has become too long. Waits for that, or for
    /// its next beat.
    pub(crate) fn has_stalled(&self) -> Option<LaboratoryError> {
        while self.beats && self.silence() > 2 * FAR_BEAT && signal::ending().is_none() {
            if self.silence() > FAR_SILENCE_MAX {
                return Some(self.stalled());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        None
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
            self.process = process.parse().map_err(|_| self.failed(&shown(&line)))?;
        }
        match words.split_once(' ') {
            Some((class @ ("fifo" | "other"), reference)) => {
                Ok((class == "fifo", reference.to_owned()))
            }
            _ => Err(self.failed(&match line.strip_prefix(REFUSED) {
                Some(reason) => shown(reason),
                None => format!("its first line is '{}'", shown(&line)),
            })),
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
            Some(_) => Err(self.failed("it answered without a command")),
            None => Ok(None),
        }
    }

    /// Its next line, if one comes within [`POLL_INTERVAL`].
    pub(crate) fn next_line(&mut self) -> Result<Option<String>, LaboratoryError> {
        match self.output.recv_timeout(POLL_INTERVAL) {
            Ok(Output::Line(line)) => Ok(Some(line)),
            Ok(Output::RoundTrips(_)) => Err(self.failed("it answered without a command")),
            Ok(Output::Wrong(fact)) => Err(self.failed(&fact)),
            Err(RecvTimeoutError::Disconnected) => Err(self.exit_error()),
            Err(RecvTimeoutError::Timeout) if self.beats && self.silence() > FAR_SILENCE_MAX => {
                Err(self.stalled())
            }
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
                Some(Output::Line(line) | Output::Wrong(line)) => Err(self.failed(&line)),
                None => Ok(None),
            },
            _ => Err(self.failed(line.strip_prefix("error ").unwrap_or(&line))),
        }
    }
}

/// An output that notes when octets of it are read.
struct Heard<R> {
    of: R,
    at_ns: Arc<AtomicI64>,
}

impl<R: std::io::Read> std::io::Read for Heard<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.of.read(buffer);
        self.at_ns.store(monotonic_ns(), Ordering::Relaxed);
        read
    }
}

/// Returns the beginning of what an end wrote, as it may be printed.
pub(crate) fn shown(text: &str) -> String {
    let start: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    escaped(&start).to_string()
}

/// Maximum number of characters shown of a line that is not understood.
const SHOWN_CHARS_MAX: usize = 400;

/// What a process writes, with its reason after it, that cannot be an end.
pub const REFUSED: &str = "refused: ";

/// The line that an end on a far host writes in each [`FAR_BEAT`].
pub(crate) const BEAT: &str = "beat";

/// Reads lines, and the round trips after each `ok COUNT`, until the output ends, a line is none, or `sender` has no
/// receiver.
fn read_output(stdout: impl std::io::Read, sender: &SyncSender<Output>) -> Option<()> {
    let mut stdout = BufReader::new(stdout);
    let mut line = String::new();
    let limit = END_LINE_SIZE_MAX;
    loop {
        let wrong = match (&mut stdout).take(limit).read_line(&mut line) {
            Ok(0) => return None,
            Ok(size) if size as u64 == limit => {
                Some(format!("it wrote a line of more than {limit} octets"))
            }
            Ok(_) => None,
            Err(error) => Some(format!("its output is no text ({error})")),
        };
        if let Some(fact) = wrong {
            return sender.send(Output::Wrong(fact)).ok();
        }
        let words = std::mem::take(&mut line);
        if words.trim() == BEAT {
            continue;
        }
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
