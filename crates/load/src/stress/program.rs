//! The processes of `stress-ng`.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use deckwatch_os::namespace::{
    GroupSignal, Placement, kill_process_group, signal_process_group, start_time_of_process,
};

use super::Stressed;
use super::readings::{self, Counters};
use crate::LoadError;
use crate::limits::{STOP_LOOK, STRESS_END_PATIENCE, STRESS_WORDS_SIZE_MAX};

/// `stress-ng` and its workers. All are killed when this is dropped. The kernel kills them when the thread ends that
/// started them.
pub(super) struct Program {
    leader: Child,
    /// A folder of its own for its file, its metrics and its words.
    folder: PathBuf,
}

impl Program {
    /// Starts it, with a folder of its own below `place`.
    pub(super) fn start(
        place: &Path,
        words: &[String],
        lifetime: Duration,
    ) -> Result<Self, LoadError> {
        let unusable = |error| LoadError::Folder {
            path: place.to_owned(),
            error,
        };
        remove_abandoned(place);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = place.join(format!("{FOLDER}{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).map_err(unusable)?;
        let started = spawn(&folder, words, lifetime);
        match started {
            Ok(leader) => Ok(Self { leader, folder }),
            Err(error) => {
                // The first error is the one to report.
                let _ = fs::remove_dir_all(&folder);
                Err(if error.kind() == io::ErrorKind::NotFound {
                    LoadError::StressAbsent
                } else {
                    LoadError::system("Starting stress-ng")(error)
                })
            }
        }
    }

    pub(super) fn counters(&self) -> Counters {
        readings::of_group(self.leader.id())
    }

    /// Returns an error if the program has ended long before `end`.
    pub(super) fn check_runs(&mut self, end: Instant) -> Result<(), LoadError> {
        let ended = matches!(self.leader.try_wait(), Ok(Some(_)));
        if ended && Instant::now() + STRESS_END_PATIENCE < end {
            return Err(self.failed());
        }
        Ok(())
    }

    /// Ends the program in order, and returns its own figures.
    pub(super) fn finish(mut self) -> Result<Stressed, LoadError> {
        if matches!(self.leader.try_wait(), Ok(None)) {
            // It may have ended just now.
            let _ = signal_process_group(self.leader.id(), GroupSignal::Terminate);
        }
        let until = Instant::now() + STRESS_END_PATIENCE;
        while matches!(self.leader.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(STOP_LOOK);
        }
        let metrics = readings::bounded(&self.folder.join(METRICS), STRESS_WORDS_SIZE_MAX);
        metrics
            .ok()
            .and_then(|text| readings::metrics(&text))
            .ok_or_else(|| self.failed())
    }

    fn failed(&self) -> LoadError {
        let words = readings::bounded(&self.folder.join(WORDS), STRESS_WORDS_SIZE_MAX);
        let words = words.unwrap_or_default();
        let failed = words
            .lines()
            .rfind(|line| line.contains("fail:") || line.contains("error:"));
        let words = failed.or(words.lines().last()).unwrap_or("nothing");
        LoadError::Stress {
            words: words.to_owned(),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Errors are ignored: no process may be left. The group is signalled before its leader's number is free.
        let _ = kill_process_group(self.leader.id());
        let _ = self.leader.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn spawn(folder: &Path, words: &[String], lifetime: Duration) -> io::Result<Child> {
    // The program ends by itself even if nothing else ends it.
    let timeout = format!("{}s", (lifetime + STRESS_END_PATIENCE).as_secs() + 1);
    let said = File::create(folder.join(WORDS))?;
    let mut command = Command::new("stress-ng");
    command
        .args(words)
        .args(["--timeout", &timeout, "--metrics", "--temp-path"])
        .arg(folder)
        .arg("--yaml")
        .arg(folder.join(METRICS))
        .stdin(Stdio::null())
        .stdout(said.try_clone()?)
        .stderr(said);
    Placement {
        dies_with_parent: true,
        own_group: true,
        ..Placement::default()
    }
    .apply(&mut command)?;
    command.spawn()
}

/// Removes the folders of loads that were killed.
fn remove_abandoned(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(FOLDER));
        let process = process.and_then(|name| name.split_once('-')?.0.parse().ok());
        if process.is_some_and(|process| start_time_of_process(process).is_none()) {
            // Another user's folder stays.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Programs that this process has started.
static STARTED: AtomicU32 = AtomicU32::new(0);
/// The folder of a load. The number of its process and its own number follow.
const FOLDER: &str = "deckwatch-load-";
const METRICS: &str = "metrics.yaml";
const WORDS: &str = "words";
