//! One process of a run: reads its plan on standard input and plays its part.

use std::io::{BufRead, Read as _, Write};

use deckwatch_carrier::error::PartError;
use deckwatch_carrier::limits::LINE_SIZE_MAX;
use deckwatch_carrier::plan::PartPlan;
use deckwatch_testbed::load::{self, LoadPlan};
use serde::{Deserialize, Serialize};

/// The plan of a process: the first line on its standard input, JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ProcessPlan {
    /// A part on the road of messages.
    Part(Box<PartPlan>),
    /// A process that keeps a processor busy.
    Load(LoadPlan),
}

/// Why a process of a run ended otherwise than in order.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// The first line is no plan.
    #[error(
        "A part of a run is started by `deckwatch run`, which tells it its plan as one line of JSON ({0})."
    )]
    Plan(String),
    /// The part could not be played.
    #[error(transparent)]
    Part(#[from] PartError),
    /// What a load did could not be said.
    #[error("The report of a load could not be written ({0}).")]
    Report(std::io::Error),
}

/// Plays a part to its end: the plan and commands come from `input`, events go to `output`.
///
/// # Errors
/// [`ProcessError`].
pub fn run(
    mut input: impl BufRead + Send + 'static,
    mut output: impl Write,
) -> Result<(), ProcessError> {
    let mut line = String::new();
    (&mut input)
        .take(LINE_SIZE_MAX as u64)
        .read_line(&mut line)
        .map_err(|error| ProcessError::Plan(error.to_string()))?;
    match serde_json::from_str(&line).map_err(|error| ProcessError::Plan(error.to_string()))? {
        ProcessPlan::Part(plan) => Ok(deckwatch_carrier::part::run(&plan, input, output)?),
        ProcessPlan::Load(plan) => {
            let report = load::run(&plan, input);
            let line = serde_json::to_string(&report)
                .map_err(|error| ProcessError::Report(error.into()))?;
            writeln!(output, "{line}").map_err(ProcessError::Report)
        }
    }
}
