//! The scheduling service: `RtecScheduler::Scheduler` over [`deckwatch_sched`], off-line and at run time.
//!
//! * Off-line: clients declare operations and dependencies, and `compute_scheduling` returns priorities and anomalies.
//! * At run time, with [`SchedulerOptions::admits`]: once a schedule is computed, a change that would make another
//!   operation miss its deadline is refused with NO_RESOURCES, and the schedule stays.
//!
//! Times of the wire are units of 100 ns. They are kept as nanoseconds in 64 bits, without loss; above 584 years they
//! are BAD_PARAM. `Period_t` is a `long` of TAO's: a period is at most 214 s. TAO also truncates deadlines to 32 bits,
//! which wrap at 429 s; here nothing wraps. `set` and `set_seq` replace the attributes of an operation, as `reset` does;
//! TAO keeps several tuples of attributes beside each other.

mod convert;
mod measured;
mod servant;

pub(crate) use convert::{UNIT_NS, handle, mirrored};

use std::sync::Arc;

use deckwatch_orb::{Orb, SystemException, SystemExceptionKind as Kind, own_minor};
use deckwatch_sched::{
    AnomalyFact, Handle, Measurements, Operations, SchedError, Schedule, Settings, admit_change,
};
use deckwatch_sync::PiMutex;

use crate::beside::Beside;
use crate::deckwatch_scheduling::MeasuredTimesSkeleton;
use crate::raise::{raise, refuse, system};
use crate::rtec_scheduler::{SchedulerRef, SchedulerSkeleton};

/// How a scheduling service computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulerOptions {
    /// Strategy, overhead of a dispatch, and what a queue does.
    pub settings: Settings,
    /// Whether changes of a computed schedule are refused if an operation would miss its deadline.
    pub admits: bool,
}

/// What a scheduling service has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulerCounts {
    /// Declared operations.
    pub operations: u64,
    /// Computed schedules.
    pub computed: u64,
    /// Changes refused because an operation would have missed its deadline.
    pub refused: u64,
    /// Reported executions that took longer than their operation declares.
    pub exceeded: u64,
}

/// A scheduling service that serves on an ORB.
pub struct SchedulingService {
    service: Arc<Service>,
    reference: SchedulerRef,
}

impl SchedulingService {
    /// The name under which TAO registers the service with the naming service.
    pub const NAME: &'static str = "ScheduleService";

    /// Activates a scheduler without operations in the ORB's root adapter. `corbaloc::HOST:PORT/ScheduleService` leads
    /// to it.
    ///
    /// # Errors
    /// The exceptions of the adapter.
    pub fn start(orb: &Orb, options: SchedulerOptions) -> Result<Self, SystemException> {
        Self::start_with(orb, options, Operations::default())
    }

    /// As [`SchedulingService::start`], with declared operations. Clients find them by their entry points.
    ///
    /// # Errors
    /// The exceptions of the adapter.
    pub fn start_with(
        orb: &Orb,
        options: SchedulerOptions,
        operations: Operations,
    ) -> Result<Self, SystemException> {
        let service = Arc::new(Service {
            options,
            state: PiMutex::new(State {
                operations: Arc::new(operations),
                ..State::default()
            }),
        });
        let poa = orb.root_poa()?;
        let scheduler = Arc::new(SchedulerSkeleton::new(service.clone()));
        let measured = Arc::new(MeasuredTimesSkeleton::new(service.clone()));
        let servant = Beside::new(scheduler, measured, measured::OPERATIONS);
        let id = poa.activate_object(Arc::new(servant)).map_err(system)?;
        let reference = poa.id_to_reference(&id).map_err(system)?;
        orb.register_plain_key(Self::NAME.as_bytes(), &reference)?;
        Ok(Self {
            service,
            reference: SchedulerRef::unchecked_narrow(reference),
        })
    }

    /// Returns its reference.
    #[must_use]
    pub fn reference(&self) -> &SchedulerRef {
        &self.reference
    }

    pub(crate) fn service(&self) -> &Arc<Service> {
        &self.service
    }

    /// Returns its counters.
    #[must_use]
    pub fn counts(&self) -> SchedulerCounts {
        let state = self.service.state.lock("event.scheduler");
        let exceeded = state.measurements.all().map(|(_, one)| one.exceeded);
        SchedulerCounts {
            operations: state.operations.infos().len() as u64,
            exceeded: exceeded.fold(0, u64::saturating_add),
            ..state.counts
        }
    }
}

/// The servant.
pub(crate) struct Service {
    options: SchedulerOptions,
    state: PiMutex<State>,
}

#[derive(Default)]
struct State {
    operations: Arc<Operations>,
    /// The last schedule; priorities of operations that were declared later are unknown.
    scheduled: Option<Arc<Scheduled>>,
    /// Whether the schedule is that of the operations.
    is_current: bool,
    /// What clients have reported; kept beside the operations, so that a report makes no schedule old.
    measurements: Measurements,
    counts: SchedulerCounts,
}

/// A schedule, with the dispatcher's priorities.
pub(crate) struct Scheduled {
    pub(crate) schedule: Schedule,
    range: (i32, i32),
    /// The dispatcher's priority of each level.
    pub(crate) priorities: Vec<i32>,
}

impl Scheduled {
    fn new(schedule: Schedule, range: (i32, i32)) -> Result<Self, SchedError> {
        let priorities = schedule.dispatcher_priorities(range.0, range.1)?;
        Ok(Self {
            schedule,
            range,
            priorities,
        })
    }
}

/// Why an operation of the scheduler fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    UnknownTask,
    DuplicateName,
    NotScheduled,
    UtilizationBoundExceeded,
    InsufficientPriorities,
    Internal,
    System(SystemException),
}

impl From<SchedError> for Failure {
    fn from(error: SchedError) -> Self {
        match error {
            SchedError::UnknownOperation(_) | SchedError::UnknownDependency(_) => Self::UnknownTask,
            SchedError::DuplicateEntryPoint(_) => Self::DuplicateName,
            SchedError::TooFewPriorities { .. } => Self::InsufficientPriorities,
            SchedError::TooManyOperations
            | SchedError::TooManyDependencies
            | SchedError::TooManyStreams => Self::System(raise(Kind::NoResources)),
            SchedError::EntryPointTooLong => Self::System(raise(Kind::BadParam)),
            _ => Self::Internal,
        }
    }
}

impl Service {
    /// Changes the declared operations. The change is whole or not at all; once a schedule is computed, it is refused
    /// if an operation would miss its deadline.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Operations) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.change_checked(self.options.admits, change)
    }

    /// As [`Service::change`]. `admits`: whether a change of a computed schedule may be refused.
    pub(crate) fn change_checked<T>(
        &self,
        admits: bool,
        change: impl FnOnce(&mut Operations) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut state = self.state.lock("event.scheduler");
        let mut changed = Operations::clone(&state.operations);
        let result = change(&mut changed)?;
        if let Some(there) = state.scheduled.clone().filter(|_| admits) {
            let admitted = admit_change(&state.operations, self.options.settings, |operations| {
                operations.clone_from(&changed);
                Ok(())
            });
            let (_, schedule) = admitted.map_err(|refusal| {
                state.counts.refused += 1;
                Failure::System(refuse(
                    Kind::NoResources,
                    own_minor::SCHEDULE_INFEASIBLE,
                    refusal.describe(&changed),
                ))
            })?;
            let scheduled = Scheduled::new(schedule, there.range)?;
            state.scheduled = Some(Arc::new(scheduled));
            state.is_current = true;
        } else {
            state.is_current = false;
        }
        state.operations = Arc::new(changed);
        Ok(result)
    }

    /// Declares an operation that costs nothing; its attributes follow.
    fn create(&self, entry_point: &str) -> Result<Handle, Failure> {
        let mut state = self.state.lock("event.scheduler");
        let created = Arc::make_mut(&mut state.operations).create(entry_point)?;
        state.is_current = false;
        Ok(created)
    }

    /// Computes the schedule, unless it is the one of the operations and of these priorities.
    pub(crate) fn compute(
        &self,
        least: i32,
        most: i32,
    ) -> Result<(Arc<Operations>, Arc<Scheduled>), Failure> {
        let operations = {
            let state = self.state.lock("event.scheduler");
            if let Some(there) = &state.scheduled
                && state.is_current
                && there.range == (least, most)
            {
                return Ok((state.operations.clone(), there.clone()));
            }
            state.operations.clone()
        };
        // Other operations are served meanwhile: an analysis can take a second.
        let schedule = Schedule::compute(&operations, self.options.settings)?;
        let is_overloaded = |fact| fact == AnomalyFact::UtilisationAboveOne;
        if schedule.anomalies.iter().any(|one| is_overloaded(one.fact)) {
            return Err(Failure::UtilizationBoundExceeded);
        }
        let scheduled = Arc::new(Scheduled::new(schedule, (least, most))?);
        let mut state = self.state.lock("event.scheduler");
        state.counts.computed += 1;
        state.is_current = Arc::ptr_eq(&state.operations, &operations);
        state.scheduled = Some(scheduled.clone());
        Ok((operations, scheduled))
    }

    /// Returns the operations and their schedule, if it is current.
    fn current(&self) -> Result<(Arc<Operations>, Arc<Scheduled>), Failure> {
        let state = self.state.lock("event.scheduler");
        let scheduled = state.scheduled.clone().filter(|_| state.is_current);
        let scheduled = scheduled.ok_or(Failure::NotScheduled)?;
        Ok((state.operations.clone(), scheduled))
    }

    /// Returns the operations and the last schedule, current or not.
    fn latest(&self) -> (Arc<Operations>, Option<Arc<Scheduled>>) {
        let state = self.state.lock("event.scheduler");
        (state.operations.clone(), state.scheduled.clone())
    }
}
