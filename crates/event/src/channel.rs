//! A COS event channel, push and pull model on both sides (Event Service 1.2, clause 2.5).

use std::sync::Arc;

use deckwatch_orb::outward::Outward;
use deckwatch_orb::{Orb, Refusal, Servant, SystemException, lane_threads};

use crate::admin::{Channel, Consumers, Suppliers};
use crate::cos::PullPermits;
use crate::cos_event_channel_admin::{
    ConsumerAdminRef, ConsumerAdminSkeleton, EventChannelRef, EventChannelSkeleton,
    SupplierAdminRef, SupplierAdminSkeleton,
};
use crate::counters::ChannelCounts;
use crate::gate::Gate;
use crate::home::{Fixed, Home};
use crate::limits;
use crate::omni_events::EventChannelSkeleton as MonitoredSkeleton;
use crate::restore::restore;
use crate::shared::{ChannelOptions, Shared};
use crate::status::{cos_report, with_status};
use crate::store::{ChannelKind, ChannelStore, ChannelStoreError};

/// What a channel is built of.
pub(crate) struct Built {
    pub(crate) options: ChannelOptions,
    /// Shared by the channels of an ORB that a factory makes.
    pub(crate) permits: Arc<PullPermits>,
    /// Calls of clients in serving threads, shared in the same way.
    pub(crate) outward: Arc<Outward>,
    /// Consumers that may pull; 1 to [`limits::PULLERS_MAX`].
    pub(crate) pullers_max: usize,
    /// The repository id of the events that the channel passes on; `None` for all.
    pub(crate) type_id: Option<String>,
    /// The channel also has the interface `omniEvents::EventChannel`.
    pub(crate) is_monitored: bool,
}

impl Built {
    /// A channel with these options that passes on every event.
    pub(crate) fn of(orb: &Orb, options: ChannelOptions) -> Self {
        Self {
            options,
            permits: Arc::default(),
            outward: outward(orb),
            pullers_max: limits::PULLERS_MAX,
            type_id: None,
            is_monitored: false,
        }
    }
}

/// The calls of clients in serving threads. A process with few addresses has fewer threads.
pub(crate) fn outward(orb: &Orb) -> Arc<Outward> {
    let (max, share) = outward_of(lane_threads());
    Arc::new(Outward::new(orb, max, share))
}

/// The calls outwards, and those for one peer, with so many serving threads.
fn outward_of(threads: usize) -> (usize, usize) {
    let max = limits::OUTWARD_MAX.min(threads / 4);
    (max, limits::OUTWARD_SHARE.min(max / 2))
}

/// An event channel that serves on an ORB until it is destroyed.
pub struct EventChannel {
    pub(crate) shared: Arc<Shared>,
    reference: EventChannelRef,
}

impl EventChannel {
    /// Activates a channel in the ORB's root adapter. Its thread, which serves all consumers, inherits the scheduling of
    /// the calling thread.
    ///
    /// # Errors
    /// BAD_PARAM for a queue length, a period or a bound of octets out of bounds; NO_RESOURCES without a thread; the
    /// exceptions of the adapter.
    pub fn start(orb: &Orb, options: ChannelOptions) -> Result<Self, SystemException> {
        Self::build(orb, Built::of(orb, options))
    }

    /// Activates a channel whose administration is in a store. All references to its objects are those of its earlier
    /// lives at the same port, and the clients that were connected are connected again.
    ///
    /// # Errors
    /// As [`EventChannel::start`]; when the store cannot be read or written.
    pub fn start_stored(
        orb: &Orb,
        options: ChannelOptions,
        store: ChannelStore,
    ) -> Result<Self, ChannelStoreError> {
        options.check()?;
        let gate = Gate::new(orb, options.access.clone(), false);
        let (home, records) = Home::stored(orb, store, ChannelKind::Cos, gate)?;
        let channel = Self::build_at(home, orb, Built::of(orb, options))?;
        restore(orb, &channel.shared, &records)?;
        Ok(channel)
    }

    pub(crate) fn build(orb: &Orb, built: Built) -> Result<Self, SystemException> {
        built.options.check()?;
        let gate = Gate::new(orb, built.options.access.clone(), false);
        Self::build_at(Home::transient(orb, gate)?, orb, built)
    }

    fn build_at(home: Home, orb: &Orb, built: Built) -> Result<Self, SystemException> {
        let is_monitored = built.is_monitored;
        let shared = Shared::new(home, orb, built)?;
        shared.objects.home.gate.watch(shared.as_watcher());
        let fixed = |object| shared.objects.home.fixed_number(object);
        let consumers = Arc::new(ConsumerAdminSkeleton::new(Consumers(shared.clone())));
        let consumers = shared
            .objects
            .activate(fixed(Fixed::ConsumerAdmin), consumers)?;
        let suppliers = Arc::new(SupplierAdminSkeleton::new(Suppliers(shared.clone())));
        let suppliers = shared
            .objects
            .activate(fixed(Fixed::SupplierAdmin), suppliers)?;
        let channel = Channel {
            shared: shared.clone(),
            consumers: ConsumerAdminRef::unchecked_narrow(consumers),
            suppliers: SupplierAdminRef::unchecked_narrow(suppliers),
        };
        let servant: Arc<dyn Servant> = if is_monitored {
            Arc::new(MonitoredSkeleton::new(channel))
        } else {
            Arc::new(EventChannelSkeleton::new(channel))
        };
        let reported = shared.clone();
        let servant = Arc::new(with_status(servant, move || cos_report(&reported)));
        let reference = shared.objects.activate(fixed(Fixed::Channel), servant)?;
        let reference = EventChannelRef::unchecked_narrow(reference);
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
        self.shared.counts()
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

    /// Octets of all events that are alive: queued for a consumer, or being written to one.
    #[must_use]
    pub fn size(&self) -> usize {
        self.shared.deliveries.size()
    }

    /// The count of connections to consumers; those of one process share one.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.deliveries.connections()
    }

    /// Number of `pull` calls that wait for an event now. At [`limits::PULLS_WAITING_MAX`] further ones are refused.
    #[must_use]
    pub fn pulls_waiting(&self) -> usize {
        self.shared.permits.waiting()
    }

    /// Returns true once a client has destroyed the channel.
    pub(crate) fn is_destroyed(&self) -> bool {
        self.shared.check_alive().is_err()
    }

    /// Returns true once a client has destroyed the channel and every consumer and supplier has been notified of it. A
    /// consumer that answers has by then received its queued events. If the process ends earlier, those events and
    /// notifications are lost.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.shared.has_ended()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cos_event_comm::PullSupplierRef;

    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

    #[test]
    fn thread_that_pulls_ends_with_its_channel() {
        let orb = Orb::builder().listen("127.0.0.1:0").expect("an endpoint");
        let orb = orb.build().expect("an ORB");
        let root = orb.root_poa().expect("a root adapter");
        root.the_poa_manager().activate().expect("it serves");
        let channel = EventChannel::start(&orb, ChannelOptions::default()).expect("a channel");
        let admin = channel.reference().for_suppliers().expect("one");
        let proxy = admin.expect("one").obtain_pull_consumer().expect("one");
        let proxy = proxy.expect("one");
        let nobody = orb.string_to_object("corbaloc::127.0.0.1:1/nobody");
        let nobody = PullSupplierRef::unchecked_narrow(nobody.expect("a URL").expect("not nil"));
        proxy
            .connect_pull_supplier(Some(&nobody))
            .expect("a thread");
        // Without a supplier the thread waits for ever.
        proxy.disconnect_pull_consumer().expect("it was connected");
        let sources = Arc::downgrade(&channel.shared.sources);
        drop(channel);
        orb.shutdown(true).expect("it ends");
        let begun = std::time::Instant::now();
        while sources.strong_count() > 0 {
            assert!(begun.elapsed() < PATIENCE, "the thread goes on");
            std::thread::yield_now();
        }
    }

    #[test]
    fn calls_outwards_take_a_quarter_of_few_threads_and_one_peer_half_of_those() {
        assert_eq!(outward_of(0), (0, 0));
        assert_eq!(outward_of(8), (2, 1));
        assert_eq!(outward_of(20), (5, 2));
        let most = (limits::OUTWARD_MAX, limits::OUTWARD_SHARE);
        assert_eq!(outward_of(usize::MAX), most);
    }
}
