//! The operations of the scheduling service that read and change sets of operations and of dependencies.

use super::{MS, declare, served, set};
use crate::support::serving_orb;
use deckwatch_event::rtec_base::{DependencyEnabledTypeT, DependencyInfo, DependencyTypeT};
use deckwatch_event::rtec_scheduler::{
    CriticalityT, DispatchingTypeT, ImportanceT, InfoTypeT, RTInfo, RTInfoEnableStatePair,
    RTInfoEnabledTypeT, SchedulerComputeSchedulingError, SchedulerRef, SchedulerSetSeqError,
};
use deckwatch_event::{SchedulerOptions, SchedulingService};
use deckwatch_sched::Operations;

fn info(handle: i32, cost_ms: u64, period_ms: i32) -> RTInfo {
    RTInfo {
        handle,
        criticality: CriticalityT::VeryHighCriticality,
        worst_case_execution_time: cost_ms * MS,
        typical_execution_time: cost_ms * MS / 2,
        cached_execution_time: cost_ms * MS / 4,
        period: period_ms * MS as i32,
        importance: ImportanceT::MediumImportance,
        quantum: 9,
        threads: 3,
        info_type: InfoTypeT::Conjunction,
        ..RTInfo::default()
    }
}

/// What a client sets of an operation.
fn declared(scheduler: &SchedulerRef, handle: i32) -> RTInfo {
    let there = scheduler.get(handle).unwrap();
    RTInfo {
        entry_point: String::new(),
        enabled: RTInfoEnabledTypeT::default(),
        priority: 0,
        preemption_subpriority: 0,
        preemption_priority: 0,
        ..there
    }
}

fn state(scheduler: &SchedulerRef, handle: i32) -> RTInfoEnabledTypeT {
    scheduler.get(handle).unwrap().enabled
}

#[test]
fn attributes_of_many_operations_are_set_together_or_not_at_all() {
    let served = served(SchedulerOptions::default());
    let scheduler = &served.scheduler;
    let (first, second) = (
        declare(scheduler, "first", 1, 10),
        declare(scheduler, "second", 1, 20),
    );
    let sets = [info(first, 4, 40), info(second, 8, 80)];
    scheduler.set_seq(&sets).unwrap();
    assert_eq!(declared(scheduler, first), sets[0]);
    assert_eq!(declared(scheduler, second), sets[1]);
    let unknown = scheduler.set_seq(&[info(first, 1, 10), info(99, 1, 10)]);
    assert!(matches!(unknown, Err(SchedulerSetSeqError::UNKNOWNTASK(_))));
    assert_eq!(declared(scheduler, first), sets[0]);

    let alone = info(first, 2, 20);
    scheduler
        .set(
            alone.handle,
            alone.criticality,
            alone.worst_case_execution_time,
            alone.typical_execution_time,
            alone.cached_execution_time,
            alone.period,
            alone.importance,
            alone.quantum,
            alone.threads,
            alone.info_type,
        )
        .unwrap();
    assert_eq!(declared(scheduler, first), alone);

    let again = [info(first, 12, 120), info(second, 16, 160)];
    scheduler.reset_seq(&again).unwrap();
    assert_eq!(declared(scheduler, first), again[0]);
    assert_eq!(declared(scheduler, second), again[1]);

    let one = info(second, 20, 200);
    scheduler
        .reset(
            one.handle,
            one.criticality,
            one.worst_case_execution_time,
            one.typical_execution_time,
            one.cached_execution_time,
            one.period,
            one.importance,
            one.quantum,
            one.threads,
            one.info_type,
        )
        .unwrap();
    assert_eq!(declared(scheduler, second), one);
    let entry_points = [first, second].map(|of| scheduler.get(of).unwrap().entry_point);
    assert_eq!(entry_points, ["first", "second"]);
}

#[test]
fn replaced_set_disables_what_it_does_not_name_but_for_what_is_not_volatile() {
    use RTInfoEnabledTypeT::{RtInfoDisabled, RtInfoEnabled, RtInfoNonVolatile};
    let served = served(SchedulerOptions::default());
    let scheduler = &served.scheduler;
    let names = ["left out", "kept", "stays", "disabled"];
    let [left_out, kept, stays, disabled] = names.map(|name| declare(scheduler, name, 1, 10));
    scheduler
        .set_rt_info_enable_state(stays, RtInfoNonVolatile)
        .unwrap();
    scheduler
        .set_rt_info_enable_state(disabled, RtInfoDisabled)
        .unwrap();
    let sets = [info(kept, 4, 40), info(disabled, 8, 80)];
    scheduler.replace_seq(&sets).unwrap();
    let states = [left_out, kept, stays, disabled].map(|of| state(scheduler, of));
    assert_eq!(
        states,
        [
            RtInfoDisabled,
            RtInfoEnabled,
            RtInfoNonVolatile,
            RtInfoEnabled
        ]
    );
    assert_eq!(declared(scheduler, kept), sets[0]);
    assert_eq!(declared(scheduler, disabled), sets[1]);
    assert_eq!(declared(scheduler, stays).worst_case_execution_time, MS);
    assert_eq!(declared(scheduler, left_out).worst_case_execution_time, 0);
    // A non-volatile RT_Info keeps its state also when the call names it.
    scheduler.replace_seq(&[info(stays, 2, 20)]).unwrap();
    assert_eq!(state(scheduler, stays), RtInfoNonVolatile);
    assert_eq!(declared(scheduler, stays), info(stays, 2, 20));
}

#[test]
fn states_of_many_operations_are_set_together() {
    use RTInfoEnabledTypeT::{RtInfoDisabled, RtInfoEnabled, RtInfoNonVolatile};
    let served = served(SchedulerOptions::default());
    let scheduler = &served.scheduler;
    let [first, second, third] =
        ["first", "second", "third"].map(|name| declare(scheduler, name, 1, 10));
    let pair = |handle, enabled| RTInfoEnableStatePair { handle, enabled };
    scheduler
        .set_rt_info_enable_state_seq(&[
            pair(first, RtInfoDisabled),
            pair(third, RtInfoNonVolatile),
        ])
        .unwrap();
    let states = [first, second, third].map(|of| state(scheduler, of));
    assert_eq!(states, [RtInfoDisabled, RtInfoEnabled, RtInfoNonVolatile]);
    // A disabled RT_Info is not scheduled.
    scheduler.compute_scheduling(1, 99).unwrap();
    assert!(scheduler.priority(first).is_err());
    assert!(scheduler.priority(second).is_ok());
}

#[test]
fn states_of_many_dependencies_are_set_together() {
    use DependencyEnabledTypeT::{DependencyDisabled, DependencyEnabled, DependencyNonVolatile};
    let served = served(SchedulerOptions::default());
    let scheduler = &served.scheduler;
    let one_way = DependencyTypeT::OneWayCall;
    let [on, first, second, third] =
        ["on", "first", "second", "third"].map(|name| declare(scheduler, name, 1, 100));
    for of in [first, second, third] {
        scheduler.add_dependency(of, on, 1, one_way).unwrap();
    }
    let changed = |of, enabled| DependencyInfo {
        dependency_type: one_way,
        number_of_calls: 1,
        rt_info: of,
        rt_info_depended_on: on,
        enabled,
    };
    scheduler
        .set_dependency_enable_state_seq(&[
            changed(first, DependencyDisabled),
            changed(third, DependencyNonVolatile),
        ])
        .unwrap();
    assert_eq!(
        scheduler.get_dependency_set().unwrap(),
        [
            changed(first, DependencyDisabled),
            changed(second, DependencyEnabled),
            changed(third, DependencyNonVolatile),
        ]
    );
}

#[test]
fn sets_are_read_before_and_after_a_schedule_is_computed() {
    let served = served(SchedulerOptions::default());
    let scheduler = &served.scheduler;
    assert_eq!(scheduler.get_rt_info_set().unwrap(), []);
    assert_eq!(scheduler.get_config_info_set().unwrap(), []);
    let fast = declare(scheduler, "fast", 3, 7);
    let slow = declare(scheduler, "slow", 5, 20);
    let all = scheduler.get_rt_info_set().unwrap();
    let handles: Vec<_> = all.iter().map(|one| (one.handle, one.priority)).collect();
    assert_eq!(handles, [(fast, 0), (slow, 0)]);
    assert_eq!(scheduler.get_config_info_set().unwrap(), []);

    scheduler.compute_scheduling(1, 99).unwrap();
    let all = scheduler.get_rt_info_set().unwrap();
    assert_eq!(all, [fast, slow].map(|of| scheduler.get(of).unwrap()));
    assert_eq!([all[0].priority, all[1].priority], [99, 98]);
    let configs = scheduler.get_config_info_set().unwrap();
    assert_eq!(configs, scheduler.get_config_infos().unwrap());
    let queues = configs.iter().map(|one| {
        (
            one.preemption_priority,
            one.thread_priority,
            one.dispatching_type,
        )
    });
    let fifo = DispatchingTypeT::StaticDispatching;
    assert_eq!(queues.collect::<Vec<_>>(), [(0, 99, fifo), (1, 98, fifo)]);
    // The set of queues stays that of the last schedule; the queues of the present one are unknown.
    set(scheduler, fast, 2, 7).unwrap();
    assert_eq!(scheduler.get_config_info_set().unwrap(), configs);
    assert!(scheduler.get_config_infos().is_err());
    assert_eq!(served.service.counts().operations, 2);
}

#[test]
fn schedule_for_other_priorities_replaces_the_last_one() {
    let served = served(SchedulerOptions::default());
    let scheduler = &served.scheduler;
    let only = declare(scheduler, "only", 3, 7);
    scheduler.compute_scheduling(1, 99).unwrap();
    scheduler.compute_scheduling(1, 50).unwrap();
    assert_eq!(scheduler.priority(only), Ok((50, 0, 0)));
    assert_eq!(scheduler.last_scheduled_priority(), Ok(0));
    assert_eq!(served.service.counts().computed, 2);
}

#[test]
fn entry_point_that_is_too_long_is_a_bad_parameter() {
    use deckwatch_event::rtec_scheduler::SchedulerCreateError;
    use deckwatch_orb::SystemExceptionKind as Kind;
    let served = served(SchedulerOptions::default());
    let name = "x".repeat(deckwatch_sched::limits::ENTRY_POINT_BYTES_MAX + 1);
    match served.scheduler.create(&name) {
        Err(SchedulerCreateError::System(refused)) => assert_eq!(refused.kind, Kind::BadParam),
        other => panic!("{other:?}"),
    }
    served.scheduler.create(&name[1..]).unwrap();
}

#[test]
fn circle_of_operations_computes_no_schedule_that_is_taken_for_sound() {
    let served = served(SchedulerOptions::default());
    let scheduler = &served.scheduler;
    let first = declare(scheduler, "first", 1, 10);
    let second = declare(scheduler, "second", 1, 0);
    let two_way = DependencyTypeT::TwoWayCall;
    scheduler.add_dependency(first, second, 1, two_way).unwrap();
    scheduler.add_dependency(second, first, 1, two_way).unwrap();
    match scheduler.compute_scheduling(1, 99) {
        Ok((.., anomalies)) => assert!(!anomalies.is_empty()),
        Err(SchedulerComputeSchedulingError::INTERNAL(_)) => {}
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn full_schedule_takes_no_more_operations() {
    use deckwatch_event::rtec_scheduler::SchedulerCreateError;
    use deckwatch_orb::{SystemExceptionKind as Kind, own_minor};
    use deckwatch_sched::limits::OPERATIONS_MAX;
    let mut operations = Operations::default();
    for number in 0..OPERATIONS_MAX {
        operations.create(&number.to_string()).unwrap();
    }
    let orb = serving_orb();
    let options = SchedulerOptions::default();
    let service = SchedulingService::start_with(&orb, options, operations, None).unwrap();
    match service.reference().create("one more") {
        Err(SchedulerCreateError::System(full)) => assert_eq!(
            (full.kind, full.minor),
            (Kind::NoResources, own_minor::SCHEDULE_FULL)
        ),
        other => panic!("{other:?}"),
    }
    orb.shutdown(true).expect("it ends");
}

#[test]
fn removed_dependency_frees_the_place_of_the_peer_that_declared_it() {
    let mut operations = Operations::default();
    let [of, on] = ["of", "on"].map(|name| operations.create(name).unwrap());
    let dependency = |calls| deckwatch_sched::Dependency {
        on,
        kind: deckwatch_sched::CallKind::OneWay,
        calls,
        enabled: deckwatch_sched::Enabled::Enabled,
    };
    // The declarations of the start take no place of a peer's share.
    operations.add_dependency(of, dependency(2)).unwrap();
    let orb = serving_orb();
    let options = SchedulerOptions {
        share_percent: 1,
        ..SchedulerOptions::default()
    };
    let service = SchedulingService::start_with(&orb, options, operations, None).unwrap();
    let stranger = crate::shares::stranger();
    let object = crate::support::seen_by(&stranger, &orb, service.reference().object());
    let scheduler = SchedulerRef::unchecked_narrow(object);
    let one_way = DependencyTypeT::OneWayCall;
    let add = || scheduler.add_dependency(1, 2, 1, one_way);
    while add().is_ok() {}
    scheduler.remove_dependency(1, 2, 2, one_way).unwrap();
    assert!(add().is_err(), "it was not the peer's own");
    scheduler.remove_dependency(1, 2, 1, one_way).unwrap();
    add().unwrap();
    assert!(add().is_err());
    stranger.shutdown(true).expect("it ends");
    orb.shutdown(true).expect("it ends");
}
