//! Single sets: bounds that were too small, and sets that were refused without need.

use deckwatch_sched::{
    CallKind, Dependency, Enabled, Operations, RtInfo, Schedule, Settings, Strategy, sensitivity,
};

const MS: u64 = 1_000_000;

fn info(name: &str, cost_ms: u64, period_ms: u64) -> RtInfo {
    RtInfo {
        entry_point: name.to_owned(),
        worst_case_ns: cost_ms * MS,
        period_ns: period_ms * MS,
        ..RtInfo::default()
    }
}

#[test]
fn what_blocks_one_operation_delays_the_others_of_its_queue() {
    let blocked = |name: &str, cost, period, deadline, blocking| RtInfo {
        deadline_ns: (deadline > 0).then_some(deadline * MS),
        blocking_ns: blocking * MS,
        ..info(name, cost, period)
    };
    // The lowest operation holds a mutex of `t1` and inherits its priority: `t2` waits 5 ms with `t1`, then 2 ms for
    // it.
    let sets = [
        (
            Strategy::Rms,
            vec![
                blocked("t1", 2, 10, 0, 5),
                blocked("t2", 2, 10, 8, 0),
                blocked("low", 10, 100, 0, 0),
            ],
            1,
            9,
        ),
        (
            Strategy::Rms,
            vec![
                blocked("a", 3, 10, 0, 0),
                blocked("b", 2, 20, 0, 4),
                blocked("c", 2, 20, 12, 0),
                blocked("low", 10, 100, 0, 0),
            ],
            2,
            14,
        ),
        (
            Strategy::Edf,
            vec![blocked("t0", 2, 10, 4, 3), blocked("t1", 3, 12, 7, 0)],
            1,
            8,
        ),
    ];
    for (strategy, set, of, worst_ms) in sets {
        let mut operations = Operations::default();
        for one in &set {
            operations.add(one).unwrap();
        }
        let settings = Settings {
            strategy,
            ..Settings::default()
        };
        let schedule = Schedule::compute(&operations, settings).unwrap();
        let found = schedule.assigned[of].unwrap();
        assert_eq!(found.response.worst_ns, Some(worst_ms * MS), "{strategy:?}");
    }
}

#[test]
fn what_blocks_a_caller_is_not_forgotten_for_what_it_calls() {
    let mut operations = Operations::default();
    let lookup = operations.add(&info("lookup", 1, 0)).unwrap();
    let caller = RtInfo {
        blocking_ns: 5 * MS,
        dependencies: vec![Dependency {
            on: lookup,
            kind: CallKind::TwoWay,
            calls: 1,
            enabled: Enabled::Enabled,
        }],
        ..info("caller", 2, 10)
    };
    operations.add(&caller).unwrap();
    let schedule = Schedule::compute(&operations, Settings::default()).unwrap();
    let found = schedule.assigned[1].unwrap();
    assert_eq!(found.response.worst_ns, Some(8 * MS));
}

#[test]
fn a_computed_schedule_is_not_refused_for_the_advice_that_takes_too_long() {
    let set = [
        (1, 16_666_667),
        (1, 20_000_000),
        (2, 50_000_000),
        (3, 100_000_000),
        (2, 1_000_000_000),
    ];
    for strategy in [Strategy::Edf, Strategy::Mlf, Strategy::Muf] {
        let mut operations = Operations::default();
        for (number, (cost_ms, period_ns)) in set.into_iter().enumerate() {
            let one = RtInfo {
                period_ns,
                ..info(&number.to_string(), cost_ms, 1)
            };
            operations.add(&one).unwrap();
        }
        let settings = Settings {
            strategy,
            overhead_ns: 8_731,
            ..Settings::default()
        };
        assert!(
            Schedule::compute(&operations, settings)
                .unwrap()
                .is_feasible()
        );
        let factor = sensitivity::greatest_factor_millionths(&operations, settings).unwrap();
        assert!(
            factor.is_some_and(|factor| factor > 1_000_000),
            "{factor:?}"
        );
    }
}

#[test]
fn rates_without_a_common_multiple_are_analysed_unless_the_processor_is_full() {
    let rates = |costs: [u64; 3]| {
        let mut operations = Operations::default();
        for (cost_ns, period_ns) in costs.into_iter().zip([16_666_667, 20_000_001, 33_333_333]) {
            let one = RtInfo {
                worst_case_ns: cost_ns,
                period_ns,
                ..info(&period_ns.to_string(), 1, 1)
            };
            operations.add(&one).unwrap();
        }
        operations
    };
    for strategy in [Strategy::Rms, Strategy::Edf] {
        let settings = Settings {
            strategy,
            ..Settings::default()
        };
        let schedule = Schedule::compute(&rates([MS, MS, MS]), settings).unwrap();
        assert!(schedule.is_feasible());
        assert_eq!(schedule.hyperperiod_ns, None);
    }
}
