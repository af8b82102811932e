//! One process of a run. It is started on its host with its plan, and its output is read.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child as Process, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::thread::Builder;
use std::time::{Duration, Instant};

use deckwatch_carrier::limits::{LINE_SIZE_MAX, REAL_TIME_UNBLOCKED_MAX};
use deckwatch_carrier::talk::{Done, PartCommand, PartEvent, Progress, Ready};
use deckwatch_os::clock::monotonic_ns;
use deckwatch_os::schedule::REAL_TIME_LIMIT_SIGNAL;
use deckwatch_testbed::Host;
use deckwatch_testbed::load::LoadReport;
use serde::Serialize;

use crate::limits::{EXIT_PATIENCE, LAST_WORDS_SIZE_MAX};
use crate::run::RunError;

/// The role of a process in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Keeps a processor of this host busy.
    Load { host: usize },
    /// The naming service on this host.
    Names { host: usize },
    /// The event channel of this stream.
    Channel { stream: usize },
    /// A consumer of this stream.
    Consumer { stream: usize, destination: usize },
    /// Captures packets on this host; on all hosts if they share the loopback interface.
    Tap { host: usize },
    /// The supplier of this stream.
    Supplier { stream: usize },
}

/// A line of a process's output, with the process's index.
pub(super) type Told = (usize, Line);

/// A line of output.
pub(super) enum Line {
    Event(PartEvent),
    Load(LoadReport),
    /// Neither an event of a part nor the report of a load.
    Garbled(String),
    /// The end of its output.
    End,
}

/// A process that was started. `ended` is set when it is known to have ended.
pub(super) struct Child {
    pub(super) role: Role,
    /// Name of the process in messages, for example `consumer of NAV over udp at SONAR`.
    pub(super) label: String,
    pub(super) ready: Option<Ready>,
    pub(super) done: Option<Done>,
    pub(super) load: Option<LoadReport>,
    pub(super) progress: Progress,
    /// Time of its last progress report, nanoseconds of CLOCK_MONOTONIC.
    pub(super) progress_ns: i64,
    /// How the process ended, if it has.
    pub(super) ended: Option<Ended>,
    /// The reason that the process itself gave for ending.
    error: Option<String>,
    process: Process,
    input: Option<ChildStdin>,
    last_words: Option<std::thread::JoinHandle<String>>,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The process ended successfully, after its `done` or its report.
    InOrder,
    /// The process ended otherwise. The text says how, as the rest of a sentence.
    Died(String),
}

impl Child {
    /// Starts `program part` on a host and writes its plan. Lines of its output are sent to `tell` with its index.
    pub(super) fn start(
        program: &Path,
        role: Role,
        label: String,
        plan: &impl Serialize,
        host: &Host,
        (index, tell): (usize, Sender<Told>),
    ) -> Result<Self, RunError> {
        let cannot = |error: std::io::Error| RunError::CannotStart {
            process: label.clone(),
            error,
        };
        let mut command = Command::new(program);
        command
            .arg("part")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        host.place(&mut command)?;
        let mut process = command.spawn().map_err(cannot)?;
        let mut input = process.stdin.take();
        let (output, complaints) = (process.stdout.take(), process.stderr.take());
        let is_load = matches!(role, Role::Load { .. });
        if let Some(output) = output {
            let listen = move || listen(BufReader::new(output), is_load, index, &tell);
            let _listening = Builder::new().spawn(listen).map_err(cannot)?;
        }
        let keep = |complaints| Builder::new().spawn(move || keep_last(complaints));
        let last_words = complaints.map(keep).transpose().map_err(cannot)?;
        let mut line = serde_json::to_string(plan).map_err(|error| cannot(error.into()))?;
        line.push('\n');
        // The write fails if the process has died. The end of its output then shows that.
        let _ = input.as_mut().map(|input| input.write_all(line.as_bytes()));
        Ok(Self {
            role,
            label,
            ready: None,
            done: None,
            load: None,
            progress: Progress::default(),
            progress_ns: 0,
            ended: None,
            error: None,
            process,
            input,
            last_words,
        })
    }

    /// Whether the process is not known to have ended.
    pub(super) const fn lives(&self) -> bool {
        self.ended.is_none()
    }

    /// Returns its process id.
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Writes a command to the process, if its standard input is still open.
    pub(super) fn tell(&mut self, command: PartCommand) {
        if let Some(input) = &mut self.input {
            // A broken pipe means that the process has ended. The end of its output then shows that.
            let _ = writeln!(input, "{command}").and_then(|()| input.flush());
        }
    }

    /// Handles a line of its output.
    pub(super) fn hear(&mut self, line: Line) {
        match line {
            Line::Event(PartEvent::Ready(ready)) => self.ready = Some(ready),
            Line::Event(PartEvent::Progress(progress)) => {
                self.progress = progress;
                self.progress_ns = monotonic_ns();
            }
            Line::Event(PartEvent::Done(done)) => {
                self.progress = done.progress;
                self.progress_ns = monotonic_ns();
                self.done = Some(done);
            }
            Line::Event(PartEvent::Error { text }) => self.error = Some(text),
            Line::Load(report) => self.load = Some(report),
            Line::Garbled(text) => {
                self.error = Some(format!("it said `{text}`, which is not understood"))
            }
            Line::End => self.bury(),
        }
    }

    /// Ends the process if it still runs, and records how it ended.
    pub(super) fn bury(&mut self) {
        if self.ended.is_some() {
            return;
        }
        self.input = None;
        let status = self.wait(EXIT_PATIENCE);
        let in_order = self.done.is_some() || self.load.is_some();
        self.ended = Some(match status {
            Some(status) if in_order && status.success() => Ended::InOrder,
            Some(status) => Ended::Died(self.how(status)),
            None => {
                // An error is ignored: the process may have ended just now.
                let _ = self.process.kill();
                let _ = self.process.wait();
                Ended::Died(
                    "it had nothing more to say, did not end by itself, and was killed".to_owned(),
                )
            }
        });
    }

    /// Kills the process at once.
    pub(super) fn kill(&mut self, how: &str) {
        if self.ended.is_none() {
            let _ = self.process.kill();
            let _ = self.process.wait();
            self.input = None;
            self.ended = Some(Ended::Died(how.to_owned()));
        }
    }

    fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + patience;
        loop {
            match self.process.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < until => std::thread::sleep(WAIT_STEP),
                Ok(None) | Err(_) => return None,
            }
        }
    }

    fn how(&mut self, status: ExitStatus) -> String {
        if let Some(signal) = status.signal() {
            return killed_by(signal);
        }
        let code = status
            .code()
            .map_or("no status".to_owned(), |code| format!("status {code}"));
        let words = self.last_words.take().and_then(|thread| thread.join().ok());
        let words = words
            .map(|words| words.trim().to_owned())
            .filter(|words| !words.is_empty());
        match self.error.take().or(words) {
            Some(words) => format!("ended with {code}: {}", words.trim_end_matches('.')),
            None => format!("ended with {code}"),
        }
    }
}

/// Returns how a process ended by a signal, as the rest of a sentence.
fn killed_by(signal: i32) -> String {
    if signal != REAL_TIME_LIMIT_SIGNAL {
        return format!("killed by signal {signal}");
    }
    format!(
        "ended by its own limit (RLIMIT_RTTIME): a thread in a real-time class ran for {} ms, and twice `handle_for`, without blocking; lower the flow's rate or its `handle_for`, or take `scheduling` off the host",
        REAL_TIME_UNBLOCKED_MAX.as_millis()
    )
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill("the run was given up");
    }
}

fn listen(mut output: impl BufRead, is_load: bool, index: usize, tell: &Sender<Told>) {
    let mut line = String::new();
    loop {
        line.clear();
        let heard = match (&mut output)
            .take(LINE_SIZE_MAX as u64)
            .read_line(&mut line)
        {
            Ok(0) | Err(_) => Line::End,
            Ok(_) => understand(line.trim_end(), is_load),
        };
        let ended = matches!(heard, Line::End);
        // A send fails after the run has ended.
        if tell.send((index, heard)).is_err() || ended {
            return;
        }
    }
}

fn understand(line: &str, is_load: bool) -> Line {
    let heard = if is_load {
        serde_json::from_str(line).map(Line::Load)
    } else {
        serde_json::from_str(line).map(Line::Event)
    };
    heard.unwrap_or_else(|_| Line::Garbled(line.chars().take(GARBLED_SHOWN).collect()))
}

/// Reads to the end and keeps the last octets, which tell why a process ended.
fn keep_last(mut complaints: impl Read) -> String {
    let mut kept = Vec::new();
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = complaints.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..count]);
        let surplus = kept.len().saturating_sub(LAST_WORDS_SIZE_MAX);
        kept.drain(..surplus);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// Interval of the checks whether a process that closed its output has ended.
const WAIT_STEP: Duration = Duration::from_millis(2);
/// Maximum number of characters shown of a line that cannot be parsed.
const GARBLED_SHOWN: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_its_own_limit_ended_says_so_and_what_to_do() {
        assert_eq!(killed_by(9), "killed by signal 9");
        let by_limit = killed_by(24);
        assert!(
            by_limit.starts_with("ended by its own limit (RLIMIT_RTTIME)"),
            "{by_limit}"
        );
        assert!(by_limit.contains("`handle_for`") && by_limit.contains("1000 ms"));
    }
}
