//! The outcome of a request, and how it becomes the reply.

use super::Server;
use super::upcall::Upcall;
use crate::context_id::EXCEPTION_DETAIL_MESSAGE;
use crate::contexts::{ContextList, ExtraContext};
use crate::counters::Counter;
use crate::exception_detail;
use crate::wire;
use crate::{Completion, SystemException, SystemExceptionKind};

/// The outcome of a request.
pub(crate) enum Outcome {
    /// The reply, if one is expected, is in the buffer.
    Replied,
    /// The caller got a receipt before the request was served, and waits for nothing else.
    Receipted,
    /// The reply is this exception.
    Raise(SystemException),
    /// The caller must send the request to another object.
    Forward(crate::ObjectRef),
}

/// Writes the reply for an outcome, with the service contexts that interceptors have added. Returns whether the caller
/// has its answer already.
#[inline(never)]
pub(super) fn conclude(
    server: &Server,
    upcall: &mut Upcall<'_>,
    outcome: Outcome,
    added: &[ExtraContext],
) -> bool {
    let request = upcall.request;
    let mut with_added = None;
    let contexts = if added.is_empty() {
        upcall.contexts
    } else {
        with_added.insert(upcall.contexts_and(added)).as_slice()
    };
    let is_answered = matches!(outcome, Outcome::Receipted);
    let (reply, sizes) = (&mut *upcall.reply, server.sizes);
    let is_awaited = request.response.is_expected();
    match outcome {
        Outcome::Replied if !added.is_empty() && is_awaited => {
            if let Err(error) = wire::say_with_reply(reply, contexts, sizes) {
                let exception = SystemException::from(error).of_reply();
                wire::exception_reply(reply, request, exception, &[], sizes);
            }
        }
        Outcome::Replied | Outcome::Receipted => {}
        Outcome::Raise(exception) => {
            server.counters.count(Counter::SystemExceptions);
            if is_of_octets(exception) {
                server.counters.count(Counter::MalformedRequests);
            }
            if is_awaited {
                let detail = exception_detail::take_for_reply(exception);
                let mut with_detail = None;
                let contexts = match &detail {
                    None => contexts,
                    Some(data) => with_detail
                        .insert(ContextList::of(contexts).with(EXCEPTION_DETAIL_MESSAGE, data))
                        .as_slice(),
                };
                wire::exception_reply(reply, request, exception, contexts, sizes);
            }
        }
        Outcome::Forward(_) if !is_awaited => {}
        Outcome::Forward(target) => {
            let ior = target.ior();
            if let Err(error) = wire::forward_reply(reply, request, ior, contexts, sizes) {
                wire::exception_reply(reply, request, error.into(), contexts, sizes);
            }
        }
    }
    is_answered
}

/// Returns whether an exception means that octets could not be decoded.
fn is_of_octets(exception: SystemException) -> bool {
    use SystemExceptionKind as Kind;
    let is_of_values = matches!(
        exception.kind,
        Kind::Marshal | Kind::DataConversion | Kind::BadTypecode
    );
    // Results that cannot be written raise with completion YES.
    exception.completed == Completion::No && (exception.decode_fact().is_some() || is_of_values)
}
