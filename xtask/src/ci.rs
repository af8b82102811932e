//! What every change must pass, in the order in which it fails fastest.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// One step: its name, its command from the root, and additional environment.
struct Step {
    name: &'static str,
    command: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

const BEFORE_TESTS: &[Step] = &[
    Step {
        name: "fmt",
        command: &["cargo", "fmt", "--all", "--check"],
        environment: &[],
    },
    Step {
        name: "clippy",
        command: &[
            "cargo",
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
];

/// Steps that need processor time and no quiet. They run one after the other beside the test programs that measure, in
/// the class SCHED_IDLE: any other thread takes the processor from them at once.
const BESIDE_MEASURING: &[Step] = &[
    Step {
        name: "doc",
        command: &["cargo", "doc", "--locked", "--workspace", "--no-deps"],
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
    },
    Step {
        name: "sanitizers",
        command: &["sanitize/run"],
        environment: &[],
    },
    Step {
        name: "fuzz targets",
        command: &["fuzz/run", "0"],
        environment: &[],
    },
];

/// Runs tidy and then every step; stops at the first that fails.
pub(crate) fn run(root: &Path) -> Result<()> {
    crate::tidy::run(root)?;
    let skips = crate::skips::Ledger::start(root)?;
    for step in BEFORE_TESTS {
        step.run(root)?;
    }
    let began = Instant::now();
    eprintln!("== test: every test program of the workspace");
    let beside = || {
        BESIDE_MEASURING
            .iter()
            .try_for_each(|step| step.run_idle(root))
    };
    crate::tests::run(root, &skips, beside)?;
    eprintln!("== test: {:.0} s", began.elapsed().as_secs_f64());
    skips.settle()
}

impl Step {
    fn run(&self, root: &Path) -> Result<()> {
        let began = Instant::now();
        eprintln!("== {}: {}", self.name, self.words());
        let (program, arguments) = self.command.split_first().context("a step has a command")?;
        let status = Command::new(program)
            .args(arguments)
            .envs(self.environment.iter().copied())
            .current_dir(root)
            .status()
            .with_context(|| format!("cannot start {program} for step {}", self.name))?;
        if !status.success() {
            bail!(self.failure());
        }
        eprintln!("== {}: {:.0} s", self.name, began.elapsed().as_secs_f64());
        Ok(())
    }

    /// Runs the step in the class SCHED_IDLE. Its output is printed if it fails.
    fn run_idle(&self, root: &Path) -> Result<()> {
        let began = Instant::now();
        let output = Command::new("chrt")
            .args(["--idle", "0"])
            .args(self.command)
            .envs(self.environment.iter().copied())
            .current_dir(root)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot start chrt for step {}", self.name))?;
        let (seconds, words) = (began.elapsed().as_secs_f64(), self.words());
        if !output.status.success() {
            let texts = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
            eprintln!("{}{}", texts[0], texts[1]);
            bail!(self.failure());
        }
        eprintln!(
            "== {}, beside the tests that measure: {words}: {seconds:.0} s",
            self.name
        );
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
