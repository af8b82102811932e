//! Where a channel's priorities come from: a scheduling service of this process, or any RtecScheduler.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use deckwatch_orb::{
    NativePriority, ObjectRef, Orb, Priority, PriorityMapping, SystemException,
    SystemExceptionKind as Kind, own_minor,
};
use deckwatch_sched::{
    Anomaly, AnomalyFact, CallKind, Dependency, Dispatch, Enabled, Operations, Severity,
};

use super::qos::RtInfo;
use crate::dispatch::{LaneOptions, QueueOptions, QueueOrder};
use crate::raise::{raise, refuse, refused_because};
use crate::rtec_base::{DependencyInfo, DependencyTypeT};
use crate::rtec_scheduler::{
    AnomalySeverity, ConfigInfo, DispatchingTypeT, RTInfo, SchedulerAddDependencyError,
    SchedulerComputeSchedulingError, SchedulerRef,
};
use crate::scheduler::{Failure, SchedulingService, Service, mirrored};

/// The source of a channel's lanes, and of the urgency of each RT_Info that a dependency or a publication names.
#[derive(Clone)]
pub struct Scheduling {
    source: Source,
    /// Native priorities for its lanes: the least and the most urgent.
    range: (NativePriority, NativePriority),
}

#[derive(Clone)]
enum Source {
    Own(Arc<Service>),
    Other(SchedulerRef),
    Fixed(Arc<HashMap<i32, RtInfo>>),
}

/// One RT_Info depends on another: the consumer's, and the supplier's.
pub(super) type Edge = (i32, i32);

/// A schedule as the channel reads it.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// The RT_Infos that have a rate, by their handles.
    pub(super) infos: HashMap<i32, RtInfo>,
    /// Every handle that is declared.
    declared: Vec<i32>,
    /// The most urgent first.
    pub(super) lanes: Vec<(Priority, QueueOrder)>,
    /// Deadlines that can be missed, and cycles.
    faults: Vec<String>,
}

/// Why a channel cannot take its priorities from a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchedulingError {
    /// Deadlines can be missed.
    Infeasible(Vec<String>),
    /// No operation has a rate.
    NothingScheduled,
    /// The schedule has more priorities than the range.
    TooFewPriorities,
    /// The mapping of the ORB has no CORBA priority for a native one.
    Unmapped(NativePriority),
    /// The scheduler does not answer, or answers nonsense.
    Scheduler(SystemException),
}

impl fmt::Display for SchedulingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Infeasible(faults) => write!(
                f,
                "A deadline can be missed: {}. `deckwatch schedule FILE` says what to change.",
                faults.join("; ")
            ),
            Self::NothingScheduled => f.write_str(
                "No operation of the schedule has a rate. Declare an operation with a period before \
                 the channel starts.",
            ),
            Self::TooFewPriorities => f.write_str(
                "The schedule has more priorities than the range of native priorities. Give a wider range.",
            ),
            Self::Unmapped(native) => write!(
                f,
                "The priority mapping of the ORB has no CORBA priority for the native priority {native}."
            ),
            Self::Scheduler(exception) => write!(f, "The scheduler raises {exception}"),
        }
    }
}

impl std::error::Error for SchedulingError {}

impl From<SystemException> for SchedulingError {
    fn from(exception: SystemException) -> Self {
        Self::Scheduler(exception)
    }
}

impl From<Failure> for SchedulingError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::UtilizationBoundExceeded => {
                Self::Infeasible(vec![AnomalyFact::UtilisationAboveOne.to_string()])
            }
            Failure::InsufficientPriorities => Self::TooFewPriorities,
            Failure::System(exception) => Self::Scheduler(exception),
            _ => Self::Scheduler(raise(Kind::Internal)),
        }
    }
}

impl From<SchedulerComputeSchedulingError> for SchedulingError {
    fn from(error: SchedulerComputeSchedulingError) -> Self {
        use SchedulerComputeSchedulingError as Error;
        match error {
            Error::UTILIZATIONBOUNDEXCEEDED(_) => {
                Self::Infeasible(vec![AnomalyFact::UtilisationAboveOne.to_string()])
            }
            Error::INSUFFICIENTTHREADPRIORITYLEVELS(_) => Self::TooFewPriorities,
            Error::System(exception) => Self::Scheduler(exception),
            _ => Self::Scheduler(raise(Kind::Internal)),
        }
    }
}

impl Scheduling {
    /// The native priorities that a channel takes unless told otherwise. Threads that serve interrupts of a kernel with
    /// PREEMPT_RT have 50.
    pub const RANGE_DEFAULT: (NativePriority, NativePriority) =
        (NativePriority(1), NativePriority(49));

    /// Priorities of a scheduling service in this process.
    #[must_use]
    pub fn of_service(
        service: &SchedulingService,
        range: (NativePriority, NativePriority),
    ) -> Self {
        let source = Source::Own(Arc::clone(service.service()));
        Self { source, range }
    }

    /// Priorities of a scheduler elsewhere: ours or TAO's.
    #[must_use]
    pub fn of_reference(scheduler: &ObjectRef, range: (NativePriority, NativePriority)) -> Self {
        let source = Source::Other(SchedulerRef::unchecked_narrow(scheduler.clone()));
        Self { source, range }
    }

    /// RT_Infos of a program that has a schedule of its own, by their handles. Every connect is admitted.
    #[must_use]
    pub fn fixed(infos: HashMap<i32, RtInfo>) -> Self {
        let source = Source::Fixed(Arc::new(infos));
        let range = Self::RANGE_DEFAULT;
        Self { source, range }
    }

    /// Returns a lane for each priority of the schedule. The schedule orders each queue; the rest is that of `queue`.
    ///
    /// # Errors
    /// [`SchedulingError`], also for a schedule that can miss a deadline.
    pub fn lanes(
        &self,
        orb: &Orb,
        queue: QueueOptions,
    ) -> Result<Vec<LaneOptions>, SchedulingError> {
        let table = self.read(&*orb.priority_mapping_manager().mapping())?;
        if !table.faults.is_empty() {
            return Err(SchedulingError::Infeasible(table.faults));
        }
        if table.lanes.is_empty() {
            return Err(SchedulingError::NothingScheduled);
        }
        let lane = |&(priority, order): &(Priority, QueueOrder)| LaneOptions {
            priority,
            threads: 1,
            queue: QueueOptions { order, ..queue },
        };
        Ok(table.lanes.iter().map(lane).collect())
    }

    /// Computes the schedule and reads it.
    pub(super) fn read(&self, mapping: &dyn PriorityMapping) -> Result<Table, SchedulingError> {
        let (least, most) = (i32::from(self.range.0.0), i32::from(self.range.1.0));
        match &self.source {
            Source::Own(service) => own_table(service, (least, most), mapping),
            Source::Other(scheduler) => other_table(scheduler, (least, most), mapping),
            Source::Fixed(infos) => Ok(Table {
                infos: HashMap::clone(infos),
                declared: infos.keys().copied().collect(),
                ..Table::default()
            }),
        }
    }

    /// Declares dependencies. Returns those that were not declared before.
    ///
    /// # Errors
    /// NO_RESOURCES if an operation would miss its deadline: then none is declared. The exceptions of the scheduler.
    pub(super) fn add(&self, edges: &[Edge]) -> Result<Vec<Edge>, SystemException> {
        match &self.source {
            Source::Own(service) => {
                let added = service.change_checked(true, |operations| {
                    let mut added = Vec::new();
                    for &edge in edges {
                        let (of, dependency) = dependency(edge)?;
                        let there = &operations.get(of)?.dependencies;
                        if !there.iter().any(|one| is_same(one, &dependency)) {
                            operations.add_dependency(of, dependency)?;
                            added.push(edge);
                        }
                    }
                    Ok(added)
                });
                added.map_err(system)
            }
            Source::Other(scheduler) => {
                let there = scheduler.get_dependency_set().map_err(|_| unexpected())?;
                let mut added = Vec::new();
                for &edge in edges {
                    // TAO's service answers with the two ends exchanged. Both ways at once would be a circle.
                    let exchanged = (edge.1, edge.0);
                    let is_it = |one: &crate::rtec_base::DependencyInfo| {
                        [edge, exchanged].contains(&(one.rt_info, one.rt_info_depended_on))
                            && one.dependency_type == DependencyTypeT::OneWayCall
                    };
                    if there.iter().any(is_it) {
                        continue;
                    }
                    let one_way = DependencyTypeT::OneWayCall;
                    if let Err(error) = scheduler.add_dependency(edge.0, edge.1, 1, one_way) {
                        self.remove(&added);
                        return Err(refused(edge, &error));
                    }
                    added.push(edge);
                }
                Ok(added)
            }
            Source::Fixed(_) => Ok(Vec::new()),
        }
    }

    /// Takes declared dependencies back.
    pub(super) fn remove(&self, edges: &[Edge]) {
        match &self.source {
            Source::Own(service) => {
                // A client of the service may have removed it.
                let _ = service.change_checked(false, |operations| {
                    for &edge in edges {
                        let (of, dependency) = dependency(edge)?;
                        operations.remove_dependency(of, dependency)?;
                    }
                    Ok(())
                });
            }
            Source::Other(scheduler) => {
                for &(of, on) in edges {
                    // As above.
                    let _ = scheduler.remove_dependency(of, on, 1, DependencyTypeT::OneWayCall);
                }
            }
            Source::Fixed(_) => {}
        }
    }
}

impl fmt::Debug for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match self.source {
            Source::Own(_) => "own",
            Source::Other(_) => "other",
            Source::Fixed(_) => "fixed",
        };
        f.debug_struct("Scheduling")
            .field("source", &source)
            .field("range", &self.range)
            .finish()
    }
}

impl Table {
    /// # Errors
    /// BAD_PARAM for a handle that the scheduler does not know.
    pub(super) fn check_handle(&self, handle: i32) -> Result<(), SystemException> {
        if self.declared.contains(&handle) {
            return Ok(());
        }
        let detail = format!("the scheduler has no RT_Info {handle}: create it before you connect");
        let minor = own_minor::RT_INFO_UNKNOWN;
        Err(refuse(Kind::BadParam, minor, detail))
    }

    /// # Errors
    /// NO_RESOURCES with the first fault that was not there before.
    pub(super) fn check_against(&self, before: &Self) -> Result<(), SystemException> {
        let new = self.faults.iter().find(|one| !before.faults.contains(one));
        match new {
            None => Ok(()),
            Some(fault) => Err(refuse(
                Kind::NoResources,
                own_minor::SCHEDULE_INFEASIBLE,
                fault.clone(),
            )),
        }
    }
}

fn own_table(
    service: &Service,
    (least, most): (i32, i32),
    mapping: &dyn PriorityMapping,
) -> Result<Table, SchedulingError> {
    let (operations, scheduled) = service.compute(least, most)?;
    let schedule = &scheduled.schedule;
    let mut table = Table::default();
    for (level, &native) in schedule.levels.iter().zip(&scheduled.priorities) {
        table
            .lanes
            .push((corba(mapping, native)?, order(level.dispatch)));
    }
    for of in operations.handles() {
        let handle = of.number() as i32;
        table.declared.push(handle);
        if let Some(assigned) = schedule.of(of) {
            let info = &operations.infos()[of.index()];
            let info = RtInfo {
                priority: table.lanes[assigned.level as usize].0,
                deadline: Duration::from_nanos(assigned.deadline_ns),
                worst_case: Duration::from_nanos(info.worst_case_ns),
            };
            table.infos.insert(handle, info);
        }
    }
    // An operation without a rate waits for a supplier.
    let is_fault =
        |one: &&Anomaly| one.severity() != Severity::Warning && one.fact != AnomalyFact::Unresolved;
    let faults = schedule.anomalies.iter().filter(is_fault);
    table.faults = faults.map(|one| one.describe(&operations)).collect();
    Ok(table)
}

fn other_table(
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

fn corba(mapping: &dyn PriorityMapping, native: i32) -> Result<Priority, SchedulingError> {
    let native = NativePriority(i16::try_from(native).unwrap_or(i16::MAX));
    let mapped = mapping.to_corba(native);
    mapped.ok_or(SchedulingError::Unmapped(native))
}

const fn order(dispatch: Dispatch) -> QueueOrder {
    match dispatch {
        Dispatch::Static => QueueOrder::Arrival,
        Dispatch::Deadline => QueueOrder::Deadline,
        Dispatch::Laxity => QueueOrder::Laxity,
    }
}

fn dependency(edge: Edge) -> Result<(deckwatch_sched::Handle, Dependency), Failure> {
    let handle = crate::scheduler::handle;
    let dependency = Dependency {
        on: handle(edge.1)?,
        kind: CallKind::OneWay,
        calls: 1,
        enabled: Enabled::Enabled,
    };
    Ok((handle(edge.0)?, dependency))
}

fn is_same(one: &Dependency, other: &Dependency) -> bool {
    (one.on, one.kind, one.enabled) == (other.on, other.kind, other.enabled)
}

/// What a scheduler of another process raises for a dependency.
fn refused((of, on): Edge, error: &SchedulerAddDependencyError) -> SystemException {
    let minor = own_minor::SCHEDULE_INFEASIBLE;
    let detail = match error {
        SchedulerAddDependencyError::System(exception) if exception.kind == Kind::NoResources => {
            let words = refused_because(*exception);
            format!("the scheduler refuses that RT_Info {of} depends on {on}: {words}")
        }
        SchedulerAddDependencyError::System(exception) => return *exception,
        _ => format!("the scheduler refuses that RT_Info {of} depends on {on}"),
    };
    refuse(Kind::NoResources, minor, detail)
}

fn unexpected() -> SystemException {
    raise(Kind::Internal)
}

fn system(failure: Failure) -> SystemException {
    match failure {
        Failure::System(exception) => exception,
        Failure::UnknownTask => raise(Kind::BadParam),
        _ => unexpected(),
    }
}

mod reported;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtec_base::DependencyEnabledTypeT;

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
