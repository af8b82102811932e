//! [`LoadResult`]: what a load of a mission reached.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A load of a mission on one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadResult {
    /// The host.
    pub host: String,
    /// `loops`, `processor`, `link`, `memory` or `disk`.
    pub kind: String,
    /// A run in which it misses its target is INVALID.
    pub must_hold: bool,
    /// What it reached, for each processor, link, memory or disk. Empty for a load that died.
    pub reached: Vec<LoadReached>,
    /// Its other figures, each with its unit in its name, for example `sent_octets`.
    pub counts: BTreeMap<String, f64>,
}

/// What a load reached, second by second. The first second, in which it settles, is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadReached {
    /// The name of the processor, link, memory or disk.
    pub of: String,
    /// The unit of all figures: `share`, `bits/s`, `octets` or `octets/s`.
    pub unit: String,
    /// The target, if the load has one.
    pub asked: Option<f64>,
    /// Seconds that were measured.
    pub seconds: u64,
    /// Seconds within the tolerance.
    pub seconds_within: u64,
    /// Mean of the seconds, by the kernel's counters.
    pub mean: f64,
    /// The least second.
    pub min: f64,
    /// The greatest second.
    pub max: f64,
    /// Standard deviation of the seconds.
    pub deviation: f64,
    /// Mean of the load's own part.
    pub own_mean: f64,
    /// Mean of what a hypervisor took.
    pub stolen_mean: f64,
    /// Whether the target was held; absent without one.
    pub held: Option<bool>,
}
