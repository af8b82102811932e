//! The tables of a grid: average and maximum in each state, by carrier and size, as in the thesis' appendix A.

use std::io;

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use deckwatch_meter::experiment::{ExperimentDocument, Measurement};
use deckwatch_meter::metrics::TRANSACTION;
use deckwatch_probe::sweep::STATES;

/// Prints a table for each carrier and size, and what the processors were used.
pub(super) fn print(out: &mut impl io::Write, found: &ExperimentDocument) -> io::Result<()> {
    writeln!(out, "{}: {}.", found.title, found.condition)?;
    writeln!(
        out,
        "Transaction time in ms: average, maximum. Below: use of the client's and the server's processor."
    )?;
    let of_one = |one: &Measurement, other: &Measurement| {
        one.system == other.system
            && one.factors.get("size_octets") == other.factors.get("size_octets")
    };
    for points in found.measurements.chunk_by(of_one) {
        let size = points[0]
            .factors
            .get("size_octets")
            .copied()
            .unwrap_or_default();
        writeln!(out, "\n{}, {size} octets", points[0].system)?;
        let mut table = Table::new();
        table.load_style(UTF8_BORDERS_ONLY);
        let head = STATES.map(|state| format!("server {state}"));
        table.set_header(["client".to_owned()].into_iter().chain(head));
        for (client, word) in STATES.iter().enumerate() {
            let cells = (0..STATES.len()).map(|server| cell(points, (client, server)));
            table.add_row([(*word).to_owned()].into_iter().chain(cells));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        writeln!(out, "{table}")?;
    }
    Ok(())
}

fn cell(points: &[Measurement], (client, server): (usize, usize)) -> String {
    let is = |point: &Measurement, factor: &str, state: usize| {
        point.factors.get(factor) == Some(&(state as f64))
    };
    let is_there = |point: &&Measurement| {
        is(point, "client_state", client) && is(point, "server_state", server)
    };
    let Some(point) = points.iter().find(is_there) else {
        return "-".to_owned();
    };
    let value = |key: &str| point.values.get(key);
    let ms = |statistic: &str| {
        let found = value(&TRANSACTION.key(statistic));
        found.map_or("-".to_owned(), |ns| format!("{:.3}", ns / 1e6))
    };
    let used = |end: &str| {
        let found = value(&format!("{end}_processor_use"));
        found.map_or("-".to_owned(), |share| format!("{:.0}%", share * 100.0))
    };
    format!(
        "{}, {}\n{}, {}",
        ms("mean"),
        ms("max"),
        used("client"),
        used("server")
    )
}
