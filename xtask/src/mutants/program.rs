//! Runs tests of a program that has the mutants.

use std::hash::{DefaultHasher, Hasher as _};
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use deckwatch_os::namespace::kill_process_group;

use super::together::{CHOSEN, REACHED};

/// A test program.
pub(super) struct Program {
    executable: PathBuf,
    /// The folder of its package in the copy of the tree.
    folder: PathBuf,
}

/// What a test program runs with.
#[derive(Clone, Copy)]
pub(super) enum With<'a> {
    /// This mutant, chosen by its number.
    Mutant(u32),
    /// No mutant. The places that it reaches are appended to the file.
    Notes(&'a Path),
}

/// How a test program ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Whole,
    /// A test failed: this one, if the program printed its name.
    Failed(Option<String>),
    /// It did not end within the limit.
    Slow,
}

impl Program {
    pub(super) fn new(executable: &Path, folder: &Path) -> Self {
        Self {
            executable: executable.to_owned(),
            folder: folder.to_owned(),
        }
    }

    /// Returns what differs if anything else was built: the name of the file and a sum of its octets.
    pub(super) fn identity(&self) -> Result<String> {
        let mut hasher = DefaultHasher::new();
        hasher.write(&std::fs::read(&self.executable)?);
        let name = self.executable.file_name().unwrap_or_default();
        Ok(format!("{} {}", name.to_string_lossy(), hasher.finish()))
    }

    /// Lists the tests that these arguments leave.
    pub(super) fn tests(&self, arguments: &[String]) -> Result<Vec<String>> {
        let output = Command::new(&self.executable)
            .args(["--list", "--format", "terse"])
            .args(arguments)
            .current_dir(&self.folder)
            .output()?;
        if !output.status.success() {
            bail!("{} lists no tests", self.executable.display());
        }
        let lines = String::from_utf8(output.stdout)?;
        let names = lines.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(names.map(str::to_owned).collect())
    }

    /// Runs these tests until one fails.
    pub(super) fn run(&self, tests: &[&str], with: With, limit: Duration) -> Result<Ended> {
        let mut command = Command::new("prlimit");
        // A mutant may reserve memory without end, or turn in a loop after this command was interrupted.
        command.arg(format!("--as={}", 8_u64 << 30));
        command.arg(format!("--cpu={CPU_SECONDS_MAX}"));
        command.arg(&self.executable).arg("--exact").args(tests);
        match with {
            With::Mutant(number) => command.env(CHOSEN, number.to_string()),
            With::Notes(path) => command.env(REACHED, path),
        };
        command.env("CARGO_MANIFEST_DIR", &self.folder);
        command.current_dir(&self.folder).process_group(0);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("cannot start prlimit")?;
        let output = child.stdout.take().context("no output")?;
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(output).lines().map_while(Result::ok);
            let failed = lines.find(|line| line.ends_with("FAILED"));
            let _ = sender.send(failed); // Nobody waits behind the limit.
        });
        let found = receiver.recv_timeout(limit);
        if !matches!(found, Ok(None)) {
            let _ = kill_process_group(child.id()); // They may have ended.
        }
        let status = child.wait()?;
        Ok(match found {
            Err(_) => Ended::Slow,
            Ok(Some(line)) => Ended::Failed(test_of(&line)),
            Ok(None) if !status.success() => Ended::Failed(None),
            Ok(None) => Ended::Whole,
        })
    }
}

/// Returns the test whose failure a line reports.
fn test_of(line: &str) -> Option<String> {
    let (test, _) = line.strip_prefix("test ")?.split_once(" ... ")?;
    Some(test.to_owned())
}

/// No test computes as long.
const CPU_SECONDS_MAX: u32 = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_test_is_known_by_its_line() {
        let line = "test store::tests::it_is_kept ... FAILED";
        assert_eq!(test_of(line).as_deref(), Some("store::tests::it_is_kept"));
        assert_eq!(test_of("test result: FAILED"), None);
    }
}
