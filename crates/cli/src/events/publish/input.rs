//! The events to be sent: from arguments, or from lines of standard input.

use std::io::{BufRead as _, Read as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use deckwatch_cdr::typecode::Kind;
use deckwatch_cdr::value::Value;
use deckwatch_cdr::{Any, TypeCode};
use deckwatch_event::rtec_event_comm::EventHeader;
use deckwatch_idl::notation::Notation;
use deckwatch_probe::events::Event;
use serde_json::Map;

use crate::events::sending::Input;
use crate::events::types::read_type;
use crate::events::watching::STEP;

/// The events, in order.
pub(super) struct Values<'n> {
    form: Form<'n>,
    origin: Origin,
}

/// How the text of an event is read.
struct Form<'n> {
    notation: &'n Notation<'n>,
    /// `None` if each value has its own type.
    code: Option<TypeCode>,
    /// The header of every event; `None` for a COS channel.
    header: Option<EventHeader>,
}

enum Origin {
    Arguments {
        events: Vec<Event>,
        next: usize,
        is_repeated: bool,
    },
    Lines {
        lines: Receiver<std::io::Result<Vec<u8>>>,
        number: u64,
    },
}

impl<'n> Values<'n> {
    /// Reads all arguments, or begins to read standard input if there are none.
    pub(super) fn new(
        notation: &'n Notation<'n>,
        (code, header): (Option<TypeCode>, Option<EventHeader>),
        texts: &[&str],
        is_repeated: bool,
    ) -> anyhow::Result<Self> {
        let form = Form {
            notation,
            code,
            header,
        };
        let origin = if texts.is_empty() {
            Origin::Lines {
                lines: stdin_lines(),
                number: 0,
            }
        } else {
            let events = (1..)
                .zip(texts)
                .map(|(number, text)| form.event(text, &format!("value {number}")));
            Origin::Arguments {
                events: events.collect::<anyhow::Result<_>>()?,
                next: 0,
                is_repeated,
            }
        };
        Ok(Self { form, origin })
    }

    /// Returns the next event, which is due then.
    pub(super) fn next(&mut self, due: Option<Duration>) -> anyhow::Result<Input> {
        match &mut self.origin {
            Origin::Arguments {
                events,
                next,
                is_repeated,
            } => {
                if *is_repeated && *next == events.len() {
                    *next = 0;
                }
                let event = events.get(*next).cloned();
                *next += 1;
                Ok(event.map_or(Input::End, |event| Input::Event(event, due)))
            }
            Origin::Lines { lines, number } => match lines.recv_timeout(STEP) {
                Ok(line) => {
                    *number += 1;
                    let place = format!("standard input, line {number}");
                    let line = line.context("cannot read standard input")?;
                    let event = self.form.line(&line, &place)?;
                    Ok(event.map_or(Input::Nothing, |event| Input::Event(event, due)))
                }
                Err(RecvTimeoutError::Timeout) => Ok(Input::Nothing),
                Err(RecvTimeoutError::Disconnected) => Ok(Input::End),
            },
        }
    }
}

impl Form<'_> {
    /// Reads a line; `None` for a blank one.
    fn line(&self, line: &[u8], place: &str) -> anyhow::Result<Option<Event>> {
        if line.len() as u64 > LINE_SIZE_MAX {
            bail!("{place}: it has more than {LINE_SIZE_MAX} octets");
        }
        let text = std::str::from_utf8(line)
            .with_context(|| place.to_owned())?
            .trim();
        if text.is_empty() {
            return Ok(None);
        }
        self.event(text, place).map(Some)
    }

    /// Reads one event. The error has the place of the fault.
    fn event(&self, text: &str, place: &str) -> anyhow::Result<Event> {
        if let Some(line) = EchoLine::of(text) {
            return self.echoed(&line).with_context(|| place.to_owned());
        }
        let any_code = TypeCode::any();
        let code = self.code.as_ref().unwrap_or(&any_code);
        let value = self.read(code, text, place)?;
        let data = match (value, &self.code) {
            (Value::Any(data), None) => data,
            (value, _) => Any::from_dynamic(code, &value).with_context(|| place.to_owned())?,
        };
        Ok(Event {
            header: self.header,
            ..Event::of(data)
        })
    }

    fn read(&self, code: &TypeCode, text: &str, place: &str) -> anyhow::Result<Value> {
        self.notation.read(code, text).map_err(|error| {
            let expected = self.notation.type_text(code);
            anyhow!(
                "{place} ({expected}): {error}\n{}",
                error.excerpt(text).trim_end()
            )
        })
    }

    /// Returns the event that a line of `echo --json` describes, with its own header and payload.
    fn echoed(&self, line: &EchoLine) -> anyhow::Result<Event> {
        let model = self.notation.model();
        let data = match (&self.code, line.text("type"), line.text("idl")) {
            _ if line.text("value_of") == Some("payload") => Any::empty(),
            (Some(code), ..) => line.data(self, code)?,
            (None, Some(id), _) if model.lookup_id(id).is_some() => {
                line.data(self, &read_type(model, id)?)?
            }
            (None, _, Some(text)) | (None, Some(text), None) => {
                line.data(self, &read_type(model, text)?)?
            }
            (None, None, None) => bail!("a line of `echo --json` has a `type`"),
        };
        let payload = match line.0.get("payload") {
            Some(payload) => {
                let octets = TypeCode::sequence(&TypeCode::octet(), 0);
                match self.read(&octets, &payload.to_string(), "payload")? {
                    Value::Octets(octets) => octets,
                    _ => Vec::new(),
                }
            }
            None => Vec::new(),
        };
        Ok(Event {
            header: line.header()?.or(self.header),
            payload,
            data,
        })
    }
}

/// A line of `echo --json`.
struct EchoLine(Map<String, serde_json::Value>);

impl EchoLine {
    /// Returns `None` for another text.
    fn of(text: &str) -> Option<Self> {
        let line: Map<String, serde_json::Value> = serde_json::from_str(text).ok()?;
        let marks = ["number", "received", "received_monotonic_ns"];
        marks
            .iter()
            .all(|mark| line.contains_key(*mark))
            .then_some(Self(line))
    }

    fn text(&self, member: &str) -> Option<&str> {
        self.0.get(member)?.as_str()
    }

    /// Reads the value as one of this type.
    fn data(&self, form: &Form<'_>, code: &TypeCode) -> anyhow::Result<Any> {
        if code.kind() == Kind::Null {
            return Ok(Any::empty());
        }
        let Some(value) = self.0.get("value") else {
            let why = self.text("unprinted").unwrap_or("it has no `value`");
            bail!("`echo` has not printed the event: {why}");
        };
        let value = form.read(code, &value.to_string(), "value")?;
        Any::from_dynamic(code, &value).context("value")
    }

    fn header(&self) -> anyhow::Result<Option<EventHeader>> {
        let Some(header) = self.0.get("header") else {
            return Ok(None);
        };
        let number = |member: &str| {
            let number = header.get(member).and_then(serde_json::Value::as_i64);
            let number = number.and_then(|number| i32::try_from(number).ok());
            number.with_context(|| format!("`{member}` of the header is no number of 32 bits"))
        };
        let stamp = header.get("creation_time");
        Ok(Some(EventHeader {
            r#type: number("type")?,
            source: number("source")?,
            ttl: number("ttl")?,
            creation_time: stamp.and_then(serde_json::Value::as_u64).unwrap_or(0),
            ..EventHeader::default()
        }))
    }
}

/// Reads standard input in a thread of its own: a read from a terminal does not end at a signal. The thread ends with
/// the process.
fn stdin_lines() -> Receiver<std::io::Result<Vec<u8>>> {
    let (sender, lines) = sync_channel(LINES_QUEUED_MAX);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let read = (&mut input)
                .take(LINE_SIZE_MAX + 1)
                .read_until(b'\n', &mut line);
            let is_end = matches!(read, Ok(0));
            let failed = read.is_err();
            if is_end || sender.send(read.map(|_| line)).is_err() || failed {
                return;
            }
        }
    });
    lines
}

/// Octets of one line: more than the text of the largest message that an ORB accepts by default.
const LINE_SIZE_MAX: u64 = 64 << 20;

/// Lines read ahead of the sending.
const LINES_QUEUED_MAX: usize = 16;
