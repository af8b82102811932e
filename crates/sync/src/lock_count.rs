//! How often the locks of this crate are taken, counted while somebody asks for it: an instrument's question, off by default.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static COUNTING: AtomicBool = AtomicBool::new(false);
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// Counts from now on, in the whole process, each time that a [`PiMutex`](crate::PiMutex) is taken, contended or not; or no longer.
/// A [`Claim`](crate::Claim) is none: nobody waits for it.
pub fn count_locks(count: bool) {
    COUNTING.store(count, Ordering::Relaxed);
}

/// How often one was taken while it was counted.
#[must_use]
pub fn locks_taken() -> u64 {
    TAKEN.load(Ordering::Relaxed)
}

/// A lock has been taken: a look at a word that hardly ever changes, where nobody counts.
#[inline]
pub(crate) fn note_taken() {
    if COUNTING.load(Ordering::Relaxed) {
        TAKEN.fetch_add(1, Ordering::Relaxed);
    }
}
