//! `deckwatch testbed chain`: latencies through chains of switch ports, against theory.

use std::process::ExitCode;

use anyhow::{Context, bail};
use deckwatch_testbed::chain::{Chain, ChainLatency, measure};
use deckwatch_testbed::{Emulation, NetworkSpec, RelayProgram, Testbed};
use serde::Serialize;

use crate::mission_args::{emulation, network};
use crate::output::{errln, outln};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Switch ports of each chain, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "2,4,9", value_parser = clap::value_parser!(u32).range(2..=100))]
    ports: Vec<u32>,
    /// Shares of the middle port that are used, in percent.
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', default_value = "0,50,75,90,95,98", value_parser = share)]
    load: Vec<f64>,
    /// Octets of the UDP payload.
    #[arg(long, value_name = "OCTETS", value_delimiter = ',', default_value = "1024", value_parser = clap::value_parser!(u32).range(8..=65_000))]
    bytes: Vec<u32>,
    /// The network whose links the chain has.
    #[arg(long, default_value = "atm-oc3", value_parser = network)]
    network: NetworkSpec,
    /// Packets of each measurement; 20000 simulated, 500 real if not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: Option<u32>,
    /// Compute in virtual time, without frames and privileges.
    #[arg(long)]
    simulate: bool,
    /// What carries real frames: `relay`, or `spinning-relay`, which never sleeps and needs a processor of its own.
    #[arg(long, value_name = "KIND", value_parser = relay, default_value = "relay", conflicts_with = "simulate")]
    emulation: Emulation,
    /// Seed of the arrivals.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

const EXAMPLES: &str = "\
Examples:
  deckwatch testbed chain --simulate
  deckwatch testbed chain --simulate --ports 2 --load 0,95,98 --bytes 1024,2048,4096,8192
  deckwatch testbed chain --network fast-ethernet --ports 4 --load 50,90
  deckwatch testbed chain --network fast-ethernet --load 0,50 --emulation spinning-relay";

/// One row, as JSON.
#[derive(Serialize)]
struct Row {
    network: String,
    simulated: bool,
    /// What carried the frames, if they were real.
    emulation: Option<&'static str>,
    payload_bytes: u32,
    load: f64,
    ports: usize,
    #[serde(flatten)]
    latency: ChainLatency,
}

pub(super) fn run(args: &Args, as_json: bool) -> anyhow::Result<ExitCode> {
    let link = args
        .network
        .link()
        .filter(|_| args.network.layout.is_none());
    let Some(link) = link else {
        bail!("A chain needs an emulated network by name, for example --network fast-ethernet.");
    };
    if let Some(long) = args
        .bytes
        .iter()
        .find(|bytes| **bytes + HEADERS > link.mtu_bytes)
    {
        let most = link.mtu_bytes - HEADERS;
        bail!(
            "{long} octets do not fit a packet of {}; write at most {most}.",
            args.network.name
        );
    }
    if !args.simulate && Testbed::isolate_if_needed()? {
        errln!("Hosts are emulated in a user namespace of this process, without root.");
    }
    let count = args
        .count
        .unwrap_or(if args.simulate { 20_000 } else { 500 });
    let mut rows = Vec::new();
    if !as_json {
        outln!(
            "Latency from A to B over {}, {}, microseconds.",
            args.network.name,
            kind(args)
        )?;
        outln!("{HEADING}")?;
    }
    for &payload_bytes in &args.bytes {
        for &load in &args.load {
            for &ports in &args.ports {
                let chain = Chain {
                    link: link.clone(),
                    ports: ports as usize,
                    load: load / 100.0,
                    packet_bytes: payload_bytes + HEADERS,
                    count,
                    seed: args.seed,
                };
                let row = row(args, &chain)?;
                if !as_json {
                    outln!("{}", line(&row))?;
                }
                rows.push(row);
            }
        }
    }
    if as_json {
        outln!("{}", serde_json::to_string(&rows)?)?;
    } else {
        outln!(
            "theory: the mean of an endless run; at 95% and more, a run of this length may be a third away from it."
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures a chain.
fn row(args: &Args, chain: &Chain) -> anyhow::Result<Row> {
    Ok(Row {
        network: args.network.name.clone(),
        simulated: args.simulate,
        emulation: carrier(args),
        payload_bytes: chain.packet_bytes - HEADERS,
        load: chain.load,
        ports: chain.ports,
        latency: latency(args, chain)?,
    })
}

fn latency(args: &Args, chain: &Chain) -> anyhow::Result<ChainLatency> {
    if args.simulate {
        return Ok(chain.simulate());
    }
    let (ports, percent) = (chain.ports, chain.load * 100.0);
    let what = || format!("a chain of {ports} ports at {percent}% cannot be measured");
    measure(chain, args.emulation, &RelayProgram::this()?).with_context(what)
}

/// What carries the frames, if they are real.
fn carrier(args: &Args) -> Option<&'static str> {
    (!args.simulate).then(|| args.emulation.name())
}

fn kind(args: &Args) -> String {
    match carrier(args) {
        None => "in virtual time".to_owned(),
        Some(relay) => format!("with real frames by a {relay} (the hosts' own time included)"),
    }
}

/// Parses the name of an emulation that carries a chain.
fn relay(name: &str) -> anyhow::Result<Emulation> {
    match emulation(name) {
        Ok(found) if found != Emulation::Shaper => Ok(found),
        _ => bail!("A relay carries a chain: write relay or spinning-relay."),
    }
}

const HEADING: &str =
    " octets   load  ports        min       mean     theory        max  packets   lost";

fn line(row: &Row) -> String {
    let latency = &row.latency;
    format!(
        "{:>7} {:>5}% {:>6} {:>10.1} {:>10.1} {:>10.1} {:>10.1} {:>8} {:>6}",
        row.payload_bytes,
        row.load * 100.0,
        row.ports,
        latency.min_ns as f64 / 1e3,
        latency.mean_ns / 1e3,
        latency.theory_ns / 1e3,
        latency.max_ns as f64 / 1e3,
        latency.arrived,
        latency.lost
    )
}

fn share(text: &str) -> anyhow::Result<f64> {
    match text.parse() {
        Ok(share) if (0.0..=99.0).contains(&share) => Ok(share),
        _ => bail!("Write a share from 0 to 99 percent; a queue at 100% grows without end."),
    }
}

/// Octets of the IPv4 and UDP headers.
const HEADERS: u32 = 28;
