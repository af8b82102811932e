//! The operations of `RtecScheduler::Scheduler`.

use std::borrow::Cow;

use deckwatch_orb::SystemExceptionKind as Kind;
use deckwatch_sched::{Enabled, Handle, Operations, RtInfo};

use super::convert::{
    anomalies, configs, declare, dependencies, dependency, described, dispatching, enabled, handle,
    handle_number,
};
use super::{Failure, Scheduled, Service};
use crate::raise::raise;
use crate::rtec_base::{DependencyEnabledTypeT, DependencyInfo, DependencyTypeT};
use crate::rtec_scheduler as wire;
use crate::rtec_scheduler::{
    ConfigInfo, CriticalityT, DispatchingTypeT, ImportanceT, InfoTypeT, RTInfo,
    RTInfoEnableStatePair, RTInfoEnabledTypeT, SchedulingAnomaly,
};

/// Converts a failure to what an operation raises: the exceptions that it declares, INTERNAL (the system's) for others.
macro_rules! failures {
    ($($error:ident { $($failure:ident => $exception:ident),* })*) => {
        $(impl From<Failure> for wire::$error {
            fn from(failure: Failure) -> Self {
                match failure {
                    $(Failure::$failure => wire::$exception.into(),)*
                    Failure::System(exception) => exception.into(),
                    #[allow(unreachable_patterns, reason = "an operation may declare all of them")]
                    _ => raise(Kind::Internal).into(),
                }
            }
        })*
    };
}

failures! {
    SchedulerCreateError { DuplicateName => DUPLICATENAME, Internal => INTERNAL }
    SchedulerLookupError { UnknownTask => UNKNOWNTASK }
    SchedulerGetError { UnknownTask => UNKNOWNTASK }
    SchedulerSetError { UnknownTask => UNKNOWNTASK, Internal => INTERNAL }
    SchedulerResetError { UnknownTask => UNKNOWNTASK, Internal => INTERNAL }
    SchedulerSetSeqError { UnknownTask => UNKNOWNTASK, Internal => INTERNAL }
    SchedulerResetSeqError { UnknownTask => UNKNOWNTASK, Internal => INTERNAL }
    SchedulerReplaceSeqError { UnknownTask => UNKNOWNTASK, Internal => INTERNAL }
    SchedulerAddDependencyError { UnknownTask => UNKNOWNTASK }
    SchedulerRemoveDependencyError { UnknownTask => UNKNOWNTASK }
    SchedulerSetDependencyEnableStateError { UnknownTask => UNKNOWNTASK }
    SchedulerSetDependencyEnableStateSeqError { UnknownTask => UNKNOWNTASK }
    SchedulerSetRtInfoEnableStateError { UnknownTask => UNKNOWNTASK, Internal => INTERNAL }
    SchedulerSetRtInfoEnableStateSeqError { UnknownTask => UNKNOWNTASK, Internal => INTERNAL }
    SchedulerPriorityError { UnknownTask => UNKNOWNTASK, NotScheduled => NOTSCHEDULED }
    SchedulerEntryPointPriorityError { UnknownTask => UNKNOWNTASK, NotScheduled => NOTSCHEDULED }
    SchedulerComputeSchedulingError {
        UtilizationBoundExceeded => UTILIZATIONBOUNDEXCEEDED,
        InsufficientPriorities => INSUFFICIENTTHREADPRIORITYLEVELS,
        Internal => INTERNAL
    }
    SchedulerRecomputeSchedulingError {
        UtilizationBoundExceeded => UTILIZATIONBOUNDEXCEEDED,
        InsufficientPriorities => INSUFFICIENTTHREADPRIORITYLEVELS,
        Internal => INTERNAL
    }
    SchedulerGetRtInfoSetError { Internal => INTERNAL }
    SchedulerGetDependencySetError { Internal => INTERNAL }
    SchedulerGetConfigInfoSetError { Internal => INTERNAL }
    SchedulerDispatchConfigurationError { NotScheduled => NOTSCHEDULED }
    SchedulerLastScheduledPriorityError { NotScheduled => NOTSCHEDULED }
    SchedulerGetConfigInfosError { NotScheduled => NOTSCHEDULED }
}

type Priorities = (i32, i32, i32);

impl Service {
    /// Replaces the attributes of operations, all or none.
    fn declare(&self, infos: &[RTInfo], prepare: fn(&mut Operations)) -> Result<(), Failure> {
        self.change(|operations| {
            prepare(operations);
            for info in infos {
                let mut result = Ok(());
                operations.change(handle(info.handle)?, |there| result = declare(there, info))?;
                result?;
            }
            Ok(())
        })
    }

    fn priorities(&self, of: Option<Handle>) -> Result<Priorities, Failure> {
        let of = of.ok_or(Failure::UnknownTask)?;
        self.latest().0.get(of)?;
        let (operations, scheduled) = self.current()?;
        let info = described(&operations, of, Some(&scheduled))?;
        scheduled.schedule.of(of).ok_or(Failure::NotScheduled)?;
        Ok((
            info.priority,
            info.preemption_subpriority,
            info.preemption_priority,
        ))
    }

    fn infos(
        operations: &Operations,
        scheduled: Option<&Scheduled>,
    ) -> Result<Vec<RTInfo>, Failure> {
        let all = operations.handles();
        all.map(|of| described(operations, of, scheduled)).collect()
    }

    fn anomalies(
        &self,
        operations: &Operations,
        scheduled: &Scheduled,
    ) -> Result<Vec<SchedulingAnomaly>, Failure> {
        let measured = self.measured_anomalies(operations, &scheduled.schedule)?;
        Ok(anomalies(operations, scheduled, &measured))
    }

    fn all_dependencies(operations: &Operations) -> Result<Vec<DependencyInfo>, Failure> {
        let mut all = Vec::new();
        for of in operations.handles() {
            all.extend(dependencies(operations, of)?);
        }
        Ok(all)
    }
}

impl wire::Scheduler for Service {
    fn create(&self, entry_point: &str) -> Result<i32, wire::SchedulerCreateError> {
        Ok(Service::create(self, entry_point).map(handle_number)?)
    }

    fn lookup(&self, entry_point: &str) -> Result<i32, wire::SchedulerLookupError> {
        let found = self.latest().0.lookup(entry_point);
        Ok(found.map(handle_number).ok_or(Failure::UnknownTask)?)
    }

    fn get(&self, of: i32) -> Result<RTInfo, wire::SchedulerGetError> {
        let (operations, scheduled) = self.latest();
        Ok(described(&operations, handle(of)?, scheduled.as_deref())?)
    }

    fn set(
        &self,
        handle: i32,
        criticality: CriticalityT,
        wc_time: u64,
        typical_time: u64,
        cached_time: u64,
        period: i32,
        importance: ImportanceT,
        quantum: u64,
        threads: i32,
        info_type: InfoTypeT,
    ) -> Result<(), wire::SchedulerSetError> {
        let info = RTInfo {
            handle,
            criticality,
            worst_case_execution_time: wc_time,
            typical_execution_time: typical_time,
            cached_execution_time: cached_time,
            period,
            importance,
            quantum,
            threads,
            info_type,
            ..RTInfo::default()
        };
        Ok(self.declare(&[info], |_| ())?)
    }

    fn reset(
        &self,
        handle: i32,
        criticality: CriticalityT,
        wc_time: u64,
        typical_time: u64,
        cached_time: u64,
        period: i32,
        importance: ImportanceT,
        quantum: u64,
        threads: i32,
        info_type: InfoTypeT,
    ) -> Result<(), wire::SchedulerResetError> {
        let info = RTInfo {
            handle,
            criticality,
            worst_case_execution_time: wc_time,
            typical_execution_time: typical_time,
            cached_execution_time: cached_time,
            period,
            importance,
            quantum,
            threads,
            info_type,
            ..RTInfo::default()
        };
        Ok(self.declare(&[info], |_| ())?)
    }

    fn set_seq(&self, infos: &[RTInfo]) -> Result<(), wire::SchedulerSetSeqError> {
        Ok(self.declare(infos, |_| ())?)
    }

    fn reset_seq(&self, infos: &[RTInfo]) -> Result<(), wire::SchedulerResetSeqError> {
        Ok(self.declare(infos, |_| ())?)
    }

    fn replace_seq(&self, infos: &[RTInfo]) -> Result<(), wire::SchedulerReplaceSeqError> {
        Ok(self.change(|operations| {
            for of in operations.handles() {
                operations.change(of, |info| {
                    if info.enabled == Enabled::Enabled {
                        *info = RtInfo {
                            enabled: Enabled::Disabled,
                            ..RtInfo::default()
                        };
                    }
                })?;
            }
            for info in infos {
                let mut result = Ok(());
                operations.change(handle(info.handle)?, |there| {
                    if there.enabled == Enabled::Disabled {
                        there.enabled = Enabled::Enabled;
                    }
                    result = declare(there, info);
                })?;
                result?;
            }
            Ok(())
        })?)
    }

    fn add_dependency(
        &self,
        of: i32,
        on: i32,
        number_of_calls: i32,
        dependency_type: DependencyTypeT,
    ) -> Result<(), wire::SchedulerAddDependencyError> {
        let enabled = DependencyEnabledTypeT::DependencyEnabled;
        let (of, added) = (
            handle(of)?,
            dependency(on, number_of_calls, dependency_type, enabled)?,
        );
        let place = self.shares.dependency().map_err(Failure::from)?;
        Ok(self.change_declared(
            self.options.admits,
            |operations| Ok(operations.add_dependency(of, added)?),
            |declared| declared.dependency(of, added, place),
        )?)
    }

    fn remove_dependency(
        &self,
        of: i32,
        on: i32,
        number_of_calls: i32,
        dependency_type: DependencyTypeT,
    ) -> Result<(), wire::SchedulerRemoveDependencyError> {
        let enabled = DependencyEnabledTypeT::DependencyEnabled;
        let (of, removed) = (
            handle(of)?,
            dependency(on, number_of_calls, dependency_type, enabled)?,
        );
        Ok(self.change_declared(
            self.options.admits,
            |operations| Ok(operations.remove_dependency(of, removed)?),
            |declared| declared.remove_dependency(of, removed),
        )?)
    }

    fn set_dependency_enable_state(
        &self,
        of: i32,
        on: i32,
        number_of_calls: i32,
        dependency_type: DependencyTypeT,
        enabled: DependencyEnabledTypeT,
    ) -> Result<(), wire::SchedulerSetDependencyEnableStateError> {
        let changed = dependency(on, number_of_calls, dependency_type, enabled)?;
        Ok(self.change(|operations| Ok(operations.enable_dependency(handle(of)?, changed)?))?)
    }

    fn set_dependency_enable_state_seq(
        &self,
        dependencies: &[DependencyInfo],
    ) -> Result<(), wire::SchedulerSetDependencyEnableStateSeqError> {
        Ok(self.change(|operations| {
            for one in dependencies {
                let changed = dependency(
                    one.rt_info_depended_on,
                    one.number_of_calls,
                    one.dependency_type,
                    one.enabled,
                )?;
                operations.enable_dependency(handle(one.rt_info)?, changed)?;
            }
            Ok(())
        })?)
    }

    fn set_rt_info_enable_state(
        &self,
        of: i32,
        state: RTInfoEnabledTypeT,
    ) -> Result<(), wire::SchedulerSetRtInfoEnableStateError> {
        Ok(self.change(|operations| {
            Ok(operations.change(handle(of)?, |info| info.enabled = enabled(state))?)
        })?)
    }

    fn set_rt_info_enable_state_seq(
        &self,
        pair_set: &[RTInfoEnableStatePair],
    ) -> Result<(), wire::SchedulerSetRtInfoEnableStateSeqError> {
        Ok(self.change(|operations| {
            for pair in pair_set {
                operations.change(handle(pair.handle)?, |info| {
                    info.enabled = enabled(pair.enabled);
                })?;
            }
            Ok(())
        })?)
    }

    fn priority(&self, of: i32) -> Result<Priorities, wire::SchedulerPriorityError> {
        Ok(self.priorities(Some(handle(of)?))?)
    }

    fn entry_point_priority(
        &self,
        entry_point: &str,
    ) -> Result<Priorities, wire::SchedulerEntryPointPriorityError> {
        let of = self.latest().0.lookup(entry_point);
        Ok(self.priorities(of)?)
    }

    fn compute_scheduling<'a>(
        &'a self,
        minimum_priority: i32,
        maximum_priority: i32,
    ) -> Result<
        (
            Cow<'a, [RTInfo]>,
            Cow<'a, [DependencyInfo]>,
            Cow<'a, [ConfigInfo]>,
            Cow<'a, [SchedulingAnomaly]>,
        ),
        wire::SchedulerComputeSchedulingError,
    > {
        let (operations, scheduled) = self.compute(minimum_priority, maximum_priority)?;
        Ok((
            Self::infos(&operations, Some(&scheduled))?.into(),
            Self::all_dependencies(&operations)?.into(),
            configs(&scheduled).into(),
            self.anomalies(&operations, &scheduled)?.into(),
        ))
    }

    fn recompute_scheduling<'a>(
        &'a self,
        minimum_priority: i32,
        maximum_priority: i32,
    ) -> Result<Cow<'a, [SchedulingAnomaly]>, wire::SchedulerRecomputeSchedulingError> {
        let (operations, scheduled) = self.compute(minimum_priority, maximum_priority)?;
        Ok(self.anomalies(&operations, &scheduled)?.into())
    }

    fn get_rt_info_set<'a>(
        &'a self,
    ) -> Result<Cow<'a, [RTInfo]>, wire::SchedulerGetRtInfoSetError> {
        let (operations, scheduled) = self.latest();
        Ok(Self::infos(&operations, scheduled.as_deref())?.into())
    }

    fn get_dependency_set<'a>(
        &'a self,
    ) -> Result<Cow<'a, [DependencyInfo]>, wire::SchedulerGetDependencySetError> {
        let (operations, _) = self.latest();
        Ok(Self::all_dependencies(&operations)?.into())
    }

    fn get_config_info_set<'a>(
        &'a self,
    ) -> Result<Cow<'a, [ConfigInfo]>, wire::SchedulerGetConfigInfoSetError> {
        let (_, scheduled) = self.latest();
        Ok(scheduled.map_or_else(Vec::new, |one| configs(&one)).into())
    }

    fn dispatch_configuration(
        &self,
        p_priority: i32,
    ) -> Result<(i32, DispatchingTypeT), wire::SchedulerDispatchConfigurationError> {
        let (_, scheduled) = self.current()?;
        let place = usize::try_from(p_priority).ok();
        let level = place.and_then(|place| {
            let level = scheduled.schedule.levels.get(place)?;
            Some((
                *scheduled.priorities.get(place)?,
                dispatching(level.dispatch),
            ))
        });
        Ok(level.ok_or(wire::UNKNOWNPRIORITYLEVEL)?)
    }

    fn last_scheduled_priority(&self) -> Result<i32, wire::SchedulerLastScheduledPriorityError> {
        let (_, scheduled) = self.current()?;
        let last = scheduled.priorities.len().checked_sub(1);
        let last = last.and_then(|last| i32::try_from(last).ok());
        Ok(last.ok_or(Failure::NotScheduled)?)
    }

    fn get_config_infos<'a>(
        &'a self,
    ) -> Result<Cow<'a, [ConfigInfo]>, wire::SchedulerGetConfigInfosError> {
        let (_, scheduled) = self.current()?;
        Ok(configs(&scheduled).into())
    }
}
