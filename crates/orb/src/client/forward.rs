//! Where a call goes: to the reference's own addresses, or to those that a server has named instead.

use std::sync::Arc;

use super::exchange::{Attempt, Call, Reply};
use super::{Client, Deadlines};
use crate::limits::FORWARDS_MAX;
use crate::policy::RebindMode;
use crate::reference::{Inner, Routes};
use crate::{Completion, SystemException, SystemExceptionKind, minor};
use crate::{raise, raise::own};

/// Calls the object of `origin` and follows forwards until a server replies.
pub(crate) fn follow_forwards(
    client: &Client,
    origin: &Inner,
    call: &Call<'_>,
) -> Result<Reply, SystemException> {
    follow(client, origin, call).inspect_err(|exception| tell(client, origin, call, *exception))
}

/// Tells the trace what a call has ended in.
pub(super) fn tell(client: &Client, origin: &Inner, call: &Call<'_>, exception: SystemException) {
    if client.trace.is_on() {
        let key = origin.key().unwrap_or_default();
        client
            .trace
            .raised(call.number, call.operation, key, exception);
    }
}

fn follow(client: &Client, origin: &Inner, call: &Call<'_>) -> Result<Reply, SystemException> {
    let mut origin = origin.current();
    let now = client.transport.now();
    let deadlines = Deadlines::of(client, call, now);
    let now = client.start(call, now, deadlines)?;
    let is_bound = origin.is_bound();
    let may_rebind = !is_bound || call.policies.rebind() == RebindMode::Transparent;
    let mut forwarded: Option<Arc<Routes>> = origin.forwarded();
    for _ in 0..FORWARDS_MAX {
        let routes = match &forwarded {
            Some(routes) => routes,
            None => origin.routes()?,
        };
        let targets = routes.choose(client, call)?;
        match client.call(targets, call, is_bound, now, deadlines) {
            Ok(Attempt::Replied(reply)) => {
                origin.bind();
                client.wait_for_reply_start(call);
                return Ok(reply);
            }
            Ok(Attempt::Forwarded(..)) if !may_rebind => {
                return Err(raise::rebind(minor::NONE, Completion::No));
            }
            Ok(Attempt::Forwarded(ior, is_for_good)) => {
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
