//! Priorities from a schedule: lanes, the urgency of each dependency, and admission at run time.

mod admitted;
mod dependencies;

use std::time::Duration;

use deckwatch_access::Action;
use deckwatch_event::deckwatch::{ChannelStatusRef, ConsumerStatusRef};
use deckwatch_event::deckwatch_scheduling::{
    ExecutionTimes, ReportedTimesRef, ReportedTimesReportExecutionTimesError as ReportError,
};
use deckwatch_event::dispatch::{Dispatching, LaneOptions, QueueFull, QueueOptions, QueueOrder};
use deckwatch_event::handler_times::ReportedHandler;
use deckwatch_event::rt::{RtChannelOptions, Scheduling, SchedulingError};
use deckwatch_event::rtec_event_channel_admin::{
    ConsumerQOS, ProxyPushConsumerRef, ProxyPushSupplierConnectPushConsumerError, SupplierQOS,
};
use deckwatch_event::rtec_event_comm::PushConsumerRef;
use deckwatch_event::rtec_scheduler::SchedulerLookupError;
use deckwatch_event::{SchedulerOptions, SchedulingService, limits};
use deckwatch_giop::Ior;
use deckwatch_orb::{
    NativePriority, Orb, Priority, PriorityMapping, Scheduling as Class, SystemException,
    SystemExceptionKind as Kind, own_minor,
};
use deckwatch_sched::{Operations, RtInfo, Settings, Strategy};

use super::shares::{channel_seen_by, connect};
use super::{World, any_of, classes_of, event, next, publishing, real_time_as};
use crate::access::{access, rule};
use crate::shares::stranger;
use crate::support::{seen_by, serving_orb, wait_for};

const MS: u64 = 1_000_000;

/// Declared operations: name, worst case and period in milliseconds (0 for none).
fn operations(all: &[(&str, u64, u64)]) -> Operations {
    let mut operations = Operations::default();
    for &(name, worst_case, period) in all {
        let info = RtInfo {
            entry_point: name.to_owned(),
            worst_case_ns: worst_case * MS,
            period_ns: period * MS,
            ..RtInfo::default()
        };
        operations.add(&info).expect("another name");
    }
    operations
}

pub(super) fn service(
    orb: &Orb,
    strategy: Strategy,
    all: &[(&str, u64, u64)],
) -> SchedulingService {
    let options = SchedulerOptions {
        settings: Settings {
            strategy,
            ..Settings::default()
        },
        admits: true,
        ..SchedulerOptions::default()
    };
    SchedulingService::start_with(orb, options, operations(all), None).expect("a service")
}

const RANGE: (NativePriority, NativePriority) = (NativePriority(1), NativePriority(49));

fn queue() -> QueueOptions {
    QueueOptions {
        len: 64,
        order: QueueOrder::Arrival,
        when_full: QueueFull::DropNew,
    }
}

/// A channel with the lanes of a schedule.
pub(super) fn scheduled(orb: Orb, scheduling: Scheduling) -> World {
    let share_percent = RtChannelOptions::default().share_percent;
    scheduled_with(orb, scheduling, share_percent)
}

fn scheduled_with(orb: Orb, scheduling: Scheduling, share_percent: u8) -> World {
    let options = RtChannelOptions {
        share_percent,
        ..options_of(&orb, scheduling)
    };
    World::of(orb, options)
}

fn options_of(orb: &Orb, scheduling: Scheduling) -> RtChannelOptions {
    let lanes = scheduling.lanes(orb, queue()).expect("lanes");
    RtChannelOptions {
        dispatching: Dispatching::Lanes(lanes),
        allow_priority_fallback: true,
        reconnect: true,
        scheduling: Some(scheduling),
        ..RtChannelOptions::default()
    }
}

/// All events of these types, each with its RT_Info.
pub(super) fn rated(wanted: &[(i32, i32)]) -> ConsumerQOS {
    let types: Vec<_> = wanted
        .iter()
        .map(|(event_type, _)| (0, *event_type))
        .collect();
    let mut qos = any_of(&types);
    for (dependency, (_, handle)) in qos.dependencies[1..].iter_mut().zip(wanted) {
        dependency.rt_info = *handle;
    }
    qos
}

fn published(all: &[(i32, i32)]) -> SupplierQOS {
    let types: Vec<_> = all.iter().map(|(event_type, _)| (1, *event_type)).collect();
    let mut qos = publishing(&types);
    for (publication, (_, handle)) in qos.publications.iter_mut().zip(all) {
        publication.dependency_info.rt_info = *handle;
    }
    qos
}

/// The exception with which a consumer's connect is refused.
fn refused<T: std::fmt::Debug>(
    outcome: Result<T, ProxyPushSupplierConnectPushConsumerError>,
) -> SystemException {
    match outcome {
        Err(ProxyPushSupplierConnectPushConsumerError::System(refused)) => refused,
        other => panic!("{other:?}"),
    }
}

/// The CORBA priority of a native one, by the ORB's mapping.
fn corba(native: i16) -> Priority {
    let mapping = deckwatch_orb::Linear(Class::Fifo);
    mapping.to_corba(NativePriority(native)).expect("mapped")
}

#[test]
fn lanes_and_their_queues_are_those_of_the_schedule() {
    let orb = serving_orb();
    let rate_monotonic = [("fast", 1, 10), ("slow", 2, 100)];
    let service = service(&orb, Strategy::Rms, &rate_monotonic);
    let scheduling = Scheduling::of_service(&service, RANGE);
    let lane = |native, order| LaneOptions {
        priority: corba(native),
        threads: 1,
        queue: QueueOptions { order, ..queue() },
    };
    assert_eq!(
        scheduling.lanes(&orb, queue()).expect("lanes"),
        [49, 48].map(|native| lane(native, QueueOrder::Arrival))
    );
    // The same through references, as with a scheduler elsewhere.
    let other = Scheduling::of_reference(service.reference().object(), RANGE);
    assert_eq!(other.lanes(&orb, queue()), scheduling.lanes(&orb, queue()));
    for (strategy, order) in [
        (Strategy::Edf, QueueOrder::Deadline),
        (Strategy::Mlf, QueueOrder::Laxity),
    ] {
        let orb = serving_orb();
        let service = self::service(&orb, strategy, &rate_monotonic);
        let scheduling = Scheduling::of_service(&service, RANGE);
        assert_eq!(scheduling.lanes(&orb, queue()).unwrap(), [lane(49, order)]);
        orb.shutdown(true).unwrap();
    }
    orb.shutdown(true).unwrap();
}

#[test]
fn schedule_that_misses_a_deadline_or_has_no_rate_gives_no_lanes() {
    for (all, range, expected) in [
        (&[("late", 12, 10)][..], RANGE, "infeasible"),
        (&[("first", 3, 7), ("late", 6, 10)], RANGE, "infeasible"),
        // The processor has time for both, but "late" ends behind its deadline.
        (&[("first", 3, 7), ("late", 5, 10)], RANGE, "infeasible"),
        (&[("never", 1, 0)], RANGE, "nothing"),
        (&[], RANGE, "nothing"),
        (
            &[("a", 1, 10), ("b", 1, 20)],
            (NativePriority(7), NativePriority(7)),
            "few",
        ),
    ] {
        let orb = serving_orb();
        let service = service(&orb, Strategy::Rms, all);
        for scheduling in [
            Scheduling::of_service(&service, range),
            Scheduling::of_reference(service.reference().object(), range),
        ] {
            let found = match scheduling.lanes(&orb, queue()) {
                Err(SchedulingError::Infeasible(_)) => "infeasible",
                Err(SchedulingError::NothingScheduled) => "nothing",
                Err(SchedulingError::TooFewPriorities) => "few",
                other => panic!("{other:?}"),
            };
            assert_eq!(found, expected, "{all:?}");
        }
        orb.shutdown(true).unwrap();
    }
}

#[test]
fn each_event_has_the_urgency_of_the_dependency_that_matches_it() {
    let orb = serving_orb();
    let service = service(
        &orb,
        Strategy::Rms,
        &[
            ("fast", 1, 10),
            ("slow", 2, 100),
            ("on fast", 1, 0),
            ("on slow", 1, 0),
        ],
    );
    let world = scheduled(orb, Scheduling::of_service(&service, RANGE));
    let supplier = world.proxy_consumer();
    supplier
        .connect_push_supplier(None, &published(&[(20, 1), (21, 2)]))
        .unwrap();
    // One consumer, two dependencies of different rates.
    let (_proxy, sets) = world.connect(&rated(&[(20, 3), (21, 4)]));
    let sent = |of: i16| {
        let lanes = world.served.lanes();
        let mut of_lane = lanes.iter().filter(|lane| lane.priority == Some(corba(of)));
        of_lane.next().expect("a lane").dispatched
    };
    for (event_type, lane, other) in [(21, 48, 49), (20, 49, 48)] {
        let before = sent(other);
        let own = sent(lane);
        supplier.push(&[event(1, event_type, "a")]).unwrap();
        assert_eq!(next(&sets), ["a"]);
        wait_for(|| sent(lane) == own + 1);
        assert_eq!(sent(other), before);
    }
    assert_eq!(world.served.counts().priorities_missed, 0);
    world.end();
}

/// The event sets that each lane has dispatched.
fn dispatched(world: &World) -> Vec<u64> {
    let lanes = world.served.lanes();
    lanes.iter().map(|lane| lane.dispatched).collect()
}

/// A lane with this priority and one thread.
pub(super) fn lane(priority: i16) -> LaneOptions {
    LaneOptions {
        priority: Priority::new(priority).expect("a priority"),
        threads: 1,
        queue: queue(),
    }
}

/// A channel with lanes and without a schedule.
fn laned(priorities: &[i16]) -> World {
    World::with(RtChannelOptions {
        dispatching: Dispatching::Lanes(priorities.iter().map(|each| lane(*each)).collect()),
        allow_priority_fallback: true,
        ..RtChannelOptions::default()
    })
}

#[test]
fn priority_of_a_push_chooses_the_lane_of_what_has_no_rt_info() {
    let world = laned(&[5, 9]);
    let (_proxy, sets) = world.connect(&any_of(&[(0, 20)]));
    let supplier = world.supply(&[]);
    let sent = || dispatched(&world);
    supplier.push(&[event(1, 20, "plain")]).unwrap();
    assert_eq!(next(&sets), ["plain"]);
    wait_for(|| sent() == [1, 0]);
    let missed = || world.served.counts().priorities_missed;
    assert_eq!(missed(), 0);
    let model = supplier.object().priority_model().unwrap();
    let lowest = model.expect("CLIENT_PROPAGATED").server_priority;
    assert_eq!(lowest, Priority::new(5).expect("a priority"));
    // In the time-sharing class a priority takes no rights: it selects lanes all the same.
    let orb = Orb::builder().scheduling(Class::Other).build().unwrap();
    let text = world.user.object_to_string(supplier.object());
    let object = orb.string_to_object(&text).unwrap().expect("not nil");
    let supplier = ProxyPushConsumerRef::unchecked_narrow(object);
    let push = |priority: i16, payload: &str| {
        let priority = Priority::new(priority).expect("a priority");
        orb.rt_current().set_the_priority(priority).unwrap();
        supplier.push(&[event(1, 20, payload)]).unwrap();
        assert_eq!(next(&sets), [payload]);
    };
    push(9, "urgent");
    wait_for(|| sent() == [1, 1]);
    push(7, "between");
    wait_for(|| sent() == [2, 1]);
    assert_eq!(missed(), 1, "no lane has 7");
    orb.shutdown(true).unwrap();
    world.end();
}

#[test]
fn consumer_that_cannot_be_reached_at_all_is_no_fallback_of_its_priority() {
    let orb = serving_orb();
    let service = service(&orb, Strategy::Rms, &[("fast", 1, 10)]);
    let world = scheduled(orb, Scheduling::of_service(&service, RANGE));
    let (consumer, _sets) = world.consumer();
    let mut ior: Ior = world
        .user
        .object_to_string(consumer.object())
        .parse()
        .unwrap();
    ior.profiles.iter_mut().for_each(|profile| profile.tag = 99);
    let object = world.user.string_to_object(&ior.to_string()).unwrap();
    let consumer = PushConsumerRef::unchecked_narrow(object.expect("not nil"));
    let before = world.served.counts().priority_fallbacks;
    let proxy = world.proxy_supplier();
    let refused = proxy.connect_push_consumer(Some(&consumer), &rated(&[(20, 1)]));
    assert!(refused.is_err());
    assert_eq!(world.served.counts().priority_fallbacks, before);
    world.end();
}

#[test]
fn supplier_s_rt_info_chooses_the_lane_of_each_of_its_events() {
    let orb = serving_orb();
    let service = service(&orb, Strategy::Rms, &[("fast", 1, 10), ("slow", 2, 100)]);
    let world = scheduled(orb, Scheduling::of_service(&service, RANGE));
    let (_proxy, sets) = world.connect(&any_of(&[(0, 20), (0, 21)]));
    let supplier = world.proxy_consumer();
    supplier
        .connect_push_supplier(None, &published(&[(20, 1), (21, 2)]))
        .unwrap();
    let sent = || dispatched(&world);
    supplier.push(&[event(1, 20, "fast")]).unwrap();
    assert_eq!(next(&sets), ["fast"]);
    wait_for(|| sent() == [0, 1]);
    supplier.push(&[event(1, 21, "slow")]).unwrap();
    assert_eq!(next(&sets), ["slow"]);
    wait_for(|| sent() == [1, 1]);
    world.end();
}

#[test]
fn stranger_that_takes_its_share_of_dependencies_leaves_others_served() {
    const SUPPLIERS: usize = 30;
    let orb = serving_orb();
    let service = service(&orb, Strategy::Rms, &[("read", 2, 50), ("track", 1, 0)]);
    let world = scheduled_with(orb, Scheduling::of_service(&service, RANGE), 1);
    // Few proxies may wait for their supplier.
    for _ in 0..SUPPLIERS {
        let supplier = world.proxy_consumer();
        let connected = supplier.connect_push_supplier(None, &published(&[(20, 1)]));
        connected.expect("a place");
    }
    let stranger = stranger();
    let channel = channel_seen_by(&stranger, &world);
    let (consumer, _sets) = world.consumer();
    let connect = || {
        let connected = connect(&channel, &consumer, &rated(&[(20, 2)]));
        connected.map_err(|refused| (refused.kind, refused.minor))
    };
    let no_room = Err((Kind::ImpLimit, own_minor::CONSUMER_SHARE_FULL));
    // Each consumer depends on all suppliers.
    let share = limits::ADMITTED_PAIRS_MAX / 100 / SUPPLIERS;
    let held: Vec<_> = (0..share).map(|_| connect().expect("room")).collect();
    assert_eq!(connect().map(drop), no_room);
    // It connects again with what it has.
    let again = held[0].connect_push_consumer(Some(&consumer), &rated(&[(20, 2)]));
    again.expect("its own");
    assert_eq!(connect().map(drop), no_room);

    let (other, _sets) = world.consumer();
    let others = world.proxy_supplier();
    let connected = others.connect_push_consumer(Some(&other), &rated(&[(20, 2)]));
    connected.expect("another share");
    held[0].disconnect_push_supplier().expect("it leaves");
    connect().expect("room again");
    assert_eq!(connect().map(drop), no_room, "the others hold theirs");
    assert_eq!(world.served.counts().refused, 3);
    world.end();
    stranger.shutdown(true).expect("it ends");
}

#[test]
fn refused_consumer_leaves_no_dependency_behind() {
    // The last operation has no rate before a consumer with its handle connects.
    let all = [("read", 2, 50), ("draw", 60, 120), ("track", 22, 0)];
    for is_own in [true, false] {
        let orb = serving_orb();
        let service = service(&orb, Strategy::Rms, &all);
        let scheduler = service.reference().clone();
        let scheduling = if is_own {
            Scheduling::of_service(&service, RANGE)
        } else {
            Scheduling::of_reference(scheduler.object(), RANGE)
        };
        let world = scheduled(orb, scheduling);
        let supplier = world.proxy_consumer();
        supplier
            .connect_push_supplier(None, &published(&[(20, 1)]))
            .unwrap();
        let (consumer, _sets) = world.consumer();
        let refused = world
            .proxy_supplier()
            .connect_push_consumer(Some(&consumer), &rated(&[(20, 3)]));
        let kind = deckwatch_orb::SystemExceptionKind::NoResources;
        let minor = deckwatch_orb::own_minor::SCHEDULE_INFEASIBLE;
        match refused {
            Err(ProxyPushSupplierConnectPushConsumerError::System(exception)) => {
                assert_eq!((exception.kind, exception.minor), (kind, minor), "{is_own}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(world.served.counts().refused_by_schedule, 1);
        assert_eq!(scheduler.get_dependency_set().unwrap(), []);
        world.end();
    }
}

#[test]
fn same_consumer_with_another_rt_info_gets_its_events_at_the_new_priority() {
    // No other test has delivery threads of these priorities.
    let (slow, fast) = (NativePriority(31), NativePriority(32));
    real_time_as(deckwatch_os::schedule::Class::Fifo(33), move || {
        let orb = serving_orb();
        let service = service(&orb, Strategy::Rms, &[("fast", 1, 10), ("slow", 2, 100)]);
        let world = scheduled(orb, Scheduling::of_service(&service, (slow, fast)));
        let (consumer, sets) = world.consumer();
        let proxy = world.proxy_supplier();
        for (handle, native) in [(1, fast), (2, slow)] {
            proxy
                .connect_push_consumer(Some(&consumer), &rated(&[(20, handle)]))
                .expect("it connects");
            let thread = format!("delivery-{}", corba(native.0).value());
            wait_for(|| !classes_of(&thread).is_empty());
        }
        let supplier = world.supply(&[(1, 20)]);
        supplier.push(&[event(1, 20, "once")]).unwrap();
        assert_eq!(next(&sets), ["once"]);
        assert!(sets.try_recv().is_err());
        world.end();
    });
}

/// Takes more processor time than the worst case of the operation that reports it.
fn busy() {
    let end_ns = deckwatch_os::clock::thread_cpu_ns() + 2_000_000;
    while deckwatch_os::clock::thread_cpu_ns() < end_ns {
        std::hint::spin_loop();
    }
}

#[test]
fn consumer_that_may_only_consume_reports_the_times_of_its_own_dependencies_to_its_proxy() {
    for is_own in [true, false] {
        let orb = serving_orb();
        let options = SchedulerOptions::default();
        let table = access(vec![rule("127.0.0.3", &[Action::Administer], None)]);
        let declared = operations(&[("read", 2, 50), ("track", 1, 0), ("draw", 5, 100)]);
        let service = SchedulingService::start_with(&orb, options, declared, table).unwrap();
        // The calls of the channel do not leave the ORB: the table of the service is not asked.
        let scheduling = if is_own {
            Scheduling::of_service(&service, RANGE)
        } else {
            Scheduling::of_reference(service.reference().object(), RANGE)
        };
        let mut options = options_of(&orb, scheduling);
        let may = |action| rule("127.0.0.1", &[action], Some((20, 20)));
        options.access = access(vec![may(Action::Supply), may(Action::Consume)]);
        let world = World::of(orb, options);
        let supplier = world.proxy_consumer();
        let connected = supplier.connect_push_supplier(None, &published(&[(20, 1)]));
        connected.expect("permitted");
        let (proxy, sets) = world.connect(&rated(&[(20, 2)]));
        supplier.push(&[event(1, 20, "once")]).unwrap();
        assert_eq!(next(&sets), ["once"]);

        // Nothing but its own operation, and not by the service's own object.
        let at_service = seen_by(&world.user, &world.server, service.reference().object());
        let refused = ReportedHandler::find(&at_service, "track").expect_err("not permitted");
        assert!(
            matches!(refused, SchedulerLookupError::System(it) if it.kind == Kind::NoPermission)
        );
        let worst_case = Duration::from_millis(1);
        let of = |handle| {
            let handler = ReportedHandler::of_dependency(proxy.object(), handle, worst_case);
            handler.times().measure(busy);
            handler
        };
        for other in [0, 1, 3, 99] {
            let refused = of(other).report();
            assert!(
                matches!(refused, Err(ReportError::UNKNOWNTASK(_))),
                "{other}"
            );
        }
        of(2).report().expect("its own");
        let many = ReportedTimesRef::unchecked_narrow(proxy.object().clone());
        let own = ExecutionTimes {
            handle: 2,
            worst_case_ns: MS,
            ..ExecutionTimes::default()
        };
        let as_many = vec![own; 2];
        many.report_execution_times(&as_many)
            .expect("the group and its entry");
        let more = vec![ExecutionTimes::default(); 3];
        assert!(matches!(
            many.report_execution_times(&more),
            Err(ReportError::System(it)) if it.kind == Kind::BadParam
        ));
        let overruns = service.overruns();
        let exceeded = overruns
            .iter()
            .map(|(name, times)| (&name[..], times.exceeded));
        assert_eq!(exceeded.collect::<Vec<_>>(), [("track", 1)]);

        // Its own counters, as well; those of all are refused.
        let own = ConsumerStatusRef::narrow(proxy.object()).unwrap();
        let own = own
            .expect("it is served beside the proxy")
            .report()
            .unwrap();
        assert_eq!((own.delivered, own.dropped), (1, 0));
        let all = ChannelStatusRef::unchecked_narrow(world.channel.object().clone());
        assert_eq!(
            all.report().expect_err("not permitted").kind,
            Kind::NoPermission
        );
        proxy.disconnect_push_supplier().expect("it leaves");
        assert!(of(2).report().is_err());
        world.end();
    }
}
