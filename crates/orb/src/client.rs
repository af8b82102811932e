//! The caller's side: connections to servers, and the way of one request out and its reply back.
//!
//! The caller reads its own reply: a connection serves one call at a time, and idle ones wait in a pool per endpoint.
//! One-ways towards one endpoint go over one connection of their own, so that they keep the order of their calls.

mod abandoned;
mod asynchronous;
mod attempt;
mod bidirectional;
mod call;
mod collocated;
mod exchange;
mod oneway;
mod outbox;
mod priority;
mod receive;
mod redirect;
mod request;
mod times;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use deckwatch_sync::{Lent, PiMutex, PiMutexGuard, Pool, Settable};

use crate::budget::Budget;
use crate::connection::bidirectional::{Bidirectional, Offer};
use crate::counters::{Counter, Counters};
use crate::interceptor::Registry;
use crate::limits::{
    COARSE_STEP, ENDPOINTS_MAX, IDLE_CONNECTIONS_MAX, LATE_CONNECTIONS_MAX, OUTSTANDING_MAX,
    SEALED_BUFFERS, STALE_CHECK_AFTER,
};
use crate::rt::{LinearNetwork, NetworkPriorityMapping, PriorityBand};
use crate::slab::Slab;
use crate::trace::{CallNumber, Side, Trace};
use crate::transport::{Endpoint, Instant64, Stream, StreamOptions, Transport, TransportError};
use crate::wire::Sizes;

use abandoned::Abandoned;
use asynchronous::SharedConnection;
pub(crate) use asynchronous::{End, Handler, Outstanding, Replies};
pub(crate) use call::{Call, CallKind, Outcome, Reply};
pub(crate) use oneway::send_oneway;
use outbox::Outbox;
pub(crate) use outbox::post_oneway;
pub(crate) use redirect::call_object;
pub(crate) use times::Deadlines;

/// Everything that goes out of one ORB.
pub(crate) struct Client {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) trace: Arc<Trace>,
    pub(crate) slab: Slab,
    pub(crate) sizes: Sizes,
    /// From CORBA priorities to those of packets.
    pub(crate) network: Settable<Arc<dyn NetworkPriorityMapping>>,
    /// By endpoint and code sets: what a connection has announced holds for all its requests.
    bindings: PiMutex<HashMap<BindingKey, Arc<Binding>>>,
    /// How far our clock may be off UTC, where that is known.
    clock_bound: Option<Duration>,
    /// Those that belong to one reference each, and go with it.
    private_bindings: PiMutex<Vec<Weak<Binding>>>,
    /// How long a connection may be unused before it is closed.
    idle_timeout: Duration,
    /// When connections are next looked at for that.
    idle_due: AtomicU64,
    /// How long a caller looks for its reply before it sleeps; none: it sleeps at once.
    spin: Option<Duration>,
    /// The ORB has been sealed.
    is_sealed: AtomicBool,
    /// A connection has been made: its callers need buffers to read into.
    is_connected: AtomicBool,
    /// Asynchronous calls; made for the first of them.
    replies: PiMutex<Option<Arc<Replies>>>,
    /// How many of them have not been given to anybody.
    outstanding: Budget,
    /// The number of the last request that was not sent but served by its caller.
    collocated: AtomicU32,
    pub(crate) interceptors: Arc<Registry>,
    /// What servers are offered that may call back; made with the first adapter that allows it.
    pub(crate) offer: OnceLock<Offer>,
}

/// An endpoint, the code sets service context announced there, and what else connections have that all may share.
type BindingKey = (Endpoint, Option<[u8; 12]>, Quality);

/// What tells connections to one endpoint apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Quality {
    /// The priorities whose calls share them; none: all.
    pub(crate) band: Option<PriorityBand>,
    pub(crate) options: StreamOptions,
}

/// The connections to one endpoint.
pub(crate) struct Binding {
    endpoint: Endpoint,
    quality: Quality,
    /// The server does not understand what is said of a connection's band.
    is_deaf_to_bands: AtomicBool,
    idle: Pool<ClientConnection>,
    oneway: PiMutex<Option<ClientConnection>>,
    /// Connections that wait for replies nobody waits for.
    late: Pool<ClientConnection>,
    /// The connection that asynchronous calls share.
    shared: PiMutex<Option<Arc<SharedConnection>>>,
    /// The connection over which the server may call back, where calls go over such.
    bidirectional: PiMutex<Option<Arc<Bidirectional>>>,
    /// One-ways that nobody waits for; made for the first of them.
    outbox: OnceLock<Option<Outbox>>,
    /// Held once by each connection besides: tells whether any is open.
    open: Arc<()>,
}

/// A connection that we have made.
pub(crate) struct ClientConnection {
    stream: Arc<dyn Stream>,
    request_id: u32,
    /// When a call last gave it back, or one-ways went over it: [`Transport::now_coarse`].
    last_used: Instant64,
    /// The server knows our code sets.
    code_sets_sent: bool,
    /// A call has it; one that is found so in the pool was left by a caller who has panicked.
    is_under_way: bool,
    late: Abandoned,
    life: Life,
}

/// That a connection is open: its endpoint knows, and the trace is told of its end.
struct Life {
    number: u32,
    trace: Arc<Trace>,
    _open: Arc<()>,
}

impl Drop for Life {
    fn drop(&mut self) {
        self.trace.closed(self.number);
    }
}

impl Client {
    pub(crate) fn new(
        transport: Arc<dyn Transport>,
        counters: Arc<Counters>,
        trace: Arc<Trace>,
        sizes: Sizes,
        buffer_size: usize,
        idle_timeout: Duration,
        clock_bound: Option<Duration>,
        interceptors: Arc<Registry>,
    ) -> Self {
        Self {
            transport,
            counters,
            trace,
            slab: Slab::new(buffer_size, 0),
            sizes,
            network: Settable::new(Arc::new(LinearNetwork)),
            bindings: PiMutex::default(),
            clock_bound,
            private_bindings: PiMutex::default(),
            idle_timeout,
            idle_due: AtomicU64::new(0),
            spin: None,
            is_sealed: AtomicBool::new(false),
            is_connected: AtomicBool::new(false),
            replies: PiMutex::new(None),
            outstanding: Budget::new(OUTSTANDING_MAX as usize),
            collocated: AtomicU32::new(0),
            interceptors,
            offer: OnceLock::new(),
        }
    }

    /// The same, whose callers look for their replies for so long before they sleep.
    pub(crate) fn with_spin(self, spin: Option<Duration>) -> Self {
        Self { spin, ..self }
    }

    /// Returns the mapping to the priorities of packets that is in use.
    pub(crate) fn network_mapping(&self) -> Arc<dyn NetworkPriorityMapping> {
        let mapping = self.network.get();
        mapping.expect("a mapping is set from the beginning")
    }

    /// Takes the memory that calls need. What is read of connections needs some where there are any: a server that only serves has none.
    pub(crate) fn seal(&self) {
        self.slab.fill_written(SEALED_BUFFERS);
        // SYNC: pairs with the exchange in `note_connected`: one of both sees the other.
        self.is_sealed.store(true, Ordering::SeqCst);
        if self.is_connected.load(Ordering::SeqCst) {
            self.slab.fill_read(SEALED_BUFFERS);
        }
    }

    /// The first connection after the seal takes what the seal left out.
    fn note_connected(&self) {
        let is_first = !self.is_connected.swap(true, Ordering::SeqCst);
        if is_first && self.is_sealed.load(Ordering::SeqCst) {
            self.slab.fill_read(SEALED_BUFFERS);
        }
    }

    /// The connections of this quality to `endpoint`, shared by all references to it.
    pub(crate) fn binding(
        &self,
        endpoint: Endpoint,
        code_sets: Option<[u8; 12]>,
        quality: Quality,
    ) -> Arc<Binding> {
        let key = (endpoint, code_sets, quality);
        let mut bindings = self.bindings.lock("client.bindings");
        if let Some(binding) = bindings.get(&key) {
            return Arc::clone(binding);
        }
        if bindings.len() >= ENDPOINTS_MAX {
            bindings.retain(|_, binding| Arc::strong_count(binding) > 1);
        }
        let binding = Arc::new(Binding::new(key.0.clone(), quality));
        bindings.insert(key, Arc::clone(&binding));
        binding
    }

    /// As [`Client::binding`], for one reference alone: its connections close when it goes.
    pub(crate) fn private_binding(&self, endpoint: Endpoint, quality: Quality) -> Arc<Binding> {
        let binding = Arc::new(Binding::new(endpoint, quality));
        let mut private = self.private_bindings.lock("client.private");
        private.retain(|binding| binding.strong_count() != 0);
        private.push(Arc::downgrade(&binding));
        binding
    }

    fn live_private_bindings(&self) -> Vec<Arc<Binding>> {
        let private = self.private_bindings.lock("client.private");
        private.iter().filter_map(Weak::upgrade).collect()
    }

    /// Closes every connection that no call is using.
    pub(crate) fn close(&self) {
        let bindings = std::mem::take(&mut *self.bindings.lock("client.close"));
        let mut bindings: Vec<_> = bindings.into_values().collect();
        bindings.extend(self.live_private_bindings());
        self.close_outboxes(&bindings);
        for binding in bindings {
            while binding.idle.take().is_some() {}
            while binding.late.take().is_some() {}
            *binding.oneway.lock("client.close") = None;
            binding.close_shared();
        }
    }

    /// Takes a lock in the time that a call has; none: it was not free in time.
    fn lock_until<'l, T>(
        &self,
        lock: &'l PiMutex<T>,
        purpose: &'static str,
        until: Option<Instant64>,
    ) -> Option<PiMutexGuard<'l, T>> {
        match until {
            None => Some(lock.lock(purpose)),
            Some(until) => lock.lock_within(purpose, until.since(self.transport.now())),
        }
    }

    fn next_collocated(&self) -> u32 {
        self.collocated
            .fetch_add(1, Ordering::Relaxed)
            .wrapping_add(1)
    }

    fn connect(
        &self,
        binding: &Binding,
        call: CallNumber,
        deadline: Instant64,
    ) -> Result<ClientConnection, TransportError> {
        let begun = self.trace.begin();
        let peer = &binding.endpoint;
        let stream = self
            .transport
            .connect(peer, &binding.quality.options, Some(deadline))
            .inspect_err(|error| {
                self.counters.count(Counter::ConnectFailures);
                let waited = self.trace.since(begun);
                self.trace.not_opened(call, peer, *error, waited);
            })?;
        self.counters.count(Counter::ConnectionsMade);
        self.note_connected();
        let number = self.trace.next_connection();
        let waited = self.trace.since(begun);
        self.trace.opened(number, Side::Client, peer, waited);
        let last_used = self.transport.now_coarse();
        Ok(ClientConnection {
            stream: stream.into(),
            request_id: 0,
            last_used,
            code_sets_sent: false,
            is_under_way: false,
            late: Abandoned::default(),
            life: Life {
                number,
                trace: Arc::clone(&self.trace),
                _open: Arc::clone(&binding.open),
            },
        })
    }

    /// An idle connection that the server has not closed.
    fn lend_idle<'b>(&self, binding: &'b Binding) -> Option<Lent<'b, ClientConnection>> {
        loop {
            while let Some(mut connection) = binding.idle.lend() {
                let now = self.transport.now_coarse();
                if !connection.is_under_way && self.is_fresh(&connection, now) {
                    connection.is_under_way = true;
                    return Some(connection);
                }
                std::hint::cold_path();
                drop(connection.into_value());
            }
            std::hint::cold_path();
            let mut settled = self.take_settled(binding)?;
            settled.is_under_way = false;
            settled.last_used = self.transport.now_coarse();
            let _enough_idle = binding.idle.put(settled);
        }
    }

    /// Whether a connection can be used now. After a pause it is looked at: anything to read then is the server's
    /// farewell, for nothing else is expected.
    #[inline]
    fn is_fresh(&self, connection: &ClientConnection, now: Instant64) -> bool {
        let pause = now.since(connection.last_used);
        let is_in_use = connection.late.is_empty() && pause + COARSE_STEP < STALE_CHECK_AFTER;
        is_in_use || self.seems_fresh(connection, pause)
    }

    #[cold]
    fn seems_fresh(&self, connection: &ClientConnection, pause: Duration) -> bool {
        if !connection.late.is_empty() {
            return self.drain(connection);
        }
        let fresh = pause < self.idle_timeout && !connection.stream.is_readable();
        if !fresh {
            self.counters.count(Counter::StaleConnections);
        }
        fresh
    }

    /// As [`Client::close_idle`], where it is time for that.
    #[inline]
    fn close_idle_at(&self, now: Instant64) {
        if now.0 >= self.idle_due.load(Ordering::Relaxed) {
            self.close_idle(now);
        }
    }

    /// Closes the connections, towards whichever endpoint, that have been unused for too long or that the server has closed.
    #[cold]
    fn close_idle(&self, now: Instant64) {
        // A connection may be idle for a quarter longer than it should.
        let next = now.after(self.idle_timeout / 4).0;
        let due = self.idle_due.swap(next, Ordering::Relaxed);
        if due > now.0 || due == 0 {
            return;
        }
        for binding in self.bindings.lock("client.idle").values() {
            self.close_idle_of(binding, now);
        }
        let private = self.private_bindings.lock("client.idle");
        for binding in private.iter().filter_map(Weak::upgrade) {
            self.close_idle_of(&binding, now);
        }
    }

    fn close_idle_of(&self, binding: &Binding, now: Instant64) {
        let is_used = |connection: &ClientConnection| {
            let is_young = now.since(connection.last_used) < self.idle_timeout;
            !connection.late.is_empty() || is_young && !connection.stream.is_readable()
        };
        let keep = |is_kept: bool| {
            if !is_kept {
                self.counters.count(Counter::ClientConnectionsIdle);
            }
            is_kept
        };
        binding.idle.retain(|connection| keep(is_used(connection)));
        // A server that has not answered in this time never will.
        let may_be_late =
            |connection: &ClientConnection| now.since(connection.last_used) < self.idle_timeout;
        binding
            .late
            .retain(|connection| keep(may_be_late(connection)));
        if let Some(mut oneway) = binding.oneway.try_lock("client.idle")
            && oneway
                .as_ref()
                .is_some_and(|connection| !is_used(connection))
        {
            self.counters.count(Counter::ClientConnectionsIdle);
            *oneway = None;
        }
    }
}

impl Binding {
    /// Whether one-ways have gone out, or are about to, that may not have been served yet.
    fn has_oneways(&self) -> bool {
        self.oneway.lock("client.collocated").is_some() || self.has_queued()
    }

    fn new(endpoint: Endpoint, quality: Quality) -> Self {
        Self {
            endpoint,
            quality,
            is_deaf_to_bands: AtomicBool::new(false),
            idle: Pool::with_capacity(IDLE_CONNECTIONS_MAX),
            oneway: PiMutex::new(None),
            late: Pool::with_capacity(LATE_CONNECTIONS_MAX),
            shared: PiMutex::new(None),
            outbox: OnceLock::new(),
            bidirectional: PiMutex::new(None),
            open: Arc::default(),
        }
    }

    pub(crate) const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
}

impl ClientConnection {
    /// The bare stream, for a lane to read.
    fn into_stream(self) -> Arc<dyn Stream> {
        self.stream
    }

    /// A call is done with it, and the next one may have it: it is idle from now on.
    #[inline]
    fn note_use(&mut self, transport: &dyn Transport) -> Instant64 {
        self.last_used = transport.now_coarse();
        self.is_under_way = false;
        self.last_used
    }

    fn next_request_id(&mut self) -> u32 {
        self.request_id = self.request_id.wrapping_add(1);
        self.request_id
    }
}
