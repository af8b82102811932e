//! `deckwatch part`: one process of a run, started by `deckwatch run` only.

use std::io::BufReader;
use std::process::ExitCode;

/// Play one part of a run; its plan comes as one line of JSON on standard input
#[derive(clap::Args)]
#[command(hide = true)]
pub(crate) struct Args {}

pub(crate) fn run(_: Args) -> anyhow::Result<ExitCode> {
    // Standard input is not locked, because another thread reads it.
    deckwatch_scenario::part::run(BufReader::new(std::io::stdin()), std::io::stdout())?;
    Ok(ExitCode::SUCCESS)
}
