//! Requests that have come before their start (CORBA 3.3 part 1, clause 17.2.4.1): put aside, so that no thread waits for them, and
//! served by a thread of the lane when their time has come.
//!
//! A start is a request's own: what comes behind it on its connection does not wait for it. One-ways of one connection that have been put
//! aside are served one after the other, by their starts, and those of one start as they came.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use deckwatch_cdr::Divided;
use deckwatch_giop::Request;
use deckwatch_sync::{PiMutex, PiMutexGuard, SlotKey};

use crate::connection::Arrived;
use crate::connection::Connection;
use crate::counters::Counter;
use crate::lane::Lane;
use crate::lane::waiting::{Behind, Waiting};
use crate::limits::{EARLY_REQUESTS_MAX, EARLY_REQUESTS_SIZE_MAX};
use crate::transport::Instant64;
use crate::{Completion, SystemException, minor, raise};

/// What a lane has put aside.
pub(crate) struct EarlyRequests {
    list: PiMutex<List>,
    /// When the next of them may be served, read without the lock; [`NEVER`]: nothing waits for its time.
    next: AtomicU64,
}

const NEVER: u64 = u64::MAX;

struct List {
    /// By their starts, and those of one start as they came.
    requests: Vec<Early>,
    /// Octets of all.
    size: usize,
    /// The number of the next.
    number: u64,
}

struct Early {
    start: Instant64,
    number: u64,
    key: SlotKey,
    /// Its number on its connection.
    id: u32,
    /// A one-way, behind which others of its connection wait that have been put aside.
    is_oneway: bool,
    size: usize,
    /// None while it is served.
    arrived: Option<Arrived>,
}

/// One whose time has come.
struct Due {
    number: u64,
    waiting: Waiting,
}

impl List {
    const fn has_room(&self, size: usize) -> bool {
        self.requests.len() < EARLY_REQUESTS_MAX && self.size + size <= EARLY_REQUESTS_SIZE_MAX
    }

    /// The first that nothing holds up but its start.
    fn first(&self) -> Option<usize> {
        let is_behind = |index: usize, early: &Early| {
            let mut before = self.requests[..index].iter();
            early.is_oneway
                && before.any(|other| {
                    other.key == early.key && other.is_oneway && other.arrived.is_none()
                })
        };
        let mut all = self.requests.iter().enumerate();
        let found = all.find(|(index, early)| early.arrived.is_some() && !is_behind(*index, early));
        found.map(|(index, _)| index)
    }

    fn remove(&mut self, index: usize) -> Early {
        let early = self.requests.remove(index);
        self.size -= early.size;
        early
    }
}

impl EarlyRequests {
    pub(crate) const fn new() -> Self {
        Self {
            list: PiMutex::new(List {
                requests: Vec::new(),
                size: 0,
                number: 0,
            }),
            next: AtomicU64::new(NEVER),
        }
    }

    /// Takes the memory for as many as may wait.
    pub(crate) fn reserve(&self, count: usize) {
        let mut list = self.list.lock("lane.early");
        list.requests.reserve_exact(count);
    }

    /// When the next one may be served, if any waits for its time.
    #[inline]
    pub(crate) fn next(&self) -> Option<Instant64> {
        // SYNC: pairs with the store in `note_next`: who is about to wait has been counted before it looks here.
        let next = self.next.load(Ordering::SeqCst);
        (next != NEVER).then_some(Instant64(next))
    }

    fn note_next(&self, list: &PiMutexGuard<'_, List>) {
        let first = list.first();
        let next = first.map_or(NEVER, |first| list.requests[first].start.0.min(NEVER - 1));
        self.next.store(next, Ordering::SeqCst);
    }

    fn push(&self, mut early: Early) -> Result<(), Early> {
        let mut list = self.list.lock("lane.early");
        if !list.has_room(early.size) {
            return Err(early);
        }
        early.number = list.number;
        list.number += 1;
        list.size += early.size;
        let place = list
            .requests
            .partition_point(|other| other.start <= early.start);
        list.requests.insert(place, early);
        self.note_next(&list);
        Ok(())
    }

    fn take_due(&self, now: Instant64) -> Option<Due> {
        let mut list = self.list.lock("lane.early");
        let first = list.first()?;
        let early = list.requests.get_mut(first)?;
        if early.start > now {
            return None;
        }
        let due = Due {
            number: early.number,
            waiting: Waiting {
                key: early.key,
                arrived: early.arrived.take()?,
                behind: Behind::Nothing,
            },
        };
        self.note_next(&list);
        Some(due)
    }

    fn forget_served(&self, number: u64) {
        let mut list = self.list.lock("lane.early");
        let mut all = list.requests.iter();
        if let Some(place) = all.position(|early| early.number == number) {
            list.remove(place);
        }
        self.note_next(&list);
    }

    /// Takes out one that is not served yet and is as asked.
    fn take(&self, is_it: impl Fn(&Early) -> bool) -> Option<Waiting> {
        let mut list = self.list.lock("lane.early");
        let is_it = |early: &Early| early.arrived.is_some() && is_it(early);
        let place = list.requests.iter().position(is_it)?;
        let early = list.remove(place);
        self.note_next(&list);
        Some(Waiting {
            key: early.key,
            arrived: early.arrived?,
            behind: Behind::Nothing,
        })
    }
}

impl Lane {
    /// Puts a request aside until its start; its connection counts it as being served.
    ///
    /// # Errors
    /// TRANSIENT where as many wait as may.
    #[cold]
    pub(crate) fn put_aside(
        &self,
        connection: &Connection,
        message: &Divided<'_>,
        request: &Request<'_>,
        start: Instant64,
    ) -> Result<(), SystemException> {
        let size = message.octets().len();
        let cannot = || {
            self.counters.count(Counter::RequestsDiscarded);
            raise::transient(minor::REQUEST_DISCARDED, Completion::No)
        };
        if !self.early.list.lock("lane.early").has_room(size) {
            return Err(cannot());
        }
        let mut buffer = self.slab.lend_empty();
        buffer.reserve(message.octets().len() + 1);
        buffer.extend_from_slice(message.octets());
        let mut arrived = Arrived::at_start(buffer, size);
        arrived.ends.extend_from_slice(message.ends());
        connection.serving.fetch_add(1, Ordering::SeqCst);
        let early = Early {
            start,
            number: 0,
            key: connection.key(),
            id: request.id,
            is_oneway: !request.response.is_expected(),
            size,
            arrived: Some(arrived),
        };
        if let Err(early) = self.early.push(early) {
            connection.serving.fetch_sub(1, Ordering::SeqCst);
            if let Some(arrived) = early.arrived {
                self.slab.take_back(arrived.buffer);
            }
            return Err(cannot());
        }
        self.counters.count(Counter::RequestsEarly);
        // SYNC: pairs with the swap in `close_entrance`: what is put aside behind the last look is given up here.
        if self.closing.load(Ordering::SeqCst) {
            self.discard_early();
        } else if self.waiting.load(Ordering::SeqCst) != 0 {
            // Whoever waits may wait for longer.
            self.poller.wake();
        }
        Ok(())
    }

    /// Serves a request whose start has come. False: there is none.
    #[inline]
    pub(crate) fn serve_early(self: &Arc<Self>) -> bool {
        match self.early.next() {
            None => false,
            Some(next) => self.serve_due(next),
        }
    }

    #[cold]
    fn serve_due(self: &Arc<Self>, next: Instant64) -> bool {
        let now = self.transport.now();
        if now < next {
            return false;
        }
        let Some(due) = self.early.take_due(now) else {
            return false;
        };
        self.keep_watch();
        if self.waiting.load(Ordering::SeqCst) != 0 {
            // Another is to wait for the next start while this one is served.
            self.poller.wake();
        }
        let busy = self.note_busy();
        self.serve_waited(due.waiting);
        drop(busy);
        self.early.forget_served(due.number);
        true
    }

    /// Whether a request that was put aside may be served now.
    pub(crate) fn has_due(&self) -> bool {
        let next = self.early.next();
        next.is_some_and(|next| next <= self.transport.now())
    }

    /// Nobody waits for a request any more: if it was put aside it is not served, nor answered.
    pub(crate) fn cancel_early(&self, connection: &Connection, id: u32) {
        if self.early.next().is_none() {
            return;
        }
        let of = connection.key();
        let is_it = |early: &Early| early.key == of && early.id == id && !early.is_oneway;
        if let Some(waiting) = self.early.take(is_it) {
            self.counters.count(Counter::RequestsDiscarded);
            let _of_no_line = self.finish(connection, waiting);
        }
    }

    /// The connection has ended: nobody waits for what came over it.
    pub(crate) fn forget_early(&self, of: SlotKey) {
        if self.early.next().is_none() {
            return;
        }
        while let Some(waiting) = self.early.take(|early| early.key == of) {
            self.counters.count(Counter::RequestsDiscarded);
            self.slab.take_back(waiting.arrived.buffer);
        }
    }

    /// At the end: what has not begun is not served, and its callers are told so by the farewell.
    pub(crate) fn discard_early(&self) {
        while let Some(waiting) = self.early.take(|_| true) {
            self.counters.count(Counter::RequestsDiscarded);
            match self.connections.pin(waiting.key) {
                Some(connection) => drop(self.finish(&connection, waiting)),
                None => self.slab.take_back(waiting.arrived.buffer),
            }
        }
    }
}
