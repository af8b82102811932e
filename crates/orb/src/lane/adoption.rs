//! Adoption: a thread stays with the connection that keeps it busy. It blocks in that connection's read instead of the
//! poller, which saves a system call and a wake-up per request.
//!
//! It gives the connection back as soon as nothing arrives for a moment, or no other thread is left in the poller. A
//! request that takes long must not hide the next one: housekeeping looks at the seats, and has the poller watch such a
//! connection again.

use crate::connection::{Left, Read, key_of};
use crate::counters::Counter;
use crate::lane::Lane;
use crate::lane::seat::Seat;
use crate::lane::service::Service;
use crate::limits::{ADOPTION_WAIT, ADOPTION_WAIT_SPARE};

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
        seat.set_adopted(Some(connection.token()));
        if lane.threads.begin_adoption() {
            // A thread that waits without limit does not know yet that housekeeping is needed.
            lane.io.poller.wake();
        }
        let left = self.stay(seat);
        connection.note_adoption_left(&lane.io);
        seat.set_adopted(None);
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
