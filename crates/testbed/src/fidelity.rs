//! [`Fidelity`]: what an emulated network does as a real one, and what it does not. Worded here once, for the command
//! line, results and reports.
//!
//! A relay sends each frame for its time. A shaped port is a token bucket. It sends a frame at once while it has credit
//! for it, and earns credit at its rate. A real port keeps every frame for its transmission time. If a real port finds
//! a backlog of `v` octets before a frame, the frame waits there for the whole backlog. Here it waits for `v` less the
//! credit that the frame itself does not need.

use crate::link::{ETHERNET_HEADER, Impairment};
use crate::network::{Emulation, NetworkSpec};

/// What a network does as a real one, and what it does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fidelity {
    /// What is emulated, a clause each.
    pub emulated: Vec<String>,
    /// What is not, a clause each, with the size of the difference.
    pub not_emulated: Vec<String>,
}

impl Fidelity {
    /// Returns `None` on loopback, which emulates no network.
    #[must_use]
    pub fn of(network: &NetworkSpec) -> Option<Self> {
        match network.emulation {
            Emulation::Shaper => Self::of_shapers(network),
            Emulation::Relay | Emulation::SpinningRelay => Self::of_relay(network),
        }
    }

    fn of_relay(network: &NetworkSpec) -> Option<Self> {
        let star = network.layout_for(Vec::new())?;
        let own = network.link()?;
        let slowest = star.links.iter().map(|link| &link.spec);
        let slowest = slowest
            .min_by_key(|link| link.rate_bits_per_s)
            .unwrap_or(&own);
        let packet = u64::from(slowest.mtu_bytes);
        let hop = micros(slowest.transmission_s(packet));
        let mut emulated = vec![
            "the rate of a line: goodput within 0.5% of theory, as far as this machine carries it".to_owned(),
            format!(
                "transmission time at any load: a packet of {packet} octets takes {hop} a hop, and the next waits for it"
            ),
            "waits behind other packets: those of a real link (M/D/1), within 15% at 50, 75 and 90% load".to_owned(),
            format!(
                "the queue before a line: {} frames in each of 3 priorities, more are dropped",
                slowest.queue_frames
            ),
            format!(
                "strict priorities by DSCP, with the head-of-line wait for the packet that is being sent, up to {hop}"
            ),
        ];
        if star
            .links
            .iter()
            .any(|link| link.spec.impairment != Impairment::default())
        {
            emulated.push(
                "delay, jitter, loss, duplicates and reordering of the links that ask for them"
                    .to_owned(),
            );
        }
        let shortest = match network.emulation {
            Emulation::SpinningRelay => {
                "times shorter than the relay's own: a packet takes some 10 us through it, though its lines take less"
            }
            _ => {
                "times shorter than a process takes: a packet takes some 60 to 100 us through the relay of an idle \
                 machine, though its lines take less"
            }
        };
        Some(Self {
            emulated,
            not_emulated: vec![
                shortest.to_owned(),
                "rates beyond what the relay's process carries: some 60,000 packets a second on a machine with two \
                 processors"
                    .to_owned(),
            ],
        })
    }

    fn of_shapers(network: &NetworkSpec) -> Option<Self> {
        let packet = u64::from(network.mtu_bytes);
        let hop = micros(network.transmission_s(packet)?);
        let below = |load| 100.0 * (1.0 - network.wait_share(packet, load).unwrap_or(1.0));
        let [half, three_quarters, nine_tenths] = LOADS.map(below);
        let emulated = vec![
            "the rate of a port: what waits there leaves at that rate, within 1%".to_owned(),
            format!(
                "the queue of a port: {} frames in each of 3 priorities, more are dropped",
                network.queue_frames
            ),
            "strict priorities: what waits at a port leaves in the order of its DSCP".to_owned(),
        ];
        let not_emulated = vec![
            format!(
                "transmission time at low load: a packet of {packet} octets takes {hop} a hop on a real link, and none \
                 here while the port has credit ({} octets on the wire)",
                network.credit_octets()
            ),
            format!(
                "waits behind other packets: with random arrivals of such packets, the mean wait at 50, 75 and 90% \
                 load is {half:.0}, {three_quarters:.0} and {nine_tenths:.0}% below that of a real link (M/D/1)"
            ),
            format!(
                "head-of-line wait: an urgent packet does not wait for the end of a less urgent one, up to {hop} a hop \
                 on a real link"
            ),
        ];
        Some(Self {
            emulated,
            not_emulated,
        })
    }
}

impl NetworkSpec {
    /// Returns the time for which a real port sends an IP packet of `packet_bytes`, seconds. Returns `None` on
    /// loopback.
    #[must_use]
    pub fn transmission_s(&self, packet_bytes: u64) -> Option<f64> {
        let wire_bits = self.wire_octets(packet_bytes) as f64 * 8.0;
        Some(wire_bits / self.rate_bits_per_s? as f64)
    }

    /// Returns the octets on the wire that a port which has sent nothing for a while passes at once.
    #[must_use]
    pub fn credit_octets(&self) -> u64 {
        // The shaper takes its burst for a frame with an Ethernet header, and adds the overhead of a frame to it.
        self.wire_octets(u64::from(self.burst_bytes).saturating_sub(ETHERNET_HEADER))
    }

    /// Returns the mean wait of packets that arrive at random (Poisson) at a share `load` of the rate, as a share of
    /// that at a real link (M/D/1). All packets have `packet_bytes`. Returns `None` on loopback.
    ///
    /// The wait at a real link, in transmission times, has Erlang's distribution: P(W <= t) = (1 - load) times the sum
    /// over k <= t of (-x)^k e^x / k! with x = load (t - k). A packet waits here for W less the spare credit `c`. The
    /// mean of what exceeds `c` is E(W) - c + the integral of P(W <= t) up to `c`.
    #[must_use]
    pub fn wait_share(&self, packet_bytes: u64, load: f64) -> Option<f64> {
        self.rate_bits_per_s?;
        let frame = self.wire_octets(packet_bytes) as f64;
        let spare = (self.credit_octets() as f64 - frame).max(0.0) / frame;
        let credit = spare.min(SPARE_FRAMES_MAX);
        let integral = |k: u32| {
            let x = load * (credit - f64::from(k));
            let mut term = 1.0;
            let mut sum = 1.0;
            for j in 1..=k {
                term *= -x / f64::from(j);
                sum += term;
            }
            x.exp() * sum - 1.0
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 up to SPARE_FRAMES_MAX"
        )]
        let integrals: f64 = (0..=credit as u32).map(integral).sum();
        let mean = load / (2.0 * (1.0 - load));
        Some((mean - credit + integrals * (1.0 - load) / load) / mean)
    }
}

/// The loads at which the waits are stated.
const LOADS: [f64; 3] = [0.5, 0.75, 0.9];
/// Spare credit, in frames, beyond which the sum loses its digits. At 90% load 1% of the wait is left there.
const SPARE_FRAMES_MAX: f64 = 20.0;

fn micros(seconds: f64) -> String {
    format!("{:.0} us", seconds * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::presets::preset;

    #[track_caller]
    fn assert_near(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() < tolerance, "{value}");
    }

    #[test]
    fn a_frame_takes_its_octets_at_the_rate() {
        let fast = preset("fast-ethernet").unwrap();
        assert_near(fast.transmission_s(1500).unwrap(), 123.04e-6, 1e-9);
        let oc3 = preset("atm-oc3").unwrap();
        assert_near(oc3.transmission_s(9180).unwrap(), 543.6e-6, 1e-7);
        let gigabit = preset("gigabit-ethernet").unwrap();
        assert_near(gigabit.transmission_s(1500).unwrap(), 12.304e-6, 1e-10);
        assert_eq!(preset("loopback").unwrap().transmission_s(100), None);
    }

    #[test]
    fn the_credit_is_the_burst_as_a_frame_on_the_wire() {
        assert_eq!(preset("fast-ethernet").unwrap().credit_octets(), 3224);
        assert_eq!(preset("atm-oc3").unwrap().credit_octets(), 626 * 53);
    }

    /// Lindley's recursion over packets that arrive at random.
    fn simulated(spare: f64, load: f64) -> f64 {
        let mut state = 1_u64;
        let mut even = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        };
        let (mut wait, mut sum, mut excess) = (0.0_f64, 0.0, 0.0);
        for _ in 0..1_000_000 {
            let gap = -even().ln() / load;
            wait = (wait + 1.0 - gap).max(0.0);
            sum += wait;
            excess += (wait - spare).max(0.0);
        }
        excess / sum
    }

    #[test]
    fn the_share_of_the_wait_is_that_of_a_simulated_queue() {
        for (name, spare) in [("fast-ethernet", 1.0962), ("atm-oc3", 2.2604)] {
            let network = preset(name).unwrap();
            let packet = u64::from(network.mtu_bytes);
            for load in LOADS {
                let share = network.wait_share(packet, load).unwrap();
                assert_near(share, simulated(spare, load), 0.015);
            }
        }
        let gigabit = preset("gigabit-ethernet").unwrap();
        assert_near(gigabit.wait_share(1500, 0.9).unwrap(), 0.017, 0.002);
    }

    #[test]
    fn without_spare_credit_the_wait_is_that_of_a_real_link() {
        let mut network = preset("fast-ethernet").unwrap();
        network.burst_bytes = 1514;
        assert_near(network.wait_share(1500, 0.75).unwrap(), 1.0, 1e-12);
        // Credit for less than one frame.
        network.burst_bytes = 0;
        assert_near(network.wait_share(1500, 0.75).unwrap(), 1.0, 1e-12);
    }

    #[test]
    fn credit_for_many_frames_leaves_no_wait() {
        let mut network = preset("fast-ethernet").unwrap();
        network.burst_bytes = 1_000_000;
        let share = network.wait_share(1500, 0.9).unwrap();
        assert!((0.0..0.02).contains(&share), "{share}");
    }

    #[test]
    fn the_words_have_the_networks_own_figures() {
        let fidelity = Fidelity::of(&preset("fast-ethernet").unwrap()).unwrap();
        let emulated = fidelity.emulated.join("; ");
        for words in [
            "what waits there leaves at that rate, within 1%",
            "200 frames in each of 3",
        ] {
            assert!(emulated.contains(words), "{emulated}");
        }
        let missing = fidelity.not_emulated.join("; ");
        for words in [
            "1500 octets takes 123 us a hop",
            "credit (3224 octets",
            "73, 45 and 20% below",
            "head-of-line wait",
        ] {
            assert!(missing.contains(words), "{missing}");
        }
        assert_eq!(Fidelity::of(&preset("loopback").unwrap()), None);
    }

    #[test]
    fn a_relay_has_the_transmission_time_and_says_how_short_it_may_be() {
        let mut network = preset("atm-oc3").unwrap();
        network.emulation = Emulation::Relay;
        let fidelity = Fidelity::of(&network).unwrap();
        let emulated = fidelity.emulated.join("; ");
        for words in [
            "9180 octets takes 544 us a hop",
            "220 frames",
            "head-of-line",
        ] {
            assert!(emulated.contains(words), "{emulated}");
        }
        let missing = fidelity.not_emulated.join("; ");
        assert!(!missing.contains("transmission time"), "{missing}");
        assert!(
            missing.contains("takes some 60 to 100 us through"),
            "{missing}"
        );
        assert!(!emulated.contains("jitter"), "{emulated}");
        network.emulation = Emulation::SpinningRelay;
        let spinning = Fidelity::of(&network).unwrap();
        assert_eq!(spinning.emulated, fidelity.emulated);
        let missing = spinning.not_emulated.join("; ");
        assert!(missing.contains("takes some 10 us through"), "{missing}");
    }

    #[test]
    fn a_relay_that_damages_frames_says_so_and_takes_its_figures_from_the_slowest_link() {
        let mut network = preset("gigabit-ethernet").unwrap();
        network.emulation = Emulation::Relay;
        let hosts = ["A", "B"].map(str::to_owned).to_vec();
        let mut layout = network.layout_for(hosts).unwrap();
        let said = |layout: &Layout| {
            let mut network = network.clone();
            network.layout = Some(layout.clone());
            Fidelity::of(&network).unwrap().emulated.join("; ")
        };
        assert!(!said(&layout).contains("delay, jitter"), "perfect links");
        layout.links[1].spec.rate_bits_per_s = 100_000_000;
        layout.links[1].spec.queue_frames = 7;
        layout.links[1].spec.impairment.loss = 0.5;
        let emulated = said(&layout);
        for words in ["takes 123 us a hop", ": 7 frames", "delay, jitter, loss"] {
            assert!(emulated.contains(words), "{words}: {emulated}");
        }
    }
}
