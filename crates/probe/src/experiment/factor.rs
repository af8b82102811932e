//! A thread that factors numbers beside a server: what it gets done is what the server leaves of its processor (slides 17 and 18).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;

use deckwatch_os::clock::{monotonic_ns, thread_cpu_ns};
use deckwatch_os::schedule::{Class, set_class};

use crate::bench::BenchError;
use crate::bench::end::system;

/// What the thread has done.
#[derive(Debug, Default)]
struct Done {
    numbers: AtomicU64,
    cpu_ns: AtomicU64,
    /// It is told to: several servers share a processor, and one is looked at at a time.
    is_wanted: AtomicBool,
}

/// The thread, asleep until it is told to begin; it ends with its process.
#[derive(Debug)]
pub(super) struct Factoring {
    done: Arc<Done>,
    thread: Thread,
}

impl Factoring {
    /// Starts it, in the time-sharing class.
    pub(super) fn begin() -> Result<Self, BenchError> {
        let done = Arc::new(Done::default());
        let own = Arc::clone(&done);
        let work = move || {
            let _time_sharing_anyway = set_class(Class::Other);
            loop {
                while !own.is_wanted.load(Ordering::Relaxed) {
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
        Ok(Self { done, thread })
    }

    /// Lets it factor, or rest.
    pub(super) fn want(&self, is_wanted: bool) {
        self.done.is_wanted.store(is_wanted, Ordering::Relaxed);
        self.thread.unpark();
    }

    /// `factored NUMBERS CPU_NS NOW_NS`.
    pub(super) fn said(&self) -> String {
        let numbers = self.done.numbers.load(Ordering::Relaxed);
        let cpu_ns = self.done.cpu_ns.load(Ordering::Relaxed);
        format!("factored {numbers} {cpu_ns} {}", monotonic_ns())
    }
}

/// Two primes: to find the lesser takes some microseconds, little beside what is looked at and much beside a count.
const FACTOR: u64 = 3_989;
const PRODUCT: u64 = FACTOR * 4_001;

/// By trial division.
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
