//! A connected consumer: its filter, the state of its match, its outlet and its losses; and its proxy.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Weak};

use deckwatch_orb::delivery::{Batch, Marshalled, Outlet};
use deckwatch_orb::{Priority, SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::{PiMutex, Settable};

use super::counters::{Loss, Losses};
use super::hop::Hop;
use super::pushed::{HeldEvent, Pushed, keep, lowered, write_set};
use super::qos::{self, RtInfo};
use super::scheduling::Table;
use super::shared::Shared;
use crate::channel_group::ProxyKind;
use crate::dispatch::{Task, Urgency};
use crate::filter::designator::{DEADLINE_TIMEOUT, INTERVAL_TIMEOUT, TIMEOUT};
use crate::filter::{Filter, Input, MatchState, TimerKind};
use crate::home::Client;
use crate::limits::TTL_MAX;
use crate::raise::raise;
use crate::rtec_event_channel_admin::{
    AlreadyConnected, ConsumerQOS, ProxyPushSupplier, ProxyPushSupplierConnectPushConsumerError,
    TypeError,
};
use crate::rtec_event_comm::{Event, EventHeader, PushConsumerRef, PushSupplier};

/// A connected consumer. Reconnecting replaces it.
pub(super) struct Consumer {
    /// The number of its proxy.
    pub(super) number: u64,
    pub(super) filter: Filter,
    /// `None` for a filter that needs none.
    state: Option<PiMutex<MatchState<HeldEvent>>>,
    pub(super) outlet: Arc<Outlet>,
    pub(super) is_gateway: bool,
    pub(super) hop: Hop,
    /// That of its outlet.
    pub(super) priority: Option<Priority>,
    /// The RT_Info that each dependency names, 0 for none; empty without any.
    pub(super) handles: Box<[i32]>,
    /// Set once the schedule gives one of them a rate.
    urgencies: Settable<Urgencies>,
    is_suspended: AtomicBool,
    is_gone: AtomicBool,
    pub(super) losses: Losses,
}

/// How urgent the events of a consumer are.
enum Urgencies {
    /// Of every part of its filter alike.
    Alike(RtInfo),
    /// By the entry that names the part.
    ByPart(Box<[Option<RtInfo>]>),
}

/// What became of a consumer's events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerReport {
    /// The number of its proxy in the channel.
    pub number: u64,
    /// It leads to another channel.
    pub is_hop: bool,
    /// Event sets that were sent to it.
    pub delivered: u64,
    /// Event sets dropped from its own queue.
    pub dropped: u64,
    /// Event sets that could not be sent.
    pub failed: u64,
    /// Event sets that were lost before, in the order of [`Loss::ALL`].
    pub lost: [u64; Loss::ALL.len()],
}

/// One event set for one consumer.
pub(super) struct Delivery {
    pub(super) consumer: Arc<Consumer>,
    pub(super) body: Marshalled,
    pub(super) losses: Arc<super::counters::Counters>,
}

impl Delivery {
    fn lose(&self, why: Loss) {
        self.consumer.losses.count(why);
        self.losses.losses.count(why);
    }
}

impl Task for Delivery {
    fn run(self) {
        if self.consumer.is_gone.load(Acquire) {
            return self.lose(Loss::Gone);
        }
        if self.consumer.is_suspended.load(Acquire) {
            return self.lose(Loss::Suspended);
        }
        self.consumer.outlet.offer(&self.body);
    }

    fn drop_unsent(self, is_closed: bool) {
        self.lose(if is_closed {
            Loss::Gone
        } else {
            Loss::QueueFull
        });
    }
}

impl Consumer {
    pub(super) fn new(
        filter: Filter,
        outlet: Arc<Outlet>,
        qos: &ConsumerQOS,
        hop: Hop,
        priority: Option<Priority>,
        (is_suspended, now_ns): (bool, u64),
    ) -> Self {
        let state =
            (!filter.is_stateless()).then(|| PiMutex::new(MatchState::new(&filter, now_ns)));
        Self {
            number: outlet.number(),
            filter,
            state,
            outlet,
            is_gateway: qos.is_gateway,
            hop,
            priority,
            handles: qos::consumer_handles(qos),
            urgencies: Settable::empty(),
            is_suspended: AtomicBool::new(is_suspended),
            is_gone: AtomicBool::new(false),
            losses: Losses::default(),
        }
    }

    /// Takes the urgency of its events from a schedule.
    pub(super) fn schedule(&self, table: &Table) {
        if let Some(urgencies) = Urgencies::of(&self.filter, &self.handles, table) {
            self.urgencies.set(urgencies);
        }
    }

    /// How urgent the events of a part are.
    fn info(&self, part: impl FnOnce() -> Option<u32>) -> Option<RtInfo> {
        let found = self.urgencies.read(|urgencies| match urgencies {
            Urgencies::Alike(info) => Some(*info),
            Urgencies::ByPart(all) => *all.get(part()? as usize)?,
        });
        found.flatten()
    }

    /// Entries of its filter, and timeouts of it in a second.
    pub(super) fn weight(&self) -> (usize, usize) {
        (self.filter.entry_count(), self.filter.timeout_rate())
    }

    /// When its next timeout fires.
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        let state = self.state.as_ref()?.lock("rt.match");
        state.next_due_ns()
    }

    /// Octets of the events that its conjunctions keep.
    pub(super) fn kept_size(&self) -> usize {
        let Some(state) = &self.state else { return 0 };
        let state = state.lock("rt.match");
        state.kept().map(|event| event.size()).sum()
    }

    /// Has its conjunctions start anew. Returns the number of events that are lost by that.
    pub(super) fn restart(&self) -> usize {
        let state = self.state.as_ref();
        state.map_or(0, |state| state.lock("rt.match").restart())
    }

    /// From now on its queued events are counted as lost.
    pub(super) fn leave(&self) {
        self.is_gone.store(true, Release);
    }

    /// Returns true if it leads to another channel.
    pub(super) fn is_hop(&self) -> bool {
        self.hop != Hop::None
    }

    pub(super) fn report(&self) -> ConsumerReport {
        let counts = self.outlet.counts();
        ConsumerReport {
            number: self.number,
            is_hop: self.is_hop(),
            delivered: counts.delivered,
            dropped: counts.dropped,
            failed: counts.failed,
            lost: self.losses.read(),
        }
    }

    /// Takes an event that the index found for it.
    pub(super) fn take(
        self: &Arc<Self>,
        shared: &Shared,
        pushed: &mut Pushed<'_>,
        priority: Option<Priority>,
        batch: &mut Batch,
    ) {
        let input = Input::Event(pushed.key());
        if !self.filter.is_exact() && !self.filter.matches(input) {
            return;
        }
        if let Hop::Channel(channel) = self.hop
            && pushed.came_from(channel)
        {
            return;
        }
        if self.is_suspended.load(Acquire) {
            return shared.lose(self, Loss::Suspended);
        }
        if self.is_hop() && pushed.header.ttl <= 0 {
            return shared.lose(self, Loss::TtlExpired);
        }
        let mut part = None;
        let body = match &self.state {
            None => pushed.body(shared, &self.outlet, self.hop),
            Some(state) => {
                let Some(event) = pushed.held(shared) else {
                    return shared.lose(self, Loss::Unencodable);
                };
                let mut out = Vec::new();
                let mut state = state.lock("rt.match");
                let now_ns = shared.now_ns();
                let emits = self
                    .filter
                    .offer(&mut state, input, &event, now_ns, &mut out);
                part = Some(state.part());
                drop(state);
                if !emits {
                    return shared.limit_kept();
                }
                let is_alone = matches!(&out[..], [only] if Arc::ptr_eq(only, &event));
                if is_alone {
                    pushed.body(shared, &self.outlet, self.hop)
                } else {
                    self.marshal(shared, &out)
                }
            }
        };
        let info = self.info(|| part.or_else(|| self.filter.part(input)));
        self.send(shared, body, (info, priority), batch);
    }

    /// Fires the timeouts whose time is over.
    pub(super) fn fire(self: &Arc<Self>, shared: &Shared, now_ns: u64) {
        let Some(state) = &self.state else {
            return;
        };
        let mut batch = Batch::new();
        loop {
            let expired = self.filter.expired(&mut state.lock("rt.match"), now_ns);
            let Some(index) = expired else {
                return;
            };
            shared.count_timeout();
            let event = timeout(self.filter.timers()[index as usize].kind, shared);
            let Some(event) = keep(Arc::new(event), shared) else {
                shared.lose(self, Loss::Unencodable);
                continue;
            };
            let mut out = Vec::new();
            let mut state = state.lock("rt.match");
            let emits =
                self.filter
                    .offer(&mut state, Input::Timer(index), &event, now_ns, &mut out);
            let part = state.part();
            drop(state);
            if !emits {
                shared.limit_kept();
                continue;
            }
            if self.is_suspended.load(Acquire) {
                shared.lose(self, Loss::Suspended);
            } else {
                let body = self.marshal(shared, &out);
                let info = self.info(|| Some(part));
                self.send(shared, body, (info, None), &mut batch);
            }
        }
    }

    /// Several events, or those of a timeout, as one set.
    fn marshal(&self, shared: &Shared, events: &[HeldEvent]) -> Option<Marshalled> {
        let ttl = |ttl: i32| match self.hop {
            Hop::None => ttl,
            Hop::Proxy => lowered(ttl),
            Hop::Gateway | Hop::Channel(_) => ttl.min(TTL_MAX),
        };
        let form = self.outlet.form();
        let body = shared
            .deliveries
            .marshal(form, |w| write_set(events, ttl, w));
        body.ok()
    }

    fn send(
        self: &Arc<Self>,
        shared: &Shared,
        body: Option<Marshalled>,
        (info, priority): (Option<RtInfo>, Option<Priority>),
        batch: &mut Batch,
    ) {
        let Some(body) = body else {
            return shared.lose(self, Loss::Unencodable);
        };
        if self.is_gone.load(Acquire) {
            return shared.lose(self, Loss::Gone);
        }
        if self.is_hop() {
            shared.count_forwarded();
        }
        if shared.is_reactive() {
            return self.outlet.offer_in(&body, batch);
        }
        let urgency = info.map_or(Urgency::NONE, |info| Urgency {
            deadline_ns: shared
                .now_ns()
                .saturating_add(info.deadline.as_nanos() as u64),
            worst_case_ns: info.worst_case.as_nanos() as u64,
        });
        let priority = info.map(|info| info.priority).or(priority);
        shared.dispatch(priority, urgency, Arc::clone(self), body);
    }
}

impl Urgencies {
    /// A part has the RT_Info of its own entry, else the most urgent one of its operands. Returns `None` if the
    /// schedule gives no part a rate.
    fn of(filter: &Filter, handles: &[i32], table: &Table) -> Option<Self> {
        if handles.is_empty() {
            return None;
        }
        let at = |entry: usize| table.infos.get(handles.get(entry)?).copied();
        let mut by_part = vec![None; handles.len()];
        let mut infos = Vec::new();
        for part in filter.parts() {
            let (first, behind) = (part.start as usize, part.end as usize);
            let operands = (first..behind).filter_map(at);
            let info = at(first).or_else(|| operands.max_by_key(|info| info.priority));
            by_part[first] = info;
            infos.push(info);
        }
        let first = infos.iter().flatten().next()?;
        if infos.iter().all(|info| info.as_ref() == Some(first)) {
            return Some(Self::Alike(*first));
        }
        Some(Self::ByPart(by_part.into()))
    }
}

/// The event of a timeout.
fn timeout(kind: TimerKind, shared: &Shared) -> Event {
    let event_type = match kind {
        TimerKind::OneShot => TIMEOUT,
        TimerKind::Interval => INTERVAL_TIMEOUT,
        TimerKind::Deadline => DEADLINE_TIMEOUT,
    };
    Event {
        header: EventHeader {
            r#type: event_type,
            ttl: 1,
            creation_time: shared.now_ns() / 100,
            ..EventHeader::default()
        },
        ..Event::default()
    }
}

/// `ProxyPushSupplier`: pushes to one consumer.
pub(super) struct SupplierProxy {
    shared: Weak<Shared>,
    number: u64,
    /// Before the connect, too, and for every consumer that connects again. Changes under the lock of the state.
    is_suspended: AtomicBool,
    state: PiMutex<State>,
}

/// The state of a proxy.
enum State {
    Waiting,
    Connected(Arc<Consumer>),
    Disconnected,
}

impl SupplierProxy {
    pub(super) fn new(shared: Weak<Shared>, number: u64) -> Self {
        Self {
            shared,
            number,
            is_suspended: AtomicBool::new(false),
            state: PiMutex::new(State::Waiting),
        }
    }

    fn shared(&self) -> Result<Arc<Shared>, SystemException> {
        let shared = self.shared.upgrade();
        shared.ok_or_else(|| raise(Kind::ObjectNotExist))
    }

    /// # Errors
    /// PERSIST_STORE if that cannot be recorded, OBJECT_NOT_EXIST after the consumer has left.
    fn suspend(&self, is_suspended: bool) -> Result<(), SystemException> {
        let state = self.state.lock("rt.proxy");
        match &*state {
            State::Connected(consumer) => {
                let shared = self.shared()?;
                let home = &shared.objects.home;
                home.record_suspended(self.number, is_suspended)?;
                consumer.is_suspended.store(is_suspended, Release);
            }
            State::Waiting => {}
            State::Disconnected => return Err(raise(Kind::ObjectNotExist)),
        }
        self.is_suspended.store(is_suspended, Relaxed);
        Ok(())
    }
}

impl PushSupplier for SupplierProxy {
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        let shared = self.shared()?;
        shared.objects.home.forget(self.number)?;
        let before = std::mem::replace(&mut *self.state.lock("rt.proxy"), State::Disconnected);
        match before {
            State::Connected(consumer) => shared.disconnect_consumer(&consumer),
            State::Waiting | State::Disconnected => shared.objects.retire(self.number),
        }
        Ok(())
    }
}

impl ProxyPushSupplier for SupplierProxy {
    fn connect_push_consumer(
        &self,
        push_consumer: Option<&PushConsumerRef>,
        qos: &ConsumerQOS,
    ) -> Result<(), ProxyPushSupplierConnectPushConsumerError> {
        let consumer = push_consumer.ok_or_else(|| raise(Kind::BadParam))?;
        let shared = self.shared()?;
        // A channel that consumes its own events would push them for ever.
        let is_own = Hop::of(consumer.object(), qos) == Hop::Channel(shared.hops.identity());
        if is_own || shared.objects.is_own(consumer.object()) {
            return Err(TypeError {}.into());
        }
        let mut state = self.state.lock("rt.proxy");
        let before = match &*state {
            State::Waiting => None,
            State::Connected(before) if shared.options.reconnect => Some(before),
            State::Connected(_) => return Err(AlreadyConnected {}.into()),
            State::Disconnected => return Err(raise(Kind::ObjectNotExist).into()),
        };
        let is_suspended = self.is_suspended.load(Relaxed);
        let client = Client {
            number: self.number,
            kind: ProxyKind::PushSupplier,
            reference: Some(consumer.object()),
            qos: Some(qos),
            is_suspended,
        };
        let connected = shared.objects.home.record(&client, || {
            shared.connect_consumer(self.number, consumer, qos, (before, is_suspended))
        })?;
        *state = State::Connected(connected);
        Ok(())
    }

    fn suspend_connection(&self) -> Result<(), SystemException> {
        self.suspend(true)
    }

    fn resume_connection(&self) -> Result<(), SystemException> {
        self.suspend(false)
    }
}

mod own_reports;
