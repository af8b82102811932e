//! From a schedule file's tables to declared operations: names are resolved, and what contradicts itself is reported.

use std::collections::HashMap;
use std::ops::Range;

use deckwatch_sched::{AnomalyFact, Dependency, Enabled, Operations, RtInfo};

use super::file::{Depends, File, Operation};
use super::nanoseconds;
use crate::mission::fault::Faults;
use crate::mission::shape::{list, nearest};

/// Where a file declares an operation.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub(super) name: Range<usize>,
}

/// Returns the operations of a file, and where each is declared.
pub(super) fn operations(file: &File, faults: &mut Faults) -> (Operations, Vec<Places>) {
    let mut operations = Operations::default();
    let mut transactions: HashMap<&str, u32> = HashMap::new();
    for operation in &file.operations {
        let next = transactions.len() as u32;
        let transaction = operation
            .transaction
            .as_deref()
            .map(|name| *transactions.entry(name).or_insert(next));
        let info = RtInfo {
            transaction,
            ..declared(operation)
        };
        if operation
            .period
            .as_ref()
            .is_some_and(|one| one.get_ref().0.is_zero())
        {
            let place = operation.period.as_ref().map_or(0..0, toml::Spanned::span);
            faults.report(place, "a period of 0 has no end", "write how long it is");
        }
        if operations.add(&info).is_err() {
            let name = operation.name.get_ref();
            faults.report(
                operation.name.span(),
                format!("there are two operations `{name}`"),
                "write another name",
            );
        }
    }
    for operation in &file.operations {
        for depends in &operation.depends {
            add_dependency(file, &mut operations, operation, depends, faults);
        }
    }
    let places = file.operations.iter().map(|operation| Places {
        name: operation.name.span(),
    });
    (operations, places.collect())
}

fn declared(operation: &Operation) -> RtInfo {
    let or_none = |text: Option<crate::mission::DurationText>| text.map_or(0, nanoseconds);
    RtInfo {
        entry_point: operation.name.get_ref().clone(),
        worst_case_ns: nanoseconds(operation.worst_case),
        typical_ns: or_none(operation.typical),
        cached_ns: or_none(operation.cached),
        period_ns: or_none(operation.period.as_ref().map(|period| *period.get_ref())),
        deadline_ns: operation.deadline.map(nanoseconds),
        jitter_ns: or_none(operation.jitter),
        offset_ns: or_none(operation.offset),
        transaction: None,
        blocking_ns: or_none(operation.blocking),
        criticality: operation.criticality.criticality(),
        importance: operation.importance.importance(),
        quantum_ns: 0,
        threads: operation.threads,
        kind: operation.kind.info_kind(),
        enabled: enabled(operation.enabled),
        dependencies: Vec::new(),
    }
}

fn enabled(word: Option<bool>) -> Enabled {
    if word.unwrap_or(true) {
        Enabled::Enabled
    } else {
        Enabled::Disabled
    }
}

fn add_dependency(
    file: &File,
    operations: &mut Operations,
    operation: &Operation,
    depends: &Depends,
    faults: &mut Faults,
) {
    let on = depends.on.get_ref().as_str();
    let names = || {
        file.operations
            .iter()
            .map(|one| one.name.get_ref().as_str())
    };
    let Some(target) = operations.lookup(on) else {
        let help = match nearest(on, names()) {
            Some(near) => format!("write \"{near}\""),
            None => format!("name one of {}", list(names().take(NAMES_LISTED))),
        };
        faults.report(
            depends.on.span(),
            format!("there is no operation `{on}`"),
            help,
        );
        return;
    };
    let dependency = Dependency {
        on: target,
        kind: depends.kind.call_kind(),
        calls: depends.calls.unwrap_or(1),
        enabled: enabled(depends.enabled),
    };
    let of = operations.lookup(operation.name.get_ref());
    let added = of.map(|of| operations.add_dependency(of, dependency));
    if let Some(Err(error)) = added {
        let fact = error.to_string();
        faults.report(
            depends.on.span(),
            fact.trim_end_matches('.'),
            "remove dependencies",
        );
    }
}

/// Returns the fault of a file with its remedy; `None` for a schedule that can be judged.
pub(super) fn fault_of(fact: AnomalyFact) -> Option<(String, &'static str)> {
    let help = match fact {
        AnomalyFact::Cycle => "remove one dependency of the cycle, or write `enabled = false`",
        AnomalyFact::Unresolved => {
            "give it a `period`, or a dependency on an operation that has one"
        }
        AnomalyFact::ThreadsWithoutPeriod => "add `period`, or remove `threads`",
        _ => return None,
    };
    Some((fact.to_string(), help))
}

/// Names that an error lists: more are not read.
const NAMES_LISTED: usize = 20;
