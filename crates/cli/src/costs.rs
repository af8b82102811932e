//! `deckwatch costs`: the cost of a request besides time.

use std::process::ExitCode;
use std::time::Duration;

use deckwatch_probe::experiment::{Costs, costs};

use crate::laboratory::{ExperimentOptions, Usual, Where};

/// Count what a request takes: locks, system calls, allocations, processor time
#[derive(clap::Args)]
#[command(after_help = "\
The experiment of the TAO slides 13, 17 and 18. The kernel's tracepoints and probes count at both ends, which needs \
root. A thread that factors numbers shows how much of its processor the server leaves. omniORB is measured beside ours \
if it is installed.

Examples:
  deckwatch costs
  deckwatch costs --quick
  deckwatch costs --octets 8192 --calls 20000
  deckwatch costs --rates 10,100,1000 --run-time 5s --json
  deckwatch costs --quick --insert lock:7")]
pub(crate) struct Args {
    /// Payload of the counted request, in octets
    #[arg(long, value_name = "OCTETS", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=8 << 20))]
    octets: u32,
    /// Number of calls that are counted in a run [default: 5000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    calls: Option<u32>,
    /// Calls per second beside the factoring thread; at 0 the client never pauses [default: 100,1000,5000,0]
    #[arg(long, value_name = "HZ", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(0..=100_000))]
    rates: Vec<u32>,
    #[command(flatten)]
    options: ExperimentOptions,
}

const USUAL: Usual = Usual {
    rounds: 5,
    run_time: Duration::from_millis(800),
    quick_run_time: Duration::from_millis(200),
};

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let is_quick = args.options.common.is_quick();
    let rates_hz = match (args.rates.as_slice(), is_quick) {
        ([], false) => vec![100.0, 1_000.0, 5_000.0, 0.0],
        ([], true) => vec![1_000.0],
        (chosen, _) => chosen.iter().map(|hz| f64::from(*hz)).collect(),
    };
    let calls = args.calls.unwrap_or(if is_quick { 500 } else { 5_000 });
    let asked = Costs {
        setup: args.options.common.setup(&USUAL)?,
        condition: args.options.condition(Where::TwoCores),
        size: args.octets as usize,
        calls: calls as usize,
        rates_hz,
    };
    let common = &args.options.common;
    common.carry_out("costs", |tell, _| costs(&asked, tell))
}
