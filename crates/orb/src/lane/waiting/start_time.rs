//! Requests that arrived before their start time (CORBA 3.3 part 1, clause 17.2.4.1). They are set aside, so that no
//! thread waits for them, and served by a thread of the lane at their start.
//!
//! A start time is a request's own: requests behind it on its connection do not wait for it. One-ways of one connection
//! that were set aside are served one after the other, ordered by start time, then by arrival.

use std::sync::atomic::{AtomicU64, Ordering};

use deckwatch_cdr::Divided;
use deckwatch_giop::Request;
use deckwatch_sync::{PiMutex, PiMutexGuard, SlotKey};

use super::room::{Behind, WaitingRequest};
use crate::accounts::Own;
use crate::connection::{Arrived, Connection};
use crate::limits::{EARLY_REQUESTS_MAX, EARLY_REQUESTS_SIZE_MAX};
use crate::peers::Peer;
use crate::slab::Slab;
use crate::transport::Instant64;

/// The requests of a lane that wait for their start time.
pub(super) struct EarlyRequests {
    list: PiMutex<List>,
    /// The start of the next one, read without the lock; [`NEVER`]: there is none.
    next: AtomicU64,
}

const NEVER: u64 = u64::MAX;

struct List {
    /// Ordered by start time, then by arrival.
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
    peer: Peer,
    /// Its request id.
    id: u32,
    /// A one-way: other one-ways of its connection that were set aside wait behind it.
    is_oneway: bool,
    size: usize,
    /// `None` while it is served.
    arrived: Option<Arrived>,
}

/// A request whose start has come.
pub(super) struct Due {
    pub(super) number: u64,
    pub(super) waiting: WaitingRequest,
}

impl List {
    /// Whether there is room for another request of a peer, and the peer then leaves as much free as it holds.
    fn has_room(&self, size: usize, peer: Peer) -> bool {
        let requests_free = EARLY_REQUESTS_MAX.checked_sub(self.requests.len() + 1);
        let octets_free = EARLY_REQUESTS_SIZE_MAX.checked_sub(self.size + size);
        let (Some(requests_free), Some(octets_free)) = (requests_free, octets_free) else {
            return false;
        };
        let mut own = Own {
            requests: 1,
            octets: size,
        };
        for early in self.requests.iter().filter(|early| early.peer == peer) {
            own.requests += 1;
            own.octets += early.size;
        }
        own.leaves(requests_free, octets_free)
    }

    /// The first that waits for nothing but its start.
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
    pub(super) const fn new() -> Self {
        Self {
            list: PiMutex::new(List {
                requests: Vec::new(),
                size: 0,
                number: 0,
            }),
            next: AtomicU64::new(NEVER),
        }
    }

    /// Allocates the memory for `count` requests.
    pub(super) fn reserve(&self, count: usize) {
        let mut list = self.list.lock("lane.early");
        list.requests.reserve_exact(count);
    }

    /// When the next one may be served, if any waits for its start.
    #[inline]
    pub(super) fn next(&self) -> Option<Instant64> {
        // SYNC: pairs with the store in `note_next`: a thread that is about to wait has been counted before it looks
        // here.
        let next = self.next.load(Ordering::SeqCst);
        (next != NEVER).then_some(Instant64(next))
    }

    fn note_next(&self, list: &PiMutexGuard<'_, List>) {
        let first = list.first();
        let next = first.map_or(NEVER, |first| list.requests[first].start.0.min(NEVER - 1));
        self.next.store(next, Ordering::SeqCst);
    }

    /// Sets a copy of a request aside; its connection counts it as in progress. Returns false if there is no room.
    pub(super) fn set_aside(
        &self,
        connection: &Connection,
        slab: &Slab,
        message: &Divided<'_>,
        request: &Request<'_>,
        start: Instant64,
    ) -> bool {
        let size = message.octets().len();
        let peer = connection.account().peer();
        if !self.list.lock("lane.early").has_room(size, peer) {
            return false;
        }
        let mut buffer = slab.lend_empty();
        if buffer.try_reserve(message.octets().len() + 1).is_err() {
            slab.take_back_written(buffer);
            return false;
        }
        buffer.extend_from_slice(message.octets());
        let mut arrived = Arrived::at_start(buffer, size);
        arrived.ends.extend_from_slice(message.ends());
        connection.begin_serving();
        let early = Early {
            start,
            number: 0,
            key: connection.key(),
            peer,
            id: request.id,
            is_oneway: !request.response.is_expected(),
            size,
            arrived: Some(arrived),
        };
        if let Some(arrived) = self.push(early).and_then(|refused| refused.arrived) {
            connection.end_serving(1);
            slab.take_back(arrived.buffer);
            return false;
        }
        true
    }

    /// Returns the request if there is no room for it.
    fn push(&self, mut early: Early) -> Option<Early> {
        let mut list = self.list.lock("lane.early");
        if !list.has_room(early.size, early.peer) {
            return Some(early);
        }
        early.number = list.number;
        list.number += 1;
        list.size += early.size;
        let place = list
            .requests
            .partition_point(|other| other.start <= early.start);
        list.requests.insert(place, early);
        self.note_next(&list);
        None
    }

    /// The next request, if its start has come. Follow with [`EarlyRequests::forget_served`].
    pub(super) fn take_due(&self, now: Instant64) -> Option<Due> {
        let mut list = self.list.lock("lane.early");
        let first = list.first()?;
        let early = list.requests.get_mut(first)?;
        if early.start > now {
            return None;
        }
        let due = Due {
            number: early.number,
            waiting: WaitingRequest {
                key: early.key,
                arrived: early.arrived.take()?,
                behind: Behind::Nothing,
            },
        };
        self.note_next(&list);
        Some(due)
    }

    pub(super) fn forget_served(&self, number: u64) {
        let mut list = self.list.lock("lane.early");
        let mut all = list.requests.iter();
        if let Some(place) = all.position(|early| early.number == number) {
            list.remove(place);
        }
        self.note_next(&list);
    }

    /// Takes out a request with this id, because its client has cancelled it.
    pub(super) fn take_cancelled(&self, of: SlotKey, id: u32) -> Option<WaitingRequest> {
        self.next()?;
        self.take(|early| early.key == of && early.id == id && !early.is_oneway)
    }

    /// Takes out a request of this connection.
    pub(super) fn take_of(&self, of: SlotKey) -> Option<WaitingRequest> {
        self.next()?;
        self.take(|early| early.key == of)
    }

    /// Takes out any request.
    pub(super) fn take_any(&self) -> Option<WaitingRequest> {
        self.take(|_| true)
    }

    /// Takes out a request that is not being served.
    fn take(&self, is_it: impl Fn(&Early) -> bool) -> Option<WaitingRequest> {
        let mut list = self.list.lock("lane.early");
        let is_it = |early: &Early| early.arrived.is_some() && is_it(early);
        let place = list.requests.iter().position(is_it)?;
        let early = list.remove(place);
        self.note_next(&list);
        Some(WaitingRequest {
            key: early.key,
            arrived: early.arrived?,
            behind: Behind::Nothing,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn early_requests_of_one_peer_leave_room_for_those_of_others() {
        let early = EarlyRequests::new();
        let request = |user, size| Early {
            start: Instant64(1),
            number: 0,
            key: crate::connection::key_of(0),
            peer: Peer::User(user),
            id: 0,
            is_oneway: false,
            size,
            arrived: None,
        };
        let push = |user, size| early.push(request(user, size)).is_none();
        assert!(push(1, EARLY_REQUESTS_SIZE_MAX / 2), "the largest message");
        assert!(!push(1, 1));
        assert!(push(2, EARLY_REQUESTS_SIZE_MAX / 2), "another peer");
        let mut list = early.list.lock("test");
        list.requests.clear();
        list.size = 0;
        drop(list);
        let taken = (0..).take_while(|_| push(1, 1)).count();
        assert_eq!(taken, EARLY_REQUESTS_MAX / 2);
        assert!(push(2, 1));
    }
}
