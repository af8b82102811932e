//! Taking connections in: bounded, and at rest while the lane is full or descriptors have run out.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use deckwatch_sync::{Claim, PiMutex};

use crate::connection::Inbound;
use crate::connection::bidirectional::Bidirectional;
use crate::connection::writing::Outbound;
use crate::connection::{Connection, token_of};
use crate::counters::Counter;
use crate::lane::Lane;
use crate::limits::{ACCEPTS_PER_TURN_MAX, EXHAUSTED_IDLE};
use crate::trace::Side;
use crate::transport::{Interest, Stream, TransportError};

/// Tokens of listeners: a slot number no table reaches.
const LISTENERS: u64 = 0xffff_fff0_0000_0000;

pub(crate) fn listener_of(token: u64) -> Option<usize> {
    (token >= LISTENERS).then(|| (token - LISTENERS) as usize)
}

impl Lane {
    pub(crate) fn watch_listeners(&self) -> Result<(), TransportError> {
        for (listener, token) in self
            .listeners
            .lock("lane.listeners")
            .iter()
            .zip(LISTENERS..)
        {
            self.poller
                .watch(listener.source(), token, Interest::Pending)?;
        }
        Ok(())
    }

    pub(crate) fn accept(self: &Arc<Self>, listener: usize) {
        let mut has_made_way = false;
        for _ in 0..ACCEPTS_PER_TURN_MAX {
            if self.open.load(Ordering::Acquire) >= self.shape.connections_max
                && !self.make_room_for_one(listener)
            {
                return;
            }
            let accepted = self
                .listeners
                .lock("lane.accept")
                .get(listener)
                .map(|listener| listener.accept());
            match accepted.unwrap_or(Ok(None)) {
                Ok(Some(stream)) => {
                    self.admit(stream.into(), None);
                    has_made_way = false;
                }
                Ok(None) => return,
                Err(error) => {
                    self.counters.count(Counter::AcceptsExhausted);
                    let may_help = error == TransportError::Exhausted && !has_made_way;
                    if may_help && self.make_way(listener) {
                        has_made_way = true;
                        continue;
                    }
                    self.rest_accepting();
                    self.resting.store(true, Ordering::Release);
                    return;
                }
            }
        }
    }

    /// Whether a connection waits at a listener.
    fn is_awaited_at(&self, listener: usize) -> bool {
        let listeners = self.listeners.lock("lane.accept");
        listeners.get(listener).is_some_and(|at| at.is_pending())
    }

    /// Without descriptors: true where a connection that has been idle for long has gone for one that waits.
    fn make_way(&self, listener: usize) -> bool {
        let _one_at_a_time = self.making_room.lock("lane.evict");
        self.is_awaited_at(listener) && self.evict(EXHAUSTED_IDLE)
    }

    /// At the most connections there may be: true where one that is idle could go for one that waits.
    fn make_room_for_one(&self, listener: usize) -> bool {
        // Several threads may be told of the one that waits: only one connection goes for it.
        let _one_at_a_time = self.making_room.lock("lane.evict");
        if self.open.load(Ordering::Acquire) < self.shape.connections_max {
            return true;
        }
        if !self.is_awaited_at(listener) {
            return false;
        }
        if self.evict(Duration::ZERO) {
            return true;
        }
        self.counters.count(Counter::AcceptsRefused);
        self.rest_accepting();
        // None is idle now; one may be soon, without closing.
        self.resting.store(true, Ordering::Release);
        // A connection that closed meanwhile may have woken the listener before it was laid to rest.
        fence(Ordering::SeqCst);
        if self.open.load(Ordering::SeqCst) < self.shape.connections_max {
            self.resume_accepting();
        }
        false
    }

    /// Takes a connection into the table, and watches it. False: it could not be.
    pub(crate) fn admit(
        &self,
        stream: Arc<dyn Stream>,
        bidirectional: Option<&Arc<Bidirectional>>,
    ) -> bool {
        let connection = Connection {
            stream,
            inbound: Claim::new(Inbound::new(
                self.shape.sizes.message_max,
                Some(Arc::clone(&self.inbound_budget)),
            )),
            begun: AtomicU64::new(0),
            signalled: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            read_out: AtomicBool::new(false),
            adopted: AtomicBool::new(false),
            streak: AtomicUsize::new(0),
            chars: AtomicU8::new(0),
            writing: Claim::new(()),
            held_up: AtomicBool::new(false),
            handed_over: AtomicBool::new(false),
            outbound: PiMutex::new(Outbound::new(Arc::clone(&self.outbound_budget))),
            owed_since: AtomicU64::new(0),
            serving: AtomicUsize::new(0),
            has_brought: AtomicBool::new(false),
            parted: AtomicBool::new(false),
            parked: AtomicBool::new(false),
            used: AtomicU64::new(self.transport.now_coarse().0),
            token: AtomicU64::new(0),
            number: self.trace.next_connection(),
            bidirectional: bidirectional
                .cloned()
                .map_or_else(OnceLock::new, OnceLock::from),
        };
        let Ok(key) = self.connections.insert(connection) else {
            self.counters.count(Counter::AcceptsExhausted);
            return false;
        };
        match bidirectional {
            Some(bidirectional) => bidirectional.set_key(key),
            None => self.counters.count(Counter::ConnectionsAccepted),
        }
        self.open.fetch_add(1, Ordering::AcqRel);
        let Some(connection) = self.connections.pin(key) else {
            return false;
        };
        connection.token.store(token_of(key), Ordering::Relaxed);
        // SYNC: pairs with the fence in `drain`: it finds the connection in the table, or we find the lane closing.
        fence(Ordering::SeqCst);
        if self.closing.load(Ordering::SeqCst) {
            self.close(key, &connection);
            return false;
        }
        if self.trace.is_on() {
            let peer = connection.stream.peer();
            let side = if bidirectional.is_some() {
                Side::Client
            } else {
                Side::Server
            };
            let number = connection.number;
            self.trace.opened(number, side, &peer, Duration::ZERO);
        }
        let source = connection.stream.source();
        let watched = self.poller.watch(source, token_of(key), Interest::Arrival);
        if watched.is_err() {
            self.close(key, &connection);
        }
        watched.is_ok()
    }

    fn rest_accepting(&self) {
        for (listener, token) in self
            .listeners
            .lock("lane.listeners")
            .iter()
            .zip(LISTENERS..)
        {
            self.poller
                .rewatch(listener.source(), token, Interest::Nothing);
        }
    }

    pub(crate) fn resume_accepting(&self) {
        self.resting.store(false, Ordering::Release);
        for (listener, token) in self
            .listeners
            .lock("lane.listeners")
            .iter()
            .zip(LISTENERS..)
        {
            self.poller
                .rewatch(listener.source(), token, Interest::Pending);
        }
    }
}
