//! What one kind of bench has found in one condition.

use deckwatch_meter::experiment::Measurement;

use super::case::{Case, Operation};
use super::kind::Kind;
use crate::laboratory::Variant;

/// The results of one kind, in one condition and variant.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) kind: Kind,
    /// Processors and class of both ends, in words.
    pub(super) condition: String,
    /// Targets are judged in this condition.
    pub(super) is_judged: bool,
    pub(super) variant: Variant,
    /// The cases that were to be measured.
    pub(super) cases: Vec<Case>,
    pub(super) rows: Vec<Row>,
}

/// One measurement and its subject.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) about: About,
    pub(super) measurement: Measurement,
}

/// The subject of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum About {
    /// A system in a case, beside its baseline.
    Case(Case),
    /// The baseline of such a measurement.
    Baseline,
    /// Raw TCP beside sockperf.
    BaselineCheck,
    /// Counts of a request, of servers that serve in this way.
    Counts(Variant),
    /// Memory of a server with this number of connections.
    Memory(usize),
    /// Counts of an event at our channel.
    EventCounts(Case),
    /// Memory of a consumer that gets no event, in the channel of this operation. Each has an endpoint of its own, or
    /// all are at one.
    IdleConsumer(Operation, bool),
    /// Events in a mission beside calls.
    Mission,
}

impl Part {
    /// Adds a measurement.
    pub(super) fn add(&mut self, about: About, mut measurement: Measurement) {
        measurement.group = self.heading();
        self.rows.push(Row { about, measurement });
    }

    /// The kind, the condition and the variant, in words.
    fn heading(&self) -> String {
        let Self {
            kind,
            variant,
            condition,
            ..
        } = self;
        format!("{}: {condition}{}", kind.word(), variant.words())
    }

    pub(super) fn has_case(&self, case: Case) -> bool {
        self.cases.contains(&case)
    }

    /// No system was measured.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A case has no result of any system.
    pub(super) fn has_gap(&self) -> bool {
        let measured = |case: &Case| self.cases().any(|(it, _)| it == *case);
        !self.cases.iter().all(measured)
    }

    /// The measurements of systems in cases, with their cases.
    pub(super) fn cases(&self) -> impl Iterator<Item = (Case, &Measurement)> {
        self.rows.iter().filter_map(|row| match row.about {
            About::Case(case) => Some((case, &row.measurement)),
            _ => None,
        })
    }

    /// The pairs of raw TCP and sockperf.
    pub(super) fn baseline_check(&self) -> Option<&Measurement> {
        let row = self
            .rows
            .iter()
            .find(|row| row.about == About::BaselineCheck);
        row.map(|row| &row.measurement)
    }

    /// The counts of requests, with the way of serving.
    pub(super) fn counts(&self) -> impl Iterator<Item = (Variant, &Measurement)> {
        self.rows.iter().filter_map(|row| match row.about {
            About::Counts(variant) => Some((variant, &row.measurement)),
            _ => None,
        })
    }

    /// The counts of events, with their cases.
    pub(super) fn event_counts(&self) -> impl Iterator<Item = (Case, &Measurement)> {
        self.rows.iter().filter_map(|row| match row.about {
            About::EventCounts(case) => Some((case, &row.measurement)),
            _ => None,
        })
    }

    /// Events in a mission.
    pub(super) fn mission(&self) -> Option<&Measurement> {
        let row = self.rows.iter().find(|row| row.about == About::Mission);
        row.map(|row| &row.measurement)
    }

    /// The memory of idle consumers, with the operation of their channels, and whether they are apart.
    pub(super) fn idle_consumers(&self) -> impl Iterator<Item = (Operation, bool, &Measurement)> {
        self.rows.iter().filter_map(|row| match row.about {
            About::IdleConsumer(operation, are_apart) => {
                Some((operation, are_apart, &row.measurement))
            }
            _ => None,
        })
    }

    /// The memory of servers, with their number of connections.
    pub(super) fn memory(&self) -> impl Iterator<Item = (usize, &Measurement)> {
        self.rows.iter().filter_map(|row| match row.about {
            About::Memory(connections) => Some((connections, &row.measurement)),
            _ => None,
        })
    }

    /// The numbers of connections at which memory was measured, ascending.
    pub(super) fn connections(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self.memory().map(|(connections, _)| connections).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}
