//! Sending: whole messages, and messages that are sent when the one before is answered.

use std::ops::Range;
use std::time::Duration;

use deckwatch_carrier::body::Body;
use deckwatch_carrier::sender::{SendError, Sender, Sent};
use deckwatch_os::{clock, socket};

use super::end::PATIENCE;

/// The sender and its message.
pub(super) struct Outgoing {
    pub(super) sender: Option<Box<dyn Sender>>,
    pub(super) body: Body,
}

impl Outgoing {
    /// Sends one message whole: what the kernel does not take at once is waited for.
    pub(super) fn send(&mut self, sequence: u64) -> Result<(), SendError> {
        let sender = self.sender.as_mut().ok_or(SendError::Disconnected)?;
        if sender.send(sequence, &self.body)? == Sent::Whole {
            return Ok(());
        }
        drain(&mut **sender)
    }

    /// Sends the first of these messages, or as many as one system call takes, whole. Returns how many.
    pub(super) fn send_many(&mut self, sequences: Range<u64>) -> Result<u64, SendError> {
        let sender = self.sender.as_mut().ok_or(SendError::Disconnected)?;
        let count = sender.send_many(sequences, &mut self.body)?;
        drain(&mut **sender)?;
        Ok(count)
    }

    /// Discards what the kernel reports of earlier messages, which would fill the socket's queue.
    pub(super) fn collect(&mut self) {
        if let Some(sender) = &mut self.sender {
            while sender.collect(&mut |_| {}) {}
        }
    }
}

/// Waits until the kernel has taken the rest of a message.
fn drain(sender: &mut dyn Sender) -> Result<(), SendError> {
    if sender.backlog().is_none() {
        return Ok(());
    }
    let until_ns = clock::monotonic_ns() + i64::try_from(PATIENCE.as_nanos()).unwrap_or(i64::MAX);
    while let Some(socket) = sender.backlog() {
        socket::wait_writable(std::iter::once(socket), until_ns);
        sender.flush();
        if clock::monotonic_ns() > until_ns {
            return Err(SendError::TimedOut);
        }
    }
    Ok(())
}

/// Transactions in progress: one message at a time is without its answer.
#[derive(Default)]
pub(super) struct PingPong {
    /// The message that has no answer yet.
    sequence: u64,
    /// Behind the last message.
    end: u64,
    /// When it was sent.
    pub(super) sent_ns: i64,
    /// Of the messages before: sent, and the answer received (0: never).
    times: Vec<(i64, i64)>,
    /// Messages without an answer, in succession.
    missing: u32,
    missing_max: u32,
    failed: Option<String>,
}

impl PingPong {
    pub(super) fn begin(first: u64, messages: u64, missing_max: u32) -> Self {
        Self {
            sequence: first,
            end: first + messages,
            times: Vec::with_capacity(usize::try_from(messages).unwrap_or_default()),
            missing_max,
            ..Self::default()
        }
    }

    /// Sends the next message. One that is refused counts as not answered.
    pub(super) fn send_next(&mut self, outgoing: &mut Outgoing) {
        while !self.is_over() {
            outgoing.body.set_sequence(self.sequence);
            self.sent_ns = clock::monotonic_ns();
            match outgoing.send(self.sequence).map(Some).or_else(refused) {
                Ok(Some(())) => return,
                Ok(None) => self.miss(),
                Err(text) => self.failed = Some(text),
            }
        }
    }

    /// Takes an answer. Returns false for one that comes too late.
    pub(super) fn take(&mut self, sequence: u64, received_ns: i64) -> bool {
        let is_awaited = sequence == self.sequence && !self.is_over();
        if is_awaited {
            self.times.push((self.sent_ns, received_ns));
            self.sequence += 1;
            self.missing = 0;
        }
        is_awaited
    }

    /// The answer does not come.
    pub(super) fn miss(&mut self) {
        self.times.push((self.sent_ns, 0));
        self.sequence += 1;
        self.missing += 1;
    }

    /// Whether no message is to be sent.
    pub(super) fn is_over(&self) -> bool {
        let is_done = self.sequence == self.end;
        is_done || self.failed.is_some() || self.missing >= self.missing_max
    }

    pub(super) fn result(self, patience: Duration) -> Result<Vec<(i64, i64)>, String> {
        if self.missing >= self.missing_max {
            return Err(unanswered(self.missing, patience));
        }
        self.failed.map_or(Ok(self.times), Err)
    }
}

/// Returns no answer for a message that was refused. A lost connection ends the flow.
pub(super) fn refused<T>(error: SendError) -> Result<Option<T>, String> {
    match error {
        SendError::Disconnected => Err(error.to_string()),
        _ => Ok(None),
    }
}

pub(super) fn unanswered(missing: u32, patience: Duration) -> String {
    format!("{missing} messages in succession had no answer within {patience:?} each")
}
