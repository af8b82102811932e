//! What every change must pass, in the order in which it fails fastest.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// One step: its name and its command from the root.
struct Step {
    name: &'static str,
    command: &'static [&'static str],
}

const BEFORE_TESTS: &[Step] = &[
    Step {
        name: "fmt",
        command: &["cargo", "fmt", "--all", "--check"],
    },
    Step {
        name: "fmt of the gateway",
        command: &[
            "cargo",
            "fmt",
            "--manifest-path",
            "gateway/Cargo.toml",
            "--check",
        ],
    },
];

const LICENCES: &[Step] = &[
    Step {
        name: "sources",
        command: &["cargo", "fetch", "--locked", "--quiet"],
    },
    Step {
        name: "licences and sources",
        command: &[
            "cargo",
            "deny",
            "--offline",
            "--log-level",
            "error",
            "check",
            "bans",
            "licenses",
            "sources",
        ],
    },
];

/// Runs tidy and then every step; stops at the first that fails.
pub(crate) fn run(root: &Path) -> Result<()> {
    crate::tidy::run(root)?;
    let skips = crate::skips::Ledger::start(root)?;
    for step in BEFORE_TESTS {
        step.run(root)?;
    }
    if has_cargo_deny() {
        for step in LICENCES {
            step.run(root)?;
        }
    } else {
        let why = "not installed (cargo install cargo-deny --locked)";
        skips.leave_out("cargo-deny", "licences and sources", why);
    }
    let began = Instant::now();
    eprintln!("== lints and tests: every test program of the workspace");
    crate::tests::run(root, &skips)?;
    eprintln!("== lints and tests: {:.0} s", began.elapsed().as_secs_f64());
    skips.settle()
}

fn has_cargo_deny() -> bool {
    let tried = Command::new("cargo").args(["deny", "--version"]).output();
    tried.is_ok_and(|output| output.status.success())
}

impl Step {
    fn run(&self, root: &Path) -> Result<()> {
        let began = Instant::now();
        eprintln!("== {}: {}", self.name, self.words());
        let (program, arguments) = self.command.split_first().context("a step has a command")?;
        let status = Command::new(program)
            .args(arguments)
            .current_dir(root)
            .status()
            .with_context(|| format!("cannot start {program} for step {}", self.name))?;
        if !status.success() {
            bail!(self.failure());
        }
        eprintln!("== {}: {:.0} s", self.name, began.elapsed().as_secs_f64());
        Ok(())
    }

    fn words(&self) -> String {
        self.command.join(" ")
    }

    fn failure(&self) -> String {
        format!(
            "step {} failed; run it alone with: {}",
            self.name,
            self.words()
        )
    }
}
