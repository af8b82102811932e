//! `deckwatch-gateway`: carries events between a real-time event channel and zenoh.

#![forbid(unsafe_code)]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser as _;
use deckwatch_gateway::{Config, Counts, Gateway, limits};

/// Carry events between a real-time event channel and zenoh
#[derive(clap::Parser)]
#[command(
    name = "deckwatch-gateway",
    version,
    max_term_width = 120,
    after_help = "\
Examples:
  deckwatch-gateway nav.toml
  deckwatch-gateway nav.toml --check
  deckwatch-gateway nav.toml --json --every 10 > counts.jsonl

A file maps event types and sources to key expressions:

  channel = \"corbaname::ship:2809#NAV\"      # or corbaloc:, IOR:, or a file that holds one
  [zenoh]
  connect = [\"tcp/shore:7447\"]           # a peer; with mode = \"client\" a router
  [[map]]
  direction = \"both\"                        # out: channel to zenoh; in: zenoh to channel
  type = \"16..=99\"
  key = \"ship/nav/{type}/{source}\"
  priority = \"real_time\"

The gateway runs until SIGINT or SIGTERM. It then disconnects from both sides and prints what became of every event. A \
channel or a router that is away is connected again as soon as it is there.

Exit status: 0 ended by a signal; 2 bad input, or zenoh does not start."
)]
struct Args {
    /// The file with channel, zenoh and mappings
    file: PathBuf,
    /// Check the file, and connect nothing
    #[arg(long)]
    check: bool,
    /// Print the counts as JSON, one line each time
    #[arg(long, conflicts_with = "check")]
    json: bool,
    /// Print the counts so often, not only at the end
    #[arg(long, value_name = "SECONDS", conflicts_with = "check",
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    every: Option<u64>,
}

const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If stderr is closed, the exit status still shows the error.
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(BAD_INPUT)
        }
    }
}

fn run(args: &Args) -> Result<(), String> {
    // Before anything is connected: from here on a signal only ends the loop.
    deckwatch_os::signal::catch_ending().map_err(|error| error.to_string())?;
    let config = Config::read(&args.file).map_err(|error| error.to_string())?;
    if args.check {
        return print(&format!("{}: correct", args.file.display()));
    }
    let log = |line: &str| {
        // As above.
        let _ = writeln!(std::io::stderr(), "{line}");
    };
    let gateway = Gateway::start(config, log).map_err(|error| error.to_string())?;
    log(&format!(
        "running as gateway {}; Ctrl-C ends it",
        gateway.counts().gateway
    ));
    let period = args.every.map(Duration::from_secs);
    let mut due = period.map(|period| Instant::now() + period);
    while deckwatch_os::signal::ending().is_none() {
        std::thread::sleep(limits::WAIT_STEP);
        if let (Some(at), Some(period)) = (due, period)
            && Instant::now() >= at
        {
            due = Some(at + period);
            show(&gateway.counts(), args.json)?;
        }
    }
    show(&gateway.stop(), args.json)
}

fn show(counts: &Counts, as_json: bool) -> Result<(), String> {
    if as_json {
        let line = serde_json::to_string(counts).map_err(|error| error.to_string())?;
        return print(&line);
    }
    let mut text = format!(
        "gateway {}: channel connected {} times",
        counts.gateway, counts.connects
    );
    for mapping in &counts.mappings {
        text.push_str(&format!("\n{}", mapping.key));
        if let Some(out) = &mapping.out {
            text.push_str(&format!(
                "\n  out  {} received; {} published, {} without a subscriber, {} returned, {} expired, {} unmapped, \
                 {} dropped, {} failed",
                out.received,
                out.published,
                out.unheard,
                out.returned,
                out.expired,
                out.unmapped,
                out.dropped,
                out.failed
            ));
        }
        if let Some(r#in) = &mapping.r#in {
            text.push_str(&format!(
                "\n  in   {} received; {} pushed, {} own, {} malformed, {} unmapped, {} dropped, {} without a channel; \
                 {} lost before",
                r#in.received,
                r#in.pushed,
                r#in.own,
                r#in.malformed,
                r#in.unmapped,
                r#in.dropped,
                r#in.without_channel,
                r#in.lost
            ));
        }
    }
    print(&text)
}

fn print(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout();
    let printed = writeln!(out, "{text}").and_then(|()| out.flush());
    printed.map_err(|error| format!("standard output: {error}"))
}
