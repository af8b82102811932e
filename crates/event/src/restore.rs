//! Connects the clients of a COS channel again, from the records of its store.

use std::sync::Arc;

use deckwatch_orb::{ObjectRef, Orb};

use crate::admin::{ConsumerProxy, SupplierProxy, Undecoded};
use crate::channel_group::{ProxyKind, ProxyRecord};
use crate::cos::{PullConsumerProxy, PullSupplierProxy};
use crate::cos_event_channel_admin::{
    ProxyPullConsumer as _, ProxyPullConsumerSkeleton, ProxyPullSupplier as _,
    ProxyPullSupplierSkeleton, ProxyPushConsumer as _, ProxyPushSupplier as _,
    ProxyPushSupplierSkeleton,
};
use crate::cos_event_comm::{PullConsumerRef, PullSupplierRef, PushConsumerRef, PushSupplierRef};
use crate::shared::Shared;
use crate::store::ChannelStoreError;

/// Connects the clients that were connected. A client that is gone is removed as at run time; one that cannot be
/// connected any more, for example because the options now refuse it, is forgotten.
pub(crate) fn restore(
    orb: &Orb,
    shared: &Arc<Shared>,
    records: &[ProxyRecord],
) -> Result<(), ChannelStoreError> {
    for record in records {
        let client = reference(orb, record)?;
        if !restore_one(shared, record, client)? {
            shared.objects.retire(record.number);
        }
    }
    shared.objects.home.end_restoring();
    Ok(())
}

/// The reference of a recorded client, if it gave one.
pub(crate) fn reference(
    orb: &Orb,
    record: &ProxyRecord,
) -> Result<Option<ObjectRef>, ChannelStoreError> {
    if record.client.is_empty() {
        return Ok(None);
    }
    let damaged = |_| ChannelStoreError::Damaged("a client's reference cannot be read");
    orb.string_to_object(&record.client).map_err(damaged)
}

/// Returns false if the client was refused.
fn restore_one(
    shared: &Arc<Shared>,
    record: &ProxyRecord,
    client: Option<ObjectRef>,
) -> Result<bool, ChannelStoreError> {
    let (number, owner) = (record.number, Arc::clone(shared));
    Ok(match record.kind {
        ProxyKind::PushSupplier => {
            let proxy = Arc::new(SupplierProxy::new(owner, number));
            let servant = ProxyPushSupplierSkeleton::new(Arc::clone(&proxy));
            shared.objects.activate(number, Arc::new(servant))?;
            let client = client.map(PushConsumerRef::unchecked_narrow);
            proxy.connect_push_consumer(client.as_ref()).is_ok()
        }
        ProxyKind::PushConsumer => {
            let proxy = Arc::new(ConsumerProxy::new(owner, number));
            let servant = Undecoded::new(Arc::clone(&proxy));
            shared.objects.activate(number, Arc::new(servant))?;
            let client = client.map(PushSupplierRef::unchecked_narrow);
            proxy.connect_push_supplier(client.as_ref()).is_ok()
        }
        ProxyKind::PullSupplier => {
            let proxy = Arc::new(PullSupplierProxy::new(owner, number));
            let servant = ProxyPullSupplierSkeleton::new(Arc::clone(&proxy));
            shared.objects.activate(number, Arc::new(servant))?;
            let client = client.map(PullConsumerRef::unchecked_narrow);
            proxy.connect_pull_consumer(client.as_ref()).is_ok()
        }
        ProxyKind::PullConsumer => {
            let proxy = Arc::new(PullConsumerProxy::new(owner, number));
            let servant = ProxyPullConsumerSkeleton::new(Arc::clone(&proxy));
            shared.objects.activate(number, Arc::new(servant))?;
            let client = client.map(PullSupplierRef::unchecked_narrow);
            proxy.connect_pull_supplier(client.as_ref()).is_ok()
        }
    })
}
