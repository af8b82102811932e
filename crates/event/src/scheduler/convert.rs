//! Between the wire's `RtecScheduler` and the theory's types. A time that does not fit is BAD_PARAM, never another time.

use std::collections::HashMap;

use deckwatch_orb::SystemExceptionKind as Kind;
use deckwatch_sched::{
    Anomaly, CallKind, Criticality, Dependency, Dispatch, Enabled, Handle, Importance, InfoKind,
    Operations, RtInfo, Severity,
};

use super::{Failure, Scheduled};
use crate::raise::raise;
use crate::rtec_base::{DependencyEnabledTypeT, DependencyInfo, DependencyTypeT};
use crate::rtec_scheduler::{
    AnomalySeverity, ConfigInfo, CriticalityT, DispatchingTypeT, ImportanceT, InfoTypeT, RTInfo,
    RTInfoEnabledTypeT, SchedulingAnomaly,
};

/// Nanoseconds of one unit of the wire's times.
pub(crate) const UNIT_NS: u64 = 100;

pub(crate) fn handle(number: i32) -> Result<Handle, Failure> {
    let number = u32::try_from(number).ok().and_then(Handle::new);
    number.ok_or(Failure::UnknownTask)
}

pub(super) fn handle_number(handle: Handle) -> i32 {
    i32::try_from(handle.number()).unwrap_or(i32::MAX)
}

/// Returns a time of the wire in nanoseconds.
pub(super) fn nanoseconds(units: u64) -> Result<u64, Failure> {
    let bad = Failure::System(raise(Kind::BadParam));
    units.checked_mul(UNIT_NS).ok_or(bad)
}

/// Returns a period of the wire in nanoseconds.
pub(super) fn period_ns(units: i32) -> Result<u64, Failure> {
    let bad = Failure::System(raise(Kind::BadParam));
    let units = u64::try_from(units).map_err(|_| bad)?;
    nanoseconds(units)
}

/// Returns a count of the wire, which has no sense below 0.
pub(super) fn count(number: i32) -> Result<u32, Failure> {
    u32::try_from(number).map_err(|_| Failure::System(raise(Kind::BadParam)))
}

fn period_units(ns: u64) -> i32 {
    // Each period came from the wire, so that it fits.
    i32::try_from(ns / UNIT_NS).unwrap_or(i32::MAX)
}

/// Changes a declaration to the attributes of the wire.
pub(super) fn declare(info: &mut RtInfo, wire: &RTInfo) -> Result<(), Failure> {
    *info = RtInfo {
        worst_case_ns: nanoseconds(wire.worst_case_execution_time)?,
        typical_ns: nanoseconds(wire.typical_execution_time)?,
        cached_ns: nanoseconds(wire.cached_execution_time)?,
        period_ns: period_ns(wire.period)?,
        criticality: criticality(wire.criticality),
        importance: importance(wire.importance),
        quantum_ns: nanoseconds(wire.quantum)?,
        threads: count(wire.threads)?,
        kind: kind(wire.info_type),
        enabled: info.enabled,
        ..RtInfo::default()
    };
    Ok(())
}

/// Returns a declaration as the wire has it, with what the schedule gave it.
pub(crate) fn described(
    operations: &Operations,
    of: Handle,
    scheduled: Option<&Scheduled>,
) -> Result<RTInfo, Failure> {
    let info = operations.get(of)?;
    let assigned = scheduled.and_then(|scheduled| {
        let assigned = scheduled.schedule.of(of)?;
        let priority = scheduled.priorities.get(assigned.level as usize)?;
        Some((*priority, assigned.sub_priority, assigned.level))
    });
    let (priority, sub_priority, level) = assigned.unwrap_or((0, 0, 0));
    Ok(RTInfo {
        entry_point: info.entry_point.clone(),
        handle: handle_number(of),
        worst_case_execution_time: info.worst_case_ns / UNIT_NS,
        typical_execution_time: info.typical_ns / UNIT_NS,
        cached_execution_time: info.cached_ns / UNIT_NS,
        period: period_units(info.period_ns),
        criticality: wire_criticality(info.criticality),
        importance: wire_importance(info.importance),
        quantum: info.quantum_ns / UNIT_NS,
        threads: i32::try_from(info.threads).unwrap_or(i32::MAX),
        dependencies: dependencies(operations, of)?,
        priority,
        preemption_subpriority: i32::try_from(sub_priority).unwrap_or(i32::MAX),
        preemption_priority: i32::try_from(level).unwrap_or(i32::MAX),
        info_type: wire_kind(info.kind),
        enabled: wire_enabled(info.enabled),
        volatile_token: 0,
    })
}

/// Returns the operations of another scheduler, in the order of `infos`. What depends on an unknown handle is left out.
pub(crate) fn mirrored(
    infos: &[RTInfo],
    dependencies: &[DependencyInfo],
) -> Result<Operations, Failure> {
    let mut operations = Operations::default();
    let mut places = HashMap::new();
    for info in infos {
        let of = operations.create(&info.entry_point)?;
        let mut result = Ok(());
        operations.change(of, |there| {
            there.enabled = enabled(info.enabled);
            result = declare(there, info);
        })?;
        result?;
        places.insert(info.handle, of);
    }
    for wire in dependencies {
        let ends = (
            places.get(&wire.rt_info),
            places.get(&wire.rt_info_depended_on),
        );
        if let (Some(&of), Some(&on)) = ends {
            let one = dependency(
                handle_number(on),
                wire.number_of_calls,
                wire.dependency_type,
                wire.enabled,
            )?;
            operations.add_dependency(of, one)?;
        }
    }
    Ok(operations)
}

/// Returns the dependencies of an operation as the wire has them.
pub(super) fn dependencies(
    operations: &Operations,
    of: Handle,
) -> Result<Vec<DependencyInfo>, Failure> {
    let all = operations.get(of)?.dependencies.iter();
    let on_wire = |one: &Dependency| DependencyInfo {
        dependency_type: match one.kind {
            CallKind::OneWay => DependencyTypeT::OneWayCall,
            CallKind::TwoWay => DependencyTypeT::TwoWayCall,
        },
        number_of_calls: i32::try_from(one.calls).unwrap_or(i32::MAX),
        rt_info: handle_number(of),
        rt_info_depended_on: handle_number(one.on),
        enabled: match one.enabled {
            Enabled::Disabled => DependencyEnabledTypeT::DependencyDisabled,
            Enabled::Enabled => DependencyEnabledTypeT::DependencyEnabled,
            Enabled::NonVolatile => DependencyEnabledTypeT::DependencyNonVolatile,
        },
    };
    Ok(all.map(on_wire).collect())
}

pub(super) fn dependency(
    on: i32,
    calls: i32,
    kind: DependencyTypeT,
    enabled: DependencyEnabledTypeT,
) -> Result<Dependency, Failure> {
    Ok(Dependency {
        on: handle(on)?,
        kind: match kind {
            DependencyTypeT::OneWayCall => CallKind::OneWay,
            DependencyTypeT::TwoWayCall => CallKind::TwoWay,
        },
        calls: count(calls)?,
        enabled: match enabled {
            DependencyEnabledTypeT::DependencyDisabled => Enabled::Disabled,
            DependencyEnabledTypeT::DependencyEnabled => Enabled::Enabled,
            DependencyEnabledTypeT::DependencyNonVolatile => Enabled::NonVolatile,
        },
    })
}

/// Returns the queues of a schedule, the most urgent first.
pub(super) fn configs(scheduled: &Scheduled) -> Vec<ConfigInfo> {
    let levels = scheduled.schedule.levels.iter();
    levels
        .zip(&scheduled.priorities)
        .zip(0..)
        .map(
            |((level, &thread_priority), preemption_priority)| ConfigInfo {
                preemption_priority,
                thread_priority,
                dispatching_type: dispatching(level.dispatch),
                timer_periods: vec![period_units(level.period_ns)],
            },
        )
        .collect()
}

/// Returns the anomalies of a schedule, then those by the measured times.
pub(super) fn anomalies(
    operations: &Operations,
    scheduled: &Scheduled,
    measured: &[Anomaly],
) -> Vec<SchedulingAnomaly> {
    let all = scheduled.schedule.anomalies.iter().chain(measured);
    let on_wire = all.map(|anomaly| SchedulingAnomaly {
        description: anomaly.describe(operations),
        severity: match anomaly.severity() {
            Severity::Fatal => AnomalySeverity::AnomalyFatal,
            Severity::Error => AnomalySeverity::AnomalyError,
            Severity::Warning => AnomalySeverity::AnomalyWarning,
        },
    });
    on_wire.collect()
}

pub(super) const fn dispatching(dispatch: Dispatch) -> DispatchingTypeT {
    match dispatch {
        Dispatch::Static => DispatchingTypeT::StaticDispatching,
        Dispatch::Deadline => DispatchingTypeT::DeadlineDispatching,
        Dispatch::Laxity => DispatchingTypeT::LaxityDispatching,
    }
}

pub(super) const fn enabled(wire: RTInfoEnabledTypeT) -> Enabled {
    match wire {
        RTInfoEnabledTypeT::RtInfoDisabled => Enabled::Disabled,
        RTInfoEnabledTypeT::RtInfoEnabled => Enabled::Enabled,
        RTInfoEnabledTypeT::RtInfoNonVolatile => Enabled::NonVolatile,
    }
}

const fn wire_enabled(enabled: Enabled) -> RTInfoEnabledTypeT {
    match enabled {
        Enabled::Disabled => RTInfoEnabledTypeT::RtInfoDisabled,
        Enabled::Enabled => RTInfoEnabledTypeT::RtInfoEnabled,
        Enabled::NonVolatile => RTInfoEnabledTypeT::RtInfoNonVolatile,
    }
}

const fn kind(wire: InfoTypeT) -> InfoKind {
    match wire {
        InfoTypeT::Operation => InfoKind::Operation,
        InfoTypeT::Conjunction => InfoKind::Conjunction,
        InfoTypeT::Disjunction => InfoKind::Disjunction,
        InfoTypeT::RemoteDependant => InfoKind::RemoteDependant,
    }
}

const fn wire_kind(kind: InfoKind) -> InfoTypeT {
    match kind {
        InfoKind::Operation => InfoTypeT::Operation,
        InfoKind::Conjunction => InfoTypeT::Conjunction,
        InfoKind::Disjunction => InfoTypeT::Disjunction,
        InfoKind::RemoteDependant => InfoTypeT::RemoteDependant,
    }
}

const fn criticality(wire: CriticalityT) -> Criticality {
    match wire {
        CriticalityT::VeryLowCriticality => Criticality::VeryLow,
        CriticalityT::LowCriticality => Criticality::Low,
        CriticalityT::MediumCriticality => Criticality::Medium,
        CriticalityT::HighCriticality => Criticality::High,
        CriticalityT::VeryHighCriticality => Criticality::VeryHigh,
    }
}

const fn wire_criticality(criticality: Criticality) -> CriticalityT {
    match criticality {
        Criticality::VeryLow => CriticalityT::VeryLowCriticality,
        Criticality::Low => CriticalityT::LowCriticality,
        Criticality::Medium => CriticalityT::MediumCriticality,
        Criticality::High => CriticalityT::HighCriticality,
        Criticality::VeryHigh => CriticalityT::VeryHighCriticality,
    }
}

const fn importance(wire: ImportanceT) -> Importance {
    match wire {
        ImportanceT::VeryLowImportance => Importance::VeryLow,
        ImportanceT::LowImportance => Importance::Low,
        ImportanceT::MediumImportance => Importance::Medium,
        ImportanceT::HighImportance => Importance::High,
        ImportanceT::VeryHighImportance => Importance::VeryHigh,
    }
}

const fn wire_importance(importance: Importance) -> ImportanceT {
    match importance {
        Importance::VeryLow => ImportanceT::VeryLowImportance,
        Importance::Low => ImportanceT::LowImportance,
        Importance::Medium => ImportanceT::MediumImportance,
        Importance::High => ImportanceT::HighImportance,
        Importance::VeryHigh => ImportanceT::VeryHighImportance,
    }
}
