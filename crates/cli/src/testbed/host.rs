//! Actions on one host of a testbed, of a run or made by hand.

use std::num::NonZeroU32;
use std::os::unix::process::CommandExt;
use std::process::ExitCode;

use anyhow::{Context, bail};
use deckwatch_os::namespace::Placement;
use deckwatch_testbed::{Port, leftovers};

use crate::output::outln;

/// A host of a testbed that stands.
#[derive(clap::Args)]
pub(super) struct At {
    /// The host's name.
    host: String,
    /// Which testbed, where several have a host of that name: the name that `list` prints.
    #[arg(long)]
    testbed: Option<String>,
}

impl At {
    pub(super) fn port(&self) -> anyhow::Result<Port> {
        leftovers::find_port(&self.host, self.testbed.as_deref()).context(WHERE_TO_LOOK)
    }
}

const WHERE_TO_LOOK: &str =
    "`deckwatch testbed list` says which hosts there are, and `--testbed` chooses";

pub(super) fn lose(at: &At, every: Option<NonZeroU32>, as_json: bool) -> anyhow::Result<()> {
    let port = at.port()?;
    match every {
        Some(every) => port.lose_every(every)?,
        None => port.lose_none()?,
    }
    let lost = port.lost_count()?;
    if as_json {
        outln!("{}", serde_json::json!({ "lost": lost }))?;
    } else {
        outln!("{lost} frames to {} were lost on purpose so far.", at.host)?;
    }
    Ok(())
}

/// Replaces this process by the command. Returns only if the command cannot be run.
pub(super) fn exec(at: &At, command: &[String]) -> anyhow::Result<ExitCode> {
    let namespace = leftovers::find_host(&at.host, at.testbed.as_deref()).context(WHERE_TO_LOOK)?;
    let [program, words @ ..] = command else {
        bail!("there is no command to run");
    };
    let mut command = std::process::Command::new(program);
    let placement = Placement {
        namespace: Some(namespace),
        ..Placement::default()
    };
    placement.apply(command.args(words))?;
    Err(command.exec()).with_context(|| format!("`{program}` cannot be run on `{}`", at.host))
}
