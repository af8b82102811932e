//! What the subcommands that serve share: they make an ORB from arguments, print a reference, and shut down in order.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use deckwatch_orb::{ObjectRef, Orb};

use crate::output::{outln, write_whole};

/// Interval at which a serving process checks whether it must end.
const END_CHECK: Duration = Duration::from_millis(100);

/// Where a server listens and what it tells of itself.
#[derive(clap::Args)]
pub(crate) struct ServeArgs {
    /// Address and port to listen at (port 0 for any free one), or unix:/path, or shm:/path
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    pub(crate) listen: String,
    /// Write the reference to this file as well as to standard output
    #[arg(long, value_name = "FILE")]
    ior_file: Option<PathBuf>,
}

impl ServeArgs {
    /// Returns an ORB that listens at that address, with its root POA active.
    pub(crate) fn orb(&self) -> anyhow::Result<Orb> {
        // Each client needs a file descriptor. If the limit cannot be raised, the present limit is used.
        let _may_open = deckwatch_os::process::raise_open_files();
        let orb = Orb::builder().listen(&self.listen)?.build();
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

    /// Prints the reference, then serves until SIGINT, SIGTERM or `ended`. Sends CloseConnection on open connections
    /// before it returns.
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
        let ior = orb.object_to_string(reference);
        if let Some(file) = &self.ior_file {
            write_whole(file, &format!("{ior}\n"))?;
        }
        outln!("{ior}")?;
        while deckwatch_os::signal::ending().is_none() && !ended() {
            std::thread::sleep(END_CHECK);
        }
        Ok(())
    }
}

/// Returns an ORB for a client. With `trace`, it prints its messages on standard error.
pub(crate) fn client_orb(trace: bool) -> anyhow::Result<Orb> {
    let mut builder = Orb::builder()
        .connect_timeout(Duration::from_secs(5))
        .round_trip_timeout(Duration::from_secs(30));
    if trace {
        builder = builder.trace(std::io::stderr());
    }
    Ok(builder.build()?)
}
