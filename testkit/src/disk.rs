//! A disk in memory.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};

use redb::StorageBackend;

/// A disk in memory that a test can fill. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct Disk(Arc<(Mutex<Vec<u8>>, AtomicBool)>);

impl Disk {
    /// Leaves no room for writes, or all of it again.
    pub fn fill(&self, is_full: bool) {
        self.0.1.store(is_full, SeqCst);
    }

    fn octets(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.0.lock().expect("no test panics with it")
    }

    fn room(&self) -> io::Result<MutexGuard<'_, Vec<u8>>> {
        if self.0.1.load(SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(self.octets())
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.octets().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        out.copy_from_slice(&self.octets()[offset as usize..][..out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.room()?.resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.room().map(drop)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.room()?[offset as usize..][..data.len()].copy_from_slice(data);
        Ok(())
    }
}
