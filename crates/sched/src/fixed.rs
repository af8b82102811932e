//! Worst response times under fixed priorities: preemptive, on one processor.
//!
//! One analysis for arbitrary deadlines, blocking, release jitter and offsets:
//!
//! * Joseph and Pandya (Computer Journal 29(5), 1986) and Audsley et al. (Software Engineering Journal 8(5), 1993):
//!   the response time is the least solution of `w = C + sum ceil(w / T) C`.
//! * Lehoczky (RTSS 1990) and Tindell, Burns, Wellings (Real-Time Systems 6, 1994): with arbitrary deadlines, each job
//!   of the busy period is examined, `w(q) = B + q C + sum ceil((w(q) + J) / T) C`, `R = max(w(q) + J - (q - 1) T)`.
//! * Tindell (YCS-182, 1992) and Palencia and Gonzalez Harbour (RTSS 1998, section 3): with offsets, each task of a
//!   transaction may start the busy period. All combinations are tried if there are at most
//!   [`COMBINATIONS_MAX`]. Else the greatest demand of each transaction is used, a safe bound (section 4 there).
//!
//! A task without a transaction is a transaction of one task; the analysis is that of Tindell, Burns and Wellings then.
//! A chain of events through one queue does not keep the order of its jobs: all jobs of the window are counted then.
//! Tasks of one level interfere with each other as if each were above the other, which is safe for a first-in,
//! first-out queue and for a preemptive one.

use std::cmp::Ordering;

use crate::bounds::{compare_with_one, hyperperiod};
use crate::error::SchedError;
use crate::limits::COMBINATIONS_MAX;
use crate::task::{Response, Task, Work, add, fixed_point, mul};

/// Returns the worst response time of each task.
///
/// # Errors
/// [`SchedError::TimeOverflow`] and [`SchedError::TooLong`].
pub fn response_times(tasks: &[Task]) -> Result<Vec<Response>, SchedError> {
    let mut work = Work::new();
    (0..tasks.len())
        .map(|index| worst(tasks, index, &mut work).map(|worst| worst.response))
        .collect()
}

/// Returns the time of each task's first job that makes the response of `index` the worst, and how many of its jobs are
/// released at once at time 0 before. Tasks of lower priority start at 0, too.
///
/// # Errors
/// As [`response_times`].
pub fn critical_instant(tasks: &[Task], index: usize) -> Result<Vec<Release>, SchedError> {
    let worst = worst(tasks, index, &mut Work::new())?;
    let release = |(position, task): (usize, &Task)| {
        let starter = worst.starters.iter().find_map(|&(one, starter)| {
            let is_same = one == position || is_one_transaction(&tasks[one], task);
            is_same.then_some(starter)
        });
        let starter = starter.map_or(task, |starter| &tasks[starter]);
        let phase_ns = phase(starter, task);
        Release {
            at_once: (task.jitter_ns.saturating_add(phase_ns)) / task.period_ns,
            next_ns: phase_ns,
        }
    };
    Ok(tasks.iter().enumerate().map(release).collect())
}

/// The releases of a task at a critical instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// Jobs released at time 0. Their jitter has delayed them until then.
    pub at_once: u64,
    /// Release of the next job; the others follow, one each period.
    pub next_ns: u64,
}

/// Returns the worst response of one task.
pub(crate) fn worst(tasks: &[Task], index: usize, work: &mut Work) -> Result<Worst, SchedError> {
    let under = &tasks[index];
    let interferes =
        |(position, task): (usize, &Task)| position != index && task.level <= under.level;
    let others: Vec<usize> = tasks
        .iter()
        .enumerate()
        .filter(|&one| interferes(one))
        .map(|(position, _)| position)
        .collect();
    let shares = others.iter().chain([&index]).map(|&position| {
        let task = &tasks[position];
        (task.cost_ns, task.period_ns)
    });
    let utilisation = compare_with_one(shares);
    if utilisation == Ordering::Greater {
        return Ok(Worst {
            response: Response::UNBOUNDED,
            starters: Vec::new(),
        });
    }
    let analysis = Analysis::new(tasks, index, &others, utilisation == Ordering::Equal);
    analysis.run(work)
}

/// A worst response, and the tasks that start the busy period in which it occurs: the first position of a transaction,
/// and that of the starter.
pub(crate) struct Worst {
    pub(crate) response: Response,
    pub(crate) starters: Vec<(usize, usize)>,
}

struct Analysis<'t> {
    tasks: &'t [Task],
    index: usize,
    /// Interfering tasks of the same transaction.
    own: Vec<usize>,
    /// Interfering tasks of each other transaction.
    others: Vec<Vec<usize>>,
    /// Whether every combination of starters is tried.
    tries_all: bool,
    /// Whether the bound can be reached.
    is_exact: bool,
    /// After so many jobs of the busy period, responses repeat: the utilisation is one.
    jobs_max: u64,
}

impl<'t> Analysis<'t> {
    fn new(tasks: &'t [Task], index: usize, interfering: &[usize], is_full: bool) -> Self {
        let under = &tasks[index];
        let mut own = Vec::new();
        let mut others: Vec<Vec<usize>> = Vec::new();
        for &position in interfering {
            let task = &tasks[position];
            if is_one_transaction(under, task) {
                own.push(position);
                continue;
            }
            let same = others
                .iter_mut()
                .find(|group| is_one_transaction(&tasks[group[0]], task));
            match same {
                Some(group) => group.push(position),
                None => others.push(vec![position]),
            }
        }
        let combinations = others.iter().try_fold(1_u64, |product, group| {
            product
                .checked_mul(group.len() as u64)
                .filter(|&product| product <= COMBINATIONS_MAX)
        });
        let has_ties = interfering
            .iter()
            .any(|&position| tasks[position].level == under.level);
        let jobs_max = if is_full {
            let periods = interfering.iter().chain([&index]);
            let all = hyperperiod(periods.map(|&position| tasks[position].period_ns));
            all.map_or(u64::MAX, |all| (all / under.period_ns).saturating_add(1))
        } else {
            u64::MAX
        };
        Self {
            tasks,
            index,
            own,
            others,
            tries_all: combinations.is_some(),
            is_exact: combinations.is_some() && !has_ties && !under.is_chain,
            jobs_max,
        }
    }

    fn run(&self, work: &mut Work) -> Result<Worst, SchedError> {
        let (mut worst_ns, mut starters) = (0, Vec::new());
        for &starter in self.own.iter().chain([&self.index]) {
            let mut choice = vec![0; if self.tries_all { self.others.len() } else { 0 }];
            loop {
                let response = self.in_busy_period(starter, &choice, work)?;
                if response >= worst_ns {
                    worst_ns = response;
                    starters = self.starters(starter, &choice);
                }
                if !self.advance(&mut choice) {
                    break;
                }
            }
        }
        Ok(Worst {
            response: Response {
                worst_ns: Some(worst_ns),
                is_exact: self.is_exact,
            },
            starters,
        })
    }

    /// Returns the first position of each transaction and that of its starter.
    fn starters(&self, starter: usize, choice: &[usize]) -> Vec<(usize, usize)> {
        let others = self.others.iter().zip(choice);
        let others = others.map(|(group, &chosen)| (group[0], group[chosen]));
        std::iter::once((self.index, starter))
            .chain(others)
            .collect()
    }

    /// Steps to the next combination of starters. Returns false after the last.
    fn advance(&self, choice: &mut [usize]) -> bool {
        for (chosen, group) in choice.iter_mut().zip(&self.others) {
            *chosen += 1;
            if *chosen < group.len() {
                return true;
            }
            *chosen = 0;
        }
        false
    }

    /// Returns the worst response in the busy periods that `starter` and the chosen tasks of the other transactions
    /// start.
    fn in_busy_period(
        &self,
        starter: usize,
        choice: &[usize],
        work: &mut Work,
    ) -> Result<u64, SchedError> {
        let under = &self.tasks[self.index];
        let phase_ns = phase(&self.tasks[starter], under);
        // Jobs released at once at the start, delayed by jitter until then.
        let at_once = add(under.jitter_ns, phase_ns)? / under.period_ns;
        let (mut worst, mut window) = (0, 0);
        let mut jobs = 0_u64;
        loop {
            jobs += 1;
            let own_ns = add(under.blocking_ns, mul(jobs, under.cost_ns)?)?;
            let before_ns = if under.is_chain {
                0
            } else {
                add(window, under.cost_ns)?
            };
            let end = fixed_point(before_ns.max(own_ns), u64::MAX, |window| {
                let mut own_ns = own_ns;
                if under.is_chain {
                    let later = window.saturating_sub(phase_ns).div_ceil(under.period_ns);
                    let behind = add(at_once, later)?.saturating_sub(jobs);
                    own_ns = add(own_ns, mul(behind, under.cost_ns)?)?;
                }
                add(own_ns, self.interference(starter, choice, window, work)?)
            })?;
            window = end.expect("no window is longer than the greatest number");
            // Job `jobs` is due at `phase - (at_once - jobs + 1) periods`: those released at once are overdue.
            let response = if jobs <= at_once {
                let overdue = mul(at_once - jobs + 1, under.period_ns)?;
                add(window, overdue)?.saturating_sub(phase_ns)
            } else {
                let due = add(phase_ns, mul(jobs - at_once - 1, under.period_ns)?)?;
                window.saturating_sub(due)
            };
            worst = worst.max(response);
            if let Some(later) = jobs.checked_sub(at_once) {
                let next_due = add(phase_ns, mul(later, under.period_ns)?)?;
                if window <= next_due || later >= self.jobs_max {
                    return Ok(worst);
                }
            }
        }
    }

    fn interference(
        &self,
        starter: usize,
        choice: &[usize],
        window_ns: u64,
        work: &mut Work,
    ) -> Result<u64, SchedError> {
        let mut sum = self.demand(&self.own, starter, window_ns, work)?;
        for (position, group) in self.others.iter().enumerate() {
            let demand = match choice.get(position) {
                Some(&chosen) => self.demand(group, group[chosen], window_ns, work)?,
                None => {
                    let mut most = 0;
                    for &starter in group {
                        most = most.max(self.demand(group, starter, window_ns, work)?);
                    }
                    most
                }
            };
            sum = add(sum, demand)?;
        }
        Ok(sum)
    }

    /// Returns the execution time that tasks of one transaction ask for in a window that `starter` starts.
    fn demand(
        &self,
        group: &[usize],
        starter: usize,
        window_ns: u64,
        work: &mut Work,
    ) -> Result<u64, SchedError> {
        work.spend(group.len())?;
        let starter = &self.tasks[starter];
        group.iter().try_fold(0, |sum, &position| {
            let task = &self.tasks[position];
            let phase_ns = phase(starter, task);
            let at_once = add(task.jitter_ns, phase_ns)? / task.period_ns;
            let later = window_ns.saturating_sub(phase_ns).div_ceil(task.period_ns);
            add(sum, mul(add(at_once, later)?, task.cost_ns)?)
        })
    }
}

fn is_one_transaction(a: &Task, b: &Task) -> bool {
    a.transaction.is_some() && a.transaction == b.transaction && a.period_ns == b.period_ns
}

/// Returns the first due time of `task` after the start of a busy period, if `starter` of the same transaction is
/// released then after its greatest jitter. It is above 0 and at most the period (Palencia and Gonzalez Harbour 1998,
/// equation 17).
fn phase(starter: &Task, task: &Task) -> u64 {
    let period = u128::from(task.period_ns);
    let start = u128::from(starter.offset_ns) + u128::from(starter.jitter_ns);
    let since = (start + period - u128::from(task.offset_ns) % period) % period;
    (period - since) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst_of(tasks: &[Task]) -> Vec<Option<u64>> {
        let responses = response_times(tasks).unwrap();
        responses.iter().map(|response| response.worst_ns).collect()
    }

    /// Burns and Wellings, Real-Time Systems and Programming Languages (4th edition), table 11.5.
    #[test]
    fn the_response_times_are_those_of_the_textbook() {
        let tasks = [Task::new(0, 3, 7), Task::new(1, 3, 12), Task::new(2, 5, 20)];
        assert_eq!(worst_of(&tasks), [Some(3), Some(6), Some(20)]);
    }

    /// Lehoczky 1990, table 1: with deadlines beyond periods, the first job is not the worst.
    #[test]
    fn a_later_job_of_the_busy_period_can_be_the_worst() {
        let tasks = [Task::new(0, 26, 70), Task::new(1, 62, 100)];
        assert_eq!(worst_of(&tasks), [Some(26), Some(118)]);
    }

    #[test]
    fn jitter_of_a_task_above_shortens_the_time_to_its_next_job() {
        let mut tasks = [Task::new(0, 2, 10), Task::new(1, 3, 20)];
        assert_eq!(worst_of(&tasks), [Some(2), Some(5)]);
        tasks[0].jitter_ns = 7;
        assert_eq!(worst_of(&tasks), [Some(9), Some(7)]);
        tasks[1].jitter_ns = 25;
        assert_eq!(worst_of(&tasks), [Some(9), Some(7 + 25)]);
    }

    #[test]
    fn blocking_delays_the_task_that_it_is_declared_for() {
        let mut tasks = [Task::new(0, 2, 10), Task::new(1, 3, 20)];
        tasks[0].blocking_ns = 4;
        assert_eq!(worst_of(&tasks), [Some(6), Some(5)]);
    }

    #[test]
    fn offsets_keep_tasks_of_one_transaction_apart() {
        let of = |offset_ns, level| Task {
            offset_ns,
            transaction: Some(1),
            ..Task::new(level, 4, 20)
        };
        assert_eq!(worst_of(&[of(0, 0), of(10, 1)]), [Some(4), Some(4)]);
        assert_eq!(worst_of(&[of(0, 0), of(2, 1)]), [Some(4), Some(6)]);
        assert_eq!(worst_of(&[of(3, 0), of(2, 1)]), [Some(4), Some(8)]);
    }

    #[test]
    fn the_next_job_may_overtake_a_chain() {
        let mut tasks = [Task::new(0, 8, 12), Task::new(1, 5, 15)];
        assert_eq!(worst_of(&tasks), [Some(8), Some(21)]);
        tasks[1].is_chain = true;
        assert_eq!(worst_of(&tasks), [Some(8), Some(60)]);
        let responses = response_times(&tasks).unwrap();
        assert_eq!([0, 1].map(|task| responses[task].is_exact), [true, false]);
        tasks[1].cost_ns = 3;
        assert_eq!(worst_of(&tasks), [Some(8), Some(11)]);
    }

    #[test]
    fn more_than_all_of_the_time_has_no_bound_and_all_of_it_has() {
        let over = [Task::new(0, 1, 2), Task::new(1, 2, 3)];
        assert_eq!(worst_of(&over), [Some(1), None]);
        let full = [Task::new(0, 1, 2), Task::new(1, 2, 4)];
        assert_eq!(worst_of(&full), [Some(1), Some(4)]);
        // A full processor with jitter never becomes idle; its responses repeat.
        let mut late = full;
        late[0].jitter_ns = 1;
        assert_eq!(worst_of(&late), [Some(2), Some(5)]);
    }

    #[test]
    fn sums_that_do_not_fit_are_errors() {
        let mut tasks = [Task::new(0, 1, 2), Task::new(1, 1, 4)];
        tasks[1].blocking_ns = u64::MAX;
        assert_eq!(response_times(&tasks), Err(SchedError::TimeOverflow));
    }

    #[test]
    fn an_analysis_that_takes_too_long_ends() {
        let tasks = [
            Task::new(0, 999_999_999, 1_000_000_000),
            Task::new(1, 1_000_000_000, 1 << 60),
        ];
        let mut work = Work::of(10_000);
        assert_eq!(worst(&tasks, 0, &mut work).err(), None);
        let found = worst(&tasks, 1, &mut work);
        assert_eq!(found.err(), Some(SchedError::TooLong));
    }

    #[test]
    fn tasks_of_one_level_are_bounded_and_not_exact() {
        let responses = response_times(&[Task::new(0, 2, 10), Task::new(0, 3, 10)]).unwrap();
        let bound = Response {
            worst_ns: Some(5),
            is_exact: false,
        };
        assert_eq!(responses, [bound; 2]);
    }
}
