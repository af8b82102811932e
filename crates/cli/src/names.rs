//! `deckwatch names`: a naming service, and the commands of its users.

mod client;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::serve::{ServeArgs, client_orb};
use anyhow::Context as _;
use client::{At, bind, list};
use deckwatch_naming::store::Store;
use deckwatch_naming::user::path;
use deckwatch_naming::{NAME_SERVICE, NamingService};

/// Serve names, or use any CORBA naming service
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  deckwatch names serve --listen 0.0.0.0:2809 --store names.redb
  deckwatch names list --at corbaloc::ship:2809/NameService
  deckwatch names bind deckwatch/NAV IOR:0000... --contexts
  deckwatch names resolve deckwatch/NAV

A name is written id.kind/id.kind/..., with \\ before a dot or slash that belongs to it.")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Serve a naming service; its reference is printed, and `corbaloc::HOST:PORT/NameService` leads to it
    Serve {
        #[command(flatten)]
        serve: ServeArgs,
        /// Keep the names in this file; without it they end with the process
        #[arg(long, value_name = "FILE")]
        store: Option<PathBuf>,
    },
    /// List what a context holds
    List {
        #[command(flatten)]
        at: At,
        /// The context; the root without it
        name: Option<String>,
        /// Print one JSON array
        #[arg(long)]
        json: bool,
    },
    /// Bind a reference to a name
    Bind {
        #[command(flatten)]
        at: At,
        /// The name
        name: String,
        /// IOR:, corbaloc: or corbaname:
        reference: String,
        /// Replace what is bound
        #[arg(long)]
        replace: bool,
        /// Make the contexts on the way that do not exist
        #[arg(long)]
        contexts: bool,
    },
    /// Print the reference under a name
    Resolve {
        #[command(flatten)]
        at: At,
        /// The name
        name: String,
    },
    /// Remove a name
    Unbind {
        #[command(flatten)]
        at: At,
        /// The name
        name: String,
    },
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::Serve { serve, store } => serve_names(&serve, store)?,
        Action::List { at, name, json } => list(&at, name.as_deref(), json)?,
        Action::Bind {
            at,
            name,
            reference,
            replace,
            contexts,
        } => bind(&at, &name, &reference, replace, contexts)?,
        Action::Resolve { at, name } => {
            let orb = client_orb()?;
            let found = at
                .root(&orb)?
                .resolve(&path(&name)?)
                .with_context(|| format!("cannot resolve {name}"))?;
            let object = found.with_context(|| format!("{name} is bound to nil"))?;
            anstream::println!("{}", orb.object_to_string(&object));
        }
        Action::Unbind { at, name } => {
            at.root(&client_orb()?)?
                .unbind(&path(&name)?)
                .with_context(|| format!("cannot unbind {name}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn serve_names(serve: &ServeArgs, store: Option<PathBuf>) -> anyhow::Result<()> {
    let orb = serve.orb()?;
    let store = match &store {
        Some(file) => {
            Store::open(file).with_context(|| format!("cannot open {}", file.display()))?
        }
        None => Store::in_memory()?,
    };
    let service = NamingService::start(&orb, store)?;
    if let Some(endpoint) = orb.endpoints().first() {
        anstream::eprintln!("serving names at corbaloc::{endpoint}/{NAME_SERVICE}");
    }
    serve.serve(&orb, service.root().object(), || false)
}
