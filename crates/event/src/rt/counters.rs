//! The counters of a real-time channel. No event is lost without a count: by reason, and for each consumer.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Why a consumer does not get an event that its filter has emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// The queue of its lane was full, or the channel's bound of octets was reached.
    QueueFull,
    /// It has suspended its connection.
    Suspended,
    /// The event cannot be encoded for it, or there is no room for the octets.
    Unencodable,
    /// It is another channel, and the event's `ttl` is 0.
    TtlExpired,
    /// It left while the event was queued, or the channel ended.
    Gone,
    /// Its conjunctions kept the event, and more octets than those of any other consumer, when all conjunctions
    /// together had taken their share.
    Unfinished,
}

impl Loss {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::QueueFull,
        Self::Suspended,
        Self::Unencodable,
        Self::TtlExpired,
        Self::Gone,
        Self::Unfinished,
    ];

    /// The reason in words, for a report.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue full",
            Self::Suspended => "suspended",
            Self::Unencodable => "not encodable",
            Self::TtlExpired => "ttl expired",
            Self::Gone => "gone",
            Self::Unfinished => "conjunction too large",
        }
    }
}

/// Losses by reason.
#[derive(Debug, Default)]
pub(super) struct Losses([AtomicU64; Loss::ALL.len()]);

impl Losses {
    pub(super) fn count(&self, why: Loss) {
        self.0[why as usize].fetch_add(1, Relaxed);
    }

    pub(super) fn read(&self) -> [u64; Loss::ALL.len()] {
        self.0.each_ref().map(|count| count.load(Relaxed))
    }
}

/// Live counts of a channel.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) received: AtomicU64,
    pub(super) unwanted: AtomicU64,
    pub(super) timeouts: AtomicU64,
    pub(super) forwarded: AtomicU64,
    pub(super) consumers_lost: AtomicU64,
    pub(super) suppliers_lost: AtomicU64,
    pub(super) observers_lost: AtomicU64,
    pub(super) priority_fallbacks: AtomicU64,
    pub(super) losses: Losses,
}

/// The counts of a real-time channel at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RtCounts {
    /// Events that suppliers have pushed.
    pub received: u64,
    /// Events that no consumer's subscription matched.
    pub unwanted: u64,
    /// Timeouts that have fired.
    pub timeouts: u64,
    /// Event sets that were handed to consumers that lead to other channels.
    pub forwarded: u64,
    /// Event sets that were sent to consumers.
    pub delivered: u64,
    /// Event sets dropped from a consumer's own queue.
    pub dropped: u64,
    /// Event sets that could not be sent.
    pub failed: u64,
    /// Event sets that were lost before, by reason, in the order of [`Loss::ALL`].
    pub lost: [u64; Loss::ALL.len()],
    /// Consumers that were removed because they were gone or failed too often.
    pub consumers_lost: u64,
    /// Suppliers that were removed because their connection was closed and another needed the place.
    pub suppliers_lost: u64,
    /// Connects that were refused because the peer held its share of the places.
    pub refused: u64,
    /// Requests that the access table does not permit.
    pub denied: u64,
    /// Observers that were removed because they were gone or failed too often.
    pub observers_lost: u64,
    /// Event sets whose priority no lane had.
    pub priorities_missed: u64,
    /// Threads of lanes and connects of consumers to which the host refuses their priority.
    pub priority_fallbacks: u64,
    /// Connects that the schedule refuses.
    pub refused_by_schedule: u64,
}

impl RtCounts {
    /// Event sets lost for this reason.
    #[must_use]
    pub const fn lost(&self, why: Loss) -> u64 {
        self.lost[why as usize]
    }
}
