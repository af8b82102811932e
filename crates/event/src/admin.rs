//! The servants of a channel: the channel itself, its two administration objects, and the proxies that these create.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use deckwatch_cdr::Any;
use deckwatch_orb::delivery::Outlet;
use deckwatch_orb::{Servant, ServerRequest, SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::PiMutex;

use crate::channel_group::ProxyKind;
use crate::cos::{PullConsumerProxy, PullSupplierProxy};
use crate::cos_event_channel_admin::{
    AlreadyConnected, ConsumerAdmin, ConsumerAdminRef, EventChannel, ProxyPullConsumerRef,
    ProxyPullConsumerSkeleton, ProxyPullSupplierRef, ProxyPullSupplierSkeleton, ProxyPushConsumer,
    ProxyPushConsumerConnectPushSupplierError, ProxyPushConsumerRef, ProxyPushConsumerSkeleton,
    ProxyPushSupplier, ProxyPushSupplierConnectPushConsumerError, ProxyPushSupplierRef,
    ProxyPushSupplierSkeleton, SupplierAdmin, SupplierAdminRef, TypeError,
};
use crate::cos_event_comm::{
    Disconnected, PushConsumer, PushConsumerPushError, PushConsumerRef, PushSupplier,
    PushSupplierRef,
};
use crate::event::Event;
use crate::home::{Client, NoQos};
use crate::omni_events::EventChannel as OmniEventsChannel;
use crate::omni_events::ft::PullMonitorable;
use crate::raise::raise;
use crate::shared::Shared;
use crate::status::{consumer_report, with_consumer_status};
use crate::suppliers::Activity;

/// The channel's own servant.
pub(crate) struct Channel {
    pub(crate) shared: Arc<Shared>,
    pub(crate) consumers: ConsumerAdminRef,
    pub(crate) suppliers: SupplierAdminRef,
}

impl EventChannel for Channel {
    fn for_consumers(&self) -> Result<Option<ConsumerAdminRef>, SystemException> {
        self.shared.check_alive()?;
        Ok(Some(self.consumers.clone()))
    }

    fn for_suppliers(&self) -> Result<Option<SupplierAdminRef>, SystemException> {
        self.shared.check_alive()?;
        Ok(Some(self.suppliers.clone()))
    }

    fn destroy(&self) -> Result<(), SystemException> {
        self.shared.destroy()
    }
}

impl PullMonitorable for Channel {
    fn is_alive(&self) -> Result<bool, SystemException> {
        Ok(self.shared.check_alive().is_ok())
    }
}

impl OmniEventsChannel for Channel {}

/// `ConsumerAdmin`: creates the proxies that consumers connect to.
pub(crate) struct Consumers(pub(crate) Arc<Shared>);

impl ConsumerAdmin for Consumers {
    fn obtain_push_supplier(&self) -> Result<Option<ProxyPushSupplierRef>, SystemException> {
        let number = self.0.objects.home.next_number();
        let proxy = Arc::new(SupplierProxy::new(self.0.clone(), number));
        let reference = self.0.offer_proxy(number, proxy.servant())?;
        Ok(Some(ProxyPushSupplierRef::unchecked_narrow(reference)))
    }

    fn obtain_pull_supplier(&self) -> Result<Option<ProxyPullSupplierRef>, SystemException> {
        let number = self.0.objects.home.next_number();
        let proxy = PullSupplierProxy::new(self.0.clone(), number);
        let reference = self
            .0
            .offer_proxy(number, Arc::new(ProxyPullSupplierSkeleton::new(proxy)))?;
        Ok(Some(ProxyPullSupplierRef::unchecked_narrow(reference)))
    }
}

/// `SupplierAdmin`: creates the proxies that suppliers connect to.
pub(crate) struct Suppliers(pub(crate) Arc<Shared>);

impl SupplierAdmin for Suppliers {
    fn obtain_push_consumer(&self) -> Result<Option<ProxyPushConsumerRef>, SystemException> {
        let number = self.0.objects.home.next_number();
        let proxy = ConsumerProxy::new(self.0.clone(), number);
        let reference = self
            .0
            .offer_proxy(number, Arc::new(Undecoded::new(Arc::new(proxy))))?;
        Ok(Some(ProxyPushConsumerRef::unchecked_narrow(reference)))
    }

    fn obtain_pull_consumer(&self) -> Result<Option<ProxyPullConsumerRef>, SystemException> {
        let number = self.0.objects.home.next_number();
        let proxy = PullConsumerProxy::new(self.0.clone(), number);
        let reference = self
            .0
            .offer_proxy(number, Arc::new(ProxyPullConsumerSkeleton::new(proxy)))?;
        Ok(Some(ProxyPullConsumerRef::unchecked_narrow(reference)))
    }
}

/// The state of a proxy.
pub(crate) enum State<C> {
    /// No client has connected yet.
    Waiting,
    /// A client is connected.
    Connected(C),
    /// The proxy was disconnected.
    Disconnected,
}

/// `ProxyPushConsumer`: suppliers push to it.
pub(crate) struct ConsumerProxy {
    shared: Arc<Shared>,
    number: u64,
    state: PiMutex<State<Activity>>,
}

impl ConsumerProxy {
    pub(crate) fn new(shared: Arc<Shared>, number: u64) -> Self {
        Self {
            shared,
            number,
            state: PiMutex::new(State::Waiting),
        }
    }

    /// The supplier pushes.
    fn note_push(&self) -> Result<(), Disconnected> {
        match &*self.state.lock("event.proxy") {
            State::Connected(has_pushed) => has_pushed.store(true, Ordering::Relaxed),
            State::Waiting | State::Disconnected => return Err(Disconnected {}),
        }
        Ok(())
    }
}

/// The servant of a [`ConsumerProxy`]: hands on the octets of a push as they came, and leaves all else to the skeleton.
pub(crate) struct Undecoded {
    proxy: Arc<ConsumerProxy>,
    skeleton: ProxyPushConsumerSkeleton<Arc<ConsumerProxy>>,
}

impl Undecoded {
    pub(crate) fn new(proxy: Arc<ConsumerProxy>) -> Self {
        Self {
            skeleton: ProxyPushConsumerSkeleton::new(proxy.clone()),
            proxy,
        }
    }
}

impl Servant for Undecoded {
    fn repository_ids(&self) -> &'static [&'static str] {
        self.skeleton.repository_ids()
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        if request.operation() != b"push" {
            return self.skeleton.dispatch(request);
        }
        if let Err(disconnected) = self.proxy.note_push() {
            return request.raise(&disconnected);
        }
        let shared = &self.proxy.shared;
        let mut event = Event::pushed(&shared.deliveries, request.arguments())?;
        shared.push(&mut event)?;
        request.reply().map(drop)
    }
}

impl PushConsumer for ConsumerProxy {
    fn push<'a>(&'a self, data: &'a Any) -> Result<(), PushConsumerPushError> {
        self.note_push()?;
        let mut event = Event::decoded(&self.shared.deliveries, data.clone());
        Ok(self.shared.push(&mut event)?)
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.shared.objects.home.forget(self.number)?;
        *self.state.lock("event.proxy") = State::Disconnected;
        self.shared.disconnect_supplier(self.number);
        Ok(())
    }
}

impl ProxyPushConsumer for ConsumerProxy {
    fn connect_push_supplier<'a>(
        &'a self,
        push_supplier: Option<&'a PushSupplierRef>,
    ) -> Result<(), ProxyPushConsumerConnectPushSupplierError> {
        let check = |state: &State<_>| match state {
            State::Waiting => Ok(()),
            State::Connected(_) => Err(ProxyPushConsumerConnectPushSupplierError::from(
                AlreadyConnected {},
            )),
            State::Disconnected => Err(raise(Kind::ObjectNotExist).into()),
        };
        // The check comes first, so that no supplier is removed for one that cannot connect. The lock is released
        // meanwhile: pushes take it, and calls to suppliers take time.
        check(&self.state.lock("event.proxy"))?;
        self.shared.make_room_for_supplier();
        let mut state = self.state.lock("event.proxy");
        check(&state)?;
        let connected = self.shared.connect_supplier(self.number, push_supplier)?;
        *state = State::Connected(connected);
        Ok(())
    }
}

/// `ProxyPushSupplier`: pushes to one consumer.
pub(crate) struct SupplierProxy {
    shared: Arc<Shared>,
    number: u64,
    state: PiMutex<State<Arc<Outlet>>>,
}

impl SupplierProxy {
    pub(crate) fn new(shared: Arc<Shared>, number: u64) -> Self {
        Self {
            shared,
            number,
            state: PiMutex::new(State::Waiting),
        }
    }

    /// Its servant, which reports the consumer's own counters too.
    pub(crate) fn servant(self: &Arc<Self>) -> Arc<dyn Servant> {
        let skeleton = Arc::new(ProxyPushSupplierSkeleton::new(Arc::clone(self)));
        let proxy = Arc::clone(self);
        let report = move || match &*proxy.state.lock("event.proxy") {
            State::Connected(outlet) => Ok(consumer_report(outlet)),
            State::Waiting | State::Disconnected => Err(raise(Kind::ObjectNotExist)),
        };
        Arc::new(with_consumer_status(skeleton, report))
    }
}

impl PushSupplier for SupplierProxy {
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        self.shared.objects.home.forget(self.number)?;
        let before = std::mem::replace(&mut *self.state.lock("event.proxy"), State::Disconnected);
        match before {
            State::Connected(outlet) => self.shared.disconnect_consumer(self.number, &outlet),
            State::Waiting | State::Disconnected => self.shared.objects.retire(self.number),
        }
        Ok(())
    }
}

impl ProxyPushSupplier for SupplierProxy {
    fn connect_push_consumer<'a>(
        &'a self,
        push_consumer: Option<&'a PushConsumerRef>,
    ) -> Result<(), ProxyPushSupplierConnectPushConsumerError> {
        let consumer = push_consumer.ok_or_else(|| raise(Kind::BadParam))?;
        let mut state = self.state.lock("event.proxy");
        match *state {
            // A channel that consumes its own events would push them for ever (Event Service 1.2, clause 2.5.7).
            State::Waiting if self.shared.objects.is_own(consumer.object()) => {
                Err(TypeError {}.into())
            }
            State::Waiting => {
                let client = Client::<NoQos> {
                    number: self.number,
                    kind: ProxyKind::PushSupplier,
                    reference: Some(consumer.object()),
                    qos: None,
                    is_suspended: false,
                };
                let connected = self.shared.objects.home.record(&client, || {
                    self.shared.connect_consumer(self.number, consumer)
                })?;
                *state = State::Connected(connected);
                Ok(())
            }
            State::Connected(_) => Err(AlreadyConnected {}.into()),
            State::Disconnected => Err(raise(Kind::ObjectNotExist).into()),
        }
    }
}
