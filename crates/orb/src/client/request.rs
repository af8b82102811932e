//! The message of a request.

use deckwatch_cdr::{EncodeError, Unwritten};

use super::call::{Call, CallKind};
use super::target::Target;
use crate::contexts::written::{has_any, with_contexts};
use crate::wire::{self, RequestHead, Sizes};

/// What a request carries because of the connection that it is sent over.
#[derive(Clone, Copy)]
pub(crate) struct RequestExtras<'p> {
    pub(crate) id: u32,
    /// The server does not know our code sets yet.
    pub(crate) sends_code_sets: bool,
    /// Where the server may call back, which it does not know yet.
    pub(crate) listen_points: Option<&'p [u8]>,
}

/// Writes the whole message of a request, with its service contexts.
pub(super) fn write_request(
    buffer: &mut Vec<u8>,
    target: &Target,
    call: &Call<'_>,
    extras: &RequestExtras<'_>,
    sizes: Sizes,
) -> Result<(), EncodeError> {
    let rest = begin_request(buffer, target, call, extras, sizes)?;
    buffer.extend_from_slice(rest.octets());
    Ok(())
}

/// As [`write_request`], without the octets at the end that the arguments have in memory already: it returns them.
#[inline]
pub(super) fn begin_request<'c>(
    buffer: &mut Vec<u8>,
    target: &Target,
    call: &Call<'c>,
    extras: &RequestExtras<'_>,
    sizes: Sizes,
) -> Result<Unwritten<'c>, EncodeError> {
    if has_any(target, call, extras) || call.kind == CallKind::Locate {
        return begin_other_request(buffer, target, call, extras, sizes);
    }
    let head = RequestHead {
        id: extras.id,
        response: call.response,
        operation: call.operation,
        contexts: &[],
    };
    wire::write_request(buffer, &target.profile, &head, sizes, call.arguments)
}

/// A request with service contexts, or a LocateRequest.
#[inline(never)]
fn begin_other_request<'c>(
    buffer: &mut Vec<u8>,
    target: &Target,
    call: &Call<'c>,
    extras: &RequestExtras<'_>,
    sizes: Sizes,
) -> Result<Unwritten<'c>, EncodeError> {
    let profile = &target.profile;
    if call.kind == CallKind::Locate {
        let written = wire::write_locate_request(buffer, profile, extras.id, sizes);
        return written.map(Unwritten::from);
    }
    with_contexts(target, call, extras, |contexts| {
        let head = RequestHead {
            id: extras.id,
            response: call.response,
            operation: call.operation,
            contexts,
        };
        wire::write_request(buffer, profile, &head, sizes, call.arguments)
    })
}
