//! Earliest deadline and least laxity first, and levels of them below static ones, against simulation.

use deckwatch_sched::edf::{Demand, Level};
use deckwatch_sched::simulate::Rules;
use deckwatch_sched::{Dispatch, Task};

use crate::random::{HYPERPERIOD, ORIGIN, Random, longest};

const END: u64 = ORIGIN + 3 * HYPERPERIOD;

fn rules(levels: &[Dispatch], last: Option<usize>) -> Rules<'_> {
    Rules {
        levels,
        runs_to_completion: false,
        last,
        slice_ns: None,
    }
}

/// Tasks of one level, with deadlines shorter and longer than their periods.
fn tasks(random: &mut Random, most: u64) -> Vec<Task> {
    let mut tasks = random.tasks(most);
    for task in &mut tasks {
        task.level = 0;
        task.deadline_ns = random.within(task.cost_ns, task.period_ns * 3 / 2);
    }
    tasks
}

fn alone(own: &[Task]) -> Level<'_> {
    Level {
        own,
        higher: &[],
        runs_to_completion: false,
    }
}

fn due_at_once(tasks: &[Task], position: usize, number: u64) -> (u64, u64) {
    let task = &tasks[position];
    let due = ORIGIN - task.jitter_ns + number * task.period_ns;
    (due, due.max(ORIGIN))
}

fn misses(tasks: &[Task], longest: &[u64]) -> bool {
    tasks
        .iter()
        .zip(longest)
        .any(|(task, &longest)| longest > task.deadline_ns)
}

#[test]
fn processor_demand_fits_exactly_when_no_deadline_is_missed() {
    let (mut fits, mut exceeds) = (0, 0);
    for seed in 0..3000 {
        let mut random = Random::new(seed);
        let mut tasks = tasks(&mut random, 5);
        if random.one_in(2) {
            for task in &mut tasks {
                task.jitter_ns = random.within(0, task.deadline_ns / 2);
            }
        }
        let simulated = longest(
            &tasks,
            0,
            END,
            rules(&[Dispatch::Deadline], None),
            &|task, number| due_at_once(&tasks, task, number),
        );
        let demand = alone(&tasks).demand().unwrap();
        assert_eq!(
            demand == Demand::Fits,
            !misses(&tasks, &simulated),
            "seed {seed}, {demand:?}: {tasks:?}"
        );
        if demand == Demand::Fits {
            fits += 1;
        } else {
            exceeds += 1;
        }
    }
    assert!(fits > 300 && exceeds > 300, "{fits} {exceeds}");
}

#[test]
fn deadline_responses_equal_the_worst_of_all_phases() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let mut tasks = tasks(&mut random, 4);
        if random.one_in(2) {
            for task in &mut tasks {
                task.jitter_ns = random.within(0, task.period_ns);
            }
        }
        let responses = alone(&tasks).deadline_responses().unwrap();
        for (index, response) in responses.iter().enumerate() {
            let mut worst = 0;
            for phase in 0..tasks[index].period_ns {
                let simulated = longest(
                    &tasks,
                    0,
                    END,
                    rules(&[Dispatch::Deadline], Some(index)),
                    &|task, number| {
                        let (due, release) = due_at_once(&tasks, task, number);
                        if task == index {
                            (due + phase, (due + phase).max(ORIGIN))
                        } else {
                            (due, release)
                        }
                    },
                );
                worst = worst.max(simulated[index]);
            }
            // Jitter may also delay a job that is not at the start.
            let own = &tasks[index];
            let worst = worst.max(own.jitter_ns + own.cost_ns);
            assert!(response.is_exact);
            assert_eq!(
                response.worst_ns,
                Some(worst),
                "seed {seed}, task {index}: {tasks:?}"
            );
        }
    }
}

#[test]
fn least_laxity_meets_the_deadlines_of_every_feasible_set_within_its_bounds() {
    let mut feasible = 0;
    for seed in 0..500 {
        let mut random = Random::new(seed);
        let tasks = tasks(&mut random, 5);
        let bounds = alone(&tasks).laxity_responses().unwrap();
        let fits = alone(&tasks).demand().unwrap() == Demand::Fits;
        feasible += u64::from(fits);
        let phases: Vec<u64> = tasks
            .iter()
            .map(|task| random.within(0, task.period_ns - 1))
            .collect();
        for phase in [&vec![0; tasks.len()], &phases] {
            let simulated = longest(
                &tasks,
                0,
                END,
                Rules {
                    slice_ns: Some(1),
                    ..rules(&[Dispatch::Laxity], None)
                },
                &|task, number| {
                    let due = ORIGIN + phase[task] + number * tasks[task].period_ns;
                    (due, due)
                },
            );
            assert!(
                !fits || !misses(&tasks, &simulated),
                "seed {seed}: {tasks:?}"
            );
            for (bound, simulated) in bounds.iter().zip(&simulated) {
                assert!(
                    bound.worst_ns.unwrap() >= *simulated,
                    "seed {seed}: {tasks:?}"
                );
            }
        }
    }
    assert!(feasible > 60, "{feasible}");
}

#[test]
fn a_level_below_static_ones_is_never_later_than_its_bounds() {
    for seed in 0..500 {
        let mut random = Random::new(seed);
        let mut all = tasks(&mut random, 5);
        let split = random.within(0, all.len() as u64) as usize;
        for (position, task) in all.iter_mut().enumerate() {
            task.level = if position < split {
                position as u32
            } else {
                split as u32
            };
            task.jitter_ns = random.within(0, task.period_ns / 3);
        }
        let (higher, own) = all.split_at(split);
        if own.is_empty() {
            continue;
        }
        let completes = random.one_in(2);
        let level = Level {
            own,
            higher,
            runs_to_completion: completes,
        };
        let deadlines = level.deadline_responses().unwrap();
        let laxities = level.laxity_responses().unwrap();
        let fits = level.demand().unwrap() == Demand::Fits;
        for round in 0..4 {
            let phases: Vec<u64> = all
                .iter()
                .map(|task| {
                    if round == 0 {
                        0
                    } else {
                        random.within(0, task.period_ns - 1)
                    }
                })
                .collect();
            for (dispatch, bounds) in [
                (Dispatch::Deadline, &deadlines),
                (Dispatch::Laxity, &laxities),
            ] {
                let mut levels = vec![Dispatch::Static; split];
                levels.push(dispatch);
                let preempts = dispatch == Dispatch::Laxity && !completes;
                let rules = Rules {
                    runs_to_completion: completes,
                    slice_ns: preempts.then_some(1),
                    ..rules(&levels, Some(split))
                };
                let simulated = longest(&all, 0, END, rules, &|task, number| {
                    let due = ORIGIN + phases[task] + number * all[task].period_ns;
                    (due, due + (number * 5 + 3) % (all[task].jitter_ns + 1))
                });
                for (index, bound) in bounds.iter().enumerate() {
                    let simulated = simulated[split + index];
                    // A full processor with jitter is never idle, so that nothing bounds every order.
                    let Some(worst) = bound.worst_ns else {
                        assert!(dispatch == Dispatch::Laxity, "seed {seed}");
                        continue;
                    };
                    assert!(
                        worst >= simulated,
                        "seed {seed}, {dispatch:?}, task {index}: {simulated} {bound:?} {all:?}"
                    );
                }
                let can_miss = dispatch == Dispatch::Laxity && completes;
                assert!(
                    !fits || can_miss || !misses(own, &simulated[split..]),
                    "seed {seed}, {dispatch:?}: {all:?}"
                );
            }
        }
    }
}
