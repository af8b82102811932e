//! Builds all mutants of a crate together, and runs the tests once for each mutant.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::ledger::{Ledger, Outcome};
use super::together::{CHOSEN, Concerned, Mutant, chooser, concerned, with_all};
use super::{Scope, target_of};

/// The mutants of a crate in one build.
pub(super) struct Trial<'a> {
    root: &'a Path,
    name: &'a str,
    scope: &'a Scope,
    /// By their numbers, which begin at 1.
    mutants: &'a [Mutant],
    /// Numbers of the mutants that are in the build.
    placed: BTreeSet<u32>,
    /// Functions that the compiler calls, by name: they stay `const`, and their mutants are not in the build.
    constant: BTreeSet<String>,
    /// The library's is the first.
    programs: Vec<PathBuf>,
    /// By file: the tests that noticed its mutants, the last one first, each with the number of its program. They
    /// notice others, too.
    watchful: BTreeMap<String, Vec<(usize, String)>>,
}

/// The tests that are run for a mutant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tests {
    /// Those of the library without the slow ones.
    OfLibrary,
    All,
    /// All but those of the library, which did not notice the mutant in this run.
    Others,
}

impl<'a> Trial<'a> {
    /// Builds these mutants. Those that have no place in a common build are noted.
    pub(super) fn build(
        root: &'a Path,
        name: &'a str,
        scope: &'a Scope,
        mutants: &'a [Mutant],
        ledger: &mut Ledger,
    ) -> Result<Self> {
        let mut trial = Self {
            root,
            name,
            scope,
            mutants,
            placed: BTreeSet::new(),
            constant: BTreeSet::new(),
            programs: Vec::new(),
            watchful: BTreeMap::new(),
        };
        let is_apart = |mutant: &Mutant| {
            // An `impl Trait` is one type in a build; alone, a mutant may return another.
            let returns_impl = mutant.name.contains("-> impl ");
            let known = ledger.of(&mutant.name);
            returns_impl || matches!(known, Some(Outcome::Apart | Outcome::Unviable))
        };
        let all = (1..).zip(mutants);
        let placed = all.filter(|(_, mutant)| !is_apart(mutant));
        trial.placed = placed.map(|(number, _)| number).collect();
        // Each round leaves out mutants that do not compile; the compiler finds some only when others are out.
        for _ in 0..ROUNDS_MAX {
            let texts = trial.write()?;
            match trial.compile(&texts)? {
                Built::Programs(programs) => {
                    trial.programs = programs;
                    return Ok(trial);
                }
                Built::Constant(names) => trial.constant.extend(names),
                Built::Complaints(complaints) => {
                    let count = complaints.len();
                    eprintln!("{name}: {count} mutants are not in the common build");
                    for (number, outcome) in complaints {
                        let mutant = &trial.mutants[number as usize - 1];
                        ledger.note(&mutant.name, outcome)?;
                        trial.placed.remove(&number);
                    }
                }
            }
        }
        bail!("{name}: the common build does not compile after {ROUNDS_MAX} rounds");
    }

    /// Returns true if the common build has this mutant.
    pub(super) fn has_in_build(&self, mutant: &Mutant) -> bool {
        let position = self.mutants.iter().position(|one| one.name == mutant.name);
        let number = position.and_then(|position| u32::try_from(position + 1).ok());
        number.is_some_and(|number| self.placed.contains(&number))
    }

    /// Runs the tests for each mutant of the build that was not noticed yet, until `end`: those of the library for all
    /// mutants, then all tests for mutants that they do not notice. An outcome is noted at once.
    pub(super) fn run(&mut self, ledger: &mut Ledger, end: Option<Instant>) -> Result<()> {
        let of_library = self.time(Tests::OfLibrary)?;
        let of = |number: u32| ledger.of(&self.mutants[number as usize - 1].name);
        let all = || self.placed.iter().copied();
        let new: Vec<u32> = all().filter(|&number| of(number).is_none()).collect();
        // What survived before comes last: a test for it may have been written since.
        let later: Vec<u32> = [Outcome::Unnoticed, Outcome::Survived]
            .into_iter()
            .flat_map(|outcome| all().filter(move |&number| of(number) == Some(outcome)))
            .collect();
        eprintln!(
            "{}: {} of {} mutants are tried; the library's tests take {:.1} s",
            self.name,
            new.len() + later.len(),
            self.placed.len(),
            of_library.as_secs_f64(),
        );
        let unnoticed = self.run_for(&new, Tests::OfLibrary, limit_of(of_library), ledger, end)?;
        if end.is_some_and(|end| Instant::now() >= end) {
            return Ok(());
        }
        let of_all = if self.has_others() {
            self.time(Tests::All)?
        } else {
            of_library
        };
        eprintln!(
            "{}: {} mutants are left; all tests take {:.1} s",
            self.name,
            unnoticed.len() + later.len(),
            of_all.as_secs_f64()
        );
        self.run_for(&unnoticed, Tests::Others, limit_of(of_all), ledger, end)?;
        self.run_for(&later, Tests::All, limit_of(of_all), ledger, end)?;
        self.run_slow(limit_of(of_all) * 2, ledger, end)
    }

    /// Returns true if there are tests other than the quick ones of the library.
    fn has_others(&self) -> bool {
        self.programs.len() > 1 || !self.scope.slow.is_empty()
    }

    /// Runs all tests once more, until `end`, for each mutant with which they did not end, and gives them more time.
    fn run_slow(
        &mut self,
        limit: Duration,
        ledger: &mut Ledger,
        end: Option<Instant>,
    ) -> Result<()> {
        for number in self.placed.clone() {
            let mutant = &self.mutants[number as usize - 1];
            if ledger.of(&mutant.name) != Some(Outcome::Slow) {
                continue;
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                break;
            }
            let outcome = match self.outcome(number, Tests::All, limit)? {
                Outcome::Slow => Outcome::TimedOut,
                outcome => outcome,
            };
            eprintln!("{outcome:?}: {}", mutant.name);
            ledger.note(&mutant.name, outcome)?;
        }
        Ok(())
    }

    /// Returns how long tests take without a mutant.
    fn time(&mut self, tests: Tests) -> Result<Duration> {
        let began = Instant::now();
        match self.outcome(0, tests, Duration::from_secs(600))? {
            Outcome::Survived | Outcome::Unnoticed => Ok(began.elapsed()),
            _ => {
                let failed = self.watchful.get("").and_then(|tests| tests.first());
                let test = failed.map_or("a test", |(_, test)| test);
                bail!("{}: {test} fails without a mutant", self.name)
            }
        }
    }

    /// Runs some tests for these mutants until `end`. Returns those that other tests may notice.
    fn run_for(
        &mut self,
        numbers: &[u32],
        tests: Tests,
        limit: Duration,
        ledger: &mut Ledger,
        end: Option<Instant>,
    ) -> Result<Vec<u32>> {
        let began = Instant::now();
        let mut unnoticed = Vec::new();
        for (done, &number) in numbers.iter().enumerate() {
            if end.is_some_and(|end| Instant::now() >= end) {
                eprintln!(
                    "{}: time is up after {done} of {}",
                    self.name,
                    numbers.len()
                );
                break;
            }
            let mutant = &self.mutants[number as usize - 1];
            let outcome = self.outcome(number, tests, limit)?;
            ledger.note(&mutant.name, outcome)?;
            match outcome {
                Outcome::Caught => {}
                Outcome::Unnoticed => unnoticed.push(number),
                _ => eprintln!("{outcome:?}: {}", mutant.name),
            }
            if done % 100 == 99 {
                let seconds = began.elapsed().as_secs();
                eprintln!(
                    "{}: {} of {} after {seconds} s",
                    self.name,
                    done + 1,
                    numbers.len()
                );
            }
        }
        Ok(unnoticed)
    }

    /// The copy of the tree, which git does not see.
    fn tree(&self) -> PathBuf {
        let tree = self.root.join("target/mutants/tree");
        std::path::absolute(&tree).unwrap_or(tree)
    }

    /// Writes the copy of the tree, and returns the texts that hold mutants, by file.
    fn write(&mut self) -> Result<BTreeMap<String, String>> {
        let mut files: BTreeMap<&str, Vec<(u32, &Mutant)>> = BTreeMap::new();
        for (number, mutant) in (1..).zip(self.mutants) {
            if self.placed.contains(&number) {
                files
                    .entry(&mutant.file)
                    .or_default()
                    .push((number, mutant));
            }
        }
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others"])
            .arg("--exclude-standard")
            .current_dir(self.root)
            .output()?;
        let listed = String::from_utf8(listed.stdout)?;
        let is_there = |file: &&str| self.root.join(file).is_file();
        let listed: BTreeSet<&str> = listed.split_terminator('\0').filter(is_there).collect();
        let own = format!("crates/{}/src/", self.name);
        let mut texts = BTreeMap::new();
        let mut placed = BTreeSet::new();
        let is_own = |file: &&str| file.starts_with(&own) && file.ends_with(".rs");
        for file in listed.iter().copied().filter(is_own) {
            let text = std::fs::read_to_string(self.root.join(file))?;
            let mutants = files.get(file).map_or(&[][..], Vec::as_slice);
            let (text, numbers) =
                with_all(&text, mutants, &self.constant).with_context(|| file.to_owned())?;
            texts.insert(file.to_owned(), text);
            placed.extend(numbers);
        }
        self.placed = placed;
        let lib = texts.get_mut(&format!("{own}lib.rs"));
        lib.context("no lib.rs")?.push_str(&chooser());
        keep_only(&self.tree(), &self.tree(), &listed)?;
        for file in listed {
            let from = self.root.join(file);
            let octets = match texts.get(file) {
                Some(text) => text.clone().into_bytes(),
                None => std::fs::read(&from)?,
            };
            let to = self.tree().join(file);
            // A file that is written anew would be compiled anew.
            if std::fs::read(&to).is_ok_and(|known| known == octets) {
                continue;
            }
            std::fs::create_dir_all(to.parent().unwrap_or(&to))?;
            std::fs::copy(&from, &to)?; // With its permissions.
            std::fs::write(&to, octets)?;
        }
        Ok(texts)
    }

    fn compile(&self, texts: &BTreeMap<String, String>) -> Result<Built> {
        let mut cargo = Command::new("cargo");
        cargo.args(["test", "--no-run", "--message-format=json", "--package"]);
        cargo.arg(format!("deckwatch-{}", self.name));
        let optimised = format!("profile.dev.package.deckwatch-{}.opt-level=1", self.name);
        cargo.arg(format!("--config={optimised}"));
        cargo.args(self.scope.tests_divided().0);
        cargo.env("CARGO_TARGET_DIR", target_of(self.root, "build"));
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "false");
        cargo.env("RUSTFLAGS", "--cap-lints=warn");
        cargo.current_dir(self.tree()).stderr(Stdio::inherit());
        let output = cargo.output().context("cannot start cargo")?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let messages: Vec<Value> = said
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        if output.status.success() {
            let programs = messages.iter().filter(|one| one["profile"]["test"] == true);
            let mut programs: Vec<&Value> = programs.collect();
            programs.sort_by_key(|one| one["target"]["kind"][0] != "lib");
            let programs = programs.iter().filter_map(|one| one["executable"].as_str());
            return Ok(Built::Programs(programs.map(PathBuf::from).collect()));
        }
        let errors = messages
            .iter()
            .filter(|one| one["message"]["level"] == "error");
        let mut out = BTreeMap::new();
        let mut near = BTreeMap::new();
        let mut first = None;
        let mut constant = BTreeSet::new();
        for error in errors {
            first = first.or(error["message"]["rendered"].as_str());
            constant.extend(called_while_compiling(&error["message"]));
            for span in error["message"]["spans"].as_array().into_iter().flatten() {
                let Some(text) = span["file_name"].as_str().and_then(|file| texts.get(file)) else {
                    continue;
                };
                if span["is_primary"] != true {
                    continue;
                }
                match concerned(text, &range_of(span)) {
                    Concerned::One(number) => {
                        out.insert(number, Outcome::Unviable);
                    }
                    Concerned::Some(numbers) => {
                        near.extend(numbers.into_iter().map(|number| (number, Outcome::Apart)));
                    }
                }
            }
        }
        if !constant.is_empty() {
            return Ok(Built::Constant(constant));
        }
        // A mutant that does not compile causes complaints about the code around it, too.
        if out.is_empty() {
            out = near;
        }
        if out.is_empty() {
            bail!(
                "the common build does not compile: {}",
                first.unwrap_or("see above")
            );
        }
        Ok(Built::Complaints(out))
    }

    /// Runs tests until one fails: first those that noticed other mutants of the file, then those of its module and of
    /// the modules around it, then all of one program after the other, at last the slow ones.
    fn outcome(&mut self, number: u32, tests: Tests, limit: Duration) -> Result<Outcome> {
        let began = Instant::now();
        let mutant = self.mutants.get((number as usize).wrapping_sub(1));
        let file = mutant.map(|mutant| mutant.file.clone()).unwrap_or_default();
        let programs = match tests {
            Tests::OfLibrary => 0..1,
            Tests::All => 0..self.programs.len(),
            Tests::Others => 1..self.programs.len(),
        };
        // Each with its share of the time, in thirds: a few tests end sooner, those of a module may be most of them.
        let mut runs: Vec<(usize, Vec<String>, u32)> = Vec::new();
        let watchful = self.watchful.get(&file).into_iter().flatten();
        for (program, test) in watchful.filter(|(program, _)| programs.contains(program)) {
            match runs.iter_mut().find(|(known, ..)| known == program) {
                Some((_, names, _)) => names.push(test.clone()),
                None => runs.push((*program, vec!["--exact".to_owned(), test.clone()], 1)),
            }
        }
        let slow = &self.scope.slow;
        let quick: Vec<String> = slow.iter().map(|test| format!("--skip={test}")).collect();
        let modules = modules_of(&file);
        if !modules.is_empty() && programs.contains(&0) {
            runs.push((0, [modules, quick.clone()].concat(), 2));
        }
        runs.extend(programs.map(|program| (program, quick.clone(), 3)));
        if tests != Tests::OfLibrary && !slow.is_empty() {
            runs.extend((0..self.programs.len()).map(|program| (program, slow.clone(), 3)));
        }
        for (program, filters, thirds) in runs {
            let limit = limit * thirds / 3;
            match self.run_program(program, number, &filters, began + limit)? {
                Ended::Whole => {}
                Ended::Slow => return Ok(Outcome::Slow),
                Ended::Failed(test) => {
                    let watchful = self.watchful.entry(file).or_default();
                    if let Some(test) = test {
                        watchful.retain(|(_, known)| *known != test);
                        watchful.insert(0, (program, test));
                        watchful.truncate(WATCHFUL_MAX);
                    }
                    return Ok(Outcome::Caught);
                }
            }
        }
        Ok(if tests == Tests::OfLibrary && self.has_others() {
            Outcome::Unnoticed
        } else {
            Outcome::Survived
        })
    }

    fn run_program(
        &self,
        program: usize,
        number: u32,
        chosen: &[String],
        end: Instant,
    ) -> Result<Ended> {
        let folder = self.tree().join("crates").join(self.name);
        let filters = self.scope.tests_divided().1;
        let mut command = Command::new("prlimit");
        // A mutant may reserve memory without end.
        command.arg(format!("--as={}", 8_u64 << 30));
        command.arg(&self.programs[program]).args(chosen);
        command.args(filters.iter().filter(|word| *word != "--"));
        command.env(CHOSEN, number.to_string());
        command.env("CARGO_MANIFEST_DIR", &folder);
        command.current_dir(&folder);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("cannot start prlimit")?;
        let output = child.stdout.take().context("no output")?;
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(output).lines().map_while(Result::ok);
            let failed = lines.find(|line| line.ends_with("FAILED"));
            let _ = sender.send(failed); // Nobody waits behind the limit.
        });
        let found = receiver.recv_timeout(end.saturating_duration_since(Instant::now()));
        if !matches!(found, Ok(None)) {
            let _ = child.kill(); // It may have ended.
        }
        let status = child.wait()?;
        Ok(match found {
            Err(_) => Ended::Slow,
            Ok(Some(line)) => Ended::Failed(test_of(&line)),
            Ok(None) if !status.success() => Ended::Failed(None),
            Ok(None) => Ended::Whole,
        })
    }
}

/// Removes the files of a folder of the copy that are not among these, by their paths from `tree`: cargo finds a test
/// program by its file, even one that has another place now.
fn keep_only(tree: &Path, folder: &Path, files: &BTreeSet<&str>) -> Result<()> {
    // Absent before the first run.
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            keep_only(tree, &path, files)?;
        } else if !files.contains(&*path.strip_prefix(tree)?.to_string_lossy()) {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Returns how long a mutant's tests may take if they take this long without it.
fn limit_of(time: Duration) -> Duration {
    (time * 3).max(Duration::from_secs(10))
}

/// How a test program ended.
enum Ended {
    Whole,
    /// A test failed: this one, if the program could say which.
    Failed(Option<String>),
    /// It did not end within the limit.
    Slow,
}

/// Returns the test whose failure a line reports.
fn test_of(line: &str) -> Option<String> {
    let (test, _) = line.strip_prefix("test ")?.split_once(" ... ")?;
    Some(test.to_owned())
}

/// Returns the paths of the tests of a file's module within its crate, and of the modules around it.
fn modules_of(file: &str) -> Vec<String> {
    let inner = file.split_once("/src/").map(|(_, path)| path);
    let Some(path) = inner.and_then(|path| path.strip_suffix(".rs")) else {
        return Vec::new();
    };
    let ends = path.match_indices('/').map(|(end, _)| end);
    ends.chain([path.len()])
        .map(|end| format!("{}::tests::", path[..end].replace('/', "::")))
        .collect()
}

/// Returns the function whose `const` the compiler misses.
fn called_while_compiling(message: &Value) -> Option<String> {
    if message["code"]["code"] != "E0015" {
        return None;
    }
    let path = message["message"].as_str()?.split('`').nth(1)?;
    let name = path.rsplit("::").next()?;
    (name != "mutated").then(|| name.to_owned())
}

/// What came of a build.
enum Built {
    Programs(Vec<PathBuf>),
    /// Functions that must stay `const`, by name.
    Constant(BTreeSet<String>),
    /// The mutants that do not compile, and those that may not.
    Complaints(BTreeMap<u32, Outcome>),
}

fn range_of(span: &Value) -> Range<usize> {
    let end = |name: &str| {
        span[name]
            .as_u64()
            .and_then(|end| usize::try_from(end).ok())
    };
    end("byte_start").unwrap_or(0)..end("byte_end").unwrap_or(0)
}

const ROUNDS_MAX: u32 = 40;

/// Tests that are tried first for the next mutant of a file.
const WATCHFUL_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_of_a_file_are_those_of_its_module_and_of_the_modules_around_it() {
        let modules = modules_of("crates/meter/src/statistics/longest.rs");
        assert_eq!(
            modules,
            ["statistics::tests::", "statistics::longest::tests::"]
        );
        assert_eq!(modules_of("build.rs"), [""; 0]);
    }

    #[test]
    fn a_file_that_the_tree_has_no_more_is_removed_from_its_copy() {
        let name = format!("deckwatch-tree-{}", std::process::id());
        let tree = std::env::temp_dir().join(name);
        std::fs::create_dir_all(tree.join("tests/loom")).unwrap();
        for file in ["a.rs", "tests/loom.rs", "tests/loom/main.rs"] {
            std::fs::write(tree.join(file), "").unwrap();
        }
        let kept = BTreeSet::from(["a.rs", "tests/loom/main.rs"]);
        keep_only(&tree, &tree, &kept).unwrap();
        let is_there = |file: &str| tree.join(file).exists();
        let there = ["a.rs", "tests/loom.rs", "tests/loom/main.rs"].map(is_there);
        std::fs::remove_dir_all(&tree).unwrap();
        assert_eq!(there, [true, false, true]);
    }

    #[test]
    fn a_function_that_the_compiler_calls_is_known_by_the_complaint() {
        let complaint = |code: &str, path: &str| {
            let message = format!("cannot call non-const function `{path}` in constants");
            called_while_compiling(&serde_json::json!({"code": {"code": code}, "message": message}))
        };
        assert_eq!(complaint("E0015", "Share::<2>::of").as_deref(), Some("of"));
        assert_eq!(complaint("E0015", "half").as_deref(), Some("half"));
        assert_eq!(complaint("E0015", "mutated"), None);
        assert_eq!(complaint("E0308", "half"), None);
    }

    #[test]
    fn a_failed_test_is_known_by_its_line() {
        let line = "test store::tests::it_is_kept ... FAILED";
        assert_eq!(test_of(line).as_deref(), Some("store::tests::it_is_kept"));
        assert_eq!(test_of("test result: FAILED"), None);
    }
}
