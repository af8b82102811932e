//! A typed event channel (Event Service 1.2, clauses 2.6 and 2.7): the events are calls of operations of interfaces
//! that both sides agree on.

use std::cell::LazyCell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use deckwatch_orb::{AccessWatcher, Orb, Refusal, SystemException, SystemExceptionKind as Kind};

use super::admin::{TypedConsumerSide, TypedSupplierSide};
use super::consumers::TypedConsumers;
use super::event::TypedEvent;
use super::interface::TypedInterface;
use super::pull_supplier::TypedQueues;
use crate::channel::Built;
use crate::channel_group::ProxyKind;
use crate::cos::Pullers;
use crate::cos_typed_event_channel_admin::{
    TypedConsumerAdminRef, TypedConsumerAdminSkeleton, TypedEventChannel as Channel,
    TypedEventChannelRef, TypedEventChannelSkeleton, TypedSupplierAdminRef,
    TypedSupplierAdminSkeleton,
};
use crate::counters::ChannelCounts;
use crate::gate::Gate;
use crate::home::Home;
use crate::kept::{Kept, Share};
use crate::limits;
use crate::raise::raise;
use crate::shared::{ChannelOptions, Shared};

/// A typed event channel that serves on an ORB until it is destroyed. Its untyped side is a channel of its own: events
/// of one side do not reach the other.
pub struct TypedEventChannel {
    typed: Arc<Typed>,
    reference: TypedEventChannelRef,
}

impl TypedEventChannel {
    /// Activates a channel for these interfaces in the ORB's root adapter.
    ///
    /// # Errors
    /// BAD_PARAM for options out of bounds, and for no or too many interfaces; the exceptions of the adapter.
    pub fn start(
        orb: &Orb,
        interfaces: Vec<TypedInterface>,
        options: ChannelOptions,
    ) -> Result<Self, SystemException> {
        options.check()?;
        if !(1..=limits::INTERFACES_MAX).contains(&interfaces.len()) {
            return Err(raise(Kind::BadParam));
        }
        let gate = Gate::new(orb, options.access.clone(), false);
        let kept = Share::of(options.size_max);
        let shared = Shared::new(Home::transient(orb, gate)?, orb, Built::of(orb, options))?;
        let typed = Arc::new(Typed {
            shared: shared.clone(),
            interfaces,
            consumers: TypedConsumers::default(),
            pullers: Pullers::new(limits::PULLERS_MAX),
            kept,
        });
        let watcher: Weak<Typed> = Arc::downgrade(&typed);
        shared.objects.home.gate.watch(watcher);
        let consumers = TypedConsumerAdminSkeleton::new(TypedConsumerSide::new(typed.clone()));
        let consumers = shared
            .objects
            .activate(shared.objects.home.next_number(), Arc::new(consumers))?;
        let suppliers = TypedSupplierAdminSkeleton::new(TypedSupplierSide::new(typed.clone()));
        let suppliers = shared
            .objects
            .activate(shared.objects.home.next_number(), Arc::new(suppliers))?;
        let servant = TypedEventChannelSkeleton::new(ChannelServant {
            typed: typed.clone(),
            consumers: TypedConsumerAdminRef::unchecked_narrow(consumers),
            suppliers: TypedSupplierAdminRef::unchecked_narrow(suppliers),
        });
        let reference = shared
            .objects
            .activate(shared.objects.home.next_number(), Arc::new(servant))?;
        let reference = TypedEventChannelRef::unchecked_narrow(reference);
        Ok(Self { typed, reference })
    }

    /// The channel's reference.
    #[must_use]
    pub fn reference(&self) -> &TypedEventChannelRef {
        &self.reference
    }

    /// The channel's counters.
    #[must_use]
    pub fn counts(&self) -> ChannelCounts {
        self.typed.shared.counts()
    }

    /// Octets of all events that are alive: queued for a consumer, or being written to one.
    #[must_use]
    pub fn size(&self) -> usize {
        self.typed.shared.deliveries.size()
    }

    /// Takes what the access table has refused since the last call; the first refusals if there were many.
    #[must_use]
    pub fn take_refusals(&self) -> Vec<Refusal> {
        self.typed.shared.objects.home.gate.take_refusals()
    }

    /// Returns true once a client has destroyed the channel and every consumer and supplier has been notified of it.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.typed.shared.has_ended() && self.typed.consumers.is_empty()
    }
}

/// The state that the servants of one typed channel share.
pub(super) struct Typed {
    /// The objects of the channel, its suppliers, and its untyped side.
    pub(super) shared: Arc<Shared>,
    pub(super) interfaces: Vec<TypedInterface>,
    pub(super) consumers: TypedConsumers,
    pub(super) pullers: Pullers<TypedQueues>,
    /// What the queues of the consumers that pull keep.
    kept: Arc<Share>,
}

impl Typed {
    /// The position of the interface with this repository id.
    pub(super) fn find(&self, key: &str) -> Option<usize> {
        let mut all = self.interfaces.iter();
        all.position(|interface| interface.repository_id() == key)
    }

    /// Queues an event for every consumer of its interface; never waits.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST after the end.
    pub(super) fn push(&self, event: TypedEvent) -> Result<(), SystemException> {
        self.shared.check_alive()?;
        let counters = &self.shared.counters;
        counters.received.fetch_add(1, Relaxed);
        self.consumers.offer(self, &event);
        let interface = event.interface;
        let size = event.arguments.size();
        let keep = || Kept::new(event, size, &self.kept, &self.shared.deliveries);
        let kept = LazyCell::new(keep);
        self.pullers.for_each(|queues| {
            if queues.interface != interface {
                return;
            }
            match &*kept {
                Some(event) => queues.offer(event, counters),
                None => _ = counters.displaced.fetch_add(1, Relaxed),
            }
        });
        drop(kept);
        self.kept.limit(
            || self.pullers.largest(),
            |most| self.pullers.drop_oldest_of(most, counters),
        );
        Ok(())
    }
}

impl AccessWatcher for Typed {
    fn ask_again(&self) -> usize {
        self.shared.let_refused_go(|proxy, kind| match kind {
            ProxyKind::PushSupplier => {
                self.consumers.disconnect(proxy);
                self.shared.objects.retire(proxy);
            }
            ProxyKind::PullSupplier => self.shared.disconnect_puller(&self.pullers, proxy),
            ProxyKind::PushConsumer | ProxyKind::PullConsumer => {}
        })
    }
}

/// The channel's own servant.
struct ChannelServant {
    typed: Arc<Typed>,
    consumers: TypedConsumerAdminRef,
    suppliers: TypedSupplierAdminRef,
}

impl Channel for ChannelServant {
    fn for_consumers(&self) -> Result<Option<TypedConsumerAdminRef>, SystemException> {
        self.typed.shared.check_alive()?;
        Ok(Some(self.consumers.clone()))
    }

    fn for_suppliers(&self) -> Result<Option<TypedSupplierAdminRef>, SystemException> {
        self.typed.shared.check_alive()?;
        Ok(Some(self.suppliers.clone()))
    }

    fn destroy(&self) -> Result<(), SystemException> {
        self.typed.shared.destroy_with(|| {
            self.typed.consumers.close();
            self.typed.pullers.take()
        })
    }
}
