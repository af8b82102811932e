//! Connects the clients of a COS channel again, from the records of its store.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use deckwatch_giop::Ior;
use deckwatch_orb::peers::Peer;
use deckwatch_orb::{Caller, Identity, LocalProcess, ObjectRef, Orb, Origin};

use crate::admin::{ConsumerProxy, SupplierProxy, Undecoded};
use crate::channel_group::{ClientIdentity, ProxyKind, ProxyRecord};
use crate::clients;
use crate::cos::{PullConsumerProxy, PullSupplierProxy};
use crate::cos_event_channel_admin::{
    ProxyPullConsumer as _, ProxyPullConsumerSkeleton, ProxyPullSupplier as _,
    ProxyPullSupplierSkeleton, ProxyPushConsumer as _, ProxyPushSupplier as _,
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
    let (origin, ior) = given(&record.client);
    orb.string_to_object_of(ior, origin).map_err(damaged)
}

/// The words before the reference of a client that is no peer of the network.
const OWN: &str = "own ";
const HOST: &str = "host ";

/// A client's reference for its record, with where it may lead.
pub(crate) fn client_text(reference: &ObjectRef) -> String {
    let word = match reference.origin() {
        Origin::Own => OWN,
        Origin::Host => HOST,
        Origin::Network(_) => "",
    };
    format!("{word}{reference}")
}

/// The origin and the reference of a record.
fn given(client: &str) -> (Origin, &str) {
    let after = |word| client.strip_prefix(word);
    if let Some(ior) = after(OWN) {
        (Origin::Own, ior)
    } else if let Some(ior) = after(HOST) {
        (Origin::Host, ior)
    } else {
        (Origin::Network(Peer::Unknown), client)
    }
}

/// Who the client of a record without an identity is: the process that its reference leads to. One without a reference
/// is sent nothing, and its requests are checked as they come.
pub(crate) fn identity_of(client: &str) -> ClientIdentity {
    let (origin, ior) = given(client);
    if ior.is_empty() {
        return clients::to_record(None);
    }
    let ior: Option<Ior> = ior.parse().ok();
    let profile = ior.as_ref();
    let profile = profile.and_then(|ior| ior.iiop_profiles().flatten().next());
    let address: Option<IpAddr> = profile.and_then(|profile| profile.host.parse().ok());
    let caller = |address| Caller::Tcp(SocketAddr::new(address, 0));
    let caller = match (origin, address) {
        (Origin::Own, None) => Caller::Unix(LocalProcess {
            uid: deckwatch_os::process::effective_user(),
            pid: 0,
        }),
        (Origin::Host, _) => caller(Ipv4Addr::LOCALHOST.into()),
        // A peer of the network is not this host, whatever its reference says.
        (Origin::Network(_), Some(address)) if address.is_loopback() => Caller::Unknown,
        (_, address) => address.map_or(Caller::Unknown, caller),
    };
    clients::to_record(Some(&Identity {
        caller,
        ..Identity::UNKNOWN
    }))
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
            shared.objects.activate(number, proxy.servant())?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_of_a_client_keeps_where_its_reference_may_lead() {
        let orb = Orb::builder().build().expect("an ORB");
        for origin in [Origin::Own, Origin::Host, Origin::Network(Peer::Unknown)] {
            let object = orb.string_to_object_of("corbaloc::127.0.0.1:9/x", origin);
            let object = object.expect("sound").expect("not nil");
            let text = client_text(&object);
            assert_eq!(given(&text), (origin, object.to_string().as_str()));
        }
    }
}
