//! Shared by the tests of the channel: a channel in one ORB, a second ORB with a reference to it, and the consumers of
//! the second ORB.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses its own part"
)]

use std::collections::VecDeque;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use deckwatch_cdr::Any;
use deckwatch_event::cos_event_channel_admin::{
    EventChannelRef, ProxyPullConsumerRef, ProxyPullSupplierRef,
    ProxyPushConsumerConnectPushSupplierError, ProxyPushConsumerRef, ProxyPushSupplierRef,
};
use deckwatch_event::cos_event_comm::{
    PullSupplier, PullSupplierPullError, PullSupplierRef, PullSupplierSkeleton,
    PullSupplierTryPullError, PushConsumer, PushConsumerPushError, PushConsumerRef,
    PushConsumerSkeleton, PushSupplierRef,
};
use deckwatch_event::{ChannelOptions, EventChannel};
use deckwatch_orb::transport::Transport;
use deckwatch_orb::{
    Completion, ObjectRef, Orb, OrbBuilder, Scheduling, Servant, SystemException,
    SystemExceptionKind as Kind,
};

/// Time limit of every step of a test, on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A channel in one ORB, and a second ORB that uses it.
pub struct World {
    pub server: Orb,
    pub user: Orb,
    pub served: EventChannel,
    /// The reference of the second ORB.
    pub channel: EventChannelRef,
}

impl World {
    pub fn new() -> Self {
        Self::with(ChannelOptions::default())
    }

    pub fn with(options: ChannelOptions) -> Self {
        Self::of(serving_orb(), options)
    }

    /// A world whose server gets its sockets and its clock from `transport`.
    pub fn over(transport: Arc<dyn Transport>) -> Self {
        Self::over_with(transport, ChannelOptions::default())
    }

    /// The same with these options.
    pub fn over_with(transport: Arc<dyn Transport>, options: ChannelOptions) -> Self {
        Self::of(serving_orb_over(transport), options)
    }

    pub fn of(server: Orb, options: ChannelOptions) -> Self {
        let served = EventChannel::start(&server, options).expect("a channel");
        Self::serving(server, served)
    }

    /// A world with this channel.
    pub fn serving(server: Orb, served: EventChannel) -> Self {
        let user = serving_orb();
        let channel = seen_by(&user, &server, served.reference().object());
        Self {
            server,
            user,
            served,
            channel: EventChannelRef::unchecked_narrow(channel),
        }
    }

    /// Activates an object in the second ORB.
    pub fn activate(&self, servant: Arc<dyn Servant>) -> ObjectRef {
        let poa = self.user.root_poa().unwrap();
        let id = poa.activate_object(servant).unwrap();
        poa.id_to_reference(&id).unwrap()
    }

    /// A consumer in the second ORB, and what it receives: each event's number, and `None` when it is disconnected.
    pub fn consumer(&self) -> (ObjectRef, Receiver<Option<u32>>) {
        self.taker(None)
    }

    /// A consumer that waits for a message on `leave` before it accepts an event.
    pub fn slow_consumer(&self, leave: Receiver<()>) -> (ObjectRef, Receiver<Option<u32>>) {
        self.taker(Some(Mutex::new(leave)))
    }

    /// As [`World::consumer`], in another ORB; the reference is the second ORB's.
    pub fn consumer_in(&self, orb: &Orb) -> (ObjectRef, Receiver<Option<u32>>) {
        let (taken, events) = channel();
        let leave = None;
        let taker: Arc<dyn Servant> = Arc::new(PushConsumerSkeleton::new(Taker { taken, leave }));
        let object = orb
            .root_poa()
            .unwrap()
            .servant_to_reference(&taker)
            .unwrap();
        (seen_by(&self.user, orb, &object), events)
    }

    fn taker(&self, leave: Option<Mutex<Receiver<()>>>) -> (ObjectRef, Receiver<Option<u32>>) {
        let (taken, events) = channel();
        let taker = PushConsumerSkeleton::new(Taker { taken, leave });
        (self.activate(Arc::new(taker)), events)
    }

    /// A reference to an address where no process listens.
    pub fn nobody(&self) -> ObjectRef {
        self.user
            .string_to_object("corbaloc::127.0.0.1:1/nobody")
            .unwrap()
            .expect("not nil")
    }

    pub fn obtain_push_supplier(&self) -> ProxyPushSupplierRef {
        let admin = self.channel.for_consumers().unwrap();
        let proxy = admin.expect("an administration").obtain_push_supplier();
        proxy.unwrap().expect("a proxy")
    }

    pub fn obtain_push_consumer(&self) -> ProxyPushConsumerRef {
        let admin = self.channel.for_suppliers().unwrap();
        let proxy = admin.expect("an administration").obtain_push_consumer();
        proxy.unwrap().expect("a proxy")
    }

    pub fn obtain_pull_supplier(&self) -> ProxyPullSupplierRef {
        let admin = self.channel.for_consumers().unwrap();
        let proxy = admin.expect("an administration").obtain_pull_supplier();
        proxy.unwrap().expect("a proxy")
    }

    pub fn obtain_pull_consumer(&self) -> ProxyPullConsumerRef {
        let admin = self.channel.for_suppliers().unwrap();
        let proxy = admin.expect("an administration").obtain_pull_consumer();
        proxy.unwrap().expect("a proxy")
    }

    /// The proxy of a consumer that pulls and gave no reference.
    pub fn puller(&self) -> ProxyPullSupplierRef {
        let proxy = self.obtain_pull_supplier();
        proxy.connect_pull_consumer(None).expect("connected");
        proxy
    }

    /// A supplier in the second ORB that the channel pulls from, and its end of the test.
    pub fn pulled_supplier(&self) -> (PullSupplierRef, Arc<Stock>) {
        let stock = Arc::new(Stock::default());
        let servant = PullSupplierSkeleton::new(stock.clone());
        let object = self.activate(Arc::new(servant));
        (PullSupplierRef::unchecked_narrow(object), stock)
    }

    pub fn connect(&self, consumer: ObjectRef) -> ProxyPushSupplierRef {
        let proxy = self.obtain_push_supplier();
        let consumer = PushConsumerRef::unchecked_narrow(consumer);
        proxy.connect_push_consumer(Some(&consumer)).unwrap();
        proxy
    }

    /// The proxy of a supplier that gave no reference.
    pub fn supplier(&self) -> ProxyPushConsumerRef {
        self.connect_supplier(None).unwrap()
    }

    pub fn connect_supplier(
        &self,
        supplier: Option<&ObjectRef>,
    ) -> Result<ProxyPushConsumerRef, ProxyPushConsumerConnectPushSupplierError> {
        let proxy = self.obtain_push_consumer();
        let supplier = supplier.map(|object| PushSupplierRef::unchecked_narrow(object.clone()));
        proxy.connect_push_supplier(supplier.as_ref())?;
        Ok(proxy)
    }

    /// Shuts both ORBs down.
    #[track_caller]
    pub fn end(&self) {
        self.server.shutdown(true).expect("it ends");
        self.user.shutdown(true).expect("it ends");
    }
}

/// A reference of one ORB, from the view of another.
pub fn seen_by(other: &Orb, server: &Orb, object: &ObjectRef) -> ObjectRef {
    let text = server.object_to_string(object);
    let object = other.string_to_object(&text).expect("an IOR");
    object.expect("not nil")
}

/// Pushes a number. Returns the kind of the system exception, if one was raised.
#[track_caller]
pub fn pushed(proxy: &ProxyPushConsumerRef, value: u32) -> Result<(), Kind> {
    proxy.push(&number(value)).map_err(|raised| match raised {
        PushConsumerPushError::System(refused) => refused.kind,
        other => panic!("a system exception, not {other:?}"),
    })
}

/// Returns the kind of the system exception that the connect raised, if any.
#[track_caller]
pub fn connected<T>(
    outcome: Result<T, ProxyPushConsumerConnectPushSupplierError>,
) -> Result<(), Kind> {
    match outcome {
        Ok(_) => Ok(()),
        Err(ProxyPushConsumerConnectPushSupplierError::System(refused)) => Err(refused.kind),
        Err(other) => panic!("a system exception, not {other:?}"),
    }
}

/// Returns what `try_pull` returned: a number, or `None` without an event.
#[track_caller]
pub fn try_pulled(proxy: &ProxyPullSupplierRef) -> Option<u32> {
    let (event, has_event) = proxy.try_pull().expect("an answer");
    has_event.then(|| event.extract::<u32>().expect("an unsigned long"))
}

/// The events that a supplier has for the channel.
#[derive(Default)]
pub struct Stock {
    pub events: Mutex<VecDeque<u32>>,
    /// Each is raised once, before an event is returned.
    pub failures: Mutex<VecDeque<PullSupplierTryPullError>>,
    pub calls: AtomicUsize,
    pub is_disconnected: AtomicBool,
}

impl PullSupplier for Stock {
    fn pull(&self) -> Result<Any, PullSupplierPullError> {
        Err(SystemException::new(Kind::NoImplement, 0, Completion::No).into())
    }

    fn try_pull(&self) -> Result<(Any, bool), PullSupplierTryPullError> {
        self.calls.fetch_add(1, SeqCst);
        if let Some(failure) = self.failures.lock().expect("whole").pop_front() {
            return Err(failure);
        }
        let event = self.events.lock().expect("whole").pop_front();
        Ok((number(event.unwrap_or_default()), event.is_some()))
    }

    fn disconnect_pull_supplier(&self) -> Result<(), SystemException> {
        self.is_disconnected.store(true, SeqCst);
        Ok(())
    }
}

/// Waits until another thread has made the condition true.
#[track_caller]
pub fn wait_for(what: impl Fn() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < PATIENCE, "it does not come");
        std::thread::yield_now();
    }
}

pub fn number(value: u32) -> Any {
    Any::from_value(&value).expect("a number fits")
}

/// A consumer that sends each event to the test.
struct Taker {
    taken: Sender<Option<u32>>,
    leave: Option<Mutex<Receiver<()>>>,
}

impl PushConsumer for Taker {
    fn push<'a>(&'a self, data: &'a Any) -> Result<(), PushConsumerPushError> {
        if let Some(leave) = &self.leave {
            leave
                .lock()
                .expect("one event at a time")
                .recv_timeout(PATIENCE)
                .expect("leave is given");
        }
        self.taken
            .send(Some(data.extract::<u32>().expect("an unsigned long")))
            .expect("the test listens");
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.taken.send(None).expect("the test listens");
        Ok(())
    }
}

/// Options by which one peer may hold all places.
pub fn whole() -> ChannelOptions {
    ChannelOptions {
        share_percent: 100,
        ..ChannelOptions::default()
    }
}

pub fn serving_orb() -> Orb {
    serving_orb_at("127.0.0.1:0")
}

pub fn serving_orb_at(endpoint: &str) -> Orb {
    serving(Orb::builder().listen(endpoint).expect("an endpoint"))
}

pub fn serving_orb_over(transport: Arc<dyn Transport>) -> Orb {
    let builder = Orb::builder().transport(transport);
    serving(builder.listen("127.0.0.1:0").expect("an endpoint"))
}

/// An ORB with one thread and no more, in the time-sharing class: what it does can be counted.
pub fn counted_orb() -> Orb {
    let builder = Orb::builder().listen("127.0.0.1:0").expect("an endpoint");
    let builder = builder.threads(1).dynamic_threads(0);
    serving(builder.scheduling(Scheduling::Other))
}

pub fn serving(builder: OrbBuilder) -> Orb {
    let orb = builder.build().expect("an ORB");
    orb.root_poa()
        .expect("a root adapter")
        .the_poa_manager()
        .activate()
        .expect("an active manager");
    orb
}
