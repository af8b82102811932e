//! What carries the frames of an emulated network, where a mission or its user leaves that open (`auto`).
//!
//! The choice follows from the mission alone, so that it is the same on each machine and each day: a relay where a
//! token bucket would judge too kindly, unless the frames are more than a relay carries.

use std::collections::BTreeSet;

use deckwatch_carrier::body::BodyPlan;
use deckwatch_load::Pace;
use deckwatch_testbed::{Emulation, NetworkSpec};

use super::{Flow, Load, LoadWork, Mission};
use crate::limits::{RELAY_DEADLINE_TRANSMISSIONS, RELAY_FRAMES_PER_S_MAX};

/// What a mission or its user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmulationChoice {
    /// This one.
    Named(Emulation),
    /// The one that suffices: see [`choose`].
    Auto,
}

impl EmulationChoice {
    /// All choices.
    pub const ALL: [Self; 4] = [
        Self::Named(Emulation::Shaper),
        Self::Named(Emulation::Relay),
        Self::Named(Emulation::SpinningRelay),
        Self::Auto,
    ];

    /// The name in files and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Named(emulation) => emulation.name(),
            Self::Auto => "auto",
        }
    }
}

/// Returns what carries the frames of a mission, and why, as the rest of a sentence.
#[must_use]
pub fn choose(mission: &Mission) -> (Emulation, String) {
    let network = &mission.network;
    if network.layout.is_some() {
        let why = "only a relay carries a network file";
        return (Emulation::Relay, why.to_owned());
    }
    let Some(transmission_s) = network.transmission_s(u64::from(network.mtu_bytes)) else {
        return (network.emulation, "loopback has no lines".to_owned());
    };
    let Some(why) = too_kind(mission, transmission_s) else {
        let why = format!(
            "each deadline is at least {RELAY_DEADLINE_TRANSMISSIONS} transmission times of a full packet, and no two \
             flows differ in priority"
        );
        return (Emulation::Shaper, why);
    };
    let frames_per_s = frames_per_s(mission, network);
    if frames_per_s > RELAY_FRAMES_PER_S_MAX {
        let why = format!(
            "{frames_per_s:.0} frames a second are more than {RELAY_FRAMES_PER_S_MAX:.0}, which each relay carries, \
             though {why}"
        );
        return (Emulation::Shaper, why);
    }
    (Emulation::Relay, why)
}

/// Returns why the shapers of the kernel would be too kind to a mission, if they would.
fn too_kind(mission: &Mission, transmission_s: f64) -> Option<String> {
    let least_s = RELAY_DEADLINE_TRANSMISSIONS * transmission_s;
    let tight = |flow: &&Flow| flow.deadline.as_secs_f64() < least_s;
    if let Some(flow) = mission.flows.iter().find(tight) {
        return Some(format!(
            "the deadline of {} is below {RELAY_DEADLINE_TRANSMISSIONS} transmission times of a full packet ({:.0} us)",
            flow.name,
            least_s * 1e6
        ));
    }
    let priorities = mission.flows.iter().map(|flow| flow.network_priority.dscp);
    let priorities: BTreeSet<Option<u8>> = priorities.collect();
    (priorities.len() > 1)
        .then(|| "flows of different priorities wait for each other on a line".to_owned())
}

/// Returns the frames a second of all flows and loads, at least.
fn frames_per_s(mission: &Mission, network: &NetworkSpec) -> f64 {
    let of_flow = |flow: &Flow| {
        let packets = match flow.body {
            BodyPlan::Octets { size_bytes } => {
                f64::from(size_bytes.div_ceil(network.mtu_bytes).max(1))
            }
            // Its size is not known before the type is read.
            BodyPlan::Typed { .. } => 1.0,
        };
        let copies = flow.to.len() * flow.carriers.len();
        flow.arrivals.rate_hz() * copies as f64 * packets
    };
    let of_load = |load: &Load| {
        let LoadWork::Net { messages, .. } = &load.work else {
            return 0.0;
        };
        let full_bits_s = network.rate_bits_per_s.unwrap_or(0) as f64;
        let bits_s = match messages.pace {
            Pace::Rate { bits_per_s } => bits_per_s,
            Pace::Share { share } => share * full_bits_s,
            Pace::Flood => full_bits_s,
        };
        let packet = messages.size_octets.min(network.mtu_bytes).max(1);
        bits_s / (f64::from(packet) * 8.0)
    };
    mission.flows.iter().map(of_flow).sum::<f64>() + mission.loads.iter().map(of_load).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Overrides;
    use super::*;

    fn mission(network: &str, flows: &[(&str, &str)]) -> Mission {
        let flow = |(at, (deadline, more)): (usize, &(&str, &str))| {
            format!(
                "[[flows]]\nname = \"F{at}\"\noctets = 3000\nfrom = \"A\"\nto = [\"B\"]\ncarrier = \"udp\"\n\
                 deadline = \"{deadline}\"\nlate = \"1 in 10\"\ncount = 10\n{more}\n"
            )
        };
        let flows: String = flows.iter().enumerate().map(flow).collect();
        let text = format!(
            "name = \"m\"\nnetwork = {{ {network} }}\nhosts = [{{ name = \"A\" }}, {{ name = \"B\" }}]\n{flows}"
        );
        Mission::parse(Path::new("m.toml"), &text, None).expect("a mission")
    }

    const FAST: &str = "preset = \"fast-ethernet\", emulation = \"auto\"";

    #[test]
    fn a_tight_deadline_or_two_priorities_take_a_relay_and_others_shapers() {
        let (calm, tight) = (("50ms", "rate_hz = 100"), ("1ms", "rate_hz = 100"));
        let urgent = ("50ms", "rate_hz = 100\ndscp = 46");
        for (flows, expected, words) in [
            (
                &[calm][..],
                Emulation::Shaper,
                "each deadline is at least 10",
            ),
            (
                &[calm, tight],
                Emulation::Relay,
                "the deadline of F1 is below 10",
            ),
            (&[calm, urgent], Emulation::Relay, "different priorities"),
            (&[urgent, urgent], Emulation::Shaper, "no two flows differ"),
        ] {
            let found = mission(FAST, flows);
            assert_eq!(found.network.emulation, expected, "{words}");
            let why = choose(&found).1;
            assert!(why.contains(words), "{why}");
        }
        // Ten transmission times of Fast Ethernet are 1,230 us.
        let above = ("1231us", "rate_hz = 100");
        assert_eq!(mission(FAST, &[above]).network.emulation, Emulation::Shaper);
    }

    #[test]
    fn more_frames_than_a_relay_carries_take_shapers() {
        // Two packets a message.
        for (rate, expected) in [(10_000, Emulation::Relay), (10_001, Emulation::Shaper)] {
            let rate = format!("rate_hz = {rate}");
            let found = mission(FAST, &[("1ms", &rate)]);
            assert_eq!(found.network.emulation, expected, "{rate}");
        }
        let flood = "rate_hz = 100\n[[loads]]\nhosts = [\"A\"]\nto = \"B\"\noctets = 100";
        let found = mission(FAST, &[("1ms", flood)]);
        assert_eq!(found.network.emulation, Emulation::Shaper);
        assert!(
            choose(&found)
                .1
                .starts_with("125200 frames a second are more than 20000")
        );
    }

    #[test]
    fn the_command_line_chooses_anew_or_leaves_the_choice_open() {
        let tight = mission(FAST, &[("1ms", "rate_hz = 100")]);
        let by = |mission: &Mission, emulation| {
            let overrides = Overrides {
                emulation,
                ..Overrides::default()
            };
            mission.clone().with(&overrides).network.emulation
        };
        assert_eq!(by(&tight, None), Emulation::Relay);
        let shaper = EmulationChoice::Named(Emulation::Shaper);
        assert_eq!(by(&tight, Some(shaper)), Emulation::Shaper);
        let named = mission("preset = \"fast-ethernet\"", &[("1ms", "rate_hz = 100")]);
        assert_eq!(by(&named, None), Emulation::Shaper);
        assert_eq!(by(&named, Some(EmulationChoice::Auto)), Emulation::Relay);
        // On another network the deadline is not tight.
        let overrides = Overrides {
            network: Some(deckwatch_testbed::preset("gigabit-ethernet").expect("a preset")),
            ..Overrides::default()
        };
        assert_eq!(tight.with(&overrides).network.emulation, Emulation::Shaper);
    }
}
