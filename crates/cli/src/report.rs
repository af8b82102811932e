//! `deckwatch report`: writes the report of a run again, or compares several runs or experiments.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::output::outln;

/// Write the report of a run, a bench or an experiment again, or compare several runs, sweeps, overheads or grids
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  deckwatch report results/nav\n  deckwatch report results/nav results/nav-loaded -o compare.html\n  deckwatch report results/sweep-loopback results/sweep-gigabit -o networks.html"
)]
pub(crate) struct Args {
    /// Result folders: one of a bench or an experiment; several of runs, each with its result.json and samples.parquet;
    /// or several of sweeps, of overheads or of grids, whose curves share their figures
    #[arg(required = true, value_name = "FOLDER")]
    folders: Vec<PathBuf>,

    /// Write the report to this file [default: report.html in the folder; for several runs, in the current folder]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let path = args
        .output
        .unwrap_or_else(|| match args.folders.as_slice() {
            [folder] => folder.join(deckwatch_report::REPORT_FILE),
            _ => Path::new(deckwatch_report::REPORT_FILE).to_path_buf(),
        });
    deckwatch_report::write_page(&path, &deckwatch_report::build(&args.folders)?)?;
    outln!("{}", path.display())?;
    Ok(ExitCode::SUCCESS)
}
