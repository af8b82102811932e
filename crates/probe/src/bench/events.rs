//! What an event costs at our channel besides time: counts of an event, and the memory of an idle consumer.

use super::case::{Case, Operation};
use super::command::Command;
use super::counts::count_runs;
use super::kind::{APART, EVENT_SIZE, TOGETHER};
use super::memory::resident;
use super::part::{About, Part};
use super::plan::{EVENT_COUNTING_TIME, MEMORY_TIME};
use crate::laboratory::condition::Places;
use crate::laboratory::process::RunLimits;
use crate::laboratory::program::Shape;
use crate::laboratory::samples::Samples;
use crate::laboratory::session::{Session, TurnCase};
use crate::laboratory::system::{Plan, System};
use crate::laboratory::{LaboratoryError, OURS, Role};
use crate::limits::END_PATIENCE;

/// Systems that distribute events and are not measured here.
pub(super) const NOT_MEASURED: [&str; 4] = ["omnievents", "tao", "cyclone-dds", "zenoh"];

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
const SHORT: usize = 200;
const LONG: usize = 1_000;

/// Measures the memory of our channels with and without `consumers` that get no event, once in each round, and adds the
/// octets of one to `part`. Returns false if the user wants to end.
pub(super) fn weigh(
    session: &mut Session<'_>,
    places: &Places,
    consumers: usize,
    part: &mut Part,
) -> Result<bool, LaboratoryError> {
    let operations = [Operation::Push, Operation::RtPush];
    let mut samples = [Samples::default(), Samples::default()];
    let cases = TurnCase::alike(operations.len(), &[OURS]);
    let rounds = 1..=session.setup.rounds;
    let is_whole = session.take_turns(rounds, &cases, &mut |session, turn| {
        let now = format!("events: memory of {consumers} idle consumers");
        session.show(turn.round, now);
        let each = weigh_one(session, places, operations[turn.case], consumers)?;
        session.spend(MEMORY_TIME);
        samples[turn.case].add_value("octets_per_consumer", each);
        Ok(true)
    });
    let factors = [("consumers", consumers as f64)];
    for (operation, samples) in operations.into_iter().zip(samples) {
        let case = format!("an idle consumer of {}s", operation.an_event());
        if let Some(found) = samples.measurement(OURS, &case, &factors) {
            part.add(About::IdleConsumer(operation), found);
        }
    }
    Ok(is_whole)
}

/// The resident octets that our channel takes more for each of `consumers`. Those before the first are not counted.
fn weigh_one(
    session: &mut Session<'_>,
    places: &Places,
    operation: Operation,
    consumers: usize,
) -> Result<f64, LaboratoryError> {
    let mut system = start(session, places)?;
    let kind = match operation {
        Operation::RtPush => "rt-idle",
        _ => "idle",
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
