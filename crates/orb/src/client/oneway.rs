//! One-way calls: all of them towards one endpoint go over one connection, in the order they were made.

use std::cell::RefCell;
use std::sync::Arc;

use super::call::{Attempt, Call, Failure, Outcome, Reply};
use super::collocated::may_be_collocated;
use super::redirect::{may_be_elsewhere, trace_raised};
use super::{Binding, Client, ClientConnection, Deadlines};
use crate::counters::Counter;
use crate::interceptor::{ClientFlow, Ending, Registered};
use crate::limits::{FORWARDS_MAX, ONEWAY_WRITE_TIMEOUT};
use crate::policy::RebindMode;
use crate::reference::{Inner, Target};
use crate::transport::Instant64;
use crate::{
    Completion, SystemException, SystemExceptionKind as Kind, minor, own_minor as own, raise,
};
use deckwatch_sync::PiMutexGuard;

/// As [`send_oneway`] for a caller that does not want to know whether the request could be sent; what it has itself
/// done wrong it is told all the same.
pub(super) fn send_oneway_unasked(
    client: &Client,
    origin: &Inner,
    call: &Call<'_>,
) -> Result<(), SystemException> {
    let lost = |exception: &SystemException| {
        matches!(
            exception.kind,
            Kind::Transient | Kind::CommFailure | Kind::Timeout | Kind::NoResources
        )
    };
    match send_oneway(client, origin, call) {
        Err(exception) if lost(&exception) => {
            client.counters.count(Counter::OnewaysLost);
            Ok(())
        }
        done => done,
    }
}

/// Hands a one-way to the transport: at the place a forward has named while that can be reached, else at the reference's own.
pub(crate) fn send_oneway(
    client: &Client,
    origin: &Inner,
    call: &Call<'_>,
) -> Result<(), SystemException> {
    send(client, origin, call)
        .inspect_err(|exception| trace_raised(client, origin, call, *exception))
}

fn send(client: &Client, origin: &Inner, call: &Call<'_>) -> Result<(), SystemException> {
    if let Some(all) = client
        .interceptors
        .client()
        .filter(|_| !call.is_intercepted)
    {
        return with_interceptors(client, all, origin, call, |call| {
            send_to(client, origin, call)
        });
    }
    send_to(client, origin, call)
}

fn send_to(client: &Client, origin: &Inner, call: &Call<'_>) -> Result<(), SystemException> {
    let origin = origin.current();
    let is_bound = origin.is_bound();
    if let Some(routes) = origin.forwarded() {
        let may_rebind = !is_bound || call.policies.rebind() == RebindMode::Transparent;
        match client.send_to_first(routes.choose(client, call)?, call, is_bound) {
            Err(exception) if may_rebind && may_be_elsewhere(exception) => origin.remember(None),
            done => return done,
        }
    }
    let targets = origin.routes()?.choose(client, call)?;
    client.send_to_first(targets, call, is_bound)?;
    origin.bind();
    Ok(())
}

/// Sends a one-way that nobody waits for by `send`, with what interceptors add to it; one of them may send it elsewhere.
pub(super) fn with_interceptors(
    client: &Client,
    all: &Arc<Registered>,
    origin: &Inner,
    call: &Call<'_>,
    mut send: impl FnMut(&Call<'_>) -> Result<(), SystemException>,
) -> Result<(), SystemException> {
    for _ in 0..FORWARDS_MAX {
        let target = first_target(client, origin, call)?;
        let outcome = match ClientFlow::begin(all, origin, &target, call, false) {
            Ok(mut flow) => {
                let contexts = flow.request_contexts();
                let sent = send(&Call {
                    contexts: &contexts,
                    is_intercepted: true,
                    ..*call
                });
                let ending = sent.map_or_else(Ending::System, |()| Ending::Sent);
                match flow.end(&ending) {
                    None => return sent,
                    Some(changed) => changed.into_outcome(),
                }
            }
            Err(ending) => ending.into_outcome(),
        };
        match outcome? {
            Outcome::Forwarded(ior, _) => {
                let routes = origin.current().resolve(&ior)?;
                origin.current().remember(Some(Arc::new(routes)));
            }
            Outcome::Replied(reply) => reply.give_back(client),
        }
    }
    Err(raise::transient(own::FORWARD_CIRCLE, Completion::No))
}

/// Where a request of this reference goes first.
pub(super) fn first_target(
    client: &Client,
    origin: &Inner,
    call: &Call<'_>,
) -> Result<Target, SystemException> {
    let current = origin.current();
    let forwarded = current.forwarded();
    let routes = match &forwarded {
        Some(routes) => &**routes,
        None => current.routes()?,
    };
    let targets = routes.choose(client, call)?;
    Ok(targets[0].clone())
}

impl Client {
    /// Sends a one-way to the first of `targets` that can be reached, behind those sent there before.
    fn send_to_first(
        &self,
        targets: &[Target],
        call: &Call<'_>,
        is_bound: bool,
    ) -> Result<(), SystemException> {
        let may_reconnect = !is_bound || call.policies.rebind() != RebindMode::NoReconnect;
        let mut last = raise::transient(minor::NO_USABLE_PROFILE, Completion::No);
        for target in targets {
            let sent = if let Some(lane) = may_be_collocated(target, call) {
                self.serve_oneway_here(&lane, target, call)
            } else if let Some(two_way) = self.two_way(target, call) {
                two_way.and_then(|over| {
                    self.begin(call).map_err(Failure::last)?;
                    self.counters.count(Counter::OnewaysSent);
                    self.send_two_way(&over, target, call, over.next_id())
                })
            } else {
                let deadlines = Deadlines::NONE;
                self.send_in_order(Attempt {
                    target,
                    call,
                    may_reconnect,
                    deadlines,
                })
            };
            match sent {
                Ok(()) => return Ok(()),
                Err(failure) if failure.may_retry => last = failure.exception,
                Err(failure) => return Err(failure.exception),
            }
        }
        Err(last)
    }

    fn send_in_order(&self, mut attempt: Attempt<'_>) -> Result<(), Failure> {
        if attempt.call.needs_time() {
            attempt.deadlines = self.begin(attempt.call).map_err(Failure::last)?;
        }
        let mut kept = self.turn(&attempt.target.binding, attempt.deadlines.request)?;
        self.send_over(&mut kept, &attempt)
    }

    /// Sends a one-way over the connection that is kept for them, or a new one.
    pub(super) fn send_over(
        &self,
        kept: &mut Option<ClientConnection>,
        attempt: &Attempt<'_>,
    ) -> Result<(), Failure> {
        let (target, call, limit) = (attempt.target, attempt.call, attempt.deadlines.request);
        // Before the connection is taken: nothing goes over it.
        self.require_end(call, limit)?;
        let now = self.transport.now_coarse();
        let deadline = Some(limit.unwrap_or(now.after(ONEWAY_WRITE_TIMEOUT)));
        self.counters.count(Counter::OnewaysSent);
        let cached = kept.take().filter(|cached| self.is_fresh(cached, now));
        if let Some(mut connection) = cached {
            match self.send(&mut connection, target, call, deadline) {
                Err(failure) if failure.may_retry => self.counters.count(Counter::StaleConnections),
                sent => return keep_sound(kept, connection, sent, self.transport.now_coarse()),
            }
        }
        let mut connection = self.connect_for(attempt)?;
        let sent = self.send(&mut connection, target, call, deadline);
        keep_sound(kept, connection, sent, self.transport.now_coarse())
    }

    /// A one-way whose receipt or outcome is waited for: behind those sent before it, and those made meanwhile wait.
    pub(super) fn call_in_order(&self, attempt: &Attempt<'_>) -> Result<Outcome, Failure> {
        let flow = attempt.call.flow;
        let mut kept = self.turn(&attempt.target.binding, attempt.deadlines.request)?;
        self.counters.count(Counter::OnewaysSent);
        let now = self.transport.now_coarse();
        let cached = kept.take().filter(|cached| self.is_fresh(cached, now));
        if let Some(mut connection) = cached {
            match self.exchange(&mut connection, attempt) {
                Err(failure) if failure.may_retry => self.counters.count(Counter::StaleConnections),
                asked => return self.keep(&mut kept, connection, asked, flow),
            }
        }
        let mut connection = self.connect_for(attempt)?;
        let asked = self.exchange(&mut connection, attempt);
        self.keep(&mut kept, connection, asked, flow)
    }

    /// Waits until those who were first have sent theirs, or have been answered.
    fn turn<'b>(
        &self,
        binding: &'b Binding,
        deadline: Option<Instant64>,
    ) -> Result<PiMutexGuard<'b, Option<ClientConnection>>, Failure> {
        let taken = self.lock_until(&binding.oneway, "client.oneway", deadline);
        let mut kept = taken
            .ok_or_else(|| Failure::last(self.timed_out(own::TIMED_OUT_SENDING, Completion::No)))?;
        binding.send_queued_before(&mut kept);
        Ok(kept)
    }

    /// Keeps the connection for the one-ways that follow where it is sound.
    fn keep(
        &self,
        kept: &mut Option<ClientConnection>,
        mut connection: ClientConnection,
        asked: Result<(Reply, bool), Failure>,
        flow: Option<&RefCell<ClientFlow>>,
    ) -> Result<Outcome, Failure> {
        connection.last_used = self.transport.now_coarse();
        let is_sound = match &asked {
            Ok((_, is_clean)) => *is_clean,
            Err(failure) => failure.keeps_connection,
        };
        *kept = is_sound.then_some(connection);
        let (reply, _) = asked?;
        self.interpret(reply, flow).map_err(Failure::last)
    }
}

/// Keeps a connection for the one-ways that follow, unless a part of a message may have gone: nothing can follow that.
fn keep_sound(
    kept: &mut Option<ClientConnection>,
    mut connection: ClientConnection,
    sent: Result<u32, Failure>,
    now: Instant64,
) -> Result<(), Failure> {
    connection.last_used = now;
    let is_sound = sent
        .as_ref()
        .map_or_else(|failure| failure.keeps_connection, |_id| true);
    *kept = is_sound.then_some(connection);
    sent.map(drop)
}
