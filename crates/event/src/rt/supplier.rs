//! A connected supplier and its proxy, which takes pushes undecoded.

use std::collections::BTreeSet;
use std::iter::once;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use deckwatch_access::Action;
use deckwatch_cdr::Parse as _;
use deckwatch_orb::{
    Priority, Servant, ServerRequest, SystemException, SystemExceptionKind as Kind,
};
use deckwatch_sync::{PiMutex, Settable};

use super::pushed::Pushed;
use super::qos;
use super::scheduling::Table;
use super::shared::Shared;
use crate::channel_group::ProxyKind;
use crate::filter::designator::{ANY, SOURCE_ANY};
use crate::filter::{Header, Input};
use crate::home::Client;
use crate::limits::PUBLICATIONS_MAX;
use crate::raise::raise;
use crate::rtec_event_channel_admin::{
    AlreadyConnected, ProxyPushConsumer, ProxyPushConsumerConnectPushSupplierError,
    ProxyPushConsumerSkeleton, SupplierQOS,
};
use crate::rtec_event_comm::{Event, EventHeader, PushConsumer, PushSupplierRef};

/// A connected supplier.
pub(super) struct Supplier {
    /// Notified of the channel's end. `None` for a supplier that gave no reference.
    pub(super) reference: Option<PushSupplierRef>,
    pub(super) is_gateway: bool,
    pub(super) publications: Box<[Header]>,
    /// The publications that name an RT_Info.
    pub(super) handles: Box<[(Header, i32)]>,
    /// The priority of each of them that has a rate.
    priorities: Settable<Box<[(Header, Priority)]>>,
    /// The consumers that may match a publication, and the generation of subscriptions that they are of.
    reach: PiMutex<Option<(u64, Reach)>>,
    /// The connection of its last call: [`CallerConnection::number`](deckwatch_orb::CallerConnection::number).
    pub(super) connection: AtomicU64,
}

/// Numbers of consumers, sorted. `None`: all.
pub(super) type Reach = Option<Arc<[u64]>>;

impl Supplier {
    pub(super) fn new(
        reference: Option<&PushSupplierRef>,
        qos: &SupplierQOS,
        connection: u64,
    ) -> Self {
        Self {
            reference: reference.cloned(),
            is_gateway: qos.is_gateway,
            publications: qos::published(qos),
            handles: qos::supplier_handles(qos),
            priorities: Settable::empty(),
            reach: PiMutex::default(),
            connection: AtomicU64::new(connection),
        }
    }

    /// The sources and types of its publications.
    pub(super) fn published(&self) -> impl Iterator<Item = (i32, i32)> {
        let published = self.publications.iter();
        published.map(|header| (header.source, header.event_type))
    }

    /// Takes the priorities of its publications from a schedule.
    pub(super) fn schedule(&self, table: &Table) {
        let priority =
            |&(header, handle): &(Header, i32)| Some((header, table.infos.get(&handle)?.priority));
        let priorities: Box<[_]> = self.handles.iter().filter_map(priority).collect();
        if !priorities.is_empty() {
            self.priorities.set(priorities);
        }
    }

    /// The priority of the publication that an event belongs to.
    pub(super) fn priority(&self, event: Header) -> Option<Priority> {
        let found = self.priorities.read(|all| {
            let of_event = all.iter().find(|(header, _)| header.matches(event));
            of_event.map(|(_, priority)| *priority)
        });
        found.flatten()
    }

    /// The consumers that may match one of its publications, computed anew when subscriptions have changed.
    pub(super) fn reach(&self, shared: &Shared) -> Reach {
        if self.publications.is_empty() {
            return None;
        }
        // Read before the index: a change meanwhile makes the result old, never wrong.
        let generation = shared.generation();
        let mut reach = self.reach.lock("rt.reach");
        if let Some((known, reach)) = &*reach
            && *known == generation
        {
            return reach.clone();
        }
        let mut numbers = BTreeSet::new();
        for publication in &self.publications {
            // Of an event that is not known, a negation or a mask cannot be decided.
            let is_open = publication.event_type == ANY || publication.source == SOURCE_ANY;
            shared.candidates(*publication).for_each(|consumer| {
                if is_open || consumer.filter.matches(Input::Event(*publication)) {
                    numbers.insert(consumer.number);
                }
            });
        }
        let found: Reach = Some(numbers.into_iter().collect());
        *reach = Some((generation, found.clone()));
        found
    }
}

/// The source and the type of an event.
const fn key(header: &EventHeader) -> (i32, i32) {
    (header.source, header.r#type)
}

/// `ProxyPushConsumer`: suppliers push to it.
pub(super) struct ConsumerProxy {
    shared: Weak<Shared>,
    number: u64,
    state: PiMutex<State>,
}

/// The state of a proxy.
enum State {
    Waiting,
    Connected(Arc<Supplier>),
    Disconnected,
}

impl ConsumerProxy {
    pub(super) fn new(shared: Weak<Shared>, number: u64) -> Self {
        Self {
            shared,
            number,
            state: PiMutex::new(State::Waiting),
        }
    }

    fn shared(&self) -> Result<Arc<Shared>, SystemException> {
        let shared = self.shared.upgrade();
        shared.ok_or_else(|| raise(Kind::ObjectNotExist))
    }

    /// # Errors
    /// BAD_INV_ORDER before a supplier has connected, OBJECT_NOT_EXIST after it has left.
    fn supplier(&self) -> Result<Arc<Supplier>, SystemException> {
        match &*self.state.lock("rt.proxy") {
            State::Connected(supplier) => Ok(Arc::clone(supplier)),
            State::Waiting => Err(raise(Kind::BadInvOrder)),
            State::Disconnected => Err(raise(Kind::ObjectNotExist)),
        }
    }

    /// Forwards the events of a push. An event that comes alone is not decoded.
    fn serve_push(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let (supplier, shared) = (self.supplier()?, self.shared()?);
        let connection = shared.shares.connection();
        supplier.connection.store(connection, Relaxed);
        let gate = &shared.objects.home.gate;
        let arguments = request.arguments();
        if let Some(replication) = shared.objects.home.replication() {
            let events = Vec::<Event>::parse(&mut { arguments })?;
            let keys = events.iter().map(|event| key(&event.header));
            gate.check_events(Action::Supply, keys)?;
            let from = (self.number, Some(&supplier));
            let requested = requested(&shared, request);
            shared.push_replicated(replication, from, requested, events)?;
            return request.reply().map(drop);
        }
        let mut r = arguments;
        let count = r.read_count(EventHeader::SIZE_MIN)?;
        let reach = supplier.reach(&shared);
        let reach = reach.as_deref();
        if count == 1 {
            let header = EventHeader::parse(&mut r)?;
            gate.check_events(Action::Supply, once(key(&header)))?;
            shared.count_received(1);
            let mut alone = Pushed::alone(arguments, header);
            let priority = || requested(&shared, request);
            let priority = supplier.priority(alone.key()).or_else(priority);
            shared.route(&mut alone, reach, priority);
        } else {
            let events = Vec::<Event>::parse(&mut { arguments })?;
            gate.check_events(
                Action::Supply,
                events.iter().map(|event| key(&event.header)),
            )?;
            shared.count_received(events.len() as u64);
            let requested = requested(&shared, request);
            for event in events {
                let mut event = Pushed::of(event);
                let priority = supplier.priority(event.key()).or(requested);
                shared.route(&mut event, reach, priority);
            }
        }
        request.reply().map(drop)
    }
}

impl PushConsumer for ConsumerProxy {
    fn push(&self, data: &[Event]) -> Result<(), SystemException> {
        let (supplier, shared) = (self.supplier()?, self.shared()?);
        let keys = data.iter().map(|event| key(&event.header));
        shared
            .objects
            .home
            .gate
            .check_events(Action::Supply, keys)?;
        let reach = supplier.reach(&shared);
        shared.count_received(data.len() as u64);
        for event in data {
            let mut event = Pushed::of(event.clone());
            let priority = supplier.priority(event.key());
            shared.route(&mut event, reach.as_deref(), priority);
        }
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        let shared = self.shared()?;
        shared.objects.home.forget(self.number)?;
        let before = std::mem::replace(&mut *self.state.lock("rt.proxy"), State::Disconnected);
        let supplier = match before {
            State::Connected(supplier) => Some(supplier),
            State::Waiting | State::Disconnected => None,
        };
        shared.disconnect_supplier(self.number, supplier.as_deref());
        Ok(())
    }
}

impl ProxyPushConsumer for ConsumerProxy {
    fn connect_push_supplier(
        &self,
        push_supplier: Option<&PushSupplierRef>,
        qos: &SupplierQOS,
    ) -> Result<(), ProxyPushConsumerConnectPushSupplierError> {
        let shared = self.shared()?;
        if qos.publications.len() > PUBLICATIONS_MAX {
            return Err(raise(Kind::BadParam).into());
        }
        let mut state = self.state.lock("rt.proxy");
        match &*state {
            State::Waiting => {}
            State::Connected(_) if shared.options.reconnect => {}
            State::Connected(_) => return Err(AlreadyConnected {}.into()),
            State::Disconnected => return Err(raise(Kind::ObjectNotExist).into()),
        }
        let connection = shared.shares.connection();
        let supplier = Arc::new(Supplier::new(push_supplier, qos, connection));
        let client = Client {
            number: self.number,
            kind: ProxyKind::PushConsumer,
            reference: push_supplier.map(PushSupplierRef::object),
            qos: Some(qos),
            is_suspended: false,
        };
        let home = &shared.objects.home;
        home.record(&client, || shared.connect_supplier(self.number, &supplier))?;
        *state = State::Connected(supplier);
        Ok(())
    }
}

/// The CORBA priority of a request, for a channel with lanes.
fn requested(shared: &Shared, request: &ServerRequest<'_>) -> Option<Priority> {
    if shared.is_reactive() {
        return None;
    }
    request.priority()
}

/// The servant of a [`ConsumerProxy`]: as its skeleton, but `push` is served from the octets.
pub(super) struct PushServant(ProxyPushConsumerSkeleton<Arc<ConsumerProxy>>);

impl PushServant {
    pub(super) fn new(proxy: Arc<ConsumerProxy>) -> Self {
        Self(ProxyPushConsumerSkeleton::new(proxy))
    }
}

impl Servant for PushServant {
    fn repository_ids(&self) -> &'static [&'static str] {
        self.0.repository_ids()
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        if request.operation() == b"push" {
            self.0.servant().serve_push(request)
        } else {
            self.0.dispatch(request)
        }
    }
}
