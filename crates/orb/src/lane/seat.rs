//! Seats: the places of a lane's threads, as other threads see them.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The place of one thread of a lane, as other threads see it.
#[derive(Debug)]
pub(super) struct Seat {
    /// A thread has this seat.
    taken: AtomicBool,
    /// The lane has the buffers of the thread that was added here.
    is_supplied: AtomicBool,
    /// The token of the connection that it has adopted, or [`NOTHING`].
    adopted: AtomicU64,
    /// Odd while it serves a request of that connection.
    step: AtomicU32,
    /// The step at the last housekeeping.
    step_seen: AtomicU32,
}

/// No connection has this token: no table reaches its slot.
const NOTHING: u64 = u64::MAX;

impl Default for Seat {
    fn default() -> Self {
        Self {
            taken: AtomicBool::new(false),
            is_supplied: AtomicBool::new(false),
            adopted: AtomicU64::new(NOTHING),
            step: AtomicU32::new(0),
            step_seen: AtomicU32::new(0),
        }
    }
}

impl Seat {
    /// Takes the seat for a new thread. Returns false if a thread has it.
    pub(super) fn take(&self) -> bool {
        !self.taken.swap(true, Ordering::AcqRel)
    }

    /// Frees the seat.
    pub(super) fn free(&self) {
        self.taken.store(false, Ordering::Release);
    }

    /// Whether a thread has the seat.
    pub(super) fn is_taken(&self) -> bool {
        self.taken.load(Ordering::Acquire)
    }

    /// Whether the lane has yet to allocate the buffers of a thread that is added here. True once.
    pub(super) fn take_supply(&self) -> bool {
        !self.is_supplied.swap(true, Ordering::Relaxed)
    }

    /// Sets the token of the connection that its thread has adopted.
    pub(super) fn set_adopted(&self, token: Option<u64>) {
        self.adopted
            .store(token.unwrap_or(NOTHING), Ordering::Release);
    }

    /// Called by its own thread only, before and after it serves.
    pub(super) fn next_step(&self) {
        let step = self.step.load(Ordering::Relaxed).wrapping_add(1);
        self.step.store(step, Ordering::Release);
    }

    /// The connection whose request this thread has been serving since the last call.
    pub(super) fn take_stuck(&self) -> Option<u64> {
        let step = self.step.load(Ordering::Acquire);
        let seen = self.step_seen.swap(step, Ordering::AcqRel);
        let token = self.adopted.load(Ordering::Acquire);
        (token != NOTHING && step % 2 == 1 && step == seen).then_some(token)
    }
}
