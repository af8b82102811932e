//! One process of a run. It reads its plan on standard input and carries it out.

use std::io::{BufRead, Read as _, Write};

use deckwatch_carrier::error::PartError;
use deckwatch_carrier::limits::LINE_SIZE_MAX;
use deckwatch_carrier::plan::PartPlan;
use deckwatch_load::{LoadError, LoadPlan, Second, Stop};
use serde::{Deserialize, Serialize};

/// The plan of a process, as JSON in the first line of its standard input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ProcessPlan {
    /// A part that sends, receives, forwards or captures messages, or serves names.
    Part(Box<PartPlan>),
    /// A load of the mission.
    Load(LoadPlan),
}

/// The error that ended a process of a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// The first line is no plan.
    #[error(
        "A part of a run is started by `deckwatch run`, which tells it its plan as one line of JSON ({0})."
    )]
    Plan(String),
    /// The part failed.
    #[error(transparent)]
    Part(#[from] PartError),
    /// Another run has parts on this host.
    #[error(
        "This host takes part in another run ({other}). Two runs would disturb each other: wait for its end."
    )]
    Busy {
        /// The other run.
        other: String,
    },
    /// The part's folder on this host cannot be made or used.
    #[error("The folder of a part cannot be used ({0}).")]
    Far(std::io::Error),
    /// The part cannot be started on this host.
    #[error(
        "The part cannot be started on this host ({0}). Check the `processors` of the host: they are those of its machine."
    )]
    Start(std::io::Error),
    /// A load cannot be carried out.
    #[error("The load cannot be carried out. {0}")]
    Load(#[from] LoadError),
    /// The report of a load cannot be written.
    #[error("The report of a load could not be written ({0}).")]
    Report(std::io::Error),
}

/// Runs one process of a run to its end. Reads the plan and commands from `input`, and writes events to `output`. Where
/// `tells_seconds`, a load also writes each second as a line, before its report.
///
/// # Errors
/// [`ProcessError`].
pub fn run(
    mut input: impl BufRead + Send + 'static,
    mut output: impl Write,
    tells_seconds: bool,
) -> Result<(), ProcessError> {
    let mut line = String::new();
    (&mut input)
        .take(LINE_SIZE_MAX as u64)
        .read_line(&mut line)
        .map_err(|error| ProcessError::Plan(error.to_string()))?;
    match serde_json::from_str(&line).map_err(|error| ProcessError::Plan(error.to_string()))? {
        ProcessPlan::Part(plan) => Ok(deckwatch_carrier::part::run(&plan, input, output)?),
        ProcessPlan::Load(plan) => {
            let mut tell = |second: &Second| {
                if tells_seconds {
                    // Where nobody reads, its input ends too.
                    let _ = write_line(&mut output, second);
                }
            };
            let report = deckwatch_load::run(&plan, &Stop::when_ended(input), &mut tell)?;
            write_line(&mut output, &report).map_err(ProcessError::Report)
        }
    }
}

fn write_line(output: &mut impl Write, said: &impl Serialize) -> std::io::Result<()> {
    let line = serde_json::to_string(said)?;
    writeln!(output, "{line}")?;
    output.flush()
}
