//! The processes of one peer: a server, a client of it, and a load beside it; started once and told to run again and again.

use std::time::Duration;

use super::case::Case;
use super::end::Role;
use super::error::BenchError;
pub(crate) use super::process::{End, Ran, RunLimits};
pub(crate) use super::program::{Place, Program, Shape};

/// What a peer consists of.
pub(crate) struct Plan<'p> {
    /// Its name in tables.
    pub(crate) name: &'static str,
    pub(crate) server: (&'p Program, Role, Place),
    pub(crate) client: (&'p Program, Role, Place),
    /// Clients that never pause while the client is measured.
    pub(crate) load: Option<(&'p Program, Role, Place)>,
    pub(crate) shape: Shape,
}

/// A server and its client.
pub(crate) struct Peer {
    /// All ends got the class that was asked for.
    pub(crate) is_placed: bool,
    /// What its server gave.
    pub(crate) reference: String,
    client: End,
    load: Option<End>,
    pub(crate) server: End,
}

impl Peer {
    /// Starts all ends.
    pub(crate) fn start(plan: &Plan<'_>) -> Result<Self, BenchError> {
        let Plan { name, shape, .. } = plan;
        let mut is_placed = true;
        let (program, role, place) = plan.server;
        let what = format!("The server of {name}");
        let mut server = End::start(what, program.command(role, place, None, shape))?;
        let (is_fifo, reference) = server.greeting()?;
        is_placed &= is_fifo == place.fifo.is_some();
        let mut calling =
            |what: &str, (program, role, place): (&Program, Role, Place), to: &str| {
                let command = program.command(role, place, Some(to), shape);
                let mut end = End::start(format!("The {what} of {name}"), command)?;
                let (is_fifo, _) = end.greeting()?;
                is_placed &= is_fifo == place.fifo.is_some();
                Ok::<End, BenchError>(end)
            };
        let all = shape.references.as_ref();
        let all = all.map(|file| format!("@{}", file.display()));
        let client = calling("client", plan.client, all.as_deref().unwrap_or(&reference))?;
        let load = plan.load.map(|load| calling("load", load, &reference));
        let load = load.transpose()?;
        Ok(Self {
            is_placed,
            reference,
            client,
            load,
            server,
        })
    }

    /// One run of calls; `None` where the user wants to end.
    pub(crate) fn call(
        &mut self,
        case: Case,
        limits: RunLimits,
    ) -> Result<Option<Ran>, BenchError> {
        let period_ns = case.period_ns.unwrap_or(0);
        self.run(case.kind.word(), (case.count(), 0), period_ns, limits)
    }

    /// The same of plain messages, of so many octets there and back.
    pub(crate) fn exchange(
        &mut self,
        case: Case,
        sizes: (usize, usize),
        limits: RunLimits,
    ) -> Result<Option<Ran>, BenchError> {
        let kind = if case.is_stream() {
            "raw-stream"
        } else {
            "raw"
        };
        self.run(kind, sizes, case.period_ns.unwrap_or(0), limits)
    }

    /// One run of what the client is told by that word; `None` where the user wants to end.
    pub(crate) fn run(
        &mut self,
        kind: &str,
        sizes: (usize, usize),
        period_ns: u64,
        limits: RunLimits,
    ) -> Result<Option<Ran>, BenchError> {
        // It goes on for as long as the client is measured, which rehearses first.
        let longer = RunLimits {
            budget: limits.budget + OVERLAP,
            ..limits
        };
        if let Some(load) = &mut self.load {
            load.begin(kind, sizes, 0, longer)?;
        }
        let ran = self.client.begin(kind, sizes, period_ns, limits);
        let ran = ran.and_then(|()| self.client.finish(limits));
        let ran = self.server.or_its_end(ran)?;
        if let Some(load) = &mut self.load
            && self.server.or_its_end(load.finish(longer))?.is_none()
        {
            return Ok(None);
        }
        Ok(ran)
    }
}

/// How much longer a load goes on than the client beside it: real-time threads of both still leave the kernel its share of a second.
const OVERLAP: Duration = Duration::from_millis(50);
