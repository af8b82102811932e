//! `deckwatch relay`: the process that carries the frames of an emulated network, started by a testbed only.

use std::process::ExitCode;

/// Carry the frames of a testbed's network; its plan comes as one line of JSON on standard input
#[derive(clap::Args)]
#[command(hide = true)]
pub(crate) struct Args {}

pub(crate) fn run(_: Args) -> anyhow::Result<ExitCode> {
    deckwatch_testbed::relay::process::serve()?;
    Ok(ExitCode::SUCCESS)
}
