//! One request and its reply over one connection, which nothing else goes over meanwhile.

use deckwatch_giop::ReplyStatus;

use super::abandoned::Cancel;
use super::call::{Attempt, Call, CallKind, Failure, Reply};
use super::request::RequestExtras;
use super::{Client, ClientConnection};
use crate::Completion;
use crate::connection::Inbound;
use crate::counters::Counter;
use crate::limits::ADDRESSINGS_MAX;
use crate::reference::Target;
use crate::trace::{CallNumber, Direction};
use crate::transport::{Instant64, TransportError};
use crate::wire;
use crate::{raise, raise::own};

impl Client {
    /// One request and its reply; whether the connection can be used again. A server that wants the object named in another way is
    /// asked again in that way, and has not served the request until then.
    pub(super) fn exchange(
        &self,
        connection: &mut ClientConnection,
        attempt: &Attempt<'_>,
    ) -> Result<(Reply, bool), Failure> {
        let asked_in = attempt.target.profile.disposition();
        match self.exchange_once(connection, attempt) {
            Ok((reply, is_clean)) if reply.status() == ReplyStatus::NeedsAddressingMode => {
                self.exchange_readdressed(connection, attempt, (reply, is_clean, asked_in))
            }
            asked => asked,
        }
    }

    #[cold]
    fn exchange_readdressed(
        &self,
        connection: &mut ClientConnection,
        attempt: &Attempt<'_>,
        (mut reply, mut is_clean, mut asked_in): (Reply, bool, u16),
    ) -> Result<(Reply, bool), Failure> {
        let profile = &attempt.target.profile;
        for times in 1..=ADDRESSINGS_MAX {
            self.counters.count(Counter::Readdressings);
            let wanted = wire::read_disposition(reply.body(&reply.message()));
            reply.give_back(self);
            let obeys = wanted.is_some_and(|wanted| profile.address_by(wanted, asked_in));
            if !obeys || !is_clean || times == ADDRESSINGS_MAX {
                break;
            }
            asked_in = profile.disposition();
            (reply, is_clean) = self.exchange_once(connection, attempt)?;
            if reply.status() != ReplyStatus::NeedsAddressingMode {
                return Ok((reply, is_clean));
            }
        }
        let exception = raise::comm_failure(own::ADDRESSING_REFUSED, Completion::No);
        Err(Failure::last(exception))
    }

    #[inline(always)]
    fn exchange_once(
        &self,
        connection: &mut ClientConnection,
        attempt: &Attempt<'_>,
    ) -> Result<(Reply, bool), Failure> {
        let (target, deadlines) = (attempt.target, &attempt.deadlines);
        let request_id = self.send(connection, target, attempt.call, deadlines.request)?;
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
        self.read_on(connection, attempt, request_id, (read, buffer))
    }

    /// What comes instead of a reply that is there at once, whole and with nothing beside its results.
    #[inline(never)]
    fn read_on(
        &self,
        connection: &mut ClientConnection,
        attempt: &Attempt<'_>,
        request_id: u32,
        (read, buffer): (Result<Option<usize>, Failure>, Vec<u8>),
    ) -> Result<(Reply, bool), Failure> {
        let profile = &attempt.target.profile;
        let (asked, deadline) = ((request_id, profile), attempt.deadlines.reply);
        let mut inbound = Inbound::new(self.sizes.message_max, None);
        inbound.begin(buffer, *read.as_ref().unwrap_or(&None));
        let received = match read {
            Ok(Some(_)) => self.receive(connection, &mut inbound, asked, deadline),
            Ok(None) => Err(self.waited_in_vain()),
            Err(failure) => Err(failure),
        };
        let reply = match received {
            Ok(reply) => reply,
            Err(mut failure) => {
                let is_within = inbound.is_within_message();
                let (number, call) = (connection.life.number, attempt.call.number);
                self.trace
                    .attempt_failed(number, call, failure.exception, is_within);
                inbound.discard(&self.slab);
                if failure.exception.minor == own::TIMED_OUT_WAITING && !is_within {
                    let cancel = self.cancel(connection, profile, request_id);
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
        let extras = RequestExtras {
            id,
            sends_code_sets: !connection.code_sets_sent,
            listen_points: None,
        };
        let sent = self.slab.with_empty(|buffer| {
            let written = self.begin_request(buffer, target, call, &extras);
            let rest = written
                .map_err(|error| Failure::unsent(error.into()))?
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
        connection.code_sets_sent |= sent.is_ok() && call.kind != CallKind::Locate;
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
}
