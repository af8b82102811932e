//! Connecting, suspending, reconnecting and the ends of clients.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::gated::Gated;
use super::{World, any_of, event, giver, list, next, pool, publishing, report};
use crate::around::Around;
use crate::simulated::world::World as Simulated;
use crate::support::{PATIENCE, serving_orb, serving_orb_over, wait_for};
use deckwatch_event::client::Connected;
use deckwatch_event::filter::designator::{CONJUNCTION, INTERVAL_TIMEOUT, NEGATION};
use deckwatch_event::limits;
use deckwatch_event::rt::{Loss, RtChannelOptions, RtEventChannel};
use deckwatch_event::rtec_event_channel_admin::{
    EventChannelRef, ProxyPushConsumerConnectPushSupplierError as SupplierError,
    ProxyPushConsumerRef, ProxyPushSupplierConnectPushConsumerError as ConsumerError,
    SupplierAdminRef,
};
use deckwatch_event::rtec_event_comm::{
    PushConsumerRef, PushSupplier, PushSupplierRef, PushSupplierSkeleton,
};
use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};

#[track_caller]
fn kind<T: std::fmt::Debug>(outcome: Result<T, ConsumerError>) -> Kind {
    match outcome {
        Err(ConsumerError::System(raised)) => raised.kind,
        other => panic!("a system exception, not {other:?}"),
    }
}

#[test]
fn suspended_consumer_gets_nothing_and_its_losses_are_counted() {
    let world = World::new();
    let (proxy, sets) = world.connect(&any_of(&[(0, 20)]));
    let supplier = world.supply(&[]);
    proxy.suspend_connection().unwrap();
    supplier.push(&[event(1, 20, "lost")]).unwrap();
    wait_for(|| world.served.counts().lost(Loss::Suspended) == 1);
    proxy.resume_connection().unwrap();
    supplier.push(&[event(1, 20, "kept")]).unwrap();
    assert_eq!(next(&sets), ["kept"]);
    assert_eq!(world.served.consumers()[0].lost, world.served.counts().lost);
    world.end();
}

#[test]
fn second_connect_is_refused_as_taos_default_is() {
    let world = World::new();
    let (proxy, _sets) = world.connect(&any_of(&[(0, 20)]));
    let (other, _) = world.consumer();
    let outcome = proxy.connect_push_consumer(Some(&other), &any_of(&[]));
    assert!(matches!(outcome, Err(ConsumerError::AlreadyConnected(_))));
    let supplier = world.supply(&[]);
    let outcome = supplier.connect_push_supplier(None, &publishing(&[]));
    assert!(matches!(outcome, Err(SupplierError::AlreadyConnected(_))));
    world.end();
}

#[test]
fn reconnecting_changes_filter_and_consumer_where_it_is_allowed() {
    let world = World::with(RtChannelOptions {
        reconnect: true,
        ..RtChannelOptions::default()
    });
    let (consumer, sets) = world.consumer();
    let proxy = world.proxy_supplier();
    let connect = |consumer: &PushConsumerRef, events| {
        proxy
            .connect_push_consumer(Some(consumer), &any_of(events))
            .expect("it connects");
    };
    connect(&consumer, &[(0, 20)]);
    connect(&consumer, &[(0, 21)]);
    let supplier = world.supply(&[(0, 20)]);
    supplier.push(&[event(1, 21, "not published")]).unwrap();
    // Another thread may serve the next request earlier.
    wait_for(|| world.served.counts().unwanted == 1);
    supplier
        .connect_push_supplier(None, &publishing(&[(0, 21)]))
        .unwrap();
    supplier.push(&[event(1, 20, "not wanted")]).unwrap();
    supplier.push(&[event(1, 21, "new filter")]).unwrap();
    assert_eq!(next(&sets), ["new filter"]);
    assert_eq!(world.served.counts().unwanted, 2);
    let (other, other_sets) = world.consumer();
    connect(&other, &[(0, 21)]);
    supplier.push(&[event(1, 21, "new consumer")]).unwrap();
    assert_eq!(next(&other_sets), ["new consumer"]);
    assert!(sets.try_recv().is_err());
    assert_eq!(world.served.consumers().len(), 1);
    world.end();
}

#[test]
fn malformed_filter_nil_too_many_publications_and_the_channels_own_proxy_are_refused() {
    let world = World::new();
    let (consumer, _) = world.consumer();
    let proxy = world.proxy_supplier();
    for entries in [&[(0, NEGATION)][..], &[(9, CONJUNCTION), (0, 20)]] {
        let outcome = proxy.connect_push_consumer(Some(&consumer), &list(entries));
        assert_eq!(kind(outcome), Kind::BadParam);
    }
    let outcome = proxy.connect_push_consumer(None, &any_of(&[]));
    assert_eq!(kind(outcome), Kind::BadParam);
    let own = PushConsumerRef::from(world.supply(&[]));
    let outcome = proxy.connect_push_consumer(Some(&own), &any_of(&[]));
    assert!(matches!(outcome, Err(ConsumerError::TypeError(_))));
    proxy
        .connect_push_consumer(Some(&consumer), &any_of(&[]))
        .expect("nothing before has connected it");
    let published: Vec<_> = (0..=limits::PUBLICATIONS_MAX as i32)
        .map(|event_type| (1, event_type))
        .collect();
    let supplier = world.proxy_consumer();
    let outcome = supplier.connect_push_supplier(None, &publishing(&published));
    assert!(
        matches!(&outcome, Err(SupplierError::System(raised)) if raised.kind == Kind::BadParam),
        "{outcome:?}"
    );
    supplier
        .connect_push_supplier(None, &publishing(&published[1..]))
        .expect("as many as are allowed");
    world.end();
}

#[test]
fn client_that_disconnects_is_called_back_where_that_is_asked_for() {
    for disconnect_callbacks in [false, true] {
        let world = World::with(RtChannelOptions {
            disconnect_callbacks,
            ..RtChannelOptions::default()
        });
        let (proxy, sets) = world.connect(&any_of(&[(0, 20)]));
        let (reference, end) = giver(&world);
        let supplier = world.proxy_consumer();
        supplier
            .connect_push_supplier(Some(&reference), &publishing(&[]))
            .unwrap();
        proxy.disconnect_push_supplier().unwrap();
        supplier.disconnect_push_consumer().unwrap();
        if disconnect_callbacks {
            assert_eq!(sets.recv_timeout(PATIENCE), Ok(None));
            assert_eq!(end.recv_timeout(PATIENCE), Ok(None));
        }
        let again = proxy.disconnect_push_supplier().expect_err("retired");
        assert_eq!(again.kind, Kind::ObjectNotExist);
        world.end();
        assert!(sets.try_recv().is_err() && end.try_recv().is_err());
    }
}

#[test]
fn destroy_notifies_consumers_and_suppliers_and_ends_all_objects() {
    let world = World::new();
    let (_proxy, sets) = world.connect(&any_of(&[(0, 20)]));
    let (reference, end) = giver(&world);
    let supplier = world.proxy_consumer();
    supplier
        .connect_push_supplier(Some(&reference), &publishing(&[]))
        .unwrap();
    supplier.push(&[event(1, 20, "last")]).unwrap();
    assert_eq!(next(&sets), ["last"]);
    assert!(!world.served.has_ended());
    world.channel.destroy().unwrap();
    assert_eq!(sets.recv_timeout(PATIENCE), Ok(None));
    assert_eq!(end.recv_timeout(PATIENCE), Ok(None));
    wait_for(|| world.served.has_ended());
    assert_eq!(world.served.counts().consumers_lost, 0, "none was lost");
    let gone = world.channel.for_consumers().expect_err("destroyed");
    assert_eq!(gone.kind, Kind::ObjectNotExist);
    world.end();
}

#[test]
fn dead_consumer_is_removed_and_the_others_go_on() {
    let world = World::new();
    let nobody = world.user.string_to_object("corbaloc::127.0.0.1:1/nobody");
    let nobody = PushConsumerRef::unchecked_narrow(nobody.unwrap().expect("not nil"));
    world
        .proxy_supplier()
        .connect_push_consumer(Some(&nobody), &any_of(&[(0, 20)]))
        .unwrap();
    let (_proxy, sets) = world.connect(&any_of(&[(0, 20)]));
    let supplier: ProxyPushConsumerRef = world.supply(&[]);
    let mut pushed = 0;
    while world.served.counts().consumers_lost == 0 {
        supplier.push(&[event(1, 20, "on")]).unwrap();
        assert_eq!(next(&sets), ["on"]);
        pushed += 1;
    }
    let counts = world.served.counts();
    assert!(counts.failed + counts.dropped >= u64::from(limits::FAILURES_MAX));
    assert_eq!(world.served.consumers().len(), 1);
    // The count follows the sending.
    wait_for(|| world.served.counts().delivered == pushed);
    let (counts, report) = (world.served.counts(), report(&world));
    assert!(counts.failed > 0, "{counts:?}");
    assert_eq!(
        (report.failed, report.consumers_lost),
        (counts.failed, counts.consumers_lost)
    );
    world.end();
}

#[test]
fn the_channel_reports_its_clients_and_what_became_of_their_events() {
    let world = World::new();
    let (_first, sets) = world.connect(&any_of(&[(0, 20)]));
    let (second, _unread) = world.connect(&any_of(&[(0, 20)]));
    second.suspend_connection().expect("it is connected");
    let supplier = world.supply(&[(1, 20)]);
    supplier
        .push(&[event(1, 20, "one"), event(1, 21, "unwanted")])
        .expect("it is sent");
    next(&sets);
    wait_for(|| report(&world).delivered == 1);
    let report = report(&world);
    assert_eq!((report.consumers, report.suppliers), (2, 1));
    assert_eq!(
        (report.received, report.dropped),
        (2, 1),
        "one is suspended"
    );
    let delivered = report.longest_queues.iter().map(|each| each.delivered);
    assert_eq!(delivered.sum::<u64>(), 1);
    // The channel keeps its own type beside the report.
    let channel = EventChannelRef::narrow(world.channel.object());
    assert!(channel.expect("it answers").is_some());
    world.end();
}

#[test]
fn supplier_that_pushes_and_disconnects_at_once_loses_no_event() {
    const SUPPLIERS: u64 = 200;
    let world = World::new();
    for number in 0..SUPPLIERS {
        let proxy = Connected::obtain(
            world.channel.for_suppliers(),
            SupplierAdminRef::obtain_push_consumer,
            PATIENCE,
        )
        .expect("a proxy");
        proxy
            .connect_push_supplier(None, &publishing(&[]))
            .expect("it connects");
        proxy.push(&[event(1, 20, "the last one")]).expect("sent");
        // The end flushes what the supplier has not.
        if number % 2 == 0 {
            proxy.flush().expect("all is taken");
        }
    }
    assert_eq!(world.served.counts().received, SUPPLIERS);
    world.end();
}

#[test]
fn consumer_whose_object_is_gone_is_removed_although_its_process_lives() {
    let clock = Arc::new(Around::default());
    let world = World::of(serving_orb_over(clock.clone()), RtChannelOptions::default());
    let (_live, sets) = world.connect(&any_of(&[(0, 20)]));
    let (gone, _) = world.consumer();
    world
        .proxy_supplier()
        .connect_push_consumer(Some(&gone), &any_of(&[(0, 20)]))
        .unwrap();
    let nobody = world.user.string_to_object("corbaloc::127.0.0.1:1/nobody");
    let nobody = PushConsumerRef::unchecked_narrow(nobody.unwrap().expect("not nil"));
    world
        .proxy_supplier()
        .connect_push_consumer(Some(&nobody), &any_of(&[(0, 30)]))
        .unwrap();
    let supplier = world.supply(&[]);
    supplier.push(&[event(1, 20, "before")]).unwrap();
    assert_eq!(next(&sets), ["before"]);
    let poa = world.user.root_poa().unwrap();
    let id = poa.reference_to_id(gone.object()).unwrap();
    poa.deactivate_object(&id).unwrap();
    clock.pass(limits::CONSUMER_ASK_PERIOD);
    wait_for(|| world.served.counts().consumers_lost == 1);
    // No event was ever sent to the one without a process.
    wait_for(|| {
        clock.pass(limits::CONSUMER_ASK_PERIOD);
        world.served.counts().consumers_lost == 2
    });
    assert_eq!(world.served.consumers().len(), 1);
    supplier.push(&[event(1, 20, "after")]).unwrap();
    assert_eq!(next(&sets), ["after"]);
    assert_eq!(world.served.counts().failed, 0, "a question is no event");
    world.end();
}

/// A supplier that does not answer its end before the test does.
struct Stuck {
    called: Arc<AtomicUsize>,
    release: Mutex<Receiver<()>>,
}

impl PushSupplier for Stuck {
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        self.called.fetch_add(1, SeqCst);
        // Until the end of the test.
        let _ = self.release.lock().expect("whole").recv();
        Ok(())
    }
}

#[test]
fn the_end_reaches_consumers_before_suppliers_that_do_not_answer() {
    const SUPPLIERS: usize = 8;
    let world = World::new();
    let (_proxy, sets) = world.connect(&any_of(&[(0, 20)]));
    let called = Arc::new(AtomicUsize::new(0));
    let mut releases = Vec::new();
    for _ in 0..SUPPLIERS {
        let (release, released) = channel();
        releases.push(release);
        let stuck = PushSupplierSkeleton::new(Stuck {
            called: Arc::clone(&called),
            release: Mutex::new(released),
        });
        let reference = PushSupplierRef::unchecked_narrow(world.activate(Arc::new(stuck)));
        world
            .proxy_consumer()
            .connect_push_supplier(Some(&reference), &publishing(&[]))
            .unwrap();
    }
    world.channel.destroy().unwrap();
    assert_eq!(sets.recv_timeout(PATIENCE), Ok(None));
    // Each that does not answer takes a second.
    assert!(called.load(SeqCst) < SUPPLIERS);
    wait_for(|| world.served.consumers().is_empty());
    assert!(!world.served.has_ended(), "suppliers are not notified yet");
    drop(releases);
    wait_for(|| world.served.has_ended());
    world.end();
}

#[test]
fn consumer_stays_suspended_from_before_its_connect_until_it_resumes() {
    let world = World::with(RtChannelOptions {
        reconnect: true,
        ..RtChannelOptions::default()
    });
    let (proxy, supplier) = (world.proxy_supplier(), world.supply(&[]));
    // As TAO's proxy takes it.
    proxy.suspend_connection().unwrap();
    let [first, second] = [world.consumer(), world.consumer()];
    for (consumer, lost) in [(&first.0, 1), (&first.0, 2), (&second.0, 3)] {
        proxy
            .connect_push_consumer(Some(consumer), &any_of(&[(0, 20)]))
            .unwrap();
        supplier.push(&[event(1, 20, "lost")]).unwrap();
        wait_for(|| world.served.counts().lost(Loss::Suspended) == lost);
    }
    proxy.resume_connection().unwrap();
    supplier.push(&[event(1, 20, "kept")]).unwrap();
    assert_eq!(next(&second.1), ["kept"]);
    assert!(first.1.try_recv().is_err());
    proxy.disconnect_push_supplier().unwrap();
    let raised = proxy.suspend_connection().expect_err("retired");
    assert_eq!(raised.kind, Kind::ObjectNotExist);
    world.end();
}

#[test]
fn dropped_channel_notifies_its_clients() {
    let world = World::new();
    let (_proxy, sets) = world.connect(&any_of(&[(0, 20)]));
    let (reference, end) = giver(&world);
    world
        .proxy_consumer()
        .connect_push_supplier(Some(&reference), &publishing(&[]))
        .unwrap();
    drop(world.served);
    assert_eq!(sets.recv_timeout(PATIENCE), Ok(None), "consumer");
    assert_eq!(end.recv_timeout(PATIENCE), Ok(None));
    let gone = world.channel.for_consumers().expect_err("dropped");
    assert_eq!(gone.kind, Kind::ObjectNotExist);
    world.server.shutdown(true).expect("it ends");
    world.user.shutdown(true).expect("it ends");
}

#[test]
fn consumer_that_connects_again_with_another_filter_keeps_what_is_queued_for_it() {
    let sockets = Arc::new(Gated::default());
    let options = RtChannelOptions {
        reconnect: true,
        // One is held in a write.
        dispatching: pool(2),
        ..RtChannelOptions::default()
    };
    let world = World::of(serving_orb_over(sockets.clone()), options);
    let far = serving_orb();
    let (consumer, sets) = world.consumer_in(&far);
    let proxy = world.proxy_supplier();
    let connect = |event_type| {
        proxy
            .connect_push_consumer(Some(&consumer), &any_of(&[(0, event_type)]))
            .expect("it connects");
    };
    connect(20);
    let supplier = world.supply(&[]);
    supplier.push(&[event(1, 20, "first")]).unwrap();
    assert_eq!(next(&sets), ["first"]);
    sockets.close(consumer.object());
    supplier.push(&[event(1, 20, "held")]).unwrap();
    wait_for(|| sockets.waiting() == 1);
    let queued = || super::report(&world).queued;
    let before = queued();
    supplier.push(&[event(1, 20, "queued")]).unwrap();
    wait_for(|| queued() == before + 1);
    connect(21);
    assert_eq!(queued(), before + 1);
    sockets.open();
    assert_eq!([next(&sets), next(&sets)], [["held"], ["queued"]]);
    world.end();
    far.shutdown(true).unwrap();
}

#[test]
fn channel_that_is_turned_by_hand_fires_its_timeouts() {
    let simulated = Simulated::new(1, (1_000, 2_000));
    let orb = simulated.orb("near");
    orb.root_poa()
        .unwrap()
        .the_poa_manager()
        .activate()
        .unwrap();
    let served = RtEventChannel::start(&orb, RtChannelOptions::default()).expect("a channel");
    let admin = served.reference().for_consumers().unwrap().unwrap();
    let proxy = admin.obtain_push_supplier().unwrap().unwrap();
    let nobody = orb.string_to_object("corbaloc::127.0.0.1:1/nobody");
    let nobody = PushConsumerRef::unchecked_narrow(nobody.unwrap().expect("not nil"));
    let mut qos = list(&[(0, INTERVAL_TIMEOUT)]);
    qos.dependencies[0].event.header.creation_time = 20_000;
    proxy.connect_push_consumer(Some(&nobody), &qos).unwrap();
    assert!(!served.turn(0), "there are no lanes");
    assert_eq!(served.counts().timeouts, 0, "it is not due");
    simulated.pass(Duration::from_millis(2));
    assert!(!served.turn(0));
    assert_eq!(served.counts().timeouts, 1);
    drop(served);
    simulated.end();
}
