//! The payload of a captured packet: TCP octets with their position in the stream, or a datagram.

use std::net::{IpAddr, SocketAddr};

use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};

/// A TCP or UDP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Carried<'p> {
    /// Source.
    pub(crate) from: SocketAddr,
    /// Destination.
    pub(crate) to: SocketAddr,
    /// Payload.
    pub(crate) load: Load<'p>,
}

/// The payload of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load<'p> {
    /// A part of a TCP stream.
    Segment {
        /// Sequence number of its first octet, or of the SYN.
        at: u32,
        /// The segment has the SYN flag.
        opens: bool,
        /// Its octets.
        octets: &'p [u8],
    },
    /// A whole datagram.
    Datagram(&'p [u8]),
}

impl<'p> Carried<'p> {
    /// Parses a packet that begins with its Ethernet header. Returns `None` for other protocols, fragments and
    /// malformed packets.
    #[must_use]
    pub(crate) fn parse(octets: &'p [u8]) -> Option<Self> {
        let packet = LaxSlicedPacket::from_ethernet(octets).ok()?;
        let (from, to): (IpAddr, IpAddr) = match packet.net? {
            LaxNetSlice::Ipv4(ip) => (
                ip.header().source_addr().into(),
                ip.header().destination_addr().into(),
            ),
            LaxNetSlice::Ipv6(ip) => (
                ip.header().source_addr().into(),
                ip.header().destination_addr().into(),
            ),
            _ => return None,
        };
        let (ports, load) = match packet.transport? {
            TransportSlice::Tcp(tcp) => {
                let load = Load::Segment {
                    at: tcp.sequence_number(),
                    opens: tcp.syn(),
                    octets: tcp.payload(),
                };
                ((tcp.source_port(), tcp.destination_port()), load)
            }
            TransportSlice::Udp(udp) => (
                (udp.source_port(), udp.destination_port()),
                Load::Datagram(udp.payload()),
            ),
            _ => return None,
        };
        Some(Self {
            from: SocketAddr::new(from, ports.0),
            to: SocketAddr::new(to, ports.1),
            load,
        })
    }
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    #[test]
    fn segments_and_datagrams_are_read_with_their_ends() {
        let mut octets = Vec::new();
        let builder =
            PacketBuilder::ethernet2([0; 6], [0; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
        builder
            .tcp(4000, 5000, 77, 100)
            .syn()
            .write(&mut octets, b"")
            .expect("written");
        assert_eq!(
            Carried::parse(&octets),
            Some(Carried {
                from: "10.0.0.1:4000".parse().expect("an address"),
                to: "10.0.0.2:5000".parse().expect("an address"),
                load: Load::Segment {
                    at: 77,
                    opens: true,
                    octets: b""
                },
            })
        );
        octets.clear();
        let builder = PacketBuilder::ethernet2([0; 6], [0; 6]).ipv6([1; 16], [2; 16], 64);
        builder
            .udp(4000, 5000)
            .write(&mut octets, b"abc")
            .expect("written");
        let carried = Carried::parse(&octets).expect("a datagram");
        assert_eq!(carried.load, Load::Datagram(b"abc"));
        for len in 0..octets.len() - 3 {
            // A truncated packet must not parse as another one.
            assert!(!matches!(
                Carried::parse(&octets[..len]),
                Some(Carried {
                    load: Load::Segment { .. },
                    ..
                })
            ));
        }
    }
}
