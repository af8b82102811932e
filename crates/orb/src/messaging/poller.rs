//! Replies that the caller asks for, and sets of them (CORBA 3.3 part 1, clauses 17.8, 17.9 and 7.4).

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deckwatch_cdr::{DecodeError, Reader};

use super::{Deliver, handler};
use crate::client::{End, Outstanding};
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
            members: Mutex::new(vec![self.clone()]),
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

    fn until(&self, timeout_ms: u32) -> Option<Instant64> {
        let now = self.0.call.orb().client.transport.now();
        (timeout_ms != FOREVER).then(|| now.after(Duration::from_millis(u64::from(timeout_ms))))
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

/// Calls of which one thread waits for the first that has ended.
#[derive(Debug, Default)]
pub struct PollableSet {
    members: Mutex<Vec<Poller>>,
}

/// Why a set gives no pollable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollableSetError {
    /// The set is empty.
    NoPossiblePollable,
    /// The pollable is not in the set.
    UnknownPollable,
    /// NO_RESPONSE or TIMEOUT, with the standard's minor code 1: nothing is ready. TRANSIENT as by [`Poller::is_ready`].
    System(SystemException),
}

impl PollableSet {
    /// Adds a poller, of the same ORB as the others.
    ///
    /// # Errors
    /// BAD_PARAM with the standard's minor code 43 for one that is in the set, without one for another ORB's.
    pub fn add_pollable(&self, poller: &Poller) -> Result<(), SystemException> {
        let mut members = self.members();
        if members.contains(poller) {
            return Err(raise::bad_param(minor::POLLABLE_TWICE, Completion::No));
        }
        let is_alien = |other: &Poller| !Arc::ptr_eq(other.0.call.orb(), poller.0.call.orb());
        if members.first().is_some_and(is_alien) {
            return Err(raise::bad_param(0, Completion::No));
        }
        members.push(poller.clone());
        Ok(())
    }

    /// Takes the first that is ready out of the set; waits at most so many milliseconds, `u32::MAX` being for ever.
    ///
    /// # Errors
    /// [`PollableSetError::NoPossiblePollable`]; NO_RESPONSE where nothing is ready and the timeout is 0, TIMEOUT where nothing was in
    /// time, TRANSIENT as by [`Poller::is_ready`].
    pub fn ready_pollable(&self, timeout_ms: u32) -> Result<Poller, PollableSetError> {
        let members = self.members().clone();
        let first = members
            .first()
            .ok_or(PollableSetError::NoPossiblePollable)?;
        let orb = Arc::clone(first.0.call.orb());
        let until = first.until(timeout_ms);
        let ready = || members.iter().find(|one| one.0.call.has_ended());
        if let Some(replies) = orb.client.replies_made() {
            let waiting = || members.iter().find_map(|one| one.0.call.road());
            let waited = replies.wait(&orb, until, || ready().is_some(), waiting);
            waited.map_err(PollableSetError::System)?;
        }
        let Some(ready) = ready() else {
            return Err(PollableSetError::System(not_in_time(timeout_ms)));
        };
        // Another thread may have had it first.
        self.remove(ready).map(|()| ready.clone())
    }

    /// Takes a poller out of the set.
    ///
    /// # Errors
    /// [`PollableSetError::UnknownPollable`].
    pub fn remove(&self, poller: &Poller) -> Result<(), PollableSetError> {
        let mut members = self.members();
        let place = members.iter().position(|one| one == poller);
        members.remove(place.ok_or(PollableSetError::UnknownPollable)?);
        Ok(())
    }

    /// How many are in the set.
    #[must_use]
    pub fn number_left(&self) -> usize {
        self.members().len()
    }

    fn members(&self) -> MutexGuard<'_, Vec<Poller>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for PollableSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPossiblePollable => f.write_str("The set of pollables is empty."),
            Self::UnknownPollable => f.write_str("The pollable is not in the set."),
            Self::System(exception) => exception.fmt(f),
        }
    }
}

impl std::error::Error for PollableSetError {}

fn delivered() -> SystemException {
    raise::object_not_exist(minor::REPLY_DELIVERED, Completion::No)
}

fn not_in_time(timeout_ms: u32) -> SystemException {
    match timeout_ms {
        0 => raise::no_response(minor::NO_REPLY_YET, Completion::No),
        _ => raise::timeout(minor::NO_REPLY_IN_TIME, Completion::No),
    }
}
