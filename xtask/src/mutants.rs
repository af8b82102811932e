//! `cargo xtask mutants`: changes the code that judges, one place at a time, and shows which changes no test notices.
//!
//! cargo-mutants lists the changes. Most of them are put into [one build](together). For each of them run the tests that
//! [reach] its place, until one fails. cargo-mutants builds and tests [the others](alone) one by one. This command
//! chooses the files (`xtask/mutants.toml`), keeps what became of each mutant so that an interrupted run goes on, and
//! compares the survivors with the listed ones: each needs a reason. What became of each file in its last run goes to
//! `xtask/mutants-last.toml`: counts, the number of mutants that were not tried, and the survivors without a reason.

mod alone;
mod at_once;
mod build;
mod last;
mod ledger;
mod outcomes;
mod program;
mod reach;
mod together;
mod trial;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use alone::{LEFT_MIN, is_left, one_by_one};
use build::Build;
use last::{last_of, open_survivors, write_last};
use ledger::Ledger;
use outcomes::{Outcomes, allowed, compare, counted, without_place};
use together::Mutant;
use trial::Trial;

/// What the command line asks for.
#[derive(Default)]
pub(crate) struct Wish {
    /// Crates by their short names; all if empty.
    crates: BTreeSet<String>,
    /// Files by their paths from the root; all of the crates if empty.
    files: Vec<String>,
    /// Ends the run after this time. The next run goes on.
    minutes: Option<u32>,
    /// Forgets what earlier runs caught.
    is_fresh: bool,
}

impl Wish {
    /// Parses the arguments after `mutants`. Returns `None` if there is another than the usage names.
    pub(crate) fn parse(arguments: &[String]) -> Option<Self> {
        let mut wish = Self::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--crate" => {
                    wish.crates.insert(rest.next()?.clone());
                }
                "--file" => wish.files.push(rest.next()?.clone()),
                "--minutes" => wish.minutes = Some(rest.next()?.parse().ok()?),
                "--fresh" => wish.is_fresh = true,
                _ => return None,
            }
        }
        Some(wish)
    }
}

/// `xtask/mutants.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    crates: BTreeMap<String, Scope>,
    #[serde(default)]
    survivor: Vec<Survivor>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scope {
    /// Globs below the crate's `src`.
    files: Vec<String>,
    /// Files of these that are left out.
    #[serde(default)]
    except: Vec<String>,
    /// Arguments of `cargo test`: the tests that must notice.
    tests: Vec<String>,
}

impl Scope {
    /// Returns what chooses test programs, and the rest, which begins with `--`.
    fn tests_divided(&self) -> (&[String], &[String]) {
        let programs = self.tests.iter().position(|word| word == "--");
        self.tests.split_at(programs.unwrap_or(self.tests.len()))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Survivor {
    /// As cargo-mutants names it, without line and column.
    mutant: String,
    /// How many mutants of the file have this name.
    #[serde(default = "one")]
    count: usize,
    reason: String,
}

const fn one() -> usize {
    1
}

/// Runs the mutants of the chosen crates and compares the survivors with the list.
pub(crate) fn run(root: &Path, wish: &Wish) -> Result<()> {
    let path = root.join("xtask/mutants.toml");
    let text = std::fs::read_to_string(&path)?;
    let list: List = toml::from_str(&text).context("cannot understand xtask/mutants.toml")?;
    if let Some(bare) = list
        .survivor
        .iter()
        .find(|one| one.reason.trim().is_empty())
    {
        bail!("xtask/mutants.toml: \"{}\" has no reason", bare.mutant);
    }
    if let Some(unknown) = wish
        .crates
        .iter()
        .find(|name| !list.crates.contains_key(*name))
    {
        bail!("xtask/mutants.toml has no [crates.{unknown}]");
    }
    let is_there = Command::new("cargo")
        .args(["mutants", "--version"])
        .output();
    if !is_there.is_ok_and(|output| output.status.success()) {
        bail!(
            "cargo-mutants is not installed; install it with: cargo install cargo-mutants --locked"
        );
    }
    let mut complaints = Vec::new();
    let chosen = list.crates.iter().filter(|(name, _)| {
        let in_crate = |file: &String| file.starts_with(&format!("crates/{name}/"));
        if wish.crates.is_empty() {
            wish.files.is_empty() || wish.files.iter().any(in_crate)
        } else {
            wish.crates.contains(*name)
        }
    });
    for (name, scope) in chosen {
        let outcomes = examine(root, name, scope, wish, &list.survivor)?;
        let listed = list_of(root, name, scope, &[])?;
        write_last(root, name, &outcomes, &listed, &list.survivor)?;
        complaints.extend(compare(&outcomes, &list.survivor));
    }
    let last = last_of(root)?;
    for (file, last) in last.iter().filter(|(_, last)| last.timed_out > 0) {
        eprintln!(
            "{file}: the tests did not end with {} mutants",
            last.timed_out
        );
    }
    for (file, last) in last.iter().filter(|(_, last)| last.not_run > 0) {
        eprintln!("{file}: {} mutants were not tried", last.not_run);
    }
    for name in list.crates.keys() {
        let prefix = format!("crates/{name}/");
        if !last.keys().any(|file| file.starts_with(&prefix)) {
            eprintln!("{name}: never run");
        }
    }
    if complaints.is_empty() {
        return Ok(());
    }
    bail!("{}", complaints.join("\n"))
}

fn examine(
    root: &Path,
    name: &str,
    scope: &Scope,
    wish: &Wish,
    listed: &[Survivor],
) -> Result<Outcomes> {
    let minutes = wish.minutes.map(u64::from);
    let end = minutes.map(|minutes| Instant::now() + Duration::from_secs(60 * minutes));
    let output = root.join("target/mutants").join(name);
    if wish.is_fresh {
        let _ = std::fs::remove_dir_all(&output); // Absent before the first run.
    }
    std::fs::create_dir_all(&output)?;
    let mut ledger = Ledger::open(&output.join("outcomes.txt"))?;
    // All of the scope, whatever files are chosen: the build stays the same.
    let all = list_of(root, name, scope, &[])?;
    let build = Build::new(root, name, scope, &all, &output, &mut ledger)?;
    let own = format!("crates/{name}/");
    let asked: Vec<&String> = wish
        .files
        .iter()
        .filter(|file| file.starts_with(&own))
        .collect();
    let is_chosen = |mutant: &Mutant| asked.is_empty() || asked.contains(&&mutant.file);
    let first = open_survivors(root)?;
    Trial::new(&build, &output, &mut ledger)?.run(is_chosen, &first, &mut ledger, end)?;
    let mut mutants = all.clone();
    mutants.retain(is_chosen);
    let found = Outcomes::of(&mutants, &ledger);
    let survived = counted(&found.survived);
    let is_left = |mutant: &&Mutant| {
        let has_reason = without_place(&mutant.name).is_some_and(|name| {
            let count = survived.get(&*name).copied().unwrap_or(0);
            count <= allowed(&name, listed)
        });
        is_left(ledger.of(&mutant.name), build.has(mutant), has_reason)
    };
    let apart: BTreeSet<&str> = mutants
        .iter()
        .filter(is_left)
        .map(|mutant| &*mutant.name)
        .collect();
    let left = end.map(|end| end.saturating_duration_since(Instant::now()));
    if !apart.is_empty() && left.is_none_or(|left| left > LEFT_MIN) {
        let known = mutants.iter().map(|mutant| &*mutant.name);
        let known: Vec<&str> = known.filter(|name| !apart.contains(name)).collect();
        one_by_one(
            root,
            &output,
            (name, scope, wish),
            &known,
            &mut ledger,
            left,
        )?;
    }
    Ok(Outcomes::of(&mutants, &ledger))
}

/// Lists the mutants of the chosen files.
fn list_of(root: &Path, name: &str, scope: &Scope, files: &[String]) -> Result<Vec<Mutant>> {
    let mut command = Command::new("cargo");
    command.args(["mutants", "--list", "--json"]);
    choose(command.current_dir(root), name, scope, files);
    let printed = command.output().context("cannot start cargo mutants")?;
    serde_json::from_slice(&printed.stdout)
        .with_context(|| String::from_utf8_lossy(&printed.stderr).into_owned())
}

/// Restricts the mutants to the chosen files of a crate; to all of its scope if none is.
fn choose(command: &mut Command, name: &str, scope: &Scope, files: &[String]) {
    command.args(["--package", &format!("deckwatch-{name}")]);
    let own = format!("crates/{name}/");
    let asked: Vec<&String> = files.iter().filter(|file| file.starts_with(&own)).collect();
    for file in &asked {
        command.args(["--file", file]);
    }
    if asked.is_empty() {
        for file in &scope.files {
            command.arg("--file").arg(format!("{own}src/{file}"));
        }
        for file in &scope.except {
            command.arg("--exclude").arg(format!("{own}src/{file}"));
        }
    }
}

fn target_of(root: &Path, name: &str) -> PathBuf {
    let target = root.join("target/mutants").join(name);
    std::path::absolute(&target).unwrap_or(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_understood() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let wish = Wish::parse(&words("--crate meter --minutes 5 --fresh --file a.rs")).unwrap();
        assert!(wish.crates.contains("meter") && wish.is_fresh);
        assert_eq!((wish.minutes, wish.files.len()), (Some(5), 1));
        for wrong in ["--crate", "--minutes x", "meter"] {
            assert!(Wish::parse(&words(wrong)).is_none(), "{wrong}");
        }
    }

    #[test]
    fn the_committed_list_is_understood_and_names_files_that_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let text = std::fs::read_to_string(root.join("xtask/mutants.toml")).unwrap();
        let list: List = toml::from_str(&text).unwrap();
        for one in &list.survivor {
            let file = one.mutant.split(": ").next().unwrap();
            assert!(
                root.join(file).is_file() && !one.reason.is_empty(),
                "{}",
                one.mutant
            );
        }
        for (name, scope) in &list.crates {
            for file in scope.files.iter().filter(|file| !file.contains('*')) {
                let path = root.join("crates").join(name).join("src").join(file);
                assert!(path.is_file(), "{}", path.display());
            }
        }
    }
}
