//! Consumers that take nothing, many that connect at once, and events as large as a message may be.

use deckwatch_event::rt::RtChannelOptions;
use deckwatch_event::rtec_event_comm::PushConsumerRef;
use deckwatch_event::{WhenFull, limits};
use deckwatch_orb::limits::MESSAGE_SIZE_MAX;

use super::{World, any_of, event, next};
use crate::raw::Silent;
use crate::support::wait_for;

const PUSH_CONSUMER: &str = "IDL:RtecEventComm/PushConsumer:1.0";

fn connect_silent(world: &World, silent: &Silent) {
    let consumer = silent.object_of(PUSH_CONSUMER, &world.user);
    let consumer = PushConsumerRef::unchecked_narrow(consumer);
    let proxy = world.proxy_supplier();
    proxy
        .connect_push_consumer(Some(&consumer), &any_of(&[(0, 16)]))
        .expect("it connects");
}

#[test]
fn consumer_that_never_reads_loses_its_own_events_by_count_and_delays_nobody() {
    const QUEUE_LEN: usize = 4;
    let world = World::with(RtChannelOptions {
        queue_len: QUEUE_LEN,
        when_full: WhenFull::DropNewest,
        ..RtChannelOptions::default()
    });
    let silent = Silent::new();
    connect_silent(&world, &silent);
    let (_proxy, sets) = world.connect(&any_of(&[(0, 16)]));
    let supplier = world.supply(&[]);
    // More than the sockets between take.
    let large = "x".repeat(1 << 20);
    let mut pushed = 0;
    let dropped = || {
        let reports = world.served.consumers();
        let of_silent = reports.iter().min_by_key(|report| report.number);
        of_silent.expect("it is connected").dropped
    };
    while dropped() < 10 {
        pushed += 1;
        assert!(pushed < 200, "the sockets take all");
        supplier.push(&[event(1, 16, &large)]).unwrap();
        assert_eq!(next(&sets), [large.as_str()]);
    }
    let counts = world.served.counts();
    assert_eq!((counts.received, counts.dropped), (pushed, dropped()));
    assert_eq!(counts.failed, 0);
    world.end();
}

#[test]
fn a_thousand_consumers_of_a_real_time_channel_connect_at_once_and_get_the_next_event() {
    const THREADS: usize = 8;
    const EACH: usize = 125;
    let world = World::new();
    let connect = || {
        let connected = (0..EACH).map(|_| world.connect(&any_of(&[(0, 16)])));
        connected.collect::<Vec<_>>()
    };
    let takers: Vec<_> = std::thread::scope(|scope| {
        let threads = [(); THREADS].map(|()| scope.spawn(connect));
        threads
            .into_iter()
            .flat_map(|it| it.join().unwrap())
            .collect()
    });
    world.supply(&[]).push(&[event(1, 16, "next")]).unwrap();
    for (_proxy, sets) in &takers {
        assert_eq!(next(sets), ["next"]);
    }
    assert_eq!(takers.len(), THREADS * EACH);
    assert_eq!(world.served.counts().dropped, 0);
    world.end();
}

#[test]
fn event_as_large_as_a_message_may_be_reaches_all_and_a_larger_one_costs_nobody_anything() {
    let world = World::with(RtChannelOptions {
        size_max: 4 * MESSAGE_SIZE_MAX,
        ..RtChannelOptions::default()
    });
    let silent = Silent::new();
    connect_silent(&world, &silent);
    let takers = [(); 2].map(|()| world.connect(&any_of(&[(0, 16)])));
    let supplier = world.supply(&[]);
    // The headers take less than the rest.
    let largest = "x".repeat(MESSAGE_SIZE_MAX - 512);
    for _ in 0..6 {
        supplier.push(&[event(1, 16, &largest)]).unwrap();
        for (_proxy, sets) in &takers {
            assert!(next(sets) == [largest.as_str()]);
        }
        let size = world.served.size();
        assert!(size <= 4 * MESSAGE_SIZE_MAX, "{size} octets are held");
    }
    let larger = "x".repeat(MESSAGE_SIZE_MAX + 1);
    // The supplier's own ORB refuses it, or the channel's.
    let _ = supplier.push(&[event(1, 16, &larger)]);
    supplier.push(&[event(1, 16, "next")]).unwrap();
    for (_proxy, sets) in &takers {
        assert_eq!(next(sets), ["next"]);
    }
    wait_for(|| world.served.counts().received == 7);
    world.end();
}

#[test]
fn event_above_the_share_of_a_queue_is_taken_by_a_consumer_for_whom_nothing_waits() {
    let world = World::with(RtChannelOptions {
        size_max: limits::CHANNEL_SIZE_MIN,
        when_full: WhenFull::DropNewest,
        ..RtChannelOptions::default()
    });
    let (_proxy, sets) = world.connect(&any_of(&[(0, 16)]));
    // The queue of one consumer has a quarter of the bound.
    let large = "x".repeat(limits::CHANNEL_SIZE_MIN / 3);
    let supplier = world.supply(&[]);
    for _ in 0..3 {
        supplier.push(&[event(1, 16, &large)]).unwrap();
        assert_eq!(next(&sets), [large.as_str()]);
    }
    assert_eq!(world.served.counts().dropped, 0);
    world.end();
}
