//! The processes of a run.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use deckwatch_carrier::talk::PartCommand;

use super::child::{Child, Common, Role, Task, Told};
use super::clocks::Clocks;
use super::station::Station;
use super::{Interrupt, RunError};
use crate::limits::{FAR_SILENCE_MAX, LINES_WAITING_MAX, RETURN_PATIENCE, TURN_PATIENCE};

/// All processes of a run. They are killed when this is dropped.
pub(super) struct Crew {
    pub(super) children: Vec<Child>,
    /// What is known of the hosts' clocks.
    pub(super) clocks: Clocks,
    common: Common,
    told: Receiver<Told>,
    tell: SyncSender<Told>,
}

impl Crew {
    pub(super) fn new(common: Common) -> Self {
        let (tell, told) = sync_channel(LINES_WAITING_MAX);
        Self {
            children: Vec::new(),
            clocks: Clocks::default(),
            common,
            told,
            tell,
        }
    }

    /// Starts a process. Returns its index.
    pub(super) fn start(&mut self, task: Task, station: &Station) -> Result<usize, RunError> {
        let index = self.children.len();
        if station.is_far() {
            self.clocks.far.entry(task.host).or_default();
        }
        let tell = (index, self.tell.clone());
        let child = Child::start(&self.common, task, station, tell)?;
        self.children.push(child);
        Ok(index)
    }

    /// Waits for a line of any process and handles it. Returns the index of the process.
    pub(super) fn turn(&mut self, patience: Duration) -> Option<usize> {
        // Before the wait: where many parts talk, it may never time out.
        let given_up = self.give_up_silent();
        if given_up.is_some() {
            return given_up;
        }
        let (index, line) = match self.told.recv_timeout(patience) {
            Ok(told) => told,
            // `Disconnected` does not occur, because the crew keeps a sender.
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        };
        self.clocks.hear(self.children[index].host, &line);
        self.children[index].hear(line);
        Some(index)
    }

    /// Gives up a far part whose pipe carries nothing. Returns its index.
    fn give_up_silent(&mut self) -> Option<usize> {
        let is_silent = |child: &Child| child.lives() && child.is_silent();
        let index = self.children.iter().position(is_silent)?;
        let seconds = FAR_SILENCE_MAX.as_secs();
        let how = format!("the pipe to it carried nothing for {seconds} s");
        self.children[index].kill(&how);
        Some(index)
    }

    /// Waits until the clock of each far host is known.
    pub(super) fn relate_clocks(
        &mut self,
        patience: Duration,
        interrupt: &Interrupt,
    ) -> Result<(), RunError> {
        let until = Instant::now() + patience;
        loop {
            let mut clocks = self.clocks.far.iter();
            let unknown = clocks.find_map(|(&host, far)| (!far.is_known()).then_some(host));
            let Some(host) = unknown else { return Ok(()) };
            if let Some(signal) = interrupt.received() {
                return Err(RunError::Interrupted { signal });
            }
            let of_host = |child: &&Child| child.host == host && child.lives();
            let alive = self.children.iter().any(|child| of_host(&child));
            if !alive || Instant::now() >= until {
                let child = self.children.iter().find(|child| child.host == host);
                return Err(RunError::NotReady {
                    process: child.map_or(String::new(), |child| child.label.clone()),
                    how: "its host's clock could not be read".to_owned(),
                });
            }
            self.turn(TURN_PATIENCE);
        }
    }

    /// Writes the start of the schedule to these processes, to each on its own host's clock.
    pub(super) fn go(&mut self, whom: &[usize], start_ns: i64) {
        self.clocks.set_start(start_ns);
        for &index in whom {
            let child = &mut self.children[index];
            let far = self.clocks.far.get(&child.host);
            let start_ns = far.map_or(start_ns, |far| far.start_ns);
            child.tell(PartCommand::Go { start_ns });
        }
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
            if let Some(how) = child.not_ready(patience) {
                let process = child.label.clone();
                return Err(RunError::NotReady { process, how });
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
        let latest = Instant::now() + RETURN_PATIENCE;
        while whom.iter().any(|&index| self.children[index].lives()) {
            let left = until.saturating_duration_since(Instant::now());
            // A far part writes its files back meanwhile.
            let returns = |&index: &usize| {
                let child = &self.children[index];
                child.lives() && child.is_far() && !child.is_silent()
            };
            if left.is_zero() && (Instant::now() >= latest || !whom.iter().any(returns)) {
                break;
            }
            self.turn(left.clamp(Duration::from_millis(1), TURN_PATIENCE));
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
