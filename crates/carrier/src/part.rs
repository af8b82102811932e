//! The parts of a run: each a process that reads its plan, says `ready`, works from `go` on, and says `done`.

use std::io::{BufRead, Write};
use std::net::SocketAddr;

use deckwatch_meter::pacing::Schedule;
use thiserror::Error;

use crate::body::BodyError;
use crate::plan::PartPlan;
use crate::record::RecordError;
use crate::talk::PartEvent;

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

/// Plays a part to its end: commands come from `input`, events go to `output`. What ends it early is told there too.
///
/// # Errors
/// [`PartError`], after it was told as an event.
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

/// How many messages a schedule has, counted: the number of a Poisson process over a duration is not known otherwise.
fn messages_of(schedule: &Schedule) -> Result<u64, PartError> {
    schedule
        .check()
        .map_err(|error| PartError::Plan(error.to_string()))?;
    Ok(schedule.dues().count() as u64)
}

/// Why a part cannot be played.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PartError {
    /// The plan asks for what cannot be.
    #[error("{0}")]
    Plan(String),
    /// A socket cannot be made or connected.
    #[error("{carrier} at {address}: {error}")]
    Socket {
        /// The carrier's name.
        carrier: &'static str,
        /// This end, or the one that it was to be connected to.
        address: SocketAddr,
        /// What the kernel answered.
        error: std::io::Error,
    },
    /// The message cannot be made.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The records cannot be kept.
    #[error(transparent)]
    Records(#[from] RecordError),
}

impl PartError {
    pub(crate) const fn socket(
        carrier: &'static str,
        address: SocketAddr,
        error: std::io::Error,
    ) -> Self {
        Self::Socket {
            carrier,
            address,
            error,
        }
    }
}
