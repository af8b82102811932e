//! What a channel counts.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Live counts, written by the channel's threads alone.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) received: AtomicU64,
    pub(crate) delivered: AtomicU64,
    pub(crate) displaced: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) consumers_lost: AtomicU64,
    pub(crate) suppliers_lost: AtomicU64,
}

/// The counts at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelCounts {
    /// Events that suppliers have pushed.
    pub received: u64,
    /// Events that consumers have taken, one for each consumer.
    pub delivered: u64,
    /// Events that gave way in a full queue.
    pub displaced: u64,
    /// Pushes to a consumer that failed, or of events that could not be written for it.
    pub failed: u64,
    /// Consumers that were let go because they were gone or failed too often.
    pub consumers_lost: u64,
    /// Suppliers that were let go for others: they had pushed nothing for [`crate::limits::SUPPLIER_QUIET_MIN`], and were gone or had given no reference.
    pub suppliers_lost: u64,
}

impl Counters {
    pub(crate) fn read(&self) -> ChannelCounts {
        ChannelCounts {
            received: self.received.load(Relaxed),
            delivered: self.delivered.load(Relaxed),
            displaced: self.displaced.load(Relaxed),
            failed: self.failed.load(Relaxed),
            consumers_lost: self.consumers_lost.load(Relaxed),
            suppliers_lost: self.suppliers_lost.load(Relaxed),
        }
    }
}
