//! `deckwatch part`: one process of a run, started by `deckwatch run` only.

use std::io::{BufReader, stdin, stdout};
use std::process::ExitCode;

use deckwatch_scenario::{part, reach};

use crate::version::BUILD;

/// Play one part of a run; its plan comes as one line of JSON on standard input
#[derive(clap::Args)]
#[command(hide = true)]
pub(crate) struct Args {
    /// The coordinator is on another machine: make a folder for the part, and write its files back
    #[arg(long)]
    far: bool,
    /// A load writes a line a second
    #[arg(long, conflicts_with = "far")]
    seconds: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    // Standard input is not locked, because another thread reads it.
    let input = BufReader::new(stdin());
    if args.far {
        reach::run_far(&BUILD.in_words(), input, stdout())?;
    } else {
        part::run(input, stdout(), args.seconds)?;
    }
    Ok(ExitCode::SUCCESS)
}
