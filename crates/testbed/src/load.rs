//! The paper's load on a processor: `while (1) { for (i = 0; i < 500000; i++); usleep(1); }`, in a configurable number
//! of processes.

use std::hint::black_box;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::limits::{LOAD_LIFETIME_S_MAX, LOAD_PROCESSES_MAX};

/// What one host is to be loaded with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoadPlan {
    /// Processes, each running [`run`].
    pub processes: u32,
    /// What each counts to in one burst.
    pub burst_iterations: u64,
    /// How long each asks to sleep after a burst, nanoseconds; the kernel's timer slack (50 us by default) comes on
    /// top, as it did in the paper.
    pub sleep_ns: u64,
    /// After how many seconds each ends if it is not stopped.
    pub lifetime_s: u64,
}

impl Default for LoadPlan {
    /// The values of the paper.
    fn default() -> Self {
        Self {
            processes: 20,
            burst_iterations: 500_000,
            sleep_ns: 1000,
            lifetime_s: 3600,
        }
    }
}

impl LoadPlan {
    /// # Errors
    /// [`LoadOutOfBounds`] when a number is zero that must not be, or exceeds [`crate::limits`].
    pub const fn check(&self) -> Result<(), LoadOutOfBounds> {
        if self.processes == 0 || self.processes > LOAD_PROCESSES_MAX {
            return Err(LoadOutOfBounds::Processes);
        }
        if self.burst_iterations == 0 {
            return Err(LoadOutOfBounds::Burst);
        }
        if self.lifetime_s == 0 || self.lifetime_s > LOAD_LIFETIME_S_MAX {
            return Err(LoadOutOfBounds::Lifetime);
        }
        Ok(())
    }
}

/// Why a plan is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadOutOfBounds {
    /// `processes` is 0 or above [`LOAD_PROCESSES_MAX`].
    #[error("A load has 1 to {LOAD_PROCESSES_MAX} processes.")]
    Processes,
    /// `burst_iterations` is 0.
    #[error("A burst counts to at least 1.")]
    Burst,
    /// `lifetime_s` is 0 or above [`LOAD_LIFETIME_S_MAX`].
    #[error("A load lives 1 to {LOAD_LIFETIME_S_MAX} seconds.")]
    Lifetime,
}

/// What one process of a load did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadReport {
    /// Bursts begun and ended.
    pub bursts: u64,
    /// Shortest burst, nanoseconds: what one takes where nothing disturbs it.
    pub burst_ns_min: u64,
    /// From first to last, nanoseconds.
    pub elapsed_ns: u64,
}

/// Loads the processor as one process of `plan`. Returns when `orders` contains the line `stop` or ends, or when the
/// plan's lifetime is over.
///
/// The process's standard input is a good source of orders: it closes when the process that started the load ends.
#[must_use]
pub fn run(plan: &LoadPlan, orders: impl Read + Send + 'static) -> LoadReport {
    let stopped = Arc::new(AtomicBool::new(false));
    let stopper = Arc::clone(&stopped);
    // The thread is not joined: it ends with its source, which may outlive the load.
    std::thread::spawn(move || {
        wait_for_stop(BufReader::new(orders));
        stopper.store(true, Ordering::Relaxed);
    });
    let lifetime = Duration::from_secs(plan.lifetime_s.min(LOAD_LIFETIME_S_MAX));
    let sleep = Duration::from_nanos(plan.sleep_ns);
    let begin = Instant::now();
    let mut report = LoadReport {
        burst_ns_min: u64::MAX,
        ..LoadReport::default()
    };
    while !stopped.load(Ordering::Relaxed) && begin.elapsed() < lifetime {
        let burst_ns = count_to(plan.burst_iterations);
        report.burst_ns_min = report.burst_ns_min.min(burst_ns);
        report.bursts += 1;
        std::thread::sleep(sleep);
    }
    report.elapsed_ns = saturating_ns(begin.elapsed());
    report
}

/// Counts in a loop that the optimiser cannot remove. Returns how long it took.
fn count_to(iterations: u64) -> u64 {
    let begin = Instant::now();
    let mut i = 0;
    while black_box(i) < iterations {
        i += 1;
    }
    saturating_ns(begin.elapsed())
}

fn wait_for_stop(orders: impl BufRead) {
    for line in orders.lines() {
        if line.is_err() || line.is_ok_and(|line| line.trim() == "stop") {
            return;
        }
    }
}

fn saturating_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_is_not_optimised_away() {
        // A hundred million iterations, ten in a nanosecond, which no processor reaches.
        assert!(count_to(100_000_000) >= 10_000_000);
    }

    #[test]
    fn a_load_ends_when_its_orders_do() {
        let plan = LoadPlan {
            burst_iterations: 10,
            ..LoadPlan::default()
        };
        let report = run(&plan, std::io::empty());
        assert!(report.elapsed_ns < 3600 * 1_000_000_000);
    }

    #[test]
    fn other_orders_than_stop_are_passed_over() {
        let mut orders = &b"faster\n stop \nlater\n"[..];
        wait_for_stop(&mut orders);
        assert_eq!(orders, b"later\n");
    }

    #[test]
    fn a_load_ends_with_its_lifetime_though_nobody_stops_it() {
        let plan = LoadPlan {
            lifetime_s: 1,
            burst_iterations: 1000,
            ..LoadPlan::default()
        };
        let (orders, _held_open) = std::io::pipe().unwrap();
        let report = run(&plan, orders);
        assert!(report.bursts > 0 && report.burst_ns_min < u64::MAX);
        assert!(report.elapsed_ns >= 1_000_000_000);
    }

    #[test]
    fn plans_out_of_bounds_are_refused() {
        assert_eq!(LoadPlan::default().check(), Ok(()));
        let none = LoadPlan {
            processes: 0,
            ..LoadPlan::default()
        };
        assert_eq!(none.check(), Err(LoadOutOfBounds::Processes));
        let endless = LoadPlan {
            lifetime_s: u64::MAX,
            ..LoadPlan::default()
        };
        assert_eq!(endless.check(), Err(LoadOutOfBounds::Lifetime));
        let idle = LoadPlan {
            burst_iterations: 0,
            ..LoadPlan::default()
        };
        assert_eq!(idle.check(), Err(LoadOutOfBounds::Burst));
    }
}
