//! What is asked of a server, whatever way it takes, and what can come of it.

use std::cell::RefCell;
use std::ops::Range;

use deckwatch_cdr::{Divided, Reader};
use deckwatch_giop::invocation::Times;
use deckwatch_giop::{Ior, ReplyStatus, Response};

use super::{Client, Deadlines};
use crate::SystemException;
use crate::connection::Arrived;
use crate::interceptor::{ClientFlow, ExtraContext};
use crate::policy::Overrides;
use crate::reference::Target;
use crate::rt::Priority;
use crate::trace::CallNumber;
use crate::wire::{Arguments, ReplyHead};

/// What is asked, of whomever.
#[derive(Clone, Copy)]
pub(crate) struct Call<'c> {
    pub(crate) operation: &'c str,
    pub(crate) arguments: &'c dyn Arguments,
    /// What is waited for.
    pub(crate) response: Response,
    pub(crate) kind: CallKind,
    /// The policies in force.
    pub(crate) policies: &'c Overrides,
    /// The times that go out with it.
    pub(crate) times: Option<&'c Times>,
    /// The CORBA priority of the caller, if he has one.
    pub(crate) priority: Option<Priority>,
    /// Its number in the trace.
    pub(crate) number: CallNumber,
    /// Service contexts that interceptors have added.
    pub(crate) contexts: &'c [ExtraContext],
    /// Its way through the interceptors, where there are any.
    pub(crate) flow: Option<&'c RefCell<ClientFlow>>,
    /// They have seen it, or need not.
    pub(crate) is_intercepted: bool,
}

/// A call on its way to one target.
#[derive(Clone, Copy)]
pub(super) struct Attempt<'e> {
    pub(super) target: &'e Target,
    pub(super) call: &'e Call<'e>,
    /// A closed connection may be replaced.
    pub(super) may_reconnect: bool,
    pub(super) deadlines: Deadlines,
}

/// How a call goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
    TwoWay,
    /// It keeps its place among the one-ways to its server.
    Oneway,
    /// Only asks where the object is.
    Locate,
    /// Tells the server which priorities come over the connection.
    BindBand,
}

/// A reply that the caller must read: results or a user exception, in a lent buffer.
pub(crate) struct Reply {
    buffer: Vec<u8>,
    /// The message in it.
    place: Range<u32>,
    /// Where its fragments ended, in GIOP 1.1.
    ends: Option<Box<[u32]>>,
    pub(super) head: ReplyHead,
    /// It was not read but written, in a buffer for that.
    is_written_here: bool,
}

impl Reply {
    /// One that has arrived in one piece, at the start of its buffer.
    #[inline]
    pub(super) fn plain(buffer: Vec<u8>, count: usize, head: ReplyHead) -> Self {
        Self {
            buffer,
            // No buffer is so long that its count has no 32 bits.
            place: 0..count as u32,
            ends: None,
            head,
            is_written_here: false,
        }
    }

    pub(super) fn read(arrived: Arrived, head: ReplyHead) -> Self {
        // No message has more octets than 32 bits count.
        let index = |at| u32::try_from(at).unwrap_or(u32::MAX);
        Self {
            buffer: arrived.buffer,
            place: index(arrived.place.start)..index(arrived.place.end),
            ends: (!arrived.ends.is_empty()).then(|| arrived.ends.into_boxed_slice()),
            head,
            is_written_here: false,
        }
    }

    /// The reply to a call that this process has served itself.
    pub(super) fn written_here(answer: Vec<u8>, head: ReplyHead) -> Self {
        Self {
            is_written_here: true,
            ..Self::read(Arrived::whole(answer), head)
        }
    }

    #[inline]
    pub(crate) fn status(&self) -> ReplyStatus {
        self.head.status
    }

    /// The message, for [`Reply::body`].
    #[inline]
    pub(crate) fn message(&self) -> Divided<'_> {
        let octets = self.place.start as usize..self.place.end as usize;
        let ends = self.ends.as_deref().unwrap_or_default();
        Divided::new(&self.buffer[octets], ends)
    }

    #[inline]
    pub(crate) fn body<'m>(&self, message: &'m Divided<'m>) -> Reader<'m> {
        self.head.body(message)
    }

    pub(crate) fn give_back(self, client: &Client) {
        if self.is_written_here {
            client.slab.take_back_written(self.buffer);
        } else {
            client.slab.take_back(self.buffer);
        }
    }
}

/// What became of one attempt at one server.
pub(crate) enum Outcome {
    Replied(Reply),
    /// Whether for good.
    Forwarded(Ior, bool),
}

/// Why an attempt failed, and whether another may be made.
pub(super) struct Failure {
    pub(super) exception: SystemException,
    /// The server has certainly not served the request, and an other connection or address may do.
    pub(super) may_retry: bool,
    /// The connection is as good as before: only a reply may come that nobody waits for.
    pub(super) keeps_connection: bool,
}

impl Failure {
    pub(super) fn last(exception: SystemException) -> Self {
        Self {
            exception,
            may_retry: false,
            keeps_connection: false,
        }
    }

    /// Nothing of the request has been written, and no other way would do.
    pub(super) const fn unsent(exception: SystemException) -> Self {
        Self {
            exception,
            may_retry: false,
            keeps_connection: true,
        }
    }

    /// Another connection or address may do.
    pub(super) const fn of_the_way(exception: SystemException) -> Self {
        Self {
            exception,
            may_retry: true,
            keeps_connection: false,
        }
    }
}
