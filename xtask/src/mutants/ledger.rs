//! What became of each mutant, kept in a file: a run that was interrupted goes on.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use anyhow::Result;

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A test fails.
    Caught,
    /// No test fails.
    Survived,
    /// No quick test fails. The long ones were not run.
    Unnoticed,
    /// No test failed when the tests were others.
    SurvivedBefore,
    /// No test reaches its place.
    Unreached,
    /// It does not compile.
    Unviable,
    /// The tests did not end in time. On a busy machine, this need not be the mutant's doing: they run once more, with
    /// more time.
    Slow,
    /// The tests did not end in more time either.
    TimedOut,
    /// It is not in the build with all mutants, and was not tried alone yet.
    Apart,
}

impl Outcome {
    const ALL: [Self; 9] = [
        Self::Caught,
        Self::Survived,
        Self::Unnoticed,
        Self::SurvivedBefore,
        Self::Unreached,
        Self::Unviable,
        Self::Slow,
        Self::TimedOut,
        Self::Apart,
    ];

    /// Returns true if no test notices the mutant.
    pub(super) const fn is_survivor(self) -> bool {
        matches!(
            self,
            Self::Survived | Self::SurvivedBefore | Self::Unreached
        )
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Caught => "caught",
            Self::Survived => "survived",
            Self::Unnoticed => "unnoticed",
            Self::SurvivedBefore => "survived-before",
            Self::Unreached => "unreached",
            Self::Unviable => "unviable",
            Self::Slow => "slow",
            Self::TimedOut => "timed-out",
            Self::Apart => "apart",
        }
    }
}

/// The outcomes by the mutant's name, with its place. A line holds the outcome and the name; the last line of a mutant
/// counts.
pub(super) struct Ledger {
    outcomes: BTreeMap<String, Outcome>,
    file: File,
}

impl Ledger {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let outcomes = text.lines().filter_map(|line| {
            let (word, name) = line.split_once(' ')?;
            let outcome = Outcome::ALL.into_iter().find(|one| one.word() == word)?;
            Some((name.to_owned(), outcome))
        });
        Ok(Self {
            outcomes: outcomes.collect(),
            file: File::options().create(true).append(true).open(path)?,
        })
    }

    pub(super) fn note(&mut self, name: &str, outcome: Outcome) -> Result<()> {
        writeln!(self.file, "{} {name}", outcome.word())?;
        self.outcomes.insert(name.to_owned(), outcome);
        Ok(())
    }

    pub(super) fn of(&self, name: &str) -> Option<Outcome> {
        self.outcomes.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_mutant_counts_and_is_read_again() {
        let name = format!("deckwatch-ledger-{}.txt", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut ledger = Ledger::open(&path).unwrap();
        assert_eq!(ledger.of("a.rs:1:2: replace < with >"), None);
        for outcome in Outcome::ALL {
            ledger.note("a.rs:1:2: replace < with >", outcome).unwrap();
            assert_eq!(ledger.of("a.rs:1:2: replace < with >"), Some(outcome));
        }
        ledger.note("b.rs:3:4: delete !", Outcome::Caught).unwrap();
        let again = Ledger::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let last = Outcome::ALL.last().copied();
        assert_eq!(again.of("a.rs:1:2: replace < with >"), last);
        assert_eq!(again.of("b.rs:3:4: delete !"), Some(Outcome::Caught));
    }
}
