//! The table of verdicts. Each flow over each carrier has a row for its worst destination; the other destinations are
//! folded below.

use std::collections::BTreeMap;

use deckwatch_meter::result::{DestinationResult, FlowResult};
use serde::Serialize;

use super::{Line, budget, class, counted, head, name, sign, word};
use crate::chart::rate;
use crate::limits::Detail;
use crate::palette;
use crate::run::Run;
use crate::unit;

/// A column: its heading, what it means, and its share of the table's width.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Column {
    heading: &'static str,
    title: &'static str,
    width: &'static str,
}

const fn column(heading: &'static str, title: &'static str, width: &'static str) -> Column {
    Column {
        heading,
        title,
        width,
    }
}

/// The columns after the verdict, the carrier and the destination.
pub(crate) const COLUMNS: [Column; 15] = [
    column("due", "messages due in the judged part", "5.8%"),
    column("received", "received at least once", "6%"),
    column(
        "late",
        "received more than the deadline after due, or lost: this is what the verdict judges",
        "4.6%",
    ),
    column(
        "late gaps",
        "gaps between arrivals greater than period plus deadline (inter-arrival rule)",
        "4.2%",
    ),
    column("lost", "never received; counted as late", "3.8%"),
    column(
        "out of order",
        "arrived after one with a higher sequence number",
        "3.8%",
    ),
    column("dupli\u{ad}cates", "second and later copies", "4%"),
    column(
        "send errors",
        "errors of the send call at the supplier",
        "3.8%",
    ),
    column("over\u{ad}flow", "dropped by a full receive buffer", "3.8%"),
    column(
        "late rate, 95 % bounds",
        "share of late messages between its one-sided 95 % bounds, on a logarithmic scale; shaded: above the budget",
        "11.8%",
    ),
    column(
        "p50",
        "half of the messages take at most so long, from due to received",
        "5.2%",
    ),
    column(
        "p90",
        "90 % take at most so long, from due to received",
        "5.2%",
    ),
    column(
        "p99",
        "99 % take at most so long, from due to received",
        "5.2%",
    ),
    column(
        "p99.9",
        "99.9 % take at most so long, from due to received",
        "5.2%",
    ),
    column("max", "the greatest time from due to received", "5.2%"),
];

/// The table of one run.
#[derive(Debug, Serialize)]
pub(crate) struct Table {
    label: String,
    flows: Vec<FlowRows>,
    left_out: String,
}

/// All carriers of one flow.
#[derive(Debug, Serialize)]
struct FlowRows {
    name: String,
    facts: String,
    carriers: Vec<CarrierRows>,
}

#[derive(Debug, Serialize)]
struct CarrierRows {
    worst: Option<Row>,
    rest: Vec<Row>,
    summary: String,
    left_out: String,
}

#[derive(Debug, Serialize)]
struct Row {
    word: &'static str,
    class: &'static str,
    sign: &'static str,
    reasons: String,
    carrier: String,
    colour: usize,
    host: String,
    needed: String,
    cells: Vec<Cell>,
}

#[derive(Debug, Default, Serialize)]
struct Cell {
    text: String,
    title: String,
    class: &'static str,
    figure: String,
}

/// Builds the table.
pub(crate) fn of(run: &Run, label: &str, detail: &Detail) -> Table {
    let mut flows: Vec<FlowRows> = Vec::new();
    for (flow, series) in super::shown(run, detail) {
        let line = Line {
            run: 0,
            run_label: label,
            clock: &run.document.provenance.clock,
            published: run.document.published.as_ref(),
            flow,
            carrier_colour: palette::of_carrier(&run.document, flow),
            series,
        };
        let rows = carrier_rows(&line, detail);
        let (flow_name, facts) = (name(&flow.name), facts(flow));
        match flows
            .iter_mut()
            .find(|known| known.name == flow_name && known.facts == facts)
        {
            Some(known) => known.carriers.push(rows),
            None => flows.push(FlowRows {
                name: flow_name,
                facts,
                carriers: vec![rows],
            }),
        }
    }
    let left_out = match run.document.flows.len().saturating_sub(detail.flows) {
        0 => String::new(),
        n => format!(
            "{} more, none worse than these, are in result.json.",
            counted(n, "flow", "flows")
        ),
    };
    Table {
        label: label.to_owned(),
        flows,
        left_out,
    }
}

/// Describes a flow in one line.
pub(crate) fn facts(flow: &FlowResult) -> String {
    let arrivals = match flow.arrivals.as_str() {
        "periodic" => String::new(),
        other => format!(" ({})", name(other)),
    };
    format!(
        "{} of {}, {} octets, {}{arrivals}, from {} · deadline {} · budget {} late in {} ({})",
        if flow.type_name == "octets" {
            "messages"
        } else {
            "messages of type"
        },
        name(&flow.type_name),
        unit::count(flow.size_bytes),
        unit::rate(flow.rate_hz),
        name(&flow.from),
        unit::duration(flow.deadline_ns as f64),
        unit::count(flow.budget.late),
        unit::count(flow.budget.of),
        unit::share(budget(flow)),
    )
    .replace("messages of octets", "messages of plain octets")
    .replace("messages of type of", "messages of type")
}

fn carrier_rows(line: &Line<'_>, detail: &Detail) -> CarrierRows {
    let destinations = line.destinations();
    let mut rows = destinations
        .iter()
        .take(detail.rows.max(1))
        .map(|(destination, _)| row(line, destination));
    let mut worst = rows.next();
    let rest: Vec<Row> = rows.collect();
    if let (Some(worst), true) = (&mut worst, destinations.len() > 1) {
        worst.host = format!(
            "{} (worst of {})",
            worst.host,
            unit::count(destinations.len() as u64)
        );
    }
    let others = destinations.len().saturating_sub(1);
    let mut kinds: BTreeMap<_, usize> = BTreeMap::new();
    for (destination, _) in destinations.iter().skip(1) {
        *kinds.entry(destination.verdict.kind).or_default() += 1;
    }
    let kinds: Vec<String> = kinds
        .iter()
        .rev()
        .map(|(kind, n)| format!("{n} {}", word(*kind)))
        .collect();
    let left_out = match destinations.len().saturating_sub(detail.rows.max(1)) {
        0 => String::new(),
        n => format!(
            "{}, none worse than these, in result.json.",
            counted(n, "more destination", "more destinations")
        ),
    };
    CarrierRows {
        worst,
        rest,
        summary: format!(
            "{} over {}: {}",
            counted(others, "more destination", "more destinations"),
            name(&line.flow.carrier),
            kinds.join(", ")
        ),
        left_out,
    }
}

fn row(line: &Line<'_>, destination: &DestinationResult) -> Row {
    let flow = line.flow;
    let kind = destination.verdict.kind;
    let needed = head::needed(destination).map(|messages| {
        let time = unit::long_duration(head::seconds((messages, flow.rate_hz)));
        format!("{} more, {time}", unit::count(messages))
    });
    Row {
        word: word(kind),
        class: class(kind),
        sign: sign(kind),
        reasons: super::sentences(destination.verdict.reasons.iter(), 5).join(" "),
        carrier: name(&flow.carrier),
        colour: line.carrier_colour,
        host: name(&destination.host),
        needed: needed.unwrap_or_default(),
        cells: cells(flow, destination),
    }
}

fn cells(flow: &FlowResult, destination: &DestinationResult) -> Vec<Cell> {
    let counts = &destination.counts;
    let mut cells = vec![
        Cell {
            title: format!("{} of the warm-up not judged", unit::count(counts.warm_up)),
            ..plain(counts.due)
        },
        plain(counts.received),
    ];
    cells.extend(
        [
            counts.late,
            counts.late_by_inter_arrival,
            counts.lost,
            counts.out_of_order,
            counts.duplicates,
            counts.send_errors,
            counts.receive_overflows,
        ]
        .map(trouble),
    );
    cells.push(late_rate(flow, destination));
    cells.extend(
        [("p50", 20), ("p90", 100), ("p99", 1000), ("p99.9", 10_000)]
            .map(|(key, least)| percentile(destination, key, least)),
    );
    cells.push(percentile(destination, "max", 1));
    cells
}

fn plain(n: u64) -> Cell {
    Cell {
        text: unit::count(n),
        ..Cell::default()
    }
}

/// Makes a cell for a count that should be zero.
fn trouble(n: u64) -> Cell {
    Cell {
        class: if n == 0 { "none" } else { "some" },
        ..plain(n)
    }
}

fn late_rate(flow: &FlowResult, destination: &DestinationResult) -> Cell {
    let rate = &destination.late_rate;
    let widened = match &destination.bursts {
        Some(bursts) if bursts.assumed > 1 => format!(
            "; bounds for bursts of at most {} late messages, longest seen {}",
            unit::count(bursts.assumed),
            unit::count(bursts.seen)
        ),
        _ => String::new(),
    };
    Cell {
        text: format!("{} to {}", unit::share(rate.lower), unit::share(rate.upper)),
        title: format!(
            "estimate {}, budget {}{widened}",
            unit::share(rate.estimate),
            unit::share(budget(flow))
        ),
        class: "rate",
        figure: rate::draw(rate, budget(flow), class(destination.verdict.kind)),
    }
}

fn percentile(destination: &DestinationResult, key: &str, least: u64) -> Cell {
    /// Greater than any latency: a run does not last for centuries.
    const ENDLESS_NS: u64 = u64::MAX / 4;
    match destination.latency_ns.get(key) {
        Some(ns) if *ns >= ENDLESS_NS => Cell {
            text: "lost".to_owned(),
            title: "so many were lost that this percentile is endless".to_owned(),
            class: "some",
            ..Cell::default()
        },
        Some(ns) => Cell {
            text: unit::duration(*ns as f64),
            ..Cell::default()
        },
        None => Cell {
            text: "–".to_owned(),
            title: format!(
                "not supported: {key} needs at least {} messages received, here {}",
                unit::count(least),
                unit::count(destination.counts.received)
            ),
            class: "none",
            ..Cell::default()
        },
    }
}
