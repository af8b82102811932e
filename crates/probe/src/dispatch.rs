//! The overhead of a dispatch on this machine: from the queueing of an event to the start of its handler, and from the
//! end of the handler back to the thread that it has delayed.
//!
//! Two threads share one processor, as lanes of one processor do. One queues, and then waits; the other is woken,
//! takes the event, and does nothing with it but to answer. The time contains both switches of threads, both wake-ups
//! and both queues: a handler that preempts another thread takes all of that from it.

use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

/// A measured overhead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// Dispatches measured.
    pub samples: usize,
    /// Median.
    pub median_ns: u64,
    /// The 99th percentile, which a schedule takes for each dispatch.
    pub p99_ns: u64,
    /// The longest; it contains what disturbed the machine meanwhile.
    pub max_ns: u64,
}

/// Measures the overhead of a dispatch, in the scheduling class of this process.
///
/// # Errors
/// The operating system's, if the threads cannot be bound to one processor.
pub fn measure() -> io::Result<Dispatch> {
    let processor = deckwatch_os::schedule::affinity()?;
    let processor: Vec<u32> = processor.into_iter().take(1).collect();
    let (queue, events) = mpsc::sync_channel::<()>(1);
    let (done, is_done) = mpsc::sync_channel::<()>(1);
    let there = processor.clone();
    let handler = thread::Builder::new()
        .name("dispatch-handler".to_owned())
        .spawn(move || -> io::Result<()> {
            deckwatch_os::schedule::set_affinity(&there)?;
            while events.recv().is_ok() && done.send(()).is_ok() {}
            Ok(())
        })?;
    let supplier = thread::Builder::new()
        .name("dispatch-supplier".to_owned())
        .spawn(move || -> io::Result<Vec<u64>> {
            deckwatch_os::schedule::set_affinity(&processor)?;
            let mut samples = Vec::with_capacity(SAMPLES);
            for _ in 0..WARM_UP + SAMPLES {
                let queued = Instant::now();
                if queue.send(()).is_err() || is_done.recv().is_err() {
                    break;
                }
                samples.push(u64::try_from(queued.elapsed().as_nanos()).unwrap_or(u64::MAX));
            }
            Ok(samples.split_off(samples.len().min(WARM_UP)))
        })?;
    let samples = joined(supplier)?;
    joined(handler)?;
    Ok(Dispatch::of(samples))
}

fn joined<T>(thread: thread::JoinHandle<io::Result<T>>) -> io::Result<T> {
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

impl Dispatch {
    fn of(mut samples: Vec<u64>) -> Self {
        samples.sort_unstable();
        let at = |percent: usize| {
            let place = (samples.len() * percent).div_ceil(100).saturating_sub(1);
            samples.get(place).copied().unwrap_or(0)
        };
        Self {
            samples: samples.len(),
            median_ns: at(50),
            p99_ns: at(99),
            max_ns: at(100),
        }
    }

    /// Returns where the number comes from, in words.
    #[must_use]
    pub fn words(&self) -> String {
        format!(
            "measured on this machine: 99th percentile of {} dispatches on one processor, there and back, median {} ns, \
             longest {} ns",
            self.samples, self.median_ns, self.max_ns
        )
    }
}

/// Dispatches measured: a hundred lie beyond the percentile. They take about a tenth of a second.
const SAMPLES: usize = 10_000;

/// Dispatches before these, until caches and page tables are warm.
const WARM_UP: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_sorted_samples() {
        let found = Dispatch::of((1..=1000).rev().collect());
        assert_eq!((found.median_ns, found.p99_ns), (500, 990));
        assert_eq!((found.samples, found.max_ns), (1000, 1000));
        assert_eq!(Dispatch::of(Vec::new()).p99_ns, 0);
    }

    #[test]
    fn each_dispatch_takes_some_time() {
        let found = measure().expect("two threads on one processor");
        assert_eq!(found.samples, SAMPLES);
        assert!(found.median_ns > 0 && found.median_ns <= found.p99_ns);
    }
}
