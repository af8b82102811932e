//! A lane: its own listeners, poller, connections, buffers and threads. Two lanes share nothing but the adapter's
//! tables.
//!
//! Threads lead in turn: one event wakes one thread, which reads that connection and serves it while another waits in
//! the poller. A thread whose connection keeps it busy adopts it and blocks in its read ([`adoption`]).
//!
//! ```text
//! turn ── poller ──► entrance ► Acceptor, Connections
//!   │        └─────► service ─► Connection (reads, writes), Server (answers)
//!   ├── requests that wait: WaitingRequests
//!   └── by the clock: Housekeeping
//! ```

mod accept;
mod adoption;
mod close;
mod connections;
mod entrance;
mod housekeeping;
mod id;
mod seat;
mod service;
mod threads;
mod waiting;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use deckwatch_os::allowance;
use deckwatch_sync::SlotKey;

use crate::accounts::Accounts;
use crate::adapter::wait_permits::{Patience, WaitPermits};
use crate::allotment;
use crate::call_side::CallSide;
use crate::connection::bidirectional::{Bidirectional, Owner};
use crate::connection::{Io, RequestQueue, key_of, places_of};
use crate::limits::{
    ACCEPT_REST, ADOPTION_SWEEP, ARRIVAL_SWEEP, BUFFER_SIZE, BUFFERS_PER_THREAD, CONNECTIONS_FEW,
    CONNECTIONS_MAX, EARLY_REQUESTS_MAX, FRAGMENT_SIZE_MIN, INBOUND_SIZE_MAX, MEMORY_MESSAGES,
    MEMORY_SHARES, MESSAGE_SIZE_MAX, OUTBOUND_SIZE_MAX, SHARED_MEMORY_CONNECTIONS_MAX,
};
use crate::peers::Peer;
use crate::rt::current::{AtPriority, ThreadPriorities};
use crate::rt::{NetworkPriorityMapping, Protocols};
use crate::server::{PoolPlace, Server, ServerOrb, ServerShape};
use crate::slab::Slab;
use crate::transport::{Endpoint, Listener, Stream, TransportError};
use crate::wire::Sizes;
use crate::{Caller, CallerConnection, SystemException};
use accept::Acceptor;
use connections::Connections;
use housekeeping::Housekeeping;
pub(crate) use id::LaneId;
use threads::Threads;
pub(crate) use waiting::RequestBuffers;
use waiting::{WaitingRequests, WaitingRoom};

/// Limits and times of a lane.
#[derive(Clone, Debug)]
pub(crate) struct LaneShape {
    /// Threads that it always has; at 0 the application calls [`Lane::turn`].
    pub(crate) threads: usize,
    /// Threads that it may add while all serve.
    pub(crate) threads_dynamic: usize,
    pub(crate) connections_max: usize,
    pub(crate) sizes: Sizes,
    /// Octets of a new buffer.
    pub(crate) buffer_size: usize,
    /// Octets that all unfinished messages may hold beyond their first buffers.
    pub(crate) inbound_size_max: usize,
    /// How long a message may take to arrive.
    pub(crate) arrival_timeout: Duration,
    /// Octets of replies that may wait for all peers together.
    pub(crate) outbound_size_max: usize,
    /// How long a peer may read nothing of what waits for it.
    pub(crate) reply_timeout: Duration,
    /// How long a connection may bring nothing before it is closed; without it, for ever.
    pub(crate) idle_timeout: Option<Duration>,
    /// Limits of the requests that wait for a thread, in all lanes of the pool; without it they wait in the system's
    /// buffers.
    pub(crate) buffering: Option<Arc<RequestBuffers>>,
    /// How far our clock may be off UTC, if that is known.
    pub(crate) clock_bound: Option<Duration>,
    /// How long a thread that has adopted a connection polls it for its next request before it sleeps; without it, it
    /// sleeps at once.
    pub(crate) spin: Option<Duration>,
}

impl LaneShape {
    /// Lowers the limits to what this process may have.
    pub(crate) fn within_process(mut self) -> Self {
        if let Some(octets) = allotment::memory_for_peers() {
            self.limit_memory(octets);
        }
        self.threads_dynamic = self.threads_dynamic.min(allotment::threads_dynamic());
        if let Some(count) = allowance::open_files() {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            self.connections_max = self.connections_max.min(count.max(1));
        }
        self
    }

    /// Lowers the limits so that what peers send takes seven eighths of `octets` at most: a half for messages that threads
    /// serve, an eighth for unfinished messages, unread replies, and first buffers of connections.
    pub(crate) fn limit_memory(&mut self, octets: u64) {
        let octets = usize::try_from(octets).unwrap_or(usize::MAX);
        let message = (octets / MEMORY_MESSAGES).max(FRAGMENT_SIZE_MIN);
        self.sizes.message_max = message.min(MESSAGE_SIZE_MAX);
        self.inbound_size_max = (octets / MEMORY_SHARES).min(INBOUND_SIZE_MAX);
        self.outbound_size_max = (octets / MEMORY_SHARES).min(OUTBOUND_SIZE_MAX);
        let connections = (octets / MEMORY_SHARES / BUFFER_SIZE).max(CONNECTIONS_FEW);
        self.connections_max = connections.min(CONNECTIONS_MAX);
    }

    /// The bounds that the peers of a lane share.
    fn accounts(&self) -> Arc<Accounts> {
        Accounts::new([
            self.connections_max,
            SHARED_MEMORY_CONNECTIONS_MAX,
            self.inbound_size_max,
            self.outbound_size_max,
        ])
    }

    /// Requests that may wait for their start time: 0 in a lane that cannot tell when that is.
    fn early_max(&self) -> usize {
        self.clock_bound.map_or(0, |_| EARLY_REQUESTS_MAX)
    }
}

/// Runs once on each new thread of a lane before it serves, to set its scheduling.
pub(crate) type ThreadStart = Arc<dyn Fn() + Send + Sync>;

pub(crate) struct Lane {
    orb: Weak<CallSide>,
    priorities: Arc<ThreadPriorities>,
    /// Answers its requests.
    pub(crate) server: Arc<Server>,
    shape: LaneShape,
    pub(crate) id: LaneId,
    /// What connections borrow: poller, buffers, budgets, clock, counters, trace.
    io: Io,
    acceptor: Acceptor,
    connections: Connections,
    threads: Threads,
    waiting: WaitingRequests,
    housekeeping: Housekeeping,
    closing: AtomicBool,
    /// Itself, once it is started.
    this: OnceLock<Weak<Self>>,
}

/// What one turn has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turned {
    /// Something was served or accepted.
    Served,
    /// The wait ended early, for housekeeping.
    Kept,
    /// Nothing happened in time.
    Idle,
    /// The lane is closed.
    Closed,
}

impl Lane {
    /// Listens, and watches its listeners. [`Lane::start`] starts its threads.
    pub(crate) fn new(
        orb: &ServerOrb,
        shape: LaneShape,
        id: LaneId,
        endpoints: &[Endpoint],
        listen: impl Fn(&Endpoint) -> Result<Box<dyn Listener>, TransportError>,
        thread_start: Option<ThreadStart>,
    ) -> Result<Self, (Endpoint, TransportError)> {
        let transport = Arc::clone(&orb.transport);
        let listen = |at: &Endpoint| listen(at).map_err(|error| (at.clone(), error));
        let listeners = endpoints
            .iter()
            .map(listen)
            .collect::<Result<Vec<_>, _>>()?;
        let first = |error| {
            let nowhere = || Endpoint::tcp("", 0);
            (endpoints.first().cloned().unwrap_or_else(nowhere), error)
        };
        let poller = transport.poller().map_err(first)?;
        let room = if shape.threads == 0 {
            None
        } else {
            let poller = || transport.poller();
            WaitingRoom::new(shape.buffering.as_ref(), id.lenders, poller).map_err(first)?
        };
        let waiting = WaitingRequests::new(room);
        let slab =
            Slab::new(shape.buffer_size, waiting.capacity()).with_more_written(shape.early_max());
        let accounts = shape.accounts();
        let io = Io::new(
            poller,
            slab,
            transport,
            Arc::clone(&orb.counters),
            Arc::clone(&orb.trace),
            shape.sizes,
            Arc::clone(&accounts),
        );
        let threads_max = shape.threads + shape.threads_dynamic;
        let server = Server::new(
            orb,
            ServerShape {
                sizes: shape.sizes,
                clock_bound: shape.clock_bound,
                place: PoolPlace {
                    pool: id.pool,
                    priority: id.priority,
                    is_lane: id.is_lane,
                },
                // One thread is left to read and to serve the others, if there are more.
                wait_permits: threads_max.saturating_sub(1).max(shape.threads.min(1)),
                is_turned_by_hand: shape.threads == 0,
            },
        );
        let lane = Self {
            orb: orb.calls.clone(),
            priorities: Arc::clone(&orb.priorities),
            server,
            id,
            io,
            acceptor: Acceptor::new(listeners, endpoints),
            connections: Connections::new(accounts),
            threads: Threads::new(threads_max, thread_start),
            waiting,
            housekeeping: Housekeeping::default(),
            closing: AtomicBool::new(false),
            this: OnceLock::new(),
            shape,
        };
        if let Some(log) = &lane.server.adapter.log {
            lane.acceptor.set_access_log(log);
        }
        lane.acceptor.watch(&*lane.io.poller).map_err(first)?;
        lane.prepare_keeper().map_err(first)?;
        Ok(lane)
    }

    /// Starts the static threads, and returns when each of them runs at its priority.
    ///
    /// # Errors
    /// NO_RESOURCES if a thread could not be started, or the host does not permit its priority; DATA_CONVERSION if no
    /// native priority is mapped to it; BAD_PARAM if the lane is to spin and its threads have a real-time class.
    /// Threads that could be started run all the same: the lane is to be shut down.
    pub(crate) fn start(self: &Arc<Self>) -> Result<(), SystemException> {
        // A lane is started once.
        let _ = self.this.set(Arc::downgrade(self));
        self.threads.start(self)
    }

    /// Returns the process at the other end of a connection, the name in its certificate, and whether it connected from
    /// the address that it connected to.
    pub(crate) fn caller(&self, connection: CallerConnection) -> (Caller, Option<Arc<str>>, bool) {
        if connection == CallerConnection::THIS_PROCESS {
            return (Caller::ThisProcess, None, true);
        }
        let found = self.connections.pin(key_of(connection.token));
        let found = found.filter(|found| found.number() == connection.number);
        found.map_or((Caller::Unknown, None, false), |found| {
            let name = found.caller_name();
            (found.caller(), name, found.is_from_own_address())
        })
    }

    /// Calls `visit` with each open connection.
    pub(crate) fn for_each_caller(&self, mut visit: impl FnMut(CallerConnection)) {
        self.connections
            .for_each(|_, connection| visit(connection.as_caller()));
    }

    /// What its peers hold together, in the order of [`crate::accounts::Bound`].
    pub(crate) fn held(&self) -> [usize; 4] {
        self.io.accounts.held()
    }

    /// Where it listens.
    pub(crate) fn endpoints(&self) -> &[Endpoint] {
        self.acceptor.endpoints()
    }

    #[inline]
    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    fn this(&self) -> Option<Arc<Self>> {
        self.this.get()?.upgrade()
    }

    /// Itself as the owner of a bidirectional connection, once it is started.
    fn as_owner(&self) -> Option<Weak<dyn Owner>> {
        let this = self.this.get()?.clone();
        Some(this)
    }

    /// Allocates the memory that serving needs. A thread that is added allocates its own when it starts.
    pub(crate) fn seal(&self) {
        let threads = self.shape.threads.max(1);
        let slab = &self.io.slab;
        slab.fill(BUFFERS_PER_THREAD * threads + self.waiting.capacity());
        self.waiting.reserve(self.shape.early_max());
        slab.fill_written(self.shape.early_max());
    }

    /// One cycle: waits for one event (at most `patience`), accepts or reads, dispatches, flushes.
    pub(crate) fn turn(&self, seat: Option<usize>, patience: Option<Duration>) -> Turned {
        if self.is_closing() {
            return Turned::Closed;
        }
        if self.serve_early() || self.serve_waiting() {
            return Turned::Served;
        }
        // Heads of queues and events take turns.
        let has_served = self.serve_head();
        let patience = if has_served {
            Some(Duration::ZERO)
        } else {
            patience
        };
        self.threads.begin_waiting();
        if self.has_waiting() || !has_served && self.waiting.has_head() {
            self.threads.end_waiting();
            return Turned::Kept;
        }
        let (chores, start) = (self.housekeeping_period(), self.waiting.next_start());
        let wait = self
            .housekeeping
            .begin_wait(patience, chores, start, || self.io.now());
        let event = self.io.poller.wait(wait.limit);
        self.threads.end_waiting();
        // SYNC: pairs with `begin_waiting`: a thread that relied on us is seen, or sees that no thread answers for
        // housekeeping.
        if self.housekeeping.end_wait(&wait) && event.is_some() && self.threads.is_one_waiting() {
            self.io.poller.wake();
        }
        self.do_housekeeping();
        match event {
            None if has_served => Turned::Served,
            None if wait.is_patience => Turned::Idle,
            None => Turned::Kept,
            Some(event) => {
                self.handle_event(event, seat);
                Turned::Served
            }
        }
    }

    /// Takes a thread of another lane to the priority of this one. If the host does not permit it any more, the thread
    /// serves as it is.
    fn lend_priority(&self) -> Option<AtPriority> {
        self.priorities.lend(self.id.priority)
    }

    /// Keeps a thread in the poller if the last one has left it to serve.
    #[inline]
    pub(crate) fn keep_watch(&self) {
        let has_none = self.shape.threads_dynamic == 0 && self.waiting.room.is_none();
        if has_none || self.threads.is_one_waiting() || self.threads.add_watcher(self) {
            return;
        }
        if let Some(room) = &self.waiting.room {
            self.settle_keeper(room);
        }
    }

    /// Whether [`Lane::turn`] would find an event, in a lane that the application turns.
    pub(crate) fn is_pending(&self) -> bool {
        let has_own = || self.has_due() || self.waiting.has_head();
        self.shape.threads == 0 && (self.io.poller.is_pending() || has_own())
    }

    /// As [`Acceptor::set_protocols`].
    pub(crate) fn set_protocols(
        &self,
        protocols: Protocols,
        mapping: &dyn NetworkPriorityMapping,
    ) -> Result<bool, SystemException> {
        self.acceptor
            .set_protocols(protocols, mapping, self.id.priority)
    }

    /// As [`Acceptor::forget_protocols`].
    pub(crate) fn forget_protocols(&self) {
        self.acceptor.forget_protocols();
    }

    /// How often housekeeping is due now, if it is needed.
    fn housekeeping_period(&self) -> Option<Duration> {
        if self.threads.has_adopted() {
            return Some(ADOPTION_SWEEP);
        }
        if self.acceptor.is_resting() {
            return Some(ACCEPT_REST);
        }
        let unfinished = self.io.has_unfinished();
        let unfinished = unfinished.then(|| self.overdue_period());
        unfinished.into_iter().chain(self.idle_period()).min()
    }

    fn overdue_period(&self) -> Duration {
        let limit = self.shape.arrival_timeout.min(self.shape.reply_timeout);
        ARRIVAL_SWEEP.min(limit)
    }

    /// A connection may be idle for a quarter longer than its limit.
    fn idle_period(&self) -> Option<Duration> {
        let limit = self.shape.idle_timeout?;
        (!self.connections.is_empty()).then_some(limit / 4)
    }

    /// Does housekeeping if it is due: by one thread, as often as needed, however many events come.
    fn do_housekeeping(&self) {
        let Some(period) = self.housekeeping_period() else {
            return;
        };
        let now = self.io.now();
        let housekeeping = &self.housekeeping;
        if !housekeeping.take_due(now, period) {
            return;
        }
        if self.acceptor.is_resting() {
            self.acceptor.resume(&*self.io.poller);
        }
        self.revoke_stuck_adoptions();
        let overdue = self.overdue_period();
        if self.io.has_unfinished() && housekeeping.take_overdue_due(now, overdue) {
            self.close_overdue(now);
        }
        if let Some(period) = self.idle_period()
            && housekeeping.take_idle_due(now, period)
        {
            self.close_idle(now);
        }
    }
}

impl Owner for Lane {
    fn take_in(&self, stream: Arc<dyn Stream>, bidirectional: &Arc<Bidirectional>) -> bool {
        let peer = Peer::of(stream.caller(), stream.caller_name().as_deref());
        let account = self.io.accounts.of(peer);
        for place in places_of(&*stream) {
            account.take_anyway(*place, 1);
        }
        self.admit(stream, Some(bidirectional), account) && bidirectional.is_open()
    }

    fn write_over(&self, key: SlotKey, message: &[u8]) -> bool {
        let Some(connection) = self.connections.pin(key) else {
            return false;
        };
        connection.write_from_outside(&self.io, message);
        connection.let_read(&self.io);
        // The thread that has adopted the connection may be the one that calls: another thread must read the reply.
        if self.server.is_served_here() {
            connection.revoke_adoption(&self.io);
        }
        true
    }

    fn patience_for_replies(&self) -> Patience<'_> {
        static NONE: WaitPermits = WaitPermits::new(0);
        let is_reader = self.shape.threads == 0 || self.server.is_own_thread();
        let has_others = self.threads.max() > 1;
        is_reader.then_some(if has_others {
            &self.server.wait_permits
        } else {
            &NONE
        })
    }

    fn is_served_here(&self) -> bool {
        self.server.is_served_here()
    }

    fn turn_by_hand(self: Arc<Self>, patience: Option<Duration>) {
        self.turn(None, patience);
    }

    fn discard_queued(&self, requests: &RequestQueue) {
        self.discard_requests(requests);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_follow_from_the_memory_of_the_process_and_never_exceed_their_constants() {
        let mut shape = crate::OrbBuilder::default().into_shape();
        shape.limit_memory(u64::MAX);
        let sizes = |shape: &LaneShape| {
            let [inbound, outbound] = [shape.inbound_size_max, shape.outbound_size_max];
            [shape.sizes.message_max, inbound, outbound]
        };
        let most = [MESSAGE_SIZE_MAX, INBOUND_SIZE_MAX, OUTBOUND_SIZE_MAX];
        assert_eq!(sizes(&shape), most);
        assert_eq!(shape.connections_max, CONNECTIONS_MAX);
        shape.limit_memory(256 << 20);
        assert_eq!(sizes(&shape), [4 << 20, 32 << 20, 32 << 20]);
        let most_served = (shape.threads + shape.threads_dynamic) * shape.sizes.message_max;
        let first_buffers = shape.connections_max * BUFFER_SIZE;
        assert!(most_served + first_buffers + (64 << 20) <= 224 << 20);
        shape.limit_memory(1);
        assert_eq!(shape.connections_max, CONNECTIONS_FEW);
    }
}
