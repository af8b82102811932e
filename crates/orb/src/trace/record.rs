//! Records of events: values without heap memory, so that recording does not allocate.

use std::fmt::{self, Write as _};
use std::time::Duration;

use deckwatch_cdr::Parse;
use deckwatch_giop::{Header, LocateStatus, Message, ProtocolError, ReplyStatus, Response};

use super::{CallNumber, Direction, Side};
use crate::SystemException;
use crate::transport::{Instant64, TransportError};

/// One event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) at: Instant64,
    /// The number of its connection; 0 if it has none.
    pub(super) connection: u32,
    /// The call of this ORB that it belongs to; 0 if it has none.
    pub(super) call: CallNumber,
    pub(super) fact: Fact,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Fact {
    Opened {
        side: Side,
        peer: Peer,
        waited: Duration,
    },
    NotOpened {
        peer: Peer,
        error: TransportError,
        waited: Duration,
    },
    Closed,
    Misread {
        fault: ProtocolError,
    },
    Message(MessageFact),
    AttemptFailed {
        exception: SystemException,
        is_within: bool,
    },
    Raised {
        exception: SystemException,
        operation: Name,
        key: Name,
    },
}

/// The length of an endpoint's text. Longer ones are rare paths of unix sockets.
pub(super) type Peer = Text<64>;

/// The length of an operation's name or an object key, enough to recognise it.
pub(super) type Name = Text<40>;

/// The recorded part of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageFact {
    pub(super) way: Direction,
    pub(super) header: Header,
    pub(super) body: Body,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Body {
    Request {
        id: u32,
        response: Response,
        operation: Name,
        key: Name,
    },
    Reply {
        id: u32,
        status: ReplyStatus,
        exception: Option<SystemException>,
        user: Name,
    },
    Locate {
        id: u32,
        key: Name,
    },
    Located {
        id: u32,
        status: LocateStatus,
    },
    Cancel {
        id: u32,
    },
    /// A record of the header only.
    Other,
}

impl MessageFact {
    pub(super) fn of(way: Direction, header: Header, octets: &[u8]) -> Self {
        Self {
            way,
            header,
            body: body_of(octets),
        }
    }
}

fn body_of(octets: &[u8]) -> Body {
    match Message::parse(octets) {
        Ok(Message::Request(request)) => Body::Request {
            id: request.id,
            response: request.response,
            operation: Text::of_octets(request.operation),
            key: Text::of_octets(request.target.object_key().unwrap_or_default()),
        },
        Ok(Message::Reply(reply)) => {
            let mut body = reply.body;
            let (exception, user) = match reply.status {
                ReplyStatus::SystemException => {
                    (SystemException::parse(&mut body).ok(), Text::default())
                }
                ReplyStatus::UserException => (
                    None,
                    Text::of_octets(body.read_string_octets().unwrap_or_default()),
                ),
                _ => (None, Text::default()),
            };
            Body::Reply {
                id: reply.id,
                status: reply.status,
                exception,
                user,
            }
        }
        Ok(Message::LocateRequest(request)) => Body::Locate {
            id: request.id,
            key: Text::of_octets(request.target.object_key().unwrap_or_default()),
        },
        Ok(Message::LocateReply(reply)) => Body::Located {
            id: reply.id,
            status: reply.status,
        },
        Ok(Message::CancelRequest { id }) => Body::Cancel { id },
        _ => Body::Other,
    }
}

/// The beginning of a text, without heap memory.
#[derive(Clone, Copy)]
pub(super) struct Text<const N: usize> {
    octets: [u8; N],
    len: u8,
    is_cut: bool,
}

impl<const N: usize> Text<N> {
    pub(super) fn of_octets(octets: &[u8]) -> Self {
        let mut text = Self::default();
        text.push(octets);
        text
    }

    pub(super) fn of(value: &dyn fmt::Display) -> Self {
        let mut text = Self::default();
        let _ = write!(text, "{value}"); // `Text` cuts off and never fails.
        text
    }

    fn push(&mut self, octets: &[u8]) {
        let begin = usize::from(self.len);
        let room = N.min(usize::from(u8::MAX)) - begin;
        let taken = &octets[..octets.len().min(room)];
        self.octets[begin..begin + taken.len()].copy_from_slice(taken);
        self.len += taken.len() as u8;
        self.is_cut |= taken.len() < octets.len();
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self {
            octets: [0; N],
            len: 0,
            is_cut: false,
        }
    }
}

impl<const N: usize> fmt::Write for Text<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

/// Shows octets that are not printable in escaped form, and `...` if the text was cut off.
impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let octets = &self.octets[..usize::from(self.len)];
        write!(
            f,
            "{}{}",
            octets.escape_ascii(),
            if self.is_cut { "..." } else { "" }
        )
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}
