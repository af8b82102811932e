//! `deckwatch names`: serves a naming service, and calls one.

pub(crate) mod at;
mod bind;
pub(crate) mod list;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::output::{errln, out, outln};
use crate::serve::ServeArgs;
use anyhow::Context as _;
use at::{At, Place};
use deckwatch_naming::store::Store;
use deckwatch_naming::{NAME_SERVICE, NamingService};

/// Serve names, or use any CORBA naming service
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  deckwatch names serve --listen 0.0.0.0:2809 --store names.redb
  deckwatch names list --names corbaloc::ship:2809/NameService
  deckwatch names list corbaname::ship:2809#deckwatch -r --long
  deckwatch names bind deckwatch/NAV IOR:0000... --contexts
  deckwatch names bind-context fleet corbaloc::other:2809/NameService
  deckwatch names resolve deckwatch/NAV
  deckwatch names destroy deckwatch --recursive

A name is written id.kind/id.kind/..., with \\ before a dot or slash that belongs to it; or corbaname:ADDRESS#NAME, which says \
where too. A reference is IOR:, corbaloc: or corbaname:, a file that holds one, or `-` for standard input.")]
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
    List(list::ListArgs),
    /// Bind a reference to a name
    Bind(bind::BindArgs),
    /// Bind a naming context, of this service or another, so that names go on in it
    BindContext(bind::BindArgs),
    /// Make a context and bind it
    NewContext {
        #[command(flatten)]
        at: At,
        /// The name
        name: String,
        /// Make the contexts on the way that do not exist, and be content with one that does
        #[arg(long)]
        contexts: bool,
    },
    /// Print the reference under a name
    Resolve {
        #[command(flatten)]
        at: At,
        /// The name
        name: String,
        /// Explain the reference instead: where it leads, what it carries
        #[arg(long)]
        explain: bool,
    },
    /// Remove a name; a context under it goes on, without the name
    Unbind {
        #[command(flatten)]
        at: At,
        /// The name
        name: String,
    },
    /// Destroy an empty context, and remove its name
    Destroy {
        #[command(flatten)]
        at: At,
        /// The name
        name: String,
        /// What it holds too: names are removed, contexts destroyed
        #[arg(short, long)]
        recursive: bool,
    },
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::Serve { serve, store } => serve_names(&serve, store)?,
        Action::List(args) => list::run(&args)?,
        Action::Bind(args) => bind::run(&args, false)?,
        Action::BindContext(args) => bind::run(&args, true)?,
        Action::NewContext { at, name, contexts } => {
            bind::new_context(&at.place(&name)?, contexts)?;
        }
        Action::Resolve { at, name, explain } => {
            let object = at.place(&name)?.resolve()?;
            if explain {
                out!("{}", object.ior().explain())?;
            } else {
                outln!("{object}")?;
            }
        }
        Action::Unbind { at, name } => at.place(&name)?.unbind()?,
        Action::Destroy {
            at,
            name,
            recursive,
        } => bind::destroy(&at.place(&name)?, recursive)?,
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
        errln!(
            "serving names at corbaloc:{}/{NAME_SERVICE}",
            endpoint.url_address()
        );
    }
    serve.serve(&orb, service.root().object(), || false)
}
