//! Measured execution times beside the declared ones: which operation exceeds its declaration, and whether the
//! deadlines still hold with what was measured.

use std::collections::BTreeMap;
use std::fmt;
use std::mem::discriminant;

use crate::anomaly::{Anomaly, AnomalyFact, Severity};
use crate::info::Handle;
use crate::operations::Operations;
use crate::schedule::{Schedule, Settings};
use crate::words::in_words;

/// Execution times of one operation, measured where it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Measured executions.
    pub executions: u64,
    /// Executions that took more processor time than `worst_case_ns`.
    pub exceeded: u64,
    /// The declared worst case that each execution was compared with.
    pub worst_case_ns: u64,
    /// Longest processor time of one execution.
    pub longest_ns: u64,
    /// Longest time from the start to the end of one execution, the time of other threads included.
    pub longest_elapsed_ns: u64,
}

impl Measured {
    /// Adds later executions. If they were compared with another worst case, the earlier ones are dropped: their count
    /// is that of another declaration.
    pub fn add(&mut self, later: Self) {
        if self.worst_case_ns != later.worst_case_ns {
            *self = later;
            return;
        }
        self.executions = self.executions.saturating_add(later.executions);
        self.exceeded = self.exceeded.saturating_add(later.exceeded);
        self.longest_ns = self.longest_ns.max(later.longest_ns);
        self.longest_elapsed_ns = self.longest_elapsed_ns.max(later.longest_elapsed_ns);
    }
}

/// `3 of 400 executions took longer than the declared worst case of 3 ms: up to 5.2 ms of processor time`.
impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} executions took longer than the declared worst case of {}: up to {} of processor time",
            self.exceeded,
            self.executions,
            in_words(self.worst_case_ns),
            in_words(self.longest_ns)
        )
    }
}

/// The measured execution times of a set of operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measurements(BTreeMap<Handle, Measured>);

impl Measurements {
    /// Adds executions of an operation.
    pub fn add(&mut self, of: Handle, later: Measured) {
        self.0.entry(of).or_insert(later.unmeasured()).add(later);
    }

    /// Returns what was measured of an operation.
    #[must_use]
    pub fn of(&self, of: Handle) -> Option<&Measured> {
        self.0.get(&of)
    }

    /// Returns all that was measured, in the order of the handles.
    pub fn all(&self) -> impl Iterator<Item = (Handle, &Measured)> {
        self.0.iter().map(|(&of, measured)| (of, measured))
    }

    /// Returns the operations that took longer than they declare.
    pub fn exceeding<'a>(
        &'a self,
        operations: &'a Operations,
    ) -> impl Iterator<Item = (Handle, &'a Measured)> {
        self.all().filter(|(of, measured)| {
            let declared = operations.get(*of).map(|info| info.worst_case_ns);
            declared.is_ok_and(|declared_ns| measured.longest_ns > declared_ns)
        })
    }

    /// Returns the operations, with the measured execution time where it exceeds the declared one.
    #[must_use]
    pub fn applied(&self, operations: &Operations) -> Operations {
        let mut applied = operations.clone();
        for (of, measured) in self.exceeding(operations) {
            let known = applied.change(of, |info| info.worst_case_ns = measured.longest_ns);
            debug_assert!(known.is_ok(), "only declared operations can exceed");
        }
        applied
    }

    /// Returns what the measured times say of a schedule: each operation that exceeds its declaration, and then each
    /// fault that the set has with the measured times and not with the declared ones. All are warnings.
    #[must_use]
    pub fn anomalies(&self, operations: &Operations, declared: &Schedule) -> Vec<Anomaly> {
        let exceeding = self.exceeding(operations).map(|(of, measured)| Anomaly {
            of: Some(of),
            fact: AnomalyFact::ExceedsWorstCase(*measured),
        });
        let mut all: Vec<Anomaly> = exceeding.collect();
        if !all.is_empty() {
            all.extend(self.faults(operations, declared, declared.settings));
        }
        all
    }

    fn faults(
        &self,
        operations: &Operations,
        declared: &Schedule,
        settings: Settings,
    ) -> Vec<Anomaly> {
        let Ok(schedule) = Schedule::compute(&self.applied(operations), settings) else {
            return vec![Anomaly {
                of: None,
                fact: AnomalyFact::NotAnalysedAsMeasured,
            }];
        };
        let was_there = |one: &Anomaly| {
            let kind = discriminant(&one.fact);
            let mut there = declared.anomalies.iter();
            there.any(|other| other.of == one.of && discriminant(&other.fact) == kind)
        };
        let new = schedule.anomalies.iter().filter(|one| !was_there(one));
        let faults = new.filter(|one| one.severity() != Severity::Warning);
        let as_measured = faults.map(|one| Anomaly {
            of: one.of,
            fact: match one.fact {
                AnomalyFact::MissesDeadline {
                    worst_ns,
                    deadline_ns,
                } => AnomalyFact::MissesDeadlineAsMeasured {
                    worst_ns,
                    deadline_ns,
                },
                AnomalyFact::UtilisationAboveOne => AnomalyFact::UtilisationAboveOneAsMeasured,
                // Execution times change no other fault.
                other => other,
            },
        });
        as_measured.collect()
    }
}

impl Measured {
    /// Returns no executions, compared with the same worst case.
    const fn unmeasured(self) -> Self {
        Self {
            executions: 0,
            exceeded: 0,
            worst_case_ns: self.worst_case_ns,
            longest_ns: 0,
            longest_elapsed_ns: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::RtInfo;

    const MS: u64 = 1_000_000;

    /// The example of the book: draw meets its deadline exactly.
    fn example() -> (Operations, [Handle; 3]) {
        let mut operations = Operations::default();
        let mut add = |name: &str, cost: u64, period: u64| {
            let info = RtInfo {
                entry_point: name.to_owned(),
                worst_case_ns: cost * MS,
                period_ns: period * MS,
                ..RtInfo::default()
            };
            operations.add(&info).unwrap()
        };
        let handles = [add("track", 3, 7), add("filter", 3, 12), add("draw", 5, 20)];
        (operations, handles)
    }

    fn measured(executions: u64, exceeded: u64, worst_case_ns: u64, longest_ns: u64) -> Measured {
        Measured {
            executions,
            exceeded,
            worst_case_ns,
            longest_ns,
            longest_elapsed_ns: longest_ns.saturating_mul(2),
        }
    }

    fn words(measurements: &Measurements, operations: &Operations) -> Vec<String> {
        let schedule = Schedule::compute(operations, Settings::default()).unwrap();
        let anomalies = measurements.anomalies(operations, &schedule);
        assert!(
            anomalies
                .iter()
                .all(|one| one.severity() == Severity::Warning)
        );
        let described = anomalies.iter().map(|one| one.describe(operations));
        described.collect()
    }

    #[test]
    fn an_operation_that_exceeds_its_declaration_is_named_with_both_figures_and_how_often() {
        let (operations, [track, filter, _]) = example();
        let mut measurements = Measurements::default();
        measurements.add(filter, measured(400, 0, 3 * MS, 3 * MS));
        assert_eq!(words(&measurements, &operations), [""; 0]);
        measurements.add(track, measured(300, 0, 3 * MS, 2 * MS));
        measurements.add(track, measured(100, 12, 3 * MS, 3_000_001));
        assert_eq!(
            words(&measurements, &operations),
            [
                "track: 12 of 400 executions took longer than the declared worst case of 3 ms: up to 3.000001 ms of \
                 processor time",
                "draw: with the measured execution times, its response can take 20.000003 ms; its deadline is 20 ms",
            ]
        );
    }

    #[test]
    fn a_set_is_infeasible_with_the_measured_times_only_if_they_exceed() {
        let (operations, [track, filter, draw]) = example();
        let mut measurements = Measurements::default();
        // Shorter than declared: the declaration counts.
        measurements.add(draw, measured(9, 0, 5 * MS, MS));
        measurements.add(filter, measured(9, 1, 3 * MS, 12 * MS));
        let said = words(&measurements, &operations);
        assert_eq!(
            said[1],
            "with the measured execution times, all executions together take more time than there is"
        );
        let applied = measurements.applied(&operations);
        let costs = applied.infos().iter().map(|info| info.worst_case_ns / MS);
        assert_eq!(costs.collect::<Vec<_>>(), [3, 12, 5]);
        measurements.add(track, measured(1, 1, 3 * MS, u64::MAX));
        let settings = Settings {
            overhead_ns: 1,
            ..Settings::default()
        };
        let schedule = Schedule::compute(&operations, settings).unwrap();
        let anomalies = measurements.anomalies(&operations, &schedule);
        assert!(
            anomalies
                .iter()
                .any(|one| one.fact == AnomalyFact::NotAnalysedAsMeasured)
        );
    }

    #[test]
    fn times_that_cannot_be_are_named_and_overflow_nothing() {
        let (operations, handles) = example();
        let mut measurements = Measurements::default();
        for of in handles {
            let lie = Measured {
                executions: u64::MAX,
                exceeded: u64::MAX,
                worst_case_ns: 0,
                longest_ns: u64::MAX,
                longest_elapsed_ns: u64::MAX,
            };
            measurements.add(of, lie);
            measurements.add(of, lie);
        }
        let words = words(&measurements, &operations);
        assert!(words.len() >= handles.len(), "{words:?}");
    }

    #[test]
    fn executions_compared_with_another_declaration_start_the_counts_anew() {
        let (mut operations, [track, ..]) = example();
        let mut measurements = Measurements::default();
        measurements.add(track, measured(400, 12, 3 * MS, 4 * MS));
        operations
            .change(track, |info| info.worst_case_ns = 5 * MS)
            .unwrap();
        assert_eq!(measurements.exceeding(&operations).count(), 0);
        measurements.add(track, measured(10, 0, 5 * MS, 4 * MS));
        assert_eq!(
            measurements.of(track),
            Some(&measured(10, 0, 5 * MS, 4 * MS))
        );
        // No sum wraps.
        measurements.add(track, measured(u64::MAX, u64::MAX, 5 * MS, 6 * MS));
        let there = measurements.of(track).unwrap();
        assert_eq!((there.executions, there.exceeded), (u64::MAX, u64::MAX));
    }
}
