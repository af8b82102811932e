//! `deckwatch bench`: what our own parts cost beside raw sockets and beside others.

mod end;
pub(crate) mod table;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use clap::builder::{PossibleValuesParser, RangedI64ValueParser};
use deckwatch_meter::result::save_whole;
use deckwatch_os::signal;
use deckwatch_probe::bench::{self, Bench, Case, Condition, Inserted, Kind, Operation, Settings};
use deckwatch_report::{REPORT_FILE, RESULT_FILE, experiment_page};
use deckwatch_scenario::run::ResultFolder;

use crate::exit;
use crate::mission_args::run_time;
use crate::version::BUILD;

/// Measure what calls, messages, objects and priorities cost beside raw TCP and other ORBs
#[derive(clap::Args)]
#[command(after_help = "\
Every run of a peer comes directly behind a run of what it is compared with; reported is the median of the ratios of \
those pairs, and whether it is what is aimed at. Round trips are whole ones. omniORB, JacORB and rustorb are built by \
their scripts at the first bench, from what is installed and from the package registries; one that cannot be built is \
skipped and told. `pinned` binds both ends to one processor, so that nothing is measured of how an idle processor \
wakes; targets hold there. Real-time classes need CAP_SYS_NICE, counters root. Ctrl-C ends a bench early and \
keeps what was measured; its exit status is 130 then.

Examples:
  deckwatch bench all
  deckwatch bench call --octets 64 --structs 65536 --rounds 25
  deckwatch bench call --conditions pinned,two-cores,default --json
  deckwatch bench counters --insert lock")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Everything below, as one table
    All(AllArgs),
    /// Two-way calls behind each other
    Call(CallArgs),
    /// One call every 10 ms
    Rate(Common),
    /// One-way messages, and sequences of structs beside octets
    Stream(Common),
    /// One active object beside many
    Objects(AllArgs),
    /// A client of high priority beside others of low priority that never pause
    Priority(AllArgs),
    /// Heap allocations, mutex locks and system calls of a request at the server
    Counters(Common),
    /// Memory of an idle server, and of one with many connections
    Memory(AllArgs),
    #[command(hide = true)]
    End(end::Args),
}

#[derive(clap::Args)]
struct Common {
    /// Where the two ends run [default: pinned; of `call`: pinned,spinning; of `all`: every one]
    #[arg(
        long,
        visible_alias = "condition",
        value_enum,
        value_delimiter = ',',
        value_name = "WHERE"
    )]
    conditions: Vec<Where>,
    /// Pairs of runs for each peer and case
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    rounds: u16,
    /// How long one run takes; calls that are rare take three times as long, at most 850 ms
    #[arg(long, value_name = "TIME", default_value = "300ms", value_parser = run_time)]
    run_time: Duration,
    /// Leave these ORBs out
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = PossibleValuesParser::new(bench::PEERS))]
    without: Vec<String>,
    /// Let our servant do one thing more in each request, to see that it shows: `allocation`, `lock`, `call` or a time to keep busy
    #[arg(long, value_name = "WHAT", visible_alias = "servant-delay", value_parser = inserted)]
    insert: Option<Inserted>,
    /// Write the result to this folder, which must be new or empty [default: results/bench-KIND-TIME]
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Print the result document, which is JSON, instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct CallArgs {
    /// Sizes of octet sequences [default: 64,1024,8192,65536, unless --structs is given]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = size())]
    octets: Vec<u32>,
    /// Sizes in octets of sequences of ComplexStruct, 40 octets each [default: 64,1024,65536, unless --octets is given]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = size())]
    structs: Vec<u32>,
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
struct AllArgs {
    /// Objects that are active where they are many
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    objects: u32,
    /// Clients of low priority
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    low_clients: u16,
    /// Connections of a server that has many
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    connections: u16,
    #[command(flatten)]
    common: Common,
}

fn size() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=8 << 20)
}

fn inserted(words: &str) -> Result<Inserted, String> {
    if let Some(named) = Inserted::of_words(words) {
        return Ok(named);
    }
    let delay = run_time(words);
    delay
        .map(Inserted::Delay)
        .map_err(|error| format!("Write `allocation`, `lock`, `call` or a time. {error}"))
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Where {
    /// Both ends on one processor, SCHED_FIFO
    Pinned,
    /// Each end on a processor of its own, SCHED_FIFO
    TwoCores,
    /// Wherever the kernel puts them, time sharing
    Default,
    /// Each end on a processor of its own, time sharing, looking for messages instead of sleeping
    Spinning,
}

impl From<Where> for Condition {
    fn from(place: Where) -> Self {
        match place {
            Where::Pinned => Self::Pinned,
            Where::TwoCores => Self::TwoCores,
            Where::Default => Self::Default,
            Where::Spinning => Self::Spinning,
        }
    }
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let of = |kinds: &[Kind], common: &Common| settings(kinds, common);
    let with = |kinds: &[Kind], args: &AllArgs| -> anyhow::Result<Settings> {
        Ok(Settings {
            objects: args.objects as usize,
            low_clients: args.low_clients.into(),
            connections: args.connections.into(),
            ..of(kinds, &args.common)?
        })
    };
    let (settings, common) = match args.action {
        Action::All(args) => (with(&Kind::ALL, &args)?, args.common),
        Action::Call(args) => {
            let calls = calls(&args.octets, &args.structs);
            let settings = of(&[Kind::Call], &args.common)?;
            (Settings { calls, ..settings }, args.common)
        }
        Action::Rate(common) => (of(&[Kind::Rate], &common)?, common),
        Action::Stream(common) => (of(&[Kind::Stream], &common)?, common),
        Action::Objects(args) => (with(&[Kind::Objects], &args)?, args.common),
        Action::Priority(args) => (with(&[Kind::Priority], &args)?, args.common),
        Action::Counters(common) => (of(&[Kind::Counters], &common)?, common),
        Action::Memory(args) => (with(&[Kind::Memory], &args)?, args.common),
        Action::End(args) => {
            bench::run_end(&args.plan())?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    measure(&settings, &common)
}

fn settings(kinds: &[Kind], common: &Common) -> anyhow::Result<Settings> {
    let commit = BUILD
        .commit
        .map_or(String::new(), |commit| format!(" ({commit})"));
    let conditions = match common.conditions[..] {
        [] if kinds.len() > 1 => Condition::ALL.to_vec(),
        [] if kinds == [Kind::Call] => vec![Condition::Pinned, Condition::Spinning],
        [] => vec![Condition::Pinned],
        ref chosen => chosen.iter().map(|place| (*place).into()).collect(),
    };
    Ok(Settings {
        program: std::env::current_exe().context("The program's own path cannot be told.")?,
        version: format!("{}{commit}", BUILD.version),
        kinds: kinds.to_vec(),
        calls: Kind::Call.cases(),
        conditions,
        rounds: common.rounds.into(),
        run_budget: common.run_time,
        inserted: common.insert.unwrap_or_default(),
        objects: 1,
        low_clients: 1,
        connections: 1,
        without: common.without.clone(),
    })
}

fn measure(settings: &Settings, common: &Common) -> anyhow::Result<ExitCode> {
    signal::catch_ending().context("Signals cannot be caught.")?;
    let name = match settings.kinds[..] {
        [kind] => format!("bench-{}", kind.word()),
        _ => "bench-all".to_owned(),
    };
    let folder = ResultFolder::make(common.output.as_deref(), &name, SystemTime::now())?;
    let mut progress = table::Progress::new();
    // What was found before a bench fails, or is killed, is not lost.
    let path = folder.path().join(RESULT_FILE);
    let mut keep = |found: &Bench| drop(save_whole(found, &path));
    let found = bench::run(settings, &mut |at| progress.show(at), &mut keep);
    drop(progress);
    let found = match found {
        Ok(found) => found,
        Err(error) => return exit::without_result(error),
    };
    // What cannot be written is shown all the same.
    let written = save_whole(&found, &path).map_err(anyhow::Error::from);
    let written = written.and_then(|()| {
        let report = folder.path().join(REPORT_FILE);
        deckwatch_report::write_page(&report, &experiment_page(&found.as_experiment())?)?;
        Ok(report)
    });
    let mut out = crate::output::stdout();
    if common.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&found)?)?;
    } else {
        table::print(&mut out, &found)?;
        if let Ok(report) = &written {
            writeln!(out, "\nReport: {}", report.display())?;
        }
    }
    out.flush()?;
    written?;
    exit::of_measurement(&found.warnings, folder.path())
}

fn calls(octets: &[u32], structs: &[u32]) -> Vec<Case> {
    if octets.is_empty() && structs.is_empty() {
        return Kind::Call.cases();
    }
    let of = |kind, sizes: &[u32]| -> Vec<Case> {
        let case = |size: &u32| Case::new(kind, *size as usize);
        sizes.iter().map(case).collect()
    };
    [
        of(Operation::Octets, octets),
        of(Operation::Structs, structs),
    ]
    .concat()
}
