//! What the commands of the papers' experiments share: their common arguments, the result folder, and the hidden ends.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context as _;
use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use deckwatch_meter::experiment::{ExperimentDocument, FigureKind};
use deckwatch_os::signal;
use deckwatch_probe::bench::{BenchError, Condition, Progress};
use deckwatch_probe::experiment::Staging;
use deckwatch_report::{REPORT_FILE, RESULT_FILE};
use deckwatch_scenario::run::ResultFolder;

use crate::bench::table;
use crate::exit;
use crate::mission_args::run_time;
use crate::version::BUILD;
use crate::words;

/// The arguments that every experiment takes.
#[derive(clap::Args)]
pub(crate) struct Common {
    /// How often everything is measured; the systems take turns in each round
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: Option<u16>,
    /// How long one run takes
    #[arg(long, value_name = "TIME", value_parser = run_time)]
    run_time: Option<Duration>,
    /// Where the two ends run
    #[arg(long, value_enum)]
    condition: Option<Where>,
    /// A look in a few seconds: fewer points, one round, short runs
    #[arg(long)]
    quick: bool,
    /// Keep every servant busy for so long in each call, to see that a delay shows
    #[arg(long, value_name = "TIME", value_parser = run_time)]
    servant_delay: Option<Duration>,
    /// Let our servants take a lock so many times in each call, to see that locks are counted
    #[arg(long, value_name = "N", default_value_t = 0)]
    servant_locks: u32,
    /// Write the result to this folder, which must be new or empty [default: results/NAME-TIME]
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Print the result document, which is JSON, instead of tables
    #[arg(long)]
    json: bool,
}

/// Where ends run.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Where {
    /// Both ends on one processor, SCHED_FIFO
    Pinned,
    /// Each end on a processor of its own, SCHED_FIFO
    TwoCores,
    /// Wherever the kernel puts them, time sharing
    Default,
}

impl Where {
    /// As the library has it.
    pub(crate) const fn condition(self) -> Condition {
        match self {
            Self::Pinned => Condition::Pinned,
            Self::TwoCores => Condition::TwoCores,
            Self::Default => Condition::Default,
        }
    }
}

/// What an experiment does where nothing is said.
pub(crate) struct Usual {
    pub(crate) condition: Where,
    pub(crate) rounds: u16,
    pub(crate) run_time: Duration,
    pub(crate) quick_run_time: Duration,
}

impl Common {
    /// Whether a quick look is asked for.
    pub(crate) const fn is_quick(&self) -> bool {
        self.quick
    }

    /// What the experiment is told.
    pub(crate) fn staging(&self, usual: &Usual) -> anyhow::Result<Staging> {
        let commit = BUILD
            .commit
            .map_or(String::new(), |commit| format!(" ({commit})"));
        let (rounds, run_time) = if self.quick {
            (1, usual.quick_run_time)
        } else {
            (usual.rounds, usual.run_time)
        };
        Ok(Staging {
            program: std::env::current_exe().context("The program's own path cannot be told.")?,
            version: format!("{}{commit}", BUILD.version),
            condition: self.condition.unwrap_or(usual.condition).condition(),
            rounds: self.rounds.unwrap_or(rounds).into(),
            run_budget: self.run_time.unwrap_or(run_time),
            servant_delay: self.servant_delay.unwrap_or_default(),
            servant_locks: self.servant_locks,
        })
    }

    /// Runs an experiment with its progress shown, and writes its folder: the result, and the report with the paper's figures.
    pub(crate) fn carry_out(
        &self,
        name: &str,
        experiment: impl FnOnce(&mut dyn FnMut(&Progress)) -> Result<ExperimentDocument, BenchError>,
    ) -> anyhow::Result<ExitCode> {
        signal::catch_ending().context("Signals cannot be caught.")?;
        // Before anything is measured: a folder that is not to be had would lose it all.
        let folder = ResultFolder::make(self.output.as_deref(), name, SystemTime::now())?;
        let mut progress = table::Progress::new();
        let mut shown: Option<(usize, Instant)> = None;
        let found = experiment(&mut |at| {
            // There are hundreds of runs in a round: a line now and then, and one for each round.
            let is_new = |(round, when): (usize, Instant)| {
                round != at.round || when.elapsed() > PROGRESS_EVERY
            };
            if shown.is_none_or(is_new) {
                shown = Some((at.round, Instant::now()));
                progress.show(at);
            }
        });
        drop(progress);
        let found = match found {
            Ok(found) => found,
            Err(error) => return exit::without_result(error),
        };
        // What cannot be written is shown all the same.
        let written = write(&found, folder.path());
        let mut out = crate::output::stdout();
        if self.json {
            writeln!(out, "{}", serde_json::to_string_pretty(&found)?)?;
        } else {
            print(&mut out, &found)?;
            if let Ok(report) = &written {
                writeln!(out, "\nReport: {}", report.display())?;
            }
        }
        out.flush()?;
        written?;
        exit::of_measurement(&found.warnings, folder.path())
    }
}

/// Writes the result and its report; gives the report's path.
fn write(found: &ExperimentDocument, folder: &Path) -> anyhow::Result<PathBuf> {
    found.save(&folder.join(RESULT_FILE))?;
    let report = folder.join(REPORT_FILE);
    deckwatch_report::write_page(&report, &deckwatch_report::experiment_page(found)?)?;
    Ok(report)
}

/// How often a line of progress is shown.
const PROGRESS_EVERY: Duration = Duration::from_secs(2);

/// The figures as tables, a row a point of the horizontal axis.
fn print(out: &mut impl io::Write, found: &ExperimentDocument) -> io::Result<()> {
    writeln!(out, "{}: {}.", found.title, found.condition)?;
    for figure in found.figures.iter().take(TABLES_MAX) {
        writeln!(
            out,
            "\n{} ({}): {}",
            figure.title, figure.source, figure.y.label
        )?;
        let mut table = Table::new();
        table.load_style(UTF8_BORDERS_ONLY);
        let labels = figure.curves.iter().map(|curve| curve.label.clone());
        table.set_header([figure.x.label.clone()].into_iter().chain(labels));
        let mut places: Vec<f64> = (figure.curves.iter())
            .flat_map(|curve| curve.points.iter().map(|point| point.x))
            .collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        for x in places {
            let word = match figure.kind {
                FigureKind::Bars => figure.x.words.get(x as usize).cloned(),
                FigureKind::Lines => None,
            };
            let head = word.unwrap_or_else(|| words::count(x as u64));
            let cell = |points: &[deckwatch_meter::experiment::Point]| {
                let found = points.iter().find(|point| point.x == x);
                found.map_or_else(|| "-".to_owned(), |point| value(point.y, &figure.y.unit))
            };
            let cells = figure.curves.iter().map(|curve| cell(&curve.points));
            table.add_row([head].into_iter().chain(cells));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        writeln!(out, "{table}")?;
    }
    if found.figures.len() > TABLES_MAX {
        writeln!(
            out,
            "\nThe other {} figures stand in the report.",
            found.figures.len() - TABLES_MAX
        )?;
    }
    for skip in &found.skipped {
        writeln!(out, "skipped: {}: {}", skip.what, skip.reason)?;
    }
    for warning in &found.warnings {
        writeln!(out, "warning: {}", warning.text)?;
    }
    Ok(())
}

/// Figures printed as tables: those of one experiment that say most come first.
const TABLES_MAX: usize = 6;

fn value(value: f64, unit: &str) -> String {
    match unit {
        "ns" => format!("{:.2} us", value / 1e3),
        "share" => format!("{:.1} %", value * 1e2),
        "bit/s" => format!("{:.1} Mbit/s", value / 1e6),
        _ => format!("{value:.3}"),
    }
}
