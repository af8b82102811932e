//! `_bind_priority_band`: tells the server which priorities a new connection carries (RTCORBA 1.2:
//! PriorityBandedConnectionPolicy).

use deckwatch_giop::{ReplyStatus, Response};

use super::Deadlines;
use super::attempt::Attempt;
use super::call::{Call, CallKind};
use super::connection::ClientConnection;
use super::retry::Failure;
use crate::transport::Instant64;
use crate::wire;
use crate::{Completion, SystemException, SystemExceptionKind as Kind};
use crate::{raise, raise::own};

/// The operation's name.
const BIND_PRIORITY_BAND: &str = "_bind_priority_band";

/// Tells the server of a new connection's band. A server that does not know the operation has chosen the lane by its
/// endpoint, or does not distinguish bands: it is not called again.
pub(super) fn bind_band(
    mut connection: ClientConnection,
    attempt: &Attempt<'_>,
    until: Instant64,
) -> Result<ClientConnection, Failure> {
    let (binding, call) = (&attempt.target.binding, attempt.call);
    if binding.ignores_bands() {
        return Ok(connection);
    }
    let bind = Call {
        operation: BIND_PRIORITY_BAND,
        arguments: &(),
        response: Response::Outcome,
        kind: CallKind::BindBand,
        times: None,
        contexts: &[],
        ..*call
    };
    let deadlines = Deadlines {
        reply: Some(until),
        request: Some(until),
    };
    let bind = Attempt {
        call: &bind,
        deadlines,
        ..*attempt
    };
    let (reply, is_clean) = connection.exchange(&bind).map_err(not_bound)?;
    let refused = match reply.status() {
        ReplyStatus::SystemException => {
            let message = reply.message();
            Some(wire::read_exception(reply.body(&message)))
        }
        // A forward is ignored: the request itself will be forwarded.
        _ => None,
    };
    reply.give_back(attempt.client);
    if refused.is_some_and(is_unknown_operation) {
        binding.note_bands_ignored();
    }
    match refused {
        // The request itself finds out whether the object exists.
        Some(exception)
            if !is_unknown_operation(exception) && exception.kind != Kind::ObjectNotExist =>
        {
            Err(Failure::last(exception))
        }
        _ if is_clean => Ok(connection),
        _ => Err(Failure::retriable(raise::comm_failure(
            own::REPLY_MALFORMED,
            Completion::No,
        ))),
    }
}

fn is_unknown_operation(exception: SystemException) -> bool {
    matches!(exception.kind, Kind::BadOperation | Kind::NoImplement)
}

/// The request itself has not been sent.
fn not_bound(mut failure: Failure) -> Failure {
    if failure.exception.kind == Kind::Timeout {
        failure.exception.minor = own::TIMED_OUT_CONNECTING;
    }
    failure.exception.completed = Completion::No;
    failure.keeps_connection = false;
    failure
}
