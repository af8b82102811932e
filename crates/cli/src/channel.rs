//! `deckwatch channel`: an event channel for anyone's suppliers and consumers.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use deckwatch_event::{ChannelCounts, ChannelOptions, EventChannel, EventChannelFactory, limits};
use deckwatch_naming::user::{Existing, bind_with_contexts};
use deckwatch_orb::ObjectRef;
use deckwatch_orb::cos_naming::NamingContextRef;

use crate::output::errln;
use crate::serve::ServeArgs;

/// Serve a COS event channel, push and pull model on both sides, or a factory of channels
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  deckwatch channel --listen 0.0.0.0:0 --ior-file nav.ior
  deckwatch channel --bind deckwatch/NAV --names corbaloc::ship:2809/NameService
  deckwatch channel --factory --listen 0.0.0.0:11169 --bind EventChannelFactory \\
      --names corbaloc::ship:2809/NameService
  eventc -n NAV corbaloc::ship:11169/omniEvents

A factory has the interfaces of omniEvents': `eventc` and any client of CosLifeCycle::GenericFactory create channels.

A channel ends with SIGINT or SIGTERM, or when a client destroys it; a factory ends with SIGINT or SIGTERM.")]
pub(crate) struct Args {
    #[command(flatten)]
    serve: ServeArgs,
    /// Bind the channel or the factory to this name; contexts on the way are made
    #[arg(long, value_name = "NAME", requires = "names")]
    bind: Option<String>,
    /// Reference of the naming service, or a file that holds it
    #[arg(long, value_name = "REFERENCE", requires = "bind")]
    names: Option<String>,
    /// Serve a factory, whose clients create channels; `corbaloc::HOST:PORT/omniEvents` leads to it
    #[arg(long)]
    factory: bool,
    /// Events that wait for one consumer before the oldest gives way
    #[arg(long, value_name = "COUNT", default_value_t = limits::QUEUE_LEN_DEFAULT)]
    queue: usize,
    /// Seconds that one push to a consumer may take
    #[arg(long, value_name = "SECONDS", default_value_t = limits::PUSH_TIMEOUT_DEFAULT.as_secs(),
        value_parser = clap::value_parser!(u64).range(1..))]
    push_timeout: u64,
    /// Milliseconds until a pulled supplier that had no event is asked again
    #[arg(long, value_name = "MS", default_value_t = limits::PULL_PERIOD_DEFAULT.as_millis() as u64,
        value_parser = clap::value_parser!(u64).range(1..=limits::PULL_PERIOD_MAX.as_millis() as u64))]
    pull_period: u64,
}

/// What is served.
enum Served {
    Channel(EventChannel),
    Factory(EventChannelFactory),
}

impl Served {
    fn reference(&self) -> &ObjectRef {
        match self {
            Self::Channel(channel) => channel.reference().object(),
            Self::Factory(factory) => factory.reference().object(),
        }
    }

    fn has_ended(&self) -> bool {
        match self {
            Self::Channel(channel) => channel.has_ended(),
            Self::Factory(_) => false,
        }
    }

    fn counts(&self) -> ChannelCounts {
        match self {
            Self::Channel(channel) => channel.counts(),
            Self::Factory(factory) => factory.counts(),
        }
    }
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let orb = args.serve.orb()?;
    let options = ChannelOptions {
        queue_len: args.queue,
        push_timeout: Duration::from_secs(args.push_timeout),
        pull_period: Duration::from_millis(args.pull_period),
    };
    let out_of_bounds = || format!("a queue holds 1 to {} events", limits::QUEUE_LEN_MAX);
    let served = if args.factory {
        EventChannelFactory::start(&orb, options).map(Served::Factory)
    } else {
        EventChannel::start(&orb, options).map(Served::Channel)
    };
    let served = served.with_context(out_of_bounds)?;
    if let (Some(name), Some(names)) = (&args.bind, &args.names) {
        let names = crate::reference::target(&orb, names)?;
        bind_with_contexts(
            &NamingContextRef::unchecked_narrow(names),
            name,
            served.reference(),
            Existing::Replace,
        )
        .with_context(|| format!("cannot bind {name}"))?;
    }
    args.serve
        .serve(&orb, served.reference(), || served.has_ended())?;
    print_counts(&served.counts());
    Ok(ExitCode::SUCCESS)
}

fn print_counts(counts: &ChannelCounts) {
    errln!(
        "events received {}, delivered {}, displaced {}; failed pushes {}, pulls refused {}, consumers lost {}, suppliers lost {}",
        counts.received,
        counts.delivered,
        counts.displaced,
        counts.failed,
        counts.pulls_refused,
        counts.consumers_lost,
        counts.suppliers_lost
    );
}
