//! One request and its reply over one connection, which carries nothing else meanwhile.

use deckwatch_giop::ReplyStatus;

use super::Client;
use super::abandoned::Cancel;
use super::attempt::Attempt;
use super::call::{Call, CallKind};
use super::connection::ClientConnection;
use super::reply::Reply;
use super::request::{RequestExtras, begin_request};
use super::retry::Failure;
use super::target::Target;
use super::times::require_end;
use crate::connection::inbound::Inbound;
use crate::limits::ADDRESSINGS_MAX;
use crate::raise::own;
use crate::trace::{CallNumber, Direction};
use crate::transport::Instant64;
use crate::wire;

impl ClientConnection {
    /// Sends a request and reads its reply; the flag: the connection can be used again. If the server asks for another
    /// addressing, the request is sent once more: it has not been served until then.
    pub(super) fn exchange(&mut self, attempt: &Attempt<'_>) -> Result<(Reply, bool), Failure> {
        let asked_in = attempt.target.profile.disposition();
        match self.exchange_once(attempt) {
            Ok((reply, is_clean)) if reply.status() == ReplyStatus::NeedsAddressingMode => {
                self.exchange_readdressed(attempt, (reply, is_clean, asked_in))
            }
            exchanged => exchanged,
        }
    }

    #[cold]
    fn exchange_readdressed(
        &mut self,
        attempt: &Attempt<'_>,
        (mut reply, mut is_clean, mut asked_in): (Reply, bool, u16),
    ) -> Result<(Reply, bool), Failure> {
        let profile = &attempt.target.profile;
        for times in 1..=ADDRESSINGS_MAX {
            let wanted = reply.into_wanted_addressing(attempt.client);
            let obeys = wanted.is_some_and(|wanted| profile.address_by(wanted, asked_in));
            if !obeys || !is_clean || times == ADDRESSINGS_MAX {
                break;
            }
            asked_in = profile.disposition();
            (reply, is_clean) = self.exchange_once(attempt)?;
            if reply.status() != ReplyStatus::NeedsAddressingMode {
                return Ok((reply, is_clean));
            }
        }
        Err(Failure::addressing_refused())
    }

    #[inline(always)]
    fn exchange_once(&mut self, attempt: &Attempt<'_>) -> Result<(Reply, bool), Failure> {
        let (client, target) = (attempt.client, attempt.target);
        let deadlines = &attempt.deadlines;
        let request_id = self.send(client, target, attempt.call, deadlines.request)?;
        let mut buffer = client.slab.lend();
        let read = self.fill(client, &mut buffer, deadlines.reply);
        if let Ok(Some(count)) = read
            && count <= client.sizes.message_max
            && let Some(head) = wire::plain_reply(&buffer[..count], request_id, &target.profile)
        {
            let number = self.life.number;
            let octets = &buffer[..count];
            client
                .trace
                .message(number, CallNumber::default(), Direction::In, octets);
            return Ok((Reply::plain(buffer, count, head), true));
        }
        std::hint::cold_path();
        self.read_on(attempt, request_id, (read, buffer))
    }

    /// The first read brought no whole, plain reply.
    #[inline(never)]
    fn read_on(
        &mut self,
        attempt: &Attempt<'_>,
        request_id: u32,
        (read, buffer): (Result<Option<usize>, Failure>, Vec<u8>),
    ) -> Result<(Reply, bool), Failure> {
        let (client, profile) = (attempt.client, &attempt.target.profile);
        let (asked, deadline) = ((request_id, profile), attempt.deadlines.reply);
        let mut inbound = Inbound::new(client.sizes.message_max, None);
        inbound.begin(buffer, *read.as_ref().unwrap_or(&None));
        let received = match read {
            Ok(Some(_)) => self.receive(client, &mut inbound, asked, deadline),
            Ok(None) => Err(Failure::reply_timed_out(client)),
            Err(failure) => Err(failure),
        };
        let reply = match received {
            Ok(reply) => reply,
            Err(mut failure) => {
                if inbound.is_tls() {
                    failure = Failure::tls_demanded();
                }
                let is_within = inbound.is_within_message();
                let (number, call) = (self.life.number, attempt.call.number);
                client
                    .trace
                    .attempt_failed(number, call, failure.exception, is_within);
                inbound.discard(&client.slab);
                if failure.exception.minor == own::TIMED_OUT_WAITING && !is_within {
                    let cancel = self.cancel(client, profile, request_id);
                    failure.keeps_connection = cancel == Cancel::Sent;
                }
                return Err(failure);
            }
        };
        // Octets behind the reply were not asked for: the connection is not used again.
        Ok((reply, !inbound.is_within_message()))
    }

    /// Sends a whole request. Returns its id.
    pub(super) fn send(
        &mut self,
        client: &Client,
        target: &Target,
        call: &Call<'_>,
        deadline: Option<Instant64>,
    ) -> Result<u32, Failure> {
        require_end(client, call, deadline)?;
        let id = self.next_request_id();
        let extras = RequestExtras {
            id,
            sends_code_sets: !self.code_sets_sent,
            listen_points: None,
        };
        let sizes = client.sizes;
        let sent = client.slab.with_empty(|buffer| {
            let written = begin_request(buffer, target, call, &extras, sizes);
            let rest = written
                .map_err(|error| Failure::unsent(error.into()))?
                .octets();
            let write = |octets: &[u8]| {
                let number = self.life.number;
                client
                    .trace
                    .message(number, call.number, Direction::Out, octets);
                self.stream.write_all(octets, deadline)
            };
            let written = if rest.is_empty() && !sizes.divides(buffer.len()) {
                write(buffer)
            } else if sizes.divides(buffer.len() + rest.len()) {
                std::hint::cold_path();
                buffer.extend_from_slice(rest);
                sizes.with_parts(buffer, &client.slab, write)
            } else if client.trace.is_on() {
                std::hint::cold_path();
                buffer.extend_from_slice(rest);
                write(buffer)
            } else {
                self.stream.write_both(buffer, rest, deadline)
            };
            written.map_err(|error| Failure::sending(client, error))
        });
        self.code_sets_sent |= sent.is_ok() && call.kind != CallKind::Locate;
        if let Err(failure) = &sent {
            std::hint::cold_path();
            client
                .trace
                .attempt_failed(self.life.number, call.number, failure.exception, false);
        }
        sent.map(|()| id)
    }
}
