//! Checks the four disciplines against scheduling theory, in virtual time: one processor, preemption at whole units,
//! ranks as computed by the schedulers.

use std::time::Duration;

use deckwatch_orb::{Priority, UtcT};
use deckwatch_rtscheduling::{RankedScheduler, Scheduler, SchedulingParameter};

/// The unit of time.
const UNIT: Duration = Duration::from_millis(1);
const UNIT_TIME_T: u64 = 10_000;
/// The start time.
const BEGUN: u64 = 140_000_000_000_000_000;

/// One job, in units of time.
#[derive(Clone, Copy, Debug)]
struct Job {
    release: u64,
    cost: u64,
    deadline: u64,
    /// For fixed priority and importance: the highest value is first.
    weight: i16,
}

const fn job(release: u64, cost: u64, deadline: u64, weight: i16) -> Job {
    Job {
        release,
        cost,
        deadline,
        weight,
    }
}

impl Job {
    fn parameter(&self, left: u64) -> SchedulingParameter {
        let time = BEGUN + self.deadline * UNIT_TIME_T;
        SchedulingParameter {
            priority: Priority::try_from(self.weight).ok(),
            importance: Some(self.weight),
            deadline: Some(UtcT::new(time, 0, 0)),
            execution_time: Some(UNIT * u32::try_from(left).expect("short")),
        }
    }
}

/// Returns when each job finishes on a processor that always runs the first job. Equal jobs run in the order of
/// release.
fn finishes(scheduler: &RankedScheduler, jobs: &[Job]) -> Vec<u64> {
    let mut left: Vec<u64> = jobs.iter().map(|job| job.cost).collect();
    let mut finished = vec![0; jobs.len()];
    let mut now = 0;
    while left.iter().any(|left| *left != 0) {
        let ready = (0..jobs.len()).filter(|at| jobs[*at].release <= now && left[*at] != 0);
        let rank = |at: &usize| scheduler.order(&jobs[*at].parameter(left[*at]));
        let first = ready.min_by_key(|at| (rank(at), jobs[*at].release, *at));
        now += 1;
        if let Some(first) = first {
            left[first] -= 1;
            finished[first] = now;
        }
    }
    finished
}

fn missed(scheduler: &RankedScheduler, jobs: &[Job]) -> Vec<usize> {
    let finishes = finishes(scheduler, jobs);
    let is_late = |at: &usize| finishes[*at] > jobs[*at].deadline;
    (0..jobs.len()).filter(is_late).collect()
}

/// Returns the order in which jobs that wait together are served, each to its end.
fn served(scheduler: &RankedScheduler, jobs: &[Job]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|at| scheduler.order(&jobs[*at].parameter(jobs[*at].cost)));
    order
}

/// Returns the jobs of periodic tasks until their pattern repeats. Deadlines are the next releases, weights
/// rate-monotonic.
fn periodic(tasks: &[(u64, u64)], until: u64) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (cost, period) in tasks {
        let weight = i16::try_from(1_000 - period).expect("short periods");
        let releases = (0..until / period).map(|number| number * period);
        jobs.extend(releases.map(|release| job(release, *cost, release + period, weight)));
    }
    jobs
}

#[test]
fn each_discipline_serves_a_known_set_in_its_known_order() {
    let jobs = [
        job(0, 2, 10, 1),
        job(0, 7, 12, 3),
        job(0, 1, 9, 2),
        job(0, 3, 20, 4),
    ];
    // By priority and importance: 4 3 2 1. By deadline: 9 10 12 20. By laxity: 5 8 8 17; equal jobs run in the order
    // given.
    assert_eq!(
        served(&RankedScheduler::fixed_priority(), &jobs),
        [3, 1, 2, 0]
    );
    assert_eq!(
        served(&RankedScheduler::most_important_first(), &jobs),
        [3, 1, 2, 0]
    );
    assert_eq!(
        served(&RankedScheduler::earliest_deadline_first(), &jobs),
        [2, 0, 1, 3]
    );
    assert_eq!(
        served(&RankedScheduler::least_laxity(), &jobs),
        [1, 0, 2, 3]
    );
}

#[test]
fn earliest_deadline_first_keeps_what_rate_monotonic_priorities_miss() {
    // Liu and Layland: utilisation 2/5 + 4/7 = 0.97, above the bound of two tasks (0.83) and below 1.
    let jobs = periodic(&[(2, 5), (4, 7)], 35);
    let late = missed(&RankedScheduler::fixed_priority(), &jobs);
    let first_of_second = jobs.iter().position(|job| job.cost == 4).expect("a task");
    assert!(late.contains(&first_of_second), "{late:?}");
    assert_eq!(
        finishes(&RankedScheduler::fixed_priority(), &jobs)[first_of_second],
        8
    );
    assert_eq!(
        missed(&RankedScheduler::earliest_deadline_first(), &jobs),
        []
    );
    assert_eq!(missed(&RankedScheduler::least_laxity(), &jobs), []);
}

#[test]
fn rate_monotonic_priorities_keep_what_is_within_their_bound() {
    // 1/4 + 2/8 + 2/16 = 0.625, below the bound of three tasks (0.78).
    let jobs = periodic(&[(1, 4), (2, 8), (2, 16)], 16);
    assert_eq!(missed(&RankedScheduler::fixed_priority(), &jobs), []);
}

#[test]
fn under_overload_importance_saves_what_the_earliest_deadline_gives_up() {
    let jobs = [job(0, 5, 5, 1), job(0, 5, 7, 9)];
    assert_eq!(
        missed(&RankedScheduler::most_important_first(), &jobs),
        [0],
        "the unimportant one"
    );
    assert_eq!(
        missed(&RankedScheduler::earliest_deadline_first(), &jobs),
        [1]
    );
}

#[test]
fn least_laxity_runs_a_long_job_before_a_short_one_that_is_due_earlier() {
    let jobs = [job(0, 1, 8, 0), job(0, 9, 10, 0)];
    // The long job has laxity 1 and the short one 7. The short one waits until its laxity is not above that of the
    // other: at 6.
    assert_eq!(finishes(&RankedScheduler::least_laxity(), &jobs), [7, 10]);
    let by_deadline = finishes(&RankedScheduler::earliest_deadline_first(), &jobs);
    assert_eq!(by_deadline, [1, 10]);
}

#[test]
fn what_any_order_can_keep_the_earliest_deadline_and_the_least_laxity_keep() {
    // Dertouzos: on one processor with preemption both are optimal. Seeded sets of four jobs.
    let mut random = 7_u64;
    let mut draw = |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let (mut feasible, mut rescued) = (0, 0);
    for set in 0..3_000 {
        let jobs: Vec<Job> = (0..4)
            .map(|_| {
                let (release, cost) = (draw(6), 1 + draw(4));
                let deadline = release + cost + draw(9);
                job(
                    release,
                    cost,
                    deadline,
                    i16::try_from(draw(100)).expect("small"),
                )
            })
            .collect();
        let is_kept = |scheduler: RankedScheduler| missed(&scheduler, &jobs).is_empty();
        let by_deadline = is_kept(RankedScheduler::earliest_deadline_first());
        let by_laxity = is_kept(RankedScheduler::least_laxity());
        let by_weight = is_kept(RankedScheduler::fixed_priority());
        assert_eq!(by_deadline, by_laxity, "set {set}: {jobs:?}");
        assert!(by_deadline || !by_weight, "set {set}: {jobs:?}");
        feasible += u32::from(by_deadline);
        rescued += u32::from(by_deadline && !by_weight);
    }
    // The sets are meaningful: many can meet their deadlines, many of those not with any weights, and many cannot at
    // all.
    assert!(feasible > 300 && feasible < 2_700, "{feasible}");
    assert!(rescued > 100, "{rescued}");
}
