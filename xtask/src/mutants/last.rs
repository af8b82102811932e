//! The last run of each file, in `xtask/mutants-last.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::Survivor;
use super::outcomes::{Outcomes, allowed, counted, file_of, without_place};
use super::together::Mutant;

/// The last run of one file, in `xtask/mutants-last.toml`.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Last {
    date: String,
    commit: String,
    /// Mutants that a test notices.
    caught: usize,
    survived: usize,
    /// Mutants with which the tests do not end.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) timed_out: usize,
    /// Mutants that do not compile.
    unviable: usize,
    /// Mutants that were not tried.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) not_run: usize,
    /// The names of those that survived without a reason. The next run tries them first, on whatever machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    without_reason: Vec<String>,
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

/// Returns the names of the mutants that survived the last runs without a reason.
pub(super) fn open_survivors(root: &Path) -> Result<BTreeSet<String>> {
    let files = last_of(root)?.into_values();
    Ok(files.flat_map(|last| last.without_reason).collect())
}

pub(super) fn last_of(root: &Path) -> Result<BTreeMap<String, Last>> {
    let path = root.join("xtask/mutants-last.toml");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    toml::from_str(&text).context("cannot understand xtask/mutants-last.toml")
}

/// Notes what became of each file of a crate. A file of which nothing was tried keeps its earlier counts; one that is no
/// longer in the scope has none.
pub(super) fn write_last(
    root: &Path,
    name: &str,
    outcomes: &Outcomes,
    scope: &[Mutant],
    listed: &[Survivor],
) -> Result<()> {
    let mut all = last_of(root)?;
    let own = format!("crates/{name}/");
    all.retain(|file, _| {
        !file.starts_with(&own) || scope.iter().any(|mutant| mutant.file == *file)
    });
    let mut files = sums(outcomes);
    let names = scope.iter().map(|mutant| without_place(&mutant.name));
    let untried = Outcomes {
        all: names.flatten().collect(),
        ..Outcomes::default()
    };
    for (file, last) in sums(&untried) {
        files.entry(file).or_insert(last);
    }
    for mutant in without_reason(outcomes, listed) {
        if let Some(last) = files.get_mut(file_of(mutant)) {
            last.without_reason.push(mutant.to_owned());
        }
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

fn without_reason<'a>(outcomes: &'a Outcomes, listed: &[Survivor]) -> Vec<&'a str> {
    let survived = counted(&outcomes.survived).into_iter();
    let open = survived.filter(|&(mutant, count)| count > allowed(mutant, listed));
    open.map(|(mutant, _)| mutant).collect()
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
    use super::super::outcomes::tests::{LESS, MORE, outcomes};
    use super::*;

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
    fn survivors_without_a_reason_are_named() {
        let found = outcomes(&[], &[LESS, LESS, MORE]);
        let reason = |mutant: &str, count| Survivor {
            mutant: mutant.to_owned(),
            count,
            reason: "r".to_owned(),
        };
        let named = without_reason(&found, &[reason(LESS, 1), reason(MORE, 1)]);
        assert_eq!(named, [LESS]);
    }
}
