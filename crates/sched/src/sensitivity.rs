//! What to change: the execution times and periods at which a schedule becomes feasible.
//!
//! All else stays. Each number is found by bisection: response times grow with execution times and fall with periods.
//! What is returned has been analysed itself, so that it fits even where a strategy's priorities make the search miss a
//! better number. A set whose analysis takes too long does not fit. The greatest factor is Lehoczky, Sha and Ding's
//! breakdown scaling (RTSS 1989).

use crate::error::SchedError;
use crate::info::Handle;
use crate::limits::{SEARCH_STEP_WORK_MAX, SEARCH_WORK_MAX, SENSITIVITY_OPERATIONS_MAX};
use crate::operations::Operations;
use crate::schedule::{Schedule, Settings};
use crate::task::Work;

/// What one operation's declaration may be, all else unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The operation.
    pub of: Handle,
    /// Largest worst-case execution time that fits; `None` if none fits.
    pub worst_case_ns: Option<u64>,
    /// Smallest period that fits; `None` if none up to 64 times the declared one fits, or the operation has no period.
    pub period_ns: Option<u64>,
}

/// Returns what each enabled operation may be declared as; nothing for more than [`SENSITIVITY_OPERATIONS_MAX`]
/// operations.
///
/// # Errors
/// As [`Schedule::compute`].
pub fn changes(operations: &Operations, settings: Settings) -> Result<Vec<Change>, SchedError> {
    if operations.infos().len() > SENSITIVITY_OPERATIONS_MAX {
        return Ok(Vec::new());
    }
    let on = operations.handles().filter(|&one| operations.is_on(one));
    let mut search = Search::new(settings);
    on.map(|of| {
        Ok(Change {
            of,
            worst_case_ns: search.largest_worst_case(operations, of)?,
            period_ns: search.smallest_period(operations, of)?,
        })
    })
    .collect()
}

/// Returns the largest worst-case execution time of an operation with which all deadlines are met.
///
/// # Errors
/// As [`Schedule::compute`].
pub fn largest_worst_case(
    operations: &Operations,
    settings: Settings,
    of: Handle,
) -> Result<Option<u64>, SchedError> {
    Search::new(settings).largest_worst_case(operations, of)
}

/// Returns the smallest period of an operation with which all deadlines are met.
///
/// # Errors
/// As [`Schedule::compute`].
pub fn smallest_period(
    operations: &Operations,
    settings: Settings,
    of: Handle,
) -> Result<Option<u64>, SchedError> {
    Search::new(settings).smallest_period(operations, of)
}

/// Returns the greatest factor, in millionths, by which all worst-case execution times can be multiplied so that all
/// deadlines are met; at most 1000. `None` if not even execution times of 0 fit.
///
/// # Errors
/// As [`Schedule::compute`].
pub fn greatest_factor_millionths(
    operations: &Operations,
    settings: Settings,
) -> Result<Option<u64>, SchedError> {
    let mut search = Search::new(settings);
    largest(FACTOR_MAX_MILLIONTHS, |factor| {
        let mut changed = operations.clone();
        for handle in operations.handles() {
            let worst_case_ns = operations.get(handle)?.worst_case_ns;
            let scaled = u128::from(worst_case_ns) * u128::from(factor) / 1_000_000;
            let Ok(scaled) = u64::try_from(scaled) else {
                return Ok(false);
            };
            changed.change(handle, |info| info.worst_case_ns = scaled)?;
        }
        search.is_feasible(&changed)
    })
}

/// Periods are searched up to this multiple of the declared one.
const PERIOD_FACTOR_MAX: u64 = 64;

/// A set that a thousandth of the processor's speed could run needs no factor.
const FACTOR_MAX_MILLIONTHS: u64 = 1_000_000_000;

/// Analyses of changed sets, under one bound on their work. Beyond it nothing fits any more, so that what was found
/// until then is returned.
struct Search {
    settings: Settings,
    left: Work,
}

impl Search {
    const fn new(settings: Settings) -> Self {
        Self {
            settings,
            left: Work::of(SEARCH_WORK_MAX),
        }
    }

    fn largest_worst_case(
        &mut self,
        operations: &Operations,
        of: Handle,
    ) -> Result<Option<u64>, SchedError> {
        let longest = operations.infos().iter().map(|info| info.period_ns).max();
        let deadline = operations.get(of)?.deadline_ns.unwrap_or(0);
        let most = longest.unwrap_or(0).max(deadline);
        largest(most, |worst_case_ns| {
            self.fits(operations, of, |info| info.worst_case_ns = worst_case_ns)
        })
    }

    fn smallest_period(
        &mut self,
        operations: &Operations,
        of: Handle,
    ) -> Result<Option<u64>, SchedError> {
        let declared = operations.get(of)?.period_ns;
        let Some(most) = declared
            .checked_mul(PERIOD_FACTOR_MAX)
            .filter(|&most| most > 0)
        else {
            return Ok(None);
        };
        // Counted down from the longest: the largest cut that still fits.
        let cut = largest(most - 1, |cut| {
            self.fits(operations, of, |info| info.period_ns = most - cut)
        })?;
        Ok(cut.map(|cut| most - cut))
    }

    fn fits(
        &mut self,
        operations: &Operations,
        of: Handle,
        change: impl FnOnce(&mut crate::info::RtInfo),
    ) -> Result<bool, SchedError> {
        let mut changed = operations.clone();
        changed.change(of, change)?;
        self.is_feasible(&changed)
    }

    fn is_feasible(&mut self, operations: &Operations) -> Result<bool, SchedError> {
        let mut work = self.left.lend(SEARCH_STEP_WORK_MAX);
        let found = Schedule::within(&mut work, operations, self.settings);
        self.left.give_back(work);
        match found {
            Ok(schedule) => Ok(schedule.is_feasible()),
            // A sum that does not fit 584 years meets no deadline. What cannot be analysed is no advice.
            Err(
                SchedError::TimeOverflow | SchedError::HyperperiodOverflow | SchedError::TooLong,
            ) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Returns the largest number up to `most` that `is_good` accepts, if it accepts all below that.
fn largest(
    most: u64,
    mut is_good: impl FnMut(u64) -> Result<bool, SchedError>,
) -> Result<Option<u64>, SchedError> {
    if is_good(most)? {
        return Ok(Some(most));
    }
    if !is_good(0)? {
        return Ok(None);
    }
    let (mut good, mut bad) = (0, most);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if is_good(middle)? {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Ok(Some(good))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::{CallKind, Dependency, Enabled, RtInfo};

    fn set(tasks: &[(u64, u64)]) -> Operations {
        let mut operations = Operations::default();
        for (number, &(worst_case_ns, period_ns)) in tasks.iter().enumerate() {
            let info = RtInfo {
                entry_point: number.to_string(),
                worst_case_ns,
                period_ns,
                ..RtInfo::default()
            };
            operations.add(&info).unwrap();
        }
        operations
    }

    const RMS: Settings = Settings {
        strategy: crate::Strategy::Rms,
        overhead_ns: 0,
        runs_to_completion: false,
    };

    #[test]
    fn the_numbers_found_fit_and_the_next_do_not() {
        // 3 of 7 and 3 of 12 leave 5 of 20, and not 6.
        let operations = set(&[(3, 7), (3, 12), (6, 20)]);
        assert!(!Search::new(RMS).is_feasible(&operations).unwrap());
        let found = changes(&operations, RMS).unwrap();
        let costs: Vec<_> = found.iter().map(|change| change.worst_case_ns).collect();
        assert_eq!(costs, [Some(2), Some(2), Some(5)]);
        for change in &found {
            let fits_with = |cost| {
                Search::new(RMS)
                    .fits(&operations, change.of, |info| info.worst_case_ns = cost)
                    .unwrap()
            };
            let most = change.worst_case_ns.unwrap();
            assert!(fits_with(most) && !fits_with(most + 1), "{change:?}");
            let fits_every = |period| {
                Search::new(RMS)
                    .fits(&operations, change.of, |info| info.period_ns = period)
                    .unwrap()
            };
            let least = change.period_ns.unwrap();
            assert!(fits_every(least) && !fits_every(least - 1), "{change:?}");
        }
        assert_eq!(found[2].period_ns, Some(21));
        let draw = found[2].of;
        assert_eq!(largest_worst_case(&operations, RMS, draw), Ok(Some(5)));
        assert_eq!(smallest_period(&operations, RMS, draw), Ok(Some(21)));
    }

    #[test]
    fn a_period_that_releases_nothing_can_be_any_and_without_one_there_is_none() {
        let mut operations = set(&[(3, 7), (1, 20), (1, 0)]);
        let timer = Handle::at(0);
        for consumer in [1, 2] {
            let dependency = Dependency {
                on: timer,
                kind: CallKind::OneWay,
                calls: 1,
                enabled: Enabled::Enabled,
            };
            operations
                .add_dependency(Handle::at(consumer), dependency)
                .unwrap();
        }
        let found = changes(&operations, RMS).unwrap();
        let periods: Vec<_> = found.iter().map(|change| change.period_ns).collect();
        // One timer releases all three, 5 in each of its periods.
        assert_eq!(periods, [Some(5), Some(1), None]);
    }

    #[test]
    fn large_sets_are_not_searched() {
        let tasks = [(1, 1000); SENSITIVITY_OPERATIONS_MAX + 1];
        assert_eq!(changes(&set(&tasks), RMS), Ok(Vec::new()));
        let found = changes(&set(&tasks[1..]), RMS).unwrap();
        assert_eq!(found.len(), SENSITIVITY_OPERATIONS_MAX);
    }

    #[test]
    fn a_change_of_one_operation_need_not_help() {
        let operations = set(&[(9, 10), (9, 20), (1, 40)]);
        let found = changes(&operations, RMS).unwrap();
        assert_eq!(found[2].worst_case_ns, None);
        assert_eq!(found[2].period_ns, None);
        assert_eq!(found[1].worst_case_ns, Some(1));
    }

    #[test]
    fn the_factor_is_the_breakdown_scaling() {
        let operations = set(&[(100, 400), (100, 800)]);
        let factor = greatest_factor_millionths(&operations, RMS).unwrap();
        // Twice 266.66 and once that fit 800.
        assert_eq!(factor, Some(2_669_999));
        let nothing = set(&[(0, 10)]);
        let factor = greatest_factor_millionths(&nothing, RMS).unwrap();
        assert_eq!(factor, Some(FACTOR_MAX_MILLIONTHS));
    }
}
