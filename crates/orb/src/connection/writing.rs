//! Writing to a peer: at once where it reads, else from a queue as room comes, so that a peer that does not read costs memory
//! up to a bound and never a thread.
//!
//! Who owes a peer anything reads no further request of it: the queue grows no more than by what is being served.
//!
//! The right to write is a claim, for which nobody waits: who finds it taken lets his message wait in the queue and leaves word, and
//! who has the right writes that too. The queue has a lock, but no request takes it where nothing waits. That nobody's message waits
//! for a thread which is less urgent, threads at the lane's priority alone claim the right without the lock; others ([`Lane::write_in_turn`])
//! hold it meanwhile, and inherit.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use deckwatch_giop::Version;
use deckwatch_sync::{PiMutexGuard, SlotKey};

use crate::budget::{Budget, OverBudget};
use crate::connection::{Connection, key_of};
use crate::counters::Counter;
use crate::lane::Lane;
use crate::limits::{LAST_WORD_WAIT, OUTBOUND_SHARES};
use crate::trace::{CallNumber, Direction};
use crate::transport::{Instant64, TransportError};
use crate::wire;

/// What a peer has not taken yet.
#[derive(Debug)]
pub(crate) struct Outbound {
    octets: Vec<u8>,
    /// Octets at the front that have gone.
    sent: usize,
    /// The poller tells of room for them.
    awaits_room: bool,
    /// Shared with the other connections of the lane.
    budget: Arc<Budget>,
}

impl Outbound {
    pub(crate) const fn new(budget: Arc<Budget>) -> Self {
        Self {
            octets: Vec::new(),
            sent: 0,
            awaits_room: false,
            budget,
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }

    pub(crate) fn waiting(&self) -> &[u8] {
        &self.octets[self.sent..]
    }

    /// Lets `octets` wait behind the others, up to `max` of them.
    fn push(&mut self, octets: &[u8], max: usize) -> Result<(), OverBudget> {
        let waiting = self.octets.len() - self.sent;
        if waiting + octets.len() > max || !self.budget.take(octets.len()) {
            return Err(OverBudget);
        }
        if self.sent > waiting {
            self.octets.drain(..self.sent);
            self.sent = 0;
        }
        // Growing by doubling could take twice the budget.
        self.octets.reserve_exact(octets.len());
        self.octets.extend_from_slice(octets);
        Ok(())
    }

    /// Lets what is left of a message that has begun to go wait before the others, up to `max` octets of it.
    fn push_first(&mut self, rest: &[u8], max: usize) -> Result<(), OverBudget> {
        if rest.len() > max || !self.budget.take(rest.len()) {
            return Err(OverBudget);
        }
        self.octets.splice(..self.sent, rest.iter().copied());
        self.sent = 0;
        Ok(())
    }

    /// Says that `count` octets have gone.
    fn advance(&mut self, count: usize) {
        self.sent += count;
        self.budget.give(count);
        if self.sent == self.octets.len() {
            self.octets.clear();
            self.sent = 0;
        }
    }

    /// Forgets what waits. Its memory, where it has any.
    fn clear(&mut self) -> Option<Vec<u8>> {
        self.advance(self.octets.len() - self.sent);
        (self.octets.capacity() != 0).then(|| std::mem::take(&mut self.octets))
    }
}

impl Drop for Outbound {
    fn drop(&mut self) {
        drop(self.clear());
    }
}

/// Room on a connection is told under its token with this bit: no slot number has it.
const ROOM: u64 = 1 << 63;

/// The connection that an event tells of room on.
pub(crate) fn room_of(token: u64) -> Option<SlotKey> {
    (token & ROOM != 0).then(|| key_of(token & !ROOM))
}

impl Connection {
    /// Whether the peer has not taken all that was written.
    pub(crate) fn owes(&self) -> bool {
        self.owed_since.load(Ordering::SeqCst) != 0
    }

    fn note_owed(&self, since: Option<Instant64>) {
        let since = since.map_or(0, |since| since.0.max(1));
        self.owed_since.store(since, Ordering::SeqCst);
    }
}

type Queue<'c> = PiMutexGuard<'c, Outbound>;

impl Lane {
    /// Writes a message whole, or lets what does not go now wait for room. Never waits itself. For threads at the lane's priority.
    pub(crate) fn write(&self, connection: &Connection, message: &[u8]) {
        self.write_parts(connection, message, Self::write_at_once);
    }

    /// As [`Lane::write`], by a thread that may have another priority than the lane's: it may wait for one that does this too.
    pub(crate) fn write_from_outside(&self, connection: &Connection, message: &[u8]) {
        self.write_parts(connection, message, |lane, connection, octets| {
            lane.write_in_turn(connection, octets, false);
        });
    }

    #[inline]
    fn write_parts(
        &self,
        connection: &Connection,
        message: &[u8],
        write: impl Fn(&Self, &Connection, &[u8]),
    ) {
        let write = |octets: &[u8]| {
            let call = CallNumber::default();
            self.trace
                .message(connection.number, call, Direction::Out, octets);
            write(self, connection, octets);
        };
        if self.shape.sizes.divides(message.len()) {
            return self.shape.sizes.with_parts(message, &self.slab, write);
        }
        write(message);
    }

    fn write_at_once(&self, connection: &Connection, octets: &[u8]) {
        let Some(right) = connection.writing.try_claim() else {
            return self.write_in_turn(connection, octets, false);
        };
        if connection.owes() {
            let is_told = right.let_go();
            return self.write_in_turn(connection, octets, is_told);
        }
        let written = connection.stream.write_now(octets);
        if written != Ok(octets.len()) {
            let mut queue = connection.outbound.lock("lane.write");
            self.note_written(connection, &mut queue, octets, written);
        }
        if right.let_go() {
            let mut queue = connection.outbound.lock("lane.told");
            self.write_waiting(connection, &mut queue);
        }
    }

    /// Writes a message behind those that wait; where another thread has the right to write, that one does. `is_told`: by one who has
    /// left others in the queue.
    #[cold]
    fn write_in_turn(&self, connection: &Connection, octets: &[u8], is_told: bool) {
        let mut queue = connection.outbound.lock("lane.turn");
        if queue.is_empty()
            && let Some(right) = connection.writing.try_claim()
        {
            let written = connection.stream.write_now(octets);
            self.note_written(connection, &mut queue, octets, written);
            // Word is left by those who have the queue.
            return drop(right);
        }
        let awaits_room = queue.awaits_room;
        if queue.octets.capacity() == 0 {
            queue.octets = self.slab.lend_empty();
        }
        // A peer that reads is not given up for what others of ours leave to one another.
        let share = if awaits_room {
            self.share()
        } else {
            usize::MAX
        };
        let pushed = queue.push(octets, share);
        self.note_waiting(connection, &mut queue, pushed);
        if is_told || !awaits_room {
            self.write_waiting(connection, &mut queue);
        }
    }

    /// Octets that one peer may leave unread.
    const fn share(&self) -> usize {
        self.shape.outbound_size_max / OUTBOUND_SHARES
    }

    /// What has not gone at once waits for room.
    fn note_written(
        &self,
        connection: &Connection,
        queue: &mut Queue<'_>,
        octets: &[u8],
        written: Result<usize, TransportError>,
    ) {
        match written {
            Ok(count) if count == octets.len() => {}
            Ok(count) => {
                // Others may have left messages meanwhile.
                let pushed = queue.push_first(&octets[count..], self.share());
                self.note_waiting(connection, queue, pushed);
                self.await_room(connection, queue);
            }
            Err(_) => self.lose(connection, queue, Counter::RepliesLost),
        }
    }

    fn note_waiting(
        &self,
        connection: &Connection,
        queue: &mut Queue<'_>,
        pushed: Result<(), OverBudget>,
    ) {
        if pushed.is_err() {
            self.lose(connection, queue, Counter::OutboundExhausted);
        } else if !connection.owes() {
            connection.note_owed(Some(self.transport.now()));
        }
    }

    /// Has the poller tell of room for what waits.
    fn await_room(&self, connection: &Connection, queue: &mut Queue<'_>) {
        if queue.is_empty() || queue.awaits_room {
            return;
        }
        self.counters.count(Counter::RepliesQueued);
        self.unfinished.store(true, Ordering::SeqCst);
        // Who has adopted it would wait for requests that are not read now.
        if connection.adopted.swap(false, Ordering::AcqRel) {
            self.watch_again(connection);
        }
        self.tell_of_room(connection, queue);
    }

    fn tell_of_room(&self, connection: &Connection, queue: &mut Queue<'_>) {
        let token = connection.token.load(Ordering::Relaxed) | ROOM;
        let watched = self.poller.watch_room(connection.stream.source(), token);
        queue.awaits_room = watched.is_ok();
        if watched.is_err() {
            self.lose(connection, queue, Counter::RepliesLost);
        }
    }

    /// Gives a peer up: its connection ends, and whoever reads it closes it.
    fn lose(&self, connection: &Connection, queue: &mut Queue<'_>, why: Counter) {
        self.counters.count(why);
        self.settle(connection, queue);
        connection.stream.shutdown();
    }

    /// Nothing is owed any more.
    fn settle(&self, connection: &Connection, queue: &mut Queue<'_>) {
        if let Some(memory) = queue.clear() {
            self.slab.take_back_written(memory);
        }
        if queue.awaits_room {
            queue.awaits_room = false;
            self.poller.forget_room(connection.stream.source());
        }
        if connection.owes() {
            connection.note_owed(None);
        }
    }

    /// Writes what waits, or leaves it to the thread that has the right to write.
    fn write_waiting(&self, connection: &Connection, queue: &mut Queue<'_>) {
        if queue.is_empty() {
            return;
        }
        let Some(right) = connection.writing.claim_or_tell() else {
            return;
        };
        self.write_queue(connection, queue);
        drop(right);
        if !queue.is_empty() {
            return self.await_room(connection, queue);
        }
        self.settle(connection, queue);
        // SYNC: pairs with the fence in `hold_up`: either it sees that nothing is owed, or we see that it has gone.
        fence(Ordering::SeqCst);
        if connection.held_up.swap(false, Ordering::SeqCst) {
            // Its requests are read on by whoever is told of room; there is some.
            self.tell_of_room(connection, queue);
        }
    }

    /// Writes as much as there is room for. Needs the right to write.
    fn write_queue(&self, connection: &Connection, queue: &mut Queue<'_>) {
        match connection.stream.write_now(queue.waiting()) {
            Ok(0) => {}
            Ok(count) => {
                queue.advance(count);
                connection.note_owed(Some(self.transport.now()));
            }
            Err(_) => self.lose(connection, queue, Counter::RepliesLost),
        }
    }

    /// Writes what waits on a connection that has room again; then its requests are read on.
    pub(crate) fn handle_room(self: &Arc<Self>, key: SlotKey, seat: Option<usize>) {
        let Some(connection) = self.connections.pin(key) else {
            return;
        };
        let mut queue = connection.outbound.lock("lane.room");
        if !queue.is_empty() {
            let Some(right) = connection.writing.claim_or_tell() else {
                return;
            };
            self.write_queue(&connection, &mut queue);
            drop(right);
        }
        if !queue.is_empty() {
            return;
        }
        self.settle(&connection, &mut queue);
        drop(queue);
        connection.held_up.store(false, Ordering::SeqCst);
        // SYNC: pairs with the fence in `hold_up`: either it sees that nothing is owed, or we find it gone.
        fence(Ordering::SeqCst);
        self.serve(key, false, seat);
    }

    /// At the end, with nobody left to hear of room: writes what waits until `deadline`. False: the peer did not take it.
    pub(crate) fn flush(&self, connection: &Connection, deadline: Instant64) -> bool {
        let mut both = None;
        let has_right = self.wait_until(deadline, || {
            let queue = connection.outbound.lock("lane.flush");
            both = connection.writing.try_claim().map(|right| (queue, right));
            both.is_some()
        });
        let Some((mut queue, right)) = both.filter(|_| has_right) else {
            return false;
        };
        let written = connection.stream.write_all(queue.waiting(), Some(deadline));
        match written {
            Ok(()) => self.settle(connection, &mut queue),
            Err(_) => self.lose(connection, &mut queue, Counter::RepliesLost),
        }
        drop(right);
        written.is_ok()
    }

    pub(crate) fn write_with(&self, connection: &Connection, form: impl FnOnce(&mut Vec<u8>)) {
        let mut buffer = self.slab.lend_empty();
        form(&mut buffer);
        self.write(connection, &buffer);
        self.slab.take_back_written(buffer);
    }

    pub(crate) fn say_message_error(&self, connection: &Connection, version: Version) {
        self.write_with(connection, |buffer| wire::message_error(buffer, version));
        // The connection ends next, and whoever has the right to write would come too late.
        if connection.owes() {
            self.write_last(connection);
        }
        // Who gets the right to read before it is closed would complain of the same octets again.
        connection.parted.store(true, Ordering::Relaxed);
    }

    /// Writes what waits as far as there is room, once who writes just now has done so.
    #[cold]
    fn write_last(&self, connection: &Connection) {
        let deadline = self.transport.now().after(LAST_WORD_WAIT);
        let _gone = self.wait_until(deadline, || {
            let mut queue = connection.outbound.lock("lane.last");
            if queue.is_empty() {
                return true;
            }
            let Some(right) = connection.writing.try_claim() else {
                return false;
            };
            self.write_queue(connection, &mut queue);
            drop(right);
            if queue.is_empty() {
                self.settle(connection, &mut queue);
            }
            true
        });
    }

    /// Tells the client that the connection closes and that nothing unanswered has been served.
    pub(crate) fn say_goodbye(&self, connection: &Connection) {
        let mut buffer = self.slab.lend_empty();
        wire::close_connection(&mut buffer);
        self.write_from_outside(connection, &buffer);
        self.slab.take_back_written(buffer);
    }
}
