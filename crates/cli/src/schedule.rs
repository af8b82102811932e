//! `deckwatch schedule`: priorities for declared operations, and whether each meets its deadline.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use comfy_table::Table;
use comfy_table::presets::UTF8_BORDERS_ONLY;
use deckwatch_event::handler_times::reported;
use deckwatch_probe::dispatch;
use deckwatch_scenario::mission::DurationText;
use deckwatch_scenario::schedule::{
    Document, ScheduleFile, factor_in_words, longest_measured, page, response,
};
use deckwatch_sched::limits::SENSITIVITY_OPERATIONS_MAX;
use deckwatch_sched::{Measurements, Strategy, in_words};
use deckwatch_text::escaped;

use crate::exit::INFEASIBLE;
use crate::output::{errln, outln};
use crate::serve::client_orb;
use crate::tls::TlsArgs;

/// Compute the priorities of operations, and whether each meets its deadline
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  deckwatch schedule scenarios/schedule-nav.toml
  deckwatch schedule nav.toml --strategy edf --overhead measured --report nav.html
  deckwatch schedule nav.toml --json
  deckwatch schedule nav.toml --measured corbaloc::ship:10015/ScheduleService

Exit status: 0 if every deadline is met, 1 if one can be missed (with the measured times, if asked for), 2 for a
malformed file.
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
    /// Compare with the execution times that consumers have measured and reported to a scheduling service of Deckwatch:
    /// its reference, or a file that holds it
    #[arg(long, value_name = "REFERENCE")]
    measured: Option<String>,
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
    let mut document = Document::of(&file, &schedule, &source)?;
    if let Some(reference) = &args.measured {
        let measurements = measurements(&file, reference)?;
        document = document.with_measured(&file, &schedule, &measurements);
    }
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
    if document.is_feasible && document.is_feasible_as_measured != Some(false) {
        Ok(ExitCode::SUCCESS)
    } else {
        Ok(INFEASIBLE.into())
    }
}

/// Returns what consumers have reported to a scheduling service of the operations of a file. Operations that the file
/// does not have are named on standard error.
fn measurements(file: &ScheduleFile, reference: &str) -> anyhow::Result<Measurements> {
    let orb = client_orb(false, &TlsArgs::default())?;
    let scheduler = crate::reference::target(&orb, reference)?;
    let all = reported(&scheduler).with_context(|| {
        format!("`{reference}` returns no measured execution times; only a scheduling service of Deckwatch has them")
    })?;
    let mut measurements = Measurements::default();
    for (name, measured) in all {
        match file.operations.lookup(&name) {
            Some(of) => measurements.add(of, measured),
            None => errln!("warning: the file has no operation `{}`", escaped(&name)),
        }
    }
    Ok(measurements)
}

fn print(document: &Document) -> anyhow::Result<()> {
    let verdict = match (document.is_feasible, document.is_feasible_as_measured) {
        (false, _) => "INFEASIBLE: a deadline can be missed",
        (true, Some(false)) => {
            "INFEASIBLE with the measured execution times: a deadline can be missed"
        }
        (true, Some(true)) => {
            "feasible: every deadline is met, with the measured execution times too"
        }
        (true, None) => "feasible: every deadline is met",
    };
    outln!(
        "Schedule {}, {}: {verdict}.",
        escaped(&document.name),
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
        // The factor is that of the declared times.
        (true, _) if document.is_feasible_as_measured == Some(false) => {}
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
    let has_measured = document.is_feasible_as_measured.is_some();
    let mut header = vec![
        "operation",
        "priority",
        "queue",
        "worst case",
        "period",
        "deadline",
        "worst response",
        "worst case that fits",
    ];
    header.extend(has_measured.then_some("measured"));
    table.set_header(header);
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
        let mut row = vec![
            escaped(&one.name).to_string(),
            priority,
            one.dispatch.unwrap_or("-").to_owned(),
            in_words(one.worst_case_ns),
            cell(one.period_ns),
            cell(one.deadline_ns),
            format!("{}{late}", response(one)),
            cell(one.worst_case_max_ns),
        ];
        row.extend(has_measured.then(|| longest_measured(one)));
        table.add_row(row);
    }
    table
}
