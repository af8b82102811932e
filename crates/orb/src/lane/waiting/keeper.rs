//! While all threads of a lane serve: its keeper reads what comes, lets requests wait for a thread up to the limits of the pool and
//! refuses the others at once (RTCORBA 1.x, clause 5.10: request buffering), or has a thread of a lower lane serve them (borrowing).
//!
//! The keeper is a thread at the lane's priority that serves nothing. It waits in a poller that watches the lane's, and only while
//! nobody waits in that one: a lane that has a thread to spare never hears of it.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use deckwatch_sync::{OrderedQueue, PiMutex, SlotKey};

use crate::connection::Arrived;
use crate::connection::Connection;
use crate::counters::Counter;
use crate::lane::follow::Seat;
use crate::lane::{Lane, LaneShape};
use crate::limits::{KEEPER_PAUSE, REQUEST_BUFFER_SIZE_MAX, REQUESTS_BUFFERED_MAX};
use crate::rt::RequestBuffering;
use crate::slab::Slab;
use crate::transport::{Interest, Poller, Transport, TransportError};

/// Where requests wait for a thread.
pub(crate) struct WaitingRoom {
    pub(crate) queue: OrderedQueue<Waiting>,
    /// Of all lanes of the pool.
    buffers: Arc<RequestBuffers>,
    /// Whether what finds no thread may wait; else it is read only for a thread that can be borrowed.
    may_wait: bool,
    /// Watches the lane's, while it is armed.
    poller: Box<dyn Poller>,
    armed: PiMutex<bool>,
    /// The same, read without the lock.
    is_armed: AtomicBool,
    /// Threads of the lane that serve a request, of whichever lane.
    busy: AtomicUsize,
    /// The keeper would read on if a lower lane had a thread to lend.
    starves: AtomicBool,
}

/// What may wait in the lanes of one pool together (RTCORBA 1.x: the limits of `create_threadpool_with_lanes` are the pool's). Nothing is
/// counted but what waits.
#[derive(Debug)]
pub(crate) struct RequestBuffers {
    /// Requests above [`SIZE_BITS`] bits of octets: one word, so that who finds no room takes none from others meanwhile.
    held: AtomicU64,
    requests_max: usize,
    size_max: usize,
}

/// More octets than a host has; above them is room for a million requests, more than all lanes of a pool have threads to lend.
const SIZE_BITS: u32 = 44;

impl RequestBuffers {
    pub(crate) fn new(limits: RequestBuffering) -> Self {
        let limit = |asked: u32, own: usize| match asked {
            0 => own,
            asked => own.min(asked as usize),
        };
        let requests_max = limit(limits.max_buffered_requests, REQUESTS_BUFFERED_MAX);
        let size_max = limit(limits.max_request_buffer_size, REQUEST_BUFFER_SIZE_MAX);
        Self::with(requests_max, size_max)
    }

    const fn with(requests_max: usize, size_max: usize) -> Self {
        Self {
            held: AtomicU64::new(0),
            requests_max,
            size_max,
        }
    }

    const fn word(octets: usize) -> u64 {
        1 << SIZE_BITS | octets as u64
    }

    /// Whether a request of so many octets may wait.
    pub(crate) fn take(&self, octets: usize) -> bool {
        let more = |held: u64| {
            let requests = (held >> SIZE_BITS) as usize;
            let size = (held & ((1 << SIZE_BITS) - 1)) as usize;
            let has_room =
                requests < self.requests_max && octets <= self.size_max.saturating_sub(size);
            has_room.then_some(held + Self::word(octets))
        };
        let order = Ordering::Relaxed;
        self.held.fetch_update(order, order, more).is_ok()
    }

    pub(crate) fn give(&self, octets: usize) {
        self.held.fetch_sub(Self::word(octets), Ordering::Relaxed);
    }
}

/// A request on its way to a thread; its connection counts it as being served.
pub(crate) struct Waiting {
    pub(crate) key: SlotKey,
    pub(crate) arrived: Arrived,
    pub(crate) behind: Behind,
}

/// What waits until a request is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    Nothing,
    /// Its connection, which is not read on.
    Connection,
    /// The line of its connection, which it is in.
    Line,
}

/// The other lanes of a pool whose lanes may borrow threads, the highest first.
pub(crate) struct Neighbours {
    /// Those that this one borrows from.
    lower: Vec<Weak<Lane>>,
    /// Those that borrow from this one, with what waits there.
    higher: Vec<(Arc<WaitingRoom>, Weak<Lane>)>,
}

thread_local! {
    /// The lane that the calling thread keeps, by its address; 0: none.
    static KEPT: Cell<usize> = const { Cell::new(0) };
}

impl WaitingRoom {
    /// None where nothing waits within the ORB and nothing is borrowed. `lenders`: threads that might be.
    pub(crate) fn new(
        shape: &LaneShape,
        lenders: usize,
        transport: &dyn Transport,
    ) -> Result<Option<Arc<Self>>, TransportError> {
        let buffers = match &shape.buffering {
            Some(of_pool) => Arc::clone(of_pool),
            None => Arc::new(RequestBuffers::with(lenders, usize::MAX)),
        };
        if shape.threads == 0 || buffers.requests_max == 0 {
            return Ok(None);
        }
        Ok(Some(Arc::new(Self {
            queue: OrderedQueue::with_capacity(buffers.requests_max),
            buffers,
            may_wait: shape.buffering.is_some(),
            poller: transport.poller()?,
            armed: PiMutex::new(false),
            is_armed: AtomicBool::new(false),
            busy: AtomicUsize::new(0),
            starves: AtomicBool::new(false),
        })))
    }

    /// Requests that may wait.
    pub(crate) fn capacity(&self) -> usize {
        self.buffers.requests_max
    }

    pub(crate) fn close(&self) {
        self.poller.close();
    }

    /// Takes a request in; given back where there is no room.
    pub(crate) fn push(
        &self,
        order: u64,
        mut waiting: Waiting,
        slab: &Slab,
    ) -> Result<(), Waiting> {
        let octets = waiting.arrived.size();
        if !self.buffers.take(octets) {
            return Err(waiting);
        }
        waiting.arrived = waiting.arrived.into_waiting(slab);
        let pushed = self.queue.push(order, waiting);
        pushed.inspect_err(|_| self.buffers.give(octets))
    }

    pub(crate) fn pop(&self) -> Option<Waiting> {
        let waiting = self.queue.pop()?;
        self.buffers.give(waiting.arrived.size());
        Some(waiting)
    }
}

/// A thread of the lane serves a request.
pub(crate) struct Busy<'r>(Option<&'r WaitingRoom>);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        if let Some(room) = self.0 {
            room.busy.fetch_sub(1, Ordering::Release);
        }
    }
}

impl Lane {
    /// The calling thread serves a request from here on; its keeper is to know.
    #[inline]
    pub(crate) fn note_busy(&self) -> Busy<'_> {
        let room = self.room.as_deref();
        if let Some(room) = room {
            room.busy.fetch_add(1, Ordering::Acquire);
        }
        Busy(room)
    }

    /// Whether a thread is about to come back to the poller: nothing has to wait, and nothing is refused, for the moment that takes.
    fn has_thread_between(&self, room: &WaitingRoom) -> bool {
        let is_taken = |seat: &&Seat| seat.taken.load(Ordering::Acquire);
        room.busy.load(Ordering::Acquire) < self.seats.iter().filter(is_taken).count()
    }

    /// Has the keeper's poller watch the lane's, which it does while it is armed.
    pub(crate) fn prepare_keeper(&self) -> Result<(), TransportError> {
        let (Some(room), Some(source)) = (&self.room, self.poller.source()) else {
            return Ok(());
        };
        room.poller.watch(source, 0, Interest::Nothing)
    }

    /// Says which lanes of its pool lend it threads, and which borrow its own.
    pub(crate) fn set_kin(&self, pool: &[Arc<Self>]) {
        let mut pool: Vec<_> = pool.iter().collect();
        pool.sort_by_key(|lane| std::cmp::Reverse(lane.station.priority));
        let mine = self.station.priority;
        let (higher, others): (Vec<_>, Vec<_>) = pool
            .into_iter()
            .partition(|lane| lane.station.priority > mine);
        let lower = others
            .into_iter()
            .filter(|lane| lane.station.priority < mine);
        let room = |lane: &Arc<Self>| Some((Arc::clone(lane.room.as_ref()?), Arc::downgrade(lane)));
        let neighbours = Neighbours {
            lower: lower.map(Arc::downgrade).collect(),
            higher: higher.into_iter().filter_map(room).collect(),
        };
        let _set_once = self.neighbours.set(neighbours);
    }

    /// The waiting room where the calling thread is the lane's keeper.
    pub(crate) fn room_kept_here(&self) -> Option<&WaitingRoom> {
        let room = self.room.as_deref()?;
        (KEPT.get() == std::ptr::from_ref(self).addr()).then_some(room)
    }

    /// Arms the keeper where nobody waits in the poller, disarms it where somebody does.
    pub(crate) fn settle_keeper(&self, room: &WaitingRoom) {
        let Some(source) = self.poller.source() else {
            return;
        };
        let mut armed = room.armed.lock("lane.keeper");
        // Under the lock: the last one who comes here sees how many wait.
        let is_alone = self.waiting.load(Ordering::SeqCst) == 0;
        let wanted = is_alone && !room.starves.load(Ordering::SeqCst);
        if *armed == wanted {
            return;
        }
        *armed = wanted;
        room.is_armed.store(wanted, Ordering::SeqCst);
        let interest = if wanted {
            Interest::Pending
        } else {
            Interest::Nothing
        };
        room.poller.rewatch(source, 0, interest);
        if wanted && self.adopted.load(Ordering::Relaxed) != 0 {
            // Nobody else looks after adopted connections now.
            room.poller.wake();
        }
    }

    /// The life of the keeper.
    pub(crate) fn keep(self: &Arc<Self>, room: &WaitingRoom) {
        KEPT.set(Arc::as_ptr(self).addr());
        let is_needed =
            || self.waiting.load(Ordering::SeqCst) == 0 && !self.closing.load(Ordering::Acquire);
        while !self.closing.load(Ordering::Acquire) {
            let housekeeping = self.housekeeping_period().filter(|_| is_needed());
            room.poller.wait(housekeeping);
            while is_needed() {
                self.keep_house();
                if self.has_thread_between(room) {
                    std::thread::sleep(KEEPER_PAUSE);
                    continue;
                }
                if self.is_starving(room) {
                    break;
                }
                let Some(event) = self.poller.wait(Some(Duration::ZERO)) else {
                    break;
                };
                self.handle_event(event, None);
            }
            if self.waiting.load(Ordering::SeqCst) != 0 {
                self.settle_keeper(room);
                // What woke us may have been meant for who waits.
                self.poller.wake();
            }
        }
    }

    /// Whether the keeper must leave what comes where it is, until a lower lane has a thread to lend.
    fn is_starving(&self, room: &WaitingRoom) -> bool {
        if self.may_read(room) {
            return false;
        }
        // SYNC: pairs with `tell_lenders`: who has a thread to lend sees that we starve, or we see the thread.
        room.starves.store(true, Ordering::SeqCst);
        if self.may_read(room) {
            room.starves.store(false, Ordering::SeqCst);
            return false;
        }
        self.settle_keeper(room);
        true
    }

    /// What may wait here, where the pool says so.
    pub(crate) fn waiting_room(&self) -> Option<&RequestBuffers> {
        let room = self.room.as_deref().filter(|room| room.may_wait);
        room.map(|room| &*room.buffers)
    }

    /// Whether the keeper may read a request.
    pub(crate) fn may_read(&self, room: &WaitingRoom) -> bool {
        room.may_wait || room.queue.len() < self.threads_to_borrow()
    }

    fn threads_to_borrow(&self) -> usize {
        let lower = self
            .neighbours
            .get()
            .map_or(&[][..], |neighbours| &neighbours.lower);
        let waiting = |lane: &Weak<Self>| {
            lane.upgrade()
                .map_or(0, |lane| lane.waiting.load(Ordering::SeqCst))
        };
        lower.iter().map(waiting).sum()
    }

    /// A request waits: tells a thread of this lane, or one of the highest lower lane that has one to lend.
    pub(crate) fn tell_of_waiting(&self) {
        // SYNC: pairs with `has_waiting`: who is about to wait has been counted before it looks.
        if self.waiting.load(Ordering::SeqCst) != 0 {
            return self.poller.wake();
        }
        let lower = self
            .neighbours
            .get()
            .map_or(&[][..], |neighbours| &neighbours.lower);
        let mut lower = lower.iter().filter_map(Weak::upgrade);
        if let Some(lender) = lower.find(|lane| lane.waiting.load(Ordering::SeqCst) != 0) {
            lender.poller.wake();
        }
    }

    /// Serves a request that waits, of a higher lane that borrows or of this one. False: none does.
    #[inline]
    pub(crate) fn serve_waiting(self: &Arc<Self>) -> bool {
        if self.room.is_none() && self.neighbours.get().is_none() {
            return false;
        }
        let higher = self
            .neighbours
            .get()
            .map_or(&[][..], |neighbours| &neighbours.higher);
        for (room, lane) in higher {
            if let Some(waiting) = room.pop()
                && let Some(lane) = lane.upgrade()
            {
                self.keep_watch();
                self.counters.count(Counter::ThreadsBorrowed);
                let _busy = self.note_busy();
                let _at_its_priority = lane.lend_priority();
                lane.serve_waited(waiting);
                return true;
            }
        }
        let Some(room) = &self.room else {
            return false;
        };
        // Under load the room is never empty: lines that found no place in it take turns with those who did.
        if !room.queue.is_empty() && self.queue_heads.take_turn() && self.serve_first() {
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

    /// For a thread that has been counted as waiting: whether it must not wait. Keepers that can do with it are told.
    #[inline]
    pub(crate) fn has_waiting(&self) -> bool {
        if self.room.is_none() && self.neighbours.get().is_none() {
            return false;
        }
        if let Some(room) = &self.room {
            room.starves.store(false, Ordering::SeqCst);
            if room.is_armed.load(Ordering::SeqCst) {
                self.settle_keeper(room);
            }
        }
        let higher = self
            .neighbours
            .get()
            .map_or(&[][..], |neighbours| &neighbours.higher);
        for (room, lane) in higher {
            // SYNC: pairs with `is_starving`.
            if room.starves.swap(false, Ordering::SeqCst)
                && let Some(lane) = lane.upgrade()
            {
                lane.settle_keeper(room);
            }
        }
        let mut rooms = higher.iter().map(|(room, _)| room).chain(&self.room);
        rooms.any(|room| !room.queue.is_empty())
    }

    pub(crate) fn serve_waited(self: &Arc<Self>, waiting: Waiting) {
        let Some(connection) = self.connections.pin(waiting.key) else {
            return self.slab.take_back(waiting.arrived.buffer);
        };
        if self.serve_line(&connection, waiting).is_err() {
            self.close_by_token(&connection);
        }
    }

    /// A request that has waited is done. The next of its line, where it was in one, as [`Lane::leave_line`] gives it.
    pub(crate) fn finish(&self, connection: &Connection, waiting: Waiting) -> Option<Waiting> {
        self.slab.take_back(waiting.arrived.buffer);
        let mut next = None;
        match waiting.behind {
            Behind::Nothing => {}
            Behind::Connection => connection.parked.store(false, Ordering::SeqCst),
            Behind::Line => next = self.leave_line(connection),
        }
        connection.serving.fetch_sub(1, Ordering::SeqCst);
        if connection.read_out.load(Ordering::SeqCst) && !connection.answers() {
            self.close(waiting.key, connection);
        } else if waiting.behind == Behind::Connection {
            self.tell_of_rest(connection);
        }
        next
    }

    /// At the end: what waits is not served, and its callers are told so by the farewell.
    pub(crate) fn discard_waiting(&self) {
        let room = self.room.as_deref();
        let in_room = || room.and_then(WaitingRoom::pop);
        while let Some(waiting) = in_room().or_else(|| self.take_first()) {
            if let Some(connection) = self.connections.pin(waiting.key) {
                let next = self.finish(&connection, waiting);
                self.discard_line(&connection, next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_finds_no_room_keeps_nobody_from_it_that_fits() {
        let buffers = RequestBuffers::with(2, 100);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert!(!buffers.take(101));
                }
            });
            for _ in 0..100_000 {
                if !buffers.take(100) {
                    is_over.store(true, Ordering::Relaxed);
                    panic!("it fits");
                }
                buffers.give(100);
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert!(buffers.take(60) && buffers.take(40) && !buffers.take(0));
        buffers.give(60);
        assert!(!buffers.take(61) && buffers.take(60));
    }
}
