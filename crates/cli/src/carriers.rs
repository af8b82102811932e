//! `deckwatch carriers`: lists the carriers of this machine, and checks whether they keep the contract.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use comfy_table::Table;
use comfy_table::presets::UTF8_BORDERS_ONLY;
use deckwatch_carrier::carriers::{self, CARRIERS, CarrierRef};
use deckwatch_carrier::conformance::{CASES, Launcher};
use deckwatch_carrier::external::FOLDERS_VARIABLE;
use serde::Serialize;

use crate::exit::BROKEN;
use crate::output::outln;

/// List the carriers of this machine, or check whether they keep the contract of a carrier
#[derive(clap::Args)]
#[command(after_help = "\
A carrier in another language is a folder with `carrier.toml` and a program. Folders are searched in --adapters, in \
DECKWATCH_ADAPTERS (separated by colons), in target/adapters of the checkout and in lib/deckwatch/adapters beside the \
program's own folder. The chapter `Writing a carrier` of the book describes how to write one.

Examples:
  deckwatch carriers
  deckwatch carriers --json
  ./dev adapters zeromq && deckwatch carriers check zeromq
  deckwatch carriers --adapters ~/my-adapters check mine --only order,sizes
  deckwatch run scenarios/nav.toml --carriers all")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Search this folder too for carriers in other languages
    #[arg(long, value_name = "FOLDER", global = true)]
    adapters: Vec<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Check these carriers, or `all`; exit status 1 if one breaks a promise
    Check {
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// Only these cases: order, sizes, fan-out, stopped-peer, dead-peer, late-join
        #[arg(long, value_name = "CASES", value_delimiter = ',')]
        only: Vec<String>,
    },
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    carriers::find_in(&args.adapters);
    match &args.action {
        Some(Action::Check { names, only }) => check(names, only, args.json),
        None => list(args.json),
    }
}

/// A carrier as it is listed.
#[derive(Serialize)]
struct Listed {
    name: String,
    family: String,
    summary: String,
    /// Whether a run can use it.
    usable: bool,
    /// The program, `built in`, or why it cannot be used.
    program: String,
}

fn list(json: bool) -> anyhow::Result<ExitCode> {
    let adapters = &carriers::found().adapters;
    let built_in = CARRIERS.iter().map(|carrier| Listed {
        name: carrier.name().to_owned(),
        family: "built in".to_owned(),
        summary: carrier.summary().to_owned(),
        usable: true,
        program: "built in".to_owned(),
    });
    let found = adapters.adapters.iter().map(|adapter| Listed {
        name: adapter.manifest.name.clone(),
        family: adapter.manifest.family.clone(),
        summary: adapter.manifest.summary.clone(),
        usable: adapter.program.is_ok(),
        program: match &adapter.program {
            Ok(path) => path.display().to_string(),
            Err(reason) => reason.clone(),
        },
    });
    let listed: Vec<Listed> = built_in.chain(found).collect();
    if json {
        let unusable: Vec<&str> = adapters.unusable.iter().map(|one| &*one.reason).collect();
        let all = serde_json::json!({"carriers": listed, "unusable": unusable});
        outln!("{}", serde_json::to_string_pretty(&all)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    table.set_header(["carrier", "family", "what it is", "program"]);
    for one in listed {
        table.add_row([one.name, one.family, one.summary, one.program]);
    }
    outln!("{table}")?;
    for one in &adapters.unusable {
        outln!("warning: an adapter cannot be used: {}", one.reason)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What a case found.
#[derive(Serialize)]
struct Checked {
    carrier: &'static str,
    case: &'static str,
    promise: &'static str,
    /// What the carrier did instead; absent if it keeps the promise.
    broken: Option<String>,
}

fn check(names: &[String], only: &[String], json: bool) -> anyhow::Result<ExitCode> {
    let known = |name: &&String| CASES.iter().any(|case| case.name == **name);
    if let Some(unknown) = only.iter().find(|name| !known(name)) {
        let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        bail!(
            "There is no case `{unknown}`. Name some of {}.",
            names.join(", ")
        );
    }
    let carriers: Vec<CarrierRef> = if names.iter().any(|name| name == "all") {
        CarrierRef::all()
            .chain(carriers::found().carriers())
            .collect()
    } else {
        names
            .iter()
            .map(|name| name.parse())
            .collect::<Result<_, _>>()?
    };
    let folders = std::env::join_paths(&carriers::found().folders)?;
    let launcher = Launcher {
        program: std::env::current_exe().context("The program's own path cannot be told.")?,
        arguments: vec!["part".into()],
        environment: vec![(FOLDERS_VARIABLE.into(), folders)],
    };
    let wanted = |name: &str| only.is_empty() || only.iter().any(|one| one == name);
    let mut all = Vec::new();
    for &carrier in &carriers {
        let carrier_name = carrier.name();
        for case in CASES.iter().filter(|case| wanted(case.name)) {
            let broken = case.check(&launcher, carrier).err();
            if !json {
                let verdict = broken.as_deref().unwrap_or("kept");
                outln!("{carrier_name}: {}: {verdict}", case.promise)?;
            }
            all.push(Checked {
                carrier: carrier_name,
                case: case.name,
                promise: case.promise,
                broken,
            });
        }
    }
    if json {
        outln!("{}", serde_json::to_string_pretty(&all)?)?;
    }
    let is_kept = all.iter().all(|one| one.broken.is_none());
    Ok(if is_kept {
        ExitCode::SUCCESS
    } else {
        BROKEN.into()
    })
}
