//! The two clocks of a host, sleeping until an absolute time, and converting the kernel's stamps to the clock of all
//! records.
//!
//! Records are CLOCK_MONOTONIC; the kernel stamps packets with CLOCK_REALTIME. Both run at the same (disciplined) rate,
//! so their difference is an offset that changes only when the clock is set. [`ClockPair`] reads the offset with a
//! bound of its error. Two pairs show whether the clock was set between them.

use rustix::io::Errno;
use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

/// Returns CLOCK_MONOTONIC, nanoseconds.
#[must_use]
pub fn monotonic_ns() -> i64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Returns CLOCK_REALTIME, nanoseconds since 1970.
#[must_use]
pub fn realtime_ns() -> i64 {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

/// Returns the resolution of the timers that [`sleep_until`] uses, nanoseconds: 1 with high-resolution timers, a whole
/// tick (1 to 10 ms) without.
#[must_use]
pub fn timer_resolution_ns() -> i64 {
    nanoseconds(clock_getres(ClockId::Monotonic))
}

/// Sleeps until CLOCK_MONOTONIC reaches `due_ns`; returns at once if that is past. A signal does not shorten the sleep.
pub fn sleep_until(due_ns: i64) {
    let due = Timespec {
        tv_sec: due_ns.max(0) / NS_PER_S,
        tv_nsec: due_ns.max(0) % NS_PER_S,
    };
    while rustix::thread::clock_nanosleep_absolute(rustix::thread::ClockId::Monotonic, &due)
        == Err(Errno::INTR)
    {}
}

/// Returns the processor time of the calling thread, nanoseconds.
#[must_use]
pub fn thread_cpu_ns() -> i64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// One moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockPair {
    /// CLOCK_REALTIME at the moment.
    pub realtime_ns: i64,
    /// CLOCK_MONOTONIC at the moment.
    pub monotonic_ns: i64,
    /// The maximum difference between the moments of the two readings.
    pub error_ns: u64,
}

impl ClockPair {
    /// Reads CLOCK_REALTIME between two readings of CLOCK_MONOTONIC, several times, and returns the narrowest.
    #[must_use]
    pub fn read() -> Self {
        let mut best = Self::read_once();
        for _ in 1..BRACKETS {
            let pair = Self::read_once();
            if pair.error_ns < best.error_ns {
                best = pair;
            }
        }
        best
    }

    fn read_once() -> Self {
        let before_ns = monotonic_ns();
        let realtime_ns = realtime_ns();
        let after_ns = monotonic_ns();
        let width_ns = after_ns - before_ns;
        Self {
            realtime_ns,
            monotonic_ns: before_ns + width_ns / 2,
            error_ns: u64::try_from(width_ns).unwrap_or(0).div_ceil(2),
        }
    }

    /// Converts a time of CLOCK_REALTIME to CLOCK_MONOTONIC. Valid if the clock was not set in between.
    #[must_use]
    pub const fn to_monotonic(&self, realtime_ns: i64) -> i64 {
        realtime_ns
            .saturating_sub(self.realtime_ns)
            .saturating_add(self.monotonic_ns)
    }

    /// Returns CLOCK_REALTIME minus CLOCK_MONOTONIC.
    #[must_use]
    pub const fn offset_ns(&self) -> i64 {
        self.realtime_ns.saturating_sub(self.monotonic_ns)
    }

    /// Returns by how much CLOCK_REALTIME was set since `earlier`. Returns `None` if the difference of the two is
    /// within their errors.
    #[must_use]
    pub fn step_since(&self, earlier: &Self) -> Option<i64> {
        let step_ns = self.offset_ns().saturating_sub(earlier.offset_ns());
        let error_ns = self.error_ns.saturating_add(earlier.error_ns);
        (step_ns.unsigned_abs() > error_ns).then_some(step_ns)
    }
}

fn nanoseconds(time: Timespec) -> i64 {
    time.tv_sec * NS_PER_S + time.tv_nsec
}

const NS_PER_S: i64 = 1_000_000_000;

/// Bracketed readings, of which the narrowest is used: one of so many is not interrupted, even on a loaded host.
const BRACKETS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_until_a_time_never_wakes_before_it() {
        for _ in 0..20 {
            let due_ns = monotonic_ns() + 300_000;
            sleep_until(due_ns);
            assert!(monotonic_ns() >= due_ns);
        }
    }

    #[test]
    fn sleeping_until_a_time_that_is_past_returns() {
        sleep_until(monotonic_ns() - 1);
        sleep_until(-5);
    }

    #[test]
    fn a_pair_maps_its_own_moment_and_agrees_with_the_next() {
        let first = ClockPair::read();
        let second = ClockPair::read();
        assert_eq!(first.to_monotonic(first.realtime_ns), first.monotonic_ns);
        assert_eq!(second.step_since(&first), None, "{first:?} {second:?}");
        let mapped = first.to_monotonic(second.realtime_ns);
        let error = i64::try_from(first.error_ns + second.error_ns).expect("small");
        assert!((mapped - second.monotonic_ns).abs() <= error);
    }

    #[test]
    fn a_set_clock_shows_between_two_pairs() {
        let before = ClockPair {
            realtime_ns: 1_000_000,
            monotonic_ns: 500,
            error_ns: 20,
        };
        let after = ClockPair {
            realtime_ns: 3_000_000,
            monotonic_ns: 1_000_500,
            error_ns: 30,
        };
        assert_eq!(after.step_since(&before), Some(1_000_000));
        let close = ClockPair {
            realtime_ns: 2_000_050,
            ..after
        };
        assert_eq!(close.step_since(&before), None);
    }
}
