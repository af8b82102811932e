//! `deckwatch ior`: explains an object reference.

use std::process::ExitCode;

use anyhow::Context as _;
use deckwatch_giop::{Ior, ObjectUrl};

use crate::output::{out, outln};

/// Explain an object reference: where it leads, what it carries
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  deckwatch ior IOR:010000002b000000...
  deckwatch ior channel.ior
  deckwatch ior corbaloc::ship:2809/NameService")]
pub(crate) struct Args {
    /// IOR:, corbaloc: or corbaname:, a file that holds one, or `-` for standard input
    reference: String,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let url: ObjectUrl = crate::reference::read(&args.reference)?.parse()?;
    let (ior, name): (Option<Ior>, _) = match url {
        ObjectUrl::Ior(ior) => (Some(ior), String::new()),
        ObjectUrl::Corbaloc(url) => (url.to_ior(&deckwatch_os::unix::host_name())?, String::new()),
        ObjectUrl::Corbaname(url) => (
            url.context.to_ior(&deckwatch_os::unix::host_name())?,
            url.name,
        ),
    };
    let ior =
        ior.context("it names an initial reference of the ORB that reads it, and no address")?;
    out!("{}", ior.explain())?;
    if !name.is_empty() {
        outln!("the name {name} is resolved there")?;
    }
    Ok(ExitCode::SUCCESS)
}
