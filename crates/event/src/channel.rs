//! A COS event channel, push model on both sides (Event Service 1.2, clause 2.5).

use std::sync::Arc;

use deckwatch_orb::{Orb, SystemException, SystemExceptionKind as Kind};

use crate::admin::{Channel, Consumers, Suppliers, next_number};
use crate::cos_event_channel_admin::{
    ConsumerAdminRef, ConsumerAdminSkeleton, EventChannelRef, EventChannelSkeleton,
    SupplierAdminRef, SupplierAdminSkeleton,
};
use crate::counters::ChannelCounts;
use crate::limits;
use crate::raise::raise;
use crate::shared::{ChannelOptions, Shared};

/// An event channel that serves on an ORB until it is destroyed.
pub struct EventChannel {
    shared: Arc<Shared>,
    reference: EventChannelRef,
}

impl EventChannel {
    /// Activates a channel in the ORB's root adapter.
    ///
    /// # Errors
    /// BAD_PARAM for a queue length out of bounds; the exceptions of the adapter.
    pub fn start(orb: &Orb, options: ChannelOptions) -> Result<Self, SystemException> {
        Self::start_prepared(orb, options, || {})
    }

    /// [`EventChannel::start`], with `prepare` run on each consumer's thread before its first event. `prepare` can set
    /// the thread's scheduling. One of the ORB's threads creates the consumer's thread, which does not inherit that
    /// thread's scheduling.
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
        let shared = Shared::new(poa, orb, options, Arc::new(prepare));
        let consumers = Arc::new(ConsumerAdminSkeleton::new(Consumers(shared.clone())));
        let consumers = shared.activate(next_number(), consumers)?;
        let suppliers = Arc::new(SupplierAdminSkeleton::new(Suppliers(shared.clone())));
        let suppliers = shared.activate(next_number(), suppliers)?;
        let channel = Channel {
            shared: shared.clone(),
            consumers: ConsumerAdminRef::unchecked_narrow(consumers),
            suppliers: SupplierAdminRef::unchecked_narrow(suppliers),
        };
        let reference = EventChannelRef::unchecked_narrow(
            shared.activate(next_number(), Arc::new(EventChannelSkeleton::new(channel)))?,
        );
        Ok(Self { shared, reference })
    }

    /// The channel's reference.
    #[must_use]
    pub fn reference(&self) -> &EventChannelRef {
        &self.reference
    }

    /// The channel's counters.
    #[must_use]
    pub fn counts(&self) -> ChannelCounts {
        self.shared.counters.read()
    }

    /// Returns true once a client has destroyed the channel and every consumer and supplier has been notified of it. A
    /// consumer that answers has by then received its queued events. If the process ends earlier, those events and
    /// notifications are lost.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.shared.has_ended()
    }
}
