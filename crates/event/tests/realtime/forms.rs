//! The octets of an event: once for each form that its consumers take, and against the channel's bound.

use std::sync::Arc;

use deckwatch_cdr::Any;
use deckwatch_event::filter::designator::CONJUNCTION;
use deckwatch_event::rt::RtChannelOptions;
use deckwatch_event::rtec_event_comm::PushConsumerRef;

use super::gated::Gated;
use super::{World, any_of, event, list, next, pool, report};
use crate::support::{serving_orb, serving_orb_over, wait_for};
use crate::unwritten::published_by;

#[test]
fn octets_of_a_push_go_to_the_consumers_that_take_their_form_and_others_get_their_own() {
    let world = World::new();
    // GIOP 1.0 has another form than the supplier's octets.
    let taken = [true, false, true, false].map(|is_old| {
        let (mut consumer, sets) = world.consumer();
        if is_old {
            let old = published_by(0, None, consumer.object(), &world.user);
            consumer = PushConsumerRef::unchecked_narrow(old);
        }
        let proxy = world.proxy_supplier();
        let connected = proxy.connect_push_consumer(Some(&consumer), &any_of(&[(0, 20)]));
        connected.expect("it connects");
        sets
    });
    world.supply(&[]).push(&[event(1, 20, "all")]).unwrap();
    for sets in &taken {
        assert_eq!(next(sets), ["all"]);
    }
    wait_for(|| world.served.counts().delivered == 4);
    assert_eq!(world.served.counts().failed, 0);
    world.end();
}

#[test]
fn event_is_written_once_for_each_form_whatever_the_number_of_consumers() {
    const SIZE: usize = 20_000;
    const CONSUMERS: u64 = 12;
    let sockets = Arc::new(Gated::default());
    let options = RtChannelOptions {
        // One is held in a write, and each other waits to write after it.
        dispatching: pool(1 + CONSUMERS as usize),
        ..RtChannelOptions::default()
    };
    let world = World::of(serving_orb_over(sockets.clone()), options);
    let far = serving_orb();
    let (consumer, sets) = world.consumer_in(&far);
    let connect = |event_type, is_gateway| {
        let mut qos = any_of(&[(0, event_type)]);
        qos.is_gateway = is_gateway;
        let proxy = world.proxy_supplier();
        let connected = proxy.connect_push_consumer(Some(&consumer), &qos);
        connected.expect("it connects");
    };
    connect(19, false);
    // A gateway gets the event with a lower `ttl`.
    for number in 0..CONSUMERS {
        connect(20, number % 2 == 1);
    }
    let supplier = world.supply(&[]);
    supplier.push(&[event(1, 19, "connected")]).unwrap();
    assert_eq!(next(&sets), ["connected"]);
    sockets.close(consumer.object());
    supplier.push(&[event(1, 19, "held")]).unwrap();
    wait_for(|| sockets.waiting() == 1);
    let (queued, size) = (report(&world).queued, world.served.size());
    let mut large = event(1, 20, &"x".repeat(SIZE));
    large.header.ttl = i32::MAX;
    // With another event it has to be written anew: the octets of the push are those of both.
    supplier.push(&[large, event(1, 21, "unwanted")]).unwrap();
    wait_for(|| report(&world).queued == queued + CONSUMERS);
    let size = world.served.size() - size;
    assert!(
        (2 * SIZE..CONSUMERS as usize * SIZE / 2).contains(&size),
        "{size} octets"
    );
    sockets.open();
    assert_eq!(next(&sets), ["held"]);
    for _ in 0..CONSUMERS {
        assert_eq!(next(&sets)[0].len(), SIZE);
    }
    world.end();
    far.shutdown(true).unwrap();
}

#[test]
fn event_in_a_conjunction_counts_with_its_payload_and_its_value() {
    const PAYLOAD: usize = 100_000;
    const VALUE: usize = 40_000;
    let world = World::new();
    let (_proxy, sets) = world.connect(&list(&[(2, CONJUNCTION), (0, 20), (0, 21)]));
    assert_eq!(world.served.size(), 0);
    let mut kept = event(1, 20, &"x".repeat(PAYLOAD));
    kept.data.any_value = Any::from_value(&*"y".repeat(VALUE)).expect("a string");
    let supplier = world.supply(&[]);
    supplier.push(&[kept]).unwrap();
    let all = PAYLOAD + VALUE;
    let is_kept = || (all..all + 2_000).contains(&world.served.size());
    wait_for(is_kept);
    supplier.push(&[event(1, 21, "last")]).unwrap();
    assert_eq!(next(&sets).len(), 2);
    wait_for(|| world.served.size() == 0);
    world.end();
}
