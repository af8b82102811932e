//! The client's half: how a call becomes a request, and how its reply returns.
//!
//! A plain call passes four of these files, in this order: `redirect.rs` (which reference's addresses), `attempt.rs`
//! (which target, which connection), `exchange.rs` (one request, one reply), `request.rs` (the message). `retry.rs`
//! decides whether an attempt is followed by another one. The calling thread reads its own reply: a connection serves
//! one call at a time, and idle connections wait in a pool for each endpoint. One-ways to one endpoint share a
//! connection, which keeps their order; asynchronous calls share another one.

mod abandoned;
mod asynchronous;
mod attempt;
mod bidirectional;
mod binding;
mod bindings;
mod call;
mod collocated;
mod connection;
mod exchange;
mod oneway;
mod outbox;
mod priority;
mod reach;
mod receive;
mod redirect;
mod reply;
mod request;
mod retry;
mod target;
mod times;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use deckwatch_sync::{Budget, PiMutex, PiMutexGuard, Settable};

use crate::call_side::WholeOrb;
use crate::connection::bidirectional::Offer;
use crate::counters::Counters;
use crate::delivery::Engine;
use crate::interceptor::Registry;
use crate::limits::{OUTSTANDING_MAX, SEALED_BUFFERS};
use crate::origin::Reach;
use crate::rt::{LinearNetwork, NetworkPriorityMapping};
use crate::slab::Slab;
use crate::trace::Trace;
use crate::transport::{Instant64, Transport};
use crate::wire::Sizes;

pub(crate) use asynchronous::{End, Handler, Outstanding, Replies};
pub(crate) use binding::Quality;
pub(crate) use bindings::Bindings;
pub(crate) use call::{Call, CallKind};
pub(crate) use collocated::CollocatedServer;
pub(crate) use oneway::send_oneway;
pub(crate) use outbox::post_oneway;
pub(crate) use redirect::{call_object, with_current_targets};
pub(crate) use reply::{Outcome, Reply};
pub(crate) use request::RequestExtras;
pub(crate) use target::Target;
pub(crate) use times::{Deadlines, travelling_times};

/// The client's half of an ORB: what all its calls share.
pub(crate) struct Client {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) trace: Arc<Trace>,
    pub(crate) slab: Slab,
    pub(crate) sizes: Sizes,
    /// From CORBA priorities to those of packets.
    pub(crate) network: Settable<Arc<dyn NetworkPriorityMapping>>,
    pub(crate) bindings: Bindings,
    /// How far this host's clock may be off UTC, if that is known.
    clock_bound: Option<Duration>,
    /// How long a caller polls for its reply before it sleeps; `None`: it sleeps at once.
    spin: Option<Duration>,
    buffers: ReadBuffers,
    /// Asynchronous calls; made for the first of them.
    replies: PiMutex<Option<Arc<Replies>>>,
    /// How many asynchronous calls have not been taken.
    outstanding: Budget,
    /// The deliveries of this ORB.
    deliveries: PiMutex<Vec<Weak<Engine>>>,
    /// The id of the last collocated request.
    collocated: AtomicU32,
    pub(crate) interceptors: Arc<Registry>,
    /// Where references of peers lead; `None`: everywhere, and nobody asks who gave them.
    reach: Option<Reach>,
    /// The ORB that it belongs to.
    whole: OnceLock<Weak<dyn WholeOrb>>,
    /// What servers that may call back are offered; made with the first adapter that allows it.
    pub(crate) offer: OnceLock<Offer>,
}

/// When buffers to read into are allocated: at the seal of an ORB that has connected, or with its first connection
/// after that. An ORB that only serves needs none.
#[derive(Default)]
struct ReadBuffers {
    is_sealed: AtomicBool,
    is_connected: AtomicBool,
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
            bindings: Bindings::new(idle_timeout),
            clock_bound,
            spin: None,
            buffers: ReadBuffers::default(),
            replies: PiMutex::new(None),
            outstanding: Budget::new(OUTSTANDING_MAX as usize),
            deliveries: PiMutex::default(),
            collocated: AtomicU32::new(0),
            interceptors,
            reach: None,
            whole: OnceLock::new(),
            offer: OnceLock::new(),
        }
    }

    /// The same, whose callers poll for their replies for so long before they sleep.
    pub(crate) fn with_spin(self, spin: Option<Duration>) -> Self {
        Self { spin, ..self }
    }

    /// The same with another mapping to the priorities of packets.
    pub(crate) fn with_network_mapping(self, mapping: Arc<dyn NetworkPriorityMapping>) -> Self {
        let network = Settable::new(mapping);
        Self { network, ..self }
    }

    /// The mapping to the priorities of packets that is in use.
    pub(crate) fn network_mapping(&self) -> Arc<dyn NetworkPriorityMapping> {
        let mapping = self.network.get();
        mapping.expect("a mapping is set from the beginning")
    }

    /// Allocates what calls need from now on.
    pub(crate) fn seal(&self) {
        self.slab.fill_written(SEALED_BUFFERS);
        // SYNC: pairs with the exchange in `note_connected`: at least one of both sees the other.
        self.buffers.is_sealed.store(true, Ordering::SeqCst);
        if self.buffers.is_connected.load(Ordering::SeqCst) {
            self.slab.fill_read(SEALED_BUFFERS);
        }
    }

    /// The first connection after the seal allocates what the seal left out.
    fn note_connected(&self) {
        let is_first = !self.buffers.is_connected.swap(true, Ordering::SeqCst);
        if is_first && self.buffers.is_sealed.load(Ordering::SeqCst) {
            self.slab.fill_read(SEALED_BUFFERS);
        }
    }

    /// The ORB turns and closes this engine.
    pub(crate) fn add_deliveries(&self, engine: &Arc<Engine>) {
        let mut all = self.deliveries.lock("client.deliveries");
        all.retain(|engine| engine.strong_count() != 0);
        all.push(Arc::downgrade(engine));
    }

    /// The engines of deliveries that are alive.
    pub(crate) fn deliveries(&self) -> Vec<Arc<Engine>> {
        let all = self.deliveries.lock("client.deliveries");
        all.iter().filter_map(Weak::upgrade).collect()
    }

    /// Closes every connection that no call is using.
    pub(crate) fn close(&self) {
        let bindings = self.bindings.take_all();
        outbox::close_outboxes(self, &bindings);
        for binding in bindings {
            binding.close();
        }
    }

    /// Takes a lock in the time that a call has; `None`: it was not free in time.
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
}
