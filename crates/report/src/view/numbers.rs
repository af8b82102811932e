//! The numbers beside a flow's figures.

use std::collections::BTreeMap;

use serde::Serialize;

use super::flow::{colour, label};
use super::{Line, name};
use crate::limits::Detail;
use crate::{layers, palette, unit};

/// The gaps at one destination in numbers.
#[derive(Debug, Serialize)]
pub(super) struct GapRow {
    label: String,
    values: Vec<String>,
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
