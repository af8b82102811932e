//! `deckwatch run`: runs a mission, judges it, and writes a result folder.

mod series;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use deckwatch_meter::result::VerdictKind;
use deckwatch_os::signal;
use deckwatch_probe::doctor::{Diagnosis, Judgement};
use deckwatch_scenario::mission::Mission;
use deckwatch_scenario::reach;
use deckwatch_scenario::run::{
    Interrupt, Observer, Outcome, RunError, Settings, run as run_mission,
};
use deckwatch_testbed::Testbed;

use crate::exit::{self, Status};
use crate::live::{Live, Plain};
use crate::mission_args::MissionArgs;
use crate::output::errln;
use crate::verdict_table;
use crate::version::BUILD;

/// Run a mission on emulated or real hosts and judge each flow against its deadline
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  deckwatch run scenarios/nav.toml --duration 20s --carriers udp,tcp,corba,event
  deckwatch run scenarios/nav.toml --variant loaded --network fast-ethernet
  deckwatch run scenarios/nav-paper.toml --variants all --duration 10s --output results/paper
  deckwatch run scenarios/nav-paper.toml --variants all --duration 10s --output results/paper --resume
  deckwatch run two-machines.toml --install
  deckwatch run mission.toml --no-emulation --output results/first --json

Ctrl-C ends a run early; what was measured until then is judged and kept.
With --variants, the exit status is that of the worst variant.
Exit status: 0 PASS, 1 FAIL, 2 usage or bad input, 3 UNPROVEN, 4 INVALID; 130 where Ctrl-C ended it (128 and the signal's number).")]
pub(crate) struct Args {
    #[command(flatten)]
    mission: MissionArgs,
    /// Run these variants of the mission one after the other, or `all`, and write one report on them
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        conflicts_with = "variant"
    )]
    variants: Vec<String>,
    /// Go on with the variants of a folder that ended early: those with a whole result are not run again
    #[arg(long, requires = "variants", requires = "output")]
    resume: bool,
    /// Write the result to this folder, which must be new or empty [default: results/MISSION-TIME]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Run on the loopback interface, without emulated hosts and network
    #[arg(long)]
    no_emulation: bool,
    /// Copy this program to the far hosts that lack it, into the folder .deckwatch there
    #[arg(long)]
    install: bool,
    /// Keep the packet captures in the result folder
    #[arg(long)]
    keep_captures: bool,
    /// Print the result document, which is JSON, instead of a table; progress goes to standard error
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let commit = BUILD
        .commit
        .map_or(String::new(), |commit| format!(" ({commit})"));
    let settings = Settings {
        program: std::env::current_exe().context("The program's own path cannot be told.")?,
        version: format!("{}{commit}", BUILD.version),
        build: BUILD.in_words(),
        output: args.output,
        emulation: !args.no_emulation,
        keep_captures: args.keep_captures,
    };
    if !args.variants.is_empty() {
        let mut missions = args.mission.load_each(&args.variants)?;
        isolate_if_needed(&missions, &settings)?;
        signal::catch_ending().context("Signals cannot be caught.")?;
        if args.install {
            missions
                .iter_mut()
                .try_for_each(|one| install(one, &settings))?;
        }
        return series::run(&missions, &settings, args.resume, args.json);
    }
    let mut mission = args.mission.load()?;
    isolate_if_needed(std::slice::from_ref(&mission), &settings)?;
    signal::catch_ending().context("Signals cannot be caught.")?;
    if args.install {
        install(&mut mission, &settings)?;
    }
    let mut observer = observer();
    let run = run_mission(
        &mission,
        &settings,
        &Interrupt::new(signal::ending),
        observer.as_mut(),
    );
    drop(observer);
    let outcome = match run {
        Ok(outcome) => outcome,
        // The user ended the run before it had a result. That is no error.
        Err(error @ RunError::Interrupted { signal }) => {
            errln!("{error}");
            return Ok(exit::ended_by(signal).into());
        }
        Err(error) => return Err(error.into()),
    };
    print(&outcome, args.json).context("The verdict cannot be printed.")?;
    if let Some(reason) = outcome.unwritten {
        return Err(anyhow!(reason))
            .context("The result folder is not whole; what was printed is all there is");
    }
    if let Some(signal) = outcome.interrupted_by {
        let folder = outcome.folder.display();
        errln!(
            "Ended early by {signal}; what was measured until then is judged, and kept in {folder}."
        );
        return Ok(exit::ended_by(signal).into());
    }
    Ok(Status::from(outcome.document.verdict.kind).into())
}

/// Emulates hosts without root where the kernel lets users make namespaces. Called before this process has threads.
fn isolate_if_needed(missions: &[Mission], settings: &Settings) -> anyhow::Result<()> {
    if settings.emulation
        && missions.iter().all(Mission::stays_here)
        && Testbed::isolate_if_needed()?
    {
        errln!("Hosts are emulated in a user namespace of this process, without root.");
    }
    Ok(())
}

fn install(mission: &mut Mission, settings: &Settings) -> anyhow::Result<()> {
    let mut told = |words: &str| errln!("{words}");
    reach::install(mission, &settings.program, &settings.build, &mut told)?;
    Ok(())
}

fn print(outcome: &Outcome, json: bool) -> anyhow::Result<()> {
    let mut out = crate::output::stdout();
    if json {
        writeln!(out, "{}", serde_json::to_string_pretty(&outcome.document)?)?;
        return Ok(out.flush()?);
    }
    verdict_table::print(&mut out, &outcome.document)?;
    if outcome.document.verdict.kind == VerdictKind::Invalid && outcome.interrupted_by.is_none() {
        // The result does not have the findings: they are of now, and not of the run.
        for finding in Diagnosis::of_this_machine().findings {
            if let (Judgement::Change, Some(advice)) = (finding.judgement, finding.advice) {
                let (name, value) = (finding.name, finding.value);
                writeln!(out, "  Doctor found {name}: {value}. {advice}.")?;
            }
        }
    }
    if outcome.unwritten.is_none() {
        let report = outcome.folder.join(deckwatch_report::REPORT_FILE);
        writeln!(
            out,
            "\nResult: {}\nReport: {}",
            outcome.folder.display(),
            report.display()
        )?;
    }
    Ok(out.flush()?)
}

fn observer() -> Box<dyn Observer> {
    use std::io::IsTerminal as _;
    if std::io::stderr().is_terminal() {
        Box::new(Live::new())
    } else {
        Box::new(Plain::new())
    }
}
