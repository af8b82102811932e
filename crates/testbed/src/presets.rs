//! The predefined networks. A new one is an entry in [`PRESETS`].

use crate::error::TestbedError;
use crate::link::LinkLayer;
use crate::network::{Emulation, NetworkSpec};

/// A predefined network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The name in mission files, on the command line and in results.
    pub name: &'static str,
    /// Other names on the command line.
    pub aliases: &'static [&'static str],
    /// A short description for the schema of mission files.
    pub summary: &'static str,
    rate_bits_per_s: Option<u64>,
    mtu_bytes: u32,
    burst_bytes: u32,
    queue_frames: u32,
    link_layer: LinkLayer,
}

/// The name of the network that needs no privilege.
pub const LOOPBACK: &str = "loopback";

/// All predefined networks. The first is the default.
pub static PRESETS: [Preset; 4] = [
    Preset {
        name: "gigabit-ethernet",
        aliases: &[],
        summary: "1000 Mb/s, MTU 1500",
        rate_bits_per_s: Some(1_000_000_000),
        mtu_bytes: 1500,
        burst_bytes: 32_000,
        queue_frames: 1000,
        link_layer: LinkLayer::Ethernet,
    },
    Preset {
        name: "fast-ethernet",
        aliases: &[],
        summary: "100 Mb/s, MTU 1500",
        rate_bits_per_s: Some(100_000_000),
        mtu_bytes: 1500,
        burst_bytes: 3200,
        queue_frames: 200,
        link_layer: LinkLayer::Ethernet,
    },
    // OC-3c: 155.52 Mb/s less the SONET overhead. IP over AAL5 with its default MTU (RFC 2225).
    Preset {
        name: "atm-oc3",
        aliases: &["atm"],
        summary: "149.76 Mb/s of cells, MTU 9180",
        rate_bits_per_s: Some(149_760_000),
        mtu_bytes: 9180,
        burst_bytes: 30_000,
        queue_frames: 220,
        link_layer: LinkLayer::Atm,
    },
    // No separate hosts, no shaping; needs no privilege.
    Preset {
        name: LOOPBACK,
        aliases: &[],
        summary: "No emulated network: all hosts on the loopback interface",
        rate_bits_per_s: None,
        mtu_bytes: 65_536,
        burst_bytes: 0,
        queue_frames: 0,
        link_layer: LinkLayer::Ethernet,
    },
];

impl Preset {
    /// Returns the network's description, which the caller may modify.
    #[must_use]
    pub fn spec(&self) -> NetworkSpec {
        NetworkSpec {
            name: self.name.to_owned(),
            rate_bits_per_s: self.rate_bits_per_s,
            mtu_bytes: self.mtu_bytes,
            burst_bytes: self.burst_bytes,
            queue_frames: self.queue_frames,
            link_layer: self.link_layer,
            emulation: Emulation::Shaper,
            layout: None,
            seed: 1,
        }
    }
}

/// Returns the network with this name or alias.
///
/// # Errors
/// [`TestbedError::UnknownNetwork`].
pub fn preset(name: &str) -> Result<NetworkSpec, TestbedError> {
    PRESETS
        .iter()
        .find(|preset| preset.name == name || preset.aliases.contains(&name))
        .map(Preset::spec)
        .ok_or_else(|| TestbedError::UnknownNetwork {
            name: name.to_owned(),
            known: preset_names(),
        })
}

/// Returns the names of all networks, separated by commas.
#[must_use]
pub fn preset_names() -> String {
    let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_and_alias_names_its_network() {
        for entry in &PRESETS {
            for word in entry.aliases.iter().chain([&entry.name]) {
                assert_eq!(preset(word).unwrap().name, entry.name);
            }
        }
        let error = preset("token-ring").unwrap_err();
        assert!(error.to_string().contains("fast-ethernet"), "{error}");
    }
}
