//! `deckwatch check`: prints what a mission takes and what it can prove, without running it.

use std::process::ExitCode;
use std::time::Duration;

use comfy_table::Table;
use comfy_table::presets::UTF8_BORDERS_ONLY;
use deckwatch_scenario::forecast::{Forecast, StreamForecast, forecast};
use deckwatch_scenario::room::{self, MEMORY};

use crate::mission_args::MissionArgs;
use crate::output::outln;
use crate::simulate;
use crate::words;

/// Say how long a mission runs, what it needs, and whether it can prove its budgets
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  deckwatch check scenarios/nav.toml
  deckwatch check scenarios/nav.toml --variant loaded --carriers udp,tcp --duration 20s
  deckwatch check scenarios/nav-paper.toml --variants all
  deckwatch check mission.toml --json
  deckwatch check scenarios/nav.toml --network fast-ethernet --simulate

Without `--variant` and `--variants`, the mission itself is shown, and every variant of the file is checked too. A malformed file \
or variant is told with file, line and column, and ends with exit status 2.")]
pub(crate) struct Args {
    #[command(flatten)]
    mission: MissionArgs,
    /// Show these variants of the mission one after the other, or `all`
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        conflicts_with = "variant"
    )]
    variants: Vec<String>,
    /// Simulate the network alone in virtual time, and print each flow's latencies and losses
    #[arg(long)]
    simulate: bool,
    /// Print one JSON object; with `--variants`, an array of them
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.simulate {
        return simulated(&args);
    }
    if args.variants.is_empty() {
        let shown = forecast(&args.mission.load_with_variants()?)?;
        if args.json {
            outln!("{}", serde_json::to_string_pretty(&shown)?)?;
        } else {
            print(&shown)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    // All are read before the first is shown: an error stands alone.
    let missions = args.mission.load_each(&args.variants)?;
    let all: Vec<Forecast> = missions.iter().map(forecast).collect::<Result<_, _>>()?;
    if args.json {
        outln!("{}", serde_json::to_string_pretty(&all)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    for (place, shown) in all.iter().enumerate() {
        if place > 0 {
            outln!("")?;
        }
        print(shown)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn simulated(args: &Args) -> anyhow::Result<ExitCode> {
    let missions = if args.variants.is_empty() {
        vec![args.mission.load_with_variants()?]
    } else {
        args.mission.load_each(&args.variants)?
    };
    let found = simulate::all(&missions)?;
    match (args.json, found.as_slice()) {
        (true, [one]) if args.variants.is_empty() => {
            outln!("{}", serde_json::to_string_pretty(one)?)?;
        }
        (true, all) => outln!("{}", serde_json::to_string_pretty(all)?)?,
        (false, all) => all.iter().try_for_each(simulate::print)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print(forecast: &Forecast) -> anyhow::Result<()> {
    let variant = forecast
        .variant
        .as_ref()
        .map_or(String::new(), |name| format!(", variant {name}"));
    outln!(
        "Mission {}{variant}, on {}.",
        forecast.mission,
        forecast.network
    )?;
    let others = forecast.variants.join(", ");
    if !others.is_empty() {
        outln!("Variants: {others}.")?;
    }
    let duration = words::duration(Duration::from_secs_f64(forecast.duration_s));
    let messages = words::count(forecast.messages);
    outln!("It runs for {duration} and sends {messages} messages, counted at their destinations.")?;
    let processes = forecast
        .processes
        .iter()
        .map(|group| format!("{} {}", group.count, words::plural(group.role, group.count)));
    outln!("Processes: {}.", processes.collect::<Vec<_>>().join(", "))?;
    outln!(
        "Room in {MEMORY}: {} for records, about {} for captures.",
        room::in_words(forecast.room.records_bytes),
        room::in_words(forecast.room.captures_bytes)
    )?;
    for host in &forecast.far_hosts {
        outln!("Far host: {host}.")?;
    }
    for line in words::fidelity(&forecast.emulated, &forecast.not_emulated) {
        outln!("{line}")?;
    }
    outln!("")?;
    outln!("{}", streams(forecast))?;
    outln!("{BURSTS}")?;
    let is_root = deckwatch_os::process::effective_user() == 0;
    for privilege in &forecast.privileges {
        let held = match (privilege.held, privilege.in_user_namespace) {
            (true, _) => "held",
            (false, true) => "not held, but the run has it in a user namespace of its own",
            (false, false) => "NOT held",
        };
        outln!("{} ({held}): {}.", privilege.capability, privilege.purpose)?;
        if !privilege.is_there() {
            let remedy = if is_root {
                "This user is root, and the container withholds it: docker run --cap-add"
            } else {
                "Run as root, or with sudo"
            };
            outln!("  Without it {}. {remedy}.", privilege.otherwise)?;
        }
    }
    if let Some(refusal) = forecast.room.refusal() {
        outln!("`deckwatch run` will refuse it: {refusal}")?;
    }
    for note in &forecast.notes {
        outln!("Note: {note}")?;
    }
    Ok(())
}

fn streams(forecast: &Forecast) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    table.set_header([
        "flow",
        "carrier",
        "to",
        "rate",
        "judged",
        "budget",
        "late bursts",
        "can it prove the budget?",
    ]);
    for stream in &forecast.streams {
        table.add_row([
            stream.flow.clone(),
            stream.carrier.to_string(),
            stream.destinations.to_string(),
            format!("{} Hz", words::rate(stream.rate_hz)),
            words::count(stream.judged),
            words::budget(stream.budget),
            words::count(stream.burst),
            proof(stream),
        ]);
    }
    table
}

const BURSTS: &str = "\
late bursts: the verdict holds if late messages come in bursts of at most so many (`clusters` or `stall` of a flow; else
those that are due within a deadline). If the run sees a longer disturbance, it takes more messages.";

fn proof(stream: &StreamForecast) -> String {
    match (stream.late_max, stream.needed) {
        (Some(0), _) => "yes, if none is late".to_owned(),
        (Some(late), _) => format!("yes, if at most {} are late", words::count(late)),
        (None, Some(needed)) => {
            format!("no: it takes at least {}, none late", words::count(needed))
        }
        (None, None) => "no: no mission is long enough".to_owned(),
    }
}
