//! Compares several runs in numbers, and lists what else differs between them.

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
    Comparison {
        runs: labels.iter().cloned().enumerate().collect(),
        rows,
        differences: differences(runs, detail),
        same_mission_text: texts.windows(2).all(|pair| pair[0] == pair[1]),
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
