//! Naming services as processes, ours and omniORB's, for the tests of naming with a foreign ORB.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::path::PathBuf;
use std::process::Command;

use deckwatch_testkit::program;

use crate::common::{Running, free_port, port_of, root, scratch, try_run};

/// The program under test, in the project's directory.
pub(crate) fn deckwatch() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
    command.current_dir(root());
    command
}

/// A naming service of ours, at a port that the system chooses.
pub(crate) struct Names {
    _process: Running,
    pub(crate) url: String,
    pub(crate) ior: String,
}

impl Names {
    pub(crate) fn start() -> Self {
        let mut process = Running::start(deckwatch().args(["names", "serve"]));
        let (mut url, mut ior) = (None, None);
        while url.is_none() || ior.is_none() {
            let line = process.line_with("");
            if let Some(found) = line.strip_prefix("serving names at ") {
                url = Some(found.to_owned());
            } else if line.starts_with("IOR:") {
                ior = Some(line);
            }
        }
        Self {
            _process: process,
            url: url.expect("an address"),
            ior: ior.expect("a reference"),
        }
    }

    /// Its port.
    pub(crate) fn port(&self) -> u16 {
        port_of(&self.ior)
    }

    /// Arguments that make this the naming service of a foreign program.
    pub(crate) fn initial(&self) -> [String; 2] {
        [
            "-ORBInitRef".to_owned(),
            format!("NameService={}", self.url),
        ]
    }

    /// Runs omniORB's naming client with this service and returns its output.
    pub(crate) fn nameclt(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new("nameclt");
        command
            .args(self.initial())
            .arg("-advanced")
            .args(arguments);
        try_run(&mut command).map(|said| said.trim_end().to_owned())
    }
}

/// omniNames at a port of its own, with its files in a scratch directory.
pub(crate) struct OmniNames {
    process: Option<Running>,
    folder: PathBuf,
    pub(crate) url: String,
}

impl OmniNames {
    pub(crate) fn start(test: &str) -> Option<Self> {
        program("omniNames")?;
        let folder = scratch(test);
        let port = free_port();
        let mut process = Running::start(
            Command::new("omniNames")
                .args(["-start", &port.to_string(), "-logdir"])
                .arg(&folder)
                .args(["-errlog", "/dev/stderr"]),
        );
        process.line_with("IOR:");
        let url = format!("corbaloc::127.0.0.1:{port}/NameService");
        Some(Self {
            process: Some(process),
            folder,
            url,
        })
    }
}

impl Drop for OmniNames {
    fn drop(&mut self) {
        drop(self.process.take());
        let _ = std::fs::remove_dir_all(&self.folder); // It may be gone already.
    }
}
