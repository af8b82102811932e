//! A memory-mapped file that survives when its process is killed: a hot loop writes to it without a system call.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::fs::FallocateFlags;
use rustix::mm::{MapFlags, ProtFlags};

/// A new file of fixed size, or a part of it, mapped for writing. Its disk space is allocated and its pages are
/// present, so that a write neither waits long for a page fault nor finds the disk full.
#[derive(Debug)]
pub struct MappedFile {
    /// Keeps the mapping alive; never read.
    _mapping: Arc<Mapping>,
    start: NonNull<u8>,
    size_bytes: usize,
}

// SAFETY: the octets between `start` and `start + size_bytes` belong to this value alone, and are not bound to a
// thread.
unsafe impl Send for MappedFile {}
// SAFETY: shared references only give shared slices.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// Creates the file at `path`, which must not exist, with `size_bytes` zeros; only its user can open it. Only the caller may write to the
    /// file: no other process may truncate it while it is mapped.
    ///
    /// # Errors
    /// `AlreadyExists`, `StorageFull`, or another error of the kernel; `InvalidInput` for a size of zero.
    pub fn create(path: &Path, size_bytes: usize) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size_bytes as u64) {
            Ok(()) => {}
            Err(rustix::io::Errno::OPNOTSUPP) => file.set_len(size_bytes as u64)?,
            Err(error) => return Err(error.into()),
        }
        let mapping = Mapping::of(&file, size_bytes)?;
        let mut mapped = Self {
            start: mapping.start,
            size_bytes,
            _mapping: Arc::new(mapping),
        };
        mapped.prefault();
        Ok(mapped)
    }

    /// Writes to each page, so that the first record in it causes no page fault.
    fn prefault(&mut self) {
        for page in self.octets_mut().chunks_mut(PAGE_SIZE) {
            page[0] = std::hint::black_box(0);
        }
    }

    /// Splits the file in two parts that different threads may write to: the first `size_bytes` octets, and the rest.
    ///
    /// # Panics
    /// When the file is shorter.
    #[must_use]
    pub fn split_at(self, size_bytes: usize) -> (Self, Self) {
        assert!(size_bytes <= self.size_bytes);
        let rest = Self {
            _mapping: Arc::clone(&self._mapping),
            // SAFETY: at most one past the end of the mapping, as just asserted.
            start: unsafe { self.start.add(size_bytes) },
            size_bytes: self.size_bytes - size_bytes,
        };
        (Self { size_bytes, ..self }, rest)
    }

    /// The octets.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        // SAFETY: these octets of the mapping, which lives as long as `self`, are written only through `&mut self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.size_bytes) }
    }

    /// The octets, for writing.
    #[must_use]
    pub fn octets_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; `&mut self` makes it the only slice.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.size_bytes) }
    }
}

/// A mapping, unmapped when its last part is dropped.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    size_bytes: usize,
}

// SAFETY: the mapping itself is an address and a size; its octets belong to the parts.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn of(file: &File, size_bytes: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory; the file is as long as
        // the mapping.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                size_bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
                file,
                0,
            )?
        };
        let start = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, size_bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `of` with this address and size, and no part of it is left.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.size_bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

/// The smallest page size of the supported processors. With larger pages, a page is touched more than once, which is
/// harmless.
const PAGE_SIZE: usize = 4096;

/// Returns the free octets of the file system that holds `path`.
///
/// # Errors
/// The operating system's error.
pub fn room_bytes(path: &Path) -> io::Result<u64> {
    let room = rustix::fs::statvfs(path)?;
    Ok(room.f_bavail.saturating_mul(room.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_in_the_file_before_the_mapping_ends() {
        let path = std::env::temp_dir().join(format!("deckwatch-mapped-{}", std::process::id()));
        let mut mapped =
            MappedFile::create(&path, 10_000).expect("the temporary folder can be written");
        mapped.octets_mut()[9_999] = 7;
        let read = std::fs::read(&path).expect("readable");
        assert_eq!(read.len(), 10_000);
        let mode = std::fs::metadata(&path).expect("there").permissions();
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777,
            0o600
        );
        assert_eq!(read[9_999], 7);
        assert!(read[..9_999].iter().all(|&octet| octet == 0));
        let again = MappedFile::create(&path, 1);
        assert_eq!(
            again.expect_err("exists").kind(),
            io::ErrorKind::AlreadyExists
        );
        let (mut head, mut tail) = mapped.split_at(4096);
        assert_eq!((head.octets().len(), tail.octets().len()), (4096, 5904));
        std::thread::scope(|scope| {
            scope.spawn(|| head.octets_mut()[4095] = 1);
            scope.spawn(|| tail.octets_mut()[0] = 2);
        });
        drop(head);
        tail.octets_mut()[1] = 3;
        let read = std::fs::read(&path).expect("readable");
        assert_eq!(read[4095..4098], [1, 2, 3]);
        std::fs::remove_file(&path).expect("removed");
    }
}
