//! A COS event channel, push model on both sides (Event Service 1.2, clause 2.5).

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

use deckwatch_cdr::Any;
use deckwatch_orb::{
    Completion, Orb, Poa, PoaError, Servant, SystemException, SystemExceptionKind as Kind,
};
use deckwatch_sync::{PiMutex, SlotKey, SlotTable};

use crate::admin::{Channel, Consumers, Suppliers};
use crate::cos_event_channel_admin::{
    ConsumerAdminRef, ConsumerAdminSkeleton, EventChannelRef, EventChannelSkeleton,
    SupplierAdminRef, SupplierAdminSkeleton,
};
use crate::cos_event_comm::{PushConsumerRef, PushSupplierRef};
use crate::counters::{ChannelCounts, Counters};
use crate::limits;
use crate::outlet::{Ended, Outlet};

/// What may be chosen about a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelOptions {
    /// Events that wait for one consumer before the oldest gives way; 1 to [`limits::QUEUE_LEN_MAX`].
    pub queue_len: usize,
    /// How long one push to a consumer may take.
    pub push_timeout: Duration,
}

impl Default for ChannelOptions {
    fn default() -> Self {
        Self {
            queue_len: limits::QUEUE_LEN_DEFAULT,
            push_timeout: limits::PUSH_TIMEOUT_DEFAULT,
        }
    }
}

/// An event channel that serves on an ORB until it is destroyed.
pub struct EventChannel {
    shared: Arc<Shared>,
    reference: EventChannelRef,
}

impl EventChannel {
    /// Activates a channel in the ORB's root adapter.
    ///
    /// # Errors
    /// BAD_PARAM for a queue length out of bounds; what the adapter raises.
    pub fn start(orb: &Orb, options: ChannelOptions) -> Result<Self, SystemException> {
        Self::start_prepared(orb, options, || {})
    }

    /// [`EventChannel::start`], with `prepare` run on each consumer's thread before its first event: the place for its scheduling. A thread
    /// inherits none: it is made by one of the ORB's, whose class need not be the right one for it.
    ///
    /// # Errors
    /// As [`EventChannel::start`].
    pub fn start_prepared(
        orb: &Orb,
        options: ChannelOptions,
        prepare: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, SystemException> {
        if !(1..=limits::QUEUE_LEN_MAX).contains(&options.queue_len) {
            return Err(raise(Kind::BadParam));
        }
        let poa = orb.root_poa()?;
        let shared = Arc::new_cyclic(|own| Shared {
            own: own.clone(),
            poa,
            options,
            prepare: Box::new(prepare),
            outlets: SlotTable::new(),
            suppliers: PiMutex::new(Vec::new()),
            consumers: PiMutex::new(Vec::new()),
            counters: Counters::default(),
            destroyed: AtomicBool::new(false),
        });
        let consumers = shared.activate(Arc::new(ConsumerAdminSkeleton::new(Consumers(
            shared.clone(),
        ))))?;
        let suppliers = shared.activate(Arc::new(SupplierAdminSkeleton::new(Suppliers(
            shared.clone(),
        ))))?;
        let channel = Channel {
            shared: shared.clone(),
            consumers: ConsumerAdminRef::unchecked_narrow(consumers),
            suppliers: SupplierAdminRef::unchecked_narrow(suppliers),
        };
        let reference = EventChannelRef::unchecked_narrow(
            shared.activate(Arc::new(EventChannelSkeleton::new(channel)))?,
        );
        Ok(Self { shared, reference })
    }

    /// The channel's reference.
    #[must_use]
    pub fn reference(&self) -> &EventChannelRef {
        &self.reference
    }

    /// What it has counted.
    #[must_use]
    pub fn counts(&self) -> ChannelCounts {
        self.shared.counters.read()
    }

    /// Whether a client has destroyed it.
    #[must_use]
    pub fn is_destroyed(&self) -> bool {
        self.shared.destroyed.load(Acquire)
    }
}

/// What the servants of one channel share.
pub(crate) struct Shared {
    own: Weak<Self>,
    poa: Poa,
    options: ChannelOptions,
    /// Run on each consumer's thread before its first event.
    prepare: Box<dyn Fn() + Send + Sync>,
    /// Read on the road of each event; without a lock.
    outlets: SlotTable<Arc<Outlet>>,
    /// Who is told at the end. Not on the road of an event.
    suppliers: PiMutex<Vec<Told<PushSupplierRef>>>,
    consumers: PiMutex<Vec<Told<PushConsumerRef>>>,
    pub(crate) counters: Counters,
    destroyed: AtomicBool,
}

/// Someone who is told when the channel ends, by the number of its proxy.
struct Told<R> {
    proxy: u64,
    reference: R,
}

/// A connected consumer, as its proxy knows it.
pub(crate) struct Connected {
    slot: SlotKey,
    outlet: Arc<Outlet>,
    proxy: u64,
}

impl Shared {
    fn own(&self) -> Arc<Self> {
        self.own
            .upgrade()
            .expect("a servant of the channel holds what it shares")
    }

    pub(crate) fn activate(
        &self,
        servant: Arc<dyn Servant>,
    ) -> Result<deckwatch_orb::ObjectRef, SystemException> {
        let id = self.poa.activate_object(servant).map_err(system)?;
        self.poa.id_to_reference(&id).map_err(system)
    }

    /// # Errors
    /// OBJECT_NOT_EXIST once the channel is destroyed.
    pub(crate) fn check_alive(&self) -> Result<(), SystemException> {
        if self.destroyed.load(Acquire) {
            Err(raise(Kind::ObjectNotExist))
        } else {
            Ok(())
        }
    }

    /// One event to all consumers; never waits.
    pub(crate) fn push(&self, event: &Any) -> Result<(), SystemException> {
        self.check_alive()?;
        self.counters.received.fetch_add(1, Relaxed);
        self.outlets
            .for_each(|_, outlet| outlet.offer(event, &self.counters));
        Ok(())
    }

    pub(crate) fn connect_supplier(
        &self,
        proxy: u64,
        reference: Option<&PushSupplierRef>,
    ) -> Result<(), SystemException> {
        self.check_alive()?;
        let mut suppliers = self.suppliers.lock("event.suppliers");
        if suppliers.len() >= limits::SUPPLIERS_MAX {
            return Err(raise(Kind::NoResources));
        }
        if let Some(reference) = reference {
            suppliers.push(Told {
                proxy,
                reference: reference.clone(),
            });
        }
        Ok(())
    }

    pub(crate) fn disconnect_supplier(&self, proxy: u64) {
        self.suppliers
            .lock("event.suppliers")
            .retain(|told| told.proxy != proxy);
    }

    /// Gives a consumer its queue and its thread.
    pub(crate) fn connect_consumer(
        &self,
        proxy: u64,
        reference: &PushConsumerRef,
    ) -> Result<Connected, SystemException> {
        self.check_alive()?;
        let mut consumers = self.consumers.lock("event.consumers");
        if consumers.len() >= limits::CONSUMERS_MAX {
            return Err(raise(Kind::NoResources));
        }
        let outlet = Arc::new(Outlet::new(self.options.queue_len));
        let no_room = |_| raise(Kind::NoResources);
        let slot = self.outlets.insert(outlet.clone()).map_err(no_room)?;
        let consumer = PushConsumerRef::unchecked_narrow(
            reference
                .object()
                .with_round_trip_timeout(Some(self.options.push_timeout)),
        );
        let (shared, road) = (self.own(), outlet.clone());
        let thread = std::thread::Builder::new()
            .name(format!("consumer-{proxy}"))
            .spawn(move || {
                (shared.prepare)();
                if road.run(&consumer, &shared.counters) == Ended::ConsumerGone {
                    shared.counters.consumers_lost.fetch_add(1, Relaxed);
                    shared.outlets.remove(slot);
                    shared
                        .consumers
                        .lock("event.consumers")
                        .retain(|told| told.proxy != proxy);
                }
            });
        if thread.is_err() {
            self.outlets.remove(slot);
            return Err(raise(Kind::NoResources));
        }
        consumers.push(Told {
            proxy,
            reference: reference.clone(),
        });
        Ok(Connected {
            slot,
            outlet,
            proxy,
        })
    }

    pub(crate) fn disconnect_consumer(&self, connected: &Connected) {
        self.outlets.remove(connected.slot);
        connected.outlet.close();
        self.consumers
            .lock("event.consumers")
            .retain(|told| told.proxy != connected.proxy);
    }

    /// Ends the channel: queues are closed, everyone who is connected is told.
    pub(crate) fn destroy(&self) -> Result<(), SystemException> {
        if self.destroyed.swap(true, AcqRel) {
            return Err(raise(Kind::ObjectNotExist));
        }
        self.outlets.for_each(|_, outlet| outlet.close());
        let consumers = std::mem::take(&mut *self.consumers.lock("event.consumers"));
        let suppliers = std::mem::take(&mut *self.suppliers.lock("event.suppliers"));
        // Who does not answer is gone already: that is no failure of `destroy`.
        for told in consumers {
            let _ = told.reference.disconnect_push_consumer();
        }
        for told in suppliers {
            let _ = told.reference.disconnect_push_supplier();
        }
        Ok(())
    }
}

/// An adapter's complaint as a caller of the channel sees it.
pub(crate) fn system(error: PoaError) -> SystemException {
    match error {
        PoaError::System(exception) => exception,
        _ => raise(Kind::Internal),
    }
}

/// A system exception of the channel's own making.
pub(crate) const fn raise(kind: Kind) -> SystemException {
    SystemException::new(kind, 0, Completion::No)
}
