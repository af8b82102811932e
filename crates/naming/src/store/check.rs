//! Reads the whole store, and finds what is damaged.

use std::collections::BTreeMap;
use std::fmt;

use deckwatch_store::redb::{ReadTransaction, ReadableTable as _};
use deckwatch_store::sum::Tally;

use super::holders::{Change, Holders};
use super::rows::{BINDINGS, BindingRow, CONTEXTS, ContextRow, FORMAT, WHOLE, Whole};
use super::{Damage, StoreError};
use crate::limits;

/// What a store holds, and what of it is damaged.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// The contexts that are whole.
    pub contexts: u64,
    /// The bindings that are whole.
    pub bindings: u64,
    /// How many damages there are.
    pub damaged: u64,
    /// The first [`limits::DAMAGES_MAX`] of them.
    pub damages: Vec<Damage>,
    /// What each maker holds.
    pub(super) holders: Holders,
}

impl Report {
    pub(super) fn add(&mut self, damage: Damage) {
        self.damaged += 1;
        if self.damages.len() < limits::DAMAGES_MAX {
            self.damages.push(damage);
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, damage) in self.damages.iter().enumerate() {
            let before = if index == 0 { "" } else { "\n" };
            write!(f, "{before}{damage}")?;
        }
        let more = self.damaged.saturating_sub(self.damages.len() as u64);
        if more > 0 {
            write!(f, "\nand {more} more")?;
        }
        Ok(())
    }
}

/// Reads all rows.
///
/// # Errors
/// When the store cannot be read. What is damaged is in the report.
pub(super) fn check(read: &ReadTransaction) -> Result<Report, StoreError> {
    let mut report = Report::default();
    let table = read.open_table(WHOLE)?;
    let whole = table.get(FORMAT)?;
    let whole = whole.and_then(|row| Whole::parse(row.value()));
    let contexts = contexts(read, &mut report, whole)?;
    let mut names = Names {
        contexts: &contexts,
        report: &mut report,
        left: contexts
            .iter()
            .filter_map(|(number, context)| {
                let tally = context.as_ref()?.bindings;
                Some((
                    *number,
                    Left {
                        tally,
                        is_known: true,
                    },
                ))
            })
            .collect(),
    };
    let bindings = read.open_table(BINDINGS)?;
    let mut found = 0_u64;
    for row in bindings.iter()? {
        let (key, value) = row?;
        found += 1;
        names.add(key.value(), value.value());
    }
    names.end();
    if let Some(whole) = whole.filter(|whole| whole.bindings != found) {
        report.add(Damage::Bindings {
            written: whole.bindings,
            found,
        });
    }
    Ok(report)
}

/// Returns the contexts by their numbers; `None` for one that is damaged.
fn contexts(
    read: &ReadTransaction,
    report: &mut Report,
    whole: Option<Whole>,
) -> Result<BTreeMap<u64, Option<ContextRow>>, StoreError> {
    let mut contexts = BTreeMap::new();
    let mut tally = Tally::default();
    let mut are_whole = true;
    for row in read.open_table(CONTEXTS)?.iter()? {
        let (number, row) = row?;
        let number = number.value();
        let parsed = ContextRow::parse(number, row.value());
        match &parsed {
            Some((context, sum)) => {
                tally.add(*sum);
                report.contexts += 1;
                report.holders.apply(Change::context(number, context, true));
            }
            None => {
                are_whole = false;
                report.add(Damage::Context(number));
            }
        }
        contexts.insert(number, parsed.map(|(context, _)| context));
    }
    let Some(whole) = whole else {
        report.add(Damage::Whole);
        return Ok(contexts);
    };
    let found = contexts.len() as u64;
    let next = contexts.last_key_value().map_or(0, |(last, _)| last + 1);
    if whole.contexts.count != found || (are_whole && whole.contexts != tally) {
        report.add(Damage::Contexts {
            written: whole.contexts.count,
            found,
        });
    } else if next > whole.next_context {
        report.add(Damage::Whole);
    }
    Ok(contexts)
}

/// Compares the bindings of each context with its tally.
struct Names<'r> {
    contexts: &'r BTreeMap<u64, Option<ContextRow>>,
    report: &'r mut Report,
    left: BTreeMap<u64, Left>,
}

/// What a context's tally has left after the bindings that were found.
struct Left {
    tally: Tally,
    /// False after a damaged binding: it counts, but what it was in the sum is not known.
    is_known: bool,
}

impl Names<'_> {
    fn add(&mut self, key: (u64, &str, &str), row: &[u8]) {
        let left = self.left.get_mut(&key.0);
        let parsed = BindingRow::parse(key, row);
        let parsed = parsed.filter(|_| self.contexts.contains_key(&key.0));
        let Some((binding, sum)) = parsed else {
            self.report.add(Damage::binding(key));
            if let Some(left) = left {
                left.tally.remove(0);
                left.is_known = false;
            }
            return;
        };
        self.report.bindings += 1;
        self.report.holders.apply(Change::Binding {
            maker: binding.maker,
            is_added: true,
        });
        if let Some(left) = left {
            left.tally.remove(sum);
        }
    }

    fn end(self) {
        for (context, left) in self.left {
            let is_right = left.tally.count == 0 && (left.tally.sum == 0 || !left.is_known);
            let written = self.contexts.get(&context).and_then(Option::as_ref);
            if let Some(written) = written.filter(|_| !is_right) {
                self.report.add(Damage::Names {
                    context,
                    written: written.bindings.count,
                    found: written.bindings.count.wrapping_sub(left.tally.count),
                });
            }
        }
    }
}
