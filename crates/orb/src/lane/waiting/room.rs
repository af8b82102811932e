//! The waiting room of a lane: requests that wait for a thread, and the limits of their threadpool (RT-CORBA 1.x,
//! clause 5.10: request buffering).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use deckwatch_sync::{OrderedQueue, PiMutex, SlotKey};

use crate::accounts::{Account, Own, Waits};
use crate::connection::Arrived;
use crate::limits::{REQUEST_BUFFER_SIZE_MAX, REQUESTS_BUFFERED_MAX};
use crate::rtorb::RequestBuffering;
use crate::slab::Slab;
use crate::transport::{Interest, Poller, Source, TransportError};

/// A request on its way to a thread. Its connection counts it as in progress.
pub(crate) struct WaitingRequest {
    pub(super) key: SlotKey,
    pub(super) arrived: Arrived,
    pub(super) behind: Behind,
}

/// What waits until a request has been served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    Nothing,
    /// Its connection, which is not parsed.
    Connection,
    /// The request queue of its connection, in which it is the one that is served.
    Queue,
}

/// Where requests wait for a thread.
pub(crate) struct WaitingRoom {
    queue: OrderedQueue<WaitingRequest>,
    /// Shared by all lanes of the pool.
    buffers: Arc<RequestBuffers>,
    /// A request may wait without a thread in sight; else it is read only for a thread that can be borrowed.
    pub(super) may_wait: bool,
    /// The keeper's poller: it watches the lane's while it is armed.
    poller: Box<dyn Poller>,
    armed: PiMutex<bool>,
    /// The same, read without the lock.
    is_armed: AtomicBool,
    /// Threads of the lane that serve a request, of whichever lane.
    busy: AtomicUsize,
    /// The keeper would read on if a lower lane had a thread to lend.
    starves: AtomicBool,
}

impl WaitingRoom {
    /// `of_pool`: the limits of the pool, if it buffers requests; `lenders`: threads that may be borrowed. `poller`
    /// makes the keeper's poller. Returns `None` if nothing waits in the ORB and nothing is borrowed.
    pub(crate) fn new(
        of_pool: Option<&Arc<RequestBuffers>>,
        lenders: usize,
        poller: impl FnOnce() -> Result<Box<dyn Poller>, TransportError>,
    ) -> Result<Option<Arc<Self>>, TransportError> {
        let buffers = match of_pool {
            Some(of_pool) => Arc::clone(of_pool),
            None => Arc::new(RequestBuffers::with(lenders, usize::MAX)),
        };
        if buffers.requests_max == 0 {
            return Ok(None);
        }
        Ok(Some(Arc::new(Self {
            queue: OrderedQueue::with_capacity(buffers.requests_max),
            buffers,
            may_wait: of_pool.is_some(),
            poller: poller()?,
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

    pub(super) fn buffers(&self) -> &RequestBuffers {
        &self.buffers
    }

    /// Has the keeper's poller watch the lane's, which it does while it is armed.
    pub(super) fn watch(&self, lane: Source<'_>) -> Result<(), TransportError> {
        self.poller.watch(lane, 0, Interest::Nothing)
    }

    pub(super) fn close(&self) {
        self.poller.close();
    }

    /// Waits for an event of the lane's poller.
    pub(super) fn wait(&self, limit: Option<std::time::Duration>) {
        self.poller.wait(limit);
    }

    /// Arms or disarms the keeper, as `is_alone` says under the lock. `lane`: the lane's poller; `has_adopted`: whether
    /// adopted connections need housekeeping.
    pub(super) fn settle(
        &self,
        lane: Source<'_>,
        is_alone: impl FnOnce() -> bool,
        has_adopted: impl FnOnce() -> bool,
    ) {
        let mut armed = self.armed.lock("lane.keeper");
        // Under the lock: the last thread that comes here sees how many wait.
        let wanted = is_alone() && !self.starves.load(Ordering::SeqCst);
        if *armed == wanted {
            return;
        }
        *armed = wanted;
        self.is_armed.store(wanted, Ordering::SeqCst);
        let interest = if wanted {
            Interest::Pending
        } else {
            Interest::Nothing
        };
        self.poller.rewatch(lane, 0, interest);
        if wanted && has_adopted() {
            // No other thread does housekeeping now.
            self.poller.wake();
        }
    }

    #[inline]
    pub(super) fn is_armed(&self) -> bool {
        self.is_armed.load(Ordering::SeqCst)
    }

    pub(super) fn set_starving(&self) {
        self.starves.store(true, Ordering::SeqCst);
    }

    #[inline]
    pub(super) fn end_starving(&self) {
        self.starves.store(false, Ordering::SeqCst);
    }

    /// As [`WaitingRoom::end_starving`]. Returns whether the keeper was starving.
    #[inline]
    pub(super) fn take_starving(&self) -> bool {
        self.starves.swap(false, Ordering::SeqCst)
    }

    /// Queues a request; the lowest `order` is served first. Returns it if there is no room.
    pub(super) fn push(
        &self,
        order: u64,
        mut waiting: WaitingRequest,
        account: &Arc<Account>,
        slab: &Slab,
    ) -> Result<(), WaitingRequest> {
        let octets = waiting.arrived.size();
        // The head of a request queue does not count twice.
        waiting.arrived.waits = None;
        let (waits, own) = Waits::new(account, octets);
        if !self.buffers.take(octets, own) {
            return Err(waiting);
        }
        waiting.arrived.waits = Some(waits);
        waiting.arrived = waiting.arrived.into_waiting(slab);
        let pushed = self.queue.push(order, waiting);
        pushed.inspect_err(|_| self.buffers.give(octets))
    }

    /// As [`WaitingRoom::push`], for a request that counts in the limits already.
    pub(super) fn push_counted(
        &self,
        order: u64,
        waiting: WaitingRequest,
    ) -> Result<(), WaitingRequest> {
        self.queue.push(order, waiting)
    }

    pub(super) fn pop(&self) -> Option<WaitingRequest> {
        let waiting = self.queue.pop()?;
        self.buffers.give(waiting.arrived.size());
        Some(waiting)
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Threads of the lane that serve a request now.
    pub(super) fn busy(&self) -> usize {
        self.busy.load(Ordering::Acquire)
    }
}

/// A thread of the lane serves a request until this is dropped.
pub(crate) struct Busy<'r>(Option<&'r WaitingRoom>);

impl<'r> Busy<'r> {
    #[inline]
    pub(crate) fn new(room: Option<&'r WaitingRoom>) -> Self {
        if let Some(room) = room {
            room.busy.fetch_add(1, Ordering::Acquire);
        }
        Self(room)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        if let Some(room) = self.0 {
            room.busy.fetch_sub(1, Ordering::Release);
        }
    }
}

/// The limits of what waits in all lanes of one pool (RT-CORBA 1.x: the limits of `create_threadpool_with_lanes` are
/// the pool's). Only requests that wait are counted.
#[derive(Debug)]
pub(crate) struct RequestBuffers {
    /// Requests above [`SIZE_BITS`] bits of octets. One word, so that a request that does not fit takes nothing from
    /// others meanwhile.
    held: AtomicU64,
    requests_max: usize,
    size_max: usize,
    /// Whether peers share the requests, and the octets: not where the program has set the limit.
    is_shared: [bool; 2],
}

/// More octets than a host has; above them is room for a million requests, more than all lanes of a pool have threads
/// to lend.
const SIZE_BITS: u32 = 44;

impl RequestBuffers {
    pub(crate) fn new(limits: RequestBuffering) -> Self {
        let limit = |asked: u32, own: usize| match asked {
            0 => own,
            asked => own.min(asked as usize),
        };
        let requests_max = limit(limits.max_buffered_requests, REQUESTS_BUFFERED_MAX);
        let size_max = limit(limits.max_request_buffer_size, REQUEST_BUFFER_SIZE_MAX);
        Self {
            is_shared: [
                limits.max_buffered_requests == 0,
                limits.max_request_buffer_size == 0,
            ],
            ..Self::with(requests_max, size_max)
        }
    }

    const fn with(requests_max: usize, size_max: usize) -> Self {
        Self {
            held: AtomicU64::new(0),
            requests_max,
            size_max,
            is_shared: [false; 2],
        }
    }

    const fn word(octets: usize) -> u64 {
        1 << SIZE_BITS | octets as u64
    }

    /// Takes room for a request of `octets`; `own`: what its peer then has waiting. Returns whether there was room, and
    /// the peer leaves as much free as it holds.
    pub(super) fn take(&self, octets: usize, own: Own) -> bool {
        let more = |held: u64| {
            let requests = (held >> SIZE_BITS) as usize;
            let size = (held & ((1 << SIZE_BITS) - 1)) as usize;
            let has_room =
                requests < self.requests_max && octets <= self.size_max.saturating_sub(size);
            let [requests_free, octets_free] = [
                self.requests_max.saturating_sub(requests + 1),
                self.size_max.saturating_sub(size.saturating_add(octets)),
            ];
            let free = |index: usize, free| {
                if self.is_shared[index] {
                    free
                } else {
                    usize::MAX
                }
            };
            let leaves = own.leaves(free(0, requests_free), free(1, octets_free));
            (has_room && leaves).then_some(held + Self::word(octets))
        };
        let order = Ordering::Relaxed;
        self.held.fetch_update(order, order, more).is_ok()
    }

    pub(super) fn give(&self, octets: usize) {
        self.held.fetch_sub(Self::word(octets), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::Accounts;
    use crate::peers::Peer;
    use crate::transport::{SocketTransport, Transport as _};

    #[test]
    fn request_that_waits_counts_once_and_until_it_is_served() {
        let buffers = Arc::new(RequestBuffers::new(RequestBuffering::default()));
        let poller = || SocketTransport::default().poller();
        let room = WaitingRoom::new(Some(&buffers), 0, poller).expect("a poller");
        let room = room.expect("requests may wait");
        let account = Accounts::new([100; 4]).of(Peer::User(1));
        let slab = Slab::new(64, 4);
        let counted = || {
            let (_waits, own) = Waits::new(&account, 0);
            (own.requests - 1, own.octets)
        };
        let mut arrived = Arrived::whole(vec![0; 10]);
        // The head of a request queue has counted there.
        arrived.waits = Some(Waits::new(&account, 10).0);
        let waiting = WaitingRequest {
            key: crate::connection::key_of(0),
            arrived,
            behind: Behind::Queue,
        };
        // As many others wait elsewhere as leave room for it, if it counts once.
        let others: Vec<_> = (2..REQUESTS_BUFFERED_MAX)
            .map(|_| Waits::new(&account, 0).0)
            .collect();
        assert!(room.push(1, waiting, &account, &slab).is_ok());
        drop(others);
        assert_eq!(counted(), (1, 10));
        drop(room.pop());
        assert_eq!(counted(), (0, 0));
    }

    #[test]
    fn requests_of_one_peer_leave_room_for_those_of_others() {
        let asked = |max_buffered_requests| RequestBuffering {
            max_buffered_requests,
            max_request_buffer_size: 0,
        };
        let buffers = RequestBuffers::new(asked(0));
        let own = |requests| Own {
            requests,
            octets: 10 * requests,
        };
        let taken = (1..).take_while(|requests| buffers.take(10, own(*requests)));
        assert_eq!(taken.count(), REQUESTS_BUFFERED_MAX / 2);
        assert!(buffers.take(10, own(1)), "another peer");
        let large = REQUEST_BUFFER_SIZE_MAX / 2;
        let octets = Own {
            requests: 2,
            octets: large,
        };
        assert!(!buffers.take(large, octets), "octets are shared too");
        let set = RequestBuffers::new(asked(4));
        let taken = (1..).take_while(|requests| set.take(10, own(*requests)));
        assert_eq!(taken.count(), 4, "as the program has set it");
        let sized = RequestBuffers::new(RequestBuffering {
            max_buffered_requests: 0,
            max_request_buffer_size: 100,
        });
        let taken = (1..).take_while(|requests| sized.take(10, own(*requests)));
        assert_eq!(taken.count(), 10, "as the program has set it");
    }

    #[test]
    fn a_request_that_does_not_fit_keeps_none_out_that_does() {
        let buffers = RequestBuffers::with(2, 100);
        let alone = Own {
            requests: 1,
            octets: 0,
        };
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert!(!buffers.take(101, alone));
                }
            });
            for _ in 0..100_000 {
                if !buffers.take(100, alone) {
                    is_over.store(true, Ordering::Relaxed);
                    panic!("it fits");
                }
                buffers.give(100);
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert!(buffers.take(60, alone) && buffers.take(40, alone) && !buffers.take(0, alone));
        buffers.give(60);
        assert!(!buffers.take(61, alone) && buffers.take(60, alone));
    }
}
