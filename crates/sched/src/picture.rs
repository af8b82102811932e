//! The schedule from the critical instant of the tightest operation on, as intervals to be drawn.

use crate::error::SchedError;
use crate::fixed::{Release, critical_instant};
use crate::limits::INTERVALS_MAX;
use crate::schedule::Schedule;
use crate::simulate::{Interval, Job, Rules, simulate};
use crate::strategy::Dispatch;
use crate::task::{Task, add, mul};

/// What runs from a critical instant on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The segment whose worst response it shows, as a position in [`Schedule::segments`]; for a queue ordered by
    /// deadline or laxity, all segments begin together and the worst response may come later.
    pub segment: usize,
    /// The critical instant; due times before it are those that jitter has delayed.
    pub start_ns: u64,
    /// End of the picture.
    pub end_ns: u64,
    /// Jobs: segment, due time, deadline, end.
    pub jobs: Vec<PictureJob>,
    /// Intervals of execution; the job is a position in `jobs`.
    pub intervals: Vec<Interval>,
    /// Blocking of the segment at the start.
    pub blocking_ns: u64,
}

/// A job of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureJob {
    /// Position of its segment.
    pub segment: usize,
    /// When it is due.
    pub due_ns: u64,
    /// Its deadline.
    pub deadline_ns: u64,
    /// When it ends, if it ends within the picture.
    pub end_ns: Option<u64>,
}

impl Picture {
    /// Simulates the schedule from the critical instant of its tightest segment, for as long as its worst response and
    /// its deadline last, or until too many jobs are released. Returns `None` for a schedule without operations.
    ///
    /// # Errors
    /// [`SchedError::TimeOverflow`], [`SchedError::TooLong`].
    pub fn of(schedule: &Schedule) -> Result<Option<Self>, SchedError> {
        let Some(segment) = schedule.tightest() else {
            return Ok(None);
        };
        let tasks: Vec<Task> = schedule.segments.iter().map(|one| one.task).collect();
        let levels: Vec<Dispatch> = schedule.levels.iter().map(|level| level.dispatch).collect();
        let under = &tasks[segment];
        let is_static = levels.get(under.level as usize) == Some(&Dispatch::Static);
        let releases = if is_static {
            critical_instant(&tasks, segment)?
        } else {
            tasks.iter().map(at_once).collect()
        };
        let start_ns = start(&tasks, &releases)?;
        let worst_ns = schedule.responses[segment].worst_ns.unwrap_or(0);
        let shown_ns = add(worst_ns.max(under.deadline_ns), under.period_ns)?;
        let end_ns = add(start_ns, shown_ns)?;
        let blocking_ns = if is_static { under.blocking_ns } else { 0 };
        let mut draft = Draft {
            tasks: &tasks,
            start_ns,
            end_ns,
            jobs: Vec::new(),
        };
        draft.release(&releases)?;
        let mut jobs = draft.jobs;
        jobs.push(Job {
            task: usize::MAX,
            level: 0,
            release_ns: start_ns,
            deadline_ns: 0,
            cost_ns: blocking_ns,
        });
        let under_blocking: Vec<Dispatch> = [Dispatch::Static].into_iter().chain(levels).collect();
        let trace = simulate(
            &jobs,
            Rules {
                levels: &under_blocking,
                runs_to_completion: schedule.settings.runs_to_completion,
                last: Some(segment),
                slice_ns: None,
            },
        );
        let in_picture = |one: &Interval| one.start_ns < end_ns && one.task != usize::MAX;
        let drawn = |job: &Job, end: &Option<u64>| PictureJob {
            segment: job.task,
            due_ns: job.deadline_ns.saturating_sub(tasks[job.task].deadline_ns),
            deadline_ns: job.deadline_ns,
            end_ns: *end,
        };
        let shown = jobs.iter().zip(&trace.ends);
        Ok(Some(Self {
            segment,
            start_ns,
            end_ns,
            jobs: shown
                .filter(|(job, _)| job.task != usize::MAX)
                .map(|(job, end)| drawn(job, end))
                .collect(),
            intervals: trace
                .intervals
                .iter()
                .filter(|one| in_picture(one))
                .copied()
                .collect(),
            blocking_ns,
        }))
    }
}

/// Returns the time of the critical instant, so that no due time before it is negative.
fn start(tasks: &[Task], releases: &[Release]) -> Result<u64, SchedError> {
    let mut start_ns = 0;
    for (task, release) in tasks.iter().zip(releases) {
        let before = mul(release.at_once, task.period_ns)?;
        start_ns = start_ns.max(before.saturating_sub(release.next_ns));
    }
    Ok(start_ns)
}

/// Returns the releases of a task with its greatest jitter at the start.
fn at_once(task: &Task) -> Release {
    let next_ns = task.period_ns - task.jitter_ns % task.period_ns;
    Release {
        at_once: task.jitter_ns / task.period_ns + 1,
        next_ns,
    }
}

struct Draft<'t> {
    tasks: &'t [Task],
    start_ns: u64,
    end_ns: u64,
    jobs: Vec<Job>,
}

impl Draft<'_> {
    /// Makes the jobs of all tasks that are due before the end; fewer of each, if there are too many.
    fn release(&mut self, releases: &[Release]) -> Result<(), SchedError> {
        let each_max = (INTERVALS_MAX / 2).div_ceil(self.tasks.len().max(1));
        for (position, (task, release)) in self.tasks.iter().zip(releases).enumerate() {
            for number in 0..each_max as u64 {
                let due = add(
                    self.start_ns,
                    add(release.next_ns, mul(number, task.period_ns)?)?,
                )?
                .saturating_sub(mul(release.at_once, task.period_ns)?);
                if due >= self.end_ns {
                    break;
                }
                self.jobs.push(Job {
                    task: position,
                    level: task.level.saturating_add(1),
                    release_ns: due.max(self.start_ns),
                    deadline_ns: add(due, task.deadline_ns)?,
                    cost_ns: task.cost_ns,
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::RtInfo;
    use crate::operations::Operations;
    use crate::schedule::Settings;
    use crate::strategy::Strategy;

    fn picture(strategy: Strategy, blocking_ns: u64) -> Picture {
        let mut operations = Operations::default();
        for (name, worst_case_ns, period_ns) in [("a", 3, 7), ("b", 3, 12), ("c", 5, 20)] {
            let info = RtInfo {
                entry_point: name.to_owned(),
                worst_case_ns,
                period_ns,
                blocking_ns: if name == "b" { blocking_ns } else { 0 },
                ..RtInfo::default()
            };
            operations.add(&info).unwrap();
        }
        let settings = Settings {
            strategy,
            ..Settings::default()
        };
        let schedule = Schedule::compute(&operations, settings).unwrap();
        Picture::of(&schedule).unwrap().unwrap()
    }

    #[test]
    fn the_picture_shows_the_worst_response_of_the_tightest_operation() {
        let picture = picture(Strategy::Rms, 0);
        assert_eq!((picture.segment, picture.start_ns), (2, 0));
        let first = picture.jobs.iter().find(|job| job.segment == 2).unwrap();
        assert_eq!((first.due_ns, first.end_ns), (0, Some(20)));
        let last = picture
            .intervals
            .iter()
            .filter(|one| one.task == 2 && one.end_ns <= 20);
        assert_eq!(last.map(|one| one.end_ns - one.start_ns).sum::<u64>(), 5);
    }

    #[test]
    fn blocking_delays_the_first_job_and_is_not_an_interval() {
        let picture = picture(Strategy::Rms, 6);
        assert_eq!((picture.segment, picture.blocking_ns), (1, 6));
        let first = picture.jobs.iter().find(|job| job.segment == 1).unwrap();
        assert_eq!(first.end_ns, Some(6 + 3 + 3 * 3));
        assert!(picture.intervals.iter().all(|one| one.start_ns >= 6));
    }

    #[test]
    fn a_queue_by_deadline_begins_with_all_at_once() {
        let picture = picture(Strategy::Edf, 0);
        let order: Vec<usize> = picture.intervals.iter().map(|one| one.task).collect();
        assert_eq!(&order[..4], [0, 1, 2, 0]);
        let nothing = Schedule::compute(&Operations::default(), Settings::default()).unwrap();
        assert_eq!(Picture::of(&nothing).unwrap(), None);
    }
}
