//! Reads the lines of an export into a store, all of them or none.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::io::{self, BufRead, Read as _};

use deckwatch_giop::Ior;
use deckwatch_text::escaped;
use serde::de::DeserializeOwned;

use super::ledger::Ledger;
use super::lines::{BindingLine, ContextLine, Head, LINES_FORMAT};
use super::rows::{BindingRow, ContextRow, Target};
use super::{ROOT, Room, Store, StoreError, now_s};
use crate::{limits, name};

/// What becomes of the names that a store has already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Into {
    /// There must be none. Contexts keep their numbers, so that references to them stay valid.
    Empty,
    /// They are kept. A name that is bound to something else is an error. New contexts get new numbers.
    Merge,
}

/// How much was imported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// Contexts that were made.
    pub contexts: u64,
    /// Names that were bound.
    pub bindings: u64,
    /// Names that were bound to the same already.
    pub kept: u64,
    /// Names of contexts that do not exist any more. They are not merged.
    pub left_out: u64,
}

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A line is not one of an export, or does not fit to the others.
    #[error("line {line}: {}", escaped(.fault))]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        fault: String,
    },
    /// The store has names already.
    #[error("the store has names already; --merge adds those of the export to them")]
    HasNames,
    /// The lines cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// The store cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<deckwatch_store::redb::Error> for ImportError {
    fn from(error: deckwatch_store::redb::Error) -> Self {
        Self::Store(error.into())
    }
}

fn fault(line: usize, fault: impl core::convert::Into<String>) -> ImportError {
    let fault = fault.into();
    ImportError::Line { line, fault }
}

impl Store {
    /// Imports the lines of an export in one transaction.
    ///
    /// # Errors
    /// The first line that is wrong, with its number; when the store has names and they are not to be merged; when the
    /// store cannot be written. Then nothing is imported.
    pub fn import(&self, lines: impl BufRead, into: Into) -> Result<Imported, ImportError> {
        let dump = Dump::read(lines, self.room)?;
        self.change(|ledger, _| match into {
            Into::Empty => dump.restore(ledger),
            Into::Merge => dump.merge(ledger, self.room),
        })
    }
}

/// The lines of an export, each with its number.
struct Dump {
    next_context: u64,
    contexts: BTreeMap<u64, ContextRow>,
    /// By the context that they are in.
    bindings: BTreeMap<u64, Vec<(usize, String, String, BindingRow)>>,
}

impl Dump {
    fn read(mut lines: impl BufRead, room: Room) -> Result<Self, ImportError> {
        let mut octets = Vec::new();
        let mut number = 0;
        let mut reader = Reading::default();
        loop {
            octets.clear();
            number += 1;
            let count = (&mut lines)
                .take(limits::EXPORT_LINE_MAX)
                .read_until(b'\n', &mut octets)?;
            if count == 0 {
                break;
            }
            if count as u64 == limits::EXPORT_LINE_MAX {
                return Err(fault(number, "it is longer than any line of an export"));
            }
            let text = std::str::from_utf8(&octets);
            let text = text.map_err(|_| fault(number, "it is not UTF-8"))?;
            reader.add(number, text, room)?;
        }
        reader.end(number)
    }

    /// Fills an empty store. Contexts keep their numbers.
    fn restore(self, ledger: &mut Ledger<'_>) -> Result<Imported, ImportError> {
        if ledger.whole.contexts.count != 1 || ledger.whole.bindings != 0 {
            return Err(ImportError::HasNames);
        }
        let mut imported = Imported::default();
        for (number, context) in &self.contexts {
            ledger.set_context(*number, Some(context))?;
            imported.contexts += u64::from(*number != ROOT);
        }
        for (within, bindings) in &self.bindings {
            for (_, id, kind, binding) in bindings {
                ledger.set_binding((*within, id, kind), Some(binding))?;
                imported.bindings += 1;
            }
        }
        // Contexts that were destroyed here before keep their numbers to themselves, too.
        ledger.whole.next_context = ledger.whole.next_context.max(self.next_context);
        Ok(imported)
    }

    /// Adds what a store does not have. A context under the same name is the same context.
    fn merge(mut self, ledger: &mut Ledger<'_>, room: Room) -> Result<Imported, ImportError> {
        let mut imported = Imported::default();
        // Number in the export -> number in the store.
        let mut numbers = BTreeMap::from([(ROOT, ROOT)]);
        let mut next = VecDeque::from([ROOT]);
        let mut others = self.contexts.clone().into_keys();
        loop {
            let Some(within) = next.pop_front() else {
                // What the root does not lead to is there too.
                let Some(other) = others.find(|number| !numbers.contains_key(number)) else {
                    break;
                };
                self.make(ledger, room, other, &mut numbers, &mut imported)?;
                next.push_back(other);
                continue;
            };
            for (line, id, kind, mut binding) in self.bindings.remove(&within).unwrap_or_default() {
                let key = (numbers[&within], id.as_str(), kind.as_str());
                let before = ledger.binding(key)?;
                if let Target::Context(number) = &mut binding.target {
                    let old = *number;
                    if !self.contexts.contains_key(&old) {
                        imported.left_out += 1;
                        continue;
                    }
                    let is_met_first = !numbers.contains_key(&old);
                    if is_met_first {
                        match before.as_ref().and_then(|before| before.target.context()) {
                            Some(same) => drop(numbers.insert(old, same)),
                            None if before.is_none() => {
                                self.make(ledger, room, old, &mut numbers, &mut imported)?;
                            }
                            None => {}
                        }
                        next.push_back(old);
                    }
                    *number = numbers.get(&old).copied().unwrap_or(old);
                }
                match before {
                    Some(before) if before.target == binding.target => imported.kept += 1,
                    Some(_) => {
                        let name = name::to_text([(id.as_str(), kind.as_str())]);
                        let bound = format!("`{name}` is bound to something else in the store");
                        return Err(fault(line, bound));
                    }
                    None if ledger.whole.bindings >= room.bindings_max => {
                        return Err(StoreError::Full.into());
                    }
                    None => {
                        ledger.set_binding(key, Some(&binding))?;
                        imported.bindings += 1;
                    }
                }
            }
        }
        Ok(imported)
    }

    /// Makes a context of the export with a new number.
    fn make(
        &self,
        ledger: &mut Ledger<'_>,
        room: Room,
        old: u64,
        numbers: &mut BTreeMap<u64, u64>,
        imported: &mut Imported,
    ) -> Result<(), ImportError> {
        if ledger.whole.contexts.count >= room.contexts_max {
            return Err(StoreError::Full.into());
        }
        let number = ledger.whole.next_context;
        ledger.whole.next_context += 1;
        ledger.set_context(number, self.contexts.get(&old))?;
        numbers.insert(old, number);
        imported.contexts += 1;
        Ok(())
    }
}

/// The lines that were read so far.
#[derive(Default)]
struct Reading {
    head: Option<Head>,
    contexts: BTreeMap<u64, ContextRow>,
    bindings: BTreeMap<u64, Vec<(usize, String, String, BindingRow)>>,
    count: u64,
    names: HashSet<(u64, String, String)>,
}

impl Reading {
    fn add(&mut self, number: usize, text: &str, room: Room) -> Result<(), ImportError> {
        if text.trim().is_empty() {
            return Ok(());
        }
        let Some(head) = &self.head else {
            let head: Head = parsed(number, text)?;
            if head.deckwatch_names != LINES_FORMAT {
                let words = format!(
                    "format {} of an export; this program reads {LINES_FORMAT}",
                    head.deckwatch_names
                );
                return Err(fault(number, words));
            }
            if head.contexts > room.contexts_max || head.bindings > room.bindings_max {
                return Err(StoreError::Full.into());
            }
            self.head = Some(head);
            return Ok(());
        };
        let next_context = head.next_context;
        let object: serde_json::Map<String, serde_json::Value> = parsed(number, text)?;
        if object.contains_key("in") {
            self.binding(number, parsed(number, text)?)
        } else {
            self.context(number, next_context, parsed(number, text)?)
        }
    }

    fn context(&mut self, line: usize, next: u64, of: ContextLine) -> Result<(), ImportError> {
        let number = of.context;
        if number >= next {
            let words = format!("context {number} is not below the `next_context` of line 1");
            return Err(fault(line, words));
        }
        let row = ContextRow {
            maker: short(line, of.maker)?,
            // An export of damaged rows does not know it.
            made_s: if of.made_s == 0 { now_s() } else { of.made_s },
            was_bound: of.was_bound || number == ROOT,
            ..ContextRow::default()
        };
        if self.contexts.insert(number, row).is_some() {
            return Err(fault(line, format!("context {number} is there twice")));
        }
        Ok(())
    }

    fn binding(&mut self, line: usize, of: BindingLine) -> Result<(), ImportError> {
        if !self.contexts.contains_key(&of.within) {
            let words = format!("context {} has no line before this one", of.within);
            return Err(fault(line, words));
        }
        if of.id.len().max(of.kind.len()) > limits::COMPONENT_SIZE_MAX {
            return Err(fault(line, "its id or kind is too long"));
        }
        let target = match (of.context, of.foreign_context, of.object) {
            (Some(number), None, None) => Target::Context(number),
            (None, Some(ior), None) => Target::ForeignContext(reference(line, ior)?),
            (None, None, Some(ior)) => Target::Object(reference(line, ior)?),
            _ => {
                let words = "a binding has one of `context`, `foreign_context` and `object`";
                return Err(fault(line, words));
            }
        };
        if !self
            .names
            .insert((of.within, of.id.clone(), of.kind.clone()))
        {
            let name = name::to_text([(of.id.as_str(), of.kind.as_str())]);
            let words = format!("`{name}` in context {} is there twice", of.within);
            return Err(fault(line, words));
        }
        let maker = short(line, of.maker)?;
        let binding = BindingRow { maker, target };
        let bindings = self.bindings.entry(of.within).or_default();
        bindings.push((line, of.id, of.kind, binding));
        self.count += 1;
        Ok(())
    }

    /// Compares the lines with the counts of the first one.
    fn end(self, line: usize) -> Result<Dump, ImportError> {
        let head = self
            .head
            .ok_or_else(|| fault(1, "it is empty; an export begins with its counts"))?;
        let found = (self.contexts.len() as u64, self.count);
        if found != (head.contexts, head.bindings) {
            let words = format!(
                "the file ends with {} contexts and {} names; line 1 counts {} and {}",
                found.0, found.1, head.contexts, head.bindings
            );
            return Err(fault(line, words));
        }
        if !self.contexts.contains_key(&ROOT) {
            return Err(fault(line, "the root, context 0, is missing"));
        }
        Ok(Dump {
            next_context: head.next_context,
            contexts: self.contexts,
            bindings: self.bindings,
        })
    }
}

fn parsed<T: DeserializeOwned>(line: usize, text: &str) -> Result<T, ImportError> {
    serde_json::from_str(text).map_err(|error| {
        let words = error.to_string();
        // A text of one line: its place is the column.
        let words = words.replace(" at line 1 column ", " at column ");
        fault(line, words)
    })
}

fn reference(line: usize, ior: String) -> Result<String, ImportError> {
    if ior.len() > limits::REFERENCE_TEXT_MAX {
        return Err(fault(line, "its reference is too long"));
    }
    match ior.parse::<Ior>() {
        Ok(_) => Ok(ior),
        Err(error) => Err(fault(line, format!("its reference is no IOR: {error}"))),
    }
}

fn short(line: usize, maker: String) -> Result<String, ImportError> {
    if maker.len() > limits::MAKER_SIZE_MAX {
        return Err(fault(line, "its maker is too long"));
    }
    Ok(maker)
}
