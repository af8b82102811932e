//! The rows of the store: their form, and their checksums.
//!
//! Numbers are little-endian. Each row ends with its checksum ([`sum`]). The row of the whole store has the count and
//! the sum of those of the proxies: a row that vanished, or that came back in an older form, is seen.

use std::collections::BTreeSet;

use deckwatch_store::redb::{
    ReadTransaction, ReadableTable, Table, TableDefinition, TableError, TableHandle as _,
    WriteTransaction,
};
use deckwatch_store::sum::{self, Tally};

use super::ChannelStoreError;
use crate::channel_group::ProxyRecord;
use crate::clients;

/// Number of a proxy -> its [`ProxyRecord`], encapsulated.
pub(super) const PROXIES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("proxies");
/// [`FORMAT`] -> [`Whole`].
pub(super) const WHOLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("whole");
/// Name -> number. The first format had all its numbers here; now it has that of the format alone.
pub(super) const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");
pub(super) const FORMAT_NAME: &str = "format";

/// The format of the store that this program writes.
pub(super) const FORMAT: u64 = 2;

/// The format without checksums.
const FORMAT_FIRST: u64 = 1;

/// What there is in the whole store. 0 stands for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) kind: u64,
    pub(super) epoch: u64,
    pub(super) port: u64,
    proxies: Tally,
}

impl Whole {
    fn write(&self) -> Vec<u8> {
        let Tally { count, sum } = self.proxies;
        let numbers = [self.kind, self.epoch, self.port, count, sum];
        let mut row: Vec<u8> = numbers.into_iter().flat_map(u64::to_le_bytes).collect();
        sum::append(WHOLE.name(), &[&FORMAT.to_be_bytes()], &mut row);
        row
    }

    fn parse(row: &[u8]) -> Option<Self> {
        let (value, _) = sum::split(WHOLE.name(), &[&FORMAT.to_be_bytes()], row)?;
        let (numbers, rest) = value.as_chunks::<8>();
        let [kind, epoch, port, count, sum] = numbers else {
            return None;
        };
        let number = |octets: &[u8; 8]| u64::from_le_bytes(*octets);
        let proxies = Tally {
            count: number(count),
            sum: number(sum),
        };
        rest.is_empty().then_some(Self {
            kind: number(kind),
            epoch: number(epoch),
            port: number(port),
            proxies,
        })
    }

    /// Reads the row.
    pub(super) fn read(
        table: &impl ReadableTable<u64, &'static [u8]>,
    ) -> Result<Self, ChannelStoreError> {
        let row = table.get(FORMAT)?;
        row.and_then(|row| Self::parse(row.value()))
            .ok_or(ChannelStoreError::Damaged(
                "the row of its counts is not the one that was written",
            ))
    }
}

/// Returns the encapsulated record of a proxy's row, and the checksum, or `None` if they do not match.
fn split(number: u64, row: &[u8]) -> Option<(&[u8], u64)> {
    sum::split(PROXIES.name(), &[&number.to_be_bytes()], row)
}

fn parse(number: u64, record: &[u8]) -> Option<ProxyRecord> {
    clients::record(record).filter(|record| record.number == number)
}

/// The rows of all proxies.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) records: Vec<ProxyRecord>,
    /// The numbers of the rows that are damaged.
    pub(super) damaged: Vec<u64>,
}

/// Reads all rows of proxies.
///
/// # Errors
/// When a row is missing, or is not the one that was written last: none of them can then be relied on.
pub(super) fn find(read: &ReadTransaction) -> Result<Found, ChannelStoreError> {
    let whole = Whole::read(&read.open_table(WHOLE)?)?;
    let (mut found, mut tally) = (Found::default(), Tally::default());
    for row in read.open_table(PROXIES)?.iter()? {
        let (number, row) = row?;
        let (number, row) = (number.value(), row.value());
        let whole_row = split(number, row);
        // The checksum of a damaged row may be the one that was written.
        let last = row.last_chunk().copied().map_or(0, u64::from_le_bytes);
        tally.add(whole_row.map_or(last, |(_, sum)| sum));
        match whole_row.and_then(|(record, _)| parse(number, record)) {
            Some(record) => found.records.push(record),
            None => found.damaged.push(number),
        }
    }
    let is_last = tally.sum == whole.proxies.sum || !found.damaged.is_empty();
    if tally.count == whole.proxies.count && is_last {
        return Ok(found);
    }
    Err(ChannelStoreError::Damaged(
        "records of proxies are missing, or are not those that were written last",
    ))
}

/// The rows in a transaction that changes them.
pub(super) struct Rows<'t> {
    proxies: Table<'t, u64, &'static [u8]>,
    table: Table<'t, u64, &'static [u8]>,
    pub(super) whole: Whole,
}

impl<'t> Rows<'t> {
    pub(super) fn open(write: &'t WriteTransaction) -> Result<Self, ChannelStoreError> {
        let table = write.open_table(WHOLE)?;
        let whole = Whole::read(&table)?;
        let proxies = write.open_table(PROXIES)?;
        Ok(Self {
            proxies,
            table,
            whole,
        })
    }

    fn create(write: &'t WriteTransaction, whole: Whole) -> Result<Self, ChannelStoreError> {
        let mut numbers = write.open_table(NUMBERS)?;
        numbers.insert(FORMAT_NAME, FORMAT)?;
        Ok(Self {
            proxies: write.open_table(PROXIES)?,
            table: write.open_table(WHOLE)?,
            whole,
        })
    }

    /// Writes or removes the encapsulated record of a proxy.
    pub(super) fn set(
        &mut self,
        number: u64,
        record: Option<&[u8]>,
    ) -> Result<(), ChannelStoreError> {
        let before = match record {
            Some(record) => {
                let mut row = record.to_vec();
                let sum = sum::append(PROXIES.name(), &[&number.to_be_bytes()], &mut row);
                self.whole.proxies.add(sum);
                self.proxies.insert(number, row.as_slice())?
            }
            None => self.proxies.remove(number)?,
        };
        if let Some(before) = before {
            let damaged = ChannelStoreError::Damaged("the record of a proxy was damaged meanwhile");
            let (_, sum) = split(number, before.value()).ok_or(damaged)?;
            self.whole.proxies.remove(sum);
        }
        Ok(())
    }

    /// Removes the rows of these proxies, whatever is in them. The counts are then those of the other rows.
    pub(super) fn drop_damaged(&mut self, numbers: &[u64]) -> Result<(), ChannelStoreError> {
        for number in numbers {
            self.proxies.remove(number)?;
        }
        let mut tally = Tally::default();
        for row in self.proxies.iter()? {
            let (number, row) = row?;
            let sum = split(number.value(), row.value()).map(|(_, sum)| sum);
            tally.add(sum.unwrap_or_default());
        }
        self.whole.proxies = tally;
        Ok(())
    }

    /// Removes the rows of all proxies.
    pub(super) fn clear(&mut self) -> Result<(), ChannelStoreError> {
        self.proxies.retain(|_, _| false)?;
        self.whole.proxies = Tally::default();
        Ok(())
    }

    /// Writes the counts. It ends each change.
    pub(super) fn close(mut self) -> Result<(), ChannelStoreError> {
        self.table.insert(FORMAT, self.whole.write().as_slice())?;
        Ok(())
    }
}

/// Makes the tables of a new store, and converts a store without checksums.
pub(super) fn prepare(write: &WriteTransaction) -> Result<(), ChannelStoreError> {
    let tables = write.list_tables()?;
    let tables: BTreeSet<String> = tables.map(|table| table.name().to_owned()).collect();
    if tables.is_empty() {
        return Rows::create(write, Whole::default())?.close();
    }
    let has = |name: &str| tables.contains(name);
    if !has(NUMBERS.name()) || !has(PROXIES.name()) {
        return Err(foreign());
    }
    match (number(write, FORMAT_NAME)?, has(WHOLE.name())) {
        (Some(FORMAT), true) => Ok(()),
        (Some(FORMAT_FIRST), false) => convert(write),
        _ => Err(foreign()),
    }
}

const fn foreign() -> ChannelStoreError {
    ChannelStoreError::Damaged("it is no store of a channel")
}

fn number(write: &WriteTransaction, name: &str) -> Result<Option<u64>, ChannelStoreError> {
    let table = match write.open_table(NUMBERS) {
        Err(TableError::TableTypeMismatch { .. }) => return Err(foreign()),
        table => table?,
    };
    let found = table.get(name)?;
    Ok(found.map(|number| number.value()))
}

fn convert(write: &WriteTransaction) -> Result<(), ChannelStoreError> {
    let named = |name| Ok::<_, ChannelStoreError>(number(write, name)?.unwrap_or(0));
    let whole = Whole {
        kind: named("kind")?,
        epoch: named("epoch")?,
        port: named("port")?,
        proxies: Tally::default(),
    };
    let mut records = Vec::new();
    for row in write.open_table(PROXIES)?.iter()? {
        let (number, record) = row?;
        let (number, record) = (number.value(), record.value().to_vec());
        let unreadable = ChannelStoreError::Damaged("a proxy cannot be read");
        parse(number, &record).ok_or(unreadable)?;
        records.push((number, record));
    }
    write.delete_table(PROXIES)?;
    write.delete_table(NUMBERS)?;
    let mut rows = Rows::create(write, whole)?;
    for (number, record) in &records {
        rows.set(*number, Some(record))?;
    }
    rows.close()
}
