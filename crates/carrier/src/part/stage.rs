//! A part's standard input and output, and the queue through which its threads report to the thread that writes.

use std::io::{BufRead, Read as _, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use deckwatch_meter::result::Warning;

use super::program::ProgramSaid;
use crate::limits::LINE_SIZE_MAX;
use crate::talk::{PartCommand, PartEvent};

/// An entry of the writing thread's queue.
#[derive(Debug)]
pub(crate) enum Told {
    /// A command from the coordinator. The end of the input counts as `stop`.
    Command(PartCommand),
    /// A thread is ready to start. The warnings list the scheduling that the kernel refused for it.
    Prepared(Vec<Warning>),
    /// A thread has finished.
    Finished,
    /// The program of an external carrier wrote a line, or ended.
    Program(ProgramSaid),
    /// The timeout expired with no entry in the queue.
    Nothing,
}

/// The input and output lines of a part.
pub(crate) struct Stage<W> {
    output: W,
    told: Receiver<Told>,
    tell: Sender<Told>,
}

impl<W: Write> Stage<W> {
    /// Starts a thread that reads `input` until the input ends.
    pub(crate) fn new(input: impl BufRead + Send + 'static, output: W) -> Self {
        let (tell, told) = channel();
        let commands = tell.clone();
        std::thread::spawn(move || listen(input, &commands));
        Self { output, told, tell }
    }

    /// Returns the sender of the queue, for threads that report to this one.
    pub(crate) fn teller(&self) -> Sender<Told> {
        self.tell.clone()
    }

    /// Writes one event as a line. A failure means that the coordinator is gone; then the part stops.
    pub(crate) fn say(&mut self, event: &PartEvent) {
        let said = serde_json::to_string(event)
            .map_err(std::io::Error::from)
            .and_then(|line| writeln!(self.output, "{line}"))
            .and_then(|()| self.output.flush());
        if said.is_err() {
            // Cannot fail: `self` owns the receiver.
            let _ = self.tell.send(Told::Command(PartCommand::Stop));
        }
    }

    /// Returns the next entry of the queue, or `Nothing` if none arrives within `patience`.
    pub(crate) fn hear(&self, patience: Duration) -> Told {
        match self.told.recv_timeout(patience) {
            Ok(told) => told,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Told::Nothing,
        }
    }
}

fn listen(mut input: impl BufRead, tell: &Sender<Told>) {
    let mut line = String::new();
    loop {
        line.clear();
        let command = match (&mut input).take(LINE_SIZE_MAX as u64).read_line(&mut line) {
            Ok(0) | Err(_) => PartCommand::Stop,
            // An unknown command is ignored: a later version of the coordinator may send it.
            Ok(_) => match line.parse() {
                Ok(command) => command,
                Err(_) => continue,
            },
        };
        if tell.send(Told::Command(command)).is_err() || command == PartCommand::Stop {
            return;
        }
    }
}
