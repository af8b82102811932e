//! A place to wait for a change that others make known. Who rings takes no lock, and asks the kernel only where somebody waits.

use crate::pi_mutex::{sleep_while, wake};
use crate::primitive::{AtomicU32, AtomicUsize, Ordering, fence};

/// Wakes all who wait since before it rang.
#[derive(Debug)]
pub struct Bell {
    /// How often it has rung; what a waiting thread sleeps on.
    turn: AtomicU32,
    waiting: AtomicUsize,
}

impl Bell {
    /// One that has never rung.
    #[must_use]
    pub fn new() -> Self {
        Self {
            turn: AtomicU32::new(0),
            waiting: AtomicUsize::new(0),
        }
    }

    /// To be asked before one looks whether there is anything to wait for, and given to [`Bell::wait`].
    #[must_use]
    pub fn turn(&self) -> u32 {
        // SYNC: pairs with the release in `ring`.
        self.turn.load(Ordering::Acquire)
    }

    /// Waits until it has rung since [`Bell::turn`] gave `turn`. May end earlier: look again.
    pub fn wait(&self, turn: u32) {
        self.wait_until(turn, None);
    }

    /// As [`Bell::wait`], until `deadline_ns` of CLOCK_MONOTONIC at most, where there is one. False: that has passed.
    pub fn wait_until(&self, turn: u32, deadline_ns: Option<u64>) -> bool {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // SYNC: pairs with the fence in `ring`: either that sees who waits, or the kernel sees the turn that has moved on.
        fence(Ordering::SeqCst);
        let in_time = sleep_while(&self.turn, turn, deadline_ns);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        in_time
    }

    /// Wakes all who wait. What the caller has done before is seen by them.
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
