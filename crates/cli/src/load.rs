//! `deckwatch load`: loads that compete with the messages of a measurement.

mod cpu;
mod net;
mod stress;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use deckwatch_load::{LoadPlan, LoadReport, Second, Stop, Work};
use deckwatch_os::signal;
use deckwatch_probe::laboratory::LoadEnd;

use crate::exit;
use crate::far_ends::far_ends;
use crate::mission_args::duration;
use crate::output::outln;

/// Keep processors, links, memory or disks busy, at a target, and say what was reached
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Cpu(cpu::Args),
    Net(Box<net::Args>),
    Memory(stress::MemoryArgs),
    Disk(stress::DiskArgs),
}

/// The options of every load.
#[derive(clap::Args)]
struct Common {
    /// Ends after this time
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = duration)]
    lasting: Duration,
    /// Print one JSON object at the end, and no line a second
    #[arg(long)]
    json: bool,
}

/// Where a load of processors, memory or disks runs.
#[derive(clap::Args)]
struct At {
    /// Run on a host of this mission file, which has `reach` or `address`. Name it with --on
    #[arg(long, value_name = "FILE", requires = "on")]
    hosts: Option<PathBuf>,
    /// The host of --hosts
    #[arg(long, value_name = "HOST", requires = "hosts")]
    on: Option<String>,
    /// Copy this program to the host if it lacks it, into the folder .deckwatch there
    #[arg(long, requires = "hosts")]
    install: bool,
}

/// Parses a share, as 0.5 or 50%.
fn share(text: &str) -> Result<f64, String> {
    let (digits, unit) = match text.strip_suffix('%') {
        Some(digits) => (digits, 100.0),
        None => (text, 1.0),
    };
    let share = digits.parse::<f64>().ok().map(|number| number / unit);
    let share = share.filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "write a share above 0 and at most 1, such as 0.5 or 50%".to_owned())
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.what {
        What::Cpu(args) => cpu::run(&args),
        What::Net(args) => net::run(&args),
        What::Memory(args) => stress::memory(&args),
        What::Disk(args) => stress::disk(args),
    }
}

impl Common {
    /// Carries out a load, with a line a second and a summary.
    fn carry_out(&self, work: Work) -> anyhow::Result<ExitCode> {
        let report = self.report(work, &|plan, stop, tell| {
            Ok(deckwatch_load::run(plan, stop, tell)?)
        })?;
        self.print(&report)
    }

    /// As [`Self::carry_out`], on the host that the user names.
    fn carry_out_at(&self, at: &At, work: Work) -> anyhow::Result<ExitCode> {
        let (Some(file), Some(name)) = (&at.hosts, &at.on) else {
            return self.carry_out(work);
        };
        let [host] = far_ends(file, [name.as_str()], at.install)?;
        let report = self.report(work, &|plan, stop, tell| {
            let mut load = LoadEnd::start(format!("The load on {name}"), host.load(), plan)?;
            Ok(load.follow(stop, tell)?)
        })?;
        self.print(&report)
    }

    /// Returns the plan of a load that can be carried out.
    fn plan(&self, work: Work) -> anyhow::Result<LoadPlan> {
        let plan = LoadPlan {
            work,
            lifetime: self.lasting,
        };
        plan.check()?;
        Ok(plan)
    }

    /// Carries out a load, with a line a second. `run` is where it runs.
    fn report(&self, work: Work, run: Runs<'_>) -> anyhow::Result<LoadReport> {
        signal::catch_ending().context("Signals cannot be caught.")?;
        let plan = self.plan(work)?;
        let stop = Stop::default();
        let mut broken = None;
        let mut tell = |second: &Second| {
            if self.json {
                return;
            }
            // A load whose lines nobody can read ends.
            if let Err(error) = outln!("{second}") {
                broken = Some(error);
                stop.set();
            }
            if crate::output::reader_is_gone() {
                stop.set();
            }
        };
        let report = run(&plan, &stop, &mut tell)?;
        broken.map_or(Ok(report), Err)
    }

    /// Prints what was reached. The exit status says whether targets were held.
    fn print(&self, report: &LoadReport) -> anyhow::Result<ExitCode> {
        if self.json {
            outln!("{}", serde_json::to_string(report)?)?;
        } else {
            outln!("{report}")?;
        }
        if let Some(signal) = signal::ending() {
            return Ok(exit::ended_by(signal).into());
        }
        Ok(if report.is_held() {
            ExitCode::SUCCESS
        } else {
            exit::NOT_HELD.into()
        })
    }
}

/// Runs a load in this thread, or in a namespace.
type Runs<'r> =
    &'r dyn Fn(&LoadPlan, &Stop, &mut (dyn FnMut(&Second) + Send)) -> anyhow::Result<LoadReport>;
