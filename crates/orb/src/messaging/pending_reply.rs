//! A request whose reply is taken later. Deferred dynamic requests and pollers use it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use deckwatch_cdr::{DecodeError, EncodeError, Reader, Unwritten, Writer};

use super::{Deliver, handler};
use crate::client::{End, Outstanding};
use crate::reference::understand;
use crate::transport::Instant64;
use crate::wire::By;
use crate::{ObjectRef, Orb, SystemException, current};

/// A request that has been sent, and its reply when it has arrived. A handle that is cheap to clone.
///
/// The request is cancelled at its server when the last handle is dropped before the reply was taken, unless a handler
/// is set.
///
/// ```
/// # use deckwatch_orb::{ObjectRef, SystemException};
/// # fn ticks(clock: &ObjectRef) -> Result<Option<u32>, SystemException> {
/// let pending = clock.send_deferred("ticks", |_| Ok(()))?;
/// pending.wait(None)?;
/// let ticks: Option<Result<u32, SystemException>> = pending.take(|r| r.read_u32(), |_, _| Ok(None));
/// ticks.transpose()
/// # }
/// ```
#[derive(Clone)]
pub struct PendingReply(Arc<Pending>);

struct Pending {
    target: ObjectRef,
    call: Arc<Outstanding>,
}

impl PendingReply {
    /// Waits until `is_over`, at most for `limit`; `None` waits for ever. Returns false at the limit.
    ///
    /// `is_over` is called again whenever a deferred request of the ORB has ended. `next` returns one of the requests
    /// that the caller waits for and that [is sent](PendingReply::is_sent). The calling thread reads the connection of
    /// that request if no other thread does.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 4 after a shutdown; TRANSIENT if the calling thread is the last
    /// that could read the reply.
    pub fn wait_for_any(
        orb: &Orb,
        limit: Option<Duration>,
        is_over: impl Fn() -> bool,
        next: impl Fn() -> Option<PendingReply>,
    ) -> Result<bool, SystemException> {
        orb.0.calls.require_life()?;
        let client = &orb.0.calls.client;
        let Some(replies) = client.replies_made() else {
            return Ok(is_over());
        };
        let until: Option<Instant64> = limit.map(|limit| client.transport.now().after(limit));
        let source = || next().and_then(|pending| pending.0.call.reply_source());
        if replies.wait(&orb.0.calls, until, is_over, source)? {
            return Ok(true);
        }
        orb.0.calls.require_life()?;
        Ok(false)
    }

    pub(crate) fn new(target: ObjectRef, call: Arc<Outstanding>) -> Self {
        Self(Arc::new(Pending { target, call }))
    }

    /// Returns the object that was called.
    #[must_use]
    pub fn target(&self) -> &ObjectRef {
        &self.0.target
    }

    /// Returns the operation's name as in the request: `_get_a` or `_set_a` for an attribute `a`.
    #[must_use]
    pub fn operation(&self) -> &str {
        self.0.call.operation()
    }

    /// Returns the ORB that sent the request.
    #[must_use]
    pub fn orb(&self) -> Orb {
        Orb::of_calls(self.0.call.orb()).expect("the target keeps its ORB")
    }

    /// Returns whether the request has been sent over a connection and waits for its reply. Returns false while it must
    /// be sent again, and after its end.
    #[must_use]
    pub fn is_sent(&self) -> bool {
        self.0.call.reply_source().is_some()
    }

    /// Returns whether the reply has arrived or will never arrive.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.0.call.has_ended()
    }

    /// Returns whether the reply has been taken.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.0.call.is_taken()
    }

    /// Waits for the reply, at most for `limit`; `None` waits for ever. Returns [`PendingReply::has_ended`].
    ///
    /// # Errors
    /// TRANSIENT if the calling thread is the last that could read the reply.
    pub fn wait(&self, limit: Option<Duration>) -> Result<bool, SystemException> {
        let call = &self.0.call;
        call.wait(limit.map(|limit| call.orb().client.transport.now().after(limit)))
    }

    /// Takes the reply, once. Reads the results or the exception as a synchronous call does. Returns `None` if there is
    /// no reply yet, or if it has been taken.
    pub fn take<T, E: From<SystemException>>(
        &self,
        results: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
        exceptions: impl FnOnce(&str, &mut Reader<'_>) -> Result<Option<E>, DecodeError>,
    ) -> Option<Result<T, E>> {
        let end = self.0.call.take()?;
        Some(self.read(end, results, exceptions))
    }

    /// As [`PendingReply::take`]. If the request had to be sent to a target whose GIOP version aligns the arguments
    /// differently, calls the operation again with `arguments`, in the time that is left.
    pub fn take_or_call_again<'c, T, E: From<SystemException>, R: Into<Unwritten<'c>>>(
        &self,
        arguments: impl Fn(&mut Writer<'_>) -> Result<R, EncodeError>,
        results: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
        exceptions: impl FnOnce(&str, &mut Reader<'_>) -> Result<Option<E>, DecodeError>,
    ) -> Option<Result<T, E>> {
        let call = &self.0.call;
        match call.take()? {
            End::Raised(_) if call.is_unsendable() => Some(self.0.target.invoke_within(
                call.time_left(),
                call.operation(),
                &By::new(arguments),
                results,
                exceptions,
            )),
            end => Some(self.read(end, results, exceptions)),
        }
    }

    fn read<T, E: From<SystemException>>(
        &self,
        end: End,
        results: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
        exceptions: impl FnOnce(&str, &mut Reader<'_>) -> Result<Option<E>, DecodeError>,
    ) -> Result<T, E> {
        let orb = self.0.call.orb();
        current::enter_strong(orb);
        match end {
            End::Replied(reply) => understand(orb, reply, results, exceptions),
            End::Raised(exception) => Err(exception.into()),
        }
    }

    /// Returns whether a handler waits for the reply.
    #[must_use]
    pub fn has_handler(&self) -> bool {
        self.0.call.has_handler()
    }

    /// Passes the reply to `deliver` when it arrives or if it has arrived, as [`ObjectRef::send_callback`] does. With
    /// `None`, the reply is left to [`PendingReply::take`].
    pub fn set_handler(&self, deliver: Option<Deliver>) {
        self.0.call.set_handler(deliver.map(handler));
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.call.has_handler() {
            self.call.abandon();
        }
    }
}

/// Two handles are equal if they belong to the same request.
impl PartialEq for PendingReply {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for PendingReply {}

impl fmt::Debug for PendingReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingReply")
            .field("operation", &self.operation())
            .finish_non_exhaustive()
    }
}
