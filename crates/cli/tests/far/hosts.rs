//! Far hosts of a test, and what they leave behind.

use std::path::{Path, PathBuf};
use std::process::Command;

use deckwatch_testbed::{HostSpec, Testbed, preset};

pub(crate) const DECKWATCH: &str = env!("CARGO_BIN_EXE_deckwatch");

/// Two emulated hosts, as machines that are reached by commands of this one.
pub(crate) struct TwoMachines {
    pub(crate) testbed: Testbed,
}

impl TwoMachines {
    /// Makes them, or counts a skip.
    pub(crate) fn make() -> Option<Self> {
        if let Some(reason) = Testbed::obstacle() {
            deckwatch_testkit::skip("namespaces", &reason);
            return None;
        }
        let network = preset("gigabit-ethernet").expect("a preset");
        let specs = [HostSpec::new("A"), HostSpec::new("B")];
        let testbed = Testbed::create(&network, &specs).expect("namespaces");
        Some(Self { testbed })
    }

    /// Returns the name of a host's namespace: of `A` (0) or `B` (1).
    pub(crate) fn namespace(&self, index: usize) -> &str {
        let host = &self.testbed.hosts()[index];
        host.namespace_name().expect("a namespace")
    }

    /// Returns the address of a host.
    pub(crate) fn address(&self, index: usize) -> String {
        self.testbed.hosts()[index].address().to_string()
    }

    /// Returns the words that start a program on a host.
    pub(crate) fn inside(&self, index: usize) -> Vec<String> {
        ["ip", "netns", "exec", self.namespace(index)]
            .map(str::to_owned)
            .to_vec()
    }

    /// The same, with a CLOCK_MONOTONIC six days ahead.
    pub(crate) fn inside_ahead(&self, index: usize) -> Vec<String> {
        let mut words = self.inside(index);
        words.extend(["unshare", "-T", "--monotonic", "500000"].map(str::to_owned));
        words
    }

    /// Returns `hosts = [...]` of a mission, with the words that reach each.
    pub(crate) fn hosts(&self, reach: [&[String]; 2]) -> String {
        let names = ["A", "B"];
        let line =
            |index: usize| Machine::new(names[index], reach[index], &self.address(index)).line();
        format!("hosts = [{}, {}]", line(0), line(1))
    }
}

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
