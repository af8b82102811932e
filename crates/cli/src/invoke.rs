//! `deckwatch invoke`: the cost of one-way and two-way, static and dynamic invocations.

use std::process::ExitCode;
use std::time::Duration;

use deckwatch_probe::experiment::{Invoke, invoke};

use crate::laboratory::{ExperimentOptions, Usual, Where};

/// Measure one-way, two-way, static and dynamic calls over servants and over sizes
#[derive(clap::Args)]
#[command(after_help = "\
The experiment of sections 3.3.2.1 and 3.5.1.1 of the FFI report: static stubs and dynamic requests, at servants with \
generated and with dynamic skeletons. Each servant is called in turn, and one of them alone. omniORB is measured beside \
ours if it is installed.

Examples:
  deckwatch invoke
  deckwatch invoke --quick
  deckwatch invoke --servants 1,1000,10000 --sizes 64
  deckwatch invoke --condition default --json
  deckwatch invoke --quick --insert 300us --report invoke.html")]
pub(crate) struct Args {
    /// Numbers of active servants [default: 1,100,200,300,400,500]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=10_000))]
    servants: Vec<u32>,
    /// Payload sizes in octets, for sequences of octet and of ComplexStruct [default: 1,16,64,256,1024,4096,16384,65536]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=8 << 20))]
    sizes: Vec<u32>,
    #[command(flatten)]
    options: ExperimentOptions,
}

const USUAL: Usual = Usual {
    rounds: 3,
    run_time: Duration::from_millis(50),
    quick_run_time: Duration::from_millis(10),
};

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let is_quick = args.options.common.is_quick();
    let or = |chosen: &[u32], usual: &[u32], quick: &[u32]| -> Vec<usize> {
        let taken = match (chosen, is_quick) {
            ([], false) => usual,
            ([], true) => quick,
            (chosen, _) => chosen,
        };
        taken.iter().map(|number| *number as usize).collect()
    };
    let asked = Invoke {
        setup: args.options.common.setup(&USUAL)?,
        condition: args.options.condition(Where::Pinned),
        servants: or(&args.servants, &[1, 100, 200, 300, 400, 500], &[1, 100]),
        sizes: or(
            &args.sizes,
            &[1, 16, 64, 256, 1_024, 4_096, 16_384, 65_536],
            &[64, 4_096],
        ),
    };
    let common = &args.options.common;
    common.carry_out("invoke", |tell, _| invoke(&asked, tell))
}
