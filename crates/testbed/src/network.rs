//! The networks that can be emulated: the octets that a frame takes on the wire, and the shaper that enforces them.

use std::fmt;

use crate::layout::Layout;
use crate::link::{
    AAL5_LLC_SNAP, ETHERNET_GAP, ETHERNET_HEADER, ETHERNET_MIN, Impairment, LinkLayer, LinkSpec,
};

/// A network: one switch with one port for each host, all ports at the same rate; or a layout of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkSpec {
    /// The name in mission files and results.
    pub name: String,
    /// Rate of a port, bits a second, counted over everything in [`Self::wire_octets`]; `None` for no shaping
    /// (loopback).
    pub rate_bits_per_s: Option<u64>,
    /// Largest IP packet, octets.
    pub mtu_bytes: u32,
    /// Octets that a port may send at once, to make up for a late timer of the shaper. With too small a value the port
    /// does not reach its rate; with too large a value bursts pass unshaped.
    pub burst_bytes: u32,
    /// Frames queued at a port, in each of three priorities, before more are dropped.
    pub queue_frames: u32,
    /// The overhead of a frame beside its Ethernet header and IP packet.
    pub link_layer: LinkLayer,
    /// What carries the frames.
    pub emulation: Emulation,
    /// Hosts, switches and links; `None` for one switch with a link to each host. A layout needs a relay.
    pub layout: Option<Layout>,
    /// Decides losses, duplicates, jitter and reordering.
    pub seed: u64,
}

/// What carries the frames of an emulated network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emulation {
    /// A shaper of the kernel at each port: as fast as the kernel, but a token bucket.
    Shaper,
    /// A relay: each frame takes its time on each line.
    Relay,
    /// A relay that never sleeps: short times come true too, and it keeps one processor busy.
    SpinningRelay,
}

impl Emulation {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Shaper, Self::Relay, Self::SpinningRelay];

    /// The name in files and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shaper => "shaper",
            Self::Relay => "relay",
            Self::SpinningRelay => "spinning-relay",
        }
    }
}

impl NetworkSpec {
    /// Returns the octets on the wire of an IP packet of `packet_bytes`, all overhead counted.
    #[must_use]
    pub fn wire_octets(&self, packet_bytes: u64) -> u64 {
        self.link_layer.wire_octets(packet_bytes)
    }

    /// Returns the link of each host. Returns `None` on loopback.
    #[must_use]
    pub fn link(&self) -> Option<LinkSpec> {
        Some(LinkSpec {
            rate_bits_per_s: self.rate_bits_per_s?,
            mtu_bytes: self.mtu_bytes,
            link_layer: self.link_layer,
            queue_frames: self.queue_frames,
            impairment: Impairment::default(),
        })
    }

    /// Returns hosts, switches and links for hosts of these names. Returns `None` on loopback.
    #[must_use]
    pub fn layout_for(&self, hosts: Vec<String>) -> Option<Layout> {
        match &self.layout {
            Some(layout) => Some(layout.clone()),
            None => Some(Layout::star(hosts, &self.link()?)),
        }
    }

    /// Returns the network of one link, with the credit that a shaper in front of a relay needs: for two frames, and for
    /// a timer that is a quarter of a millisecond late.
    pub(crate) fn of_link(&self, link: &LinkSpec) -> Self {
        let frame = link.mtu_bytes + ETHERNET_HEADER as u32;
        let late = u32::try_from(link.rate_bits_per_s / 8 / 4000).unwrap_or(u32::MAX);
        Self {
            rate_bits_per_s: Some(link.rate_bits_per_s),
            mtu_bytes: link.mtu_bytes,
            burst_bytes: late.max(2 * frame),
            queue_frames: link.queue_frames,
            link_layer: link.link_layer,
            ..self.clone()
        }
    }

    /// Returns the maximum rate of UDP payload, bits a second, in datagrams of `payload_bytes` that fit one packet.
    /// Returns `None` on loopback.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "rates and sizes are far below 2^53"
    )]
    pub fn udp_goodput_bits_per_s(&self, payload_bytes: u64) -> Option<f64> {
        let wire = self.wire_octets(payload_bytes + IPV4_UDP_HEADERS);
        Some(self.rate_bits_per_s? as f64 * payload_bytes as f64 / wire as f64)
    }

    /// Returns the shaper's arguments for `tc`, after `tbf`.
    pub(crate) fn shaper(&self) -> Option<String> {
        let (rate, burst) = (self.rate_bits_per_s?, self.burst_bytes);
        let limit = u64::from(self.queue_frames) * (u64::from(self.mtu_bytes) + ETHERNET_HEADER);
        let link = match self.link_layer {
            LinkLayer::Ethernet => format!("overhead {ETHERNET_GAP} mpu {ETHERNET_MIN}"),
            // The kernel counts the Ethernet header, which ATM does not have; subtract it from LLC/SNAP and trailer.
            LinkLayer::Atm => format!("overhead {} linklayer atm", AAL5_LLC_SNAP - ETHERNET_HEADER),
        };
        Some(format!("rate {rate}bit burst {burst} limit {limit} {link}"))
    }

    /// Returns the arguments of a shaper that lets one frame pass and then none for minutes ([`crate::Port::hold`]).
    pub(crate) fn standstill(&self) -> Option<String> {
        self.rate_bits_per_s?;
        let frame = u64::from(self.mtu_bytes) + ETHERNET_HEADER;
        let limit = u64::from(self.queue_frames) * frame;
        Some(format!(
            "rate 1kbit burst {frame} limit {limit} overhead {STANDSTILL_OVERHEAD}"
        ))
    }
}

impl fmt::Display for NetworkSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(rate) = self.rate_bits_per_s else {
            return write!(f, "{}: no emulated network", self.name);
        };
        let link = match self.link_layer {
            LinkLayer::Ethernet => "Ethernet frames with preamble and gap",
            LinkLayer::Atm => "AAL5 in ATM cells",
        };
        let megabits = rate as f64 / 1e6;
        write!(
            f,
            "{}: {megabits} Mb/s a port counting {link}, MTU {}, ",
            self.name, self.mtu_bytes
        )?;
        match (&self.layout, self.emulation) {
            (Some(layout), _) => write!(
                f,
                "{} hosts, {} switches and {} links by a relay",
                layout.hosts.len(),
                layout.switches.len(),
                layout.links.len()
            ),
            (None, Emulation::Relay | Emulation::SpinningRelay) => write!(
                f,
                "{} frames queued in each of 3 priorities, by a {}",
                self.queue_frames,
                self.emulation.name()
            ),
            (None, Emulation::Shaper) => write!(
                f,
                "bursts of {} octets, {} frames queued in each of 3 priorities",
                self.burst_bytes, self.queue_frames
            ),
        }
    }
}

const IPV4_UDP_HEADERS: u64 = 28;
/// Octets that the shaper adds to each frame while a port is held. They are many times the largest frame, so that after
/// one frame the credit never suffices for another.
const STANDSTILL_OVERHEAD: u64 = 65_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets::preset;

    #[track_caller]
    fn assert_goodput(network: &NetworkSpec, payload_bytes: u64, expected_mbit: f64) {
        let mbit = network.udp_goodput_bits_per_s(payload_bytes).unwrap() / 1e6;
        assert!(
            (mbit - expected_mbit).abs() < 0.01,
            "{mbit} is not {expected_mbit}"
        );
    }

    #[test]
    fn goodput_follows_from_the_frames_on_the_wire() {
        assert_goodput(&preset("fast-ethernet").unwrap(), 1472, 95.71);
        assert_goodput(&preset("gigabit-ethernet").unwrap(), 1472, 957.09);
        assert_goodput(&preset("atm-oc3").unwrap(), 1472, 129.98);
        assert_goodput(&preset("atm-oc3").unwrap(), 9152, 134.69);
        assert_eq!(
            preset("loopback").unwrap().udp_goodput_bits_per_s(100),
            None
        );
    }

    #[test]
    fn a_short_frame_costs_the_shortest_frame() {
        let network = preset("fast-ethernet").unwrap();
        assert_eq!(network.wire_octets(29), 84);
        assert_eq!(network.wire_octets(46), 84);
        assert_eq!(network.wire_octets(47), 85);
    }

    #[test]
    fn a_cell_more_is_paid_for_an_octet_more() {
        let network = preset("atm-oc3").unwrap();
        assert_eq!(network.wire_octets(80), 2 * 53);
        assert_eq!(network.wire_octets(81), 3 * 53);
    }

    #[test]
    fn a_held_port_has_credit_for_one_frame_and_room_for_its_queue() {
        let network = preset("fast-ethernet").unwrap();
        assert_eq!(
            network.standstill().unwrap(),
            "rate 1kbit burst 1514 limit 302800 overhead 65000"
        );
        assert_eq!(preset("loopback").unwrap().standstill(), None);
    }

    #[test]
    fn the_description_says_rate_and_size() {
        let text = preset("atm-oc3").unwrap().to_string();
        assert!(
            text.contains(" 149.76 Mb/s") && text.contains("MTU 9180"),
            "{text}"
        );
    }

    #[test]
    fn a_shaper_before_a_relay_has_credit_for_two_frames_and_for_a_late_timer() {
        let network = preset("gigabit-ethernet").unwrap();
        // It differs from the network in everything.
        let other = preset("atm-oc3").unwrap().link().unwrap();
        assert_eq!(network.of_link(&other).link(), Some(other));
        let mut link = preset("fast-ethernet").unwrap().link().unwrap();
        assert_eq!(network.of_link(&link).burst_bytes, 100_000_000 / 8 / 4000);
        // On a slow link two frames are more than a quarter of a millisecond.
        link.rate_bits_per_s = 10_000_000;
        assert_eq!(network.of_link(&link).burst_bytes, 2 * 1514);
        link.rate_bits_per_s = u64::MAX;
        assert_eq!(network.of_link(&link).burst_bytes, u32::MAX);
    }

    #[test]
    fn what_carries_the_frames_has_a_name() {
        let names = Emulation::ALL.map(Emulation::name);
        assert_eq!(names, ["shaper", "relay", "spinning-relay"]);
    }
}
