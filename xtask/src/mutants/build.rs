//! Builds all mutants of a crate together, in a copy of the tree.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::ledger::{Ledger, Outcome};
use super::together::{Concerned, Mutant, chooser, concerned, with_all};
use super::{Scope, target_of};

/// The mutants of a crate in one build.
pub(super) struct Build<'a> {
    root: &'a Path,
    pub(super) name: &'a str,
    pub(super) scope: &'a Scope,
    /// By their numbers, which begin at 1.
    pub(super) mutants: &'a [Mutant],
    /// Numbers of the mutants that are in the build.
    pub(super) placed: BTreeSet<u32>,
    /// Functions that the compiler calls, by name: they stay `const`, and their mutants are not in the build.
    constant: BTreeSet<String>,
    /// The test programs. The library's is the first.
    pub(super) programs: Vec<PathBuf>,
}

impl<'a> Build<'a> {
    /// Builds these mutants. Those that have no place in a common build are noted. `folder` keeps what is learnt of them.
    pub(super) fn new(
        root: &'a Path,
        name: &'a str,
        scope: &'a Scope,
        mutants: &'a [Mutant],
        folder: &Path,
        ledger: &mut Ledger,
    ) -> Result<Self> {
        let mut build = Self {
            root,
            name,
            scope,
            mutants,
            placed: BTreeSet::new(),
            constant: BTreeSet::new(),
            programs: Vec::new(),
        };
        let is_apart = |mutant: &Mutant| {
            // An `impl Trait` is one type in a build; alone, a mutant may return another.
            let returns_impl = mutant.name.contains("-> impl ");
            let known = ledger.of(&mutant.name);
            returns_impl || matches!(known, Some(Outcome::Apart | Outcome::Unviable))
        };
        // One that is found anew costs a build of everything.
        let kept = folder.join("constant.txt");
        let known = std::fs::read_to_string(&kept).unwrap_or_default();
        build.constant.extend(known.lines().map(str::to_owned));
        let all = (1..).zip(mutants);
        let placed = all.filter(|(_, mutant)| !is_apart(mutant));
        build.placed = placed.map(|(number, _)| number).collect();
        // Each round leaves out mutants that do not compile; the compiler finds some only when others are out.
        for _ in 0..ROUNDS_MAX {
            let texts = build.write()?;
            match build.compile(&texts)? {
                Built::Programs(programs) => {
                    build.programs = programs;
                    return Ok(build);
                }
                Built::Constant(names) => {
                    build.constant.extend(names);
                    let names: Vec<&str> = build.constant.iter().map(String::as_str).collect();
                    std::fs::write(&kept, names.join("\n"))?;
                }
                Built::Complaints(complaints) => {
                    let count = complaints.len();
                    eprintln!("{name}: {count} mutants are not in the common build");
                    for (number, outcome) in complaints {
                        ledger.note(&build.mutant(number).name, outcome)?;
                        build.placed.remove(&number);
                    }
                }
            }
        }
        bail!("{name}: the common build does not compile after {ROUNDS_MAX} rounds");
    }

    /// Returns the mutant of this number.
    pub(super) fn mutant(&self, number: u32) -> &'a Mutant {
        &self.mutants[number as usize - 1]
    }

    /// Returns true if the common build has this mutant.
    pub(super) fn has(&self, mutant: &Mutant) -> bool {
        let mut placed = self.placed.iter();
        placed.any(|&number| self.mutant(number).name == mutant.name)
    }

    /// The folder in which the crate's tests run.
    pub(super) fn folder(&self) -> PathBuf {
        self.tree().join("crates").join(self.name)
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
        lib.context("no lib.rs")?
            .push_str(&chooser(self.mutants.len()));
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

/// A round takes a build.
const ROUNDS_MAX: u32 = 40;

#[cfg(test)]
mod tests {
    use super::*;

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
}
