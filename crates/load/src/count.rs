//! The paper's load on a processor: `while (1) { for (i = 0; i < 500000; i++); usleep(1); }`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::{LoadError, Stop};

/// One loop of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CountPlan {
    /// The number to which it counts in one burst.
    pub iterations: u64,
    /// How long it asks to sleep after a burst. The kernel's timer slack (50 us by default) comes on top, as it did in
    /// the paper.
    pub sleep: Duration,
}

impl Default for CountPlan {
    /// The values of the paper.
    fn default() -> Self {
        Self {
            iterations: 500_000,
            sleep: Duration::from_micros(1),
        }
    }
}

impl CountPlan {
    pub(crate) const fn check(&self) -> Result<(), LoadError> {
        if self.iterations == 0 {
            return Err(LoadError::Burst);
        }
        Ok(())
    }
}

/// The bursts of one loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bursts {
    /// Bursts begun and ended.
    pub count: u64,
    /// Shortest burst, nanoseconds: its duration where nothing disturbs it.
    pub ns_min: u64,
}

/// Counts and sleeps in turns, until it is stopped or `end` has come.
pub(crate) fn run(plan: &CountPlan, stop: &Stop, end: Instant) -> Bursts {
    let mut bursts = Bursts {
        count: 0,
        ns_min: u64::MAX,
    };
    while !stop.is_set() && Instant::now() < end {
        bursts.ns_min = bursts.ns_min.min(count_to(plan.iterations));
        bursts.count += 1;
        std::thread::sleep(plan.sleep);
    }
    bursts
}

/// Counts in a loop that the optimiser cannot remove. Returns how long it took.
fn count_to(iterations: u64) -> u64 {
    let begin = Instant::now();
    let mut i = 0;
    while black_box(i) < iterations {
        i += 1;
    }
    u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_is_not_optimised_away() {
        // A hundred million iterations, ten in a nanosecond, which no processor reaches.
        assert!(count_to(100_000_000) >= 10_000_000);
    }
}
