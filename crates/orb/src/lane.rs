//! A lane: its own listener, poller, connections, buffers and threads; two lanes share nothing but the adapter's tables.
//!
//! Threads lead in turn: one event wakes one thread, which reads that connection and serves it while another waits in
//! the poller. A thread whose connection keeps it busy adopts it and waits in its read (see [`follow`]).

mod accept;
mod close;
pub(crate) mod follow;
mod housekeeping;
mod id;
mod protocols;
mod threads;
pub(crate) mod waiting;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use deckwatch_sync::{PiMutex, SlotTable};

use crate::budget::Budget;
use crate::connection::request_queue::QueueHeads;
use crate::connection::writing::room_of;
use crate::connection::{Connection, key_of};
use crate::counters::Counters;
use crate::limits::{BUFFERS_PER_THREAD, EARLY_REQUESTS_MAX};
use crate::orb::OrbCore;
use crate::rt::Protocols;
use crate::server::{PoolPlace, Server, ServerShape};
use crate::slab::Slab;
use crate::trace::Trace;
use crate::transport::{Endpoint, Event, Listener, Poller, Transport, TransportError};
use crate::wire::Sizes;
use follow::Seat;
pub(crate) use id::LaneId;
pub(crate) use waiting::RequestBuffers;
use waiting::{EarlyRequests, Neighbours, WaitingRoom};

/// What a lane may use.
#[derive(Clone, Debug)]
pub(crate) struct LaneShape {
    /// Threads it always has; none: somebody else calls [`Lane::turn`].
    pub(crate) threads: usize,
    /// Threads it may add while all serve.
    pub(crate) threads_dynamic: usize,
    pub(crate) connections_max: usize,
    pub(crate) sizes: Sizes,
    /// What buffers begin with.
    pub(crate) buffer_size: usize,
    /// Octets that all unfinished messages may hold beyond their first buffers.
    pub(crate) inbound_size_max: usize,
    /// How long a message may take to arrive.
    pub(crate) arrival_timeout: Duration,
    /// Octets of replies that may wait for all peers together.
    pub(crate) outbound_size_max: usize,
    /// How long a peer may take nothing of what waits for it.
    pub(crate) reply_timeout: Duration,
    /// How long a connection may bring nothing before it is closed; none: for ever.
    pub(crate) idle_timeout: Option<Duration>,
    /// What may wait for a thread within the ORB, in all lanes of the pool; none: what comes waits in the buffers of the system.
    pub(crate) buffering: Option<Arc<RequestBuffers>>,
    /// How far our clock may be off UTC, where that is known.
    pub(crate) clock_bound: Option<Duration>,
    /// How long a thread that has adopted a connection looks for its next request before it sleeps; none: it sleeps at once.
    pub(crate) spin: Option<Duration>,
}

impl LaneShape {
    /// Requests that may wait for their start: of a lane that can tell when that is.
    pub(crate) fn early_max(&self) -> usize {
        self.clock_bound.map_or(0, |_| EARLY_REQUESTS_MAX)
    }
}

/// Runs once on each new thread of a lane, before it serves: the place to set its scheduling.
pub(crate) type ThreadStart = Arc<dyn Fn() + Send + Sync>;

pub(crate) struct Lane {
    pub(crate) orb: Weak<OrbCore>,
    pub(crate) server: Arc<Server>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) trace: Arc<Trace>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) shape: LaneShape,
    pub(crate) station: LaneId,
    /// Held by whoever closes an idle connection for another.
    pub(crate) making_room: PiMutex<()>,
    /// Empty once the lane has closed.
    pub(crate) listeners: PiMutex<Vec<Box<dyn Listener>>>,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) poller: Box<dyn Poller>,
    pub(crate) connections: SlotTable<Connection>,
    pub(crate) slab: Slab,
    pub(crate) seats: Box<[Seat]>,
    /// Connections that are open.
    pub(crate) open: AtomicUsize,
    /// Threads that wait in the poller.
    pub(crate) waiting: AtomicUsize,
    /// Connections that have a thread of their own.
    pub(crate) adopted: AtomicUsize,
    /// What unfinished messages hold.
    pub(crate) inbound_budget: Arc<Budget>,
    /// What waits for peers holds.
    pub(crate) outbound_budget: Arc<Budget>,
    /// Accepting rests.
    pub(crate) resting: AtomicBool,
    /// Messages may be unfinished, on their way in or out.
    pub(crate) unfinished: AtomicBool,
    /// When the lane next looks after itself, while it has reason to.
    pub(crate) housekeeping_due: AtomicU64,
    /// Until when a thread waits in the poller that then looks after the lane, so that the others need not wake for it; 0: none does.
    pub(crate) kept_until: AtomicU64,
    /// When it next looks for messages that take too long.
    pub(crate) arrivals_due: AtomicU64,
    /// When it next looks for connections that are idle too long.
    pub(crate) idle_due: AtomicU64,
    pub(crate) closing: AtomicBool,
    /// Requests that wait for their start.
    pub(crate) early: EarlyRequests,
    /// Where requests wait for a thread, if they may.
    pub(crate) room: Option<Arc<WaitingRoom>>,
    pub(crate) neighbours: OnceLock<Neighbours>,
    /// QueueHeads of lines that wait for a thread.
    pub(crate) queue_heads: QueueHeads,
    /// How the connections are that it takes in, where an adapter has said so.
    pub(crate) protocols: PiMutex<Option<Protocols>>,
    /// Itself, once it is started.
    pub(crate) this: OnceLock<Weak<Self>>,
    pub(crate) threads: Mutex<Vec<JoinHandle<()>>>,
    pub(crate) thread_start: Option<ThreadStart>,
}

/// What one turn has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turned {
    /// Something was served or accepted.
    Served,
    /// The wait was cut short for the lane's own business.
    Kept,
    /// Nothing happened in time.
    Idle,
    /// The lane is closed.
    Closed,
}

impl Lane {
    /// Listens, and watches its listeners; threads come with [`Lane::start`].
    pub(crate) fn new(
        orb: &OrbCore,
        shape: LaneShape,
        station: LaneId,
        endpoints: &[Endpoint],
    ) -> Result<Self, (Endpoint, TransportError)> {
        let transport = Arc::clone(&orb.client.transport);
        let listen = |at: &Endpoint| {
            orb.listen(at, station.priority)
                .map_err(|error| (at.clone(), error))
        };
        let listeners = endpoints
            .iter()
            .map(listen)
            .collect::<Result<Vec<_>, _>>()?;
        let listened = listeners
            .iter()
            .zip(endpoints)
            .map(|(listener, asked)| asked.as_listened(listener.endpoint()))
            .collect();
        let nowhere = || Endpoint::tcp("", 0);
        let first = || endpoints.first().cloned().unwrap_or_else(nowhere);
        let poller = transport.poller().map_err(|error| (first(), error))?;
        let room = WaitingRoom::new(&shape, station.lenders, transport.as_ref())
            .map_err(|error| (first(), error))?;
        let waiting_max = room.as_ref().map_or(0, |room| room.capacity());
        let slab = Slab::new(shape.buffer_size, waiting_max).with_more_written(shape.early_max());
        let budgets = [shape.inbound_size_max, shape.outbound_size_max];
        let [inbound_budget, outbound_budget] = budgets.map(|max| Arc::new(Budget::new(max)));
        // One thread is left to read and to serve the others, where there are more.
        let threads_max = shape.threads + shape.threads_dynamic;
        let seats = (0..threads_max).map(|_| Seat::default()).collect();
        let server = Server::new(
            orb,
            ServerShape {
                sizes: shape.sizes,
                clock_bound: shape.clock_bound,
                place: PoolPlace {
                    pool: station.pool,
                    priority: station.priority,
                    is_lane: station.is_lane,
                },
                wait_permits: threads_max.saturating_sub(1).max(shape.threads.min(1)),
                is_turned_by_hand: shape.threads == 0,
            },
        );
        let lane = Self {
            orb: orb.this.clone(),
            server,
            counters: Arc::clone(&orb.client.counters),
            trace: Arc::clone(&orb.client.trace),
            transport,
            shape,
            station,
            making_room: PiMutex::new(()),
            listeners: PiMutex::new(listeners),
            endpoints: listened,
            poller,
            connections: SlotTable::new(),
            slab,
            seats,
            open: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            adopted: AtomicUsize::new(0),
            inbound_budget,
            outbound_budget,
            resting: AtomicBool::new(false),
            unfinished: AtomicBool::new(false),
            housekeeping_due: AtomicU64::new(0),
            kept_until: AtomicU64::new(0),
            arrivals_due: AtomicU64::new(0),
            idle_due: AtomicU64::new(0),
            closing: AtomicBool::new(false),
            early: EarlyRequests::new(),
            room,
            neighbours: OnceLock::new(),
            queue_heads: QueueHeads::new(),
            protocols: PiMutex::new(None),
            this: OnceLock::new(),
            threads: Mutex::default(),
            thread_start: orb.settings.thread_start.clone(),
        };
        lane.watch_listeners().map_err(|error| (first(), error))?;
        lane.prepare_keeper().map_err(|error| (first(), error))?;
        Ok(lane)
    }

    /// Where it listens.
    pub(crate) fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Takes the memory that serving needs; a thread that is added takes its own when it comes.
    pub(crate) fn seal(&self) {
        let waiting_max = self.room.as_ref().map_or(0, |room| room.capacity());
        let threads = self.shape.threads.max(1);
        self.slab.fill(BUFFERS_PER_THREAD * threads + waiting_max);
        self.early.reserve(self.shape.early_max());
        self.slab.fill_written(self.shape.early_max());
    }

    /// One cycle: wait for one event (at most `patience`), accept or read, dispatch, flush.
    pub(crate) fn turn(
        self: &Arc<Self>,
        seat: Option<usize>,
        patience: Option<Duration>,
    ) -> Turned {
        if self.closing.load(Ordering::Acquire) {
            return Turned::Closed;
        }
        if self.serve_early() || self.serve_waiting() {
            return Turned::Served;
        }
        // Lines and what the poller tells take turns.
        let has_served = self.serve_first();
        let patience = if has_served {
            Some(Duration::ZERO)
        } else {
            patience
        };
        // Before it looks for a keeper: SYNC: pairs with `end_wait`, where the keeper that leaves looks for a successor after it has said so.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        if self.has_waiting() || !has_served && !self.queue_heads.is_empty() {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            return Turned::Kept;
        }
        let wait = self.begin_wait(patience);
        let event = self.poller.wait(wait.limit);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        self.end_wait(&wait, event.is_some());
        self.keep_house();
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

    fn handle_event(self: &Arc<Self>, event: Event, seat: Option<usize>) {
        if let Some(listener) = accept::listener_of(event.token) {
            self.accept(listener);
        } else if let Some(key) = room_of(event.token) {
            self.keep_watch();
            self.handle_room(key, seat);
        } else {
            self.keep_watch();
            self.serve(key_of(event.token), event.ended, seat);
        }
    }

    /// Whether [`Lane::turn`] would find an event, where it is for somebody else to call it.
    pub(crate) fn is_pending(&self) -> bool {
        let has_own = || self.has_due() || !self.queue_heads.is_empty();
        self.shape.threads == 0 && (self.poller.is_pending() || has_own())
    }
}
