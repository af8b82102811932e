//! The service contexts that this ORB reads: one table, one reader each. Those of other ids are passed over.
//!
//! | id | name | message | reader | used by |
//! | --- | --- | --- | --- | --- |
//! | 1 | CodeSets | request | [`code_sets`] | the connection, for all strings that follow |
//! | 5 | BI_DIR_IIOP | request | [`listen_points`] | the connection, for references that lead to its opener |
//! | 7 | INVOCATION_POLICIES | request | [`times`] | the server, for early and late requests |
//! | 10 | RTCorbaPriority | request | [`priority`] | the server, for the servant's thread |
//! | 11 | RTCorbaPriorityRange | `_bind_priority_band` | [`priority_range`] | the lane, which must serve the range |
//! | 14 | ExceptionDetailMessage | reply | `exception_detail::receive` | the caller, by [`crate::exception_detail`] |
//! | 0x44570003 | DeckwatchHops | request | `hops_of` | services, by [`crate::PoaCurrent::hops`] |
//! | 0x44570004 | DeckwatchPassedBy | request | `hops_of` | services, by [`crate::outward`] |
//! | any | - | request, reply | - | interceptors; SchedulingInfo (30) is read by those of the scheduling crate |

use deckwatch_cdr::CharSet;
use deckwatch_giop::invocation::Times;
use deckwatch_giop::ior::code_sets::CodeSetContext;
use deckwatch_giop::{
    Request, ServiceContext, context_id, parse_priority_context, parse_priority_range_context,
};

use super::hops::hops_of;
use super::written::echoed_priority;
use crate::rt::Priority;
use crate::{Completion, SystemException, minor, raise};

/// What of a request the whole of its serving needs: the priority that its reply carries as it came, how many services
/// have passed it on, and the octets of their numbers.
#[inline]
pub(crate) fn carried<'r>(request: &Request<'r>) -> (Option<ServiceContext<'r>>, (u8, &'r [u8])) {
    if request.contexts.is_empty() {
        return (None, (0, &[]));
    }
    (echoed_priority(request), hops_of(request))
}

/// The code set of `string` that a request announces for its connection.
///
/// # Errors
/// CODESET_INCOMPATIBLE for one that this ORB does not have.
pub(crate) fn code_sets(request: &Request<'_>) -> Result<Option<CharSet>, SystemException> {
    let Some(data) = request.contexts.find(context_id::CODE_SETS) else {
        return Ok(None);
    };
    let chars = CodeSetContext::from_octets(data)?.char_set();
    chars.map(Some).ok_or(raise::codeset_incompatible(
        minor::CODE_SET_UNSUPPORTED,
        Completion::No,
    ))
}

/// Where the opener of a bidirectional connection listens: the encapsulation.
pub(crate) fn listen_points<'r>(request: &Request<'r>) -> Option<&'r [u8]> {
    request.contexts.find(context_id::BI_DIR_IIOP)
}

/// The start and end times of a request, if it has any.
///
/// # Errors
/// MARSHAL if they cannot be read.
#[inline]
pub(crate) fn times(request: &Request<'_>) -> Result<Option<Times>, SystemException> {
    if request.contexts.is_empty() {
        return Ok(None);
    }
    match request.contexts.find(context_id::INVOCATION_POLICIES) {
        None => Ok(None),
        Some(data) => parse_times(data),
    }
}

fn parse_times(data: &[u8]) -> Result<Option<Times>, SystemException> {
    let times = Times::parse(data)?;
    Ok((!times.is_empty()).then_some(times))
}

/// The priority that a request carries.
///
/// # Errors
/// MARSHAL if it cannot be read, BAD_PARAM for a negative one.
pub(crate) fn priority(request: &Request<'_>) -> Result<Option<Priority>, SystemException> {
    let Some(data) = request.contexts.find(context_id::RT_CORBA_PRIORITY) else {
        return Ok(None);
    };
    Priority::try_from(parse_priority_context(data)?).map(Some)
}

/// The lowest and the highest priority of a connection.
///
/// # Errors
/// MARSHAL if they cannot be read.
pub(crate) fn priority_range(request: &Request<'_>) -> Result<Option<(i16, i16)>, SystemException> {
    let Some(data) = request.contexts.find(context_id::RT_CORBA_PRIORITY_RANGE) else {
        return Ok(None);
    };
    Ok(Some(parse_priority_range_context(data)?))
}
