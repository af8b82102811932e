//! `deckwatch channel`: an event channel for anyone's suppliers and consumers.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use deckwatch_event::{ChannelOptions, EventChannel};
use deckwatch_naming::user::{Existing, bind_with_contexts};
use deckwatch_orb::cos_naming::NamingContextRef;

use crate::output::errln;
use crate::serve::ServeArgs;

/// Serve a COS event channel, push model on both sides
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  deckwatch channel --listen 0.0.0.0:0 --ior-file nav.ior
  deckwatch channel --bind deckwatch/NAV --names corbaloc::ship:2809/NameService

It ends with SIGINT or SIGTERM, or when a client destroys the channel.")]
pub(crate) struct Args {
    #[command(flatten)]
    serve: ServeArgs,
    /// Bind the channel to this name; contexts on the way are made
    #[arg(long, value_name = "NAME", requires = "names")]
    bind: Option<String>,
    /// Reference of the naming service, or a file that holds it
    #[arg(long, value_name = "REFERENCE", requires = "bind")]
    names: Option<String>,
    /// Events that wait for one consumer before the oldest gives way
    #[arg(long, value_name = "COUNT", default_value_t = deckwatch_event::limits::QUEUE_LEN_DEFAULT)]
    queue: usize,
    /// Seconds that one push to a consumer may take
    #[arg(long, value_name = "SECONDS", default_value_t = deckwatch_event::limits::PUSH_TIMEOUT_DEFAULT.as_secs(),
        value_parser = clap::value_parser!(u64).range(1..))]
    push_timeout: u64,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let orb = args.serve.orb()?;
    let options = ChannelOptions {
        queue_len: args.queue,
        push_timeout: Duration::from_secs(args.push_timeout),
    };
    let out_of_bounds = || {
        format!(
            "a queue holds 1 to {} events",
            deckwatch_event::limits::QUEUE_LEN_MAX
        )
    };
    let channel = EventChannel::start(&orb, options).with_context(out_of_bounds)?;
    if let (Some(name), Some(names)) = (&args.bind, &args.names) {
        let names = crate::reference::target(&orb, names)?;
        bind_with_contexts(
            &NamingContextRef::unchecked_narrow(names),
            name,
            channel.reference().object(),
            Existing::Replace,
        )
        .with_context(|| format!("cannot bind {name}"))?;
    }
    args.serve
        .serve(&orb, channel.reference().object(), || channel.has_ended())?;
    let counts = channel.counts();
    errln!(
        "events received {}, delivered {}, displaced {}; failed pushes {}, consumers lost {}, suppliers lost {}",
        counts.received,
        counts.delivered,
        counts.displaced,
        counts.failed,
        counts.consumers_lost,
        counts.suppliers_lost
    );
    Ok(ExitCode::SUCCESS)
}
