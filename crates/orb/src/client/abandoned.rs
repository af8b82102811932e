//! Calls that were abandoned: the server gets a CancelRequest, and a reply that arrives all the same is read past.
//!
//! The connection of such a call is set aside until that reply has arrived, so that the next call does not wait behind
//! a request that the server is still serving.

use std::cell::Cell;

use super::Client;
use super::connection::ClientConnection;
use crate::connection::inbound::Inbound;
use crate::counters::Counter;
use crate::trace::{CallNumber, Direction};
use crate::wire::{self, Profile};

/// The abandoned requests of a connection whose replies have not arrived.
#[derive(Debug, Default)]
pub(super) struct Abandoned {
    count: Cell<u32>,
    /// No unanswered one of them has a lower id.
    first: Cell<u32>,
}

impl Abandoned {
    fn add(&self, id: u32) {
        if self.count.get() == 0 {
            self.first.set(id);
        }
        self.count.set(self.count.get() + 1);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count.get() == 0
    }
}

/// What became of a CancelRequest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cancel {
    Sent,
    /// No octet of it was written.
    Unsent,
    /// A part of it may have been written: nothing can follow it.
    Cut,
}

impl ClientConnection {
    /// Takes a reply of this id off the abandoned ones. Returns whether it can be one of theirs.
    pub(super) fn settle(&self, id: u32) -> bool {
        let count = self.abandoned.count.get();
        let first = self.abandoned.first.get();
        let issued = self.request_id.wrapping_sub(first);
        let was_abandoned = count != 0 && id.wrapping_sub(first) <= issued;
        if was_abandoned {
            self.abandoned.count.set(count - 1);
        }
        was_abandoned
    }

    /// Sends a CancelRequest if it can be written without waiting.
    pub(super) fn cancel(&self, client: &Client, profile: &Profile, request_id: u32) -> Cancel {
        let mut buffer = client.slab.lend_empty();
        let written = wire::write_cancel(&mut buffer, profile, request_id, client.sizes);
        let number = self.life.number;
        let call = CallNumber::default();
        client.trace.message(number, call, Direction::Out, &buffer);
        let cancel = match written.map(|()| self.stream.write_now(&buffer)) {
            Ok(Ok(count)) if count == buffer.len() => Cancel::Sent,
            Ok(Ok(0)) | Err(_) => Cancel::Unsent,
            Ok(Ok(_) | Err(_)) => Cancel::Cut,
        };
        client.slab.take_back_written(buffer);
        if cancel == Cancel::Sent {
            client.counters.count(Counter::CancelsSent);
            self.abandoned.add(request_id);
        }
        cancel
    }

    /// Reads replies to abandoned calls that have arrived. Returns false if the connection has ended, or anything else
    /// arrived.
    pub(super) fn drain(&self, client: &Client) -> bool {
        let mut inbound = Inbound::new(client.sizes.message_max, None);
        let is_sound = self.read_past(client, &mut inbound).is_some();
        let is_within = inbound.is_within_message();
        inbound.discard(&client.slab);
        is_sound && !is_within
    }

    fn read_past(&self, client: &Client, inbound: &mut Inbound) -> Option<()> {
        while !self.abandoned.is_empty() {
            let space = inbound.space(&client.slab).ok()?;
            match self.stream.read_now(space).ok()? {
                None => break,
                Some(0) => return None,
                Some(count) => inbound.handle_bytes(count),
            }
            while let Some(place) = inbound.poll_message().ok()? {
                let octets = inbound.message(place);
                let (number, call) = (self.life.number, CallNumber::default());
                client.trace.message(number, call, Direction::In, octets);
                let id = wire::whole_reply(octets)?;
                if !self.settle(id) {
                    return None;
                }
                client.counters.count(Counter::LateReplies);
            }
        }
        Some(())
    }
}
