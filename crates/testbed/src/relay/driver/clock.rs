//! Converts the kernel's stamps to the clock of the relay.

use deckwatch_os::clock::ClockPair;

/// A reading of both clocks that is renewed often enough for a clock that is slewed.
#[derive(Debug)]
pub(super) struct StampClock {
    pair: ClockPair,
}

impl StampClock {
    pub(super) fn new() -> Self {
        Self {
            pair: ClockPair::read(),
        }
    }

    pub(super) fn refresh(&mut self, now_ns: i64) {
        if now_ns - self.pair.monotonic_ns > REFRESH_NS {
            self.pair = ClockPair::read();
        }
    }

    /// Returns when a frame arrived. A stamp that is missing, of the future or older than any delay of this process
    /// counts as now: the clock was set.
    pub(super) fn arrival(&self, realtime_ns: Option<i64>, now_ns: i64) -> i64 {
        let Some(realtime_ns) = realtime_ns else {
            return now_ns;
        };
        let at_ns = self.pair.to_monotonic(realtime_ns);
        if at_ns < now_ns - AGE_NS_MAX {
            return now_ns;
        }
        at_ns.min(now_ns)
    }
}

/// At 500 parts in a million, the most that the kernel slews, the clocks part by 5 us meanwhile.
const REFRESH_NS: i64 = 10_000_000;
/// Longer than a stalled relay leaves frames unread.
const AGE_NS_MAX: i64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_impossible_stamp_counts_as_now() {
        let clock = StampClock {
            pair: ClockPair {
                realtime_ns: 5_000_000_000,
                monotonic_ns: 3_000_000_000,
                error_ns: 0,
            },
        };
        assert_eq!(
            clock.arrival(Some(5_000_000_007), 3_000_000_009),
            3_000_000_007
        );
        assert_eq!(clock.arrival(None, 3_000_000_009), 3_000_000_009);
        assert_eq!(
            clock.arrival(Some(6_000_000_000), 3_000_000_009),
            3_000_000_009
        );
        assert_eq!(clock.arrival(Some(1), 3_000_000_009), 3_000_000_009);
    }
}
