//! Calls that were given up: the server is told, and the reply that may come all the same hurts nobody.
//!
//! The connection of such a call is set aside until its late reply has come, so that the next call does not wait behind a
//! request that the server is still busy with.

use std::cell::Cell;

use super::{Binding, Client, ClientConnection};
use crate::connection::Inbound;
use crate::counters::Counter;
use crate::limits::LATE_CONNECTIONS_MAX;
use crate::trace::{CallNumber, Direction};
use crate::wire::{self, Profile};

/// Requests of a connection whose replies nobody waits for.
#[derive(Debug, Default)]
pub(super) struct Abandoned {
    outstanding: Cell<u32>,
    /// The number of the first of them that has not been answered, at most.
    first: Cell<u32>,
}

impl Abandoned {
    fn add(&self, id: u32) {
        if self.outstanding.get() == 0 {
            self.first.set(id);
        }
        self.outstanding.set(self.outstanding.get() + 1);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.outstanding.get() == 0
    }
}

/// What has become of the word that nobody waits for a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cancel {
    Sent,
    /// No octet of it had room.
    Unsaid,
    /// A part of it may have gone: nothing can follow it.
    Cut,
}

impl ClientConnection {
    /// Whether a reply of this number, which nobody waits for, is one that had to be expected.
    pub(super) fn forget_late(&self, id: u32) -> bool {
        let outstanding = self.late.outstanding.get();
        let issued = self.request_id.wrapping_sub(self.late.first.get());
        let is_late = outstanding != 0 && id.wrapping_sub(self.late.first.get()) <= issued;
        if is_late {
            self.late.outstanding.set(outstanding - 1);
        }
        is_late
    }
}

impl Client {
    /// Tells the server that nobody waits for a reply, where these few octets have room.
    pub(super) fn cancel(
        &self,
        connection: &ClientConnection,
        profile: &Profile,
        request_id: u32,
    ) -> Cancel {
        let mut buffer = self.slab.lend_empty();
        let written = wire::write_cancel(&mut buffer, profile, request_id, self.sizes);
        let number = connection.life.number;
        let call = CallNumber::default();
        self.trace.message(number, call, Direction::Out, &buffer);
        let cancel = match written.map(|()| connection.stream.write_now(&buffer)) {
            Ok(Ok(count)) if count == buffer.len() => Cancel::Sent,
            Ok(Ok(0)) | Err(_) => Cancel::Unsaid,
            Ok(Ok(_) | Err(_)) => Cancel::Cut,
        };
        self.slab.take_back_written(buffer);
        if cancel == Cancel::Sent {
            self.counters.count(Counter::CancelsSent);
            connection.late.add(request_id);
        }
        cancel
    }

    /// Keeps a connection whose late replies are still to come, up to [`crate::limits::LATE_CONNECTIONS_MAX`] an endpoint.
    pub(super) fn set_aside(&self, binding: &Binding, mut connection: ClientConnection) {
        connection.last_used = self.transport.now_coarse();
        let _enough_wait = binding.late.put(connection);
    }

    /// A connection that was set aside and has had its late replies since.
    pub(super) fn take_settled(&self, binding: &Binding) -> Option<ClientConnection> {
        let mut unsettled = [const { None }; LATE_CONNECTIONS_MAX];
        let mut places = unsettled.iter_mut();
        let mut settled = None;
        while settled.is_none()
            && let Some(connection) = binding.late.take()
        {
            if !self.drain(&connection) {
                self.counters.count(Counter::StaleConnections);
            } else if connection.late.is_empty() {
                settled = Some(connection);
            } else {
                match places.next() {
                    Some(place) => *place = Some(connection),
                    None => break,
                }
            }
        }
        for connection in unsettled.into_iter().flatten() {
            let _as_many_as_before = binding.late.put(connection);
        }
        settled
    }

    /// Reads past late replies that have come. `false`: the connection has ended, or says something else.
    pub(super) fn drain(&self, connection: &ClientConnection) -> bool {
        let mut inbound = Inbound::new(self.sizes.message_max, None);
        let is_sound = self.read_past(connection, &mut inbound).is_some();
        let is_within = inbound.is_within_message();
        inbound.discard(&self.slab);
        is_sound && !is_within
    }

    fn read_past(&self, connection: &ClientConnection, inbound: &mut Inbound) -> Option<()> {
        while !connection.late.is_empty() {
            let space = inbound.space(&self.slab).ok()?;
            match connection.stream.read_now(space).ok()? {
                None => break,
                Some(0) => return None,
                Some(count) => inbound.handle_bytes(count),
            }
            while let Some(place) = inbound.poll_message().ok()? {
                let octets = inbound.message(place);
                let (number, call) = (connection.life.number, CallNumber::default());
                self.trace.message(number, call, Direction::In, octets);
                let id = wire::whole_reply(octets)?;
                if !connection.forget_late(id) {
                    return None;
                }
                self.counters.count(Counter::LateReplies);
            }
        }
        Some(())
    }
}
