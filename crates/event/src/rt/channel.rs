//! The channel itself and its two administrations.

use std::sync::{Arc, Weak};

use deckwatch_orb::{Orb, Refusal, SystemException, SystemExceptionKind as Kind};

use super::consumer::{ConsumerReport, SupplierProxy};
use super::counters::RtCounts;
use super::inlet::Inlet;
use super::options::RtChannelOptions;
use super::restore::restore;
use super::shared::Shared;
use super::supplier::{ConsumerProxy, PushServant};
use crate::channel_group::{Changes, KeptPushes, ProxyRecord};
use crate::dispatch::LaneReport;
use crate::gate::Gate;
use crate::home::{Fixed, Home};
use crate::raise::raise;
use crate::rtec_event_channel_admin::event_channel::{CANTAPPENDOBSERVER, CANTREMOVEOBSERVER};
use crate::rtec_event_channel_admin::{
    ConsumerAdmin, ConsumerAdminRef, ConsumerAdminSkeleton, EventChannel,
    EventChannelAppendObserverError, EventChannelRef, EventChannelRemoveObserverError,
    EventChannelSkeleton, ObserverRef, ProxyPushConsumerRef, ProxyPushSupplierRef, SupplierAdmin,
    SupplierAdminRef, SupplierAdminSkeleton,
};
use crate::status::with_status;
use crate::store::{ChannelKind, ChannelStore, ChannelStoreError};

/// A real-time event channel that serves on an ORB until it is destroyed.
pub struct RtEventChannel {
    shared: Arc<Shared>,
    reference: EventChannelRef,
}

impl RtEventChannel {
    /// Activates a channel in the ORB's root adapter.
    ///
    /// # Errors
    /// BAD_PARAM for options out of bounds; NO_PERMISSION for a lane whose priority the host refuses; NO_RESOURCES
    /// without a thread; the exceptions of the adapter.
    pub fn start(orb: &Orb, options: RtChannelOptions) -> Result<Self, SystemException> {
        let gate = Gate::new(orb, options.access.clone(), true);
        Self::start_at(Home::transient(orb, gate)?, orb, options)
    }

    /// Activates a channel whose administration is in a store. All references to its objects are those of its earlier
    /// lives at the same port, and the clients that were connected are connected again.
    ///
    /// # Errors
    /// As [`RtEventChannel::start`]; when the store cannot be read or written.
    pub fn start_stored(
        orb: &Orb,
        options: RtChannelOptions,
        store: ChannelStore,
    ) -> Result<Self, ChannelStoreError> {
        let gate = Gate::new(orb, options.access.clone(), true);
        let (home, records) = Home::stored(orb, store, ChannelKind::RealTime, gate)?;
        let channel = Self::start_at(home, orb, options)?;
        restore(orb, &channel.shared, &records, Vec::new())?;
        channel.open();
        Ok(channel)
    }

    /// Starts the channel of a group's primary, with the clients and the pushes that it takes over. Requests wait until
    /// [`RtEventChannel::open`].
    pub(crate) fn start_leading(
        home: Home,
        orb: &Orb,
        options: RtChannelOptions,
        (records, pushes): (&[ProxyRecord], KeptPushes),
    ) -> Result<Self, ChannelStoreError> {
        let channel = Self::start_at(home, orb, options)?;
        restore(orb, &channel.shared, records, pushes)?;
        Ok(channel)
    }

    /// The clients are connected again: serves requests from now on.
    pub(crate) fn open(&self) {
        self.shared.objects.home.end_restoring();
    }

    /// Makes a member a backup; see [`Home::admit`].
    pub(crate) fn admit(&self, join: impl FnOnce(Changes)) {
        self.shared.objects.home.admit(join);
    }

    fn start_at(home: Home, orb: &Orb, options: RtChannelOptions) -> Result<Self, SystemException> {
        let shared = Shared::new(home, orb, options)?;
        let weak = || Arc::downgrade(&shared);
        let consumers = Arc::new(ConsumerAdminSkeleton::new(Consumers(weak())));
        let consumers = shared.activate(Fixed::ConsumerAdmin, consumers)?;
        let suppliers = Arc::new(SupplierAdminSkeleton::new(Suppliers(weak())));
        let suppliers = shared.activate(Fixed::SupplierAdmin, suppliers)?;
        let channel = Channel {
            shared: weak(),
            consumers: ConsumerAdminRef::unchecked_narrow(consumers),
            suppliers: SupplierAdminRef::unchecked_narrow(suppliers),
        };
        let channel = Arc::new(EventChannelSkeleton::new(channel));
        let reported = weak();
        let report = move || alive(&reported)?.status();
        let channel = Arc::new(with_status(channel, report));
        let reference = shared.activate(Fixed::Channel, channel)?;
        Ok(Self {
            reference: EventChannelRef::unchecked_narrow(reference),
            shared,
        })
    }

    /// The channel's reference.
    #[must_use]
    pub fn reference(&self) -> &EventChannelRef {
        &self.reference
    }

    /// The way of gateways into the channel.
    pub(crate) fn inlet(&self) -> Inlet {
        Inlet::new(&self.shared)
    }

    /// The channel's counters.
    #[must_use]
    pub fn counts(&self) -> RtCounts {
        self.shared.counts()
    }

    /// Octets of all events that are alive.
    #[must_use]
    pub fn size(&self) -> usize {
        self.shared.deliveries.size()
    }

    /// Changes of the administration that the store did not take.
    #[must_use]
    pub fn store_failures(&self) -> u64 {
        self.shared.objects.home.store_failures()
    }

    /// Takes what the access table has refused since the last call; the first refusals if there were many.
    #[must_use]
    pub fn take_refusals(&self) -> Vec<Refusal> {
        self.shared.objects.home.gate.take_refusals()
    }

    /// What became of each connected consumer's events, in the order in which their proxies were obtained.
    #[must_use]
    pub fn consumers(&self) -> Vec<ConsumerReport> {
        self.shared.reports()
    }

    /// What each lane or the pool has done, by rising priority.
    #[must_use]
    pub fn lanes(&self) -> Vec<LaneReport> {
        self.shared.dispatcher.reports()
    }

    /// For an ORB that is [turned by hand](deckwatch_orb::OrbBuilder::turned_by_hand), as in a simulation: fires the
    /// timeouts that are due, and sends the first event set of a lane; lanes count by rising priority. Returns false if
    /// the lane's queue was empty.
    pub fn turn(&self, lane: usize) -> bool {
        self.shared.turn(lane)
    }

    /// Returns why the schedule has refused connects since the last call, in words: at most
    /// [`crate::limits::UNADMITTED_KEPT_MAX`], the oldest first.
    #[must_use]
    pub fn take_unadmitted(&self) -> Vec<String> {
        self.shared.take_unadmitted()
    }

    /// Returns true once a client has destroyed the channel and every consumer and supplier has been notified of it.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.shared.has_ended()
    }
}

impl Drop for RtEventChannel {
    fn drop(&mut self) {
        if self.shared.objects.home.is_stored() {
            // The next process with the store goes on: no client is notified.
            self.shared.stop();
        } else {
            // A client may have destroyed it.
            let _ = self.shared.destroy();
        }
    }
}

fn alive(shared: &Weak<Shared>) -> Result<Arc<Shared>, SystemException> {
    let shared = shared
        .upgrade()
        .ok_or_else(|| raise(Kind::ObjectNotExist))?;
    shared.check_alive()?;
    Ok(shared)
}

/// The channel's own servant.
struct Channel {
    shared: Weak<Shared>,
    consumers: ConsumerAdminRef,
    suppliers: SupplierAdminRef,
}

impl EventChannel for Channel {
    fn for_consumers(&self) -> Result<Option<ConsumerAdminRef>, SystemException> {
        alive(&self.shared)?;
        Ok(Some(self.consumers.clone()))
    }

    fn for_suppliers(&self) -> Result<Option<SupplierAdminRef>, SystemException> {
        alive(&self.shared)?;
        Ok(Some(self.suppliers.clone()))
    }

    fn destroy(&self) -> Result<(), SystemException> {
        alive(&self.shared)?.destroy()
    }

    fn append_observer(
        &self,
        gw: Option<&ObserverRef>,
    ) -> Result<u32, EventChannelAppendObserverError> {
        let observer = gw.ok_or_else(|| raise(Kind::BadParam))?;
        let shared = alive(&self.shared)?;
        let place = shared.shares.observers.take(shared.shares.caller())?;
        let gate = &shared.objects.home.gate;
        let observer = (observer, gate.caller());
        let handle = shared.observers().append(&self.shared, observer, place)?;
        // Another table may have come into force since this request was checked.
        shared.observers().remove_refused(gate);
        handle.ok_or_else(|| CANTAPPENDOBSERVER {}.into())
    }

    fn remove_observer(&self, gw: u32) -> Result<(), EventChannelRemoveObserverError> {
        if alive(&self.shared)?.observers().remove(gw) {
            Ok(())
        } else {
            Err(CANTREMOVEOBSERVER {}.into())
        }
    }
}

/// `ConsumerAdmin`: creates the proxies that consumers connect to.
struct Consumers(Weak<Shared>);

impl ConsumerAdmin for Consumers {
    fn obtain_push_supplier(&self) -> Result<Option<ProxyPushSupplierRef>, SystemException> {
        let shared = alive(&self.0)?;
        let number = shared.objects.home.next_number();
        let proxy = Arc::new(SupplierProxy::new(self.0.clone(), number));
        let servant = proxy.servant();
        let reference = shared.objects.offer(number, servant, &shared.shares)?;
        Ok(Some(ProxyPushSupplierRef::unchecked_narrow(reference)))
    }
}

/// `SupplierAdmin`: creates the proxies that suppliers connect to.
struct Suppliers(Weak<Shared>);

impl SupplierAdmin for Suppliers {
    fn obtain_push_consumer(&self) -> Result<Option<ProxyPushConsumerRef>, SystemException> {
        let shared = alive(&self.0)?;
        let number = shared.objects.home.next_number();
        let proxy = Arc::new(ConsumerProxy::new(self.0.clone(), number));
        let servant = Arc::new(PushServant::new(proxy));
        let mut reference = shared.objects.offer(number, servant, &shared.shares)?;
        if let Some(lowest) = shared.lowest_lane() {
            reference = reference.with_propagated_priority(lowest)?;
        }
        Ok(Some(ProxyPushConsumerRef::unchecked_narrow(reference)))
    }
}
