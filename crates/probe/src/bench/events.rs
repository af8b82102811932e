//! What an event costs at our channel besides time: counts of an event, and the memory of an idle consumer.

use super::case::{Beside, Case, Operation};
use super::command::Command;
use super::counts::count_runs;
use super::kind::{APART, EVENT_SIZE, TOGETHER};
use super::memory::resident;
use super::part::{About, Part};
use super::plan::{EVENT_COUNTING_TIME, MEMORY_TIME};
use crate::laboratory::condition::Places;
use crate::laboratory::end::{omni_events, tao_events};
use crate::laboratory::foreign::{
    self, CYCLONE, CYCLONE_DDS, EVENT_PEERS, OMNI_EVENTS, TAO, ZENOH, ZENOH_ROUTER,
};
use crate::laboratory::process::RunLimits;
use crate::laboratory::program::{Program, Shape};
use crate::laboratory::samples::Samples;
use crate::laboratory::session::{Session, TurnCase};
use crate::laboratory::system::{Plan, System};
use crate::laboratory::{LaboratoryError, OURS, Role};
use crate::limits::END_PATIENCE;

/// The other systems that distribute events, as far as they are here. The reason is noted for each of the others.
pub(super) fn peers(session: &mut Session<'_>) -> Vec<(&'static str, Program)> {
    let mut found = Vec::new();
    for name in EVENT_PEERS {
        let own_ends = [CYCLONE_DDS, ZENOH_ROUTER];
        if let Some(peer) = own_ends.iter().find(|peer| peer.name == name) {
            let program = session.foreign(peer);
            found.extend(program.map(|program| (name, program)));
        } else if session.setup.without.iter().any(|it| it == name) {
            session.skip(name, "left out as asked");
        } else if let Some(reason) = missing(name) {
            session.skip(name, &format!("events: {reason}"));
        } else {
            found.push((name, session.own()));
        }
    }
    found
}

/// Why a system is not measured.
fn missing(name: &str) -> Option<&'static str> {
    match name {
        OMNI_EVENTS if foreign::find(omni_events::PROGRAM).is_some() => None,
        OMNI_EVENTS => Some("omniEvents is not installed"),
        TAO => match tao_events::program() {
            None => Some("TAO_ROOT does not tell where one is"),
            Some(program) if program.is_file() => None,
            Some(_) => Some("its event channel, tao_rtevent, is not built"),
        },
        _ => None,
    }
}

/// Whether a system can be measured in a case.
pub(super) fn takes(name: &str, case: Case) -> bool {
    match name {
        OMNI_EVENTS => matches!(case.operation, Operation::Push | Operation::PushStream),
        TAO => case.operation == Operation::RtPush && case.beside == Beside::RawTcp,
        // One participant has all readers: each participant has threads of its own.
        CYCLONE => {
            let is_one_way = matches!(case.operation, Operation::RtPush | Operation::RtPushStream);
            is_one_way && !case.consumers.are_apart && case.beside == Beside::RawTcp
        }
        ZENOH => {
            let is_one_way = matches!(case.operation, Operation::RtPush | Operation::RtPushStream);
            is_one_way && case.beside == Beside::RawTcp
        }
        _ => true,
    }
}

fn start(session: &mut Session<'_>, places: &Places) -> Result<System, LaboratoryError> {
    let own = session.own();
    let both = (places.server, places.client);
    session.start(&Plan::pair(
        OURS,
        &own,
        Role::CHANNEL,
        both,
        Shape::default(),
    ))
}

/// Counts what our channel does for one event, and adds the results to `part`.
pub(super) fn count(
    session: &mut Session<'_>,
    places: &Places,
    part: &mut Part,
) -> Result<(), LaboratoryError> {
    let both = [Operation::Push, Operation::RtPush];
    let cases = both
        .into_iter()
        .flat_map(|operation| [(operation, TOGETHER), (operation, APART)]);
    for (step, (operation, consumers)) in cases.enumerate() {
        let words = format!("{}{}", operation.an_event(), consumers.words());
        session.show_step(step + 1, COUNTED, format!("events: counters of {words}"));
        let system = start(session, places)?;
        let mut samples = Samples::default();
        let case = Case::push(operation, EVENT_SIZE, consumers);
        let own = session.own();
        let is_whole = count_runs(session, system, &own, (case, [SHORT, LONG]), &mut samples)?;
        session.spend(EVENT_COUNTING_TIME / COUNTED as u32);
        if !is_whole {
            return Ok(());
        }
        let factors = [("requests", (LONG - SHORT) as f64)];
        if let Some(found) = samples.measurement(OURS, &words, &factors) {
            part.add(About::EventCounts(case), found);
        }
    }
    Ok(())
}

/// The counted cases.
const COUNTED: usize = 4;

/// Events in the two counted runs. Each goes to many consumers.
const SHORT: usize = 100;
const LONG: usize = 500;

/// Measures the memory of our channels with and without `consumers` that get no event, once in each round, and adds the
/// octets of one to `part`. Returns false if the user wants to end.
pub(super) fn weigh(
    session: &mut Session<'_>,
    places: &Places,
    consumers: usize,
    part: &mut Part,
) -> Result<bool, LaboratoryError> {
    let apart = consumers.min(IDLE_APART_MAX);
    let weighed = [
        (Operation::Push, false, consumers),
        (Operation::Push, true, apart),
        (Operation::RtPush, false, consumers),
        (Operation::RtPush, true, apart),
    ];
    let mut samples = weighed.map(|_| Samples::default());
    let cases = TurnCase::alike(weighed.len(), &[OURS]);
    let rounds = 1..=session.setup.rounds;
    let is_whole = session.take_turns(rounds, &cases, &mut |session, turn| {
        let (operation, are_apart, consumers) = weighed[turn.case];
        let now = format!("events: memory of {consumers} idle consumers");
        session.show(turn.round, now);
        let each = weigh_one(session, places, (operation, are_apart), consumers)?;
        session.spend(MEMORY_TIME);
        samples[turn.case].add_value("octets_per_consumer", each);
        Ok(true)
    });
    for ((operation, are_apart, consumers), samples) in weighed.into_iter().zip(samples) {
        let factors = [("consumers", consumers as f64)];
        let place = if are_apart {
            ", an endpoint each"
        } else {
            " at one endpoint"
        };
        let case = format!("an idle consumer of {}s{place}", operation.an_event());
        if let Some(found) = samples.measurement(OURS, &case, &factors) {
            part.add(About::IdleConsumer(operation, are_apart), found);
        }
    }
    Ok(is_whole)
}

/// Idle consumers with an endpoint each: each has an ORB, which takes threads at the client.
const IDLE_APART_MAX: usize = 100;

/// The resident octets that our channel takes more for each of `consumers`. Those before the first are not counted.
fn weigh_one(
    session: &mut Session<'_>,
    places: &Places,
    (operation, are_apart): (Operation, bool),
    consumers: usize,
) -> Result<f64, LaboratoryError> {
    let mut system = start(session, places)?;
    let kind = match (operation, are_apart) {
        (Operation::RtPush, false) => "rt-idle",
        (Operation::RtPush, true) => "rt-idle-apart",
        (_, false) => "idle",
        (_, true) => "idle-apart",
    };
    let mut with = |count: usize| {
        let limits = RunLimits {
            count,
            budget: END_PATIENCE,
        };
        Command::of(kind, limits).run(&mut system, false)?;
        Ok::<_, LaboratoryError>(resident(system.server.process())?.0)
    };
    let (few, all) = (with(1)?, with(consumers)?);
    Ok((all as f64 - few as f64) / (consumers as f64 - 1.0).max(1.0))
}
