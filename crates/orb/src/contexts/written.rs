//! The service contexts that this ORB writes, in their order: one table, one writer each.
//!
//! | id | name | message | written when | data from | clause |
//! | --- | --- | --- | --- | --- | --- |
//! | 5 | BI_DIR_IIOP | a bidirectional connection's first | opened here | the lane's listen points | CORBA 3.3-2, 9.8 |
//! | 1 | CodeSets | a connection's first request | it offers them | the target's profile | CORBA 3.3-2, 7.7.1 |
//! | 7 | INVOCATION_POLICIES | request | it has times | policies in force, clock bound | CORBA 3.3-1, 17.3.3 |
//! | 10 | RTCorbaPriority | request | CLIENT_PROPAGATED | the calling thread's priority | PriorityModelPolicy |
//! | 10 | RTCorbaPriority | reply | its request had one | the request | PriorityModelPolicy |
//! | 11 | RTCorbaPriorityRange | `_bind_priority_band` | always | the binding's band | PriorityBandedConnectionPolicy |
//! | 14 | ExceptionDetailMessage | reply | a system exception has words | [`explain_exception`] | CORBA 3.3-2, 7.7.1 |
//! | 0x44570003 | DeckwatchHops | request | a service passes a request on | [`crate::ObjectRef::with_hops`] | - |
//! | 0x44570004 | DeckwatchPassedBy | request | a service passes a request on | [`crate::outward`] | - |
//! | any | - | request, reply | an interceptor adds it | the interceptor | CORBA 3.3-1, 16 |
//!
//! [`explain_exception`]: crate::explain_exception
//!
//! BI_DIR_IIOP is the first: TAO 2 obeys the first context that it knows, and no other.

use deckwatch_giop::invocation::TIMES_SIZE_MAX;
use deckwatch_giop::{
    Request, ServiceContext, context_id, priority_context, priority_range_context,
};

use super::ContextList;
use crate::client::{Call, CallKind, RequestExtras, Target};

/// Whether a request has any service context.
#[inline]
pub(crate) fn has_any(target: &Target, call: &Call<'_>, extras: &RequestExtras<'_>) -> bool {
    let sends_code_sets = extras.sends_code_sets && target.profile.code_sets.is_some();
    call.times.is_some()
        || sends_code_sets
        || extras.listen_points.is_some()
        || !call.contexts.is_empty()
        || (target.carries_priority && call.priority.is_some())
        || call.kind == CallKind::BindBand
}

/// Calls `then` with the service contexts of a request.
pub(crate) fn with_contexts<T>(
    target: &Target,
    call: &Call<'_>,
    extras: &RequestExtras<'_>,
    then: impl FnOnce(&[ServiceContext<'_>]) -> T,
) -> T {
    let mut times_octets = [0; TIMES_SIZE_MAX];
    let times = call.times.map(|times| times.write(&mut times_octets));
    let code_sets = target.profile.code_sets.filter(|_| extras.sends_code_sets);
    let priority = call.priority.filter(|_| target.carries_priority);
    let priority = priority.map(|priority| priority_context(priority.value()));
    let band = target.binding.quality().band;
    let band = band.filter(|_| call.kind == CallKind::BindBand);
    let band = band.map(|band| priority_range_context(band.low.value(), band.high.value()));
    let own = [
        (context_id::BI_DIR_IIOP, extras.listen_points),
        (context_id::INVOCATION_POLICIES, times),
        (context_id::CODE_SETS, octets(&code_sets)),
        (context_id::RT_CORBA_PRIORITY, octets(&priority)),
        (context_id::RT_CORBA_PRIORITY_RANGE, octets(&band)),
    ];
    let mut contexts = ContextList::new();
    for (id, data) in own {
        if let Some(data) = data {
            contexts.push(id, data);
        }
    }
    for (id, data) in call.contexts {
        contexts.push(*id, data);
    }
    then(contexts.as_slice())
}

/// The priority of a request, which its reply carries as it came.
pub(crate) fn echoed_priority<'r>(request: &Request<'r>) -> Option<ServiceContext<'r>> {
    if request.contexts.is_empty() {
        return None;
    }
    let id = context_id::RT_CORBA_PRIORITY;
    let data = request.contexts.find(id)?;
    Some(ServiceContext { id, data })
}

fn octets<T: AsRef<[u8]>>(data: &Option<T>) -> Option<&[u8]> {
    data.as_ref().map(AsRef::as_ref)
}
