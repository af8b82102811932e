//! `deckwatch invert`: measures whether a high-priority client waits for low-priority clients.

use std::process::ExitCode;
use std::time::Duration;

use deckwatch_probe::experiment::{Invert, invert};

use crate::laboratory::{ExperimentOptions, Usual, Where};
use crate::mission_args::duration;

/// Measure one high-priority client beside a growing number of low-priority clients
#[derive(clap::Args)]
#[command(after_help = "\
The experiment of the TAO slides 10 to 16: our ORB with a lane for each priority and without lanes, omniORB if it is \
installed, and raw TCP with a thread for each connection, which shows the effect of the operating system. Every client \
is a process of its own. The figures lead with the time from due to done; the round trip alone, which the slides show, \
does not contain a late start. Priorities need CAP_SYS_NICE. The slides' clients called 20 and 10 times a second; at these \
rates a percentile needs long runs.

Examples:
  deckwatch invert
  deckwatch invert --quick
  deckwatch invert --high-rate 20 --low-rate 10 --low-work 0us --run-time 60s
  deckwatch invert --low-rate 0 --low-work 0us --low-clients 0,10,50 --output results/invert")]
pub(crate) struct Args {
    /// Numbers of low-priority clients [default: 0,5,10,15,20,25,30,35,40,45,50]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(0..=200))]
    low_clients: Vec<u16>,
    /// Calls per second of the high-priority client; at 0 it never pauses
    #[arg(long, value_name = "HZ", default_value_t = 100.0, value_parser = rate)]
    high_rate: f64,
    /// Calls per second of each low-priority client; at 0 they never pause, and are in the time-sharing class
    #[arg(long, value_name = "HZ", default_value_t = 20.0, value_parser = rate)]
    low_rate: f64,
    /// How long the server works for each call of a low-priority client
    #[arg(long, value_name = "TIME", default_value = "500us", value_parser = work)]
    low_work: Duration,
    #[command(flatten)]
    options: ExperimentOptions,
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(hz @ (0.0 | RATE_MIN..=100_000.0)) => Ok(hz),
        _ => Err("write a number of calls a second, from 0.001 to 100000, or 0".to_owned()),
    }
}

/// One call in 1000 seconds: at lower rates, a run has no call.
const RATE_MIN: f64 = 0.001;

/// Parses a duration; 0 needs no unit.
fn work(text: &str) -> anyhow::Result<Duration> {
    if text.trim_end_matches(char::is_alphabetic) == "0" {
        return Ok(Duration::ZERO);
    }
    let work = duration(text)?;
    anyhow::ensure!(
        work <= WORK_MAX,
        "The server works at most {WORK_MAX:?} for a call."
    );
    Ok(work)
}

/// The longest work for one call.
const WORK_MAX: Duration = Duration::from_millis(10);

const USUAL: Usual = Usual {
    rounds: 3,
    run_time: Duration::from_secs(4),
    quick_run_time: Duration::from_millis(400),
};

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let low_clients: Vec<usize> =
        match (args.low_clients.as_slice(), args.options.common.is_quick()) {
            ([], false) => (0..=50).step_by(5).collect(),
            ([], true) => vec![0, 5],
            (chosen, _) => chosen.iter().map(|count| usize::from(*count)).collect(),
        };
    let asked = Invert {
        setup: args.options.common.setup(&USUAL)?,
        condition: args.options.condition(Where::TwoCores),
        low_clients,
        high_rate_hz: args.high_rate,
        low_rate_hz: args.low_rate,
        low_work: args.low_work,
    };
    let common = &args.options.common;
    common.carry_out("invert", |tell, _| invert(&asked, tell))
}
