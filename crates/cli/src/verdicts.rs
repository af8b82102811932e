//! `deckwatch verdicts`: simulates missions at the edge of their budget, and counts wrong verdicts.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;
use deckwatch_meter::result::VerdictKind;
use deckwatch_meter::statistics::simulated::{Edge, Process, Random, Wrong};
use indicatif::{ProgressBar, ProgressStyle};

use crate::exit::Status;
use crate::output::{errln, outln};
use crate::words;

/// Simulate missions at the edge of their budget, and count wrong verdicts
#[derive(clap::Args)]
#[command(after_help = "\
Each mission has exactly the share of late messages that its budget allows, so that PASS and FAIL are both wrong. The \
late messages are independent or come in bursts, and the mission asks for bursts of that length. Each verdict may be \
wrong in 5 % of runs. All missions take some minutes, with --quick some seconds.

Examples:
  deckwatch verdicts --quick
  deckwatch verdicts --messages 1000
  deckwatch verdicts --runs 2000 --seed 7
  deckwatch verdicts --json > verdicts.json

Exit status: 0 if no verdict is wrong in more than 5 % of runs, the sampling error allowed for; 1 otherwise.")]
pub(crate) struct Args {
    /// Runs of each mission [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(20..=1_000_000))]
    runs: Option<u32>,
    /// Seed of the simulation; the same seed gives the same table
    #[arg(long, value_name = "N", default_value_t = 2_026)]
    seed: u64,
    /// 200 runs, and only missions of up to 10,000 messages
    #[arg(long)]
    quick: bool,
    /// Only missions of this many messages: 1000, 10000 or 100000
    #[arg(long, value_name = "N", value_parser = messages, conflicts_with = "quick")]
    messages: Option<u64>,
    /// Print one JSON object with each mission
    #[arg(long)]
    json: bool,
}

fn messages(text: &str) -> Result<u64, String> {
    let asked = text.parse().ok();
    let mut known = Edge::all().into_iter().map(|edge| edge.messages);
    known
        .find(|&messages| Some(messages) == asked)
        .ok_or_else(|| "write 1000, 10000 or 100000".to_owned())
}

/// A mission and its wrong verdicts.
#[derive(serde::Serialize)]
struct Row {
    #[serde(flatten)]
    edge: Edge,
    #[serde(flatten)]
    wrong: Wrong,
    /// Wrong verdicts of one kind that the sampling error explains.
    limit: u32,
}

#[derive(serde::Serialize)]
struct Document {
    seed: u64,
    runs: u32,
    missions: Vec<Row>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let runs = args.runs.unwrap_or(if args.quick { 200 } else { 1_000 });
    let mut edges = Edge::all();
    edges.retain(|edge| match args.messages {
        Some(messages) => edge.messages == messages,
        None => !args.quick || edge.messages <= QUICK_MESSAGES_MAX,
    });
    let document = Document {
        seed: args.seed,
        runs,
        missions: simulate(&edges, runs, args.seed),
    };
    if args.json {
        outln!("{}", serde_json::to_string_pretty(&document)?)?;
    } else {
        print(&document)?;
    }
    let sound = document.missions.iter().all(|row| row.wrong.is_sound());
    let kind = if sound {
        VerdictKind::Pass
    } else {
        VerdictKind::Fail
    };
    Ok(Status::from(kind).into())
}

/// Simulates each mission, with its progress on standard error.
fn simulate(edges: &[Edge], runs: u32, seed: u64) -> Vec<Row> {
    let work: Vec<u64> = edges.iter().map(late_messages).collect();
    let bar = ProgressBar::new(work.iter().sum());
    let style = ProgressStyle::with_template("{bar:40} {percent} %, {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let begun = Instant::now();
    let mut rows = Vec::new();
    for (index, (edge, work)) in edges.iter().zip(work).enumerate() {
        // Each mission has a seed of its own, so that a part of the table has the numbers of the whole one.
        let mut random = Random::new(seed.wrapping_add(edge_number(edge)));
        let wrong = edge.simulate(runs, &mut random);
        rows.push(Row {
            edge: *edge,
            limit: wrong.limit(),
            wrong,
        });
        bar.inc(work);
        let left = begun.elapsed().as_secs_f64()
            * (bar.length().unwrap_or(0) as f64 / bar.position().max(1) as f64 - 1.0);
        let left = words::duration(Duration::from_secs(left.max(0.0) as u64));
        bar.set_message(format!("{left} left"));
        if bar.is_hidden() && (index + 1) % (edges.len() / 5).max(1) == 0 {
            errln!("{} of {} missions, {left} left", index + 1, edges.len());
        }
    }
    bar.finish_and_clear();
    rows
}

/// Returns the mean number of late messages of a run, to which its cost is proportional.
fn late_messages(edge: &Edge) -> u64 {
    let late = edge.messages * edge.budget.late / edge.budget.of;
    (late + RUN_COST) * u64::from(edge.destinations)
}

/// Returns a number that differs between all missions of the table.
fn edge_number(edge: &Edge) -> u64 {
    let all = Edge::all();
    let position = all.iter().position(|other| other == edge);
    position.unwrap_or(all.len()) as u64
}

fn print(document: &Document) -> anyhow::Result<()> {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header([
        "late messages",
        "budget",
        "messages",
        "PASS",
        "FAIL",
        "PASS of 17",
        "FAIL of 17",
        "PASS, plain",
        "FAIL of 17, plain",
    ]);
    for group in groups(&document.missions) {
        let of = |destinations: u32, number: fn(&Wrong) -> u32| {
            let rows = group
                .iter()
                .filter(|row| row.edge.destinations == destinations);
            let most = rows.map(|row| number(&row.wrong)).max().unwrap_or(0);
            format!(
                "{:.1} %",
                f64::from(most) * 100.0 / f64::from(document.runs)
            )
        };
        let edge = &group[0].edge;
        table.add_row([
            edge.process.name().to_owned(),
            words::budget(edge.budget),
            words::count(edge.messages),
            of(1, |wrong| wrong.pass),
            of(1, |wrong| wrong.fail),
            of(17, |wrong| wrong.pass),
            of(17, |wrong| wrong.fail),
            of(1, |wrong| wrong.pass_if_independent),
            of(17, |wrong| wrong.fail_if_independent),
        ]);
    }
    outln!("{table}")?;
    let wrong = Wrong {
        runs: document.runs,
        ..Wrong::default()
    };
    let mut bursts: Vec<u64> = Process::ALL.iter().map(|process| process.burst()).collect();
    bursts.sort_unstable();
    bursts.dedup();
    let bursts: Vec<String> = bursts[1..].iter().map(u64::to_string).collect();
    outln!(
        "\nWrong verdicts in {} runs of each mission, seed {}; each row shows the worst of bursts of {}.",
        words::count(u64::from(document.runs)),
        document.seed,
        bursts.join(", ")
    )?;
    outln!(
        "At 5 %, sampling error alone gives up to {:.1} %. Plain: the rule for independent messages, uncorrected.",
        f64::from(wrong.limit()) * 100.0 / f64::from(document.runs)
    )
}

/// Returns the missions that differ in the length of the bursts and the number of destinations only.
fn groups(rows: &[Row]) -> Vec<Vec<&Row>> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    let key = |row: &Row| (row.edge.process.name(), row.edge.budget, row.edge.messages);
    for row in rows {
        match groups.iter_mut().find(|group| key(group[0]) == key(row)) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

/// Messages of the longest mission with --quick.
const QUICK_MESSAGES_MAX: u64 = 10_000;

/// Cost of a run without late messages, in late messages.
const RUN_COST: u64 = 20;
