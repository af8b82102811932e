//! A connection that carries the requests of all outlets of one endpoint and priority.
//!
//! The thread that offers an event writes it, under the connection's lock and without waiting. Events for which the
//! socket has no room stay in the outlets' queues; the I/O thread writes them later. The I/O thread alone reads
//! replies.
//!
//! Locks: a connection's lock is taken before that of an outlet, never the other way round.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use deckwatch_sync::{PiMutex, SlotKey};

use super::batch::Batch;
use super::flights::{Flight, Flights};
use super::outlet::{Outcome, Outlet};
use super::worker::Worker;
use super::writing::{Lost, Writing};
use crate::connection::inbound::Inbound;
use crate::counters::Counter;
use crate::limits::CONNECT_TIMEOUT;
use crate::origin::Origin;
use crate::trace::{CallNumber, Side};
use crate::transport::{Endpoint, Instant64, Interest, Stream, StreamOptions, TransportError};

/// What distinguishes connections of one priority.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Peer {
    /// The addresses of one server, most preferred first, and the options of connections to them.
    pub(super) addresses: Box<[(Endpoint, StreamOptions)]>,
    /// The code sets that the server is told with the first request.
    pub(super) code_sets: Option<[u8; 12]>,
    /// Which receivers use it: addresses of other origins may be checked otherwise.
    pub(super) origin: Origin,
}

/// A connection, open or to be opened when something is to be written.
pub(super) struct Connection {
    pub(super) worker: Arc<Worker>,
    pub(super) peer: Peer,
    pub(super) key: OnceLock<SlotKey>,
    /// How many outlets use it; changed under the lock of the worker's peers.
    pub(super) users: AtomicUsize,
    /// It has something that may be overdue.
    is_busy: AtomicBool,
    pub(super) sending: PiMutex<Sending>,
    pub(super) inbound: PiMutex<Inbound>,
}

#[derive(Default)]
pub(super) struct Sending {
    pub(super) stream: Option<Arc<dyn Stream>>,
    /// Number in the trace.
    pub(super) number: u32,
    link: Link,
    /// Which of the peer's addresses is in use.
    address: usize,
    /// The I/O thread will look at the connection: to open it, or because it has failed.
    is_noticed: bool,
    failure: Option<TransportError>,
    pub(super) code_sets_sent: bool,
    awaits_room: bool,
    /// Since when a check has found that the peer takes nothing of what is being written.
    pub(super) stuck_since: Option<Instant64>,
    /// Outlets with something to write, in turn.
    pub(super) ready: VecDeque<Arc<Outlet>>,
    pub(super) writing: Writing,
    pub(super) flights: Flights,
    /// Replies in a row to no request that is under way.
    pub(super) strays: usize,
}

impl Sending {
    fn has_something_to_write(&self) -> bool {
        !self.ready.is_empty() || !self.writing.is_empty()
    }

    /// Drops the requests under way and what is being written. Returns the lost requests.
    fn abandon(&mut self) -> Vec<Lost> {
        let mut lost = self.writing.abandon();
        let lose = |flight: Flight| {
            if !flight.is_question() {
                lost.push(Lost {
                    outlet: flight.outlet,
                    is_farewell: false,
                });
            }
        };
        self.flights.end_where(|_| true, lose);
        lost
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Link {
    #[default]
    Closed,
    /// The I/O thread is opening it.
    Opening,
    /// Since then; nothing has been written or read yet.
    Unproven(Instant64),
    Open,
}

/// The bit by which a token for room differs: no table has so many slots.
const ROOM: u64 = 1 << 31;

impl Connection {
    pub(super) fn new(worker: &Arc<Worker>, peer: Peer) -> Self {
        Self {
            peer,
            key: OnceLock::new(),
            users: AtomicUsize::new(0),
            is_busy: AtomicBool::new(false),
            sending: PiMutex::default(),
            inbound: PiMutex::new(Inbound::new(worker.calls.client.sizes.message_max, None)),
            worker: Arc::clone(worker),
        }
    }

    pub(super) fn token(&self) -> u64 {
        self.key.get().map_or(0, |key| {
            u64::from(key.generation) << 32 | u64::from(key.slot)
        })
    }

    /// The key in a token, and whether it is about room.
    pub(super) const fn parse_token(token: u64) -> (SlotKey, bool) {
        let slot = (token & (ROOM - 1)) as u32;
        let generation = (token >> 32) as u32;
        (SlotKey { slot, generation }, token & ROOM != 0)
    }

    /// Something may be overdue from now on.
    pub(super) fn note_busy(&self) {
        if !self.is_busy.load(Ordering::Relaxed) {
            self.is_busy.store(true, Ordering::Relaxed);
        }
    }

    /// The outlet has something to write. It is written at once, unless a batch collects it with what other outlets of
    /// the connection write.
    pub(super) fn add_ready(self: &Arc<Self>, outlet: &Arc<Outlet>, batch: Option<&mut Batch>) {
        if outlet.by_calls.load(Ordering::Relaxed) {
            return outlet.post_call();
        }
        let batch = batch.filter(|_| self.users.load(Ordering::Relaxed) > 1);
        let mut sending = self.sending.lock("delivery.ready");
        sending.ready.push_back(Arc::clone(outlet));
        let Some(batch) = batch else {
            return self.flush_in(&mut sending);
        };
        drop(sending);
        batch.note(self);
    }

    /// Writes what is ready, as far as there is room.
    pub(super) fn flush(self: &Arc<Self>) {
        self.flush_in(&mut self.sending.lock("delivery.flush"));
    }

    pub(super) fn flush_in(self: &Arc<Self>, sending: &mut Sending) {
        loop {
            let Some(stream) = sending.stream.clone().filter(|_| !sending.awaits_room) else {
                if sending.has_something_to_write() && sending.link == Link::Closed {
                    self.notice(sending);
                }
                return;
            };
            if sending.writing.is_empty() && !self.fill(sending) {
                return;
            }
            let written = self.write(sending, &*stream);
            if matches!(written, Ok(count) if count != 0) {
                sending.link = Link::Open;
            }
            match written {
                Ok(_) if sending.writing.is_empty() => {}
                Ok(_) => return self.watch_room(sending),
                Err(error) => {
                    sending.failure = Some(error);
                    sending.awaits_room = true;
                    return self.notice(sending);
                }
            }
        }
    }

    /// Has the I/O thread look at it.
    fn notice(self: &Arc<Self>, sending: &mut Sending) {
        if !sending.is_noticed {
            sending.is_noticed = true;
            self.worker.notice(self);
        }
    }

    fn watch_room(self: &Arc<Self>, sending: &mut Sending) {
        let Some(stream) = &sending.stream else {
            return;
        };
        let watched = self
            .worker
            .poller
            .watch_room(stream.source(), self.token() | ROOM);
        sending.awaits_room = true;
        self.note_busy();
        if watched.is_err() {
            sending.failure = Some(TransportError::Exhausted);
            self.notice(sending);
        }
    }

    /// The I/O thread: opens it, or has it opened, or cleans up after a failure.
    pub(super) fn attend(self: &Arc<Self>) {
        let mut sending = self.sending.lock("delivery.attend");
        sending.is_noticed = false;
        if let Some(failure) = sending.failure.take() {
            self.fail_in(&mut sending, failure);
        }
        if sending.link != Link::Closed || !sending.has_something_to_write() {
            return;
        }
        sending.link = Link::Opening;
        let (endpoint, _) = &self.peer.addresses[sending.address];
        drop(sending);
        if endpoint.connects_at_once() || self.worker.calls.is_turned_by_hand() {
            self.open();
        } else {
            self.worker.openers.post(self);
        }
    }

    /// Begins to connect, if it is closed.
    pub(super) fn open_first(self: &Arc<Self>) {
        let mut sending = self.sending.lock("delivery.open");
        if sending.link == Link::Closed {
            sending.link = Link::Opening;
            drop(sending);
            // The caller may be a thread that serves: it waits for no name.
            if self.needs_resolver() && !self.worker.calls.is_turned_by_hand() {
                self.worker.openers.post(self);
            } else {
                self.open();
            }
        }
    }

    /// Whether to open it resolves a host name.
    pub(super) fn needs_resolver(&self) -> bool {
        let address = self.sending.lock("delivery.address").address;
        self.peer.addresses[address].0.needs_resolver()
    }

    /// Begins to connect. Without the lock, because to resolve a name takes time.
    pub(super) fn open(self: &Arc<Self>) {
        let client = &self.worker.calls.client;
        let address = self.sending.lock("delivery.open").address;
        let (endpoint, options) = &self.peer.addresses[address];
        let begun = client.trace.begin();
        let within = client.transport.now().after(CONNECT_TIMEOUT);
        let connected = client.begin_connect(self.peer.origin, endpoint, options, within);
        let waited = client.trace.since(begun);
        let mut sending = self.sending.lock("delivery.opened");
        if self.worker.is_closed() || self.users.load(Ordering::Relaxed) == 0 {
            // It was released in the meantime.
            return;
        }
        let stream: Arc<dyn Stream> = match connected {
            Ok(stream) => stream.into(),
            Err(error) => {
                client
                    .trace
                    .not_opened(CallNumber::default(), endpoint, error, waited);
                sending.link = Link::Unproven(client.transport.now());
                sending.failure = Some(error);
                return self.notice(&mut sending);
            }
        };
        client.counters.count(Counter::ConnectionsMade);
        sending.number = client.trace.next_connection();
        client
            .trace
            .opened(sending.number, Side::Client, endpoint, waited);
        let watched = self
            .worker
            .poller
            .watch(stream.source(), self.token(), Interest::Arrival);
        sending.stream = Some(stream);
        sending.link = Link::Unproven(client.transport.now());
        sending.code_sets_sent = false;
        self.note_busy();
        match watched {
            Ok(()) => self.watch_room(&mut sending),
            Err(error) => {
                sending.failure = Some(error);
                self.notice(&mut sending);
            }
        }
    }

    /// The poller has reported room to write.
    pub(super) fn handle_room(self: &Arc<Self>) {
        let mut sending = self.sending.lock("delivery.room");
        if let Some(stream) = &sending.stream
            && sending.awaits_room
            && sending.failure.is_none()
        {
            self.worker.poller.forget_room(stream.source());
            sending.awaits_room = false;
            self.flush_in(&mut sending);
        }
    }

    /// The stream and its number in the trace.
    pub(super) fn stream(&self) -> Option<(Arc<dyn Stream>, u32)> {
        let sending = self.sending.lock("delivery.stream");
        Some((sending.stream.clone()?, sending.number))
    }

    /// The connection has ended, or could not be made.
    pub(super) fn fail(self: &Arc<Self>, error: TransportError) {
        self.fail_in(&mut self.sending.lock("delivery.fail"), error);
        self.attend();
    }

    fn fail_in(self: &Arc<Self>, sending: &mut Sending, error: TransportError) {
        let client = &self.worker.calls.client;
        self.cut(sending);
        let was_reached = sending.link == Link::Open || error == TransportError::Broken;
        sending.link = Link::Closed;
        if !was_reached {
            client.counters.count(Counter::ConnectFailures);
            sending.address += 1;
            if sending.address < self.peer.addresses.len() && error != TransportError::Exhausted {
                return;
            }
        }
        sending.address = 0;
        let mut lost = sending.abandon();
        self.settle_lost(sending, &mut lost);
        if !was_reached {
            for outlet in std::mem::take(&mut sending.ready) {
                let has_failed = lost
                    .binary_search_by_key(&Arc::as_ptr(&outlet), |lost| Arc::as_ptr(&lost.outlet))
                    .is_ok();
                if has_failed {
                    sending.ready.push_back(outlet);
                } else {
                    let next = outlet.fail_next();
                    self.go_on(sending, &outlet, next);
                }
            }
        }
    }

    /// All of these requests have failed, by one incident: it is one failure of each outlet. Sorts them by outlet.
    fn settle_lost(&self, sending: &mut Sending, lost: &mut [Lost]) {
        lost.sort_by_key(|lost| Arc::as_ptr(&lost.outlet));
        for of_one in lost.chunk_by(|a, b| Arc::ptr_eq(&a.outlet, &b.outlet)) {
            for (index, lost) in of_one.iter().enumerate() {
                let outcome = match index {
                    _ if lost.is_farewell => Outcome::Parted,
                    0 => Outcome::Failed,
                    _ => Outcome::Blameless,
                };
                self.settle_in(sending, &lost.outlet, outcome);
            }
        }
    }

    /// The engine closes: what is under way is lost.
    pub(super) fn close(&self) {
        let mut sending = self.sending.lock("delivery.close");
        self.cut(&mut sending);
        let mut dropped = std::mem::take(&mut *sending);
        drop(sending);
        for lost in dropped.abandon() {
            let outcome = if lost.is_farewell {
                Outcome::Parted
            } else {
                Outcome::Failed
            };
            // It has ended.
            let _ = lost.outlet.settle(outcome, None);
        }
    }

    /// Closes the stream.
    pub(super) fn cut(&self, sending: &mut Sending) {
        let poller = &self.worker.poller;
        if let Some(stream) = sending.stream.take() {
            if std::mem::take(&mut sending.awaits_room) {
                poller.forget_room(stream.source());
            }
            poller.forget(stream.source());
            stream.shutdown();
            self.worker.calls.client.trace.closed(sending.number);
        }
        sending.awaits_room = false;
        sending.stuck_since = None;
    }

    /// One request of an outlet has ended.
    pub(super) fn settle_in(&self, sending: &mut Sending, outlet: &Arc<Outlet>, outcome: Outcome) {
        let settled = outlet.settle(outcome, None);
        self.go_on(sending, outlet, settled);
    }

    /// A two-way request has ended.
    pub(super) fn settle_flight(&self, sending: &mut Sending, flight: Flight, outcome: Outcome) {
        let settled = if flight.is_question() {
            flight.outlet.settle_answer(outcome)
        } else {
            flight.outlet.settle(outcome, flight.event)
        };
        self.go_on(sending, &flight.outlet, settled);
    }

    fn go_on(
        &self,
        sending: &mut Sending,
        outlet: &Arc<Outlet>,
        settled: Result<bool, super::End>,
    ) {
        match settled {
            Ok(false) => {}
            Ok(true) if outlet.by_calls.load(Ordering::Relaxed) => outlet.post_call(),
            Ok(true) => sending.ready.push_back(Arc::clone(outlet)),
            Err(end) => self.worker.tell(outlet, end),
        }
    }

    /// Has nothing more sent for an outlet that has ended. Its requests under way are counted as they end.
    pub(super) fn forget(&self, outlet: &Arc<Outlet>) {
        let mut sending = self.sending.lock("delivery.forget");
        sending.ready.retain(|ready| !Arc::ptr_eq(ready, outlet));
        let is_its = |flight: &Flight| Arc::ptr_eq(&flight.outlet, outlet);
        sending.flights.drop_events(is_its);
    }

    /// Drops what it holds of the event with this number: the copy of a request under way, else what is being written,
    /// with the connection.
    pub(super) fn give_up(self: &Arc<Self>, number: u64) {
        let mut sending = self.sending.lock("delivery.evict");
        let is_it =
            |flight: &Flight| (flight.event.as_ref()).is_some_and(|event| event.number() == number);
        sending.flights.drop_events(is_it);
        if sending.writing.oldest() != Some(number) {
            return;
        }
        let mut lost = sending.writing.abandon();
        sending.failure = Some(TransportError::Broken);
        sending.awaits_room = true;
        self.settle_lost(&mut sending, &mut lost);
        self.notice(&mut sending);
    }

    /// The number of the oldest event that it holds.
    pub(super) fn oldest(&self) -> Option<u64> {
        let sending = self.sending.lock("delivery.oldest");
        let numbers = sending.writing.oldest().into_iter();
        numbers.chain(sending.flights.oldest()).min()
    }

    /// Ends what is overdue.
    pub(super) fn check(self: &Arc<Self>, now: Instant64) {
        if !self.is_busy.load(Ordering::Relaxed) {
            return;
        }
        let mut sending = self.sending.lock("delivery.check");
        let mut late = Vec::new();
        let limit = self.worker.reply_timeout;
        sending
            .flights
            .end_late(now, limit, |flight| late.push(flight));
        for flight in late {
            // A receiver of one-ways may take its time.
            let outcome = if flight.is_question() || !flight.outlet.is_failure(flight.since, now) {
                Outcome::Blameless
            } else {
                Outcome::Failed
            };
            self.settle_flight(&mut sending, flight, outcome);
        }
        let is_unmade = |since: Instant64| now.since(since) >= CONNECT_TIMEOUT;
        if let Link::Unproven(since) = sending.link
            && sending.awaits_room
            && is_unmade(since)
        {
            sending.failure = Some(TransportError::TimedOut);
            self.notice(&mut sending);
        }
        if sending.link == Link::Open
            && sending.awaits_room
            && sending.failure.is_none()
            && now.since(*sending.stuck_since.get_or_insert(now)) >= limit
        {
            sending.failure = Some(TransportError::TimedOut);
            self.notice(&mut sending);
        }
        self.flush_in(&mut sending);
        let is_unproven = matches!(sending.link, Link::Unproven(_)) && sending.awaits_room;
        let is_busy = !sending.flights.is_empty() || !sending.writing.is_empty() || is_unproven;
        self.is_busy.store(is_busy, Ordering::Relaxed);
    }
}
