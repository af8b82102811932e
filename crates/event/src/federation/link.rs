//! One subscription of a gateway at its remote channel, and the servant that takes its events.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use deckwatch_orb::{
    ObjectId, Orb, Servant, ServerRequest, SystemException, SystemExceptionKind as Kind,
};
use deckwatch_sync::Bell;

use super::counters::Counters;
use crate::deckwatch_federation::{
    EventId, GatewayConsumer, GatewayConsumerRef, GatewayConsumerSkeleton,
};
use crate::raise::{raise, system};
use crate::rt::{Inlet, gateway_qos};
use crate::rtec_event_channel_admin::{
    ConsumerAdminRef, EventChannelRef, ProxyPushSupplierConnectPushConsumerError as ConnectError,
    ProxyPushSupplierRef,
};
use crate::rtec_event_comm::{Event, PushConsumer, PushConsumerRef};

/// Source and type of events, 0 for any.
pub(super) type Headers = BTreeSet<(i32, i32)>;

/// Why a gateway is not connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GatewayFailure {
    /// The reference is nil.
    Nil,
    /// The object is no real-time event channel.
    NoChannel,
    /// The reference leads to the gateway's own channel.
    OwnChannel,
    /// A call failed.
    System(SystemException),
}

impl fmt::Display for GatewayFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nil => f.write_str("the reference is nil: it leads to no object"),
            Self::NoChannel => f.write_str(
                "the object is no real-time event channel (RtecEventChannelAdmin::EventChannel)",
            ),
            Self::OwnChannel => f.write_str("the reference leads to this channel itself"),
            Self::System(raised) => write!(f, "{raised}"),
        }
    }
}

impl From<SystemException> for GatewayFailure {
    fn from(raised: SystemException) -> Self {
        Self::System(raised)
    }
}

/// A subscription at the remote channel.
pub(super) struct Link {
    orb: Orb,
    proxy: ProxyPushSupplierRef,
    servant: Arc<Receiver>,
    id: ObjectId,
    pub(super) headers: Headers,
}

impl Link {
    /// Subscribes to these headers at the channel of a reference.
    ///
    /// # Errors
    /// [`GatewayFailure`]
    pub(super) fn connect(
        orb: &Orb,
        remote: &str,
        headers: Headers,
        receiver: Receiver,
    ) -> Result<Self, GatewayFailure> {
        let identity = receiver.inlet.identity();
        let identity = identity.ok_or_else(|| raise(Kind::ObjectNotExist))?;
        let object = orb.string_to_object(remote)?.ok_or(GatewayFailure::Nil)?;
        let channel = EventChannelRef::narrow(&object)?.ok_or(GatewayFailure::NoChannel)?;
        let admin: ConsumerAdminRef = channel.for_consumers()?.ok_or(GatewayFailure::Nil)?;
        let proxy = admin.obtain_push_supplier()?.ok_or(GatewayFailure::Nil)?;
        let poa = orb.root_poa()?;
        let servant = Arc::new(receiver);
        let served = Arc::new(Undecoded(GatewayConsumerSkeleton::new(Arc::clone(
            &servant,
        ))));
        let id = poa.activate_object(served).map_err(system)?;
        // From here on its drop undoes what was done.
        let link = Self {
            orb: orb.clone(),
            proxy,
            servant,
            id,
            headers,
        };
        let consumer = poa.id_to_reference(&link.id).map_err(system)?;
        let consumer: PushConsumerRef = GatewayConsumerRef::unchecked_narrow(consumer).into();
        let qos = gateway_qos(link.headers.clone(), identity);
        match link.proxy.connect_push_consumer(Some(&consumer), &qos) {
            Ok(()) => Ok(link),
            Err(ConnectError::System(raised)) => Err(raised.into()),
            Err(ConnectError::TypeError(_)) => Err(GatewayFailure::OwnChannel),
            Err(_) => Err(raise(Kind::BadInvOrder).into()),
        }
    }

    /// Returns true if the remote channel has ended the subscription.
    pub(super) fn is_cut(&self) -> bool {
        self.servant.is_cut.load(Acquire)
    }

    /// Returns true if the remote channel still has the subscription.
    pub(super) fn is_alive(&self) -> bool {
        matches!(self.proxy.object().non_existent(), Ok(false))
    }

    /// Takes no more events. Returns what the remote channel may still have.
    pub(super) fn into_proxy(self) -> ProxyPushSupplierRef {
        self.proxy.clone()
    }

    /// Ends the subscription at the remote channel. A channel that does not answer finds out by itself.
    pub(super) fn disconnect(self) {
        let _ = self.proxy.disconnect_push_supplier();
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Ok(poa) = self.orb.root_poa() {
            let _ = poa.deactivate_object(&self.id); // The ORB may have been shut down.
        }
    }
}

/// Takes the events of one subscription.
pub(super) struct Receiver {
    pub(super) inlet: Inlet,
    pub(super) counters: Arc<Counters>,
    /// Rung when the remote channel ends the subscription.
    pub(super) bell: Arc<Bell>,
    pub(super) is_cut: AtomicBool,
}

impl PushConsumer for Receiver {
    /// From a channel that gives events no identity.
    fn push(&self, data: &[Event]) -> Result<(), SystemException> {
        for event in data {
            self.counters.count(self.inlet.push(event.clone(), 0)?);
        }
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.is_cut.store(true, Release);
        self.bell.ring();
        Ok(())
    }
}

impl GatewayConsumer for Receiver {
    fn forward(&self, _: &EventId, _: u64, _: &[Event]) -> Result<(), SystemException> {
        // [`Undecoded`] serves it.
        Err(raise(Kind::Internal))
    }
}

/// The servant of a [`Receiver`]: as its skeleton, but `forward` is served from the octets.
struct Undecoded(GatewayConsumerSkeleton<Arc<Receiver>>);

impl Servant for Undecoded {
    fn repository_ids(&self) -> &'static [&'static str] {
        self.0.repository_ids()
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        if request.operation() != b"forward" {
            return self.0.dispatch(request);
        }
        let receiver = self.0.servant();
        match receiver.inlet.forward(request.arguments()) {
            Ok(arrival) => receiver.counters.count(arrival),
            Err(refused) => {
                receiver.counters.refused.fetch_add(1, Relaxed);
                return Err(refused);
            }
        }
        request.reply().map(drop)
    }
}
