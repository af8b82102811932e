//! Connects the clients of a real-time channel again, from the records of its store.

use std::sync::Arc;

use deckwatch_cdr::Parse;
use deckwatch_orb::{ObjectRef, Orb};

use super::consumer::SupplierProxy;
use super::shared::Shared;
use super::supplier::{ConsumerProxy, PushServant};
use crate::channel_group::{ProxyKind, ProxyRecord};
use crate::deckwatch_federation::GatewayConsumerRef;
use crate::restore::reference;
use crate::rtec_event_channel_admin::{
    ConsumerQOS, ProxyPushConsumer as _, ProxyPushSupplier as _, ProxyPushSupplierSkeleton,
    SupplierQOS,
};
use crate::rtec_event_comm::{PushConsumerRef, PushSupplierRef};
use crate::status::address;
use crate::store::{ChannelStoreError, encapsulated};

/// Connects the clients that were connected. A client that is gone is removed as at run time; one that cannot be
/// connected any more, for example because the options now refuse it, is forgotten.
pub(super) fn restore(
    orb: &Orb,
    shared: &Arc<Shared>,
    records: &[ProxyRecord],
) -> Result<(), ChannelStoreError> {
    for record in records {
        if !restore_one(orb, shared, record)? {
            shared.objects.retire(record.number);
        }
    }
    shared.objects.home.end_restoring();
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
            let servant = ProxyPushSupplierSkeleton::new(Arc::clone(&proxy));
            let own = shared.objects.activate(number, Arc::new(servant))?;
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
            let connected = proxy.connect_push_consumer(client.as_ref(), &qos);
            if record.is_suspended && connected.is_ok() {
                proxy.suspend_connection()?;
            }
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

fn qos<'a, T: Parse<'a>>(record: &'a ProxyRecord) -> Result<T, ChannelStoreError> {
    let damaged = ChannelStoreError::Damaged("the quality of service of a client cannot be read");
    encapsulated(&record.qos).ok_or(damaged)
}
