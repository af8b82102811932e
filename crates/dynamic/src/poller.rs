//! Replies that the caller asks for (CORBA 3.3 part 1, clauses 17.8 and 17.9).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use deckwatch_cdr::{DecodeError, EncodeError, Reader, Writer};
use deckwatch_orb::{Completion, Deliver, ObjectRef, PendingReply, SystemException, minor};

use crate::pollable_set::PollableSet;
use crate::raise;

/// A call whose caller fetches the reply; generated pollers contain one. A handle that is cheap to clone.
///
/// The request is cancelled when the last handle is dropped without the reply, unless a handler is set.
#[derive(Clone)]
pub struct Poller(Arc<Inner>);

struct Inner {
    reply: PendingReply,
    /// Where the last system exception came from.
    source: AtomicU8,
}

/// Nothing has been raised or returned yet.
const NOWHERE: u8 = 0;
const CALL: u8 = 1;
const POLLER: u8 = 2;

/// A timeout that never passes.
const FOREVER: u32 = u32::MAX;

impl Poller {
    /// Calls an operation and returns once the request has been sent. Generated `sendp_` operations use it.
    ///
    /// # Errors
    /// As [`ObjectRef::send_deferred`].
    pub fn send(
        target: &ObjectRef,
        operation: &str,
        arguments: impl Fn(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<Self, SystemException> {
        let reply = target.send_deferred(operation, arguments)?;
        let source = AtomicU8::new(NOWHERE);
        Ok(Self(Arc::new(Inner { reply, source })))
    }

    /// The object that was called.
    #[must_use]
    pub fn operation_target(&self) -> &ObjectRef {
        self.0.reply.target()
    }

    /// The operation that was called, as it travels: an attribute `a` is `_get_a` or `_set_a`.
    #[must_use]
    pub fn operation_name(&self) -> &str {
        self.0.reply.operation()
    }

    /// Whether the last system exception is the poller's own (no reply yet), not the one that the call ended in.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 22 before the first [`Poller::poll`].
    pub fn is_from_poller(&self) -> Result<bool, SystemException> {
        match self.0.source.load(Ordering::Acquire) {
            NOWHERE => Err(raise::bad_inv_order(
                minor::POLLER_NOT_ASKED,
                Completion::No,
            )),
            source => Ok(source == POLLER),
        }
    }

    /// Whether the reply is here. Waits for it at most `timeout_ms` milliseconds; `u32::MAX` waits for ever.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST with the standard's minor code 5 after the reply was taken; TRANSIENT where the poller would
    /// wait and the calling thread is the last that could read the reply.
    pub fn is_ready(&self, timeout_ms: u32) -> Result<bool, SystemException> {
        if self.0.reply.is_taken() {
            return Err(delivered());
        }
        self.0.reply.wait(limit(timeout_ms))
    }

    /// A set with this poller in it.
    #[must_use]
    pub fn create_pollable_set(&self) -> PollableSet {
        PollableSet::with(self)
    }

    /// Takes the reply, once: results and exceptions are read as for a call that waits.
    ///
    /// # Errors
    /// The exception that the call has ended in; and of the poller itself
    /// * NO_RESPONSE (minor code 1): there is no reply now, and the timeout is 0;
    /// * TIMEOUT (1): none came in time;
    /// * OBJECT_NOT_EXIST (5): the reply was taken before;
    /// * BAD_OPERATION: the call was of another operation;
    /// * BAD_INV_ORDER: a handler is set;
    /// * TRANSIENT: as by [`Poller::is_ready`].
    pub fn poll<T, E: From<SystemException>>(
        &self,
        operation: &str,
        timeout_ms: u32,
        results: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
        exceptions: impl FnOnce(&str, &mut Reader<'_>) -> Result<Option<E>, DecodeError>,
    ) -> Result<T, E> {
        let outcome = self.await_reply(operation, timeout_ms).and_then(|()| {
            // Before the reply is read: what its reader raises is the call's.
            self.0.source.store(CALL, Ordering::Release);
            let reply = self.0.reply.take(results, exceptions);
            reply.ok_or_else(delivered)
        });
        outcome.inspect_err(|_| self.0.source.store(POLLER, Ordering::Release))?
    }

    fn await_reply(&self, operation: &str, timeout_ms: u32) -> Result<(), SystemException> {
        let reply = &self.0.reply;
        if operation != self.operation_name() {
            return Err(raise::bad_operation(0, Completion::No));
        }
        if reply.is_taken() {
            return Err(delivered());
        }
        if reply.has_handler() {
            return Err(raise::bad_inv_order(0, Completion::No));
        }
        if reply.wait(limit(timeout_ms))? {
            Ok(())
        } else {
            Err(not_in_time(timeout_ms))
        }
    }

    /// Passes the reply to a handler when it comes, or has come, as if the call had been made with it; `None` leaves it
    /// to [`Poller::poll`].
    pub fn set_handler(&self, deliver: Option<Deliver>) {
        self.0.reply.set_handler(deliver);
    }

    pub(crate) fn reply(&self) -> &PendingReply {
        &self.0.reply
    }
}

/// Equal where both are handles of one call.
impl PartialEq for Poller {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Poller {}

impl fmt::Debug for Poller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poller")
            .field("operation", &self.operation_name())
            .finish_non_exhaustive()
    }
}

/// The timeout as a limit; `None` waits for ever.
pub(crate) fn limit(timeout_ms: u32) -> Option<Duration> {
    (timeout_ms != FOREVER).then(|| Duration::from_millis(timeout_ms.into()))
}

fn delivered() -> SystemException {
    raise::object_not_exist(minor::REPLY_DELIVERED, Completion::No)
}

pub(crate) fn not_in_time(timeout_ms: u32) -> SystemException {
    match timeout_ms {
        0 => raise::no_response(minor::NO_REPLY_YET, Completion::No),
        _ => raise::timeout(minor::NO_REPLY_IN_TIME, Completion::No),
    }
}
