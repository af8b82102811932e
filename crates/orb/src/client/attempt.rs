//! One call: addresses tried in turn, a closed connection replaced once, and what the reply says to do.

use std::cell::RefCell;
use std::sync::Arc;

use deckwatch_cdr::Parse;
use deckwatch_giop::{Ior, ReplyStatus};

use super::bidirectional::may_be_two_way;
use super::call::{Attempt, Call, CallKind, Failure, Outcome, Reply};
use super::collocated::may_be_collocated;
use super::{Client, ClientConnection, Deadlines};
use crate::counters::Counter;
use crate::interceptor::ClientFlow;
use crate::limits::CONNECT_TIMEOUT;
use crate::policy::RebindMode;
use crate::reference::Target;
use crate::transport::TransportError;
use crate::wire;
use crate::{Completion, SystemException, minor};
use crate::{raise, raise::own};

impl Client {
    /// Calls one of `targets` and waits for the reply. `is_bound`: one of them has been called before.
    pub(super) fn call(
        &self,
        targets: &[Target],
        call: &Call<'_>,
        is_bound: bool,
        deadlines: Deadlines,
    ) -> Result<Outcome, SystemException> {
        let may_reconnect = !is_bound || call.policies.rebind() != RebindMode::NoReconnect;
        let mut last = raise::transient(minor::NO_USABLE_PROFILE, Completion::No);
        for target in targets {
            let attempt = Attempt {
                target,
                call,
                may_reconnect,
                deadlines,
            };
            let is_elsewhere = target.here.is_none() && !may_be_two_way(target, call);
            let outcome = if is_elsewhere && call.kind != CallKind::Oneway {
                self.attempt_over_pooled(&attempt)
            } else {
                std::hint::cold_path();
                self.attempt_specially(&attempt)
            };
            match outcome {
                Ok(outcome) => return Ok(outcome),
                Err(failure) if failure.may_retry => last = failure.exception,
                Err(failure) => return Err(failure.exception),
            }
        }
        Err(last)
    }

    /// Where the call may not go over a connection that it has for itself.
    #[inline(never)]
    fn attempt_specially(&self, attempt: &Attempt<'_>) -> Result<Outcome, Failure> {
        if let Some(lane) = may_be_collocated(attempt.target, attempt.call) {
            self.serve_here(&lane, attempt)
        } else if let Some(two_way) = self.two_way(attempt.target, attempt.call) {
            two_way.and_then(|over| self.exchange_two_way(&over, attempt))
        } else if attempt.call.kind == CallKind::Oneway {
            self.call_in_order(attempt)
        } else {
            self.attempt_over_pooled(attempt)
        }
    }

    /// A cached connection that turns out to be closed is replaced by a fresh one, once.
    fn attempt_over_pooled(&self, attempt: &Attempt<'_>) -> Result<Outcome, Failure> {
        let Some(mut connection) = self.lend_idle(&attempt.target.binding) else {
            std::hint::cold_path();
            return self.attempt_over_fresh(attempt);
        };
        self.counters.count(Counter::RequestsSent);
        match self.exchange(&mut connection, attempt) {
            Ok((reply, true)) => {
                let now = connection.note_use(&*self.transport);
                drop(connection);
                self.close_idle_at(now);
                let flow = attempt.call.flow;
                self.interpret(reply, flow).map_err(Failure::last)
            }
            asked => {
                std::hint::cold_path();
                self.attempt_again(connection.into_value(), attempt, asked)
            }
        }
    }

    /// A connection from the pool has not served its call as most do.
    #[inline(never)]
    fn attempt_again(
        &self,
        connection: ClientConnection,
        attempt: &Attempt<'_>,
        asked: Result<(Reply, bool), Failure>,
    ) -> Result<Outcome, Failure> {
        match asked {
            Err(failure) if failure.may_retry => {
                drop(connection);
                self.counters.count(Counter::StaleConnections);
                self.attempt_over_fresh(attempt)
            }
            asked => self.end_exchange(connection, attempt, asked),
        }
    }

    /// Over a connection that is not there yet.
    #[inline(never)]
    fn attempt_over_fresh(&self, attempt: &Attempt<'_>) -> Result<Outcome, Failure> {
        let mut connection = self.connect_for(attempt)?;
        self.counters.count(Counter::RequestsSent);
        let asked = self.exchange(&mut connection, attempt);
        self.end_exchange(connection, attempt, asked)
    }

    /// A new connection beside those that are open; where none is, one that takes the place of the closed one.
    pub(super) fn connect_for(&self, attempt: &Attempt<'_>) -> Result<ClientConnection, Failure> {
        let (binding, call) = (&attempt.target.binding, attempt.call);
        let deadline = attempt.deadlines.request;
        if !attempt.may_reconnect && Arc::strong_count(&binding.open) == 1 {
            return Err(Failure::last(raise::rebind(minor::NONE, Completion::No)));
        }
        let within = self
            .transport
            .now()
            .after(call.policies.connection().unwrap_or(CONNECT_TIMEOUT));
        let until = deadline.map_or(within, |deadline| deadline.min(within));
        let connected = self.connect(binding, call.number, until);
        let connection = connected.map_err(|error| {
            let minor = match error {
                TransportError::TimedOut if deadline.is_some_and(|deadline| deadline <= within) => {
                    return Failure::last(
                        self.timed_out(own::TIMED_OUT_CONNECTING, Completion::No),
                    );
                }
                TransportError::Exhausted => {
                    return Failure::last(raise::no_resources(0, Completion::No));
                }
                TransportError::Denied if binding.quality.options.packets.is_some() => {
                    let denied = own::NETWORK_PRIORITY_DENIED;
                    return Failure::last(raise::no_permission(denied, Completion::No));
                }
                TransportError::TimedOut => own::CONNECT_TIMED_OUT,
                TransportError::Refused => own::CONNECT_REFUSED,
                TransportError::UnknownHost => own::HOST_UNKNOWN,
                TransportError::Unreachable => own::HOST_UNREACHABLE,
                _ => own::CONNECT_FAILED,
            };
            Failure::of_the_way(raise::transient(minor, Completion::No))
        })?;
        match binding.quality.band {
            None => Ok(connection),
            Some(_) => self.bind_band(connection, attempt, until),
        }
    }

    /// What becomes of a connection that is in nobody's pool.
    #[inline(never)]
    fn end_exchange(
        &self,
        mut connection: ClientConnection,
        attempt: &Attempt<'_>,
        asked: Result<(Reply, bool), Failure>,
    ) -> Result<Outcome, Failure> {
        match asked {
            Ok((reply, is_clean)) => {
                if is_clean {
                    let now = connection.note_use(&*self.transport);
                    let _enough_idle = attempt.target.binding.idle.put(connection);
                    self.close_idle_at(now);
                }
                let flow = attempt.call.flow;
                self.interpret(reply, flow).map_err(Failure::last)
            }
            Err(failure) => {
                let binding = &attempt.target.binding;
                if failure.keeps_connection && connection.late.is_empty() {
                    connection.note_use(&*self.transport);
                    let _enough_idle = binding.idle.put(connection);
                } else if failure.keeps_connection {
                    self.set_aside(binding, connection);
                }
                Err(failure)
            }
        }
    }

    #[cold]
    pub(super) fn timed_out(&self, minor: u32, completed: Completion) -> SystemException {
        self.counters.count(Counter::Timeouts);
        raise::timeout(minor, completed)
    }

    #[inline]
    pub(super) fn interpret(
        &self,
        reply: Reply,
        flow: Option<&RefCell<ClientFlow>>,
    ) -> Result<Outcome, SystemException> {
        if flow.is_none() && reply.status() == ReplyStatus::NoException {
            return Ok(Outcome::Replied(reply));
        }
        std::hint::cold_path();
        self.interpret_other(reply, flow)
    }

    #[inline(never)]
    fn interpret_other(
        &self,
        reply: Reply,
        flow: Option<&RefCell<ClientFlow>>,
    ) -> Result<Outcome, SystemException> {
        if let Some(flow) = flow {
            flow.borrow_mut().note_reply(&reply);
        }
        let message = reply.message();
        let understood = match reply.status() {
            ReplyStatus::NoException | ReplyStatus::UserException => {
                return Ok(Outcome::Replied(reply));
            }
            ReplyStatus::SystemException if reply.head.is_unknown => {
                Err(raise::object_not_exist(minor::NONE, Completion::No))
            }
            ReplyStatus::SystemException => Err(wire::read_exception(reply.body(&message))),
            ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm => {
                self.counters.count(Counter::Forwards);
                let is_for_good = reply.status() == ReplyStatus::LocationForwardPerm;
                match Ior::parse(&mut reply.body(&message)) {
                    Ok(ior) if ior.is_nil() => {
                        Err(raise::inv_objref(own::FORWARD_TO_NIL, Completion::No))
                    }
                    Ok(ior) => Ok(Outcome::Forwarded(ior, is_for_good)),
                    Err(error) => Err(error.into()),
                }
            }
            // Asked again in `ask`; no other status is known.
            _ => Err(raise::comm_failure(own::ADDRESSING_REFUSED, Completion::No)),
        };
        reply.give_back(self);
        understood
    }
}
