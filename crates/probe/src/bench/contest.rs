//! The rounds of one kind in one condition: every system once in each round and case, directly beside a run of its
//! baseline. Which of the two runs first alternates from round to round.

use std::path::PathBuf;

use deckwatch_giop::Ior;
use deckwatch_giop::ior::IiopProfile;

use super::attack::Attack;
use super::case::{Beside, Case};
use super::command::{Buffers, Command};
use super::events;
use super::guard::Guard;
use super::kind::Kind;
use super::part::{About, Part};
use super::plan::{JIT_WARM_UPS, run_budget, turn_time};
use super::run::Settings;
use crate::laboratory::certificates::Certificates;
use crate::laboratory::condition::{FIFO_PRIORITY, HIGH_PRIORITY, Places};
use crate::laboratory::foreign::{self, CYCLONE, OMNI_EVENTS, TAO, ZENOH};
use crate::laboratory::process::{RunLimits, RunResult};
use crate::laboratory::program::{Program, Shape};
use crate::laboratory::samples::Pairs;
use crate::laboratory::session::{Session, Turn, TurnCase};
use crate::laboratory::system::{Plan, System};
use crate::laboratory::{LaboratoryError, OMNIORB, OURS, RAW, Role, Variant};
use crate::limits::BENCH_ROUNDS_MAX;

/// The systems of one kind and what their runs have measured.
pub(super) struct Contest<'s> {
    kind: Kind,
    places: &'s Places,
    cases: Vec<Case>,
    raw: System,
    contenders: Vec<Contender>,
    /// Consumers of other events in the cases that have them.
    others: usize,
    /// The runs, by case, then by contender.
    pairs: Vec<Vec<Pairs>>,
    /// The send buffers of the systems, which raw TCP gets too, in the same order.
    buffers: Vec<Vec<Buffers>>,
    /// Pairs of raw TCP and sockperf.
    guard: Option<Guard>,
    /// Removed with the contest.
    _files: ScratchFiles,
}

struct Contender {
    system: System,
    /// The same system with one object, over plain TCP or not attacked, if it is the baseline.
    alone: Option<System>,
}

/// The parameters of a contest.
pub(super) struct Subject<'s> {
    pub(super) kind: Kind,
    pub(super) variant: Variant,
    pub(super) cases: Vec<Case>,
    pub(super) places: &'s Places,
    pub(super) settings: &'s Settings,
    /// Clients of low priority never pause beside the measured one.
    pub(super) is_loaded: bool,
}

impl<'s> Contest<'s> {
    /// Starts all systems. A foreign system that cannot be started is skipped.
    pub(super) fn start(
        session: &mut Session<'_>,
        subject: Subject<'s>,
        programs: &[(&'static str, Program)],
    ) -> Result<Self, LaboratoryError> {
        let own = session.own();
        let shape = Shape {
            variant: subject.variant,
            ..Shape::default()
        };
        let raw = start(session, &subject, RAW, (&own, &own), shape)?;
        let mut files = ScratchFiles::default();
        if subject.variant == Variant::Tls {
            files.certificates = Some(Certificates::make()?);
        }
        let mut contenders = Vec::new();
        // The other variants exist in our ORB only.
        let foreign = match subject.variant {
            Variant::Plain => programs.to_vec(),
            Variant::Tls => over_tls(session, programs),
            _ => Vec::new(),
        };
        let all = std::iter::once((OURS, own.clone())).chain(foreign);
        for (name, program) in all {
            match contender(session, &subject, (name, &program, &own), &mut files) {
                Ok(contender) => contenders.push(contender),
                Err(error) if name == OURS => return Err(error),
                Err(error) => session.skip(name, &format!("{}: {error}", subject.kind.word())),
            }
        }
        let guard = guard(session, &subject, contenders[0].system.first_reference())?;
        let row = || contenders.iter().map(|_| Pairs::default()).collect();
        let none = || contenders.iter().map(|_| Buffers::default()).collect();
        Ok(Self {
            kind: subject.kind,
            places: subject.places,
            pairs: subject.cases.iter().map(|_| row()).collect(),
            buffers: subject.cases.iter().map(|_| none()).collect(),
            guard,
            others: subject.settings.connections,
            cases: subject.cases,
            raw,
            contenders,
            _files: files,
        })
    }

    fn limits(&self, session: &Session<'_>) -> RunLimits {
        let limits = session.limits();
        let budget = run_budget(self.kind, limits.budget);
        RunLimits { budget, ..limits }
    }

    /// Runs all rounds; round 0 is a warm-up. Returns false if they have ended early.
    pub(super) fn run(&mut self, session: &mut Session<'_>) -> Result<bool, LaboratoryError> {
        let sizes = self.sizes()?;
        let named = |index: &usize| self.contenders[*index].system.name;
        let takes = |case: &Case| -> Vec<usize> {
            let all = 0..self.contenders.len();
            all.filter(|index| events::takes(named(index), *case))
                .collect()
        };
        let systems: Vec<Vec<usize>> = self.cases.iter().map(takes).collect();
        let case = |(case, systems): (&Case, &Vec<usize>)| TurnCase {
            name: format!("{}: {} {}: ", self.kind.word(), case.words(), case.size),
            systems: systems.iter().map(named).collect(),
        };
        let mut cases: Vec<TurnCase> = self.cases.iter().zip(&systems).map(case).collect();
        if self.guard.is_some() {
            cases.push(TurnCase {
                name: String::new(),
                systems: vec![SOCKPERF],
            });
        }
        let rounds = session.setup.rounds.min(BENCH_ROUNDS_MAX);
        Ok(
            session.take_turns(0..=rounds, &cases, &mut |session, turn| {
                let Some(case) = self.cases.get(turn.case).copied() else {
                    return self.guard_turn(session, turn.round);
                };
                let turn = Turn {
                    system: systems[turn.case][turn.system],
                    ..turn
                };
                let name = self.contenders[turn.system].system.name;
                let now = format!("{} {} over {name}", case.words(), case.size);
                session.show(turn.round, format!("{}: {now}", self.kind.word()));
                let limits = self.limits(session);
                let taken = self.turn(turn, sizes[turn.case], limits);
                session.spend(turn_time(limits.budget));
                taken
            }),
        )
    }

    /// One pair of raw TCP and sockperf, but for the warm-up round. A failure is noted and ends nothing else.
    fn guard_turn(
        &mut self,
        session: &mut Session<'_>,
        round: usize,
    ) -> Result<bool, LaboratoryError> {
        let Some(guard) = self.guard.as_mut().filter(|_| round > 0) else {
            return Ok(true);
        };
        let kind = self.kind.word();
        session.show(round, format!("{kind}: the baseline beside sockperf"));
        match guard.pair(self.places, round, session.limits()) {
            Err(error @ LaboratoryError::EndFailed { .. }) => {
                session.skip(SOCKPERF, &format!("{kind}: {error}"));
                self.guard = None;
                Ok(true)
            }
            other => other,
        }
    }

    fn sizes(&self) -> Result<Vec<(usize, usize)>, LaboratoryError> {
        let reference = self.contenders[0].system.first_reference();
        let sizes = self.cases.iter().map(|case| case.message_sizes(reference));
        sizes.collect()
    }

    /// One pair, or several in the warm-up round. Returns false if the user wants to end.
    fn turn(
        &mut self,
        turn: Turn,
        sizes: (usize, usize),
        limits: RunLimits,
    ) -> Result<bool, LaboratoryError> {
        let is_warm_up = turn.round == 0;
        // A just-in-time compiler has not compiled either run of the pair yet.
        let times = match self.contenders[turn.system].system.name {
            foreign::JACORB if is_warm_up => JIT_WARM_UPS,
            _ => 1,
        };
        for _ in 0..times {
            let Some((called, baseline)) = self.pair(turn, sizes, limits)? else {
                return Ok(false);
            };
            if !is_warm_up
                && !self.pairs[turn.case][turn.system].add(
                    &called,
                    &baseline,
                    is_system_first(turn.round),
                )
            {
                return Err(LaboratoryError::EndFailed {
                    what: self.contenders[turn.system].system.name.to_owned(),
                    reason: format!("too few round trips within {:?}", limits.budget),
                });
            }
        }
        Ok(true)
    }

    /// A run of the system and a run of its baseline. Returns `None` if the user wants to end.
    fn pair(
        &mut self,
        turn: Turn,
        sizes: (usize, usize),
        limits: RunLimits,
    ) -> Result<Option<(RunResult, RunResult)>, LaboratoryError> {
        let (mut called, mut baseline) = (None, None);
        let is_first = is_system_first(turn.round);
        for is_system in [is_first, !is_first] {
            let ran = if is_system {
                self.run_system(turn, limits)?
            } else {
                self.run_baseline(turn, sizes, limits)?
            };
            self.places.rest(limits.budget);
            if ran.is_none() {
                return Ok(None);
            }
            if is_system {
                called = ran;
            } else {
                baseline = ran;
            }
        }
        Ok(called.zip(baseline))
    }

    fn run_system(
        &mut self,
        turn: Turn,
        limits: RunLimits,
    ) -> Result<Option<RunResult>, LaboratoryError> {
        let system = &mut self.contenders[turn.system].system;
        let case = self.cases[turn.case];
        let others = match case.beside {
            Beside::NoOthers => self.others,
            _ => 0,
        };
        let command = Command::call(case, limits).beside_others(others);
        let ran = command.run(system, turn.round == 0)?;
        let Some((ran, ends)) = ran else {
            return Ok(None);
        };
        if turn.round == 0 {
            self.buffers[turn.case][turn.system] = Buffers::of(&ends);
            self.pairs[turn.case][turn.system].system.note_ends(ends);
        }
        Ok(Some(ran))
    }

    fn run_baseline(
        &mut self,
        turn: Turn,
        sizes: (usize, usize),
        limits: RunLimits,
    ) -> Result<Option<RunResult>, LaboratoryError> {
        let case = self.cases[turn.case];
        let contender = &mut self.contenders[turn.system];
        let buffers = match case.beside {
            Beside::RawTcp => self.buffers[turn.case][turn.system],
            _ => Buffers::default(),
        };
        let (system, command) = match case.beside {
            Beside::RawTcp | Beside::UntunedRawTcp => {
                let command = Command::raw(case, sizes, buffers, limits);
                (&mut self.raw, command)
            }
            Beside::Octets => (
                &mut contender.system,
                Command::call(case.as_octets(), limits),
            ),
            Beside::NoOthers => (&mut contender.system, Command::call(case, limits)),
            Beside::NoLoad => (&mut contender.system, Command::call(case, limits).alone()),
            Beside::OneObject | Beside::PlainCalls | Beside::NoAttack(_) => {
                match &mut contender.alone {
                    Some(alone) => (alone, Command::call(case, limits)),
                    None => return Ok(None),
                }
            }
        };
        let Some((ran, mut ends)) = command.run(system, turn.round == 0)? else {
            return Ok(None);
        };
        if turn.round == 0 {
            buffers.check(&mut ends);
            let pairs = &mut self.pairs[turn.case][turn.system];
            pairs.baseline.note_ends(ends.clone());
            for end in &mut ends {
                end.end.insert_str(0, "baseline's ");
            }
            pairs.system.note_ends(ends);
        }
        Ok(Some(ran))
    }

    /// Adds the measurements to `part`.
    pub(super) fn results(&self, part: &mut Part) -> Result<(), LaboratoryError> {
        for ((case, sizes), row) in self.cases.iter().zip(self.sizes()?).zip(&self.pairs) {
            let factors = [
                ("payload_octets", case.size as f64),
                ("request_octets", sizes.0 as f64),
                ("reply_octets", sizes.1 as f64),
            ];
            for (contender, pairs) in self.contenders.iter().zip(row) {
                let name = contender.system.name;
                let (system, words) = match case.beside {
                    Beside::RawTcp => (RAW, case.words()),
                    Beside::UntunedRawTcp => (RAW, format!("{}, untuned", case.operation.word())),
                    Beside::Octets => (name, case.as_octets().words()),
                    Beside::OneObject => (name, format!("{}, one object", case.operation.word())),
                    Beside::PlainCalls => (name, format!("{}, plain", case.operation.word())),
                    Beside::NoOthers | Beside::NoLoad | Beside::NoAttack(_) => {
                        (name, format!("{}, alone", case.operation.word()))
                    }
                };
                let own = pairs.system.measurement(name, &case.words(), &factors);
                let words = format!("{words}, directly beside {name}");
                let beside = pairs.baseline.measurement(system, &words, &factors);
                for (about, measurement) in [(About::Case(*case), own), (About::Baseline, beside)] {
                    if let Some(measurement) = measurement {
                        part.add(about, measurement);
                    }
                }
            }
        }
        let guarded = self.guard.as_ref().and_then(|guard| guard.measurement(RAW));
        if let Some(guarded) = guarded {
            part.add(About::BaselineCheck, guarded);
        }
        Ok(())
    }
}

/// The system runs before its baseline in the warm-up round and in every second round after it.
const fn is_system_first(round: usize) -> bool {
    round.is_multiple_of(2)
}

/// The guard of a contest beside raw TCP, where targets are judged. Without sockperf, the reason is noted.
fn guard(
    session: &mut Session<'_>,
    subject: &Subject<'_>,
    reference: &str,
) -> Result<Option<Guard>, LaboratoryError> {
    let places = subject.places;
    let mut cases = subject.cases.iter();
    // A raw fan-out is no ping-pong: that raw TCP is as fast as sockperf shows nothing about it.
    let is_guarded = subject.kind != Kind::Events && places.are_judged();
    if !is_guarded || !cases.any(|case| case.beside == Beside::RawTcp) {
        return Ok(None);
    }
    if foreign::find(SOCKPERF).is_none() {
        session.skip(SOCKPERF, "not installed: the baseline is unguarded");
        return Ok(None);
    }
    let (octets, _) = super::kind::SMALL.message_sizes(reference)?;
    let own = session.own();
    let shape = Shape {
        variant: subject.variant,
        ..Shape::default()
    };
    let both = (places.server, places.client);
    let raw = session.start(&Plan::pair(RAW, &own, Role::RAW, both, shape))?;
    let spins = subject.variant.spins();
    let started = Guard::start(raw, places, spins, octets);
    Ok(session.or_skip(SOCKPERF, started))
}

fn contender(
    session: &mut Session<'_>,
    subject: &Subject<'_>,
    (name, program, own): (&'static str, &Program, &Program),
    files: &mut ScratchFiles,
) -> Result<Contender, LaboratoryError> {
    if subject.kind == Kind::Attacks {
        return attacked(session, subject, own);
    }
    // Beside a load, our client calls every server, and our ends use every channel: the servers are compared.
    let has_own_ends =
        matches!(subject.kind, Kind::Priority | Kind::Events) && ![CYCLONE, ZENOH].contains(&name);
    let client = if has_own_ends { own } else { program };
    let shape = Shape {
        variant: subject.variant,
        ..Shape::default()
    };
    let programs = (program, client);
    let system = start(session, subject, name, programs, shape.clone())?;
    let shape = match subject.kind {
        Kind::Objects => Shape {
            objects: subject.settings.objects,
            references: Some(files.file(name)),
            ..shape
        },
        Kind::Tls => Shape {
            certificates: files.folder(),
            ..shape
        },
        _ => {
            return Ok(Contender {
                system,
                alone: None,
            });
        }
    };
    let other = start(session, subject, name, programs, shape)?;
    if subject.kind == Kind::Tls {
        require_tls(&other)?;
    }
    Ok(Contender {
        alone: Some(system),
        system: other,
    })
}

/// Refuses a server that is not called over TLS: its result would be taken for one of TLS.
fn require_tls(system: &System) -> Result<(), LaboratoryError> {
    let ior: Result<Ior, _> = system.first_reference().parse();
    let profile = ior
        .ok()
        .and_then(|ior| ior.iiop_profiles().flatten().next());
    if profile.is_some_and(|it: IiopProfile| it.requires_tls() && !it.tls_addresses().is_empty()) {
        return Ok(());
    }
    Err(LaboratoryError::EndFailed {
        what: format!("The server of {}", system.name),
        reason: "its reference does not require TLS".to_owned(),
    })
}

/// A server whose high lane, or whose names, are called while a peer attacks it, and one like it that nobody attacks.
fn attacked(
    session: &mut Session<'_>,
    subject: &Subject<'_>,
    own: &Program,
) -> Result<Contender, LaboratoryError> {
    let places = subject.places;
    let attack = subject.cases.iter().find_map(|case| match case.beside {
        Beside::NoAttack(attack) => Some(attack),
        _ => None,
    });
    let is_on_names = attack.is_some_and(Attack::is_on_names);
    let lanes = (!is_on_names).then_some((HIGH_PRIORITY, FIFO_PRIORITY));
    let (role, client) = match lanes {
        Some((high, _)) => (Role::Attacked, places.client.at(high)),
        None => (Role::Names, places.client),
    };
    let plan = |attack: Option<Attack>| Plan {
        name: OURS,
        server: (own, role, places.server),
        client: (own, Role::OrbClient, client),
        load: attack.map(|_| (own, Role::Attacker, places.aside())),
        shape: Shape {
            attack,
            lanes,
            ..Shape::default()
        },
    };
    Ok(Contender {
        alone: Some(session.start(&plan(None))?),
        system: session.start(&plan(attack))?,
    })
}

fn start(
    session: &mut Session<'_>,
    subject: &Subject<'_>,
    name: &'static str,
    (server, client): (&Program, &Program),
    shape: Shape,
) -> Result<System, LaboratoryError> {
    let places = subject.places;
    let ((server_role, client_role), load_role) = match (subject.kind, name) {
        (Kind::Events, RAW) => (Role::RELAY, Role::RawLoad),
        (Kind::Events, OMNI_EVENTS) => ((Role::OmniEvents, Role::ChannelEnds), Role::ChannelLoad),
        (Kind::Events, TAO) => ((Role::TaoEvents, Role::ChannelEnds), Role::ChannelLoad),
        (Kind::Events, _) => (Role::CHANNEL, Role::ChannelLoad),
        (_, RAW) => (Role::RAW, Role::RawLoad),
        _ => (Role::ORB, Role::OrbLoad),
    };
    let is_loaded = subject.is_loaded && name != RAW || subject.kind == Kind::Priority;
    let place = if is_loaded {
        places.client.at(HIGH_PRIORITY)
    } else {
        places.client
    };
    // Foreign servers have no lanes.
    let has_lanes = is_loaded && server.is_own && name != RAW;
    session.start(&Plan {
        name,
        server: (server, server_role, places.server),
        client: (client, client_role, place),
        load: is_loaded.then_some((client, load_role, places.client)),
        shape: Shape {
            clients: subject.settings.low_clients,
            lanes: has_lanes.then_some((HIGH_PRIORITY, FIFO_PRIORITY)),
            ..shape
        },
    })
}

/// omniORB, if its transport for SSL is installed: the only other system whose calls over TLS are measured.
fn over_tls(
    session: &mut Session<'_>,
    programs: &[(&'static str, Program)],
) -> Vec<(&'static str, Program)> {
    let all = programs.iter().filter(|(name, _)| *name == OMNIORB);
    let found: Vec<(&'static str, Program)> = all.cloned().collect();
    if !found.is_empty() && foreign::ssl_transport().is_none() {
        let reason = "call-tls: its transport for SSL, libomnisslTP4.so.2, is not installed";
        session.skip(OMNIORB, reason);
        return Vec::new();
    }
    found
}

/// Files that are removed with the contest.
#[derive(Default)]
struct ScratchFiles {
    paths: Vec<PathBuf>,
    certificates: Option<Certificates>,
}

impl ScratchFiles {
    fn file(&mut self, name: &str) -> PathBuf {
        let name = format!("deckwatch-bench-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        self.paths.push(path.clone());
        path
    }

    fn folder(&self) -> Option<PathBuf> {
        let made = self.certificates.as_ref();
        made.map(|made| made.folder().to_owned())
    }
}

impl Drop for ScratchFiles {
    fn drop(&mut self) {
        for path in &self.paths {
            // The server may have failed before it wrote the file.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The name of the second instrument and of its program.
const SOCKPERF: &str = "sockperf";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_runs_first_in_every_second_round() {
        let order: Vec<bool> = (0..4).map(is_system_first).collect();
        assert_eq!(order, [true, false, true, false]);
    }
}
