//! `deckwatch sweep`: transactions, latency and throughput over message sizes and carriers.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use deckwatch_carrier::carrier::{BufferSize, NetworkPriority};
use deckwatch_carrier::carriers::{CarrierRef, find_in, found};
use deckwatch_meter::experiment::ExperimentDocument;
use deckwatch_meter::metrics::METRICS;
use deckwatch_probe::laboratory::{Inserted, LaboratoryError, Progress, Setup};
use deckwatch_probe::limits::{
    SWEEP_HOPS_MAX, SWEEP_MESSAGES_MAX, SWEEP_SERVANTS_MAX, SWEEP_STREAMS_MAX,
};
use deckwatch_probe::sweep::{
    Axes, FarEnd, Instrument, JOURNAL_FILE, Network, Sweep, parse_sizes, sweep,
};
use deckwatch_scenario::run::ResultFolder;
use deckwatch_testbed::{Emulation, NetworkSpec};

use crate::far_ends::far_ends;
use crate::laboratory::{Destination, Where, version};
use crate::marking;
use crate::mission_args::{ALL, carried, duration, emulation, left_out, network};

/// Measure transactions, latency and throughput over message sizes and carriers
#[derive(clap::Args)]
#[command(after_help = after_help())]
pub(crate) struct Args {
    /// Carriers to compare, which take turns at each size: udp, tcp, corba, corba-oneway, event, rt-event, adapters, or
    /// `all` of this machine
    #[arg(long, value_name = "CARRIERS", value_delimiter = ',', default_values = ["udp", "tcp"])]
    carriers: Vec<String>,
    /// Message sizes in octets, at least 8: numbers, ranges FIRST..LAST:STEP, `ffi` (steps of 1, 10, 100, 1000 up to
    /// 10,000), or `nttcp` (16 octets to 16 KiB every 16)
    #[arg(long, value_name = "SIZES", default_value = "nttcp")]
    sizes: String,
    /// Sizes of the socket buffers of udp and tcp, each of which is compared: octets, as 8192 or 8K, `default` (the
    /// kernel's), or `own` (those of a mission: 256 KiB to send, 1 MiB to receive)
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_values = ["default"], value_parser = buffer)]
    buffers: Vec<BufferSize>,
    /// TCP_NODELAY of tcp: `on` sends small segments at once; `on,off` compares both
    #[arg(long, value_enum, value_name = "HOW", value_delimiter = ',', default_values_t = [NoDelay::On])]
    no_delay: Vec<NoDelay>,
    /// Simultaneous streams, each between processes of its own: 1 to 4, as `1..4` or `1,4`
    #[arg(long, value_name = "NUMBERS", default_value = "1", value_parser = counts::<SWEEP_STREAMS_MAX>)]
    streams: Counts,
    /// Objects of one server that take turns, for corba and corba-oneway: 1 to 1000, as `1,10,100`
    #[arg(long, value_name = "NUMBERS", default_value = "1", value_parser = counts::<SWEEP_SERVANTS_MAX>)]
    servants: Counts,
    /// Hops from process to process until a message is at the server: 1 to 3, as `1..3`
    #[arg(long, value_name = "NUMBERS", default_value = "1", value_parser = counts::<SWEEP_HOPS_MAX>)]
    hops: Counts,
    /// Measure few of the sizes: first some over the whole range, then more where neighbours differ by more than their error
    /// bars. The number is the most that are measured [default: a tenth, at least 17]
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "0")]
    adaptive: Option<usize>,
    #[command(flatten)]
    method: Method,
}

/// Numbers that are compared.
#[derive(Clone)]
struct Counts(Vec<u32>);

/// Parses numbers and ranges of numbers, at most `MAX`.
fn counts<const MAX: u32>(text: &str) -> Result<Counts, String> {
    let mut all = Vec::new();
    for word in text.split(',') {
        let (first, last) = word.split_once("..").unwrap_or((word, word));
        let number = |text: &str| {
            let number = text.parse().ok();
            number.filter(|number| (1..=MAX).contains(number))
        };
        let range = number(first).zip(number(last));
        let range = range.filter(|(first, last)| first <= last);
        let (first, last) = range
            .ok_or_else(|| format!("write numbers from 1 to {MAX}, such as 1,{MAX} or 1..{MAX}"))?;
        all.extend(
            (first..=last)
                .filter(|number| !all.contains(number))
                .collect::<Vec<_>>(),
        );
    }
    Ok(Counts(all))
}

/// Parses the size of a socket buffer.
fn buffer(text: &str) -> Result<BufferSize, String> {
    match text {
        "default" => return Ok(BufferSize::Kernel),
        "own" => return Ok(BufferSize::Own),
        _ => {}
    }
    let (digits, unit) = match text.strip_suffix(['K', 'k']) {
        Some(digits) => (digits, 1_024),
        None => (text, 1),
    };
    let octets = digits
        .parse::<u32>()
        .ok()
        .and_then(|number| number.checked_mul(unit));
    let octets = octets.filter(|octets| (1..=SOCKET_BUFFER_MAX).contains(octets));
    let octets =
        octets.ok_or("write octets up to 64 MiB, such as 8192 or 8K, `default` or `own`")?;
    Ok(BufferSize::Octets(octets))
}

/// The largest socket buffer. Larger ones hide every loss.
const SOCKET_BUFFER_MAX: u32 = 64 << 20;

/// Parses an interval between transactions.
fn interval(text: &str) -> anyhow::Result<Duration> {
    let interval = duration(text)?;
    anyhow::ensure!(
        interval <= INTERVAL_MAX,
        "Transactions begin at least every {INTERVAL_MAX:?}; write for example 1ms or 20ms."
    );
    Ok(interval)
}

/// Parses a differentiated services codepoint.
fn codepoint(text: &str) -> Result<u8, String> {
    marking::codepoint(text).ok_or_else(|| format!("`{text}` is no number from 0 to 63"))
}

/// A longer silence of an end counts as its failure.
const INTERVAL_MAX: Duration = Duration::from_millis(500);

/// TCP_NODELAY.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum NoDelay {
    /// Small segments are sent at once
    On,
    /// A small segment waits until earlier ones are acknowledged
    Off,
}

/// The method of NTTCP: the options of `sweep` and `overhead`.
#[derive(clap::Args)]
pub(crate) struct Method {
    /// NUM_ITERATIONS: measurements of a point
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    iterations: u16,
    /// NUM_MESSAGES: transactions, and messages of the stream, in an iteration
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..=SWEEP_MESSAGES_MAX))]
    messages: u64,
    /// Begin transactions at this interval, such as 1ms, not as soon as the one before is answered. An interval that was
    /// not kept is a warning
    #[arg(long, value_name = "TIME", value_parser = interval)]
    interval: Option<Duration>,
    /// Run these instruments for a second beside each iteration of udp and tcp on loopback, and give ours over theirs
    #[arg(
        long,
        value_enum,
        value_name = "NAMES",
        value_delimiter = ',',
        conflicts_with = "network"
    )]
    beside: Vec<Beside>,
    /// Chooses the random order of the sizes
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// What a datagram does that finds the send buffer full
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = Full::Wait)]
    full: Full,
    /// How the messages of a stream are sent
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Sends::Each)]
    sends: Sends,
    /// Mark the packets of all ends, and of the channels of `event` and `rt-event`, with this differentiated services
    /// codepoint, 0 to 63 (46 is expedited forwarding)
    #[arg(long, value_name = "DSCP", value_parser = codepoint)]
    dscp: Option<u8>,
    /// Emulate this network between the ends, which are two hosts then: fast-ethernet,
    /// gigabit-ethernet, atm-oc3, or the path of a network file. Needs the privileges of `testbed`
    #[arg(long, value_name = "NETWORK", value_parser = network)]
    network: Option<NetworkSpec>,
    /// Carry its frames by shapers of the kernel, or by a relay that gives each frame its time
    #[arg(long, value_name = "KIND", value_parser = emulation, requires = "network")]
    emulation: Option<Emulation>,
    /// Measure between two hosts of this mission file, which have `reach` or `address`. Name them with --from and --to.
    /// The channels of `event` and `rt-event` run at the host that sends to them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["network", "beside", "lose_every", "via"])]
    hosts: Option<PathBuf>,
    /// Copy this program to the hosts of --hosts that lack it, into the folder .deckwatch there
    #[arg(long, requires = "hosts")]
    install: bool,
    /// The client's host: of --hosts, or the name of the emulated one [default there: CLIENT]
    #[arg(long, value_name = "HOST")]
    from: Option<String>,
    /// The server's host: of --hosts, or the name of the emulated one [default there: SERVER]
    #[arg(long, value_name = "HOST")]
    to: Option<String>,
    /// Names of the emulated hosts that pass messages on, in the order of the way [default: HOP1 and HOP2, but for a
    /// network file]
    #[arg(
        long,
        value_name = "HOSTS",
        value_delimiter = ',',
        requires = "network"
    )]
    via: Vec<String>,
    /// Drop the first frame to the server and every Nth after it, to check that the loss shows
    #[arg(long, value_name = "N", requires = "network")]
    lose_every: Option<NonZeroU32>,
    /// Processors and scheduling class of both ends
    #[arg(long, value_enum, value_name = "WHERE", default_value_t = Where::Default)]
    condition: Where,
    /// Search this folder too for carriers in other languages
    #[arg(long, value_name = "FOLDER")]
    adapters: Vec<PathBuf>,
    /// Go on with the sweep in this folder, after its last finished point. Give the same options
    #[arg(long, value_name = "FOLDER", conflicts_with = "output")]
    resume: Option<PathBuf>,
    #[command(flatten)]
    destination: Destination,
}

impl Method {
    /// The carriers of these names, each once; and of `all`, those that cannot be used, each with the reason.
    pub(crate) fn carriers(&self, names: &[String]) -> anyhow::Result<Carriers> {
        find_in(&self.adapters);
        let left_out = if names.iter().any(|name| name == ALL) {
            left_out().map(|one| (one.carrier, one.reason)).collect()
        } else {
            Vec::new()
        };
        let carriers = carriers(names)?;
        Ok(Carriers { carriers, left_out })
    }

    pub(crate) const fn iterations(&self) -> u16 {
        self.iterations
    }

    /// The hosts of a mission file as ends, with this program on them.
    fn far(&self) -> anyhow::Result<Option<[FarEnd; 2]>> {
        let Some(file) = &self.hosts else {
            anyhow::ensure!(
                self.network.is_some() || self.from.is_none() && self.to.is_none(),
                "--from and --to name hosts of --network or of --hosts: give one of these."
            );
            return Ok(None);
        };
        anyhow::ensure!(
            self.condition == Where::Default,
            "Ends on hosts of --hosts run where their kernels put them. Leave --condition out."
        );
        let (Some(from), Some(to)) = (&self.from, &self.to) else {
            anyhow::bail!("Name two hosts of {} with --from and --to.", file.display());
        };
        far_ends(file, [from, to], self.install).map(Some)
    }

    /// The emulated network and the hosts on it.
    fn network(&self) -> anyhow::Result<Option<Network>> {
        let Some(spec) = self.network.clone() else {
            return Ok(None);
        };
        let spec = carried(spec, self.emulation)?;
        if let Some(layout) = &spec.layout
            && (self.from.is_none() || self.to.is_none())
        {
            anyhow::bail!(
                "Name the client's and the server's host with --from and --to: the network {} has {}.",
                spec.name,
                layout.hosts.join(", ")
            );
        }
        Ok(Some(Network {
            from: self.from.clone().unwrap_or_else(|| "CLIENT".to_owned()),
            via: self.via(&spec),
            to: self.to.clone().unwrap_or_else(|| "SERVER".to_owned()),
            lose_every: self.lose_every,
            spec,
        }))
    }

    /// The hosts that pass messages on. Those of a network file are named by the user alone.
    fn via(&self, network: &NetworkSpec) -> Vec<String> {
        if self.via.is_empty() && network.layout.is_none() {
            return (1..SWEEP_HOPS_MAX).map(|hop| format!("HOP{hop}")).collect();
        }
        self.via.clone()
    }

    /// Carries out a sweep over these carriers and sizes.
    pub(crate) fn carry_out(
        &self,
        name: &str,
        (Carriers { carriers, left_out }, axes): (Carriers, Axes),
        (sizes, adaptive): (Vec<u32>, Option<usize>),
        measure: Measure,
    ) -> anyhow::Result<ExitCode> {
        let setup = Setup {
            program: std::env::current_exe().context("The program's own path cannot be read.")?,
            version: version(),
            rounds: self.iterations.into(),
            run_budget: Duration::ZERO,
            inserted: Inserted::default(),
            without: Vec::new(),
        };
        let mut asked = Sweep {
            setup,
            condition: self.condition.into(),
            carriers,
            left_out,
            axes,
            sizes,
            messages: self.messages,
            every: self.interval.unwrap_or_default(),
            in_bulk: self.sends == Sends::Bulk,
            seed: self.seed,
            adaptive,
            network_priority: NetworkPriority {
                dscp: self.dscp,
                socket_priority: None,
            },
            waits: self.full == Full::Wait,
            beside: self.beside.iter().map(|it| (*it).into()).collect(),
            network: self.network()?,
            far: self.far()?,
            journal: PathBuf::new(),
        };
        let measure = |folder: &Path, tell: &mut dyn FnMut(&_), _: &mut dyn FnMut(&_)| {
            asked.journal = folder.join(JOURNAL_FILE);
            measure(&asked, tell)
        };
        let Some(folder) = &self.resume else {
            return self.destination.carry_out(name, measure);
        };
        let journal = folder.join(JOURNAL_FILE);
        anyhow::ensure!(
            journal.is_file(),
            "{} is no folder of a sweep: it has no {JOURNAL_FILE}. Leave --resume out, or name another folder.",
            folder.display()
        );
        let folder = ResultFolder::resume(folder)?;
        self.destination.carry_out_in(&folder, measure)
    }
}

/// The carriers of a sweep.
pub(crate) struct Carriers {
    pub(crate) carriers: Vec<CarrierRef>,
    /// Those that cannot be used, each with the reason.
    left_out: Vec<(String, String)>,
}

impl Carriers {
    /// Leaves out the carriers in other languages.
    pub(crate) fn leave_out_adapters(&mut self, reason: &str) {
        self.carriers.retain(|carrier| {
            let is_adapter = carrier.external().is_some();
            if is_adapter {
                let left_out = (carrier.name().to_owned(), reason.to_owned());
                self.left_out.push(left_out);
            }
            !is_adapter
        });
    }
}

/// A function of `probe` that measures a sweep.
type Measure = fn(&Sweep, &mut dyn FnMut(&Progress)) -> Result<ExperimentDocument, LaboratoryError>;

/// Instruments of others.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Beside {
    /// The median of its ping-pong
    Sockperf,
    /// Its received throughput
    Iperf3,
    /// The median of its round trips of datagrams, one in a millisecond
    Irtt,
    /// Its received throughput
    Nuttcp,
}

impl From<Beside> for Instrument {
    fn from(of: Beside) -> Self {
        match of {
            Beside::Sockperf => Self::Sockperf,
            Beside::Iperf3 => Self::Iperf3,
            Beside::Irtt => Self::Irtt,
            Beside::Nuttcp => Self::Nuttcp,
        }
    }
}

/// How the messages of a stream are sent.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Sends {
    /// Each with a system call of its own, as a program sends that has one message at a time
    Each,
    /// As many with one system call as udp and tcp can: 64 datagrams, or 128 KiB of a stream
    Bulk,
}

/// What happens to a datagram when the send buffer is full.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Full {
    /// It waits for room, as a blocking socket does
    Wait,
    /// It is dropped and counted as a sendto error
    Error,
}

fn after_help() -> String {
    let mut text = "\
Each point has NUM_ITERATIONS iterations. An iteration sends NUM_MESSAGES messages that are answered one by one, and \
then a stream of NUM_MESSAGES without pause. The sizes come in a random order, so that a drift of the machine is not \
taken for an effect of the size. At each size, the carriers take turns. Ctrl-C keeps what was measured; --resume goes \
on behind the last finished point, also after a crash.

Metrics, by the equations of Irey, Harrison and Marlow:
"
    .to_owned();
    for metric in METRICS {
        text += &format!(
            "  EQ {:<2} {} ({}): {}\n",
            metric.equation,
            metric.name,
            metric.unit.words(),
            metric.definition
        );
    }
    text += "\
An adapter (`deckwatch carriers`) is a program that sends by a schedule and answers nothing: it has no transaction time \
and no one-way latency back. Each of its iterations runs a supplier and a consumer, as `deckwatch run` does, twice: with a \
message every millisecond (at most 500), for the one-way latency, and without pause (at most 10,000), for end-to-end \
throughput and data received. The built-in carriers are then measured in the same way beside it. Messages have at least 8 \
octets. An adapter that fails is left out with its reason, and the others go on. Buffers, streams and hops are not varied.

A point has mean, variance, standard deviation (EQ 13 to 15), minimum, maximum, and of times the percentiles that the \
sample supports.

Examples:
  deckwatch sweep --carriers udp,tcp --sizes 16..1024:16 --iterations 5 --messages 200
  deckwatch sweep --sizes ffi --carriers tcp,corba
  deckwatch sweep --carriers all --adaptive
  deckwatch sweep --carriers udp,tcp,zeromq,cyclonedds --sizes 64,1024,8192 --iterations 5
  deckwatch sweep --output results/night
  deckwatch sweep --resume results/night
  deckwatch sweep --carriers udp --sizes 1024,8192 --full error --json
  deckwatch sweep --carriers tcp --buffers 1K,8K,128K,default --no-delay on,off --sizes 64,1024,8192
  deckwatch sweep --carriers udp,corba --streams 1..4 --servants 1,100 --sizes 64,1024
  deckwatch sweep --carriers tcp --hops 1..3 --network fast-ethernet --sizes 64..4096:64
  deckwatch sweep --sizes 64,1472,8192 --beside sockperf --condition pinned
  deckwatch sweep --sizes 64,1024 --carriers udp --interval 1ms --beside irtt
  deckwatch sweep --sizes 64,1472,8192 --beside iperf3,nuttcp --condition two-cores --sends bulk
  deckwatch sweep --network fast-ethernet --sizes 64..8192:64 --messages 500
  deckwatch sweep --network fast-ethernet --emulation relay --sizes 64,1472
  deckwatch sweep --hosts two-machines.toml --from RTS --to SONAR --sizes 64,1024,8192";
    text
}

/// The carriers of these names, each once.
pub(crate) fn carriers(names: &[String]) -> anyhow::Result<Vec<CarrierRef>> {
    let mut all: Vec<CarrierRef> = Vec::new();
    for name in names {
        let named = match name.as_str() {
            ALL => CarrierRef::all().chain(found().carriers()).collect(),
            name => vec![name.parse()?],
        };
        for carrier in named {
            if !all.contains(&carrier) {
                all.push(carrier);
            }
        }
    }
    Ok(all)
}

/// The sizes of an option.
pub(crate) fn sizes(text: &str) -> anyhow::Result<Vec<u32>> {
    let sizes = parse_sizes(text).map_err(anyhow::Error::msg);
    sizes.context("--sizes cannot be used")
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let sizes = sizes(&args.sizes)?;
    anyhow::ensure!(
        args.adaptive.is_none() || args.method.iterations() > 1,
        "--adaptive compares error bars, which one iteration does not have: give --iterations 2 or more"
    );
    let adaptive = args.adaptive.map(|points| match points {
        0 => (sizes.len() / 10).max(17),
        points => points,
    });
    let carriers = args.method.carriers(&args.carriers)?;
    let method = &args.method;
    let axes = Axes {
        buffers: args.buffers,
        delays: (args.no_delay.iter())
            .map(|how| *how == NoDelay::Off)
            .collect(),
        streams: args.streams.0,
        servants: args.servants.0,
        hops: args.hops.0,
    };
    method.carry_out("sweep", (carriers, axes), (sizes, adaptive), sweep)
}
