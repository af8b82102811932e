//! A call whose reply is fetched later: its connection waits for the reply, and no thread does.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use deckwatch_cdr::{EncodeError, Writer};
use deckwatch_giop::{ReplyStatus, Response};

use super::exchange::{Attempt, Failure, Reply};
use super::exchange::{Call, CallKind};
use super::forward::{follow_forwards, tell};
use super::oneway::first_target;
use super::{Client, ClientConnection, Deadlines};
use crate::connection::Inbound;
use crate::counters::Counter;
use crate::interceptor::{ClientFlow, Ending, completed};
use crate::limits::{DEFERRED_MAX, FORWARDS_MAX};
use crate::orb::OrbCore;
use crate::policy::{Overrides, Policy, RebindMode};
use crate::reference::{Inner, Target};
use crate::rt::Priority;
use crate::rt::scheduling::Departure;
use crate::trace::CallNumber;
use crate::{Completion, SystemException, minor, raise, raise::own};

/// A request that has been sent and whose reply has not been fetched.
pub(crate) struct Deferred {
    orb: Arc<OrbCore>,
    target: Target,
    request_id: u32,
    policies: Overrides,
    priority: Option<Priority>,
    departure: Departure,
    number: CallNumber,
    deadlines: Deadlines,
    /// The connection it was sent over, until the reply is there.
    waiting: Option<(ClientConnection, Inbound)>,
    /// What has become of it.
    ended: Option<Result<Reply, Failure>>,
    /// Its way through the interceptors, which ends when its response is fetched.
    flow: Option<RefCell<ClientFlow>>,
}

impl Deferred {
    /// Sends the request of `call` over a connection that stays its own until the reply has come.
    ///
    /// # Errors
    /// NO_RESOURCES above [`DEFERRED_MAX`]; else what kept the request from being sent.
    pub(crate) fn send(
        orb: &Arc<OrbCore>,
        origin: &Inner,
        call: &Call<'_>,
    ) -> Result<Self, SystemException> {
        let client = &orb.client;
        if client.deferred.fetch_add(1, Ordering::Relaxed) >= DEFERRED_MAX {
            client.deferred.fetch_sub(1, Ordering::Relaxed);
            return Err(raise::no_resources(0, Completion::No));
        }
        Self::send_counted(orb, origin, call).inspect_err(|exception| {
            client.deferred.fetch_sub(1, Ordering::Relaxed);
            tell(client, origin, call, *exception);
        })
    }

    fn send_counted(
        orb: &Arc<OrbCore>,
        origin: &Inner,
        call: &Call<'_>,
    ) -> Result<Self, SystemException> {
        let Some(all) = orb.client.interceptors.client() else {
            return Self::send_once(orb, origin, call);
        };
        for _ in 0..FORWARDS_MAX {
            let target = first_target(&orb.client, origin, call)?;
            let ending = match ClientFlow::begin(all, origin, &target, call) {
                Ok(mut flow) => {
                    let contexts = flow.request_contexts();
                    let call = Call {
                        contexts: &contexts,
                        ..*call
                    };
                    match Self::send_once(orb, origin, &call) {
                        Ok(mut sent) => {
                            sent.flow = Some(RefCell::new(flow));
                            return Ok(sent);
                        }
                        Err(exception) => {
                            let ending = Ending::System(exception);
                            flow.end(&ending).unwrap_or(ending)
                        }
                    }
                }
                Err(ending) => ending,
            };
            if let Attempt::Forwarded(ior, _) = ending.into_attempt()? {
                let routes = origin.current().resolve(&ior)?;
                origin.current().remember(Some(Arc::new(routes)));
            }
        }
        Err(raise::transient(own::FORWARD_CIRCLE, Completion::No))
    }

    fn send_once(
        orb: &Arc<OrbCore>,
        origin: &Inner,
        call: &Call<'_>,
    ) -> Result<Self, SystemException> {
        let (client, current) = (&orb.client, origin.current());
        let forwarded = current.forwarded();
        let routes = match &forwarded {
            Some(routes) => routes,
            None => current.routes()?,
        };
        let now = client.transport.now();
        let deadlines = Deadlines::of(client, call, now);
        client.start(call, now, deadlines)?;
        let targets = routes.choose(client, call)?;
        let may_reconnect =
            !current.is_bound() || call.policies.rebind() != RebindMode::NoReconnect;
        let mut last = raise::transient(minor::NO_USABLE_PROFILE, Completion::No);
        for target in &**targets {
            match client.send_deferred(target, call, may_reconnect, deadlines) {
                Ok((connection, request_id)) => {
                    let inbound = Inbound::new(client.sizes.message_max, None);
                    return Ok(Self {
                        orb: Arc::clone(orb),
                        target: target.clone(),
                        request_id,
                        policies: call.policies,
                        departure: call.departure,
                        priority: call.priority,
                        number: call.number,
                        deadlines,
                        waiting: Some((connection, inbound)),
                        ended: None,
                        flow: None,
                    });
                }
                Err(failure) if failure.may_retry => last = failure.exception,
                Err(failure) => return Err(failure.exception),
            }
        }
        Err(last)
    }

    /// Whether [`Deferred::fetch`] would not wait for the server.
    pub(crate) fn poll(&mut self) -> bool {
        let now = self.orb.client.transport.now();
        self.look_until(Some(now));
        let is_late = self.deadlines.reply.is_some_and(|reply| reply <= now);
        if is_late && self.ended.is_none() {
            self.give_up();
        }
        self.ended.is_some()
    }

    /// Waits for the reply. A server that has certainly not served the request, or has named another, is asked as by a call that is
    /// not deferred, in the time that is left: `operation` and `arguments` are those the request was sent with.
    pub(crate) fn fetch(
        mut self,
        origin: &Inner,
        operation: &str,
        arguments: &dyn Fn(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<Reply, SystemException> {
        self.look_until(self.deadlines.reply);
        if self.ended.is_none() {
            self.give_up();
        }
        let client = &self.orb.client;
        let policies = self.policies_left();
        let call = Call {
            operation,
            arguments,
            response: Response::Outcome,
            kind: CallKind::TwoWay,
            policies,
            times: client.times(&policies),
            departure: self.departure,
            priority: self.priority,
            number: self.number,
            contexts: &[],
            flow: None,
            is_intercepted: false,
        };
        let flow = self.flow.take();
        let has_flow = flow.is_some();
        let ended = match self.ended.take() {
            Some(Ok(reply)) if reply.status() == ReplyStatus::NeedsAddressingMode => {
                reply.give_back(client);
                end_for_retry(flow)?;
                return follow_forwards(client, origin, &call);
            }
            Some(Ok(reply)) => client
                .interpret(reply, flow.as_ref())
                .map_err(Failure::last),
            Some(Err(failure)) => Err(failure),
            None => Err(client.waited_in_vain()),
        };
        let ended = match (ended, flow) {
            (Err(failure), flow) if failure.may_retry => {
                end_for_retry(flow)?;
                Err(failure)
            }
            (ended, Some(flow)) => {
                let outcome = ended.map_err(|failure| failure.exception);
                completed(client, flow, outcome).map_err(Failure::last)
            }
            (ended, None) => ended,
        };
        match ended {
            Ok(Attempt::Replied(reply)) => {
                origin.current().bind();
                client.wait_for_reply_start(&call);
                Ok(reply)
            }
            Ok(Attempt::Forwarded(ior, _)) if has_flow => {
                // Asked again a server would say so again, and an interceptor would not.
                let current = origin.current();
                if current.is_bound() && call.policies.rebind() != RebindMode::Transparent {
                    return Err(raise::rebind(minor::NONE, Completion::No));
                }
                let routes = current.resolve(&ior)?;
                current.remember(Some(Arc::new(routes)));
                follow_forwards(client, origin, &call)
            }
            Ok(Attempt::Forwarded(..)) => follow_forwards(client, origin, &call),
            Err(failure) if failure.may_retry => follow_forwards(client, origin, &call),
            Err(failure) => {
                tell(client, origin, &call, failure.exception);
                Err(failure.exception)
            }
        }
    }

    /// The policies it was sent with, and no more time than is left.
    fn policies_left(&self) -> Overrides {
        let Some(reply) = self.deadlines.reply else {
            return self.policies;
        };
        let left = reply.since(self.orb.client.transport.now());
        Overrides::one(Policy::RelativeRoundtripTimeout(left)).over(self.policies)
    }

    /// Reads what has come, and until then what comes.
    fn look_until(&mut self, until: Option<crate::transport::Instant64>) {
        let Some((connection, mut inbound)) = self.waiting.take() else {
            return;
        };
        let client = &self.orb.client;
        let asked = (self.request_id, &self.target.profile);
        match client.receive_until(&connection, &mut inbound, asked, until) {
            Ok(None) => {
                inbound.rest(&client.slab);
                self.waiting = Some((connection, inbound));
            }
            Ok(Some(reply)) => {
                if !inbound.is_within_message() {
                    let now = client.transport.now();
                    client.give_back(&self.target.binding, connection, now);
                }
                inbound.discard(&client.slab);
                self.ended = Some(Ok(reply));
            }
            Err(failure) => {
                let (number, is_within) = (connection.life.number, inbound.is_within_message());
                client
                    .trace
                    .attempt_failed(number, self.number, failure.exception, is_within);
                inbound.discard(&client.slab);
                self.ended = Some(Err(failure));
            }
        }
    }

    fn give_up(&mut self) {
        let failure = self.orb.client.waited_in_vain();
        self.abandon();
        self.ended = Some(Err(failure));
    }

    /// Tells the server that nobody waits any more, and keeps the connection where its reply hurts nobody.
    fn abandon(&mut self) {
        let Some((connection, mut inbound)) = self.waiting.take() else {
            return;
        };
        let client = &self.orb.client;
        let is_within = inbound.is_within_message();
        inbound.discard(&client.slab);
        if !is_within && client.cancel(&connection, &self.target.profile, self.request_id) {
            client.set_aside(&self.target.binding, connection);
        }
    }
}

/// The request is sent again: its interceptors see the end of the first attempt.
fn end_for_retry(flow: Option<RefCell<ClientFlow>>) -> Result<(), SystemException> {
    let changed = flow.and_then(|flow| flow.into_inner().end(&Ending::Retry));
    match changed {
        Some(Ending::System(exception)) => Err(exception),
        _ => Ok(()),
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        if let Some(flow) = self.flow.take() {
            let _nobody_waits = flow.into_inner().end(&Ending::Abandoned);
        }
        self.abandon();
        let client = &self.orb.client;
        if let Some(Ok(reply)) = self.ended.take() {
            reply.give_back(client);
        }
        client.deferred.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Client {
    /// Sends a request over a connection that no other call uses; a cached one that turns out to be closed is replaced once.
    fn send_deferred(
        &self,
        target: &Target,
        call: &Call<'_>,
        may_reconnect: bool,
        deadlines: Deadlines,
    ) -> Result<(ClientConnection, u32), Failure> {
        self.counters.count(Counter::RequestsSent);
        if let Some(mut connection) = self.take_idle(&target.binding) {
            match self.send(&mut connection, target, call, deadlines.request) {
                Ok(id) => return Ok((connection, id)),
                Err(failure) if failure.may_retry => self.counters.count(Counter::StaleConnections),
                Err(failure) => return Err(failure),
            }
        }
        let mut connection = self.connect_for(target, call, may_reconnect, deadlines.request)?;
        let id = self.send(&mut connection, target, call, deadlines.request)?;
        Ok((connection, id))
    }
}

impl std::fmt::Debug for Deferred {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deferred")
            .field("request_id", &self.request_id)
            .finish_non_exhaustive()
    }
}
