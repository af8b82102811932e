//! The page of an experiment: the paper's figures with our numbers, the numbers themselves, and their provenance.

use deckwatch_meter::experiment::{ExperimentDocument, Figure, Measurement, Ratio, Soak, Standing};
use deckwatch_meter::result::Provenance;
use serde::Serialize;

use super::{head, name, provenance, render};
use crate::chart::plot;
use crate::error::ReportError;
use crate::limits::{EXPERIMENT_FIGURES_MAX, EXPERIMENT_ROWS_MAX, SENTENCE_CHARS_MAX};
use crate::palette;
use crate::unit;

/// Renders the whole page.
pub(crate) fn page(document: &ExperimentDocument) -> Result<String, ReportError> {
    let left_out = document
        .figures
        .len()
        .saturating_sub(EXPERIMENT_FIGURES_MAX);
    let rows_left_out = document
        .measurements
        .len()
        .saturating_sub(EXPERIMENT_ROWS_MAX);
    let said = |count: usize, what: &str| {
        (count > 0).then(|| format!("{count} more {what} stand in result.json."))
    };
    let page = Page {
        style: palette::style() + include_str!("../../templates/style.css"),
        script: include_str!("../../templates/script.js"),
        title: format!("{} · Deckwatch", name(&document.title)),
        heading: name(&document.title),
        source: long(&document.source),
        condition: long(&document.condition),
        warnings: document
            .warnings
            .iter()
            .map(|warning| Said {
                text: long(&warning.text),
                kind: name(&warning.kind),
            })
            .collect(),
        skipped: document
            .skipped
            .iter()
            .map(|skip| (name(&skip.what), long(&skip.reason)))
            .collect(),
        facts: facts(document),
        command: head::words(&document.provenance.command),
        figures: document
            .figures
            .iter()
            .take(EXPERIMENT_FIGURES_MAX)
            .map(figure)
            .collect(),
        figures_left_out: said(left_out, "figures"),
        tables: tables(&document.measurements),
        rows_left_out: said(rows_left_out, "measurements"),
        groups: groups(&document.provenance),
        schema_version: document.schema_version,
    };
    let body = include_str!("../../templates/experiment.html");
    render("experiment.html", body, page)
}

/// The values for the template.
#[derive(Serialize)]
struct Page {
    style: String,
    script: &'static str,
    title: String,
    heading: String,
    source: String,
    condition: String,
    warnings: Vec<Said>,
    skipped: Vec<(String, String)>,
    facts: Vec<(String, String)>,
    command: String,
    figures: Vec<FigureView>,
    figures_left_out: Option<String>,
    tables: Vec<Table>,
    rows_left_out: Option<String>,
    groups: Vec<Group>,
    schema_version: u32,
}

#[derive(Serialize)]
struct Said {
    text: String,
    kind: String,
}

#[derive(Serialize)]
struct FigureView {
    title: String,
    source: String,
    keys: Vec<Key>,
    drawing: String,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Key {
    label: String,
    colour: usize,
}

/// The measurements of one system.
#[derive(Serialize)]
struct Table {
    system: String,
    columns: Vec<String>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    case: String,
    cells: Vec<String>,
}

#[derive(Serialize)]
struct Group {
    heading: &'static str,
    facts: Vec<(String, String)>,
}

fn long(text: &str) -> String {
    unit::cut(text, SENTENCE_CHARS_MAX)
}

fn facts(document: &ExperimentDocument) -> Vec<(String, String)> {
    let asked = document.parameters.iter();
    let asked = asked.map(|(key, value)| (name(key), long(value)));
    let standings = document.standings.iter().map(|standing| {
        let key = format!("{} · {}", standing.measure, standing.condition);
        (name(&key), long(&against_target(standing)))
    });
    let fidelity = document.fidelity.iter().flat_map(|fidelity| {
        [
            ("emulated", &fidelity.emulated),
            ("not emulated", &fidelity.not_emulated),
        ]
        .map(|(key, clauses)| (key.to_owned(), long(&clauses.join("; "))))
    });
    let states = document.machine_states.iter();
    let states = states.map(|state| ("state".to_owned(), long(&state.words())));
    let soak = document.soak.iter().flat_map(soak_facts);
    let notes = document.notes.join("; ");
    let notes = (!notes.is_empty()).then(|| ("limits of the systems".to_owned(), long(&notes)));
    let provenance = &document.provenance;
    let own = [
        ("started (UTC)".to_owned(), name(&provenance.started_at)),
        (
            "duration".to_owned(),
            unit::long_duration(provenance.duration_s),
        ),
        (
            "program".to_owned(),
            format!(
                "{}, {}",
                name(&provenance.version),
                name(&provenance.profile)
            ),
        ),
    ];
    soak.chain(standings)
        .chain(asked)
        .chain(fidelity)
        .chain(states)
        .chain(notes)
        .chain(own)
        .collect()
}

/// The verdict of a soak, its checks, and what was found of each series.
fn soak_facts(soak: &Soak) -> Vec<(String, String)> {
    let verdict = ("verdict".to_owned(), soak.verdict.word().to_owned());
    let checks = soak.checks.iter().map(|check| {
        let found = format!("{}: {}", check.verdict.word(), check.found);
        (name(&check.name), long(&found))
    });
    let series = soak.series.iter().map(|series| {
        let key = format!("{} \u{b7} {}", series.server, series.quantity.word());
        let found = format!("{}: {}", series.verdict.word(), series.words());
        (name(&key), long(&found))
    });
    std::iter::once(verdict)
        .chain(checks)
        .chain(series)
        .collect()
}

/// Formats our result, the target and the results of other systems in words.
fn against_target(standing: &Standing) -> String {
    let verdict = match (standing.verdict, &standing.reason) {
        (None, None) => "not judged".to_owned(),
        (None, Some(reason)) => format!("not judged: {reason}"),
        (Some(_), None) => standing.verdict_words(),
        (Some(_), Some(reason)) => format!("{} ({reason})", standing.verdict_words()),
    };
    let ours = standing.ours.map_or("-".to_owned(), Ratio::interval_words);
    let peers = standing.peers.iter();
    let peers = peers.map(|peer| format!("; {} {}", peer.peer, peer.ratio.interval_words()));
    format!(
        "{ours}, {}: {verdict}{}",
        standing.target,
        peers.collect::<String>()
    )
}

fn figure(figure: &Figure) -> FigureView {
    let keys = figure.curves.iter().enumerate();
    FigureView {
        title: name(&figure.title),
        source: long(&figure.source),
        keys: keys
            .map(|(index, curve)| Key {
                label: name(&curve.label),
                colour: index % palette::RUN_COLOURS,
            })
            .collect(),
        drawing: plot::draw(figure),
        notes: figure.notes.iter().map(|note| long(note)).collect(),
    }
}

fn tables(measurements: &[Measurement]) -> Vec<Table> {
    let mut systems: Vec<&str> = Vec::new();
    for measurement in measurements.iter().take(EXPERIMENT_ROWS_MAX) {
        if !systems.contains(&measurement.system.as_str()) {
            systems.push(&measurement.system);
        }
    }
    let of = |system: &&str| {
        let own = measurements.iter().take(EXPERIMENT_ROWS_MAX);
        let own: Vec<&Measurement> = own.filter(|one| one.system == **system).collect();
        table(system, &own)
    };
    systems.iter().map(of).collect()
}

fn table(system: &str, measurements: &[&Measurement]) -> Table {
    let union = |of: &dyn Fn(&Measurement) -> Vec<String>| {
        let mut names: Vec<String> = Vec::new();
        for measurement in measurements {
            for key in of(measurement) {
                if !names.contains(&key) {
                    names.push(key);
                }
            }
        }
        names
    };
    let factors = union(&|one| one.factors.keys().cloned().collect());
    let mut values = union(&|one| one.values.keys().cloned().collect());
    values.sort_by_key(|key| (rank(key), key.clone()));
    let columns = factors
        .iter()
        .map(|key| heading(key))
        .chain(["calls".to_owned()])
        .chain(values.iter().map(|key| heading(key)));
    let row = |one: &&Measurement| {
        let cell = |key: &String, map: &std::collections::BTreeMap<String, f64>| {
            map.get(key)
                .map_or_else(|| "–".to_owned(), |value| written(key, *value))
        };
        let asked = factors.iter().map(|key| cell(key, &one.factors));
        let found = values.iter().map(|key| cell(key, &one.values));
        Row {
            case: name(&match one.group.as_str() {
                "" => one.case.clone(),
                group => format!("{group} · {}", one.case),
            }),
            cells: asked
                .chain([unit::count(one.samples)])
                .chain(found)
                .collect(),
        }
    };
    Table {
        system: name(system),
        columns: columns.collect(),
        rows: measurements.iter().map(row).collect(),
    }
}

/// Returns the sort key of a column: percentiles in order, then the rest.
fn rank(key: &str) -> usize {
    const ORDER: [&str; 8] = [
        "min_ns",
        "p50_ns",
        "p90_ns",
        "p99_ns",
        "p99.9_ns",
        "max_ns",
        "mean_ns",
        "jitter_ns",
    ];
    let place = ORDER.iter().position(|known| *known == key);
    place.unwrap_or(ORDER.len())
}

/// Suffixes of value names that stand for units.
const UNITS: [&str; 6] = ["_ns", "_bit_s", "_per_s", "_share", "_octets", "_hz"];

fn heading(key: &str) -> String {
    let known = UNITS.iter().find_map(|unit| key.strip_suffix(unit));
    name(&known.unwrap_or(key).replace('_', " "))
}

fn written(key: &str, value: f64) -> String {
    match UNITS.iter().find(|unit| key.ends_with(*unit)) {
        Some(&"_ns") => unit::duration(value),
        Some(&"_bit_s") => unit::scaled(value, "bit/s"),
        Some(&"_per_s") => unit::scaled(value, "/s"),
        Some(&"_share") => unit::share(value),
        Some(&"_octets") => unit::scaled(value, "B"),
        Some(&"_hz") => unit::rate(value),
        _ => unit::figures(value),
    }
}

fn groups(of: &Provenance) -> Vec<Group> {
    let machine = of.machine.iter();
    let machine = machine.map(|(key, value)| (name(key), long(value)));
    let disturbance = of.disturbance.iter();
    let disturbance = disturbance.map(|(key, value)| (name(key), unit::figures(*value)));
    vec![
        Group {
            heading: "Machine",
            facts: machine.collect(),
        },
        Group {
            heading: "Disturbance over the experiment (differences of readings)",
            facts: disturbance.collect(),
        },
        Group {
            heading: "Clock",
            facts: vec![provenance::fact("stamps", &of.clock.note)],
        },
    ]
}
