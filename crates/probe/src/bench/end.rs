//! One end of a bench: a process that serves, or one that calls when it is told to. Foreign ends speak the same few words
//! (`bench/*/ends.*`).
//!
//! An end first says its scheduling class and, where it serves, what to call: `fifo REFERENCE`, `other REFERENCE`. A calling end is told
//! `KIND A B COUNT BUDGET_NS PERIOD_NS` (raw: A octets there and B back; others: A octets or structs) and answers `ok N` and N round trips of
//! four octets each, nanoseconds in this machine's order; of a stream or a load `sum MESSAGES NANOSECONDS`; or `error WORDS`. With a period a
//! call begins each so many nanoseconds. Every end ends with its standard input.

pub(crate) mod commands;
mod orb;
mod raw;

use std::io::Write;
use std::path::PathBuf;

use deckwatch_os::schedule::{Class, class, limit_real_time, set_affinity, set_class};

use super::error::BenchError;
use super::mirror::Inserted;
use super::variant::Variant;
use crate::limits::REAL_TIME_UNBLOCKED_MAX;
use commands::commands;

/// What an end does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Answers over plain TCP.
    RawServer,
    /// Asks over plain TCP.
    RawClient,
    /// Asks over plain TCP by many connections at once.
    RawLoad,
    /// Serves objects of our ORB.
    OrbServer,
    /// Calls objects by our ORB.
    OrbClient,
    /// Calls an object by many ORBs of ours at once.
    OrbLoad,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 6] = [
        Self::RawServer,
        Self::RawClient,
        Self::RawLoad,
        Self::OrbServer,
        Self::OrbClient,
        Self::OrbLoad,
    ];

    /// Its name on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::RawServer => "raw-server",
            Self::RawClient => "raw-client",
            Self::RawLoad => "raw-load",
            Self::OrbServer => "orb-server",
            Self::OrbClient => "orb-client",
            Self::OrbLoad => "orb-load",
        }
    }
}

/// What an end is told when it starts.
#[derive(Clone, Debug)]
pub struct EndPlan {
    /// What it does.
    pub role: Role,
    /// The processor it is bound to.
    pub processor: Option<u32>,
    /// Its SCHED_FIFO priority; none: time sharing.
    pub fifo: Option<u8>,
    /// What our servants do beside their work.
    pub inserted: Inserted,
    /// What a client calls, or behind an `@` the file of what it calls by turns.
    pub reference: Option<String>,
    /// Objects that a server activates.
    pub objects: usize,
    /// Where a server writes their references.
    pub references: Option<PathBuf>,
    /// How it waits, and over what it talks.
    pub variant: Variant,
    /// A server has lanes of two priorities; callers of it have and say theirs.
    pub lanes: bool,
    /// Clients that a load consists of.
    pub clients: usize,
}

/// Plays an end until its standard input ends.
///
/// # Errors
/// [`BenchError::System`] where it cannot begin; later failures are answers.
pub fn run_end(plan: &EndPlan) -> Result<(), BenchError> {
    if let Some(processor) = plan.processor {
        set_affinity(&[processor]).map_err(system("The processor cannot be had"))?;
    }
    let reference = plan.reference.as_deref().unwrap_or_default();
    match plan.role {
        Role::RawServer => raw::serve(plan),
        Role::OrbServer => orb::serve(plan),
        Role::RawClient => {
            place(plan.fifo);
            commands(|command, samples| raw::run(reference, plan, command, samples))
        }
        Role::RawLoad => {
            place(plan.fifo);
            commands(|command, samples| raw::load(reference, plan, command, samples))
        }
        Role::OrbClient => {
            let targets = orb::Targets::of(plan)?;
            place(plan.fifo);
            targets.take_priority(plan)?;
            commands(|command, samples| orb::run(&targets, command, samples))
        }
        Role::OrbLoad => {
            let clients = orb::load_clients(plan)?;
            place(plan.fifo);
            commands(|command, samples| orb::load(plan, &clients, command, samples))
        }
    }
}

pub(crate) fn system(doing: &'static str) -> impl Fn(std::io::Error) -> BenchError {
    move |source| BenchError::System { doing, source }
}

pub(crate) fn refused<E: std::fmt::Display>(what: &str) -> impl Fn(E) -> BenchError {
    move |error| BenchError::EndFailed {
        what: what.to_owned(),
        reason: error.to_string(),
    }
}

/// Puts the calling thread into its class. What it got is told by [`greet`].
pub(crate) fn place(fifo: Option<u8>) {
    if let Some(priority) = fifo {
        let _kept_as_it_is = limit_real_time(REAL_TIME_UNBLOCKED_MAX);
        let _told_by_greet = set_class(Class::Fifo(priority));
    }
}

/// Says the calling thread's class, and what to call.
pub(crate) fn greet(reference: &str) -> Result<(), BenchError> {
    let word = match class() {
        Ok(Class::Fifo(_)) => "fifo",
        _ => "other",
    };
    let mut out = std::io::stdout();
    writeln!(out, "{word} {reference}")
        .and_then(|()| out.flush())
        .map_err(system("Nobody listens"))
}

/// Waits for the end of the standard input.
pub(crate) fn await_end() -> Result<(), BenchError> {
    let read = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    read.map(drop).map_err(system("Nobody speaks"))
}
