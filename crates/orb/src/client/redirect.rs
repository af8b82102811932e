//! Where a call goes: to the reference's own addresses, or to those that a server has named instead (location
//! forwards).

use std::sync::Arc;

use super::call::Call;
use super::reply::{Outcome, Reply};
use super::retry::{may_rebind, may_return_to_origin};
use super::target::Target;
use super::times::wait_for_reply_start;
use super::{Client, Deadlines};
use crate::limits::FORWARDS_MAX;
use crate::reference::{Inner, Routes};
use crate::{Completion, SystemException, minor};
use crate::{raise, raise::own};

/// Calls the object of `origin` and follows forwards until a server replies.
#[inline]
pub(crate) fn call_object(
    client: &Client,
    origin: &Inner,
    call: &Call<'_>,
) -> Result<Reply, SystemException> {
    let replied = call_directly(client, origin, call);
    if let Err(exception) = &replied {
        std::hint::cold_path();
        trace_raised(client, origin, call, *exception);
    }
    replied
}

/// Traces the exception that a call ended in.
#[cold]
pub(super) fn trace_raised(
    client: &Client,
    origin: &Inner,
    call: &Call<'_>,
    exception: SystemException,
) {
    if client.trace.is_on() {
        let key = origin.key().unwrap_or_default();
        client
            .trace
            .raised(call.number, call.operation, key, exception);
    }
}

/// A call without deadlines at the reference's own addresses ends with its first attempt; all else is in
/// [`follow_redirects`].
#[inline]
fn call_directly(
    client: &Client,
    origin: &Inner,
    call: &Call<'_>,
) -> Result<Reply, SystemException> {
    let origin = origin.current();
    if call.needs_time() || origin.is_forwarded() {
        std::hint::cold_path();
        return follow_redirects(client, origin, call, None);
    }
    let targets = origin.routes()?.choose(client, call)?;
    match client.attempt(origin, targets, call, origin.is_bound(), Deadlines::NONE) {
        Ok(Outcome::Replied(reply)) => {
            origin.bind();
            Ok(reply)
        }
        other => {
            std::hint::cold_path();
            follow_redirects(client, origin, call, Some(other))
        }
    }
}

/// `first`: what the first attempt returned, if it has been made at the reference's own addresses.
#[inline(never)]
fn follow_redirects(
    client: &Client,
    mut origin: &Inner,
    call: &Call<'_>,
    mut first: Option<Result<Outcome, SystemException>>,
) -> Result<Reply, SystemException> {
    let deadlines = if call.needs_time() {
        Deadlines::begin(client, call)?
    } else {
        Deadlines::NONE
    };
    let is_bound = origin.is_bound();
    let may_rebind = may_rebind(call.policies, is_bound);
    let mut forwarded: Option<Arc<Routes>> = match first {
        None => origin.forwarded(),
        Some(_) => None,
    };
    for _ in 0..FORWARDS_MAX {
        let routes = match &forwarded {
            Some(routes) => &**routes,
            None => origin.routes()?,
        };
        let targets = routes.choose(client, call)?;
        let outcome = match first.take() {
            Some(outcome) => outcome,
            None => client.attempt(origin, targets, call, is_bound, deadlines),
        };
        match outcome {
            Ok(Outcome::Replied(reply)) => {
                origin.bind();
                wait_for_reply_start(client, call.times);
                return Ok(reply);
            }
            Ok(Outcome::Forwarded(..)) if !may_rebind => {
                return Err(raise::rebind(minor::NONE, Completion::No));
            }
            Ok(Outcome::Forwarded(ior, is_for_good)) => {
                let routes = Arc::new(origin.resolve(&ior)?);
                if is_for_good && let Some(successor) = origin.give_way(&ior, &routes) {
                    (origin, forwarded) = (successor, None);
                    continue;
                }
                origin.remember(Some(Arc::clone(&routes)));
                forwarded = Some(routes);
            }
            Err(exception)
                if forwarded.is_some() && may_rebind && may_return_to_origin(exception) =>
            {
                origin.remember(None);
                forwarded = None;
            }
            Err(exception) => return Err(exception),
        }
    }
    Err(raise::transient(own::FORWARD_CIRCLE, Completion::No))
}

/// Calls `then` with the targets of a request of this reference: the forwarded-to ones if a forward holds.
pub(crate) fn with_current_targets<T>(
    client: &Client,
    origin: &Inner,
    call: &Call<'_>,
    then: impl FnOnce(&Arc<[Target]>) -> T,
) -> Result<T, SystemException> {
    let current = origin.current();
    let forwarded = current.forwarded();
    let routes = match &forwarded {
        Some(routes) => &**routes,
        None => current.routes()?,
    };
    Ok(then(routes.choose(client, call)?))
}
