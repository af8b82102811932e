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

mod access;
mod convert;
mod measured;
mod servant;
mod shares;

#[cfg(test)]
pub(crate) use convert::described;
pub(crate) use convert::{UNIT_NS, handle, mirrored};

use std::sync::Arc;

use deckwatch_orb::{
    Access, Completion, Guard, Orb, Policies, Refusal, SystemException,
    SystemExceptionKind as Kind, own_minor,
};
use deckwatch_sched::{
    AnomalyFact, Handle, Measurements, Operations, SchedError, Schedule, Settings, admit_change,
};
use deckwatch_sync::PiMutex;

use crate::beside::Beside;
use crate::deckwatch_scheduling::MeasuredTimesSkeleton;
use crate::limits::{SCHEDULER_ATTEMPTS_MAX, SHARE_PERCENT_DEFAULT};
use crate::peers::is_share;
use crate::raise::{raise, refuse, system};
use crate::rtec_scheduler::{SchedulerRef, SchedulerSkeleton};

use self::shares::{Declared, Shares};

/// How a scheduling service computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerOptions {
    /// Strategy, overhead of a dispatch, and what a queue does.
    pub settings: Settings,
    /// Whether changes of a computed schedule are refused if an operation would miss its deadline.
    pub admits: bool,
    /// Percent of the operations and of the dependencies that one peer may declare, 1 to 100. Beyond its share it gets
    /// IMP_LIMIT.
    pub share_percent: u8,
}

impl Default for SchedulerOptions {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            admits: false,
            share_percent: SHARE_PERCENT_DEFAULT,
        }
    }
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

/// The adapter of the service.
const ADAPTER: &str = "scheduling";

/// A scheduling service that serves on an ORB.
pub struct SchedulingService {
    service: Arc<Service>,
    reference: SchedulerRef,
    guard: Option<Arc<Guard>>,
}

impl SchedulingService {
    /// The name under which TAO registers the service with the naming service.
    pub const NAME: &'static str = "ScheduleService";

    /// The name of the service in access tables.
    pub const ACCESS_NAME: &'static str = "schedule";

    /// Activates a scheduler without operations in an adapter of its own. `corbaloc::HOST:PORT/ScheduleService` leads
    /// to it.
    ///
    /// # Errors
    /// The exceptions of the adapter.
    pub fn start(orb: &Orb, options: SchedulerOptions) -> Result<Self, SystemException> {
        Self::start_with(orb, options, Operations::default(), None)
    }

    /// As [`SchedulingService::start`], with declared operations, which clients find by their entry points, and with a
    /// table that is asked before each request. The service has the name [`SchedulingService::ACCESS_NAME`] in the rules:
    /// `observe` permits to read the schedule, `supply` to report execution times, `administer` all else.
    ///
    /// # Errors
    /// BAD_PARAM for a share out of bounds; the exceptions of the adapter.
    pub fn start_with(
        orb: &Orb,
        options: SchedulerOptions,
        operations: Operations,
        access: Option<Access>,
    ) -> Result<Self, SystemException> {
        if !is_share(options.share_percent) {
            return Err(raise(Kind::BadParam));
        }
        let service = Arc::new(Service {
            options,
            shares: Shares::new(orb, options.share_percent),
            state: PiMutex::new(State {
                operations: Arc::new(operations),
                ..State::default()
            }),
        });
        let root_poa = orb.root_poa()?;
        let manager = root_poa.the_poa_manager();
        let poa = root_poa
            .create_poa(ADAPTER, Some(manager), &Policies::default())
            .map_err(system)?;
        let guard = access.map(|access| access::guard(orb, access));
        if let Some(guard) = &guard {
            poa.set_guard(guard)?;
        }
        let scheduler = Arc::new(SchedulerSkeleton::new(service.clone()));
        let measured = Arc::new(MeasuredTimesSkeleton::new(service.clone()));
        let servant = Beside::new(scheduler, measured, measured::OPERATIONS);
        let id = poa.activate_object(Arc::new(servant)).map_err(system)?;
        let reference = poa.id_to_reference(&id).map_err(system)?;
        orb.register_plain_key(Self::NAME.as_bytes(), &reference)?;
        Ok(Self {
            service,
            reference: SchedulerRef::unchecked_narrow(reference),
            guard,
        })
    }

    /// What the table before the service has refused since the last call, and the count of all refusals.
    #[must_use]
    pub fn take_refusals(&self) -> (Vec<Refusal>, u64) {
        let guard = self.guard.as_ref();
        guard.map_or_else(Default::default, |it| (it.take_refusals(), it.refused()))
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
    shares: Shares,
    state: PiMutex<State>,
}

#[derive(Default)]
struct State {
    operations: Arc<Operations>,
    /// What the peers hold of their shares. Operations of the start have no places.
    declared: Declared,
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

impl State {
    /// Keeps what has been computed for these operations. A schedule of earlier operations does not replace that of
    /// the present ones.
    fn keep(&mut self, operations: &Arc<Operations>, scheduled: &Arc<Scheduled>) {
        self.counts.computed += 1;
        let is_current = Arc::ptr_eq(&self.operations, operations);
        if is_current || !self.is_current {
            self.is_current = is_current;
            self.scheduled = Some(scheduled.clone());
        }
    }
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
            SchedError::TooManyOperations | SchedError::TooManyDependencies => {
                let minor = own_minor::SCHEDULE_FULL;
                let full = SystemException::new(Kind::NoResources, minor, Completion::No);
                Self::System(full)
            }
            SchedError::TooManyStreams => Self::System(raise(Kind::NoResources)),
            SchedError::EntryPointTooLong => Self::System(raise(Kind::BadParam)),
            _ => Self::Internal,
        }
    }
}

impl From<SystemException> for Failure {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

impl Service {
    /// Changes the declared operations. The change is whole or not at all; once a schedule is computed, it is refused
    /// if an operation would miss its deadline.
    fn change<T>(
        &self,
        change: impl Fn(&mut Operations) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.change_checked(self.options.admits, change)
    }

    /// As [`Service::change`]. `admits`: whether a change of a computed schedule may be refused.
    pub(crate) fn change_checked<T>(
        &self,
        admits: bool,
        change: impl Fn(&mut Operations) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.change_declared(admits, change, |_| ())
    }

    /// As [`Service::change_checked`]. `change` runs again if another client has changed the operations meanwhile, and
    /// `declare` changes the places of the peers with the operations.
    fn change_declared<T>(
        &self,
        admits: bool,
        change: impl Fn(&mut Operations) -> Result<T, Failure>,
        declare: impl FnOnce(&mut Declared),
    ) -> Result<T, Failure> {
        for _ in 0..SCHEDULER_ATTEMPTS_MAX {
            let (operations, there) = self.latest();
            let there = there.filter(|_| admits);
            let mut changed = Operations::clone(&operations);
            let result = change(&mut changed)?;
            // Other clients are served meanwhile: an analysis can take a second.
            let admitted = match &there {
                Some(there) => Some(self.examine(&operations, &changed, there.range)?),
                None => None,
            };
            let mut state = self.state.lock("event.scheduler");
            let is_other =
                |now: &Arc<Scheduled>| there.as_ref().is_none_or(|there| !Arc::ptr_eq(there, now));
            let is_stale = admits && state.scheduled.as_ref().is_some_and(is_other);
            if is_stale || !Arc::ptr_eq(&state.operations, &operations) {
                continue;
            }
            state.is_current = admitted.is_some();
            if let Some(scheduled) = admitted {
                state.scheduled = Some(Arc::new(scheduled));
            }
            state.operations = Arc::new(changed);
            declare(&mut state.declared);
            return Ok(result);
        }
        Err(Failure::System(raise(Kind::Transient)))
    }

    /// Computes the schedule of changed operations.
    ///
    /// # Errors
    /// NO_RESOURCES if an operation would miss its deadline; TRANSIENT if too many analyses wait.
    fn examine(
        &self,
        operations: &Operations,
        changed: &Operations,
        range: (i32, i32),
    ) -> Result<Scheduled, Failure> {
        let settings = self.options.settings;
        let _analysis = self.shares.analysis()?;
        let admitted = admit_change(operations, settings, |operations| {
            operations.clone_from(changed);
            Ok(())
        });
        let (_, schedule) = admitted.map_err(|refusal| {
            self.state.lock("event.scheduler").counts.refused += 1;
            Failure::System(refuse(
                Kind::NoResources,
                own_minor::SCHEDULE_INFEASIBLE,
                refusal.describe(changed),
            ))
        })?;
        Ok(Scheduled::new(schedule, range)?)
    }

    /// Declares an operation that costs nothing; its attributes follow.
    fn create(&self, entry_point: &str) -> Result<Handle, Failure> {
        let mut state = self.state.lock("event.scheduler");
        if let Some(there) = state.operations.lookup(entry_point) {
            return Err(SchedError::DuplicateEntryPoint(there).into());
        }
        let place = self.shares.operation()?;
        let created = Arc::make_mut(&mut state.operations).create(entry_point)?;
        state.declared.operation(place);
        state.is_current = false;
        Ok(created)
    }

    /// Computes the schedule, unless it is the one of the operations and of these priorities.
    pub(crate) fn compute(
        &self,
        least: i32,
        most: i32,
    ) -> Result<(Arc<Operations>, Arc<Scheduled>), Failure> {
        let is_it = |there: &(_, Arc<Scheduled>)| there.1.range == (least, most);
        if let Some(there) = self.current().ok().filter(is_it) {
            return Ok(there);
        }
        let _analysis = self.shares.analysis()?;
        // Another client may have had it computed meanwhile.
        if let Some(there) = self.current().ok().filter(is_it) {
            return Ok(there);
        }
        let operations = self.latest().0;
        // Other operations are served meanwhile: an analysis can take a second.
        let schedule = Schedule::compute(&operations, self.options.settings)?;
        let is_overloaded = |fact| fact == AnomalyFact::UtilisationAboveOne;
        if schedule.anomalies.iter().any(|one| is_overloaded(one.fact)) {
            return Err(Failure::UtilizationBoundExceeded);
        }
        let scheduled = Arc::new(Scheduled::new(schedule, (least, most))?);
        self.state
            .lock("event.scheduler")
            .keep(&operations, &scheduled);
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use deckwatch_sched::RtInfo;

    use super::*;

    fn info(name: &str, worst_case_ns: u64, period_ns: u64) -> RtInfo {
        RtInfo {
            entry_point: name.to_owned(),
            worst_case_ns,
            period_ns,
            ..RtInfo::default()
        }
    }

    #[test]
    fn a_client_that_asks_for_too_many_streams_is_told_of_a_limit() {
        let Failure::System(full) = Failure::from(SchedError::TooManyStreams) else {
            panic!("not as a system exception");
        };
        assert_eq!(full, raise(Kind::NoResources));
    }

    /// A service that admits, with a computed schedule of one operation.
    fn service() -> Service {
        let mut operations = Operations::default();
        operations.add(&info("first", 3, 7)).expect("a new name");
        let orb = Orb::builder().build().expect("an ORB");
        let service = Service {
            shares: Shares::new(&orb, SHARE_PERCENT_DEFAULT),
            options: SchedulerOptions {
                admits: true,
                ..SchedulerOptions::default()
            },
            state: PiMutex::new(State {
                operations: Arc::new(operations),
                ..State::default()
            }),
        };
        service.compute(1, 99).expect("it fits");
        service
    }

    fn add(operations: &mut Operations, name: &str, cost_ns: u64) -> Result<Handle, Failure> {
        Ok(operations.add(&info(name, cost_ns, 20))?)
    }

    #[test]
    fn schedule_of_earlier_operations_replaces_none_of_the_present_ones() {
        let mut state = State::default();
        let earlier = Arc::clone(&state.operations);
        state.operations = Arc::new(Operations::default());
        let present = Arc::clone(&state.operations);
        let scheduled = || {
            let schedule = Schedule::compute(&earlier, Settings::default()).expect("it fits");
            Arc::new(Scheduled::new(schedule, (1, 9)).expect("enough priorities"))
        };
        for (operations, is_kept, is_current) in [
            (&earlier, true, false),
            (&present, true, true),
            (&earlier, false, true),
            (&present, true, true),
        ] {
            let computed = scheduled();
            state.keep(operations, &computed);
            let kept = state.scheduled.as_ref().expect("one is kept");
            assert_eq!(Arc::ptr_eq(kept, &computed), is_kept);
            assert_eq!(state.is_current, is_current);
        }
        assert_eq!(state.counts.computed, 4);
    }

    #[test]
    fn other_clients_are_served_while_a_change_is_examined() {
        let service = service();
        let (examined, is_examined) = channel();
        let (served, is_served) = channel();
        std::thread::scope(|scope| {
            let service = &service;
            scope.spawn(move || {
                let changed = service.change(|operations| {
                    examined.send(()).expect("the test waits");
                    let patience = Duration::from_secs(20);
                    is_served.recv_timeout(patience).expect("it is served");
                    add(operations, "second", 5)
                });
                assert!(changed.is_ok());
            });
            is_examined.recv().expect("it is examined");
            assert_eq!(service.latest().0.infos().len(), 1);
            served.send(()).expect("the change waits");
        });
        assert_eq!(service.latest().0.infos().len(), 2);
    }

    #[test]
    fn change_beside_another_one_is_examined_again_with_it() {
        let service = service();
        let attempts = Cell::new(0);
        let changed = service.change(|operations| {
            attempts.set(attempts.get() + 1);
            if attempts.get() == 1 {
                // Another client, while this change is examined. Both together miss a deadline.
                let other = service.change(|operations| add(operations, "other", 8));
                assert!(other.is_ok());
            }
            add(operations, "second", 8)
        });
        let no_resources = |failure| matches!(failure, Failure::System(refused) if refused.kind == Kind::NoResources);
        assert!(changed.is_err_and(no_resources));
        assert_eq!(attempts.get(), 2);
        let (operations, scheduled) = service.current().expect("it is current");
        assert_eq!(operations.infos().len(), 2);
        assert_eq!(scheduled.schedule.assigned.len(), 2);
    }

    #[test]
    fn schedule_that_is_first_computed_meanwhile_is_not_lost_to_an_unexamined_change() {
        let service = service();
        service.state.lock("event.scheduler").scheduled = None;
        let attempts = Cell::new(0);
        let changed = service.change(|operations| {
            attempts.set(attempts.get() + 1);
            if attempts.get() == 1 {
                service.state.lock("event.scheduler").is_current = false;
                service.compute(1, 99)?;
            }
            add(operations, "too much", 19)
        });
        assert!(changed.is_err());
        assert_eq!(attempts.get(), 2);
    }

    #[test]
    fn change_that_others_always_overtake_is_given_up() {
        let service = service();
        let attempts = Cell::new(0);
        let changed = service.change(|operations| {
            attempts.set(attempts.get() + 1);
            service.create(&format!("other {}", attempts.get()))?;
            add(operations, "second", 1)
        });
        let transient =
            |failure| matches!(failure, Failure::System(raised) if raised.kind == Kind::Transient);
        assert!(changed.is_err_and(transient));
        assert_eq!(attempts.get(), SCHEDULER_ATTEMPTS_MAX);
    }
}
