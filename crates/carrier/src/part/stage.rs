//! What a part speaks through: the lines in both directions, and what its threads tell the one that speaks.

use std::io::{BufRead, Read as _, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use deckwatch_meter::result::Warning;

use crate::limits::LINE_SIZE_MAX;
use crate::talk::{PartCommand, PartEvent};

/// What the speaking thread is told.
#[derive(Debug)]
pub(crate) enum Told {
    /// By the coordinator. Its end counts as `stop`.
    Command(PartCommand),
    /// A thread is ready to start; what it was refused.
    Prepared(Vec<Warning>),
    /// A thread has finished.
    Finished,
    /// Nothing for the time waited.
    Nothing,
}

/// Both directions of a part's talk.
pub(crate) struct Stage<W> {
    output: W,
    told: Receiver<Told>,
    tell: Sender<Told>,
}

impl<W: Write> Stage<W> {
    /// Listens to `input` from a thread of its own, which lives as long as there is input.
    pub(crate) fn new(input: impl BufRead + Send + 'static, output: W) -> Self {
        let (tell, told) = channel();
        let commands = tell.clone();
        std::thread::spawn(move || listen(input, &commands));
        Self { output, told, tell }
    }

    /// For threads that report to this one.
    pub(crate) fn teller(&self) -> Sender<Told> {
        self.tell.clone()
    }

    /// Says one line. A coordinator that does not hear it is gone, and its silence stops the part.
    pub(crate) fn say(&mut self, event: &PartEvent) {
        let said = serde_json::to_string(event)
            .map_err(std::io::Error::from)
            .and_then(|line| writeln!(self.output, "{line}"))
            .and_then(|()| self.output.flush());
        if said.is_err() {
            // The receiver lives in `self`, so this cannot fail.
            let _told = self.tell.send(Told::Command(PartCommand::Stop));
        }
    }

    /// Waits for what is told next.
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
            // What is not understood is not obeyed: it comes from a later version of the coordinator.
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
