//! The memory of one connection: created and sealed by the client, checked by the server before it is used.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

use super::ring::Ring;

/// Both rings, mapped. The first carries octets from the client to the server.
#[derive(Debug)]
pub(super) struct Memory {
    rings: NonNull<[Ring; 2]>,
}

// SAFETY: the mapping belongs to the process and not to a thread, and consists of atomics.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// Whole pages, so that the rest of the last page belongs to the same memory.
const SIZE: usize = size_of::<[Ring; 2]>().next_multiple_of(4096);

/// The seals that a memory must have: its size cannot change, and no seal can be removed.
fn seals() -> SealFlags {
    SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL
}

/// The magic number that `statfs` returns for the kernel's memory file system with pages of ordinary size. A page of a
/// huge-page file may fail to be allocated.
const TMPFS_MAGIC: i64 = 0x0102_1994;

impl Memory {
    /// Creates memory. Returns it with the descriptor by which another process maps it.
    ///
    /// # Errors
    /// The kernel's error, most often that descriptors or memory have run out.
    pub(super) fn create() -> io::Result<(Self, OwnedFd)> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = rustix::fs::memfd_create("deckwatch-rings", flags)?;
        rustix::fs::ftruncate(&fd, SIZE as u64)?;
        rustix::fs::fcntl_add_seals(&fd, seals())?;
        Ok((Self::map(&fd)?, fd))
    }

    /// Maps the memory of a client.
    ///
    /// # Errors
    /// `InvalidData` if it is not the memory that our client creates, else the kernel's error.
    pub(super) fn of_client(fd: &OwnedFd) -> io::Result<Self> {
        let is_sealed = rustix::fs::fcntl_get_seals(fd).is_ok_and(|found| found.contains(seals()));
        let size = rustix::fs::fstat(fd)?.st_size;
        let is_plain = rustix::fs::fstatfs(fd)?.f_type as i64 == TMPFS_MAGIC;
        if !is_sealed || !is_plain || usize::try_from(size) != Ok(SIZE) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Self::map(fd)
    }

    /// Maps the memory with its pages present, so that no message waits for a page fault.
    fn map(fd: impl AsFd) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory. The file is as long as
        // the mapping and can become no shorter.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                SIZE,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
                fd,
                0,
            )?
        };
        let rings = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { rings })
    }

    /// Creates the rings in memory that no other process has.
    #[cfg(test)]
    pub(super) fn private() -> io::Result<Self> {
        Self::create().map(|(memory, _)| memory)
    }

    pub(super) fn rings(&self) -> &[Ring; 2] {
        // SAFETY: the mapping is as long and, beginning at a page, as aligned as the rings; it lives as long as `self`.
        // They consist of atomics, for which any content is valid and any other writer allowed.
        unsafe { self.rings.as_ref() }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this address and size, and nothing borrows from it any more.
        let unmapped = unsafe { rustix::mm::munmap(self.rings.as_ptr().cast(), SIZE) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_could_be_taken_away_is_refused() {
        let (_memory, fd) = Memory::create().unwrap();
        Memory::of_client(&fd).unwrap();
        let refused = |fd: &OwnedFd| {
            let error = Memory::of_client(fd).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let make = |size: usize, seals: SealFlags| {
            let fd = rustix::fs::memfd_create("deckwatch-test", flags).unwrap();
            rustix::fs::ftruncate(&fd, size as u64).unwrap();
            rustix::fs::fcntl_add_seals(&fd, seals).unwrap();
            fd
        };
        refused(&make(SIZE, SealFlags::GROW | SealFlags::SEAL));
        refused(&make(SIZE - 4096, seals()));
        refused(&make(SIZE + 4096, seals()));
        refused(&std::fs::File::open("/dev/zero").unwrap().into());
    }
}
