//! Replies that the caller asks for (CORBA 3.3 part 1, clauses 17.8 and 17.9).

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deckwatch_cdr::{DecodeError, Reader};

use super::pollable::PollableSet;
use super::{Deliver, handler};
use crate::client::{End, Outstanding};
use crate::orb::OrbCore;
use crate::reference::understand;
use crate::transport::Instant64;
use crate::{Completion, ObjectRef, SystemException, minor, raise};

/// A call whose reply its caller fetches. What generated pollers stand on; a handle that is cheap to clone.
#[derive(Clone)]
pub struct Poller(Arc<Inner>);

struct Inner {
    target: ObjectRef,
    operation: String,
    call: Arc<Outstanding>,
    /// Where the last system exception came from.
    source: AtomicU8,
}

/// Nothing has been raised or given yet.
const NOWHERE: u8 = 0;
const CALL: u8 = 1;
const POLLER: u8 = 2;

/// A timeout that never passes.
const FOREVER: u32 = u32::MAX;

impl Poller {
    pub(super) fn new(target: ObjectRef, operation: &str, call: Arc<Outstanding>) -> Self {
        Self(Arc::new(Inner {
            target,
            operation: operation.to_owned(),
            call,
            source: AtomicU8::new(NOWHERE),
        }))
    }

    /// The object that was called.
    #[must_use]
    pub fn operation_target(&self) -> &ObjectRef {
        &self.0.target
    }

    /// The operation that was called, as it travels: an attribute `a` is `_get_a` or `_set_a`.
    #[must_use]
    pub fn operation_name(&self) -> &str {
        &self.0.operation
    }

    /// Whether the system exception that was raised last is the poller's own (no reply yet) and not what the call has ended in.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 22 before anything was asked.
    pub fn is_from_poller(&self) -> Result<bool, SystemException> {
        match self.0.source.load(Ordering::Acquire) {
            NOWHERE => Err(raise::bad_inv_order(
                minor::POLLER_NOT_ASKED,
                Completion::No,
            )),
            source => Ok(source == POLLER),
        }
    }

    /// Whether the reply is there; waits for it at most so many milliseconds, `u32::MAX` being for ever.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST with the standard's minor code 5 where the reply has been given before; TRANSIENT where it would wait and the
    /// calling thread is the last that could read the reply.
    pub fn is_ready(&self, timeout_ms: u32) -> Result<bool, SystemException> {
        if self.0.call.is_taken() {
            return Err(delivered());
        }
        self.0.call.wait(self.until(timeout_ms))
    }

    /// A set with this poller in it.
    #[must_use]
    pub fn create_pollable_set(&self) -> PollableSet {
        PollableSet {
            members: Mutex::new(vec![self.into()]),
        }
    }

    /// The reply, which is given once: results and exceptions are read as for a call that waits.
    ///
    /// # Errors
    /// What the call has ended in; and of the poller itself NO_RESPONSE (minor code 1) where there is no reply now and the timeout is
    /// 0, TIMEOUT (1) where none has come in time, OBJECT_NOT_EXIST (5) where it has been given before, BAD_OPERATION where the call
    /// was of another operation, BAD_INV_ORDER while a handler is to have it, TRANSIENT as by [`Poller::is_ready`].
    pub fn poll<T, E: From<SystemException>>(
        &self,
        operation: &str,
        timeout_ms: u32,
        results: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
        exceptions: impl FnOnce(&str, &mut Reader<'_>) -> Result<Option<E>, DecodeError>,
    ) -> Result<T, E> {
        let end = self.end(operation, timeout_ms).inspect_err(|_| {
            self.0.source.store(POLLER, Ordering::Release);
        })?;
        self.0.source.store(CALL, Ordering::Release);
        let orb = self.0.call.orb();
        crate::current::enter_core(orb);
        match end {
            End::Replied(reply) => understand(orb, reply, results, exceptions),
            End::Raised(exception) => Err(exception.into()),
        }
    }

    fn end(&self, operation: &str, timeout_ms: u32) -> Result<End, SystemException> {
        let call = &self.0.call;
        if operation != self.0.operation {
            return Err(raise::bad_operation(0, Completion::No));
        }
        if call.is_taken() {
            return Err(delivered());
        }
        if call.has_handler() {
            return Err(raise::bad_inv_order(0, Completion::No));
        }
        let has_come = call.wait(self.until(timeout_ms))?;
        match call.take() {
            Some(end) => Ok(end),
            None if has_come => Err(delivered()),
            None => Err(not_in_time(timeout_ms)),
        }
    }

    /// The call that it asks for.
    pub(super) fn call(&self) -> &Arc<Outstanding> {
        &self.0.call
    }

    fn until(&self, timeout_ms: u32) -> Option<Instant64> {
        until(self.0.call.orb(), timeout_ms)
    }

    /// Gives the reply to a handler when it comes, or has come, as if the call had been made with it; none: to whoever polls.
    pub fn set_handler(&self, deliver: Option<Deliver>) {
        self.0.call.set_handler(deliver.map(handler));
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A handler that was associated still waits.
        if !self.call.has_handler() {
            self.call.abandon();
        }
    }
}

/// The same call.
impl PartialEq for Poller {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Poller {}

impl fmt::Debug for Poller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poller")
            .field("operation", &self.0.operation)
            .finish_non_exhaustive()
    }
}

/// The end of a timeout; none where it never passes.
pub(super) fn until(orb: &OrbCore, timeout_ms: u32) -> Option<Instant64> {
    let now = orb.client.transport.now();
    (timeout_ms != FOREVER).then(|| now.after(Duration::from_millis(u64::from(timeout_ms))))
}

fn delivered() -> SystemException {
    raise::object_not_exist(minor::REPLY_DELIVERED, Completion::No)
}

pub(super) fn not_in_time(timeout_ms: u32) -> SystemException {
    match timeout_ms {
        0 => raise::no_response(minor::NO_REPLY_YET, Completion::No),
        _ => raise::timeout(minor::NO_REPLY_IN_TIME, Completion::No),
    }
}
