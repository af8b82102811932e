//! What a server does for one request: counted at runs of two lengths, so that what belongs to a run and not to a request falls out.

use super::condition::Places;
use super::document::{CountResult, Skip};
use super::end::Role;
use super::error::BenchError;
use super::kind::SMALL;
use super::peer::{Peer, Plan, Program, RunLimits, Shape};
use super::run::{Progress, Settings};
use super::variant::Variant;
use crate::counters::{Counted, Counts, Watch};
use crate::limits::END_PATIENCE;

/// Counts of every peer, ours in both ways of serving.
pub(super) fn count(
    settings: &Settings,
    places: &Places,
    programs: &[(&'static str, Program)],
    skipped: &mut Vec<Skip>,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Vec<CountResult>, BenchError> {
    let own = Program::Own {
        path: settings.program.clone(),
        inserted: settings.inserted,
    };
    let ours =
        [Variant::Plain, Variant::SharedPoller].map(|variant| ("deckwatch", own.clone(), variant));
    let foreign = programs
        .iter()
        .map(|(name, program)| (*name, program.clone(), Variant::Plain));
    let all: Vec<_> = ours.into_iter().chain(foreign).collect();
    let mut results = Vec::new();
    for (round, (name, program, variant)) in all.iter().enumerate() {
        tell(&Progress {
            round: round + 1,
            rounds: all.len(),
            now: format!("counters: {name}"),
        });
        match count_one((*name, program), *variant, places, skipped) {
            Ok(Some(result)) => results.push(result),
            Ok(None) => break,
            Err(error) if *name == "deckwatch" => return Err(error),
            Err(error) => skipped.push(Skip {
                peer: (*name).to_owned(),
                reason: format!("counters: {error}"),
            }),
        }
    }
    Ok(results)
}

fn count_one(
    (name, program): (&'static str, &Program),
    variant: Variant,
    places: &Places,
    skipped: &mut Vec<Skip>,
) -> Result<Option<CountResult>, BenchError> {
    let mut peer = Peer::start(&Plan {
        name,
        server: (program, Role::OrbServer, places.server),
        client: (program, Role::OrbClient, places.client),
        load: None,
        shape: Shape {
            variant,
            ..Shape::default()
        },
    })?;
    let run = |peer: &mut Peer, count: usize| {
        let limits = RunLimits {
            count,
            budget: END_PATIENCE,
        };
        peer.call(SMALL, limits)
    };
    // What is made for the first requests alone is made before.
    let rehearsal = if name == "jacorb" { LONG * 4 } else { LONG };
    if run(&mut peer, rehearsal)?.is_none() {
        return Ok(None);
    }
    // A probe costs the counted process time: all kinds of event at once are still far below the budget.
    let watch = Watch::begin(peer.server.process(), &Counted::ALL);
    for error in watch.missing().values() {
        skipped.push(Skip {
            peer: name.to_owned(),
            reason: format!("counters: {error}"),
        });
    }
    let is_own = matches!(program, Program::Own { .. });
    let read = |peer: &mut Peer| -> Result<(Counts, u64), BenchError> {
        let locks = if is_own { own_locks(peer)? } else { 0 };
        Ok((watch.read(), locks))
    };
    let mut readings = vec![read(&mut peer)?];
    for count in [SHORT, LONG] {
        if run(&mut peer, count)?.is_none() {
            return Ok(None);
        }
        readings.push(read(&mut peer)?);
    }
    let requests = (LONG - SHORT) as f64;
    let grown = |index: usize, what| readings[index + 1].0.since(&readings[index].0).of(what);
    let a_request = |what: Counted| {
        let (short, long) = (grown(0, what)?, grown(1, what)?);
        Some((long as f64 - short as f64) / requests)
    };
    let locks = |index: usize| (readings[index + 1].1 - readings[index].1) as f64;
    let own_locks = (locks(1) - locks(0)) / requests;
    let seen = |value: Option<f64>| value.map(|value| value.max(0.0));
    let library_locks = a_request(Counted::MutexLocks);
    Ok(Some(CountResult {
        peer: name.to_owned(),
        variant,
        requests: (LONG - SHORT) as u64,
        allocations: seen(a_request(Counted::Allocations)).filter(|_| name != "jacorb"),
        mutex_locks: match name {
            "jacorb" | "rustorb" => None,
            _ => seen(library_locks.map(|locks| locks + own_locks)),
        },
        waits: seen(a_request(Counted::FutexWaits)),
        system_calls: seen(a_request(Counted::SystemCalls)),
    }))
}

/// How many locks our server has taken since it was first asked.
fn own_locks(peer: &mut Peer) -> Result<u64, BenchError> {
    peer.server.tell("locks\n")?;
    let said = peer.server.hear_line(END_PATIENCE)?;
    let said = said.unwrap_or_default();
    let count = said
        .strip_prefix("locks ")
        .and_then(|count| count.parse().ok());
    count.ok_or_else(|| peer.server.failed(&said))
}

/// Calls of the two runs.
const SHORT: usize = 1_000;
const LONG: usize = 5_000;
