//! Dependencies that a channel declares to a schedule, and those of others that it leaves alone.

use std::collections::HashMap;

use super::*;
use deckwatch_event::rt::RtInfo as Urgency;
use deckwatch_event::rtec_base::{DependencyEnabledTypeT, DependencyTypeT};
use deckwatch_event::rtec_scheduler::SchedulerRef;
use deckwatch_orb::exception_detail;

/// A channel whose schedule is read in this process, or by references.
fn world_of(service: &SchedulingService, orb: Orb, is_own: bool) -> World {
    scheduled(orb, scheduling_of(service, is_own))
}

fn scheduling_of(service: &SchedulingService, is_own: bool) -> Scheduling {
    if is_own {
        Scheduling::of_service(service, RANGE)
    } else {
        Scheduling::of_reference(service.reference().object(), RANGE)
    }
}

#[test]
fn dependency_that_a_client_has_declared_is_not_declared_again_and_stays() {
    let all = [("read", 2, 50), ("track", 1, 0)];
    for is_own in [true, false] {
        // The same dependency, and one that is switched off.
        for (is_enabled, count) in [(true, 1), (false, 2)] {
            let orb = serving_orb();
            let service = service(&orb, Strategy::Rms, &all);
            let scheduler = service.reference().clone();
            let one_way = DependencyTypeT::OneWayCall;
            scheduler.add_dependency(2, 1, 1, one_way).unwrap();
            if !is_enabled {
                let off = DependencyEnabledTypeT::DependencyDisabled;
                let changed = scheduler.set_dependency_enable_state(2, 1, 1, one_way, off);
                changed.unwrap();
            }
            let before = scheduler.get_dependency_set().unwrap();
            let world = world_of(&service, orb, is_own);
            let supplier = world.proxy_consumer();
            let connected = supplier.connect_push_supplier(None, &published(&[(20, 1)]));
            connected.expect("it connects");
            let (proxy, _sets) = world.connect(&rated(&[(20, 2)]));
            let declared = scheduler.get_dependency_set().unwrap().len();
            assert_eq!(declared, count, "{is_enabled}, {is_own}");
            proxy.disconnect_push_supplier().expect("it leaves");
            // What a client needed is taken back before the next one connects.
            let _next = world.connect(&rated(&[(21, 2)]));
            let left = scheduler.get_dependency_set().unwrap();
            assert_eq!(left, before, "{is_enabled}, {is_own}");
            world.end();
        }
    }
}

#[test]
fn supplier_that_connects_later_makes_consumers_depend_on_it() {
    let orb = serving_orb();
    let service = service(&orb, Strategy::Rms, &[("read", 2, 50), ("track", 1, 0)]);
    let scheduler = service.reference().clone();
    let world = world_of(&service, orb, true);
    let (_consumer, sets) = world.connect(&rated(&[(20, 2)]));
    assert_eq!(scheduler.get_dependency_set().unwrap(), []);
    let supplier = world.proxy_consumer();
    let connected = supplier.connect_push_supplier(None, &published(&[(20, 1), (22, 2)]));
    connected.expect("it connects");
    let edges = scheduler.get_dependency_set().unwrap();
    let edges = edges
        .iter()
        .map(|one| (one.rt_info, one.rt_info_depended_on));
    assert_eq!(edges.collect::<Vec<_>>(), [(2, 1)]);
    supplier.push(&[event(1, 20, "once")]).unwrap();
    assert_eq!(next(&sets), ["once"]);
    supplier.disconnect_push_consumer().unwrap();
    let _next = world.connect(&rated(&[(21, 2)]));
    assert_eq!(scheduler.get_dependency_set().unwrap(), []);
    world.end();
}

#[test]
fn operation_does_not_depend_on_itself_nor_on_what_has_no_rt_info() {
    let orb = serving_orb();
    let service = service(&orb, Strategy::Rms, &[("read", 2, 50), ("track", 1, 0)]);
    let scheduler = service.reference().clone();
    let world = world_of(&service, orb, true);
    let supplier = world.proxy_consumer();
    let connected = supplier.connect_push_supplier(None, &published(&[(20, 1), (21, 0)]));
    connected.expect("it connects");
    let (_own, sets) = world.connect(&rated(&[(20, 1)]));
    let _unrated = world.connect(&rated(&[(20, 0), (21, 2)]));
    assert_eq!(scheduler.get_dependency_set().unwrap(), []);
    supplier.push(&[event(1, 20, "once")]).unwrap();
    assert_eq!(next(&sets), ["once"]);
    world.end();
}

#[test]
fn why_a_schedule_has_refused_a_connect_is_said_to_the_caller_and_once_to_the_operator() {
    // The last operation has no rate before a consumer with its handle connects.
    let all = [("read", 2, 50), ("draw", 60, 120), ("track", 22, 0)];
    for is_own in [true, false] {
        let orb = serving_orb();
        let service = service(&orb, Strategy::Rms, &all);
        let world = world_of(&service, orb, is_own);
        let supplier = world.proxy_consumer();
        let connected = supplier.connect_push_supplier(None, &published(&[(20, 1)]));
        connected.expect("it connects");
        let (consumer, _sets) = world.consumer();
        let connect = |handle| {
            let proxy = world.proxy_supplier();
            proxy.connect_push_consumer(Some(&consumer), &rated(&[(20, handle)]))
        };
        let infeasible = refused(connect(3));
        let words = exception_detail(&infeasible).expect("words");
        assert!(
            words.contains("utilisation") || words.contains("deadline"),
            "{words}"
        );
        assert_eq!(
            words.contains("RT_Info 3 depends on 1: "),
            !is_own,
            "{words}"
        );
        let unknown = refused(connect(99));
        assert_eq!(
            (unknown.kind, unknown.minor),
            (Kind::BadParam, own_minor::RT_INFO_UNKNOWN)
        );
        let of_handle = exception_detail(&unknown).expect("words");
        assert!(of_handle.contains("no RT_Info 99"), "{of_handle}");
        assert_eq!(world.served.take_unadmitted(), [words, of_handle]);
        assert_eq!(world.served.take_unadmitted(), [""; 0]);
        assert_eq!(world.served.counts().refused_by_schedule, 2);
        world.end();
    }
}

#[test]
fn last_refusals_of_a_schedule_are_kept() {
    let orb = serving_orb();
    let service = service(&orb, Strategy::Rms, &[("read", 2, 50)]);
    let world = world_of(&service, orb, true);
    let (consumer, _sets) = world.consumer();
    let proxy = world.proxy_supplier();
    let more = limits::UNADMITTED_KEPT_MAX as i32 + 2;
    for handle in 100..100 + more {
        let connected = proxy.connect_push_consumer(Some(&consumer), &rated(&[(20, handle)]));
        assert_eq!(refused(connected).kind, Kind::BadParam);
    }
    let kept = world.served.take_unadmitted();
    assert_eq!(kept.len(), limits::UNADMITTED_KEPT_MAX);
    assert!(kept[0].contains("no RT_Info 102"), "{}", kept[0]);
    assert_eq!(world.served.counts().refused_by_schedule, more as u64);
    world.end();
}

#[test]
fn scheduler_that_is_gone_refuses_with_its_own_exception() {
    let (orb, other) = (serving_orb(), serving_orb());
    let service = service(&other, Strategy::Rms, &[("read", 2, 50), ("track", 1, 0)]);
    let scheduler = seen_by(&orb, &other, service.reference().object());
    let scheduling = Scheduling::of_reference(&scheduler, RANGE);
    assert!(
        format!("{scheduling:?}").contains("\"other\""),
        "{scheduling:?}"
    );
    let world = scheduled(orb, scheduling.clone());
    other.shutdown(true).expect("it ends");
    let (consumer, _sets) = world.consumer();
    let proxy = world.proxy_supplier();
    let gone = refused(proxy.connect_push_consumer(Some(&consumer), &rated(&[(20, 2)])));
    assert!(
        matches!(gone.kind, Kind::CommFailure | Kind::Transient),
        "{gone:?}"
    );
    match scheduling.lanes(&world.server, queue()) {
        Err(SchedulingError::Scheduler(raised)) => assert_eq!(raised.kind, gone.kind),
        other => panic!("{other:?}"),
    }
    world.end();
}

#[test]
fn fixed_rt_infos_choose_lanes_and_admit_every_connect() {
    let priority = |value| Priority::new(value).expect("a priority");
    let urgency = |value| Urgency {
        priority: priority(value),
        deadline: Duration::from_millis(10),
        worst_case: Duration::from_millis(1),
    };
    let infos = HashMap::from([(1, urgency(5)), (2, urgency(9))]);
    let world = World::with(RtChannelOptions {
        dispatching: Dispatching::Lanes(vec![lane(5), lane(9)]),
        allow_priority_fallback: true,
        scheduling: Some(Scheduling::fixed(infos)),
        ..RtChannelOptions::default()
    });
    let (proxy, sets) = world.connect(&rated(&[(20, 1), (21, 2)]));
    let supplier = world.supply(&[]);
    for (event_type, sent) in [(20, [1, 0]), (21, [1, 1])] {
        supplier.push(&[event(1, event_type, "a")]).unwrap();
        assert_eq!(next(&sets), ["a"]);
        wait_for(|| dispatched(&world) == sent);
    }
    let (consumer, _sets) = world.consumer();
    let other = world.proxy_supplier();
    let unknown = refused(other.connect_push_consumer(Some(&consumer), &rated(&[(20, 3)])));
    assert_eq!(
        (unknown.kind, unknown.minor),
        (Kind::BadParam, own_minor::RT_INFO_UNKNOWN)
    );
    let handler = ReportedHandler::of_dependency(proxy.object(), 1, Duration::from_millis(1));
    handler.times().measure(busy);
    assert!(matches!(handler.report(), Err(ReportError::UNKNOWNTASK(_))));
    world.end();
}

#[test]
fn errors_of_a_schedule_say_what_to_do() {
    let raised = SystemException::new(Kind::CommFailure, 0, deckwatch_orb::Completion::No);
    for (error, words) in [
        (
            SchedulingError::Infeasible(vec!["a".to_owned(), "b".to_owned()]),
            "A deadline can be missed: a; b. `deckwatch schedule FILE`",
        ),
        (
            SchedulingError::NothingScheduled,
            "Declare an operation with a period",
        ),
        (SchedulingError::TooFewPriorities, "Give a wider range"),
        (
            SchedulingError::Unmapped(NativePriority(7)),
            "the native priority 7",
        ),
        (SchedulingError::Scheduler(raised), "COMM_FAILURE"),
    ] {
        let said = error.to_string();
        assert!(said.contains(words), "{said}");
    }
    let names = [
        QueueOrder::Arrival,
        QueueOrder::Deadline,
        QueueOrder::Laxity,
    ]
    .map(QueueOrder::name);
    assert_eq!(names, ["arrival", "deadline", "laxity"]);
    let names = deckwatch_event::rt::Loss::ALL.map(deckwatch_event::rt::Loss::name);
    assert_eq!(names[0], "queue full");
    assert_eq!(std::collections::BTreeSet::from(names).len(), names.len());
}

#[test]
fn schedule_of_a_service_that_refuses_nothing_is_checked_by_the_channel() {
    let all = [
        ("read", 20, 50),
        ("draw", 60, 105),
        ("track", 1, 0),
        ("log", 0, 0),
    ];
    let orb = serving_orb();
    let options = SchedulerOptions {
        settings: Settings {
            strategy: Strategy::Rms,
            ..Settings::default()
        },
        ..SchedulerOptions::default()
    };
    let service = SchedulingService::start_with(&orb, options, operations(&all), None).unwrap();
    let scheduler = service.reference().clone();
    let world = world_of(&service, orb, false);
    let supplier = world.proxy_consumer();
    let connected = supplier.connect_push_supplier(None, &published(&[(20, 1)]));
    connected.expect("it connects");
    let (consumer, _sets) = world.consumer();
    let connect = |handle| {
        let proxy = world.proxy_supplier();
        proxy.connect_push_consumer(Some(&consumer), &rated(&[(20, handle)]))
    };
    let infeasible = refused(connect(3));
    assert_eq!(
        (infeasible.kind, infeasible.minor),
        (Kind::NoResources, own_minor::SCHEDULE_INFEASIBLE)
    );
    let words = exception_detail(&infeasible).expect("words");
    assert!(words.starts_with("draw: "), "{words}");
    assert_eq!(scheduler.get_dependency_set().unwrap(), []);

    // A client makes the schedule miss a deadline: that refuses nobody who changes nothing of it.
    let mut draw = scheduler.get(2).unwrap();
    draw.worst_case_execution_time = 620_000;
    scheduler.set_seq(&[draw]).unwrap();
    connect(4).expect("it costs nothing");
    assert_eq!(scheduler.get_dependency_set().unwrap().len(), 1);
    assert_eq!(refused(connect(3)).kind, Kind::NoResources);
    world.end();
}

#[test]
fn exception_of_a_foreign_scheduler_for_a_dependency_reaches_the_consumer() {
    let (orb, other) = (serving_orb(), serving_orb());
    let declared = operations(&[("read", 2, 50), ("track", 1, 0), ("log", 0, 0)]);
    let options = SchedulerOptions {
        share_percent: 1,
        ..SchedulerOptions::default()
    };
    let service = SchedulingService::start_with(&other, options, declared, None).unwrap();
    let object = seen_by(&orb, &other, service.reference().object());
    let scheduler = SchedulerRef::unchecked_narrow(object.clone());
    let world = scheduled(orb, Scheduling::of_reference(&object, RANGE));
    // The peer takes its share.
    let one_way = DependencyTypeT::OneWayCall;
    while scheduler.add_dependency(3, 1, 1, one_way).is_ok() {}
    let supplier = world.proxy_consumer();
    let connected = supplier.connect_push_supplier(None, &published(&[(20, 1)]));
    connected.expect("it connects");
    let (consumer, _sets) = world.consumer();
    let proxy = world.proxy_supplier();
    let full = refused(proxy.connect_push_consumer(Some(&consumer), &rated(&[(20, 2)])));
    assert_eq!(
        (full.kind, full.minor),
        (Kind::ImpLimit, own_minor::SCHEDULE_SHARE_FULL)
    );
    world.end();
    other.shutdown(true).expect("it ends");
}
