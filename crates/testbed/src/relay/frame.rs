//! What a relay reads of an Ethernet frame: the destination, the priority, the length.

use super::{Band, Destination, Head};
use crate::link::ETHERNET_HEADER;
use crate::recipe;

impl Head {
    /// Parses a frame as a host sends it. Returns `None` for one without a whole Ethernet header.
    #[must_use]
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let packet = frame.get(ETHERNET_HEADER as usize..)?;
        let to: [u8; 6] = frame[..6].try_into().ok()?;
        let destination = if to[0] & GROUP_BIT != 0 {
            Destination::All
        } else {
            let port = recipe::port_of_mac(to).and_then(|port| port.checked_sub(1));
            port.map_or(Destination::Nobody, Destination::Host)
        };
        let is_ipv4 = frame[12..14] == ETHERTYPE_IPV4;
        let dscp = packet.get(1).filter(|_| is_ipv4).map(|tos| tos >> 2);
        Some(Self {
            to: destination,
            packet_bytes: u32::try_from(packet.len()).ok()?,
            band: dscp.map_or(Band::Middle, Band::of_dscp),
        })
    }
}

impl Band {
    /// Returns the priority of a differentiated services code point.
    #[must_use]
    pub const fn of_dscp(dscp: u8) -> Self {
        let mut index = 0;
        while index < DSCP_FIRST.len() {
            if DSCP_FIRST[index] == dscp {
                return Self::First;
            }
            index += 1;
        }
        if dscp == DSCP_LAST[0] || dscp == DSCP_LAST[1] {
            return Self::Last;
        }
        Self::Middle
    }
}

/// Voice and control: CS5, VOICE-ADMIT, EF, CS6, CS7 (RFC 4594).
pub(crate) const DSCP_FIRST: [u8; 5] = [40, 44, 46, 48, 56];
/// Lower effort and CS1 (RFC 8622, RFC 4594).
pub(crate) const DSCP_LAST: [u8; 2] = [1, 8];

/// Set in the first octet of an address of several stations (IEEE 802 section 8).
const GROUP_BIT: u8 = 1;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(to: [u8; 6], ethertype: [u8; 2], tos: u8, len: usize) -> Vec<u8> {
        let mut frame = vec![0; 14 + len];
        frame[..6].copy_from_slice(&to);
        frame[12..14].copy_from_slice(&ethertype);
        frame[15] = tos;
        frame
    }

    #[test]
    fn a_frame_tells_its_host_its_length_and_its_priority() {
        let head = Head::parse(&frame([2, 0x44, 0x57, 0, 0, 3], [8, 0], 46 << 2, 100)).unwrap();
        assert_eq!(head.to, Destination::Host(2));
        assert_eq!((head.packet_bytes, head.band), (100, Band::First));
        let last = Head::parse(&frame([255; 6], [8, 0], 8 << 2, 46)).unwrap();
        assert_eq!((last.to, last.band), (Destination::All, Band::Last));
        let other = Head::parse(&frame([2, 0, 0, 0, 0, 3], [8, 6], 46 << 2, 46)).unwrap();
        assert_eq!((other.to, other.band), (Destination::Nobody, Band::Middle));
    }

    #[test]
    fn no_octets_make_the_parser_panic() {
        for len in 0..40 {
            for octet in [0, 1, 2, 255] {
                let head = Head::parse(&vec![octet; len]);
                assert_eq!(head.is_some(), len >= 14, "{len}");
            }
        }
    }

    #[test]
    fn code_points_of_voice_and_control_are_first_and_those_of_lower_effort_last() {
        for dscp in 0..64 {
            let expected = match dscp {
                40 | 44 | 46 | 48 | 56 => Band::First,
                1 | 8 => Band::Last,
                _ => Band::Middle,
            };
            assert_eq!(Band::of_dscp(dscp), expected, "{dscp}");
        }
    }
}
