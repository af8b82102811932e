//! Connecting to an event channel and leaving it, over IIOP on loopback.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use crate::support::{PATIENCE, World, connected, number, wait_for, whole};
use deckwatch_event::cos_event_channel_admin::{
    ProxyPushConsumerConnectPushSupplierError, ProxyPushSupplierConnectPushConsumerError,
};
use deckwatch_event::cos_event_comm::{
    PushConsumerPushError, PushConsumerRef, PushSupplier, PushSupplierSkeleton,
};
use deckwatch_event::limits;
use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};

#[test]
fn protocol_of_connecting_is_kept() {
    let world = World::new();
    let (taker, _events) = world.consumer();
    let consumer = PushConsumerRef::unchecked_narrow(taker);
    let proxy = world.obtain_push_supplier();
    let Err(ProxyPushSupplierConnectPushConsumerError::System(nil)) =
        proxy.connect_push_consumer(None)
    else {
        panic!("connected nobody");
    };
    assert_eq!(nil.kind, Kind::BadParam);
    proxy.connect_push_consumer(Some(&consumer)).unwrap();
    assert!(matches!(
        proxy.connect_push_consumer(Some(&consumer)),
        Err(ProxyPushSupplierConnectPushConsumerError::AlreadyConnected(
            _
        ))
    ));
    assert!(matches!(
        world.obtain_push_consumer().push(&number(1)),
        Err(PushConsumerPushError::Disconnected(_))
    ));
    world.end();
}

#[test]
fn a_proxy_takes_one_supplier_and_nil_is_one() {
    let world = World::new();
    let proxy = world.obtain_push_consumer();
    proxy.connect_push_supplier(None).unwrap();
    proxy.push(&number(1)).unwrap();
    assert!(matches!(
        proxy.connect_push_supplier(None),
        Err(ProxyPushConsumerConnectPushSupplierError::AlreadyConnected(
            _
        ))
    ));
    proxy.push(&number(2)).unwrap();
    assert_eq!(world.served.counts().received, 2);
    world.end();
}

#[test]
fn channels_can_be_chained() {
    let (first, second) = (World::new(), World::new());
    // The proxy of the second channel is a consumer of the first.
    let text = second.user.object_to_string(second.supplier().object());
    let link = first.user.string_to_object(&text).unwrap();
    first.connect(link.expect("not nil"));
    let (reference, events) = second.consumer();
    second.connect(reference);
    let supplier = first.supplier();
    for value in 0..3 {
        supplier.push(&number(value)).unwrap();
    }
    for value in 0..3 {
        assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(value)));
    }
    first.end();
    second.end();
}

#[test]
fn a_channel_is_no_consumer_of_itself() {
    let world = World::new();
    let supplier = world.supplier();
    let proxy = world.obtain_push_supplier();
    let itself = PushConsumerRef::unchecked_narrow(supplier.object().clone());
    assert!(matches!(
        proxy.connect_push_consumer(Some(&itself)),
        Err(ProxyPushSupplierConnectPushConsumerError::TypeError(_))
    ));
    let (taker, events) = world.consumer();
    let other = PushConsumerRef::unchecked_narrow(taker);
    proxy.connect_push_consumer(Some(&other)).unwrap();
    supplier.push(&number(1)).unwrap();
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(1)));
    world.end();
    assert_eq!(
        (world.served.counts().received, events.try_iter().count()),
        (1, 0)
    );
}

#[test]
fn proxies_that_nobody_connects_to_give_way_to_newer_ones() {
    let world = World::with(whole());
    let kept = world.supplier();
    let first = world.obtain_push_consumer();
    let consumers = world.channel.for_consumers().unwrap().expect("one");
    for _ in 0..limits::PROXIES_WAITING_MAX {
        consumers.obtain_push_supplier().unwrap().expect("a proxy");
    }
    assert_eq!(
        connected(first.connect_push_supplier(None)),
        Err(Kind::ObjectNotExist),
        "connected to a proxy that gave way"
    );
    kept.push(&number(1)).unwrap();
    assert_eq!(world.served.counts().received, 1, "who is connected stays");
    world.end();
}

#[test]
fn what_is_disconnected_is_no_object_any_more() {
    let world = World::new();
    let supplier = world.supplier();
    let (reference, _events) = world.consumer();
    let consumer = world.connect(reference);
    let lost = world.connect(world.nobody());
    wait_for(|| {
        supplier.push(&number(1)).unwrap();
        world.served.counts().consumers_lost != 0
    });
    wait_for(|| lost.object().is_a("IDL:nobody/Asks:1.0").is_err());
    supplier.disconnect_push_consumer().unwrap();
    consumer.disconnect_push_supplier().unwrap();
    for object in [supplier.object(), consumer.object(), lost.object()] {
        let gone = object.is_a("IDL:nobody/Asks:1.0").unwrap_err();
        assert_eq!(gone.kind, Kind::ObjectNotExist);
    }
    world.channel.destroy().unwrap();
    let gone = world.channel.for_consumers().unwrap_err();
    assert_eq!(gone.kind, Kind::ObjectNotExist);
    world.end();
}

/// Tells the test of its end.
struct Giver(Mutex<Sender<()>>);

impl PushSupplier for Giver {
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        let _ = self.0.lock().expect("whole").send(()); // The test may have ended.
        Ok(())
    }
}

#[test]
fn client_that_disconnects_is_called_back() {
    let world = World::new();
    let (consumer, events) = world.consumer();
    let proxy = world.connect(consumer);
    let (told, ended) = channel();
    let giver = PushSupplierSkeleton::new(Giver(Mutex::new(told)));
    let supplier = world.connect_supplier(Some(&world.activate(Arc::new(giver))));
    let supplier = supplier.unwrap();
    supplier.push(&number(1)).unwrap();
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(1)));
    supplier.disconnect_push_consumer().unwrap();
    assert_eq!(ended.recv_timeout(PATIENCE), Ok(()));
    proxy.disconnect_push_supplier().unwrap();
    assert_eq!(events.recv_timeout(PATIENCE), Ok(None));
    world.end();
    assert!(events.try_recv().is_err() && ended.try_recv().is_err());
}
