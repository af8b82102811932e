//! Replies as they arrive: read until the one that is waited for is whole, past those that nobody waits for.

use deckwatch_cdr::Divided;
use deckwatch_giop::ProtocolError;

use super::call::{Failure, Reply};
use super::{Client, ClientConnection};
use crate::budget::OverBudget;
use crate::connection::Inbound;
use crate::counters::Counter;
use crate::trace::{CallNumber, Direction};
use crate::transport::{Instant64, TransportError, read_spinning};
use crate::wire::{self, FromServer, Profile, ReplyHead};
use crate::{Completion, raise, raise::own};

impl Client {
    /// Reads until the reply to the request of this number is whole.
    pub(super) fn receive(
        &self,
        connection: &ClientConnection,
        inbound: &mut Inbound,
        asked: (u32, &Profile),
        deadline: Option<Instant64>,
    ) -> Result<Reply, Failure> {
        let received = self.receive_until(connection, inbound, asked, deadline)?;
        received.ok_or_else(|| self.waited_in_vain())
    }

    /// The reply was not there when the caller's time had passed.
    #[cold]
    pub(super) fn waited_in_vain(&self) -> Failure {
        Failure::last(self.timed_out(own::TIMED_OUT_WAITING, Completion::Maybe))
    }

    /// As [`Client::receive`]; none where the deadline comes first: what has arrived by then stays in `inbound`.
    pub(super) fn receive_until(
        &self,
        connection: &ClientConnection,
        inbound: &mut Inbound,
        asked: (u32, &Profile),
        deadline: Option<Instant64>,
    ) -> Result<Option<Reply>, Failure> {
        loop {
            let mut is_stray = false;
            while let Some(place) = inbound
                .poll_message()
                .map_err(|fault| self.misread(connection.life.number, fault))?
            {
                is_stray = true;
                let number = connection.life.number;
                let octets = inbound.message(place.clone());
                self.trace
                    .message(number, CallNumber::default(), Direction::In, octets);
                if wire::is_fragmented(inbound.message(place.clone())) {
                    let joined = inbound.join(place, &self.slab);
                    let Some(arrived) =
                        joined.map_err(|fault| self.misread(connection.life.number, fault))?
                    else {
                        continue;
                    };
                    if let Some(head) = self.reply_head(connection, &arrived.message(), asked)? {
                        return Ok(Some(Reply::read(arrived, head)));
                    }
                    continue;
                }
                let whole = Divided::new(inbound.message(place.clone()), &[]);
                if let Some(head) = self.reply_head(connection, &whole, asked)? {
                    let arrived = inbound.detach(place, &self.slab);
                    return Ok(Some(Reply::read(arrived, head)));
                }
            }
            // A read that finds octets does not look at its deadline: a server that sends without end what nobody asked
            // for must not keep the caller.
            if is_stray && deadline.is_some_and(|deadline| self.transport.now() >= deadline) {
                return Ok(None);
            }
            let space = inbound
                .space(&self.slab)
                .map_err(|OverBudget| self.malformed(Counter::InboundExhausted))?;
            match self.fill(connection, space, deadline)? {
                Some(count) => inbound.handle_bytes(count),
                None => return Ok(None),
            }
        }
    }

    /// Reads once, at least one octet; none: the deadline has come first.
    #[inline]
    pub(super) fn fill(
        &self,
        connection: &ClientConnection,
        space: &mut [u8],
        deadline: Option<Instant64>,
    ) -> Result<Option<usize>, Failure> {
        match self.read(connection, space, deadline) {
            Ok(count) if count != 0 => Ok(Some(count)),
            Err(TransportError::TimedOut) => Ok(None),
            Err(TransportError::Refused) => Err(self.not_taken()),
            Ok(_) | Err(_) => Err(self.lost()),
        }
    }

    #[inline]
    fn read(
        &self,
        connection: &ClientConnection,
        space: &mut [u8],
        deadline: Option<Instant64>,
    ) -> Result<usize, TransportError> {
        let stream = &*connection.stream;
        match self.spin {
            None => stream.read(space, deadline),
            Some(spin) => read_spinning(stream, space, deadline, spin, &*self.transport),
        }
    }

    /// The head of the reply, if this message is the one waited for.
    fn reply_head(
        &self,
        connection: &ClientConnection,
        message: &Divided<'_>,
        (id, profile): (u32, &Profile),
    ) -> Result<Option<ReplyHead>, Failure> {
        match wire::parse_reply(message, profile) {
            Ok(FromServer::Reply(head)) if head.id == id => Ok(Some(head)),
            Ok(FromServer::Reply(head)) => {
                let is_late = connection.forget_late(head.id);
                self.counters.count(match is_late {
                    true => Counter::LateReplies,
                    false => Counter::RepliesToNobody,
                });
                Ok(None)
            }
            other => Err(self.no_reply(connection.life.number, other)),
        }
    }

    /// What a message comes to that is no reply: a farewell, a complaint, or nothing that can be read.
    pub(super) fn no_reply(
        &self,
        connection: u32,
        message: Result<FromServer, ProtocolError>,
    ) -> Failure {
        match message {
            Ok(FromServer::MessageError) => {
                self.counters.count(Counter::MessageErrorsReceived);
                let exception = raise::comm_failure(own::MESSAGE_REFUSED, Completion::Maybe);
                Failure::last(exception)
            }
            Ok(_) => {
                // The standard's promise: what was not answered was not served.
                let exception = raise::comm_failure(own::CONNECTION_CLOSED, Completion::No);
                Failure::of_the_way(exception)
            }
            Err(fault) => {
                self.trace.misread(connection, fault);
                self.malformed(Counter::MalformedReplies)
            }
        }
    }

    #[cold]
    pub(super) fn misread(&self, connection: u32, fault: ProtocolError) -> Failure {
        self.trace.misread(connection, fault);
        self.malformed(wire::counter_of(fault))
    }

    #[cold]
    fn malformed(&self, counter: Counter) -> Failure {
        self.counters.count(counter);
        Failure::last(raise::comm_failure(own::REPLY_MALFORMED, Completion::Maybe))
    }

    /// The server never took the connection, nor what was written into it.
    #[cold]
    fn not_taken(&self) -> Failure {
        self.counters.count(Counter::CommFailures);
        Failure::of_the_way(raise::transient(own::CONNECT_REFUSED, Completion::No))
    }

    #[cold]
    pub(super) fn lost(&self) -> Failure {
        self.counters.count(Counter::CommFailures);
        Failure::last(raise::comm_failure(own::CONNECTION_LOST, Completion::Maybe))
    }
}
