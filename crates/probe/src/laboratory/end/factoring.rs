//! A thread that factors numbers beside a server. Its progress shows how much of the processor the server leaves
//! (slides 17 and 18).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;

use deckwatch_os::clock::{monotonic_ns, thread_cpu_ns};
use deckwatch_os::schedule::{Class, set_class};

use super::system;
use crate::laboratory::error::LaboratoryError;

/// Progress of the thread.
#[derive(Debug, Default)]
struct Progress {
    numbers: AtomicU64,
    cpu_ns: AtomicU64,
    /// Several servers share a processor, and one of them is measured at a time.
    is_enabled: AtomicBool,
}

/// The thread. It sleeps until it is enabled, and ends with its process.
#[derive(Debug)]
pub(super) struct Factoring {
    progress: Arc<Progress>,
    thread: Thread,
}

impl Factoring {
    /// Starts it, in the time-sharing class.
    pub(super) fn begin() -> Result<Self, LaboratoryError> {
        let progress = Arc::new(Progress::default());
        let own = Arc::clone(&progress);
        let work = move || {
            // Time sharing is always permitted.
            let _ = set_class(Class::Other);
            loop {
                while !own.is_enabled.load(Ordering::Relaxed) {
                    std::thread::park();
                }
                let found = least_factor(std::hint::black_box(PRODUCT));
                debug_assert_eq!(found, FACTOR);
                own.numbers.fetch_add(1, Ordering::Relaxed);
                own.cpu_ns
                    .store(thread_cpu_ns().unsigned_abs(), Ordering::Relaxed);
            }
        };
        let thread = std::thread::Builder::new()
            .name("factors".to_owned())
            .spawn(work)
            .map_err(system("A thread cannot be started"))?;
        let thread = thread.thread().clone();
        Ok(Self { progress, thread })
    }

    /// Lets the thread factor, or sleep.
    pub(super) fn enable(&self, is_enabled: bool) {
        self.progress
            .is_enabled
            .store(is_enabled, Ordering::Relaxed);
        self.thread.unpark();
    }

    /// `factored NUMBERS CPU_NS NOW_NS`.
    pub(super) fn words(&self) -> String {
        let numbers = self.progress.numbers.load(Ordering::Relaxed);
        let cpu_ns = self.progress.cpu_ns.load(Ordering::Relaxed);
        format!("factored {numbers} {cpu_ns} {}", monotonic_ns())
    }
}

/// Two primes. Finding the lesser takes some microseconds: short against a run, long against a clock reading.
const FACTOR: u64 = 3_989;
const PRODUCT: u64 = FACTOR * 4_001;

/// The least prime factor, by trial division.
fn least_factor(number: u64) -> u64 {
    let mut factor = 2;
    while factor * factor <= number {
        if number.is_multiple_of(factor) {
            return factor;
        }
        factor += 1;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_factored() {
        assert_eq!(least_factor(PRODUCT), FACTOR);
        assert_eq!(least_factor(97), 97);
        assert_eq!(least_factor(91), 7);
    }
}
