//! Where a channel's priorities come from: a scheduling service of this process, or any RtecScheduler.

mod foreign;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use deckwatch_orb::{
    NativePriority, ObjectRef, Orb, Priority, PriorityMapping, SystemException,
    SystemExceptionKind as Kind, own_minor,
};
use deckwatch_sched::{Anomaly, AnomalyFact, CallKind, Dependency, Dispatch, Enabled, Severity};

use super::qos::RtInfo;
use crate::deckwatch_scheduling::{
    ExecutionTimes, ReportedTimes as _, ReportedTimesRef,
    ReportedTimesReportExecutionTimesError as ReportError,
};
use crate::dispatch::{LaneOptions, QueueOptions, QueueOrder};
use crate::raise::{raise, refuse, refused_because};
use crate::rtec_base::{DependencyEnabledTypeT, DependencyTypeT};
use crate::rtec_scheduler::{
    SchedulerAddDependencyError, SchedulerComputeSchedulingError, SchedulerRef, UNKNOWNTASK,
};
use crate::scheduler::{Failure, SchedulingService, Service};
use foreign::other_table;

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
                            && one.enabled != DependencyEnabledTypeT::DependencyDisabled
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

    /// Hands execution times that a consumer has reported at its proxy to the scheduler.
    ///
    /// # Errors
    /// UNKNOWN_TASK for a handle that the scheduler does not have, or of a schedule without one; the exceptions of the
    /// scheduler: BAD_OPERATION from TAO's.
    pub(super) fn report(&self, times: &[ExecutionTimes]) -> Result<(), ReportError> {
        match &self.source {
            Source::Own(service) => service.report_execution_times(times),
            Source::Other(scheduler) => {
                let to = ReportedTimesRef::unchecked_narrow(scheduler.object().clone());
                to.report_execution_times(times)
            }
            Source::Fixed(_) => Err(UNKNOWNTASK.into()),
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
        // [`Table::check_handle`] has found both handles, and no RT_Info is ever removed.
        _ => unexpected(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exception_of_the_service_is_that_of_the_channel() {
        let full = raise(Kind::ImpLimit);
        let error = SchedulingError::from(Failure::System(full));
        assert_eq!(error, SchedulingError::Scheduler(full));
    }
}
