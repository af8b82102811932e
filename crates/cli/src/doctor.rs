//! `deckwatch doctor`: checks whether this machine is fit for real time, and prints what to change.

use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use anyhow::{anyhow, ensure};
use deckwatch_probe::doctor::{Diagnosis, Finding, Judgement};
use deckwatch_scenario::reach::{self, Reach};

use crate::far_ends::far_host;
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
    /// Where this program is on the far machine.
    #[arg(long, value_name = "PATH", default_value = reach::PROGRAM, requires = "on")]
    program: String,
    /// Examine a host of this mission file, which has `reach`. Name it with --on.
    #[arg(long, value_name = "FILE", requires = "on", conflicts_with = "program")]
    hosts: Option<PathBuf>,
    /// Examine the far machine that these words reach, as `reach` of a mission, or the host of this name of --hosts;
    /// this option is the last.
    #[arg(long, value_name = "WORD", num_args = 1.., allow_hyphen_values = true)]
    on: Vec<String>,
}

const NOTES: &str = "\
`change` marks a fault that makes verdicts on this machine untrustworthy. `note` marks a fault that costs latency, or
detail of the blame.

Exit status: 0 nothing must be changed, 1 something must be changed, 2 usage, or a far machine that cannot be examined.

Examples:
  deckwatch doctor
  sudo deckwatch doctor --json
  deckwatch doctor --on ssh rts.ship
  deckwatch doctor --hosts ship.toml --on RTS
  deckwatch doctor --program /opt/deckwatch/bin/deckwatch --on kubectl exec -i sonar-0 --";

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let diagnosis = if args.on.is_empty() {
        Diagnosis::of_this_machine()
    } else {
        match &args.hosts {
            Some(file) => {
                let (host, far) = far_host(file, &args.on, "--on")?;
                of_far_machine(&host, &far)?
            }
            None => of_words(args.on, args.program)?,
        }
    };
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

/// Asks this program on the machine that these words reach.
fn of_words(words: Vec<String>, program: String) -> anyhow::Result<Diagnosis> {
    ensure!(
        reach::is_plain_word(&program),
        "`{program}` cannot be the path of the program: a remote shell may read it. Use letters, digits and `/._-+`."
    );
    let host = words.join(" ");
    let far = Reach {
        words,
        address: Ipv4Addr::UNSPECIFIED.into(),
        program: Some(program),
    };
    of_far_machine(&host, &far)
}

/// Asks this program on another machine.
fn of_far_machine(host: &str, far: &Reach) -> anyhow::Result<Diagnosis> {
    let answer = reach::ask(host, far, &[far.program(), "doctor", "--json"], PATIENCE)?;
    serde_json::from_slice(&answer.output).map_err(|_| {
        anyhow!(
            "`{host} {} doctor --json` gave no examination ({}). Copy this program there, or say where it is with --program.",
            far.program(),
            answer.how()
        )
    })
}

/// Time in which a far machine is reached and examined.
const PATIENCE: Duration = Duration::from_secs(60);

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
            "{style}{word:<6}{style:#} {}: {}",
            plain(name),
            plain(value)
        )?;
        if let Some(advice) = advice {
            outln!("         why: {}", plain(why))?;
            outln!("         do:  {}", plain(advice))?;
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
