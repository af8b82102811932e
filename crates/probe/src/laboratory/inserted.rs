//! Work that our servants do in addition, to check that an instrument sees it.

use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Duration;

use deckwatch_os::clock;
use deckwatch_os::lock::{LibraryMutex, call_futex};
use deckwatch_sync::PiMutex;

/// What our servants do in each request in addition to the operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inserted {
    /// Nothing.
    #[default]
    Nothing,
    /// Keep the processor busy for this time.
    Delay(Duration),
    /// Allocate and free memory, this many times.
    Allocations(u32),
    /// Take and release one lock of each kind and make one futex call, this many times.
    Locks(u32),
    /// Call the kernel, this many times.
    SystemCalls(u32),
}

impl Inserted {
    /// The value of a command-line option. Returns `None` if nothing is inserted.
    #[must_use]
    pub fn words(self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Delay(delay) => Some(format!("delay:{}", delay.as_nanos())),
            Self::Allocations(count) => Some(format!("allocation:{count}")),
            Self::Locks(count) => Some(format!("lock:{count}")),
            Self::SystemCalls(count) => Some(format!("call:{count}")),
        }
    }

    /// Reads what [`Self::words`] writes; without a count, the count is one.
    #[must_use]
    pub fn of_words(words: &str) -> Option<Self> {
        let (name, number) = words.split_once(':').unwrap_or((words, "1"));
        let count = || number.parse().ok();
        match name {
            "allocation" => count().map(Self::Allocations),
            "lock" => count().map(Self::Locks),
            "call" => count().map(Self::SystemCalls),
            "delay" => (number.parse().ok()).map(|ns| Self::Delay(Duration::from_nanos(ns))),
            _ => None,
        }
    }

    /// The inserted delay; zero if something else is inserted.
    pub(crate) const fn delay(self) -> Duration {
        match self {
            Self::Delay(delay) => delay,
            _ => Duration::ZERO,
        }
    }

    /// Does the work.
    pub(crate) fn perform(self, locks: &Locks) {
        match self {
            Self::Nothing => {}
            Self::Delay(delay) => busy(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX)),
            Self::Allocations(count) => {
                for _ in 0..count {
                    drop(std::hint::black_box(Box::new(0_u64)));
                }
            }
            Self::Locks(count) => {
                for _ in 0..count {
                    locks.take_each();
                }
            }
            Self::SystemCalls(count) => {
                for _ in 0..count {
                    std::hint::black_box(std::process::id());
                }
            }
        }
    }
}

/// One lock of each kind that the counters know.
#[derive(Default)]
pub(crate) struct Locks {
    own: PiMutex<u64>,
    library: LibraryMutex,
    mutex: Mutex<u64>,
    read_write: RwLock<u64>,
}

impl Locks {
    fn take_each(&self) {
        *self.own.lock("laboratory.inserted") += 1;
        self.library.take();
        *self.mutex.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        *self
            .read_write
            .write()
            .unwrap_or_else(PoisonError::into_inner) += 1;
        call_futex();
    }
}

/// Keeps the processor busy for `ns` nanoseconds.
pub(crate) fn busy(ns: u64) {
    if ns > 0 {
        let until_ns = clock::monotonic_ns().saturating_add_unsigned(ns);
        while clock::monotonic_ns() < until_ns {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_read_as_they_are_written_and_one_is_the_usual_count() {
        for inserted in [
            Inserted::Delay(Duration::from_micros(300)),
            Inserted::Allocations(2),
            Inserted::Locks(7),
            Inserted::SystemCalls(1),
        ] {
            let words = inserted.words().expect("something");
            assert_eq!(Inserted::of_words(&words), Some(inserted));
        }
        assert_eq!(Inserted::of_words("lock"), Some(Inserted::Locks(1)));
        assert_eq!(Inserted::of_words("lock:many"), None);
        assert_eq!(Inserted::of_words("400us"), None);
        assert_eq!(Inserted::Nothing.words(), None);
    }
}
