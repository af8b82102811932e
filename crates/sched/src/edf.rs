//! Dynamic priorities: earliest deadline first and least laxity first, on one processor, below tasks of higher levels.
//!
//! * Processor demand (Baruah, Rosier, Howell, Real-Time Systems 2, 1990): a set is feasible if the jobs that are
//!   released and due within any window of length `t` take at most `t`:
//!   `h(t) = sum (1 + floor((t + J - D) / T)) C <= t` for each absolute deadline `t` of the synchronous busy period.
//!   With jitter: Spuri (INRIA RR-2772, 1996). Blocking adds its longest section (Baker, Real-Time Systems 3, 1991).
//! * Worst response times: Spuri (INRIA RR-2772, 1996). The worst job of a task lies in a busy period in which all
//!   other tasks are released at once at the start; each due time at which deadlines coincide is examined.
//! * Least laxity schedules exactly the sets that earliest deadline first schedules (Dertouzos and Mok, IEEE Trans.
//!   Software Engineering 15(12), 1989), so that deadlines bound the responses of a feasible set.
//! * A queue that runs each handler to its end: a job that has begun blocks by all of its cost (Jeffay, Stanat, Martel,
//!   RTSS 1991; George, Rivierre, Spuri, INRIA RR-2966, 1996).
//!
//! Tasks of higher levels take `sum ceil((t + J) / T) C` of each window, whatever their deadlines.

use std::cmp::Ordering;

use crate::bounds::{compare_with_one, hyperperiod};
use crate::error::SchedError;
use crate::task::{Response, Task, Work, add, fixed_point, jobs_within, mul};

/// A level whose queue orders jobs by deadline or laxity.
#[derive(Clone, Copy, Debug)]
pub struct Level<'t> {
    /// Tasks of the level. Their offsets are not used: any phase is allowed.
    pub own: &'t [Task],
    /// Tasks of all higher levels, which preempt the level.
    pub higher: &'t [Task],
    /// Whether a job that has begun runs to its end before another of the level begins.
    pub runs_to_completion: bool,
}

/// The result of the processor demand test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Every window has room for the jobs due in it.
    Fits,
    /// Jobs released and due within a window of this length take longer than it.
    Exceeds {
        /// Length of the shortest such window; `None` if the utilisation is above one.
        window_ns: Option<u64>,
    },
}

impl Level<'_> {
    /// Tests the processor demand. Without blocking and higher levels the test is exact: a set that fails it has
    /// releases that miss a deadline. Else it is sufficient.
    ///
    /// # Errors
    /// [`SchedError::TimeOverflow`] and [`SchedError::TooLong`].
    pub fn demand(&self) -> Result<Demand, SchedError> {
        self.test_demand(&mut Work::new())
    }

    fn test_demand(&self, work: &mut Work) -> Result<Demand, SchedError> {
        match self.horizon(work)? {
            Some(end_ns) => self.demand_until(end_ns, work),
            None => Ok(Demand::Exceeds { window_ns: None }),
        }
    }

    /// Returns the worst response time of each task under earliest deadline first. Ties are broken against the task.
    ///
    /// # Errors
    /// As [`Self::demand`].
    pub fn deadline_responses(&self) -> Result<Vec<Response>, SchedError> {
        self.under_deadlines(&mut Work::new())
    }

    pub(crate) fn under_deadlines(&self, work: &mut Work) -> Result<Vec<Response>, SchedError> {
        // The other half is for the demand.
        let mut part = work.lend(work.half());
        let Some(end_ns) = self.horizon(&mut part)? else {
            return Ok(self.own.iter().map(|_| Response::UNBOUNDED).collect());
        };
        let mut responses = Vec::with_capacity(self.own.len());
        let mut demand = None;
        for index in 0..self.own.len() {
            let response = match self.worst(index, end_ns, &mut part) {
                // A feasible set still has its deadlines as bounds.
                Err(SchedError::TooLong) => {
                    let deadline_ns = self.own[index].deadline_ns;
                    let known = match demand {
                        Some(known) => known,
                        None => self.test_demand(work)?,
                    };
                    demand = Some(known);
                    match known {
                        Demand::Fits => Response {
                            worst_ns: Some(deadline_ns),
                            is_exact: false,
                        },
                        Demand::Exceeds { .. } => return Err(SchedError::TooLong),
                    }
                }
                other => other?,
            };
            responses.push(response);
        }
        work.give_back(part);
        Ok(responses)
    }

    /// Returns a bound of the worst response time of each task under least laxity first: the deadlines of a feasible
    /// set that preempts, or the length of the busy period, which bounds every order.
    ///
    /// # Errors
    /// As [`Self::demand`].
    pub fn laxity_responses(&self) -> Result<Vec<Response>, SchedError> {
        self.under_laxities(&mut Work::new())
    }

    pub(crate) fn under_laxities(&self, work: &mut Work) -> Result<Vec<Response>, SchedError> {
        let mut part = work.lend(work.half());
        let busy_ns = match self.horizon(&mut part)? {
            Some(_) => self.busy_period(u64::MAX, &mut part),
            None => Ok(None),
        };
        // A full processor need not have an end of its busy period.
        let busy_ns = match busy_ns {
            Err(SchedError::TooLong | SchedError::TimeOverflow) => None,
            other => other?,
        };
        work.give_back(part);
        let fits = !self.runs_to_completion && self.test_demand(work)? == Demand::Fits;
        let bound = |task: &Task| {
            let busy = busy_ns.and_then(|busy| busy.checked_add(task.jitter_ns));
            let deadline = fits.then_some(task.deadline_ns);
            Response {
                worst_ns: [busy, deadline].into_iter().flatten().min(),
                is_exact: false,
            }
        };
        Ok(self.own.iter().map(bound).collect())
    }

    /// Returns the end of the windows to examine: that of the synchronous busy period, or, for a full processor, the
    /// hyperperiod and the longest deadline, after which demand repeats. `None` if the utilisation is above one.
    fn horizon(&self, work: &mut Work) -> Result<Option<u64>, SchedError> {
        let all = || self.own.iter().chain(self.higher);
        let shares = all().map(|task| (task.cost_ns, task.period_ns));
        match compare_with_one(shares) {
            Ordering::Greater => Ok(None),
            Ordering::Less => self.busy_period(u64::MAX, work),
            Ordering::Equal => {
                let repeats = hyperperiod(all().map(|task| task.period_ns))?;
                let longest = all().map(|task| task.deadline_ns.max(task.jitter_ns)).max();
                let end_ns = add(repeats, longest.unwrap_or(0))?;
                Ok(Some(self.busy_period(end_ns, work)?.unwrap_or(end_ns)))
            }
        }
    }

    /// Returns the length of the longest busy period, or `None` if it is longer than `end_ns`.
    fn busy_period(&self, end_ns: u64, work: &mut Work) -> Result<Option<u64>, SchedError> {
        let all = || self.own.iter().chain(self.higher);
        let costs = all().try_fold(0, |sum, task| add(sum, task.cost_ns))?;
        let blocking_ns = self.own.iter().map(|task| task.blocking_ns).max();
        fixed_point(costs, end_ns, |window| {
            work.spend(self.own.len() + self.higher.len())?;
            all().try_fold(blocking_ns.unwrap_or(0), |sum, task| {
                add(sum, mul(jobs_within(task, window)?, task.cost_ns)?)
            })
        })
    }

    fn demand_until(&self, end_ns: u64, work: &mut Work) -> Result<Demand, SchedError> {
        let mut window = 0;
        loop {
            work.spend(2 * self.own.len() + self.higher.len())?;
            if self.demand_within(window)? > window {
                return Ok(Demand::Exceeds {
                    window_ns: Some(window),
                });
            }
            let mut next = None;
            for task in self.own {
                let due = due_after(task, window)?;
                next = Some(next.map_or(due, |next: u64| next.min(due)));
            }
            match next {
                Some(next) if next <= end_ns => window = next,
                _ => return Ok(Demand::Fits),
            }
        }
    }

    /// Returns the time that jobs released and due within a window take, with what may delay them.
    fn demand_within(&self, window_ns: u64) -> Result<u64, SchedError> {
        let mut sum = self.blocking(window_ns);
        let mut is_asked = false;
        for task in self.own {
            let jobs = jobs_due_within(task, window_ns)?;
            is_asked |= jobs > 0 && task.cost_ns > 0;
            sum = add(sum, mul(jobs, task.cost_ns)?)?;
        }
        if !is_asked {
            return Ok(0);
        }
        self.higher.iter().try_fold(sum, |sum, task| {
            add(sum, mul(jobs_within(task, window_ns)?, task.cost_ns)?)
        })
    }

    /// Returns the longest blocking of jobs that are due within a window from its start.
    fn blocking(&self, window_ns: u64) -> u64 {
        let is_due = |task: &&Task| task.deadline_ns.saturating_sub(task.jitter_ns) <= window_ns;
        let declared = self.own.iter().filter(is_due).map(|task| task.blocking_ns);
        let begun = self
            .own
            .iter()
            .filter(|task| self.runs_to_completion && !is_due(task))
            .map(|task| task.cost_ns);
        declared.max().unwrap_or(0).max(begun.max().unwrap_or(0))
    }

    fn worst(&self, index: usize, end_ns: u64, work: &mut Work) -> Result<Response, SchedError> {
        let under = &self.own[index];
        let mut worst = add(under.jitter_ns, under.cost_ns)?;
        // Due times are counted from the greatest jitter before the start: `shift` is the due time and that.
        let mut shift = 0;
        let last = add(end_ns, under.jitter_ns)?;
        while shift < last {
            let end = self.end_of_job(index, shift, work)?;
            worst = worst.max(add(end, under.jitter_ns)?.saturating_sub(shift));
            shift = self.next_shift(index, shift, work)?;
        }
        let is_plain = |task: &Task| task.blocking_ns == 0 && task.transaction.is_none();
        Ok(Response {
            worst_ns: Some(worst),
            is_exact: !self.runs_to_completion && self.own.iter().chain(self.higher).all(is_plain),
        })
    }

    /// Returns the next due time after `shift` at which the task has one more job before it, or its deadline coincides
    /// with another task's.
    fn next_shift(&self, index: usize, shift: u64, work: &mut Work) -> Result<u64, SchedError> {
        work.spend(self.own.len())?;
        let under = &self.own[index];
        let mut next = mul(shift / under.period_ns + 1, under.period_ns)?;
        for task in self.own {
            // Deadlines from the start: `shift - J + D` of this task, `k T - J + D` of the others.
            let ours = add(add(shift, under.deadline_ns)?, task.jitter_ns)?;
            let theirs = add(task.deadline_ns, under.jitter_ns)?;
            let jobs = match ours.checked_sub(theirs) {
                Some(since) => since / task.period_ns + 1,
                None => 0,
            };
            let theirs = add(theirs, mul(jobs, task.period_ns)?)?;
            next = next.min(shift + (theirs - ours));
        }
        Ok(next)
    }

    /// Returns the end of the job due at `shift` less its jitter, in a busy period from 0 on.
    fn end_of_job(&self, index: usize, shift: u64, work: &mut Work) -> Result<u64, SchedError> {
        let under = &self.own[index];
        let own_jobs = shift / under.period_ns + 1;
        // Its absolute deadline, and the jitter that has to be taken from it.
        let deadline = add(shift, under.deadline_ns)?;
        let is_later =
            |task: &&Task| add(task.deadline_ns, under.jitter_ns).is_ok_and(|one| one > deadline);
        // What blocks a job that is due before this one delays this one too.
        let sooner = self.own.iter().filter(|task| !is_later(task));
        let declared = sooner.map(|task| task.blocking_ns).max();
        let mut blocking = under.blocking_ns.max(declared.unwrap_or(0));
        if self.runs_to_completion {
            let begun = self.own.iter().filter(is_later).map(|task| task.cost_ns);
            blocking = blocking.max(begun.max().unwrap_or(0));
        }
        let fixed = add(blocking, mul(own_jobs, under.cost_ns)?)?;
        let end = fixed_point(fixed, u64::MAX, |window| {
            work.spend(self.own.len() + self.higher.len())?;
            let mut sum = fixed;
            for (position, task) in self.own.iter().enumerate() {
                if position == index {
                    continue;
                }
                let since = add(deadline, task.jitter_ns)?
                    .checked_sub(add(task.deadline_ns, under.jitter_ns)?);
                let due = since.map_or(0, |since| since / task.period_ns + 1);
                let jobs = due.min(jobs_within(task, window)?);
                sum = add(sum, mul(jobs, task.cost_ns)?)?;
            }
            for task in self.higher {
                sum = add(sum, mul(jobs_within(task, window)?, task.cost_ns)?)?;
            }
            Ok(sum)
        })?;
        Ok(end.expect("no window is longer than the greatest number"))
    }
}

/// Returns how many jobs of a task can be released and due within a window.
fn jobs_due_within(task: &Task, window_ns: u64) -> Result<u64, SchedError> {
    let since = add(window_ns, task.jitter_ns)?.checked_sub(task.deadline_ns);
    Ok(since.map_or(0, |since| since / task.period_ns + 1))
}

/// Returns the first deadline of a task after `window_ns`, if its jobs are released as early as possible.
fn due_after(task: &Task, window_ns: u64) -> Result<u64, SchedError> {
    let jobs = jobs_due_within(task, window_ns)?;
    let due = add(task.deadline_ns, mul(jobs, task.period_ns)?)?;
    Ok(due.saturating_sub(task.jitter_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(own: &[Task]) -> Level<'_> {
        Level {
            own,
            higher: &[],
            runs_to_completion: false,
        }
    }

    fn with_deadline(cost_ns: u64, deadline_ns: u64, period_ns: u64) -> Task {
        Task {
            deadline_ns,
            ..Task::new(0, cost_ns, period_ns)
        }
    }

    fn worst_of(level: Level<'_>) -> Vec<Option<u64>> {
        let responses = level.deadline_responses().unwrap();
        responses.iter().map(|response| response.worst_ns).collect()
    }

    #[test]
    fn all_of_the_processor_can_be_used_and_not_more() {
        let full = [Task::new(0, 2, 4), Task::new(0, 4, 8)];
        assert_eq!(level(&full).demand(), Ok(Demand::Fits));
        assert_eq!(worst_of(level(&full)), [Some(4), Some(8)]);
        let over = [Task::new(0, 2, 4), Task::new(0, 5, 8)];
        assert_eq!(
            level(&over).demand(),
            Ok(Demand::Exceeds { window_ns: None })
        );
        assert_eq!(worst_of(level(&over)), [None, None]);
        assert_eq!(level(&[]).demand(), Ok(Demand::Fits));
    }

    #[test]
    fn short_deadlines_make_a_window_too_full() {
        let tasks = [with_deadline(2, 3, 6), with_deadline(2, 3, 9)];
        let exceeds = Demand::Exceeds { window_ns: Some(3) };
        assert_eq!(level(&tasks).demand(), Ok(exceeds));
        assert_eq!(worst_of(level(&tasks)), [Some(4), Some(4)]);
        let tasks = [with_deadline(2, 2, 6), with_deadline(2, 4, 9)];
        assert_eq!(level(&tasks).demand(), Ok(Demand::Fits));
    }

    #[test]
    fn jitter_brings_deadlines_nearer() {
        let mut tasks = [with_deadline(2, 4, 6), with_deadline(2, 3, 9)];
        assert_eq!(level(&tasks).demand(), Ok(Demand::Fits));
        tasks[0].jitter_ns = 1;
        let exceeds = Demand::Exceeds { window_ns: Some(3) };
        assert_eq!(level(&tasks).demand(), Ok(exceeds));
        assert_eq!(worst_of(level(&tasks)), [Some(5), Some(4)]);
    }

    #[test]
    fn a_handler_that_has_begun_blocks_an_earlier_deadline() {
        let tasks = [with_deadline(1, 3, 10), with_deadline(4, 20, 20)];
        let queue = Level {
            runs_to_completion: true,
            ..level(&tasks)
        };
        assert_eq!(level(&tasks).demand(), Ok(Demand::Fits));
        let exceeds = Demand::Exceeds { window_ns: Some(3) };
        assert_eq!(queue.demand(), Ok(exceeds));
        let responses = queue.deadline_responses().unwrap();
        assert_eq!(responses[0].worst_ns, Some(5));
        assert!(!responses[0].is_exact);
        let laxity = queue.laxity_responses().unwrap();
        assert_eq!(laxity[0].worst_ns, Some(5));
    }

    #[test]
    fn declared_blocking_counts_from_the_deadline_on() {
        let mut tasks = [with_deadline(2, 4, 10), with_deadline(3, 9, 12)];
        tasks[0].blocking_ns = 3;
        let exceeds = Demand::Exceeds { window_ns: Some(4) };
        assert_eq!(level(&tasks).demand(), Ok(exceeds));
        tasks[0].blocking_ns = 2;
        assert_eq!(level(&tasks).demand(), Ok(Demand::Fits));
        assert!(!level(&tasks).deadline_responses().unwrap()[0].is_exact);
    }

    #[test]
    fn higher_levels_take_their_time_first() {
        let own = [with_deadline(2, 4, 10)];
        let higher = [Task::new(0, 1, 3)];
        let below = Level {
            higher: &higher,
            ..level(&own)
        };
        assert_eq!(below.demand(), Ok(Demand::Fits));
        assert_eq!(worst_of(below), [Some(3)]);
        let higher = [Task::new(0, 2, 3)];
        let below = Level {
            higher: &higher,
            ..level(&own)
        };
        let exceeds = Demand::Exceeds { window_ns: Some(4) };
        assert_eq!(below.demand(), Ok(exceeds));
    }

    #[test]
    fn laxity_is_bounded_by_the_deadlines_of_a_feasible_set() {
        let tasks = [Task::new(0, 1, 4), Task::new(0, 2, 20)];
        let bounds = level(&tasks).laxity_responses().unwrap();
        assert_eq!(bounds[0].worst_ns, Some(3));
        assert_eq!(bounds[1].worst_ns, Some(3));
        let over = [Task::new(0, 3, 4), Task::new(0, 2, 4)];
        let bounds = level(&over).laxity_responses().unwrap();
        assert_eq!(bounds[0].worst_ns, None);
    }

    #[test]
    fn a_job_that_runs_to_its_end_is_bounded_by_the_busy_period_and_not_by_its_deadline() {
        let tasks = [
            with_deadline(1, 5, 10),
            with_deadline(4, 20, 20),
            with_deadline(4, 30, 30),
        ];
        let queue = Level {
            runs_to_completion: true,
            ..level(&tasks)
        };
        assert_eq!(queue.demand(), Ok(Demand::Fits));
        assert_eq!(queue.laxity_responses().unwrap()[0].worst_ns, Some(9));
        let mut blocked = [with_deadline(2, 10, 10)];
        blocked[0].blocking_ns = 3;
        let queue = Level {
            own: &blocked,
            ..queue
        };
        assert_eq!(queue.laxity_responses().unwrap()[0].worst_ns, Some(5));
    }

    #[test]
    fn a_task_that_costs_nothing_misses_nothing_where_it_is_blocked() {
        let mut tasks = [with_deadline(0, 2, 10)];
        tasks[0].blocking_ns = 3;
        assert_eq!(level(&tasks).demand(), Ok(Demand::Fits));
    }

    #[test]
    fn a_section_or_a_handler_of_a_task_with_an_equal_deadline_delays_once() {
        // Both deadlines are 10. The section that blocks the first task takes 3, then the two jobs take 2 and 3.
        let mut tasks = [with_deadline(2, 10, 20), with_deadline(3, 10, 20)];
        tasks[0].blocking_ns = 3;
        assert_eq!(worst_of(level(&tasks)), [Some(8), Some(8)]);
        // The other task has one job in the window. If it has begun, it counts once, not as a blocking too.
        tasks[0].blocking_ns = 0;
        let queue = Level {
            runs_to_completion: true,
            ..level(&tasks)
        };
        assert_eq!(worst_of(queue), [Some(5), Some(5)]);
    }

    #[test]
    fn an_analysis_spends_one_more_than_the_terms_of_each_sum() {
        let own = [Task::new(0, 1, 10); 3];
        let higher = [Task::new(0, 1, 10)];
        let below = Level {
            higher: &higher,
            ..level(&own)
        };
        // The busy period is 4, found by one sum of four terms. Until 4 there is one window, with four terms of demand
        // and three of the next deadline.
        let demand = |terms| below.test_demand(&mut Work::of(terms));
        assert_eq!(demand(5 + 8), Ok(Demand::Fits));
        assert_eq!(demand(5 + 8 - 1), Err(SchedError::TooLong));
        // Two sums lead from 1 to 4 and no further. The next due time, of three terms, is beyond the busy period.
        let worst = |terms| below.worst(0, 4, &mut Work::of(terms));
        assert_eq!(worst(2 * 5 + 4).map(|found| found.worst_ns), Ok(Some(4)));
        assert_eq!(worst(2 * 5 + 4 - 1), Err(SchedError::TooLong));
    }
}
