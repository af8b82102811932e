//! The page: selects what it shows of the runs, and renders it in words and figures.

mod compare;
pub(crate) mod experiment;
mod flow;
pub(crate) mod head;
mod numbers;
mod provenance;
pub(crate) mod schedule;
mod table;

use deckwatch_meter::result::{ClockNote, DestinationResult, FlowResult, Published, VerdictKind};
use minijinja::Environment;
use minijinja::value::Serde;

use crate::error::ReportError;
use crate::limits::{Detail, NAME_CHARS_MAX};
use crate::palette;
use crate::run::Run;
use crate::series::Series;
use crate::unit;

/// Renders the whole page with the given detail.
pub(crate) fn page(runs: &[Run], detail: &Detail) -> Result<String, ReportError> {
    let labels = run_labels(runs);
    let sections = sections(runs, &labels, detail);
    let page = Page {
        style: palette::style() + include_str!("../templates/style.css"),
        script: include_str!("../templates/script.js"),
        title: page_title(&labels),
        several: runs.len() > 1,
        time: time_words(runs.iter().map(|run| &run.document.provenance.clock)),
        heads: each(runs, &labels, |run, label| head::of(run, label, detail)),
        comparison: (runs.len() > 1).then(|| compare::of(runs, &labels, &sections, detail)),
        columns: &table::COLUMNS,
        tables: each(runs, &labels, |run, label| table::of(run, label, detail)),
        sections: sections
            .iter()
            .map(|section| flow::of(section, runs.len() > 1, detail))
            .collect(),
        provenance: each(runs, &labels, |run, label| {
            provenance::of(run, label, detail)
        }),
    };
    render("page.html", include_str!("../templates/page.html"), page)
}

/// Renders a page. `body` is its template without the head and the tail, which all pages share; they show `title`,
/// `style` and `script` of the values.
fn render(name: &str, body: &str, values: impl serde::Serialize) -> Result<String, ReportError> {
    let template = [
        include_str!("../templates/head.html"),
        body,
        include_str!("../templates/tail.html"),
    ];
    let environment = Environment::new();
    Ok(environment.render_named_str(name, &template.concat(), Serde(values))?)
}

/// The values for the template.
#[derive(serde::Serialize)]
struct Page {
    style: String,
    script: &'static str,
    title: String,
    several: bool,
    time: &'static str,
    heads: Vec<head::Head>,
    comparison: Option<compare::Comparison>,
    columns: &'static [table::Column],
    tables: Vec<table::Table>,
    sections: Vec<flow::FlowView>,
    provenance: Vec<provenance::Provenance>,
}

fn each<T>(runs: &[Run], labels: &[String], make: impl Fn(&Run, &str) -> T) -> Vec<T> {
    runs.iter()
        .zip(labels)
        .map(|(run, label)| make(run, label))
        .collect()
}

/// Returns the name of the time from due to received. It is one-way latency only if both ends read the same clock, or
/// clocks that are related.
fn time_words<'c>(clocks: impl Iterator<Item = &'c ClockNote> + Clone) -> &'static str {
    if clocks.clone().all(|clock| clock.shared) {
        "latency, one way, from due to received"
    } else if clocks
        .clone()
        .all(|clock| clock.shared || clock.latency_error_ns.is_some())
    {
        "latency, one way, from due to received, within the error of two clocks"
    } else {
        "from due to received by two clocks, no one-way latency"
    }
}

/// One flow over one carrier in one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    /// Index of the run.
    run: usize,
    /// Label of the run.
    run_label: &'a str,
    /// The clocks of its ends.
    clock: &'a ClockNote,
    /// What a paper printed of the run's experiment.
    published: Option<&'a Published>,
    flow: &'a FlowResult,
    /// Colour class of the carrier.
    carrier_colour: usize,
    series: &'a [Series],
}

/// All flows of one name: over each carrier, in each run.
#[derive(Clone, Debug)]
pub(crate) struct Section<'a> {
    name: &'a str,
    lines: Vec<Line<'a>>,
}

impl<'a> Section<'a> {
    /// Returns the carriers, in order of appearance.
    fn carriers(&self) -> Vec<&'a str> {
        let mut carriers: Vec<&str> = Vec::new();
        for line in &self.lines {
            if !carriers.contains(&line.flow.carrier.as_str()) {
                carriers.push(&line.flow.carrier);
            }
        }
        carriers
    }

    /// Returns the colour class of a carrier of this section.
    fn colour_of(&self, carrier: &str) -> usize {
        let mut lines = self.lines.iter();
        lines
            .find(|line| line.flow.carrier == carrier)
            .map_or(0, |line| line.carrier_colour)
    }

    fn series(&self) -> impl Iterator<Item = &'a Series> + Clone {
        self.lines
            .iter()
            .flat_map(|line| line.series)
            .collect::<Vec<_>>()
            .into_iter()
    }
}

impl<'a> Line<'a> {
    /// Returns the destinations with their samples: the one that decided the verdict first, then the others, the worst
    /// first.
    fn destinations(&self) -> Vec<(&'a DestinationResult, &'a Series)> {
        let mut all: Vec<_> = self.flow.destinations.iter().zip(self.series).collect();
        all.sort_by(|one, other| {
            badness(other.0)
                .partial_cmp(&badness(one.0))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        let deciding = self.flow.deciding();
        all.sort_by_key(|(destination, _)| {
            !deciding.is_some_and(|one| std::ptr::eq(one, *destination))
        });
        all
    }

    fn budget(&self) -> f64 {
        budget(self.flow)
    }

    /// Returns the sum of period and deadline, if arrivals are periodic.
    fn late_gap_ns(&self) -> Option<f64> {
        (self.flow.arrivals == "periodic" && self.flow.rate_hz > 0.0)
            .then(|| 1e9 / self.flow.rate_hz + self.flow.deadline_ns as f64)
    }
}

/// Returns the late share that the mission allows.
fn budget(flow: &FlowResult) -> f64 {
    if flow.budget.of == 0 {
        0.0
    } else {
        flow.budget.late as f64 / flow.budget.of as f64
    }
}

/// Returns the sort key of destinations: the verdict, then the late rate, then its bound, then the latency.
fn badness(destination: &DestinationResult) -> (u8, f64, f64, u64) {
    let rate = &destination.late_rate;
    let latency = destination
        .latency_ns
        .get("p99")
        .or_else(|| destination.latency_ns.get("max"));
    (
        destination.verdict.kind as u8,
        rate.estimate,
        rate.upper,
        latency.copied().unwrap_or(u64::MAX),
    )
}

fn sections<'a>(runs: &'a [Run], labels: &'a [String], detail: &Detail) -> Vec<Section<'a>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        for (flow, series) in shown(run, detail) {
            let line = Line {
                run: index,
                run_label: &labels[index],
                clock: &run.document.provenance.clock,
                published: run.document.published.as_ref(),
                flow,
                carrier_colour: palette::of_carrier(&run.document, flow),
                series,
            };
            match sections
                .iter_mut()
                .find(|section| section.name == flow.name)
            {
                Some(section) => section.lines.push(line),
                None => sections.push(Section {
                    name: &flow.name,
                    lines: vec![line],
                }),
            }
        }
    }
    sections
}

/// Returns the flows of a run that the page shows, in order: all, or the worst if they are too many.
fn shown<'a>(run: &'a Run, detail: &Detail) -> Vec<(&'a FlowResult, &'a [Series])> {
    let all = || run.document.flows.iter().zip(&run.series);
    let worst = |flow: &FlowResult| {
        let rates = flow
            .destinations
            .iter()
            .map(|destination| destination.late_rate.estimate);
        (flow.verdict.kind, rates.fold(0.0, f64::max))
    };
    let mut order: Vec<_> = all()
        .enumerate()
        .map(|(index, (flow, _))| (worst(flow), index))
        .collect();
    order.sort_by(|one, other| other.0.0.cmp(&one.0.0).then(other.0.1.total_cmp(&one.0.1)));
    let mut kept: Vec<usize> = order
        .into_iter()
        .take(detail.flows)
        .map(|(_, index)| index)
        .collect();
    kept.sort_unstable();
    let all: Vec<_> = all().collect();
    kept.into_iter()
        .map(|index| (all[index].0, all[index].1.as_slice()))
        .collect()
}

/// Returns a label for each run: its mission if that distinguishes the runs, else its folder, else both with a number.
fn run_labels(runs: &[Run]) -> Vec<String> {
    let missions: Vec<String> = runs.iter().map(|run| name(&run.document.mission)).collect();
    let folders: Vec<String> = runs.iter().map(|run| name(&run.folder)).collect();
    [missions, folders.clone()]
        .into_iter()
        .find(|labels| all_differ(labels))
        .unwrap_or_else(|| {
            folders
                .iter()
                .enumerate()
                .map(|(index, folder)| format!("{folder} ({})", index + 1))
                .collect()
        })
}

fn all_differ(labels: &[String]) -> bool {
    labels
        .iter()
        .enumerate()
        .all(|(index, label)| !labels[..index].contains(label))
}

fn page_title(labels: &[String]) -> String {
    format!("{} · Deckwatch", labels.join(" | "))
}

/// Returns a name as the page shows it: short, and never empty.
fn name(text: &str) -> String {
    match text.trim() {
        "" => "(no name)".to_owned(),
        text => unit::cut(text, NAME_CHARS_MAX),
    }
}

fn word(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Pass => "PASS",
        VerdictKind::Unproven => "UNPROVEN",
        VerdictKind::Fail => "FAIL",
        VerdictKind::Invalid => "INVALID",
    }
}

fn class(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Pass => "pass",
        VerdictKind::Unproven => "unproven",
        VerdictKind::Fail => "fail",
        VerdictKind::Invalid => "invalid",
    }
}

/// Returns the sign beside the verdict's word, so that colour is not the only difference.
fn sign(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Pass => "✓",
        VerdictKind::Unproven => "?",
        VerdictKind::Fail => "✗",
        VerdictKind::Invalid => "⊘",
    }
}

/// Formats a count with its noun: `1 flow`, `3 flows`.
fn counted(n: usize, one: &str, many: &str) -> String {
    format!(
        "{} {}",
        unit::count(n as u64),
        if n == 1 { one } else { many }
    )
}

/// Returns the first `most` sentences, each of limited length, and a sentence with the number of others.
fn sentences<'a>(all: impl ExactSizeIterator<Item = &'a String>, most: usize) -> Vec<String> {
    let count = all.len();
    let mut shown: Vec<String> = all
        .take(most)
        .map(|text| unit::cut(text, crate::limits::SENTENCE_CHARS_MAX))
        .collect();
    if count > most {
        shown.push(format!(
            "… and {} more in result.json.",
            unit::count((count - most) as u64)
        ));
    }
    shown
}
