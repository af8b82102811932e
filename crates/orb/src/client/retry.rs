//! When a request is sent again, and where: no other file decides it.
//!
//! A request is sent again only where its server has certainly not served it (COMPLETED_NO). Each address is tried over
//! an idle connection and, if that turns out to be closed, once over a new one; then comes the next address of the
//! reference.
//!
//! | fault | completed | sent again | else raised | clause (CORBA 3.3) |
//! | --- | --- | --- | --- | --- |
//! | connect refused or timed out, host unknown or unreachable | NO | next address | TRANSIENT | part 2, 7.6.7 |
//! | connect not finished when the call's own time ends | NO | no | TIMEOUT | part 1, 17.2.4 |
//! | address out of the reach of the peer that gave it | NO | next address | NO_PERMISSION | - |
//! | connect without descriptors; packet priority denied | NO | no | NO_RESOURCES; NO_PERMISSION | - |
//! | connection closed, policy NO_RECONNECT, reference bound | NO | no | REBIND | part 1, 17.2.1 |
//! | message not written whole | NO | new connection, next address | COMM_FAILURE | part 2, 9.5.1 |
//! | message not written in the call's time, end time passed | NO | no | TIMEOUT | part 1, 17.2.4 |
//! | arguments cannot be marshalled | NO | no | MARSHAL or as the codec says | part 2, 9.3 |
//! | server never accepted the connection | NO | new connection, next address | TRANSIENT | part 2, 9.5.1 |
//! | CloseConnection before the reply | NO | new connection, next address | COMM_FAILURE | part 2, 9.4.7 |
//! | connection lost without CloseConnection | MAYBE | no | COMM_FAILURE | part 2, 9.5.1.1 |
//! | MessageError, or octets that are no reply | MAYBE | no | COMM_FAILURE | part 2, 9.4.8 |
//! | no reply in the call's time | MAYBE | no | TIMEOUT | part 1, 17.2.4 |
//! | NEEDS_ADDRESSING_MODE | NO | same connection, readdressed | COMM_FAILURE | part 2, 9.4.3.2 |
//! | LOCATION_FORWARD(_PERM), may rebind | NO | forwarded-to addresses | at last TRANSIENT | part 2, 9.4.3.2 |
//! | LOCATION_FORWARD(_PERM), NO_REBIND, reference bound | NO | no | REBIND | part 1, 17.2.1 |
//! | forwarded-to: TRANSIENT, COMM_FAILURE, OBJECT_NOT_EXIST | NO | reference's own addresses | - | part 2, 9.6 |
//! | any other exception of the server | any | no | as it came | part 2, 9.4.3.2 |
//! | bidirectional connection ended | NO | next address | COMM_FAILURE | part 2, 9.8 |
//!
//! Asynchronous calls are retried by the same rules, by a thread of the ORB. One-ways with SYNC_NONE and
//! SYNC_WITH_TRANSPORT have no reply: only the rows above CloseConnection hold for them.

use crate::counters::Counter;
use crate::policy::{Overrides, RebindMode};
use crate::transport::{Instant64, TransportError};
use crate::{Completion, SystemException, SystemExceptionKind as Kind, minor};
use crate::{raise, raise::own};

use super::Client;
use super::binding::Binding;
use super::target::Target;

/// Why an attempt failed, and whether another one may be made.
pub(super) struct Failure {
    pub(super) exception: SystemException,
    /// The server has certainly not served the request, and another connection or address may serve it.
    pub(super) may_retry: bool,
    /// The connection can be used again. A reply may arrive on it that no caller waits for.
    pub(super) keeps_connection: bool,
}

impl Failure {
    /// No other connection or address is tried.
    pub(super) const fn last(exception: SystemException) -> Self {
        Self {
            exception,
            may_retry: false,
            keeps_connection: false,
        }
    }

    /// No octet of the request was written, and no other address would help.
    pub(super) const fn unsent(exception: SystemException) -> Self {
        Self {
            exception,
            may_retry: false,
            keeps_connection: true,
        }
    }

    /// Another connection or address may serve the request.
    pub(super) const fn retriable(exception: SystemException) -> Self {
        Self {
            exception,
            may_retry: true,
            keeps_connection: false,
        }
    }

    /// A request over a bidirectional connection: retriable if it was certainly not served.
    pub(super) fn bidirectional(exception: SystemException) -> Self {
        if exception.completed == Completion::No {
            Self::retriable(exception)
        } else {
            Self::last(exception)
        }
    }

    /// The binding has no connection, and the policies in force forbid to open one.
    pub(super) const fn may_not_reconnect() -> Self {
        Self::last(raise::rebind(minor::NONE, Completion::No))
    }

    /// No connection could be opened within `within`, or by `deadline` of the call.
    #[cold]
    pub(super) fn connecting(
        client: &Client,
        binding: &Binding,
        error: TransportError,
        (deadline, within): (Option<Instant64>, Instant64),
    ) -> Self {
        let minor = match error {
            TransportError::TimedOut if deadline.is_some_and(|deadline| deadline <= within) => {
                return Self::timed_out(client, own::TIMED_OUT_CONNECTING, Completion::No);
            }
            TransportError::Exhausted => {
                return Self::last(raise::no_resources(0, Completion::No));
            }
            TransportError::Denied if binding.sets_packet_priority() => {
                let denied = own::NETWORK_PRIORITY_DENIED;
                return Self::last(raise::no_permission(denied, Completion::No));
            }
            // Another address of the object might be one without TLS: whoever breaks a handshake must not lead there.
            error if tls_exception(error).is_some() => {
                client.counters.count(Counter::CommFailures);
                return Self::of_tls(error, Completion::No);
            }
            TransportError::OutOfReach => {
                return Self::retriable(raise::no_permission(own::OUT_OF_REACH, Completion::No));
            }
            TransportError::TimedOut => own::CONNECT_TIMED_OUT,
            TransportError::Refused => own::CONNECT_REFUSED,
            TransportError::UnknownHost => own::HOST_UNKNOWN,
            TransportError::Unreachable => own::HOST_UNREACHABLE,
            _ => own::CONNECT_FAILED,
        };
        Self::retriable(raise::transient(minor, Completion::No))
    }

    /// The message was not written whole: the server has not served it.
    #[cold]
    pub(super) fn sending(client: &Client, error: TransportError) -> Self {
        if error == TransportError::TimedOut {
            return Self::timed_out(client, own::TIMED_OUT_SENDING, Completion::No);
        }
        client.counters.count(Counter::CommFailures);
        Self::retriable(raise::comm_failure(own::SEND_FAILED, Completion::No))
    }

    /// The server never accepted the connection: it has read none of the request.
    #[cold]
    pub(super) fn not_accepted(client: &Client) -> Self {
        client.counters.count(Counter::CommFailures);
        Self::retriable(raise::transient(own::CONNECT_REFUSED, Completion::No))
    }

    /// CloseConnection: the server promises that what it has not answered it has not served.
    pub(super) const fn closed() -> Self {
        Self::retriable(raise::comm_failure(own::CONNECTION_CLOSED, Completion::No))
    }

    /// The connection ended without CloseConnection while a reply was awaited.
    #[cold]
    pub(super) fn lost(client: &Client) -> Self {
        client.counters.count(Counter::CommFailures);
        Self::last(raise::comm_failure(own::CONNECTION_LOST, Completion::Maybe))
    }

    /// The connection ended, for this reason, while a reply was awaited. A server that refuses our certificate says so
    /// when the first request is on its way.
    #[cold]
    pub(super) fn lost_for(client: &Client, error: TransportError) -> Self {
        if tls_exception(error).is_some() {
            client.counters.count(Counter::CommFailures);
            return Self::of_tls(error, Completion::Maybe);
        }
        Self::lost(client)
    }

    fn of_tls(error: TransportError, completed: Completion) -> Self {
        let exception = tls_exception(error);
        let failed = || raise::comm_failure(own::TLS_FAILED, completed);
        let exception = exception.unwrap_or_else(failed);
        Self::last(SystemException {
            completed,
            ..exception
        })
    }

    /// The server answered in TLS: it has read nothing of a plain request.
    #[cold]
    pub(super) const fn tls_demanded() -> Self {
        Self::last(raise::comm_failure(own::TLS_DEMANDED, Completion::No))
    }

    /// MessageError: which message it answers is not known.
    #[cold]
    pub(super) fn message_refused(client: &Client) -> Self {
        client.counters.count(Counter::MessageErrorsReceived);
        Self::last(raise::comm_failure(own::MESSAGE_REFUSED, Completion::Maybe))
    }

    /// What arrived is no reply. Counted as `counter`.
    #[cold]
    pub(super) fn malformed(client: &Client, counter: Counter) -> Self {
        client.counters.count(counter);
        Self::last(raise::comm_failure(own::REPLY_MALFORMED, Completion::Maybe))
    }

    /// The reply had not arrived when the call's time ended.
    #[cold]
    pub(super) fn reply_timed_out(client: &Client) -> Self {
        Self::timed_out(client, own::TIMED_OUT_WAITING, Completion::Maybe)
    }

    /// The call's time ended; `minor` says during what.
    #[cold]
    pub(super) fn timed_out(client: &Client, minor: u32, completed: Completion) -> Self {
        client.counters.count(Counter::Timeouts);
        Self::last(raise::timeout(minor, completed))
    }

    /// The server asked for an addressing that it was sent already, or for none that exists.
    pub(super) const fn addressing_refused() -> Self {
        Self::last(raise::comm_failure(own::ADDRESSING_REFUSED, Completion::No))
    }
}

/// The exception of an error of TLS; `None`: it is no such error.
fn tls_exception(error: TransportError) -> Option<SystemException> {
    let no_permission = match error {
        TransportError::TlsNotSet => own::TLS_NOT_SET,
        TransportError::Untrusted => own::TLS_UNTRUSTED,
        TransportError::CertificateExpired => own::TLS_EXPIRED,
        TransportError::CertificateRevoked => own::TLS_REVOKED,
        TransportError::CertificateOfAnother => own::TLS_OTHER_HOST,
        TransportError::CertificateMissing | TransportError::CertificateUnfit => own::TLS_UNFIT,
        TransportError::RefusedByPeer => own::TLS_REFUSED,
        TransportError::NotTls => {
            return Some(raise::comm_failure(own::TLS_PEER_PLAIN, Completion::No));
        }
        TransportError::HandshakeFailed => {
            return Some(raise::comm_failure(own::TLS_FAILED, Completion::No));
        }
        _ => return None,
    };
    Some(raise::no_permission(no_permission, Completion::No))
}

/// Tries `targets` in turn: returns what the first of them returns that does not fail in a retriable way.
#[inline]
pub(super) fn first_of<T>(
    targets: &[Target],
    mut attempt: impl FnMut(&Target) -> Result<T, Failure>,
) -> Result<T, SystemException> {
    let mut last = raise::transient(minor::NO_USABLE_PROFILE, Completion::No);
    for target in targets {
        match attempt(target) {
            Ok(done) => return Ok(done),
            Err(failure) if failure.may_retry => last = failure.exception,
            Err(failure) => return Err(failure.exception),
        }
    }
    Err(last)
}

/// Whether a request that ended so at a forwarded-to address is sent to the reference's own addresses: the object may
/// have left. Any other exception is the object's own answer.
pub(super) fn may_return_to_origin(exception: SystemException) -> bool {
    let is_of_the_way = matches!(
        exception.kind,
        Kind::Transient | Kind::CommFailure | Kind::ObjectNotExist
    );
    is_of_the_way && exception.completed == Completion::No
}

/// Whether a closed connection may be replaced (RebindPolicy); a reference that is not bound yet may always connect.
#[inline]
pub(super) fn may_reconnect(policies: &Overrides, is_bound: bool) -> bool {
    !is_bound || policies.rebind() != RebindMode::NoReconnect
}

/// Whether forwards are followed (RebindPolicy); those of a reference that is not bound yet always are.
#[inline]
pub(super) fn may_rebind(policies: &Overrides, is_bound: bool) -> bool {
    !is_bound || policies.rebind() == RebindMode::Transparent
}
