//! The rounds of one kind in one condition: every peer once a round and case, each directly behind a run of its baseline.

use std::path::PathBuf;

use deckwatch_os::signal;

use super::case::{Beside, Case};
use super::condition::{Condition, HIGH_PRIORITY, Places};
use super::document::{BaselineCheck, CaseResult, Kept, PeerResult, Ratio, RunSummary, Skip};
use super::end::Role;
use super::error::BenchError;
use super::kind::Kind;
use super::peer::{Peer, Plan, Program, RunLimits, Shape};
use super::process::rest;
use super::run::{Progress, Settings};
use super::sockperf::{self, Sockperf};
use super::variant::Variant;
use crate::limits::{BENCH_ROUNDS_MAX, BENCH_SAMPLES_MAX};

/// What runs against each other.
pub(super) struct Contest<'s> {
    pub(super) kind: Kind,
    pub(super) places: Places,
    pub(super) cases: Vec<Case>,
    pub(super) rounds: usize,
    pub(super) settings: &'s Settings,
    raw: Peer,
    contestants: Vec<Contestant>,
    /// What each has come to: by case, then by contestant.
    kept: Vec<Vec<Kept>>,
    /// All ends got the class that was asked for.
    pub(super) is_placed: bool,
    pub(super) skipped: Vec<Skip>,
    files: Scratch,
}

struct Contestant {
    name: &'static str,
    peer: Peer,
    /// The same with one object alone.
    alone: Option<Peer>,
    /// It has failed at something and is left out from then on.
    is_out: bool,
}

/// What a contest is about.
pub(super) struct Subject {
    pub(super) kind: Kind,
    pub(super) places: Places,
    pub(super) cases: Vec<Case>,
    pub(super) variant: Variant,
    pub(super) rounds: usize,
}

impl<'s> Contest<'s> {
    /// Starts everyone.
    pub(super) fn start(
        settings: &'s Settings,
        subject: Subject,
        programs: &[(&'static str, Program)],
    ) -> Result<Self, BenchError> {
        let own = Program::Own {
            path: settings.program.clone(),
            inserted: settings.inserted,
        };
        let shape = Shape {
            variant: subject.variant,
            ..Shape::default()
        };
        let mut contest = Self {
            kind: subject.kind,
            raw: start(&subject, settings, "raw TCP", (&own, &own), &shape)?,
            places: subject.places.clone(),
            rounds: subject.rounds.min(BENCH_ROUNDS_MAX),
            settings,
            contestants: Vec::new(),
            kept: Vec::new(),
            is_placed: true,
            skipped: Vec::new(),
            files: Scratch(Vec::new()),
            cases: subject.cases.clone(),
        };
        // Ours is alone where only we can be asked for what is measured.
        let foreign = match subject.variant {
            Variant::Plain => programs,
            _ => &[],
        };
        let all = std::iter::once(("deckwatch", own.clone())).chain(foreign.iter().cloned());
        for (name, program) in all {
            match contest.contestant(&subject, name, &program, &own) {
                Ok(contestant) => contest.contestants.push(contestant),
                Err(error) if name == "deckwatch" => return Err(error),
                Err(error) => contest.skip(name, error.to_string()),
            }
        }
        let peers = || {
            contest
                .contestants
                .iter()
                .flat_map(|it| [Some(&it.peer), it.alone.as_ref()])
        };
        contest.is_placed = contest.raw.is_placed && peers().flatten().all(|peer| peer.is_placed);
        let row = || {
            contest
                .contestants
                .iter()
                .map(|_| Kept::default())
                .collect()
        };
        contest.kept = contest.cases.iter().map(|_| row()).collect();
        Ok(contest)
    }

    fn contestant(
        &mut self,
        subject: &Subject,
        name: &'static str,
        program: &Program,
        own: &Program,
    ) -> Result<Contestant, BenchError> {
        // Beside a load, every server is called by our client: it is the servers that are compared.
        let client = if subject.kind == Kind::Priority {
            own
        } else {
            program
        };
        let shape = Shape {
            variant: subject.variant,
            ..Shape::default()
        };
        let alone = |shape: &Shape| start(subject, self.settings, name, (program, client), shape);
        if subject.kind != Kind::Objects {
            return Ok(Contestant {
                name,
                peer: alone(&shape)?,
                alone: None,
                is_out: false,
            });
        }
        let one = alone(&shape)?;
        let references = self.files.file(name);
        let shape = Shape {
            objects: self.settings.objects,
            references: Some(references),
            ..shape
        };
        Ok(Contestant {
            name,
            peer: start(subject, self.settings, name, (program, client), &shape)?,
            alone: Some(one),
            is_out: false,
        })
    }

    fn skip(&mut self, peer: &str, reason: String) {
        let reason = format!("{}: {reason}", self.kind.word());
        self.skipped.push(Skip {
            peer: peer.to_owned(),
            reason,
        });
    }

    fn limits(&self) -> RunLimits {
        let budget = match self.kind {
            // Long enough for calls that are rare, and below what the kernel stalls.
            Kind::Rate | Kind::Priority => REAL_TIME_RUN.min(self.settings.run_budget * 3),
            _ => self.settings.run_budget,
        };
        RunLimits {
            count: RUN_COUNT_MAX.min(BENCH_SAMPLES_MAX),
            budget,
        }
    }

    /// All rounds; false where the user wants to end.
    pub(super) fn run(&mut self, tell: &mut dyn FnMut(&Progress)) -> Result<bool, BenchError> {
        let sizes = self.sizes()?;
        for round in 0..=self.rounds {
            for (index, sizes) in sizes.iter().enumerate() {
                for turn in 0..self.contestants.len() {
                    if signal::ending().is_some() {
                        return Ok(false);
                    }
                    // Each peer is first in its turn.
                    let who = (turn + round) % self.contestants.len();
                    if self.contestants[who].is_out {
                        continue;
                    }
                    tell(&self.progress(round, index, who));
                    match self.turn(index, who, *sizes, round == 0) {
                        Ok(true) => {}
                        Ok(false) => return Ok(false),
                        Err(error) if self.contestants[who].name == "deckwatch" => {
                            return Err(error);
                        }
                        Err(error) => {
                            self.contestants[who].is_out = true;
                            let case = self.cases[index];
                            let words = format!("{} {}: {error}", case.kind.word(), case.size);
                            self.skip(self.contestants[who].name, words);
                        }
                    }
                }
            }
        }
        Ok(true)
    }

    fn progress(&self, round: usize, case: usize, who: usize) -> Progress {
        let (case, name) = (self.cases[case], self.contestants[who].name);
        Progress {
            round,
            rounds: self.rounds,
            now: format!(
                "{}: {} {} over {name}",
                self.kind.word(),
                case.kind.word(),
                case.size
            ),
        }
    }

    fn sizes(&self) -> Result<Vec<(usize, usize)>, BenchError> {
        let reference = &self.contestants[0].peer.reference;
        let sizes = self.cases.iter().map(|case| case.message_sizes(reference));
        sizes.collect()
    }

    /// A pair of a peer, or as many as it needs to rehearse; false where the user wants to end.
    fn turn(
        &mut self,
        index: usize,
        who: usize,
        sizes: (usize, usize),
        is_rehearsal: bool,
    ) -> Result<bool, BenchError> {
        // What compiles itself as it runs has not done so yet, whichever half of a pair it is.
        let times = match self.contestants[who].name {
            "jacorb" if is_rehearsal => REHEARSALS,
            _ => 1,
        };
        for _ in 0..times {
            if !self.pair(index, who, sizes, is_rehearsal)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A run of the baseline, and directly behind it one of a peer; false where the user wants to end. A rehearsal is not kept.
    fn pair(
        &mut self,
        index: usize,
        who: usize,
        sizes: (usize, usize),
        is_rehearsal: bool,
    ) -> Result<bool, BenchError> {
        let (case, limits) = (self.cases[index], self.limits());
        let contestant = &mut self.contestants[who];
        let pause = || pause(self.places.condition, limits);
        let baseline = match case.beside {
            Beside::RawTcp => self.raw.exchange(case, sizes, limits)?,
            Beside::Octets => contestant.peer.call(case.as_octets(), limits)?,
            Beside::OneObject => match &mut contestant.alone {
                Some(alone) => alone.call(case, limits)?,
                None => None,
            },
        };
        pause();
        let Some(baseline) = baseline else {
            return Ok(false);
        };
        let called = contestant.peer.call(case, limits)?;
        pause();
        let Some(called) = called else {
            return Ok(false);
        };
        if is_rehearsal || self.kept[index][who].keep(&called, &baseline) {
            return Ok(true);
        }
        Err(BenchError::EndFailed {
            what: contestant.name.to_owned(),
            reason: format!("too few round trips within {:?}", limits.budget),
        })
    }

    /// What has been found.
    pub(super) fn results(&self) -> Result<Vec<CaseResult>, BenchError> {
        let sizes = self.sizes()?;
        let result = |((case, sizes), kept): ((&Case, &(usize, usize)), &Vec<Kept>)| CaseResult {
            case: *case,
            count: case.count(),
            request_octets: sizes.0,
            reply_octets: sizes.1,
            peers: (self.contestants.iter().zip(kept))
                .filter_map(|(contestant, kept)| PeerResult::of(contestant.name, kept))
                .collect(),
        };
        let all = self.cases.iter().zip(&sizes).zip(&self.kept);
        Ok(all.map(result).collect())
    }

    /// The baseline beside sockperf's, in pairs too. What was measured stands without it.
    pub(super) fn check_baseline(
        &mut self,
        tell: &mut dyn FnMut(&Progress),
    ) -> Option<BaselineCheck> {
        let checked = self.beside_sockperf(tell);
        checked.unwrap_or_else(|error| {
            self.skip("sockperf", error.to_string());
            None
        })
    }

    fn beside_sockperf(
        &mut self,
        tell: &mut dyn FnMut(&Progress),
    ) -> Result<Option<BaselineCheck>, BenchError> {
        if sockperf::find("sockperf").is_none() {
            self.skip("sockperf", "sockperf not installed".to_owned());
            return Ok(None);
        }
        let sizes = self.sizes()?;
        let smallest = sizes.iter().map(|(request, _)| *request).min();
        let octets = smallest.unwrap_or(SOCKPERF_SIZE_MIN).max(SOCKPERF_SIZE_MIN);
        let second = Sockperf::start((self.places.server, self.places.client))?;
        let (case, limits) = (super::kind::SMALL, self.limits());
        let mut pairs = Vec::new();
        for _ in 0..CHECK_ROUNDS.min(self.rounds) {
            tell(&Progress {
                round: self.rounds,
                rounds: self.rounds,
                now: "the baseline beside sockperf".to_owned(),
            });
            let Some(ours) = self.raw.exchange(case, (octets, octets), limits)? else {
                break;
            };
            pause(self.places.condition, limits);
            let theirs = second.run(octets)?;
            pause(self.places.condition, limits);
            if let Some(ours) = RunSummary::of(&ours) {
                pairs.push((ours, theirs));
            }
        }
        let middle = |of: &dyn Fn(&(RunSummary, sockperf::Said)) -> Option<f64>| {
            Ratio::of(pairs.iter().filter_map(of).collect())
        };
        let check = || {
            Some(BaselineCheck {
                octets,
                raw_p50_ns: middle(&|pair| pair.0.p50_ns)?.median,
                sockperf_p50_ns: middle(&|pair| Some(pair.1.p50_ns))?.median,
                p50_ratio: middle(&|pair| Some(pair.0.p50_ns? / pair.1.p50_ns))?,
                p99_ratio: middle(&|pair| Some(pair.0.p99_ns? / pair.1.p99_ns)),
            })
        };
        Ok(check())
    }
}

fn start(
    subject: &Subject,
    settings: &Settings,
    name: &'static str,
    (server, client): (&Program, &Program),
    shape: &Shape,
) -> Result<Peer, BenchError> {
    let places = &subject.places;
    let roles = match name {
        "raw TCP" => (Role::RawServer, Role::RawClient, Role::RawLoad),
        _ => (Role::OrbServer, Role::OrbClient, Role::OrbLoad),
    };
    let (place, load) = match subject.kind {
        Kind::Priority => (
            places.client.at(HIGH_PRIORITY),
            Some((client, roles.2, places.client)),
        ),
        _ => (places.client, None),
    };
    Peer::start(&Plan {
        name,
        server: (server, roles.0, places.server),
        client: (client, roles.1, place),
        load,
        shape: Shape {
            clients: settings.low_clients,
            // Of ours alone: a foreign server knows no lanes, and is called as one.
            lanes: subject.kind == Kind::Priority
                && matches!(server, Program::Own { .. })
                && name != "raw TCP",
            ..shape.clone()
        },
    })
}

/// The kernel stalls real-time threads that take nearly all of a processor: they rest between runs.
fn pause(condition: Condition, limits: RunLimits) {
    if matches!(condition, Condition::Pinned | Condition::TwoCores) {
        rest(limits.budget / 2);
    }
}

/// Files that go when the contest is over.
struct Scratch(Vec<PathBuf>);

impl Scratch {
    fn file(&mut self, name: &str) -> PathBuf {
        let name = format!("deckwatch-bench-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        self.0.push(path.clone());
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for path in &self.0 {
            let _never_written = std::fs::remove_file(path);
        }
    }
}

/// Round trips of one run: with the budget's end, whichever is first.
const RUN_COUNT_MAX: usize = 100_000;

/// A longer run of real-time threads that leave nothing is stalled once a second.
pub(super) const REAL_TIME_RUN: std::time::Duration = std::time::Duration::from_millis(850);

/// Pairs of what compiles itself while it runs, before any is kept.
const REHEARSALS: usize = 8;

/// Pairs of the check with sockperf, each of which takes more than a second.
const CHECK_ROUNDS: usize = 3;

/// The smallest message that sockperf sends.
const SOCKPERF_SIZE_MIN: usize = 14;
