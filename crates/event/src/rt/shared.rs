//! What the servants of one real-time channel share.

mod ends;
mod suppliers;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Weak};

use deckwatch_orb::delivery::{
    Backlog, Batch, Deliveries, DeliveryOptions, End, Marshalled, Outlet, OutletOptions,
    OutletOwner,
};
use deckwatch_orb::transport::Transport;
use deckwatch_orb::{
    ObjectRef, Orb, Priority, RtCurrent, Servant, SystemException, SystemExceptionKind as Kind,
    own_minor,
};
use deckwatch_os::schedule::{self, Class};
use deckwatch_sync::PiMutex;

use super::admission::Admission;
use super::consumer::{Consumer, Delivery};
use super::counters::{Counters, Loss};
use super::hop::{Hop, Hops};
use super::observers::{Change, Observers};
use super::options::RtChannelOptions;
use super::pushed::Pushed;
use super::qos::{self, RtInfo};
use super::scheduling::Table;
use super::supplier::Supplier;
use super::timeouts::Timeouts;
use crate::dispatch::{Dispatcher, Dispatching, Urgency};
use crate::filter::{Candidates, Filter, Header, Index};
use crate::home::{Fixed, Home};
use crate::kept::Share;
use crate::limits;
use crate::objects::Objects;
use crate::peers::{Holding, Shares, is_share};
use crate::raise::raise;
use crate::rtec_event_channel_admin::{ConsumerQOS, SupplierQOS};
use crate::rtec_event_comm::PushConsumerRef;

/// The state that the servants of one channel share.
pub(super) struct Shared {
    own: Weak<Self>,
    pub(super) options: RtChannelOptions,
    pub(super) objects: Objects,
    pub(super) shares: Shares,
    pub(super) deliveries: Deliveries,
    transport: Arc<dyn Transport>,
    current: RtCurrent,
    pub(super) dispatcher: Dispatcher<Delivery>,
    index: PiMutex<Index<Arc<Consumer>>>,
    /// Changes whenever the index does.
    generation: AtomicU64,
    /// By the number of the proxy. The lock is held while a client connects and while the channel is destroyed.
    pub(super) clients: PiMutex<Clients>,
    timeouts: Arc<Timeouts>,
    observers: Arc<Observers>,
    pub(super) hops: Hops,
    /// What all conjunctions keep.
    pub(super) kept: Arc<Share>,
    pub(super) admission: Option<Admission>,
    pub(super) counters: Arc<Counters>,
    is_destroyed: AtomicBool,
    /// Set after `is_destroyed`, once the suppliers have been notified.
    suppliers_told: AtomicBool,
}

#[derive(Default)]
pub(super) struct Clients {
    pub(super) consumers: HashMap<u64, Arc<Consumer>>,
    pub(super) suppliers: HashMap<u64, Arc<Supplier>>,
    /// What these clients hold of the shares of their peers, by the same numbers.
    places: HashMap<u64, Holding>,
    /// What consumers that have disconnected hold until their farewell is said: their outlets are still there.
    leaving: HashMap<u64, Holding>,
}

/// Gives a thread that has just started its priority, or the class of the thread that has made this.
type Prepare = Arc<dyn Fn(Option<Priority>) -> Result<(), SystemException> + Send + Sync>;

fn preparation(orb: &Orb, may_fall_back: bool, counters: &Arc<Counters>) -> Prepare {
    let (current, counts) = (orb.rt_current(), Arc::clone(counters));
    // A thread that a real-time thread creates is not real-time by itself.
    let class = schedule::class().ok();
    Arc::new(move |priority: Option<Priority>| {
        let Some(priority) = priority else {
            if let Some(class) = class.filter(|class| *class != Class::Other) {
                // The starting thread was allowed to enter its class, and this thread is, too.
                let _ = schedule::set_class(class);
            }
            return Ok(());
        };
        match current.set_the_priority(priority) {
            Err(denied) if may_fall_back && denied.kind == Kind::NoPermission => {
                counts.priority_fallbacks.fetch_add(1, Relaxed);
                Ok(())
            }
            outcome => outcome,
        }
    })
}

impl Shared {
    /// # Errors
    /// BAD_PARAM for options out of bounds, NO_RESOURCES for lanes without threads or priorities.
    pub(super) fn new(
        home: Home,
        orb: &Orb,
        options: RtChannelOptions,
    ) -> Result<Arc<Self>, SystemException> {
        let is_sound = (1..=limits::QUEUE_LEN_MAX).contains(&options.queue_len)
            && options.size_max >= limits::CHANNEL_SIZE_MIN
            && is_share(options.share_percent);
        if !is_sound {
            return Err(raise(Kind::BadParam));
        }
        let deliveries = DeliveryOptions {
            size_max: options.size_max,
            ask_period: Some(limits::CONSUMER_ASK_PERIOD),
            ..DeliveryOptions::default()
        };
        let deliveries = Deliveries::start(orb, deliveries)?;
        let counters = Arc::<Counters>::default();
        let prepare = preparation(orb, options.allow_priority_fallback, &counters);
        let admission = match options.scheduling.clone() {
            Some(scheduling) => Some(Admission::new(scheduling, orb, &options.dispatching)?),
            None => None,
        };
        let is_by_hand = orb.is_turned_by_hand();
        let dispatcher = Dispatcher::start(&options.dispatching, is_by_hand, &prepare)?;
        let highest = dispatcher.highest();
        let timeouts = Timeouts::new(is_by_hand, Box::new(move || prepare(highest)));
        let objects = Objects::new(home);
        let kept = Share::of(options.size_max);
        let shares = Shares::new(orb, options.share_percent, limits::PULLERS_MAX);
        let shared = Arc::new_cyclic(|own| Self {
            own: own.clone(),
            options,
            objects,
            shares,
            deliveries,
            transport: Arc::clone(orb.transport()),
            current: orb.rt_current(),
            dispatcher,
            index: PiMutex::default(),
            generation: AtomicU64::new(0),
            clients: PiMutex::default(),
            timeouts: Arc::new(timeouts),
            observers: Arc::default(),
            hops: Hops::new(),
            kept,
            admission,
            counters,
            is_destroyed: AtomicBool::new(false),
            suppliers_told: AtomicBool::new(false),
        });
        shared.deliveries.set_backlog(shared.own());
        let watcher: Weak<Self> = shared.own();
        shared.objects.home.gate.watch(watcher);
        Ok(shared)
    }

    pub(super) fn own(&self) -> Weak<Self> {
        self.own.clone()
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.transport.now().0
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Acquire)
    }

    pub(super) fn candidates(&self, event: Header) -> Candidates<Arc<Consumer>> {
        self.index.lock("rt.index").candidates(event)
    }

    pub(super) fn consumer(&self, number: u64) -> Option<Arc<Consumer>> {
        let clients = self.clients.lock("rt.clients");
        clients.consumers.get(&number).cloned()
    }

    pub(super) fn count_received(&self, count: u64) {
        self.counters.received.fetch_add(count, Relaxed);
    }

    pub(super) fn count_forwarded(&self) {
        self.counters.forwarded.fetch_add(1, Relaxed);
    }

    pub(super) fn count_timeout(&self) {
        self.counters.timeouts.fetch_add(1, Relaxed);
    }

    pub(super) fn count_observer_lost(&self) {
        self.counters.observers_lost.fetch_add(1, Relaxed);
    }

    pub(super) fn lose(&self, consumer: &Consumer, why: Loss) {
        consumer.losses.count(why);
        self.counters.losses.count(why);
    }

    /// While all conjunctions keep more than their share, has those of the consumer that keeps most start anew.
    pub(super) fn limit_kept(&self) {
        while self.kept.is_exceeded() {
            let largest = {
                let clients = self.clients.lock("rt.clients");
                let consumers = clients.consumers.values();
                consumers.max_by_key(|each| each.kept_size()).cloned()
            };
            let Some(largest) = largest else { return };
            let lost = largest.restart();
            for _ in 0..lost {
                self.lose(&largest, Loss::Unfinished);
            }
            if lost == 0 {
                return;
            }
        }
    }

    /// Offers an event to the consumers in `reach` that may match it. `reach` is sorted; `None` is all.
    /// `priority` is that of the supplier; else the thread's counts.
    pub(super) fn route(
        &self,
        pushed: &mut Pushed<'_>,
        reach: Option<&[u64]>,
        priority: Option<Priority>,
    ) {
        let candidates = self.candidates(pushed.key());
        let priority = priority.or_else(|| self.current.the_priority().ok());
        let (mut is_wanted, mut batch) = (false, Batch::new());
        candidates.for_each(|consumer| {
            if reach.is_none_or(|reach| reach.binary_search(&consumer.number).is_ok()) {
                is_wanted = true;
                consumer.take(self, pushed, priority, &mut batch);
            }
        });
        if !is_wanted {
            self.counters.unwanted.fetch_add(1, Relaxed);
        }
    }

    pub(super) fn fire_due(&self) {
        // The next turn fires what is due then.
        let _ = self.timeouts.fire_due(self);
    }

    /// Returns true if the thread of a push sends its events.
    pub(super) fn is_reactive(&self) -> bool {
        self.options.dispatching == Dispatching::Reactive
    }

    pub(super) fn dispatch(
        &self,
        priority: Option<Priority>,
        urgency: Urgency,
        consumer: Arc<Consumer>,
        body: Marshalled,
    ) {
        let losses = Arc::clone(&self.counters);
        let delivery = Delivery {
            consumer,
            body,
            losses,
        };
        self.dispatcher.dispatch(priority, urgency, delivery);
    }

    /// # Errors
    /// OBJECT_NOT_EXIST once the channel is destroyed.
    pub(super) fn check_alive(&self) -> Result<(), SystemException> {
        if self.is_destroyed.load(Acquire) {
            Err(raise(Kind::ObjectNotExist))
        } else {
            Ok(())
        }
    }

    /// Connects a consumer, in place of `before`, suspended or not.
    ///
    /// # Errors
    /// BAD_PARAM for a malformed filter, or one with a state for another channel; NO_RESOURCES at the maximum of
    /// consumers, IMP_LIMIT at the share of the calling peer, OBJECT_NOT_EXIST after the end.
    pub(super) fn connect_consumer(
        &self,
        number: u64,
        reference: &PushConsumerRef,
        qos: &ConsumerQOS,
        before: (Option<&Arc<Consumer>>, bool),
    ) -> Result<Arc<Consumer>, SystemException> {
        let filter = Filter::build(&qos::entries(qos)).map_err(|_| raise(Kind::BadParam))?;
        self.check_alive()?;
        let keys = subscribed(&filter).into_iter();
        self.objects.home.check_events(number, keys)?;
        let hop = Hop::of(reference.object(), qos);
        if matches!(hop, Hop::Channel(_)) && !filter.is_stateless() {
            return Err(raise(Kind::BadParam));
        }
        let handles = qos::consumer_handles(qos);
        let Some(admission) = self.admission.as_ref().filter(|_| !handles.is_empty()) else {
            return self.join_consumer(number, reference, qos, (filter, hop), before, None);
        };
        let supplied = || self.supplied(number, &filter, &handles);
        let named: Vec<i32> = handles
            .iter()
            .copied()
            .filter(|handle| *handle != 0)
            .collect();
        let join = |table: &Table| {
            let of = (filter.clone(), hop);
            self.join_consumer(number, reference, qos, of, before, Some(table))
        };
        let of = (number, self.shares.caller(), &self.shares.pairs);
        let (consumer, table) = admission.connect(of, &named, supplied, join)?;
        self.reschedule(&table);
        Ok(consumer)
    }

    /// Makes a consumer's connection.
    fn join_consumer(
        &self,
        number: u64,
        reference: &PushConsumerRef,
        qos: &ConsumerQOS,
        (filter, hop): (Filter, Hop),
        before: (Option<&Arc<Consumer>>, bool),
        table: Option<&Table>,
    ) -> Result<Arc<Consumer>, SystemException> {
        let (before, is_suspended) = before;
        let rt_info = table.and_then(|table| qos::most_urgent(qos, table));
        let priority = rt_info.map(|info| info.priority);
        let same = before.filter(|before| {
            before.outlet.object() == reference.object()
                && before.hop.operation() == hop.operation()
                && before.priority == priority
        });
        // Without a lock: to resolve a host name takes time.
        let outlet = match same {
            Some(same) => Arc::clone(&same.outlet),
            None => self.outlet(number, reference, hop, rt_info)?,
        };
        let consumer = Consumer::new(
            filter,
            Arc::clone(&outlet),
            qos,
            hop,
            priority,
            (is_suspended, self.now_ns()),
        );
        let consumer = Arc::new(consumer);
        if let Some(table) = table {
            consumer.schedule(table);
        }
        let entered = self.enter_consumer(&consumer, before);
        if same.is_none() {
            match (&entered, before) {
                (Err(_), _) => outlet.leave(),
                (Ok(()), Some(before)) => {
                    before.leave();
                    before.outlet.leave();
                }
                (Ok(()), None) => {}
            }
        }
        entered?;
        if !consumer.is_gateway {
            self.observers.note(Change::Consumers);
        }
        Ok(consumer)
    }

    fn enter_consumer(
        &self,
        consumer: &Arc<Consumer>,
        before: Option<&Arc<Consumer>>,
    ) -> Result<(), SystemException> {
        let (number, peer) = (consumer.number, self.shares.caller());
        let mut clients = self.clients.lock("rt.clients");
        self.check_alive()?;
        if before.is_none() && clients.consumers.len() >= limits::CONSUMERS_MAX {
            return Err(raise(Kind::NoResources));
        }
        let (entries, timeouts) = consumer.weight();
        if before.is_none() {
            let holding = self.shares.take_consumer(peer, entries, timeouts)?;
            self.objects.settle(number)?;
            clients.places.insert(number, holding);
        } else {
            if let Some(holding) = clients.places.get_mut(&number) {
                holding.resize(entries, timeouts)?;
            }
            self.objects.settle(number)?;
            self.timeouts.forget(number);
        }
        if let Some(due_ns) = consumer.next_due_ns() {
            let watched = self.timeouts.watch(&self.own, due_ns, number);
            // `settle` has taken the proxy off the waiting list.
            watched.inspect_err(|_| {
                clients.places.remove(&number);
                self.objects.retire(number);
            })?;
        }
        {
            let mut index = self.index.lock("rt.index");
            if let Some(before) = before {
                index.remove(number, &before.filter);
            }
            index.insert(number, &consumer.filter, consumer);
            self.generation.fetch_add(1, Release);
        }
        clients.consumers.insert(number, Arc::clone(consumer));
        Ok(())
    }

    /// The outlet of a consumer. Its connection is begun, and not waited for.
    fn outlet(
        &self,
        number: u64,
        reference: &PushConsumerRef,
        hop: Hop,
        rt_info: Option<RtInfo>,
    ) -> Result<Arc<Outlet>, SystemException> {
        let options = OutletOptions {
            number,
            operation: hop.operation(),
            farewell: Some("disconnect_push_consumer"),
            // A backup keeps an event until its consumers have taken it.
            window: u16::from(self.objects.home.replication().is_some()),
            queue_len: self.options.queue_len,
            queue_size_max: limits::QUEUE_SIZE_MAX,
            when_full: self.options.when_full,
            priority: rt_info.map(|info| info.priority),
            is_private: false,
            failures_max: limits::FAILURES_MAX,
            final_exceptions: &[],
        };
        let owner: Weak<Self> = self.own();
        let made = self
            .deliveries
            .outlet(reference.object(), options, owner.clone());
        match made {
            // The host refuses the I/O thread its priority.
            Err(refused)
                if refused.minor == own_minor::PRIORITY_DENIED
                    && self.options.allow_priority_fallback =>
            {
                self.counters.priority_fallbacks.fetch_add(1, Relaxed);
                let options = OutletOptions {
                    priority: None,
                    ..options
                };
                self.deliveries.outlet(reference.object(), options, owner)
            }
            made => made,
        }
    }

    /// Removes the consumer of a proxy if it is one that `is_meant`: another may have connected in its place. With
    /// `says_farewell` it holds its share until its outlet has ended. Returns false if none is removed.
    fn remove_consumer(
        &self,
        number: u64,
        says_farewell: bool,
        is_meant: impl Fn(&Consumer) -> bool,
    ) -> bool {
        let removed = {
            let mut clients = self.clients.lock("rt.clients");
            if !clients
                .consumers
                .get(&number)
                .is_some_and(|one| is_meant(one))
            {
                return false;
            }
            let holding = clients.places.remove(&number);
            if let Some(holding) = holding.filter(|_| says_farewell) {
                clients.leaving.insert(number, holding);
            }
            clients.consumers.remove(&number)
        };
        let Some(consumer) = removed else {
            return false;
        };
        {
            let mut index = self.index.lock("rt.index");
            index.remove(consumer.number, &consumer.filter);
            self.generation.fetch_add(1, Release);
        }
        consumer.leave();
        self.leave_schedule(consumer.number, consumer.handles.is_empty());
        self.timeouts.forget(consumer.number);
        self.objects.retire(consumer.number);
        if !consumer.is_gateway {
            self.observers.note(Change::Consumers);
        }
        true
    }

    pub(super) fn disconnect_consumer(&self, consumer: &Consumer) {
        let says_farewell = self.options.disconnect_callbacks;
        if self.remove_consumer(consumer.number, says_farewell, |_| true) {
            if says_farewell {
                consumer.outlet.close();
            } else {
                consumer.outlet.leave();
            }
        }
    }

    /// What all consumers but gateways subscribe to.
    pub(super) fn subscriptions(&self) -> ConsumerQOS {
        let consumers: Vec<_> = {
            let clients = self.clients.lock("rt.clients");
            clients.consumers.values().cloned().collect()
        };
        let headers = consumers
            .iter()
            .filter(|consumer| !consumer.is_gateway)
            .flat_map(|consumer| subscribed(&consumer.filter));
        qos::consumer_qos(headers)
    }

    /// What all suppliers but gateways publish.
    pub(super) fn publications(&self) -> SupplierQOS {
        let suppliers: Vec<_> = {
            let clients = self.clients.lock("rt.clients");
            clients.suppliers.values().cloned().collect()
        };
        let headers = suppliers
            .iter()
            .filter(|supplier| !supplier.is_gateway)
            .flat_map(|supplier| supplier.publications.iter())
            .map(|header| (header.source, header.event_type));
        qos::supplier_qos(headers)
    }

    pub(super) fn observers(&self) -> &Arc<Observers> {
        &self.observers
    }

    /// Activates an object that the channel has without a client.
    pub(super) fn activate(
        &self,
        object: Fixed,
        servant: Arc<dyn Servant>,
    ) -> Result<ObjectRef, SystemException> {
        let number = self.objects.home.fixed_number(object);
        self.objects.activate(number, servant)
    }
}

/// The sources and types that a filter asks for. One without keys, such as a negation, may match any event.
fn subscribed(filter: &Filter) -> BTreeSet<(i32, i32)> {
    filter.keys().unwrap_or_else(|| BTreeSet::from([(0, 0)]))
}

impl Backlog for Shared {
    fn drop_one(&self, may_drop: &dyn Fn(&Marshalled) -> bool) -> bool {
        self.dispatcher
            .drop_one(|delivery| may_drop(&delivery.body))
    }
}

impl OutletOwner for Shared {
    fn outlet_ended(&self, outlet: &Arc<Outlet>, why: End) {
        let number = outlet.number();
        self.clients.lock("rt.clients").leaving.remove(&number);
        // A consumer that has connected again may have another outlet.
        let is_meant = |one: &Consumer| Arc::ptr_eq(&one.outlet, outlet);
        if self.remove_consumer(number, false, is_meant) && why != End::Closed {
            self.counters.consumers_lost.fetch_add(1, Relaxed);
        }
    }
}
