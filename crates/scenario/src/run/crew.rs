//! The processes of a run.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use deckwatch_carrier::talk::PartCommand;
use deckwatch_testbed::Host;
use serde::Serialize;

use super::child::{Child, Ended, Role, Told};
use super::{Interrupt, RunError};
use crate::limits::TURN_PATIENCE;

/// All processes of a run. They are killed when this is dropped.
pub(super) struct Crew {
    pub(super) children: Vec<Child>,
    program: PathBuf,
    told: Receiver<Told>,
    tell: Sender<Told>,
}

impl Crew {
    pub(super) fn new(program: PathBuf) -> Self {
        let (tell, told) = channel();
        Self {
            children: Vec::new(),
            program,
            told,
            tell,
        }
    }

    /// Starts a process. Returns its index.
    pub(super) fn start(
        &mut self,
        role: Role,
        label: String,
        plan: &impl Serialize,
        host: &Host,
    ) -> Result<usize, RunError> {
        let index = self.children.len();
        let tell = (index, self.tell.clone());
        let child = Child::start(&self.program, role, label, plan, host, tell)?;
        self.children.push(child);
        Ok(index)
    }

    /// Waits for a line of any process and handles it. Returns the index of the process.
    pub(super) fn turn(&mut self, patience: Duration) -> Option<usize> {
        let (index, line) = match self.told.recv_timeout(patience) {
            Ok(told) => told,
            // `Disconnected` does not occur, because the crew keeps a sender.
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        };
        self.children[index].hear(line);
        Some(index)
    }

    /// Waits until all of these processes are ready.
    pub(super) fn wait_ready(
        &mut self,
        wanted: &[usize],
        patience: Duration,
        interrupt: &Interrupt,
    ) -> Result<(), RunError> {
        self.wait(wanted, patience, interrupt, |child| child.ready.is_some())?;
        for &index in wanted {
            let child = &self.children[index];
            if child.ready.is_none() {
                return Err(RunError::NotReady {
                    process: child.label.clone(),
                    how: match &child.ended {
                        Some(Ended::Died(how)) => how.clone(),
                        _ => format!("it said nothing for {} s", patience.as_secs()),
                    },
                });
            }
        }
        Ok(())
    }

    /// Waits until each of these processes is ready or has ended, at most for `patience`.
    pub(super) fn wait(
        &mut self,
        wanted: &[usize],
        patience: Duration,
        interrupt: &Interrupt,
        is: impl Fn(&Child) -> bool,
    ) -> Result<(), RunError> {
        let until = Instant::now() + patience;
        let settled = |child: &Child| is(child) || !child.lives();
        while !wanted.iter().all(|&index| settled(&self.children[index])) {
            if let Some(signal) = interrupt.received() {
                return Err(RunError::Interrupted { signal });
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.turn(left.min(TURN_PATIENCE));
        }
        Ok(())
    }

    /// Returns the indices of the processes whose role satisfies `is`.
    pub(super) fn with(&self, is: impl Fn(Role) -> bool) -> Vec<usize> {
        (0..self.children.len())
            .filter(|&index| is(self.children[index].role))
            .collect()
    }

    /// Writes a command to these processes.
    pub(super) fn tell(&mut self, whom: &[usize], command: PartCommand) {
        for &index in whom {
            self.children[index].tell(command);
        }
    }

    /// Stops these processes: writes `stop`, waits at most for `patience`, and kills those that have not ended.
    pub(super) fn stop(&mut self, whom: &[usize], patience: Duration) {
        self.tell(whom, PartCommand::Stop);
        let until = Instant::now() + patience;
        while whom.iter().any(|&index| self.children[index].lives()) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.turn(left.min(TURN_PATIENCE));
        }
        for &index in whom {
            let how = format!(
                "it did not end within {} s of being told to, and was killed",
                patience.as_secs()
            );
            self.children[index].kill(&how);
        }
    }
}
