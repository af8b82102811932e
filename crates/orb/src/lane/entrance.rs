//! The entrance of a lane: connections are accepted while there is room, and one of a peer at its share takes the place
//! of another one of that peer.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use super::Lane;
use crate::accounts::{Account, Bound};
use crate::connection::bidirectional::Bidirectional;
use crate::connection::{Connection, places_of};
use crate::counters::Counter;
use crate::limits::{ACCEPTS_PER_TURN_MAX, EXHAUSTED_IDLE};
use crate::peers::Peer;
use crate::trace::Side;
use crate::transport::{Stream, TransportError};
use crate::wire;

impl Lane {
    pub(super) fn accept(&self, listener: usize) {
        let mut has_made_way = false;
        for _ in 0..ACCEPTS_PER_TURN_MAX {
            if self.connections.is_full() && !self.make_room_for_one(listener) {
                return;
            }
            match self.acceptor.accept(listener) {
                Ok(Some(stream)) => {
                    self.admit_accepted(stream.into());
                    has_made_way = false;
                }
                Ok(None) => return,
                Err(error) => {
                    self.io.count(Counter::AcceptsExhausted);
                    let may_help = error == TransportError::Exhausted && !has_made_way;
                    if may_help && self.make_way(listener) {
                        has_made_way = true;
                        continue;
                    }
                    return self.acceptor.rest(&*self.io.poller);
                }
            }
        }
    }

    /// Without descriptors: closes a connection that has been idle for long, for one that waits. Returns whether there
    /// was one.
    fn make_way(&self, listener: usize) -> bool {
        let _one_at_a_time = self.acceptor.make_room();
        self.acceptor.is_awaited_at(listener) && self.evict(EXHAUSTED_IDLE, |_| true)
    }

    /// With as many connections as there may be: closes an idle one for one that waits, of the peer that has most if
    /// possible. Returns whether there is room.
    fn make_room_for_one(&self, listener: usize) -> bool {
        let _one_at_a_time = self.acceptor.make_room();
        if !self.connections.is_full() {
            return true;
        }
        if !self.acceptor.is_awaited_at(listener) {
            return false;
        }
        if self.evict_of_largest(Bound::Connections) || self.evict(Duration::ZERO, |_| true) {
            return true;
        }
        self.io.count(Counter::AcceptsRefused);
        // No connection is idle now; one may become idle without closing, which housekeeping finds.
        self.acceptor.rest(&*self.io.poller);
        // A connection that closed meanwhile may have resumed accepting before it was paused.
        fence(Ordering::SeqCst);
        if !self.connections.is_full() {
            self.acceptor.resume(&*self.io.poller);
        }
        false
    }

    /// Takes an accepted connection in, or refuses it because its peer holds its share.
    fn admit_accepted(&self, stream: Arc<dyn Stream>) {
        let peer = Peer::of(stream.caller(), stream.caller_name().as_deref());
        let account = self.io.accounts.of(peer);
        let places = places_of(&*stream);
        let is_out = |place: &Bound| !self.take_place(&account, *place);
        let Some(missing) = places.iter().position(is_out) else {
            self.server.log_connected(&*stream);
            self.admit(stream, None, account);
            return;
        };
        for taken in &places[..missing] {
            account.give(*taken, 1);
        }
        self.io.count(Counter::ConnectionsRefused);
        self.server
            .log_refused(&*stream, "its peer holds its share of connections");
        // The client connects again later: nothing of it has been served.
        let mut farewell = Vec::new();
        wire::close_connection(&mut farewell);
        let _ = stream.write_now(&farewell); // The connection ends in any case.
    }

    /// Takes a place for a connection of a peer. If the peer holds its share, one of its own connections is closed for
    /// it. For the first connection of a peer through shared memory, one of the peer that has most is closed.
    fn take_place(&self, account: &Arc<Account>, place: Bound) -> bool {
        if account.take(place, 1) {
            return true;
        }
        if place == Bound::Connections && account.held(place) == 0 {
            // There was room before it was accepted; another thread has accepted one too.
            account.take_anyway(place, 1);
            return true;
        }
        let _one_at_a_time = self.acceptor.make_room();
        if account.take(place, 1) {
            return true;
        }
        let now = self.io.transport.now_coarse();
        if account.is_refused(now) {
            return false;
        }
        let is_own = |connection: &Connection| {
            Arc::ptr_eq(connection.account(), account) && connection.holds(place)
        };
        let has_made_way = if account.held(place) == 0 {
            self.evict_of_largest(place)
        } else {
            self.evict(Duration::ZERO, is_own)
        };
        let is_taken = has_made_way && account.take(place, 1);
        if !is_taken {
            account.note_refusal(now);
        }
        is_taken
    }

    /// Closes a connection of the peer that has most of them. Returns whether there was one.
    fn evict_of_largest(&self, place: Bound) -> bool {
        let largest = self.io.accounts.largest(place);
        self.evict(Duration::ZERO, |connection| {
            connection.holds(place) && Some(connection.account().peer()) == largest
        })
    }

    /// Takes a connection into the table, and watches it. Returns whether it could. The account has its places.
    pub(super) fn admit(
        &self,
        stream: Arc<dyn Stream>,
        bidirectional: Option<&Arc<Bidirectional>>,
        account: Arc<Account>,
    ) -> bool {
        let connection = Connection::new(stream, bidirectional, account, &self.io);
        let Some(connection) = self.connections.insert(connection) else {
            self.io.count(Counter::AcceptsExhausted);
            return false;
        };
        if bidirectional.is_none() {
            self.io.count(Counter::ConnectionsAccepted);
        }
        let key = connection.key();
        // SYNC: pairs with the fence in `drain`: that finds the connection in the table, or we find the lane closing.
        fence(Ordering::SeqCst);
        if self.closing.load(Ordering::SeqCst) {
            self.close(key, &connection);
            return false;
        }
        if self.io.trace.is_on() {
            let side = if bidirectional.is_some() {
                Side::Client
            } else {
                Side::Server
            };
            connection.trace_opened(&self.io, side);
        }
        let is_watched = connection.watch(&self.io).is_ok();
        if !is_watched {
            self.close(key, &connection);
        }
        is_watched
    }
}
