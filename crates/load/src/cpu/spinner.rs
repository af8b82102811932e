//! A thread that takes a share of its processor: it spins for a part of each period, by its own processor clock, and
//! sleeps for the rest.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};

use deckwatch_os::clock::{monotonic_ns, sleep_until, thread_cpu_ns};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng as _;

use crate::Stop;
use crate::limits::CATCH_UP_MAX;

/// The share that a spinner is to take. The controller sets it, the spinner reads it in each period.
#[derive(Debug)]
pub(super) struct Share(AtomicU64);

impl Share {
    pub(super) const fn new(share: f64) -> Self {
        Self(AtomicU64::new(share.to_bits()))
    }

    pub(super) fn set(&self, share: f64) {
        self.0.store(share.to_bits(), Ordering::Relaxed);
    }

    fn value(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }
}

/// Takes the share until it is stopped. A spinner with `blocks_after` sleeps after each burst for at least that part of
/// the burst.
pub(super) fn spin(share: &Share, seed: u32, blocks_after: f64, stop: &Stop) {
    let mut random = Pcg64::new(u128::from(seed), 0);
    let mut budget = Budget::default();
    let mut next_ns = monotonic_ns();
    while !stop.is_set() {
        // Periods differ at random: a load with one period would meet each message of a periodic flow in the same phase.
        let period_ns = PERIOD_MIN_NS + (random.next_u64() % PERIOD_SPREAD_NS) as i64;
        let due_ns = budget.grant(share.value() * period_ns as f64);
        let begin_ns = thread_cpu_ns();
        let mut used_ns = 0;
        while used_ns < due_ns && !stop.is_set() {
            for _ in 0..SPINS {
                spin_loop();
            }
            used_ns = thread_cpu_ns() - begin_ns;
        }
        budget.spend(used_ns);
        let now_ns = monotonic_ns();
        let rest_ns = (used_ns as f64 * blocks_after) as i64;
        next_ns = next(next_ns + period_ns, now_ns, rest_ns);
        sleep_until(next_ns);
    }
}

/// Returns the begin of the next period. A thread that was kept from its processor does not make up for all of it.
fn next(planned_ns: i64, now_ns: i64, rest_ns: i64) -> i64 {
    let earliest_ns = now_ns - CATCH_UP_MAX.as_nanos() as i64;
    let rested_ns = if rest_ns > 0 {
        now_ns + rest_ns
    } else {
        earliest_ns
    };
    planned_ns.max(earliest_ns).max(rested_ns)
}

/// Processor time that is granted and not used yet, nanoseconds; negative after a burst that was too long.
#[derive(Debug, Default)]
struct Budget(f64);

impl Budget {
    /// Returns the length of the next burst.
    fn grant(&mut self, more_ns: f64) -> i64 {
        self.0 = (self.0 + more_ns).min(more_ns + CATCH_UP_MAX.as_nanos() as f64);
        self.0 as i64
    }

    fn spend(&mut self, used_ns: i64) {
        self.0 -= used_ns as f64;
    }
}

const PERIOD_MIN_NS: i64 = 5_000_000;
const PERIOD_SPREAD_NS: u64 = 10_000_000;

/// Pauses between two looks at the clock, which is a system call: under a microsecond, as the call itself.
const SPINS: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_burst_used_too_much_the_next_ones_use_less() {
        let mut budget = Budget::default();
        assert_eq!(budget.grant(5e6), 5_000_000);
        budget.spend(5_400_000);
        assert_eq!(budget.grant(5e6), 4_600_000);
        budget.spend(0);
        assert_eq!(budget.grant(5e6), 9_600_000);
    }

    #[test]
    fn a_thread_that_was_kept_from_its_processor_makes_up_for_a_bounded_time() {
        let mut budget = Budget::default();
        for _ in 0..100 {
            budget.grant(5e6);
            budget.spend(0);
        }
        assert_eq!(budget.grant(5e6), 25_000_000);
        assert_eq!(next(1_000, 2_000_000_000, 0), 1_980_000_000);
        assert_eq!(next(2_000_005_000, 2_000_000_000, 0), 2_000_005_000);
    }

    #[test]
    fn a_real_time_thread_blocks_after_each_burst_though_its_period_is_over() {
        assert_eq!(next(1_000, 2_000_000_000, 3_000), 2_000_003_000);
        assert_eq!(next(2_000_005_000, 2_000_000_000, 3_000), 2_000_005_000);
    }
}
