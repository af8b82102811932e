//! The store of a channel: its proxies with connected clients, in a file. A change is durable before the client's
//! connect or disconnect returns.

use std::fmt;
use std::path::Path;

use deckwatch_cdr::{ByteOrder, EncodeError, Parse, Reader, Write, Writer};
use deckwatch_orb::SystemException;
use deckwatch_store::redb::{self, WriteTransaction};

use crate::channel_group::ProxyRecord;

use rows::{Rows, WHOLE, Whole};

mod rows;

/// The kinds of channels that a store may be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChannelKind {
    Cos = 1,
    RealTime = 2,
}

/// The store of one channel.
#[derive(Debug)]
pub struct ChannelStore {
    database: deckwatch_store::Store,
    damaged: Vec<u64>,
}

impl ChannelStore {
    /// Opens the store in a file, or creates it. All of it is read and checked. A store without checksums, as earlier
    /// versions have made it, is converted.
    ///
    /// # Errors
    /// When the file cannot be opened, is in use by another process, is no store of a channel, or is damaged so that
    /// its other records cannot be relied on, either.
    pub fn open(path: &Path) -> Result<Self, ChannelStoreError> {
        Self::over(deckwatch_store::Store::open(path, &|_| Ok(()))?)
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
    pub fn in_memory() -> Result<Self, ChannelStoreError> {
        Self::over(deckwatch_store::Store::in_memory(&|_| Ok(()))?)
    }

    /// A store on another kind of storage.
    ///
    /// # Errors
    /// As [`ChannelStore::open`].
    pub fn on<B: redb::StorageBackend>(
        backend: impl Fn() -> B + Send + Sync + 'static,
    ) -> Result<Self, ChannelStoreError> {
        Self::over(deckwatch_store::Store::on(backend, &|_| Ok(()))?)
    }

    fn over(database: deckwatch_store::Store) -> Result<Self, ChannelStoreError> {
        database.change(rows::prepare)?;
        let found = database.look(rows::find)?;
        Ok(Self {
            database,
            damaged: found.damaged,
        })
    }

    /// The numbers of the proxies whose records are damaged. The channel starts without them: they are no objects any
    /// more, and their clients have to connect again.
    #[must_use]
    pub fn damaged_proxies(&self) -> &[u64] {
        &self.damaged
    }

    /// The port at which the channel listened.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn port(&self) -> Result<Option<u16>, ChannelStoreError> {
        let port = self.whole()?.port;
        let port = u16::try_from(port);
        let port = port.map_err(|_| ChannelStoreError::Damaged("its port is no port"))?;
        Ok(Some(port).filter(|port| *port != 0))
    }

    /// Keeps the port at which the channel listens: references to it name that port.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn keep_port(&self, port: u16) -> Result<(), ChannelStoreError> {
        self.change(|rows| {
            rows.whole.port = u64::from(port);
            Ok(())
        })
    }

    /// Begins another life of the channel. Returns its number, which no earlier life has had.
    pub(crate) fn begin(&self, kind: ChannelKind) -> Result<u64, ChannelStoreError> {
        let before = self.whole()?;
        if before.kind != 0 && before.kind != kind as u64 {
            return Err(ChannelStoreError::OtherKind);
        }
        let epoch = before.epoch + 1;
        self.change(|rows| {
            rows.whole.kind = kind as u64;
            rows.whole.epoch = epoch;
            if self.damaged.is_empty() {
                return Ok(());
            }
            rows.drop_damaged(&self.damaged)
        })?;
        Ok(epoch)
    }

    /// Replaces all records by those of a primary that is gone, whose place the channel takes in this life.
    pub(crate) fn take_over(
        &self,
        epoch: u64,
        records: &[(u64, Vec<u8>)],
    ) -> Result<(), ChannelStoreError> {
        self.change(|rows| {
            rows.whole.kind = ChannelKind::RealTime as u64;
            rows.whole.epoch = epoch;
            rows.clear()?;
            let mut records = records.iter();
            records.try_for_each(|(number, record)| rows.set(*number, Some(record)))
        })
    }

    /// All proxies with connected clients, but those whose records are damaged.
    pub(crate) fn proxies(&self) -> Result<Vec<ProxyRecord>, ChannelStoreError> {
        Ok(self.database.look(rows::find)?.records)
    }

    /// Writes encapsulated [`ProxyRecord`]s and removes proxies, in one transaction.
    pub(crate) fn put<'r>(
        &self,
        mut changes: impl Iterator<Item = (u64, Option<&'r [u8]>)>,
    ) -> Result<(), ChannelStoreError> {
        self.change(|rows| changes.try_for_each(|(number, record)| rows.set(number, record)))
    }

    /// Removes all proxies.
    pub(crate) fn clear(&self) -> Result<(), ChannelStoreError> {
        self.change(|rows| {
            rows.clear()?;
            Ok(())
        })
    }

    fn whole(&self) -> Result<Whole, ChannelStoreError> {
        self.database
            .look(|read| Whole::read(&read.open_table(WHOLE)?))
    }

    fn change(
        &self,
        change: impl FnOnce(&mut Rows<'_>) -> Result<(), ChannelStoreError>,
    ) -> Result<(), ChannelStoreError> {
        self.database.change(|write: &WriteTransaction| {
            let mut rows = Rows::open(write)?;
            change(&mut rows)?;
            rows.close()
        })
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
