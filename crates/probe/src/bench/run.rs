//! A bench from its beginning to its end: kinds by conditions, until all is done or the user ends it.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use deckwatch_meter::disturbance::Disturbance;
use deckwatch_meter::provenance::{self, Readings};
use deckwatch_meter::result::{ClockNote, Warning};
use deckwatch_os::schedule::set_affinity;
use deckwatch_os::signal;

use super::case::Case;
use super::condition::{Condition, Places};
use super::contest::{Contest, REAL_TIME_RUN, Subject};
use super::document::{Bench, Part, SCHEMA_VERSION, Skip};
use super::error::BenchError;
use super::foreign;
use super::kind::{Kind, SMALL};
use super::mirror::Inserted;
use super::peer::Program;
use super::variant::Variant;
use super::{counts, memory, target};

/// What to bench, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// This program.
    pub program: PathBuf,
    /// Its version and commit.
    pub version: String,
    /// What is measured.
    pub kinds: Vec<Kind>,
    /// What [`Kind::Call`] calls.
    pub calls: Vec<Case>,
    /// Where.
    pub conditions: Vec<Condition>,
    /// How often each peer runs each case.
    pub rounds: usize,
    /// How long one run may take; below a second, so that the kernel lets real-time threads run through.
    pub run_budget: Duration,
    /// What our servants do beside their work, to see that it shows.
    pub inserted: Inserted,
    /// Active objects of [`Kind::Objects`].
    pub objects: usize,
    /// Clients that never pause in [`Kind::Priority`].
    pub low_clients: usize,
    /// Connections of [`Kind::Memory`].
    pub connections: usize,
    /// Foreign ORBs that are left out though they are here.
    pub without: Vec<String>,
}

/// How far a bench is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The round; 0 is the rehearsal.
    pub round: usize,
    /// Rounds in all.
    pub rounds: usize,
    /// What runs now.
    pub now: String,
}

/// Runs a bench. A wish to end ([`signal::ending`]) ends it early, with what was measured until then. `keep` gets what has been found after each
/// part, so that nothing is lost with what comes behind it.
///
/// # Errors
/// [`BenchError`] where nothing was measured; a foreign peer that cannot be built or fails is no error but skipped. What fails later breaks the
/// bench off, which its warnings tell.
pub fn run(
    settings: &Settings,
    tell: &mut dyn FnMut(&Progress),
    keep: &mut dyn FnMut(&Bench),
) -> Result<Bench, BenchError> {
    let (started_at, before) = (SystemTime::now(), Readings::take());
    let mut whole = Whole {
        settings,
        programs: Vec::new(),
        parts: Vec::new(),
        skipped: Vec::new(),
        is_placed: true,
        is_ended: false,
        broken_off: None,
    };
    whole.find_programs(tell);
    let bench = |whole: &Whole<'_>| whole.bench(started_at, &before.until(&Readings::take()));
    let places = settings
        .conditions
        .iter()
        .map(|condition| condition.places());
    let places = places.collect::<Result<Vec<_>, _>>()?;
    'all: for places in &places {
        whole.is_placed &= !places.is_refused;
        // The bench itself stays out of the way; where it may not move, its own work shows as pressure.
        let allowed = deckwatch_os::schedule::affinity().unwrap_or_default();
        let _stays = set_affinity(&places.own);
        for kind in &settings.kinds {
            let found = match signal::ending() {
                None => whole.kind(*kind, places, tell),
                Some(_) => Ok(false),
            };
            match found {
                Ok(true) => keep(&bench(&whole)),
                Err(error) if signal::ending().is_none() => {
                    if whole.is_empty() {
                        return Err(error);
                    }
                    whole.broken_off = Some(error.to_string());
                    break 'all;
                }
                // The user wants to end, which may be what made it fail.
                _ => {
                    whole.is_ended = true;
                    break 'all;
                }
            }
        }
        let _as_before = set_affinity(&allowed);
    }
    if whole.is_empty() {
        return Err(signal::ending().map_or(BenchError::Nothing, BenchError::Interrupted));
    }
    Ok(bench(&whole))
}

/// What has been found so far.
struct Whole<'s> {
    settings: &'s Settings,
    programs: Vec<(&'static str, Program)>,
    parts: Vec<Part>,
    skipped: Vec<Skip>,
    is_placed: bool,
    is_ended: bool,
    /// Why it cannot go on.
    broken_off: Option<String>,
}

impl Whole<'_> {
    /// Nothing was measured.
    fn is_empty(&self) -> bool {
        let is_empty = |part: &Part| {
            part.cases.iter().all(|case| case.peers.is_empty())
                && part.counts.is_empty()
                && part.memory.is_empty()
        };
        self.parts.iter().all(is_empty)
    }

    fn find_programs(&mut self, tell: &mut dyn FnMut(&Progress)) {
        for peer in &foreign::ALL {
            if signal::ending().is_some() {
                return;
            }
            let skip = |reason: String| Skip {
                peer: peer.name.to_owned(),
                reason,
            };
            if self.settings.without.iter().any(|name| name == peer.name) {
                self.skipped.push(skip("left out as asked".to_owned()));
                continue;
            }
            if let Some(reason) = peer.missing() {
                self.skipped.push(skip(reason));
                continue;
            }
            tell(&Progress {
                round: 0,
                rounds: 0,
                now: format!("building {}", peer.name),
            });
            match peer.program(&self.settings.program) {
                Ok(path) => self.programs.push((peer.name, Program::Foreign { path })),
                Err(error) => self.skipped.push(skip(error.to_string())),
            }
        }
    }

    /// Measures a kind; false: the user wants to end before it is whole.
    fn kind(
        &mut self,
        kind: Kind,
        places: &Places,
        tell: &mut dyn FnMut(&Progress),
    ) -> Result<bool, BenchError> {
        let is_done = self.parts.iter().any(|part| part.kind == kind);
        if kind.variants(places.condition).is_empty() || kind.is_the_same_everywhere() && is_done {
            return Ok(true);
        }
        let mut part = Part {
            kind,
            condition: places.words(),
            is_judged: places.are_judged(),
            variant: Variant::Plain,
            cases: Vec::new(),
            counts: Vec::new(),
            memory: Vec::new(),
            baseline_check: None,
        };
        let (settings, programs, skipped) = (self.settings, &self.programs, &mut self.skipped);
        match kind {
            Kind::Counters => {
                part.counts = counts::count(settings, places, programs, skipped, tell)?;
            }
            Kind::Memory => {
                part.memory = memory::measure(settings, places, programs, skipped, tell)?;
            }
            _ => {
                for variant in kind.variants(places.condition) {
                    let cases = match (kind, variant) {
                        (Kind::Call, Variant::Plain) => settings.calls.clone(),
                        _ => kind.cases(),
                    };
                    // The small call stands for all where we are alone with it.
                    let is_small = |case: &Case| *variant == Variant::Plain || *case == SMALL;
                    let cases = cases.into_iter().filter(is_small).collect();
                    let variant = *variant;
                    let part = Part {
                        variant,
                        ..part.clone()
                    };
                    if !self.contest(part, places, cases, tell)? {
                        return Ok(false);
                    }
                }
                return Ok(true);
            }
        }
        self.parts.push(part);
        Ok(signal::ending().is_none())
    }

    fn contest(
        &mut self,
        mut part: Part,
        places: &Places,
        cases: Vec<Case>,
        tell: &mut dyn FnMut(&Progress),
    ) -> Result<bool, BenchError> {
        if signal::ending().is_some() {
            return Ok(false);
        }
        let subject = Subject {
            kind: part.kind,
            places: places.clone(),
            cases,
            variant: part.variant,
            rounds: self.settings.rounds,
        };
        let mut contest = Contest::start(self.settings, subject, &self.programs)?;
        let ran = contest.run(tell);
        part.cases = contest.results()?;
        if matches!(ran, Ok(true)) && part.kind == Kind::Call && part.variant == Variant::Plain {
            part.baseline_check = contest.check_baseline(tell);
        }
        self.is_placed &= contest.is_placed;
        self.skipped.append(&mut contest.skipped);
        // What was found before somebody failed is kept.
        self.parts.push(part);
        ran
    }

    fn bench(&self, started_at: SystemTime, disturbance: &Disturbance) -> Bench {
        let settings = self.settings;
        let is_here = |peer: &&foreign::Foreign| {
            let mut here = self.programs.iter();
            here.any(|(name, _)| *name == peer.name)
        };
        let peers = foreign::ALL.iter().filter(is_here);
        let notes = peers.flat_map(|peer| peer.notes.iter().map(|note| (*note).to_owned()));
        Bench {
            schema_version: SCHEMA_VERSION,
            bench: match settings.kinds[..] {
                [kind] => kind.word().to_owned(),
                _ => "all".to_owned(),
            },
            provenance: describe(settings, started_at, disturbance),
            rounds: settings.rounds,
            standings: target::standings(&self.parts),
            parts: self.parts.clone(),
            skipped: self.skipped.clone(),
            notes: notes.collect(),
            warnings: self.warnings(disturbance),
        }
    }

    fn warnings(&self, disturbance: &Disturbance) -> Vec<Warning> {
        let settings = self.settings;
        let mut warnings = disturbance.warnings();
        let mut warn = |holds: bool, kind: &str, text: &str| {
            if holds {
                let (kind, text) = (kind.to_owned(), text.to_owned());
                warnings.push(Warning { kind, text });
            }
        };
        warn(
            !self.is_placed,
            "not-real-time",
            "Not every end got SCHED_FIFO, which needs CAP_SYS_NICE or RLIMIT_RTPRIO: others take the processor in between.",
        );
        warn(
            cfg!(debug_assertions),
            "debug-build",
            "This is a debug build: build with --release to compare with others.",
        );
        let inserted = settings.inserted.words().unwrap_or_default();
        warn(
            settings.inserted != Inserted::Nothing,
            if matches!(settings.inserted, Inserted::Delay(_)) {
                "servant-delay"
            } else {
                "servant-inserted"
            },
            &format!("Our servant was told to do something beside: {inserted}."),
        );
        warn(
            settings.run_budget > REAL_TIME_RUN,
            "long-runs",
            "Runs of more than 0.9 s are stalled by the kernel, which leaves a twentieth of each second to ordinary threads.",
        );
        let judged = || self.parts.iter().filter(|part| part.is_judged);
        let peers = || judged().flat_map(|part| part.cases.iter().flat_map(|case| &case.peers));
        let widest = peers()
            .filter_map(|peer| peer.p50_ratio)
            .map(|ratio| (ratio.upper_quartile - ratio.lower_quartile) / ratio.median)
            .fold(0.0, f64::max);
        warn(
            widest > SPREAD_WARNED,
            "spread",
            &format!(
                "The middle half of some ratios lies {:.0}% apart: repeat on a quieter machine, or with more rounds.",
                widest * 1e2
            ),
        );
        warn(
            self.broken_off.is_some(),
            super::BROKEN_OFF,
            &format!(
                "The bench could not go on: {}",
                self.broken_off.as_deref().unwrap_or_default()
            ),
        );
        warn(
            self.is_ended,
            super::ENDED_EARLY,
            "The bench was ended before its last round.",
        );
        let cases = || self.parts.iter().flat_map(|part| &part.cases);
        warn(
            cases().any(|case| case.peers.is_empty()),
            "nothing-measured",
            "Some sizes were not measured at all.",
        );
        warnings
    }
}

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

/// Width of the middle half of the ratios, over their median, from which on they are worth little.
const SPREAD_WARNED: f64 = 0.06;
