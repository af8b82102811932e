//! What the servers share that a stranger may reach: who may do what, and where that is written down.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::OnceLock;

use anyhow::Context as _;
use deckwatch_access::{Rule, Table};
use deckwatch_audit::{Audit, AuditOptions, Event, Record, limits};
use deckwatch_orb::{Access, Refusal};

use crate::output::errln;

/// Who may do what.
#[derive(clap::Args)]
pub(crate) struct GuardArgs {
    /// Who may do what, by address, user or certificate: what no rule of this file allows is refused; SIGHUP reads it
    /// again. Without it this host may do everything, and others may resolve names, consume events and look at counts
    #[arg(long, value_name = "FILE")]
    access: Option<PathBuf>,
    /// Write who connects, what is refused, and who binds and administers to this file, as lines of JSON
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    /// MiB of the audit log before the next file is begun
    #[arg(long, value_name = "MIB", requires = "audit", default_value_t = limits::FILE_SIZE_DEFAULT >> 20,
        value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    audit_size: u64,
    /// Earlier files of the audit log that are kept, as FILE.1, FILE.2 and so on
    #[arg(long, value_name = "COUNT", requires = "audit", default_value_t = limits::FILES_KEPT_DEFAULT,
        value_parser = clap::value_parser!(u32).range(..=i64::from(limits::FILES_KEPT_MAX)))]
    audit_keep: u32,
    /// What the rules have become.
    #[arg(skip)]
    made: OnceLock<Access>,
}

impl GuardArgs {
    /// The rules of `--access`, or those of a server without it and `more`. `name` is the name of the objects in the
    /// rules.
    pub(crate) fn access(
        &self,
        name: Option<String>,
        more: Option<Rule>,
    ) -> anyhow::Result<Access> {
        let access = match &self.access {
            Some(file) => Access::new(deckwatch_scenario::access::load(file)?)
                .from_file(file.display().to_string()),
            None => {
                let table = Table::local(deckwatch_os::process::effective_user());
                Access::new(more.into_iter().fold(table, Table::with))
            }
        };
        let _ = self.made.set(access.clone()); // A server has one table.
        Ok(access.named(name))
    }

    /// The table of `--access`, for a server that reads it again.
    pub(crate) fn table(&self) -> Option<AccessFile> {
        let file = self.access.clone()?;
        let access = self.made.get()?.clone();
        Some(AccessFile { file, access })
    }
}

/// A table that is in a file.
pub(crate) struct AccessFile {
    file: PathBuf,
    access: Access,
}

impl AccessFile {
    /// Reads the file again, and says so. A file with a mistake changes nothing.
    pub(crate) fn reload(&self, audit: Option<&Audit>) {
        let file = self.file.display();
        match deckwatch_scenario::access::load(&self.file) {
            Ok(table) => {
                let gone = self.access.replace(table);
                errln!("SIGHUP: the access table {file} is read again.");
                if gone > 0 {
                    errln!(
                        "SIGHUP: {gone} clients were disconnected: the table does not permit them."
                    );
                }
                note_reload(audit, format!("access table {file}"));
            }
            Err(error) => {
                errln!(
                    "SIGHUP: {error}\nSIGHUP: {file} is not used; the access table in use stays in use."
                );
            }
        }
    }
}

/// Writes to the audit log what was read again.
pub(crate) fn note_reload(audit: Option<&Audit>, about: String) {
    if let Some(audit) = audit {
        audit.record(Record {
            about: Some(about),
            ..Record::new(Event::Reloaded)
        });
    }
}

impl GuardArgs {
    /// The log of `--audit`.
    pub(crate) fn audit(&self) -> anyhow::Result<Option<Audit>> {
        let Some(file) = &self.audit else {
            return Ok(None);
        };
        let options = AuditOptions {
            size_max: self.audit_size << 20,
            kept: self.audit_keep,
            ..AuditOptions::new(file)
        };
        let audit = Audit::open(&options);
        Ok(Some(audit.with_context(|| {
            format!("cannot write an audit log to {}", file.display())
        })?))
    }
}

/// Prints refusals on standard error, at most those that a service keeps in a second.
#[derive(Default)]
pub(crate) struct Refusals {
    looks: Cell<u32>,
    told: Cell<u64>,
}

/// Looks of the serving loop between two prints: one second.
const LOOKS_PER_PRINT: u32 = 10;

impl Refusals {
    /// Called by the serving loop. `take` returns the refusals since the last call, and the count of all.
    pub(crate) fn look(&self, take: impl FnOnce() -> (Vec<Refusal>, u64)) {
        self.looks.set((self.looks.get() + 1) % LOOKS_PER_PRINT);
        if self.looks.get() == 0 {
            self.print(take());
        }
    }

    /// Prints what was refused since the last call.
    pub(crate) fn print(&self, (refusals, all): (Vec<Refusal>, u64)) {
        for refusal in &refusals {
            errln!("refused: {refusal}");
        }
        let told = self.told.get() + refusals.len() as u64;
        let more = all.saturating_sub(told);
        if more > 0 {
            errln!("refused: {more} more requests");
        }
        self.told.set(told + more);
    }
}
