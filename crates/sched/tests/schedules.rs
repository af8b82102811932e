//! Small schedules whose numbers are computed by hand.

use deckwatch_sched::limits::ROUNDS_MAX;
use deckwatch_sched::{
    AnomalyFact, CallKind, Criticality, Dependency, Dispatch, Enabled, Handle, Importance,
    InfoKind, Operations, Response, RtInfo, Schedule, Settings, Strategy, periods,
};

fn info(name: &str, worst_case_ns: u64, period_ns: u64) -> RtInfo {
    RtInfo {
        entry_point: name.to_owned(),
        worst_case_ns,
        period_ns,
        ..RtInfo::default()
    }
}

/// An operation that events of others trigger, once each.
fn consumer(name: &str, worst_case_ns: u64, suppliers: &[u32]) -> RtInfo {
    RtInfo {
        dependencies: all_on(CallKind::OneWay, suppliers),
        ..info(name, worst_case_ns, 0)
    }
}

/// A timer's operation that calls others, once each.
fn caller(name: &str, worst_case_ns: u64, period_ns: u64, servers: &[u32]) -> RtInfo {
    RtInfo {
        dependencies: all_on(CallKind::TwoWay, servers),
        ..info(name, worst_case_ns, period_ns)
    }
}

fn all_on(kind: CallKind, handles: &[u32]) -> Vec<Dependency> {
    let on = handles.iter().map(|&number| Handle::new(number).unwrap());
    on.map(|on| Dependency {
        on,
        kind,
        calls: 1,
        enabled: Enabled::Enabled,
    })
    .collect()
}

fn set(infos: &[RtInfo]) -> Operations {
    let mut operations = Operations::default();
    for info in infos {
        operations.add(info).unwrap();
    }
    operations
}

fn schedule(strategy: Strategy, infos: &[RtInfo]) -> Schedule {
    let settings = Settings {
        strategy,
        ..Settings::default()
    };
    Schedule::compute(&set(infos), settings).unwrap()
}

fn exactly(worst_ns: u64) -> Response {
    Response {
        worst_ns: Some(worst_ns),
        is_exact: true,
    }
}

fn at_most(worst_ns: u64) -> Response {
    Response {
        worst_ns: Some(worst_ns),
        is_exact: false,
    }
}

fn response_of(schedule: &Schedule, position: usize) -> Response {
    schedule.assigned[position].unwrap().response
}

/// A segment: its dispatched operations with the dispatches of each, its level and its depth.
type Shape<'s> = (&'s [(usize, u64)], u32, u32);

fn shape(schedule: &Schedule) -> Vec<Shape<'_>> {
    let segments = schedule.segments.iter();
    segments
        .map(|one| (one.dispatched.as_slice(), one.task.level, one.depth))
        .collect()
}

#[test]
fn the_bounds_apply_only_to_plain_tasks() {
    let plain = info("plain", 3, 4);
    let alone = |strategy, one: &RtInfo| schedule(strategy, std::slice::from_ref(one)).bounds;
    assert!(alone(Strategy::Rms, &plain).apply);
    assert!(!alone(Strategy::Edf, &plain).apply);
    let others = [
        RtInfo {
            deadline_ns: Some(3),
            ..plain.clone()
        },
        RtInfo {
            blocking_ns: 1,
            ..plain.clone()
        },
        RtInfo {
            jitter_ns: 1,
            ..plain.clone()
        },
    ];
    for other in &others {
        let bounds = alone(Strategy::Rms, other);
        assert!(!bounds.apply && !bounds.promise(), "{other:?}");
    }
}

#[test]
fn one_bound_is_enough_to_promise_every_deadline() {
    // 3/4 + 1/10 = 0.85 is above 2 (sqrt 2 - 1) = 0.828; 7/4 * 11/10 = 1.925 is below 2.
    let bounds = schedule(Strategy::Rms, &[info("a", 3, 4), info("b", 1, 10)]).bounds;
    assert!(bounds.utilisation > bounds.liu_layland && bounds.promise());
    // 3/4 + 1/4 = 1; 7/4 * 5/4 = 2.19 is above 2, and nothing is promised.
    let bounds = schedule(Strategy::Rms, &[info("a", 3, 4), info("b", 2, 8)]).bounds;
    assert!(bounds.apply && !bounds.promise());
}

#[test]
fn the_tightest_segment_has_the_least_time_left_and_not_the_least_share_of_it() {
    // `long`: 30 + 5 * 3 = 45 of 100 leaves 55, with a quotient of 2. `short`: 3 of 10 leaves 7, with one of 3.
    let found = schedule(
        Strategy::Rms,
        &[info("long", 30, 100), info("short", 3, 10)],
    );
    assert_eq!(found.responses, [exactly(45), exactly(3)]);
    assert_eq!(found.tightest(), Some(1));
}

#[test]
fn periods_are_those_of_the_fastest_timers() {
    let infos = [
        info("slow", 1, 20),
        info("fast", 1, 10),
        consumer("both", 1, &[1, 2]),
        info("never", 1, 0),
        consumer("late", 1, &[1]),
    ];
    let expected = [Some(20), Some(10), Some(10), None, Some(20)];
    assert_eq!(periods(&set(&infos)), Ok(expected.to_vec()));
}

#[test]
fn a_called_operation_takes_no_priority_and_has_that_of_its_most_urgent_caller() {
    let server = RtInfo {
        criticality: Criticality::VeryHigh,
        ..info("server", 1, 0)
    };
    let found = schedule(
        Strategy::Muf,
        &[server.clone(), caller("caller", 1, 10, &[1])],
    );
    assert_eq!(found.levels.len(), 1);
    let urgent = RtInfo {
        criticality: Criticality::High,
        ..caller("urgent", 1, 10, &[1])
    };
    let infos = [server, caller("patient", 1, 20, &[1]), urgent];
    let found = schedule(Strategy::RmsDyn, &infos);
    let levels = found.levels.iter().map(|one| (one.dispatch, one.period_ns));
    let expected = [(Dispatch::Static, 10), (Dispatch::Laxity, 20)];
    assert_eq!(levels.collect::<Vec<_>>(), expected);
    let got = |position: usize| {
        let assigned = found.assigned[position].unwrap();
        (assigned.level, assigned.dispatch)
    };
    let expected = [
        (0, Dispatch::Static),
        (1, Dispatch::Laxity),
        (0, Dispatch::Static),
    ];
    assert_eq!([0, 1, 2].map(got), expected);
    // The level of the most urgent caller counts wherever it comes in the order.
    let infos = [
        info("server", 1, 0),
        caller("fast", 1, 10, &[1]),
        caller("slow", 1, 20, &[1]),
    ];
    let found = schedule(Strategy::Rms, &infos);
    let levels = [0, 1, 2].map(|position| found.assigned[position].unwrap().level);
    assert_eq!(levels, [0, 0, 1]);
}

#[test]
fn operations_of_one_priority_are_ordered_by_importance_and_then_as_they_trigger() {
    let important = RtInfo {
        importance: Importance::High,
        ..consumer("important", 1, &[1])
    };
    let infos = [info("timer", 1, 10), consumer("plain", 1, &[1]), important];
    let found = schedule(Strategy::Rms, &infos);
    let order = [0, 1, 2].map(|position| found.assigned[position].unwrap().sub_priority);
    assert_eq!(order, [1, 2, 0]);
}

#[test]
fn what_runs_beside_others_in_a_segment_is_bounded_and_not_exact() {
    let infos = [info("server", 1, 0), caller("caller", 2, 10, &[1])];
    let found = schedule(Strategy::Rms, &infos);
    assert_eq!(found.responses, [exactly(3)]);
    // Another operation of the segment may run after it.
    assert_eq!([0, 1].map(|one| response_of(&found, one)), [at_most(3); 2]);
}

#[test]
fn of_two_equal_responses_one_that_occurs_makes_the_worst_exact() {
    let own = RtInfo {
        period_ns: 20,
        threads: 1,
        ..consumer("own", 2, &[1])
    };
    let found = schedule(Strategy::Edf, &[info("timer", 1, 10), own]);
    assert_eq!(
        shape(&found),
        [(&[(0, 1), (1, 1)][..], 0, 0), (&[(1, 1)], 0, 0)]
    );
    // All are due at 10: 1 + 2 of the timer of 10, and 2 of the other. A job of `own` may be any of the last two.
    assert_eq!(found.responses, [exactly(5), exactly(5)]);
    assert_eq!(response_of(&found, 1), exactly(5));
}

#[test]
fn an_event_to_another_priority_passes_the_response_on_as_jitter() {
    let sensor = RtInfo {
        criticality: Criticality::High,
        ..info("sensor", 2, 10)
    };
    let infos = [sensor, consumer("log", 3, &[1])];
    let found = schedule(Strategy::RmsDyn, &infos);
    assert_eq!(shape(&found), [(&[(0, 1)][..], 0, 0), (&[(1, 1)], 1, 1)]);
    assert_eq!(found.segments[1].task.jitter_ns, 2);
    // The busy period of the laxity queue: w = 2 ceil(w / 10) + 3 ceil((w + 2) / 10) = 5, after a jitter of 2.
    assert_eq!(found.responses, [at_most(2), at_most(7)]);
    assert!(found.is_feasible() && !found.bounds.apply);
}

#[test]
fn a_timer_may_be_late_by_many_periods() {
    let late = RtInfo {
        jitter_ns: 650,
        deadline_ns: Some(652),
        ..info("late", 2, 10)
    };
    // 65 jobs are released at once after the greatest jitter, the first due 650 before: it ends after 2. The others end
    // 2 later each and are due 10 later each.
    let found = schedule(Strategy::Rms, &[late]);
    assert_eq!(found.responses, [exactly(652)]);
}

#[test]
fn an_event_to_another_deadline_begins_a_segment_in_a_queue_by_deadline() {
    let due = |deadline_ns, one: RtInfo| RtInfo {
        deadline_ns: Some(deadline_ns),
        ..one
    };
    let infos = [
        info("timer", 1, 10),
        due(10, consumer("same", 1, &[1])),
        due(5, consumer("sooner", 1, &[1])),
        due(7, consumer("soon", 1, &[1])),
    ];
    let found = schedule(Strategy::Edf, &infos);
    assert_eq!(
        shape(&found),
        [
            (&[(0, 1), (1, 1)][..], 0, 0),
            (&[(2, 1)], 0, 1),
            (&[(3, 1)], 0, 1)
        ]
    );
}

#[test]
fn events_of_two_operations_of_a_segment_to_a_third_are_counted_together() {
    let infos = [
        info("timer", 1, 100),
        consumer("left", 2, &[1]),
        consumer("right", 3, &[1]),
        consumer("end", 4, &[2, 3]),
    ];
    let found = schedule(Strategy::Rms, &infos);
    let dispatched = [(0, 1), (1, 1), (2, 1), (3, 2)];
    assert_eq!(shape(&found), [(&dispatched[..], 0, 0)]);
    assert_eq!(found.segments[0].task.cost_ns, 1 + 2 + 3 + 2 * 4);
}

#[test]
fn a_conjunction_runs_with_its_slowest_supplier_and_waits_for_the_others() {
    let both = RtInfo {
        kind: InfoKind::Conjunction,
        ..consumer("both", 3, &[1, 2])
    };
    let infos = [info("fast", 1, 10), info("slow", 2, 25), both];
    let found = schedule(Strategy::Rms, &infos);
    assert_eq!(
        shape(&found),
        [(&[(0, 1)][..], 0, 0), (&[(1, 1)], 1, 0), (&[(2, 1)], 1, 1)]
    );
    // `fast` ends by 1. `slow` ends by 2 + 3 + 1 = 6: `both` may be before it in its queue. Then `both` waits for at
    // most one period of `fast` and its response: its jitter is 6 + 10 + 1. Its jobs take 3 + 2 + 1 after that.
    assert_eq!(found.segments[2].task.jitter_ns, 17);
    assert_eq!(found.responses, [at_most(1), at_most(6), at_most(17 + 6)]);
}

#[test]
fn a_priority_without_a_bound_takes_it_from_all_that_its_events_reach() {
    let at = |criticality, one: RtInfo| RtInfo { criticality, ..one };
    use Criticality::{High, Low, Medium, VeryHigh, VeryLow};
    let infos = [
        at(Medium, info("first", 1, 10)),
        at(High, consumer("of first", 1, &[1])),
        at(Low, info("second", 1, 10)),
        at(Medium, consumer("of second", 1, &[3])),
        // The priorities above take six tenths of the processor, and this operation half of it.
        at(VeryLow, info("third", 5, 10)),
        at(Low, consumer("of third", 1, &[5])),
        at(VeryHigh, info("above", 1, 10)),
    ];
    let found = schedule(Strategy::Muf, &infos);
    let levels: Vec<u32> = found.segments.iter().map(|one| one.task.level).collect();
    assert_eq!(levels, [2, 1, 3, 2, 4, 3, 0]);
    // `third` has no bound, so its consumer has no bound of its jitter and may take all from the priority of `second`,
    // whose consumer does so to that of `first`, whose consumer is below `above` alone.
    assert_eq!(found.responses[..6], [Response::UNKNOWN; 6]);
    assert_eq!(found.responses[6], at_most(1));
    // Without `third` all are bounded.
    let found = schedule(Strategy::Muf, &infos[..4]);
    assert!(found.is_feasible());
}

#[test]
fn a_chain_of_more_priorities_than_rounds_has_an_unknown_bound() {
    // Each round passes jitter on by one event.
    let chain = |count: u32| {
        let mut infos = vec![info("0", 1, 100_000)];
        for number in 1..count {
            infos.push(consumer(&number.to_string(), 1, &[number]));
        }
        for (number, one) in infos.iter_mut().enumerate() {
            let levels = [Criticality::High, Criticality::VeryHigh];
            one.criticality = levels[number % 2];
        }
        schedule(Strategy::Muf, &infos)
    };
    let long = chain(20);
    assert!(long.is_feasible());
    let mut responses = chain(ROUNDS_MAX + 1).responses.into_iter();
    assert!(responses.all(|one| one == Response::UNKNOWN));
}

#[test]
fn doubtful_declarations_are_reported() {
    let facts = |infos: &[RtInfo]| {
        let anomalies = schedule(Strategy::Rms, infos).anomalies;
        let facts = anomalies
            .iter()
            .map(|one| (one.of.unwrap().index(), one.fact));
        facts.collect::<Vec<_>>()
    };
    let declares = |period_ns| RtInfo {
        period_ns,
        ..consumer("consumer", 1, &[1])
    };
    let timer = info("timer", 1, 10);
    let mismatch = AnomalyFact::RateMismatch {
        declared_ns: 5,
        propagated_ns: 10,
    };
    assert_eq!(facts(&[timer.clone(), declares(5)]), [(1, mismatch)]);
    assert_eq!(facts(&[timer.clone(), declares(10)]), []);
    assert_eq!(facts(&[timer.clone(), declares(0)]), []);
    let has_thread = |period_ns| RtInfo {
        threads: 1,
        ..declares(period_ns)
    };
    assert_eq!(facts(&[timer.clone(), has_thread(20)]), []);
    assert_eq!(
        facts(&[timer, has_thread(0)]),
        [(1, AnomalyFact::ThreadsWithoutPeriod)]
    );
    let costs = |typical_ns, worst_case_ns| {
        let one = RtInfo {
            typical_ns,
            ..info("one", worst_case_ns, 10)
        };
        facts(&[one])
    };
    assert_eq!(costs(3, 2), [(0, AnomalyFact::TypicalAboveWorst)]);
    assert_eq!(costs(2, 2), []);
    assert_eq!(costs(1, 2), []);
    assert_eq!(costs(0, 0), [(0, AnomalyFact::CostsNothing)]);
    assert_eq!(costs(1, 0), [(0, AnomalyFact::TypicalAboveWorst)]);
}
