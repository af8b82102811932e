//! The store of a channel: its proxies with connected clients, in a file. A change is durable before the client's
//! connect or disconnect returns.

use std::fmt;
use std::path::Path;

use deckwatch_cdr::{ByteOrder, EncodeError, Parse, Reader, Write, Writer};
use deckwatch_orb::SystemException;
use deckwatch_store::redb::{
    self, ReadableTable as _, TableDefinition, TableError, WriteTransaction,
};

use crate::channel_group::ProxyRecord;

/// Number of a proxy -> its [`ProxyRecord`], encapsulated.
const PROXIES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("proxies");
/// Name -> number.
const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");
const FORMAT: &str = "format";
const KIND: &str = "kind";
const EPOCH: &str = "epoch";
const PORT: &str = "port";

/// The layout of the store; another one is refused.
const FORMAT_NOW: u64 = 1;

/// The kinds of channels that a store may be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChannelKind {
    Cos = 1,
    RealTime = 2,
}

/// The store of one channel.
#[derive(Debug)]
pub struct ChannelStore(deckwatch_store::Store);

impl ChannelStore {
    /// Opens the store in a file, or creates it.
    ///
    /// # Errors
    /// When the file cannot be opened, is in use by another process, is damaged, or is no store of a channel.
    pub fn open(path: &Path) -> Result<Self, ChannelStoreError> {
        Self::over(deckwatch_store::Store::open(path, &fill)?)
    }

    /// A store that ends with the process.
    ///
    /// # Errors
    /// When memory cannot be allocated.
    pub fn in_memory() -> Result<Self, ChannelStoreError> {
        Self::over(deckwatch_store::Store::in_memory(&fill)?)
    }

    /// A store on another kind of storage.
    ///
    /// # Errors
    /// As [`ChannelStore::open`].
    pub fn on<B: redb::StorageBackend>(
        backend: impl Fn() -> B + Send + Sync + 'static,
    ) -> Result<Self, ChannelStoreError> {
        Self::over(deckwatch_store::Store::on(backend, &fill)?)
    }

    fn over(store: deckwatch_store::Store) -> Result<Self, ChannelStoreError> {
        let store = Self(store);
        match store.number(FORMAT)? {
            Some(FORMAT_NOW) => Ok(store),
            _ => Err(ChannelStoreError::Damaged("it is no store of a channel")),
        }
    }

    /// The port at which the channel listened.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn port(&self) -> Result<Option<u16>, ChannelStoreError> {
        let port = self.number(PORT)?;
        port.map(|port| {
            u16::try_from(port).map_err(|_| ChannelStoreError::Damaged("its port is no port"))
        })
        .transpose()
    }

    /// Keeps the port at which the channel listens: references to it name that port.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn keep_port(&self, port: u16) -> Result<(), ChannelStoreError> {
        self.change(|write| {
            write.open_table(NUMBERS)?.insert(PORT, u64::from(port))?;
            Ok(())
        })
    }

    /// Begins another life of the channel. Returns its number, which no earlier life has had.
    pub(crate) fn begin(&self, kind: ChannelKind) -> Result<u64, ChannelStoreError> {
        match self.number(KIND)? {
            Some(other) if other != kind as u64 => return Err(ChannelStoreError::OtherKind),
            _ => {}
        }
        let epoch = self.number(EPOCH)?.unwrap_or(0) + 1;
        self.change(|write| {
            let mut numbers = write.open_table(NUMBERS)?;
            numbers.insert(KIND, kind as u64)?;
            numbers.insert(EPOCH, epoch)?;
            Ok(())
        })?;
        Ok(epoch)
    }

    /// Replaces all records by those of a primary that is gone, whose place the channel takes in this life.
    pub(crate) fn take_over(
        &self,
        epoch: u64,
        records: &[(u64, Vec<u8>)],
    ) -> Result<(), ChannelStoreError> {
        self.change(|write| {
            let mut numbers = write.open_table(NUMBERS)?;
            numbers.insert(KIND, ChannelKind::RealTime as u64)?;
            numbers.insert(EPOCH, epoch)?;
            let mut proxies = write.open_table(PROXIES)?;
            proxies.retain(|_, _| false)?;
            for (number, record) in records {
                proxies.insert(number, record.as_slice())?;
            }
            Ok(())
        })
    }

    /// All proxies with connected clients.
    pub(crate) fn proxies(&self) -> Result<Vec<ProxyRecord>, ChannelStoreError> {
        self.0.look(|read| {
            let table = read.open_table(PROXIES)?;
            let mut proxies = Vec::new();
            for row in table.iter()? {
                let (number, octets) = row?;
                let record = encapsulated(octets.value())
                    .filter(|record: &ProxyRecord| record.number == number.value())
                    .ok_or(ChannelStoreError::Damaged("a proxy cannot be read"))?;
                proxies.push(record);
            }
            Ok(proxies)
        })
    }

    /// Writes encapsulated [`ProxyRecord`]s and removes proxies, in one transaction.
    pub(crate) fn put<'r>(
        &self,
        rows: impl Iterator<Item = (u64, Option<&'r [u8]>)>,
    ) -> Result<(), ChannelStoreError> {
        self.change(|write| {
            let mut proxies = write.open_table(PROXIES)?;
            for (number, record) in rows {
                match record {
                    Some(octets) => proxies.insert(number, octets)?,
                    None => proxies.remove(number)?,
                };
            }
            Ok(())
        })
    }

    /// Removes all proxies.
    pub(crate) fn clear(&self) -> Result<(), ChannelStoreError> {
        self.change(|write| {
            write.open_table(PROXIES)?.retain(|_, _| false)?;
            Ok(())
        })
    }

    fn number(&self, name: &str) -> Result<Option<u64>, ChannelStoreError> {
        self.0.look(|read| {
            let table = match read.open_table(NUMBERS) {
                Err(TableError::TableDoesNotExist(_) | TableError::TableTypeMismatch { .. }) => {
                    return Ok(None);
                }
                table => table?,
            };
            Ok(table.get(name)?.map(|number| number.value()))
        })
    }

    fn change(
        &self,
        change: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), ChannelStoreError> {
        Ok(self.0.change(change)?)
    }
}

/// Encapsulates a value.
pub(crate) fn encapsulate(value: &impl Write) -> Result<Vec<u8>, EncodeError> {
    let mut octets = Vec::new();
    let mut w = Writer::new(&mut octets);
    w.write_u8(ByteOrder::NATIVE.flag())?;
    value.write(&mut w)?;
    Ok(octets)
}

/// Reads an encapsulated value.
pub(crate) fn encapsulated<'a, T: Parse<'a>>(octets: &'a [u8]) -> Option<T> {
    let outer = Reader::new(octets, ByteOrder::NATIVE);
    let mut r = outer.into_encapsulation().ok()?;
    T::parse(&mut r).ok()
}

/// Creates the tables in a new database. One that has tables is left as it is.
fn fill(write: &WriteTransaction) -> Result<(), redb::Error> {
    if write.list_tables()?.next().is_none() {
        write.open_table(PROXIES)?;
        write.open_table(NUMBERS)?.insert(FORMAT, FORMAT_NOW)?;
    }
    Ok(())
}

/// Why a channel cannot use its store.
#[derive(Debug)]
#[non_exhaustive]
pub enum ChannelStoreError {
    /// The file has content that no channel has written.
    Damaged(&'static str),
    /// The store is that of a channel of another kind.
    OtherKind,
    /// An error of the database.
    Database(Box<redb::Error>),
    /// The ORB raised a system exception.
    Orb(SystemException),
}

impl fmt::Display for ChannelStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(how) => write!(f, "the store is damaged: {how}"),
            Self::OtherKind => {
                f.write_str("the store belongs to a channel of the other kind (--real-time)")
            }
            Self::Database(error) => error.fmt(f),
            Self::Orb(exception) => exception.fmt(f),
        }
    }
}

impl std::error::Error for ChannelStoreError {}

impl From<SystemException> for ChannelStoreError {
    fn from(exception: SystemException) -> Self {
        Self::Orb(exception)
    }
}

deckwatch_store::from_database!(ChannelStoreError);

#[cfg(test)]
mod tests;
