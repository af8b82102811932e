//! The way of gateways into a channel.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use deckwatch_cdr::{Parse as _, Reader};
use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};

use super::pushed::{Pushed, lowered};
use super::qos;
use super::shared::Shared;
use crate::deckwatch_federation::EventId;
use crate::raise::raise;
use crate::rtec_event_channel_admin::ConsumerQOS;
use crate::rtec_event_comm::{Event, EventHeader};

/// What becomes of an event from another channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It goes to the consumers that want it.
    Routed,
    /// It has started here, and came back.
    Returned,
    /// It came by another way before.
    Doubled,
    /// Its `ttl` was 0.
    Expired,
}

/// Hands events of other channels to one channel. Does not keep the channel alive.
#[derive(Clone)]
pub(crate) struct Inlet(Weak<Shared>);

impl Inlet {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self(Arc::downgrade(shared))
    }

    fn shared(&self) -> Result<Arc<Shared>, SystemException> {
        let shared = self.0.upgrade();
        let shared = shared.ok_or_else(|| raise(Kind::ObjectNotExist))?;
        shared.check_alive()?;
        Ok(shared)
    }

    /// The channel's identity. `None` after the end of the channel.
    pub(crate) fn identity(&self) -> Option<u64> {
        Some(self.shared().ok()?.hops.identity())
    }

    /// Takes an event from a channel that gives events no identity, and takes one off its `ttl`.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST after the end of the channel.
    pub(crate) fn push(&self, mut event: Event) -> Result<Arrival, SystemException> {
        if event.header.ttl <= 0 {
            return Ok(Arrival::Expired);
        }
        event.header.ttl = lowered(event.header.ttl);
        self.take(event, 0)?;
        Ok(Arrival::Routed)
    }

    /// Takes an event as it is. It does not go back to `sender`.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST after the end of the channel.
    pub(crate) fn take(&self, event: Event, sender: u64) -> Result<(), SystemException> {
        let shared = self.shared()?;
        shared.count_received(1);
        shared.route(&mut Pushed::of(event).having_come(None, sender), None, None);
        Ok(())
    }

    /// Takes the arguments of `DeckwatchFederation::GatewayConsumer::forward`. The event is not decoded.
    ///
    /// # Errors
    /// MARSHAL for malformed octets, BAD_PARAM unless there is one event; OBJECT_NOT_EXIST after the end of the
    /// channel.
    pub(crate) fn forward(&self, arguments: Reader<'_>) -> Result<Arrival, SystemException> {
        let shared = self.shared()?;
        let mut r = arguments;
        let id = EventId::parse(&mut r)?;
        let sender = u64::parse(&mut r)?;
        let set = r;
        if r.read_count(EventHeader::SIZE_MIN)? != 1 {
            return Err(raise(Kind::BadParam));
        }
        let header = EventHeader::parse(&mut r)?;
        if id.channel == shared.hops.identity() {
            return Ok(Arrival::Returned);
        }
        if !shared.hops.is_new(id) {
            return Ok(Arrival::Doubled);
        }
        shared.count_received(1);
        let mut pushed = Pushed::alone(set, header).having_come(Some(id), sender);
        shared.route(&mut pushed, None, None);
        Ok(Arrival::Routed)
    }
}

/// Subscribes the channel with this identity to all events with one of these headers (source, type).
pub(crate) fn gateway_qos(headers: BTreeSet<(i32, i32)>, identity: u64) -> ConsumerQOS {
    let mut qos = qos::consumer_qos(headers.into_iter());
    qos.is_gateway = true;
    if let Some(first) = qos.dependencies.first_mut() {
        first.event.header.ec_send_time = identity;
    }
    qos
}
