//! Locks of the C library and futex calls on purpose: an instrument that counts them is checked with these.

use std::cell::UnsafeCell;
use std::sync::atomic::AtomicU32;

use rustix::thread::futex;

/// A mutex of the C library's threads.
#[derive(Debug)]
pub struct LibraryMutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: the C library's functions may be called with one mutex from all threads.
unsafe impl Send for LibraryMutex {}
// SAFETY: as above; the cell is given to these functions alone.
unsafe impl Sync for LibraryMutex {}

impl LibraryMutex {
    /// A mutex that is not held.
    #[must_use]
    pub const fn new() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }

    /// Takes the mutex and releases it.
    pub fn take(&self) {
        // SAFETY: the mutex is initialised, never moves while it is held, and is released by the thread that took it.
        unsafe {
            let taken = libc::pthread_mutex_lock(self.0.get());
            debug_assert_eq!(taken, 0);
            libc::pthread_mutex_unlock(self.0.get());
        }
    }
}

impl Default for LibraryMutex {
    fn default() -> Self {
        Self::new()
    }
}

/// Makes one futex call, which wakes nobody.
pub fn call_futex() {
    // It cannot fail, and the number of threads woken is 0.
    let _ = futex::wake(&AtomicU32::new(0), futex::Flags::PRIVATE, 1);
}
