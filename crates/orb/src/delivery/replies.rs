//! Replies to deliveries, as they arrive: matched with their requests by id.

use std::sync::Arc;

use deckwatch_cdr::{Divided, Parse, Reader};
use deckwatch_giop::{Message, ProtocolError, Reply, ReplyStatus};

use super::connection::{Connection, Sending};
use super::outlet::{Outcome, Outlet};
use crate::SystemExceptionKind as Kind;
use crate::connection::inbound::Inbound;
use crate::counters::Counter;
use crate::limits::{DELIVERIES_UNDER_WAY_MAX, DELIVERY_READS_MAX};
use crate::trace::{CallNumber, Direction};
use crate::transport::{Interest, Source, TransportError};
use crate::wire;
use crate::{SystemException, SystemExceptionKind};

/// Why a connection ends after a message.
enum Fault {
    /// The server closes it in order: what it has not answered it has not served.
    Closed,
    /// The octets are no message of a server, or the server could not read ours, or it answers what it was not asked.
    Misread,
}

impl Connection {
    /// The I/O thread: reads until nothing more has arrived or others must have their turn, and writes what the replies
    /// have made ready. `has_ended`: the poller has reported the end.
    pub(super) fn read(self: &Arc<Self>, has_ended: bool) {
        let Some((stream, number)) = self.stream() else {
            return;
        };
        // A socket that returns less than it could has nothing more; what arrives later is reported again.
        let is_socket = matches!(stream.source(), Source::Descriptor(_));
        let slab = &self.worker.calls.client.slab;
        let mut inbound = self.inbound.lock("delivery.read");
        let mut reads = 0;
        let failure = loop {
            let Ok(space) = inbound.space(slab) else {
                break TransportError::Exhausted;
            };
            let room = space.len();
            let count = match stream.read_now(space) {
                Ok(None) => None,
                Ok(Some(0)) => break TransportError::Broken,
                Err(error) => break error,
                Ok(Some(count)) => Some(count),
            };
            let is_all = count.is_none_or(|count| is_socket && !has_ended && count < room);
            // One lock for all replies that were read, and for what they make ready.
            let mut sending = self.sending.lock("delivery.replies");
            if let Some(count) = count {
                inbound.handle_bytes(count);
                match self.take_messages(&mut inbound, &mut sending, number) {
                    Ok(()) => {}
                    Err(Fault::Closed) => {
                        self.give_back(&mut sending);
                        break TransportError::Broken;
                    }
                    Err(Fault::Misread) => break TransportError::Broken,
                }
            }
            reads += 1;
            if !is_all && reads == DELIVERY_READS_MAX {
                // What has arrived is reported again.
                let poller = &self.worker.poller;
                poller.rewatch(stream.source(), self.token(), Interest::Arrival);
            }
            if is_all || reads == DELIVERY_READS_MAX {
                inbound.rest(slab);
                return self.flush_in(&mut sending);
            }
        };
        inbound.discard(slab);
        *inbound = Inbound::new(self.worker.calls.client.sizes.message_max, None);
        drop(inbound);
        self.fail(failure);
    }

    fn take_messages(
        &self,
        inbound: &mut Inbound,
        sending: &mut Sending,
        number: u32,
    ) -> Result<(), Fault> {
        let client = &self.worker.calls.client;
        let misread = |fault: ProtocolError| {
            client.trace.misread(number, fault);
            client.counters.count(wire::counter_of(fault));
            Fault::Misread
        };
        while let Some(place) = inbound.poll_message().map_err(misread)? {
            let octets = inbound.message(place.clone());
            client
                .trace
                .message(number, CallNumber::default(), Direction::In, octets);
            if let Some(id) = Reply::plain_id(octets) {
                self.end_flight(sending, id, |outlet| {
                    if outlet.is_oneway() && octets.get(Reply::PLAIN_BODY) == Some(&1) {
                        Outcome::Final
                    } else {
                        Outcome::Delivered
                    }
                })?;
            } else if wire::is_fragmented(octets) {
                if let Some(joined) = inbound.join(place, &client.slab).map_err(misread)? {
                    let taken = self.take_message(sending, &joined.message());
                    client.slab.take_back(joined.buffer);
                    taken.map_err(misread)??;
                }
            } else {
                self.take_message(sending, &Divided::new(octets, &[]))
                    .map_err(misread)??;
            }
        }
        Ok(())
    }

    #[cold]
    fn take_message(
        &self,
        sending: &mut Sending,
        message: &Divided<'_>,
    ) -> Result<Result<(), Fault>, ProtocolError> {
        let reply = match Message::parse_joined(message)? {
            Message::Reply(reply) => reply,
            Message::CloseConnection => return Ok(Err(Fault::Closed)),
            _ => {
                self.worker
                    .calls
                    .client
                    .counters
                    .count(Counter::MalformedReplies);
                return Ok(Err(Fault::Misread));
            }
        };
        let ended = self.end_flight(sending, reply.id, |outlet| {
            let codec = outlet.form().codec.with_version(reply.version);
            let mut body = reply.body.with_codec(codec);
            if outlet.is_oneway() {
                return answer_of(reply.status, &mut body);
            }
            match reply.status {
                ReplyStatus::NoException => Outcome::Delivered,
                ReplyStatus::UserException => {
                    let id = body.read_string_octets().unwrap_or_default();
                    let finals = outlet.options.final_exceptions;
                    if finals.iter().any(|last| last.as_bytes() == id) {
                        Outcome::Final
                    } else {
                        Outcome::Failed
                    }
                }
                ReplyStatus::SystemException => {
                    let raised = SystemException::parse(&mut body);
                    outcome_of(raised.map_or(SystemExceptionKind::Unknown, |raised| raised.kind))
                }
                ReplyStatus::LocationForward
                | ReplyStatus::LocationForwardPerm
                | ReplyStatus::NeedsAddressingMode => Outcome::Redirected,
            }
        });
        Ok(ended)
    }

    /// Queues again the requests that the server did not serve, and closes the connection to it. They count as one
    /// failure of each outlet.
    fn give_back(&self, sending: &mut Sending) {
        self.cut(sending);
        let mut unserved = Vec::new();
        sending
            .flights
            .end_where(|_| true, |flight| unserved.push(flight));
        unserved.sort_by_key(|flight| Arc::as_ptr(&flight.outlet));
        let mut last = std::ptr::null();
        for flight in unserved {
            let outlet = Arc::as_ptr(&flight.outlet);
            let is_first = outlet != last;
            last = outlet;
            self.settle_flight(sending, flight, Outcome::Unserved { is_first });
        }
    }

    fn end_flight(
        &self,
        sending: &mut Sending,
        id: u32,
        outcome: impl FnOnce(&Outlet) -> Outcome,
    ) -> Result<(), Fault> {
        match sending.flights.end(id) {
            Some(flight) => {
                let outcome = outcome(&flight.outlet);
                self.settle_flight(sending, flight, outcome);
                sending.strays = 0;
            }
            None => {
                let counters = &self.worker.calls.client.counters;
                counters.count(Counter::LateReplies);
                // So many may be late, and no more.
                sending.strays += 1;
                if sending.strays > DELIVERIES_UNDER_WAY_MAX {
                    sending.strays = 0;
                    return Err(Fault::Misread);
                }
            }
        }
        Ok(())
    }
}

/// Returns the outcome of the question whether the receiver exists. A server that does not know the operation does not
/// count.
fn answer_of(status: ReplyStatus, body: &mut Reader<'_>) -> Outcome {
    let is_gone = match status {
        ReplyStatus::NoException => bool::parse(body) == Ok(true),
        ReplyStatus::SystemException => {
            let raised = SystemException::parse(body);
            raised.is_ok_and(|raised| raised.kind == Kind::ObjectNotExist)
        }
        _ => false,
    };
    if is_gone {
        Outcome::Final
    } else if status == ReplyStatus::NoException {
        Outcome::Delivered
    } else {
        Outcome::Blameless
    }
}

/// Returns the outcome of a request that ended in a system exception. An exception of marshalling does not count
/// against the receiver: the event was forwarded as its sender wrote it.
pub(super) fn outcome_of(kind: SystemExceptionKind) -> Outcome {
    match kind {
        Kind::ObjectNotExist | Kind::InvObjref | Kind::BadOperation => Outcome::Final,
        Kind::Marshal | Kind::DataConversion | Kind::CodesetIncompatible | Kind::BadTypecode => {
            Outcome::Blameless
        }
        _ => Outcome::Failed,
    }
}
