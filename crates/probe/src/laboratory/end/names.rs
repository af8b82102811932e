//! `deckwatch names serve` with its defaults, in a process of its own, as a server that is attacked.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use deckwatch_os::schedule::{Class, set_class};

use super::{EndPlan, answer_questions, daemon, greet, place, refused, system};
use crate::laboratory::error::LaboratoryError;

/// Serves names until the standard input ends.
pub(super) fn serve(plan: &EndPlan) -> Result<(), LaboratoryError> {
    place(plan.fifo);
    let (service, root) = Service::start(plan.fifo)?;
    greet(&format!("{root} of process {}", service.0.id()))?;
    // Time sharing is always permitted.
    let _ = set_class(Class::Other);
    answer_questions(None)
}

/// The running service. Dropping it ends it.
struct Service(Child);

impl Service {
    /// Starts it, and returns the reference of its root context.
    fn start(fifo: Option<u8>) -> Result<(Self, String), LaboratoryError> {
        let cannot = || system("The naming service cannot be started");
        let program = std::env::current_exe().map_err(cannot())?;
        let child = daemon(&program.to_string_lossy(), fifo)
            .map_err(cannot())?
            .args(["names", "serve"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(cannot())?;
        let mut service = Self(child);
        let mut root = String::new();
        if let Some(output) = service.0.stdout.take() {
            let read = BufReader::new(output).read_line(&mut root);
            read.map_err(cannot())?;
        }
        let root = root.trim().to_owned();
        if root.is_empty() {
            return Err(refused("The naming service")(
                "it ended before it served names",
            ));
        }
        Ok((service, root))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
