//! A network file as it is written: the shape that the JSON Schema publishes and serde reads.

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use crate::mission::DurationText;
use crate::mission::listed::NetworkWord;

/// A network: hosts, switches, and the links between them. There is one way between any two hosts.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// Name of the network
    #[schemars(length(min = 1, max = 100), extend("examples" = ["two decks"]))]
    pub(super) name: String,
    /// Seed of losses, duplicates, jitter and reordering; 1 if not given
    #[serde(default)]
    #[schemars(extend("examples" = [1]))]
    pub(super) seed: Option<u64>,
    /// Names of the hosts
    #[schemars(with = "Vec<String>", length(min = 1, max = 250), extend("examples" = [["RTS", "SONAR"]]))]
    pub(super) hosts: Vec<Spanned<String>>,
    /// Names of the switches
    #[serde(default)]
    #[schemars(with = "Vec<String>", length(max = 250), extend("examples" = [["bow", "stern"]]))]
    pub(super) switches: Vec<Spanned<String>>,
    /// The links
    #[schemars(length(min = 1, max = 500))]
    pub(super) links: Vec<Link>,
}

/// A link between two hosts or switches. It carries frames both ways.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Link {
    /// The two hosts or switches that it joins
    #[schemars(with = "Vec<String>", length(min = 2, max = 2), extend("examples" = [["RTS", "bow"]]))]
    pub(super) between: Spanned<Vec<Spanned<String>>>,
    /// The network whose links are like this one; gigabit-ethernet if not given
    #[serde(default)]
    #[schemars(with = "Option<NetworkWord>", extend("examples" = ["fast-ethernet"]))]
    pub(super) preset: Option<Spanned<String>>,
    /// Rate, megabits a second, instead of the preset's
    #[serde(default)]
    #[schemars(range(min = 0.001, max = 100_000), extend("examples" = [100]))]
    pub(super) rate_mbit_s: Option<f64>,
    /// Largest IP packet, octets, instead of the preset's
    #[serde(default)]
    #[schemars(range(min = 576, max = 65_000), extend("examples" = [1500]))]
    pub(super) mtu_bytes: Option<u32>,
    /// What a packet is sent in, instead of the preset's
    #[serde(default)]
    pub(super) framing: Option<Framing>,
    /// Frames that wait before the link, in each of three priorities, before more are dropped, instead of the preset's
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000_000), extend("examples" = [200]))]
    pub(super) queue_frames: Option<u32>,
    /// Propagation delay
    #[serde(default)]
    #[schemars(extend("examples" = ["2ms"]))]
    pub(super) delay: Option<DurationText>,
    /// The largest additional delay, of which each frame gets an evenly distributed part
    #[serde(default)]
    #[schemars(extend("examples" = ["500us"]))]
    pub(super) jitter: Option<DurationText>,
    /// Share of frames that are lost
    #[serde(default)]
    #[schemars(range(min = 0, max = 1), extend("examples" = [0.01]))]
    pub(super) loss: Option<f64>,
    /// Share of frames that arrive twice
    #[serde(default)]
    #[schemars(range(min = 0, max = 1), extend("examples" = [0.001]))]
    pub(super) duplicate: Option<f64>,
    /// Share of frames that later ones overtake
    #[serde(default)]
    #[schemars(range(min = 0, max = 1), extend("examples" = [0.01]))]
    pub(super) reorder: Option<f64>,
    /// How long these are held back; 1ms if not given
    #[serde(default)]
    #[schemars(extend("examples" = ["1ms"]))]
    pub(super) reorder_delay: Option<DurationText>,
}

/// What an IP packet is sent in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Framing {
    /// Ethernet frames, with preamble and gap
    Ethernet,
    /// AAL5 in ATM cells of 53 octets
    Atm,
}
