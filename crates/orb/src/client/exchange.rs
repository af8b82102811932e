//! One request out and its reply back: addresses tried in turn, forwards followed, a closed connection replaced once.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use deckwatch_cdr::{Divided, Parse, Reader};
use deckwatch_giop::invocation::Times;
use deckwatch_giop::{Ior, ReplyStatus, Response};

use super::collocated::may_be_collocated;
use super::late::Cancel;
use super::two_way::may_be_two_way;
use super::{Client, ClientConnection, Deadlines};
use crate::connection::{Arrived, Inbound};
use crate::counters::Counter;
use crate::interceptor::{ClientFlow, Said};
use crate::limits::{ADDRESSINGS_MAX, CONNECT_TIMEOUT};
use crate::policy::{Overrides, RebindMode};
use crate::reference::Target;
use crate::rt::Priority;
use crate::rt::scheduling::{Departure, Traveller};
use crate::trace::{CallNumber, Direction};
use crate::transport::{Instant64, TransportError};
use crate::wire::{self, Arguments, ReplyHead};
use crate::{Completion, SystemException, minor};
use crate::{raise, raise::own};

/// What is asked, of whomever.
#[derive(Clone, Copy)]
pub(crate) struct Call<'c> {
    pub(crate) operation: &'c str,
    pub(crate) arguments: &'c dyn Arguments,
    /// What is waited for.
    pub(crate) response: Response,
    pub(crate) kind: CallKind,
    /// The policies in force.
    pub(crate) policies: &'c Overrides,
    /// The times that go out with it.
    pub(crate) times: Option<&'c Times>,
    /// The distributable thread that goes out with it.
    pub(crate) departure: Option<&'c Departure>,
    /// The CORBA priority of the caller, if he has one.
    pub(crate) priority: Option<Priority>,
    /// Its number in the trace.
    pub(crate) number: CallNumber,
    /// Service contexts that interceptors have added.
    pub(crate) contexts: &'c [Said],
    /// Its way through the interceptors, where there are any.
    pub(crate) flow: Option<&'c RefCell<ClientFlow>>,
    /// They have seen it, or need not.
    pub(crate) is_intercepted: bool,
}

impl Call<'_> {
    #[inline]
    pub(super) fn traveller(&self) -> Option<&Traveller> {
        self.departure?.traveller.as_ref()
    }
}

/// How a call goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
    TwoWay,
    /// It keeps its place among the one-ways to its server.
    Oneway,
    /// Only asks where the object is.
    Locate,
    /// Tells the server which priorities come over the connection.
    BindBand,
}

/// A reply that the caller must read: results or a user exception, in a lent buffer.
pub(crate) struct Reply {
    buffer: Vec<u8>,
    /// The message in it.
    place: Range<u32>,
    /// Where its fragments ended, in GIOP 1.1.
    ends: Option<Box<[u32]>>,
    head: ReplyHead,
    /// It was not read but written, in a buffer for that.
    is_written_here: bool,
}

impl Reply {
    /// One that has arrived in one piece, at the start of its buffer.
    #[inline]
    fn plain(buffer: Vec<u8>, count: usize, head: ReplyHead) -> Self {
        Self {
            buffer,
            // No buffer is so long that its count has no 32 bits.
            place: 0..count as u32,
            ends: None,
            head,
            is_written_here: false,
        }
    }

    pub(super) fn read(arrived: Arrived, head: ReplyHead) -> Self {
        // No message has more octets than 32 bits count.
        let index = |at| u32::try_from(at).unwrap_or(u32::MAX);
        Self {
            buffer: arrived.buffer,
            place: index(arrived.place.start)..index(arrived.place.end),
            ends: (!arrived.ends.is_empty()).then(|| arrived.ends.into_boxed_slice()),
            head,
            is_written_here: false,
        }
    }

    /// The reply to a call that this process has served itself.
    pub(super) fn written_here(answer: Vec<u8>, head: ReplyHead) -> Self {
        Self {
            is_written_here: true,
            ..Self::read(Arrived::whole(answer), head)
        }
    }

    #[inline]
    pub(crate) fn status(&self) -> ReplyStatus {
        self.head.status
    }

    /// The message, for [`Reply::body`].
    #[inline]
    pub(crate) fn message(&self) -> Divided<'_> {
        let octets = self.place.start as usize..self.place.end as usize;
        let ends = self.ends.as_deref().unwrap_or_default();
        Divided::new(&self.buffer[octets], ends)
    }

    #[inline]
    pub(crate) fn body<'m>(&self, message: &'m Divided<'m>) -> Reader<'m> {
        self.head.body(message)
    }

    pub(crate) fn give_back(self, client: &Client) {
        if self.is_written_here {
            client.slab.take_back_written(self.buffer);
        } else {
            client.slab.take_back(self.buffer);
        }
    }
}

/// What became of one attempt at one server.
pub(crate) enum Attempt {
    Replied(Reply),
    /// Whether for good.
    Forwarded(Ior, bool),
}

/// Why an attempt failed, and whether another may be made.
pub(super) struct Failure {
    pub(super) exception: SystemException,
    /// The server has certainly not served the request, and an other connection or address may do.
    pub(super) may_retry: bool,
    /// The connection is as good as before: only a reply may come that nobody waits for.
    pub(super) keeps_connection: bool,
}

impl Failure {
    pub(super) fn last(exception: SystemException) -> Self {
        Self {
            exception,
            may_retry: false,
            keeps_connection: false,
        }
    }

    /// Another connection or address may do.
    pub(super) const fn of_the_way(exception: SystemException) -> Self {
        Self {
            exception,
            may_retry: true,
            keeps_connection: false,
        }
    }
}

impl Client {
    /// Calls one of `targets` and waits for the reply. `is_bound`: one of them has been called before.
    pub(super) fn call(
        &self,
        targets: &[Target],
        call: &Call<'_>,
        is_bound: bool,
        deadlines: Deadlines,
    ) -> Result<Attempt, SystemException> {
        let may_reconnect = !is_bound || call.policies.rebind() != RebindMode::NoReconnect;
        let mut last = raise::transient(minor::NO_USABLE_PROFILE, Completion::No);
        for target in targets {
            let is_elsewhere = target.here.is_none() && !may_be_two_way(target, call);
            let attempt = if is_elsewhere && call.kind != CallKind::Oneway {
                self.call_target(target, call, may_reconnect, deadlines)
            } else {
                std::hint::cold_path();
                self.call_otherwise(target, call, may_reconnect, deadlines)
            };
            match attempt {
                Ok(attempt) => return Ok(attempt),
                Err(failure) if failure.may_retry => last = failure.exception,
                Err(failure) => return Err(failure.exception),
            }
        }
        Err(last)
    }

    /// Where the call may not go over a connection that it has for itself.
    #[inline(never)]
    fn call_otherwise(
        &self,
        target: &Target,
        call: &Call<'_>,
        may_reconnect: bool,
        deadlines: Deadlines,
    ) -> Result<Attempt, Failure> {
        if let Some(lane) = may_be_collocated(target, call) {
            self.call_here(&lane, target, call, deadlines)
        } else if let Some(two_way) = self.two_way(target, call) {
            two_way.and_then(|over| self.exchange_two_way(&over, target, call, deadlines))
        } else if call.kind == CallKind::Oneway {
            self.call_in_order(target, call, may_reconnect, deadlines)
        } else {
            self.call_target(target, call, may_reconnect, deadlines)
        }
    }

    /// A cached connection that turns out to be closed is replaced by a fresh one, once.
    fn call_target(
        &self,
        target: &Target,
        call: &Call<'_>,
        may_reconnect: bool,
        deadlines: Deadlines,
    ) -> Result<Attempt, Failure> {
        let Some(mut connection) = self.lend_idle(&target.binding) else {
            std::hint::cold_path();
            return self.call_afresh(target, call, may_reconnect, deadlines);
        };
        self.counters.count(Counter::RequestsSent);
        match self.ask(&mut connection, target, call, deadlines) {
            Ok((reply, true)) => {
                let now = connection.note_use(&*self.transport);
                drop(connection);
                self.close_idle_at(now);
                self.interpret(reply, call.flow).map_err(Failure::last)
            }
            asked => {
                std::hint::cold_path();
                let connection = connection.into_value();
                self.call_again(connection, target, call, (may_reconnect, deadlines), asked)
            }
        }
    }

    /// A connection from the pool has not served its call as most do.
    #[inline(never)]
    fn call_again(
        &self,
        connection: ClientConnection,
        target: &Target,
        call: &Call<'_>,
        (may_reconnect, deadlines): (bool, Deadlines),
        asked: Result<(Reply, bool), Failure>,
    ) -> Result<Attempt, Failure> {
        match asked {
            Err(failure) if failure.may_retry => {
                drop(connection);
                self.counters.count(Counter::StaleConnections);
                self.call_afresh(target, call, may_reconnect, deadlines)
            }
            asked => self.end_exchange(connection, target, call, asked),
        }
    }

    /// Over a connection that is not there yet.
    #[inline(never)]
    fn call_afresh(
        &self,
        target: &Target,
        call: &Call<'_>,
        may_reconnect: bool,
        deadlines: Deadlines,
    ) -> Result<Attempt, Failure> {
        let mut connection = self.connect_for(target, call, may_reconnect, deadlines.request)?;
        self.counters.count(Counter::RequestsSent);
        let asked = self.ask(&mut connection, target, call, deadlines);
        self.end_exchange(connection, target, call, asked)
    }

    /// A new connection beside those that are open; where none is, one that takes the place of the closed one.
    pub(super) fn connect_for(
        &self,
        target: &Target,
        call: &Call<'_>,
        may_reconnect: bool,
        deadline: Option<Instant64>,
    ) -> Result<ClientConnection, Failure> {
        let binding = &target.binding;
        if !may_reconnect && Arc::strong_count(&binding.open) == 1 {
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
            Some(_) => self.bind_band(connection, target, call, until),
        }
    }

    /// What becomes of a connection that is in nobody's pool.
    #[inline(never)]
    fn end_exchange(
        &self,
        mut connection: ClientConnection,
        target: &Target,
        call: &Call<'_>,
        asked: Result<(Reply, bool), Failure>,
    ) -> Result<Attempt, Failure> {
        match asked {
            Ok((reply, is_clean)) => {
                if is_clean {
                    let now = connection.note_use(&*self.transport);
                    let _enough_idle = target.binding.idle.put(connection);
                    self.close_idle_at(now);
                }
                self.interpret(reply, call.flow).map_err(Failure::last)
            }
            Err(failure) => {
                if failure.keeps_connection {
                    self.set_aside(&target.binding, connection);
                }
                Err(failure)
            }
        }
    }

    /// One request and its reply; whether the connection can be used again. A server that wants the object named in another way is
    /// asked again in that way, and has not served the request until then.
    pub(super) fn ask(
        &self,
        connection: &mut ClientConnection,
        target: &Target,
        call: &Call<'_>,
        deadlines: Deadlines,
    ) -> Result<(Reply, bool), Failure> {
        let asked_in = target.profile.disposition();
        match self.ask_once(connection, target, call, deadlines) {
            Ok((reply, is_clean)) if reply.status() == ReplyStatus::NeedsAddressingMode => {
                let refused = (reply, is_clean, asked_in);
                self.ask_otherwise(connection, target, call, deadlines, refused)
            }
            asked => asked,
        }
    }

    #[cold]
    fn ask_otherwise(
        &self,
        connection: &mut ClientConnection,
        target: &Target,
        call: &Call<'_>,
        deadlines: Deadlines,
        (mut reply, mut is_clean, mut asked_in): (Reply, bool, u16),
    ) -> Result<(Reply, bool), Failure> {
        for times in 1..=ADDRESSINGS_MAX {
            self.counters.count(Counter::Readdressings);
            let wanted = wire::read_disposition(reply.body(&reply.message()));
            reply.give_back(self);
            let obeys = wanted.is_some_and(|wanted| target.profile.address_by(wanted, asked_in));
            if !obeys || !is_clean || times == ADDRESSINGS_MAX {
                break;
            }
            asked_in = target.profile.disposition();
            (reply, is_clean) = self.ask_once(connection, target, call, deadlines)?;
            if reply.status() != ReplyStatus::NeedsAddressingMode {
                return Ok((reply, is_clean));
            }
        }
        let exception = raise::comm_failure(own::ADDRESSING_REFUSED, Completion::No);
        Err(Failure::last(exception))
    }

    #[inline(always)]
    fn ask_once(
        &self,
        connection: &mut ClientConnection,
        target: &Target,
        call: &Call<'_>,
        deadlines: Deadlines,
    ) -> Result<(Reply, bool), Failure> {
        let request_id = self.send(connection, target, call, deadlines.request)?;
        let mut buffer = self.slab.lend();
        let read = self.fill(connection, &mut buffer, deadlines.reply);
        if let Ok(Some(count)) = read
            && count <= self.sizes.message_max
            && let Some(head) = wire::plain_reply(&buffer[..count], request_id, &target.profile)
        {
            let number = connection.life.number;
            let octets = &buffer[..count];
            self.trace
                .message(number, CallNumber::default(), Direction::In, octets);
            return Ok((Reply::plain(buffer, count, head), true));
        }
        std::hint::cold_path();
        let begun = (read, buffer);
        self.read_on(connection, target, call, (request_id, deadlines), begun)
    }

    /// What comes instead of a reply that is there at once, whole and with nothing beside its results.
    #[inline(never)]
    fn read_on(
        &self,
        connection: &mut ClientConnection,
        target: &Target,
        call: &Call<'_>,
        (request_id, deadlines): (u32, Deadlines),
        (read, buffer): (Result<Option<usize>, Failure>, Vec<u8>),
    ) -> Result<(Reply, bool), Failure> {
        let asked = (request_id, &target.profile);
        let mut inbound = Inbound::new(self.sizes.message_max, None);
        inbound.begin(buffer, *read.as_ref().unwrap_or(&None));
        let received = match read {
            Ok(Some(_)) => self.receive(connection, &mut inbound, asked, deadlines.reply),
            Ok(None) => Err(self.waited_in_vain()),
            Err(failure) => Err(failure),
        };
        let reply = match received {
            Ok(reply) => reply,
            Err(mut failure) => {
                let is_within = inbound.is_within_message();
                let number = connection.life.number;
                self.trace
                    .attempt_failed(number, call.number, failure.exception, is_within);
                inbound.discard(&self.slab);
                if failure.exception.minor == own::TIMED_OUT_WAITING && !is_within {
                    let cancel = self.cancel(connection, &target.profile, request_id);
                    failure.keeps_connection = cancel == Cancel::Sent;
                }
                return Err(failure);
            }
        };
        // A connection with octets nobody asked for is not used again.
        Ok((reply, !inbound.is_within_message()))
    }

    /// Sends a request whole; its number.
    pub(super) fn send(
        &self,
        connection: &mut ClientConnection,
        target: &Target,
        call: &Call<'_>,
        deadline: Option<Instant64>,
    ) -> Result<u32, Failure> {
        self.require_end(call, deadline)?;
        let id = connection.next_request_id();
        let says_code_sets = !connection.code_sets_said;
        let sent = self.slab.with_empty(|buffer| {
            let written = self.begin_request(buffer, target, call, id, says_code_sets, None);
            let rest = written
                .map_err(|error| Failure::last(SystemException::from(error)))?
                .octets();
            let write = |octets: &[u8]| {
                let number = connection.life.number;
                self.trace
                    .message(number, call.number, Direction::Out, octets);
                connection.stream.write_all(octets, deadline)
            };
            let written = if rest.is_empty() && !self.sizes.divides(buffer.len()) {
                write(buffer)
            } else if self.sizes.divides(buffer.len() + rest.len()) {
                std::hint::cold_path();
                buffer.extend_from_slice(rest);
                self.sizes.with_parts(buffer, &self.slab, write)
            } else if self.trace.is_on() {
                std::hint::cold_path();
                buffer.extend_from_slice(rest);
                write(buffer)
            } else {
                connection.stream.write_both(buffer, rest, deadline)
            };
            written.map_err(|error| self.send_failed(error))
        });
        connection.code_sets_said |= sent.is_ok() && call.kind != CallKind::Locate;
        if let Err(failure) = &sent {
            std::hint::cold_path();
            self.trace.attempt_failed(
                connection.life.number,
                call.number,
                failure.exception,
                false,
            );
        }
        sent.map(|()| id)
    }

    /// A message that was not written whole has not been served.
    #[cold]
    fn send_failed(&self, error: TransportError) -> Failure {
        if error == TransportError::TimedOut {
            return Failure::last(self.timed_out(own::TIMED_OUT_SENDING, Completion::No));
        }
        self.counters.count(Counter::CommFailures);
        Failure::of_the_way(raise::comm_failure(own::SEND_FAILED, Completion::No))
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
    ) -> Result<Attempt, SystemException> {
        if flow.is_none() && reply.status() == ReplyStatus::NoException {
            return Ok(Attempt::Replied(reply));
        }
        std::hint::cold_path();
        self.interpret_other(reply, flow)
    }

    #[inline(never)]
    fn interpret_other(
        &self,
        reply: Reply,
        flow: Option<&RefCell<ClientFlow>>,
    ) -> Result<Attempt, SystemException> {
        if let Some(flow) = flow {
            flow.borrow_mut().note_reply(&reply);
        }
        let message = reply.message();
        let understood = match reply.status() {
            ReplyStatus::NoException | ReplyStatus::UserException => {
                return Ok(Attempt::Replied(reply));
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
                    Ok(ior) => Ok(Attempt::Forwarded(ior, is_for_good)),
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
