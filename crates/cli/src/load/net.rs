//! `deckwatch load net`: messages on a link, and their sink.

mod ends;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use deckwatch_load::{Buffer, NetPlan, Pace, Pattern, Protocol, SinkPlan, Work};
use deckwatch_testbed::{Emulation, LinkSpec, NetworkSpec};

use super::Common;
use crate::mission_args::{carried, emulation, network};

/// Keep a link busy with messages over UDP or TCP, at a rate or a share of the link, or take them with --serve
#[derive(clap::Args)]
#[command(after_help = NOTES)]
pub(super) struct Args {
    /// Address and port of the sink; with --network or --hosts the name of its host [default for --network: SERVER]
    #[arg(long, value_name = "SINK", required_unless_present_any = ["serve", "network"])]
    to: Option<String>,
    /// Take messages of both protocols at this address and port; other hosts reach 0.0.0.0:7007, not the default 127.0.0.1:7007
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:7007", conflicts_with_all = ["to", "network"])]
    serve: Option<SocketAddr>,
    /// Protocol of the messages
    #[arg(long, value_enum, value_name = "PROTOCOL", default_value_t = Over::Udp)]
    over: Over,
    /// Octets of a message
    #[arg(long, value_name = "OCTETS", default_value_t = 1024)]
    size: u32,
    /// Payload a second, as 500kb/s, 10Mb/s or 1Gb/s
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<f64>,
    /// Share of the link, as 0.5 or 50%, with all that frames add
    #[arg(long, value_name = "SHARE", value_parser = super::share, conflicts_with = "rate")]
    share: Option<f64>,
    /// As much as the socket takes
    #[arg(long, conflicts_with_all = ["rate", "share"])]
    flood: bool,
    /// When messages are due: `constant`, `poisson`, or `bursts:N` of N messages at once
    #[arg(long, value_name = "HOW", default_value = "constant", value_parser = pattern)]
    arrivals: Pattern,
    /// Seed of Poisson arrivals
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// The link whose share is meant, where it is not emulated: fast-ethernet, gigabit-ethernet or atm-oc3
    #[arg(long, value_name = "LINK", value_parser = network, conflicts_with = "network")]
    link: Option<NetworkSpec>,
    /// Send buffer of the socket: octets, `max` for the system's largest, or `default` [default: max for a flood]
    #[arg(long, value_name = "SIZE", value_parser = buffer)]
    buffer: Option<Buffer>,
    /// The sender's interface whose counters are read [default: the one that leads to the sink]
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Emulate this network between the two ends, which are hosts then. Needs the privileges of `testbed`
    #[arg(long, value_name = "NETWORK", value_parser = network)]
    network: Option<NetworkSpec>,
    /// Carry its frames by shapers of the kernel, or by a relay that gives each frame its time
    #[arg(long, value_name = "KIND", value_parser = emulation, requires = "network")]
    emulation: Option<Emulation>,
    /// Send between two hosts of this mission file, which have `reach` or `address`. Name them with --from and --to
    #[arg(long, value_name = "FILE", requires_all = ["from", "to"], conflicts_with_all = ["network", "serve"])]
    hosts: Option<PathBuf>,
    /// Copy this program to the hosts of --hosts that lack it, into the folder .deckwatch there
    #[arg(long, requires = "hosts")]
    install: bool,
    /// The host that sends: of --hosts, or the name of the emulated one [default there: CLIENT]
    #[arg(long, value_name = "HOST")]
    from: Option<String>,
    /// Port of the sink on its host of --network or --hosts
    #[arg(long, value_name = "PORT", default_value_t = 7007, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    #[command(flatten)]
    common: Common,
}

const NOTES: &str = "\
What passes the link is read from the kernel's counters of the interface, once a second. A share counts what frames \
add on the line: preamble, header, check sequence and gap of Ethernet, or the cells of ATM. Traffic of others on the \
interface counts too. A rate or share is held if the mean over the seconds after the first is within 2% or 2 points, \
and nine of ten seconds are too, give or take one.

Without a rate or a share the load is a flood. A flood over TCP with messages of 1,024 octets and the largest buffers \
is the load of a thesis, whose messages waited in the queues of TCP.

Exit status: 0 if the target was held, or none was asked for; 1 if it was not held.

Examples:
  deckwatch load net --serve 10.0.0.2:7007 --for 1h
  deckwatch load net --to 10.0.0.2:7007 --rate 10Mb/s --arrivals poisson
  deckwatch load net --to 10.0.0.2:7007 --share 0.9 --link gigabit-ethernet --size 1472
  deckwatch load net --to 10.0.0.2:7007 --over tcp --flood
  deckwatch load net --network fast-ethernet --share 50% --arrivals bursts:8 --for 5s
  deckwatch load net --hosts ship.toml --from RTS --to SONAR --share 50% --link gigabit-ethernet --for 1min";

/// Protocols.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Over {
    /// Datagrams
    Udp,
    /// A stream
    Tcp,
}

fn rate(text: &str) -> Result<f64, String> {
    let units = [("Gb/s", 1e9), ("Mb/s", 1e6), ("kb/s", 1e3), ("b/s", 1.0)];
    let found = units.iter().find_map(|(unit, factor)| {
        let digits = text.strip_suffix(unit)?;
        digits.parse::<f64>().ok().map(|number| number * factor)
    });
    let found = found.filter(|rate| *rate > 0.0 && rate.is_finite());
    found.ok_or_else(|| "write bits a second, such as 500kb/s, 10Mb/s or 1Gb/s".to_owned())
}

fn pattern(text: &str) -> Result<Pattern, String> {
    match text {
        "constant" => Ok(Pattern::Constant),
        "poisson" => Ok(Pattern::Poisson { seed: 1 }),
        text => {
            let size = text.strip_prefix("bursts:").and_then(|it| it.parse().ok());
            let size = size.filter(|size| *size > 0);
            let size = size.ok_or(
                "write `constant`, `poisson`, or `bursts:` and a number, such as bursts:8",
            )?;
            Ok(Pattern::Bursts { size })
        }
    }
}

fn buffer(text: &str) -> Result<Buffer, String> {
    match text {
        "default" => Ok(Buffer::Default),
        "max" => Ok(Buffer::Max),
        text => {
            let octets = text
                .parse()
                .ok()
                .filter(|octets| (1..=BUFFER_MAX).contains(octets));
            let octets = octets.ok_or("write octets up to 64 MiB, `max`, or `default`")?;
            Ok(Buffer::Octets(octets))
        }
    }
}

/// The largest socket buffer. Larger ones hide every loss.
const BUFFER_MAX: u32 = 64 << 20;

impl Args {
    fn plan(&self, to: SocketAddr, link: Option<LinkSpec>) -> NetPlan {
        let pace = match (self.rate, self.share) {
            (Some(bits_per_s), _) => Pace::Rate { bits_per_s },
            (None, Some(share)) => Pace::Share { share },
            (None, None) => Pace::Flood,
        };
        let usual = if pace == Pace::Flood {
            Buffer::Max
        } else {
            Buffer::Default
        };
        NetPlan {
            to,
            protocol: match self.over {
                Over::Udp => Protocol::Udp,
                Over::Tcp => Protocol::Tcp,
            },
            size_octets: self.size,
            pace,
            pattern: match self.arrivals {
                Pattern::Poisson { .. } => Pattern::Poisson { seed: self.seed },
                other => other,
            },
            link,
            buffer: self.buffer.unwrap_or(usual),
            interface: self.interface.clone(),
            patience: Duration::ZERO,
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(at) = args.serve {
        return args.common.carry_out(Work::Sink(SinkPlan { at }));
    }
    if let Some(network) = args.network.clone() {
        return ends::emulated(args, &carried(network, args.emulation)?);
    }
    let link = match &args.link {
        Some(link) => Some(
            link.link()
                .context("loopback has no rate, so that no share of it can be held")?,
        ),
        None => None,
    };
    if let Some(file) = &args.hosts {
        return ends::far(args, file, link);
    }
    ensure!(
        args.from.is_none(),
        "--from names a host of --network or of --hosts: give one of these."
    );
    let to = args.to.as_deref().unwrap_or_default();
    let Ok(to) = to.parse() else {
        bail!(
            "`{to}` is no address of a sink. Write an IP address and a port, such as 10.0.0.2:7007."
        );
    };
    args.common.carry_out(Work::Net(args.plan(to, link)))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Program {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn a_sink_without_an_address_takes_messages_of_this_host_alone() {
        let parsed = Program::try_parse_from(["net", "--serve"]).expect("it is right");
        let at = parsed.args.serve.expect("an address");
        assert!(at.ip().is_loopback(), "{at}");
    }
}
