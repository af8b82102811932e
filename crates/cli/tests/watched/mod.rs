//! A run of the command that a test watches and disturbs from outside: its processes by name, its schedule, its
//! network, and its result.
#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod disturbance;
pub(crate) mod flows;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use deckwatch_carrier::record::ReadRecords;
use deckwatch_meter::result::{FlowResult, ResultDocument, Verdict, VerdictKind};
use deckwatch_meter::sample::Sample;
use deckwatch_meter::samples;
use deckwatch_testbed::{Port, Standing, Testbed};
use rustix::process::{Pid, Signal, kill_process};

use disturbance::Before;

/// The folder of one test, removed when this is dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(test: &str) -> Self {
        let name = format!("deckwatch-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("a new folder");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// A run whose schedule has started or is about to start.
pub(crate) struct WatchedRun {
    run: Child,
    /// Collects the lines that the run prints from now on.
    listener: JoinHandle<Vec<String>>,
    /// Process ids by the name of the process.
    processes: BTreeMap<String, u32>,
    /// What it printed until it measured.
    said: Vec<String>,
    before: Before,
    folder: Folder,
}

impl WatchedRun {
    /// Starts a run of this mission, and waits until it measures.
    pub(crate) fn start(test: &str, mission: &str, arguments: &[&str]) -> Self {
        let program = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
        Self::start_by(program, test, mission, arguments)
    }

    /// As [`Self::start`], by this command of the program without arguments.
    pub(crate) fn start_by(
        mut program: Command,
        test: &str,
        mission: &str,
        arguments: &[&str],
    ) -> Self {
        let folder = Folder::new(test);
        let file = folder.path().join("mission.toml");
        std::fs::write(&file, mission).expect("writable");
        let mut run = program
            .arg("run")
            .arg(file)
            .arg("--output")
            .arg(folder.path().join("result"))
            .args(arguments)
            .env("NO_COLOR", "1")
            .env("DECKWATCH_LOG", "info")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(run.stderr.take().expect("piped")).lines();
        let mut processes = BTreeMap::new();
        let mut said = Vec::new();
        loop {
            let line = lines
                .next()
                .unwrap_or_else(|| panic!("the run ended before it measured: {said:#?}"))
                .expect("text");
            if line == "Measuring." {
                break;
            }
            processes.extend(started(&line));
            said.push(line);
        }
        let listener = std::thread::spawn(move || listen(lines));
        Self {
            run,
            listener,
            processes,
            said,
            before: Before::now(),
            folder,
        }
    }

    /// Returns the lines that it printed until it measured.
    pub(crate) fn said(&self) -> &[String] {
        &self.said
    }

    /// Returns the process id of the coordinator.
    pub(crate) fn id(&self) -> u32 {
        self.run.id()
    }

    /// Returns the process ids of the parts whose name contains `words`.
    pub(crate) fn parts(&self, words: &str) -> Vec<u32> {
        let of = |(name, id): (&String, &u32)| name.contains(words).then_some(*id);
        let found: Vec<u32> = self.processes.iter().filter_map(of).collect();
        assert!(
            !found.is_empty(),
            "no {words} among {:?}",
            self.processes.keys()
        );
        found
    }

    /// Returns the time at which its schedule starts, as a consumer recorded it: nanoseconds of CLOCK_MONOTONIC.
    pub(crate) fn start_ns(&self) -> i64 {
        let file = self.work().join("0-0.records");
        loop {
            match ReadRecords::consumer(&file)
                .expect("records")
                .header
                .start_ns
            {
                0 => std::thread::yield_now(),
                start_ns => return start_ns,
            }
        }
    }

    /// Returns the folder with its records.
    pub(crate) fn work(&self) -> PathBuf {
        work_of(self.id()).expect("a working folder in memory")
    }

    /// Returns its testbed.
    pub(crate) fn testbed(&self) -> Standing {
        testbed_of(self.id()).expect("a testbed")
    }

    pub(crate) fn port(&self, host: &str) -> Port {
        self.testbed().port(host).expect("a port")
    }

    /// Waits until the run has ended by itself.
    pub(crate) fn finish(self) -> Finished {
        let output = self.run.wait_with_output().expect("it ends");
        let disturbance = self.before.disturbance(WITHHELD_MAX);
        let said = self.listener.join().expect("it listens");
        let result = self.folder.path().join("result");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let context = || format!("{said:#?}\n{printed}");
        let document = ResultDocument::load(&result.join("result.json"))
            .unwrap_or_else(|error| panic!("{error}: {}", context()));
        let samples = samples::read(&result.join("samples.parquet"))
            .unwrap_or_else(|error| panic!("{error}: {}", context()));
        Finished {
            status: output.status.code(),
            said,
            document,
            samples,
            disturbance,
            folder: self.folder,
        }
    }

    /// Kills the coordinator. Its folder and its other leftovers stay.
    pub(crate) fn kill(mut self) -> Folder {
        self.run.kill().expect("it was there");
        self.run.wait().expect("it is dead");
        self.folder
    }
}

/// A finished run and its result.
pub(crate) struct Finished {
    pub(crate) status: Option<i32>,
    pub(crate) said: Vec<String>,
    pub(crate) document: ResultDocument,
    pub(crate) samples: Vec<Sample>,
    /// What others did to it, if that may have made messages late.
    pub(crate) disturbance: Option<String>,
    pub(crate) folder: Folder,
}

impl Finished {
    pub(crate) fn flow(&self, name: &str) -> &FlowResult {
        self.document
            .flows
            .iter()
            .find(|flow| flow.name == name)
            .unwrap_or_else(|| panic!("no {name}"))
    }

    pub(crate) fn samples_of(&self, flow: &FlowResult) -> impl Iterator<Item = &Sample> {
        let index = flow.index;
        self.samples
            .iter()
            .filter(move |sample| sample.flow == index)
    }

    /// Returns the exit status that the verdict must have.
    pub(crate) fn status_of_verdict(&self) -> i32 {
        match self.document.verdict.kind {
            VerdictKind::Pass => 0,
            VerdictKind::Fail => 1,
            VerdictKind::Unproven => 3,
            VerdictKind::Invalid => 4,
        }
    }

    /// Returns whether the verdict is INVALID because processor time was withheld from a run that recorded this.
    pub(crate) fn is_invalid_by_disturbance(&self, verdict: &Verdict) -> bool {
        let names_it = |reason: &String| reason.starts_with("Processor time was withheld");
        verdict.kind == VerdictKind::Invalid
            && verdict.reasons.iter().all(names_it)
            && self.disturbance.is_some()
    }
}

/// Sends a signal to each of these processes.
pub(crate) fn signal(processes: &[u32], signal: Signal) {
    for &process in processes {
        let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process id"), signal).expect("it is there");
    }
}

pub(crate) fn testbed_of(owner: u32) -> Option<Standing> {
    Testbed::standing()
        .into_iter()
        .find(|standing| standing.owner.pid == owner)
}

pub(crate) fn work_of(owner: u32) -> Option<PathBuf> {
    let prefix = format!("deckwatch-dw{owner}-");
    let memory = std::fs::read_dir("/dev/shm").expect("a memory file system");
    let mut paths = memory.flatten().map(|entry| entry.path());
    paths.find(|path| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
    })
}

/// Returns name and process id of a log line about the start of a process.
fn started(line: &str) -> Option<(String, u32)> {
    let (_, rest) = line.split_once("started process=\"")?;
    let (name, rest) = rest.split_once("\" id=")?;
    Some((name.to_owned(), rest.trim().parse().ok()?))
}

fn listen(lines: std::io::Lines<BufReader<ChildStderr>>) -> Vec<String> {
    lines.map_while(Result::ok).collect()
}

/// Processor time withheld from a run that can make a message late.
const WITHHELD_MAX: Duration = Duration::from_millis(10);
