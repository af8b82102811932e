//! What became of the mutants, file by file, and whether each survivor has a reason.

use std::collections::BTreeMap;

use super::Survivor;
use super::ledger::{Ledger, Outcome};
use super::together::Mutant;

/// What became of each mutant: names without line and column, a name as often as it occurs.
#[derive(Default)]
pub(super) struct Outcomes {
    pub(super) caught: Vec<String>,
    pub(super) survived: Vec<String>,
    /// Those of the survivors whose places no test reaches.
    pub(super) unreached: Vec<String>,
    pub(super) timed_out: Vec<String>,
    pub(super) unviable: Vec<String>,
    /// All mutants of the chosen files.
    pub(super) all: Vec<String>,
}

impl Outcomes {
    /// Returns true if every mutant of the chosen files was tried.
    const fn is_whole(&self) -> bool {
        let ended = self.caught.len() + self.survived.len() + self.unviable.len();
        ended + self.timed_out.len() >= self.all.len()
    }

    pub(super) fn of(mutants: &[Mutant], ledger: &Ledger) -> Self {
        let mut outcomes = Self::default();
        for mutant in mutants {
            let Some(name) = without_place(&mutant.name) else {
                continue;
            };
            let known = ledger.of(&mutant.name);
            if known == Some(Outcome::Unreached) {
                outcomes.unreached.push(name.clone());
            }
            match known {
                Some(Outcome::Caught) => outcomes.caught.push(name.clone()),
                Some(outcome) if outcome.is_survivor() => outcomes.survived.push(name.clone()),
                Some(Outcome::Slow | Outcome::TimedOut) => outcomes.timed_out.push(name.clone()),
                Some(Outcome::Unviable) => outcomes.unviable.push(name.clone()),
                _ => {}
            }
            outcomes.all.push(name);
        }
        outcomes
    }
}

/// Returns a mutant's name without its line and column, which change with every edit of the file.
pub(super) fn without_place(line: &str) -> Option<String> {
    let (file, rest) = line.split_once(".rs:")?;
    let mut parts = rest.splitn(3, ':');
    let (_line, _column, what) = (parts.next()?, parts.next()?, parts.next()?);
    Some(format!("{file}.rs:{what}"))
}

pub(super) fn file_of(mutant: &str) -> &str {
    mutant.split(": ").next().unwrap_or(mutant)
}

/// Returns a complaint for each survivor without a reason, and for each listed one that was caught.
pub(super) fn compare(outcomes: &Outcomes, listed: &[Survivor]) -> Vec<String> {
    let found = counted(&outcomes.survived);
    let caught = counted(&outcomes.caught);
    let unreached = counted(&outcomes.unreached);
    let mut complaints = Vec::new();
    for (mutant, &count) in &found {
        if count > allowed(mutant, listed) {
            let unreached = unreached.get(mutant).copied().unwrap_or(0);
            complaints.push(match unreached {
                0 => format!("survived without a reason: {mutant} ({count})"),
                _ => format!(
                    "survived without a reason: {mutant} ({count}; no test reaches {unreached})"
                ),
            });
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
pub(super) fn allowed(mutant: &str, listed: &[Survivor]) -> usize {
    let listed = listed.iter().find(|one| one.mutant == mutant);
    listed.map_or(0, |one| one.count)
}

pub(super) fn counted(names: &[String]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name.as_str()).or_default() += 1;
    }
    counts
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) const LESS: &str = "crates/meter/src/judge.rs: replace < with > in judge";
    pub(in super::super) const MORE: &str = "crates/meter/src/words.rs: replace + with - in share";

    pub(in super::super) fn outcomes(caught: &[&str], survived: &[&str]) -> Outcomes {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Outcomes {
            caught: owned(caught),
            survived: owned(survived),
            unreached: Vec::new(),
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
    fn a_listed_mutant_that_is_noticed_is_to_be_taken_out() {
        let mut found = outcomes(&[LESS, MORE], &[]);
        assert_eq!(compare(&found, &listed(LESS, 1)).len(), 1);
        // One that was not tried is left alone.
        assert!(compare(&outcomes(&[MORE], &[]), &listed(LESS, 1)).is_empty());
        found.all.push(MORE.to_owned());
        assert!(compare(&found, &listed(LESS, 1)).is_empty());
    }
}
