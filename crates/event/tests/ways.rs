//! The ways to a consumer: other transports, the channel's own ORB, connections that end, objects that have moved.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::raw::{Answering, CLOSE, reply};
use crate::support::{PATIENCE, World, number, serving_orb_at, wait_for};
use deckwatch_cdr::{ByteOrder, Write as _, Writer};

#[test]
fn consumers_are_reached_over_unix_sockets_and_shared_memory() {
    let folder = std::env::temp_dir().join(format!("deckwatch-event-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for scheme in ["unix", "shm"] {
        let world = World::new();
        let orb = serving_orb_at(&format!("{scheme}:{}", folder.join(scheme).display()));
        let (consumer, events) = world.consumer_in(&orb);
        world.connect(consumer);
        let supplier = world.supplier();
        for value in 0..50 {
            supplier.push(&number(value)).unwrap();
        }
        for value in 0..50 {
            assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(value)), "{scheme}");
        }
        world.end();
        orb.shutdown(true).unwrap();
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn consumer_in_the_channels_own_orb_is_reached() {
    let world = World::new();
    let (consumer, events) = world.consumer_in(&world.server);
    world.connect(consumer);
    let supplier = world.supplier();
    for value in 0..50 {
        supplier.push(&number(value)).unwrap();
    }
    for value in 0..50 {
        assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(value)));
    }
    world.end();
}

/// A channel with one raw consumer that answers its first push as `first` says and then goes away, before it comes back.
fn answered_by(
    first: impl FnOnce([u8; 4]) -> Vec<u8> + Send + 'static,
) -> (World, Arc<AtomicUsize>) {
    let world = World::new();
    let taken = Arc::new(AtomicUsize::new(0));
    let consumer = Answering::new();
    world.connect(consumer.object(&world.user));
    consumer.run_after(first, taken.clone());
    (world, taken)
}

#[test]
fn push_that_was_not_served_before_the_connection_was_closed_in_order_is_sent_again() {
    let (world, taken) = answered_by(|_| CLOSE.to_vec());
    world.supplier().push(&number(1)).unwrap();
    wait_for(|| taken.load(Ordering::SeqCst) == 1);
    wait_for(|| world.served.counts().delivered == 1);
    assert_eq!(world.served.counts().failed, 0);
    world.end();
}

#[test]
fn push_that_may_have_been_served_before_the_connection_was_lost_is_not_sent_again() {
    let (world, taken) = answered_by(|_| Vec::new());
    let supplier = world.supplier();
    supplier.push(&number(1)).unwrap();
    wait_for(|| world.served.counts().failed == 1);
    supplier.push(&number(2)).unwrap();
    wait_for(|| world.served.counts().delivered == 1);
    assert_eq!(taken.load(Ordering::SeqCst), 1);
    world.end();
}

#[test]
fn consumer_that_has_moved_gets_the_event_that_told_it_and_those_that_follow() {
    let world = World::new();
    let (moved, events) = world.consumer();
    let mut elsewhere = Vec::new();
    let written = moved
        .ior()
        .write(&mut Writer::new(&mut elsewhere).with_order(ByteOrder::Little));
    written.unwrap();
    const LOCATION_FORWARD: u8 = 3;
    let before = Answering::new();
    world.connect(before.object_like(&moved, &world.user));
    // The first call asks at the old address once more, and is told the same.
    before.run_always(move |id| reply(id, LOCATION_FORWARD, &elsewhere));
    let supplier = world.supplier();
    for value in 0..10 {
        supplier.push(&number(value)).unwrap();
    }
    for value in 0..10 {
        assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(value)));
    }
    wait_for(|| world.served.counts().delivered == 10);
    assert_eq!(world.served.counts().failed, 0);
    world.end();
}
