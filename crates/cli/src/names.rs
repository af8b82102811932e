//! `deckwatch names`: serves a naming service, and calls one.

pub(crate) mod at;
mod bind;
pub(crate) mod bounds;
mod file;
pub(crate) mod list;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::guarded::{GuardArgs, Refusals};
use crate::output::{errln, out, outln};
use crate::serve::{ReachArgs, ServeArgs};
use at::{At, Place};
use deckwatch_naming::store::Store;
use deckwatch_naming::{NAME_SERVICE, NamingService, limits, message_size_max};
use deckwatch_orb::limits::PROGRAM_SIZE;

/// Serve names, or use any CORBA naming service
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  deckwatch names serve --listen 127.0.0.1:2809 --store names.redb
  deckwatch names serve --listen 0.0.0.0:2809 --store names.redb --access ship-access.toml
  deckwatch names serve --listen ship:2810 --tls-certificate ship.pem --tls-key ship.key --tls-authorities fleet.pem --tls-require
  deckwatch names list --names corbaloc::ship:2809/NameService
  deckwatch names list --names corbaloc:ssliop:ship:2810/NameService --tls-authorities fleet.pem
  deckwatch names list corbaname::ship:2809#deckwatch -r --long
  deckwatch names bind deckwatch/NAV IOR:0000... --contexts
  deckwatch names bind-context fleet corbaloc::other:2809/NameService
  deckwatch names resolve deckwatch/NAV
  deckwatch names destroy deckwatch --recursive
  deckwatch names check names.redb
  deckwatch names export --store names.redb names.jsonl
  deckwatch names import --store new.redb names.jsonl
  deckwatch names gc --store names.redb --sweep

Without --access, this host may do everything, and others may resolve and list names. An access file has rules such as
these; `deckwatch schema access` prints its schema:
  [[allow]]
  who = [\"10.1.0.0/16\", \"cert:rts.ship\", \"this-host\"]
  may = [\"resolve\", \"bind\"]

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
        serve: Box<ServeArgs>,
        #[command(flatten)]
        guard: GuardArgs,
        #[command(flatten)]
        reach: ReachArgs,
        /// Keep the names in this file; without it they end with the process
        #[arg(long, value_name = "FILE")]
        store: Option<PathBuf>,
        /// Percent of the contexts and names that one address, or one user of this host, may make; beyond it IMP_LIMIT
        /// is raised
        #[arg(long, value_name = "PERCENT", default_value_t = limits::SHARE_PERCENT_DEFAULT,
            value_parser = clap::value_parser!(u8).range(1..=100))]
        share_per_peer: u8,
        /// MiB of memory that the service may take; the limits of messages and connections follow from it [default: what
        /// the process may have, by its control group, ulimit -v and the machine]
        #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(16..=1 << 20))]
        memory: Option<u64>,
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
    /// Read the file of a service that does not run, and name what is damaged (exit status 2)
    Check {
        /// The file
        file: PathBuf,
    },
    /// Write all names of a service that does not run as lines of JSON, for a backup that people can read
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(file::ExportArgs),
    /// Read the lines of an export into a store, all of them or none
    #[command(after_help = EXPORT_EXAMPLES)]
    Import(file::ImportArgs),
    /// List or destroy the contexts that no name leads to, in the file of a service that does not run
    #[command(after_help = GC_EXAMPLES)]
    Gc(file::GcArgs),
}

const GC_EXAMPLES: &str = "\
Examples:
  deckwatch names gc --store names.redb
  deckwatch names gc --store names.redb --older 1h --sweep

A name in another service may lead to a context that is listed here: ask before you sweep. A service that runs frees contexts \
by itself: one that was never bound, holds no name and was not used for ten minutes gives way when its maker, or the service, \
has no room for another.";

const EXPORT_EXAMPLES: &str = "\
Examples:
  deckwatch names export --store names.redb names.jsonl
  deckwatch names export --store damaged.redb --damaged | grep NAV
  deckwatch names import --store new.redb names.jsonl
  deckwatch names import --store names.redb --merge other.jsonl";

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::Serve {
            mut serve,
            guard,
            reach,
            store,
            share_per_peer,
            memory,
        } => {
            serve.memory_max = memory.map(|mib| mib << 20);
            let for_peers = serve
                .memory_max
                .map(|octets| octets.saturating_sub(PROGRAM_SIZE));
            serve.message_size_max = Some(message_size_max(for_peers));
            serve_names(&serve, (&guard, &reach), store, share_per_peer)?;
        }
        Action::List(args) => return list::run(&args),
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
        Action::Check { file } => return file::check(&file),
        Action::Export(args) => file::export(&args)?,
        Action::Import(args) => file::import(&args)?,
        Action::Gc(args) => file::collect(&args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn serve_names(
    serve: &ServeArgs,
    (guard, reach): (&GuardArgs, &ReachArgs),
    store: Option<PathBuf>,
    share_percent: u8,
) -> anyhow::Result<()> {
    let access = guard.access(None, None)?;
    let audit = guard.audit()?;
    let orb = serve.orb(audit.as_ref(), Some(reach))?;
    serve.reload_with(guard);
    let store = match &store {
        Some(file) => file::open(file)?,
        None => Store::in_memory()?,
    };
    let store = store.with_share(share_percent);
    let service = NamingService::start_with(&orb, store, Some(access))?;
    if let Some(endpoint) = orb.endpoints().first() {
        errln!(
            "serving names at corbaloc:{}/{NAME_SERVICE}",
            endpoint.url_address()
        );
    }
    let refusals = Refusals::default();
    let taken = || match service.guard() {
        Some(guard) => (guard.take_refusals(), guard.refused()),
        None => (Vec::new(), 0),
    };
    serve.serve(&orb, service.root().object(), || {
        refusals.look(taken);
        false
    })?;
    refusals.print(taken());
    if let Some(audit) = &audit {
        audit.close();
    }
    Ok(())
}
