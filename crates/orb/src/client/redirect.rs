//! Where a call goes: to the reference's own addresses, or to those that a server has named instead.

use std::cell::RefCell;
use std::sync::Arc;

use super::call::{Call, CallKind, Outcome, Reply};
use super::{Client, Deadlines};
use crate::interceptor::{ClientFlow, Registered, completed};
use crate::limits::FORWARDS_MAX;
use crate::policy::RebindMode;
use crate::reference::{Inner, Routes, Target};
use crate::{Completion, SystemException, SystemExceptionKind, minor};
use crate::{raise, raise::own};

/// Calls the object of `origin` and follows forwards until a server replies.
#[inline]
pub(crate) fn call_object(
    client: &Client,
    origin: &Inner,
    call: &Call<'_>,
) -> Result<Reply, SystemException> {
    let followed = follow(client, origin, call);
    if let Err(exception) = &followed {
        std::hint::cold_path();
        trace_raised(client, origin, call, *exception);
    }
    followed
}

/// Tells the trace what a call has ended in.
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

/// A call that nothing is said of, by its first attempt; what else there is stands apart.
#[inline]
fn follow(client: &Client, origin: &Inner, call: &Call<'_>) -> Result<Reply, SystemException> {
    let origin = origin.current();
    if call.needs_time() || origin.is_forwarded() || client.interceptors.client().is_some() {
        std::hint::cold_path();
        return follow_redirects(client, origin, call, None);
    }
    let targets = origin.routes()?.choose(client, call)?;
    match client.call(targets, call, origin.is_bound(), Deadlines::NONE) {
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

/// `first`: what the first attempt has come to, where it has been made at the reference's own addresses.
#[inline(never)]
fn follow_redirects(
    client: &Client,
    mut origin: &Inner,
    call: &Call<'_>,
    mut first: Option<Result<Outcome, SystemException>>,
) -> Result<Reply, SystemException> {
    let deadlines = match call.needs_time() {
        true => client.begin(call)?,
        false => Deadlines::NONE,
    };
    let is_bound = origin.is_bound();
    let may_rebind = !is_bound || call.policies.rebind() == RebindMode::Transparent;
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
        let outcome = match (first.take(), client.interceptors.client()) {
            (Some(outcome), _) => outcome,
            (None, Some(all)) if call.kind != CallKind::Locate => {
                intercepted(client, all, (origin, &targets[0]), call, |call| {
                    client.call(targets, call, is_bound, deadlines)
                })
            }
            _ => client.call(targets, call, is_bound, deadlines),
        };
        match outcome {
            Ok(Outcome::Replied(reply)) => {
                origin.bind();
                client.wait_for_reply_start(call.times);
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
            // Where the forwarded-to has gone, the origin is asked again.
            Err(exception) if forwarded.is_some() && may_rebind && may_be_elsewhere(exception) => {
                origin.remember(None);
                forwarded = None;
            }
            Err(exception) => return Err(exception),
        }
    }
    Err(raise::transient(own::FORWARD_CIRCLE, Completion::No))
}

/// One attempt, from the interceptors' starting points to their ending points.
fn intercepted(
    client: &Client,
    all: &Arc<Registered>,
    (origin, target): (&Inner, &Target),
    call: &Call<'_>,
    outcome: impl FnOnce(&Call<'_>) -> Result<Outcome, SystemException>,
) -> Result<Outcome, SystemException> {
    let is_synchronous = call.kind == CallKind::TwoWay;
    let flow = match ClientFlow::begin(all, origin, target, call, is_synchronous) {
        Ok(flow) => flow,
        Err(ending) => return ending.into_outcome(),
    };
    let contexts = flow.request_contexts();
    let flow = RefCell::new(flow);
    let outcome = outcome(&Call {
        contexts: &contexts,
        flow: Some(&flow),
        ..*call
    });
    completed(client, flow, outcome)
}

/// Whether an exception may come of asking at a place that the object has left; any other is the object's own answer.
pub(super) fn may_be_elsewhere(exception: SystemException) -> bool {
    let is_of_the_way = matches!(
        exception.kind,
        SystemExceptionKind::Transient
            | SystemExceptionKind::CommFailure
            | SystemExceptionKind::ObjectNotExist
    );
    is_of_the_way && exception.completed == Completion::No
}
