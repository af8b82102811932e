//! What `bench` and the experiments share: options, the result folder, the report and the exit status.

mod bench_tables;
mod figure_tables;
mod grid_tables;
mod progress;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use clap::builder::PossibleValuesParser;
use deckwatch_meter::experiment::ExperimentDocument;
use deckwatch_os::signal;
use deckwatch_probe::laboratory::{self, Condition, Inserted, LaboratoryError, Setup};
use deckwatch_report::{REPORT_FILE, RESULT_FILE};
use deckwatch_scenario::run::ResultFolder;

use crate::exit;
use crate::mission_args::run_time;
use crate::version::BUILD;
use crate::words;

/// The options of `bench` and of every experiment.
#[derive(clap::Args)]
pub(crate) struct Common {
    /// Number of rounds, in each of which the systems take turns [default: bench 9, costs 5, others 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    rounds: Option<u16>,
    /// Duration of one run [default: bench 300ms, invert 4s, costs 800ms, invoke 50ms, marshal 30ms]
    #[arg(long, value_name = "TIME", value_parser = run_time)]
    run_time: Option<Duration>,
    /// A quick look: one round, short runs, and fewer points
    #[arg(long)]
    quick: bool,
    /// Leave these systems out
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = PossibleValuesParser::new(laboratory::PEERS))]
    without: Vec<String>,
    /// Let our servants do additional work in each request, to check that it shows: `allocation`, `lock` (one lock of each
    /// kind and a futex call), `call`, these with a number such as `lock:7`, or a time to keep busy
    #[arg(long, value_name = "WORK", visible_alias = "servant-delay", value_parser = inserted)]
    insert: Option<Inserted>,
    #[command(flatten)]
    destination: Destination,
}

/// Where a result goes, and its form.
#[derive(clap::Args)]
pub(crate) struct Destination {
    /// Write the result to this folder, which must be new or empty [default: results/NAME-TIME]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Write the report to this file [default: report.html in the result folder]
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print the result document, which is JSON, instead of tables
    #[arg(long)]
    json: bool,
}

/// A measurement: it shows its progress, and may hand out documents before its end.
type Tell<'t> = &'t mut dyn FnMut(&laboratory::Progress);
type Keep<'k> = &'k mut dyn FnMut(&ExperimentDocument);

fn inserted(words: &str) -> Result<Inserted, String> {
    if let Some(named) = Inserted::of_words(words) {
        return Ok(named);
    }
    let delay = run_time(words);
    delay
        .map(Inserted::Delay)
        .map_err(|error| format!("Write `allocation`, `lock`, `call` or a time. {error}"))
}

/// The options of every experiment.
#[derive(clap::Args)]
pub(crate) struct ExperimentOptions {
    /// Processors and scheduling class of both ends
    #[arg(long, value_enum, value_name = "WHERE")]
    condition: Option<Where>,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// The conditions of experiments.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Where {
    /// Both ends on one processor, SCHED_FIFO
    Pinned,
    /// Each end on a processor of its own, SCHED_FIFO
    TwoCores,
    /// Each end on a processor of its own, time sharing
    Apart,
    /// On the processors that the kernel chooses, time sharing
    Default,
}

impl From<Where> for Condition {
    fn from(place: Where) -> Self {
        match place {
            Where::Pinned => Self::Pinned,
            Where::TwoCores => Self::TwoCores,
            Where::Apart => Self::Apart,
            Where::Default => Self::Default,
        }
    }
}

impl ExperimentOptions {
    /// The chosen condition, or `usual`.
    pub(crate) fn condition(&self, usual: Where) -> Condition {
        self.condition.unwrap_or(usual).into()
    }
}

/// The defaults of a bench or an experiment.
pub(crate) struct Usual {
    pub(crate) rounds: u16,
    pub(crate) run_time: Duration,
    pub(crate) quick_run_time: Duration,
}

impl Common {
    pub(crate) const fn is_quick(&self) -> bool {
        self.quick
    }

    /// The chosen setup, with the defaults of `usual`.
    pub(crate) fn setup(&self, usual: &Usual) -> anyhow::Result<Setup> {
        let (rounds, run_time) = if self.quick {
            (1, usual.quick_run_time)
        } else {
            (usual.rounds, usual.run_time)
        };
        Ok(Setup {
            program: std::env::current_exe().context("The program's own path cannot be read.")?,
            version: version(),
            rounds: self.rounds.unwrap_or(rounds).into(),
            run_budget: self.run_time.unwrap_or(run_time),
            inserted: self.insert.unwrap_or_default(),
            without: self.without.clone(),
        })
    }

    /// As [`Destination::carry_out`].
    pub(crate) fn carry_out(
        &self,
        name: &str,
        measure: impl FnOnce(Tell<'_>, Keep<'_>) -> Result<ExperimentDocument, LaboratoryError>,
    ) -> anyhow::Result<ExitCode> {
        self.destination
            .carry_out(name, |_, tell, keep| measure(tell, keep))
    }
}

/// The version of this program and its commit.
pub(crate) fn version() -> String {
    let commit = BUILD.commit;
    let commit = commit.map_or(String::new(), |commit| format!(" ({commit})"));
    format!("{}{commit}", BUILD.version)
}

impl Destination {
    /// Runs `measure` with its progress shown. Writes the result and the report, and prints the tables or the document.
    ///
    /// `measure` gets the result folder. It may hand documents to its last argument before the end: they are written
    /// too, so that a later failure loses nothing.
    pub(crate) fn carry_out(
        &self,
        name: &str,
        measure: impl FnOnce(&Path, Tell<'_>, Keep<'_>) -> Result<ExperimentDocument, LaboratoryError>,
    ) -> anyhow::Result<ExitCode> {
        signal::catch_ending().context("Signals cannot be caught.")?;
        // The folder is made before the measurement: a folder that cannot be made must not cost a result.
        let folder = ResultFolder::make(self.output.as_deref(), name, SystemTime::now())?;
        self.carry_out_in(&folder, measure)
    }

    /// As [`Self::carry_out`], in a folder that exists.
    pub(crate) fn carry_out_in(
        &self,
        folder: &ResultFolder,
        measure: impl FnOnce(&Path, Tell<'_>, Keep<'_>) -> Result<ExperimentDocument, LaboratoryError>,
    ) -> anyhow::Result<ExitCode> {
        signal::catch_ending().context("Signals cannot be caught.")?;
        let result = folder.path().join(RESULT_FILE);
        let mut progress = progress::Progress::new();
        // An error is ignored here: the whole document is written at the end, and that write reports it.
        let mut keep = |found: &ExperimentDocument| drop(found.save(&result));
        let found = measure(folder.path(), &mut |at| progress.show(at), &mut keep);
        drop(progress);
        let found = match found {
            Ok(found) => found,
            Err(error) => return exit::without_result(error),
        };
        let report = self.report.clone();
        let report = report.unwrap_or_else(|| folder.path().join(REPORT_FILE));
        // The result is printed even if the files cannot be written.
        let written = found.save(&result).map_err(anyhow::Error::from);
        let written = written.and_then(|()| {
            let page = deckwatch_report::experiment_page(&found)?;
            Ok(deckwatch_report::write_page(&report, &page)?)
        });
        let mut out = crate::output::stdout();
        if self.json {
            writeln!(out, "{}", serde_json::to_string_pretty(&found)?)?;
        } else {
            print(&mut out, &found)?;
            if written.is_ok() {
                writeln!(out, "\nReport: {}", report.display())?;
            }
        }
        out.flush()?;
        written?;
        exit::of_measurement(&found.warnings, folder.path())
    }
}

/// Prints the tables of a bench or of an experiment, and what is missing or doubtful.
fn print(out: &mut impl io::Write, found: &ExperimentDocument) -> io::Result<()> {
    if found.experiment.starts_with("bench ") {
        bench_tables::print(out, found)?;
    } else if found.experiment == "grid" {
        grid_tables::print(out, found)?;
    } else {
        figure_tables::print(out, found)?;
        bench_tables::print_standings(out, &found.standings)?;
    }
    if let Some(fidelity) = &found.fidelity {
        for line in words::fidelity(&fidelity.emulated, &fidelity.not_emulated) {
            writeln!(out, "{line}")?;
        }
    }
    for skip in &found.skipped {
        writeln!(out, "skipped: {}: {}", skip.what, skip.reason)?;
    }
    for note in &found.notes {
        writeln!(out, "note: {note}.")?;
    }
    for warning in &found.warnings {
        writeln!(out, "warning: {}", warning.text)?;
    }
    Ok(())
}
