//! Adoption: a thread stays with the connection that keeps it busy. It blocks in that connection's read instead of the
//! poller, which saves a system call and a wake-up per request.
//!
//! It gives the connection back as soon as nothing arrives for a moment, or no other thread is left in the poller. A
//! request that takes long must not hide the next one: housekeeping looks at the seats, and has the poller watch such a
//! connection again.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::connection::{Left, Read, key_of};
use crate::counters::Counter;
use crate::lane::Lane;
use crate::lane::service::Service;
use crate::limits::{ADOPTION_WAIT, ADOPTION_WAIT_SPARE};

/// The place of one thread of a lane, as other threads see it.
#[derive(Debug)]
pub(super) struct Seat {
    /// A thread has this seat.
    pub(super) taken: AtomicBool,
    /// The lane has the buffers of the thread that was added here.
    pub(super) is_supplied: AtomicBool,
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
    /// Called by its own thread only.
    fn next_step(&self) {
        let step = self.step.load(Ordering::Relaxed).wrapping_add(1);
        self.step.store(step, Ordering::Release);
    }

    /// The connection whose request this thread has been serving since the last call.
    fn take_stuck(&self) -> Option<u64> {
        let step = self.step.load(Ordering::Acquire);
        let seen = self.step_seen.swap(step, Ordering::AcqRel);
        let token = self.adopted.load(Ordering::Acquire);
        (token != NOTHING && step % 2 == 1 && step == seen).then_some(token)
    }
}

impl<'l> Service<'l> {
    /// Serves the connection until it pauses or the thread is needed elsewhere.
    pub(super) fn adopt(self, seat: usize) {
        let (lane, connection) = (self.lane, self.connection);
        let seat = lane.threads.seat(seat);
        connection.end_streak();
        if !self.may_stay_away() || !connection.adopt(&lane.io) {
            return;
        }
        lane.io.count(Counter::Adoptions);
        seat.adopted.store(connection.token(), Ordering::Release);
        if lane.threads.begin_adoption() {
            // A thread that waits without limit does not know yet that housekeeping is needed.
            lane.io.poller.wake();
        }
        let left = self.stay(seat);
        connection.note_adoption_left(&lane.io);
        seat.adopted.store(NOTHING, Ordering::Release);
        lane.threads.end_adoption();
        if left == Left::Ended {
            return self.end();
        }
        connection.park_adoption(&lane.io);
    }

    /// Whether this thread may leave the poller to others.
    fn may_stay_away(self) -> bool {
        self.lane.threads.is_one_waiting() && !self.lane.is_closing()
    }

    fn stay(self, seat: &Seat) -> Left {
        let (lane, connection) = (self.lane, self.connection);
        let io = &lane.io;
        let Some(mut reading) = connection.claim_adopted() else {
            return Left::ToAnother;
        };
        // A thread that has been needed once is not spared again: to change the wait is a system call.
        let mut is_spared = true;
        while self.may_stay_away() && connection.is_adopted() {
            // No thread can call one back that waits for longer, and a keeper needs it.
            is_spared = is_spared && lane.waiting.room.is_none() && lane.threads.has_spare();
            let wait = if is_spared {
                ADOPTION_WAIT_SPARE
            } else {
                ADOPTION_WAIT
            };
            let may_stay = || self.may_stay_away();
            let read =
                connection.poll_read_within(io, &mut reading, wait, lane.shape.spin, may_stay);
            let Read::Octets { is_full } = read else {
                return connection.end_reading(io, reading, read);
            };
            seat.next_step();
            let served = self.serve_messages(reading, is_full);
            seat.next_step();
            // The buffer stays for the next request.
            reading = match served {
                Ok(reading) => reading,
                Err(left) => return left,
            };
            if reading.is_within_message() {
                connection.pause(io, &mut reading);
            }
        }
        // The poller reports what arrives meanwhile when it watches again.
        connection.pause(io, &mut reading);
        Left::Open
    }
}

impl Lane {
    /// Has the poller watch connections again whose thread has been serving one request since the last call.
    pub(super) fn revoke_stuck_adoptions(&self) {
        if !self.threads.has_adopted() {
            return;
        }
        let stuck = self.threads.seats().iter().filter_map(Seat::take_stuck);
        for token in stuck {
            let connection = self.connections.pin(key_of(token));
            if connection.is_some_and(|connection| connection.revoke_adoption(&self.io)) {
                self.io.count(Counter::AdoptionsRevoked);
            }
        }
    }
}
