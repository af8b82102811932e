//! The program of an external carrier: its process, and the lines that it reads and writes.

use std::fmt;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use deckwatch_meter::result::Warning;
use deckwatch_os::namespace::{GroupSignal, Placement, signal_process_group};
use deckwatch_text::escaped;
use serde::Deserialize;

use super::stage::Told;
use crate::external::External;
use crate::limits::{
    PROGRAM_EVENTS_MAX, PROGRAM_LINE_SIZE_MAX, PROGRAM_OUTPUT_SIZE_MAX, PROGRAM_WORDS_SIZE_MAX,
};
use crate::scheduling::{self, Scheduling};

/// A line of a program's output, or its end.
#[derive(Debug)]
pub(crate) enum ProgramSaid {
    Event(ProgramEvent),
    /// An event that cannot be read, or too much output.
    Fault(ProgramFault),
    /// The end of the output.
    End,
}

/// An event of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum ProgramEvent {
    Ready(ProgramReady),
    Done(ProgramDone),
    Error {
        #[serde(default)]
        text: String,
    },
    /// The stream goes on.
    Warning {
        #[serde(default)]
        text: String,
    },
    /// An event of a later version.
    #[serde(other)]
    Other,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct ProgramReady {
    pub(crate) endpoint: String,
    /// An address and port, if it is one.
    pub(crate) listening: String,
    pub(crate) honoured: Vec<String>,
    pub(crate) ignored: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct ProgramDone {
    pub(crate) unrecorded: u64,
    pub(crate) malformed: u64,
    pub(crate) overflows: u64,
    pub(crate) refusals: u64,
}

/// How the program of an external carrier failed, as the rest of a sentence about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProgramFault {
    /// The system refused to start it.
    NotStarted {
        /// The program.
        path: String,
        /// The system's error.
        error: String,
    },
    /// A file for it cannot be written or read.
    File {
        /// The file.
        path: String,
        /// The system's error.
        error: String,
    },
    /// It reported an error.
    Failed {
        /// Its own words.
        text: String,
    },
    /// It did not become ready in time.
    NotReady {
        /// The time that it had.
        within: Duration,
        /// The end of what it wrote.
        words: String,
    },
    /// It ended before it was told to.
    Ended {
        /// How.
        how: String,
        /// The end of what it wrote.
        words: String,
    },
    /// It wrote an event that has not the form of the protocol.
    Garbled {
        /// The line, or its beginning.
        line: String,
    },
    /// It wrote more than any program has to say.
    TooMuch,
    /// It wrote records that cannot be true.
    Records {
        /// The first of them.
        fact: String,
    },
}

impl fmt::Display for ProgramFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted { path, error } => write!(
                f,
                "cannot be started ({path}: {error}). Build it anew, or remove its folder."
            ),
            Self::File { path, error } => write!(f, "cannot use the file {path} ({error})."),
            Self::Failed { text } => write!(f, "reported: {}.", text.trim_end_matches('.')),
            Self::NotReady { within, words } => {
                write!(f, "was not ready within {within:?}{}.", Wrote(words))
            }
            Self::Ended { how, words } => {
                write!(f, "ended before it was told to: {how}{}.", Wrote(words))
            }
            Self::Garbled { line } => write!(
                f,
                "wrote `{line}`, which is no event of protocol version {}.",
                crate::external::PROTOCOL
            ),
            Self::TooMuch => write!(
                f,
                "wrote more than {} MiB or {PROGRAM_EVENTS_MAX} events. It may be in a loop.",
                PROGRAM_OUTPUT_SIZE_MAX >> 20
            ),
            Self::Records { fact } => write!(
                f,
                "wrote records that cannot be true: {fact}. None of its measurements are used."
            ),
        }
    }
}

struct Wrote<'w>(&'w str);

impl fmt::Display for Wrote<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        write!(f, ". It wrote: {}", self.0.trim_end_matches('.'))
    }
}

/// A program that runs. It is killed, with the processes that it started, when this is dropped.
pub(crate) struct Program {
    child: Child,
    /// Lines for its standard input; `None` once that is closed.
    lines: Option<Sender<Vec<u8>>>,
    words: Arc<Mutex<Words>>,
    complaints: Option<JoinHandle<()>>,
    status: Option<ExitStatus>,
    /// Keeps the thread that started it: the kernel kills the program when that thread ends.
    _starter: Sender<()>,
}

impl Program {
    /// Starts a program with a scheduling, and writes its plan. Its output goes to `tell`. Returns also what the kernel
    /// refused.
    pub(crate) fn start(
        carrier: &External,
        scheduling: &Scheduling,
        plan: Vec<u8>,
        tell: &Sender<Told>,
    ) -> Result<(Self, Vec<Warning>), ProgramFault> {
        let refused = |error: std::io::Error| ProgramFault::NotStarted {
            path: carrier.program().display().to_string(),
            error: error.to_string(),
        };
        let mut command = Command::new(carrier.program());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let placement = Placement {
            dies_with_parent: true,
            own_group: true,
            ..Placement::default()
        };
        placement.apply(&mut command).map_err(refused)?;
        let (started, start) = mpsc::channel();
        let (starter, released) = mpsc::channel::<()>();
        let scheduling = scheduling.clone();
        let begin = move || {
            // The program inherits the scheduling of this thread.
            let warnings = scheduling::prepare_thread(&scheduling);
            let _ = started.send((command.spawn(), warnings));
            // Returns an error when the owner of the program is dropped.
            let _ = released.recv();
        };
        Builder::new()
            .name("program".to_owned())
            .spawn(begin)
            .map_err(refused)?;
        let (child, warnings) = start
            .recv()
            .map_err(|_| refused(std::io::ErrorKind::BrokenPipe.into()))?;
        let mut child = child.map_err(refused)?;
        let words = Arc::new(Mutex::new(Words::default()));
        let (lines, queue) = mpsc::channel::<Vec<u8>>();
        // In a thread: a program that does not read must not block the part.
        if let Some(mut input) = child.stdin.take() {
            let write = move || {
                for line in queue {
                    if input.write_all(&line).and_then(|()| input.flush()).is_err() {
                        return;
                    }
                }
            };
            Builder::new().spawn(write).map_err(refused)?;
        }
        if let Some(output) = child.stdout.take() {
            let (tell, words) = (tell.clone(), Arc::clone(&words));
            let read = move || listen(BufReader::new(output), &tell, &words);
            Builder::new().spawn(read).map_err(refused)?;
        }
        let mut complaints = None;
        if let Some(errors) = child.stderr.take() {
            let (tell, words) = (tell.clone(), Arc::clone(&words));
            let read = move || keep(errors, &tell, &words);
            complaints = Some(Builder::new().spawn(read).map_err(refused)?);
        }
        let mut program = Self {
            child,
            lines: Some(lines),
            words,
            complaints,
            status: None,
            _starter: starter,
        };
        program.write(plan);
        Ok((program, warnings))
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line to its standard input.
    pub(crate) fn write(&mut self, line: Vec<u8>) {
        if let Some(lines) = &self.lines {
            // Fails if the program has closed its input. The end of its output shows that.
            let _ = lines.send(line);
        }
    }

    /// Closes its standard input.
    pub(crate) fn close_input(&mut self) {
        self.lines = None;
    }

    /// Returns how it ended, if it has.
    pub(crate) fn status(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Waits for its end, at most for `patience`.
    pub(crate) fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + patience;
        loop {
            let status = self.status();
            if status.is_some() || Instant::now() >= until {
                return status;
            }
            std::thread::sleep(WAIT_STEP);
        }
    }

    /// Sends a signal to it and the processes that it started, if it still runs.
    pub(crate) fn signal(&mut self, signal: GroupSignal) {
        if self.status().is_none() {
            // Fails if it has ended just now.
            let _ = signal_process_group(self.child.id(), signal);
        }
    }

    /// Returns the end of what it wrote beside events, in one line.
    pub(crate) fn words(&mut self) -> String {
        // The last octets may still be in the pipe. A process that it started may keep the pipe open.
        let until = Instant::now() + WORDS_PATIENCE;
        let is_reading = |thread: &JoinHandle<()>| !thread.is_finished();
        while self.complaints.as_ref().is_some_and(is_reading) && Instant::now() < until {
            std::thread::sleep(WAIT_STEP);
        }
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        words.0.trim().to_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.signal(GroupSignal::Kill);
        if self.status.is_none() {
            // Fails only for a process that was waited for.
            let _ = self.child.wait();
        }
    }
}

/// The end of a program's texts.
#[derive(Default)]
struct Words(String);

impl Words {
    fn push(&mut self, line: &[u8]) {
        let line = plain(&String::from_utf8_lossy(line));
        if line.is_empty() {
            return;
        }
        self.0 += &line;
        self.0.push(' ');
        let excess = self.0.len().saturating_sub(PROGRAM_WORDS_SIZE_MAX);
        let cut = (excess..=self.0.len()).find(|&at| self.0.is_char_boundary(at));
        self.0.drain(..cut.unwrap_or(0));
    }
}

/// Returns a text of a program on one line, without surrounding space, as it may be printed.
pub(crate) fn plain(text: &str) -> String {
    escaped(text.trim()).to_string()
}

fn listen(output: impl Read, tell: &Sender<Told>, words: &Mutex<Words>) {
    let mut output = BufReader::new(output.take(PROGRAM_OUTPUT_SIZE_MAX));
    let mut events = 0;
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut output)
            .take(PROGRAM_LINE_SIZE_MAX as u64)
            .read_until(b'\n', &mut line);
        let said = match read {
            Ok(1..) => understand(&line),
            Ok(0) if output.get_ref().limit() == 0 => {
                Some(ProgramSaid::Fault(ProgramFault::TooMuch))
            }
            Ok(0) | Err(_) => Some(ProgramSaid::End),
        };
        let Some(mut said) = said else {
            words
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(&line);
            continue;
        };
        events += 1;
        if events > PROGRAM_EVENTS_MAX {
            said = ProgramSaid::Fault(ProgramFault::TooMuch);
        }
        // After an error nothing is read: the program blocks, and is killed.
        let is_last = !matches!(said, ProgramSaid::Event(_));
        if tell.send(Told::Program(said)).is_err() || is_last {
            return;
        }
    }
}

/// Returns what a line says, or `None` if it is not an event: libraries greet on standard output.
fn understand(line: &[u8]) -> Option<ProgramSaid> {
    let is_cut = line.len() == PROGRAM_LINE_SIZE_MAX && !line.ends_with(b"\n");
    let garbled = || {
        let mut line = plain(&String::from_utf8_lossy(line));
        line.truncate(
            (0..=200)
                .rev()
                .find(|&at| line.is_char_boundary(at))
                .unwrap_or(0),
        );
        Some(ProgramSaid::Fault(ProgramFault::Garbled { line }))
    };
    let is_event = line.trim_ascii_start().starts_with(b"{");
    match serde_json::from_slice::<serde_json::Value>(line) {
        Ok(value) if value.get("event").is_some() => match serde_json::from_value(value) {
            Ok(ProgramEvent::Other) => None,
            Ok(event) => Some(ProgramSaid::Event(event)),
            Err(_) => garbled(),
        },
        Ok(_) => None,
        Err(_) if is_event || is_cut => garbled(),
        Err(_) => None,
    }
}

/// Keeps the end of the standard error.
fn keep(errors: impl Read, tell: &Sender<Told>, words: &Mutex<Words>) {
    let mut errors = BufReader::new(errors.take(PROGRAM_OUTPUT_SIZE_MAX));
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut errors)
            .take(PROGRAM_LINE_SIZE_MAX as u64)
            .read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            break;
        }
        let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
        words.push(&line);
    }
    if errors.get_ref().limit() == 0 {
        // Fails after the part has ended.
        let _ = tell.send(Told::Program(ProgramSaid::Fault(ProgramFault::TooMuch)));
    }
}

/// Time between two looks whether a process has ended.
const WAIT_STEP: Duration = Duration::from_millis(5);

/// Time for the last octets of a program that has ended.
const WORDS_PATIENCE: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_events_are_words_and_broken_events_are_faults() {
        let event = |line: &str| match understand(line.as_bytes()) {
            Some(ProgramSaid::Event(event)) => Some(event),
            _ => None,
        };
        assert_eq!(
            event(r#"{"event":"ready","endpoint":"e","more":1}"#),
            Some(ProgramEvent::Ready(ProgramReady {
                endpoint: "e".to_owned(),
                ..ProgramReady::default()
            }))
        );
        for words in [
            "hello",
            "",
            "7",
            r#"{"level":"info"}"#,
            r#"{"event":"later","x":1}"#,
        ] {
            assert!(understand(words.as_bytes()).is_none(), "{words}");
        }
        for broken in [
            r#"{"event":"ready","endpoint":7}"#,
            r#"{"event":7}"#,
            r#"{"event":"done","#,
            r#"{"event":"done","unrecorded":-1}"#,
        ] {
            let said = understand(broken.as_bytes());
            let is_garbled = matches!(said, Some(ProgramSaid::Fault(ProgramFault::Garbled { .. })));
            assert!(is_garbled, "{broken}: {said:?}");
        }
        let endless = vec![b'x'; PROGRAM_LINE_SIZE_MAX];
        assert!(matches!(understand(&endless), Some(ProgramSaid::Fault(_))));
    }

    #[test]
    fn only_the_end_of_the_words_is_kept_and_none_of_it_changes_a_terminal() {
        let mut words = Words::default();
        for number in 0..10_000 {
            words.push(format!("ö\u{1b}[31m{number}\n").as_bytes());
        }
        assert!(words.0.len() <= PROGRAM_WORDS_SIZE_MAX);
        assert!(words.0.ends_with("9999 "));
        assert!(!words.0.contains('\u{1b}'));
    }
}
