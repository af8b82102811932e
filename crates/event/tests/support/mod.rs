//! What the tests of the channel share: a channel of one program, another that has a reference to it, and the
//! consumers of that one.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses its own part"
)]

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use deckwatch_cdr::Any;
use deckwatch_event::cos_event_channel_admin::{
    EventChannelRef, ProxyPushConsumerConnectPushSupplierError, ProxyPushConsumerRef,
    ProxyPushSupplierRef,
};
use deckwatch_event::cos_event_comm::{
    PushConsumer, PushConsumerPushError, PushConsumerRef, PushConsumerSkeleton, PushSupplierRef,
};
use deckwatch_event::{ChannelOptions, EventChannel};
use deckwatch_orb::transport::{SocketTransport, Transport};
use deckwatch_orb::{ObjectRef, Orb, Servant, SystemException, SystemExceptionKind as Kind};

/// The longest that anything of a test may take on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A channel of one program, and what another has of it.
pub struct World {
    pub server: Orb,
    pub user: Orb,
    pub served: EventChannel,
    /// As the other program has it.
    pub channel: EventChannelRef,
}

impl World {
    pub fn new() -> Self {
        Self::with(ChannelOptions::default())
    }

    pub fn with(options: ChannelOptions) -> Self {
        Self::of(serving_orb(), options, || {})
    }

    /// One each of whose consumers' threads runs this before its first event.
    pub fn prepared(prepare: impl Fn() + Send + Sync + 'static) -> Self {
        Self::of(serving_orb(), ChannelOptions::default(), prepare)
    }

    /// One whose program has its sockets and its time from this.
    pub fn over(transport: Arc<dyn Transport>) -> Self {
        Self::of(
            serving_orb_over(transport),
            ChannelOptions::default(),
            || {},
        )
    }

    fn of(
        server: Orb,
        options: ChannelOptions,
        prepare: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let user = serving_orb();
        let served = EventChannel::start_prepared(&server, options, prepare).expect("a channel");
        let text = server.object_to_string(served.reference().object());
        let channel = EventChannelRef::unchecked_narrow(
            user.string_to_object(&text)
                .expect("an IOR")
                .expect("not nil"),
        );
        Self {
            server,
            user,
            served,
            channel,
        }
    }

    /// An object of the other program.
    pub fn activate(&self, servant: Arc<dyn Servant>) -> ObjectRef {
        let poa = self.user.root_poa().unwrap();
        let id = poa.activate_object(servant).unwrap();
        poa.id_to_reference(&id).unwrap()
    }

    /// A consumer of the other program, and what it gets: each event's number, and nothing for the end.
    pub fn consumer(&self) -> (ObjectRef, Receiver<Option<u32>>) {
        self.taker(None)
    }

    /// One that waits for leave before it takes an event.
    pub fn slow_consumer(&self, leave: Receiver<()>) -> (ObjectRef, Receiver<Option<u32>>) {
        self.taker(Some(Mutex::new(leave)))
    }

    fn taker(&self, leave: Option<Mutex<Receiver<()>>>) -> (ObjectRef, Receiver<Option<u32>>) {
        let (taken, events) = channel();
        let taker = PushConsumerSkeleton::new(Taker { taken, leave });
        (self.activate(Arc::new(taker)), events)
    }

    /// An object where nobody listens.
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

    pub fn connect(&self, consumer: ObjectRef) -> ProxyPushSupplierRef {
        let proxy = self.obtain_push_supplier();
        let consumer = PushConsumerRef::unchecked_narrow(consumer);
        proxy.connect_push_consumer(Some(&consumer)).unwrap();
        proxy
    }

    /// What a supplier without a reference pushes to.
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

    /// Both programs end.
    #[track_caller]
    pub fn end(&self) {
        self.server.shutdown(true).expect("it ends");
        self.user.shutdown(true).expect("it ends");
    }
}

/// Pushes; which system exception, where there was one.
#[track_caller]
pub fn pushed(proxy: &ProxyPushConsumerRef, value: u32) -> Result<(), Kind> {
    proxy.push(&number(value)).map_err(|raised| match raised {
        PushConsumerPushError::System(refused) => refused.kind,
        other => panic!("a system exception, not {other:?}"),
    })
}

/// Which system exception kept a supplier from being connected, where one did.
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

/// Waits for what another thread brings about.
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

/// A consumer that hands on what it gets.
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

fn serving_orb() -> Orb {
    serving_orb_over(Arc::new(SocketTransport::default()))
}

fn serving_orb_over(transport: Arc<dyn Transport>) -> Orb {
    let orb = Orb::builder()
        .transport(transport)
        .listen("127.0.0.1:0")
        .expect("an endpoint")
        .build()
        .expect("an ORB");
    orb.root_poa()
        .expect("a root adapter")
        .the_poa_manager()
        .activate()
        .expect("an active manager");
    orb
}
