//! Changes of the store's rows, with the tallies that they change.

use deckwatch_store::redb::{ReadableTable as _, Table, WriteTransaction};

use super::holders::Change;
use super::rows::{BINDINGS, BindingRow, CONTEXTS, ContextRow, FORMAT, Key, WHOLE, Whole};
use super::{Damage, ROOT, StoreError};

/// The tables in a transaction that changes them. Each change of a row changes the tally of the context that the row
/// is in, and that of the store.
pub(super) struct Ledger<'t> {
    contexts: Table<'t, u64, &'static [u8]>,
    bindings: Table<'t, Key<'static>, &'static [u8]>,
    table: Table<'t, u64, &'static [u8]>,
    pub(super) whole: Whole,
    /// What the change gives to makers, and takes from them.
    pub(super) changes: Vec<Change>,
}

impl<'t> Ledger<'t> {
    /// The tables of a store that has them.
    pub(super) fn open(write: &'t WriteTransaction) -> Result<Self, StoreError> {
        let table = write.open_table(WHOLE)?;
        let whole = table
            .get(FORMAT)?
            .and_then(|row| Whole::parse(row.value()))
            .ok_or(Damage::Whole)?;
        Self::with(write, table, whole)
    }

    /// The tables of a store that has none yet. It gets its root.
    pub(super) fn create(write: &'t WriteTransaction) -> Result<Self, StoreError> {
        let whole = Whole {
            next_context: ROOT + 1,
            contexts: Default::default(),
            bindings: 0,
        };
        let mut ledger = Self::with(write, write.open_table(WHOLE)?, whole)?;
        let root = ContextRow {
            was_bound: true,
            made_s: super::now_s(),
            ..ContextRow::default()
        };
        ledger.set_context(ROOT, Some(&root))?;
        Ok(ledger)
    }

    fn with(
        write: &'t WriteTransaction,
        table: Table<'t, u64, &'static [u8]>,
        whole: Whole,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            contexts: write.open_table(CONTEXTS)?,
            bindings: write.open_table(BINDINGS)?,
            table,
            whole,
            changes: Vec::new(),
        })
    }

    /// Writes the tally of the store. It ends each change.
    pub(super) fn close(mut self) -> Result<Vec<Change>, StoreError> {
        self.table.insert(FORMAT, self.whole.write().as_slice())?;
        Ok(self.changes)
    }

    /// Returns a context, or `None` if there is none of that number.
    pub(super) fn context(&self, number: u64) -> Result<Option<ContextRow>, StoreError> {
        Ok(self.context_and_sum(number)?.map(|(context, _)| context))
    }

    fn context_and_sum(&self, number: u64) -> Result<Option<(ContextRow, u64)>, StoreError> {
        let Some(row) = self.contexts.get(number)? else {
            return Ok(None);
        };
        let parsed = ContextRow::parse(number, row.value());
        Ok(Some(parsed.ok_or(Damage::Context(number))?))
    }

    /// Writes or removes a context.
    pub(super) fn set_context(
        &mut self,
        number: u64,
        context: Option<&ContextRow>,
    ) -> Result<(), StoreError> {
        if let Some((before, sum)) = self.context_and_sum(number)? {
            self.whole.contexts.remove(sum);
            self.changes.push(Change::context(number, &before, false));
        }
        if let Some(context) = context {
            let (row, sum) = context.write(number);
            self.contexts.insert(number, row.as_slice())?;
            self.whole.contexts.add(sum);
            self.changes.push(Change::context(number, context, true));
        } else {
            self.contexts.remove(number)?;
        }
        Ok(())
    }

    /// Returns a binding, or `None` if the name is not bound.
    pub(super) fn binding(&self, key: Key<'_>) -> Result<Option<BindingRow>, StoreError> {
        Ok(self.binding_and_sum(key)?.map(|(binding, _)| binding))
    }

    fn binding_and_sum(&self, key: Key<'_>) -> Result<Option<(BindingRow, u64)>, StoreError> {
        let Some(row) = self.bindings.get(key)? else {
            return Ok(None);
        };
        let parsed = BindingRow::parse(key, row.value());
        Ok(Some(parsed.ok_or_else(|| Damage::binding(key))?))
    }

    /// Writes or removes a binding of a context that exists. Returns the one that was there.
    pub(super) fn set_binding(
        &mut self,
        key: Key<'_>,
        binding: Option<&BindingRow>,
    ) -> Result<Option<BindingRow>, StoreError> {
        let mut context = self.context(key.0)?.ok_or(StoreError::NoSuchContext)?;
        let before = self.binding_and_sum(key)?;
        if let Some((before, sum)) = &before {
            self.changes.push(Change::Binding {
                maker: before.maker.clone(),
                is_added: false,
            });
            context.bindings.remove(*sum);
            self.whole.bindings = self.whole.bindings.wrapping_sub(1);
        }
        if let Some(binding) = binding {
            let (row, sum) = binding.write(key);
            self.bindings.insert(key, row.as_slice())?;
            context.bindings.add(sum);
            self.changes.push(Change::Binding {
                maker: binding.maker.clone(),
                is_added: true,
            });
            self.whole.bindings = self.whole.bindings.wrapping_add(1);
        } else {
            self.bindings.remove(key)?;
        }
        self.set_context(key.0, Some(&context))?;
        self.mark_bound(binding)?;
        Ok(before.map(|(binding, _)| binding))
    }

    /// Keeps in a context that it has been bound to a name.
    fn mark_bound(&mut self, binding: Option<&BindingRow>) -> Result<(), StoreError> {
        let Some(number) = binding.and_then(|binding| binding.target.context()) else {
            return Ok(());
        };
        match self.context(number)? {
            Some(context) if !context.was_bound => {
                let bound = ContextRow {
                    was_bound: true,
                    ..context
                };
                self.set_context(number, Some(&bound))
            }
            _ => Ok(()),
        }
    }

    /// Returns at most `count_max` bindings of a context.
    pub(super) fn names(
        &self,
        context: u64,
        count_max: usize,
    ) -> Result<Vec<(String, String)>, StoreError> {
        let mut names = Vec::new();
        for row in self.bindings.range((context, "", "")..)?.take(count_max) {
            let (key, _) = row?;
            let (owner, id, kind) = key.value();
            if owner != context {
                break;
            }
            names.push((id.to_owned(), kind.to_owned()));
        }
        Ok(names)
    }
}
