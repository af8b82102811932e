//! The processes of one system: a server, its client, and a load beside them. They start once and run many times.

use std::time::Duration;

use deckwatch_meter::experiment::EndNote;

use super::end::Role;
use super::error::LaboratoryError;
use super::examined::{Asked, Examination, examine};
use super::process::{End, RunLimits, RunResult};
use super::program::{Place, Program, Shape};

/// The processes that a system consists of.
pub(crate) struct Plan<'p> {
    /// Its name in results.
    pub(crate) name: &'static str,
    pub(crate) server: (&'p Program, Role, Place),
    pub(crate) client: (&'p Program, Role, Place),
    /// Clients that never pause while the client is measured.
    pub(crate) load: Option<(&'p Program, Role, Place)>,
    pub(crate) shape: Shape,
}

impl<'p> Plan<'p> {
    /// A server and a client of one program, without a load.
    pub(crate) const fn pair(
        name: &'static str,
        program: &'p Program,
        (server, client): (Role, Role),
        places: (Place, Place),
        shape: Shape,
    ) -> Self {
        Self {
            name,
            server: (program, server, places.0),
            client: (program, client, places.1),
            load: None,
            shape,
        }
    }
}

/// A server and its clients.
pub(crate) struct System {
    pub(crate) name: &'static str,
    /// All ends got the scheduling class that was asked for.
    pub(crate) is_placed: bool,
    /// The reference, or the address, that the server printed.
    pub(crate) reference: String,
    pub(crate) client: End,
    /// Clients that call while `client` is measured.
    pub(crate) load: Vec<End>,
    pub(crate) server: End,
    /// The server has services whose threads are in the time-sharing class.
    has_services: bool,
    /// The places of server, client and load.
    places: [Place; 3],
}

impl System {
    /// Starts all processes.
    pub(crate) fn start(plan: &Plan<'_>) -> Result<Self, LaboratoryError> {
        let Plan { name, shape, .. } = plan;
        let (program, role, place) = plan.server;
        let what = format!("The server of {name}");
        let mut server = End::start(what, program.command(role, place, None, shape))?;
        let (is_fifo, reference) = server.greeting()?;
        let mut is_placed = is_fifo == place.fifo.is_some();
        let file = shape.references.as_ref();
        let file = file.map(|file| format!("@{}", file.display()));
        let target = file.as_deref().unwrap_or(&reference);
        let (client, is_client_placed) =
            start_client(&format!("The client of {name}"), plan.client, target, shape)?;
        is_placed &= is_client_placed;
        let mut system = Self {
            name,
            is_placed,
            reference,
            client,
            load: Vec::new(),
            server,
            has_services: role == Role::Attacked,
            places: [
                place,
                plan.client.2,
                plan.load.map_or(plan.client.2, |load| load.2),
            ],
        };
        if let Some(load) = plan.load {
            system.add_load(load, shape)?;
        }
        Ok(system)
    }

    /// The names of `systems`.
    pub(crate) fn names(systems: &[Self]) -> Vec<&'static str> {
        systems.iter().map(|system| system.name).collect()
    }

    /// Starts one more process that calls the server.
    pub(crate) fn add_load(
        &mut self,
        load: (&Program, Role, Place),
        shape: &Shape,
    ) -> Result<(), LaboratoryError> {
        let what = format!("The load of {}", self.name);
        let (end, is_placed) = start_client(&what, load, &self.reference, shape)?;
        self.is_placed &= is_placed;
        self.load.push(end);
        Ok(())
    }

    /// Runs `kind` at the client once, beside the load. Returns `None` if the user wants to end.
    pub(crate) fn run(
        &mut self,
        kind: &str,
        sizes: (usize, usize),
        period_ns: u64,
        limits: RunLimits,
    ) -> Result<Option<RunResult>, LaboratoryError> {
        self.run_beside(kind, sizes, period_ns, limits, || {})
    }

    /// Does `run` while the load rests.
    pub(crate) fn without_load<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let load = std::mem::take(&mut self.load);
        let ran = run(self);
        self.load = load;
        ran
    }

    /// The reference that sizes of messages are computed with.
    pub(crate) fn first_reference(&self) -> &str {
        let (first, _) = self
            .reference
            .split_once(',')
            .unwrap_or((&self.reference, ""));
        first
    }

    /// As [`Self::run`], and reads back the ends meanwhile.
    pub(crate) fn run_examined(
        &mut self,
        kind: &str,
        sizes: (usize, usize),
        period_ns: u64,
        limits: RunLimits,
    ) -> Result<Option<(RunResult, Vec<EndNote>)>, LaboratoryError> {
        let [server, client, load] = self.places;
        // A thread of the server may have the priority of its caller.
        let others = [client, load].into_iter().filter_map(|place| place.fifo);
        let asked = Asked {
            place: server,
            others: others.collect(),
            has_others_besides: self.has_services,
        };
        let mut ends = vec![
            Examination::begin("server", self.server.process(), asked),
            Examination::begin("client", self.client.process(), Asked::at(client)),
        ];
        ends.extend((self.load.iter()).map(|end| {
            let process = end.process();
            Examination::begin("load", process, Asked::at(load))
        }));
        let read = || examine(&mut ends, limits.budget);
        let ran = self.run_beside(kind, sizes, period_ns, limits, read)?;
        let notes = ends.iter().map(Examination::note).collect();
        Ok(ran.map(|ran| (ran, notes)))
    }

    fn run_beside(
        &mut self,
        kind: &str,
        sizes: (usize, usize),
        period_ns: u64,
        limits: RunLimits,
        beside: impl FnOnce(),
    ) -> Result<Option<RunResult>, LaboratoryError> {
        for load in &mut self.load {
            load.begin(kind, sizes, 0, limits.longer())?;
        }
        let ran = self.client.begin(kind, sizes, period_ns, limits);
        let ran = ran.and_then(|()| {
            beside();
            self.client.finish(limits)
        });
        let ran = self.server.blame_exit(ran)?;
        for load in &mut self.load {
            let finished = load.finish(limits.longer());
            if self.server.blame_exit(finished)?.is_none() {
                return Ok(None);
            }
        }
        Ok(ran)
    }
}

/// Starts a client, and returns whether it got the scheduling class that was asked for.
fn start_client(
    what: &str,
    (program, role, place): (&Program, Role, Place),
    reference: &str,
    shape: &Shape,
) -> Result<(End, bool), LaboratoryError> {
    let command = program.command(role, place, Some(reference), shape);
    let mut end = End::start(what.to_owned(), command)?;
    let (is_fifo, _) = end.greeting()?;
    Ok((end, is_fifo == place.fifo.is_some()))
}

impl RunLimits {
    /// The limits of a load, which runs from before the client's warm-up to after its last call. The real-time threads
    /// of both still leave the kernel its share of each second.
    pub(crate) fn longer(self) -> Self {
        Self {
            budget: self.budget + OVERLAP,
            ..self
        }
    }
}

/// How much longer a load runs than the client beside it.
const OVERLAP: Duration = Duration::from_millis(50);
