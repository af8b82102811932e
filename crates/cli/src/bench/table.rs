//! A bench as people read it, while it goes on and at its end.

use std::io::{self, IsTerminal as _, Write};
use std::time::Duration;

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use deckwatch_probe::bench::{self, CallBench, CaseResult, PeerResult, Ratio};
use indicatif::{ProgressBar, ProgressStyle};

use crate::words;

/// A moving line on a terminal; elsewhere a line now and then.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    /// The next round that a line is written of.
    next: usize,
}

impl Progress {
    pub(super) fn new() -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(1);
            bar.enable_steady_tick(Duration::from_millis(200));
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Self { bar, next: 1 }
    }

    pub(super) fn show(&mut self, at: &bench::Progress) {
        if let Some(bar) = &self.bar {
            bar.set_length(at.of as u64);
            bar.set_position(at.done as u64);
            bar.set_message(at.now.clone());
        } else if at.round >= self.next {
            self.next = at.round * 2;
            anstream::eprintln!("round {} of {}: {}", at.round, at.rounds, at.now);
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

const HEADER: [&str; 10] = [
    "sent",
    "wire octets",
    "peer",
    "round trips",
    "p50",
    "raw p50",
    "p50 / raw (quartiles)",
    "p99",
    "raw p99",
    "p99 / raw (quartiles)",
];

pub(super) fn print(out: &mut impl Write, bench: &CallBench) -> io::Result<()> {
    writeln!(
        out,
        "Two-way calls beside raw TCP of the same octets: {}.",
        bench.condition
    )?;
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    table.set_header(HEADER);
    for case in &bench.cases {
        for peer in &case.peers {
            table.add_row(row(case, peer));
        }
    }
    for column in table.column_iter_mut().skip(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    writeln!(out, "{table}")?;
    if let Some(check) = &bench.baseline_check {
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
    for skip in &bench.skipped {
        writeln!(out, "skipped: {}: {}", skip.peer, skip.reason)?;
    }
    for warning in &bench.warnings {
        writeln!(out, "warning: {}", warning.text)?;
    }
    Ok(())
}

fn row(case: &CaseResult, peer: &PeerResult) -> [String; 10] {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    [
        format!(
            "{} {}",
            case.case.word(),
            words::count(case.case.size as u64)
        ),
        format!(
            "{} + {}",
            words::count(case.request_octets as u64),
            words::count(case.reply_octets as u64)
        ),
        peer.peer.clone(),
        words::count(peer.samples),
        time(peer.p50_ns),
        time(peer.raw_p50_ns),
        ratio(peer.p50_ratio),
        or_none(peer.p99_ns.map(time)),
        or_none(peer.raw_p99_ns.map(time)),
        or_none(peer.p99_ratio.map(ratio)),
    ]
}

fn ratio(of: Ratio) -> String {
    let Ratio {
        median,
        lower_quartile,
        upper_quartile,
        ..
    } = of;
    format!("{median:.3} ({lower_quartile:.3}-{upper_quartile:.3})")
}

/// Two digits of a microsecond: what is compared here differs by less than one.
fn time(ns: f64) -> String {
    format!("{:.2} us", ns / 1e3)
}
