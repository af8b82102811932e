//! An event-driven simulation of one processor: for pictures of a schedule, and to check the analysis.

use crate::limits::INTERVALS_MAX;
use crate::strategy::Dispatch;

/// A job to be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its task: a number of the caller.
    pub task: usize,
    /// Its level; 0 is the most urgent.
    pub level: u32,
    /// Time from which it can run.
    pub release_ns: u64,
    /// Absolute deadline.
    pub deadline_ns: u64,
    /// Execution time.
    pub cost_ns: u64,
}

/// What ran from when to when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Position of the job.
    pub job: usize,
    /// Its task.
    pub task: usize,
    /// Begin.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
}

/// A simulated schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Intervals in time order, at most [`INTERVALS_MAX`].
    pub intervals: Vec<Interval>,
    /// Whether the simulation ended at [`INTERVALS_MAX`].
    pub is_cut: bool,
    /// End of each job; `None` for a job that has not ended.
    pub ends: Vec<Option<u64>>,
}

/// The rules of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'r> {
    /// How each level orders its queue; levels beyond are static.
    pub levels: &'r [Dispatch],
    /// Whether a job of a deadline or laxity level runs to its end before another of its level begins.
    pub runs_to_completion: bool,
    /// The task that loses every tie.
    pub last: Option<usize>,
    /// Longest time until laxities are compared again; `None`: only when a job is released or ends.
    pub slice_ns: Option<u64>,
}

/// Simulates jobs until all have ended.
#[must_use]
pub fn simulate(jobs: &[Job], rules: Rules<'_>) -> Trace {
    let mut run = Run::new(jobs, rules);
    while run.step() {}
    run.trace
}

struct Run<'r> {
    jobs: &'r [Job],
    rules: Rules<'r>,
    /// Positions by release; those before `released` are pending or have ended.
    by_release: Vec<usize>,
    released: usize,
    pending: Vec<usize>,
    left_ns: Vec<u64>,
    now_ns: u64,
    trace: Trace,
}

impl<'r> Run<'r> {
    fn new(jobs: &'r [Job], rules: Rules<'r>) -> Self {
        let mut by_release: Vec<usize> = (0..jobs.len()).collect();
        by_release.sort_by_key(|&position| jobs[position].release_ns);
        Self {
            jobs,
            rules,
            by_release,
            released: 0,
            pending: Vec::new(),
            left_ns: jobs.iter().map(|job| job.cost_ns).collect(),
            now_ns: 0,
            trace: Trace {
                ends: vec![None; jobs.len()],
                ..Trace::default()
            },
        }
    }

    /// Runs one job until the next event. Returns false at the end.
    fn step(&mut self) -> bool {
        while let Some(&next) = self.by_release.get(self.released) {
            if self.jobs[next].release_ns > self.now_ns && !self.pending.is_empty() {
                break;
            }
            self.now_ns = self.now_ns.max(self.jobs[next].release_ns);
            self.pending.push(next);
            self.released += 1;
        }
        let Some(chosen) = (0..self.pending.len()).min_by_key(|&place| self.urgency(place)) else {
            return false;
        };
        let job = self.pending[chosen];
        let next_release = self
            .by_release
            .get(self.released)
            .map_or(u64::MAX, |&next| self.jobs[next].release_ns);
        let mut run_ns = self.left_ns[job].min(next_release - self.now_ns);
        if let Some(slice_ns) = self.rules.slice_ns {
            run_ns = run_ns.min(slice_ns.max(1));
        }
        let start_ns = self.now_ns;
        self.now_ns = self.now_ns.saturating_add(run_ns);
        self.left_ns[job] -= run_ns;
        if self.left_ns[job] == 0 {
            self.trace.ends[job] = Some(self.now_ns);
            self.pending.swap_remove(chosen);
        }
        self.note(job, start_ns)
    }

    fn note(&mut self, job: usize, start_ns: u64) -> bool {
        let end_ns = self.now_ns;
        if end_ns == start_ns {
            return true;
        }
        if let Some(last) = self.trace.intervals.last_mut()
            && last.job == job
            && last.end_ns == start_ns
        {
            last.end_ns = end_ns;
            return true;
        }
        if self.trace.intervals.len() == INTERVALS_MAX {
            self.trace.is_cut = true;
            return false;
        }
        self.trace.intervals.push(Interval {
            job,
            task: self.jobs[job].task,
            start_ns,
            end_ns,
        });
        true
    }

    /// Orders pending jobs: the smallest runs.
    fn urgency(&self, place: usize) -> (u32, bool, u64, bool, u64, usize) {
        let position = self.pending[place];
        let job = &self.jobs[position];
        let left_ns = self.left_ns[position];
        let dispatch = self.rules.levels.get(job.level as usize);
        let key = match dispatch.copied().unwrap_or(Dispatch::Static) {
            Dispatch::Static => job.release_ns,
            Dispatch::Deadline => job.deadline_ns,
            // Laxity and now; a job that is too late has none.
            Dispatch::Laxity => job.deadline_ns.saturating_sub(left_ns),
        };
        let has_begun = self.rules.runs_to_completion && left_ns < job.cost_ns;
        let loses_ties = self.rules.last == Some(job.task);
        (
            job.level,
            !has_begun,
            key,
            loses_ties,
            job.release_ns,
            position,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(task: usize, level: u32, release_ns: u64, deadline_ns: u64, cost_ns: u64) -> Job {
        Job {
            task,
            level,
            release_ns,
            deadline_ns,
            cost_ns,
        }
    }

    const PLAIN: Rules<'static> = Rules {
        levels: &[],
        runs_to_completion: false,
        last: None,
        slice_ns: None,
    };

    fn intervals(jobs: &[Job], rules: Rules<'_>) -> Vec<(usize, u64, u64)> {
        let trace = simulate(jobs, rules);
        trace
            .intervals
            .iter()
            .map(|one| (one.task, one.start_ns, one.end_ns))
            .collect()
    }

    #[test]
    fn a_job_of_a_higher_level_preempts() {
        let jobs = [job(0, 1, 0, 9, 4), job(1, 0, 1, 9, 2)];
        let expected = [(0, 0, 1), (1, 1, 3), (0, 3, 6)];
        assert_eq!(intervals(&jobs, PLAIN), expected);
        assert_eq!(simulate(&jobs, PLAIN).ends, [Some(6), Some(3)]);
    }

    #[test]
    fn a_level_orders_by_release_deadline_or_laxity() {
        let jobs = [job(0, 0, 0, 9, 4), job(1, 0, 1, 8, 1), job(2, 0, 1, 9, 8)];
        let with = |levels| Rules { levels, ..PLAIN };
        let order =
            |rules| -> Vec<usize> { intervals(&jobs, rules).iter().map(|one| one.0).collect() };
        assert_eq!(order(PLAIN), [0, 1, 2]);
        assert_eq!(order(with(&[Dispatch::Deadline])), [0, 1, 0, 2]);
        assert_eq!(order(with(&[Dispatch::Laxity])), [0, 2, 0, 1]);
        let whole = Rules {
            runs_to_completion: true,
            ..with(&[Dispatch::Deadline])
        };
        assert_eq!(order(whole), [0, 1, 2]);
    }

    #[test]
    fn ties_are_broken_against_the_last_task_and_slices_compare_again() {
        let jobs = [job(0, 0, 0, 4, 2), job(1, 0, 0, 4, 2)];
        let rules = Rules {
            levels: &[Dispatch::Deadline],
            last: Some(0),
            ..PLAIN
        };
        assert_eq!(intervals(&jobs, rules), [(1, 0, 2), (0, 2, 4)]);
        let rules = Rules {
            levels: &[Dispatch::Laxity],
            slice_ns: Some(1),
            ..PLAIN
        };
        let expected = [(0, 0, 1), (1, 1, 2), (0, 2, 3), (1, 3, 4)];
        assert_eq!(intervals(&jobs, rules), expected);
    }

    #[test]
    fn the_processor_is_idle_when_nothing_is_released_and_a_long_trace_is_cut() {
        let jobs = [job(0, 0, 3, 9, 1), job(0, 0, 7, 9, 0), job(0, 0, 8, 9, 1)];
        assert_eq!(intervals(&jobs, PLAIN), [(0, 3, 4), (0, 8, 9)]);
        let many: Vec<Job> = (0..=INTERVALS_MAX)
            .map(|number| job(number, 0, number as u64, 9, 1))
            .collect();
        let trace = simulate(&many, PLAIN);
        assert!(trace.is_cut && trace.intervals.len() == INTERVALS_MAX);
        assert_eq!(trace.ends[0], Some(1));
    }
}
