//! The worked example of `docs/book/scheduling.md`: each number of the chapter is computed here.

use deckwatch_sched::sensitivity::{changes, greatest_factor_millionths};
use deckwatch_sched::{
    CallKind, Dependency, Enabled, Operations, RtInfo, SchedError, Schedule, Settings, Strategy,
};

const MS: u64 = 1_000_000;

fn example(draw_ms: u64) -> Operations {
    let mut operations = Operations::default();
    for (name, cost_ms, period_ms) in [("track", 3, 7), ("filter", 3, 12), ("draw", draw_ms, 20)] {
        let info = RtInfo {
            entry_point: name.to_owned(),
            worst_case_ns: cost_ms * MS,
            period_ns: period_ms * MS,
            ..RtInfo::default()
        };
        operations.add(&info).unwrap();
    }
    operations
}

fn with(strategy: Strategy) -> Settings {
    Settings {
        strategy,
        ..Settings::default()
    }
}

fn responses_ms(operations: &Operations, settings: Settings) -> Vec<f64> {
    let schedule = Schedule::compute(operations, settings).unwrap();
    let all = schedule.assigned.iter().flatten();
    all.map(|one| one.response.worst_ns.unwrap() as f64 / MS as f64)
        .collect()
}

/// The chapter has this line, word for word.
fn chapter_has(line: &str) {
    let chapter = include_str!("../../../docs/book/scheduling.md");
    assert!(chapter.contains(line), "the chapter does not say: {line}");
}

fn listed(values: &[f64]) -> String {
    let words: Vec<String> = values.iter().map(ToString::to_string).collect();
    words.join(", ")
}

#[test]
fn the_chapter_s_bounds_are_those_computed() {
    let schedule = Schedule::compute(&example(5), with(Strategy::Rms)).unwrap();
    let bounds = schedule.bounds;
    assert!(bounds.apply && !bounds.promise() && schedule.is_feasible());
    chapter_has(&format!("utilisation is {:.4}", bounds.utilisation));
    chapter_has(&format!(
        "bound for three tasks is {:.4}",
        bounds.liu_layland
    ));
    chapter_has(&format!("product is {:.4}", bounds.hyperbolic));
    chapter_has(&format!(
        "hyperperiod is {} ms",
        schedule.hyperperiod_ns.expect("short") / MS
    ));
}

#[test]
fn the_chapter_s_responses_are_those_computed() {
    let rms = listed(&responses_ms(&example(5), with(Strategy::Rms)));
    chapter_has(&format!("rate monotonic: {rms} ms"));
    let late = listed(&responses_ms(&example(6), with(Strategy::Rms)));
    chapter_has(&format!("with a draw of 6 ms: {late} ms"));
    let edf = listed(&responses_ms(&example(6), with(Strategy::Edf)));
    chapter_has(&format!(
        "earliest deadline first, with a draw of 6 ms: {edf} ms"
    ));
    let mut blocked = example(5);
    let filter = blocked.lookup("filter").unwrap();
    blocked
        .change(filter, |info| info.blocking_ns = 2 * MS)
        .unwrap();
    let blocked = listed(&responses_ms(&blocked, with(Strategy::Rms)));
    chapter_has(&format!("blocked for 2 ms: {blocked} ms"));
    let mut jittery = example(5);
    let track = jittery.lookup("track").unwrap();
    jittery.change(track, |info| info.jitter_ns = MS).unwrap();
    let jittery = listed(&responses_ms(&jittery, with(Strategy::Rms)));
    chapter_has(&format!("released up to 1 ms late: {jittery} ms"));
    let overhead = Settings {
        overhead_ns: MS / 10,
        ..with(Strategy::Rms)
    };
    let late = listed(&responses_ms(&example(5), overhead));
    chapter_has(&format!("with 0.1 ms for each dispatch: {late} ms"));
}

#[test]
fn the_chapter_s_advice_is_that_computed() {
    let found = changes(&example(6), with(Strategy::Rms)).unwrap();
    let ms = |ns: Option<u64>| ns.unwrap() as f64 / MS as f64;
    for (change, name) in found.iter().zip(["track", "filter", "draw"]) {
        let (cost, period) = (ms(change.worst_case_ns), ms(change.period_ns));
        chapter_has(&format!("| {name} | {cost} ms | {period} ms |"));
    }
    let factor = greatest_factor_millionths(&example(6), with(Strategy::Rms)).unwrap();
    chapter_has(&format!("factor is {:.3}", factor.unwrap() as f64 / 1e6));
}

#[test]
fn the_chapter_s_chain_is_that_computed() {
    let mut operations = example(5);
    let track = operations.lookup("track").unwrap();
    let log = RtInfo {
        entry_point: "log".to_owned(),
        worst_case_ns: MS / 2,
        dependencies: vec![Dependency {
            on: track,
            kind: CallKind::OneWay,
            calls: 1,
            enabled: Enabled::Enabled,
        }],
        ..RtInfo::default()
    };
    operations.add(&log).unwrap();
    let chain = listed(&responses_ms(&operations, with(Strategy::Rms)));
    chapter_has(&format!("track's events trigger log: {chain} ms"));
    let schedule = Schedule::compute(&operations, with(Strategy::Rms)).unwrap();
    assert!(!schedule.is_feasible());
    let edf = Schedule::compute(&operations, with(Strategy::Edf)).unwrap();
    assert!(edf.is_feasible());
}

/// The operations of the chapter's channel. `consumers` are connected: they depend on `read`.
fn of_channel(consumers: &[(&str, u64)]) -> Schedule {
    let mut operations = Operations::default();
    for (name, cost_ms, period_ms) in [("read", 2, 50), ("draw", 60, 120)] {
        let info = RtInfo {
            entry_point: name.to_owned(),
            worst_case_ns: cost_ms * MS,
            period_ns: period_ms * MS,
            ..RtInfo::default()
        };
        operations.add(&info).unwrap();
    }
    let read = operations.lookup("read").unwrap();
    for &(name, cost_ms) in consumers {
        let info = RtInfo {
            entry_point: name.to_owned(),
            worst_case_ns: cost_ms * MS,
            dependencies: vec![Dependency {
                on: read,
                kind: CallKind::OneWay,
                calls: 1,
                enabled: Enabled::Enabled,
            }],
            ..RtInfo::default()
        };
        operations.add(&info).unwrap();
    }
    Schedule::compute(&operations, with(Strategy::Rms)).unwrap()
}

#[test]
fn the_chapter_s_channel_admits_what_is_computed() {
    let draw_ms = |schedule: &Schedule| {
        let draw = schedule.assigned[1].as_ref().unwrap();
        (draw.response.worst_ns.unwrap() / MS, schedule.is_feasible())
    };
    let (before, admitted) = (of_channel(&[]), of_channel(&[("log", 1)]));
    assert_eq!(before.dispatcher_priorities(1, 49), Ok(vec![49, 48]));
    assert_eq!(before.dispatcher_priorities(8, 7), Ok(vec![7, 8]));
    let too_few = SchedError::TooFewPriorities {
        needed: 2,
        available: 1,
    };
    assert_eq!(before.dispatcher_priorities(7, 7), Err(too_few));
    let log = admitted.assigned[2].as_ref().unwrap();
    assert_eq!((log.level, log.period_ns), (0, 50 * MS));
    let (response, is_feasible) = draw_ms(&admitted);
    assert!(is_feasible);
    chapter_has(&format!("worst response of draw is {response} ms"));
    let (response, is_feasible) = draw_ms(&of_channel(&[("log", 1), ("track", 22)]));
    assert!(!is_feasible);
    chapter_has(&format!("could take {response} ms"));
}
