//! The figures of an experiment as tables.

use std::io;

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use deckwatch_meter::experiment::{ExperimentDocument, FigureKind, Point};

use crate::words;

/// Prints the first figures as tables, with a row for each point of the horizontal axis.
pub(super) fn print(out: &mut impl io::Write, found: &ExperimentDocument) -> io::Result<()> {
    writeln!(out, "{}: {}.", found.title, found.condition)?;
    let mut told: Vec<&String> = Vec::new();
    for figure in found.figures.iter().take(TABLES_MAX) {
        writeln!(
            out,
            "\n{} ({}): {}",
            figure.title, figure.source, figure.y.label
        )?;
        let mut table = Table::new();
        table.load_style(UTF8_BORDERS_ONLY);
        let labels = figure.curves.iter().map(|curve| curve.label.clone());
        table.set_header([figure.x.label.clone()].into_iter().chain(labels));
        let mut places: Vec<f64> = (figure.curves.iter())
            .flat_map(|curve| curve.points.iter().map(|point| point.x))
            .collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        for x in places {
            let word = match figure.kind {
                FigureKind::Bars => figure.x.words.get(x as usize).cloned(),
                FigureKind::Lines => None,
            };
            let head = word.unwrap_or_else(|| words::count(x as u64));
            let cell = |points: &[Point]| {
                let found = points.iter().find(|point| point.x == x);
                found.map_or_else(|| "-".to_owned(), |point| value(point.y, &figure.y.unit))
            };
            let cells = figure.curves.iter().map(|curve| cell(&curve.points));
            table.add_row([head].into_iter().chain(cells));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        writeln!(out, "{table}")?;
        // The same note often belongs to all figures that follow.
        for note in figure.notes.iter().filter(|note| !told.contains(note)) {
            writeln!(out, "{note}")?;
        }
        told.extend(&figure.notes);
    }
    if found.figures.len() > TABLES_MAX {
        writeln!(
            out,
            "\nThe other {} figures stand in the report.",
            found.figures.len() - TABLES_MAX
        )?;
    }
    Ok(())
}

/// Maximum number of figures that are printed. The most important figures are first.
const TABLES_MAX: usize = 6;

fn value(value: f64, unit: &str) -> String {
    match unit {
        "ns" => format!("{:.2} us", value / 1e3),
        "share" => format!("{:.1} %", value * 1e2),
        "bit/s" => format!("{:.1} Mbit/s", value / 1e6),
        _ => format!("{value:.3}"),
    }
}
