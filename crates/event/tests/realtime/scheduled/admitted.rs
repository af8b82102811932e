//! What a channel admits to a schedule: bounds, lanes that are missing, and clients that connect again or leave.

use std::collections::HashMap;

use super::*;
use deckwatch_event::filter::designator::CONJUNCTION;
use deckwatch_event::rt::RtInfo as Urgency;
use deckwatch_event::rtec_scheduler::{CriticalityT, ImportanceT, InfoTypeT, SchedulerRef};

use crate::realtime::list;
use crate::realtime::shares::connect as connect_at;

/// Sets worst case and period of an operation in milliseconds.
fn declare(scheduler: &SchedulerRef, handle: i32, worst_case: u64, period: i32) {
    const UNITS_OF_100_NS: u64 = 10_000;
    let (high, low) = (CriticalityT::HighCriticality, ImportanceT::LowImportance);
    let worst_case = worst_case * UNITS_OF_100_NS;
    let period = period * UNITS_OF_100_NS as i32;
    let operation = InfoTypeT::Operation;
    let declared = scheduler.set(
        handle, high, worst_case, worst_case, 0, period, low, 0, 0, operation,
    );
    declared.expect("it is created");
}

/// The dependencies that the scheduler has: the RT_Info of a consumer and that of a supplier.
fn edges(scheduler: &SchedulerRef) -> Vec<(i32, i32)> {
    let edges = scheduler.get_dependency_set().unwrap();
    let edges = edges.iter();
    edges
        .map(|one| (one.rt_info, one.rt_info_depended_on))
        .collect()
}

fn supply(world: &World, events: &[(i32, i32)]) -> ProxyPushConsumerRef {
    let supplier = world.proxy_consumer();
    let connected = supplier.connect_push_supplier(None, &published(events));
    connected.expect("it connects");
    supplier
}

#[test]
fn dependencies_of_an_earlier_connect_are_taken_back_and_those_that_are_needed_stay() {
    let all = [("read", 2, 50), ("track", 1, 0), ("draw", 1, 0)];
    let orb = serving_orb();
    let service = service(&orb, Strategy::Rms, &all);
    let scheduler = service.reference().clone();
    let world = scheduled(orb, Scheduling::of_service(&service, RANGE));
    let _supplier = supply(&world, &[(20, 1)]);
    let (consumer, _sets) = world.consumer();
    let again = world.proxy_supplier();
    let connect = |wanted: &[(i32, i32)]| {
        let connected = again.connect_push_consumer(Some(&consumer), &rated(wanted));
        connected.expect("it connects");
    };
    let (leaving, _sets) = world.connect(&rated(&[(20, 3)]));
    connect(&[(20, 2)]);
    assert_eq!(edges(&scheduler), [(2, 1), (3, 1)]);
    // It takes events of another type, without a supplier. The next connect takes its dependency back.
    connect(&[(21, 2)]);
    let _next = world.connect(&rated(&[(22, 2)]));
    assert_eq!(edges(&scheduler), [(3, 1)]);
    leaving.disconnect_push_supplier().expect("it leaves");
    let _next = world.connect(&rated(&[(22, 2)]));
    assert_eq!(edges(&scheduler), []);
    world.end();
}

#[test]
fn connect_is_refused_while_the_schedule_needs_a_lane_that_the_channel_does_not_have() {
    let orb = serving_orb();
    let service = service(&orb, Strategy::Rms, &[("read", 2, 50), ("track", 1, 0)]);
    let scheduler = service.reference().clone();
    let world = scheduled(orb, Scheduling::of_service(&service, RANGE));
    let _supplier = supply(&world, &[(20, 1)]);
    let late = scheduler.create("late").expect("another name");
    declare(&scheduler, late, 1, 10);
    let (consumer, _sets) = world.consumer();
    // With a new dependency, and without one.
    for wanted in [(20, 2), (21, 2)] {
        let proxy = world.proxy_supplier();
        let connected = proxy.connect_push_consumer(Some(&consumer), &rated(&[wanted]));
        let refused = refused(connected);
        assert_eq!(
            (refused.kind, refused.minor),
            (Kind::NoResources, own_minor::SCHEDULE_NEEDS_LANE)
        );
        assert_eq!(edges(&scheduler), []);
    }
    // The same period as that of the lane.
    declare(&scheduler, late, 1, 50);
    let _admitted = world.connect(&rated(&[(20, 2)]));
    assert_eq!(edges(&scheduler), [(2, 1)]);
    world.end();
}

#[test]
fn connected_consumer_has_the_new_lane_once_the_schedule_has_changed() {
    let orb = serving_orb();
    let service = service(&orb, Strategy::Rms, &[("fast", 1, 10), ("slow", 2, 100)]);
    let scheduler = service.reference().clone();
    let world = scheduled(orb, Scheduling::of_service(&service, RANGE));
    let (_proxy, sets) = world.connect(&rated(&[(20, 2)]));
    let supplier = world.supply(&[]);
    supplier.push(&[event(1, 20, "slow")]).unwrap();
    assert_eq!(next(&sets), ["slow"]);
    wait_for(|| dispatched(&world) == [1, 0]);
    declare(&scheduler, 2, 2, 10);
    // A connect that names an RT_Info reads the schedule.
    let _other = world.connect(&rated(&[(21, 1)]));
    supplier.push(&[event(1, 20, "fast")]).unwrap();
    assert_eq!(next(&sets), ["fast"]);
    wait_for(|| dispatched(&world) == [1, 1]);
    world.end();
}

#[test]
fn filter_of_one_entry_has_the_lane_of_its_rt_info() {
    let orb = serving_orb();
    let service = service(&orb, Strategy::Rms, &[("fast", 1, 10), ("slow", 2, 100)]);
    let world = scheduled(orb, Scheduling::of_service(&service, RANGE));
    let mut alone = list(&[(0, 20)]);
    alone.dependencies[0].rt_info = 1;
    let (_proxy, sets) = world.connect(&alone);
    world.supply(&[]).push(&[event(1, 20, "fast")]).unwrap();
    assert_eq!(next(&sets), ["fast"]);
    wait_for(|| dispatched(&world) == [0, 1]);
    world.end();
}

/// A channel that knows these RT_Infos, and admits every one of them.
fn fixed(handles: std::ops::RangeInclusive<i32>, share_percent: u8) -> World {
    let urgency = Urgency {
        priority: Priority::new(5).expect("a priority"),
        deadline: Duration::from_millis(10),
        worst_case: Duration::from_millis(1),
    };
    let infos: HashMap<_, _> = handles.map(|handle| (handle, urgency)).collect();
    World::with(RtChannelOptions {
        dispatching: Dispatching::Lanes(vec![lane(5)]),
        allow_priority_fallback: true,
        reconnect: true,
        share_percent,
        scheduling: Some(Scheduling::fixed(infos)),
        ..RtChannelOptions::default()
    })
}

/// A conjunction of entries of type 20, each with one of these RT_Infos.
fn together(handles: &[i32]) -> ConsumerQOS {
    let mut entries = vec![(handles.len() as i32, CONJUNCTION)];
    entries.extend(handles.iter().map(|_| (0, 20)));
    let mut qos = list(&entries);
    for (dependency, handle) in qos.dependencies[1..].iter_mut().zip(handles) {
        dependency.rt_info = *handle;
    }
    qos
}

/// Publications of type 20, each of a source of its own and with one of these RT_Infos.
fn of_sources(handles: &[i32]) -> SupplierQOS {
    let mut qos = published(&handles.iter().map(|each| (20, *each)).collect::<Vec<_>>());
    for (publication, source) in qos.publications.iter_mut().zip(1..) {
        publication.event.header.source = source;
    }
    qos
}

#[test]
fn dependencies_are_bounded_and_a_client_that_connects_again_gives_up_its_own() {
    const SIDE: i32 = 256;
    const { assert!((SIDE * SIDE) as usize == limits::ADMITTED_PAIRS_MAX) };
    let world = fixed(1..=2 * SIDE, 100);
    let supplier = world.proxy_consumer();
    let all: Vec<_> = (SIDE + 1..=2 * SIDE).collect();
    let connected = supplier.connect_push_supplier(None, &of_sources(&all));
    connected.expect("it connects");
    // Each of its RT_Infos depends on each of the supplier's.
    let (consumer, _sets) = world.consumer();
    let proxy = world.proxy_supplier();
    let as_many = together(&(1..=SIDE).collect::<Vec<_>>());
    let connect = || proxy.connect_push_consumer(Some(&consumer), &as_many);
    connect().expect("as many as there may be");

    // Another peer, for one dependency.
    let stranger = stranger();
    let channel = channel_seen_by(&stranger, &world);
    let mut one = any_of(&[(7, 20)]);
    one.dependencies[1].rt_info = 1;
    let refused = connect_at(&channel, &consumer, &one).expect_err("one more");
    assert_eq!(refused.kind, Kind::NoResources);
    connect().expect("it has them already");
    proxy.disconnect_push_supplier().expect("it leaves");
    connect_at(&channel, &consumer, &one).expect("room again");
    world.end();
    stranger.shutdown(true).expect("it ends");
}

#[test]
fn dependency_that_many_entries_and_publications_name_counts_once() {
    const ENTRIES: usize = 600;
    const PUBLICATIONS: usize = 200;
    const { assert!(ENTRIES * PUBLICATIONS > limits::ADMITTED_PAIRS_MAX) };
    // In percent of the pairs: one peer may have less than all entries and publications together.
    let world = fixed(1..=2, 1);
    let supplier = world.proxy_consumer();
    let connected = supplier.connect_push_supplier(None, &of_sources(&[1; PUBLICATIONS]));
    connected.expect("it connects");
    let (_proxy, _sets) = world.connect(&together(&[2; ENTRIES]));
    assert_eq!(world.served.counts().refused, 0);
    world.end();
}
