//! `deckwatch soak`: all servers under load and faults for hours; a trend is a FAIL.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail};
use deckwatch_meter::experiment::{ExperimentDocument, Soak};
use deckwatch_os::signal;
use deckwatch_probe::soak::{self, FaultKind, SoakProgress, SoakSetup};
use deckwatch_report::{REPORT_FILE, RESULT_FILE};
use deckwatch_scenario::run::ResultFolder;

use crate::exit::{self, Status};
use crate::laboratory::version;
use crate::mission_args::duration;
use crate::output::errln;
use crate::words;

/// Serve under load and faults for hours, and judge whether memory, descriptors, threads or times grow
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  deckwatch soak
  deckwatch soak --for 10min --seed 7 --output results/soak
  deckwatch soak --for 60s --faults none
  deckwatch soak --for 1h --faults kill,stop --json

Servers: the naming service and two event channels with stores, an access table and an audit log, and objects over \
TCP, a unix socket, shared memory and TLS. Consumers are pushed to and pull. Clients come and go. Faults, by the seed:
  kill     a server is killed (SIGKILL) and started again
  stop     a server is stopped (SIGSTOP) for some seconds
  cut      a connection ends in the middle of a message
  silence  a consumer of a channel stops reading, and dies later
  death    a consumer of a channel is killed

FAIL: a growth is beyond its allowance, or a call failed outside of a declared fault, or an acknowledged binding or an event \
is lost that no channel has counted. UNPROVEN: too few samples, or too wide an interval. The first sixth after each start, at \
most 10 minutes, is not judged.
Exit status: 0 PASS, 1 FAIL, 2 usage or bad input, 3 UNPROVEN; 130 where Ctrl-C ended it (what was found is judged and kept).")]
pub(crate) struct Args {
    /// How long the servers are under load, for example 8h, 10min or 60s
    #[arg(long = "for", value_name = "TIME", default_value = "8h", value_parser = time)]
    time: Duration,
    /// The seed of faults and clients
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The kinds of faults: all, none, or some of kill,stop,cut,silence,death
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = faults)]
    faults: Kinds,
    /// Write the result to this folder, which must be new or empty [default: results/soak-TIME]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Print the result document, which is JSON, instead of a table; progress goes to standard error
    #[arg(long)]
    json: bool,
}

/// Kinds of faults; one value of one option.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kinds(Vec<FaultKind>);

fn time(text: &str) -> anyhow::Result<Duration> {
    let time = duration(text)?;
    if !(TIME_MIN..=TIME_MAX).contains(&time) {
        bail!("A soak takes from 10s to 30 days; write for example 60s, 10min or 8h.");
    }
    Ok(time)
}

fn faults(text: &str) -> Result<Kinds, String> {
    let kind = |word: &str| {
        let found = FaultKind::ALL.into_iter().find(|kind| kind.word() == word);
        found.ok_or_else(|| format!("`{word}` is none of kill, stop, cut, silence and death"))
    };
    match text {
        "all" => Ok(Kinds(FaultKind::ALL.to_vec())),
        "none" => Ok(Kinds(Vec::new())),
        text => text
            .split(',')
            .map(kind)
            .collect::<Result<_, _>>()
            .map(Kinds),
    }
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    signal::catch_ending().context("Signals cannot be caught.")?;
    let folder = ResultFolder::make(args.output.as_deref(), "soak", SystemTime::now())?;
    let setup = SoakSetup {
        program: std::env::current_exe().context("The program's own path cannot be read.")?,
        version: version(),
        folder: folder.path().to_owned(),
        time: args.time,
        seed: args.seed,
        faults: args.faults.0,
    };
    let mut shown = Shown::new(args.time);
    let found = soak::run(&setup, &mut |at| shown.show(at));
    drop(shown);
    let found = match found {
        Ok(found) => found,
        Err(error) => return exit::without_result(error),
    };
    let report = folder.path().join(REPORT_FILE);
    // The result is printed even if the files cannot be written.
    let written = found.save(&folder.path().join(RESULT_FILE));
    let written = written.map_err(anyhow::Error::from).and_then(|()| {
        let page = deckwatch_report::experiment_page(&found)?;
        Ok(deckwatch_report::write_page(&report, &page)?)
    });
    let mut out = crate::output::stdout();
    let soak = found.soak.as_ref().context("A soak has a verdict.")?;
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&found)?)?;
    } else {
        print(&mut out, &found, soak)?;
        if written.is_ok() {
            writeln!(out, "\nReport: {}", report.display())?;
        }
    }
    out.flush()?;
    written?;
    if signal::ending().is_some() {
        return exit::of_measurement(&found.warnings, folder.path());
    }
    Ok(Status::from(soak.verdict).into())
}

/// Prints the verdict, and a line for each check and series.
fn print(
    out: &mut impl std::io::Write,
    found: &ExperimentDocument,
    soak: &Soak,
) -> std::io::Result<()> {
    let time = Duration::from_secs_f64(soak.time_s.round());
    let (verdict, seed) = (soak.verdict.word(), soak.seed);
    writeln!(
        out,
        "{verdict}: {} under load, seed {seed}, {} faults",
        words::duration(time),
        soak.faults.len()
    )?;
    for check in &soak.checks {
        writeln!(
            out,
            "  {:<9} {}: {}",
            check.verdict.word(),
            check.name,
            check.found
        )?;
    }
    for series in &soak.series {
        writeln!(out, "  {:<9} {}", series.verdict.word(), series.words())?;
    }
    for warning in &found.warnings {
        writeln!(out, "warning: {}", warning.text)?;
    }
    Ok(())
}

/// The progress on standard error: a bar on a terminal, elsewhere lines whose interval doubles up to ten minutes.
struct Shown {
    time: Duration,
    bar: Option<indicatif::ProgressBar>,
    next: Duration,
}

impl Shown {
    fn new(time: Duration) -> Self {
        use std::io::IsTerminal as _;
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = indicatif::ProgressBar::new(time.as_secs().max(1));
            let style = indicatif::ProgressStyle::with_template("{bar:30} {percent:>3}% {msg}");
            bar.with_style(style.unwrap_or_else(|_| indicatif::ProgressStyle::default_bar()))
        });
        Self {
            time,
            bar,
            next: LINE_AFTER,
        }
    }

    fn show(&mut self, at: &SoakProgress) {
        let passed = self.time.saturating_sub(at.left);
        let left = Duration::from_secs(at.left.as_secs());
        let fault = at.fault.as_ref();
        let words = format!(
            "{} left; {} calls, {} failed{}",
            words::duration(left),
            words::count(at.calls),
            words::count(at.failed),
            fault.map_or(String::new(), |fault| format!("; last fault: {fault}"))
        );
        if let Some(bar) = &self.bar {
            bar.set_position(passed.as_secs());
            bar.set_message(words);
        } else if passed >= self.next {
            self.next += self.next.min(LINE_INTERVAL_MAX);
            errln!("{words}");
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

const TIME_MIN: Duration = Duration::from_secs(10);
const TIME_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);
const LINE_AFTER: Duration = Duration::from_secs(5);
const LINE_INTERVAL_MAX: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_faults_are_all_none_or_listed() {
        assert_eq!(faults("all").map(|kinds| kinds.0.len()), Ok(5));
        assert_eq!(faults("none"), Ok(Kinds(Vec::new())));
        let two = Kinds(vec![FaultKind::Stop, FaultKind::Kill]);
        assert_eq!(faults("stop,kill"), Ok(two));
        assert!(faults("stop,").is_err_and(|error| error.contains("none of kill")));
    }

    #[test]
    fn a_soak_takes_from_ten_seconds_to_thirty_days() {
        assert!(time("9s").is_err() && time("31d").is_err());
        assert_eq!(time("8h").ok(), Some(Duration::from_secs(28_800)));
    }
}
