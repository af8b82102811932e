//! The octets of a message below the application: its IP packets, their frames, and what the line carries.

use deckwatch_carrier::carrier::{Carrier, Framing};
use deckwatch_testbed::{LinkLayer, NetworkSpec};

/// Octets that carry one message, layer by layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Layers {
    /// IP packets with their headers.
    pub(super) ip: f64,
    /// Frames with header and check sequence; on ATM, the octets in cells.
    pub(super) frame: f64,
    /// Frames with preamble and gap; on ATM, whole cells.
    pub(super) line: f64,
}

impl Layers {
    /// Returns the layers by the word of their keys.
    pub(super) const fn entries(&self) -> [(&'static str, f64); 3] {
        [("ip", self.ip), ("frame", self.frame), ("line", self.line)]
    }

    /// Returns the octets that carry one message of `size` over a network. `None` for a carrier whose messages have
    /// octets of a middleware too, and without a network.
    pub(super) fn of(carrier: &dyn Carrier, size: u32, network: &NetworkSpec) -> Option<Self> {
        network.rate_bits_per_s?;
        let mtu = u64::from(network.mtu_bytes);
        match carrier.framing() {
            Framing::Datagram => Some(Self::sum(&datagram(u64::from(size), mtu), network)),
            Framing::Length => {
                // A stream under load has full segments.
                let segment = mtu - TCP_HEADERS;
                let share = (u64::from(size) + LENGTH) as f64 / segment as f64;
                let one = Self::sum(&[mtu], network);
                Some(Self {
                    ip: one.ip * share,
                    frame: one.frame * share,
                    line: one.line * share,
                })
            }
            Framing::Unseen | Framing::Giop { .. } => None,
        }
    }

    /// The sum over packets of these octets.
    fn sum(packets: &[u64], network: &NetworkSpec) -> Self {
        let line = |packet: &u64| network.wire_octets(*packet);
        let frame = |packet: &u64| match network.link_layer {
            LinkLayer::Ethernet => line(packet) - PREAMBLE_AND_GAP,
            LinkLayer::Atm => line(packet) / CELL * CELL_PAYLOAD,
        };
        Self {
            ip: packets.iter().sum::<u64>() as f64,
            frame: packets.iter().map(frame).sum::<u64>() as f64,
            line: packets.iter().map(line).sum::<u64>() as f64,
        }
    }
}

/// Returns the octets of each IP packet of a UDP datagram, which is cut into fragments above the MTU.
fn datagram(size: u64, mtu: u64) -> Vec<u64> {
    // Every fragment but the last has a multiple of eight octets.
    let fragment = (mtu - IP_HEADER) / 8 * 8;
    let mut left = size + UDP_HEADER;
    let mut packets = Vec::new();
    while left + IP_HEADER > mtu {
        packets.push(fragment + IP_HEADER);
        left -= fragment;
    }
    packets.push(left + IP_HEADER);
    packets
}

const IP_HEADER: u64 = 20;
const UDP_HEADER: u64 = 8;
/// IP and TCP with its timestamps.
const TCP_HEADERS: u64 = 20 + 32;
/// Octets in front of a message on a stream.
const LENGTH: u64 = 4;
const PREAMBLE_AND_GAP: u64 = 20;
const CELL: u64 = 53;
const CELL_PAYLOAD: u64 = 48;

#[cfg(test)]
mod tests {
    use deckwatch_carrier::carriers::{tcp::Tcp, udp::Udp};
    use deckwatch_testbed::preset;

    use super::*;

    #[test]
    fn a_datagram_has_the_octets_of_its_layers() {
        let fast = preset("fast-ethernet").expect("a preset");
        let of = |size| Layers::of(&Udp, size, &fast).expect("a datagram");
        let one = Layers {
            ip: 1_500.0,
            frame: 1_518.0,
            line: 1_538.0,
        };
        assert_eq!(of(1_472), one);
        // The second fragment has one octet, and the shortest frame.
        let two = Layers {
            ip: 1_521.0,
            frame: 1_518.0 + 64.0,
            line: 1_538.0 + 84.0,
        };
        assert_eq!(of(1_473), two);
        let cells = preset("atm-oc3").expect("a preset");
        let found = Layers::of(&Udp, 20, &cells).expect("a datagram");
        // 48 octets of IP, 8 of LLC/SNAP and 8 of AAL5 take two cells.
        assert_eq!((found.ip, found.frame, found.line), (48.0, 96.0, 106.0));
    }

    #[test]
    fn a_stream_fills_its_segments_and_a_middleware_is_not_known() {
        let fast = preset("fast-ethernet").expect("a preset");
        let found = Layers::of(&Tcp, 1_444, &fast).expect("a stream");
        assert_eq!((found.ip, found.line), (1_500.0, 1_538.0));
        let corba = &deckwatch_carrier::carriers::corba::TWO_WAY;
        assert_eq!(Layers::of(corba, 64, &fast), None);
        let loopback = preset("loopback").expect("a preset");
        assert_eq!(Layers::of(&Udp, 64, &loopback), None);
    }
}
