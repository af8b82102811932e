//! Builds every test program of the workspace and runs them: several at a time, or alone where they measure the
//! machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::skips::Ledger;

/// Packages whose tests measure time, emulate networks or start whole missions. Their programs run one after the
/// other, with nothing beside them.
const MEASURING: &[&str] = &["carrier", "cli", "load", "probe", "scenario", "testbed"];

/// Test programs of these packages that measure nothing that others disturb. They run beside others, and start first.
const UNDISTURBED: &[(&str, &str)] = &[("cli", "soak")];

/// Packages whose tests take longest. They start first, so that no processor waits for the last of them.
const LONG: &[&str] = &["orb", "report", "interop", "examples", "idl"];

/// Test programs whose tests wait more than they compute: more of them at a time than there are processors.
const WAITING: &[(&str, &str, &str)] = &[("cli", "cli", "3")];

/// A built test program.
struct Program {
    /// The folder of its package, relative to the root, and its target.
    name: String,
    folder: PathBuf,
    executable: PathBuf,
    is_measuring: bool,
    is_undisturbed: bool,
    /// Tests at a time; `None` for as many as there are processors.
    threads: Option<&'static str>,
}

/// Builds and runs all test programs and the examples in doc comments. Tests note their skips in the ledger.
pub(crate) fn run(root: &Path, skips: &Ledger) -> Result<()> {
    let programs = build(root)?;
    let (measuring, mut others): (Vec<Program>, Vec<Program>) = programs
        .into_iter()
        .partition(|program| program.is_measuring);
    others.sort_by_key(|program| {
        let is_long = LONG.iter().any(|long| program.folder.ends_with(long));
        (!program.is_undisturbed, !is_long)
    });
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    let mut failed = run_all(others, at_once, skips);
    failed.extend(run_all(measuring, 1, skips));
    let status = linting_cargo(root)
        .args(["test", "--locked", "--workspace", "--doc", "--quiet"])
        .status()?;
    if !status.success() {
        failed.push("cargo test --workspace --doc".to_owned());
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!(
        "these failed, each with its command:\n{}",
        failed.join("\n")
    )
}

/// Returns cargo with clippy in the compiler's place for the crates of the workspace, where a warning is an error: what
/// is built to be run is linted on the way. `cargo clippy` would read every crate once more.
fn linting_cargo(root: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    // The same two variables that `cargo clippy -- -D warnings` sets.
    cargo
        .env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver")
        .env(
            "CLIPPY_ARGS",
            "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__",
        )
        .current_dir(root);
    cargo
}

fn build(root: &Path) -> Result<Vec<Program>> {
    let began = Instant::now();
    let output = linting_cargo(root)
        .args(["test", "--locked", "--workspace", "--no-run"])
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo to build the tests")?;
    if !output.status.success() {
        bail!(
            "the tests do not build, or clippy has a warning; alone: RUSTC_WORKSPACE_WRAPPER=clippy-driver cargo test --workspace --no-run"
        );
    }
    eprintln!(
        "== built and linted: {:.0} s",
        began.elapsed().as_secs_f64()
    );
    let messages = String::from_utf8(output.stdout)?;
    let mut programs = Vec::new();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(line)?;
        programs.extend(program_of(&message));
    }
    Ok(programs)
}

/// The test program that a message of cargo speaks of; `None` for other messages.
fn program_of(message: &Value) -> Option<Program> {
    if message["profile"]["test"] != true {
        return None;
    }
    let executable = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let package = folder.file_name()?.to_str()?;
    let target = message["target"]["name"].as_str()?;
    let how = match message["target"]["kind"][0].as_str()? {
        "test" => format!("--test {target}"),
        "bin" => format!("--bin {target}"),
        _ => "--lib".to_owned(),
    };
    let crate_name = match package {
        "xtask" => package.to_owned(),
        _ => format!("deckwatch-{package}"),
    };
    let is_this = |of: &&(&str, &str, &'static str)| (of.0, of.1) == (package, target);
    let threads = WAITING.iter().find(is_this).map(|of| of.2);
    let is_undisturbed = UNDISTURBED.contains(&(package, target));
    Some(Program {
        name: format!("cargo test -p {crate_name} {how}"),
        is_measuring: MEASURING.contains(&package) && !is_undisturbed,
        is_undisturbed,
        threads,
        folder: folder.to_owned(),
        executable,
    })
}

/// Runs programs, so many at a time; returns the commands of those that fail.
fn run_all(programs: Vec<Program>, at_once: usize, skips: &Ledger) -> Vec<String> {
    let queue = Mutex::new(programs.into_iter());
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("no panic while it is held").next();
                    let Some(program) = next else { return };
                    if !program.run(skips) {
                        let mut failed = failed.lock().expect("no panic while it is held");
                        failed.push(program.name);
                    }
                }
            });
        }
    });
    failed.into_inner().expect("no thread panicked")
}

impl Program {
    /// Whether all its tests pass. Prints one line; everything that a failing program wrote.
    fn run(&self, skips: &Ledger) -> bool {
        let began = Instant::now();
        let output = Command::new(&self.executable)
            .current_dir(&self.folder)
            .env("CARGO", env!("CARGO"))
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("DECKWATCH_SKIPS", skips.file_of(&self.name))
            .envs(self.threads.map(|threads| ("RUST_TEST_THREADS", threads)))
            .output();
        let seconds = began.elapsed().as_secs_f64();
        let output = match output {
            Ok(output) => output,
            Err(error) => {
                eprintln!("{}: {error}", self.executable.display());
                return false;
            }
        };
        let text = String::from_utf8_lossy(&output.stdout);
        skips.note(&self.name, &text);
        let result = text.lines().rfind(|line| line.starts_with("test result"));
        let line = format!(
            "{} ({seconds:.0} s): {}",
            self.name,
            result.unwrap_or("no result")
        );
        if output.status.success() {
            eprintln!("{line}");
        } else {
            let complaints = String::from_utf8_lossy(&output.stderr);
            eprintln!("{text}{complaints}{line} ({})", output.status);
        }
        output.status.success()
    }
}
