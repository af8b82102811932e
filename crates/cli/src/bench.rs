//! `deckwatch bench`: what our own parts cost beside raw sockets and beside others.

mod table;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use deckwatch_os::signal;
use deckwatch_probe::bench::{self, Case, CaseKind, Condition, EndPlan, Role, Settings};
use deckwatch_scenario::run::make_result_folder;

use crate::mission_args::duration;
use crate::version::BUILD;

/// Measure what calls cost beside raw TCP and other ORBs
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
#[allow(clippy::large_enum_variant, reason = "made once")]
enum Action {
    Call(CallArgs),
    #[command(hide = true)]
    End(EndArgs),
}

/// Two-way calls beside raw TCP ping-pong of the same octets, and omniORB where it is installed
#[derive(clap::Args)]
#[command(after_help = "\
Every run of a peer comes directly behind a run of raw TCP; reported is the median of the ratios of those pairs.
Round trips are whole ones. `pinned` binds both ends to one processor, so that nothing is measured of how an idle
processor wakes; real-time classes need CAP_SYS_NICE. Ctrl-C ends a bench early and keeps what was measured.

Examples:
  deckwatch bench call
  deckwatch bench call --octets 64 --structs 65536 --rounds 25
  deckwatch bench call --condition default --json")]
struct CallArgs {
    /// Sizes of octet sequences [default: 64,1024,8192,65536, unless --structs is given]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = size())]
    octets: Vec<u32>,
    /// Sizes in octets of sequences of ComplexStruct, 40 octets each [default: 64,1024,65536, unless --octets is given]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = size())]
    structs: Vec<u32>,
    /// Where the two ends run
    #[arg(long, value_enum, default_value = "pinned")]
    condition: Where,
    /// Pairs of runs for each peer and size
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    rounds: u16,
    /// How long one run takes
    #[arg(long, value_name = "TIME", default_value = "300ms", value_parser = duration)]
    run_time: Duration,
    /// Keep our servant busy for so long in each call, to see that a delay shows
    #[arg(long, value_name = "TIME", value_parser = duration)]
    servant_delay: Option<Duration>,
    /// Write the result to this folder, which must be new or empty [default: results/bench-call-TIME]
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Print the result document, which is JSON, instead of a table
    #[arg(long)]
    json: bool,
}

fn size() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=8 << 20)
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Where {
    /// Both ends on one processor, SCHED_FIFO
    Pinned,
    /// Each end on a processor of its own, SCHED_FIFO
    TwoCores,
    /// Wherever the kernel puts them, time sharing
    Default,
}

/// One end of a bench, started by `deckwatch bench call` and by nobody else
#[derive(clap::Args)]
struct EndArgs {
    #[arg(value_parser = role)]
    role: Role,
    #[arg(long)]
    processor: Option<u32>,
    #[arg(long)]
    fifo: Option<u8>,
    #[arg(long, default_value_t = 0)]
    servant_delay_ns: u64,
    #[arg(long)]
    reference: Option<String>,
}

fn role(word: &str) -> Result<Role, String> {
    let found = Role::ALL.iter().find(|role| role.word() == word);
    found.copied().ok_or_else(|| "no role".to_owned())
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::Call(args) => call(args)?,
        Action::End(args) => bench::run_end(&EndPlan {
            role: args.role,
            processor: args.processor,
            fifo: args.fifo,
            servant_delay: Duration::from_nanos(args.servant_delay_ns),
            reference: args.reference,
        })?,
    }
    Ok(ExitCode::SUCCESS)
}

fn call(args: CallArgs) -> anyhow::Result<()> {
    let commit = BUILD
        .commit
        .map_or(String::new(), |commit| format!(" ({commit})"));
    let settings = Settings {
        program: std::env::current_exe().context("The program's own path cannot be told.")?,
        version: format!("{}{commit}", BUILD.version),
        cases: cases(&args.octets, &args.structs),
        condition: match args.condition {
            Where::Pinned => Condition::Pinned,
            Where::TwoCores => Condition::TwoCores,
            Where::Default => Condition::Default,
        },
        rounds: args.rounds.into(),
        run_budget: args.run_time,
        servant_delay: args.servant_delay.unwrap_or_default(),
    };
    signal::catch_ending().context("Signals cannot be caught.")?;
    let mut progress = table::Progress::new();
    let found = bench::run(&settings, &mut |at| progress.show(at));
    drop(progress);
    let found = found?;
    let text = serde_json::to_string_pretty(&found)?;
    let folder = make_result_folder(args.output.as_deref(), "bench-call", SystemTime::now())?;
    std::fs::write(folder.join("result.json"), &text)
        .with_context(|| format!("{} cannot be written.", folder.display()))?;
    let mut out = anstream::stdout();
    if args.json {
        writeln!(out, "{text}")?;
    } else {
        table::print(&mut out, &found)?;
        writeln!(out, "\nResult: {}", folder.join("result.json").display())?;
    }
    Ok(out.flush()?)
}

fn cases(octets: &[u32], structs: &[u32]) -> Vec<Case> {
    let (octets, structs) = match (octets, structs) {
        ([], []) => (&[64, 1_024, 8_192, 65_536][..], &[64, 1_024, 65_536][..]),
        chosen => chosen,
    };
    let of = |kind, sizes: &[u32]| -> Vec<Case> {
        let case = |size: &u32| Case {
            kind,
            size: *size as usize,
        };
        sizes.iter().map(case).collect()
    };
    [of(CaseKind::Octets, octets), of(CaseKind::Structs, structs)].concat()
}
