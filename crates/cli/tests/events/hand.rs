//! An event channel in the test's hand: it counts its proxies, and the test pushes to its consumers one by one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deckwatch_cdr::Any;
use deckwatch_event::cos_event_channel_admin::{
    ConsumerAdmin, ConsumerAdminRef, ConsumerAdminSkeleton, EventChannel, EventChannelSkeleton,
    ProxyPullConsumerRef, ProxyPullSupplierRef, ProxyPushConsumer,
    ProxyPushConsumerConnectPushSupplierError, ProxyPushConsumerRef, ProxyPushConsumerSkeleton,
    ProxyPushSupplier, ProxyPushSupplierConnectPushConsumerError, ProxyPushSupplierRef,
    ProxyPushSupplierSkeleton, SupplierAdmin, SupplierAdminRef, SupplierAdminSkeleton,
};
use deckwatch_event::cos_event_comm::{
    PushConsumer, PushConsumerPushError, PushConsumerRef, PushSupplier, PushSupplierRef,
};
use deckwatch_orb::{
    Completion, ObjectRef, Orb, Servant, SystemException, SystemExceptionKind as Kind,
};

/// The longest time for anything that a test waits for.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A channel that does nothing of its own accord.
pub(super) struct Hand {
    orb: Orb,
    shared: Arc<Shared>,
    pub(super) ior: String,
    connected: Receiver<PushConsumerRef>,
    /// The events that suppliers have pushed.
    pub(super) pushed: Receiver<Any>,
}

struct Shared {
    orb: Orb,
    /// Proxies obtained and not disconnected.
    proxies: AtomicUsize,
    connected: Mutex<Sender<PushConsumerRef>>,
    pushed: Mutex<Sender<Any>>,
}

impl Shared {
    fn activate(&self, servant: Arc<dyn Servant>) -> ObjectRef {
        let poa = self.orb.root_poa().expect("a root adapter");
        poa.servant_to_reference(&servant).expect("a reference")
    }
}

impl Hand {
    pub(super) fn new() -> Self {
        let builder = Orb::builder().listen("127.0.0.1:0").expect("an endpoint");
        let orb = builder.build().expect("an ORB");
        let poa = orb.root_poa().expect("a root adapter");
        poa.the_poa_manager().activate().expect("active");
        let (sends_connected, connected) = channel();
        let (sends_pushed, pushed) = channel();
        let shared = Arc::new(Shared {
            orb: orb.clone(),
            proxies: AtomicUsize::new(0),
            connected: Mutex::new(sends_connected),
            pushed: Mutex::new(sends_pushed),
        });
        let whole = EventChannelSkeleton::new(Whole(Arc::clone(&shared)));
        let ior = orb.object_to_string(&shared.activate(Arc::new(whole)));
        Self {
            orb,
            shared,
            ior,
            connected,
            pushed,
        }
    }

    /// The proxies that nobody has disconnected.
    pub(super) fn proxies(&self) -> usize {
        self.shared.proxies.load(Ordering::SeqCst)
    }

    /// Waits until a consumer connects.
    pub(super) fn consumer(&self) -> PushConsumerRef {
        self.connected.recv_timeout(PATIENCE).expect("a consumer")
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.orb.shutdown(true).expect("it ends");
    }
}

fn refused() -> SystemException {
    SystemException::new(Kind::NoImplement, 0, Completion::No)
}

struct Whole(Arc<Shared>);

impl EventChannel for Whole {
    fn for_consumers(&self) -> Result<Option<ConsumerAdminRef>, SystemException> {
        let servant = ConsumerAdminSkeleton::new(Admin(Arc::clone(&self.0)));
        let object = self.0.activate(Arc::new(servant));
        Ok(Some(ConsumerAdminRef::unchecked_narrow(object)))
    }

    fn for_suppliers(&self) -> Result<Option<SupplierAdminRef>, SystemException> {
        let servant = SupplierAdminSkeleton::new(Admin(Arc::clone(&self.0)));
        let object = self.0.activate(Arc::new(servant));
        Ok(Some(SupplierAdminRef::unchecked_narrow(object)))
    }

    fn destroy(&self) -> Result<(), SystemException> {
        Err(refused())
    }
}

struct Admin(Arc<Shared>);

impl ConsumerAdmin for Admin {
    fn obtain_push_supplier(&self) -> Result<Option<ProxyPushSupplierRef>, SystemException> {
        self.0.proxies.fetch_add(1, Ordering::SeqCst);
        let servant = ProxyPushSupplierSkeleton::new(Proxy(Arc::clone(&self.0)));
        let object = self.0.activate(Arc::new(servant));
        Ok(Some(ProxyPushSupplierRef::unchecked_narrow(object)))
    }

    fn obtain_pull_supplier(&self) -> Result<Option<ProxyPullSupplierRef>, SystemException> {
        Err(refused())
    }
}

impl SupplierAdmin for Admin {
    fn obtain_push_consumer(&self) -> Result<Option<ProxyPushConsumerRef>, SystemException> {
        self.0.proxies.fetch_add(1, Ordering::SeqCst);
        let servant = ProxyPushConsumerSkeleton::new(Proxy(Arc::clone(&self.0)));
        let object = self.0.activate(Arc::new(servant));
        Ok(Some(ProxyPushConsumerRef::unchecked_narrow(object)))
    }

    fn obtain_pull_consumer(&self) -> Result<Option<ProxyPullConsumerRef>, SystemException> {
        Err(refused())
    }
}

/// A proxy of either side.
struct Proxy(Arc<Shared>);

impl PushSupplier for Proxy {
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        self.0.proxies.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
}

impl ProxyPushSupplier for Proxy {
    fn connect_push_consumer<'a>(
        &'a self,
        push_consumer: Option<&'a PushConsumerRef>,
    ) -> Result<(), ProxyPushSupplierConnectPushConsumerError> {
        let consumer = push_consumer.expect("a consumer").clone();
        let connected = self.0.connected.lock().expect("one at a time");
        connected.send(consumer).expect("the test listens");
        Ok(())
    }
}

impl PushConsumer for Proxy {
    fn push<'a>(&'a self, data: &'a Any) -> Result<(), PushConsumerPushError> {
        let pushed = self.0.pushed.lock().expect("one at a time");
        pushed.send(data.clone()).expect("the test listens");
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.0.proxies.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
}

impl ProxyPushConsumer for Proxy {
    fn connect_push_supplier<'a>(
        &'a self,
        _: Option<&'a PushSupplierRef>,
    ) -> Result<(), ProxyPushConsumerConnectPushSupplierError> {
        Ok(())
    }
}
