//! [`LinkSpec`]: one link between two nodes of a network, and [`LinkLayer`]: the octets that a frame takes on it.

use serde::{Deserialize, Serialize};

/// One link. It carries frames both ways, each way on a line of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkSpec {
    /// Rate of each way, bits a second, counted over everything in [`LinkLayer::wire_octets`].
    pub rate_bits_per_s: u64,
    /// Largest IP packet, octets; a longer one is dropped.
    pub mtu_bytes: u32,
    /// The overhead of a frame beside its Ethernet header and IP packet.
    pub link_layer: LinkLayer,
    /// Frames queued before the link, in each of three priorities, before more are dropped.
    pub queue_frames: u32,
    /// How the link delays and damages what it carries.
    pub impairment: Impairment,
}

/// What a link does to frames beside their transmission. The default is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Impairment {
    /// Propagation delay, nanoseconds.
    pub delay_ns: u64,
    /// The largest additional delay, nanoseconds. Each frame gets an evenly distributed part of it; frames keep their
    /// order.
    pub jitter_ns: u64,
    /// Share of frames that are lost, 0 to 1.
    pub loss: f64,
    /// Share of frames that arrive twice, 0 to 1.
    pub duplicate: f64,
    /// Share of frames that are held back by `reorder_delay_ns`, so that later ones overtake them, 0 to 1.
    pub reorder: f64,
    /// How long these are held back, nanoseconds.
    pub reorder_delay_ns: u64,
}

/// The encapsulation of an IP packet, and its overhead on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LinkLayer {
    /// Preamble 8, header 14, frame check sequence 4, gap 12; at least 84 octets (IEEE 802.3).
    Ethernet,
    /// LLC/SNAP 8 (RFC 2684) and AAL5 trailer 8, cut into cells of 48 octets in 53 (ITU-T I.363.5, I.361).
    Atm,
}

impl LinkLayer {
    /// Returns the octets on the wire of an IP packet of `packet_bytes`, all overhead counted.
    #[must_use]
    pub fn wire_octets(self, packet_bytes: u64) -> u64 {
        match self {
            Self::Ethernet => (packet_bytes + ETHERNET_HEADER + ETHERNET_GAP).max(ETHERNET_MIN),
            Self::Atm => (packet_bytes + AAL5_LLC_SNAP).div_ceil(CELL_PAYLOAD) * CELL,
        }
    }
}

impl LinkSpec {
    /// Returns the time for which the link sends an IP packet of `packet_bytes`, seconds.
    #[must_use]
    pub fn transmission_s(&self, packet_bytes: u64) -> f64 {
        let wire_bits = self.link_layer.wire_octets(packet_bytes) as f64 * 8.0;
        wire_bits / self.rate_bits_per_s as f64
    }
}

/// Destination, source and type field.
pub(crate) const ETHERNET_HEADER: u64 = 14;
/// Preamble 8, frame check sequence 4, gap 12.
pub(crate) const ETHERNET_GAP: u64 = 24;
/// Shortest frame (64) with preamble and gap.
pub(crate) const ETHERNET_MIN: u64 = 84;
/// LLC/SNAP 8 and AAL5 trailer 8.
pub(crate) const AAL5_LLC_SNAP: u64 = 16;
const CELL_PAYLOAD: u64 = 48;
const CELL: u64 = 53;
