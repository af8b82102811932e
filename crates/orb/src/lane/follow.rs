//! A thread stays with the connection that keeps it busy: it waits in that connection's read instead of the poller,
//! which saves a system call and a wake-up per request.
//!
//! It gives the connection back as soon as nothing comes for a moment, or as no other thread is left to wait in the
//! poller. A request that takes long must not hide the next one: the thread in the poller looks at the seats from time
//! to time and watches such a connection again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use deckwatch_sync::SlotKey;

use crate::connection::reading::Left;
use crate::connection::{Connection, key_of, token_of};
use crate::counters::Counter;
use crate::lane::Lane;
use crate::limits::{ADOPTION_SPARE, ADOPTION_WAIT, ADOPTION_WAIT_SPARE, SPIN_SLICE};
use crate::transport::{Interest, SPIN_FOREVER, TransportError};

/// What the others may know of one thread.
#[derive(Debug)]
pub(crate) struct Seat {
    /// A thread has this seat.
    pub(crate) taken: AtomicBool,
    /// The lane has the buffers of a thread that was added here.
    pub(crate) is_supplied: AtomicBool,
    /// Token of the connection it has adopted.
    adopted: AtomicU64,
    /// Odd while it serves a request of that connection.
    step: AtomicU32,
    /// The step at the last sweep.
    step_seen: AtomicU32,
}

/// No connection has this token: its slot is beyond any table's.
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
    /// Its own thread alone takes a step.
    fn next_step(&self) {
        let step = self.step.load(Ordering::Relaxed).wrapping_add(1);
        self.step.store(step, Ordering::Release);
    }
}

impl Lane {
    /// Whether this thread may leave the poller to others.
    fn may_stay_away(&self) -> bool {
        self.waiting.load(Ordering::Acquire) != 0 && !self.closing.load(Ordering::Acquire)
    }

    /// Whether this thread may sleep for longer in the read of its connection: nobody can call it back meanwhile, and a keeper waits for it.
    fn can_be_spared(&self) -> bool {
        self.room.is_none() && self.waiting.load(Ordering::Relaxed) >= ADOPTION_SPARE
    }

    /// Serves one connection until it pauses or the thread is needed elsewhere.
    pub(crate) fn follow(self: &Arc<Self>, key: SlotKey, connection: &Connection, seat: usize) {
        connection.streak.store(0, Ordering::Relaxed);
        if !self.may_stay_away() || connection.adopted.swap(true, Ordering::AcqRel) {
            return;
        }
        self.counters.count(Counter::Adoptions);
        self.poller
            .rewatch(connection.stream.source(), token_of(key), Interest::Nothing);
        self.seats[seat]
            .adopted
            .store(token_of(key), Ordering::Release);
        if self.adopted.fetch_add(1, Ordering::AcqRel) == 0 {
            // Whoever waits without an end does not know yet that there is something to look at.
            self.poller.wake();
        }
        let left = self.stay_with(key, connection, &self.seats[seat]);
        connection.note_brought(self.transport.now_coarse());
        self.seats[seat].adopted.store(NOTHING, Ordering::Release);
        self.adopted.fetch_sub(1, Ordering::AcqRel);
        if left == Left::Ended {
            return self.end(key, connection);
        }
        // Also where another thread has watched it again already: that one's event may have found us still reading.
        connection.adopted.store(false, Ordering::Release);
        if connection.read_out.load(Ordering::Relaxed) {
            return;
        }
        self.watch_again(connection);
        // SYNC: as in `serve`: who found us reading has left the signal, and we see it.
        if connection.signalled.load(Ordering::SeqCst) {
            self.tell_of_rest(connection);
        }
    }

    fn stay_with(&self, key: SlotKey, connection: &Connection, seat: &Seat) -> Left {
        let Some(mut reading) = connection.inbound.try_claim() else {
            return Left::ToAnother;
        };
        if connection.handed_over.load(Ordering::SeqCst) {
            // We have watched for less than who told of what is to be looked at.
            return Left::ToAnother;
        }
        // Once it has been needed it is not spared again: to change the wait is a system call.
        let mut is_spared = true;
        while self.may_stay_away() && connection.adopted.load(Ordering::Acquire) {
            is_spared = is_spared && self.can_be_spared();
            let wait = match is_spared {
                true => ADOPTION_WAIT_SPARE,
                false => ADOPTION_WAIT,
            };
            let Ok(space) = reading.space(&self.slab) else {
                return self.refuse_memory(connection);
            };
            let room = space.len();
            let count = match self.await_next(connection, space, wait) {
                Ok(None) => break,
                Ok(Some(0)) => return self.read_out(connection, reading),
                Err(_) => return self.end_of(&reading),
                Ok(Some(count)) => count,
            };
            reading.handle_bytes(count);
            seat.next_step();
            let served = self.serve_messages(key, connection, reading, count == room);
            seat.next_step();
            // The buffer stays for the next request.
            reading = match served {
                Ok(reading) => reading,
                Err(left) => return left,
            };
            if reading.is_within_message() {
                self.pause(connection, &mut reading);
            }
        }
        // Of what arrives meanwhile the poller tells when it watches again.
        self.pause(connection, &mut reading);
        Left::Open
    }

    /// What comes next on a connection that the calling thread has adopted. A lane that spins looks for it without sleeping first, as
    /// long as it is told to and nothing else needs the thread.
    fn await_next(
        &self,
        connection: &Connection,
        space: &mut [u8],
        wait: Duration,
    ) -> Result<Option<usize>, TransportError> {
        let Some(mut spin) = self.shape.spin else {
            return connection.stream.read_within(space, wait);
        };
        while spin != Duration::ZERO {
            let slice = spin.min(SPIN_SLICE);
            let arrived = connection.stream.read_spinning(space, slice)?;
            let is_mine = connection.adopted.load(Ordering::Acquire);
            if arrived.is_some() || !is_mine || !self.may_stay_away() {
                return Ok(arrived);
            }
            if spin != SPIN_FOREVER {
                spin -= slice;
            }
        }
        connection.stream.read_within(space, wait)
    }

    /// Watches connections again whose thread has been with one request since the last sweep.
    pub(crate) fn sweep(&self) {
        if self.adopted.load(Ordering::Acquire) == 0 {
            return;
        }
        for seat in &self.seats {
            let step = seat.step.load(Ordering::Acquire);
            let seen = seat.step_seen.swap(step, Ordering::AcqRel);
            let token = seat.adopted.load(Ordering::Acquire);
            if token == NOTHING || step % 2 == 0 || step != seen {
                continue;
            }
            if let Some(connection) = self.connections.pin(key_of(token))
                && connection.adopted.swap(false, Ordering::AcqRel)
            {
                self.counters.count(Counter::AdoptionsRevoked);
                self.watch_again(&connection);
            }
        }
    }
}
