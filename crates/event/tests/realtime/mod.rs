//! The real-time event channel from the view of suppliers, consumers and observers, over IIOP on loopback.

mod access;
mod bounds;
mod connections;
mod events;
mod forms;
mod gated;
mod hops;
mod observers;
mod permission;
mod scheduled;
mod serving;
mod shares;
mod stress;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deckwatch_cdr::Any;
use deckwatch_event::RtecEventData;
use deckwatch_event::deckwatch::{ChannelReport, ChannelStatusRef};
use deckwatch_event::dispatch::{Dispatching, QueueOptions};
use deckwatch_event::filter::designator::DISJUNCTION;
use deckwatch_event::rt::{RtChannelOptions, RtEventChannel};
use deckwatch_event::rtec_event_channel_admin::{
    ConsumerQOS, Dependency, EventChannelRef, ProxyPushConsumerRef, ProxyPushSupplierRef,
    Publication, SupplierQOS,
};
use deckwatch_event::rtec_event_comm::{
    Event, EventHeader, PushConsumer, PushConsumerRef, PushConsumerSkeleton, PushSupplier,
    PushSupplierRef, PushSupplierSkeleton,
};
use deckwatch_orb::{ObjectRef, Orb, Servant, SystemException};
use deckwatch_os::schedule::{self, Class};

use crate::support::{PATIENCE, seen_by, serving_orb};

/// What a client is told. `None`: it is disconnected.
pub(crate) type Told<T> = Receiver<Option<T>>;

/// A channel in one ORB, and a second ORB that uses it.
pub(crate) struct World {
    pub(crate) server: Orb,
    pub(crate) user: Orb,
    pub(crate) served: RtEventChannel,
    /// The reference of the second ORB.
    pub(crate) channel: EventChannelRef,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(RtChannelOptions::default())
    }

    fn with(options: RtChannelOptions) -> Self {
        Self::of(serving_orb(), options)
    }

    pub(crate) fn of(server: Orb, options: RtChannelOptions) -> Self {
        let served = RtEventChannel::start(&server, options).expect("a channel");
        Self::serving(server, served)
    }

    /// A world with this channel.
    pub(crate) fn serving(server: Orb, served: RtEventChannel) -> Self {
        let user = serving_orb();
        let channel = seen_by(&user, &server, served.reference().object());
        Self {
            channel: EventChannelRef::unchecked_narrow(channel),
            server,
            user,
            served,
        }
    }

    pub(crate) fn activate(&self, servant: Arc<dyn Servant>) -> ObjectRef {
        let poa = self.user.root_poa().unwrap();
        let id = poa.activate_object(servant).unwrap();
        poa.id_to_reference(&id).unwrap()
    }

    /// A consumer in the second ORB, and the event sets that it receives.
    pub(crate) fn consumer(&self) -> (PushConsumerRef, Told<Vec<Event>>) {
        let (told, sets) = channel();
        let taker = PushConsumerSkeleton::new(Taker(Mutex::new(told)));
        let object = self.activate(Arc::new(taker));
        (PushConsumerRef::unchecked_narrow(object), sets)
    }

    /// As [`World::consumer`], in another ORB; the reference is the second ORB's.
    fn consumer_in(&self, orb: &Orb) -> (PushConsumerRef, Told<Vec<Event>>) {
        let (told, sets) = channel();
        let taker: Arc<dyn Servant> = Arc::new(PushConsumerSkeleton::new(Taker(Mutex::new(told))));
        let poa = orb.root_poa().unwrap();
        let object = seen_by(&self.user, orb, &poa.servant_to_reference(&taker).unwrap());
        (PushConsumerRef::unchecked_narrow(object), sets)
    }

    pub(crate) fn proxy_supplier(&self) -> ProxyPushSupplierRef {
        let admin = self.channel.for_consumers().unwrap().expect("an admin");
        admin.obtain_push_supplier().unwrap().expect("a proxy")
    }

    fn proxy_consumer(&self) -> ProxyPushConsumerRef {
        let admin = self.channel.for_suppliers().unwrap().expect("an admin");
        admin.obtain_push_consumer().unwrap().expect("a proxy")
    }

    /// A connected consumer of this list.
    pub(crate) fn connect(&self, qos: &ConsumerQOS) -> (ProxyPushSupplierRef, Told<Vec<Event>>) {
        let (consumer, sets) = self.consumer();
        let proxy = self.proxy_supplier();
        proxy
            .connect_push_consumer(Some(&consumer), qos)
            .expect("it connects");
        (proxy, sets)
    }

    /// A connected supplier of these events, without a reference.
    pub(crate) fn supply(&self, published: &[(i32, i32)]) -> ProxyPushConsumerRef {
        let proxy = self.proxy_consumer();
        proxy
            .connect_push_supplier(None, &publishing(published))
            .expect("it connects");
        proxy
    }

    #[track_caller]
    pub(crate) fn end(self) {
        drop(self.served);
        self.server.shutdown(true).expect("it ends");
        self.user.shutdown(true).expect("it ends");
    }
}

/// What the channel reports of itself.
#[track_caller]
fn report(world: &World) -> ChannelReport {
    let status = ChannelStatusRef::unchecked_narrow(world.channel.object().clone());
    status.report().expect("it answers")
}

/// So many threads that send what suppliers push.
fn pool(threads: usize) -> Dispatching {
    Dispatching::Pool {
        threads,
        queue: QueueOptions::default(),
    }
}

/// A consumer that sends each event set to the test.
struct Taker(Mutex<Sender<Option<Vec<Event>>>>);

impl Taker {
    fn tell(&self, what: Option<Vec<Event>>) -> Result<(), SystemException> {
        // The test may have all that it waits for.
        let _ = self.0.lock().expect("whole").send(what);
        Ok(())
    }
}

impl PushConsumer for Taker {
    fn push(&self, data: &[Event]) -> Result<(), SystemException> {
        self.tell(Some(data.to_vec()))
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.tell(None)
    }
}

/// A supplier that tells the test of its end.
struct Giver(Mutex<Sender<Option<()>>>);

impl PushSupplier for Giver {
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        let _ = self.0.lock().expect("whole").send(None);
        Ok(())
    }
}

fn giver(world: &World) -> (PushSupplierRef, Told<()>) {
    let (told, end) = channel();
    let giver = PushSupplierSkeleton::new(Giver(Mutex::new(told)));
    let object = world.activate(Arc::new(giver));
    (PushSupplierRef::unchecked_narrow(object), end)
}

fn header(source: i32, event_type: i32) -> EventHeader {
    EventHeader {
        r#type: event_type,
        source,
        ttl: 1,
        ..EventHeader::default()
    }
}

pub(crate) fn event(source: i32, event_type: i32, payload: &str) -> Event {
    Event {
        header: header(source, event_type),
        data: RtecEventData {
            pad1: 0,
            payload: payload.as_bytes().to_vec(),
            any_value: Any::from_value(&7_u32).expect("a number fits"),
        },
    }
}

/// A list of entries: (source, type).
pub(crate) fn list(entries: &[(i32, i32)]) -> ConsumerQOS {
    let dependencies = entries.iter().map(|(source, event_type)| Dependency {
        event: Event {
            header: header(*source, *event_type),
            ..Event::default()
        },
        rt_info: 0,
    });
    ConsumerQOS {
        dependencies: dependencies.collect(),
        is_gateway: false,
    }
}

/// All events of these sources and types.
pub(crate) fn any_of(events: &[(i32, i32)]) -> ConsumerQOS {
    let group = [(events.len() as i32, DISJUNCTION)];
    list(&[&group[..], events].concat())
}

pub(crate) fn publishing(events: &[(i32, i32)]) -> SupplierQOS {
    let publications = events.iter().map(|(source, event_type)| Publication {
        event: Event {
            header: header(*source, *event_type),
            ..Event::default()
        },
        ..Publication::default()
    });
    SupplierQOS {
        publications: publications.collect(),
        is_gateway: false,
    }
}

/// The payloads of the next event set.
#[track_caller]
pub(crate) fn next(sets: &Told<Vec<Event>>) -> Vec<String> {
    let set = sets.recv_timeout(PATIENCE).expect("an event set");
    let payload = |event: Event| String::from_utf8(event.data.payload).expect("text");
    set.expect("no disconnect")
        .into_iter()
        .map(payload)
        .collect()
}

/// Runs a test in a thread of this class. Counts a skip without permission.
fn real_time_as(class: Class, test: impl FnOnce() + Send + 'static) {
    schedule::limit_real_time(Duration::from_secs(2)).expect("no lower limit");
    let thread = std::thread::spawn(move || match schedule::set_class(class) {
        Ok(()) => test(),
        Err(refused) => deckwatch_testkit::skip("real-time-class", &refused.to_string()),
    });
    thread.join().expect("no panic");
}

/// The classes of this process's threads with this name.
fn classes_of(name: &str) -> Vec<Class> {
    let threads = deckwatch_testkit::threads(|it| it == name).into_iter();
    threads
        .filter_map(|thread| schedule::class_of(thread).ok())
        .collect()
}
