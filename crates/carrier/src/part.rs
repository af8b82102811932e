//! The parts of a run. Each part is a process that reads its plan, writes `ready`, waits for `go`, works, and writes
//! `done`.

use std::io::{BufRead, Write};

use deckwatch_meter::pacing::Schedule;

use crate::error::PartError;
use crate::plan::PartPlan;
use crate::talk::PartEvent;

mod clock;
mod consumer;
#[cfg(test)]
pub(crate) mod playing;
mod service;
mod stage;
mod supplier;
mod tap;
#[cfg(test)]
mod tests;

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
        PartPlan::Supplier(plan) => supplier::play(plan, &mut stage),
        PartPlan::Consumer(plan) => consumer::play(plan, &mut stage),
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
