//! Requests that are marshalled once, written without waiting, and delivered to any number of receivers: what an event
//! channel is made of.
//!
//! # Shape
//!
//! ```text
//! Deliveries::marshal ──► Marshalled ──► Outlet::offer, one for each receiver ──► connection ──► receiver
//!     one bound of octets     shared body     bounded queue, policy, window        shared by all outlets of
//!                                                                                  one endpoint and priority
//! ```
//!
//! * [`Deliveries`] is the engine. It has one bound on the octets of all bodies that are alive ([`Marshalled`]), and an
//!   I/O thread for each priority in use. Threads do not grow with receivers. The I/O thread of outlets without a
//!   priority inherits the scheduling of the thread that calls [`Deliveries::start`]; that of a priority has the native
//!   priority that the ORB maps it to.
//! * [`Outlet`] is one receiver: a bounded queue, a policy for when it is full ([`WhenFull`]), and counters.
//!   [`Outlet::offer`] never waits: the calling thread writes header and shared body with one vectored write if nothing
//!   is in front. [`Outlet::offer_in`] with a [`Batch`] writes what goes over one connection with one call.
//! * [`OutletOptions::window`] is 0 for one-ways, else the number of two-way requests under way to the receiver. The
//!   I/O thread reads the replies.
//! * A receiver's connection is opened when its outlet is made, without waiting for the peer.
//! * An outlet ends by itself when its receiver is gone; its [`OutletOwner`] is notified. All end with their ORB.
//! * An ORB that is turned by hand has no such threads: [`Orb::perform_work`] does their work.
//!
//! # What goes another way
//!
//! A receiver in the same ORB is reached over the ORB's own listener. Unix sockets and shared memory are used as calls
//! use them. Location forwards, other addressing, bidirectional connections, interceptors and fragments need the calling
//! side of the ORB: those outlets keep their queue and their policy, and one more thread calls their receivers.
//!
//! When the peer closes a connection in order, two-way requests under way are sent again. When a connection is lost, they
//! count as failed: the receiver may have served them.
//!
//! ```no_run
//! # use std::sync::{Arc, Weak};
//! # use deckwatch_orb::delivery::*;
//! # fn show(orb: &deckwatch_orb::Orb, receiver: &deckwatch_orb::ObjectRef, options: OutletOptions,
//! #     owner: Weak<dyn OutletOwner>) -> Result<(), Box<dyn std::error::Error>> {
//! let deliveries = Deliveries::start(orb, DeliveryOptions::default())?;
//! let outlet = deliveries.outlet(receiver, options, owner)?;
//! let event = deliveries.marshal(outlet.form(), |w| w.write_u32(7))?;
//! outlet.offer(&event);
//! # Ok(())
//! # }
//! ```

mod batch;
mod callers;
mod connection;
mod flights;
mod marshalled;
mod openers;
mod outlet;
mod replies;
mod worker;
mod writing;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use deckwatch_cdr::{EncodeError, Reader, Version, Writer};
use deckwatch_sync::{PiMutex, SlotTable};

use crate::call_side::CallSide;
use crate::limits::{DELIVERY_SIZE_MAX, OUTLETS_MAX, REPLY_TIMEOUT};
use crate::rt::{self, Exposed, Priority, Protocol};
use crate::transport::Instant64;
use crate::wire::{self, Address};
use crate::{Completion, ObjectRef, Orb, SystemException, raise, raise::own};

use callers::Callers;
use connection::Peer;
use marshalled::Store;
use outlet::Counts;
use worker::Worker;

pub use batch::Batch;
pub use marshalled::{Charge, Form, MarshalError, Marshalled};
pub use outlet::{End, Outlet, OutletOptions, OutletOwner, WhenFull};

/// Options of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryOptions {
    /// Octets of all bodies and [`Charge`]s that are alive. At the bound the oldest queued event goes first.
    pub size_max: usize,
    /// How long a two-way request waits for its reply before it counts as failed. A connection whose peer takes nothing
    /// of a message for so long is closed.
    pub reply_timeout: Duration,
    /// How often the receiver of one-ways is asked whether it still exists: it sends no replies. `None`: never.
    pub ask_period: Option<Duration>,
}

impl Default for DeliveryOptions {
    fn default() -> Self {
        Self {
            size_max: DELIVERY_SIZE_MAX,
            reply_timeout: REPLY_TIMEOUT,
            ask_period: None,
        }
    }
}

/// Counts of one outlet, or of all outlets of an engine, ended ones too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryCounts {
    /// Requests that were served; one-ways that the transport has taken.
    pub delivered: u64,
    /// Events that were dropped by a policy, by the bound of octets, or because the outlet was closed or has ended.
    pub dropped: u64,
    /// Requests that failed, those that could not be written included.
    pub failed: u64,
}

/// Bodies that wait in front of outlets, such as in the queues of dispatching threads. They count against the bound.
pub trait Backlog: Send + Sync {
    /// Drops and counts the body that matters least, if `may_drop` permits it. Returns whether it has dropped one.
    fn drop_one(&self, may_drop: &dyn Fn(&Marshalled) -> bool) -> bool;
}

/// The outlets of one service, their connections and their I/O threads. Dropping it closes them all.
pub struct Deliveries(Arc<Engine>);

pub(crate) struct Engine {
    calls: Arc<CallSide>,
    options: DeliveryOptions,
    store: Arc<Store>,
    workers: PiMutex<Vec<Arc<Worker>>>,
    outlets: SlotTable<Arc<Outlet>>,
    callers: Callers,
    counts: Arc<Counts>,
    backlog: OnceLock<Weak<dyn Backlog>>,
    /// Held by the thread that makes room.
    evicting: PiMutex<()>,
    is_closed: AtomicBool,
}

impl Deliveries {
    /// Starts an engine and its I/O thread for outlets without a priority.
    ///
    /// # Errors
    /// NO_RESOURCES without a descriptor or a thread.
    pub fn start(orb: &Orb, options: DeliveryOptions) -> Result<Self, SystemException> {
        let engine = Arc::new(Engine {
            calls: Arc::clone(&orb.0.calls),
            options,
            store: Store::new(options.size_max),
            workers: PiMutex::default(),
            outlets: SlotTable::without_memory(),
            callers: Callers::default(),
            counts: Arc::default(),
            backlog: OnceLock::new(),
            evicting: PiMutex::new(()),
            is_closed: AtomicBool::new(false),
        });
        engine.worker(None)?;
        orb.0.calls.client.add_deliveries(&engine);
        Ok(Self(engine))
    }

    /// Makes an outlet to `receiver`, and begins to connect to it by the `ClientProtocol` policy in force. `owner` is
    /// told if the outlet ends by itself.
    ///
    /// # Errors
    /// INV_OBJREF for a reference without a known address; INV_POLICY if it has none of the protocols in force;
    /// DATA_CONVERSION if these ask for a network priority and the mapping has none; NO_RESOURCES at
    /// [`OUTLETS_MAX`] or without a thread for its priority, with the minor code
    /// [`PRIORITY_DENIED`](crate::own_minor::PRIORITY_DENIED) if the host refuses the thread its priority; BAD_INV_ORDER
    /// once the engine is closed.
    pub fn outlet(
        &self,
        receiver: &ObjectRef,
        options: OutletOptions,
        owner: Weak<dyn OutletOwner>,
    ) -> Result<Arc<Outlet>, SystemException> {
        self.0.outlet(receiver, options, owner)
    }

    /// Marshals a body.
    ///
    /// # Errors
    /// [`MarshalError`].
    pub fn marshal(
        &self,
        form: Form,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<Marshalled, MarshalError> {
        self.0.marshal((form, None), write)
    }

    /// Marshals a body whose requests call `operation` in place of [`OutletOptions::operation`].
    ///
    /// # Errors
    /// [`MarshalError`].
    pub fn marshal_call(
        &self,
        form: Form,
        operation: &Arc<str>,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<Marshalled, MarshalError> {
        self.0.marshal((form, Some(operation)), write)
    }

    /// Takes the arguments of a request as they came, undecoded. Returns `None` if their octets depend on where they
    /// stood in their message: before GIOP 1.2 at another alignment, or in fragments of GIOP 1.1.
    ///
    /// # Errors
    /// [`MarshalError::NoRoom`].
    pub fn take_arguments(
        &self,
        arguments: &Reader<'_>,
    ) -> Result<Option<Marshalled>, MarshalError> {
        let codec = arguments.codec();
        let is_aligned = codec.version == Version::V1_2 || arguments.phase() == 0;
        if !is_aligned || arguments.is_divided() {
            return Ok(None);
        }
        let form = Form {
            order: arguments.order(),
            codec,
        };
        let at = arguments
            .position()
            .next_multiple_of(if codec.version == Version::V1_2 { 8 } else { 1 });
        let octets = arguments.bytes().get(at..).unwrap_or_default();
        self.0.store.copy(form, octets, || self.0.evict()).map(Some)
    }

    /// Charges octets that are kept beside the bodies to the bound. Returns `None` if they do not fit, although all
    /// that could be dropped was dropped.
    #[must_use]
    pub fn charge(&self, size: usize) -> Option<Charge> {
        Charge::new(&self.0.store, size, || self.0.evict())
    }

    /// At the bound, what waits in `backlog` is dropped, too. Only the first backlog counts.
    pub fn set_backlog(&self, backlog: Weak<dyn Backlog>) {
        let _ = self.0.backlog.set(backlog);
    }

    /// The counters of all outlets together.
    #[must_use]
    pub fn counts(&self) -> DeliveryCounts {
        self.0.counts.read()
    }

    /// Octets of all bodies and charges that are alive.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.store.held()
    }

    /// The count of connections, those that are closed and opened again on demand included.
    #[must_use]
    pub fn connections(&self) -> usize {
        let workers = self.0.workers.lock("delivery.count");
        workers.iter().map(|worker| worker.count()).sum()
    }

    /// Closes all outlets and connections at once, and ends the threads.
    pub fn close(&self) {
        self.0.close();
    }
}

impl std::fmt::Debug for Deliveries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deliveries")
            .field("options", &self.0.options)
            .finish_non_exhaustive()
    }
}

impl Drop for Deliveries {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Engine {
    fn now(&self) -> Instant64 {
        self.calls.client.transport.now_coarse()
    }

    fn marshal(
        &self,
        kind: (Form, Option<&Arc<str>>),
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<Marshalled, MarshalError> {
        let size_max = self.calls.client.sizes.message_max;
        self.store.marshal(kind, size_max, write, || self.evict())
    }

    /// For an ORB that is turned by hand: does what the threads would do, without waiting. Returns whether there was
    /// anything to do.
    pub(crate) fn turn(self: &Arc<Self>) -> bool {
        let workers = self.workers.lock("delivery.turn").clone();
        let mut any = false;
        for worker in workers {
            any |= worker.turn_by_hand(self);
        }
        any | self.callers.turn(self)
    }

    /// The I/O thread of a priority; the first use starts it.
    fn worker(
        self: &Arc<Self>,
        priority: Option<Priority>,
    ) -> Result<Arc<Worker>, SystemException> {
        let mut workers = self.workers.lock("delivery.worker");
        if self.is_closed.load(Ordering::Acquire) {
            return Err(raise::bad_inv_order(0, Completion::No));
        }
        if let Some(worker) = workers.iter().find(|worker| worker.priority == priority) {
            return Ok(Arc::clone(worker));
        }
        let worker = Worker::start(self, priority, &self.options)?;
        workers.push(Arc::clone(&worker));
        Ok(worker)
    }

    fn outlet(
        self: &Arc<Self>,
        receiver: &ObjectRef,
        mut options: OutletOptions,
        owner: Weak<dyn OutletOwner>,
    ) -> Result<Arc<Outlet>, SystemException> {
        options.queue_size_max = options.queue_size_max.min(self.store.size_max() / 4);
        let worker = self.worker(options.priority)?;
        let client = &self.calls.client;
        let (here, tls) = (client.transport.host_name(), client.transport.tls_use());
        let origin = receiver.origin();
        receiver.require_reach()?;
        let mut addresses = wire::profiles(receiver.ior(), &here, tls);
        client.keep_reachable(origin, &mut addresses);
        // A server with lanes is called at the lane of the priority, if it has one.
        let is_lane = |lane: Option<Priority>| lane.is_some() && lane == options.priority;
        if addresses.iter().any(|at| is_lane(at.lane)) {
            addresses.retain(|at| is_lane(at.lane));
        }
        let exposed = Exposed::of(receiver.ior());
        let protocols = receiver.protocols(exposed.as_ref())?;
        let addresses = by_protocol(addresses, protocols)?;
        let none = raise::inv_objref(own::NO_KNOWN_PROFILE, Completion::No);
        let profile = addresses.first().ok_or(none)?.profile.clone();
        let network = client.network_mapping();
        let with_options = |at: Address| -> Result<_, SystemException> {
            let set = rt::stream_options(protocols, &at.endpoint, &*network, options.priority)?;
            Ok((at.endpoint, set))
        };
        // Another profile may have another key: only the addresses of this one can be used with it.
        let of_profile = |at: &Address| at.profile.whole().1 == profile.whole().1;
        let addresses = addresses.into_iter().filter(of_profile);
        let peer = Peer {
            addresses: addresses.map(with_options).collect::<Result<_, _>>()?,
            code_sets: profile.code_sets,
            origin,
        };
        let by_calls = client.interceptors.client().is_some()
            || client.sizes.fragment.is_some()
            || receiver.has_way_back();
        let carries_priority = exposed.as_ref().is_some_and(Exposed::is_propagated);
        let connection = worker.connection(peer, options.is_private)?;
        let outlet = Arc::new(Outlet::new(
            self,
            owner,
            receiver.clone(),
            (profile, carries_priority),
            Arc::clone(&connection),
            by_calls,
            options,
        ));
        let full = raise::no_resources(0, Completion::No);
        let key = self.outlets.insert(Arc::clone(&outlet)).map_err(|_| full)?;
        if key.slot as usize >= OUTLETS_MAX {
            self.outlets.remove(key);
            return Err(full);
        }
        let _ = outlet.key.set(key); // It is new.
        if !by_calls {
            connection.open_first();
        }
        Ok(outlet)
    }

    /// Asks the receivers of one-ways whose connections are those of this worker, once in each period.
    fn ask(&self, worker: &Worker, now: Instant64) {
        let Some(period) = self.options.ask_period else {
            return;
        };
        self.outlets.for_each(|_, outlet| {
            if std::ptr::eq(&*outlet.connection.worker, worker) {
                outlet.ask_after(period, now);
            }
        });
    }

    /// An outlet has ended by itself.
    fn end(&self, outlet: &Arc<Outlet>, why: End) {
        if !outlet.end() {
            return;
        }
        outlet.connection.forget(outlet);
        if let Some(key) = outlet.key.get() {
            self.outlets.remove(*key);
        }
        if let Some(owner) = outlet.owner.upgrade() {
            owner.outlet_ended(outlet, why);
        }
    }

    /// Drops the oldest event that is queued, from all queues that begin with it, or one of the backlog that is as old.
    /// If none is queued, the oldest that a connection holds: a copy of what is under way, or a write that its peer
    /// does not take, with the connection. Returns false if there is none either.
    #[cold]
    fn evict(&self) -> bool {
        let _evicting = self.evicting.lock("delivery.evict");
        let mut oldest: Option<u64> = None;
        self.outlets.for_each(|_, outlet| {
            oldest = oldest.into_iter().chain(outlet.oldest()).min();
        });
        let backlog = self.backlog.get().and_then(Weak::upgrade);
        let is_as_old = |event: &Marshalled| oldest.is_none_or(|oldest| event.number() <= oldest);
        if backlog.is_some_and(|backlog| backlog.drop_one(&is_as_old)) {
            return true;
        }
        let workers = self.workers.lock("delivery.evict").clone();
        if let Some(number) = oldest {
            self.outlets.for_each(|_, outlet| outlet.evict(number));
            return true;
        }
        let oldest = workers.iter().filter_map(|worker| worker.oldest()).min();
        for worker in &workers {
            oldest.inspect(|number| worker.give_up(*number));
        }
        oldest.is_some()
    }

    /// Closes all outlets and connections at once, and ends the threads.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        let workers = std::mem::take(&mut *self.workers.lock("delivery.close"));
        let mut keys = Vec::new();
        self.outlets.for_each(|key, outlet| {
            keys.push(key);
            outlet.end();
        });
        for key in keys {
            self.outlets.remove(key);
        }
        for worker in workers {
            worker.close();
        }
        self.callers.close();
    }
}

/// Returns the addresses of these protocols, those of the first protocol first; all if no protocol is listed.
fn by_protocol(
    addresses: Vec<Address>,
    protocols: &[Protocol],
) -> Result<Vec<Address>, SystemException> {
    if protocols.is_empty() || addresses.is_empty() {
        return Ok(addresses);
    }
    let place = |at: &Address| {
        let kind = at.endpoint.protocol_type();
        protocols.iter().position(|it| it.protocol_type == kind)
    };
    let mut placed: Vec<_> = addresses
        .into_iter()
        .filter_map(|at| Some((place(&at)?, at)))
        .collect();
    placed.sort_by_key(|(place, _)| *place);
    if placed.is_empty() {
        return Err(raise::inv_policy(own::PROTOCOLS_MISSED, Completion::No));
    }
    Ok(placed.into_iter().map(|(_, at)| at).collect())
}

impl Drop for Outlet {
    fn drop(&mut self) {
        self.connection.worker.release(&self.connection);
    }
}
