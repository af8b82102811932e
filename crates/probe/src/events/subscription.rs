//! A consumer of a channel: connected when it is made, disconnected when it is dropped.

use std::net::SocketAddr;
use std::time::Duration;

use deckwatch_event::client::address_towards;
use deckwatch_orb::transport::Endpoint;
use deckwatch_orb::{ObjectRef, Orb, Tls};
use deckwatch_os::clock::monotonic_ns;
use serde::Serialize;

use super::channel::{Source, open};
use super::inbox::{InboxCounts, Outbox, inbox};
use super::selection::Selection;
use super::{EventsError, Received};
use crate::limits::{CHANNEL_CALL_TIMEOUT, CHANNEL_CHECK_INTERVAL, CHANNEL_CONNECT_TIMEOUT};

/// A consumer of a channel.
pub struct Subscription {
    outbox: Outbox,
    /// `None` once disconnected.
    source: Option<Box<dyn Source>>,
    orb: Orb,
    /// Those of this consumer's events that the channel dropped until it was disconnected.
    dropped_by_channel: Option<u64>,
    /// When the channel last showed that it has this consumer: CLOCK_MONOTONIC, nanoseconds.
    heard_ns: i64,
}

/// Events that did not reach the reader of a subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// Events dropped here because the reader was too slow.
    pub dropped: u64,
    /// Events of this consumer that the channel dropped; `None` if it does not report that.
    pub dropped_by_channel: Option<u64>,
}

/// What [`Subscription::next`] found.
#[derive(Debug)]
pub enum Next {
    /// An event.
    Event(Received),
    /// No event within the time.
    Nothing,
    /// The channel has ended, and every event before that was returned.
    Ended,
}

impl Subscription {
    /// Connects a consumer to a channel. The channel pushes to `listen`, or else to a free port at the address of this
    /// host that leads to the channel. With `tls` the consumer calls over TLS; it listens over TLS too if `tls` has a
    /// certificate, and over TLS alone if `tls` requires it.
    ///
    /// # Errors
    /// [`EventsError`] if this host cannot listen, or the channel does not answer or refuses.
    pub fn connect(
        channel: &ObjectRef,
        listen: Option<&str>,
        wanted: Selection,
        tls: Option<&Tls>,
    ) -> Result<Self, EventsError> {
        let at = listen.map_or_else(
            || SocketAddr::new(address_towards(channel), 0).to_string(),
            ToOwned::to_owned,
        );
        let cannot_listen = |error: deckwatch_orb::BuildError| EventsError::CannotListen {
            at: at.clone(),
            reason: error.to_string(),
        };
        let mut builder = Orb::builder();
        if let Some(tls) = tls {
            builder = builder.tls(tls);
        }
        for endpoint in endpoints(&at, listen.is_none(), tls) {
            builder = builder.listen(&endpoint).map_err(cannot_listen)?;
        }
        let orb = builder
            .connect_timeout(CHANNEL_CONNECT_TIMEOUT)
            .round_trip_timeout(CHANNEL_CALL_TIMEOUT)
            .build()
            .map_err(cannot_listen)?;
        // Made before anything that can fail, so that the ORB is shut down in every case.
        let (inbox, outbox) = inbox(wanted);
        let mut subscription = Self {
            outbox,
            source: None,
            orb,
            dropped_by_channel: None,
            heard_ns: monotonic_ns(),
        };
        let own = subscription.orb.string_to_object(&channel.to_string());
        let own = own.map_err(|error| EventsError::Orb(error.to_string()))?;
        let own = own.ok_or_else(|| EventsError::NotAChannel("nil".to_owned()))?;
        let opened = open(&own)?;
        subscription.source = Some(opened.subscribe(&subscription.orb, inbox)?);
        Ok(subscription)
    }

    /// Disconnects the consumer. Events that were received until then can still be read.
    pub fn disconnect(&mut self) {
        let Some(source) = self.source.take() else {
            return;
        };
        self.dropped_by_channel = source.dropped();
        drop(source);
        // Fails only if the ORB was shut down before, and no other code shuts it down.
        let _ = self.orb.shutdown(true);
    }

    /// Waits for the next event, at most for `patience`. After a time without events, asks the channel whether it still
    /// has this consumer: a channel whose process died notifies nobody.
    ///
    /// # Errors
    /// [`EventsError::Gone`] if the channel does not answer or has dropped this consumer.
    pub fn next(&mut self, patience: Duration) -> Result<Next, EventsError> {
        if let Some(received) = self.outbox.next(patience) {
            self.heard_ns = received.at.monotonic_ns;
            return Ok(Next::Event(received));
        }
        if self.outbox.has_ended() {
            // An event may have been queued between the two readings.
            let last = self.outbox.next(Duration::ZERO);
            return Ok(last.map_or(Next::Ended, Next::Event));
        }
        let now_ns = monotonic_ns();
        let interval_ns = i64::try_from(CHANNEL_CHECK_INTERVAL.as_nanos()).unwrap_or(i64::MAX);
        if now_ns.saturating_sub(self.heard_ns) >= interval_ns
            && let Some(source) = &self.source
        {
            source.check()?;
            self.heard_ns = now_ns;
        }
        Ok(Next::Nothing)
    }

    /// The events that were lost until [`Self::disconnect`].
    #[must_use]
    pub fn losses(&self) -> Losses {
        Losses {
            dropped: self.outbox.counts().dropped,
            dropped_by_channel: self.dropped_by_channel,
        }
    }

    /// The counts of this consumer at this moment.
    #[must_use]
    pub fn counts(&self) -> InboxCounts {
        self.outbox.counts()
    }
}

/// Where a consumer listens: at an address that the user names, over TLS if TLS is required; at the one that was found
/// for it, over TLS too if there is a certificate.
fn endpoints(at: &str, is_found: bool, tls: Option<&Tls>) -> Vec<String> {
    let over_tls = format!("tls:{at}");
    let is_plain = matches!(at.parse(), Ok(Endpoint::Tcp { .. }));
    if is_plain && tls.is_some_and(Tls::is_required) {
        vec![over_tls]
    } else if is_found && tls.is_some_and(Tls::can_serve) {
        vec![at.to_owned(), over_tls]
    } else {
        vec![at.to_owned()]
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.source = None;
        // Fails only if the ORB was shut down before, and no other code shuts it down.
        let _ = self.orb.shutdown(true);
    }
}
