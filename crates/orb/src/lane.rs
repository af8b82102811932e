//! A lane: its own listener, poller, connections, buffers and threads; two lanes share nothing but the adapter's tables.
//!
//! Threads lead in turn: one event wakes one thread, which reads that connection and serves it while another waits in
//! the poller. A thread whose connection keeps it busy adopts it and waits in its read (see [`follow`]).

mod accept;
mod dispatch;
mod follow;
mod serve;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use deckwatch_sync::{PiMutex, SlotKey, SlotTable};

use crate::adapter::Adapter;
use crate::connection::{Inbound, Slab};
use crate::counters::{Counter, Counters};
use crate::current;
use crate::limits::{ACCEPT_REST, ADOPTION_SWEEP, DRAIN_TIMEOUT, DYNAMIC_THREAD_IDLE};
use crate::orb::OrbCore;
use crate::transport::{Endpoint, Event, Listener, Poller, Stream, Transport, TransportError};
use follow::Seat;

/// What a lane may use.
#[derive(Clone, Debug)]
pub(crate) struct LaneShape {
    /// Threads it always has; none: somebody else calls [`Lane::turn`].
    pub(crate) threads: usize,
    /// Threads it may add while all serve.
    pub(crate) threads_dynamic: usize,
    pub(crate) connections_max: usize,
    pub(crate) message_size_max: usize,
    /// What buffers begin with.
    pub(crate) buffer_size: usize,
}

/// Runs once on each new thread of a lane, before it serves: the place to set its scheduling.
pub(crate) type ThreadStart = Arc<dyn Fn() + Send + Sync>;

pub(crate) struct Lane {
    orb: Weak<OrbCore>,
    adapter: Arc<Adapter>,
    counters: Arc<Counters>,
    transport: Arc<dyn Transport>,
    shape: LaneShape,
    /// Empty once the lane has closed.
    listeners: PiMutex<Vec<Box<dyn Listener>>>,
    endpoints: Vec<Endpoint>,
    poller: Box<dyn Poller>,
    connections: SlotTable<ServerConnection>,
    slab: Slab,
    seats: Box<[Seat]>,
    /// Connections that are open.
    open: AtomicUsize,
    /// Threads that wait in the poller.
    waiting: AtomicUsize,
    /// Connections that have a thread of their own.
    adopted: AtomicUsize,
    /// Requests that are being served.
    in_progress: AtomicUsize,
    /// Accepting rests.
    resting: AtomicBool,
    closing: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
    thread_start: Option<ThreadStart>,
}

/// One accepted connection.
struct ServerConnection {
    stream: Box<dyn Stream>,
    /// Who holds this reads the connection.
    inbound: PiMutex<Inbound>,
    /// Something has happened since the connection was last read.
    signalled: AtomicBool,
    /// The peer has ended: read to the end, not to a wait.
    ended: AtomicBool,
    /// A thread waits in its read, and the poller does not watch it.
    adopted: AtomicBool,
    /// Requests in a row that the poller had to tell.
    streak: AtomicUsize,
    /// The client has announced UTF-8 for `string`.
    says_utf8: AtomicBool,
    /// Replies are written whole under this.
    write: PiMutex<()>,
}

/// What one turn has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turned {
    /// Something was served or accepted.
    Served,
    /// Nothing happened in time.
    Idle,
    /// The lane is closed.
    Closed,
}

impl Lane {
    /// Listens, and watches its listeners; threads come with [`Lane::start`].
    pub(crate) fn new(
        orb: Weak<OrbCore>,
        adapter: Arc<Adapter>,
        counters: Arc<Counters>,
        transport: Arc<dyn Transport>,
        shape: LaneShape,
        endpoints: &[Endpoint],
        thread_start: Option<ThreadStart>,
    ) -> Result<Self, (Endpoint, TransportError)> {
        let listen = |at: &Endpoint| transport.listen(at).map_err(|error| (at.clone(), error));
        let listeners = endpoints
            .iter()
            .map(listen)
            .collect::<Result<Vec<_>, _>>()?;
        let listened = listeners
            .iter()
            .map(|listener| listener.endpoint())
            .collect();
        let first = || {
            endpoints.first().cloned().unwrap_or(Endpoint {
                host: String::new(),
                port: 0,
            })
        };
        let poller = transport.poller().map_err(|error| (first(), error))?;
        let buffer_size = shape.buffer_size;
        let seats = (0..shape.threads + shape.threads_dynamic)
            .map(|_| Seat::default())
            .collect();
        let lane = Self {
            orb,
            adapter,
            counters,
            transport,
            shape,
            listeners: PiMutex::new(listeners),
            endpoints: listened,
            poller,
            connections: SlotTable::new(),
            slab: Slab::new(buffer_size),
            seats,
            open: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            adopted: AtomicUsize::new(0),
            in_progress: AtomicUsize::new(0),
            resting: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            threads: Mutex::default(),
            thread_start,
        };
        lane.watch_listeners().map_err(|error| (first(), error))?;
        Ok(lane)
    }

    /// Where it listens.
    pub(crate) fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Starts the static threads, and returns when each of them is there.
    pub(crate) fn start(self: &Arc<Self>) -> std::io::Result<()> {
        let (here, arrivals) = sync_channel(self.shape.threads);
        for seat in 0..self.shape.threads {
            self.add_thread(seat, None, Some(here.clone()))?;
        }
        drop(here);
        // Ends when every thread has let go of its end.
        arrivals.iter().for_each(drop);
        Ok(())
    }

    /// Takes the memory that serving needs.
    pub(crate) fn seal(&self) {
        self.slab.fill(2 * self.seats.len().max(1));
    }

    fn add_thread(
        self: &Arc<Self>,
        seat: usize,
        idle: Option<Duration>,
        here: Option<SyncSender<()>>,
    ) -> std::io::Result<()> {
        let lane = Arc::clone(self);
        let name = format!("orb-lane-{seat}");
        self.seats[seat].taken.store(true, Ordering::Release);
        let run = move || {
            if let Some(start) = &lane.thread_start {
                start();
            }
            // What a thread keeps for itself is taken now, not by its first request.
            current::enter(&lane.orb);
            if let Some(here) = here {
                let _starter_gave_up = here.send(());
            }
            lane.run(seat, idle);
            lane.seats[seat].taken.store(false, Ordering::Release);
        };
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(run)
            .inspect_err(|_| {
                self.seats[seat].taken.store(false, Ordering::Release);
                self.counters.count(Counter::ThreadsRefused);
            })?;
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
        Ok(())
    }

    /// Keeps a thread in the poller where the last one has left it to serve.
    fn keep_watch(self: &Arc<Self>) {
        if self.shape.threads_dynamic == 0 || self.waiting.load(Ordering::Acquire) != 0 {
            return;
        }
        let free = |seat: &Seat| {
            seat.taken
                .compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        };
        if let Some(seat) = self.seats.iter().position(free)
            && self
                .add_thread(seat, Some(DYNAMIC_THREAD_IDLE), None)
                .is_ok()
        {
            self.counters.count(Counter::ThreadsAdded);
        }
    }

    fn run(self: &Arc<Self>, seat: usize, idle: Option<Duration>) {
        loop {
            match self.turn(Some(seat), idle) {
                Turned::Served => {}
                Turned::Idle if idle.is_none() || self.waiting.load(Ordering::Acquire) == 0 => {}
                Turned::Idle | Turned::Closed => return,
            }
        }
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
        let (wait, is_patience) = self.wait_at_most(patience);
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let event = self.poller.wait(wait);
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        if self.resting.load(Ordering::Relaxed) && event.is_none() {
            self.resume_accepting();
        }
        match event {
            None => {
                self.sweep();
                if is_patience {
                    Turned::Idle
                } else {
                    Turned::Served
                }
            }
            Some(event) => {
                self.handle_event(event, seat);
                Turned::Served
            }
        }
    }

    fn handle_event(self: &Arc<Self>, event: Event, seat: Option<usize>) {
        if let Some(listener) = accept::listener_of(event.token) {
            self.accept(listener);
        } else {
            self.keep_watch();
            self.serve(key_of(event.token), event.ended, seat);
        }
    }

    /// How long to wait, and whether that is the caller's patience (else it is the lane's own business).
    fn wait_at_most(&self, patience: Option<Duration>) -> (Option<Duration>, bool) {
        let own = if self.resting.load(Ordering::Relaxed) {
            Some(ACCEPT_REST)
        } else {
            (self.adopted.load(Ordering::Relaxed) != 0).then_some(ADOPTION_SWEEP)
        };
        match (own, patience) {
            (Some(own), Some(patience)) if own < patience => (Some(own), false),
            (Some(own), None) => (Some(own), false),
            (_, patience) => (patience, true),
        }
    }

    fn close(&self, key: SlotKey, connection: &ServerConnection) {
        self.poller.forget(connection.stream.source());
        connection.stream.shutdown();
        if self.connections.remove(key) {
            self.counters.count(Counter::ConnectionsClosed);
            if self.open.fetch_sub(1, Ordering::AcqRel) >= self.shape.connections_max {
                self.resume_accepting();
            }
        }
    }

    /// Takes no new request, lets those in progress finish, tells every client that the connection closes.
    pub(crate) fn shutdown(&self) {
        if self.closing.swap(true, Ordering::AcqRel) {
            return;
        }
        self.poller.close();
        self.listeners.lock("lane.close").clear();
        let deadline = self.transport.now().after(DRAIN_TIMEOUT);
        while self.in_progress.load(Ordering::Acquire) > dispatch::depth_here(self)
            && self.transport.now() < deadline
        {
            std::thread::park_timeout(Duration::from_millis(1));
        }
        let mut keys = Vec::new();
        self.connections.for_each(|key, _| keys.push(key));
        for key in keys {
            if let Some(connection) = self.connections.pin(key) {
                self.say_goodbye(&connection);
                self.close(key, &connection);
            }
        }
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            if thread.thread().id() != std::thread::current().id()
                && self.transport.now() < deadline
            {
                join_until(thread, || self.transport.now() < deadline);
            }
        }
    }
}

/// Joins a thread that is ending; one that a servant holds beyond the deadline is left to end by itself.
fn join_until(thread: JoinHandle<()>, in_time: impl Fn() -> bool) {
    while !thread.is_finished() && in_time() {
        std::thread::park_timeout(Duration::from_millis(1));
    }
    if thread.is_finished() {
        let _panicked = thread.join();
    }
}

fn token_of(key: SlotKey) -> u64 {
    u64::from(key.slot) << 32 | u64::from(key.generation)
}

fn key_of(token: u64) -> SlotKey {
    SlotKey {
        slot: (token >> 32) as u32,
        generation: token as u32,
    }
}
