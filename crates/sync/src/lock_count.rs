//! Counts how often the locks of this crate are taken. Off by default; instruments enable it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static COUNTING: AtomicBool = AtomicBool::new(false);
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// Enables or disables counting, in the whole process, of every [`PiMutex`](crate::PiMutex) taken, contended or not. A
/// [`Claim`](crate::Claim) is not counted: no thread waits for it.
pub fn count_locks(count: bool) {
    COUNTING.store(count, Ordering::Relaxed);
}

/// Number of locks taken while counting was enabled.
#[must_use]
pub fn locks_taken() -> u64 {
    TAKEN.load(Ordering::Relaxed)
}

/// Counts one lock. Costs one load of a rarely written word while counting is off.
#[inline]
pub(crate) fn note_taken() {
    if COUNTING.load(Ordering::Relaxed) {
        TAKEN.fetch_add(1, Ordering::Relaxed);
    }
}
