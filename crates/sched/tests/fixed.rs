//! Fixed priorities: the analysis is never below a simulated response, and equal to it at the critical instant.

use deckwatch_sched::Task;
use deckwatch_sched::fixed::{critical_instant, response_times};
use deckwatch_sched::simulate::Rules;

use crate::random::{HYPERPERIOD, ORIGIN, Random, longest};

pub(crate) const STATIC: Rules<'static> = Rules {
    levels: &[],
    runs_to_completion: false,
    last: None,
    slice_ns: None,
};

const END: u64 = ORIGIN + 5 * HYPERPERIOD;

/// All tasks due so that the greatest jitter ends at the origin, and as early as possible after that.
fn at_once(tasks: &[Task], position: usize, number: u64) -> (u64, u64) {
    let task = &tasks[position];
    let due = ORIGIN - task.jitter_ns + number * task.period_ns;
    (due, due.max(ORIGIN))
}

#[test]
fn response_times_equal_simulation_from_the_critical_instant() {
    let mut compared = 0;
    for seed in 0..3000 {
        let mut random = Random::new(seed);
        let mut tasks = random.tasks(5);
        let has_jitter = random.one_in(2);
        for task in &mut tasks {
            if has_jitter {
                task.jitter_ns = random.within(0, 2 * task.period_ns);
            }
        }
        let responses = response_times(&tasks).unwrap();
        for (index, response) in responses.iter().enumerate() {
            let simulated = longest(&tasks, 0, END, STATIC, &|task, number| {
                at_once(&tasks, task, number)
            });
            assert!(response.is_exact, "seed {seed}");
            let worst = response.worst_ns.expect("the utilisation is at most one");
            assert_eq!(
                worst, simulated[index],
                "seed {seed}, task {index}: {tasks:?}"
            );
            compared += 1;
        }
    }
    assert!(compared > 5000, "{compared}");
}

#[test]
fn response_times_with_blocking_equal_simulation() {
    for seed in 0..2000 {
        let mut random = Random::new(seed);
        let mut tasks = random.tasks(4);
        let index = random.within(0, tasks.len() as u64 - 1) as usize;
        let blocking = random.within(1, 9);
        tasks[index].blocking_ns = blocking;
        let utilisation: u64 = tasks
            .iter()
            .map(|task| task.cost_ns * HYPERPERIOD / task.period_ns)
            .sum();
        if utilisation == HYPERPERIOD {
            continue;
        }
        let simulated = longest(&tasks, blocking, END, STATIC, &|task, number| {
            at_once(&tasks, task, number)
        });
        let worst = response_times(&tasks).unwrap()[index].worst_ns;
        assert_eq!(worst, Some(simulated[index]), "seed {seed}: {tasks:?}");
    }
}

#[test]
fn no_releases_lead_to_longer_responses() {
    for seed in 0..1500 {
        let mut random = Random::new(seed);
        let mut tasks = random.tasks(5);
        for task in &mut tasks {
            task.jitter_ns = random.within(0, task.period_ns);
            if random.one_in(3) {
                task.level /= 2; // Tasks of one level.
            }
        }
        let responses = response_times(&tasks).unwrap();
        for round in 0..4 {
            let phases: Vec<u64> = tasks
                .iter()
                .map(|task| random.within(0, task.period_ns - 1))
                .collect();
            let delay = random.within(1, 1 << 20);
            let simulated = longest(&tasks, 0, END, STATIC, &|task, number| {
                let due = ORIGIN + phases[task] + number * tasks[task].period_ns;
                let jitter = (number + 7).wrapping_mul(delay) % (tasks[task].jitter_ns + 1);
                (due, due + jitter)
            });
            for (index, response) in responses.iter().enumerate() {
                let worst = response.worst_ns.unwrap();
                assert!(
                    worst >= simulated[index],
                    "seed {seed}, round {round}, task {index}: {tasks:?}"
                );
            }
        }
    }
}

/// Tasks of two transactions and one without, on levels in random order.
fn transactions(random: &mut Random) -> Vec<Task> {
    let mut tasks = random.tasks(5);
    let periods = [random.of(&[10, 12, 15]), random.of(&[8, 20])];
    for (position, task) in tasks.iter_mut().enumerate() {
        let number = position % 3;
        if number < 2 {
            task.period_ns = periods[number];
            task.transaction = Some(number as u32);
            task.offset_ns = random.within(0, 2 * task.period_ns);
            task.cost_ns = task.cost_ns.min(task.period_ns / 4).max(1);
        }
    }
    for position in (1..tasks.len()).rev() {
        let other = random.within(0, position as u64) as usize;
        let level = tasks[other].level;
        tasks[other].level = tasks[position].level;
        tasks[position].level = level;
    }
    tasks
}

#[test]
fn responses_with_offsets_equal_the_worst_of_all_phases() {
    let mut compared = 0;
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let tasks = transactions(&mut random);
        let load: u64 = tasks
            .iter()
            .map(|task| task.cost_ns * HYPERPERIOD / task.period_ns)
            .sum();
        if load > HYPERPERIOD {
            continue;
        }
        let period_of = |transaction: Option<u32>| {
            let mut there = tasks.iter().filter(|task| task.transaction == transaction);
            there.next().map_or(1, |task| task.period_ns)
        };
        let mut worst = vec![0; tasks.len()];
        for second in 0..period_of(Some(1)) {
            for third in 0..period_of(None) {
                let simulated = longest(&tasks, 0, END, STATIC, &|position, number| {
                    let task = &tasks[position];
                    let phase = [0, second, third][position % 3];
                    let due = ORIGIN + phase + task.offset_ns + number * task.period_ns;
                    (due, due)
                });
                for (worst, simulated) in worst.iter_mut().zip(simulated) {
                    *worst = u64::max(*worst, simulated);
                }
            }
        }
        let responses = response_times(&tasks).unwrap();
        for (index, response) in responses.iter().enumerate() {
            assert!(response.is_exact);
            assert_eq!(
                response.worst_ns,
                Some(worst[index]),
                "seed {seed}, task {index}: {tasks:?}"
            );
            compared += 1;
        }
    }
    assert!(compared > 120, "{compared}");
}

#[test]
fn the_critical_instant_shows_the_worst_response() {
    for seed in 0..500 {
        let mut random = Random::new(seed);
        let mut tasks = transactions(&mut random);
        for task in &mut tasks {
            task.jitter_ns = random.within(0, task.period_ns / 2);
        }
        for (index, response) in response_times(&tasks).unwrap().into_iter().enumerate() {
            let Some(worst) = response.worst_ns else {
                continue;
            };
            let releases = critical_instant(&tasks, index).unwrap();
            let simulated = longest(&tasks, 0, END, STATIC, &|position, number| {
                let (release, task) = (&releases[position], &tasks[position]);
                let due = ORIGIN + release.next_ns + number * task.period_ns;
                let due = due - release.at_once * task.period_ns;
                (due, due.max(ORIGIN))
            });
            assert_eq!(
                worst, simulated[index],
                "seed {seed}, task {index}: {tasks:?}"
            );
        }
    }
}

#[test]
fn too_many_combinations_give_a_bound_that_is_not_below() {
    let mut tasks = Vec::new();
    for transaction in 0..14 {
        for number in 0..2 {
            tasks.push(Task {
                offset_ns: 40 * number,
                transaction: Some(transaction),
                ..Task::new(2 * transaction + number as u32, 1, 120)
            });
        }
    }
    let lowest = tasks.len();
    tasks.push(Task::new(lowest as u32, 20, 120));
    let bound = response_times(&tasks).unwrap()[lowest];
    assert!(!bound.is_exact);
    // All transactions at once, with their first or their second task: the next comes 40 later.
    assert_eq!(bound.worst_ns, Some(20 + 14));
    let simulated = longest(&tasks, 0, END, STATIC, &|position, number| {
        let due = ORIGIN + tasks[position].offset_ns + number * 120;
        (due, due)
    });
    assert!(bound.worst_ns.unwrap() >= simulated[lowest]);
    assert!(response_times(&tasks[..20]).unwrap()[19].is_exact);
}
