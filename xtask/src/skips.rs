//! The ledger of skipped tests: a test that cannot run here appends its name and a reason to the file named by
//! `DECKWATCH_SKIPS` (`deckwatch_testkit::skip`). Each test program has a file of its own. A test that leaves out only
//! a part appends the line `did a part` as well (`skip_part`, `did_a_part`).
//!
//! `interop/gaps.toml` lists the skips that are allowed, each with its reason; in CI any other fails the run. A skip
//! that names privileges there is no longer allowed in CI once the run has them. A skip that names no test of its
//! program always fails the run: the ledger would count it wrongly.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context, Result, bail};
use deckwatch_os::namespace::Capability;
use serde::Deserialize;

/// The files that tests append to, what is allowed to stand in them, and what the programs reported.
pub(crate) struct Ledger {
    folder: PathBuf,
    allowed: BTreeMap<String, AllowedSkip>,
    noted: Mutex<Noted>,
}

/// What test programs have reported so far.
#[derive(Default)]
struct Noted {
    passed: usize,
    skips: BTreeSet<Skip>,
    /// Program and test of those that have left out only a part.
    partly: BTreeSet<(String, String)>,
    strays: Vec<String>,
    /// Steps of the run that are no tests.
    steps: BTreeSet<Skip>,
}

/// One reason for which one test did not run, or not as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Skip {
    /// The word that `interop/gaps.toml` may list.
    what: String,
    why: String,
    program: String,
    test: String,
}

#[derive(Deserialize)]
struct Gaps {
    #[serde(default)]
    skip: Vec<AllowedSkip>,
}

#[derive(Deserialize)]
struct AllowedSkip {
    what: String,
    reason: String,
    /// Privileges, in the kernel's names, and file systems of the kernel. In CI, a run that has all of them must not
    /// skip.
    #[serde(default)]
    unless: Vec<String>,
}

impl Ledger {
    /// Reads the allowed skips and empties the ledger.
    pub(crate) fn start(root: &Path) -> Result<Self> {
        let gaps = root.join("interop/gaps.toml");
        let text = std::fs::read_to_string(&gaps)
            .with_context(|| format!("cannot read {}", gaps.display()))?;
        let target = root.join("target");
        std::fs::create_dir_all(&target)?;
        Self::parse(&text, target.canonicalize()?.join("skips"))
    }

    fn parse(gaps: &str, folder: PathBuf) -> Result<Self> {
        let gaps: Gaps = toml::from_str(gaps).context("cannot understand interop/gaps.toml")?;
        for skip in &gaps.skip {
            let what = &skip.what;
            if skip.reason.trim().is_empty() {
                bail!("interop/gaps.toml: the skip of \"{what}\" has no reason");
            }
            let known = |name: &String| {
                FILE_SYSTEMS.contains(&name.as_str())
                    || Capability::ALL.iter().any(|one| one.name() == name)
            };
            if let Some(name) = skip.unless.iter().find(|name| !known(name)) {
                bail!(
                    "interop/gaps.toml: \"{what}\": {name} is no privilege or file system that is known here"
                );
            }
        }
        let _ = std::fs::remove_dir_all(&folder); // Absent before the first run.
        std::fs::create_dir_all(&folder)?;
        let allowed = gaps.skip.into_iter();
        Ok(Self {
            folder,
            allowed: allowed.map(|skip| (skip.what.clone(), skip)).collect(),
            noted: Mutex::default(),
        })
    }

    /// The file that the tests of a program append to.
    pub(crate) fn file_of(&self, program: &str) -> PathBuf {
        let name = program.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        self.folder.join(name)
    }

    /// Counts the tests that a program has passed, by what it printed, and its skips.
    pub(crate) fn note(&self, program: &str, printed: &str) {
        let lines = std::fs::read_to_string(self.file_of(program)).unwrap_or_default();
        let mut noted = self.noted.lock().expect("no panic while it is held");
        noted.passed += passed(printed).unwrap_or(0);
        for line in lines.lines() {
            if let Some(test) = line.strip_suffix("\tdid a part") {
                noted.partly.insert((program.to_owned(), test.to_owned()));
                continue;
            }
            match parse(program, line) {
                Some(skip) if printed.contains(&format!("test {} ", skip.test)) => {
                    noted.skips.insert(skip);
                }
                _ => noted.strays.push(format!("{program}: {line}")),
            }
        }
    }

    /// Counts a step of the run that cannot run on this machine.
    pub(crate) fn leave_out(&self, what: &str, step: &str, why: &str) {
        let mut noted = self.noted.lock().expect("no panic while it is held");
        noted.steps.insert(Skip {
            what: what.to_owned(),
            why: why.to_owned(),
            program: "cargo xtask ci".to_owned(),
            test: step.to_owned(),
        });
    }

    /// Prints the skips and the number of tests. Fails where a skip is not allowed.
    pub(crate) fn settle(&self) -> Result<()> {
        let file_systems = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
        let is_held = |name: &str| {
            if FILE_SYSTEMS.contains(&name) {
                return file_systems.split_whitespace().any(|word| word == name);
            }
            let all = Capability::ALL.iter();
            all.filter(|one| one.name() == name)
                .all(|one| one.is_held_by_children())
        };
        self.judge(std::env::var_os("CI").is_some(), &is_held)
    }

    fn judge(&self, in_ci: bool, is_held: &dyn Fn(&str) -> bool) -> Result<()> {
        let noted = self.noted.lock().expect("no panic while it is held");
        let all = || noted.skips.iter().chain(&noted.steps);
        for skip in all() {
            let (what, why) = (&skip.what, &skip.why);
            eprintln!("skipped: {what}: {} ({}): {why}", skip.test, skip.program);
        }
        let faults: Vec<String> = all()
            .filter_map(|skip| self.fault(&skip.what, is_held))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        eprintln!("{}", noted.sum());
        if !noted.strays.is_empty() {
            bail!(
                "these skips name no test of their program; call `skip` on the test's own thread:\n{}",
                noted.strays.join("\n")
            );
        }
        for fault in &faults {
            eprintln!("not allowed in CI: {fault}");
        }
        if in_ci && !faults.is_empty() {
            bail!("{} kinds of skips are not allowed in CI", faults.len());
        }
        Ok(())
    }

    /// Returns why a kind of skip is not allowed in CI.
    fn fault(&self, what: &str, is_held: &dyn Fn(&str) -> bool) -> Option<String> {
        let Some(allowed) = self.allowed.get(what) else {
            return Some(format!("{what}: interop/gaps.toml does not list it"));
        };
        let must_run = !allowed.unless.is_empty() && allowed.unless.iter().all(|n| is_held(n));
        must_run.then(|| format!("{what}: this run has {}", allowed.unless.join(", ")))
    }
}

impl Noted {
    /// A test that leaves early without a counted skip is counted as passed: the ledger cannot know of it. The source is
    /// checked for such tests (`tidy/early.rs`).
    fn sum(&self) -> String {
        let skipped = self
            .skips
            .iter()
            .map(|skip| (skip.program.clone(), skip.test.clone()));
        let skipped: BTreeSet<(String, String)> = skipped.collect();
        let (partly, wholly): (Vec<_>, Vec<_>) =
            skipped.iter().partition(|test| self.partly.contains(test));
        format!(
            "{} tests passed; {} of them did nothing, {} left out a part, and {} other steps did not run, each for a \
             reason above (not counted here: what leaves early without a skip; `cargo xtask tidy` refuses that in the \
             source)",
            self.passed,
            wholly.len(),
            partly.len(),
            self.steps.len()
        )
    }
}

/// File systems of the kernel that `unless` may name.
const FILE_SYSTEMS: &[&str] = &["tracefs"];

/// Returns the number of passed tests of a program, from its last line of results.
fn passed(printed: &str) -> Option<usize> {
    let mut lines = printed.lines();
    let result = lines.rfind(|line| line.starts_with("test result"))?;
    let (before, _) = result.split_once(" passed")?;
    before.rsplit(' ').next()?.parse().ok()
}

/// Parses a line of the ledger: the test, a tab, what is absent, a colon, the reason.
fn parse(program: &str, line: &str) -> Option<Skip> {
    let (test, reason) = line.split_once('\t')?;
    let (what, why) = reason.split_once(':')?;
    Some(Skip {
        what: what.trim().to_owned(),
        why: why.trim().to_owned(),
        program: program.to_owned(),
        test: test.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAPS: &str = "[[skip]]\nwhat = \"tao\"\nreason = \"r\"\n\
                        [[skip]]\nwhat = \"namespaces\"\nreason = \"r\"\nunless = [\"CAP_NET_ADMIN\", \"CAP_SYS_ADMIN\"]\n";
    const PROGRAM: &str = "cargo test -p deckwatch-interop --test interop";

    /// Below the target folder of the build that runs this test.
    fn folder(name: &str) -> PathBuf {
        let program = std::env::current_exe().unwrap();
        program.with_file_name(format!("ledger-{name}"))
    }

    fn ledger(name: &str) -> Ledger {
        Ledger::parse(GAPS, folder(name)).unwrap()
    }

    fn note(ledger: &Ledger, skips: &str, printed: &str) {
        std::fs::write(ledger.file_of(PROGRAM), skips).unwrap();
        ledger.note(PROGRAM, printed);
    }

    fn sum(ledger: &Ledger) -> String {
        let sum = ledger.noted.lock().unwrap().sum();
        sum.split_once(", and").unwrap().0.to_owned()
    }

    #[test]
    fn fourteen_tests_skipped_for_one_reason_count_as_fourteen() {
        let ledger = ledger("fourteen");
        let tests: Vec<String> = (0..14).map(|i| format!("lanes::t{i}")).collect();
        let skips: String = tests
            .iter()
            .map(|test| format!("{test}\ttao: not named\n"))
            .collect();
        let printed: String = tests
            .iter()
            .map(|test| format!("test {test} ... ok\n"))
            .collect();
        let result = "test result: ok. 15 passed; 0 failed; 0 ignored; 0 measured\n";
        note(&ledger, &skips, &(printed + result));
        assert_eq!(
            sum(&ledger),
            "15 tests passed; 14 of them did nothing, 0 left out a part"
        );
        ledger.judge(true, &|_| true).unwrap();
    }

    #[test]
    fn a_test_with_two_reasons_counts_once() {
        let ledger = ledger("twice");
        let skips = "a\ttao: not named\na\tnamespaces: no privilege\na\ttao: not named\n";
        note(
            &ledger,
            skips,
            "test a ... ok\ntest result: ok. 1 passed; 0 failed\n",
        );
        assert_eq!(
            sum(&ledger),
            "1 tests passed; 1 of them did nothing, 0 left out a part"
        );
    }

    #[test]
    fn a_test_that_did_a_part_behind_a_skip_has_left_out_a_part() {
        let ledger = ledger("part");
        let skips = "a\ttao: not named\na\tdid a part\nb\ttao: not named\nc\tdid a part\n";
        let printed = "test a ... ok\ntest b ... ok\ntest c ... ok\ntest result: ok. 3 passed;\n";
        note(&ledger, skips, printed);
        assert_eq!(
            sum(&ledger),
            "3 tests passed; 1 of them did nothing, 1 left out a part"
        );
        ledger.judge(true, &|_| true).unwrap();
    }

    #[test]
    fn a_step_that_is_left_out_is_counted_apart_and_judged_as_a_skip() {
        let ledger = ledger("step");
        note(&ledger, "", "test result: ok. 2 passed;\n");
        ledger.leave_out("tao", "a step", "not installed");
        let sum = ledger.noted.lock().unwrap().sum();
        assert!(sum.starts_with(
            "2 tests passed; 0 of them did nothing, 0 left out a part, and 1 other steps did not run,"
        ));
        ledger.judge(true, &|_| true).unwrap();
        ledger.leave_out("moon", "a step", "below the horizon");
        assert!(ledger.judge(true, &|_| true).is_err());
    }

    #[test]
    fn a_skip_that_is_not_listed_fails_in_ci_alone() {
        let ledger = ledger("unlisted");
        note(&ledger, "a\tmoon: below the horizon\n", "test a ... ok\n");
        ledger.judge(false, &|_| false).unwrap();
        assert!(ledger.judge(true, &|_| false).is_err());
    }

    #[test]
    fn a_skip_that_the_runs_privileges_rule_out_fails_in_ci() {
        let ledger = ledger("privileges");
        note(&ledger, "a\tnamespaces: no reason\n", "test a ... ok\n");
        ledger.judge(true, &|_| false).unwrap();
        ledger.judge(true, &|name| name == "CAP_NET_ADMIN").unwrap();
        assert!(ledger.judge(true, &|_| true).is_err());
        ledger.judge(false, &|_| true).unwrap();
    }

    #[test]
    fn a_skip_that_names_no_test_fails_everywhere() {
        for line in ["main\ttao: why\n", "tao: why\n"] {
            let ledger = ledger("stray");
            note(&ledger, line, "test a ... ok\n");
            assert!(ledger.judge(false, &|_| false).is_err(), "{line}");
        }
    }

    #[test]
    fn an_allowed_skip_needs_a_reason_and_privileges_that_exist() {
        let bare = "[[skip]]\nwhat = \"tao\"\nreason = \" \"\n";
        assert!(Ledger::parse(bare, folder("bare")).is_err());
        let unknown = "[[skip]]\nwhat = \"tao\"\nreason = \"r\"\nunless = [\"CAP_MOON\"]\n";
        assert!(Ledger::parse(unknown, folder("unknown")).is_err());
    }

    #[test]
    fn the_committed_list_is_understood() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let text = std::fs::read_to_string(root.join("interop/gaps.toml")).unwrap();
        let ledger = Ledger::parse(&text, folder("committed")).unwrap();
        for what in [
            "namespaces",
            "packet-tap",
            "perf events",
            "real-time-class",
            "chromium",
        ] {
            assert!(ledger.fault(what, &|_| true).is_some(), "{what}");
            assert_eq!(ledger.fault(what, &|_| false), None, "{what}");
        }
    }
}
