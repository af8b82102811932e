//! Compares several runs in numbers, and lists what else differs between them.

use deckwatch_meter::result::{DestinationResult, FlowResult, Published, ResultDocument};
use serde::Serialize;

use super::{Section, class, name, provenance, sign, word};
use crate::limits::Detail;
use crate::run::Run;
use crate::unit;

/// The comparison of all runs.
#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    runs: Vec<(usize, String)>,
    rows: Vec<CompareRow>,
    /// A row for each flow in each variant; empty if the runs are not variants of one mission.
    variants: Vec<VariantRow>,
    differences: Vec<Difference>,
    same_mission_text: bool,
}

#[derive(Debug, Serialize)]
struct CompareRow {
    flow: String,
    carrier: String,
    colour: usize,
    cells: Vec<Option<CompareCell>>,
}

/// One flow over one carrier in one run, at its worst destination.
#[derive(Debug, Serialize)]
struct CompareCell {
    word: &'static str,
    class: &'static str,
    sign: &'static str,
    late: String,
    bounds: String,
    latency: String,
    worst: String,
}

/// One flow over one carrier in one variant, at its worst destination, beside what a paper printed.
#[derive(Debug, Serialize)]
struct VariantRow {
    run: usize,
    variant: String,
    figure: String,
    flow: String,
    carrier: String,
    messages: String,
    late: String,
    late_gaps: String,
    printed: String,
    p50: String,
    p99: String,
    max: String,
    word: &'static str,
    class: &'static str,
    sign: &'static str,
}

/// A fact that is not the same in all runs.
#[derive(Debug, Serialize)]
struct Difference {
    what: String,
    values: Vec<String>,
}

/// Makes the comparison of the runs.
pub(crate) fn of(
    runs: &[Run],
    labels: &[String],
    sections: &[Section<'_>],
    detail: &Detail,
) -> Comparison {
    let mut rows = Vec::new();
    for section in sections {
        for carrier in section.carriers() {
            let cells = (0..runs.len())
                .map(|run| cell(section, carrier, run))
                .collect();
            rows.push(CompareRow {
                flow: name(section.name),
                carrier: name(carrier),
                colour: section.colour_of(carrier),
                cells,
            });
        }
    }
    rows.truncate(detail.flows);
    let texts: Vec<&str> = runs
        .iter()
        .map(|run| run.document.provenance.mission_text.as_str())
        .collect();
    let same_mission_text = texts.windows(2).all(|pair| pair[0] == pair[1]);
    Comparison {
        variants: if same_mission_text {
            variants(runs, detail)
        } else {
            Vec::new()
        },
        runs: labels.iter().cloned().enumerate().collect(),
        rows,
        differences: differences(runs, detail),
        same_mission_text,
    }
}

/// Returns the table of variants, or nothing if a run is of no variant.
fn variants(runs: &[Run], detail: &Detail) -> Vec<VariantRow> {
    let documents = || runs.iter().map(|run| &run.document);
    if documents().any(|document| document.variant.is_none()) {
        return Vec::new();
    }
    let rows = documents().enumerate().flat_map(|(run, document)| {
        let flows = document.flows.iter();
        flows.filter_map(move |flow| Some(variant_row(run, document, flow, flow.deciding()?)))
    });
    rows.take(detail.rows).collect()
}

fn variant_row(
    run: usize,
    document: &ResultDocument,
    flow: &FlowResult,
    worst: &DestinationResult,
) -> VariantRow {
    let latency = |key: &str| {
        let ns = worst.latency_ns.get(key);
        ns.map_or_else(|| MISSING.to_owned(), |ns| unit::duration(*ns as f64))
    };
    let printed = |of: fn(&Published) -> &String| {
        let text = document.published.as_ref().map(of);
        text.map_or_else(|| MISSING.to_owned(), |text| name(text))
    };
    VariantRow {
        run,
        variant: name(document.variant.as_deref().unwrap_or_default()),
        figure: printed(|one| &one.figure),
        flow: name(&flow.name),
        carrier: name(&flow.carrier),
        messages: unit::count(worst.counts.due),
        late: unit::count(worst.counts.late),
        late_gaps: unit::count(worst.counts.late_by_inter_arrival),
        printed: printed(|one| &one.late),
        p50: latency("p50"),
        p99: latency("p99"),
        max: latency("max"),
        word: word(flow.verdict.kind),
        class: class(flow.verdict.kind),
        sign: sign(flow.verdict.kind),
    }
}

fn cell(section: &Section<'_>, carrier: &str, run: usize) -> Option<CompareCell> {
    let line = section
        .lines
        .iter()
        .find(|line| line.run == run && line.flow.carrier == carrier)?;
    let destinations = line.destinations();
    let (worst, _) = destinations.first()?;
    let latency: Vec<String> = ["p50", "p99", "max"]
        .iter()
        .filter_map(|key| {
            worst
                .latency_ns
                .get(*key)
                .map(|ns| format!("{key} {}", unit::duration(*ns as f64)))
        })
        .collect();
    Some(CompareCell {
        word: word(worst.verdict.kind),
        class: class(worst.verdict.kind),
        sign: sign(worst.verdict.kind),
        late: format!(
            "{} late of {}",
            unit::count(worst.counts.late),
            unit::count(worst.counts.due)
        ),
        bounds: format!(
            "{} to {}",
            unit::share(worst.late_rate.lower),
            unit::share(worst.late_rate.upper)
        ),
        latency: latency.join(" · "),
        worst: match destinations.len() {
            1 => name(&worst.host),
            n => format!("{}, worst of {}", name(&worst.host), unit::count(n as u64)),
        },
    })
}

/// Returns the facts that differ between runs. A flow is compared only if all runs have it over that carrier.
fn differences(runs: &[Run], detail: &Detail) -> Vec<Difference> {
    let everywhere = differing(&runs.iter().map(provenance::comparable).collect::<Vec<_>>());
    let mut flows = differing(&runs.iter().map(provenance::flows).collect::<Vec<_>>());
    flows.retain(|difference| difference.values.iter().all(|value| value != MISSING));
    everywhere
        .into_iter()
        .chain(flows)
        .take(detail.sentences)
        .collect()
}

const MISSING: &str = "–";

fn differing(facts: &[Vec<(String, String)>]) -> Vec<Difference> {
    let mut keys: Vec<&String> = Vec::new();
    for (key, _) in facts.iter().flatten() {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let value = |run: &[(String, String)], key: &String| {
        run.iter()
            .find(|(known, _)| known == key)
            .map_or_else(|| MISSING.to_owned(), |(_, value)| value.clone())
    };
    keys.into_iter()
        .map(|key| Difference {
            what: key.clone(),
            values: facts.iter().map(|run| value(run, key)).collect(),
        })
        .filter(|difference| difference.values.windows(2).any(|pair| pair[0] != pair[1]))
        .collect()
}
