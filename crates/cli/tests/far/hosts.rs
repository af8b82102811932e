//! Far hosts of a test, and what they leave behind.

use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const DECKWATCH: &str = env!("CARGO_BIN_EXE_deckwatch");

/// A far host in a mission file.
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) reach: Vec<String>,
    pub(crate) address: String,
    pub(crate) program: String,
}

impl Machine {
    pub(crate) fn new(name: &str, reach: &[String], address: &str) -> Self {
        Self {
            name: name.to_owned(),
            reach: reach.to_vec(),
            address: address.to_owned(),
            program: DECKWATCH.to_owned(),
        }
    }

    /// Returns a host whose far processes note their ids in a file. As with a real one, only the pipe leads to them:
    /// they are in a session of their own.
    pub(crate) fn noting_its_processes(name: &str, file: &Path) -> Self {
        let script = format!("echo $$ >> {}; exec \"$@\"", file.display());
        let reach = ["setsid", "--wait", "sh", "-c", &script, "sh"].map(str::to_owned);
        Self::new(name, &reach, "127.0.0.1")
    }

    /// Returns it as an element of `hosts`.
    pub(crate) fn line(&self) -> String {
        let quoted: Vec<String> = self.reach.iter().map(|word| format!("{word:?}")).collect();
        format!(
            "{{ name = \"{}\", reach = [{}], address = \"{}\", program = \"{}\" }}",
            self.name,
            quoted.join(", "),
            self.address,
            self.program
        )
    }
}

/// Returns the program without its symbols, if this machine can make one: it is copied in less time.
pub(crate) fn small_program(folder: &Path) -> PathBuf {
    let small = folder.join("small");
    let made = Command::new("strip")
        .arg("-o")
        .arg(&small)
        .arg(DECKWATCH)
        .status();
    if made.is_ok_and(|status| status.success()) {
        small
    } else {
        DECKWATCH.into()
    }
}

/// Returns the folders of far parts on this machine.
pub(crate) fn far_folders() -> Vec<PathBuf> {
    let memory = std::fs::read_dir("/dev/shm").expect("a memory file system");
    let is_far = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("deckwatch-far-")
    };
    memory
        .flatten()
        .map(|entry| entry.path())
        .filter(is_far)
        .collect()
}

/// Returns true if a process runs. A zombie does not run.
pub(crate) fn is_alive(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}
