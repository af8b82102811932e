//! Stores of the first format, which had no checksums: they are converted once, in one transaction.

use std::collections::BTreeSet;

use deckwatch_store::redb::{
    ReadableTable as _, TableDefinition, TableHandle as _, WriteTransaction,
};

use super::ledger::Ledger;
use super::rows::{BindingRow, ContextRow, Key, Target, UNKNOWN, WHOLE};
use super::{Damage, ROOT, StoreError};

type Contexts = TableDefinition<'static, u64, ()>;
type Bindings = TableDefinition<'static, Key<'static>, (u8, &'static [u8])>;

/// Number of a context -> nothing.
const CONTEXTS: Contexts = TableDefinition::new("contexts");
/// (context, id, kind) -> (kind of target, encoded target).
const BINDINGS: Bindings = TableDefinition::new("bindings");
/// Name -> number.
const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");

/// The tables of the first format under the names that they have while they are converted.
const OLD_CONTEXTS: Contexts = TableDefinition::new("contexts of format 1");
const OLD_BINDINGS: Bindings = TableDefinition::new("bindings of format 1");

/// Makes the tables of a new store, and converts a store of the first format.
pub(super) fn prepare(write: &WriteTransaction) -> Result<(), StoreError> {
    let tables: BTreeSet<String> = write
        .list_tables()?
        .map(|table| table.name().to_owned())
        .collect();
    if tables.is_empty() {
        return Ledger::create(write)?.close().map(drop);
    }
    if tables.contains(WHOLE.name()) {
        return Ok(());
    }
    let all = [CONTEXTS.name(), BINDINGS.name(), NUMBERS.name()];
    if all.iter().all(|name| tables.contains(*name)) {
        return convert(write);
    }
    Err(StoreError::OtherFormat("it has other tables"))
}

fn convert(write: &WriteTransaction) -> Result<(), StoreError> {
    let next = write
        .open_table(NUMBERS)?
        .get("next_context")?
        .map(|number| number.value());
    write.rename_table(CONTEXTS, OLD_CONTEXTS)?;
    write.rename_table(BINDINGS, OLD_BINDINGS)?;
    write.delete_table(NUMBERS)?;
    let mut ledger = Ledger::create(write)?;
    let made_s = super::now_s();
    for row in write.open_table(OLD_CONTEXTS)?.iter()? {
        let number = row?.0.value();
        if number != ROOT {
            let context = ContextRow {
                maker: UNKNOWN.to_owned(),
                made_s,
                ..ContextRow::default()
            };
            ledger.set_context(number, Some(&context))?;
            ledger.whole.next_context = ledger.whole.next_context.max(number + 1);
        }
    }
    for row in write.open_table(OLD_BINDINGS)?.iter()? {
        let (key, value) = row?;
        let (key, (kind, octets)) = (key.value(), value.value());
        let target = Target::parse(kind, octets).ok_or_else(|| Damage::binding(key))?;
        let binding = BindingRow {
            maker: UNKNOWN.to_owned(),
            target,
        };
        ledger.set_binding(key, Some(&binding))?;
    }
    ledger.whole.next_context = ledger.whole.next_context.max(next.unwrap_or(0));
    ledger.close()?;
    write.delete_table(OLD_CONTEXTS)?;
    write.delete_table(OLD_BINDINGS)?;
    Ok(())
}
