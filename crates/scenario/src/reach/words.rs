//! The lines between the coordinator and a far host, besides those of the part itself.

use std::time::Duration;

use deckwatch_meter::disturbance::Disturbance;
use deckwatch_meter::limits::SCHEDULE_DURATION_MAX;
use serde::{Deserialize, Serialize};

use crate::limits::FAR_PROCESSORS_MAX;
use crate::part::ProcessPlan;

/// A line from a far host that is not the part's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "far", rename_all = "kebab-case")]
pub(crate) enum FarWord {
    /// The first line.
    Hello {
        /// Version and build of the program.
        build: String,
    },
    /// The answer to `ping T1`, with its stamp and two of the far host's CLOCK_MONOTONIC.
    Pong {
        /// The stamp in the question.
        t1_ns: i64,
        /// When the question was read.
        t2_ns: i64,
        /// When the answer was written.
        t3_ns: i64,
    },
    /// A file follows: so many octets, then [`FarWord::FileEnd`].
    File {
        /// Its place in [`FarPlan::returns`].
        index: usize,
        /// Its octets.
        size_bytes: u64,
    },
    /// The end of a file.
    FileEnd {
        /// The digest of its octets.
        sha256: String,
    },
    /// The part has ended, and its files are written. This is the last line.
    End {
        /// How the part ended, as the rest of a sentence; `None` if it ended successfully.
        how: Option<String>,
        /// The disturbances of the machine while the part ran.
        readings: FarReadings,
    },
}

/// Differences of the counters of a far machine while a part ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FarReadings {
    /// How long the part ran.
    duration_ns: u64,
    /// Processors of the machine.
    processors: u32,
    stolen_ns: u64,
    throttled_ns: u64,
    /// Absent if the kernel does not report it.
    pressure_ns: Option<u64>,
}

impl FarReadings {
    /// Returns what is sent of the disturbance of a machine. Its counters of UDP are of the part's own sockets too, which
    /// report their drops themselves.
    pub(super) fn of(disturbance: &Disturbance) -> Self {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self {
            duration_ns: ns(disturbance.duration),
            processors: disturbance.processors,
            stolen_ns: ns(disturbance.stolen),
            throttled_ns: ns(disturbance.throttled),
            pressure_ns: disturbance.processor_pressure.map(ns),
        }
    }

    /// Returns the disturbance, in the bounds that a machine can have: the far end may lie.
    pub(crate) fn disturbance(self) -> Disturbance {
        let duration = Duration::from_nanos(self.duration_ns).min(SCHEDULE_DURATION_MAX);
        let processors = self.processors.min(FAR_PROCESSORS_MAX);
        let capacity = duration * processors;
        let within = |ns: u64| Duration::from_nanos(ns).min(capacity);
        Disturbance {
            duration,
            processors,
            stolen: within(self.stolen_ns),
            throttled: within(self.throttled_ns),
            processor_pressure: self
                .pressure_ns
                .map(|ns| Duration::from_nanos(ns).min(duration)),
            ..Disturbance::default()
        }
    }
}

/// The first line to a far host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FarPlan {
    /// The run that the part belongs to. A far host takes part in one run at a time.
    pub(crate) run: String,
    /// The processors that the part may use; empty for all.
    pub(crate) processors: Vec<u32>,
    /// The files that the part reads.
    pub(crate) files: Vec<CarriedFile>,
    /// The files that the part creates and that are written back, by their names in its folder.
    pub(crate) returns: Vec<String>,
    /// The plan of the part. Its paths are relative to the part's folder.
    pub(crate) plan: ProcessPlan,
}

/// A file that the part reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CarriedFile {
    /// Its path in the part's folder.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
}

/// The question whose answer is a pong.
pub(crate) const PING: &str = "ping ";

/// The option of `deckwatch part` on a far host.
pub(crate) const FAR: &str = "--far";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_come_back_as_they_were_and_a_lie_is_bounded() {
        let disturbance = Disturbance {
            duration: Duration::from_secs(3),
            processors: 2,
            stolen: Duration::from_millis(500),
            processor_pressure: Some(Duration::from_millis(700)),
            ..Disturbance::default()
        };
        assert_eq!(FarReadings::of(&disturbance).disturbance(), disturbance);
        let lie = FarReadings {
            duration_ns: 1_000_000_000,
            processors: 2,
            stolen_ns: u64::MAX,
            throttled_ns: u64::MAX,
            pressure_ns: Some(u64::MAX),
        };
        let found = lie.disturbance();
        assert_eq!(found.stolen, Duration::from_secs(2));
        assert_eq!(found.throttled, Duration::from_secs(2));
        assert_eq!(found.processor_pressure, Some(Duration::from_secs(1)));
    }
}
