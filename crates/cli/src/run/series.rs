//! `deckwatch run --variants`: variants one after the other, one table and one report.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use comfy_table::Table;
use comfy_table::presets::UTF8_BORDERS_ONLY;
use deckwatch_meter::result::{DestinationResult, FlowResult, ResultDocument};
use deckwatch_os::signal;
use deckwatch_scenario::mission::Mission;
use deckwatch_scenario::run::{Interrupt, Settings};
use deckwatch_scenario::series::{SeriesOutcome, Stopped, run_series};

use crate::exit::{self, Status};
use crate::output::errln;
use crate::{verdict_table, words};

pub(super) fn run(
    missions: &[Mission],
    settings: &Settings,
    resume: bool,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let mut observer = super::observer();
    let interrupt = Interrupt::new(signal::ending);
    let series = run_series(missions, settings, resume, &interrupt, observer.as_mut());
    drop(observer);
    let outcome = series?;
    print(&outcome, json).context("The verdicts cannot be printed.")?;
    let kept = kept(&outcome);
    let worst = outcome.documents.iter().map(|one| one.verdict.kind).max();
    match (outcome.stopped, worst) {
        (Some(Stopped::Interrupted { signal }), _) => {
            errln!("Ended early by {signal}. {kept}");
            Ok(exit::ended_by(signal).into())
        }
        (Some(Stopped::Refused { variant, error }), _) => {
            Err(anyhow!(error)).context(format!("The variant {variant} cannot be run. {kept}"))
        }
        (Some(Stopped::Unwritten { variant, reason }), _) => {
            Err(anyhow!(reason)).context(format!("The result of {variant} is not whole. {kept}"))
        }
        (None, Some(worst)) => Ok(Status::from(worst).into()),
        (None, None) => Err(anyhow!("No variant was run.")),
    }
}

/// Returns a sentence on the results that an ended series has, and how to resume it.
fn kept(outcome: &SeriesOutcome) -> String {
    match (&outcome.report, outcome.documents.len()) {
        (None, _) | (_, 0) => "No variant has a result.".to_owned(),
        (Some(_), count) => format!(
            "{count} {} kept in {}; --resume goes on with the others.",
            if count == 1 {
                "result is"
            } else {
                "results are"
            },
            outcome.folder.display()
        ),
    }
}

fn print(outcome: &SeriesOutcome, json: bool) -> anyhow::Result<()> {
    let mut out = crate::output::stdout();
    let documents = &outcome.documents;
    if json {
        writeln!(out, "{}", serde_json::to_string_pretty(documents)?)?;
        return Ok(out.flush()?);
    }
    if let Some(first) = documents.first() {
        writeln!(out, "\n{}", table(documents))?;
        for note in notes(documents) {
            writeln!(out, "{note}")?;
        }
        let worst = documents.iter().fold(first, |worst, one| {
            if one.verdict.kind > worst.verdict.kind {
                one
            } else {
                worst
            }
        });
        let variants = words::plural("variant", documents.len());
        let (count, name) = (documents.len(), name(worst));
        let kind = worst.verdict.kind;
        verdict_table::print_verdict(&mut out, kind)?;
        writeln!(out, "  The worst of {count} {variants} is {name}.")?;
        for reason in &worst.verdict.reasons {
            writeln!(out, "  {reason}")?;
        }
    }
    if let Some(report) = &outcome.report {
        let folder = outcome.folder.display();
        writeln!(out, "\nResults: {folder}\nReport: {}", report.display())?;
    }
    Ok(out.flush()?)
}

const HEADER: [&str; 12] = [
    "variant",
    "flow",
    "carrier",
    "messages",
    "late",
    "late gaps",
    "in the paper",
    "p50",
    "p99",
    "max",
    "lost",
    "verdict",
];

/// The table of a series: a row for each flow over each carrier in each variant, at its worst destination.
fn table(documents: &[ResultDocument]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    table.set_header(HEADER);
    for document in documents {
        for flow in &document.flows {
            if let Some(worst) = flow.deciding() {
                table.add_row(row(document, flow, worst));
            }
        }
    }
    table
}

fn row(
    document: &ResultDocument,
    flow: &FlowResult,
    worst: &DestinationResult,
) -> [String; HEADER.len()] {
    let counts = &worst.counts;
    let latency = |key: &str| {
        let value = worst.latency_ns.get(key);
        value.map_or(verdict_table::UNSUPPORTED.to_owned(), |&ns| {
            words::latency(ns)
        })
    };
    let printed = document.published.as_ref();
    [
        name(document).to_owned(),
        flow.name.clone(),
        flow.carrier.clone(),
        words::count(counts.due),
        words::count(counts.late),
        words::count(counts.late_by_inter_arrival),
        printed.map_or(verdict_table::UNSUPPORTED.to_owned(), |one| {
            one.late.clone()
        }),
        latency("p50"),
        latency("p99"),
        latency("max"),
        words::count(counts.lost),
        verdict_table::word(flow.verdict.kind).to_owned(),
    ]
}

fn notes(documents: &[ResultDocument]) -> Vec<String> {
    let mut notes = vec![
        "late: received more than the deadline after due, or never. late gaps: gaps between arrivals above period plus deadline."
            .to_owned(),
    ];
    let mut sources: Vec<&str> = Vec::new();
    for printed in documents.iter().filter_map(|one| one.published.as_ref()) {
        if !sources.contains(&printed.source.as_str()) {
            sources.push(&printed.source);
        }
    }
    if !sources.is_empty() {
        notes.push(format!(
            "in the paper: late messages as {} prints them.",
            sources.join(" and ")
        ));
    }
    notes
}

fn name(document: &ResultDocument) -> &str {
    document.variant.as_deref().unwrap_or(&document.mission)
}
