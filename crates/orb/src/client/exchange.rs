//! One request out and its reply back: addresses tried in turn, forwards followed, a closed connection replaced once.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use deckwatch_cdr::{EncodeError, Parse, Reader, Writer};
use deckwatch_giop::{Ior, ReplyStatus, Response};

use super::{Binding, Client, ClientConnection};
use crate::connection::{Inbound, OverBudget};
use crate::counters::Counter;
use crate::limits::{CONNECT_TIMEOUT, FORWARDS_MAX, ONEWAY_WRITE_TIMEOUT};
use crate::reference::Target;
use crate::transport::{Instant64, TransportError};
use crate::wire::{self, Profile, ReplyHead};
use crate::{Completion, SystemException, SystemExceptionKind, minor};
use crate::{raise, raise::own};

/// What is asked, of whomever.
pub(crate) struct Call<'c> {
    pub(crate) operation: &'c str,
    pub(crate) arguments: &'c dyn Fn(&mut Writer<'_>) -> Result<(), EncodeError>,
    pub(crate) round_trip: Option<Duration>,
    pub(crate) connect: Option<Duration>,
}

/// A reply that the caller must read: results or a user exception, in a lent buffer.
pub(crate) struct Reply {
    buffer: Vec<u8>,
    place: Range<usize>,
    head: ReplyHead,
}

impl Reply {
    pub(crate) fn status(&self) -> ReplyStatus {
        self.head.status
    }

    pub(crate) fn body(&self) -> Reader<'_> {
        self.head.body(&self.buffer[self.place.clone()])
    }

    pub(crate) fn give_back(self, client: &Client) {
        client.slab.take_back(self.buffer);
    }
}

/// What became of one attempt at one server.
pub(crate) enum Attempt {
    Replied(Reply),
    Forwarded(Ior),
}

/// Why an attempt failed, and whether another may be made.
struct Failure {
    exception: SystemException,
    /// The server has certainly not served the request, and an other connection or address may do.
    may_retry: bool,
}

impl Failure {
    fn last(exception: SystemException) -> Self {
        Self {
            exception,
            may_retry: false,
        }
    }
}

impl Client {
    /// Calls one of `targets` and waits for the reply, until `deadline`.
    fn call(
        &self,
        targets: &[Target],
        call: &Call<'_>,
        now: Instant64,
        deadline: Option<Instant64>,
    ) -> Result<Attempt, SystemException> {
        let mut last = raise::transient(minor::NO_USABLE_PROFILE, Completion::No);
        for target in targets {
            match self.call_target(target, call, now, deadline) {
                Ok(attempt) => return Ok(attempt),
                Err(failure) if failure.may_retry => last = failure.exception,
                Err(failure) => return Err(failure.exception),
            }
        }
        Err(last)
    }

    /// A cached connection that turns out to be closed is replaced by a fresh one, once.
    fn call_target(
        &self,
        target: &Target,
        call: &Call<'_>,
        now: Instant64,
        deadline: Option<Instant64>,
    ) -> Result<Attempt, Failure> {
        if let Some(connection) = self.take_idle(&target.binding, now) {
            match self.exchange(connection, target, call, deadline) {
                Err(failure) if failure.may_retry => self.counters.count(Counter::StaleConnections),
                done => return done,
            }
        }
        let connection = self.connect_for(&target.binding, call, deadline)?;
        self.exchange(connection, target, call, deadline)
    }

    fn connect_for(
        &self,
        binding: &Binding,
        call: &Call<'_>,
        deadline: Option<Instant64>,
    ) -> Result<ClientConnection, Failure> {
        let within = self
            .transport
            .now()
            .after(call.connect.unwrap_or(CONNECT_TIMEOUT));
        let until = deadline.map_or(within, |deadline| deadline.min(within));
        self.connect(binding, until).map_err(|error| match error {
            TransportError::TimedOut if deadline.is_some_and(|deadline| deadline <= within) => {
                Failure::last(self.timed_out(Completion::No))
            }
            TransportError::Exhausted => Failure::last(raise::no_resources(0, Completion::No)),
            _ => {
                let exception = raise::transient(own::CONNECT_FAILED, Completion::No);
                Failure {
                    exception,
                    may_retry: true,
                }
            }
        })
    }

    fn exchange(
        &self,
        mut connection: ClientConnection,
        target: &Target,
        call: &Call<'_>,
        deadline: Option<Instant64>,
    ) -> Result<Attempt, Failure> {
        let request_id = connection.next_request_id();
        self.counters.count(Counter::RequestsSent);
        self.send(
            &mut connection,
            target,
            call,
            (request_id, Response::Outcome),
            deadline,
        )?;
        let mut inbound = Inbound::new(self.message_size_max, None);
        let received = self.receive(
            &connection,
            &mut inbound,
            (request_id, &target.profile),
            deadline,
        );
        let reply = match received {
            Ok(reply) => reply,
            Err(failure) => {
                inbound.discard(&self.slab);
                return Err(failure);
            }
        };
        // A connection with octets nobody asked for is not used again.
        if !inbound.is_within_message() {
            self.give_back(&target.binding, connection, self.transport.now());
        }
        self.interpret(reply).map_err(Failure::last)
    }

    fn send(
        &self,
        connection: &mut ClientConnection,
        target: &Target,
        call: &Call<'_>,
        (id, response): (u32, Response),
        deadline: Option<Instant64>,
    ) -> Result<(), Failure> {
        let mut buffer = self.slab.lend_empty();
        let says_code_sets = target.profile.knows_code_sets() && !connection.code_sets_said;
        let head = wire::RequestHead {
            id,
            response,
            operation: call.operation,
            says_code_sets,
        };
        let written = wire::write_request(
            &mut buffer,
            &target.profile,
            &head,
            self.message_size_max,
            call.arguments,
        );
        let sent = match written {
            Ok(()) => connection
                .stream
                .write_all(&buffer, deadline)
                .map_err(|error| self.send_failed(error)),
            Err(error) => Err(Failure::last(SystemException::from(error))),
        };
        self.slab.take_back(buffer);
        connection.code_sets_said |= sent.is_ok();
        sent
    }

    /// A message that was not written whole has not been served.
    fn send_failed(&self, error: TransportError) -> Failure {
        if error == TransportError::TimedOut {
            return Failure::last(self.timed_out(Completion::No));
        }
        self.counters.count(Counter::CommFailures);
        Failure {
            exception: raise::comm_failure(own::SEND_FAILED, Completion::No),
            may_retry: true,
        }
    }

    fn timed_out(&self, completed: Completion) -> SystemException {
        self.counters.count(Counter::Timeouts);
        raise::timeout(0, completed)
    }

    /// Reads until the reply to the request of this number is whole.
    fn receive(
        &self,
        connection: &ClientConnection,
        inbound: &mut Inbound,
        asked: (u32, &Profile),
        deadline: Option<Instant64>,
    ) -> Result<Reply, Failure> {
        loop {
            let mut is_stray = false;
            while let Some(place) = inbound
                .poll_message()
                .map_err(|fault| self.malformed(wire::counter_of(fault)))?
            {
                is_stray = true;
                if wire::is_fragmented(inbound.message(place.clone())) {
                    let joined = inbound.join(place, &self.slab);
                    let Some(buffer) =
                        joined.map_err(|fault| self.malformed(wire::counter_of(fault)))?
                    else {
                        continue;
                    };
                    if let Some(head) = self.reply_head(&buffer, asked)? {
                        let place = 0..buffer.len();
                        return Ok(Reply {
                            buffer,
                            place,
                            head,
                        });
                    }
                } else if let Some(head) = self.reply_head(inbound.message(place.clone()), asked)? {
                    return Ok(Reply {
                        buffer: inbound.detach(&self.slab),
                        place,
                        head,
                    });
                }
            }
            // A read that finds octets does not look at its deadline: a server that sends without end what nobody asked
            // for must not keep the caller.
            if is_stray && deadline.is_some_and(|deadline| self.transport.now() >= deadline) {
                return Err(Failure::last(self.timed_out(Completion::Maybe)));
            }
            let space = inbound
                .space(&self.slab)
                .map_err(|OverBudget| self.malformed(Counter::InboundExhausted))?;
            match connection.stream.read(space, deadline) {
                Ok(count) if count != 0 => inbound.handle_bytes(count),
                Err(TransportError::TimedOut) => {
                    return Err(Failure::last(self.timed_out(Completion::Maybe)));
                }
                Ok(_) | Err(_) => return Err(self.lost()),
            }
        }
    }

    /// The head of the reply, if this message is the one waited for.
    fn reply_head(
        &self,
        message: &[u8],
        (id, profile): (u32, &Profile),
    ) -> Result<Option<ReplyHead>, Failure> {
        match wire::parse_reply(message, profile) {
            Ok(wire::FromServer::Reply(head)) if head.id == id => Ok(Some(head)),
            Ok(wire::FromServer::Reply(_)) => {
                self.counters.count(Counter::RepliesToNobody);
                Ok(None)
            }
            Ok(wire::FromServer::Close) => {
                // The standard's promise: what was not answered was not served.
                let exception = raise::comm_failure(own::CONNECTION_CLOSED, Completion::No);
                Err(Failure {
                    exception,
                    may_retry: true,
                })
            }
            Ok(wire::FromServer::MessageError) => {
                self.counters.count(Counter::MessageErrorsReceived);
                Err(Failure::last(raise::comm_failure(
                    own::MESSAGE_REFUSED,
                    Completion::Maybe,
                )))
            }
            Err(_) => Err(self.malformed(Counter::MalformedReplies)),
        }
    }

    fn malformed(&self, counter: Counter) -> Failure {
        self.counters.count(counter);
        Failure::last(raise::comm_failure(own::REPLY_MALFORMED, Completion::Maybe))
    }

    fn lost(&self) -> Failure {
        self.counters.count(Counter::CommFailures);
        Failure::last(raise::comm_failure(own::CONNECTION_LOST, Completion::Maybe))
    }

    fn interpret(&self, reply: Reply) -> Result<Attempt, SystemException> {
        let understood = match reply.status() {
            ReplyStatus::NoException | ReplyStatus::UserException => {
                return Ok(Attempt::Replied(reply));
            }
            ReplyStatus::SystemException => Err(wire::read_exception(reply.body())),
            ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm => {
                self.counters.count(Counter::Forwards);
                Ior::parse(&mut reply.body())
                    .map(Attempt::Forwarded)
                    .map_err(SystemException::from)
            }
            _ => Err(raise::no_implement(0, Completion::No)),
        };
        reply.give_back(self);
        understood
    }

    /// Sends a one-way to the first of `targets` that can be reached, behind those sent there before.
    pub(crate) fn call_oneway(
        &self,
        targets: &[Target],
        call: &Call<'_>,
    ) -> Result<(), SystemException> {
        let mut last = raise::transient(minor::NO_USABLE_PROFILE, Completion::No);
        for target in targets {
            match self.oneway_target(target, call) {
                Ok(()) => return Ok(()),
                Err(failure) if failure.may_retry => last = failure.exception,
                Err(failure) => return Err(failure.exception),
            }
        }
        Err(last)
    }

    fn oneway_target(&self, target: &Target, call: &Call<'_>) -> Result<(), Failure> {
        let mut kept = target.binding.oneway.lock("client.oneway");
        let now = self.transport.now();
        let deadline = now.after(call.round_trip.unwrap_or(ONEWAY_WRITE_TIMEOUT));
        self.counters.count(Counter::OnewaysSent);
        if let Some(mut connection) = kept
            .take()
            .filter(|connection| self.is_fresh(connection, now))
        {
            let request_id = connection.next_request_id();
            match self.send(
                &mut connection,
                target,
                call,
                (request_id, Response::Nothing),
                Some(deadline),
            ) {
                Err(failure) if failure.may_retry => self.counters.count(Counter::StaleConnections),
                done => {
                    connection.last_used = now;
                    // After a deadline a part of the message may have gone: nothing can follow it.
                    *kept = done.is_ok().then_some(connection);
                    return done;
                }
            }
        }
        let mut connection =
            self.connect_for(&target.binding, call, call.round_trip.map(|_| deadline))?;
        let request_id = connection.next_request_id();
        self.send(
            &mut connection,
            target,
            call,
            (request_id, Response::Nothing),
            Some(deadline),
        )?;
        *kept = Some(connection);
        Ok(())
    }
}

/// Follows forwards from `origin` until a server replies.
pub(crate) fn follow_forwards(
    client: &Client,
    origin: &crate::reference::Inner,
    call: &Call<'_>,
) -> Result<Reply, SystemException> {
    let now = client.transport.now();
    let deadline = call.round_trip.map(|wait| now.after(wait));
    let mut forwarded: Option<Arc<[Target]>> = origin.forwarded();
    for _ in 0..FORWARDS_MAX {
        let targets = match &forwarded {
            Some(targets) => targets,
            None => origin.targets()?,
        };
        match client.call(targets, call, now, deadline) {
            Ok(Attempt::Replied(reply)) => return Ok(reply),
            Ok(Attempt::Forwarded(ior)) => {
                let targets = origin.resolve(&ior)?;
                origin.remember(Some(Arc::clone(&targets)));
                forwarded = Some(targets);
            }
            // Where the forwarded-to has gone, the origin is asked again.
            Err(exception) if forwarded.is_some() && may_be_elsewhere(exception) => {
                origin.remember(None);
                forwarded = None;
            }
            Err(exception) => return Err(exception),
        }
    }
    Err(raise::transient(own::FORWARD_CIRCLE, Completion::No))
}

/// Whether an exception may come of asking at a place that the object has left; any other is the object's own answer.
fn may_be_elsewhere(exception: SystemException) -> bool {
    let is_of_the_way = matches!(
        exception.kind,
        SystemExceptionKind::Transient
            | SystemExceptionKind::CommFailure
            | SystemExceptionKind::ObjectNotExist
    );
    is_of_the_way && exception.completed == Completion::No
}
