//! Waiting for a change that another thread announces. Ringing takes no lock and enters the kernel only if a thread
//! waits.

use crate::pi_mutex::{sleep_while, wake};
use crate::primitive::{AtomicU32, AtomicUsize, Ordering, fence};

/// Wakes every thread that was waiting when it rang.
#[derive(Debug)]
pub struct Bell {
    /// Number of rings: the futex word that a waiting thread sleeps on.
    turn: AtomicU32,
    waiting: AtomicUsize,
}

impl Bell {
    /// A bell that has never rung.
    #[must_use]
    pub fn new() -> Self {
        Self {
            turn: AtomicU32::new(0),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Read this before checking the condition, then pass it to [`Bell::wait`].
    #[must_use]
    pub fn turn(&self) -> u32 {
        // SYNC: pairs with the release in `ring`.
        self.turn.load(Ordering::Acquire)
    }

    /// Waits until the bell rings after [`Bell::turn`] returned `turn`. May return early: check the condition again.
    pub fn wait(&self, turn: u32) {
        self.wait_until(turn, None);
    }

    /// As [`Bell::wait`], but no longer than `deadline_ns` (CLOCK_MONOTONIC). Returns false once the deadline has
    /// passed.
    pub fn wait_until(&self, turn: u32, deadline_ns: Option<u64>) -> bool {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // SYNC: pairs with the fence in `ring`: either `ring` counts this waiter, or the kernel sees the new turn.
        fence(Ordering::SeqCst);
        let in_time = sleep_while(&self.turn, turn, deadline_ns);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        in_time
    }

    /// Wakes all waiters. They see every write that the caller made before.
    pub fn ring(&self) {
        // SYNC: pairs with the acquire in `turn`.
        self.turn.fetch_add(1, Ordering::Release);
        // SYNC: pairs with the fence in `wait`.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) != 0 {
            wake(&self.turn, u32::MAX >> 1);
        }
    }
}

impl Default for Bell {
    fn default() -> Self {
        Self::new()
    }
}
