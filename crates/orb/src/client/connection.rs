//! A connection that this ORB has opened. One call at a time uses it; the calling thread reads its own reply.

use std::sync::Arc;
use std::time::Duration;

use super::Client;
use super::abandoned::Abandoned;
use crate::counters::Counter;
use crate::limits::{COARSE_STEP, STALE_CHECK_AFTER};
use crate::trace::Trace;
use crate::transport::{Instant64, Stream, Transport};

/// An open connection to a server.
pub(crate) struct ClientConnection {
    pub(super) stream: Arc<dyn Stream>,
    pub(super) request_id: u32,
    /// When a call last returned it, or one-ways went over it: [`Transport::now_coarse`].
    pub(super) last_used: Instant64,
    /// The server knows our code sets.
    pub(super) code_sets_sent: bool,
    /// A call uses it. If it is set in the pool, the call that used it has panicked.
    pub(super) is_under_way: bool,
    pub(super) abandoned: Abandoned,
    pub(super) life: Life,
}

/// Counts the connection as open at its binding, and traces its end.
pub(super) struct Life {
    pub(super) number: u32,
    pub(super) trace: Arc<Trace>,
    pub(super) _open: Arc<()>,
}

impl Drop for Life {
    fn drop(&mut self) {
        self.trace.closed(self.number);
    }
}

impl ClientConnection {
    pub(super) fn new(stream: Arc<dyn Stream>, last_used: Instant64, life: Life) -> Self {
        Self {
            stream,
            request_id: 0,
            last_used,
            code_sets_sent: false,
            is_under_way: false,
            abandoned: Abandoned::default(),
            life,
        }
    }

    /// The bare stream, for a lane to read.
    pub(super) fn into_stream(self) -> Arc<dyn Stream> {
        self.stream
    }

    /// Its call has ended: it is idle from now on.
    #[inline]
    pub(super) fn note_use(&mut self, transport: &dyn Transport) -> Instant64 {
        self.last_used = transport.now_coarse();
        self.is_under_way = false;
        self.last_used
    }

    pub(super) fn next_request_id(&mut self) -> u32 {
        self.request_id = self.request_id.wrapping_add(1);
        self.request_id
    }

    /// Whether it can be used now. After a pause it is checked for octets: an idle server sends only CloseConnection.
    #[inline]
    pub(super) fn is_fresh(&self, client: &Client, now: Instant64) -> bool {
        let pause = now.since(self.last_used);
        let is_in_use = self.abandoned.is_empty() && pause + COARSE_STEP < STALE_CHECK_AFTER;
        is_in_use || self.is_fresh_after(client, pause)
    }

    #[cold]
    fn is_fresh_after(&self, client: &Client, pause: Duration) -> bool {
        if !self.abandoned.is_empty() {
            return self.drain(client);
        }
        let fresh = pause < client.bindings.idle_timeout() && !self.stream.is_readable();
        if !fresh {
            client.counters.count(Counter::StaleConnections);
        }
        fresh
    }

    /// Whether it may stay open for another call, or has to for replies that are still to come.
    pub(super) fn is_kept(&self, now: Instant64, idle_timeout: Duration) -> bool {
        let is_young = now.since(self.last_used) < idle_timeout;
        !self.abandoned.is_empty() || is_young && !self.stream.is_readable()
    }
}
