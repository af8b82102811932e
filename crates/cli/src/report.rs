//! `deckwatch report`: makes the report of one run anew, or lays several side by side.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use deckwatch_probe::bench::Bench;
use deckwatch_report::RESULT_FILE;

use crate::output::outln;

/// Make the report of a run, a bench or an experiment anew, or lay several runs side by side on equal axes
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  deckwatch report results/nav\n  deckwatch report results/nav results/nav-loaded -o compare.html"
)]
pub(crate) struct Args {
    /// Folders that runs wrote, each with its result.json and samples.parquet; or one of a bench or an experiment
    #[arg(required = true, value_name = "FOLDER")]
    folders: Vec<PathBuf>,

    /// Where to write; by default report.html in the folder or, of several runs, in the current one
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
    deckwatch_report::write_page(&path, &page(&args.folders)?)?;
    outln!("{}", path.display())?;
    Ok(ExitCode::SUCCESS)
}

fn page(folders: &[PathBuf]) -> anyhow::Result<String> {
    if let [folder] = folders
        && let Some(bench) = Bench::load(&folder.join(RESULT_FILE))?
    {
        return Ok(deckwatch_report::experiment_page(&bench.as_experiment())?);
    }
    Ok(deckwatch_report::build(folders)?)
}
