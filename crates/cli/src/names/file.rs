//! Commands on the file of a naming service that does not run.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail};
use deckwatch_naming::store::{Into, Report, Store, StoreError};
use deckwatch_os::regular;

use crate::exit::BAD_INPUT;
use crate::mission_args::duration;
use crate::output::{errln, out, outln, tell_rights};

/// What is exported, and where to.
#[derive(clap::Args)]
pub(super) struct ExportArgs {
    /// The file of the service's names; the service does not run
    #[arg(long, value_name = "FILE")]
    store: PathBuf,
    /// Export what is whole of a damaged store
    #[arg(long)]
    damaged: bool,
    /// The file to write, or `-` for standard output
    #[arg(default_value = "-")]
    to: PathBuf,
}

/// What is imported, and where to.
#[derive(clap::Args)]
pub(super) struct ImportArgs {
    /// The file of the service's names; it is made if there is none
    #[arg(long, value_name = "FILE")]
    store: PathBuf,
    /// Add the names to those that the store has
    #[arg(long)]
    merge: bool,
    /// The export, or `-` for standard input
    from: PathBuf,
}

/// What is swept.
#[derive(clap::Args)]
pub(super) struct GcArgs {
    /// The file of the service's names; the service does not run
    #[arg(long, value_name = "FILE")]
    store: PathBuf,
    /// Destroy them, with all names in them
    #[arg(long)]
    sweep: bool,
    /// Only those that were made at least this long ago
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = duration)]
    older: Duration,
}

/// Opens the store of a service that is about to start.
pub(super) fn open(file: &Path) -> anyhow::Result<Store> {
    let see = "`deckwatch names check` names what is damaged; ";
    let store = told(file, Store::open(file), see)?;
    tell_rights(file, store.rights_taken());
    Ok(store)
}

/// Names the file in an error, and what to do if it is in use or damaged.
fn told<T>(file: &Path, opened: Result<T, StoreError>, see: &str) -> anyhow::Result<T> {
    opened.map_err(|error| {
        let file = file.display();
        let words = if error.is_damage() {
            format!("{file} is no sound store; {see}{REMEDY}")
        } else if error.is_in_use() {
            format!(
                "{file} is in use by another process: stop the service whose names it has first"
            )
        } else {
            format!("cannot open {file}")
        };
        anyhow::Error::new(error).context(words)
    })
}

/// What helps when a store is damaged.
const REMEDY: &str = "move the damaged file away and make it anew from an export: \
                      `deckwatch names import --store FILE EXPORT`; `deckwatch names export \
                      --damaged` reads the names that are whole, unless the damage is in what leads \
                      to them";

fn examine(file: &Path) -> anyhow::Result<(Store, Report)> {
    told(file, Store::examine(file), "")
}

pub(super) fn check(file: &Path) -> anyhow::Result<ExitCode> {
    let (_store, report) = examine(file)?;
    if report.damaged > 0 {
        outln!("{report}")?;
        errln!("{} is damaged; {REMEDY}", file.display());
        return Ok(BAD_INPUT.into());
    }
    outln!(
        "{} is whole: {} contexts, {} names",
        file.display(),
        report.contexts,
        report.bindings
    )?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn export(args: &ExportArgs) -> anyhow::Result<()> {
    let (store, report) = examine(&args.store)?;
    if report.damaged > 0 {
        errln!("{report}");
        if !args.damaged {
            bail!(
                "{} is damaged; --damaged exports what is whole",
                args.store.display()
            );
        }
    }
    let mut text = Vec::new();
    let exported = store.export(&mut text)?;
    let text = std::str::from_utf8(&text)?;
    if args.to.as_os_str() == "-" {
        out!("{text}")?;
    } else {
        let written = deckwatch_report::write_private(&args.to, text);
        written.with_context(|| format!("cannot write {}", args.to.display()))?;
    }
    errln!(
        "{} contexts and {} names exported",
        exported.contexts,
        exported.bindings
    );
    Ok(())
}

pub(super) fn import(args: &ImportArgs) -> anyhow::Result<()> {
    let from = args.from.display();
    let lines: Box<dyn BufRead> = if args.from.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        let file = regular::open(&args.from);
        let file =
            file.with_context(|| format!("cannot read {from} (`-` reads standard input)"))?;
        Box::new(BufReader::new(file))
    };
    let into = if args.merge { Into::Merge } else { Into::Empty };
    let is_new = !args.store.exists();
    let store = open(&args.store)?;
    let imported = store.import(lines, into).with_context(|| {
        if is_new {
            // An empty store must not stay: a service would start with it, without the names.
            let _ = std::fs::remove_file(&args.store);
        }
        format!("nothing is imported from {from}")
    })?;
    outln!(
        "{} contexts made, {} names bound, {} bound already, {} left out: their contexts are gone",
        imported.contexts,
        imported.bindings,
        imported.kept,
        imported.left_out
    )
}

pub(super) fn collect(args: &GcArgs) -> anyhow::Result<()> {
    let store = if args.sweep && args.store.exists() {
        open(&args.store)?
    } else {
        examine(&args.store)?.0
    };
    let now = SystemTime::UNIX_EPOCH.elapsed()?;
    let mut orphans = store.orphans()?;
    orphans.retain(|orphan| {
        now.saturating_sub(Duration::from_secs(orphan.context.made_s)) >= args.older
    });
    for orphan in &orphans {
        let context = &orphan.context;
        let age = now.checked_sub(Duration::from_secs(context.made_s));
        let made = age.map_or_else(
            || "before the clock was set back".to_owned(),
            |age| format!("{} s ago", age.as_secs()),
        );
        outln!(
            "context {}: {} names, made {made} by {}, {}",
            orphan.number,
            context.bindings.count,
            if context.maker.is_empty() {
                "the service itself"
            } else {
                &context.maker
            },
            if context.was_bound {
                "no longer bound"
            } else {
                "never bound"
            }
        )?;
    }
    let count = orphans.len();
    if args.sweep {
        let numbers: Vec<u64> = orphans.iter().map(|orphan| orphan.number).collect();
        store.sweep(&numbers)?;
        outln!("{count} contexts destroyed")
    } else {
        outln!("{count} contexts that no name leads to; --sweep destroys them")
    }
}
