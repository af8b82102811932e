//! What every change must pass, in the order in which it fails fastest.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// One step: what it is called, the program's arguments to `cargo`, and extra environment.
struct Step {
    name: &'static str,
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

const STEPS: &[Step] = &[
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
    Step {
        name: "test",
        arguments: &["test", "--locked", "--workspace", "--no-fail-fast"],
        environment: &[],
    },
    Step {
        name: "doc",
        arguments: &["doc", "--locked", "--workspace", "--no-deps"],
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
    },
];

/// Runs tidy and then every step; stops at the first that fails.
pub(crate) fn run(root: &Path) -> Result<()> {
    crate::tidy::run(root)?;
    let skips = crate::skips::Ledger::start(root)?;
    for step in STEPS {
        let began = Instant::now();
        eprintln!("== {}: cargo {}", step.name, step.arguments.join(" "));
        let status = Command::new(env!("CARGO"))
            .args(step.arguments)
            .envs(step.environment.iter().copied())
            .env("DECKWATCH_SKIPS", skips.path())
            .current_dir(root)
            .status()
            .with_context(|| format!("cannot start cargo for step {}", step.name))?;
        eprintln!("== {}: {:.0} s", step.name, began.elapsed().as_secs_f64());
        if !status.success() {
            bail!(
                "step {} failed; run it alone with: cargo {}",
                step.name,
                step.arguments.join(" ")
            );
        }
    }
    skips.settle()
}
