//! The table of verdicts that is printed at the end of a run.

use std::io::{self, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table};
use deckwatch_meter::limits::SAMPLES_BEYOND_MIN;
use deckwatch_meter::result::{
    DestinationResult, FlowResult, ResultDocument, VerdictKind, Warning,
};

use crate::words;

pub(crate) fn print(out: &mut impl Write, document: &ResultDocument) -> io::Result<()> {
    writeln!(
        out,
        "\n{} on {}",
        document.mission, document.environment.network
    )?;
    if let Some(fidelity) = &document.environment.fidelity {
        for line in words::fidelity(&fidelity.emulated, &fidelity.not_emulated) {
            writeln!(out, "{line}")?;
        }
    }
    if let Some(reason) = &document.environment.fallback_reason {
        writeln!(
            out,
            "NOT on emulated hosts: all of them shared the loopback interface. {reason}"
        )?;
    }
    let table = table(document);
    match (
        table.lines().map(|line| measured(&line)).max(),
        table.width(),
    ) {
        (Some(needed), Some(width)) if needed > usize::from(width) => {
            print_one_by_one(out, document)?
        }
        _ => writeln!(out, "{table}")?,
    }
    for note in notes(document) {
        writeln!(out, "{note}")?;
    }
    print_warnings(out, &document.folded_warnings())?;
    print_verdict(out, document.verdict.kind)?;
    for reason in &document.verdict.reasons {
        writeln!(out, "  {reason}")?;
    }
    for remedy in &document.verdict.remedies {
        writeln!(out, "  What to do: {remedy}")?;
    }
    Ok(())
}

/// Prints the word of a verdict in its colour, after an empty line.
pub(crate) fn print_verdict(out: &mut impl Write, kind: VerdictKind) -> io::Result<()> {
    let style = Style::new().bold().fg_color(Some(color(kind).into()));
    writeln!(out, "\n{style}{}{style:#}", word(kind))
}

/// Returns the width of a line in columns, without its colour escapes.
fn measured(line: &str) -> usize {
    anstream::adapter::strip_str(line)
        .to_string()
        .chars()
        .count()
}

/// Prints all warnings but `loopback`, which is printed above the table.
fn print_warnings(out: &mut impl Write, warnings: &[Warning]) -> io::Result<()> {
    for warning in warnings.iter().filter(|one| one.kind != "loopback") {
        writeln!(out, "warning: {}", warning.text)?;
    }
    Ok(())
}

const HEADER: [&str; 13] = [
    "flow",
    "carrier",
    "to",
    "judged",
    "late",
    "lost",
    "share late",
    "p50",
    "p90",
    "p99",
    "max",
    "blamed",
    "verdict",
];
/// The columns with numbers, which are right-aligned.
const NUMBERS: std::ops::Range<usize> = 3..11;
/// Text of a latency whose error is as large as its deadline.
const NOT_COMPARABLE: &str = "NOT COMPARABLE";
/// Text of a percentile for which there are too few messages.
pub(crate) const UNSUPPORTED: &str = "-";

fn table(document: &ResultDocument) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(HEADER);
    for column in NUMBERS {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for (flow, destination) in deciding(document) {
        let mut cells: Vec<Cell> = row(flow, destination).map(Cell::new).into();
        cells.push(
            Cell::new(word(flow.verdict.kind))
                .add_attribute(Attribute::Bold)
                .fg(table_color(flow.verdict.kind)),
        );
        table.add_row(cells);
    }
    table
}

/// Prints the results one below the other, for a terminal that is too narrow for the table.
fn print_one_by_one(out: &mut impl Write, document: &ResultDocument) -> io::Result<()> {
    for (flow, destination) in deciding(document) {
        let kind = flow.verdict.kind;
        let style = Style::new().bold().fg_color(Some(color(kind).into()));
        let cells = row(flow, destination);
        let [name, carrier, to, ..] = &cells;
        writeln!(
            out,
            "{name} over {carrier} to {to}: {style}{}{style:#}",
            word(kind)
        )?;
        for (header, cell) in HEADER.iter().zip(&cells).skip(NUMBERS.start) {
            writeln!(out, "  {header:<10}  {cell}")?;
        }
    }
    Ok(())
}

fn deciding(document: &ResultDocument) -> impl Iterator<Item = (&FlowResult, &DestinationResult)> {
    let flows = document.flows.iter();
    flows.filter_map(|flow| Some((flow, flow.deciding()?)))
}

/// Returns all cells of a row except the verdict.
fn row(flow: &FlowResult, destination: &DestinationResult) -> [String; HEADER.len() - 1] {
    let to = match flow.destinations.len() {
        1 => destination.host.clone(),
        count => format!("{} (worst of {count})", destination.host),
    };
    let counts = &destination.counts;
    let rate = &destination.late_rate;
    let latency = |name: &str| match destination.latency_ns.get(name) {
        None => UNSUPPORTED.to_owned(),
        Some(_) if !destination.is_comparable(flow.deadline_ns) => NOT_COMPARABLE.to_owned(),
        Some(&ns) => words::latency(ns),
    };
    let mut blamed: Vec<_> = destination.blame.iter().collect();
    blamed.sort_by_key(|(_, late)| std::cmp::Reverse(**late));
    let blamed: Vec<String> = blamed
        .iter()
        .map(|(layer, late)| format!("{layer} {}", words::count(**late)))
        .collect();
    [
        flow.name.clone(),
        flow.carrier.clone(),
        to,
        words::count(counts.due),
        words::count(counts.late),
        words::count(counts.lost),
        format!(
            "{} to {}",
            words::share(rate.lower),
            words::share(rate.upper)
        ),
        latency("p50"),
        latency("p90"),
        latency("p99"),
        latency("max"),
        if blamed.is_empty() {
            "nothing".to_owned()
        } else {
            blamed.join(", ")
        },
    ]
}

/// Explains the columns.
fn notes(document: &ResultDocument) -> Vec<String> {
    let mut deadlines: Vec<u64> = document.flows.iter().map(|flow| flow.deadline_ns).collect();
    deadlines.sort_unstable();
    deadlines.dedup();
    let deadline = |ns: u64| words::duration(Duration::from_nanos(ns));
    let late = match deadlines[..] {
        [] => return Vec::new(),
        [one] => format!("more than {} after due", deadline(one)),
        _ => {
            let mut each: Vec<String> = Vec::new();
            for flow in &document.flows {
                let text = format!("{} for {}", deadline(flow.deadline_ns), flow.name);
                if !each.contains(&text) {
                    each.push(text);
                }
            }
            format!("longer after due than the deadline ({})", each.join(", "))
        }
    };
    let mut notes = vec![
        format!(
            "late: received {late}, or never; share late: lower and upper bound, each at 95% confidence, for the bursts that the verdict names."
        ),
        latency_note(document),
    ];
    for flow in &document.flows {
        if let Some(settings) = &flow.settings {
            let (name, carrier) = (&flow.name, &flow.carrier);
            notes.push(format!(
                "{name} over {carrier}: settings {}.",
                settings.in_words()
            ));
        }
    }
    let unsupported = deciding(document).any(|(flow, destination)| {
        row(flow, destination)
            .iter()
            .any(|cell| cell == UNSUPPORTED)
    });
    if unsupported {
        notes.push(format!(
            "{UNSUPPORTED}: too few messages came to tell; a percentile is given with at least {SAMPLES_BEYOND_MIN} beyond it."
        ));
    }
    notes
}

/// Explains the latencies, with the error of the clocks if the ends have different ones.
fn latency_note(document: &ResultDocument) -> String {
    let note = "p50 to max: latency one way, from due to received";
    let bound = |(_, destination): &(&FlowResult, &DestinationResult)| destination.clock_error_ns;
    let Some(error_ns) = deciding(document).filter_map(|one| bound(&one)).max() else {
        return format!("{note}.");
    };
    let error = words::duration(Duration::from_nanos(error_ns));
    let assumed =
        |(_, destination): &(&FlowResult, &DestinationResult)| destination.clock_assumed_ns;
    let assumed = deciding(document).filter_map(|one| assumed(&one)).max();
    let assumed = assumed.map_or(String::new(), |ns| {
        let assumed = words::duration(Duration::from_nanos(ns));
        format!(" (within {assumed} if both directions are alike)")
    });
    let mut note = format!("{note}; the ends have different clocks: within {error}{assumed}.");
    if deciding(document).any(|(flow, destination)| !destination.is_comparable(flow.deadline_ns)) {
        note += &format!(" {NOT_COMPARABLE}: that is more than the deadline.");
    }
    note
}

pub(crate) fn word(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Pass => "PASS",
        VerdictKind::Unproven => "UNPROVEN",
        VerdictKind::Fail => "FAIL",
        VerdictKind::Invalid => "INVALID",
    }
}

fn color(kind: VerdictKind) -> AnsiColor {
    match kind {
        VerdictKind::Pass => AnsiColor::Green,
        VerdictKind::Unproven => AnsiColor::Yellow,
        VerdictKind::Fail => AnsiColor::Red,
        VerdictKind::Invalid => AnsiColor::Magenta,
    }
}

fn table_color(kind: VerdictKind) -> Color {
    match kind {
        VerdictKind::Pass => Color::Green,
        VerdictKind::Unproven => Color::Yellow,
        VerdictKind::Fail => Color::Red,
        VerdictKind::Invalid => Color::Magenta,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_as_wide_as_what_is_seen_of_it() {
        assert_eq!(measured("\u{1b}[1;32m│ PASS\u{1b}[0m"), 6);
    }
}
