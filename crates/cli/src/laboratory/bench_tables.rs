//! The result of a bench as tables: each measurement, and the targets.

use std::io::{self, Write};

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use deckwatch_meter::experiment::{ExperimentDocument, Measurement, Ratio, Standing};

use crate::words;

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

/// Prints one kind in full with its targets. For all kinds, prints the targets alone.
pub(super) fn print(out: &mut impl Write, bench: &ExperimentDocument) -> io::Result<()> {
    if bench.experiment != "bench all" {
        let mut groups: Vec<&str> = Vec::new();
        for measurement in &bench.measurements {
            if !groups.contains(&measurement.group.as_str()) {
                groups.push(&measurement.group);
            }
        }
        for group in groups {
            writeln!(out, "{group}.")?;
            let all = bench.measurements.iter();
            let all: Vec<&Measurement> = all.filter(|it| it.group == *group).collect();
            print_group(out, &all)?;
        }
    }
    print_standings(out, &bench.standings)?;
    for check in bench
        .measurements
        .iter()
        .filter(|it| it.values.contains_key("sockperf_p50_ns"))
    {
        print_guard(out, check)?;
    }
    for state in &bench.machine_states {
        writeln!(out, "{}", state.words())?;
    }
    Ok(())
}

/// Prints the pairs of raw TCP and sockperf.
fn print_guard(out: &mut impl Write, check: &Measurement) -> io::Result<()> {
    let p99 = check.ratio("p99_ratio");
    let p99 = p99.map_or(String::new(), |p99| format!(", p99 {}", p99.words()));
    writeln!(
        out,
        "Baseline beside sockperf, {} octets both ways, {}: raw {}, sockperf {}; p50 {}{p99}.",
        check.factors.get("payload_octets").unwrap_or(&0.0),
        check.group,
        time(check, &["p50_ns"]),
        time(check, &["sockperf_p50_ns"]),
        ratio(check, "p50_ratio"),
    )
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    table.set_header(header.to_vec());
    table
}

/// Prints the measurements of one kind and condition. Baselines are shown beside their systems.
fn print_group(out: &mut impl Write, all: &[&Measurement]) -> io::Result<()> {
    let with = |key: &'static str| {
        let all = all.iter().copied();
        all.filter(move |it| it.values.contains_key(key))
    };
    let mut cases = table(&HEADER);
    cases.add_rows(with("rate_ratio").map(row));
    for column in cases.column_iter_mut().skip(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut counts = table(&[
        "peer",
        "allocations",
        "mutex locks",
        "Rust's locks",
        "futex calls",
        "waits",
        "system calls",
    ]);
    let counted = all.iter().filter(|it| it.factors.contains_key("requests"));
    counts.add_rows(counted.map(|it| count_row(it)));
    let mut memory = table(&["peer", "connections", "resident MB", "of it anonymous MB"]);
    memory.add_rows(with("resident_octets").map(memory_row));
    for table in [cases, counts, memory] {
        if !table.is_empty() {
            writeln!(out, "{table}")?;
        }
    }
    print_ends(out, all)
}

/// Prints how the ends were placed, as the kernel told during the warm-up run, and the fixed send buffers.
fn print_ends(out: &mut impl Write, all: &[&Measurement]) -> io::Result<()> {
    let ends = || {
        all.iter()
            .flat_map(|of| of.ends.iter().map(move |end| (of, end)))
    };
    let mut placed: Vec<String> = Vec::new();
    let mut add = |words: String| {
        if !placed.contains(&words) {
            placed.push(words);
        }
    };
    for (of, end) in ends() {
        match &end.differs {
            Some(differs) => add(format!("{}, {}: {differs}", of.system, end.end)),
            None => add(format!("{} as asked for", end.asked)),
        }
        let fixed = end
            .send_buffer_octets
            .filter(|_| end.is_send_buffer_fixed == Some(true));
        if let Some(octets) = fixed {
            add(format!(
                "{}, {}: SO_SNDBUF fixed at {octets} octets",
                of.system, end.end
            ));
        }
    }
    for words in placed {
        writeln!(out, "Read back during the warm-up: {words}.")?;
    }
    Ok(())
}

fn row(of: &Measurement) -> [String; 11] {
    let factor = |name: &str| {
        let number = of.factors.get(name).copied().unwrap_or_default();
        words::count(number as u64)
    };
    [
        format!("{} {}", of.case, factor("payload_octets")),
        format!("{} + {}", factor("request_octets"), factor("reply_octets")),
        of.system.clone(),
        words::count(of.samples),
        time(of, &["p50_ns", "mean_ns"]),
        time(of, &["beside_p50_ns", "beside_mean_ns"]),
        ratio(of, "p50_ratio"),
        time(of, &["p99_ns"]),
        time(of, &["beside_p99_ns"]),
        ratio(of, "p99_ratio"),
        ratio(of, "rate_ratio"),
    ]
}

fn count_row(of: &Measurement) -> [String; 7] {
    let who = match of.case.strip_prefix("a request") {
        Some(variant) => format!("{}{variant}", of.system),
        None => format!("{}, {}", of.system, of.case),
    };
    let number = |key: &str| {
        let count = of.values.get(key);
        count.map_or("-".to_owned(), |it| format!("{it:.3}"))
    };
    [
        who,
        number("allocations"),
        number("mutex_locks"),
        number("rust_locks"),
        number("futex_calls"),
        number("waits"),
        number("system_calls"),
    ]
}

fn memory_row(of: &Measurement) -> [String; 4] {
    let connections = of.factors.get("connections").copied().unwrap_or_default();
    let megabytes = |key: &str| {
        let octets = of.values.get(key);
        octets.map_or("-".to_owned(), |octets| format!("{:.2}", octets / 1e6))
    };
    [
        of.system.clone(),
        words::count(connections as u64),
        megabytes("resident_octets"),
        megabytes("anonymous_octets"),
    ]
}

/// Prints our results against the targets, by condition.
pub(super) fn print_standings(out: &mut impl Write, standings: &[Standing]) -> io::Result<()> {
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
            let mut header = vec!["measure", "ours (95% interval)", "target", "verdict"];
            header.extend(&names);
            all.push((at, table(&header)));
        }
        let or_none = |it: Option<Ratio>| it.map_or("-".to_owned(), Ratio::interval_words);
        let mut cells = vec![
            standing.measure.clone(),
            or_none(standing.ours),
            standing.target.clone(),
            standing.verdict_words(),
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
    let mut told: Vec<&str> = Vec::new();
    for standing in standings {
        let Some(reason) = &standing.reason else {
            continue;
        };
        let verdict = match standing.verdict {
            Some(_) => "open",
            None => "not judged",
        };
        // The same reason often applies to all targets of a condition.
        if !told.contains(&reason.as_str()) {
            writeln!(
                out,
                "{verdict}: {}, and others alike: {reason}.",
                standing.measure
            )?;
            told.push(reason);
        }
    }
    Ok(())
}

fn ratio(of: &Measurement, key: &str) -> String {
    of.ratio(key).map_or("-".to_owned(), Ratio::words)
}

/// Returns the first value that exists, in microseconds with two decimals: the compared times differ by less than one
/// microsecond.
fn time(of: &Measurement, keys: &[&str]) -> String {
    let ns = keys.iter().find_map(|key| of.values.get(*key));
    ns.map_or("-".to_owned(), |ns| format!("{:.2} us", ns / 1e3))
}
