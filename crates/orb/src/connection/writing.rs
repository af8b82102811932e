//! The writing half of a connection. A message is written at once where the peer reads, and queued otherwise: a peer
//! that does not read costs memory up to a bound, and never a thread.
//!
//! While the peer owes a read, no further request of it is parsed: the queue grows by the requests in progress alone.
//!
//! The right to write is a claim, which no thread waits for: a thread that fails to claim it queues its message and
//! flags it, and the current writer sends it. The queue has a lock, which no request takes while the queue is empty. No
//! message may wait for a less urgent thread: only threads at the lane's priority claim the right without the lock.
//! Others ([`Connection::write_in_turn`]) hold the lock meanwhile, and inherit priority.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use deckwatch_giop::Version;
use deckwatch_sync::{Claim, PiMutex, PiMutexGuard, SlotKey};

use super::state::{HELD_UP, PARTED};
use super::{Connection, Io, key_of};
use crate::accounts::{Account, Bound};
use crate::budget::OverBudget;
use crate::counters::Counter;
use crate::limits::LAST_WORD_WAIT;
use crate::trace::{CallNumber, Direction};
use crate::transport::{Instant64, TransportError};
use crate::wire;

/// Octets that the peer has not read yet.
#[derive(Debug)]
struct Outbound {
    octets: Vec<u8>,
    /// Octets at the front that have been written.
    sent: usize,
    /// The poller watches for room to write: for these octets, or so that a thread reads on.
    awaits_room: bool,
    /// It is noted that the peer does not read.
    is_unread: bool,
    /// That of the peer.
    account: Arc<Account>,
}

impl Outbound {
    const fn new(account: Arc<Account>) -> Self {
        Self {
            octets: Vec::new(),
            sent: 0,
            awaits_room: false,
            is_unread: false,
            account,
        }
    }

    const fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }

    fn waiting(&self) -> &[u8] {
        &self.octets[self.sent..]
    }

    /// Queues `octets` behind the others. Messages that wait for the current writer only are no fault of the peer, and
    /// may exceed its share.
    fn push(&mut self, octets: &[u8]) -> Result<(), OverBudget> {
        let waiting = self.octets.len() - self.sent;
        let is_taken = if self.awaits_room {
            self.account.take(Bound::Outbound, octets.len())
        } else {
            self.account
                .take_beyond_share(Bound::Outbound, octets.len())
        };
        if !is_taken {
            return Err(OverBudget);
        }
        if self.sent > waiting {
            self.octets.drain(..self.sent);
            self.sent = 0;
        }
        // Growing by doubling could take twice the budget.
        if self.octets.try_reserve_exact(octets.len()).is_err() {
            self.account.give(Bound::Outbound, octets.len());
            return Err(OverBudget);
        }
        self.octets.extend_from_slice(octets);
        Ok(())
    }

    /// Queues the rest of a partly written message before the others.
    fn push_first(&mut self, rest: &[u8]) -> Result<(), OverBudget> {
        if !self.account.take(Bound::Outbound, rest.len()) {
            return Err(OverBudget);
        }
        self.octets.splice(..self.sent, rest.iter().copied());
        self.sent = 0;
        Ok(())
    }

    /// Takes `count` written octets off.
    fn advance(&mut self, count: usize) {
        self.sent += count;
        self.account.give(Bound::Outbound, count);
        if self.sent == self.octets.len() {
            self.octets.clear();
            self.sent = 0;
        }
    }

    /// Drops all octets. Returns their memory, if there is any.
    fn clear(&mut self) -> Option<Vec<u8>> {
        self.is_unread = false;
        self.advance(self.octets.len() - self.sent);
        (self.octets.capacity() != 0).then(|| std::mem::take(&mut self.octets))
    }
}

impl Drop for Outbound {
    fn drop(&mut self) {
        drop(self.clear());
    }
}

/// The token of room to write is the connection's with this bit, which no slot number has.
const ROOM: u64 = 1 << 63;

/// The connection for which an event reports room to write.
pub(crate) fn room_of(token: u64) -> Option<SlotKey> {
    (token & ROOM != 0).then(|| key_of(token & !ROOM))
}

pub(super) struct WriteHalf {
    /// Its owner writes; messages are written whole.
    right: Claim<()>,
    queue: PiMutex<Outbound>,
    /// Since when the peer has read nothing of the queue; 0: the queue is empty.
    owed_since: AtomicU64,
}

impl WriteHalf {
    pub(super) fn new(account: &Arc<Account>) -> Self {
        Self {
            right: Claim::new(()),
            queue: PiMutex::new(Outbound::new(Arc::clone(account))),
            owed_since: AtomicU64::new(0),
        }
    }

    fn note_owed(&self, since: Option<Instant64>) {
        let since = since.map_or(0, |since| since.0.max(1));
        self.owed_since.store(since, Ordering::SeqCst);
    }
}

type Queue<'c> = PiMutexGuard<'c, Outbound>;

impl Connection {
    /// Whether the peer has not read everything that was written.
    #[inline]
    pub(crate) fn owes(&self) -> bool {
        self.owed_since().is_some()
    }

    /// Since when the peer has read nothing of what is queued for it.
    #[inline]
    pub(crate) fn owed_since(&self) -> Option<Instant64> {
        let since = self.writer.owed_since.load(Ordering::SeqCst);
        (since != 0).then_some(Instant64(since))
    }

    /// Writes a message whole, or queues what the socket does not take. Never waits. For threads at the lane's
    /// priority.
    #[inline]
    pub(crate) fn write(&self, io: &Io, message: &[u8]) {
        self.write_parts(io, message, Self::write_at_once);
    }

    /// As [`Connection::write`], for a thread that may have another priority than the lane's. It may wait for a thread
    /// that does the same.
    pub(crate) fn write_from_outside(&self, io: &Io, message: &[u8]) {
        self.write_parts(io, message, |connection, io, octets| {
            connection.write_in_turn(io, octets, false);
        });
    }

    #[inline]
    fn write_parts(&self, io: &Io, message: &[u8], write: impl Fn(&Self, &Io, &[u8])) {
        let write = |octets: &[u8]| {
            let call = CallNumber::default();
            io.trace.message(self.number, call, Direction::Out, octets);
            write(self, io, octets);
        };
        if io.sizes.divides(message.len()) {
            return io.sizes.with_parts(message, &io.slab, write);
        }
        write(message);
    }

    fn write_at_once(&self, io: &Io, octets: &[u8]) {
        let Some(right) = self.writer.right.try_claim() else {
            return self.write_in_turn(io, octets, false);
        };
        if self.owes() {
            let is_flagged = right.let_go();
            return self.write_in_turn(io, octets, is_flagged);
        }
        let written = self.stream.write_now(octets);
        if written != Ok(octets.len()) {
            let mut queue = self.writer.queue.lock("lane.write");
            self.note_written(io, &mut queue, octets, written);
        }
        if right.let_go() {
            let mut queue = self.writer.queue.lock("lane.told");
            self.write_waiting(io, &mut queue);
        }
    }

    /// Queues a message; the owner of the right to write sends it, if that is another thread. `is_flagged`: another
    /// thread has queued a message for us.
    #[cold]
    fn write_in_turn(&self, io: &Io, octets: &[u8], is_flagged: bool) {
        let mut queue = self.writer.queue.lock("lane.turn");
        if queue.is_empty()
            && let Some(right) = self.writer.right.try_claim()
        {
            let written = self.stream.write_now(octets);
            self.note_written(io, &mut queue, octets, written);
            // The flag is set by owners of the lock, so it cannot be set now.
            return drop(right);
        }
        let awaits_room = queue.awaits_room;
        if queue.octets.capacity() == 0 {
            queue.octets = io.slab.lend_empty();
        }
        let pushed = queue.push(octets);
        self.note_waiting(io, &mut queue, pushed);
        if is_flagged || !awaits_room {
            self.write_waiting(io, &mut queue);
        }
    }

    /// Queues the octets that were not written.
    fn note_written(
        &self,
        io: &Io,
        queue: &mut Queue<'_>,
        octets: &[u8],
        written: Result<usize, TransportError>,
    ) {
        match written {
            Ok(count) if count == octets.len() => {}
            Ok(count) => {
                // Other threads may have queued messages meanwhile.
                let pushed = queue.push_first(&octets[count..]);
                self.note_waiting(io, queue, pushed);
                self.await_room(io, queue);
            }
            Err(_) => self.lose(io, queue, Counter::RepliesLost),
        }
    }

    fn note_waiting(&self, io: &Io, queue: &mut Queue<'_>, pushed: Result<(), OverBudget>) {
        if pushed.is_err() {
            self.lose(io, queue, Counter::OutboundExhausted);
        } else if !self.owes() {
            self.writer.note_owed(Some(io.now()));
        }
    }

    /// Has the poller watch for room to write.
    fn await_room(&self, io: &Io, queue: &mut Queue<'_>) {
        if queue.is_empty() {
            return;
        }
        if !std::mem::replace(&mut queue.is_unread, true) {
            io.count(Counter::RepliesQueued);
            io.set_unfinished(true);
            // A thread that has adopted the connection would wait for requests, which are not read now.
            self.revoke_adoption(io);
        }
        if !queue.awaits_room {
            self.watch_room(io, queue);
        }
    }

    fn watch_room(&self, io: &Io, queue: &mut Queue<'_>) {
        let token = self.token() | ROOM;
        let watched = io.poller.watch_room(self.stream.source(), token);
        queue.awaits_room = watched.is_ok();
        if watched.is_err() {
            self.lose(io, queue, Counter::RepliesLost);
        }
    }

    /// Gives the peer up: shuts the stream down; the thread that reads the connection closes it.
    fn lose(&self, io: &Io, queue: &mut Queue<'_>, why: Counter) {
        io.count(why);
        self.settle(io, queue);
        self.stream.shutdown();
    }

    /// Drops the queue: nothing is owed any more.
    fn settle(&self, io: &Io, queue: &mut Queue<'_>) {
        if let Some(memory) = queue.clear() {
            io.slab.take_back_written(memory);
        }
        if queue.awaits_room {
            queue.awaits_room = false;
            io.poller.forget_room(self.stream.source());
        }
        if self.owes() {
            self.writer.note_owed(None);
        }
    }

    /// Writes the queue, or leaves it to the thread that has the right to write.
    fn write_waiting(&self, io: &Io, queue: &mut Queue<'_>) {
        if queue.is_empty() {
            return;
        }
        let Some(right) = self.writer.right.claim_or_tell() else {
            return;
        };
        self.write_queue(io, queue);
        drop(right);
        if !queue.is_empty() {
            return self.await_room(io, queue);
        }
        self.settle(io, queue);
        // SYNC: pairs with the fence in `hold_up`: either that sees that nothing is owed, or we see HELD_UP.
        fence(Ordering::SeqCst);
        if self.state.clear(HELD_UP) {
            // The thread that gets the event of room reads on; there is room.
            self.watch_room(io, queue);
        }
    }

    /// Writes as much as there is room for. Needs the right to write.
    fn write_queue(&self, io: &Io, queue: &mut Queue<'_>) {
        match self.stream.write_now(queue.waiting()) {
            Ok(0) => {}
            Ok(count) => {
                queue.advance(count);
                self.writer.note_owed(Some(io.now()));
            }
            Err(_) => self.lose(io, queue, Counter::RepliesLost),
        }
    }

    /// The poller has reported room: writes the queue. Returns whether it is empty now, so that requests are to be read
    /// on.
    pub(crate) fn handle_room(&self, io: &Io) -> bool {
        let mut queue = self.writer.queue.lock("lane.room");
        if !queue.is_empty() {
            let Some(right) = self.writer.right.claim_or_tell() else {
                return false;
            };
            self.write_queue(io, &mut queue);
            drop(right);
        }
        if !queue.is_empty() {
            return false;
        }
        self.settle(io, &mut queue);
        drop(queue);
        self.state.clear(HELD_UP);
        // SYNC: pairs with the fence in `hold_up`: either that sees that nothing is owed, or we find it released.
        fence(Ordering::SeqCst);
        true
    }

    /// At the end of the lane, when no event of room is handled: writes the queue until `deadline`. Returns false if
    /// the peer did not read it.
    pub(crate) fn flush(&self, io: &Io, deadline: Instant64) -> bool {
        let mut both = None;
        let has_right = io.poll_until(deadline, || {
            let queue = self.writer.queue.lock("lane.flush");
            both = self.writer.right.try_claim().map(|right| (queue, right));
            both.is_some()
        });
        let Some((mut queue, right)) = both.filter(|_| has_right) else {
            return false;
        };
        let written = self.stream.write_all(queue.waiting(), Some(deadline));
        match written {
            Ok(()) => self.settle(io, &mut queue),
            Err(_) => self.lose(io, &mut queue, Counter::RepliesLost),
        }
        drop(right);
        written.is_ok()
    }

    /// Writes the message that `form` makes.
    pub(crate) fn write_with(&self, io: &Io, form: impl FnOnce(&mut Vec<u8>)) {
        let mut buffer = io.slab.lend_empty();
        form(&mut buffer);
        self.write(io, &buffer);
        io.slab.take_back_written(buffer);
    }

    /// Writes MessageError. The connection ends next.
    pub(crate) fn write_message_error(&self, io: &Io, version: Version) {
        self.write_with(io, |buffer| wire::message_error(buffer, version));
        // The owner of the right to write would come too late.
        if self.owes() {
            self.write_last(io);
        }
        // A thread that claims the connection before it is closed must not complain of the same octets again.
        self.state.set(PARTED);
    }

    /// Writes as much of the queue as there is room for, once the current writer has finished.
    #[cold]
    fn write_last(&self, io: &Io) {
        let deadline = io.now().after(LAST_WORD_WAIT);
        // At the deadline the message is lost, as the connection is.
        let _ = io.poll_until(deadline, || {
            let mut queue = self.writer.queue.lock("lane.last");
            if queue.is_empty() {
                return true;
            }
            let Some(right) = self.writer.right.try_claim() else {
                return false;
            };
            self.write_queue(io, &mut queue);
            drop(right);
            if queue.is_empty() {
                self.settle(io, &mut queue);
            }
            true
        });
    }

    /// Writes CloseConnection: no request that has not been answered has been served. The caller has the claim to read.
    pub(crate) fn write_goodbye(&self, io: &Io) {
        let mut buffer = io.slab.lend_empty();
        wire::close_connection(&mut buffer);
        self.write_from_outside(io, &buffer);
        io.slab.take_back_written(buffer);
    }

    /// From here on no request is served. The caller has the claim to read.
    pub(crate) fn part(&self) {
        self.state.set(PARTED);
    }
}
