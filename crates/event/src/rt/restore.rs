//! Connects the clients of a real-time channel again, from the records of its store.

use std::sync::Arc;

use deckwatch_cdr::Parse;
use deckwatch_orb::delivery::Marshalled;
use deckwatch_orb::{ObjectRef, Orb, Priority, SystemException};

use super::consumer::SupplierProxy;
use super::pushed::Pushed;
use super::shared::Shared;
use super::supplier::{ConsumerProxy, PushServant, Supplier};
use crate::channel_group::{KeptPush, KeptPushes, ProxyKind, ProxyRecord};
use crate::deckwatch_federation::GatewayConsumerRef;
use crate::group::Replication;
use crate::restore::reference;
use crate::rtec_event_channel_admin::{
    ConsumerQOS, ProxyPushConsumer as _, ProxyPushSupplier as _, SupplierQOS,
};
use crate::rtec_event_comm::{Event, PushConsumerRef, PushSupplierRef};
use crate::status::address;
use crate::store::{ChannelStoreError, encapsulate, encapsulated};

/// Connects the clients that were connected. A client that is gone is removed as at run time; one that cannot be
/// connected any more, for example because the options now refuse it, is forgotten.
pub(super) fn restore(
    orb: &Orb,
    shared: &Arc<Shared>,
    records: &[ProxyRecord],
    pushes: KeptPushes,
) -> Result<(), ChannelStoreError> {
    for record in records {
        if !restore_one(orb, shared, record)? {
            shared.objects.retire(record.number);
        }
    }
    for push in pushes {
        shared.push_again(push);
    }
    Ok(())
}

/// Returns false if the client was refused.
fn restore_one(
    orb: &Orb,
    shared: &Arc<Shared>,
    record: &ProxyRecord,
) -> Result<bool, ChannelStoreError> {
    let (number, owner) = (record.number, Arc::downgrade(shared));
    let client = reference(orb, record)?;
    match record.kind {
        ProxyKind::PushSupplier => {
            let qos: ConsumerQOS = qos(record)?;
            let proxy = Arc::new(SupplierProxy::new(owner, number));
            let own = shared.objects.activate(number, proxy.servant())?;
            // The channel's own consumer on a multicast group ended with its process. A push would not notice that.
            let is_gateway =
                |client: &ObjectRef| client.type_id() == GatewayConsumerRef::REPOSITORY_ID;
            if client
                .as_ref()
                .is_some_and(|it| is_gateway(it) && address(it) == address(&own))
            {
                return Ok(false);
            }
            let client = client.map(PushConsumerRef::unchecked_narrow);
            if record.is_suspended {
                proxy.suspend_connection()?;
            }
            let connected = proxy.connect_push_consumer(client.as_ref(), &qos);
            Ok(connected.is_ok())
        }
        ProxyKind::PushConsumer => {
            let qos: SupplierQOS = qos(record)?;
            let proxy = Arc::new(ConsumerProxy::new(owner, number));
            let servant = PushServant::new(Arc::clone(&proxy));
            shared.objects.activate(number, Arc::new(servant))?;
            let client = client.map(PushSupplierRef::unchecked_narrow);
            Ok(proxy.connect_push_supplier(client.as_ref(), &qos).is_ok())
        }
        ProxyKind::PullSupplier | ProxyKind::PullConsumer => Err(ChannelStoreError::Damaged(
            "a real-time channel has no proxies in the pull model",
        )),
    }
}

/// [`KeptPush::requested`] of a push without a priority.
const NO_PRIORITY: i16 = -1;

impl Shared {
    /// Offers the events of a push to the consumers, and returns once every backup has them.
    ///
    /// # Errors
    /// TRANSIENT if another member of the group is the primary.
    #[cold]
    pub(super) fn push_replicated(
        &self,
        replication: &Replication,
        (number, supplier): (u64, Option<&Arc<Supplier>>),
        requested: Option<Priority>,
        events: Vec<Event>,
    ) -> Result<(), SystemException> {
        let octets = encapsulate(&events)?;
        let kept = requested.map_or(NO_PRIORITY, Priority::value);
        let push = replication.begin(number, kept, octets)?;
        let bodies = self.offer(supplier, requested, events);
        replication.note_offered(push.number, bodies);
        replication.keep(&push)
    }

    /// Offers the events of a push that the former primary may not have delivered.
    fn push_again(&self, push: KeptPush) {
        let Some(replication) = self.objects.home.replication() else {
            return;
        };
        let events: Vec<Event> = encapsulated(&push.events).unwrap_or_default();
        let supplier = {
            let clients = self.clients.lock("rt.clients");
            clients.suppliers.get(&push.supplier).cloned()
        };
        replication.note_again(events.len() as u64);
        let requested = Priority::new(push.requested);
        let bodies = self.offer(supplier.as_ref(), requested, events);
        replication.adopt(push, bodies);
    }

    /// Returns the bodies that consumers have not yet taken.
    fn offer(
        &self,
        supplier: Option<&Arc<Supplier>>,
        requested: Option<Priority>,
        events: Vec<Event>,
    ) -> Vec<Marshalled> {
        let reach = supplier.and_then(|supplier| supplier.reach(self));
        self.count_received(events.len() as u64);
        let mut bodies = Vec::new();
        for event in events {
            let mut pushed = Pushed::of(event);
            let priority = supplier.and_then(|supplier| supplier.priority(pushed.key()));
            self.route(&mut pushed, reach.as_deref(), priority.or(requested));
            bodies.extend(pushed.into_bodies());
        }
        bodies
    }
}

fn qos<'a, T: Parse<'a>>(record: &'a ProxyRecord) -> Result<T, ChannelStoreError> {
    let damaged = ChannelStoreError::Damaged("the quality of service of a client cannot be read");
    encapsulated(&record.qos).ok_or(damaged)
}
