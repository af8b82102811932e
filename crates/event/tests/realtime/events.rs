//! Which consumer gets which events.

use super::{World, any_of, classes_of, event, list, next, real_time_as};
use crate::support::{PATIENCE, wait_for};
use deckwatch_event::dispatch::{Dispatching, QueueOptions};
use deckwatch_event::filter::designator::{CONJUNCTION, INTERVAL_TIMEOUT, MASKED_TYPE, NEGATION};
use deckwatch_event::rt::RtChannelOptions;
use deckwatch_os::schedule::Class;

#[test]
fn each_consumer_gets_the_events_that_its_filter_emits_as_they_were_pushed() {
    let world = World::new();
    let (_one, twenty) = world.connect(&any_of(&[(0, 20)]));
    let (_two, others) = world.connect(&list(&[(0, NEGATION), (0, 20)]));
    let supplier = world.supply(&[]);
    for (source, event_type, payload) in [(1, 20, "a"), (1, 21, "b"), (2, 20, "c")] {
        supplier
            .push(&[event(source, event_type, payload)])
            .unwrap();
    }
    let whole = twenty.recv_timeout(PATIENCE).unwrap().expect("a set");
    assert_eq!(whole, [event(1, 20, "a")], "header, payload and any");
    assert_eq!(next(&twenty), ["c"]);
    assert_eq!(next(&others), ["b"]);
    wait_for(|| world.served.counts().delivered == 3);
    let counts = world.served.counts();
    assert_eq!((counts.received, counts.unwanted), (3, 0));
    world.end();
}

#[test]
fn several_events_of_one_push_go_where_each_is_wanted() {
    let world = World::new();
    let (_one, twenty) = world.connect(&any_of(&[(0, 20)]));
    let (_two, all) = world.connect(&any_of(&[(0, 0)]));
    let supplier = world.supply(&[]);
    supplier
        .push(&[event(1, 20, "a"), event(1, 21, "longer"), event(1, 20, "c")])
        .unwrap();
    assert_eq!([next(&twenty), next(&twenty)], [["a"], ["c"]]);
    assert_eq!(
        [next(&all), next(&all), next(&all)],
        [["a"], ["longer"], ["c"]]
    );
    supplier.push(&[]).unwrap();
    wait_for(|| world.served.counts().received == 3);
    world.end();
}

#[test]
fn conjunction_arrives_as_one_set() {
    let world = World::new();
    let (_proxy, sets) = world.connect(&list(&[(2, CONJUNCTION), (0, 20), (0, 21)]));
    let supplier = world.supply(&[]);
    for (event_type, payload) in [(20, "odd"), (20, "lost"), (21, "b")] {
        supplier.push(&[event(1, event_type, payload)]).unwrap();
    }
    assert_eq!(next(&sets), ["odd", "b"]);
    world.end();
}

#[test]
fn interval_timeouts_arrive_without_a_supplier() {
    let world = World::new();
    let mut qos = list(&[(0, INTERVAL_TIMEOUT)]);
    qos.dependencies[0].event.header.creation_time = 20_000;
    // As the headers have it: in units of 100 ns.
    let now = || deckwatch_os::clock::monotonic_ns() as u64 / 100;
    let mut before = now();
    let (proxy, sets) = world.connect(&qos);
    for _ in 0..3 {
        let set = sets.recv_timeout(PATIENCE).unwrap().expect("a set");
        let header = &set[0].header;
        assert_eq!((set.len(), header.r#type), (1, INTERVAL_TIMEOUT));
        assert_eq!(header.ttl, 1);
        let created = header.creation_time;
        assert!((before..=now()).contains(&created), "{created}");
        before = created;
    }
    proxy.disconnect_push_supplier().unwrap();
    assert!(world.served.counts().timeouts >= 3);
    world.end();
}

/// No other test has a thread of this class.
const OF_CHANNEL: Class = Class::Fifo(7);

#[test]
fn timeouts_and_the_pool_have_the_class_of_the_thread_that_starts_the_channel() {
    real_time_as(OF_CHANNEL, || {
        let pool = Dispatching::Pool {
            threads: 1,
            queue: QueueOptions::default(),
        };
        let world = World::with(RtChannelOptions {
            dispatching: pool,
            ..RtChannelOptions::default()
        });
        let mut qos = list(&[(0, INTERVAL_TIMEOUT)]);
        qos.dependencies[0].event.header.creation_time = 20_000;
        let (_proxy, sets) = world.connect(&qos);
        sets.recv_timeout(PATIENCE).unwrap().expect("a set");
        for name in ["rt-timeouts", "dispatch-pool"] {
            assert!(classes_of(name).contains(&OF_CHANNEL), "{name}");
        }
        world.end();
    });
}

#[test]
fn supplier_reaches_those_who_may_match_its_publications() {
    let world = World::new();
    let (_one, twenty) = world.connect(&any_of(&[(0, 20)]));
    let supplier = world.supply(&[(1, 30)]);
    supplier.push(&[event(1, 20, "not published")]).unwrap();
    wait_for(|| world.served.counts().unwanted == 1);
    let (_two, both) = world.connect(&any_of(&[(0, 20), (0, 30)]));
    supplier.push(&[event(1, 20, "known by 30")]).unwrap();
    assert_eq!(next(&both), ["known by 30"], "as TAO's supplier filtering");
    assert!(twenty.try_recv().is_err());
    world.end();
}

#[test]
fn supplier_of_any_type_reaches_negations_and_masks() {
    let world = World::new();
    let (_one, not_20) = world.connect(&list(&[(0, NEGATION), (0, 20)]));
    let (_two, masked) = world.connect(&list(&[(0, MASKED_TYPE), (!0, 1), (5, 1)]));
    for published in [(5, 0), (0, 21), (0, 0)] {
        let supplier = world.supply(&[published]);
        supplier.push(&[event(5, 21, "wanted")]).unwrap();
        assert_eq!(next(&not_20), ["wanted"], "{published:?}");
        assert_eq!(next(&masked), ["wanted"], "{published:?}");
    }
    world.end();
}
