//! What goes with requests of real-time CORBA: the priority of the caller, and once for a connection the priorities that come over it
//! (RTCORBA 1.2: PriorityModelPolicy, PriorityBandedConnectionPolicy).

use std::sync::atomic::Ordering;

use deckwatch_giop::{ReplyStatus, Response, context_id, priority_context, priority_range_context};

use super::call::{Attempt, Call, CallKind, Failure};
use super::{Client, ClientConnection, Deadlines};
use crate::reference::Target;
use crate::transport::Instant64;
use crate::wire::{self, Contexts};
use crate::{Completion, SystemException, SystemExceptionKind as Kind, own_minor as own};

/// The operation that tells a server which priorities come over the connection.
const BIND_PRIORITY_BAND: &str = "_bind_priority_band";

/// The service contexts of real-time CORBA that a request has.
pub(super) struct RealTimeContexts {
    priority: Option<[u8; 4]>,
    band: Option<[u8; 6]>,
}

impl RealTimeContexts {
    /// Whether a request has any of them.
    #[inline]
    pub(super) fn has_any(target: &Target, call: &Call<'_>) -> bool {
        (target.carries_priority && call.priority.is_some()) || call.kind == CallKind::BindBand
    }

    pub(super) fn of(target: &Target, call: &Call<'_>) -> Self {
        let priority = call.priority.filter(|_| target.carries_priority);
        let band = match call.kind {
            CallKind::BindBand => target.binding.quality.band,
            _ => None,
        };
        Self {
            priority: priority.map(|priority| priority_context(priority.value())),
            band: band.map(|band| priority_range_context(band.low.value(), band.high.value())),
        }
    }

    pub(super) fn push<'c>(&'c self, contexts: &mut Contexts<'c>) {
        if let Some(data) = &self.priority {
            contexts.push(context_id::RT_CORBA_PRIORITY, data);
        }
        if let Some(data) = &self.band {
            contexts.push(context_id::RT_CORBA_PRIORITY_RANGE, data);
        }
    }
}

impl Client {
    /// Tells the server of a new connection's band. One that does not know the question has chosen by its endpoint already, or does not
    /// tell bands apart: it is not asked again.
    pub(super) fn bind_band(
        &self,
        mut connection: ClientConnection,
        attempt: &Attempt<'_>,
        until: Instant64,
    ) -> Result<ClientConnection, Failure> {
        let (is_deaf_here, call) = (&attempt.target.binding.is_deaf_to_bands, attempt.call);
        if is_deaf_here.load(Ordering::Relaxed) {
            return Ok(connection);
        }
        let binding = Call {
            operation: BIND_PRIORITY_BAND,
            arguments: &(),
            response: Response::Outcome,
            kind: CallKind::BindBand,
            policies: call.policies,
            times: None,
            priority: call.priority,
            number: call.number,
            contexts: &[],
            flow: None,
            is_intercepted: true,
        };
        let deadlines = Deadlines {
            reply: Some(until),
            request: Some(until),
        };
        let binding = Attempt {
            call: &binding,
            deadlines,
            ..*attempt
        };
        let (reply, is_clean) = self.exchange(&mut connection, &binding).map_err(unbound)?;
        let refused = match reply.status() {
            ReplyStatus::SystemException => {
                let message = reply.message();
                Some(wire::read_exception(reply.body(&message)))
            }
            // Where it was forwarded to, the request itself will be.
            _ => None,
        };
        reply.give_back(self);
        if refused.is_some_and(is_deaf) {
            is_deaf_here.store(true, Ordering::Relaxed);
        }
        match refused {
            // Whether the object exists the request itself will tell.
            Some(exception) if !is_deaf(exception) && exception.kind != Kind::ObjectNotExist => {
                Err(Failure::last(exception))
            }
            _ if is_clean => Ok(connection),
            _ => Err(Failure::of_the_way(crate::raise::comm_failure(
                own::REPLY_MALFORMED,
                Completion::No,
            ))),
        }
    }
}

/// Whether the server does not know the question.
fn is_deaf(exception: SystemException) -> bool {
    matches!(exception.kind, Kind::BadOperation | Kind::NoImplement)
}

/// The request itself has not been sent.
fn unbound(mut failure: Failure) -> Failure {
    if failure.exception.kind == Kind::Timeout {
        failure.exception.minor = own::TIMED_OUT_CONNECTING;
    }
    failure.exception.completed = Completion::No;
    failure.keeps_connection = false;
    failure
}
