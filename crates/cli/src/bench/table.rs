//! A bench as people read it, while it goes on and at its end.

use std::io::{self, IsTerminal as _, Write};
use std::time::Duration;

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use deckwatch_probe::bench::{
    self, Bench, Beside, CaseResult, CountResult, MemoryResult, Part, PeerResult, Ratio, Standing,
};
use indicatif::{ProgressBar, ProgressStyle};

use crate::words;

/// A moving line on a terminal; elsewhere a line now and then.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    /// What the last line was written of.
    last: String,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(1);
            bar.enable_steady_tick(Duration::from_millis(200));
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        let last = String::new();
        Self { bar, last }
    }

    pub(crate) fn show(&mut self, at: &bench::Progress) {
        if let Some(bar) = &self.bar {
            bar.set_length(at.rounds as u64);
            bar.set_position(at.round as u64);
            bar.set_message(at.now.clone());
            return;
        }
        let what = at.now.split(':').next().unwrap_or_default();
        let line = match at.rounds {
            0 => what.to_owned(),
            rounds => format!("{what}: round {} of {rounds}", at.round),
        };
        if line != self.last {
            // Nobody may hear it, as on a full disk: the bench goes on.
            let _unheard = writeln!(anstream::stderr(), "{line}");
            self.last = line;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

const HEADER: [&str; 11] = [
    "what",
    "wire octets",
    "peer",
    "calls",
    "p50",
    "beside",
    "p50 ratio (quartiles)",
    "p99",
    "beside",
    "p99 ratio (quartiles)",
    "rate ratio (quartiles)",
];

/// The parts of one kind in full, and the table of targets; of several kinds the table alone.
pub(super) fn print(out: &mut impl Write, bench: &Bench) -> io::Result<()> {
    if bench.bench != "all" {
        for part in &bench.parts {
            print_part(out, part)?;
        }
    }
    print_standings(out, &bench.standings)?;
    for skip in &bench.skipped {
        writeln!(out, "skipped: {}: {}", skip.peer, skip.reason)?;
    }
    for note in &bench.notes {
        writeln!(out, "note: {note}.")?;
    }
    for warning in &bench.warnings {
        writeln!(out, "warning: {}", warning.text)?;
    }
    Ok(())
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    table.set_header(header.to_vec());
    table
}

fn print_part(out: &mut impl Write, part: &Part) -> io::Result<()> {
    let words = part.variant.words();
    writeln!(out, "{}: {}{words}.", part.kind.word(), part.condition)?;
    if !part.cases.is_empty() {
        let mut cases = table(&HEADER);
        for case in &part.cases {
            for peer in &case.peers {
                cases.add_row(row(case, peer));
            }
        }
        for column in cases.column_iter_mut().skip(3) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        writeln!(out, "{cases}")?;
    }
    if !part.counts.is_empty() {
        writeln!(out, "{}", counts(&part.counts))?;
    }
    if !part.memory.is_empty() {
        writeln!(out, "{}", memory(&part.memory))?;
    }
    if let Some(check) = &part.baseline_check {
        let p99 = check
            .p99_ratio
            .map_or(String::new(), |p99| format!(", p99 {}", ratio(p99)));
        writeln!(
            out,
            "Baseline beside sockperf, {} octets both ways: raw {}, sockperf {}; p50 {}{p99}.",
            check.octets,
            time(check.raw_p50_ns),
            time(check.sockperf_p50_ns),
            ratio(check.p50_ratio),
        )?;
    }
    Ok(())
}

fn counts(counts: &[CountResult]) -> Table {
    let mut table = table(&[
        "peer",
        "allocations",
        "mutex locks",
        "waits",
        "system calls",
    ]);
    let number = |count: Option<f64>| count.map_or("-".to_owned(), |it| format!("{it:.3}"));
    for it in counts {
        let name = format!("{}{}", it.peer, it.variant.words());
        table.add_row([
            name,
            number(it.allocations),
            number(it.mutex_locks),
            number(it.waits),
            number(it.system_calls),
        ]);
    }
    table
}

fn memory(memory: &[MemoryResult]) -> Table {
    let mut table = table(&["peer", "connections", "resident MB", "of it anonymous MB"]);
    let megabytes = |octets: u64| format!("{:.2}", octets as f64 / 1e6);
    for it in memory {
        table.add_row([
            it.peer.clone(),
            words::count(it.connections as u64),
            megabytes(it.resident_octets),
            megabytes(it.anonymous_octets),
        ]);
    }
    table
}

fn print_standings(out: &mut impl Write, standings: &[Standing]) -> io::Result<()> {
    let mut names: Vec<&str> = Vec::new();
    for peer in standings.iter().flat_map(|standing| &standing.peers) {
        if !names.contains(&peer.peer.as_str()) {
            names.push(&peer.peer);
        }
    }
    let mut at = "";
    let mut all: Vec<(&str, Table)> = Vec::new();
    for standing in standings {
        if standing.condition != at {
            at = &standing.condition;
            let mut header = vec!["measure", "ours (quartiles)", "target", "met"];
            header.extend(&names);
            all.push((at, table(&header)));
        }
        let or_none = |it: Option<Ratio>| it.map_or("-".to_owned(), ratio);
        let met = match standing.is_met {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "-",
        };
        let mut cells = vec![
            standing.measure.clone(),
            or_none(standing.ours),
            standing.target.clone(),
            met.to_owned(),
        ];
        for name in &names {
            let peer = standing.peers.iter().find(|peer| peer.peer == *name);
            cells.push(or_none(peer.map(|peer| peer.ratio)));
        }
        if let Some((_, table)) = all.last_mut() {
            table.add_row(cells);
        }
    }
    for (condition, table) in all {
        writeln!(out, "{condition}:\n{table}")?;
    }
    Ok(())
}

fn row(case: &CaseResult, peer: &PeerResult) -> [String; 11] {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let beside = match case.case.beside {
        Beside::RawTcp => "",
        Beside::Octets => " beside octets",
        Beside::OneObject => ", many objects",
    };
    [
        format!(
            "{} {}{beside}",
            case.case.kind.word(),
            words::count(case.case.size as u64)
        ),
        format!(
            "{} + {}",
            words::count(case.request_octets as u64),
            words::count(case.reply_octets as u64)
        ),
        peer.peer.clone(),
        words::count(peer.samples),
        time(peer.p50_ns.unwrap_or(peer.mean_ns)),
        time(peer.baseline_p50_ns.unwrap_or(peer.baseline_mean_ns)),
        or_none(peer.p50_ratio.map(ratio)),
        or_none(peer.p99_ns.map(time)),
        or_none(peer.baseline_p99_ns.map(time)),
        or_none(peer.p99_ratio.map(ratio)),
        ratio(peer.rate_ratio),
    ]
}

fn ratio(of: Ratio) -> String {
    let Ratio {
        median,
        lower_quartile,
        upper_quartile,
        pairs,
    } = of;
    if pairs == 1 {
        return format!("{median:.3}");
    }
    format!("{median:.3} ({lower_quartile:.3}-{upper_quartile:.3})")
}

/// Two digits of a microsecond: what is compared here differs by less than one.
fn time(ns: f64) -> String {
    format!("{:.2} us", ns / 1e3)
}
