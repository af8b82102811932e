//! What became of every event, by mapping and direction.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use serde::Serialize;

/// Defines a set of counters and its snapshot.
macro_rules! counts {
    ($(#[$doc:meta])* $counters:ident => $counts:ident { $($(#[$field_doc:meta])* $field:ident,)* }) => {
        #[derive(Debug, Default)]
        pub(crate) struct $counters {
            $(pub(crate) $field: Counter,)*
        }

        impl $counters {
            pub(crate) fn read(&self) -> $counts {
                $counts { $($field: self.$field.read(),)* }
            }
        }

        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct $counts {
            $($(#[$field_doc])* pub $field: u64,)*
        }
    };
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self) {
        self.add_many(1);
    }

    pub(crate) fn add_many(&self, count: u64) {
        self.0.fetch_add(count, Relaxed);
    }

    pub(crate) fn read(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

counts! {
    /// From the channel to zenoh. Each received event is counted once more: in one of the other fields, or it waits.
    OutCounters => OutCounts {
        /// Events from the channel.
        received,
        /// Events that zenoh took while a subscriber matched.
        published,
        /// Events that zenoh took while no subscriber matched.
        unheard,
        /// Events that this gateway had pushed into the channel; they do not go back.
        returned,
        /// Events whose `ttl` was 0.
        expired,
        /// Events of another type or source than the mapping's.
        unmapped,
        /// Events for which the queue had no room.
        dropped,
        /// Events that zenoh refused or that were too large.
        failed,
    }
}

counts! {
    /// From zenoh to the channel. Each received sample is counted once more, `lost` apart, or it waits.
    InCounters => InCounts {
        /// Samples from zenoh.
        received,
        /// Events that were sent to the channel; a push is one-way.
        pushed,
        /// Samples that this gateway had published; they do not come back.
        own,
        /// Samples whose attachment is none of a gateway's, or contradicts the key.
        malformed,
        /// Samples of another type or source than the mapping's, and deletions.
        unmapped,
        /// Events for which the queue had no room, and payloads above the maximum.
        dropped,
        /// Events that came while no channel was connected.
        without_channel,
        /// Events of other gateways that never arrived: gaps in their numbers.
        lost,
    }
}

/// The counts of one mapping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MappingCounts {
    /// The mapping's key expression, as in the file.
    pub key: String,
    /// Channel to zenoh; `None` for a mapping that does not go this way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out: Option<OutCounts>,
    /// Zenoh to channel; `None` for a mapping that does not go this way.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub r#in: Option<InCounts>,
}

/// The counts of a gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// The identity in the attachments of this gateway, from its zenoh session.
    pub gateway: String,
    /// How often the channel was connected.
    pub connects: u64,
    /// In the order of the file.
    pub mappings: Vec<MappingCounts>,
}
