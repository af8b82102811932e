//! The table at the end of a run.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table};
use deckwatch_meter::result::{
    DestinationResult, FlowResult, ResultDocument, VerdictKind, Warning,
};

use crate::words;

pub(crate) fn print(out: &mut impl Write, document: &ResultDocument) -> io::Result<()> {
    let network = &document.environment.network;
    writeln!(out, "\n{} on {network}", document.mission)?;
    if let Some(reason) = &document.environment.fallback_reason {
        writeln!(out, "NOT on emulated hosts: {reason}")?;
    }
    writeln!(out, "{}", table(document))?;
    print_warnings(out, &document.warnings)?;
    let kind = document.verdict.kind;
    let style = Style::new().bold().fg_color(Some(color(kind).into()));
    writeln!(out, "\n{style}{}{style:#}", word(kind))?;
    for reason in &document.verdict.reasons {
        writeln!(out, "  {reason}")?;
    }
    Ok(())
}

/// Warnings of one kind about one stream often differ by their destination and its numbers only; the first stands for them.
fn print_warnings(out: &mut impl Write, warnings: &[Warning]) -> io::Result<()> {
    let mut groups: Vec<(&Warning, usize)> = Vec::new();
    for warning in warnings {
        match groups.iter_mut().find(|(first, _)| alike(first, warning)) {
            Some((_, count)) => *count += 1,
            None => groups.push((warning, 1)),
        }
    }
    for (warning, count) in groups {
        let more = if count > 1 {
            format!(" (and {} more like it)", count - 1)
        } else {
            String::new()
        };
        writeln!(out, "warning: {}{more}", warning.text)?;
    }
    Ok(())
}

fn alike(a: &Warning, b: &Warning) -> bool {
    // `NAV over udp: To SONAR, 3 of 40 messages ...`: the stream, and what follows the destination, without its numbers.
    let parts = |warning: &Warning| {
        let (about, rest) = warning.text.split_once(": ")?;
        let (_, rest) = rest.split_once(", ")?;
        Some((
            about.to_owned(),
            rest.replace(|c: char| c.is_ascii_digit(), ""),
        ))
    };
    a.kind == b.kind && parts(a).is_some_and(|of_a| Some(of_a) == parts(b))
}

fn table(document: &ResultDocument) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header([
        "flow",
        "carrier",
        "to",
        "judged",
        "late",
        "lost",
        "share late, 95%",
        "p50",
        "p99",
        "max",
        "blamed",
        "verdict",
    ]);
    for column in 3..10 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for flow in &document.flows {
        if let Some(destination) = flow.deciding() {
            table.add_row(row(flow, destination));
        }
    }
    table
}

fn row(flow: &FlowResult, destination: &DestinationResult) -> Vec<Cell> {
    let to = match flow.destinations.len() {
        1 => destination.host.clone(),
        count => format!("{} (worst of {count})", destination.host),
    };
    let counts = &destination.counts;
    let rate = &destination.late_rate;
    let latency = |name: &str| {
        destination
            .latency_ns
            .get(name)
            .map_or("-".to_owned(), |&ns| words::latency(ns))
    };
    let mut blamed: Vec<_> = destination.blame.iter().collect();
    blamed.sort_by_key(|(_, late)| std::cmp::Reverse(**late));
    let blamed: Vec<String> = blamed
        .iter()
        .map(|(layer, late)| format!("{layer} {}", words::count(**late)))
        .collect();
    let verdict = Cell::new(word(flow.verdict.kind)).add_attribute(Attribute::Bold);
    vec![
        Cell::new(&flow.name),
        Cell::new(&flow.carrier),
        Cell::new(to),
        Cell::new(words::count(counts.due)),
        Cell::new(words::count(counts.late)),
        Cell::new(words::count(counts.lost)),
        Cell::new(format!(
            "{} to {}",
            words::share(rate.lower),
            words::share(rate.upper)
        )),
        Cell::new(latency("p50")),
        Cell::new(latency("p99")),
        Cell::new(latency("max")),
        Cell::new(if blamed.is_empty() {
            "-".to_owned()
        } else {
            blamed.join(", ")
        }),
        verdict.fg(table_color(flow.verdict.kind)),
    ]
}

fn word(kind: VerdictKind) -> &'static str {
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
    fn warnings_that_differ_by_destination_only_are_alike() {
        let warning = |text: &str| Warning {
            kind: "k".to_owned(),
            text: text.to_owned(),
        };
        let sonar = warning("NAV over udp: To SONAR, 3 of 40 messages were sent late.");
        assert!(alike(
            &sonar,
            &warning("NAV over udp: To RADAR, 12 of 40 messages were sent late.")
        ));
        assert!(!alike(
            &sonar,
            &warning("NAV over tcp: To SONAR, 3 of 40 messages were sent late.")
        ));
        assert!(!alike(
            &sonar,
            &warning("NAV over udp: To SONAR, 3 of 40 messages were lost.")
        ));
        assert!(!alike(&warning("plain"), &warning("plain too")));
    }
}
