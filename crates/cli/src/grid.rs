//! `deckwatch grid`: transactions in the nine processor states of a thesis.

use std::process::ExitCode;

use deckwatch_carrier::carriers::built_in_names;
use deckwatch_probe::sweep::{Axes, grid};

use crate::mission_args::ALL;
use crate::sweep::{Method, sizes};

/// Measure transactions in nine processor states, three at each end, by size
#[derive(clap::Args)]
#[command(after_help = "\
The states are those of Pallack's thesis: the processor of the client and that of the server are used 0-33, 34-66 or \
67-100% each, by everything. A load holds 50% and 83.5% there; in the first state there is none. Each end runs on a \
processor of its own, time sharing; with --hosts all processors of its host have the state; and a transaction begins every 4 ms at most, so that the transactions themselves take \
little of a processor. Each state is a sweep of all sizes. The tables have average and maximum by size, as appendix A of \
the thesis. The report has the distributions in bins of 1 ms; grid.csv in the result folder has all of it. A load that \
missed its state is a warning. Ctrl-C keeps what was measured; --resume goes on behind the last finished size.

Examples:
  deckwatch grid
  deckwatch grid --carriers tcp,corba --sizes 64,256,8192 --iterations 5 --messages 500
  deckwatch grid --network fast-ethernet --from RTS --to SONAR
  deckwatch grid --hosts ship.toml --from RTS --to SONAR
  deckwatch grid --resume results/grid-1")]
pub(crate) struct Args {
    /// Carriers that take turns at each size, as for `sweep`
    #[arg(long, value_name = "CARRIERS", value_delimiter = ',', default_values = ["tcp", "corba"])]
    carriers: Vec<String>,
    /// Message sizes in octets, as for `sweep`
    #[arg(
        long,
        value_name = "SIZES",
        default_value = "64,128,256,512,1024,2048,4096,8192"
    )]
    sizes: String,
    #[command(flatten)]
    method: Method,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut carriers = args.method.carriers(&args.carriers)?;
    if args.carriers.iter().any(|name| name == ALL) {
        carriers.leave_out_adapters(ANSWERS_NOTHING);
    }
    let mut named = carriers.carriers.iter();
    if let Some(adapter) = named.find(|carrier| carrier.external().is_some()) {
        anyhow::bail!(
            "{adapter} cannot be measured: {ANSWERS_NOTHING}. Name some of {}.",
            built_in_names()
        );
    }
    let compared = (carriers, Axes::default());
    let sizes = (sizes(&args.sizes)?, None);
    args.method.carry_out("grid", compared, sizes, grid)
}

/// Why the states leave out a carrier in another language.
const ANSWERS_NOTHING: &str =
    "its program answers nothing, and the states are compared by transactions";
