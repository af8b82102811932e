//! A gateway to a channel that gives events no identity, as those of other ORBs: it pushes by the interface that it
//! knows.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use super::*;
use crate::realtime::next;
use crate::support::{PATIENCE, serving_orb};
use deckwatch_event::rtec_event_channel_admin::{
    ConsumerAdmin, ConsumerAdminRef, ConsumerAdminSkeleton, ConsumerQOS, EventChannel,
    EventChannelAppendObserverError, EventChannelRemoveObserverError, EventChannelSkeleton,
    ObserverRef, ProxyPushSupplier, ProxyPushSupplierConnectPushConsumerError,
    ProxyPushSupplierRef, ProxyPushSupplierSkeleton, SupplierAdminRef,
};
use deckwatch_event::rtec_event_comm::{PushConsumerRef, PushSupplier};
use deckwatch_orb::{
    Completion, ObjectRef, Orb, Servant, SystemException, SystemExceptionKind as Kind,
};

/// A channel that keeps what its one consumer connects with.
struct Foreign {
    orb: Orb,
    connected: Mutex<Sender<(PushConsumerRef, ConsumerQOS)>>,
}

type Connected = Receiver<(PushConsumerRef, ConsumerQOS)>;

/// A foreign channel's ORB, its reference, and what connects to it.
fn foreign() -> (Orb, String, Connected) {
    let (connected, connections) = channel();
    let orb = serving_orb();
    let foreign = Arc::new(Foreign {
        orb: orb.clone(),
        connected: Mutex::new(connected),
    });
    let object = foreign.activate(Arc::new(EventChannelSkeleton::new(foreign.clone())));
    let text = orb.object_to_string(&object);
    (orb, text, connections)
}

fn none<T>() -> Result<T, SystemException> {
    Err(SystemException::new(Kind::NoImplement, 0, Completion::No))
}

impl Foreign {
    fn activate(&self, servant: Arc<dyn Servant>) -> ObjectRef {
        let poa = self.orb.root_poa().expect("a root adapter");
        poa.servant_to_reference(&servant).expect("a reference")
    }
}

/// What the objects of one channel share.
struct Part(Arc<Foreign>);

impl EventChannel for Foreign {
    fn for_consumers(&self) -> Result<Option<ConsumerAdminRef>, SystemException> {
        let shared = Arc::new(Self {
            orb: self.orb.clone(),
            connected: Mutex::new(self.connected.lock().expect("whole").clone()),
        });
        let admin = self.activate(Arc::new(ConsumerAdminSkeleton::new(Part(shared))));
        Ok(Some(ConsumerAdminRef::unchecked_narrow(admin)))
    }

    fn for_suppliers(&self) -> Result<Option<SupplierAdminRef>, SystemException> {
        none()
    }

    fn destroy(&self) -> Result<(), SystemException> {
        none()
    }

    fn append_observer(
        &self,
        _: Option<&ObserverRef>,
    ) -> Result<u32, EventChannelAppendObserverError> {
        Ok(none()?)
    }

    fn remove_observer(&self, _: u32) -> Result<(), EventChannelRemoveObserverError> {
        Ok(none()?)
    }
}

impl ConsumerAdmin for Part {
    fn obtain_push_supplier(&self) -> Result<Option<ProxyPushSupplierRef>, SystemException> {
        let proxy = Part(Arc::clone(&self.0));
        let proxy = self
            .0
            .activate(Arc::new(ProxyPushSupplierSkeleton::new(proxy)));
        Ok(Some(ProxyPushSupplierRef::unchecked_narrow(proxy)))
    }
}

impl PushSupplier for Part {
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl ProxyPushSupplier for Part {
    fn connect_push_consumer(
        &self,
        consumer: Option<&PushConsumerRef>,
        qos: &ConsumerQOS,
    ) -> Result<(), ProxyPushSupplierConnectPushConsumerError> {
        let consumer = consumer.expect("a consumer").clone();
        let connected = self.0.connected.lock().expect("whole");
        let _ = connected.send((consumer, qos.clone())); // The test may have all that it waits for.
        Ok(())
    }

    fn suspend_connection(&self) -> Result<(), SystemException> {
        none()
    }

    fn resume_connection(&self) -> Result<(), SystemException> {
        none()
    }
}

#[test]
fn events_of_a_foreign_channel_are_taken_with_one_off_their_ttl() {
    let (orb, remote, connections) = foreign();
    let mut near = Site::new();
    let (_consumer, sets) = near.world.connect(&any_of(&wanted()));
    near.federate_with(options(&remote));
    let (consumer, qos) = connections.recv_timeout(PATIENCE).expect("it connects");
    assert!(qos.is_gateway);
    let plain = consumer.object().is_a(PushConsumerRef::REPOSITORY_ID);
    assert_eq!(plain, Ok(true), "what every channel knows");
    assert_eq!(consumer.object().is_a("IDL:Other:1.0"), Ok(false));
    near.await_connected();
    let of_ttl = |ttl, payload: &str| {
        let mut event = event(1, 20, payload);
        event.header.ttl = ttl;
        event
    };
    consumer
        .push(&[of_ttl(0, "expired"), of_ttl(5, "first"), of_ttl(1, "last")])
        .unwrap();
    let first = sets.recv_timeout(PATIENCE).unwrap().expect("a set");
    assert_eq!(first, [of_ttl(4, "first")]);
    let last = sets.recv_timeout(PATIENCE).unwrap().expect("a set");
    assert_eq!(last, [of_ttl(0, "last")]);
    wait_for(|| near.counts(0).received == 2);
    assert_eq!(near.counts(0).expired, 1);
    near.end();
    orb.shutdown(true).expect("it ends");
}

#[test]
fn end_that_a_foreign_channel_tells_makes_a_gateway_connect_anew_without_its_period() {
    let (orb, remote, connections) = foreign();
    let mut near = Site::new();
    let (_consumer, sets) = near.world.connect(&any_of(&wanted()));
    near.federate_with(GatewayOptions {
        period: Duration::from_secs(3_600),
        ..options(&remote)
    });
    let (consumer, _) = connections.recv_timeout(PATIENCE).expect("it connects");
    near.await_connected();
    // Its proxy stays, and says that it exists.
    consumer.disconnect_push_consumer().unwrap();
    let (again, _) = connections
        .recv_timeout(PATIENCE)
        .expect("it connects anew");
    wait_for(|| near.counts(0).connects == 2);
    assert_eq!(near.counts(0).cuts, 1);
    again.push(&[event(1, 20, "once")]).unwrap();
    assert_eq!(next(&sets), ["once"]);
    near.end();
    orb.shutdown(true).expect("it ends");
}
