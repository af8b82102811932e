//! The rounds of a bench: every peer once a round, each directly behind a run of raw TCP, until all rounds are done or the user ends it.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use deckwatch_meter::disturbance::Disturbance;
use deckwatch_meter::provenance::{self, Readings};
use deckwatch_meter::result::{ClockNote, Warning};
use deckwatch_os::schedule::{affinity, set_affinity};
use deckwatch_os::signal;

use super::case::Case;
use super::document::{
    BaselineCheck, CallBench, CaseResult, Kept, PeerResult, Ratio, RunSummary, SCHEMA_VERSION, Skip,
};
use super::end::Role;
use super::error::BenchError;
use super::omniorb;
use super::peer::{Peer, Place, Program, RunLimits};
use super::sockperf::{self, Sockperf};
use crate::limits::{BENCH_ROUNDS_MAX, BENCH_SAMPLES_MAX};

/// Where both ends run, and in which class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Both on one processor, SCHED_FIFO: what the software costs, and nothing of how an idle processor wakes.
    Pinned,
    /// Each on a processor of its own, SCHED_FIFO.
    TwoCores,
    /// Wherever the kernel puts them, time sharing.
    Default,
}

impl Condition {
    /// Places of server and client, and the processors left for the bench itself.
    fn places(self) -> Result<(Place, Place, Vec<u32>), BenchError> {
        let all = affinity().map_err(|source| BenchError::System {
            doing: "The processors cannot be told",
            source,
        })?;
        let place = |processor, fifo| Place { processor, fifo };
        let fifo = Some(FIFO_PRIORITY);
        Ok(match (self, all.as_slice()) {
            (Self::Default, _) => (place(None, None), place(None, None), all),
            (Self::Pinned, [rest @ .., last]) => {
                let both = place(Some(*last), fifo);
                let own = if rest.is_empty() { &all[..] } else { rest };
                (both, both, own.to_vec())
            }
            (Self::TwoCores, [rest @ .., first, last]) => {
                let own = if rest.is_empty() { &all[..] } else { rest };
                (
                    place(Some(*last), fifo),
                    place(Some(*first), fifo),
                    own.to_vec(),
                )
            }
            _ => return Err(BenchError::TooFewProcessors(all.len())),
        })
    }

    fn words(self, places: (Place, Place)) -> String {
        match (self, places.0.processor, places.1.processor) {
            (Self::Pinned, Some(processor), _) => {
                format!("both ends on processor {processor}, SCHED_FIFO {FIFO_PRIORITY}, blocking")
            }
            (Self::TwoCores, Some(server), Some(client)) => format!(
                "server on processor {server}, client on {client}, SCHED_FIFO {FIFO_PRIORITY}, blocking"
            ),
            _ => "wherever the kernel puts them, SCHED_OTHER, blocking".to_owned(),
        }
    }
}

/// Above the kernel's own interrupt threads, which run at 50 too and share with it by turns.
const FIFO_PRIORITY: u8 = 50;

/// What to bench, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// This program.
    pub program: PathBuf,
    /// Its version and commit.
    pub version: String,
    /// What is called.
    pub cases: Vec<Case>,
    /// Where.
    pub condition: Condition,
    /// How often each peer runs each case.
    pub rounds: usize,
    /// How long one run may take; below a second, so that the kernel lets real-time threads run through.
    pub run_budget: Duration,
    /// A delay put into our servant, to see that it shows.
    pub servant_delay: Duration,
}

/// How far a bench is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The round, from 1.
    pub round: usize,
    /// Rounds in all.
    pub rounds: usize,
    /// Pairs done.
    pub done: usize,
    /// Pairs in all.
    pub of: usize,
    /// What runs now.
    pub now: String,
}

/// Runs a bench. A wish to end ([`signal::ending`]) ends it early, with what was measured until then.
///
/// # Errors
/// [`BenchError`]; a foreign peer that is not installed is no error but skipped.
pub fn run(settings: &Settings, tell: &mut dyn FnMut(&Progress)) -> Result<CallBench, BenchError> {
    let (server, client, own) = settings.condition.places()?;
    let places = (server, client);
    // The bench itself stays out of the way; where it may not move, its own work shows as pressure.
    let _stays = set_affinity(&own);
    let (started_at, before) = (SystemTime::now(), Readings::take());
    let own_program = Program::Own {
        path: settings.program.clone(),
        servant_delay: settings.servant_delay,
    };
    let raw = Peer::start(
        "raw TCP",
        &own_program,
        (Role::RawServer, Role::RawClient),
        places,
    )?;
    let orb = (Role::OrbServer, Role::OrbClient);
    let ours = Peer::start("deckwatch", &own_program, orb, places)?;
    let mut skipped = Vec::new();
    let mut peers = vec![ours];
    match omniorb::missing() {
        Some(reason) => skipped.push(skip("omniorb", reason)),
        None => {
            let path = omniorb::program(&settings.program)?;
            peers.push(Peer::start(
                "omniorb",
                &Program::Foreign { path },
                orb,
                places,
            )?);
        }
    }
    let is_placed = raw.is_placed && peers.iter().all(|peer| peer.is_placed);
    let mut bench = Bench {
        settings,
        raw,
        peers,
        tell,
        done: 0,
    };
    let cases = bench.cases()?;
    let baseline_check = bench.check_baseline(places, &cases, &mut skipped)?;
    drop(bench);
    let disturbance = before.until(&Readings::take());
    let condition = settings.condition.words(places);
    Ok(CallBench {
        schema_version: SCHEMA_VERSION,
        bench: "call",
        provenance: describe(settings, started_at, &disturbance),
        warnings: warnings(settings, &disturbance, is_placed, &cases),
        condition,
        rounds: settings.rounds,
        cases,
        baseline_check,
        skipped,
    })
}

fn skip(peer: &str, reason: String) -> Skip {
    Skip {
        peer: peer.to_owned(),
        reason,
    }
}

/// What runs.
struct Bench<'s> {
    settings: &'s Settings,
    raw: Peer,
    peers: Vec<Peer>,
    tell: &'s mut dyn FnMut(&Progress),
    done: usize,
}

/// What is kept of one case, by peer.
type Pairs = Vec<Kept>;

impl Bench<'_> {
    fn limits(&self) -> RunLimits {
        RunLimits {
            count: RUN_COUNT_MAX.min(BENCH_SAMPLES_MAX),
            budget: self.settings.run_budget,
        }
    }

    fn cases(&mut self) -> Result<Vec<CaseResult>, BenchError> {
        let cases = &self.settings.cases;
        let mut sizes = Vec::new();
        for case in cases {
            sizes.push(case.message_sizes(&self.peers[0].reference)?);
        }
        let peers = self.peers.len();
        let kept = || (0..peers).map(|_| Kept::default()).collect();
        let mut pairs: Vec<Pairs> = cases.iter().map(|_| kept()).collect();
        'rounds: for round in 0..self.settings.rounds.min(BENCH_ROUNDS_MAX) {
            for (index, case) in cases.iter().enumerate() {
                for turn in 0..self.peers.len() {
                    // Each peer is first in its turn.
                    let peer = (turn + round) % self.peers.len();
                    if !self.pair(*case, sizes[index], peer, &mut pairs[index][peer])? {
                        break 'rounds;
                    }
                }
            }
        }
        if pairs.iter().flatten().all(|kept| kept.pairs.is_empty()) {
            return Err(BenchError::Interrupted(
                signal::ending().unwrap_or("a signal"),
            ));
        }
        let result = |((case, sizes), pairs): ((&Case, &(usize, usize)), &Pairs)| CaseResult {
            case: *case,
            count: case.count(),
            request_octets: sizes.0,
            reply_octets: sizes.1,
            peers: (self.peers.iter().zip(pairs))
                .filter_map(|(peer, pairs)| PeerResult::of(peer.name, pairs))
                .collect(),
        };
        Ok(cases.iter().zip(&sizes).zip(&pairs).map(result).collect())
    }

    /// A run of raw TCP, and directly behind it one of a peer; false where the user wants to end.
    fn pair(
        &mut self,
        case: Case,
        sizes: (usize, usize),
        peer: usize,
        kept: &mut Kept,
    ) -> Result<bool, BenchError> {
        let name = self.peers[peer].name;
        let a_round = self.settings.cases.len() * self.peers.len();
        (self.tell)(&Progress {
            round: self.done / a_round + 1,
            rounds: self.settings.rounds,
            done: self.done,
            of: self.settings.rounds * a_round,
            now: format!("{} {} over {name}", case.word(), case.size),
        });
        self.done += 1;
        let limits = self.limits();
        let raw = self.raw.exchange(sizes, limits)?;
        self.pause();
        let Some(raw) = raw else { return Ok(false) };
        let called = self.peers[peer].call(case, limits)?;
        self.pause();
        let Some(called) = called else {
            return Ok(false);
        };
        if kept.keep(&called, &raw) {
            return Ok(true);
        }
        Err(BenchError::EndFailed {
            what: name.to_owned(),
            reason: format!("too few round trips within {:?}", limits.budget),
        })
    }

    /// The kernel stalls real-time threads that take nearly all of a processor: they rest between runs.
    fn pause(&self) {
        if self.settings.condition != Condition::Default {
            std::thread::sleep(self.settings.run_budget / 2);
        }
    }

    /// The baseline beside sockperf's, in pairs too.
    fn check_baseline(
        &mut self,
        places: (Place, Place),
        cases: &[CaseResult],
        skipped: &mut Vec<Skip>,
    ) -> Result<Option<BaselineCheck>, BenchError> {
        if sockperf::find("sockperf").is_none() {
            skipped.push(skip("sockperf", "sockperf not installed".to_owned()));
            return Ok(None);
        }
        let smallest = cases.iter().map(|case| case.request_octets).min();
        let octets = smallest.unwrap_or(SOCKPERF_SIZE_MIN).max(SOCKPERF_SIZE_MIN);
        let second = Sockperf::start(places)?;
        let mut pairs = Vec::new();
        for _ in 0..CHECK_ROUNDS.min(self.settings.rounds) {
            (self.tell)(&Progress {
                round: self.settings.rounds,
                rounds: self.settings.rounds,
                done: self.done,
                of: self.done,
                now: "the baseline beside sockperf".to_owned(),
            });
            let Some(ours) = self.raw.exchange((octets, octets), self.limits())? else {
                break;
            };
            self.pause();
            let theirs = second.run(octets)?;
            self.pause();
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
                raw_p50_ns: middle(&|pair| Some(pair.0.p50_ns))?.median,
                sockperf_p50_ns: middle(&|pair| Some(pair.1.p50_ns))?.median,
                p50_ratio: middle(&|pair| Some(pair.0.p50_ns / pair.1.p50_ns))?,
                p99_ratio: middle(&|pair| Some(pair.0.p99_ns? / pair.1.p99_ns)),
            })
        };
        Ok(check())
    }
}

/// Round trips of one run: with the budget's end, whichever is first.
const RUN_COUNT_MAX: usize = 100_000;

/// Pairs of the check with sockperf, each of which takes more than a second.
const CHECK_ROUNDS: usize = 3;

/// The smallest message that sockperf sends.
const SOCKPERF_SIZE_MIN: usize = 14;

fn describe(
    settings: &Settings,
    started_at: SystemTime,
    disturbance: &Disturbance,
) -> deckwatch_meter::result::Provenance {
    let clock = ClockNote {
        shared: true,
        note: "round trips by CLOCK_MONOTONIC of the calling end".to_owned(),
        conversion_error_ns: 0,
    };
    let run = provenance::Run {
        version: settings.version.clone(),
        mission_path: String::new(),
        mission_text: String::new(),
        clock,
    };
    provenance::provenance(run, started_at, disturbance)
}

fn warnings(
    settings: &Settings,
    disturbance: &Disturbance,
    is_placed: bool,
    cases: &[CaseResult],
) -> Vec<Warning> {
    let mut warnings = disturbance.warnings();
    let mut warn = |holds: bool, kind: &str, text: String| {
        if holds {
            let kind = kind.to_owned();
            warnings.push(Warning { kind, text });
        }
    };
    warn(
        !is_placed,
        "not-real-time",
        "Not every end got SCHED_FIFO, which needs CAP_SYS_NICE or RLIMIT_RTPRIO: others take the processor in between.".to_owned(),
    );
    warn(
        cfg!(debug_assertions),
        "debug-build",
        "This is a debug build: build with --release to compare with others.".to_owned(),
    );
    warn(
        !settings.servant_delay.is_zero(),
        "servant-delay",
        format!(
            "Our servant was told to keep busy for {:?}.",
            settings.servant_delay
        ),
    );
    warn(
        settings.condition == Condition::Pinned && settings.run_budget > REAL_TIME_RUN_MAX,
        "long-runs",
        "Runs of more than 0.9 s are stalled by the kernel, which leaves a twentieth of each second to ordinary threads.".to_owned(),
    );
    let widest = cases
        .iter()
        .flat_map(|case| &case.peers)
        .map(|peer| {
            (peer.p50_ratio.upper_quartile - peer.p50_ratio.lower_quartile) / peer.p50_ratio.median
        })
        .fold(0.0, f64::max);
    warn(
        widest > SPREAD_WARNED,
        "spread",
        format!(
            "The middle half of some ratios lies {:.0}% apart: repeat on a quieter machine, or with more rounds.",
            widest * 1e2
        ),
    );
    let unfinished = cases.iter().any(|case| {
        case.peers
            .iter()
            .any(|peer| peer.pairs.len() < settings.rounds)
    });
    warn(
        unfinished,
        "ended-early",
        "The bench was ended before its last round.".to_owned(),
    );
    warn(
        cases.iter().any(|case| case.peers.is_empty()),
        "nothing-measured",
        "Some sizes were not measured at all.".to_owned(),
    );
    warnings
}

/// A longer run of real-time threads that leave nothing is stalled once a second.
const REAL_TIME_RUN_MAX: Duration = Duration::from_millis(900);

/// Width of the middle half of the ratios, over their median, from which on they are worth little.
const SPREAD_WARNED: f64 = 0.06;
