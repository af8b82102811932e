//! Whole schedules: operations with events and calls, against a simulation that ticks nanosecond by nanosecond and
//! passes the events on itself.

use deckwatch_sched::{
    CallKind, Criticality, Dependency, Dispatch, Enabled, InfoKind, Operations, RtInfo, Schedule,
    Settings, Strategy,
};

use crate::random::{HYPERPERIOD, Random};

struct Running {
    position: usize,
    due: u64,
    release: u64,
    left: u64,
    cost: u64,
}

/// Simulates until `end` and returns the longest response of each dispatched operation.
fn tick(operations: &Operations, schedule: &Schedule, phases: &[u64], end: u64) -> Vec<u64> {
    let infos = operations.infos();
    let mut longest = vec![0; infos.len()];
    let mut pending: Vec<Running> = Vec::new();
    // For a conjunction: events of each supplier that wait, by their due times.
    let mut waiting: Vec<Vec<(usize, u64)>> = vec![Vec::new(); infos.len()];
    let overhead = schedule.settings.overhead_ns;
    for now in 0..end {
        for (position, info) in infos.iter().enumerate() {
            let is_timed = info.period_ns > 0 && (now + info.period_ns) >= phases[position];
            if is_timed && (now + info.period_ns - phases[position]).is_multiple_of(info.period_ns)
            {
                let cost = cost_of(operations, position) + overhead;
                pending.push(Running {
                    position,
                    due: now,
                    release: now,
                    left: cost,
                    cost,
                });
            }
        }
        let urgency = |one: &Running| {
            let assigned = schedule.assigned[one.position].unwrap();
            let deadline = one.due + assigned.deadline_ns;
            let key = match assigned.dispatch {
                Dispatch::Static => one.release,
                Dispatch::Deadline => deadline,
                Dispatch::Laxity => deadline.saturating_sub(one.left),
            };
            let begun = schedule.settings.runs_to_completion && one.left < one.cost;
            let begun = begun && assigned.dispatch != Dispatch::Static;
            (assigned.level, !begun, key, assigned.sub_priority)
        };
        let Some(chosen) = (0..pending.len()).min_by_key(|&place| urgency(&pending[place])) else {
            continue;
        };
        pending[chosen].left -= 1;
        if pending[chosen].left > 0 {
            continue;
        }
        let done = pending.remove(chosen);
        let worst = &mut longest[done.position];
        *worst = u64::max(*worst, now + 1 - done.due);
        for (position, info) in infos.iter().enumerate() {
            for dependency in &info.dependencies {
                let is_event = dependency.kind == CallKind::OneWay
                    && dependency.on.index() == done.position
                    && dependency.enabled.is_on();
                if !is_event {
                    continue;
                }
                for _ in 0..dependency.calls {
                    let due = if info.kind == InfoKind::Conjunction {
                        waiting[position].push((done.position, done.due));
                        match conjoined(info, &mut waiting[position]) {
                            Some(due) => due,
                            None => continue,
                        }
                    } else {
                        done.due
                    };
                    let cost = cost_of(operations, position) + overhead;
                    pending.push(Running {
                        position,
                        due,
                        release: now + 1,
                        left: cost,
                        cost,
                    });
                }
            }
        }
    }
    longest
}

/// Takes one event of each supplier, if all have come. Returns the due time of the latest one.
fn conjoined(info: &RtInfo, waiting: &mut Vec<(usize, u64)>) -> Option<u64> {
    let suppliers = || info.dependencies.iter().map(|one| one.on.index());
    let first = |supplier| waiting.iter().position(|&(one, _)| one == supplier);
    let all: Option<Vec<usize>> = suppliers().map(first).collect();
    let due = all?.into_iter().map(|place| waiting[place].1).max();
    waiting.clear();
    due
}

fn cost_of(operations: &Operations, position: usize) -> u64 {
    let info = &operations.infos()[position];
    let called = info
        .dependencies
        .iter()
        .filter(|one| one.kind == CallKind::TwoWay);
    let costs = called.map(|one| u64::from(one.calls) * cost_of(operations, one.on.index()));
    info.worst_case_ns + costs.sum::<u64>()
}

const CRITICALITIES: [Criticality; 5] = [
    Criticality::VeryLow,
    Criticality::Low,
    Criticality::Medium,
    Criticality::High,
    Criticality::VeryHigh,
];

/// Timers, consumers of earlier operations' events, and servers that are called.
fn random_operations(random: &mut Random) -> Operations {
    let mut operations = Operations::default();
    let timers = random.within(1, 3);
    let consumers = random.within(0, 4);
    let mut dispatched = Vec::new();
    let server = operations
        .add(&RtInfo {
            entry_point: "server".to_owned(),
            worst_case_ns: 1,
            ..RtInfo::default()
        })
        .unwrap();
    for number in 0..timers + consumers {
        let mut info = RtInfo {
            entry_point: number.to_string(),
            worst_case_ns: random.within(1, 2),
            criticality: random.of(&CRITICALITIES),
            ..RtInfo::default()
        };
        if number < timers {
            info.period_ns = random.of(&[12, 15, 20, 24, 30, 40]);
        } else {
            info.dependencies.push(Dependency {
                on: random.of(&dispatched),
                kind: CallKind::OneWay,
                calls: 1,
                enabled: Enabled::Enabled,
            });
        }
        if random.one_in(4) {
            info.dependencies.push(Dependency {
                on: server,
                kind: CallKind::TwoWay,
                calls: random.within(1, 2) as u32,
                enabled: Enabled::Enabled,
            });
        }
        dispatched.push(operations.add(&info).unwrap());
    }
    operations
}

#[test]
fn no_operation_of_any_strategy_is_later_than_its_bound() {
    let (mut bounded, mut exact) = (0, 0);
    for seed in (0..150).chain([313]) {
        let mut random = Random::new(seed);
        let operations = random_operations(&mut random);
        for strategy in Strategy::ALL {
            let settings = Settings {
                strategy,
                overhead_ns: random.within(0, 1),
                runs_to_completion: random.one_in(2),
            };
            let schedule = Schedule::compute(&operations, settings).unwrap();
            for round in 0..2 {
                let phases: Vec<u64> = operations
                    .infos()
                    .iter()
                    .map(|info| {
                        if round == 0 {
                            0
                        } else {
                            random.within(0, info.period_ns)
                        }
                    })
                    .collect();
                let simulated = tick(&operations, &schedule, &phases, 3 * HYPERPERIOD);
                for (position, simulated) in simulated.into_iter().enumerate() {
                    let Some(assigned) = &schedule.assigned[position] else {
                        continue;
                    };
                    let Some(worst) = assigned.response.worst_ns else {
                        continue;
                    };
                    bounded += 1;
                    exact += u64::from(assigned.response.is_exact && worst == simulated);
                    assert!(
                        worst >= simulated,
                        "seed {seed}, {strategy:?}, round {round}, operation {position}: \
                         {simulated} above {worst}: {:?} {:#?}",
                        operations.infos(),
                        schedule.segments
                    );
                }
            }
        }
    }
    assert!(bounded > 4000 && exact > 100, "{bounded} {exact}");
}

#[test]
fn a_conjunction_is_never_later_than_its_bound() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let mut operations = Operations::default();
        let mut suppliers = Vec::new();
        for number in 0..2 {
            let info = RtInfo {
                entry_point: number.to_string(),
                worst_case_ns: random.within(1, 4),
                period_ns: random.of(&[12, 15, 20, 24, 30, 40]),
                ..RtInfo::default()
            };
            suppliers.push(operations.add(&info).unwrap());
        }
        let both = RtInfo {
            entry_point: "both".to_owned(),
            worst_case_ns: 2,
            kind: InfoKind::Conjunction,
            dependencies: suppliers
                .iter()
                .map(|&on| Dependency {
                    on,
                    kind: CallKind::OneWay,
                    calls: 1,
                    enabled: Enabled::Enabled,
                })
                .collect(),
            ..RtInfo::default()
        };
        let both = operations.add(&both).unwrap();
        for strategy in [Strategy::Rms, Strategy::Edf, Strategy::Mlf] {
            let settings = Settings {
                strategy,
                ..Settings::default()
            };
            let schedule = Schedule::compute(&operations, settings).unwrap();
            let phases = [0, random.within(0, 11), 0];
            let simulated = tick(&operations, &schedule, &phases, 3 * HYPERPERIOD);
            for handle in suppliers.iter().chain([&both]) {
                let Some(worst) = schedule.of(*handle).unwrap().response.worst_ns else {
                    continue;
                };
                let simulated = simulated[handle.index()];
                assert!(worst >= simulated, "seed {seed}, {strategy:?}, {handle}");
            }
        }
    }
}
