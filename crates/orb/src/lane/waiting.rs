//! Requests that wait within a lane:
//! * in the waiting room, for a thread ([`room`]); the keeper queues them ([`keeper`], [`admission`]);
//! * in the request queue of a bidirectional connection, behind others ([`queue`], [`queue_heads`]);
//! * for their start time ([`start_time`]).

mod admission;
mod keeper;
mod queue;
mod queue_heads;
mod room;
mod start_time;

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};

use deckwatch_cdr::Divided;
use deckwatch_giop::{Message, Request};

use super::Lane;
use super::service::Service;
use crate::accounts::{Account, Bound, Waits};
use crate::connection::{Arrived, Connection};
use crate::contexts::read;
use crate::counters::Counter;
use crate::rt::Priority;
use crate::transport::{Instant64, TransportError};
use crate::{Completion, SystemException, minor, raise};
pub(super) use keeper::Keeper;
use queue_heads::QueueHeads;
pub(crate) use room::RequestBuffers;
use room::{Behind, WaitingRequest};
pub(super) use room::{Busy, WaitingRoom};
use start_time::EarlyRequests;

/// The requests of a lane that wait, and the lanes that lend or borrow threads for them.
pub(super) struct WaitingRequests {
    /// `None` if no request may wait for a thread.
    pub(super) room: Option<Arc<WaitingRoom>>,
    /// Set in a pool with lanes that borrow.
    neighbours: OnceLock<Neighbours>,
    heads: QueueHeads,
    early: EarlyRequests,
}

/// The other lanes of a pool whose lanes may borrow threads, the highest priority first.
struct Neighbours {
    /// Lanes that this one borrows from.
    lower: Vec<Weak<Lane>>,
    /// Lanes that borrow from this one, and their waiting rooms.
    higher: Vec<(Arc<WaitingRoom>, Weak<Lane>)>,
}

impl WaitingRequests {
    pub(super) const fn new(room: Option<Arc<WaitingRoom>>) -> Self {
        Self {
            room,
            neighbours: OnceLock::new(),
            heads: QueueHeads::new(),
            early: EarlyRequests::new(),
        }
    }

    /// Requests that may wait for a thread.
    pub(super) fn capacity(&self) -> usize {
        self.room.as_ref().map_or(0, |room| room.capacity())
    }

    /// Allocates the memory for requests that wait for their start time.
    pub(super) fn reserve(&self, early_max: usize) {
        self.early.reserve(early_max);
    }

    /// When the next request may be served that waits for its start time.
    #[inline]
    pub(super) fn next_start(&self) -> Option<Instant64> {
        self.early.next()
    }

    /// Whether the head of a request queue waits for a thread.
    #[inline]
    pub(super) fn has_head(&self) -> bool {
        !self.heads.is_empty()
    }

    /// Closes the keeper's poller.
    pub(super) fn close(&self) {
        if let Some(room) = &self.room {
            room.close();
        }
    }

    /// The limits that the pool sets for requests that wait, if it sets any.
    fn limits(&self) -> Option<&RequestBuffers> {
        let room = self.room.as_deref().filter(|room| room.may_wait);
        room.map(WaitingRoom::buffers)
    }

    /// Whether no request can wait here for a thread, of this lane or of one that borrows.
    #[inline]
    fn is_absent(&self) -> bool {
        self.room.is_none() && self.neighbours.get().is_none()
    }

    fn lower(&self) -> impl Iterator<Item = Arc<Lane>> + '_ {
        let lower = self.neighbours.get().map_or(&[][..], |them| &them.lower);
        lower.iter().filter_map(Weak::upgrade)
    }

    #[inline]
    fn higher(&self) -> &[(Arc<WaitingRoom>, Weak<Lane>)] {
        self.neighbours.get().map_or(&[][..], |them| &them.higher)
    }
}

impl Lane {
    /// The calling thread serves a request until the result is dropped.
    #[inline]
    pub(super) fn note_busy(&self) -> Busy<'_> {
        Busy::new(self.waiting.room.as_deref())
    }

    /// The waiting room if the calling thread is the lane's keeper.
    #[inline]
    pub(super) fn room_kept_here(&self) -> Option<&WaitingRoom> {
        let room = self.waiting.room.as_deref()?;
        keeper::keeps(self).then_some(room)
    }

    /// Has the keeper's poller watch the lane's.
    pub(super) fn prepare_keeper(&self) -> Result<(), TransportError> {
        match (&self.waiting.room, self.io.poller.source()) {
            (Some(room), Some(source)) => room.watch(source),
            _ => Ok(()),
        }
    }

    /// Sets which lanes of its pool lend it threads, and which borrow its own.
    pub(crate) fn set_neighbours(&self, pool: &[Arc<Self>]) {
        let mut pool: Vec<_> = pool.iter().collect();
        pool.sort_by_key(|lane| std::cmp::Reverse(lane.id.priority));
        let mine = self.id.priority;
        let (higher, others): (Vec<_>, Vec<_>) =
            pool.into_iter().partition(|lane| lane.id.priority > mine);
        let lower = others.into_iter().filter(|lane| lane.id.priority < mine);
        let room = |lane: &Arc<Self>| {
            let room = Arc::clone(lane.waiting.room.as_ref()?);
            Some((room, Arc::downgrade(lane)))
        };
        let neighbours = Neighbours {
            lower: lower.map(Arc::downgrade).collect(),
            higher: higher.into_iter().filter_map(room).collect(),
        };
        // A pool is set up once.
        let _ = self.waiting.neighbours.set(neighbours);
    }

    /// Arms the keeper if no thread waits in the poller, and disarms it otherwise.
    pub(super) fn settle_keeper(&self, room: &WaitingRoom) {
        if let Some(source) = self.io.poller.source() {
            let is_alone = || !self.threads.is_one_waiting();
            room.settle(source, is_alone, || self.threads.has_adopted());
        }
    }

    /// Whether the keeper may read a request.
    fn may_keeper_read(&self, room: &WaitingRoom) -> bool {
        let to_borrow = || {
            self.waiting
                .lower()
                .map(|lane| lane.threads.waiting())
                .sum()
        };
        room.may_wait || room.len() < to_borrow()
    }

    /// A request has been queued: wakes a thread of this lane, or of the highest lower lane that has one to lend.
    fn wake_for_waiting(&self) {
        // SYNC: pairs with `has_waiting`: a thread that is about to wait has been counted before it looks.
        if self.threads.is_one_waiting() {
            return self.io.poller.wake();
        }
        let mut lower = self.waiting.lower();
        if let Some(lender) = lower.find(|lane| lane.threads.is_one_waiting()) {
            lender.io.poller.wake();
        }
    }

    /// Called behind every request that is queued: discards it if the lane has closed meanwhile, else wakes a thread.
    fn handle_queued(&self) {
        // SYNC: pairs with the swap in `close_entrance`: a request queued after the final drain is discarded here.
        if self.closing.load(Ordering::SeqCst) {
            return self.discard_waiting();
        }
        self.wake_for_waiting();
    }

    /// Called by a thread that has been counted as waiting: whether requests are queued, so that it must not block.
    /// Wakes the keepers of higher lanes that may borrow it.
    #[inline]
    pub(super) fn has_waiting(&self) -> bool {
        if self.waiting.is_absent() {
            return false;
        }
        if let Some(room) = &self.waiting.room {
            room.end_starving();
            if room.is_armed() {
                self.settle_keeper(room);
            }
        }
        let higher = self.waiting.higher();
        for (room, lane) in higher {
            // SYNC: pairs with `Keeper::is_starving`.
            if room.take_starving()
                && let Some(lane) = lane.upgrade()
            {
                lane.settle_keeper(room);
            }
        }
        let own = self.waiting.room.iter();
        let mut rooms = higher.iter().map(|(room, _)| room).chain(own);
        rooms.any(|room| !room.is_empty())
    }

    /// Serves a request that waits for a thread, of a higher lane that borrows or of this one. Returns false if there
    /// is none.
    #[inline]
    pub(super) fn serve_waiting(&self) -> bool {
        if self.waiting.is_absent() {
            return false;
        }
        for (room, lane) in self.waiting.higher() {
            if let Some(waiting) = room.pop()
                && let Some(lane) = lane.upgrade()
            {
                self.keep_watch();
                self.io.count(Counter::ThreadsBorrowed);
                let _busy = self.note_busy();
                let _at_its_priority = lane.lend_priority();
                lane.serve_waited(waiting);
                return true;
            }
        }
        let Some(room) = &self.waiting.room else {
            return false;
        };
        // Under load the room is never empty: heads of queues that found no place in it take turns with it.
        if !room.is_empty() && self.waiting.heads.take_turn() && self.serve_head() {
            return true;
        }
        let Some(waiting) = room.pop() else {
            return false;
        };
        self.keep_watch();
        let _busy = self.note_busy();
        self.serve_waited(waiting);
        true
    }

    /// Serves the head of a request queue that waits for a thread. Returns false if there is none.
    #[inline]
    pub(super) fn serve_head(&self) -> bool {
        let Some(head) = self.take_head() else {
            return false;
        };
        self.keep_watch();
        let _busy = self.note_busy();
        self.serve_waited(head);
        true
    }

    /// Takes out the head of a request queue, which no longer counts in the limits.
    #[inline]
    fn take_head(&self) -> Option<WaitingRequest> {
        let head = self.waiting.heads.pop()?;
        self.give_queued(head.arrived.size());
        Some(head)
    }

    fn serve_waited(&self, waiting: WaitingRequest) {
        match self.connections.pin(waiting.key) {
            None => self.io.slab.take_back(waiting.arrived.buffer),
            Some(connection) => {
                let service = Service::new(self, &connection);
                if service.serve_queue(waiting).is_err() {
                    self.close(connection.key(), &connection);
                }
            }
        }
    }

    /// Takes room for a request that waits in a request queue. Returns whether there was room for it, and whether its
    /// peer leaves as much free as it holds.
    fn take_queued(&self, connection: &Connection, arrived: &mut Arrived) -> bool {
        take_room(self.waiting.limits(), connection.account(), arrived)
    }

    /// Gives the room back of a request that waited in a request queue, or as the head of one.
    pub(super) fn give_queued(&self, octets: usize) {
        match self.waiting.limits() {
            Some(limits) => limits.give(octets),
            None => {
                self.io.accounts.bound(Bound::Inbound).give(octets);
            }
        }
    }

    /// Which request leaves the waiting room first: a scheduler of the ORB decides, if it has one. Otherwise a lane
    /// serves the oldest first, a pool without lanes the highest priority first, then the oldest.
    fn order_of(&self, arrived: &Arrived) -> u64 {
        if let Some(order) = self.server.adapter.interceptors.request_order() {
            return match Message::parse_joined(&arrived.message()) {
                Ok(Message::Request(request)) => order.order(&request.contexts),
                _ => u64::MAX,
            };
        }
        if self.id.is_lane {
            return 0;
        }
        let priority = match Message::parse_joined(&arrived.message()) {
            Ok(Message::Request(request)) => read::priority(&request).ok().flatten(),
            _ => None,
        };
        let priority = priority.or(self.id.priority).unwrap_or(Priority::MIN);
        u64::from(Priority::MAX.value().abs_diff(priority.value()))
    }

    /// Sets a request aside until its start time; its connection counts it as in progress.
    ///
    /// # Errors
    /// TRANSIENT if there is no room.
    #[cold]
    pub(super) fn set_aside(
        &self,
        connection: &Connection,
        message: &Divided<'_>,
        request: &Request<'_>,
        start: Instant64,
    ) -> Result<(), SystemException> {
        let early = &self.waiting.early;
        if !early.set_aside(connection, &self.io.slab, message, request, start) {
            self.io.count(Counter::RequestsDiscarded);
            return Err(raise::transient(minor::REQUEST_DISCARDED, Completion::No));
        }
        self.io.count(Counter::RequestsEarly);
        // SYNC: pairs with the swap in `close_entrance`: a request set aside after the final drain is discarded here.
        if self.closing.load(Ordering::SeqCst) {
            self.discard_early();
        } else if self.threads.is_one_waiting() {
            // That thread may wait for too long now.
            self.io.poller.wake();
        }
        Ok(())
    }

    /// Serves a request whose start time has come. Returns false if there is none.
    #[inline]
    pub(super) fn serve_early(&self) -> bool {
        self.waiting
            .next_start()
            .is_some_and(|next| self.serve_due(next))
    }

    #[cold]
    fn serve_due(&self, next: Instant64) -> bool {
        let now = self.io.now();
        if now < next {
            return false;
        }
        let Some(due) = self.waiting.early.take_due(now) else {
            return false;
        };
        self.keep_watch();
        if self.threads.is_one_waiting() {
            // Another thread is to wait for the next start while this request is served.
            self.io.poller.wake();
        }
        let busy = self.note_busy();
        self.serve_waited(due.waiting);
        drop(busy);
        self.waiting.early.forget_served(due.number);
        true
    }

    /// Whether the start time of a request has come.
    pub(super) fn has_due(&self) -> bool {
        let next = self.waiting.next_start();
        next.is_some_and(|next| next <= self.io.now())
    }

    /// The connection has ended: discards its requests that wait for their start time.
    pub(super) fn forget_early(&self, connection: &Connection) {
        while let Some(waiting) = self.waiting.early.take_of(connection.key()) {
            self.io.count(Counter::RequestsDiscarded);
            self.io.slab.take_back(waiting.arrived.buffer);
        }
    }

    /// At the end of the lane: discards requests that wait for their start time. Their clients get
    /// the farewell.
    pub(super) fn discard_early(&self) {
        while let Some(waiting) = self.waiting.early.take_any() {
            self.io.count(Counter::RequestsDiscarded);
            match self.connections.pin(waiting.key) {
                Some(connection) => {
                    // Nothing is queued behind it.
                    let _ = Service::new(self, &connection).finish(waiting);
                }
                None => self.io.slab.take_back(waiting.arrived.buffer),
            }
        }
    }

    /// At the end of the lane: discards requests that wait for a thread. Their clients get
    /// the farewell.
    pub(super) fn discard_waiting(&self) {
        let in_room = || self.waiting.room.as_deref().and_then(WaitingRoom::pop);
        while let Some(waiting) = in_room().or_else(|| self.take_head()) {
            if let Some(connection) = self.connections.pin(waiting.key) {
                let service = Service::new(self, &connection);
                let next = service.finish(waiting);
                service.discard_queue(next);
            }
        }
    }
}

/// Takes room for a request within the limits of a pool, or within those of unfinished messages.
fn take_room(
    limits: Option<&RequestBuffers>,
    account: &Arc<Account>,
    arrived: &mut Arrived,
) -> bool {
    let octets = arrived.size();
    let (waits, own) = Waits::new(account, octets);
    let is_taken = match limits {
        Some(limits) => limits.take(octets, own),
        None => account.take_queued(octets, own),
    };
    arrived.waits = is_taken.then_some(waits);
    is_taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::Accounts;
    use crate::peers::Peer;

    #[test]
    fn queued_requests_of_one_peer_count_until_they_are_gone_and_leave_room_for_others() {
        let accounts = Accounts::new([100; 4]);
        let [one, other] = [1, 2].map(|user| accounts.of(Peer::User(user)));
        let queue = |account: &Arc<Account>| {
            let mut arrived = Arrived::whole(vec![0; 10]);
            take_room(None, account, &mut arrived).then_some(arrived)
        };
        let held: Vec<_> = std::iter::from_fn(|| queue(&one)).collect();
        assert_eq!(held.len(), 5, "a half");
        assert!(queue(&other).is_some());
        // What is refused counts no more.
        drop(held);
        accounts.bound(Bound::Inbound).give(60);
        assert_eq!(std::iter::from_fn(|| queue(&one)).take(1).count(), 1);
    }
}
