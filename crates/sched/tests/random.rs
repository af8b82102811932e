//! Random task sets, from a seed, and their simulation.

use deckwatch_sched::Task;
use deckwatch_sched::simulate::{Job, Rules, simulate};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng as _;

pub(crate) struct Random(Pcg64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Pcg64::new(u128::from(seed), 0xa02_bdbf_7bb3_c0a7))
    }

    /// Returns a number of `least..=most`.
    pub(crate) fn within(&mut self, least: u64, most: u64) -> u64 {
        least + self.0.next_u64() % (most - least + 1)
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.within(1, count) == 1
    }

    pub(crate) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.within(0, all.len() as u64 - 1) as usize]
    }

    /// Returns tasks on levels of their own, with a utilisation of at most one.
    pub(crate) fn tasks(&mut self, most: u64) -> Vec<Task> {
        let count = self.within(1, most);
        let mut left = self.within(60, 120);
        let mut tasks = Vec::new();
        for level in 0..count {
            let period = self.of(&PERIODS);
            let share = self.within(1, left.div_ceil(2).max(1));
            left -= share.min(left);
            let cost = (period * share / 120).max(1);
            tasks.push(Task::new(level as u32, cost, period));
        }
        while tasks
            .iter()
            .map(|task| task.cost_ns * HYPERPERIOD / task.period_ns)
            .sum::<u64>()
            > HYPERPERIOD
        {
            tasks.pop();
        }
        tasks
    }
}

pub(crate) const PERIODS: [u64; 9] = [4, 5, 6, 8, 10, 12, 15, 20, 30];
pub(crate) const HYPERPERIOD: u64 = 120;

/// The releases of one task in a simulation: `k`th due time and release.
pub(crate) type Releases<'r> = &'r dyn Fn(usize, u64) -> (u64, u64);

/// Simulates tasks until `end`, and returns the longest response of each that a job due before `end` had.
pub(crate) fn longest(
    tasks: &[Task],
    blocker: u64,
    end: u64,
    rules: Rules<'_>,
    releases: Releases<'_>,
) -> Vec<u64> {
    let mut jobs = Vec::new();
    let mut due_times = Vec::new();
    if blocker > 0 {
        // What blocks takes the processor from time `ORIGIN` on, above all.
        jobs.push(Job {
            task: usize::MAX,
            level: 0,
            release_ns: ORIGIN,
            deadline_ns: 0,
            cost_ns: blocker,
        });
        due_times.push(0);
    }
    for (position, task) in tasks.iter().enumerate() {
        for number in 0.. {
            let (due, release) = releases(position, number);
            if due >= end {
                break;
            }
            jobs.push(Job {
                task: position,
                level: task.level + u32::from(blocker > 0),
                release_ns: release,
                deadline_ns: due + task.deadline_ns,
                cost_ns: task.cost_ns,
            });
            due_times.push(due);
        }
    }
    let trace = simulate(&jobs, rules);
    assert!(!trace.is_cut, "the simulated time is too long");
    let mut longest = vec![0; tasks.len()];
    for ((job, due), end) in jobs.iter().zip(due_times).zip(&trace.ends) {
        if let Some(worst) = longest.get_mut(job.task) {
            let end = end.expect("all jobs end");
            *worst = u64::max(*worst, end - due);
        }
    }
    longest
}

/// Start of the busy period in a simulation: due times before it are not negative.
pub(crate) const ORIGIN: u64 = 1000;
