//! Calls through a reference: what generated stubs use.

use std::sync::Arc;
use std::time::Duration;

use deckwatch_cdr::{DecodeError, EncodeError, Reader, Unwritten, Writer};
use deckwatch_giop::invocation::Times;
use deckwatch_giop::{ReplyStatus, Response};

use super::ObjectRef;
use crate::call_side::CallSide;
use crate::client::{
    Call, CallKind, Handler, Outstanding, Reply, call_object, post_oneway, send_oneway,
    travelling_times,
};
use crate::interceptor::LastAttempt;
use crate::messaging::{Deliver, PendingReply, handler};
use crate::policy::{self, Overrides, Policy, SyncScope};
use crate::raise;
use crate::rt;
use crate::wire::{Arguments, By};
use crate::{Completion, SystemException, current, minor};

impl ObjectRef {
    /// Calls an operation and waits for its reply; generated stubs use it.
    ///
    /// # Errors
    /// The user exception that `exceptions` reads from the reply, or a system exception.
    pub fn invoke<'c, T, E: From<SystemException>, R: Into<Unwritten<'c>>>(
        &self,
        operation: &str,
        arguments: impl Fn(&mut Writer<'_>) -> Result<R, EncodeError>,
        results: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
        exceptions: impl FnOnce(&str, &mut Reader<'_>) -> Result<Option<E>, DecodeError>,
    ) -> Result<T, E> {
        self.invoke_within(None, operation, &By::new(arguments), results, exceptions)
    }

    /// As [`ObjectRef::invoke`], but within `left`, whatever the policies allow.
    pub(crate) fn invoke_within<T, E: From<SystemException>>(
        &self,
        left: Option<Duration>,
        operation: &str,
        arguments: &dyn Arguments,
        results: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
        exceptions: impl FnOnce(&str, &mut Reader<'_>) -> Result<Option<E>, DecodeError>,
    ) -> Result<T, E> {
        let orb = self.0.orb()?;
        let reply = self.exchange(orb, left, operation, arguments)?;
        understand(orb, reply, results, exceptions)
    }

    /// The part of a call that is the same for all operations.
    fn exchange(
        &self,
        orb: &Arc<CallSide>,
        left: Option<Duration>,
        operation: &str,
        arguments: &dyn Arguments,
    ) -> Result<Reply, SystemException> {
        current::enter_strong(orb);
        let (mut scratch, mut within) = (CallScratch::default(), None);
        let mut call = self.call(orb, operation, arguments, &mut scratch);
        if let Some(left) = left {
            std::hint::cold_path();
            let limit = Overrides::one(Policy::RelativeRoundtripTimeout(left));
            call.policies = within.insert(limit.over(*call.policies));
        }
        call_object(&orb.client, &self.0, &call)
    }

    /// Calls an operation and returns once the request has been sent; `deliver` is called with the reply, by a
    /// thread of the ORB, or
    /// within [`crate::Orb::perform_work`] in an ORB without threads. Without it the reply is dropped.
    ///
    /// # Errors
    /// The system exception that kept the request from being sent; NO_RESOURCES above
    /// [`crate::limits::OUTSTANDING_MAX`].
    pub fn send_callback(
        &self,
        operation: &str,
        arguments: impl Fn(&mut Writer<'_>) -> Result<(), EncodeError>,
        deliver: Option<Deliver>,
    ) -> Result<(), SystemException> {
        let deliver = deliver.unwrap_or_else(|| Box::new(|_| Ok(())));
        self.send_asynchronously(operation, &By::new(arguments), Some(handler(deliver)))
            .map(drop)
    }

    /// Sends a request and returns at once; the reply is fetched through [`PendingReply`]. All such requests to one
    /// server share a connection.
    ///
    /// # Errors
    /// The system exception that kept the request from being sent; NO_RESOURCES above
    /// [`crate::limits::OUTSTANDING_MAX`].
    pub fn send_deferred<'c, R: Into<Unwritten<'c>>>(
        &self,
        operation: &str,
        arguments: impl Fn(&mut Writer<'_>) -> Result<R, EncodeError>,
    ) -> Result<PendingReply, SystemException> {
        let call = self.send_asynchronously(operation, &By::new(arguments), None)?;
        Ok(PendingReply::new(self.clone(), call))
    }

    /// Sends a request without waiting; [`Outstanding`] gets its end.
    fn send_asynchronously(
        &self,
        operation: &str,
        arguments: &dyn Arguments,
        handler: Option<Handler>,
    ) -> Result<Arc<Outstanding>, SystemException> {
        let orb = self.0.orb()?;
        current::enter_strong(orb);
        let mut scratch = CallScratch::default();
        let call = self.call(orb, operation, arguments, &mut scratch);
        Outstanding::send(orb, &self.0, &call, handler)
    }

    /// Calls a one-way operation. Returns when the [`SyncScope`] in force is reached; the default is to return when the
    /// transport has the request.
    ///
    /// # Errors
    /// A system exception. Only with [`SyncScope::WithTarget`] does success mean that the request has been served.
    pub fn invoke_oneway<'c, R: Into<Unwritten<'c>>>(
        &self,
        operation: &str,
        arguments: impl Fn(&mut Writer<'_>) -> Result<R, EncodeError>,
    ) -> Result<(), SystemException> {
        let orb = self.0.orb()?;
        current::enter_strong(orb);
        let mut scratch = CallScratch::default();
        let arguments = By::new(arguments);
        let mut call = self.call(orb, operation, &arguments, &mut scratch);
        call.kind = CallKind::Oneway;
        call.response = Response::Nothing;
        match call.policies.sync_scope() {
            SyncScope::None => return post_oneway(orb, &self.0, &call),
            SyncScope::WithTransport => return send_oneway(&orb.client, &self.0, &call),
            SyncScope::WithServer => call.response = Response::Receipt,
            SyncScope::WithTarget => call.response = Response::Outcome,
        }
        let last_attempt = LastAttempt::default();
        call.last_attempt = Some(&last_attempt);
        let reply = call_object(&orb.client, &self.0, &call)?;
        let status = reply.status();
        reply.give_back(&orb.client);
        match status {
            ReplyStatus::NoException => Ok(()),
            _ => Err(raise::unknown(
                minor::UNKNOWN_USER_EXCEPTION,
                Completion::Yes,
            )),
        }
    }

    #[inline]
    pub(super) fn call<'c>(
        &'c self,
        orb: &Arc<CallSide>,
        operation: &'c str,
        arguments: &'c dyn Arguments,
        scratch: &'c mut CallScratch,
    ) -> Call<'c> {
        let (policies, contexts) = if self.is_all_default(orb) {
            (&policy::NO_OVERRIDES, [].as_slice())
        } else {
            let in_force = scratch.in_force.insert(self.in_force(orb));
            (&*in_force, self.0.passed_on.as_deref().unwrap_or_default())
        };
        scratch.times = travelling_times(&orb.client, policies);
        Call {
            operation,
            arguments,
            response: Response::Outcome,
            kind: CallKind::TwoWay,
            times: scratch.times.as_ref(),
            policies,
            priority: rt::current::priority(),
            number: orb.client.trace.next_call(),
            contexts,
            last_attempt: None,
        }
    }
}

/// What a [`Call`] borrows. Most calls use nothing of it.
#[derive(Default)]
pub(super) struct CallScratch {
    in_force: Option<Overrides>,
    times: Option<Times>,
}

/// Reads the results or a user exception of a reply.
pub(crate) fn understand<T, E: From<SystemException>>(
    orb: &CallSide,
    reply: Reply,
    results: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
    exceptions: impl FnOnce(&str, &mut Reader<'_>) -> Result<Option<E>, DecodeError>,
) -> Result<T, E> {
    let outcome = match reply.status() {
        ReplyStatus::NoException => {
            results(&mut reply.body(&reply.message())).map_err(|error| E::from(misread(error)))
        }
        _ => {
            std::hint::cold_path();
            Err(read_user_exception(&reply, exceptions))
        }
    };
    reply.give_back(&orb.client);
    outcome
}

fn read_user_exception<E: From<SystemException>>(
    reply: &Reply,
    exceptions: impl FnOnce(&str, &mut Reader<'_>) -> Result<Option<E>, DecodeError>,
) -> E {
    let message = reply.message();
    let mut body = reply.body(&message);
    let id = match body.read_string_octets() {
        Ok(id) => id,
        Err(error) => return misread(error).into(),
    };
    match exceptions(std::str::from_utf8(id).unwrap_or(""), &mut body) {
        Ok(Some(exception)) => exception,
        Ok(None) => raise::unknown(minor::UNKNOWN_USER_EXCEPTION, Completion::Yes).into(),
        Err(error) => misread(error).into(),
    }
}

/// The request was served, but its reply cannot be read.
#[cold]
fn misread(error: DecodeError) -> SystemException {
    SystemException::from(error).of_reply()
}
