//! `deckwatch overhead`: what middleware adds to UDP and TCP.

use std::process::ExitCode;

use deckwatch_carrier::carriers::CarrierRef;
use deckwatch_probe::sweep::{Axes, TRANSPORTS, overhead};

use crate::sweep::{Method, carriers, sizes};

/// Measure what middleware adds to UDP and TCP: latency and lost throughput, by size
#[derive(clap::Args)]
#[command(after_help = "\
A sweep over udp, tcp and the carriers. At each size they take turns, iteration by iteration, and each iteration is \
compared with the transport's iteration beside it: the result is the median of the pairs with its quartiles. The table \
of percentages of samples against time is table 3.4-1 of Pallack's thesis. A folder of `sweep` can be resumed if it has \
udp or tcp, and the same options.

Examples:
  deckwatch overhead
  deckwatch overhead --carriers corba --sizes 256,1024,8192
  deckwatch overhead --iterations 3 --messages 500 --json
  deckwatch overhead --resume results/overhead-1")]
pub(crate) struct Args {
    /// Carriers that are compared with udp and tcp: corba, corba-oneway, event, rt-event, or `all`
    #[arg(long, value_name = "CARRIERS", value_delimiter = ',', default_values = ["all"])]
    carriers: Vec<String>,
    /// Message sizes in octets, as for `sweep`
    #[arg(
        long,
        value_name = "SIZES",
        default_value = "64,256,512,1024,2048,4096,8192"
    )]
    sizes: String,
    #[command(flatten)]
    method: Method,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let transports = TRANSPORTS.map(str::to_owned);
    let mut compared = carriers(&transports)?;
    let named = carriers(&args.carriers)?;
    compared.extend(named);
    // In the order of the table of carriers, which is that of the colours.
    let in_order: Vec<CarrierRef> = CarrierRef::all()
        .filter(|carrier| compared.contains(carrier))
        .collect();
    let method = &args.method;
    let compared = (in_order, Axes::default());
    method.carry_out("overhead", compared, (sizes(&args.sizes)?, None), overhead)
}
