//! `deckwatch load cpu`: a share of processors, or the loops of the paper.

use std::process::ExitCode;
use std::time::Duration;

use deckwatch_load::{CountPlan, CpuPlan, CpuWork, Work};

use super::{At, Common};
use crate::mission_args::run_time;

/// Keep processors busy: a share of each that is held, or the paper's loops that count and sleep
#[derive(clap::Args)]
#[command(after_help = NOTES)]
pub(super) struct Args {
    /// The share of each processor that everything on it is to take together, as 0.5 or 50%: the load takes what is missing
    #[arg(long, value_name = "SHARE", value_parser = super::share)]
    share: Option<f64>,
    /// Without --share: so many loops, each a thread
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with = "share")]
    loops: u32,
    /// How far each loop counts before it sleeps
    #[arg(
        long,
        value_name = "N",
        default_value_t = 500_000,
        conflicts_with = "share"
    )]
    count: u64,
    /// How long each loop sleeps
    #[arg(long, value_name = "TIME", default_value = "1us", value_parser = run_time, conflicts_with = "share")]
    sleep: Duration,
    /// The processors [default: all that this process may use]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    cpus: Vec<u32>,
    /// Scheduling class of the load: `other`, or `fifo:PRIORITY` with a share of at most 80%
    #[arg(long, value_name = "CLASS", default_value = "other", value_parser = class)]
    class: Class,
    #[command(flatten)]
    at: At,
    #[command(flatten)]
    common: Common,
}

const NOTES: &str = "\
A share is held by feedback from the kernel's own counters (/proc/stat), ten times a second. It is the use by \
everything that runs there: if another process takes 20%, the load takes 30% of 50%. The time that a hypervisor takes \
counts as used. The load never takes more than 80% in the class `fifo`, and it blocks after each burst of some \
milliseconds, so that the machine stays usable.

A share is held if its mean over the seconds after the first is within 2 points, and nine of ten seconds are too, give \
or take the hundredth of a second that the kernel's counters have as unit.

Exit status: 0 if the share was held, or none was asked for; 1 if it was not held.

Examples:
  deckwatch load cpu --share 0.5 --cpus 0
  deckwatch load cpu --share 80% --cpus 0,1 --class fifo:10 --for 1min
  deckwatch load cpu --loops 20 --count 500000 --sleep 1us
  deckwatch load cpu --share 0.5 --hosts ship.toml --on RTS --for 1min
  deckwatch testbed exec SONAR -- deckwatch load cpu --share 0.66 --cpus 1 --json";

/// A scheduling class, with its priority.
#[derive(Clone, Copy)]
struct Class(Option<u8>);

fn class(text: &str) -> Result<Class, String> {
    let priority = match text {
        "other" => return Ok(Class(None)),
        text => text.strip_prefix("fifo:").and_then(|it| it.parse().ok()),
    };
    let priority = priority.filter(|it| (1..=99).contains(it));
    let priority =
        priority.ok_or("write `other`, or `fifo:` and a priority from 1 to 99, such as fifo:10")?;
    Ok(Class(Some(priority)))
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let work = match args.share {
        Some(share) => CpuWork::Share { share },
        None => CpuWork::Loops {
            loops: args.loops,
            of: CountPlan {
                iterations: args.count,
                sleep: args.sleep,
            },
        },
    };
    let cpu = Work::Cpu(CpuPlan {
        work,
        processors: args.cpus.clone(),
        fifo_priority: args.class.0,
    });
    args.common.carry_out_at(&args.at, cpu)
}
