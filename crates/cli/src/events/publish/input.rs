//! The events to be sent: from arguments, or from lines of standard input.

use std::io::{BufRead as _, Read as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use deckwatch_cdr::value::Value;
use deckwatch_cdr::{Any, TypeCode};
use deckwatch_event::rtec_event_comm::EventHeader;
use deckwatch_idl::notation::Notation;
use deckwatch_probe::events::Event;

use crate::events::sending::Input;
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
        let any_code = TypeCode::any();
        let code = self.code.as_ref().unwrap_or(&any_code);
        let value = self.notation.read(code, text).map_err(|error| {
            let expected = self.notation.type_text(code);
            anyhow!(
                "{place} ({expected}): {error}\n{}",
                error.excerpt(text).trim_end()
            )
        })?;
        let data = match (value, &self.code) {
            (Value::Any(data), None) => data,
            (value, _) => Any::from_dynamic(code, &value).with_context(|| place.to_owned())?,
        };
        Ok(Event {
            header: self.header,
            ..Event::of(data)
        })
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
