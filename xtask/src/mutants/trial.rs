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
    programs: Vec<PathBuf>,
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
            programs: Vec::new(),
        };
        let was_apart = |mutant: &Mutant| {
            matches!(
                ledger.of(&mutant.name),
                Some(Outcome::Apart | Outcome::Unviable)
            )
        };
        let all = (1..).zip(mutants);
        let placed = all.filter(|(_, mutant)| !was_apart(mutant));
        trial.placed = placed.map(|(number, _)| number).collect();
        // Each round leaves out mutants that do not compile; the compiler finds some only when others are out.
        for _ in 0..ROUNDS_MAX {
            let texts = trial.write()?;
            match trial.compile(&texts)? {
                Built::Programs(programs) => {
                    trial.programs = programs;
                    return Ok(trial);
                }
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

    /// Runs the tests for each mutant of the build that was not noticed yet, until `end`. An outcome is noted at once.
    pub(super) fn run(&self, ledger: &mut Ledger, end: Option<Instant>) -> Result<()> {
        let began = Instant::now();
        match self.outcome(0, Duration::from_secs(600))? {
            Outcome::Survived => {}
            _ => bail!("{}: a test fails without a mutant", self.name),
        }
        let limit = (began.elapsed() * 3).max(Duration::from_secs(10));
        let is_open = |number: &&u32| {
            let mutant = &self.mutants[**number as usize - 1];
            matches!(ledger.of(&mutant.name), None | Some(Outcome::Survived))
        };
        let mut open: Vec<u32> = self.placed.iter().filter(is_open).copied().collect();
        // What survived before comes last: a test for it may have been written since.
        open.sort_by_key(|number| {
            ledger
                .of(&self.mutants[*number as usize - 1].name)
                .is_some()
        });
        let all = open.len();
        eprintln!(
            "{}: {all} of {} mutants are tried; all tests take {:.1} s",
            self.name,
            self.placed.len(),
            began.elapsed().as_secs_f64()
        );
        for (done, number) in open.into_iter().enumerate() {
            if end.is_some_and(|end| Instant::now() >= end) {
                eprintln!("{}: time is up after {done} of {all}", self.name);
                break;
            }
            let mutant = &self.mutants[number as usize - 1];
            let outcome = self.outcome(number, limit)?;
            ledger.note(&mutant.name, outcome)?;
            if outcome != Outcome::Caught {
                eprintln!("{outcome:?}: {}", mutant.name);
            }
            if done % 100 == 99 {
                let seconds = began.elapsed().as_secs();
                eprintln!("{}: {} of {all} after {seconds} s", self.name, done + 1);
            }
        }
        Ok(())
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
        let mut texts = BTreeMap::new();
        let mut placed = BTreeSet::new();
        for (file, mutants) in &files {
            let text = std::fs::read_to_string(self.root.join(file))?;
            let (text, numbers) = with_all(&text, mutants).with_context(|| (*file).to_owned())?;
            texts.insert((*file).to_owned(), text);
            placed.extend(numbers);
        }
        self.placed = placed;
        let lib = format!("crates/{}/src/lib.rs", self.name);
        let text = std::fs::read_to_string(self.root.join(&lib))?;
        texts.entry(lib).or_insert(text).push_str(&chooser());
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others"])
            .arg("--exclude-standard")
            .current_dir(self.root)
            .output()?;
        for file in String::from_utf8(listed.stdout)?.split_terminator('\0') {
            let from = self.root.join(file);
            if !from.is_file() {
                continue;
            }
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
        cargo.env("CARGO_TARGET_DIR", target_of(self.root));
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
            let programs = programs.filter_map(|one| one["executable"].as_str());
            return Ok(Built::Programs(programs.map(PathBuf::from).collect()));
        }
        let errors = messages
            .iter()
            .filter(|one| one["message"]["level"] == "error");
        let mut out = BTreeMap::new();
        let mut first = None;
        for error in errors {
            first = first.or(error["message"]["rendered"].as_str());
            for span in error["message"]["spans"].as_array().into_iter().flatten() {
                let Some(text) = span["file_name"].as_str().and_then(|file| texts.get(file)) else {
                    continue;
                };
                if span["is_primary"] != true {
                    continue;
                }
                match concerned(text, &range_of(span)) {
                    // Alone, another `impl Trait` may be returned.
                    Concerned::One(number) if !self.returns_impl(number) => {
                        out.insert(number, Outcome::Unviable);
                    }
                    Concerned::One(number) => {
                        out.entry(number).or_insert(Outcome::Apart);
                    }
                    Concerned::Some(numbers) => {
                        for number in numbers {
                            out.entry(number).or_insert(Outcome::Apart);
                        }
                    }
                }
            }
        }
        if out.is_empty() {
            bail!(
                "the common build does not compile: {}",
                first.unwrap_or("see above")
            );
        }
        Ok(Built::Complaints(out))
    }

    fn returns_impl(&self, number: u32) -> bool {
        self.mutants[number as usize - 1].name.contains("-> impl ")
    }

    /// Runs the test programs until a test fails: first the tests of the mutant's own module, which notice most mutants
    /// and are few, then all.
    fn outcome(&self, number: u32, limit: Duration) -> Result<Outcome> {
        let began = Instant::now();
        let mutant = self.mutants.get((number as usize).wrapping_sub(1));
        let module = mutant.and_then(|mutant| module_of(&mutant.file));
        for of in module.map(Some).into_iter().chain([None]) {
            let end = began + if of.is_some() { limit / 3 } else { limit };
            for program in &self.programs {
                let outcome = self.run_program(program, number, of.as_deref(), end)?;
                if outcome != Outcome::Survived {
                    return Ok(outcome);
                }
            }
        }
        Ok(Outcome::Survived)
    }

    fn run_program(
        &self,
        program: &Path,
        number: u32,
        of: Option<&str>,
        end: Instant,
    ) -> Result<Outcome> {
        let folder = self.tree().join("crates").join(self.name);
        let filters = self.scope.tests_divided().1;
        let mut command = Command::new("prlimit");
        // A mutant may reserve memory without end.
        command.arg(format!("--as={}", 8_u64 << 30)).arg(program);
        command.args(of);
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
            let failed = lines.any(|line| line.ends_with("FAILED"));
            let _ = sender.send(failed); // Nobody waits behind the limit.
        });
        let found = receiver.recv_timeout(end.saturating_duration_since(Instant::now()));
        if !matches!(found, Ok(false)) {
            let _ = child.kill(); // It may have ended.
        }
        let status = child.wait()?;
        Ok(match found {
            Err(_) => Outcome::Slow,
            Ok(failed) if failed || !status.success() => Outcome::Caught,
            Ok(_) => Outcome::Survived,
        })
    }
}

/// Returns the path of the tests of a file's module within its crate.
fn module_of(file: &str) -> Option<String> {
    let path = file.split_once("/src/")?.1.strip_suffix(".rs")?;
    Some(format!("{}::tests::", path.replace('/', "::")))
}

/// What came of a build.
enum Built {
    Programs(Vec<PathBuf>),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_of_a_file_are_those_of_its_module() {
        let file = "crates/meter/src/statistics/longest.rs";
        let module = module_of(file);
        assert_eq!(module.as_deref(), Some("statistics::longest::tests::"));
        assert_eq!(module_of("build.rs"), None);
    }
}
