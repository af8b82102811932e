//! The faults of a mission file. Each is printed with its place, the line itself, and what to write instead.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deckwatch_text::{escaped, is_shown};

use crate::limits::FAULTS_MAX;

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The range of octets in the text that is at fault.
    pub place: Range<usize>,
    /// The fault, as a sentence without its full stop.
    pub fact: String,
    /// What to write instead, as a sentence without its full stop.
    pub help: String,
}

/// All faults of one file, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    path: PathBuf,
    text: Arc<str>,
    faults: Vec<Fault>,
}

impl Faults {
    pub(crate) fn new(path: &Path, text: Arc<str>) -> Self {
        Self {
            path: path.to_owned(),
            text,
            faults: Vec::new(),
        }
    }

    /// Adds a fault, unless the list is full or already has it.
    pub(crate) fn report(
        &mut self,
        place: Range<usize>,
        fact: impl Into<String>,
        help: impl Into<String>,
    ) {
        let fault = Fault {
            place,
            fact: fact.into(),
            help: help.into(),
        };
        if self.faults.len() < FAULTS_MAX && !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    /// Returns the sorted faults as an error, if there are any.
    pub(crate) fn finish(&mut self) -> Result<(), Self> {
        if self.faults.is_empty() {
            return Ok(());
        }
        self.faults.sort_by_key(|fault| fault.place.start);
        Err(self.clone())
    }

    /// Returns the faults; at least one.
    #[must_use]
    pub fn list(&self) -> &[Fault] {
        &self.faults
    }

    fn write_one(&self, f: &mut fmt::Formatter<'_>, fault: &Fault) -> fmt::Result {
        let at = Place::of(&self.text, fault.place.start);
        let (line, column) = (at.line, at.column);
        writeln!(
            f,
            "{}:{line}:{column}: error: {}",
            self.path.display(),
            escaped(&fault.fact)
        )?;
        let skipped = (column - 1).saturating_sub(COLUMNS_BEFORE);
        let shown: String = at
            .text
            .chars()
            .skip(skipped)
            .take(COLUMNS_MAX)
            .map(|c| if is_shown(c) { c } else { ' ' })
            .collect();
        let carets = self.text[fault.place.start.min(self.text.len())..]
            .chars()
            .take(fault.place.len())
            .take_while(|&c| c != '\n' && c != '\r')
            .count()
            .clamp(1, COLUMNS_MAX);
        let gutter = line.to_string().len();
        let indent = column - 1 - skipped;
        writeln!(f, "{:gutter$} |", "")?;
        writeln!(f, "{line} | {}", shown.trim_end())?;
        writeln!(f, "{:gutter$} | {:indent$}{}", "", "", "^".repeat(carets))?;
        writeln!(f, "help: {}", fault.help)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            self.write_one(f, fault)?;
        }
        if self.faults.len() >= FAULTS_MAX {
            writeln!(f, "\nThere may be more; these are the first {FAULTS_MAX}.")?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// Line and column of a place, both counted from 1.
struct Place<'t> {
    line: usize,
    column: usize,
    /// The whole line, without its end.
    text: &'t str,
}

impl<'t> Place<'t> {
    fn of(text: &'t str, offset: usize) -> Self {
        let offset = text.floor_char_boundary(offset);
        let before = &text[..offset];
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let end = text[offset..]
            .find('\n')
            .map_or(text.len(), |at| offset + at);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[start..].chars().count() + 1,
            text: &text[start..end],
        }
    }
}

/// Maximum number of characters shown of a line.
const COLUMNS_MAX: usize = 120;
/// Maximum number of characters shown before the fault.
const COLUMNS_BEFORE: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, place: Range<usize>) -> String {
        let mut faults = Faults::new(Path::new("m.toml"), text.into());
        faults.report(place, "wrong", "right");
        faults.finish().expect_err("one fault").to_string()
    }

    #[test]
    fn a_fault_shows_file_line_column_and_the_line() {
        assert_eq!(
            said("a = 1\nbä = 2 # x\n", 12..13),
            "m.toml:2:6: error: wrong\n  |\n2 | bä = 2 # x\n  |      ^\nhelp: right\n"
        );
    }

    #[test]
    fn a_fault_at_the_end_of_the_file_or_beyond_is_still_said() {
        assert!(said("a = ", 4..4).starts_with("m.toml:1:5: error"));
        assert!(said("a\n", 70..90).starts_with("m.toml:2:1: error"));
        assert!(said("", 0..0).starts_with("m.toml:1:1: error"));
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let text = "x".repeat(100_000);
        assert!(
            said(&text, 50_000..90_000)
                .lines()
                .all(|line| line.len() < 300)
        );
    }

    #[test]
    fn faults_are_said_once_and_in_the_order_of_the_file() {
        let mut faults = Faults::new(Path::new("m.toml"), "abc".into());
        faults.report(2..3, "second", "");
        faults.report(0..1, "first", "");
        faults.report(2..3, "second", "");
        let faults = faults.finish().expect_err("two faults");
        let facts: Vec<_> = faults
            .list()
            .iter()
            .map(|fault| fault.fact.as_str())
            .collect();
        assert_eq!(facts, ["first", "second"]);
    }
}
