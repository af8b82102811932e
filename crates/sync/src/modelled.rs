//! Stand-in for [`crate::PiMutex`] and futexes under `loom`, whose threads the kernel does not know.

use std::fmt;
use std::ops::{Deref, DerefMut};

use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Condvar, Mutex, MutexGuard};

use crate::lock_count::note_taken;

/// Mutual exclusion.
pub struct PiMutex<T>(Mutex<T>);

impl<T> PiMutex<T> {
    /// A free lock around `value`.
    pub fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Waits for the lock and takes it.
    ///
    /// # Panics
    /// If a thread panicked while holding it.
    pub fn lock(&self, _purpose: &'static str) -> PiMutexGuard<'_, T> {
        note_taken();
        PiMutexGuard(self.0.lock().expect("no model panics with a lock"))
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self, _purpose: &'static str) -> Option<PiMutexGuard<'_, T>> {
        self.0.try_lock().ok().map(PiMutexGuard)
    }
}

impl<T> fmt::Debug for PiMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PiMutex")
    }
}

/// Access to the value; released on drop.
#[must_use]
pub struct PiMutexGuard<'a, T>(MutexGuard<'a, T>);

impl<T> Deref for PiMutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for PiMutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// All sleepers of a model sleep here. A thread that misses its wake-up sleeps for ever, which `loom` reports.
struct Kernel {
    lock: Mutex<()>,
    woken: Condvar,
}

loom::lazy_static! {
    static ref KERNEL: Kernel = Kernel { lock: Mutex::new(()), woken: Condvar::new() };
}

/// Sleeps once if `word` holds `seen`; deadlines never pass.
pub(crate) fn sleep_while(word: &AtomicU32, seen: u32, _deadline_ns: Option<u64>) -> bool {
    let held = KERNEL.lock.lock().expect("no model panics here");
    if word.load(Ordering::Relaxed) == seen {
        drop(KERNEL.woken.wait(held).expect("no model panics here"));
    }
    true
}

/// Wakes all sleepers: more than `_count`, as the kernel may.
pub(crate) fn wake(_word: &AtomicU32, _count: u32) {
    drop(KERNEL.lock.lock().expect("no model panics here"));
    KERNEL.woken.notify_all();
}
