//! What the servants of one channel share: its consumers' outlets, its suppliers, its objects and its end.

use std::cell::OnceCell;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Weak};
use std::time::Duration;

use deckwatch_cdr::Any;
use deckwatch_orb::delivery::{Deliveries, DeliveryOptions, OutletOwner, WhenFull};
use deckwatch_orb::outward::Outward;
use deckwatch_orb::transport::{Instant64, Transport};
use deckwatch_orb::{
    Access, AccessWatcher, ObjectRef, Orb, Servant, SystemException, SystemExceptionKind as Kind,
};

use crate::channel::Built;
use crate::channel_group::ProxyKind;
use crate::consumers::Consumers;
use crate::cos::{PullPermits, PullQueue, Pullers, Sources};
use crate::cos_event_comm::{PullConsumerRef, PushSupplierRef};
use crate::counters::{ChannelCounts, Counters};
use crate::event::Event;
use crate::farewells::{in_thread, say_farewell};
use crate::home::{Client, Home, NoQos};
use crate::kept::{Kept, Share};
use crate::limits;
use crate::objects::Objects;
use crate::peers::{Shares, is_share};
use crate::raise::raise;
use crate::suppliers::{Activity, SupplierList};

/// Options of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelOptions {
    /// Events queued for one consumer; 1 to [`limits::QUEUE_LEN_MAX`].
    pub queue_len: usize,
    /// What happens to an event for which a consumer's queue has no place.
    pub when_full: WhenFull,
    /// Octets of all events that are alive; at least [`limits::CHANNEL_SIZE_MIN`]. At the bound the oldest queued event
    /// is dropped first.
    pub size_max: usize,
    /// Time limit of one push to a consumer.
    pub push_timeout: Duration,
    /// Pushes to one consumer under way before a reply must come; 1 to [`limits::WINDOW_MAX`]. With 1, a consumer gets
    /// its events in order whatever its threads do. With more, one with several threads may serve them in another
    /// order.
    pub window: u16,
    /// Time between two `try_pull` calls to a supplier that had no event.
    pub pull_period: Duration,
    /// Percent of the places for consumers, suppliers and waiting proxies that one peer may hold, 1 to 100. A peer is
    /// an address, or a user of this host over unix sockets and shared memory. Beyond its share it gets IMP_LIMIT.
    pub share_percent: u8,
    /// Who may use the channel; everybody without it. Events have no types here: a rule with types or sources does not
    /// permit to supply or consume.
    pub access: Option<Access>,
}

impl ChannelOptions {
    /// # Errors
    /// BAD_PARAM for a queue length, a window, a period, a share or a bound of octets out of bounds.
    pub(crate) fn check(&self) -> Result<(), SystemException> {
        let is_length = (1..=limits::QUEUE_LEN_MAX).contains(&self.queue_len);
        let period = self.pull_period;
        let is_size = self.size_max >= limits::CHANNEL_SIZE_MIN;
        let is_share = is_share(self.share_percent);
        if is_length
            && is_size
            && is_share
            && (1..=limits::WINDOW_MAX).contains(&self.window)
            && !period.is_zero()
            && period <= limits::PULL_PERIOD_MAX
        {
            Ok(())
        } else {
            Err(raise(Kind::BadParam))
        }
    }
}

impl Default for ChannelOptions {
    fn default() -> Self {
        Self {
            queue_len: limits::QUEUE_LEN_DEFAULT,
            when_full: WhenFull::DropOldest,
            size_max: limits::channel_size_default(),
            push_timeout: limits::PUSH_TIMEOUT_DEFAULT,
            window: 1,
            pull_period: limits::PULL_PERIOD_DEFAULT,
            share_percent: limits::SHARE_PERCENT_DEFAULT,
            access: None,
        }
    }
}

/// The state that the servants of one channel share.
pub(crate) struct Shared {
    own: Weak<Self>,
    /// The clock.
    transport: Arc<dyn Transport>,
    options: ChannelOptions,
    /// The repository id of the events that the channel passes on; `None` for all.
    type_id: Option<String>,
    pub(crate) deliveries: Deliveries,
    pub(crate) consumers: Consumers,
    /// A push takes neither their lock nor that of the suppliers.
    pub(crate) objects: Objects,
    suppliers: SupplierList,
    pub(crate) shares: Shares,
    /// What the queues of the consumers that pull keep.
    kept: Arc<Share>,
    /// The consumers that pull.
    pub(crate) pullers: Pullers<PullQueue>,
    /// Shared with other channels of the same ORB.
    pub(crate) permits: Arc<PullPermits>,
    /// Calls of clients in serving threads; shared in the same way.
    pub(crate) outward: Arc<Outward>,
    /// The suppliers that the channel pulls from.
    pub(crate) sources: Arc<Sources>,
    pub(crate) counters: Counters,
    destroyed: AtomicBool,
    /// Set after `destroyed`, once the suppliers have been notified. No client can connect any more then.
    suppliers_told: AtomicBool,
}

impl AccessWatcher for Shared {
    fn ask_again(&self) -> usize {
        self.let_refused_go(|_, _| {})
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.sources.close();
    }
}

impl Shared {
    pub(crate) fn new(home: Home, orb: &Orb, built: Built) -> Result<Arc<Self>, SystemException> {
        let options = built.options;
        let deliveries = Deliveries::start(
            orb,
            DeliveryOptions {
                size_max: options.size_max,
                reply_timeout: options.push_timeout,
                ask_period: None,
            },
        )?;
        let kept = Share::of(options.size_max);
        let shares = Shares::new(orb, options.share_percent, built.pullers_max);
        Ok(Arc::new_cyclic(|own| Self {
            own: own.clone(),
            transport: Arc::clone(orb.transport()),
            options,
            type_id: built.type_id,
            deliveries,
            consumers: Consumers::default(),
            objects: Objects::new(home),
            suppliers: SupplierList::default(),
            shares,
            kept,
            pullers: Pullers::new(built.pullers_max),
            permits: built.permits,
            outward: built.outward,
            sources: Arc::default(),
            counters: Counters::default(),
            destroyed: AtomicBool::new(false),
            suppliers_told: AtomicBool::new(false),
        }))
    }

    /// Returns true once a client has destroyed the channel and every consumer and supplier has been notified of it.
    pub(crate) fn has_ended(&self) -> bool {
        self.suppliers_told.load(Acquire) && self.consumers.is_empty()
    }

    pub(crate) const fn options(&self) -> &ChannelOptions {
        &self.options
    }

    /// The channel as the owner of its outlets.
    pub(crate) fn as_owner(&self) -> Weak<dyn OutletOwner> {
        self.own.clone()
    }

    /// The channel as one that is asked about its clients.
    pub(crate) fn as_watcher(&self) -> Weak<dyn AccessWatcher> {
        self.own.clone()
    }

    /// The time now.
    pub(crate) fn now(&self) -> Instant64 {
        self.transport.now()
    }

    pub(crate) fn is_orb_alive(&self) -> bool {
        self.objects.home.is_orb_alive()
    }

    pub(crate) fn weak(&self) -> &Weak<Self> {
        &self.own
    }

    fn own(&self) -> Arc<Self> {
        self.own
            .upgrade()
            .expect("a servant of the channel holds what it shares")
    }

    /// Activates a proxy that waits for a client to connect. If too many wait, the oldest is retired.
    pub(crate) fn offer_proxy(
        &self,
        number: u64,
        servant: Arc<dyn Servant>,
    ) -> Result<ObjectRef, SystemException> {
        self.check_alive()?;
        self.objects.offer(number, servant, &self.shares)
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

    /// Offers one event to every consumer; never waits. Ignores an event of a type that the channel does not pass on.
    pub(crate) fn push(&self, event: &mut Event<'_>) -> Result<(), SystemException> {
        self.check_alive()?;
        if self.type_id.is_some() && event.any()?.type_code().id() != self.type_id.as_deref() {
            return Ok(());
        }
        self.counters.received.fetch_add(1, Relaxed);
        self.consumers.offer(event);
        let kept = OnceCell::new();
        self.pullers
            .for_each(|queue| match kept.get_or_init(|| self.keep(event)) {
                Ok(kept) => queue.offer(kept, &self.counters),
                Err(lost) => _ = lost.fetch_add(1, Relaxed),
            });
        drop(kept);
        self.kept.limit(
            || self.pullers.largest(),
            |most| self.pullers.drop_oldest_of(most, &self.counters),
        );
        Ok(())
    }

    /// An event for the consumers that pull, or the counter of its loss.
    fn keep(&self, event: &Event<'_>) -> Result<Arc<Kept<Any>>, &AtomicU64> {
        let any = event.any().map_err(|_| &self.counters.failed)?;
        let kept = Kept::new(any.clone(), any.size(), &self.kept, &self.deliveries);
        kept.ok_or(&self.counters.displaced)
    }

    pub(crate) fn connect_supplier(
        &self,
        proxy: u64,
        reference: Option<&PushSupplierRef>,
    ) -> Result<Activity, SystemException> {
        let caller = self.shares.caller();
        let client = Client::<NoQos> {
            number: proxy,
            kind: ProxyKind::PushConsumer,
            reference: reference.map(PushSupplierRef::object),
            qos: None,
            is_suspended: false,
        };
        self.objects.home.record(&client, || {
            self.suppliers
                .connect(proxy, reference, self.transport.now(), || {
                    self.check_alive()?;
                    let place = self.shares.suppliers.take(caller)?;
                    self.objects.settle(proxy)?;
                    Ok(place)
                })
        })
    }

    pub(crate) fn counts(&self) -> ChannelCounts {
        ChannelCounts {
            denied: self.objects.home.gate.refused(),
            ..self.counters.read(self.deliveries.counts(), &self.shares)
        }
    }

    /// Number of connected suppliers that push.
    pub(crate) fn supplier_count(&self) -> usize {
        self.suppliers.len()
    }

    /// Removes a supplier, and notifies it if it gave a reference.
    pub(crate) fn disconnect_supplier(&self, proxy: u64) {
        let reference = self.suppliers.disconnect(proxy);
        self.objects.retire(proxy);
        if let Some((reference, peer)) = reference {
            let farewells = &self.shares.farewells;
            farewells.say(peer, reference.object(), "disconnect_push_supplier");
        }
    }

    /// Disconnects the clients that the access table in force does not permit to stay. `typed` removes one that is not
    /// connected here.
    pub(crate) fn let_refused_go(&self, typed: impl Fn(u64, ProxyKind)) -> usize {
        let refused = self.objects.home.refused_clients(|_, _| None);
        for (proxy, kind) in &refused {
            match kind {
                ProxyKind::PushSupplier => self.disconnect_refused(*proxy),
                ProxyKind::PushConsumer => self.disconnect_supplier(*proxy),
                ProxyKind::PullSupplier => self.disconnect_puller(&self.pullers, *proxy),
                ProxyKind::PullConsumer => self.disconnect_source(*proxy),
            }
            typed(*proxy, *kind);
        }
        refused.len()
    }

    /// Removes a supplier that is gone, if the channel has its maximum of suppliers; or one of the calling peer, if
    /// that holds its share. May call some suppliers and wait for their replies.
    pub(crate) fn make_room_for_supplier(&self) {
        let caller = self.shares.caller();
        let full = self.shares.suppliers.is_full_for(caller).then_some(caller);
        let begin = || self.outward.begin().ok();
        let now = self.transport.now();
        if let Some(gone) = self.suppliers.let_one_go(now, full, begin) {
            self.counters.suppliers_lost.fetch_add(1, Relaxed);
            self.objects.retire(gone);
        }
    }

    /// Ends the channel and deactivates all its objects. Each consumer is notified after its queued events. The
    /// suppliers are notified by a separate thread that no caller waits for.
    pub(crate) fn destroy(&self) -> Result<(), SystemException> {
        self.destroy_with(Vec::new)
    }

    /// As [`Shared::destroy`]. `others` returns more consumers that pull, which are notified, too.
    pub(crate) fn destroy_with(
        &self,
        others: impl FnOnce() -> Vec<PullConsumerRef>,
    ) -> Result<(), SystemException> {
        if self.destroyed.swap(true, AcqRel) {
            return Err(raise(Kind::ObjectNotExist));
        }
        self.consumers.close();
        let suppliers = self.suppliers.take();
        let (mut pullers, sources) = (self.pullers.take(), self.sources.close());
        pullers.extend(others());
        self.objects.retire_all();
        self.objects.home.forget_all();
        let shared = self.own();
        let farewell = move || {
            for supplier in suppliers {
                say_farewell(supplier.object(), "disconnect_push_supplier");
            }
            for puller in pullers {
                say_farewell(puller.object(), "disconnect_pull_consumer");
            }
            for source in sources {
                say_farewell(source.object(), "disconnect_pull_supplier");
            }
            shared.suppliers_told.store(true, Release);
        };
        if !in_thread(farewell) {
            // Without a thread the suppliers are not notified.
            self.suppliers_told.store(true, Release);
        }
        Ok(())
    }
}
