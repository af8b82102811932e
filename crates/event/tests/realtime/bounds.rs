//! What waits in lanes and in conjunctions, and the channel's bound of octets.

use std::sync::Arc;

use deckwatch_event::dispatch::{Dispatching, LaneOptions, QueueOptions};
use deckwatch_event::filter::designator::CONJUNCTION;
use deckwatch_event::limits;
use deckwatch_event::rt::{ConsumerReport, Loss, RtChannelOptions};
use deckwatch_event::rtec_event_channel_admin::ProxyPushConsumerRef;
use deckwatch_orb::{Orb, Priority, Scheduling};

use super::gated::Gated;
use super::{World, any_of, event, list, next};
use crate::support::{seen_by, serving_orb, serving_orb_over, wait_for};

const LOW: i16 = 5;
const HIGH: i16 = 9;

/// A channel with the smallest bound and two lanes.
fn laned(server: Orb) -> World {
    let lane = |priority| LaneOptions {
        priority: Priority::new(priority).expect("a priority"),
        threads: 1,
        queue: QueueOptions::default(),
    };
    let options = RtChannelOptions {
        size_max: limits::CHANNEL_SIZE_MIN,
        dispatching: Dispatching::Lanes(vec![lane(LOW), lane(HIGH)]),
        allow_priority_fallback: true,
        ..RtChannelOptions::default()
    };
    World::of(server, options)
}

/// A supplier in an ORB of its own, whose pushes have the priority of the calling thread.
fn supplier(world: &World) -> (Orb, ProxyPushConsumerRef) {
    // In the time-sharing class a priority takes no rights: it selects lanes all the same.
    let orb = Orb::builder().scheduling(Scheduling::Other).build();
    let orb = orb.expect("an ORB");
    let object = seen_by(&orb, &world.user, world.supply(&[]).object());
    (orb, ProxyPushConsumerRef::unchecked_narrow(object))
}

fn set_priority(orb: &Orb, priority: i16) {
    let priority = Priority::new(priority).expect("a priority");
    orb.rt_current().set_the_priority(priority).unwrap();
}

#[test]
fn events_of_a_starved_low_lane_take_no_room_from_a_higher_lane() {
    const EVENTS: usize = 40;
    let sockets = Arc::new(Gated::default());
    let world = laned(serving_orb_over(sockets.clone()));
    // In another ORB, over another connection.
    let far = serving_orb();
    let (starved, starved_sets) = world.consumer_in(&far);
    let proxy = world.proxy_supplier();
    proxy
        .connect_push_consumer(Some(&starved), &any_of(&[(0, 20)]))
        .expect("it connects");
    let (_proxy, sets) = world.connect(&any_of(&[(0, 21)]));
    let (orb, supplier) = supplier(&world);
    let large = "x".repeat(limits::CHANNEL_SIZE_MIN / 16);
    let mut pushed = 0;
    let mut push = |priority, event_type, payload: &str| {
        set_priority(&orb, priority);
        supplier.push(&[event(1, event_type, payload)]).unwrap();
        pushed += 1;
        wait_for(|| world.served.counts().received == pushed);
    };
    push(LOW, 20, "connected");
    push(HIGH, 21, "connected");
    assert_eq!(next(&starved_sets), ["connected"]);
    assert_eq!(next(&sets), ["connected"]);
    sockets.close(starved.object());
    push(LOW, 20, "held");
    wait_for(|| sockets.waiting() == 1);
    for _ in 0..EVENTS {
        push(LOW, 20, &large);
    }
    for _ in 0..EVENTS {
        push(HIGH, 21, &large);
        assert_eq!(next(&sets), [large.as_str()]);
    }
    sockets.open();
    assert_eq!(next(&starved_sets), ["held"]);
    let lost = world.served.counts().lost(Loss::QueueFull);
    assert!(lost as usize > EVENTS - 16, "{lost} of {EVENTS}");
    for _ in 0..EVENTS - lost as usize {
        assert_eq!(next(&starved_sets), [large.as_str()]);
    }
    let reports = world.served.consumers();
    assert_eq!(reports[0].lost, world.served.counts().lost);
    assert_eq!((reports[1].lost, reports[1].dropped), ([0; _], 0));
    orb.shutdown(true).unwrap();
    world.end();
    far.shutdown(true).unwrap();
}

#[test]
fn flood_at_a_low_priority_costs_no_event_of_a_higher_one_and_its_losses_are_counted() {
    const FLOOD: u64 = 20_000;
    const URGENT: u64 = 100;
    let world = laned(serving_orb());
    let far = serving_orb();
    let (flooded, _flood) = world.consumer_in(&far);
    let proxy = world.proxy_supplier();
    proxy
        .connect_push_consumer(Some(&flooded), &any_of(&[(0, 20)]))
        .expect("it connects");
    let (_proxy, sets) = world.connect(&any_of(&[(0, 21)]));
    let (flooding, flood) = supplier(&world);
    let (orb, urgent) = supplier(&world);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            set_priority(&flooding, LOW);
            for _ in 0..FLOOD {
                flood.push(&[event(1, 20, "flood")]).unwrap();
            }
        });
        set_priority(&orb, HIGH);
        for number in 0..URGENT {
            let text = number.to_string();
            urgent.push(&[event(1, 21, &text)]).unwrap();
            assert_eq!(next(&sets), [text]);
        }
    });
    let reports = || {
        let mut reports = world.served.consumers();
        let urgent = reports.pop().expect("the second consumer");
        (reports.pop().expect("the first consumer"), urgent)
    };
    wait_for(|| {
        let (flooded, urgent) = reports();
        let lost = flooded.dropped + flooded.failed + flooded.lost.iter().sum::<u64>();
        urgent.delivered == URGENT && flooded.delivered + lost == FLOOD
    });
    let (_, urgent) = reports();
    assert_eq!((urgent.dropped, urgent.failed, urgent.lost), (0, 0, [0; _]));
    orb.shutdown(true).unwrap();
    flooding.shutdown(true).unwrap();
    world.end();
    far.shutdown(true).unwrap();
}

#[test]
fn conjunctions_that_never_end_keep_a_share_of_the_bound_and_cost_the_others_nothing() {
    const EVENTS: i32 = 40;
    let world = World::with(RtChannelOptions {
        size_max: limits::CHANNEL_SIZE_MIN,
        ..RtChannelOptions::default()
    });
    let (_small, sets) = world.connect(&list(&[(2, CONJUNCTION), (0, 20), (0, 21)]));
    let supplier = world.supply(&[]);
    supplier.push(&[event(1, 20, "first")]).unwrap();
    let mut never = vec![(EVENTS + 1, CONJUNCTION)];
    never.extend((100..=100 + EVENTS).map(|event_type| (0, event_type)));
    let greedy = [(); 3].map(|()| world.connect(&list(&never)));
    let large = "x".repeat(limits::CHANNEL_SIZE_MIN / 32);
    for event_type in 100..100 + EVENTS {
        let received = world.served.counts().received;
        supplier.push(&[event(1, event_type, &large)]).unwrap();
        wait_for(|| world.served.counts().received > received);
        let size = world.served.size();
        assert!(size <= limits::CHANNEL_SIZE_MIN / 2, "{size} octets");
    }
    // What the last push has exceeded is given up behind its count.
    supplier.push(&[event(1, 21, "last")]).unwrap();
    assert_eq!(next(&sets), ["first", "last"]);
    let counts = world.served.counts();
    let reports = world.served.consumers();
    let mut all = 0;
    for report in &reports[1..] {
        let unfinished = report.lost[Loss::Unfinished as usize];
        assert!(unfinished > EVENTS as u64 / 2, "{report:?}");
        assert_eq!(report.lost.iter().sum::<u64>(), unfinished);
        all += unfinished;
    }
    assert_eq!(reports[0].lost, [0; _]);
    assert_eq!(counts.lost(Loss::Unfinished), all);
    drop(greedy);
    world.end();
}

#[test]
fn all_conjunctions_that_share_the_events_above_the_bound_start_anew() {
    let size_max = limits::CHANNEL_SIZE_MIN;
    let world = World::with(RtChannelOptions {
        size_max,
        ..RtChannelOptions::default()
    });
    let shared = list(&[(3, CONJUNCTION), (0, 20), (0, 21), (0, 22)]);
    let _greedy = [(); 3].map(|()| world.connect(&shared));
    let (_small, _sets) = world.connect(&list(&[(2, CONJUNCTION), (0, 30), (0, 31)]));
    let supplier = world.supply(&[]);
    let large = "x".repeat(size_max / limits::KEPT_SHARE * 2 / 5);
    for event_type in [20, 21] {
        supplier.push(&[event(1, event_type, &large)]).unwrap();
    }
    wait_for(|| world.served.size() > 2 * large.len());
    // The event of another consumer takes them above the share. Its own is kept: it is smaller.
    supplier.push(&[event(1, 30, &large)]).unwrap();
    let unfinished = || {
        let reports = world.served.consumers();
        let of = |each: &ConsumerReport| each.lost[Loss::Unfinished as usize];
        reports.iter().map(of).collect::<Vec<_>>()
    };
    wait_for(|| unfinished() == [2, 2, 2, 0]);
    wait_for(|| (large.len()..2 * large.len()).contains(&world.served.size()));
    world.end();
}
