//! `deckwatch schedule`: priorities for declared operations, and whether each meets its deadline.

use std::path::PathBuf;
use std::process::ExitCode;

use comfy_table::Table;
use comfy_table::presets::UTF8_BORDERS_ONLY;
use deckwatch_probe::dispatch;
use deckwatch_scenario::mission::DurationText;
use deckwatch_scenario::schedule::{Document, ScheduleFile, factor_in_words, page, response};
use deckwatch_sched::limits::SENSITIVITY_OPERATIONS_MAX;
use deckwatch_sched::{Strategy, in_words};

use crate::exit::INFEASIBLE;
use crate::output::{errln, outln};

/// Compute the priorities of operations, and whether each meets its deadline
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  deckwatch schedule scenarios/schedule-nav.toml
  deckwatch schedule nav.toml --strategy edf --overhead measured --report nav.html
  deckwatch schedule nav.toml --json

Exit status: 0 if every deadline is met, 1 if one can be missed, 2 for a malformed file.
`deckwatch schema schedule` prints the schema of the file. The chapter docs/book/scheduling.md explains each number.")]
pub(crate) struct Args {
    /// The schedule file (TOML)
    file: PathBuf,
    /// Another strategy than the file's
    #[arg(long, value_name = "NAME", value_parser = ["rms", "edf", "mlf", "muf", "rms-dyn"])]
    strategy: Option<String>,
    /// Processor time of each dispatch, instead of the file's: a duration, or `measured` on this machine
    #[arg(long, value_name = "DURATION")]
    overhead: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Write a page with a picture of the critical instant
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let file = ScheduleFile::load(&args.file)?;
    let mut settings = file.settings;
    if let Some(strategy) = args.strategy.as_deref().and_then(Strategy::named) {
        settings.strategy = strategy;
    }
    let source = match args.overhead.as_deref() {
        Some("measured") => {
            let measured = dispatch::measure()?;
            settings.overhead_ns = measured.p99_ns;
            measured.words()
        }
        Some(text) => {
            let given: DurationText = text.parse().map_err(|error| {
                anyhow::anyhow!("--overhead {text} is not understood. {error} Or write `measured`.")
            })?;
            settings.overhead_ns = u64::try_from(given.0.as_nanos())?;
            "given on the command line".to_owned()
        }
        None if file.has_overhead => "given in the file".to_owned(),
        None => "none given; --overhead measured takes this machine's".to_owned(),
    };
    let schedule = file.schedule(settings)?;
    let document = Document::of(&file, &schedule, &source)?;
    if let Some(path) = &args.report {
        let html = deckwatch_report::schedule_page(&page(&file, &schedule, &document)?)?;
        deckwatch_report::write_page(path, &html)?;
        errln!("The report is in {}.", path.display());
    }
    if args.json {
        outln!("{}", serde_json::to_string_pretty(&document)?)?;
    } else {
        print(&document)?;
    }
    if document.is_feasible {
        Ok(ExitCode::SUCCESS)
    } else {
        Ok(INFEASIBLE.into())
    }
}

fn print(document: &Document) -> anyhow::Result<()> {
    let verdict = if document.is_feasible {
        "feasible: every deadline is met"
    } else {
        "INFEASIBLE: a deadline can be missed"
    };
    outln!(
        "Schedule {}, {}: {verdict}.",
        document.name,
        document.strategy
    )?;
    outln!("{}", operations(document))?;
    let bounds = if document.bounds_apply {
        ""
    } else {
        " (they do not apply here)"
    };
    outln!(
        "Utilisation {:.4}. Bounds of the papers{bounds}: Liu and Layland {:.4} for {} timers; \
         hyperbolic product {:.4}, at most 2.",
        document.utilisation,
        document.liu_layland_bound,
        document.tasks,
        document.hyperbolic_product
    )?;
    outln!(
        "Overhead of a dispatch: {}, {}. Hyperperiod: {}.",
        in_words(document.overhead_ns),
        document.overhead_source,
        document.hyperperiod()
    )?;
    for (severity, words) in &document.anomalies {
        outln!("{severity}: {words}")?;
    }
    match (document.is_feasible, document.advice.factor) {
        (true, Some(factor)) => {
            outln!(
                "Every execution time can be multiplied by {}, and all deadlines are still met.",
                factor_in_words(factor)
            )?;
        }
        (true, None) => {}
        (false, _) if document.operations.len() > SENSITIVITY_OPERATIONS_MAX => {
            outln!(
                "Above {SENSITIVITY_OPERATIONS_MAX} operations, changes of single ones are not searched."
            )?;
            for sentence in &document.advice.sentences {
                outln!("To make it feasible, {sentence}.")?;
            }
        }
        (false, _) if document.advice.sentences.is_empty() => {
            outln!("No change of one operation alone makes it feasible.")?;
        }
        (false, _) => {
            outln!("Any one of these makes it feasible:")?;
            for sentence in &document.advice.sentences {
                outln!("  {sentence}")?;
            }
        }
    }
    Ok(())
}

fn operations(document: &Document) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    table.set_header([
        "operation",
        "priority",
        "queue",
        "worst case",
        "period",
        "deadline",
        "worst response",
        "worst case that fits",
    ]);
    let cell = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), in_words);
    for one in &document.operations {
        let priority = match (one.priority, one.sub_priority) {
            (Some(priority), Some(sub)) => format!("{priority}.{sub}"),
            _ => "-".to_owned(),
        };
        let late = if one.meets_deadline == Some(false) {
            " LATE"
        } else {
            ""
        };
        table.add_row([
            one.name.clone(),
            priority,
            one.dispatch.unwrap_or("-").to_owned(),
            in_words(one.worst_case_ns),
            cell(one.period_ns),
            cell(one.deadline_ns),
            format!("{}{late}", response(one)),
            cell(one.worst_case_max_ns),
        ]);
    }
    table
}
