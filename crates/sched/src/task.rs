//! The task of scheduling theory: an endless sequence of jobs, each with an execution time and a deadline.

use crate::error::SchedError;
use crate::limits::WORK_MAX;

/// A task. Its jobs are due at `offset_ns + k * period_ns` after the start of its transaction, or at least `period_ns`
/// apart. They are released up to `jitter_ns` later; deadline and response time are counted from the due time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Longest execution time of a job, with the overhead of its dispatch.
    pub cost_ns: u64,
    /// Least time between two due times; above 0.
    pub period_ns: u64,
    /// Relative deadline; it may be shorter or longer than the period.
    pub deadline_ns: u64,
    /// Release jitter.
    pub jitter_ns: u64,
    /// Longest blocking by tasks of lower priority (Sha, Rajkumar, Lehoczky 1990: one critical section).
    pub blocking_ns: u64,
    /// Offset in the transaction.
    pub offset_ns: u64,
    /// Tasks of one transaction have one period and a fixed phase. `None`: the phase is arbitrary.
    pub transaction: Option<u32>,
    /// Its priority; 0 is the most urgent.
    pub level: u32,
    /// Whether a job is a chain of events through its level's queue: the next job may then run before it ends.
    pub is_chain: bool,
}

impl Task {
    /// Returns an independent task without jitter and blocking, whose deadline is its period.
    #[must_use]
    pub const fn new(level: u32, cost_ns: u64, period_ns: u64) -> Self {
        Self {
            cost_ns,
            period_ns,
            deadline_ns: period_ns,
            jitter_ns: 0,
            blocking_ns: 0,
            offset_ns: 0,
            transaction: None,
            level,
            is_chain: false,
        }
    }
}

/// A worst response time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The longest time from a job's due time to its end, or a bound of it. `None`: there is no bound.
    pub worst_ns: Option<u64>,
    /// Whether a job can take that long. If not, `worst_ns` is a safe upper bound.
    pub is_exact: bool,
}

impl Response {
    /// No bound exists: the jobs that come first take more time than there is.
    pub const UNBOUNDED: Self = Self {
        worst_ns: None,
        is_exact: true,
    };

    /// No bound was found, and nothing shows that there is none.
    pub const UNKNOWN: Self = Self {
        worst_ns: None,
        is_exact: false,
    };

    /// Whether every job ends within `deadline_ns`.
    #[must_use]
    pub fn meets(self, deadline_ns: u64) -> bool {
        self.worst_ns.is_some_and(|worst| worst <= deadline_ns)
    }
}

/// The work that an analysis may still do.
#[derive(Debug)]
pub(crate) struct Work(u64);

impl Work {
    pub(crate) const fn new() -> Self {
        Self(WORK_MAX)
    }

    pub(crate) const fn of(terms: u64) -> Self {
        Self(terms)
    }

    /// Takes at most `most` out, for a part of the analysis whose excess must not use up all.
    pub(crate) fn lend(&mut self, most: u64) -> Self {
        let lent = most.min(self.0);
        self.0 -= lent;
        Self(lent)
    }

    /// Takes back what a part did not spend.
    pub(crate) const fn give_back(&mut self, rest: Self) {
        self.0 += rest.0;
    }

    /// Returns half of what is left.
    pub(crate) const fn half(&self) -> u64 {
        self.0 / 2
    }

    pub(crate) fn spend(&mut self, terms: usize) -> Result<(), SchedError> {
        self.0 = self
            .0
            .checked_sub(terms as u64 + 1)
            .ok_or(SchedError::TooLong)?;
        Ok(())
    }
}

pub(crate) fn add(a: u64, b: u64) -> Result<u64, SchedError> {
    a.checked_add(b).ok_or(SchedError::TimeOverflow)
}

pub(crate) fn mul(a: u64, b: u64) -> Result<u64, SchedError> {
    a.checked_mul(b).ok_or(SchedError::TimeOverflow)
}

/// Returns how many jobs of a task are released in a busy period's first `window_ns`, if one is released at its start
/// after the greatest jitter and the others as early as possible: `ceil((window + jitter) / period)` (Tindell, Burns,
/// Wellings 1994).
pub(crate) fn jobs_within(task: &Task, window_ns: u64) -> Result<u64, SchedError> {
    Ok(add(window_ns, task.jitter_ns)?.div_ceil(task.period_ns))
}

/// Returns the least solution of `window = demand(window)` from `start_ns` on; `demand` never decreases. `None` if it
/// is longer than `end_ns`.
pub(crate) fn fixed_point(
    start_ns: u64,
    end_ns: u64,
    mut demand: impl FnMut(u64) -> Result<u64, SchedError>,
) -> Result<Option<u64>, SchedError> {
    let mut window = start_ns;
    loop {
        let next = demand(window)?;
        if next <= window {
            return Ok(Some(window));
        }
        if next > end_ns {
            return Ok(None);
        }
        window = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_solution_is_found_up_to_the_end_and_not_beyond() {
        // From 1 on, `w = 2 + 3 ceil(w / 4)` leads to 5, 8 and no further.
        let demand = |window: u64| Ok(2 + 3 * window.div_ceil(4));
        assert_eq!(fixed_point(1, 8, demand), Ok(Some(8)));
        assert_eq!(fixed_point(1, 7, demand), Ok(None));
        assert_eq!(fixed_point(8, 8, demand), Ok(Some(8)));
    }
}
