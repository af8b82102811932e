//! `cargo xtask mutants`: changes the code that judges, one place at a time, and shows which changes no test notices.
//!
//! cargo-mutants lists the changes. Most of them are put into [one build](together), and the tests run once for each:
//! first those of the library, for all mutants; then, for mutants that they do not notice, the other test programs.
//! cargo-mutants builds and tests the others one by one. This command chooses the files (`xtask/mutants.toml`), keeps
//! what became of each mutant so that an interrupted run goes on, and compares the survivors with the listed ones: each
//! needs a reason. The counts of the last run of each file go to `xtask/mutants-last.toml`, and so does the number of
//! mutants that were not tried.

mod ledger;
mod together;
mod trial;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use ledger::{Ledger, Outcome};
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
    /// Arguments of `cargo test`: the tests that must notice.
    tests: Vec<String>,
    /// Names of tests that take seconds. They are run for mutants that no other test notices.
    #[serde(default)]
    slow: Vec<String>,
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

/// The last run of one file, in `xtask/mutants-last.toml`.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Last {
    date: String,
    commit: String,
    /// Mutants that a test notices.
    caught: usize,
    survived: usize,
    /// Mutants with which the tests do not end.
    #[serde(default, skip_serializing_if = "is_zero")]
    timed_out: usize,
    /// Mutants that do not compile.
    unviable: usize,
    /// Mutants that were not tried.
    #[serde(default, skip_serializing_if = "is_zero")]
    not_run: usize,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Last {
    const fn tried(&self) -> usize {
        self.caught + self.survived + self.timed_out + self.unviable
    }
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
        write_last(root, &outcomes, &list_of(root, name, scope, &[])?)?;
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

fn last_of(root: &Path) -> Result<BTreeMap<String, Last>> {
    let path = root.join("xtask/mutants-last.toml");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    toml::from_str(&text).context("cannot understand xtask/mutants-last.toml")
}

/// What became of each mutant: names without line and column, a name as often as it occurs.
#[derive(Default)]
struct Outcomes {
    caught: Vec<String>,
    survived: Vec<String>,
    timed_out: Vec<String>,
    unviable: Vec<String>,
    /// All mutants of the chosen files.
    all: Vec<String>,
}

impl Outcomes {
    /// Returns true if every mutant of the chosen files was tried.
    const fn is_whole(&self) -> bool {
        let ended = self.caught.len() + self.survived.len() + self.unviable.len();
        ended + self.timed_out.len() >= self.all.len()
    }

    fn of(mutants: &[Mutant], ledger: &Ledger) -> Self {
        let mut outcomes = Self::default();
        for mutant in mutants {
            let Some(name) = without_place(&mutant.name) else {
                continue;
            };
            match ledger.of(&mutant.name) {
                Some(Outcome::Caught) => outcomes.caught.push(name.clone()),
                Some(Outcome::Survived) => outcomes.survived.push(name.clone()),
                Some(Outcome::Slow | Outcome::TimedOut) => outcomes.timed_out.push(name.clone()),
                Some(Outcome::Unviable) => outcomes.unviable.push(name.clone()),
                Some(Outcome::Apart | Outcome::Unnoticed) | None => {}
            }
            outcomes.all.push(name);
        }
        outcomes
    }
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
    let mutants = list_of(root, name, scope, &wish.files)?;
    let mut trial = Trial::build(root, name, scope, &mutants, &mut ledger)?;
    trial.run(&mut ledger, end)?;
    let found = Outcomes::of(&mutants, &ledger);
    let survived = counted(&found.survived);
    let is_left = |mutant: &&Mutant| {
        let has_reason = without_place(&mutant.name).is_some_and(|name| {
            let count = survived.get(&*name).copied().unwrap_or(0);
            count <= allowed(&name, listed)
        });
        is_left(
            ledger.of(&mutant.name),
            trial.has_in_build(mutant),
            has_reason,
        )
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

/// Returns true if a mutant must be tried alone. A survivor without a reason is tried in each run, for a test of it may
/// have been written since; the common build has done that with its own.
const fn is_left(known: Option<Outcome>, is_in_build: bool, has_reason: bool) -> bool {
    match known {
        None | Some(Outcome::Apart) => true,
        Some(Outcome::Survived) => !is_in_build && !has_reason,
        Some(_) => false,
    }
}

/// A run of cargo-mutants that is shorter tries nothing: first it tests the tree without a mutant.
const LEFT_MIN: Duration = Duration::from_secs(60);

/// Has cargo-mutants try the mutants other than these.
fn one_by_one(
    root: &Path,
    output: &Path,
    (name, scope, wish): (&str, &Scope, &Wish),
    known: &[&str],
    ledger: &mut Ledger,
    left: Option<Duration>,
) -> Result<()> {
    let folder = output.join("mutants.out");
    let _ = std::fs::remove_dir_all(&folder); // Absent before the first run.
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("previously_caught.txt"), known.join("\n"))?;
    let status = command(root, output, (name, scope, wish), left)
        .status()
        .context("cannot start cargo mutants")?;
    // 2 and 3: some survived, some ran out of time. 124: `timeout` has ended it.
    match status.code() {
        Some(0 | 2 | 3) => {}
        Some(124) => {
            eprintln!("{name}: time is up; the same command goes on where this run ended");
        }
        _ => bail!(
            "cargo mutants ended with {status}; its log is in {}",
            output.display()
        ),
    }
    for (file, outcome) in [
        ("caught.txt", Outcome::Caught),
        ("missed.txt", Outcome::Survived),
        ("timeout.txt", Outcome::TimedOut),
        ("unviable.txt", Outcome::Unviable),
    ] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
        for mutant in text.lines() {
            ledger.note(mutant, outcome)?;
        }
    }
    Ok(())
}

fn command(
    root: &Path,
    output: &Path,
    (name, scope, wish): (&str, &Scope, &Wish),
    left: Option<Duration>,
) -> Command {
    let mut command = match left {
        Some(left) => {
            let mut command = Command::new("timeout");
            command.args(["--signal=INT", &left.as_secs().to_string(), "cargo"]);
            command
        }
        None => Command::new("cargo"),
    };
    command.args(["mutants", "--iterate", "--jobs", "1", "--colors", "never"]);
    command.args(["--cap-lints", "true", "--minimum-test-timeout", "30"]);
    command.arg("--output").arg(output);
    choose(&mut command, name, scope, &wish.files);
    // The build gets the choice of test programs too, or it would build all of them.
    let (programs, filters) = scope.tests_divided();
    for program in programs {
        command.arg(format!("--cargo-arg={program}"));
    }
    // The tests of a mutant take longer than its build.
    let optimised = format!("profile.dev.package.deckwatch-{name}.opt-level=1");
    command.arg(format!("--cargo-arg=--config={optimised}"));
    command.arg("--").args(filters);
    // The copy of the tree is a new folder each time; what it is built from is kept. The common build has another folder:
    // cargo takes the build scripts of one copy for those of the other, and they read files of their own.
    command.env("CARGO_TARGET_DIR", target_of(root, "alone"));
    // Nobody looks at a backtrace of a mutant.
    command.env("CARGO_PROFILE_DEV_DEBUG", "false");
    command.current_dir(root);
    command
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
    }
}

fn target_of(root: &Path, name: &str) -> PathBuf {
    let target = root.join("target/mutants").join(name);
    std::path::absolute(&target).unwrap_or(target)
}

/// Returns a mutant's name without its line and column, which change with every edit of the file.
fn without_place(line: &str) -> Option<String> {
    let (file, rest) = line.split_once(".rs:")?;
    let mut parts = rest.splitn(3, ':');
    let (_line, _column, what) = (parts.next()?, parts.next()?, parts.next()?);
    Some(format!("{file}.rs:{what}"))
}

fn file_of(mutant: &str) -> &str {
    mutant.split(": ").next().unwrap_or(mutant)
}

/// Returns a complaint for each survivor without a reason, and for each listed one that was caught.
fn compare(outcomes: &Outcomes, listed: &[Survivor]) -> Vec<String> {
    let found = counted(&outcomes.survived);
    let caught = counted(&outcomes.caught);
    let mut complaints = Vec::new();
    for (mutant, &count) in &found {
        if count > allowed(mutant, listed) {
            complaints.push(format!("survived without a reason: {mutant} ({count})"));
        }
    }
    for one in listed.iter().filter(|_| outcomes.is_whole()) {
        let mutant = one.mutant.as_str();
        let survived = found.get(mutant).copied().unwrap_or(0);
        if survived < one.count && caught.contains_key(mutant) {
            complaints.push(format!("listed, but noticed now: {mutant}"));
        }
    }
    complaints
}

/// Returns how many mutants of this name have a reason.
fn allowed(mutant: &str, listed: &[Survivor]) -> usize {
    let listed = listed.iter().find(|one| one.mutant == mutant);
    listed.map_or(0, |one| one.count)
}

fn counted(names: &[String]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name.as_str()).or_default() += 1;
    }
    counts
}

/// Notes the counts of each file of a crate. A file of which nothing was tried keeps its earlier counts.
fn write_last(root: &Path, outcomes: &Outcomes, scope: &[Mutant]) -> Result<()> {
    let mut all = last_of(root)?;
    let mut files = sums(outcomes);
    let names = scope.iter().map(|mutant| without_place(&mutant.name));
    let untried = Outcomes {
        all: names.flatten().collect(),
        ..Outcomes::default()
    };
    for (file, last) in sums(&untried) {
        files.entry(file).or_insert(last);
    }
    let (date, commit) = (
        said(root, "date", &["--utc", "+%F"])?,
        said(root, "git", &["rev-parse", "--short", "HEAD"])?,
    );
    for (file, mut last) in files {
        (last.date, last.commit) = (date.clone(), commit.clone());
        if last.tried() > 0 || !all.contains_key(&file) {
            all.insert(file, last);
        }
    }
    std::fs::write(root.join("xtask/mutants-last.toml"), toml::to_string(&all)?)?;
    Ok(())
}

fn sums(outcomes: &Outcomes) -> BTreeMap<String, Last> {
    let mut files: BTreeMap<String, Last> = BTreeMap::new();
    let mut add = |names: &[String], count: fn(&mut Last) -> &mut usize| {
        for name in names {
            *count(files.entry(file_of(name).to_owned()).or_default()) += 1;
        }
    };
    add(&outcomes.all, |last| &mut last.not_run);
    add(&outcomes.caught, |last| &mut last.caught);
    add(&outcomes.survived, |last| &mut last.survived);
    add(&outcomes.timed_out, |last| &mut last.timed_out);
    add(&outcomes.unviable, |last| &mut last.unviable);
    for last in files.values_mut() {
        last.not_run = last.not_run.saturating_sub(last.tried());
    }
    files
}

fn said(root: &Path, program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root)
        .output()
        .with_context(|| format!("cannot start {program}"))?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LESS: &str = "crates/meter/src/judge.rs: replace < with > in judge";
    const MORE: &str = "crates/meter/src/words.rs: replace + with - in share";

    fn outcomes(caught: &[&str], survived: &[&str]) -> Outcomes {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Outcomes {
            caught: owned(caught),
            survived: owned(survived),
            timed_out: Vec::new(),
            unviable: Vec::new(),
            all: owned(&[caught, survived].concat()),
        }
    }

    fn listed(mutant: &str, count: usize) -> [Survivor; 1] {
        [Survivor {
            mutant: mutant.to_owned(),
            count,
            reason: "r".to_owned(),
        }]
    }

    #[test]
    fn a_mutant_is_known_without_its_place() {
        let line = "crates/meter/src/judge.rs:12:34: replace < with > in judge";
        assert_eq!(without_place(line).as_deref(), Some(LESS));
        assert_eq!(without_place("no place"), None);
    }

    #[test]
    fn a_survivor_needs_a_reason() {
        let found = outcomes(&[MORE], &[LESS]);
        assert_eq!(compare(&found, &[]).len(), 1);
        assert!(compare(&found, &listed(LESS, 1)).is_empty());
        // A second one of the same name is another mutant.
        let twice = outcomes(&[], &[LESS, LESS]);
        assert_eq!(compare(&twice, &listed(LESS, 1)).len(), 1);
        assert!(compare(&twice, &listed(LESS, 2)).is_empty());
    }

    #[test]
    fn a_survivor_without_a_reason_is_tried_alone_again() {
        let survived = Some(Outcome::Survived);
        assert!(is_left(survived, false, false));
        assert!(!is_left(survived, false, true));
        // The common build has tried it.
        assert!(!is_left(survived, true, false));
        for outcome in [None, Some(Outcome::Apart)] {
            assert!(is_left(outcome, false, true));
        }
        for outcome in [Outcome::Caught, Outcome::Unviable, Outcome::TimedOut] {
            assert!(!is_left(Some(outcome), false, false));
        }
    }

    #[test]
    fn a_listed_mutant_that_is_noticed_is_to_be_taken_out() {
        let mut found = outcomes(&[LESS, MORE], &[]);
        assert_eq!(compare(&found, &listed(LESS, 1)).len(), 1);
        // One that was not tried is left alone.
        assert!(compare(&outcomes(&[MORE], &[]), &listed(LESS, 1)).is_empty());
        found.all.push(MORE.to_owned());
        assert!(compare(&found, &listed(LESS, 1)).is_empty());
    }

    #[test]
    fn the_counts_are_those_of_each_file() {
        let mut found = outcomes(&[LESS, MORE, MORE], &[LESS]);
        found.all.extend([LESS, LESS].map(str::to_owned));
        let files = sums(&found);
        let judge = &files["crates/meter/src/judge.rs"];
        assert_eq!((judge.caught, judge.survived, judge.not_run), (1, 1, 2));
        let words = &files["crates/meter/src/words.rs"];
        assert_eq!((words.caught, words.not_run), (2, 0));
    }

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
