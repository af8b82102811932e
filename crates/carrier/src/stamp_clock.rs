//! Converts the kernel's stamps (CLOCK_REALTIME) to the clock of all records (CLOCK_MONOTONIC) during a run.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use deckwatch_os::clock::ClockPair;

/// The current offset between the two clocks. Hot threads read it; one other thread renews it a few times a second.
///
/// If the clock is set between a stamp and its conversion, the converted stamp is wrong by the step. A step thus makes
/// the run's kernel stamps suspect; steps are counted and reported.
#[derive(Debug)]
pub struct StampClock {
    offset_ns: AtomicI64,
    error_ns_max: AtomicU64,
    steps: AtomicU64,
    latest: Mutex<ClockPair>,
}

impl StampClock {
    /// Reads both clocks.
    #[must_use]
    pub fn new() -> Self {
        let pair = ClockPair::read();
        Self {
            offset_ns: AtomicI64::new(pair.offset_ns()),
            error_ns_max: AtomicU64::new(pair.error_ns),
            steps: AtomicU64::new(0),
            latest: Mutex::new(pair),
        }
    }

    /// Converts a kernel stamp to CLOCK_MONOTONIC.
    #[must_use]
    pub fn to_monotonic(&self, realtime_ns: i64) -> i64 {
        realtime_ns.saturating_sub(self.offset_ns.load(Ordering::Relaxed))
    }

    /// Reads both clocks again, and counts a step if CLOCK_REALTIME was set.
    pub fn renew(&self) {
        self.renew_with(ClockPair::read());
    }

    fn renew_with(&self, pair: ClockPair) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let stepped = pair.step_since(&latest).is_some();
        // A reading that a loaded host interrupted would make the conversion less exact.
        if !stepped && pair.error_ns > latest.error_ns {
            return;
        }
        if stepped {
            self.steps.fetch_add(1, Ordering::Relaxed);
            self.error_ns_max
                .fetch_max(pair.error_ns, Ordering::Relaxed);
        }
        *latest = pair;
        self.offset_ns.store(pair.offset_ns(), Ordering::Relaxed);
    }

    /// Upper bound of the error of all conversions so far.
    #[must_use]
    pub fn error_ns(&self) -> u64 {
        self.error_ns_max.load(Ordering::Relaxed)
    }

    /// How many times the clock was set.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }
}

impl Default for StampClock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_is_counted_and_followed() {
        let clock = StampClock::new();
        let pair = ClockPair::read();
        clock.renew();
        assert_eq!(clock.steps(), 0);
        let set = ClockPair {
            realtime_ns: pair.realtime_ns + 1_000_000_000,
            ..pair
        };
        clock.renew_with(set);
        assert_eq!(clock.steps(), 1);
        assert_eq!(clock.to_monotonic(set.realtime_ns), set.monotonic_ns);
        assert!(clock.error_ns() >= set.error_ns);
    }
}
