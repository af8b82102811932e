//! `deckwatch overhead`: what middleware adds to UDP and TCP.

use std::process::ExitCode;

use deckwatch_carrier::carriers::{CarrierRef, found};
use deckwatch_probe::sweep::{Axes, TRANSPORTS, overhead};

use crate::sweep::{Method, carriers, sizes};

/// Measure what middleware adds to UDP and TCP: latency and lost throughput, by size
#[derive(clap::Args)]
#[command(after_help = "\
A sweep over udp, tcp and the carriers. At each size they take turns, iteration by iteration, and each iteration is \
compared with the transport's iteration beside it: the result is the median of the pairs with its quartiles. The table \
of percentages of samples against time is table 3.4-1 of Pallack's thesis. Adapters answer nothing: they are compared by \
one-way latency and throughput between a supplier and a consumer, and so are all others then (see `sweep --help`). A folder of `sweep` can be resumed if it has \
udp or tcp, and the same options.

Examples:
  deckwatch overhead
  deckwatch overhead --carriers corba --sizes 256,1024,8192
  deckwatch overhead --carriers corba,omniorb,cyclonedds --sizes 64,1024 --iterations 5
  deckwatch overhead --iterations 3 --messages 500 --json
  deckwatch overhead --resume results/overhead-1")]
pub(crate) struct Args {
    /// Carriers that are compared with udp and tcp: corba, corba-oneway, event, rt-event, adapters, or `all` of this machine
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
    let method = &args.method;
    let mut compared = method.carriers(&args.carriers)?;
    let transports = carriers(&TRANSPORTS.map(str::to_owned))?;
    // In the order of the table of carriers, which is that of the colours.
    let all = CarrierRef::all().chain(found().carriers());
    compared.carriers = all
        .filter(|carrier| transports.contains(carrier) || compared.carriers.contains(carrier))
        .collect();
    let compared = (compared, Axes::default());
    method.carry_out("overhead", compared, (sizes(&args.sizes)?, None), overhead)
}
