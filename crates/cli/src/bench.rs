//! `deckwatch bench`: the cost of this program's ORB and carriers beside raw sockets and other ORBs.

use std::process::ExitCode;
use std::time::Duration;

use clap::builder::RangedI64ValueParser;
use deckwatch_probe::bench::{self, Attack, Case, Kind, Operation, Settings};
use deckwatch_probe::laboratory::Condition;

use crate::laboratory::{Common, Usual};

/// Measure what calls, messages and events cost beside raw TCP and other ORBs
#[derive(clap::Args)]
#[command(after_help = "\
Every run of a system comes directly beside a run of its baseline, in alternating order. The result is the median of \
the ratios of those pairs with its 95% interval. A target is `met` or `MISSED` only if the whole interval is on that \
side, otherwise `open`, with how many rounds more would probably decide; six rounds are the least. sockperf guards the \
baseline: if raw TCP is slower by more than 3%, nothing is judged. Times are whole round trips. The first bench builds omniORB, JacORB and rustorb \
by their scripts, from installed packages and the package registries. An ORB that cannot be built is skipped, with the \
reason. `pinned` binds both ends to one processor, so that the wake-up of an idle processor is not measured; targets \
are judged there. Real-time classes need CAP_SYS_NICE, counters need root. Ctrl-C ends a bench early and keeps what was \
measured; the exit status is then 130.

Examples:
  deckwatch bench all
  deckwatch bench call --octets 64 --structs 65536 --rounds 25
  deckwatch bench call --conditions pinned,two-cores,default --json
  deckwatch bench counters --insert lock
  deckwatch bench events --quick
  deckwatch bench call --quick --output results/call --report call.html")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Everything below, as one table
    #[command(after_help = "Example:\n  deckwatch bench all --quick")]
    All(AllArgs),
    /// Two-way calls without pause
    #[command(
        after_help = "Example:\n  deckwatch bench call --octets 64 --structs 65536 --rounds 25"
    )]
    Call(CallArgs),
    /// One call every 10 ms
    #[command(after_help = "Example:\n  deckwatch bench rate --condition default")]
    Rate(Plain),
    /// One-way messages, and sequences of structs beside octets
    #[command(after_help = "Example:\n  deckwatch bench stream --without jacorb,rustorb")]
    Stream(Plain),
    /// Calls to one of many active objects
    #[command(after_help = "Example:\n  deckwatch bench objects --objects 10000")]
    Objects(AllArgs),
    /// A client of high priority beside clients of low priority that never pause
    #[command(after_help = "Example:\n  deckwatch bench priority --low-clients 10")]
    Priority(AllArgs),
    /// A client of the high lane, and one of a naming service, while peers attack the server
    #[command(after_help = "\
A server has a high lane, a low lane, an event channel, a naming service and a listener for shared memory. A client calls \
the high lane every 0.8 ms. A peer attacks the low lane and the services, on another processor if there is one, in the \
time-sharing class, without pause and from several addresses. The baseline is the same client of a server that nobody \
attacks. The target is a p99 of at most 1.5 of the undisturbed one.

The last two attacks are on `deckwatch names serve` with its defaults. A client resolves a name of that service every \
0.8 ms. The target is a p99 of at most 2 of the undisturbed one.

  outward-calls        names lead to a server that never answers
  host-names           names lead to host names without an address
  silent-consumer      a consumer that never reads, and events of 1 MiB
  places               consumers, suppliers and contexts, more than one peer may have
  connections          connections with a part of a request, more than are accepted
  unfinished-messages  requests of 15 MiB without their last octet, more than there is room for
  shared-memory        shared-memory connections that stay silent, more than are accepted
  cancels              64 KiB of CancelRequests behind the first fragment of a request
  silent-contexts      contexts lead to a server that never answers, 100 names a second
  circular-contexts    names of 64 components, each leads back through a relay, 10 names a second

Examples:
  deckwatch bench attacks --rounds 25
  deckwatch bench attacks --attacks cancels,connections --json
  deckwatch bench attacks --attacks silent-contexts,circular-contexts")]
    Attacks(AttackArgs),
    /// Events through COS and real-time channels to one consumer and to 35, beside a raw TCP fan-out
    #[command(after_help = "\
An event has 384 octets. Its time is from the beginning of the push to the last consumer's receipt, by \
CLOCK_MONOTONIC. The channels are a process, and the supplier and all consumers are another. The consumers are of one \
ORB (one endpoint), or have an ORB and a thread each. The baseline is a relay that reads each message and writes it to \
each consumer over a connection of its own; its consumers are one thread, or a thread each. The pushes of the COS \
channel are two-way, those of the real-time channel and the relay's messages are one-way. In a stream, at most 64 \
events have not reached all consumers. A real-time event is also measured beside --connections consumers of other \
events, and at high priority beside a flow of low priority that never pauses. omniEvents, if it is installed, \
and TAO's real-time channel, if TAO_ROOT tells where it is built, run beside ours with the same supplier and consumers. \
A mission of the carriers corba, event and rt-event is run in each round. Then the channels' allocations, locks and \
system calls for an event are counted, and their memory for each of --connections idle consumers.

Examples:
  deckwatch bench events --rounds 25
  deckwatch bench events --quick --condition default --json
  deckwatch bench events --connections 10000")]
    Events(AllArgs),
    /// Heap allocations, locks of every kind, futex calls and system calls of a request at the server
    #[command(after_help = "\
Locks are those of the C library, ours, and those of Rust's library. The last are functions only in a build without \
optimisation; in an optimised one they are inlined, and only a contended one shows, as a futex call. `--insert lock` \
takes one of each kind and makes one futex call.

Example:
  deckwatch bench counters --insert lock")]
    Counters(Plain),
    /// Memory of an idle server, and of one with many connections
    #[command(after_help = "Example:\n  deckwatch bench memory --connections 100 --json")]
    Memory(AllArgs),
}

#[derive(clap::Args)]
struct Plain {
    /// Processors and scheduling class of both ends [default: pinned; of `call`: pinned,spinning; of `all`: every one]
    #[arg(
        long,
        visible_alias = "condition",
        value_enum,
        value_delimiter = ',',
        value_name = "WHERE"
    )]
    conditions: Vec<Where>,
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
struct CallArgs {
    /// Sizes of octet sequences [default: 64,1024,8192,65536, unless --structs is given]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = size())]
    octets: Vec<u32>,
    /// Sizes in octets of sequences of ComplexStruct, 40 octets each [default: 64,1024,65536, unless --octets is given]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = size())]
    structs: Vec<u32>,
    /// Measure calls over TLS 1.3, with a certificate at each end, beside the same calls over plain TCP
    #[arg(long, conflicts_with = "structs")]
    tls: bool,
    #[command(flatten)]
    plain: Plain,
}

#[derive(clap::Args)]
struct AllArgs {
    /// Number of active objects
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    objects: u32,
    /// Number of clients of low priority
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    low_clients: u16,
    /// Number of connections, and of idle consumers of a channel
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    connections: u16,
    #[command(flatten)]
    plain: Plain,
}

#[derive(clap::Args)]
struct AttackArgs {
    /// The attacks, by name [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = attack)]
    attacks: Vec<Attack>,
    #[command(flatten)]
    plain: Plain,
}

fn attack(word: &str) -> Result<Attack, String> {
    Attack::of_word(word).ok_or_else(|| {
        let all = Attack::ALL.map(Attack::word).join(", ");
        format!("there is no such attack; those are {all}")
    })
}

fn size() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=8 << 20)
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Where {
    /// Both ends on one processor, SCHED_FIFO
    Pinned,
    /// Each end on a processor of its own, SCHED_FIFO
    TwoCores,
    /// Each end on a processor of its own, time sharing
    Apart,
    /// On the processors that the kernel chooses, time sharing
    Default,
    /// Each end on a processor of its own, time sharing, spinning
    Spinning,
}

impl From<Where> for Condition {
    fn from(place: Where) -> Self {
        match place {
            Where::Pinned => Self::Pinned,
            Where::TwoCores => Self::TwoCores,
            Where::Apart => Self::Apart,
            Where::Default => Self::Default,
            Where::Spinning => Self::Spinning,
        }
    }
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let with = |kinds: &[Kind], args: &AllArgs| -> anyhow::Result<Settings> {
        Ok(Settings {
            objects: args.objects as usize,
            low_clients: args.low_clients.into(),
            connections: args.connections.into(),
            ..settings(kinds, &args.plain)?
        })
    };
    let (settings, plain) = match args.action {
        Action::All(args) => (with(&Kind::ALL, &args)?, args.plain),
        Action::Call(args) if args.tls => {
            let calls = match args.octets[..] {
                [] => Kind::Tls.cases(),
                _ => Kind::over_tls(calls(&args.octets, &[])),
            };
            let settings = settings(&[Kind::Tls], &args.plain)?;
            (Settings { calls, ..settings }, args.plain)
        }
        Action::Call(args) => {
            let calls = calls(&args.octets, &args.structs);
            let settings = settings(&[Kind::Call], &args.plain)?;
            (Settings { calls, ..settings }, args.plain)
        }
        Action::Rate(plain) => (settings(&[Kind::Rate], &plain)?, plain),
        Action::Stream(plain) => (settings(&[Kind::Stream], &plain)?, plain),
        Action::Objects(args) => (with(&[Kind::Objects], &args)?, args.plain),
        Action::Priority(args) => (with(&[Kind::Priority], &args)?, args.plain),
        Action::Attacks(args) => {
            let calls = match args.attacks[..] {
                [] => Kind::Attacks.cases(),
                ref chosen => chosen.iter().copied().map(Case::under).collect(),
            };
            let settings = settings(&[Kind::Attacks], &args.plain)?;
            (Settings { calls, ..settings }, args.plain)
        }
        Action::Events(args) => (with(&[Kind::Events], &args)?, args.plain),
        Action::Counters(plain) => (settings(&[Kind::Counters], &plain)?, plain),
        Action::Memory(args) => (with(&[Kind::Memory], &args)?, args.plain),
    };
    let name = match settings.kinds[..] {
        [kind] => format!("bench-{}", kind.word()),
        _ => "bench-all".to_owned(),
    };
    let common = &plain.common;
    common.carry_out(&name, |tell, keep| bench::run(&settings, tell, keep))
}

/// A run with rare calls takes three times the run time, at most 850 ms.
const USUAL: Usual = Usual {
    rounds: 9,
    run_time: Duration::from_millis(300),
    quick_run_time: Duration::from_millis(100),
};

fn settings(kinds: &[Kind], plain: &Plain) -> anyhow::Result<Settings> {
    let conditions = match plain.conditions[..] {
        [] if kinds.len() > 1 => Condition::ALL.to_vec(),
        [] if kinds == [Kind::Call] => vec![Condition::Pinned, Condition::Spinning],
        [] => vec![Condition::Pinned],
        ref chosen => chosen.iter().map(|place| (*place).into()).collect(),
    };
    Ok(Settings {
        setup: plain.common.setup(&USUAL)?,
        kinds: kinds.to_vec(),
        calls: Kind::Call.cases(),
        conditions,
        objects: 1,
        low_clients: 1,
        connections: 1,
    })
}

fn calls(octets: &[u32], structs: &[u32]) -> Vec<Case> {
    if octets.is_empty() && structs.is_empty() {
        return Kind::Call.cases();
    }
    let of = |kind, sizes: &[u32]| -> Vec<Case> {
        let case = |size: &u32| Case::new(kind, *size as usize);
        sizes.iter().map(case).collect()
    };
    [
        of(Operation::Octets, octets),
        of(Operation::Structs, structs),
    ]
    .concat()
}
