//! Writing to a peer: at once where it reads, else from a queue as room comes, so that a peer that does not read costs memory
//! up to a bound and never a thread.
//!
//! Who owes a peer anything reads no further request of it: the queue grows no more than by what is being served.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use deckwatch_giop::Version;
use deckwatch_sync::{PiMutexGuard, SlotKey};

use super::{Lane, ServerConnection, key_of};
use crate::connection::{Budget, OverBudget};
use crate::counters::Counter;
use crate::limits::OUTBOUND_SHARES;
use crate::trace::{CallNumber, Direction};
use crate::transport::Instant64;
use crate::wire;

/// What a peer has not taken yet.
#[derive(Debug)]
pub(super) struct Outbound {
    octets: Vec<u8>,
    /// Octets at the front that have gone.
    sent: usize,
    /// Shared with the other connections of the lane.
    budget: Arc<Budget>,
}

impl Outbound {
    pub(super) const fn new(budget: Arc<Budget>) -> Self {
        Self {
            octets: Vec::new(),
            sent: 0,
            budget,
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }

    pub(super) fn waiting(&self) -> &[u8] {
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

    /// Says that `count` octets have gone.
    fn advance(&mut self, count: usize) {
        self.sent += count;
        self.budget.give(count);
        if self.sent == self.octets.len() {
            self.octets = Vec::new();
            self.sent = 0;
        }
    }

    pub(super) fn clear(&mut self) {
        self.advance(self.octets.len() - self.sent);
    }
}

impl Drop for Outbound {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Room on a connection is told under its token with this bit: no slot number has it.
const ROOM: u64 = 1 << 63;

/// The connection that an event tells of room on.
pub(super) fn room_of(token: u64) -> Option<SlotKey> {
    (token & ROOM != 0).then(|| key_of(token & !ROOM))
}

impl ServerConnection {
    /// Whether the peer has not taken all that was written.
    pub(super) fn owes(&self) -> bool {
        self.owed_since.load(Ordering::SeqCst) != 0
    }

    fn note_owed(&self, since: Option<Instant64>) {
        let since = since.map_or(0, |since| since.0.max(1));
        self.owed_since.store(since, Ordering::SeqCst);
    }
}

type Writing<'c> = PiMutexGuard<'c, Outbound>;

impl Lane {
    /// Writes a message whole, or lets what does not go now wait for room. Never waits itself.
    pub(super) fn write(&self, connection: &ServerConnection, message: &[u8]) {
        if self.shape.sizes.divides(message) {
            let write = |parts: &[u8]| self.write_octets(connection, parts);
            return self.shape.sizes.with_parts(message, &self.slab, write);
        }
        self.write_octets(connection, message);
    }

    fn write_octets(&self, connection: &ServerConnection, octets: &[u8]) {
        let call = CallNumber::default();
        self.trace
            .message(connection.number, call, Direction::Out, octets);
        let mut writing = connection.outbound.lock("lane.write");
        if !writing.is_empty() {
            return self.let_wait(connection, &mut writing, octets);
        }
        match connection.stream.write_now(octets) {
            Ok(count) if count == octets.len() => {}
            Ok(count) => self.let_wait(connection, &mut writing, &octets[count..]),
            Err(_) => self.lose(connection, &mut writing, Counter::RepliesLost),
        }
    }

    fn let_wait(&self, connection: &ServerConnection, writing: &mut Writing<'_>, rest: &[u8]) {
        let is_first = writing.is_empty();
        let share = self.shape.outbound_size_max / OUTBOUND_SHARES;
        if writing.push(rest, share).is_err() {
            return self.lose(connection, writing, Counter::OutboundExhausted);
        }
        if !is_first {
            return;
        }
        self.counters.count(Counter::RepliesQueued);
        connection.note_owed(Some(self.transport.now()));
        self.unfinished.store(true, Ordering::SeqCst);
        let token = connection.token.load(Ordering::Relaxed);
        // Who has adopted it would wait for requests that are not read now.
        if connection.adopted.swap(false, Ordering::AcqRel) {
            self.watch_again(connection, token);
        }
        let room = connection.stream.source();
        if self.poller.watch_room(room, token | ROOM).is_err() {
            self.lose(connection, writing, Counter::RepliesLost);
        }
    }

    /// Gives a peer up: its connection ends, and whoever reads it closes it.
    fn lose(&self, connection: &ServerConnection, writing: &mut Writing<'_>, why: Counter) {
        self.counters.count(why);
        self.settle(connection, writing);
        connection.stream.shutdown();
    }

    /// Nothing is owed any more.
    fn settle(&self, connection: &ServerConnection, writing: &mut Writing<'_>) {
        writing.clear();
        if connection.owes() {
            self.poller.forget_room(connection.stream.source());
            connection.note_owed(None);
        }
    }

    /// Writes what waits on a connection that has room again; then its requests are read on.
    pub(super) fn handle_room(self: &Arc<Self>, key: SlotKey, seat: Option<usize>) {
        let Some(connection) = self.connections.pin(key) else {
            return;
        };
        let mut writing = connection.outbound.lock("lane.room");
        match connection.stream.write_now(writing.waiting()) {
            Ok(0) => {}
            Ok(count) => {
                writing.advance(count);
                connection.note_owed(Some(self.transport.now()));
            }
            Err(_) => self.lose(&connection, &mut writing, Counter::RepliesLost),
        }
        if !writing.is_empty() {
            return;
        }
        self.settle(&connection, &mut writing);
        drop(writing);
        // SYNC: pairs with the fence in `serve_messages`: either it sees that nothing is owed, or we find it gone.
        fence(Ordering::SeqCst);
        self.serve(key, false, seat);
    }

    /// At the end, with nobody left to hear of room: writes what waits until `deadline`. False: the peer did not take it.
    pub(super) fn flush(&self, connection: &ServerConnection, deadline: Instant64) -> bool {
        let mut writing = connection.outbound.lock("lane.flush");
        let written = connection
            .stream
            .write_all(writing.waiting(), Some(deadline));
        match written {
            Ok(()) => self.settle(connection, &mut writing),
            Err(_) => self.lose(connection, &mut writing, Counter::RepliesLost),
        }
        written.is_ok()
    }

    /// Watches a connection that nobody has adopted any more.
    pub(super) fn watch_again(&self, connection: &ServerConnection, token: u64) {
        self.poller.rewatch(
            connection.stream.source(),
            token,
            crate::transport::Interest::Arrival,
        );
    }

    pub(super) fn write_with(
        &self,
        connection: &ServerConnection,
        form: impl FnOnce(&mut Vec<u8>),
    ) {
        let mut buffer = self.slab.lend_empty();
        form(&mut buffer);
        self.write(connection, &buffer);
        self.slab.take_back_written(buffer);
    }

    pub(super) fn say_message_error(&self, connection: &ServerConnection, version: Version) {
        self.write_with(connection, |buffer| wire::message_error(buffer, version));
    }

    /// Tells the client that the connection closes and that nothing unanswered has been served.
    pub(super) fn say_goodbye(&self, connection: &ServerConnection) {
        self.write_with(connection, wire::close_connection);
    }
}
