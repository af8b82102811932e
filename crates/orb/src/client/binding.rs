//! The connections to one endpoint: idle ones, the one of one-ways, the shared one of asynchronous calls.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use deckwatch_sync::{Lent, PiMutex, Pool};

use super::Client;
use super::asynchronous::SharedConnection;
use super::connection::{ClientConnection, Life};
use super::outbox::Outbox;
use crate::connection::bidirectional::Bidirectional;
use crate::counters::{Counter, Counters};
use crate::limits::{IDLE_CONNECTIONS_MAX, LATE_CONNECTIONS_MAX};
use crate::origin::Origin;
use crate::rt::PriorityBand;
use crate::trace::{CallNumber, Side};
use crate::transport::{Endpoint, Instant64, StreamOptions, TransportError};

/// What distinguishes connections to one endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Quality {
    /// The priorities whose calls share the connections; without one, all.
    pub(crate) band: Option<PriorityBand>,
    pub(crate) options: StreamOptions,
    /// Which references use them: addresses of other origins may be checked otherwise.
    pub(crate) origin: Origin,
}

/// The connections to one endpoint.
pub(crate) struct Binding {
    endpoint: Endpoint,
    quality: Quality,
    /// The server does not know `_bind_priority_band`.
    ignores_bands: AtomicBool,
    pub(super) idle: Pool<ClientConnection>,
    pub(super) oneway: PiMutex<Option<ClientConnection>>,
    /// Connections on which replies to abandoned calls are still to come.
    abandoned: Pool<ClientConnection>,
    /// The connection that asynchronous calls share.
    pub(super) shared: PiMutex<Option<Arc<SharedConnection>>>,
    /// The connection over which the server may call back, where the policies in force ask for one.
    pub(super) bidirectional: PiMutex<Option<Arc<Bidirectional>>>,
    /// One-ways with SYNC_NONE; made for the first of them.
    pub(super) outbox: OnceLock<Option<Outbox>>,
    /// Held once more by each open connection.
    open: Arc<()>,
}

impl Binding {
    pub(super) fn new(endpoint: Endpoint, quality: Quality) -> Self {
        Self {
            endpoint,
            quality,
            ignores_bands: AtomicBool::new(false),
            idle: Pool::with_capacity(IDLE_CONNECTIONS_MAX),
            oneway: PiMutex::new(None),
            abandoned: Pool::with_capacity(LATE_CONNECTIONS_MAX),
            shared: PiMutex::new(None),
            bidirectional: PiMutex::new(None),
            outbox: OnceLock::new(),
            open: Arc::default(),
        }
    }

    pub(crate) const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(crate) const fn quality(&self) -> &Quality {
        &self.quality
    }

    /// Whether the packets of its connections have a priority of their own.
    pub(super) fn sets_packet_priority(&self) -> bool {
        self.quality.options.packets.is_some()
    }

    /// Whether no connection is open.
    pub(super) fn is_closed(&self) -> bool {
        Arc::strong_count(&self.open) == 1
    }

    pub(super) fn ignores_bands(&self) -> bool {
        self.ignores_bands.load(Ordering::Relaxed)
    }

    pub(super) fn note_bands_ignored(&self) {
        self.ignores_bands.store(true, Ordering::Relaxed);
    }

    /// Whether one-ways were sent, or are queued, that the server may not have served yet.
    pub(super) fn has_oneways(&self) -> bool {
        self.oneway.lock("client.collocated").is_some() || self.has_queued()
    }

    /// Opens a connection.
    pub(super) fn connect(
        &self,
        client: &Client,
        call: CallNumber,
        deadline: Instant64,
    ) -> Result<ClientConnection, TransportError> {
        let trace = &client.trace;
        let begun = trace.begin();
        let peer = &self.endpoint;
        let stream = client
            .connect(self.quality.origin, peer, &self.quality.options, deadline)
            .inspect_err(|error| {
                client.counters.count(Counter::ConnectFailures);
                let waited = trace.since(begun);
                trace.not_opened(call, peer, *error, waited);
            })?;
        client.counters.count(Counter::ConnectionsMade);
        client.note_connected();
        let number = trace.next_connection();
        let waited = trace.since(begun);
        trace.opened(number, Side::Client, peer, waited);
        let life = Life {
            number,
            trace: Arc::clone(trace),
            _open: Arc::clone(&self.open),
        };
        let now = client.transport.now_coarse();
        Ok(ClientConnection::new(stream.into(), now, life))
    }

    /// An idle connection that the server has not closed.
    pub(super) fn lend_idle(&self, client: &Client) -> Option<Lent<'_, ClientConnection>> {
        loop {
            while let Some(mut connection) = self.idle.lend() {
                let now = client.transport.now_coarse();
                if !connection.is_under_way && connection.is_fresh(client, now) {
                    connection.is_under_way = true;
                    return Some(connection);
                }
                std::hint::cold_path();
                drop(connection.into_value());
            }
            std::hint::cold_path();
            let mut settled = self.take_settled(client)?;
            settled.note_use(&*client.transport);
            let _ = self.idle.put(settled); // A full pool has enough.
        }
    }

    /// Keeps a connection on which replies to abandoned calls are still to come, up to [`LATE_CONNECTIONS_MAX`].
    pub(super) fn set_aside(&self, client: &Client, mut connection: ClientConnection) {
        connection.last_used = client.transport.now_coarse();
        let _ = self.abandoned.put(connection); // A full pool has enough.
    }

    /// A connection that was set aside and has had its replies since.
    fn take_settled(&self, client: &Client) -> Option<ClientConnection> {
        let mut unsettled = [const { None }; LATE_CONNECTIONS_MAX];
        let mut places = unsettled.iter_mut();
        let mut settled = None;
        while settled.is_none()
            && let Some(connection) = self.abandoned.take()
        {
            if !connection.drain(client) {
                client.counters.count(Counter::StaleConnections);
            } else if connection.abandoned.is_empty() {
                settled = Some(connection);
            } else {
                match places.next() {
                    Some(place) => *place = Some(connection),
                    None => break,
                }
            }
        }
        for connection in unsettled.into_iter().flatten() {
            let _ = self.abandoned.put(connection); // They were all in the pool before.
        }
        settled
    }

    /// Closes connections that were unused for `idle_timeout`, or that the server has closed.
    pub(super) fn close_idle(&self, counters: &Counters, now: Instant64, idle_timeout: Duration) {
        let count_closed = |is_kept: bool| {
            if !is_kept {
                counters.count(Counter::ClientConnectionsIdle);
            }
            is_kept
        };
        self.idle
            .retain(|connection| count_closed(connection.is_kept(now, idle_timeout)));
        // A server that has not replied in this time never will.
        let may_settle =
            |connection: &ClientConnection| now.since(connection.last_used) < idle_timeout;
        self.abandoned
            .retain(|connection| count_closed(may_settle(connection)));
        if let Some(mut oneway) = self.oneway.try_lock("client.idle")
            && oneway
                .as_ref()
                .is_some_and(|connection| !connection.is_kept(now, idle_timeout))
        {
            counters.count(Counter::ClientConnectionsIdle);
            *oneway = None;
        }
    }

    /// Closes every connection that no call is using.
    pub(super) fn close(&self) {
        while self.idle.take().is_some() {}
        while self.abandoned.take().is_some() {}
        *self.oneway.lock("client.close") = None;
        *self.shared.lock("client.close") = None;
    }
}
