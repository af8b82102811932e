//! The counters of a channel.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use deckwatch_orb::delivery::DeliveryCounts;

use crate::peers::Shares;

/// Live counts, written only by threads that run the channel's code.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) received: AtomicU64,
    /// To consumers that pull; outlets have counters of their own.
    pub(crate) delivered: AtomicU64,
    /// From the queues of consumers that pull.
    pub(crate) displaced: AtomicU64,
    /// For consumers that pull.
    pub(crate) failed: AtomicU64,
    pub(crate) consumers_lost: AtomicU64,
    pub(crate) suppliers_lost: AtomicU64,
    pub(crate) pulls_refused: AtomicU64,
}

/// The counts at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelCounts {
    /// Events that suppliers have pushed.
    pub received: u64,
    /// Events that consumers have received, counted once for each consumer.
    pub delivered: u64,
    /// Events dropped by the policy of a full queue, or by the bound on the octets of all events.
    pub displaced: u64,
    /// Pushes to a consumer that failed, including events that could not be encoded for it.
    pub failed: u64,
    /// Consumers that were removed because they were gone or failed too often, or because they had not pulled for
    /// [`crate::limits::PULLER_QUIET_MIN`] when another one needed the place.
    pub consumers_lost: u64,
    /// Suppliers that were removed: to make room for new ones, after they had pushed nothing for
    /// [`crate::limits::SUPPLIER_QUIET_MIN`] and were gone or had given no reference; or because the channel could not
    /// pull from them.
    pub suppliers_lost: u64,
    /// `pull` calls that were refused because [`crate::limits::PULLS_WAITING_MAX`] others waited.
    pub pulls_refused: u64,
    /// Connects that were refused because the peer held its share of the places.
    pub refused: u64,
    /// Requests that the access table does not permit.
    pub denied: u64,
}

impl ChannelCounts {
    /// The sums with the counts of another channel.
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            received: self.received + other.received,
            delivered: self.delivered + other.delivered,
            displaced: self.displaced + other.displaced,
            failed: self.failed + other.failed,
            consumers_lost: self.consumers_lost + other.consumers_lost,
            suppliers_lost: self.suppliers_lost + other.suppliers_lost,
            pulls_refused: self.pulls_refused + other.pulls_refused,
            refused: self.refused + other.refused,
            denied: self.denied + other.denied,
        }
    }
}

impl Counters {
    /// The sums with those of the outlets.
    pub(crate) fn read(&self, deliveries: DeliveryCounts, shares: &Shares) -> ChannelCounts {
        ChannelCounts {
            received: self.received.load(Relaxed),
            delivered: deliveries.delivered + self.delivered.load(Relaxed),
            displaced: deliveries.dropped + self.displaced.load(Relaxed),
            failed: deliveries.failed + self.failed.load(Relaxed),
            consumers_lost: self.consumers_lost.load(Relaxed),
            suppliers_lost: self.suppliers_lost.load(Relaxed),
            pulls_refused: self.pulls_refused.load(Relaxed),
            refused: shares.refused(),
            denied: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_two_channels_are_added_one_by_one() {
        let first = ChannelCounts {
            received: 1,
            delivered: 2,
            displaced: 3,
            failed: 4,
            consumers_lost: 5,
            suppliers_lost: 6,
            pulls_refused: 7,
            refused: 8,
            denied: 9,
        };
        let second = ChannelCounts {
            received: 10,
            delivered: 20,
            displaced: 30,
            failed: 40,
            consumers_lost: 50,
            suppliers_lost: 60,
            pulls_refused: 70,
            refused: 80,
            denied: 90,
        };
        let sum = ChannelCounts {
            received: 11,
            delivered: 22,
            displaced: 33,
            failed: 44,
            consumers_lost: 55,
            suppliers_lost: 66,
            pulls_refused: 77,
            refused: 88,
            denied: 99,
        };
        assert_eq!(first.plus(second), sum);
    }

    #[test]
    fn what_outlets_and_pulls_have_counted_is_added() {
        let orb = deckwatch_orb::Orb::builder().build().expect("an ORB");
        let shares = Shares::new(&orb, 50, 4);
        let counters = Counters::default();
        counters.delivered.store(20, Relaxed);
        counters.displaced.store(30, Relaxed);
        counters.failed.store(40, Relaxed);
        let outlets = DeliveryCounts {
            delivered: 2,
            dropped: 3,
            failed: 4,
        };
        let counts = counters.read(outlets, &shares);
        let sums = (counts.delivered, counts.displaced, counts.failed);
        assert_eq!(sums, (22, 33, 44));
        assert_eq!(counts.failed, counters.failed.load(Relaxed) + 4);
    }
}
