//! Turns records into text: one line for each message, one paragraph for each system exception of this ORB.

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::time::Duration;

use deckwatch_giop::{LocateStatus, MessageKind, ReplyStatus, Response};

use super::record::{Body, Fact, MessageFact, Name, Peer, Record, Text};
use super::{CallNumber, Direction, NO_CONNECTION, Side};
use crate::SystemException;
use crate::limits::TRACE_OPEN_MAX;
use crate::transport::Instant64;

/// The state of earlier records that the text of later ones needs.
pub(super) struct Narrator {
    begun: Instant64,
    peers: HashMap<u32, Peer>,
    /// Requests without a reply yet, by connection and number.
    waiting: HashMap<(u32, u32), Waiting>,
    /// The failed attempts of each call, as text.
    trials: HashMap<CallNumber, Vec<String>>,
    /// The exceptions in replies to calls of this ORB.
    answers: HashMap<CallNumber, SystemException>,
}

#[derive(Clone, Copy)]
struct Waiting {
    since: Instant64,
    operation: Name,
    call: CallNumber,
}

impl Narrator {
    pub(super) fn new(begun: Instant64) -> Self {
        Self {
            begun,
            peers: HashMap::new(),
            waiting: HashMap::new(),
            trials: HashMap::new(),
            answers: HashMap::new(),
        }
    }

    /// Returns the text of a record: whole lines, or an empty string.
    pub(super) fn tell(&mut self, record: &Record) -> String {
        self.bound();
        let mut out = String::new();
        let written = self.write(&mut out, record);
        debug_assert!(written.is_ok(), "a string takes what is written");
        out
    }

    fn write(&mut self, out: &mut String, record: &Record) -> fmt::Result {
        let number = record.connection;
        let time = record.at.since(self.begun).as_secs_f64();
        if !matches!(record.fact, Fact::AttemptFailed { .. }) {
            write!(out, "{time:.6} ")?;
        }
        match record.fact {
            Fact::Opened { side, peer, waited } => {
                self.peers.insert(number, peer);
                match side {
                    Side::Client => {
                        writeln!(out, "#{number} connected to {peer} in {}", Span(waited))
                    }
                    Side::Server => writeln!(out, "#{number} accepted from {peer}"),
                }
            }
            Fact::NotOpened {
                peer,
                error,
                waited,
            } => {
                let trial = format!("tried {peer} for {}. {error}", Span(waited));
                writeln!(out, "{trial}")?;
                self.note(record.call, trial);
                Ok(())
            }
            Fact::Closed => {
                self.waiting.retain(|(of, _), _| *of != number);
                let peer = self.peers.remove(&number).unwrap_or_default();
                writeln!(out, "#{number} closed ({peer})")
            }
            Fact::Misread { fault } => {
                let peer = self.peer(number);
                writeln!(
                    out,
                    "#{number} what came from {peer} cannot be read: {fault}"
                )
            }
            Fact::Message(message) => self.tell_message(out, record, &message),
            Fact::AttemptFailed {
                exception,
                is_within,
            } => {
                let peer = self.peer(number);
                let fact = exception.explain().fact;
                let within = if is_within {
                    " (its reply had begun to arrive)"
                } else {
                    ""
                };
                let trial = format!("asked {peer} over #{number}: {fact}{within}.");
                self.note(record.call, trial);
                Ok(())
            }
            Fact::Raised {
                exception,
                operation,
                key,
            } => {
                let trials = self.trials.remove(&record.call).unwrap_or_default();
                if self.answers.remove(&record.call) == Some(exception) {
                    // The server has raised the exception: the line of its reply already shows it.
                    out.clear();
                    return Ok(());
                }
                tell_exception(out, exception, operation, key, &trials)
            }
        }
    }

    fn peer(&self, connection: u32) -> Peer {
        if connection == NO_CONNECTION {
            return Text::of_octets(b"this ORB");
        }
        self.peers.get(&connection).copied().unwrap_or_default()
    }

    fn note(&mut self, call: CallNumber, trial: String) {
        self.trials.entry(call).or_default().push(trial);
    }

    /// Drops the state at its limit: calls and requests that never end must not accumulate.
    fn bound(&mut self) {
        let sizes = [
            self.peers.len(),
            self.waiting.len(),
            self.trials.len(),
            self.answers.len(),
        ];
        if sizes.into_iter().any(|size| size > TRACE_OPEN_MAX) {
            *self = Self::new(self.begun);
        }
    }

    fn tell_message(
        &mut self,
        out: &mut String,
        record: &Record,
        message: &MessageFact,
    ) -> fmt::Result {
        let arrow = match message.way {
            Direction::In => "<-",
            Direction::Out => "->",
        };
        let number = record.connection;
        let peer = self.peer(number);
        let header = &message.header;
        write!(out, "#{number} {arrow} {peer} GIOP {} ", header.version)?;
        match message.body {
            Body::Request {
                id,
                response,
                operation,
                key,
            } => {
                let wants = match response {
                    Response::Nothing => "no reply",
                    Response::Receipt => "a receipt",
                    Response::Outcome => "a reply",
                };
                if response.is_expected() {
                    self.expect(record, id, operation);
                }
                write!(
                    out,
                    "Request {id} \"{operation}\" of \"{key}\", wants {wants}"
                )?;
            }
            Body::Reply {
                id,
                status,
                exception,
                user,
            } => self.tell_reply(out, record, (id, status), (exception, user))?,
            Body::Locate { id, key } => {
                self.expect(record, id, Text::of_octets(b"LocateRequest"));
                write!(out, "LocateRequest {id} for \"{key}\"")?;
            }
            Body::Located { id, status } => {
                write!(out, "LocateReply {id}: {}", located(status))?;
                let asked = self.waiting.remove(&(number, id));
                tell_latency(out, record, asked)?;
            }
            Body::Cancel { id } => write!(out, "CancelRequest {id}")?,
            Body::Other => write!(out, "{:?}", header.kind)?,
        }
        let more = match header.kind {
            MessageKind::CloseConnection => "; what has not been answered has not been served",
            MessageKind::MessageError => "; the last message could not be read",
            _ if header.more_fragments => "; more follows",
            _ => "",
        };
        writeln!(out, ", {} octets{more}", header.message_size())
    }

    fn expect(&mut self, record: &Record, id: u32, operation: Name) {
        let waiting = Waiting {
            since: record.at,
            operation,
            call: record.call,
        };
        self.waiting.insert((record.connection, id), waiting);
    }

    fn tell_reply(
        &mut self,
        out: &mut String,
        record: &Record,
        (id, status): (u32, ReplyStatus),
        (exception, user): (Option<SystemException>, Name),
    ) -> fmt::Result {
        let asked = self.waiting.remove(&(record.connection, id));
        match asked {
            Some(Waiting { operation, .. }) => write!(out, "Reply {id} to \"{operation}\": ")?,
            None => write!(out, "Reply {id} to nobody who waits: ")?,
        }
        match (status, exception) {
            (ReplyStatus::NoException, _) => write!(out, "results")?,
            (ReplyStatus::UserException, _) => write!(out, "user exception {user}")?,
            (ReplyStatus::SystemException, Some(exception)) => write!(out, "{exception}")?,
            (ReplyStatus::SystemException, None) => {
                write!(out, "a system exception that cannot be read")?;
            }
            (ReplyStatus::LocationForward, _) => write!(out, "ask elsewhere")?,
            (ReplyStatus::LocationForwardPerm, _) => write!(out, "ask elsewhere from now on")?,
            (ReplyStatus::NeedsAddressingMode, _) => write!(out, "ask with another addressing")?,
        }
        let call = asked.map_or(CallNumber::default(), |asked| asked.call);
        if call != CallNumber::default() {
            if let Some(exception) = exception {
                self.answers.insert(call, exception);
            }
            if matches!(
                status,
                ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm
            ) {
                let (number, peer) = (record.connection, self.peer(record.connection));
                let trial = format!("asked {peer} over #{number}: it said to ask elsewhere.");
                self.note(call, trial);
            }
        }
        tell_latency(out, record, asked)
    }
}

fn tell_latency(out: &mut String, record: &Record, asked: Option<Waiting>) -> fmt::Result {
    asked.map_or(Ok(()), |asked| {
        write!(out, ", after {}", Span(record.at.since(asked.since)))
    })
}

fn tell_exception(
    out: &mut String,
    exception: SystemException,
    operation: Name,
    key: Name,
    trials: &[String],
) -> fmt::Result {
    let explanation = exception.explain();
    let (kind, completed) = (exception.kind.name(), exception.completed);
    let fact = explanation.fact;
    writeln!(
        out,
        "{kind} raised by this ORB for \"{operation}\" of \"{key}\", {completed}: {fact}."
    )?;
    for trial in trials {
        writeln!(out, "    {trial}")?;
    }
    if explanation.remedy.is_empty() {
        return Ok(());
    }
    writeln!(out, "    What to do: {}.", explanation.remedy)
}

const fn located(status: LocateStatus) -> &'static str {
    match status {
        LocateStatus::UnknownObject => "the object is not known there",
        LocateStatus::ObjectHere => "the object is there",
        LocateStatus::ObjectForward | LocateStatus::ObjectForwardPerm => "the object is elsewhere",
        LocateStatus::SystemException => "a system exception",
        LocateStatus::NeedsAddressingMode => "ask with another addressing",
    }
}

/// A span of time in a readable unit.
struct Span(Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.as_nanos();
        match ns {
            0..=999 => write!(f, "{ns} ns"),
            1_000..=999_999 => write!(f, "{} us", ns / 1_000),
            1_000_000..=9_999_999_999 => write!(f, "{:.1} ms", self.0.as_secs_f64() * 1e3),
            _ => write!(f, "{:.1} s", self.0.as_secs_f64()),
        }
    }
}
