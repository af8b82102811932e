//! Admission at run time: whether one more operation, or one more dependency, leaves every deadline met.

use std::fmt;

use crate::anomaly::{AnomalyFact, Severity};
use crate::error::SchedError;
use crate::info::{Handle, RtInfo};
use crate::operations::Operations;
use crate::schedule::{Schedule, Settings};

/// Why an operation is not admitted: the facts of the exception.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refusal {
    /// The operation that would fail, in the set with the new one; `None` for the whole set.
    pub of: Option<Handle>,
    /// What would fail.
    pub fact: RefusalFact,
    /// Utilisation without the change.
    pub utilisation_before: f64,
    /// Utilisation with it; as before if it cannot be computed.
    pub utilisation_after: f64,
}

/// What would fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalFact {
    /// An operation would miss its deadline, or would be on a cycle.
    Anomaly(AnomalyFact),
    /// The schedule cannot be computed.
    Error(SchedError),
}

impl Refusal {
    /// Returns the refusal in words. `operations` is the set with the change.
    #[must_use]
    pub fn describe(&self, operations: &Operations) -> String {
        let name = self.of.and_then(|of| operations.get(of).ok());
        match (self.fact, name) {
            (RefusalFact::Anomaly(fact), Some(info)) => {
                let shares = self.shares();
                format!("{}: {fact}; {shares}", info.entry_point)
            }
            _ => self.to_string(),
        }
    }

    fn shares(&self) -> String {
        let (before, after) = (self.utilisation_before, self.utilisation_after);
        format!("the utilisation would be {after:.3} after {before:.3}.")
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.fact, self.of) {
            (RefusalFact::Anomaly(fact), Some(of)) => write!(f, "Operation {of}: {fact}")?,
            (RefusalFact::Anomaly(fact), None) => write!(f, "All operations: {fact}")?,
            (RefusalFact::Error(error), _) => return error.fmt(f),
        }
        write!(f, "; {}", self.shares())
    }
}

impl std::error::Error for Refusal {}

/// Admits a new operation to a set. Returns the set with it, and the schedule of that.
///
/// # Errors
/// [`Refusal`], if an operation would then miss its deadline or be on a cycle; the set stays as it is. What was wrong
/// with the set before is no reason to refuse, and neither is an operation without a rate: it never runs.
pub fn admit(
    current: &Operations,
    new: &RtInfo,
    settings: Settings,
) -> Result<(Operations, Schedule), Refusal> {
    admit_change(current, settings, |operations| {
        operations.add(new).map(|_| ())
    })
}

/// As [`admit`], for any change: a new dependency, another period, an operation that is enabled.
///
/// # Errors
/// As [`admit`].
pub fn admit_change(
    current: &Operations,
    settings: Settings,
    change: impl FnOnce(&mut Operations) -> Result<(), SchedError>,
) -> Result<(Operations, Schedule), Refusal> {
    let before = Schedule::compute(current, settings).ok();
    let utilisation_before = before
        .as_ref()
        .map_or(0.0, |before| before.bounds.utilisation);
    let refused = |error| Refusal {
        of: None,
        fact: RefusalFact::Error(error),
        utilisation_before,
        utilisation_after: utilisation_before,
    };
    let mut changed = current.clone();
    change(&mut changed).map_err(refused)?;
    let schedule = Schedule::compute(&changed, settings).map_err(refused)?;
    let was_there = |of, fact: AnomalyFact| {
        let kind = std::mem::discriminant(&fact);
        before.as_ref().is_some_and(|before| {
            let mut there = before.anomalies.iter();
            there.any(|one| one.of == of && std::mem::discriminant(&one.fact) == kind)
        })
    };
    let fault = schedule.anomalies.iter().find(|anomaly| {
        anomaly.severity() != Severity::Warning
            && anomaly.fact != AnomalyFact::Unresolved
            && !was_there(anomaly.of, anomaly.fact)
    });
    match fault {
        None => Ok((changed, schedule)),
        Some(fault) => Err(Refusal {
            of: fault.of,
            fact: RefusalFact::Anomaly(fault.fact),
            utilisation_before,
            utilisation_after: schedule.bounds.utilisation,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::{CallKind, Dependency, Enabled};

    fn info(name: &str, worst_case_ns: u64, period_ns: u64) -> RtInfo {
        RtInfo {
            entry_point: name.to_owned(),
            worst_case_ns,
            period_ns,
            ..RtInfo::default()
        }
    }

    #[test]
    fn what_fits_is_admitted_and_what_does_not_is_refused_with_the_facts() {
        let settings = Settings::default();
        let empty = Operations::default();
        let (set, _) = admit(&empty, &info("a", 3, 7), settings).unwrap();
        let (set, _) = admit(&set, &info("b", 3, 12), settings).unwrap();
        let refusal = admit(&set, &info("c", 6, 20), settings).unwrap_err();
        assert_eq!(refusal.of.map(Handle::number), Some(3));
        let expected = AnomalyFact::MissesDeadline {
            worst_ns: Some(22),
            deadline_ns: 20,
        };
        assert_eq!(refusal.fact, RefusalFact::Anomaly(expected));
        assert!((refusal.utilisation_before - (3.0 / 7.0 + 0.25)).abs() < 1e-9);
        assert!((refusal.utilisation_after - (3.0 / 7.0 + 0.55)).abs() < 1e-9);
        let (set, schedule) = admit(&set, &info("c", 5, 20), settings).unwrap();
        assert!(schedule.is_feasible() && set.infos().len() == 3);
        let again = admit(&set, &info("c", 0, 20), settings).unwrap_err();
        let there = set.lookup("c").unwrap();
        let duplicate = RefusalFact::Error(SchedError::DuplicateEntryPoint(there));
        assert_eq!(again.fact, duplicate);
        assert!(
            admit(&set, &info("never", 1, 0), settings).is_ok(),
            "it never runs"
        );
    }

    #[test]
    fn a_fault_that_was_there_is_no_reason_to_refuse_and_another_is() {
        let settings = Settings::default();
        // The deadline of `late` is below its own cost.
        let late = RtInfo {
            deadline_ns: Some(1),
            ..info("late", 2, 10)
        };
        let mut set = Operations::default();
        set.add(&late).unwrap();
        let (set, schedule) = admit(&set, &info("fits", 3, 20), settings).unwrap();
        assert!(!schedule.is_feasible());
        // The same fact, of another operation.
        let too = RtInfo {
            deadline_ns: Some(3),
            ..info("too", 2, 30)
        };
        let refusal = admit(&set, &too, settings).unwrap_err();
        assert_eq!(refusal.of.map(Handle::number), Some(3));
        // Another fact, of the same operation.
        let refusal = admit_change(&set, settings, |set| {
            let late = set.lookup("late").unwrap();
            let itself = Dependency {
                on: late,
                kind: CallKind::TwoWay,
                calls: 1,
                enabled: Enabled::Enabled,
            };
            set.add_dependency(late, itself)
        })
        .unwrap_err();
        let fact = RefusalFact::Anomaly(AnomalyFact::Cycle);
        assert_eq!(
            (refusal.of.map(Handle::number), refusal.fact),
            (Some(1), fact)
        );
    }

    #[test]
    fn a_refusal_says_what_would_fail_and_the_shares() {
        let mut set = Operations::default();
        let draw = set.add(&info("draw", 6, 20)).unwrap();
        let fact = AnomalyFact::MissesDeadline {
            worst_ns: Some(22),
            deadline_ns: 20,
        };
        let refusal = Refusal {
            of: Some(draw),
            fact: RefusalFact::Anomaly(fact),
            utilisation_before: 0.25,
            utilisation_after: 0.5,
        };
        let rest = "its response can take 22 ns; its deadline is 20 ns; the utilisation would be \
                    0.500 after 0.250.";
        assert_eq!(refusal.describe(&set), format!("draw: {rest}"));
        assert_eq!(refusal.to_string(), format!("Operation 1: {rest}"));
        let stranger = Refusal {
            of: Handle::new(2),
            ..refusal
        };
        assert_eq!(stranger.describe(&set), format!("Operation 2: {rest}"));
        let whole = Refusal {
            of: None,
            fact: RefusalFact::Anomaly(AnomalyFact::UtilisationAboveOne),
            ..refusal
        };
        let expected = "All operations: all executions together take more time than there is; the \
                        utilisation would be 0.500 after 0.250.";
        assert_eq!(whole.describe(&set), expected);
        let error = SchedError::DuplicateEntryPoint(draw);
        let refused = Refusal {
            fact: RefusalFact::Error(error),
            ..whole
        };
        let expected = "Operation 1 has the same entry point.";
        assert_eq!(refused.describe(&set), expected);
    }

    #[test]
    fn a_dependency_that_makes_another_late_or_closes_a_cycle_is_refused() {
        let settings = Settings::default();
        let mut set = Operations::default();
        let fast = set.add(&info("fast", 3, 7)).unwrap();
        let slow = set.add(&info("slow", 6, 20)).unwrap();
        let server = set.add(&info("server", 1, 0)).unwrap();
        let calls = |on| Dependency {
            on,
            kind: CallKind::TwoWay,
            calls: 1,
            enabled: Enabled::Enabled,
        };
        let (set, _) = admit_change(&set, settings, |set| {
            set.add_dependency(slow, calls(server))
        })
        .unwrap();
        let refusal =
            admit_change(&set, settings, |set| set.add_dependency(fast, calls(slow))).unwrap_err();
        assert!(matches!(
            refusal.fact,
            RefusalFact::Anomaly(AnomalyFact::UtilisationAboveOne)
        ));
        let refusal = admit_change(&set, settings, |set| {
            set.add_dependency(server, calls(slow))
        });
        let fact = refusal.unwrap_err().fact;
        assert_eq!(fact, RefusalFact::Anomaly(AnomalyFact::Cycle));
    }
}
