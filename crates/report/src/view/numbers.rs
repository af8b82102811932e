//! The numbers beside a flow's figures.

use std::collections::BTreeMap;

use deckwatch_meter::result::{DestinationResult, Published};
use serde::Serialize;

use super::flow::{colour, label};
use super::{Line, name};
use crate::limits::Detail;
use crate::series::Series;
use crate::{layers, palette, unit};

/// The gaps at one destination in numbers.
#[derive(Debug, Serialize)]
pub(super) struct GapRow {
    label: String,
    values: Vec<String>,
}

/// What a paper printed of an experiment, and the same of the run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Printed {
    figure: String,
    source: String,
    late: String,
    here: String,
    gaps: String,
}

/// The late messages of all destinations by the layer blamed.
#[derive(Debug, Serialize)]
pub(super) struct Blame {
    label: String,
    colour: usize,
    parts: Vec<BlamePart>,
}

#[derive(Debug, Serialize)]
struct BlamePart {
    class: String,
    name: String,
    count: String,
}

/// The statistics of gaps that are shown as numbers.
pub(super) const GAP_KEYS: [&str; 7] = ["min", "p50", "p90", "p99", "p99.9", "p99.99", "max"];

/// Returns a row for each destination, the worst first.
pub(super) fn gap_rows(lines: &[Line<'_>], several: bool, detail: &Detail) -> Vec<GapRow> {
    let mut rows = Vec::new();
    for line in lines {
        for (destination, _) in line.destinations().into_iter().take(detail.gap_figures) {
            let value = |key: &str| {
                destination
                    .inter_arrival_ns
                    .get(key)
                    .map(|ns| unit::duration(*ns as f64))
            };
            rows.push(GapRow {
                label: format!("{} → {}", label(line, several), name(&destination.host)),
                values: GAP_KEYS
                    .iter()
                    .map(|key| value(key).unwrap_or_else(|| "–".to_owned()))
                    .collect(),
            });
        }
    }
    rows
}

/// Puts the run's numbers beside what a paper printed. The paper counts late messages by the gaps between arrivals.
pub(super) fn printed(
    printed: &Published,
    destination: &DestinationResult,
    series: &Series,
) -> Printed {
    let gaps: Vec<f64> = series.gaps.iter().map(|gap| gap.ns as f64).collect();
    let count = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / count;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
    let least = gaps.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = gaps.iter().copied().fold(0.0, f64::max);
    let gaps = if gaps.is_empty() {
        "no gaps".to_owned()
    } else {
        format!(
            "gaps: least {}, mean {}, greatest {}, standard deviation {}",
            unit::duration(least),
            unit::duration(mean),
            unit::duration(greatest),
            unit::duration(variance.sqrt())
        )
    };
    Printed {
        figure: name(&printed.figure),
        source: name(&printed.source),
        late: name(&printed.late),
        here: format!(
            "{} late gaps, {} late of {}",
            unit::count(destination.counts.late_by_inter_arrival),
            unit::count(destination.counts.late),
            unit::count(destination.counts.due)
        ),
        gaps,
    }
}

/// Adds up the blame of all destinations.
pub(super) fn blame(line: &Line<'_>, several: bool) -> Option<Blame> {
    let mut counts = BTreeMap::new();
    for (layer, n) in line
        .flow
        .destinations
        .iter()
        .flat_map(|destination| &destination.blame)
    {
        *counts.entry(layer.clone()).or_insert(0) += n;
    }
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(layer, _)| layers::road_place(layer));
    let part = |(layer, n): &(String, u64)| BlamePart {
        class: palette::of_layer(layers::first_layer(layer)).0,
        name: name(layer),
        count: unit::count(*n),
    };
    let parts: Vec<BlamePart> = counts.iter().map(part).collect();
    (!parts.is_empty()).then(|| Blame {
        label: label(line, several),
        colour: colour(line, several),
        parts,
    })
}

/// Returns a note about the late messages that have no bar.
pub(super) fn late_note(label: &str, arrived: u64, lost: u64, shown: u64) -> Option<String> {
    let lost = (lost > 0).then(|| format!("{} lost, which have no bar", unit::count(lost)));
    let worst = (arrived > shown).then(|| {
        format!(
            "the worst {} of {} late ones",
            unit::count(shown),
            unit::count(arrived)
        )
    });
    let parts: Vec<String> = [worst, lost].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("{label}: {}.", parts.join("; ")))
}
