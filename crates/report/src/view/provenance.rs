//! The provenance of the numbers: everything that a run records about itself.

use serde::Serialize;

use super::{Run, head, name};
use crate::limits::{Detail, SENTENCE_CHARS_MAX};
use crate::unit;

/// Everything known about how one run was made.
#[derive(Debug, Serialize)]
pub(crate) struct Provenance {
    label: String,
    groups: Vec<FactGroup>,
    mission_path: String,
    mission_text: String,
    schema_version: u32,
}

/// Facts under one heading.
#[derive(Debug, Serialize)]
struct FactGroup {
    heading: &'static str,
    facts: Vec<(String, String)>,
}

/// Makes the list of provenance for one run.
pub(crate) fn of(run: &Run, label: &str, detail: &Detail) -> Provenance {
    let provenance = &run.document.provenance;
    Provenance {
        label: label.to_owned(),
        groups: groups(run, detail),
        mission_path: name(&provenance.mission_path),
        mission_text: unit::cut(&provenance.mission_text, detail.mission_chars),
        schema_version: run.document.schema_version,
    }
}

/// Returns the facts of a run in groups, without the mission's text.
fn groups(run: &Run, detail: &Detail) -> Vec<FactGroup> {
    let group = |heading, facts: Vec<(String, String)>| {
        let facts = facts.into_iter().take(detail.sentences).collect();
        FactGroup { heading, facts }
    };
    let provenance = &run.document.provenance;
    let machine = provenance
        .machine
        .iter()
        .map(|(key, value)| (name(key), long(value)))
        .collect();
    let disturbance = provenance
        .disturbance
        .iter()
        .map(|(key, value)| (name(key), unit::figures(*value)))
        .collect();
    let mut groups = vec![
        group("Run", program(run)),
        group("Machine", machine),
        group(
            "Disturbance over the run (differences of readings)",
            disturbance,
        ),
        group("Clock", clock(run)),
        group("Hosts and network", environment(run)),
        group("Scheduling asked for and got, merged layers", flows(run)),
    ];
    groups.retain(|group| !group.facts.is_empty());
    groups
}

/// Returns the facts by which runs are compared: those that should agree if only one thing was varied.
pub(crate) fn comparable(run: &Run) -> Vec<(String, String)> {
    let provenance = &run.document.provenance;
    let mut facts = vec![
        fact("program's version", &provenance.version),
        fact("program's profile", &provenance.profile),
        fact(
            "clock shared",
            if provenance.clock.shared { "yes" } else { "no" },
        ),
    ];
    facts.extend(environment(run));
    facts.extend(
        provenance
            .machine
            .iter()
            .map(|(key, value)| (name(key), long(value))),
    );
    facts
}

pub(super) fn fact(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), long(value))
}

fn long(text: &str) -> String {
    unit::cut(text, SENTENCE_CHARS_MAX)
}

fn program(run: &Run) -> Vec<(String, String)> {
    let provenance = &run.document.provenance;
    vec![
        fact("command", &head::words(&provenance.command)),
        fact("version", &provenance.version),
        fact("profile", &provenance.profile),
        fact("started (UTC)", &provenance.started_at),
        fact("duration", &unit::long_duration(provenance.duration_s)),
        fact("folder", &run.folder),
    ]
}

fn clock(run: &Run) -> Vec<(String, String)> {
    let clock = &run.document.provenance.clock;
    let shared = match (clock.shared, clock.latency_error_ns) {
        (true, _) => "one clock at both ends of every flow: one-way latency is exact".to_owned(),
        (false, Some(error_ns)) => {
            let assumed = clock
                .latency_assumed_ns
                .map_or(String::new(), |assumed_ns| {
                    format!(
                        " (within {} if both directions are alike)",
                        unit::duration(assumed_ns as f64)
                    )
                });
            format!(
                "the ends have different clocks, related to each other: one-way latency is within {}{assumed}",
                unit::duration(error_ns as f64)
            )
        }
        (false, None) => {
            "the ends have different clocks: one-way latency is not claimed".to_owned()
        }
    };
    vec![
        fact("clock", &shared),
        fact("stamps", &clock.note),
        fact(
            "error of converted kernel stamps",
            &format!(
                "at most {}",
                unit::duration(clock.conversion_error_ns as f64)
            ),
        ),
    ]
}

fn environment(run: &Run) -> Vec<(String, String)> {
    let environment = &run.document.environment;
    let mut facts = vec![
        fact("hosts are", &environment.kind),
        fact("network", &environment.network),
    ];
    if let Some(emulated) = emulated(run) {
        facts.extend(emulated.map(|(key, text)| fact(key, &text)));
    }
    if let Some(reason) = &environment.fallback_reason {
        facts.push(fact("why loopback", reason));
    }
    facts.extend(
        environment
            .hosts
            .iter()
            .map(|(host, address)| (format!("host {}", name(host)), long(address))),
    );
    let loads = if environment.loads.is_empty() {
        "none".to_owned()
    } else {
        environment.loads.join("; ")
    };
    facts.push(fact("load", &loads));
    facts
}

/// Returns what the network of a run does as a real one and what it does not; `None` on loopback.
pub(super) fn emulated(run: &Run) -> Option<[(&'static str, String); 2]> {
    let environment = &run.document.environment;
    let unstated = || "not stated: the result is older than the statement".to_owned();
    match &environment.fidelity {
        Some(fidelity) => Some([
            ("emulated", fidelity.emulated.join("; ")),
            ("not emulated", fidelity.not_emulated.join("; ")),
        ]),
        None if environment.kind != "namespaces" => None,
        None => Some([("emulated", unstated()), ("not emulated", unstated())]),
    }
}

/// Returns the scheduling and the merged layers of each flow over each carrier.
pub(crate) fn flows(run: &Run) -> Vec<(String, String)> {
    let flows = run.document.flows.iter().flat_map(|flow| {
        let key = format!("{} over {}", name(&flow.name), name(&flow.carrier));
        let merged = (!flow.merged_layers.is_empty()).then(|| {
            (
                format!("{key}: measured together"),
                long(&flow.merged_layers.join("; ")),
            )
        });
        let settings = flow.settings.as_ref();
        [
            Some((format!("{key}: scheduling"), long(&flow.scheduling))),
            settings.map(|all| (format!("{key}: settings"), long(&all.in_words()))),
            merged,
        ]
        .into_iter()
        .flatten()
    });
    flows.collect()
}
