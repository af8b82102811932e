//! What every change must pass, in the order in which it fails fastest.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// One step: its name, the arguments of `cargo`, and additional environment.
struct Step {
    name: &'static str,
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

const BEFORE_TESTS: &[Step] = &[
    Step {
        name: "fmt",
        arguments: &["fmt", "--all", "--check"],
        environment: &[],
    },
    Step {
        name: "clippy",
        arguments: &[
            "clippy",
            "--locked",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
        environment: &[],
    },
    Step {
        name: "build",
        arguments: &["build", "--locked", "--workspace", "--bins"],
        environment: &[],
    },
];

const DOC: Step = Step {
    name: "doc",
    arguments: &["doc", "--locked", "--workspace", "--no-deps"],
    environment: &[("RUSTDOCFLAGS", "-D warnings")],
};

/// Runs tidy and then every step; stops at the first that fails.
pub(crate) fn run(root: &Path) -> Result<()> {
    crate::tidy::run(root)?;
    let skips = crate::skips::Ledger::start(root)?;
    for step in BEFORE_TESTS {
        step.run(root)?;
    }
    let began = Instant::now();
    eprintln!("== test: every test program of the workspace");
    crate::tests::run(root, skips.path())?;
    eprintln!("== test: {:.0} s", began.elapsed().as_secs_f64());
    DOC.run(root)?;
    skips.settle()
}

impl Step {
    fn run(&self, root: &Path) -> Result<()> {
        let began = Instant::now();
        let command = format!("cargo {}", self.arguments.join(" "));
        eprintln!("== {}: {command}", self.name);
        let status = Command::new(env!("CARGO"))
            .args(self.arguments)
            .envs(self.environment.iter().copied())
            .current_dir(root)
            .status()
            .with_context(|| format!("cannot start cargo for step {}", self.name))?;
        if !status.success() {
            bail!("step {} failed; run it alone with: {command}", self.name);
        }
        eprintln!("== {}: {:.0} s", self.name, began.elapsed().as_secs_f64());
        Ok(())
    }
}
