//! The scheduling service over connections: off-line schedules, admission at run time, and its exceptions.

mod sets;

use crate::access::rule;
use crate::shares::stranger;
use crate::support::{seen_by, serving_orb};
use deckwatch_access::{Action, Rule, Table};
use deckwatch_event::deckwatch_scheduling::{
    ExecutionTimes, MeasuredTimesRef, ReportedTimesReportExecutionTimesError,
};
use deckwatch_event::handler_times::ReportedHandler;
use deckwatch_event::rtec_base::{DependencyEnabledTypeT, DependencyTypeT};
use deckwatch_event::rtec_scheduler::{
    AnomalySeverity, CriticalityT, DispatchingTypeT, ImportanceT, InfoTypeT, NOTSCHEDULED,
    RTInfoEnabledTypeT, SchedulerAddDependencyError, SchedulerComputeSchedulingError,
    SchedulerCreateError, SchedulerDispatchConfigurationError, SchedulerLookupError,
    SchedulerPriorityError, SchedulerRef, SchedulerSetError,
};
use deckwatch_event::{Access, SchedulerOptions, SchedulingService};
use deckwatch_orb::{Orb, SystemExceptionKind as Kind, exception_detail, own_minor};
use deckwatch_sched::limits::{DEPENDENCIES_MAX, OPERATIONS_MAX};
use deckwatch_sched::{Operations, Settings, Strategy};

struct Served {
    server: Orb,
    _client: Orb,
    service: SchedulingService,
    scheduler: SchedulerRef,
}

fn served(options: SchedulerOptions) -> Served {
    let server = serving_orb();
    let service = SchedulingService::start(&server, options).unwrap();
    let client = Orb::builder().build().unwrap();
    let ior = server.object_to_string(service.reference().object());
    let reference = client.string_to_object(&ior).unwrap();
    Served {
        scheduler: SchedulerRef::unchecked_narrow(reference.unwrap()),
        server,
        _client: client,
        service,
    }
}

/// Milliseconds in the wire's unit.
const MS: u64 = 10_000;

fn declare(scheduler: &SchedulerRef, name: &str, cost_ms: u64, period_ms: i32) -> i32 {
    let handle = scheduler.create(name).unwrap();
    set(scheduler, handle, cost_ms, period_ms).unwrap();
    handle
}

fn set(
    scheduler: &SchedulerRef,
    handle: i32,
    cost_ms: u64,
    period_ms: i32,
) -> Result<(), SchedulerSetError> {
    scheduler.set(
        handle,
        CriticalityT::HighCriticality,
        cost_ms * MS,
        cost_ms * MS / 2,
        0,
        period_ms * MS as i32,
        ImportanceT::LowImportance,
        7,
        0,
        InfoTypeT::Operation,
    )
}

#[test]
fn a_schedule_is_computed_off_line_and_asked_for_at_run_time() {
    let served = served(SchedulerOptions::default());
    let scheduler = &served.scheduler;
    let fast = declare(scheduler, "fast", 3, 7);
    let slow = declare(scheduler, "slow", 5, 20);
    let consumer = declare(scheduler, "consumer", 1, 0);
    scheduler
        .add_dependency(consumer, slow, 1, DependencyTypeT::OneWayCall)
        .unwrap();
    assert_eq!(scheduler.lookup("slow"), Ok(slow));
    assert!(matches!(
        scheduler.priority(fast),
        Err(SchedulerPriorityError::NOTSCHEDULED(NOTSCHEDULED))
    ));
    let (infos, dependencies, configs, anomalies) = scheduler.compute_scheduling(1, 99).unwrap();
    assert_eq!(
        (infos.len(), dependencies.len(), anomalies.len()),
        (3, 1, 0)
    );
    assert_eq!(dependencies[0].rt_info_depended_on, slow);
    assert_eq!(configs.len(), 2);
    assert_eq!(
        configs[1].dispatching_type,
        DispatchingTypeT::StaticDispatching
    );
    assert_eq!(configs[1].timer_periods, [20 * MS as i32]);
    assert_eq!(scheduler.priority(fast), Ok((99, 0, 0)));
    assert_eq!(scheduler.priority(slow), Ok((98, 0, 1)));
    assert_eq!(scheduler.entry_point_priority("consumer"), Ok((98, 1, 1)));
    assert_eq!(
        scheduler.dispatch_configuration(1),
        Ok((98, DispatchingTypeT::StaticDispatching))
    );
    assert!(matches!(
        scheduler.dispatch_configuration(2),
        Err(SchedulerDispatchConfigurationError::UNKNOWNPRIORITYLEVEL(_))
    ));
    assert_eq!(scheduler.last_scheduled_priority(), Ok(1));
    let info = scheduler.get(slow).unwrap();
    assert_eq!(info.worst_case_execution_time, 5 * MS);
    assert_eq!((info.period, info.quantum), (20 * MS as i32, 7));
    assert_eq!(info.importance, ImportanceT::LowImportance);
    assert_eq!((info.priority, info.preemption_priority), (98, 1));
    assert_eq!(info.enabled, RTInfoEnabledTypeT::RtInfoEnabled);
    assert_eq!(served.service.counts().computed, 1);
    // The same again is no computation; a change makes the schedule old.
    scheduler.recompute_scheduling(1, 99).unwrap();
    assert_eq!(served.service.counts().computed, 1);
    set(scheduler, fast, 2, 7).unwrap();
    assert!(scheduler.priority(fast).is_err());
}

#[test]
fn what_cannot_be_scheduled_is_an_anomaly_or_an_exception() {
    let served = served(SchedulerOptions::default());
    let scheduler = &served.scheduler;
    let first = declare(scheduler, "first", 3, 7);
    assert!(matches!(
        scheduler.create("first"),
        Err(SchedulerCreateError::DUPLICATENAME(_))
    ));
    assert!(matches!(
        scheduler.lookup("another"),
        Err(SchedulerLookupError::UNKNOWNTASK(_))
    ));
    for stranger in [0, -1, 99] {
        assert!(matches!(
            scheduler.add_dependency(first, stranger, 1, DependencyTypeT::TwoWayCall),
            Err(SchedulerAddDependencyError::UNKNOWNTASK(_))
        ));
    }
    declare(scheduler, "second", 4, 10);
    declare(scheduler, "third", 4, 25);
    let (_, _, _, anomalies) = scheduler.compute_scheduling(1, 99).unwrap();
    assert_eq!(anomalies.len(), 1);
    assert_eq!(anomalies[0].severity, AnomalySeverity::AnomalyError);
    assert!(
        anomalies[0].description.starts_with("third: "),
        "{anomalies:?}"
    );
    assert!(matches!(
        scheduler.compute_scheduling(1, 2),
        Err(SchedulerComputeSchedulingError::INSUFFICIENTTHREADPRIORITYLEVELS(_))
    ));
    declare(scheduler, "fourth", 20, 28);
    assert!(matches!(
        scheduler.compute_scheduling(1, 99),
        Err(SchedulerComputeSchedulingError::UTILIZATIONBOUNDEXCEEDED(_))
    ));
}

#[test]
fn times_that_do_not_fit_are_bad_parameters_and_change_nothing() {
    let served = served(SchedulerOptions::default());
    let scheduler = &served.scheduler;
    let handle = declare(scheduler, "a", 3, 7);
    let set = |cost: u64, period: i32, threads: i32| {
        scheduler.set(
            handle,
            CriticalityT::HighCriticality,
            cost,
            0,
            0,
            period,
            ImportanceT::LowImportance,
            0,
            threads,
            InfoTypeT::Operation,
        )
    };
    for wrong in [set(u64::MAX, 1, 0), set(1, -1, 0), set(1, 1, -1)] {
        match wrong {
            Err(SchedulerSetError::System(exception)) => {
                assert_eq!(exception.kind, Kind::BadParam);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        scheduler.get(handle).unwrap().worst_case_execution_time,
        3 * MS
    );
    // The longest of the wire: no time wraps at 429 s.
    let longest = u64::MAX / 100;
    set(longest, i32::MAX, 0).unwrap();
    let info = scheduler.get(handle).unwrap();
    assert_eq!(
        (info.worst_case_execution_time, info.period),
        (longest, i32::MAX)
    );
}

#[test]
fn a_dependency_that_would_make_an_operation_late_is_refused_at_run_time() {
    let served = served(SchedulerOptions {
        admits: true,
        ..SchedulerOptions::default()
    });
    let scheduler = &served.scheduler;
    let fast = declare(scheduler, "fast", 3, 7);
    let slow = declare(scheduler, "slow", 5, 20);
    scheduler.compute_scheduling(1, 99).unwrap();
    let server = declare(scheduler, "server", 4, 0);
    let add = |of, on| scheduler.add_dependency(of, on, 1, DependencyTypeT::TwoWayCall);
    match add(fast, server) {
        Err(SchedulerAddDependencyError::System(exception)) => {
            assert_eq!(exception.kind, Kind::NoResources);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(served.service.counts().refused, 1);
    assert_eq!(scheduler.get_dependency_set().unwrap(), []);
    // What fits is admitted, and the schedule stays current.
    add(slow, server).unwrap();
    assert_eq!(scheduler.priority(server), Ok((98, 1, 1)));
    scheduler
        .set_dependency_enable_state(
            slow,
            server,
            1,
            DependencyTypeT::TwoWayCall,
            DependencyEnabledTypeT::DependencyDisabled,
        )
        .unwrap();
    assert!(scheduler.priority(server).is_err());
}

#[test]
fn the_strategy_decides_levels_and_queues() {
    let served = served(SchedulerOptions {
        settings: Settings {
            strategy: Strategy::Muf,
            ..Settings::default()
        },
        ..SchedulerOptions::default()
    });
    let scheduler = &served.scheduler;
    declare(scheduler, "fast", 3, 7);
    declare(scheduler, "slow", 5, 20);
    // Small numbers are urgent on this dispatcher.
    scheduler.compute_scheduling(255, 0).unwrap();
    assert_eq!(
        scheduler.dispatch_configuration(0),
        Ok((0, DispatchingTypeT::LaxityDispatching))
    );
    assert_eq!(scheduler.get_config_infos().unwrap().len(), 1);
}

fn times(handle: i32, exceeded: u64, longest_ns: u64) -> ExecutionTimes {
    ExecutionTimes {
        handle,
        executions: 400,
        exceeded,
        worst_case_ns: 3_000_000,
        longest_ns,
        longest_elapsed_ns: 2 * longest_ns,
    }
}

#[test]
fn measured_times_are_named_in_the_anomalies_and_change_no_priority() {
    let served = served(SchedulerOptions {
        admits: true,
        ..SchedulerOptions::default()
    });
    let scheduler = &served.scheduler;
    let track = declare(scheduler, "track", 3, 7);
    let filter = declare(scheduler, "filter", 3, 12);
    declare(scheduler, "draw", 5, 20);
    scheduler.compute_scheduling(1, 99).unwrap();
    let measured = MeasuredTimesRef::narrow(scheduler.object()).unwrap();
    let measured = measured.expect("it is served beside the scheduler");
    measured
        .report_execution_times(&[times(filter, 0, 2_000_000), times(track, 9, 3_000_001)])
        .unwrap();
    measured
        .report_execution_times(&[times(track, 3, 2_500_000)])
        .unwrap();
    let anomalies = scheduler.recompute_scheduling(1, 99).unwrap();
    let words = "track: 12 of 800 executions took longer than the declared worst case of 3 ms: up to 3.000001 ms of \
                 processor time";
    let late = "draw: with the measured execution times, its response can take 20.000003 ms; its deadline is 20 ms";
    let described: Vec<_> = anomalies.iter().map(|one| &one.description[..]).collect();
    assert_eq!(described, [words, late]);
    assert!(
        anomalies
            .iter()
            .all(|one| one.severity == AnomalySeverity::AnomalyWarning)
    );
    assert_eq!(served.service.measured_anomalies(), [words, late]);
    assert_eq!(served.service.overruns()[0].1.longest_elapsed_ns, 6_000_002);
    // The schedule is still that of the declared times, and current.
    assert_eq!(scheduler.priority(track), Ok((99, 0, 0)));
    let counts = served.service.counts();
    assert_eq!((counts.computed, counts.exceeded), (1, 12));
    let reported = deckwatch_event::handler_times::reported(scheduler.object()).unwrap();
    let names: Vec<_> = reported.iter().map(|(name, _)| &name[..]).collect();
    assert_eq!(names, ["track", "filter"]);
    // A longer declaration holds: no anomaly is left.
    set(scheduler, track, 4, 14).unwrap();
    assert_eq!(scheduler.recompute_scheduling(1, 99).unwrap(), []);
}

#[test]
fn report_with_an_unknown_handle_adds_nothing() {
    let served = served(SchedulerOptions::default());
    let known = declare(&served.scheduler, "known", 3, 7);
    let measured = MeasuredTimesRef::unchecked_narrow(served.scheduler.object().clone());
    for stranger in [0, -1, 99] {
        let report = [times(known, 1, 4_000_000), times(stranger, 1, 4_000_000)];
        assert!(matches!(
            measured.report_execution_times(&report),
            Err(ReportedTimesReportExecutionTimesError::UNKNOWNTASK(_))
        ));
    }
    assert_eq!(measured.execution_times().unwrap(), []);
}

#[test]
fn handler_reports_what_it_has_measured_once_and_keeps_it_when_the_report_fails() {
    let served = served(SchedulerOptions::default());
    let scheduler = &served.scheduler;
    declare(scheduler, "first", 1, 9);
    let handle = declare(scheduler, "track", 1, 7);
    assert!(matches!(
        ReportedHandler::find(scheduler.object(), "another"),
        Err(SchedulerLookupError::UNKNOWNTASK(_))
    ));
    let handler = ReportedHandler::find(scheduler.object(), "track").unwrap();
    assert_eq!(handler.handle(), handle);
    let end_ns = deckwatch_os::clock::thread_cpu_ns() + 2_000_000;
    handler.times().measure(|| {
        while deckwatch_os::clock::thread_cpu_ns() < end_ns {
            std::hint::spin_loop();
        }
    });
    handler.report().unwrap();
    // Nothing is left to report.
    handler.report().unwrap();
    let overruns = served.service.overruns();
    let (name, measured) = &overruns[0];
    assert_eq!(name, "track");
    assert_eq!((measured.executions, measured.exceeded), (1, 1));
    assert_eq!(measured.worst_case_ns, 1_000_000);
    assert!(measured.longest_ns >= 1_900_000, "{measured:?}");
    handler.times().measure(|| ());
    served.server.shutdown(true).unwrap();
    assert!(handler.report().is_err());
    assert_eq!(handler.times().read().executions, 1);
}

#[test]
fn refusal_carries_its_words_to_the_caller() {
    let served = served(SchedulerOptions {
        admits: true,
        ..SchedulerOptions::default()
    });
    let scheduler = &served.scheduler;
    let fast = declare(scheduler, "fast", 3, 7);
    declare(scheduler, "slow", 5, 20);
    scheduler.compute_scheduling(1, 99).unwrap();
    let server = declare(scheduler, "server", 4, 0);
    let refused = scheduler.add_dependency(fast, server, 1, DependencyTypeT::TwoWayCall);
    let refused = refused.unwrap_err();
    let SchedulerAddDependencyError::System(exception) = refused else {
        panic!("{refused:?}");
    };
    let words = exception_detail(&exception).expect("words");
    assert!(words.contains("the utilisation would be 1.250"), "{words}");
    assert!(refused.to_string().ends_with(&words), "{refused}");
    // The words are those of this exception alone.
    let other = deckwatch_orb::SystemException {
        minor: 0,
        ..exception
    };
    assert_eq!(exception_detail(&other), None);
    // An exception without words takes them away, and so does no reply that is none.
    scheduler.lookup("fast").unwrap();
    assert_eq!(exception_detail(&exception), Some(words));
    match set(scheduler, fast, 1, -1) {
        Err(SchedulerSetError::System(bad)) => assert_eq!(exception_detail(&bad), None),
        other => panic!("{other:?}"),
    }
    assert_eq!(exception_detail(&exception), None);
}

#[test]
fn change_that_would_miss_a_deadline_is_refused_with_the_name_of_the_operation() {
    let served = served(SchedulerOptions {
        admits: true,
        ..SchedulerOptions::default()
    });
    let scheduler = &served.scheduler;
    declare(scheduler, "track", 3, 7);
    declare(scheduler, "filter", 3, 12);
    let draw = declare(scheduler, "draw", 5, 20);
    scheduler.compute_scheduling(1, 99).unwrap();
    let refused = set(scheduler, draw, 6, 20).unwrap_err().to_string();
    assert!(
        refused.contains("draw: its response can take 22 ms; its deadline is 20 ms"),
        "{refused}"
    );
}

#[test]
fn stranger_that_declares_its_share_leaves_others_served() {
    const SHARE: usize = 1;
    let served = served(SchedulerOptions {
        share_percent: SHARE as u8,
        ..SchedulerOptions::default()
    });
    let orb = stranger();
    let scheduler = seen_by(&orb, &served.server, served.service.reference().object());
    let scheduler = SchedulerRef::unchecked_narrow(scheduler);
    let full = (Kind::ImpLimit, own_minor::SCHEDULE_SHARE_FULL);
    let operations = OPERATIONS_MAX * SHARE / 100;
    let handles: Vec<_> = (0..operations)
        .map(|number| scheduler.create(&format!("stranger {number}")).unwrap())
        .collect();
    match scheduler.create("one more") {
        Err(SchedulerCreateError::System(refused)) => {
            assert_eq!((refused.kind, refused.minor), full);
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        scheduler.create("stranger 0"),
        Err(SchedulerCreateError::DUPLICATENAME(_))
    ));
    let one_way = DependencyTypeT::OneWayCall;
    let add = |on| scheduler.add_dependency(handles[0], on, 1, one_way);
    for number in 0..DEPENDENCIES_MAX * SHARE / 100 {
        add(handles[1 + number % (handles.len() - 1)]).unwrap();
    }
    match add(handles[1]) {
        Err(SchedulerAddDependencyError::System(refused)) => {
            assert_eq!((refused.kind, refused.minor), full);
        }
        other => panic!("{other:?}"),
    }
    // Others are served, and remove what keeps a place of the stranger.
    let good = declare(&served.scheduler, "good", 1, 10);
    let added = served
        .scheduler
        .add_dependency(good, handles[0], 1, one_way);
    added.unwrap();
    let removed = served
        .scheduler
        .remove_dependency(handles[0], handles[1], 1, one_way);
    removed.unwrap();
    add(handles[1]).unwrap();
    orb.shutdown(true).expect("it ends");
}

#[test]
fn refusals_of_the_table_are_counted_and_taken_once() {
    let server = serving_orb();
    let observers = Rule {
        on: None,
        ..rule("127.0.0.2", &[Action::Observe], None)
    };
    let table = Some(Access::new(Table::new(vec![observers])));
    let options = SchedulerOptions::default();
    let service = SchedulingService::start_with(&server, options, Operations::default(), table);
    let service = service.unwrap();
    assert_eq!(service.take_refusals(), (Vec::new(), 0));
    let orb = stranger();
    let scheduler = seen_by(&orb, &server, service.reference().object());
    let scheduler = SchedulerRef::unchecked_narrow(scheduler);
    assert_eq!(scheduler.get_rt_info_set().unwrap(), [], "permitted");
    assert!(scheduler.create("first").is_err());
    assert!(scheduler.create("second").is_err());
    let (refusals, count) = service.take_refusals();
    assert_eq!((refusals.len(), count), (2, 2));
    assert_eq!(refusals[0].action, Some(Action::Administer));
    let (refusals, count) = service.take_refusals();
    assert_eq!((refusals.len(), count), (0, 2));
    orb.shutdown(true).expect("it ends");
    server.shutdown(true).expect("it ends");
}
