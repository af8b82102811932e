//! The schedule of another scheduler, ours in another process or TAO's, as a channel reads it.

use std::time::Duration;

use deckwatch_orb::PriorityMapping;
use deckwatch_sched::{Anomaly, AnomalyFact, Operations};

use super::{RtInfo, SchedulingError, Table, corba};
use crate::dispatch::QueueOrder;
use crate::rtec_base::DependencyInfo;
use crate::rtec_scheduler::{AnomalySeverity, ConfigInfo, DispatchingTypeT, RTInfo, SchedulerRef};
use crate::scheduler::{Failure, mirrored};

pub(super) fn other_table(
    scheduler: &SchedulerRef,
    (least, most): (i32, i32),
    mapping: &dyn PriorityMapping,
) -> Result<Table, SchedulingError> {
    let (infos, dependencies, configs, anomalies) = scheduler.compute_scheduling(least, most)?;
    let natives = Natives::of(&configs, (least, most))?;
    let mut table = Table::default();
    for config in &configs {
        let order = match config.dispatching_type {
            DispatchingTypeT::StaticDispatching => QueueOrder::Arrival,
            DispatchingTypeT::DeadlineDispatching => QueueOrder::Deadline,
            DispatchingTypeT::LaxityDispatching => QueueOrder::Laxity,
        };
        let lane = (
            corba(mapping, natives.of_reported(config.thread_priority))?,
            order,
        );
        table.lanes.push(lane);
    }
    table.lanes.sort_by_key(|lane| std::cmp::Reverse(lane.0));
    // The wire has the declared period alone; a consumer has its suppliers'.
    let (mirror, periods) = read_back(&infos, dependencies, &configs)?;
    for ((wire, declared), period_ns) in infos.iter().zip(mirror.infos()).zip(&periods) {
        table.declared.push(wire.handle);
        if let Some(period_ns) = *period_ns {
            let info = RtInfo {
                priority: corba(mapping, natives.of_reported(wire.priority))?,
                deadline: Duration::from_nanos(period_ns),
                worst_case: Duration::from_nanos(declared.worst_case_ns),
            };
            table.infos.insert(wire.handle, info);
        }
    }
    let is_fault = |severity: AnomalySeverity| {
        matches!(
            severity,
            AnomalySeverity::AnomalyFatal | AnomalySeverity::AnomalyError
        )
    };
    let unrated: Vec<String> = mirror
        .handles()
        .zip(&periods)
        .filter(|(_, period_ns)| period_ns.is_none())
        .map(|(of, _)| Anomaly {
            of: Some(of),
            fact: AnomalyFact::Unresolved,
        })
        .map(|anomaly| anomaly.describe(&mirror))
        .collect();
    let faults = anomalies
        .into_iter()
        .filter(|anomaly| is_fault(anomaly.severity))
        .map(|anomaly| anomaly.description);
    // An operation without a rate waits for a supplier.
    table.faults = faults.filter(|words| !unrated.contains(words)).collect();
    Ok(table)
}

/// Returns the operations of another scheduler, with the period of each. TAO's service exchanges the two ends of each
/// dependency in its answer. Nothing says so, but the priorities tell: an operation has one where it has a rate.
fn read_back(
    infos: &[RTInfo],
    mut dependencies: Vec<DependencyInfo>,
    configs: &[ConfigInfo],
) -> Result<(Operations, Vec<Option<u64>>), SchedulingError> {
    let read = |dependencies: &[DependencyInfo]| {
        let mirror = mirrored(infos, dependencies)?;
        let periods = deckwatch_sched::periods(&mirror).map_err(Failure::from)?;
        Ok::<_, SchedulingError>((mirror, periods))
    };
    let contradictions = |periods: &[Option<u64>]| {
        let has_priority =
            |info: &RTInfo| (configs.iter()).any(|one| one.thread_priority == info.priority);
        let pairs = infos.iter().zip(periods);
        let of = pairs.filter(|(info, period)| has_priority(info) != period.is_some());
        of.count()
    };
    let told = read(&dependencies)?;
    if contradictions(&told.1) == 0 {
        return Ok(told);
    }
    for one in &mut dependencies {
        std::mem::swap(&mut one.rt_info, &mut one.rt_info_depended_on);
    }
    match read(&dependencies) {
        Ok(exchanged) if contradictions(&exchanged.1) < contradictions(&told.1) => Ok(exchanged),
        _ => Ok(told),
    }
}

/// The native priorities of a foreign schedule. TAO's scheduler takes a range and computes without it, from the most
/// urgent priority of its host downwards: then its levels get the range from its upper end.
struct Natives {
    /// Those that were reported, the most urgent first; empty if all are in the range.
    reported: Vec<i32>,
    most: i32,
}

impl Natives {
    fn of(configs: &[ConfigInfo], (least, most): (i32, i32)) -> Result<Self, SchedulingError> {
        let mut reported: Vec<i32> = configs.iter().map(|one| one.thread_priority).collect();
        if reported.iter().all(|one| (least..=most).contains(one)) {
            reported.clear();
        }
        reported.sort_unstable_by_key(|one| std::cmp::Reverse(*one));
        reported.dedup();
        let places = i32::try_from(reported.len()).unwrap_or(i32::MAX);
        if places > most.saturating_sub(least).saturating_add(1) {
            return Err(SchedulingError::TooFewPriorities);
        }
        Ok(Self { reported, most })
    }

    fn of_reported(&self, native: i32) -> i32 {
        let place = self.reported.iter().position(|one| *one == native);
        let place = place.and_then(|place| i32::try_from(place).ok());
        place.map_or(native, |place| self.most.saturating_sub(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtec_base::{DependencyEnabledTypeT, DependencyTypeT};

    fn info(handle: i32, period_ns: u64, priority: i32) -> RTInfo {
        let mut operations = Operations::default();
        let of = operations.create(&handle.to_string()).expect("a name");
        let change = operations.change(of, |there| there.period_ns = period_ns);
        change.expect("it is there");
        let told = crate::scheduler::described(&operations, of, None).expect("it is there");
        RTInfo {
            handle,
            priority,
            ..told
        }
    }

    #[test]
    fn exchanged_dependencies_are_read_as_the_priorities_say() {
        let dependency = |rt_info, rt_info_depended_on| DependencyInfo {
            dependency_type: DependencyTypeT::OneWayCall,
            number_of_calls: 1,
            rt_info,
            rt_info_depended_on,
            enabled: DependencyEnabledTypeT::DependencyEnabled,
        };
        let periods = |infos: &[RTInfo], dependencies: &[DependencyInfo]| {
            let read = read_back(infos, dependencies.to_vec(), &configs(&[10, 11]));
            read.expect("a schedule").1
        };
        let rated = Some(50_000_000);
        // A consumer has the rate of its supplier, whichever way the dependency is told.
        let chain = [info(1, 50_000_000, 11), info(2, 0, 10), info(3, 0, 10)];
        let due = [dependency(2, 1), dependency(3, 2)];
        assert_eq!(periods(&chain, &due), [rated; 3]);
        let exchanged = [dependency(1, 2), dependency(2, 3)];
        assert_eq!(periods(&chain, &exchanged), [rated; 3]);
        // A consumer that waits for a supplier without a rate has no priority, and gives no rate to the supplier.
        let waits = [
            info(1, 0, 0),
            info(2, 50_000_000, 0),
            info(3, 50_000_000, 11),
        ];
        assert_eq!(periods(&waits, &[dependency(2, 1)]), [None, None, rated]);
        // The priorities contradict both ways: it stays as it was told.
        let unclear = [info(1, 0, 11), info(2, 50_000_000, 0)];
        assert_eq!(periods(&unclear, &[dependency(1, 2)]), [rated; 2]);
    }

    fn configs(natives: &[i32]) -> Vec<ConfigInfo> {
        let config = |&thread_priority: &i32| ConfigInfo {
            preemption_priority: 0,
            thread_priority,
            dispatching_type: DispatchingTypeT::StaticDispatching,
            timer_periods: Vec::new(),
        };
        natives.iter().map(config).collect()
    }

    #[test]
    fn priorities_outside_of_the_range_get_it_from_its_upper_end() {
        let told = |natives: &[i32], range| {
            let found = Natives::of(&configs(natives), range)?;
            let all = natives.iter().map(|one| found.of_reported(*one));
            Ok::<_, SchedulingError>(all.collect::<Vec<_>>())
        };
        assert_eq!(told(&[1, 2], (1, 2)).expect("they are in it"), [1, 2]);
        assert_eq!(
            told(&[98, 99, 98], (1, 2)).expect("it has places"),
            [1, 2, 1]
        );
        assert_eq!(told(&[99, 2], (1, 2)).expect("it has places"), [2, 1]);
        let refused = told(&[97, 98, 99], (1, 2));
        assert!(matches!(refused, Err(SchedulingError::TooFewPriorities)));
    }
}
