//! Replies, and what an attempt returns.

use std::ops::Range;

use deckwatch_cdr::{Divided, Parse, Reader};
use deckwatch_giop::{Ior, ReplyStatus};

use super::Client;
use crate::connection::inbound::Arrived;
use crate::counters::Counter;
use crate::exception_detail;
use crate::wire::{self, ReplyHead};
use crate::{Completion, SystemException, minor};
use crate::{raise, raise::own};

/// A whole reply in a lent buffer.
pub(crate) struct Reply {
    buffer: Vec<u8>,
    /// The message in it.
    place: Range<u32>,
    /// Where its fragments ended, in GIOP 1.1.
    ends: Option<Box<[u32]>>,
    pub(super) head: ReplyHead,
    /// A collocated servant wrote it: the buffer is one for writing.
    is_written_here: bool,
}

/// What one attempt returned.
pub(crate) enum Outcome {
    /// Results or a user exception.
    Replied(Reply),
    /// The object is elsewhere; the flag: for good.
    Forwarded(Ior, bool),
}

impl Reply {
    /// A reply that has arrived in one piece, at the start of its buffer.
    #[inline]
    pub(super) fn plain(buffer: Vec<u8>, count: usize, head: ReplyHead) -> Self {
        Self {
            buffer,
            // A buffer's length fits into 32 bits.
            place: 0..count as u32,
            ends: None,
            head,
            is_written_here: false,
        }
    }

    pub(super) fn read(arrived: Arrived, head: ReplyHead) -> Self {
        // The size of a message is a number of 32 bits.
        let index = |at| u32::try_from(at).unwrap_or(u32::MAX);
        Self {
            buffer: arrived.buffer,
            place: index(arrived.place.start)..index(arrived.place.end),
            ends: (!arrived.ends.is_empty()).then(|| arrived.ends.into_boxed_slice()),
            head,
            is_written_here: false,
        }
    }

    /// The reply to a collocated call.
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

    /// Whether it holds results or a user exception.
    pub(super) fn is_for_caller(&self) -> bool {
        matches!(
            self.status(),
            ReplyStatus::NoException | ReplyStatus::UserException
        )
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

    /// Returns the buffer to the client.
    pub(crate) fn give_back(self, client: &Client) {
        if self.is_written_here {
            client.slab.take_back_written(self.buffer);
        } else {
            client.slab.take_back(self.buffer);
        }
    }

    /// The addressing that a NEEDS_ADDRESSING_MODE reply asks for. Returns the buffer to the client.
    pub(super) fn into_wanted_addressing(self, client: &Client) -> Option<u16> {
        client.counters.count(Counter::Readdressings);
        let wanted = wire::read_disposition(self.body(&self.message()));
        self.give_back(client);
        wanted
    }

    /// What the reply means for its call.
    ///
    /// # Errors
    /// The server's system exception; INV_OBJREF for a forward to nil.
    #[inline]
    pub(crate) fn into_outcome(self, client: &Client) -> Result<Outcome, SystemException> {
        if self.status() == ReplyStatus::NoException {
            return Ok(Outcome::Replied(self));
        }
        std::hint::cold_path();
        self.into_other_outcome(client)
    }

    #[inline(never)]
    fn into_other_outcome(self, client: &Client) -> Result<Outcome, SystemException> {
        let message = self.message();
        let outcome = match self.status() {
            ReplyStatus::NoException | ReplyStatus::UserException => {
                return Ok(Outcome::Replied(self));
            }
            ReplyStatus::SystemException if self.head.is_unknown => {
                Err(raise::object_not_exist(minor::NONE, Completion::No))
            }
            ReplyStatus::SystemException => {
                let exception = wire::read_exception(self.body(&message));
                exception_detail::receive(exception, &message);
                Err(exception)
            }
            ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm => {
                client.counters.count(Counter::Forwards);
                let is_for_good = self.status() == ReplyStatus::LocationForwardPerm;
                match Ior::parse(&mut self.body(&message)) {
                    Ok(ior) if ior.is_nil() => {
                        Err(raise::inv_objref(own::FORWARD_TO_NIL, Completion::No))
                    }
                    Ok(ior) => Ok(Outcome::Forwarded(ior, is_for_good)),
                    Err(error) => Err(error.into()),
                }
            }
            // The exchange has sent the request again; no other status is known.
            _ => Err(raise::comm_failure(own::ADDRESSING_REFUSED, Completion::No)),
        };
        self.give_back(client);
        outcome
    }
}
