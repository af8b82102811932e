//! The counters of one gateway.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::rt::Arrival;

/// Live counts.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) connects: AtomicU64,
    pub(super) cuts: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) changes: AtomicU64,
    received: AtomicU64,
    returned: AtomicU64,
    doubled: AtomicU64,
    expired: AtomicU64,
    pub(super) refused: AtomicU64,
}

/// The counts of a gateway at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GatewayCounts {
    /// Times that it was connected to the remote channel.
    pub connects: u64,
    /// Connections that ended without its doing.
    pub cuts: u64,
    /// Attempts to connect that failed.
    pub failures: u64,
    /// Subscriptions that replaced an earlier one of a connection.
    pub changes: u64,
    /// Events that the local channel has taken.
    pub received: u64,
    /// Events that started at the local channel and came back.
    pub returned: u64,
    /// Events that had come by another way before.
    pub doubled: u64,
    /// Events that came with a `ttl` of 0, from a channel that leaves this check to the gateway.
    pub expired: u64,
    /// Pushes that were malformed.
    pub refused: u64,
}

impl Counters {
    pub(super) fn count(&self, arrival: Arrival) {
        let counter = match arrival {
            Arrival::Routed => &self.received,
            Arrival::Returned => &self.returned,
            Arrival::Doubled => &self.doubled,
            Arrival::Expired => &self.expired,
        };
        counter.fetch_add(1, Relaxed);
    }

    pub(super) fn read(&self) -> GatewayCounts {
        let count = |counter: &AtomicU64| counter.load(Relaxed);
        GatewayCounts {
            connects: count(&self.connects),
            cuts: count(&self.cuts),
            failures: count(&self.failures),
            changes: count(&self.changes),
            received: count(&self.received),
            returned: count(&self.returned),
            doubled: count(&self.doubled),
            expired: count(&self.expired),
            refused: count(&self.refused),
        }
    }
}
