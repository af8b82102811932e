//! `deckwatch channel`: an event channel for anyone's suppliers and consumers.

mod federation;
mod group;
mod real_time;
mod scheduled;
mod served;
mod stored;
mod typed;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use deckwatch_event::{
    ChannelOptions, EventChannel, EventChannelFactory, TypedEventChannel, WhenFull, limits,
};
use deckwatch_naming::user::{Existing, bind_with_contexts};
use deckwatch_orb::cos_naming::NamingContextRef;
use deckwatch_orb::{Access, Orb};

use crate::guarded::{GuardArgs, Refusals};
use crate::marking::Marking;
use crate::serve::{ReachArgs, ServeArgs};
use real_time::Started;
use served::Served;

/// Serve an event channel: COS, typed or real-time, or a factory of channels
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  deckwatch channel --ior-file nav.ior
  deckwatch channel --bind deckwatch/NAV --names corbaloc::ship:2809/NameService
  deckwatch channel --factory --listen 0.0.0.0:11169 --access ship-access.toml --bind EventChannelFactory \\
      --names corbaloc::ship:2809/NameService
  eventc -n NAV corbaloc::ship:11169/omniEvents
  deckwatch channel --queue 1000 --when-full disconnect:30 --memory 64
  deckwatch channel --real-time --schedule scenarios/schedule-nav.toml --bind NAV \\
      --names corbaloc::ship:2809/NameService
  deckwatch channel --real-time --scheduler corbaloc::ship:10015/ScheduleService --lane-priorities 10:30
  deckwatch channel --real-time --dispatching lanes:10000,20000 --order deadline --dscp by-priority
  deckwatch channel --real-time --listen ship:7000 --store nav.store --ior-file nav.ior
  deckwatch channel --real-time --listen 0.0.0.0:0 --access shore-access.toml --bind NAV --names corbaloc::shore:2809/NameService \\
      --federate corbaname::ship:2809#NAV --multicast 239.255.0.1:10001 --multicast-interface 192.0.2.7
  deckwatch channel --real-time --group ship1:7000,ship2:7000 --listen ship1:7000 --ior-file nav.ior
  deckwatch channel --real-time --listen 0.0.0.0:0 --access nav-access.toml --bind NAV \\
      --names corbaloc::ship:2809/NameService
  deckwatch channel --listen 10.1.0.5:7000 --reach 10.2.0.0/16 --ior-file nav.ior
  deckwatch channel --typed ship.idl --interface IDL:Ship/Nav:1.0 --ior-file nav.ior

A COS channel has the push and the pull model on both sides.

A typed channel passes on the calls of interfaces that it knows from IDL files: their operations have `in` parameters \
only, return nothing and raise nothing. Consumers that pull use an interface with `Pull` before its name, such as \
IDL:Ship/PullNav:1.0: for each operation `o` with `in` parameters it has `void o(out ...)` and `boolean try_o(out ...)`.

A factory has the interfaces of omniEvents': `eventc` and any client of CosLifeCycle::GenericFactory create channels.

Without --access, this host may do everything, and others may consume events and look at counts. An access file has rules
such as these; `deckwatch schema access` prints its schema:
  [[allow]]
  who = [\"10.1.0.0/16\", \"uid:1000\"]
  may = [\"supply\"]
  types = [\"20-29\"]

A channel ends with SIGINT or SIGTERM, or when a client destroys it; a factory ends with SIGINT or SIGTERM.")]
pub(crate) struct Args {
    #[command(flatten)]
    serve: ServeArgs,
    #[command(flatten)]
    reach: ReachArgs,
    /// Bind the channel or the factory to this name; contexts on the way are made
    #[arg(long, value_name = "NAME", requires = "names")]
    bind: Option<String>,
    /// Reference of the naming service, or a file that holds it
    #[arg(long, value_name = "REFERENCE", requires = "bind")]
    names: Option<String>,
    /// Serve a factory, whose clients create channels; `corbaloc::HOST:PORT/omniEvents` leads to it
    #[arg(long, conflicts_with = "typed")]
    factory: bool,
    /// Serve a typed channel for interfaces of this IDL file; may be given several times
    #[arg(
        long,
        value_name = "FILE",
        requires = "interface",
        conflicts_with = "real_time"
    )]
    typed: Vec<PathBuf>,
    /// An interface of the typed channel, by its repository id or scoped name; may be given several times
    #[arg(long, value_name = "INTERFACE", requires = "typed")]
    interface: Vec<String>,
    /// Look for files that the IDL files include in this folder too
    #[arg(short = 'I', long, value_name = "FOLDER", requires = "typed")]
    include: Vec<PathBuf>,
    /// Events that wait for one consumer
    #[arg(long, value_name = "COUNT", default_value_t = limits::QUEUE_LEN_DEFAULT)]
    queue: usize,
    /// What happens when a consumer's queue is full: drop-oldest, drop-newest, or disconnect:SECONDS (drop the oldest,
    /// and disconnect a consumer that has taken no event for so long)
    #[arg(long, value_name = "POLICY", default_value = "drop-oldest", value_parser = when_full)]
    when_full: WhenFull,
    /// MiB that the events of all consumers may take together; the oldest queued event is dropped first [default: 256,
    /// or less where the process may have little memory, by its control group, ulimit -v and the machine]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    memory: Option<u64>,
    /// Seconds that one push to a consumer may take
    #[arg(long, value_name = "SECONDS", default_value_t = limits::PUSH_TIMEOUT_DEFAULT.as_secs(),
        value_parser = clap::value_parser!(u64).range(1..))]
    push_timeout: u64,
    /// Pushes to one consumer of a COS or typed channel that may be under way before a reply must come. With more than
    /// 1, a consumer with several threads may serve its events in another order
    #[arg(long, value_name = "COUNT", default_value_t = 1, conflicts_with = "real_time",
        value_parser = clap::value_parser!(u16).range(1..=i64::from(limits::WINDOW_MAX)))]
    window: u16,
    /// Milliseconds until a pulled supplier that had no event is asked again
    #[arg(long, value_name = "MS", default_value_t = limits::PULL_PERIOD_DEFAULT.as_millis() as u64,
        value_parser = clap::value_parser!(u64).range(1..=limits::PULL_PERIOD_MAX.as_millis() as u64))]
    pull_period: u64,
    /// Keep the administration in this file: after a crash and a restart, references work and clients are connected
    /// again. With port 0 the channel listens at the port that it had before
    #[arg(long, value_name = "FILE", conflicts_with_all = ["factory", "typed"])]
    store: Option<PathBuf>,
    /// Percent of the places for consumers, suppliers and waiting proxies that one address, or one user of this host,
    /// may hold; beyond it IMP_LIMIT is raised
    #[arg(long, value_name = "PERCENT", default_value_t = limits::SHARE_PERCENT_DEFAULT,
        value_parser = clap::value_parser!(u8).range(1..=100))]
    share_per_peer: u8,
    /// Mark the packets of all TCP connections and of --multicast with this differentiated services codepoint, 0 to 63
    /// (46 is expedited forwarding); or by-priority: a real-time channel's to a consumer with that of the consumer's
    /// priority, and those of --multicast with that of priority 0
    #[arg(long, value_name = "DSCP")]
    dscp: Option<Marking>,
    #[command(flatten)]
    guard: GuardArgs,
    #[command(flatten)]
    real_time: real_time::RealTimeArgs,
    #[command(flatten)]
    federation: federation::FederationArgs,
}

/// Parses a policy for full queues.
fn when_full(text: &str) -> Result<WhenFull, String> {
    let expected = "write drop-oldest, drop-newest, or disconnect:30 for 30 seconds".to_owned();
    let seconds = |text: &str| text.parse().ok().filter(|seconds| *seconds > 0);
    match text.split_once(':') {
        None if text == "drop-oldest" => Ok(WhenFull::DropOldest),
        None if text == "drop-newest" => Ok(WhenFull::DropNewest),
        Some(("disconnect", after)) => seconds(after)
            .map(|after| WhenFull::Disconnect(Duration::from_secs(after)))
            .ok_or(expected),
        _ => Err(expected),
    }
}

impl Args {
    /// The options of the channel, or of each channel of a factory.
    fn options(&self, access: Access) -> ChannelOptions {
        ChannelOptions {
            queue_len: self.queue,
            when_full: self.when_full,
            size_max: self
                .memory
                .map_or_else(limits::channel_size_default, |mib| {
                    usize::try_from(mib << 20).unwrap_or(usize::MAX)
                }),
            push_timeout: Duration::from_secs(self.push_timeout),
            window: self.window,
            pull_period: Duration::from_millis(self.pull_period),
            share_percent: self.share_per_peer,
            access: Some(access),
        }
    }
}

/// Binds what is served to the name of `--bind`.
fn bind(args: &Args, orb: &Orb, served: &Served) -> anyhow::Result<()> {
    if let (Some(name), Some(names)) = (&args.bind, &args.names) {
        let names = crate::reference::target(orb, names)?;
        bind_with_contexts(
            &NamingContextRef::unchecked_narrow(names),
            name,
            served.reference(),
            Existing::Replace,
        )
        .with_context(|| format!("cannot bind {name}"))?;
    }
    Ok(())
}

pub(crate) fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    let interfaces = match typed::interfaces(&args.typed, &args.include, &args.interface)? {
        Ok(interfaces) => interfaces,
        Err(status) => return Ok(status),
    };
    let members = group::members(&args.real_time.group);
    let access = args.guard.access(args.bind.clone(), members)?;
    let store = match &args.store {
        Some(file) => Some(stored::open(file, &mut args.serve.listen)?),
        None => None,
    };
    let audit = args.guard.audit()?;
    args.serve.marking = args.dscp;
    let orb = args.serve.orb(audit.as_ref(), Some(&args.reach))?;
    args.serve.reload_with(&args.guard);
    if let Some(store) = &store {
        stored::keep_port(store, &orb)?;
    }
    let options = args.options(access);
    let out_of_bounds = || format!("a queue holds 1 to {} events", limits::QUEUE_LEN_MAX);
    let mut served = if args.real_time.is_asked() {
        match args
            .real_time
            .start(&orb, &options, (store, &args.serve.listen))?
        {
            Started::Channel(channel) => {
                let federation = args.federation.start(&orb, &channel.channel, args.dscp)?;
                Served::RealTime(channel, federation)
            }
            Started::Member(member, scheduled) => Served::Member(member, scheduled),
        }
    } else if let Some(store) = store {
        let channel = EventChannel::start_stored(&orb, options, store);
        Served::Channel(channel.context("cannot start from the store")?)
    } else if args.factory {
        Served::Factory(EventChannelFactory::start(&orb, options).with_context(out_of_bounds)?)
    } else if !interfaces.is_empty() {
        let channel = TypedEventChannel::start(&orb, interfaces, options);
        Served::Typed(channel.with_context(out_of_bounds)?)
    } else {
        Served::Channel(EventChannel::start(&orb, options).with_context(out_of_bounds)?)
    };
    bind(&args, &orb, &served)?;
    let refusals = Refusals::default();
    args.serve.serve_until(&orb, served.reference(), || {
        refusals.look(|| served.take_refusals());
        served.has_ended()
    })?;
    refusals.print(served.take_refusals());
    served.close();
    orb.shutdown(true)?;
    if let Some(audit) = &audit {
        audit.close();
    }
    served.print_counts();
    served.check_end()?;
    Ok(ExitCode::SUCCESS)
}
