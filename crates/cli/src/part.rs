//! `deckwatch part`: one process of a run, started by `deckwatch run` and by nobody else.

use std::io::BufReader;
use std::process::ExitCode;

/// Play one part of a run; its plan comes as one line of JSON on standard input
#[derive(clap::Args)]
#[command(hide = true)]
pub(crate) struct Args {}

pub(crate) fn run(_: Args) -> anyhow::Result<ExitCode> {
    // Unlocked, because input is read from a thread of its own.
    deckwatch_scenario::part::run(BufReader::new(std::io::stdin()), std::io::stdout())?;
    Ok(ExitCode::SUCCESS)
}
