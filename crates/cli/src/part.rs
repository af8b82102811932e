//! `deckwatch part`: one process of a run, started by `deckwatch run` only.

use std::io::{BufReader, stdin, stdout};
use std::process::ExitCode;

use deckwatch_probe::laboratory;
use deckwatch_scenario::reach::FarFolder;
use deckwatch_scenario::{part, reach};

use crate::laboratory_end;
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
    /// The part or load is far from the measurement of this name: it has a private folder there
    #[arg(long, conflicts_with = "far")]
    run: Option<String>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    // A load writes to the disk of the folder in which it was started.
    let claim = if args.seconds {
        FarFolder::make
    } else {
        FarFolder::enter
    };
    let place = match args.run.as_deref().map(claim).transpose() {
        Ok(place) => place,
        Err(error) => return laboratory_end::refuse(&error),
    };
    // A load shows by its seconds that it lives.
    if place.is_some() && !args.seconds {
        laboratory::beat();
    }
    // Standard input is not locked, because another thread reads it.
    let input = BufReader::new(stdin());
    if args.far {
        reach::run_far(&BUILD.in_words(), input, stdout())?;
    } else {
        part::run(input, stdout(), args.seconds)?;
    }
    Ok(ExitCode::SUCCESS)
}
