//! Contexts that no name of the service leads to.

use deckwatch_store::redb::ReadableTable as _;

use super::rows::{BindingRow, CONTEXTS, ContextRow};
use super::tree::Tree;
use super::{Damage, Store, StoreError};
use crate::limits;

/// A context that no name leads to, from the root on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// Its number.
    pub number: u64,
    /// Who made it, how many names it holds, and whether it was ever bound.
    pub context: ContextRow,
}

impl Store {
    /// Returns the contexts that no name of this service leads to. The name of another service may lead to them.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn orphans(&self) -> Result<Vec<Orphan>, StoreError> {
        self.look(|read| {
            let tree = Tree::read(read)?;
            let mut orphans = Vec::new();
            for row in read.open_table(CONTEXTS)?.iter()? {
                let (number, row) = row?;
                let number = number.value();
                if !tree.reaches(number) {
                    let parsed = ContextRow::parse(number, row.value());
                    let (context, _) = parsed.ok_or(Damage::Context(number))?;
                    orphans.push(Orphan { number, context });
                }
            }
            Ok(orphans)
        })
    }

    /// Removes contexts with all that they hold, in one transaction.
    ///
    /// # Errors
    /// `NoSuchContext`; when the store cannot be written.
    pub fn sweep(&self, contexts: &[u64]) -> Result<(), StoreError> {
        self.change(|ledger, _| {
            for number in contexts {
                loop {
                    let names = ledger.names(*number, limits::LIST_MAX)?;
                    if names.is_empty() {
                        break;
                    }
                    for (id, kind) in names {
                        let none: Option<&BindingRow> = None;
                        ledger.set_binding((*number, &id, &kind), none)?;
                    }
                }
                if ledger.context(*number)?.is_none() {
                    return Err(StoreError::NoSuchContext);
                }
                ledger.set_context(*number, None)?;
            }
            Ok(())
        })
    }
}
