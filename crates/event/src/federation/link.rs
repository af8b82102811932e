//! One subscription at a channel, and the servant that takes its events.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};

use deckwatch_cdr::Reader;
use deckwatch_orb::{
    IdAssignment, IdUniqueness, ObjectRef, Orb, Poa, Policies, RequestProcessing, Servant,
    ServantRetention, ServerRequest, SystemException, SystemExceptionKind as Kind,
};

use crate::deckwatch_federation::{
    EventId, GatewayConsumer, GatewayConsumerRef, GatewayConsumerSkeleton,
};
use crate::raise::{raise, system};
use crate::rt::gateway_qos;
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

/// What takes the events of a subscription.
pub(super) trait Takes: Send + Sync + 'static {
    /// Takes the arguments of `DeckwatchFederation::GatewayConsumer::forward`.
    ///
    /// # Errors
    /// The system exception of the request.
    fn forward(&self, arguments: Reader<'_>) -> Result<(), SystemException>;

    /// Takes events of a channel that gives events no identity.
    ///
    /// # Errors
    /// The system exception of the request.
    fn push(&self, data: &[Event]) -> Result<(), SystemException>;

    /// The channel has ended the subscription.
    fn end(&self) {}
}

/// A subscription at a channel.
pub(super) struct Link {
    /// The adapter of its consumer.
    poa: Poa,
    proxy: ProxyPushSupplierRef,
    is_cut: Arc<AtomicBool>,
    pub(super) headers: Headers,
}

impl Link {
    /// Subscribes to these headers. `identity` is that of the channel or the group that the events go to.
    ///
    /// # Errors
    /// [`GatewayFailure`]
    pub(super) fn subscribe(
        orb: &Orb,
        channel: &EventChannelRef,
        headers: Headers,
        identity: u64,
        taker: impl Takes,
    ) -> Result<Self, GatewayFailure> {
        let admin: ConsumerAdminRef = channel.for_consumers()?.ok_or(GatewayFailure::Nil)?;
        let proxy = admin.obtain_push_supplier()?.ok_or(GatewayFailure::Nil)?;
        let is_cut = Arc::<AtomicBool>::default();
        let consumer = Consumer {
            taker,
            is_cut: Arc::clone(&is_cut),
        };
        let (poa, consumer) = serve(orb, GatewayConsumerSkeleton::new(consumer))?;
        // From here on its drop undoes what was done.
        let link = Self {
            poa,
            proxy,
            is_cut,
            headers,
        };
        let consumer: PushConsumerRef = GatewayConsumerRef::unchecked_narrow(consumer).into();
        let qos = gateway_qos(link.headers.clone(), identity);
        match link.proxy.connect_push_consumer(Some(&consumer), &qos) {
            Ok(()) => Ok(link),
            Err(ConnectError::System(raised)) => Err(raised.into()),
            Err(ConnectError::TypeError(_)) => Err(GatewayFailure::OwnChannel),
            Err(_) => Err(raise(Kind::BadInvOrder).into()),
        }
    }

    /// Returns true if the channel has ended the subscription.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut.load(Acquire)
    }

    /// Returns true if the channel still has the subscription.
    pub(super) fn is_alive(&self) -> bool {
        matches!(self.proxy.object().non_existent(), Ok(false))
    }

    /// Takes no more events. Returns what the channel may still have.
    pub(super) fn into_proxy(self) -> ProxyPushSupplierRef {
        self.proxy.clone()
    }

    /// Ends the subscription. A channel that does not answer finds out by itself.
    pub(super) fn disconnect(self) {
        let _ = self.proxy.disconnect_push_supplier();
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = self.poa.destroy(false, false); // The ORB may have been shut down.
    }
}

/// Serves a consumer under an id that the channel alone gets, which has it. No table asks who pushes to it: so nobody
/// may guess its key, as that of an active object, whose slot leads to it without its id.
fn serve<T: Takes>(
    orb: &Orb,
    skeleton: GatewayConsumerSkeleton<Consumer<T>>,
) -> Result<(Poa, ObjectRef), SystemException> {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    let policies = Policies {
        id_assignment: IdAssignment::UserId,
        id_uniqueness: IdUniqueness::MultipleId,
        servant_retention: ServantRetention::NonRetain,
        request_processing: RequestProcessing::UseDefaultServant,
        ..Policies::default()
    };
    let root = orb.root_poa()?;
    let name = format!("gateway {}", NUMBERS.fetch_add(1, Relaxed));
    let poa = root.create_poa(&name, Some(root.the_poa_manager()), &policies);
    let poa = poa.map_err(system)?;
    let random = RandomState::new();
    let secret = [0, 1].map(|half: u8| random.hash_one(half).to_be_bytes());
    let secret = secret.concat();
    let made = poa
        .create_reference_with_id(&secret, GatewayConsumerRef::REPOSITORY_ID)
        .and_then(|reference| {
            poa.set_servant(Arc::new(Undecoded { skeleton, secret }))?;
            Ok(reference)
        });
    match made {
        Ok(reference) => Ok((poa, reference)),
        Err(error) => {
            let _ = poa.destroy(false, false); // Nothing was served.
            Err(system(error))
        }
    }
}

/// The consumer of a subscription.
struct Consumer<T> {
    taker: T,
    is_cut: Arc<AtomicBool>,
}

impl<T: Takes> PushConsumer for Consumer<T> {
    fn push(&self, data: &[Event]) -> Result<(), SystemException> {
        self.taker.push(data)
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.is_cut.store(true, Release);
        self.taker.end();
        Ok(())
    }
}

impl<T: Takes> GatewayConsumer for Consumer<T> {
    fn forward(&self, _: &EventId, _: u64, _: &[Event]) -> Result<(), SystemException> {
        // [`Undecoded`] serves it.
        Err(raise(Kind::Internal))
    }
}

/// The servant of a [`Consumer`]: as its skeleton, but `forward` is served from the octets.
struct Undecoded<T: Takes> {
    skeleton: GatewayConsumerSkeleton<Consumer<T>>,
    /// The id of the object.
    secret: Vec<u8>,
}

impl<T: Takes> Servant for Undecoded<T> {
    fn repository_ids(&self) -> &'static [&'static str] {
        self.skeleton.repository_ids()
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        if request.object_id() != self.secret {
            return Err(raise(Kind::ObjectNotExist));
        }
        if request.operation() != b"forward" {
            return self.skeleton.dispatch(request);
        }
        self.skeleton.servant().taker.forward(request.arguments())?;
        request.reply().map(drop)
    }
}
