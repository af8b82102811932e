//! `deckwatch doctor`: checks whether this machine is fit for real time, and prints what to change.

use std::io::Write as _;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use deckwatch_probe::doctor::{Diagnosis, Finding, Judgement};

use crate::output::{self, outln, plain};

/// Say whether this machine is fit for real time, and what to change.
///
/// Reads the kernel's files and makes short trials. Takes about two seconds and changes nothing.
#[derive(clap::Args)]
#[command(after_help = NOTES)]
pub(crate) struct Args {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

const NOTES: &str = "\
`change` marks a fault that makes verdicts on this machine untrustworthy. `note` marks a fault that costs latency, or
detail of the blame.

Exit status: 0 nothing must be changed, 1 something must be changed.

Examples:
  deckwatch doctor
  sudo deckwatch doctor --json";

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let diagnosis = Diagnosis::of_this_machine();
    if args.json {
        outln!("{}", serde_json::to_string(&diagnosis)?)?;
    } else {
        print(&diagnosis)?;
    }
    Ok(if diagnosis.fit {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn print(diagnosis: &Diagnosis) -> anyhow::Result<()> {
    for finding in &diagnosis.findings {
        let Finding {
            name,
            value,
            why,
            advice,
            judgement,
        } = finding;
        let style = style(*judgement);
        let word = word(*judgement);
        writeln!(
            output::stdout(),
            "{style}{word:<6}{style:#} {name}: {}",
            plain(value)
        )?;
        if let Some(advice) = advice {
            outln!("         why: {why}")?;
            outln!("         do:  {advice}")?;
        }
    }
    let count = |judgement| {
        diagnosis
            .findings
            .iter()
            .filter(|finding| finding.judgement == judgement)
            .count()
    };
    let (changes, notes) = (count(Judgement::Change), count(Judgement::Note));
    let fit = if diagnosis.fit {
        "Verdicts on this machine can be trusted"
    } else {
        "Verdicts on this machine cannot be trusted"
    };
    outln!(
        "\n{fit}: {changes} to change, {notes} to note, of {} findings.",
        diagnosis.findings.len()
    )?;
    Ok(())
}

const fn word(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::Ok => "ok",
        Judgement::Note => "note",
        Judgement::Change => "change",
    }
}

const fn style(judgement: Judgement) -> Style {
    let colour = match judgement {
        Judgement::Ok => AnsiColor::Green,
        Judgement::Note => AnsiColor::Yellow,
        Judgement::Change => AnsiColor::Red,
    };
    Style::new().fg_color(Some(anstyle::Color::Ansi(colour)))
}
