//! A file that is read as a database and never changed: what the database writes stays in memory.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};

/// Octets of a block that is copied as a whole at its first write.
const BLOCK: usize = 4_096;

/// Where the flags of a database stand in its file: behind the 9 octets that mark its kind. No checksum covers them.
const FLAGS_AT: u64 = 9;

/// The flags of a database whose last writer did not close it, or died between two writes of the header.
const NOT_CLOSED: u8 = 2 | 8;

/// A file, and the blocks that were written over it.
#[derive(Debug)]
pub(crate) struct Overlay {
    file: FileBackend,
    over: Mutex<Over>,
}

#[derive(Debug)]
struct Over {
    len: u64,
    /// How much of the file still counts: less than its length after the database was shortened.
    below: u64,
    blocks: BTreeMap<u64, Box<[u8; BLOCK]>>,
}

impl Overlay {
    pub(crate) fn new(file: File) -> Result<Self, redb::DatabaseError> {
        let file = FileBackend::new(file)?;
        let len = file.len()?;
        let over = Over {
            len,
            below: len,
            blocks: BTreeMap::new(),
        };
        Ok(Self {
            file,
            over: Mutex::new(over),
        })
    }

    /// Marks the database as one that was closed. One that was not is refused by a reader.
    pub(crate) fn mark_closed(&self) -> io::Result<()> {
        let mut flags = [0];
        self.read(FLAGS_AT, &mut flags)?;
        self.write(FLAGS_AT, &[flags[0] & !NOT_CLOSED])
    }

    fn over(&self) -> MutexGuard<'_, Over> {
        self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a block as the file has it, with zeros behind its end.
    fn below(&self, number: u64, below: u64) -> io::Result<Box<[u8; BLOCK]>> {
        let mut block = Box::new([0; BLOCK]);
        let start = number * BLOCK as u64;
        let count = below.saturating_sub(start).min(BLOCK as u64) as usize;
        if count > 0 {
            self.file.read(start, &mut block[..count])?;
        }
        Ok(block)
    }
}

/// Divides a range of octets at the borders of blocks: (block, place in it, place in the range, count).
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let at = offset + done as u64;
        let (number, place) = (at / BLOCK as u64, (at % BLOCK as u64) as usize);
        let count = (BLOCK - place).min(len - done);
        let piece = (number, place, done, count);
        done += count;
        Some(piece)
    })
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.over().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let over = self.over();
        let end = offset.checked_add(out.len() as u64);
        if end.is_none_or(|end| end > over.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (number, place, done, count) in pieces(offset, out.len()) {
            let to = &mut out[done..done + count];
            match over.blocks.get(&number) {
                Some(block) => to.copy_from_slice(&block[place..place + count]),
                None => {
                    let block = self.below(number, over.below)?;
                    to.copy_from_slice(&block[place..place + count]);
                }
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut over = self.over();
        if len < over.len {
            // What is cut off reads as zeros if the database grows again.
            over.below = over.below.min(len);
            over.blocks.split_off(&len.div_ceil(BLOCK as u64));
            if let Some(block) = over.blocks.get_mut(&(len / BLOCK as u64)) {
                block[(len % BLOCK as u64) as usize..].fill(0);
            }
        }
        over.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut over = self.over();
        let below = over.below;
        for (number, place, done, count) in pieces(offset, data.len()) {
            let block = match over.blocks.entry(number) {
                Entry::Occupied(block) => block.into_mut(),
                Entry::Vacant(none) => none.insert(self.below(number, below)?),
            };
            block[place..place + count].copy_from_slice(&data[done..done + count]);
        }
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}
