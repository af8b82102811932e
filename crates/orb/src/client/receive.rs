//! Replies as they arrive: read until the one that is waited for is whole, past those to abandoned calls.

use deckwatch_cdr::Divided;
use deckwatch_giop::ProtocolError;

use super::Client;
use super::connection::ClientConnection;
use super::reply::Reply;
use super::retry::Failure;
use crate::budget::OverBudget;
use crate::connection::inbound::Inbound;
use crate::counters::Counter;
use crate::trace::{CallNumber, Direction};
use crate::transport::{Instant64, TransportError, read_spinning};
use crate::wire::{self, FromServer, Profile, ReplyHead};

impl ClientConnection {
    /// Reads until the reply to the request of this id is whole.
    pub(super) fn receive(
        &self,
        client: &Client,
        inbound: &mut Inbound,
        asked: (u32, &Profile),
        deadline: Option<Instant64>,
    ) -> Result<Reply, Failure> {
        let received = self.receive_until(client, inbound, asked, deadline)?;
        received.ok_or_else(|| Failure::reply_timed_out(client))
    }

    /// As [`ClientConnection::receive`]. Returns `None` at the deadline; what has arrived by then stays in `inbound`.
    fn receive_until(
        &self,
        client: &Client,
        inbound: &mut Inbound,
        asked: (u32, &Profile),
        deadline: Option<Instant64>,
    ) -> Result<Option<Reply>, Failure> {
        let number = self.life.number;
        let misread = |fault| misread(client, number, fault);
        loop {
            let mut is_stray = false;
            while let Some(place) = inbound.poll_message().map_err(misread)? {
                is_stray = true;
                let octets = inbound.message(place.clone());
                client
                    .trace
                    .message(number, CallNumber::default(), Direction::In, octets);
                if wire::is_fragmented(inbound.message(place.clone())) {
                    let joined = inbound.join(place, &client.slab);
                    let Some(arrived) = joined.map_err(misread)? else {
                        continue;
                    };
                    if let Some(head) = self.reply_head(client, &arrived.message(), asked)? {
                        return Ok(Some(Reply::read(arrived, head)));
                    }
                    continue;
                }
                let whole = Divided::new(inbound.message(place.clone()), &[]);
                if let Some(head) = self.reply_head(client, &whole, asked)? {
                    let arrived = inbound.detach(place, &client.slab);
                    let arrived = arrived.map_err(|OverBudget| exhausted(client))?;
                    return Ok(Some(Reply::read(arrived, head)));
                }
            }
            // A read that finds octets does not look at its deadline: a server that sends unwanted messages without end
            // must not hold the caller.
            if is_stray && deadline.is_some_and(|deadline| client.transport.now() >= deadline) {
                return Ok(None);
            }
            let space = inbound
                .space(&client.slab)
                .map_err(|OverBudget| exhausted(client))?;
            match self.fill(client, space, deadline)? {
                Some(count) => inbound.handle_bytes(count),
                None => return Ok(None),
            }
        }
    }

    /// Reads once, at least one octet. Returns `None` at the deadline.
    #[inline]
    pub(super) fn fill(
        &self,
        client: &Client,
        space: &mut [u8],
        deadline: Option<Instant64>,
    ) -> Result<Option<usize>, Failure> {
        match self.read(client, space, deadline) {
            Ok(count) if count != 0 => Ok(Some(count)),
            Err(TransportError::TimedOut) => Ok(None),
            Err(TransportError::Refused) => Err(Failure::not_accepted(client)),
            Ok(_) => Err(Failure::lost(client)),
            Err(error) => Err(Failure::lost_for(client, error)),
        }
    }

    #[inline]
    fn read(
        &self,
        client: &Client,
        space: &mut [u8],
        deadline: Option<Instant64>,
    ) -> Result<usize, TransportError> {
        let stream = &*self.stream;
        match client.spin {
            None => stream.read(space, deadline),
            Some(spin) => read_spinning(stream, space, deadline, spin, &*client.transport),
        }
    }

    /// The head of the reply, if this message is the one waited for.
    fn reply_head(
        &self,
        client: &Client,
        message: &Divided<'_>,
        (id, profile): (u32, &Profile),
    ) -> Result<Option<ReplyHead>, Failure> {
        match wire::parse_reply(message, profile) {
            Ok(FromServer::Reply(head)) if head.id == id => Ok(Some(head)),
            Ok(FromServer::Reply(head)) => {
                let was_abandoned = self.settle(head.id);
                client.counters.count(if was_abandoned {
                    Counter::LateReplies
                } else {
                    Counter::RepliesToNobody
                });
                Ok(None)
            }
            other => Err(no_reply(client, self.life.number, other)),
        }
    }
}

/// The failure that a message stands for that is no reply.
pub(super) fn no_reply(
    client: &Client,
    connection: u32,
    message: Result<FromServer, ProtocolError>,
) -> Failure {
    match message {
        Ok(FromServer::MessageError) => Failure::message_refused(client),
        Ok(_) => Failure::closed(),
        Err(fault) => {
            client.trace.misread(connection, fault);
            Failure::malformed(client, Counter::MalformedReplies)
        }
    }
}

/// The failure of octets that are no message.
#[cold]
pub(super) fn misread(client: &Client, connection: u32, fault: ProtocolError) -> Failure {
    client.trace.misread(connection, fault);
    Failure::malformed(client, wire::counter_of(fault))
}

/// The failure of a reply that there is no memory for.
#[cold]
pub(super) fn exhausted(client: &Client) -> Failure {
    Failure::malformed(client, Counter::InboundExhausted)
}
