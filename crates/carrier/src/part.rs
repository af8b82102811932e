//! The parts of a run. Each part is a process that reads its plan, writes `ready`, waits for `go`, works, and writes
//! `done`.

use std::io::{BufRead, Write};

use deckwatch_meter::pacing::Schedule;

use crate::error::PartError;
use crate::plan::PartPlan;
use crate::talk::PartEvent;

mod clock;
mod consumer;
mod external;
mod foreign_records;
mod plan_text;
#[cfg(test)]
pub(crate) mod playing;
mod program;
mod service;
mod stage;
mod supplier;
mod tap;
#[cfg(test)]
mod tests;

pub use program::ProgramFault;
use stage::Stage;

/// Runs a part to its end: reads commands from `input` and writes events to `output`. An error is also written there.
///
/// # Errors
/// [`PartError`], after it is written as an event.
pub fn run(
    plan: &PartPlan,
    input: impl BufRead + Send + 'static,
    output: impl Write,
) -> Result<(), PartError> {
    let mut stage = Stage::new(input, output);
    let played = match plan {
        PartPlan::Supplier(plan) => match plan.stream.carrier.external() {
            Some(carrier) => external::play_supplier(carrier, plan, &mut stage),
            None => supplier::play(plan, &mut stage),
        },
        PartPlan::Consumer(plan) => match plan.stream.carrier.external() {
            Some(carrier) => external::play_consumer(carrier, plan, &mut stage),
            None => consumer::play(plan, &mut stage),
        },
        PartPlan::Broker(plan) => external::play_broker(plan, &mut stage),
        PartPlan::Tap(plan) => tap::play(plan, &mut stage),
        PartPlan::Clock(plan) => clock::play(plan, &mut stage),
        PartPlan::Channel(plan) => service::play_channel(plan, &mut stage),
        PartPlan::Names(plan) => service::play_names(plan, &mut stage),
    };
    if let Err(error) = &played {
        stage.say(&PartEvent::Error {
            text: error.to_string(),
        });
    }
    played
}

/// Returns the number of messages of a schedule. It is counted: for a Poisson process over a duration no formula gives
/// it.
fn messages_of(schedule: &Schedule) -> Result<u64, PartError> {
    schedule.check()?;
    Ok(schedule.dues().count() as u64)
}
