//! The event channel from the view of suppliers and consumers, over IIOP on loopback: what is pushed, and which
//! consumer receives it.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use crate::support::{PATIENCE, World, number, pushed};
use deckwatch_cdr::Any;
use deckwatch_event::cos_event_channel_admin::ProxyPushSupplierRef;
use deckwatch_event::cos_event_comm::{PushConsumer, PushConsumerPushError, PushConsumerSkeleton};
use deckwatch_event::{ChannelOptions, limits};
use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};

/// A consumer that disconnects during its first push.
struct Leaver {
    proxy: Mutex<Option<ProxyPushSupplierRef>>,
    taken: Sender<Option<u32>>,
}

impl PushConsumer for Leaver {
    fn push<'a>(&'a self, data: &'a Any) -> Result<(), PushConsumerPushError> {
        if let Some(proxy) = self.proxy.lock().expect("whole").take() {
            proxy.disconnect_push_supplier().expect("an answer");
        }
        let value = data.extract::<u32>().expect("an unsigned long");
        self.taken.send(Some(value)).expect("the test listens");
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn every_consumer_gets_every_event_in_order() {
    let world = World::new();
    let takers: Vec<_> = (0..3).map(|_| world.consumer()).collect();
    let proxies: Vec<_> = takers
        .iter()
        .map(|(reference, _)| world.connect(reference.clone()))
        .collect();
    let supplier = world.supplier();
    for value in 0..100 {
        supplier.push(&number(value)).unwrap();
    }
    for (_, events) in &takers {
        let got: Vec<u32> = (0..100)
            .map(|_| events.recv_timeout(PATIENCE).unwrap().expect("an event"))
            .collect();
        assert_eq!(got, (0..100).collect::<Vec<u32>>());
    }
    let counts = world.served.counts();
    assert_eq!((counts.received, counts.displaced), (100, 0));
    proxies[0].disconnect_push_supplier().unwrap();
    supplier.push(&number(100)).unwrap();
    assert_eq!(takers[1].1.recv_timeout(PATIENCE), Ok(Some(100)));
    assert_eq!(takers[2].1.recv_timeout(PATIENCE), Ok(Some(100)));
    assert_eq!(takers[0].1.recv_timeout(PATIENCE), Ok(None));
    assert!(
        takers[0].1.try_recv().is_err(),
        "who has disconnected gets nothing but the call back"
    );
    world.channel.destroy().unwrap();
    assert_eq!(
        takers[1].1.recv_timeout(PATIENCE),
        Ok(None),
        "the end is told"
    );
    assert_eq!(
        pushed(&supplier, 101),
        Err(Kind::ObjectNotExist),
        "pushed to the dead"
    );
    world.end();
}

#[test]
fn slow_consumer_loses_its_oldest_events_and_holds_up_nobody() {
    let world = World::with(ChannelOptions {
        queue_len: 4,
        ..ChannelOptions::default()
    });
    let (leave, gate) = channel();
    let (slow, slow_events) = world.slow_consumer(gate);
    let (fast, fast_events) = world.consumer();
    world.connect(slow);
    world.connect(fast);
    let supplier = world.supplier();
    for value in 0..20 {
        supplier.push(&number(value)).unwrap();
        assert_eq!(
            fast_events.recv_timeout(PATIENCE),
            Ok(Some(value)),
            "the other consumer is served at once"
        );
    }
    for _ in 0..20 {
        leave.send(()).unwrap();
    }
    let next = || slow_events.recv_timeout(PATIENCE).unwrap();
    let mut got = Vec::new();
    while got.last() != Some(&19) {
        got.push(next().expect("an event"));
    }
    assert_eq!(
        got[got.len() - 4..],
        [16, 17, 18, 19],
        "the newest are kept"
    );
    assert!(got.is_sorted());
    assert_eq!(
        world.served.counts().displaced,
        20 - got.len() as u64,
        "every loss is counted"
    );
    world.end();
}

#[test]
fn dead_consumer_is_let_go_and_the_others_go_on() {
    let world = World::new();
    let (live, events) = world.consumer();
    let dead = world.nobody();
    world.connect(live);
    world.connect(dead);
    let supplier = world.supplier();
    let mut value = 0;
    while world.served.counts().consumers_lost == 0 {
        supplier.push(&number(value)).unwrap();
        assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(value)));
        value += 1;
    }
    assert!(world.served.counts().failed >= u64::from(limits::FAILURES_MAX));
    world.end();
}

#[test]
fn consumer_may_disconnect_from_within_its_push_and_gets_nothing_more() {
    let world = World::new();
    let (taken, events) = channel();
    let leaver = Arc::new(Leaver {
        proxy: Mutex::default(),
        taken,
    });
    let consumer = world.activate(Arc::new(PushConsumerSkeleton::new(leaver.clone())));
    let mut proxy = leaver.proxy.lock().unwrap();
    *proxy = Some(world.connect(consumer));
    let supplier = world.supplier();
    for value in 0..10 {
        supplier.push(&number(value)).unwrap();
    }
    drop(proxy);
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(0)));
    supplier.push(&number(10)).unwrap();
    world.end();
    assert_eq!(events.try_iter().count(), 0);
    assert_eq!(world.served.counts().received, 11);
}
