//! The embedded store of a naming service: contexts and their bindings. Each change is durable before the reply is
//! sent.
//!
//! A context is a number; the root is [`ROOT`]. The target of a binding is one of our contexts (by its number, so that
//! it survives a change of address) or a reference of any ORB (as its encoded IOR).

mod check;
mod damage;
mod earlier;
mod holders;
mod import;
mod ledger;
mod lines;
mod orphans;
pub mod rows;
mod tree;

use std::path::Path;
use std::time::SystemTime;

use deckwatch_store::redb::{self, ReadTransaction, ReadableTable as _};
use deckwatch_sync::PiMutex;

use crate::limits;
pub use check::Report;
pub use damage::{Damage, StoreError};
use holders::{Holders, Share};
pub use import::{ImportError, Imported, Into};
use ledger::Ledger;
pub use lines::{ExportError, Exported};
pub use orphans::Orphan;
pub use rows::Target;
use rows::{BINDINGS, BindingRow, CONTEXTS, ContextRow, FORMAT, Whole};
pub use tree::Tree;

/// The number of the root context.
pub const ROOT: u64 = 0;

/// One row of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The component's id.
    pub id: String,
    /// The component's kind.
    pub kind: String,
    /// Whether the component is bound to a context.
    pub is_context: bool,
}

/// Contexts and bindings on a disk, or in memory.
#[derive(Debug)]
pub struct Store {
    database: deckwatch_store::Store,
    room: Room,
    /// It is owned during each change, which waits for the disk: changes come one after another anyway.
    holders: PiMutex<Holders>,
}

/// How much a store may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Room {
    contexts_max: u64,
    bindings_max: u64,
    share: Share,
}

impl Room {
    const OF_SERVICE: Self = Self {
        contexts_max: limits::CONTEXTS_MAX,
        bindings_max: limits::BINDINGS_MAX,
        share: Share {
            contexts: limits::CONTEXTS_MAX,
            bindings: limits::BINDINGS_MAX,
        },
    };
}

/// A context that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Its number.
    pub number: u64,
    /// The context that gave way to it.
    pub expired: Option<u64>,
}

impl Store {
    /// Opens the store in a file, or creates it with an empty root. All of it is read and checked. A store of an earlier
    /// format is converted.
    ///
    /// # Errors
    /// When the file cannot be opened, is in use by another process, is damaged, or is no store.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::sound(deckwatch_store::Store::open(path, &|_| Ok(()))?)
    }

    /// Reads the store in a file, which stays as it is. Returns the store with what of it is damaged. A store with
    /// damaged pages can be read only.
    ///
    /// # Errors
    /// When the file cannot be opened, is in use by another process, is damaged so that it cannot be read, or is no
    /// store.
    pub fn examine(path: &Path) -> Result<(Self, Report), StoreError> {
        let whole = deckwatch_store::Store::examine(path, &|_| Ok(()));
        match whole.map_err(StoreError::from).and_then(Self::over) {
            Err(error) if error.is_damage() => Self::salvage(path).map_err(|_| error),
            examined => examined,
        }
    }

    /// Reads the rows of a store with damaged pages: each row has a checksum of its own.
    fn salvage(path: &Path) -> Result<(Self, Report), StoreError> {
        let (store, mut report) = Self::read(deckwatch_store::Store::salvage(path)?)?;
        report.add(Damage::Pages);
        Ok((store, report))
    }

    /// The rights that the file had, in the form of `chmod`, if others had some and they were taken.
    #[must_use]
    pub const fn rights_taken(&self) -> Option<u32> {
        self.database.rights_taken()
    }

    /// A store that ends with the process.
    ///
    /// # Errors
    /// When memory cannot be allocated.
    pub fn in_memory() -> Result<Self, StoreError> {
        Self::sound(deckwatch_store::Store::in_memory(&|_| Ok(()))?)
    }

    fn sound(database: deckwatch_store::Store) -> Result<Self, StoreError> {
        let (store, report) = Self::over(database)?;
        if report.damaged > 0 {
            return Err(StoreError::Unsound(Box::new(report)));
        }
        Ok(store)
    }

    fn over(database: deckwatch_store::Store) -> Result<(Self, Report), StoreError> {
        database.change(earlier::prepare)?;
        Self::read(database)
    }

    fn read(database: deckwatch_store::Store) -> Result<(Self, Report), StoreError> {
        let report = database.look(check::check)?;
        let store = Self {
            database,
            room: Room::OF_SERVICE,
            holders: PiMutex::new(report.holders.clone()),
        };
        Ok((store, report))
    }

    /// Lets each maker hold this many percent of the contexts and bindings.
    #[must_use]
    pub fn with_share(mut self, percent: u8) -> Self {
        let part = |total: u64| (total * u64::from(percent) / 100).max(1);
        self.room.share = Share {
            contexts: part(self.room.contexts_max),
            bindings: part(self.room.bindings_max),
        };
        self
    }

    fn look<T>(
        &self,
        read: impl FnOnce(&ReadTransaction) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.database.look(read)
    }

    fn change<T, E: From<StoreError> + From<redb::Error>>(
        &self,
        change: impl FnOnce(&mut Ledger<'_>, &Holders) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut holders = self.holders.lock("naming.holders");
        let (done, changes) = self.database.change(|write| {
            let mut ledger = Ledger::open(write)?;
            let done = change(&mut ledger, &holders)?;
            Ok::<_, E>((done, ledger.close()?))
        })?;
        changes.into_iter().for_each(|change| holders.apply(change));
        Ok(done)
    }

    /// The numbers of all contexts, root included.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn contexts(&self) -> Result<Vec<u64>, StoreError> {
        self.look(|read| {
            let table = read.open_table(CONTEXTS)?;
            table.iter()?.map(|row| Ok(row?.0.value())).collect()
        })
    }

    /// Creates an empty context without a binding to it. If there is no room, a context that was never bound gives way to
    /// it: an empty one, older than [`limits::UNBOUND_LIFETIME`], for whose number `is_idle` returns true.
    ///
    /// # Errors
    /// `ShareFull` if the maker holds its share; `Full` at [`limits::CONTEXTS_MAX`]; when the store cannot be written.
    pub fn create_context(
        &self,
        maker: &str,
        is_idle: &dyn Fn(u64) -> bool,
    ) -> Result<Made, StoreError> {
        self.change(|ledger, holders| {
            let share = holders.check_contexts(maker, self.room.share);
            let is_full = ledger.whole.contexts.count >= self.room.contexts_max;
            let mut expired = None;
            if share.is_err() || is_full {
                let oldest = holders.unbound(share.is_err().then_some(maker));
                expired = expire(ledger, oldest, is_idle)?;
            }
            if expired.is_none() {
                share?;
            }
            let number = add_context(ledger, self.room, maker)?;
            Ok(Made { number, expired })
        })
    }

    /// Creates an empty context and binds it, in one transaction.
    ///
    /// # Errors
    /// As [`Store::create_context`] and [`Store::bind`].
    pub fn bind_new_context(
        &self,
        context: u64,
        id: &str,
        kind: &str,
        maker: &str,
    ) -> Result<u64, StoreError> {
        self.change(|ledger, holders| {
            holders.check_contexts(maker, self.room.share)?;
            let number = add_context(ledger, self.room, maker)?;
            let binding = BindingRow {
                maker: maker.to_owned(),
                target: Target::Context(number),
            };
            let key = (context, id, kind);
            add_binding(ledger, self.room, holders, key, &binding, false)?;
            Ok(number)
        })
    }

    /// Removes an empty context.
    ///
    /// # Errors
    /// `NotEmpty`; `NoSuchContext`; when the store cannot be written.
    pub fn destroy_context(&self, context: u64) -> Result<(), StoreError> {
        self.change(|ledger, _| {
            let found = ledger.context(context)?.ok_or(StoreError::NoSuchContext)?;
            if found.bindings.count > 0 {
                return Err(StoreError::NotEmpty);
            }
            ledger.set_context(context, None)
        })
    }

    /// Returns the target of a component, or `None` if it is not bound.
    ///
    /// # Errors
    /// As [`Store::binding`].
    pub fn lookup(&self, context: u64, id: &str, kind: &str) -> Result<Option<Target>, StoreError> {
        let binding = self.binding(context, id, kind)?;
        Ok(binding.map(|binding| binding.target))
    }

    /// Returns the target of a component with its maker, or `None` if it is not bound.
    ///
    /// # Errors
    /// `Damaged` for a row that is not the one that was written; when the store cannot be read.
    pub fn binding(
        &self,
        context: u64,
        id: &str,
        kind: &str,
    ) -> Result<Option<BindingRow>, StoreError> {
        self.look(|read| {
            let table = read.open_table(BINDINGS)?;
            let key = (context, id, kind);
            let Some(row) = table.get(key)? else {
                return Ok(None);
            };
            let (binding, _) =
                BindingRow::parse(key, row.value()).ok_or_else(|| Damage::binding(key))?;
            Ok(Some(binding))
        })
    }

    /// Binds a component.
    ///
    /// # Errors
    /// `AlreadyBound` unless `replace`; `WrongKind` if `replace` would turn a context into an object or back;
    /// `NoSuchContext`; `Full` at [`limits::BINDINGS_MAX`]; when the store cannot be written.
    pub fn bind(
        &self,
        context: u64,
        id: &str,
        kind: &str,
        binding: &BindingRow,
        replace: bool,
    ) -> Result<(), StoreError> {
        self.change(|ledger, holders| {
            let key = (context, id, kind);
            add_binding(ledger, self.room, holders, key, binding, replace)
        })
    }

    /// Removes a binding. Returns false if there was none.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn unbind(&self, context: u64, id: &str, kind: &str) -> Result<bool, StoreError> {
        self.change(|ledger, _| {
            let key = (context, id, kind);
            if ledger.binding(key)?.is_none() {
                return Ok(false);
            }
            Ok(ledger.set_binding(key, None)?.is_some())
        })
    }

    /// Returns at most `count_max` bindings of a context, in order of id and kind, that follow `after`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn list(
        &self,
        context: u64,
        after: Option<(&str, &str)>,
        count_max: usize,
    ) -> Result<Vec<Row>, StoreError> {
        self.look(|read| {
            let table = read.open_table(BINDINGS)?;
            let (id, kind) = after.unwrap_or(("", ""));
            let mut rows = Vec::new();
            for row in table.range((context, id, kind)..)? {
                let (key, value) = row?;
                let key = key.value();
                let (owner, id, kind) = key;
                if owner != context || rows.len() == count_max {
                    break;
                }
                if after == Some((id, kind)) {
                    continue;
                }
                let (binding, _) =
                    BindingRow::parse(key, value.value()).ok_or_else(|| Damage::binding(key))?;
                rows.push(Row {
                    id: id.to_owned(),
                    kind: kind.to_owned(),
                    is_context: binding.target.is_context(),
                });
            }
            Ok(rows)
        })
    }
}

/// Removes the first context that has expired: never bound, empty, old, and idle. A clock that was set back makes
/// contexts of the future, whose age nobody knows: for those it suffices that they are idle, by a clock that is never set.
fn expire(
    ledger: &mut Ledger<'_>,
    oldest: Vec<u64>,
    is_idle: &dyn Fn(u64) -> bool,
) -> Result<Option<u64>, StoreError> {
    let now = now_s();
    for number in oldest {
        let Some(context) = ledger.context(number)? else {
            continue;
        };
        let age = now.checked_sub(context.made_s);
        let is_old = age.is_none_or(|age| age >= limits::UNBOUND_LIFETIME.as_secs());
        if is_old && !context.was_bound && context.bindings.count == 0 && is_idle(number) {
            ledger.set_context(number, None)?;
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// Adds a context. Returns its number.
fn add_context(ledger: &mut Ledger<'_>, room: Room, maker: &str) -> Result<u64, StoreError> {
    if ledger.whole.contexts.count >= room.contexts_max {
        return Err(StoreError::Full);
    }
    let number = ledger.whole.next_context;
    ledger.whole.next_context += 1;
    let context = ContextRow {
        maker: maker.to_owned(),
        made_s: now_s(),
        ..ContextRow::default()
    };
    ledger.set_context(number, Some(&context))?;
    Ok(number)
}

fn add_binding(
    ledger: &mut Ledger<'_>,
    room: Room,
    holders: &Holders,
    key: rows::Key<'_>,
    binding: &BindingRow,
    replace: bool,
) -> Result<(), StoreError> {
    if ledger.context(key.0)?.is_none() {
        return Err(StoreError::NoSuchContext);
    }
    match ledger.binding(key)? {
        Some(_) if !replace => return Err(StoreError::AlreadyBound),
        Some(before) if before.target.is_context() != binding.target.is_context() => {
            return Err(StoreError::WrongKind);
        }
        None if ledger.whole.bindings >= room.bindings_max => return Err(StoreError::Full),
        // The one that replaces a name of its own holds no more than before.
        Some(before) if before.maker == binding.maker => {}
        _ => holders.check_bindings(&binding.maker, room.share)?,
    }
    ledger.set_binding(key, Some(binding))?;
    Ok(())
}

/// Seconds since 1970.
fn now_s() -> u64 {
    SystemTime::UNIX_EPOCH
        .elapsed()
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;
