//! A second instrument: the crate `response-time-analysis`, which implements the analyses that Prosa has verified.

use deckwatch_sched::Task;
use deckwatch_sched::edf::Level;
use deckwatch_sched::fixed::response_times;
use response_time_analysis::arrival::Sporadic;
use response_time_analysis::demand::RBF;
use response_time_analysis::time::{Duration, Service};
use response_time_analysis::wcet::Scalar;
use response_time_analysis::{edf, fixed_priority};

use crate::random::Random;

type Curve = RBF<Sporadic, Scalar>;

fn curve(task: &Task) -> Curve {
    RBF::new(
        Sporadic::new(
            Duration::from(task.period_ns),
            Duration::from(task.jitter_ns),
        ),
        Scalar::new(Service::from(task.cost_ns)),
    )
}

const LIMIT: u64 = 1_000_000;

#[test]
fn fixed_priorities_agree() {
    for seed in 10_000..14_000 {
        let mut random = Random::new(seed);
        let mut tasks = random.tasks(6);
        let index = tasks.len() - 1;
        for task in &mut tasks[..index] {
            task.jitter_ns = random.within(0, task.period_ns);
        }
        let curves: Vec<Curve> = tasks.iter().map(curve).collect();
        let theirs = fixed_priority::fully_preemptive::dedicated_uniproc_rta(
            &curves[index],
            &curves[..index],
            Duration::from(LIMIT),
        );
        // A full processor with jitter is never idle; theirs finds no end of the busy period then.
        let Ok(theirs) = theirs else {
            continue;
        };
        let ours = response_times(&tasks).unwrap()[index].worst_ns.unwrap();
        assert_eq!(Duration::from(ours), theirs, "seed {seed}: {tasks:?}");
    }
}

#[test]
fn earliest_deadline_first_agrees() {
    for seed in 20_000..23_000 {
        let mut random = Random::new(seed);
        let mut tasks = random.tasks(5);
        for task in &mut tasks {
            task.level = 0;
            task.deadline_ns = random.within(1, 2 * task.period_ns);
        }
        let level = Level {
            own: &tasks,
            higher: &[],
            runs_to_completion: false,
        };
        let ours = level.deadline_responses().unwrap();
        let curves: Vec<Curve> = tasks.iter().map(curve).collect();
        for (index, ours) in ours.iter().enumerate() {
            let described = |position: usize| edf::fully_preemptive::Task {
                rbf: &curves[position],
                deadline: Duration::from(tasks[position].deadline_ns),
            };
            let others: Vec<_> = (0..tasks.len())
                .filter(|&position| position != index)
                .map(described)
                .collect();
            let theirs = edf::fully_preemptive::dedicated_uniproc_rta(
                &described(index),
                &others,
                Duration::from(LIMIT),
            );
            assert_eq!(
                Ok(Duration::from(ours.worst_ns.unwrap())),
                theirs,
                "seed {seed}, task {index}: {tasks:?}"
            );
        }
    }
}
