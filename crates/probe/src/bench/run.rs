//! A whole bench: its kinds in their conditions, until all are done or the user ends it.

use std::collections::BTreeMap;
use std::time::Duration;

use deckwatch_meter::experiment::{ExperimentDocument, MachineState, Measurement};
use deckwatch_os::schedule::{affinity, set_affinity};
use deckwatch_os::signal;

use super::case::{Beside, Case};
use super::contest::{Contest, Subject};
use super::figures::figures;
use super::kind::{Kind, SMALL};
use super::part::Part;
use super::plan::{REAL_TIME_RUN, Step, state_time, steps};
use super::{counts, events, memory, mission, state, target};
use crate::laboratory::caution::Caution;
use crate::laboratory::condition::Places;
use crate::laboratory::foreign;
use crate::laboratory::program::Program;
use crate::laboratory::session::{Found, Session};
use crate::laboratory::{Condition, LaboratoryError, OMNIORB, Progress, Setup, Variant};

/// The parameters of a bench.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The parameters of every bench and experiment.
    pub setup: Setup,
    /// The kinds that are measured.
    pub kinds: Vec<Kind>,
    /// The cases of [`Kind::Call`], or of [`Kind::Tls`] or [`Kind::Attacks`] if that is the only kind.
    pub calls: Vec<Case>,
    /// Processors and scheduling classes.
    pub conditions: Vec<Condition>,
    /// Number of active objects in [`Kind::Objects`].
    pub objects: usize,
    /// Number of clients without pause in [`Kind::Priority`].
    pub low_clients: usize,
    /// Number of connections in [`Kind::Memory`], and of idle consumers in [`Kind::Events`].
    pub connections: usize,
}

/// Runs a bench. A wish to end ([`signal::ending`]) ends it early, with what was measured until then. `keep` gets the
/// document after each part, so that a later failure loses nothing.
///
/// # Errors
/// [`LaboratoryError`]: nothing was measured. A foreign system that cannot be built or that fails is skipped. A later
/// failure ends the bench, and the document has a warning.
pub fn run(
    settings: &Settings,
    tell: &mut dyn FnMut(&Progress),
    keep: &mut dyn FnMut(&ExperimentDocument),
) -> Result<ExperimentDocument, LaboratoryError> {
    let mut bench = Bench {
        settings,
        session: Session::new(&settings.setup, tell),
        programs: Vec::new(),
        parts: Vec::new(),
        states: Vec::new(),
    };
    bench.find_programs();
    let places = settings
        .conditions
        .iter()
        .map(|condition| condition.places());
    let places = places.collect::<Result<Vec<_>, _>>()?;
    let steps = bench.plan(&places);
    for (place, at) in places.iter().enumerate() {
        let mut here = steps.iter().filter(|step| step.place == place).peekable();
        if here.peek().is_none() {
            continue;
        }
        let allowed = affinity().unwrap_or_default();
        bench.session.move_away(at);
        bench.note_state(at, "before");
        for step in here {
            if !bench.measure(step, at) {
                return bench.finish();
            }
            keep(&bench.document());
        }
        bench.note_state(at, "after");
        // If it may not move back, the next condition has fewer processors, and says so.
        let _ = set_affinity(&allowed);
    }
    bench.finish()
}

struct Bench<'s> {
    settings: &'s Settings,
    session: Session<'s>,
    programs: Vec<(&'static str, Program)>,
    parts: Vec<Part>,
    states: Vec<MachineState>,
}

impl Bench<'_> {
    fn find_programs(&mut self) {
        // No foreign ORB here is an event channel, or has lanes.
        if matches!(self.settings.kinds[..], [Kind::Events | Kind::Attacks]) {
            return;
        }
        let is_wanted =
            |peer: &&foreign::Foreign| self.settings.kinds != [Kind::Tls] || peer.name == OMNIORB;
        for peer in foreign::ALL.iter().filter(is_wanted) {
            if signal::ending().is_some() {
                return;
            }
            let program = self.session.foreign(peer);
            self.programs
                .extend(program.map(|program| (peer.name, program)));
        }
    }

    /// The steps of the bench. Their time is the plan of the session.
    fn plan(&mut self, places: &[Places]) -> Vec<Step> {
        let foreign: Vec<&str> = self.programs.iter().map(|(name, _)| *name).collect();
        let cases = |kind, variant| self.cases(kind, variant).len();
        let steps = steps(self.settings, places, &foreign, cases);
        let states = state_time(self.settings.setup.run_budget) * places.len() as u32;
        let all: Duration = steps.iter().map(|step| step.time).sum();
        self.session.plan(states + all);
        steps
    }

    /// Measures the state of the machine. A failure is noted and ends nothing else.
    fn note_state(&mut self, places: &Places, when: &str) {
        if signal::ending().is_some() {
            return;
        }
        let found = state::measure(&mut self.session, places, when);
        let found = self.session.or_skip("the state of the machine", found);
        self.states.extend(found.flatten());
    }

    /// Measures one step. Returns false if the bench ends: the user wants to end, or it is broken off.
    fn measure(&mut self, step: &Step, places: &Places) -> bool {
        let done = self.session.done();
        let measured = match signal::ending() {
            None => self.step(step, places),
            Some(_) => Ok(false),
        };
        // The steps within it are planned with less precision.
        self.session.set_done(done + step.time);
        match measured {
            Ok(true) => return true,
            Err(error) if signal::ending().is_none() => self.session.broken_off = Some(error),
            Ok(false) if self.session.broken_off.is_some() => {}
            // The signal may be what made it fail.
            _ => self.session.is_whole = false,
        }
        false
    }

    fn step(&mut self, step: &Step, places: &Places) -> Result<bool, LaboratoryError> {
        let Step { kind, variant, .. } = *step;
        let mut part = Part {
            kind,
            condition: places.words(),
            is_judged: places.are_judged(),
            variant,
            cases: self.cases(kind, variant),
            rows: Vec::new(),
        };
        let (session, programs) = (&mut self.session, &self.programs);
        let measured = match kind {
            Kind::Counters => counts::count(session, places, programs, &mut part).map(|()| true),
            Kind::Memory => {
                let connections = self.settings.connections;
                memory::measure(session, places, connections, programs, &mut part)
            }
            Kind::Events => self.events(&mut part, places),
            Kind::Attacks => self.attacks(&mut part, places),
            _ => self.contest(&mut part, places, |case| case.beside != Beside::NoLoad),
        };
        // What was found before a failure is kept.
        if measured.is_ok() || !part.is_empty() {
            self.parts.push(part);
        }
        Ok(measured? && signal::ending().is_none())
    }

    fn cases(&self, kind: Kind, variant: Variant) -> Vec<Case> {
        let cases = match (kind, variant) {
            (Kind::Call, Variant::Plain) => self.settings.calls.clone(),
            (Kind::Tls | Kind::Attacks, _) if self.settings.kinds.len() == 1 => {
                self.settings.calls.clone()
            }
            _ => kind.cases(),
        };
        // The other variants are measured with the small call only.
        let has_all = matches!(variant, Variant::Plain | Variant::Tls);
        let is_wanted = |case: &Case| has_all || *case == SMALL;
        cases.into_iter().filter(is_wanted).collect()
    }

    /// Measures those cases of `part` that `takes` permits.
    fn contest(
        &mut self,
        part: &mut Part,
        places: &Places,
        takes: impl Fn(&Case) -> bool,
    ) -> Result<bool, LaboratoryError> {
        let cases: Vec<Case> = part.cases.iter().copied().filter(takes).collect();
        let is_loaded = cases.iter().any(|case| case.beside == Beside::NoLoad);
        let subject = Subject {
            kind: part.kind,
            variant: part.variant,
            cases,
            places,
            settings: self.settings,
            is_loaded,
        };
        let session = &mut self.session;
        let programs = match part.kind {
            Kind::Events if is_loaded => Vec::new(),
            Kind::Events => events::peers(session),
            Kind::Attacks => Vec::new(),
            _ => self.programs.clone(),
        };
        let mut contest = Contest::start(session, subject, &programs)?;
        let is_whole = contest.run(session)?;
        contest.results(part)?;
        Ok(is_whole)
    }

    /// A high lane, or a naming service, under each attack. Each has a server of its own: what an attack leaves behind is
    /// no part of the next.
    fn attacks(&mut self, part: &mut Part, places: &Places) -> Result<bool, LaboratoryError> {
        for case in part.cases.clone() {
            if !self.contest(part, places, |it| *it == case)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Events beside a raw fan-out, those of high priority beside a load, those of a mission, then the counts and the
    /// memory of our channels.
    fn events(&mut self, part: &mut Part, places: &Places) -> Result<bool, LaboratoryError> {
        for is_loaded in [false, true] {
            if !self.contest(part, places, |case| {
                is_loaded == (case.beside == Beside::NoLoad)
            })? {
                return Ok(false);
            }
        }
        let session = &mut self.session;
        if !mission::measure(session, places, part)? {
            return Ok(false);
        }
        events::count(session, places, part)?;
        events::weigh(session, places, self.settings.connections, part)
    }

    fn found(&self) -> Found {
        let is_here = |peer: &&foreign::Foreign| {
            let mut here = self.programs.iter();
            here.any(|(name, _)| *name == peer.name)
        };
        let peers = foreign::ALL.iter().filter(is_here);
        let mut conditions: Vec<&str> = Vec::new();
        for part in &self.parts {
            if !conditions.contains(&part.condition.as_str()) {
                conditions.push(&part.condition);
            }
        }
        let kind = match self.settings.kinds[..] {
            [kind] => kind.word(),
            _ => "all",
        };
        let rows = self.parts.iter().flat_map(|part| &part.rows);
        Found {
            experiment: format!("bench {kind}"),
            title: "What calls, messages, objects, priorities and events cost",
            source: "each run directly beside a run of its baseline, the medians of the ratios of those pairs",
            condition: conditions.join("; "),
            parameters: BTreeMap::new(),
            standings: target::standings(&self.parts),
            machine_states: self.states.clone(),
            measurements: rows.map(|row| row.measurement.clone()).collect(),
            figures: self.parts.iter().flat_map(figures).collect(),
            notes: peers
                .flat_map(|peer| peer.notes.iter().map(|note| (*note).to_owned()))
                .collect(),
            warnings: self.warnings(),
            fidelity: None,
        }
    }

    fn document(&self) -> ExperimentDocument {
        self.session.document(self.found())
    }

    fn finish(self) -> Result<ExperimentDocument, LaboratoryError> {
        let found = self.found();
        self.session.finish(found)
    }

    fn warnings(&self) -> Vec<Caution> {
        let judged = || self.parts.iter().filter(|part| part.is_judged);
        let spread = |found: &Measurement| {
            let ratio = found.ratio("p50_ratio")?;
            Some((ratio.upper_quartile - ratio.lower_quartile) / ratio.median)
        };
        let share = judged()
            .flat_map(Part::cases)
            .filter_map(|(_, found)| spread(found))
            .fold(0.0, f64::max);
        let moved = state::change(&self.states);
        let has_gap = |part: &Part| part.is_empty() || part.has_gap();
        let all = [
            (self.settings.setup.run_budget > REAL_TIME_RUN).then_some(Caution::LongRuns),
            (moved > STATE_WARNED).then_some(Caution::StateChanged { share: moved }),
            (share > SPREAD_WARNED).then_some(Caution::Spread { share }),
            (self.parts.iter().any(has_gap)).then_some(Caution::NothingMeasured),
        ];
        all.into_iter().flatten().collect()
    }
}

/// The spread of the middle half of the ratios, over their median, from which on a warning is shown.
const SPREAD_WARNED: f64 = 0.06;

/// The change of raw TCP or of a system call, as a share, from which on a warning is shown.
const STATE_WARNED: f64 = 0.05;
