//! What the subcommands that serve share: they make an ORB from arguments, print a reference, and shut down in order.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context as _;
use deckwatch_audit::Audit;
use deckwatch_orb::{ObjectRef, Orb, Reach, Tls};

use crate::guarded::{AccessFile, GuardArgs, note_reload};
use crate::marking::Marking;
use crate::output::{errln, outln, write_whole};
use crate::tls::TlsArgs;

/// Interval at which a serving process checks whether it must end.
const END_CHECK: Duration = Duration::from_millis(100);

/// Where a server listens and what it tells of itself.
#[derive(clap::Args)]
pub(crate) struct ServeArgs {
    /// Address and port to listen at (port 0 for any free one), or tls:HOST:PORT, or unix:/path, or shm:/path
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    pub(crate) listen: String,
    /// Write the reference to this file as well as to standard output
    #[arg(long, value_name = "FILE")]
    ior_file: Option<PathBuf>,
    /// Listen at this address over TLS too, beside `--listen`
    #[arg(long, value_name = "HOST:PORT", requires = "tls_certificate")]
    tls_listen: Option<String>,
    #[command(flatten)]
    tls: TlsArgs,
    /// Octets of memory that the server may take; without it, what the process may have.
    #[arg(skip)]
    pub(crate) memory_max: Option<u64>,
    /// Octets of the largest message, if the service has a limit of its own.
    #[arg(skip)]
    pub(crate) message_size_max: Option<usize>,
    /// How the server marks its packets, if it does.
    #[arg(skip)]
    pub(crate) marking: Option<Marking>,
    /// The certificates that the options of TLS name.
    #[arg(skip)]
    loaded: OnceLock<Tls>,
    /// The table of `--access`.
    #[arg(skip)]
    table: OnceLock<AccessFile>,
    /// The log that notes when files are read again.
    #[arg(skip)]
    audit: OnceLock<Audit>,
}

/// The networks in which a service calls objects whose references its clients gave.
#[derive(clap::Args)]
pub(crate) struct ReachArgs {
    /// Call objects in these networks too for clients on other hosts: 10.2.0.0/16,fd00::/8 or any (all but loopback
    /// and link-local)
    ///
    /// A client on another host gives references, and the service calls them: its consumers, its naming contexts. They
    /// lead only to the networks in which the service listens and to these; never to unix sockets, and to loopback only
    /// if a network here contains it. Clients on this host give any address.
    #[arg(long, value_name = "NETWORKS")]
    reach: Option<Reach>,
}

impl ServeArgs {
    /// Returns an ORB that listens at that address, with its root POA active.
    /// `audit` notes who connects and what is refused. A service that calls objects of its clients has a reach.
    pub(crate) fn orb(
        &self,
        audit: Option<&Audit>,
        reach: Option<&ReachArgs>,
    ) -> anyhow::Result<Orb> {
        // Each client needs a file descriptor. If the limit cannot be raised, the present limit is used.
        let _may_open = deckwatch_os::process::raise_open_files();
        // Without a reserve the server does without.
        let _is_kept = deckwatch_os::reserve::keep();
        let mut builder = Orb::builder();
        if let Some(octets) = self.memory_max {
            builder = builder.memory_max(octets);
        }
        if let Some(octets) = self.message_size_max {
            builder = builder.message_size_max(octets);
        }
        if let Some(marking) = self.marking {
            builder = marking.mark(builder)?;
        }
        if let Some(reach) = reach {
            builder = builder.reach(reach.reach.clone().unwrap_or_default());
        }
        builder = builder.listen(&self.tls.listen_at(&self.listen))?;
        if let Some(also) = &self.tls_listen {
            builder = builder.listen(&format!("tls:{also}"))?;
        }
        if let Some(tls) = self.tls.load()? {
            builder = builder.tls(&tls);
            // An ORB is made once.
            let _ = self.loaded.set(tls);
        }
        if let Some(audit) = audit {
            builder = builder.access_log(Arc::new(audit.clone()));
            let _ = self.audit.set(audit.clone()); // An ORB is made once.
        }
        let orb = builder.build();
        let orb = orb.with_context(|| match TcpListener::bind(&self.listen) {
            Err(error) if error.kind() == ErrorKind::AddrNotAvailable => format!(
                "cannot listen at {}: no interface of this host has that address",
                self.listen
            ),
            _ => format!("cannot listen at {}", self.listen),
        })?;
        orb.root_poa()?.the_poa_manager().activate()?;
        Ok(orb)
    }

    /// Has SIGHUP read the table of `--access` again.
    pub(crate) fn reload_with(&self, guard: &GuardArgs) {
        if let Some(table) = guard.table() {
            let _ = self.table.set(table); // A server has one table.
        }
    }

    /// Prints the reference, then serves until SIGINT, SIGTERM or `ended`. With TLS or a table, SIGHUP reads their files
    /// again; without, it ends the server too. Sends CloseConnection on open connections before it returns.
    pub(crate) fn serve(
        &self,
        orb: &Orb,
        reference: &ObjectRef,
        ended: impl Fn() -> bool,
    ) -> anyhow::Result<()> {
        self.serve_until(orb, reference, ended)?;
        Ok(orb.shutdown(true)?)
    }

    /// As [`ServeArgs::serve`], but leaves the ORB to its caller.
    pub(crate) fn serve_until(
        &self,
        orb: &Orb,
        reference: &ObjectRef,
        ended: impl Fn() -> bool,
    ) -> anyhow::Result<()> {
        deckwatch_os::signal::catch_ending()?;
        let reloads = self.loaded.get().is_some() || self.table.get().is_some();
        if reloads {
            deckwatch_os::signal::catch_reload()?;
        }
        let ior = orb.object_to_string(reference);
        if let Some(file) = &self.ior_file {
            write_whole(file, &format!("{ior}\n"))?;
        }
        outln!("{ior}")?;
        while deckwatch_os::signal::ending().is_none() && !ended() {
            if reloads && deckwatch_os::signal::take_reload() {
                self.reload();
            }
            std::thread::sleep(END_CHECK);
        }
        Ok(())
    }

    /// Reads certificates and the access table again.
    fn reload(&self) {
        let audit = self.audit.get();
        match self.loaded.get().map(Tls::reload) {
            None => {}
            Some(Ok(closed)) => {
                errln!("SIGHUP: the certificates are read again.");
                if closed > 0 {
                    errln!(
                        "SIGHUP: {closed} connections were closed: their certificates are no longer accepted."
                    );
                }
                note_reload(audit, "certificates".to_owned());
            }
            Some(Err(error)) => errln!("SIGHUP: {error}. Those in use stay in use."),
        }
        if let Some(table) = self.table.get() {
            table.reload(audit);
        }
    }
}

/// Returns an ORB for a client. With `trace`, it prints its messages on standard error.
pub(crate) fn client_orb(trace: bool, tls: &TlsArgs) -> anyhow::Result<Orb> {
    let mut builder = tls
        .over(Orb::builder())?
        .connect_timeout(Duration::from_secs(5))
        .round_trip_timeout(Duration::from_secs(30));
    if trace {
        builder = builder.trace(std::io::stderr());
    }
    Ok(builder.build()?)
}
