//! Connecting to a channel in the pull model and leaving it (Event Service 1.2, clauses 2.3.3, 2.5.5 and 2.5.6).

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::support::{PATIENCE, World, number, wait_for};
use deckwatch_event::cos_event_channel_admin::{
    ProxyPullConsumerConnectPullSupplierError, ProxyPullSupplierConnectPullConsumerError,
};
use deckwatch_event::cos_event_comm::{
    PullConsumer, PullConsumerRef, PullConsumerSkeleton, PullSupplierPullError, PullSupplierRef,
    PullSupplierTryPullError,
};
use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};

/// A consumer that notifies the test when it is disconnected.
struct Ending(Sender<()>);

impl PullConsumer for Ending {
    fn disconnect_pull_consumer(&self) -> Result<(), SystemException> {
        self.0.send(()).expect("the test listens");
        Ok(())
    }
}

fn ending(world: &World) -> (PullConsumerRef, Receiver<()>) {
    let (ends, ended) = channel();
    let object = world.activate(Arc::new(PullConsumerSkeleton::new(Ending(ends))));
    (PullConsumerRef::unchecked_narrow(object), ended)
}

#[test]
fn a_consumer_connects_once_and_may_give_no_reference() {
    let world = World::new();
    let proxy = world.obtain_pull_supplier();
    assert!(matches!(
        proxy.pull(),
        Err(PullSupplierPullError::Disconnected(_))
    ));
    assert!(matches!(
        proxy.try_pull(),
        Err(PullSupplierTryPullError::Disconnected(_))
    ));
    proxy.connect_pull_consumer(None).unwrap();
    let (consumer, _ended) = ending(&world);
    for again in [None, Some(&consumer)] {
        assert!(matches!(
            proxy.connect_pull_consumer(again),
            Err(ProxyPullSupplierConnectPullConsumerError::AlreadyConnected(
                _
            ))
        ));
    }
    world.end();
}

#[test]
fn a_pulled_supplier_connects_once_and_must_give_a_reference() {
    let world = World::new();
    let proxy = world.obtain_pull_consumer();
    let Err(ProxyPullConsumerConnectPullSupplierError::System(nil)) =
        proxy.connect_pull_supplier(None)
    else {
        panic!("connected nobody");
    };
    assert_eq!(nil.kind, Kind::BadParam);
    let (supplier, _stock) = world.pulled_supplier();
    proxy.connect_pull_supplier(Some(&supplier)).unwrap();
    assert!(matches!(
        proxy.connect_pull_supplier(Some(&supplier)),
        Err(ProxyPullConsumerConnectPullSupplierError::AlreadyConnected(
            _
        ))
    ));
    world.end();
}

#[test]
fn a_channel_does_not_pull_from_itself() {
    let world = World::new();
    let own = PullSupplierRef::unchecked_narrow(world.puller().object().clone());
    let proxy = world.obtain_pull_consumer();
    assert!(matches!(
        proxy.connect_pull_supplier(Some(&own)),
        Err(ProxyPullConsumerConnectPullSupplierError::TypeError(_))
    ));
    world.end();
}

#[test]
fn channels_can_be_chained_by_pulling() {
    let (first, second) = (World::new(), World::new());
    let text = first.user.object_to_string(first.puller().object());
    let link = second.user.string_to_object(&text).unwrap();
    let link = PullSupplierRef::unchecked_narrow(link.expect("not nil"));
    let proxy = second.obtain_pull_consumer();
    proxy.connect_pull_supplier(Some(&link)).unwrap();
    let last = second.puller();
    let supplier = first.supplier();
    for value in 0..3 {
        supplier.push(&number(value)).unwrap();
    }
    for value in 0..3 {
        assert_eq!(last.pull().unwrap().extract::<u32>(), Ok(value));
    }
    first.end();
    second.end();
}

#[test]
fn who_is_disconnected_is_notified_and_its_proxy_is_no_object_any_more() {
    let world = World::new();
    let (consumer, ended) = ending(&world);
    let pulling = world.obtain_pull_supplier();
    pulling.connect_pull_consumer(Some(&consumer)).unwrap();
    let (supplier, stock) = world.pulled_supplier();
    let pulled = world.obtain_pull_consumer();
    pulled.connect_pull_supplier(Some(&supplier)).unwrap();
    pulling.disconnect_pull_supplier().unwrap();
    pulled.disconnect_pull_consumer().unwrap();
    assert_eq!(ended.recv_timeout(PATIENCE), Ok(()));
    wait_for(|| stock.is_disconnected.load(SeqCst));
    for object in [pulling.object(), pulled.object()] {
        let gone = object.is_a("IDL:nobody/Asks:1.0").unwrap_err();
        assert_eq!(gone.kind, Kind::ObjectNotExist);
    }
    assert_eq!(world.served.counts().suppliers_lost, 0);
    world.end();
}

#[test]
fn the_end_of_the_channel_is_told_to_both_sides() {
    let world = World::new();
    let (consumer, ended) = ending(&world);
    let pulling = world.obtain_pull_supplier();
    pulling.connect_pull_consumer(Some(&consumer)).unwrap();
    let (supplier, stock) = world.pulled_supplier();
    let pulled = world.obtain_pull_consumer();
    pulled.connect_pull_supplier(Some(&supplier)).unwrap();
    world.channel.destroy().unwrap();
    assert_eq!(ended.recv_timeout(PATIENCE), Ok(()));
    wait_for(|| stock.is_disconnected.load(SeqCst));
    wait_for(|| world.served.has_ended());
    world.end();
}
