//! The embedded store of a naming service: contexts and their bindings. Each change is durable before the reply is
//! sent.
//!
//! A context is a number; the root is [`ROOT`]. The target of a binding is one of our contexts (by its number, so that
//! it survives a change of address) or a reference of any ORB (as its encoded IOR).

use std::path::Path;

use deckwatch_store::redb::{
    self, ReadTransaction, ReadableTable, TableDefinition, WriteTransaction,
};

use crate::limits;

/// The number of the root context.
pub const ROOT: u64 = 0;

/// Number of a context -> nothing; the key's presence means that the context exists.
const CONTEXTS: TableDefinition<'_, u64, ()> = TableDefinition::new("contexts");
/// (context, id, kind) -> (kind of target, encoded target).
const BINDINGS: TableDefinition<'_, (u64, &str, &str), (u8, &[u8])> =
    TableDefinition::new("bindings");
/// Name -> number, for example the number of the next context.
const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");
const NEXT_CONTEXT: &str = "next_context";

/// The target of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// One of this service's contexts.
    Context(u64),
    /// A naming context of another service, as a stringified IOR.
    ForeignContext(String),
    /// Any object, as a stringified IOR.
    Object(String),
}

impl Target {
    const CONTEXT: u8 = 0;
    const FOREIGN_CONTEXT: u8 = 1;
    const OBJECT: u8 = 2;

    /// Returns true for the targets that `bind_context` binds.
    #[must_use]
    pub const fn is_context(&self) -> bool {
        !matches!(self, Self::Object(_))
    }

    fn to_row(&self) -> (u8, Vec<u8>) {
        match self {
            Self::Context(number) => (Self::CONTEXT, number.to_be_bytes().to_vec()),
            Self::ForeignContext(ior) => (Self::FOREIGN_CONTEXT, ior.as_bytes().to_vec()),
            Self::Object(ior) => (Self::OBJECT, ior.as_bytes().to_vec()),
        }
    }

    fn from_row((kind, octets): (u8, &[u8])) -> Result<Self, StoreError> {
        let text = || {
            String::from_utf8(octets.to_vec())
                .map_err(|_| StoreError::Damaged("a reference that is not text"))
        };
        match kind {
            Self::CONTEXT => octets
                .try_into()
                .map(u64::from_be_bytes)
                .map(Self::Context)
                .map_err(|_| StoreError::Damaged("a context's number")),
            Self::FOREIGN_CONTEXT => text().map(Self::ForeignContext),
            Self::OBJECT => text().map(Self::Object),
            _ => Err(StoreError::Damaged("a binding of unknown kind")),
        }
    }
}

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
}

/// How much a store may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Room {
    contexts_max: u64,
    bindings_max: u64,
}

impl Room {
    const OF_SERVICE: Self = Self {
        contexts_max: limits::CONTEXTS_MAX,
        bindings_max: limits::BINDINGS_MAX,
    };
}

impl Store {
    /// Opens the store in a file, or creates it with an empty root.
    ///
    /// # Errors
    /// When the file cannot be opened, is in use by another process, or is no store.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self::over(deckwatch_store::Store::open(path, &fill)?))
    }

    /// A store that ends with the process.
    ///
    /// # Errors
    /// When memory cannot be allocated.
    pub fn in_memory() -> Result<Self, StoreError> {
        Ok(Self::over(deckwatch_store::Store::in_memory(&fill)?))
    }

    fn over(database: deckwatch_store::Store) -> Self {
        Self {
            database,
            room: Room::OF_SERVICE,
        }
    }

    fn read(&self) -> Result<ReadTransaction, StoreError> {
        Ok(self.database.read()?)
    }

    fn write(&self) -> Result<WriteTransaction, StoreError> {
        Ok(self.database.write()?)
    }

    /// The numbers of all contexts, root included.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn contexts(&self) -> Result<Vec<u64>, StoreError> {
        let read = self.read()?;
        let table = read.open_table(CONTEXTS)?;
        table.iter()?.map(|row| Ok(row?.0.value())).collect()
    }

    /// Creates an empty context without a binding to it.
    ///
    /// # Errors
    /// `Full` at [`limits::CONTEXTS_MAX`]; when the store cannot be written.
    pub fn create_context(&self) -> Result<u64, StoreError> {
        let write = self.write()?;
        let number = add_context(&write, self.room)?;
        write.commit()?;
        Ok(number)
    }

    /// Creates an empty context and binds it, in one transaction.
    ///
    /// # Errors
    /// As [`Store::create_context`] and [`Store::bind`].
    pub fn bind_new_context(&self, context: u64, id: &str, kind: &str) -> Result<u64, StoreError> {
        let write = self.write()?;
        let number = add_context(&write, self.room)?;
        let target = Target::Context(number);
        add_binding(&write, self.room, (context, id, kind), &target, false)?;
        write.commit()?;
        Ok(number)
    }

    /// Removes an empty context.
    ///
    /// # Errors
    /// `NotEmpty`; `NoSuchContext`; when the store cannot be written.
    pub fn destroy_context(&self, context: u64) -> Result<(), StoreError> {
        let write = self.write()?;
        {
            let bindings = write.open_table(BINDINGS)?;
            if bindings
                .range((context, "", "")..)?
                .next()
                .transpose()?
                .is_some_and(|(key, _)| key.value().0 == context)
            {
                return Err(StoreError::NotEmpty);
            }
            if write.open_table(CONTEXTS)?.remove(context)?.is_none() {
                return Err(StoreError::NoSuchContext);
            }
        }
        write.commit()?;
        Ok(())
    }

    /// Returns the target of a component, or `None` if it is not bound.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn lookup(&self, context: u64, id: &str, kind: &str) -> Result<Option<Target>, StoreError> {
        let read = self.read()?;
        let table = read.open_table(BINDINGS)?;
        table
            .get((context, id, kind))?
            .map(|row| Target::from_row(row.value()))
            .transpose()
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
        target: &Target,
        replace: bool,
    ) -> Result<(), StoreError> {
        let write = self.write()?;
        add_binding(&write, self.room, (context, id, kind), target, replace)?;
        write.commit()?;
        Ok(())
    }

    /// Removes a binding. Returns false if there was none.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn unbind(&self, context: u64, id: &str, kind: &str) -> Result<bool, StoreError> {
        let write = self.write()?;
        let found = write
            .open_table(BINDINGS)?
            .remove((context, id, kind))?
            .is_some();
        write.commit()?;
        Ok(found)
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
        let read = self.read()?;
        let table = read.open_table(BINDINGS)?;
        let (id, kind) = after.unwrap_or(("", ""));
        let mut rows = Vec::new();
        for row in table.range((context, id, kind)..)? {
            let (key, value) = row?;
            let (owner, id, kind) = key.value();
            if owner != context || rows.len() == count_max {
                break;
            }
            if after != Some((id, kind)) {
                rows.push(Row {
                    id: id.to_owned(),
                    kind: kind.to_owned(),
                    is_context: value.value().0 != Target::OBJECT,
                });
            }
        }
        Ok(rows)
    }
}

/// Creates the tables and the root unless the database has them.
fn fill(write: &WriteTransaction) -> Result<(), redb::Error> {
    write.open_table(CONTEXTS)?.insert(ROOT, ())?;
    write.open_table(BINDINGS)?;
    let mut numbers = write.open_table(NUMBERS)?;
    if numbers.get(NEXT_CONTEXT)?.is_none() {
        numbers.insert(NEXT_CONTEXT, ROOT + 1)?;
    }
    Ok(())
}

/// Adds a context. Returns its number.
fn add_context(write: &WriteTransaction, room: Room) -> Result<u64, StoreError> {
    let mut contexts = write.open_table(CONTEXTS)?;
    let mut numbers = write.open_table(NUMBERS)?;
    let number = numbers
        .get(NEXT_CONTEXT)?
        .map_or(ROOT + 1, |value| value.value());
    if redb::ReadableTableMetadata::len(&contexts)? >= room.contexts_max {
        return Err(StoreError::Full);
    }
    numbers.insert(NEXT_CONTEXT, number + 1)?;
    contexts.insert(number, ())?;
    Ok(number)
}

fn add_binding(
    write: &WriteTransaction,
    room: Room,
    key: (u64, &str, &str),
    target: &Target,
    replace: bool,
) -> Result<(), StoreError> {
    if write.open_table(CONTEXTS)?.get(key.0)?.is_none() {
        return Err(StoreError::NoSuchContext);
    }
    let mut bindings = write.open_table(BINDINGS)?;
    let before = bindings
        .get(key)?
        .map(|row| Target::from_row(row.value()))
        .transpose()?;
    match before {
        Some(_) if !replace => return Err(StoreError::AlreadyBound),
        Some(before) if before.is_context() != target.is_context() => {
            return Err(StoreError::WrongKind);
        }
        None if redb::ReadableTableMetadata::len(&bindings)? >= room.bindings_max => {
            return Err(StoreError::Full);
        }
        _ => {}
    }
    let (tag, octets) = target.to_row();
    bindings.insert(key, (tag, octets.as_slice()))?;
    Ok(())
}

/// The errors of the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The component is bound already.
    #[error("the name is bound already")]
    AlreadyBound,
    /// The bind would replace a context by an object, or an object by a context.
    #[error("the name is bound to something of the other kind")]
    WrongKind,
    /// The context still has bindings.
    #[error("the context is not empty")]
    NotEmpty,
    /// The context does not exist any more.
    #[error("the context does not exist")]
    NoSuchContext,
    /// A limit of the service is reached.
    #[error("the naming service holds as many contexts or bindings as it may")]
    Full,
    /// The file has content that this program did not write.
    #[error("the store is damaged: {0}")]
    Damaged(&'static str),
    /// An error of the database.
    #[error(transparent)]
    Database(#[from] Box<redb::Error>),
}

deckwatch_store::from_database!(StoreError);

#[cfg(test)]
mod tests;
