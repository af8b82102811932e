//! `deckwatch schema`: the JSON Schema of mission files.

use std::process::ExitCode;

use crate::output::outln;

/// Print the JSON Schema of mission files, for editors and checkers
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  deckwatch schema > mission-1.json")]
pub(crate) struct Args {}

pub(crate) fn run(_: Args) -> anyhow::Result<ExitCode> {
    let schema = deckwatch_scenario::mission::schema();
    outln!("{}", serde_json::to_string_pretty(schema)?)?;
    Ok(ExitCode::SUCCESS)
}
