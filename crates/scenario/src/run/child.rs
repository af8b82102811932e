//! One process of a run. It is started on its host with its plan, and its output is read.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child as Process, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::SyncSender;
use std::thread::Builder;
use std::time::{Duration, Instant};

use deckwatch_carrier::carriers;
use deckwatch_carrier::external::FOLDERS_VARIABLE;
use deckwatch_carrier::host_clock::Exchange;
use deckwatch_carrier::limits::{FAR_COUNTER_MAX, LINE_SIZE_MAX, REAL_TIME_UNBLOCKED_MAX};
use deckwatch_carrier::talk::{Done, PartCommand, PartEvent, Progress, Ready};
use deckwatch_load::LoadReport;
use deckwatch_meter::clock::SERVICES;
use deckwatch_meter::disturbance::Disturbance;
use deckwatch_os::clock::monotonic_ns;
use deckwatch_os::namespace::kill_process_group;
use deckwatch_os::schedule::REAL_TIME_LIMIT_SIGNAL;

use super::station::{Place, Station};
use crate::limits::{
    EXIT_PATIENCE, FAR_GARBLED_MAX, FAR_HELD_MAX, FAR_WARNINGS_MAX, LAST_WORDS_SIZE_MAX,
};
use crate::part::ProcessPlan;
use crate::reach::{FarPlan, FarReadings, Heard, Pipe, Reach, Terms, missing_program, plain_text};
use crate::run::RunError;

/// The role of a process in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A process of this load of the mission: its index.
    Load { load: usize },
    /// The naming service on this host.
    Names { host: usize },
    /// The event channel or the broker of this stream.
    Channel { stream: usize },
    /// A consumer of this stream.
    Consumer { stream: usize, destination: usize },
    /// Captures packets on this host; on all hosts if they share the loopback interface.
    Tap { host: usize },
    /// The supplier of this stream.
    Supplier { stream: usize },
    /// Relates this host's clock to others.
    Clock { host: usize },
}

/// A line of a process's output, with the process's index.
pub(super) type Told = (usize, Line);

/// A line of output.
#[derive(Debug)]
pub(crate) enum Line {
    Event(PartEvent),
    Load(LoadReport),
    /// Stamps of a far host's clock.
    Exchange(Exchange),
    /// The end of a part on a far host, how it ended if not successfully, and the disturbances of its machine.
    FarEnd(Option<String>, FarReadings),
    /// A far host said what cannot be right.
    Broken(String),
    /// Neither an event of a part nor the report of a load.
    Garbled(String),
    /// The end of its output.
    End,
}

/// A process that was started. `ended` is set when it is known to have ended.
pub(super) struct Child {
    pub(super) role: Role,
    /// Index of its host.
    pub(super) host: usize,
    /// Name of the process in messages, for example `consumer of NAV over udp at SONAR`.
    pub(super) label: String,
    pub(super) ready: Option<Ready>,
    pub(super) done: Option<Done>,
    pub(super) load: Option<LoadReport>,
    /// The disturbances of its far machine while it ran, once it has ended.
    pub(super) far_disturbance: Option<Disturbance>,
    pub(super) progress: Progress,
    /// Time of its last progress report, nanoseconds of CLOCK_MONOTONIC.
    pub(super) progress_ns: i64,
    /// How the process ended, if it has.
    pub(super) ended: Option<Ended>,
    /// The reason that the process itself gave for ending.
    error: Option<String>,
    process: Process,
    input: Option<Input>,
    /// The part is on a far host, which is reached so.
    reach: Option<Reach>,
    /// How a far part ended.
    far_end: Option<Option<String>>,
    garbled: u32,
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

/// Where commands to the process are written.
enum Input {
    Here(ChildStdin),
    Far(Pipe),
}

/// What all processes of a run have in common.
#[derive(Clone, Debug)]
pub(super) struct Common {
    /// This program.
    pub(super) program: PathBuf,
    /// Its version and build.
    pub(super) build: String,
    /// The name of the run on far hosts.
    pub(super) run: String,
}

/// What a process is to be.
pub(super) struct Task {
    pub(super) role: Role,
    pub(super) label: String,
    /// Index of its host.
    pub(super) host: usize,
    pub(super) plan: ProcessPlan,
}

impl Child {
    /// Starts a process on its host, and writes its plan. Lines of its output are sent to `tell` with its index.
    pub(super) fn start(
        common: &Common,
        task: Task,
        station: &Station,
        (index, tell): (usize, SyncSender<Told>),
    ) -> Result<Self, RunError> {
        let label = task.label.clone();
        let cannot = |error: std::io::Error| RunError::CannotStart {
            process: label.clone(),
            error,
        };
        let far = match &station.place {
            Place::Far(reach) => Some(reach.clone()),
            Place::Emulated(_) | Place::Here => None,
        };
        let mut command = match &far {
            Some(reach) => {
                let words = [reach.program(), "part", "--far"];
                reach.command(&words).map_err(cannot)?
            }
            None => part_command(&common.program),
        };
        station.place(&mut command)?;
        let mut process = command.spawn().map_err(cannot)?;
        let keep = |complaints| Builder::new().spawn(move || keep_last(complaints));
        let complaints = process.stderr.take();
        let last_words = complaints.map(keep).transpose().map_err(cannot)?;
        let is_load = matches!(task.role, Role::Load { .. });
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (input, output) = pipes.ok_or_else(|| cannot(std::io::ErrorKind::BrokenPipe.into()))?;
        let input = if far.is_some() {
            let far = FarPlan::of(task.plan, &common.run, &station.processors);
            let (plan, returned) = far.map_err(|error| cannot(std::io::Error::other(error)))?;
            let terms = Terms {
                build: common.build.clone(),
                plan: as_line(&plan).map_err(cannot)?,
                returned,
            };
            let tell = move |heard| tell.send((index, from_far(heard, is_load))).is_ok();
            Input::Far(Pipe::open(input, output, terms, tell).map_err(cannot)?)
        } else {
            let listen = move || listen(BufReader::new(output), is_load, index, &tell);
            let _listening = Builder::new().spawn(listen).map_err(cannot)?;
            let line = as_line(&task.plan).map_err(cannot)?;
            let mut input = input;
            // The write fails if the process has died. The end of its output then shows that.
            let _ = input.write_all(line.as_bytes());
            Input::Here(input)
        };
        Ok(Self {
            role: task.role,
            host: task.host,
            label: task.label,
            ready: None,
            done: None,
            load: None,
            far_disturbance: None,
            progress: Progress::default(),
            progress_ns: 0,
            ended: None,
            error: None,
            process,
            input: Some(input),
            reach: far,
            far_end: None,
            garbled: 0,
            last_words,
        })
    }

    /// Whether the process is on a far host.
    pub(super) const fn is_far(&self) -> bool {
        self.reach.is_some()
    }

    /// Whether it is on a far host and the pipe has carried nothing for too long.
    pub(super) fn is_silent(&self) -> bool {
        matches!(&self.input, Some(Input::Far(pipe)) if pipe.is_silent())
    }

    /// Whether the process is not known to have ended.
    pub(super) const fn lives(&self) -> bool {
        self.ended.is_none()
    }

    /// Returns why the process is not ready after `patience`, or `None` if it is.
    pub(super) fn not_ready(&self, patience: Duration) -> Option<String> {
        match (&self.ready, &self.ended) {
            (Some(_), _) => None,
            (None, Some(Ended::Died(how))) => Some(how.clone()),
            (None, _) => Some(format!("it said nothing for {} s", patience.as_secs())),
        }
    }

    /// Returns its process id.
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Returns the process id of the program that plays the part, if its carrier is external and it is on this machine.
    pub(super) fn program(&self) -> Option<u32> {
        let ready = self.ready.as_ref().filter(|_| !self.is_far());
        ready.and_then(|ready| ready.program)
    }

    /// Writes a command to the process, if its standard input is still open.
    pub(super) fn tell(&mut self, command: PartCommand) {
        match &mut self.input {
            Some(Input::Here(input)) => {
                // A broken pipe means that the process has ended. The end of its output then shows that.
                let _ = writeln!(input, "{command}").and_then(|()| input.flush());
            }
            Some(Input::Far(pipe)) => pipe.write(format!("{command}\n")),
            None => {}
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
            // The crew takes the relations.
            Line::Event(PartEvent::Clock(_) | PartEvent::Sync(_)) => {}
            Line::Load(report) => self.load = Some(report),
            Line::Garbled(text) => {
                self.error = Some(format!("it said `{text}`, which is not understood"));
                self.garbled += 1;
                if self.is_far() && self.garbled > FAR_GARBLED_MAX {
                    self.kill("it said too much that is not understood");
                }
            }
            // The crew takes it.
            Line::Exchange(_) => {}
            Line::FarEnd(how, readings) => {
                self.far_end = Some(how);
                self.far_disturbance = Some(readings.disturbance());
            }
            Line::Broken(how) => self.kill(&how),
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
        let far_end = self.far_end.take();
        self.ended = Some(match (status, far_end) {
            (_, Some(Some(how))) => Ended::Died(self.with_reason(how)),
            (Some(_), Some(None)) if in_order => Ended::InOrder,
            (Some(status), None) if in_order && status.success() && !self.is_far() => {
                Ended::InOrder
            }
            (Some(status), _) => Ended::Died(self.how(status)),
            (None, _) => {
                self.end_now();
                Ended::Died(
                    "it had nothing more to say, did not end by itself, and was killed".to_owned(),
                )
            }
        });
    }

    /// Kills the process at once.
    pub(super) fn kill(&mut self, how: &str) {
        if self.ended.is_none() {
            self.end_now();
            self.input = None;
            self.ended = Some(Ended::Died(how.to_owned()));
        }
    }

    /// Errors are ignored: the process may have ended just now.
    fn end_now(&mut self) {
        if self.is_far() {
            // The command may have started others.
            let _ = kill_process_group(self.process.id());
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
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
        let how = self.with_reason(format!("ended with {code}"));
        match (&self.reach, status.code()) {
            (Some(reach), Some(126 | 127)) => format!("{how}; {}", missing_program(reach)),
            (Some(_), Some(0)) => format!("the pipe to it closed ({how})"),
            _ => how,
        }
    }

    /// Adds the reason that the process gave, or the end of what it wrote to its standard error.
    fn with_reason(&mut self, how: String) -> String {
        let words = self.last_words.take().and_then(|thread| thread.join().ok());
        let words = words
            .map(|words| plain_text(words.trim()))
            .filter(|words| !words.is_empty());
        match self.error.take().or(words) {
            Some(words) => format!("{how}: {}", words.trim_end_matches('.')),
            None => how,
        }
    }
}

/// Returns how a process ended by a signal, as the rest of a sentence.
pub(crate) fn killed_by(signal: i32) -> String {
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

fn listen(mut output: impl BufRead, is_load: bool, index: usize, tell: &SyncSender<Told>) {
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

fn part_command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .arg("part")
        // It finds the same adapters.
        .env(FOLDERS_VARIABLE, adapter_folders())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn adapter_folders() -> std::ffi::OsString {
    // Fails for a folder with a colon in its name; the part then searches as this program did.
    std::env::join_paths(&carriers::found().folders).unwrap_or_default()
}

fn as_line(plan: &impl serde::Serialize) -> std::io::Result<String> {
    Ok(serde_json::to_string(plan)? + "\n")
}

/// Converts what a far host said. Its texts cannot change a terminal.
pub(crate) fn from_far(heard: Option<Heard>, is_load: bool) -> Line {
    let line = match heard {
        None => return Line::End,
        Some(Heard::Exchange(exchange)) => return Line::Exchange(exchange),
        Some(Heard::End(how, readings)) => return Line::FarEnd(how, readings),
        Some(Heard::Broken(how)) => return Line::Broken(how),
        Some(Heard::Line(line)) => understand(&line, is_load),
    };
    let plain = |warnings: &mut Vec<deckwatch_meter::result::Warning>| {
        warnings.truncate(FAR_WARNINGS_MAX);
        for warning in warnings {
            warning.kind = plain_text(&warning.kind);
            warning.text = plain_text(&warning.text);
        }
    };
    match line {
        Line::Event(PartEvent::Ready(mut ready)) => {
            ready.endpoint = plain_text(&ready.endpoint);
            ready.scheduling = plain_text(&ready.scheduling);
            plain(&mut ready.warnings);
            Line::Event(PartEvent::Ready(ready))
        }
        Line::Event(PartEvent::Done(mut done)) => {
            plain(&mut done.warnings);
            done.progress = bounded(done.progress);
            Line::Event(PartEvent::Done(done))
        }
        Line::Event(PartEvent::Progress(progress)) => {
            Line::Event(PartEvent::Progress(bounded(progress)))
        }
        Line::Event(PartEvent::Sync(mut state)) => {
            state.status = plain_text(&state.status);
            state.services.truncate(SERVICES.len());
            for name in &mut state.services {
                *name = plain_text(name);
            }
            Line::Event(PartEvent::Sync(state))
        }
        Line::Event(PartEvent::Error { text }) => Line::Event(PartEvent::Error {
            text: plain_text(&text),
        }),
        Line::Load(mut report) => {
            report.held.truncate(FAR_HELD_MAX);
            for held in &mut report.held {
                held.of = plain_text(&held.of);
            }
            if let Some(stressed) = &mut report.stressed {
                stressed.version = plain_text(&stressed.version);
            }
            Line::Load(report)
        }
        Line::Garbled(text) => Line::Garbled(plain_text(&text)),
        line => line,
    }
}

/// Bounds counters that are added up.
fn bounded(progress: Progress) -> Progress {
    Progress {
        sent: progress.sent.min(FAR_COUNTER_MAX),
        send_errors: progress.send_errors.min(FAR_COUNTER_MAX),
        received: progress.received.min(FAR_COUNTER_MAX),
        late: progress.late.min(FAR_COUNTER_MAX),
        overflows: progress.overflows.min(FAR_COUNTER_MAX),
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
