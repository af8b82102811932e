//! The octets of messages on a line and at an interface: what a rate of messages is as a share of a link.

use deckwatch_testbed::LinkSpec;
use serde::{Deserialize, Serialize};

/// How messages are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Each message is a datagram, which is cut into fragments above the MTU.
    Udp,
    /// Messages follow each other in segments as large as the MTU allows.
    Tcp,
}

/// How messages become packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Datagrams,
    /// The stream always has octets that wait, so that all segments are full.
    FullSegments,
    /// Each message has its own segments.
    OwnSegments,
}

/// Octets of one message, layer by layer. A stream has parts of segments: these are means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Octets {
    /// As the interface of Linux counts: IP packets, each with 14 octets of header.
    pub(super) interface: f64,
    /// On the line, with preamble, gap and check sequence, or as cells.
    pub(super) line: f64,
}

impl Octets {
    /// Returns the octets of a message of `size` over a link. Without a link the octets on the line are 0.
    pub(super) fn of(framing: Framing, size: u32, mtu: u32, link: Option<&LinkSpec>) -> Self {
        let line = |packet: u64| link.map_or(0, |link| link.link_layer.wire_octets(packet)) as f64;
        let sum = |packets: &[u64]| Self {
            interface: packets.iter().map(|packet| packet + HEADER).sum::<u64>() as f64,
            line: packets.iter().map(|packet| line(*packet)).sum(),
        };
        let (size, mtu) = (u64::from(size), u64::from(mtu));
        match framing {
            Framing::Datagrams => sum(&datagram(size, mtu)),
            Framing::OwnSegments => sum(&segments(size, mtu)),
            Framing::FullSegments => {
                let share = size as f64 / segment(mtu) as f64;
                let one = sum(&[mtu]);
                Self {
                    interface: one.interface * share,
                    line: one.line * share,
                }
            }
        }
    }
}

/// Returns the octets of each IP packet of a UDP datagram.
fn datagram(size: u64, mtu: u64) -> Vec<u64> {
    // Every fragment but the last has a multiple of eight octets. An MTU below 68 is no MTU (RFC 791).
    let fragment = (mtu.max(MTU_MIN) - IP_HEADER) / 8 * 8;
    cut(size + UDP_HEADER, fragment, IP_HEADER)
}

/// Returns the octets of each IP packet of a message on a stream.
fn segments(size: u64, mtu: u64) -> Vec<u64> {
    cut(size, segment(mtu), TCP_HEADERS)
}

fn segment(mtu: u64) -> u64 {
    mtu.max(MTU_MIN) - TCP_HEADERS
}

/// Cuts octets into pieces of at most `piece`, each with a header.
fn cut(octets: u64, piece: u64, header: u64) -> Vec<u64> {
    let mut packets = vec![piece + header; (octets / piece) as usize];
    let rest = octets % piece;
    packets.extend((rest > 0).then_some(rest + header));
    packets
}

const IP_HEADER: u64 = 20;
const UDP_HEADER: u64 = 8;
/// IP and TCP with its timestamps.
const TCP_HEADERS: u64 = 20 + 32;
/// What the interface counts of an Ethernet frame beside its packet.
const HEADER: u64 = 14;
const MTU_MIN: u64 = 68;

#[cfg(test)]
mod tests {
    use deckwatch_testbed::preset;

    use super::*;

    fn of(framing: Framing, size: u32, network: &str) -> (f64, f64) {
        let link = preset(network).expect("a preset").link().expect("a link");
        let octets = Octets::of(framing, size, link.mtu_bytes, Some(&link));
        (octets.interface, octets.line)
    }

    #[test]
    fn a_datagram_has_the_octets_of_its_frames() {
        assert_eq!(
            of(Framing::Datagrams, 1_472, "fast-ethernet"),
            (1_514.0, 1_538.0)
        );
        // The shortest frame has 84 octets on the line.
        assert_eq!(of(Framing::Datagrams, 8, "fast-ethernet"), (50.0, 84.0));
        // A second fragment for one octet.
        let two = (1_514.0 + 35.0, 1_538.0 + 84.0);
        assert_eq!(of(Framing::Datagrams, 1_473, "fast-ethernet"), two);
        // 48 octets of IP, 8 of LLC/SNAP and 8 of AAL5 take two cells.
        assert_eq!(of(Framing::Datagrams, 20, "atm-oc3"), (62.0, 106.0));
    }

    #[test]
    fn a_stream_has_its_part_of_full_segments() {
        let (interface, line) = of(Framing::FullSegments, 1_448, "fast-ethernet");
        assert_eq!((interface, line), (1_514.0, 1_538.0));
        let (_, half) = of(Framing::FullSegments, 724, "fast-ethernet");
        assert_eq!(half, 769.0);
        let (interface, line) = of(Framing::OwnSegments, 1_449, "fast-ethernet");
        assert_eq!((interface, line), (1_514.0 + 67.0, 1_538.0 + 91.0));
    }

    #[test]
    fn a_link_that_is_not_known_has_no_line() {
        assert_eq!(Octets::of(Framing::Datagrams, 8, 65_536, None).line, 0.0);
    }
}
