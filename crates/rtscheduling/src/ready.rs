//! The threads that are ready to run, ranked, and the native priorities that follow from their ranks.

use std::io;
use std::time::Duration;

use deckwatch_os::schedule::{self, Class};

use crate::Band;

/// The number by which a thread is ranked, the lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) value: u64,
    /// The value rises by one for each 100 ns that the thread runs, up to this.
    pub(crate) value_max: u64,
}

impl Key {
    /// Returns a key that does not change as the thread runs.
    pub(crate) const fn fixed(value: u64) -> Self {
        Self {
            value,
            value_max: value,
        }
    }
}

/// Nanoseconds in a unit of TimeBase::TimeT.
const UNIT_NS: u64 = 100;

/// Returns a duration in units of TimeBase::TimeT.
pub(crate) fn units(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos() / u128::from(UNIT_NS)).unwrap_or(u64::MAX)
}

/// Ranks threads by a key, the lowest first, and maps each rank to a priority of the band. The first rank has the
/// highest priority. Threads with equal keys share a rank. Ranks beyond the width of the band have its lowest priority.
pub(crate) struct ReadySet {
    band: Band,
    entries: Vec<Entry>,
}

/// The state of a thread before it entered, restored when it leaves.
pub(crate) struct Before {
    class: Class,
    entry: Option<Entry>,
}

#[derive(Clone, Copy)]
struct Entry {
    /// The thread number of the kernel.
    thread: u32,
    key: Key,
    /// The processor time of the thread when it had this key.
    as_of: Duration,
    /// The thread waits for a reply: it has no rank, and keeps its priority until it wakes.
    waits: bool,
    native: u8,
}

impl Entry {
    /// Sets the key of the calling thread.
    fn set(&mut self, key: Key) {
        (self.key, self.as_of) = (key, schedule::processor_time());
    }

    /// Raises the key by what the thread has run since it had this key.
    fn age(&mut self) {
        if self.key.value >= self.key.value_max {
            return;
        }
        // A thread that has ended is about to leave.
        let Ok(now) = schedule::processor_time_of(self.thread) else {
            return;
        };
        let ran = units(now.saturating_sub(self.as_of));
        self.key.value = self.key.value.saturating_add(ran).min(self.key.value_max);
        // The rest of a unit counts the next time.
        self.as_of += Duration::from_nanos(ran.saturating_mul(UNIT_NS));
    }
}

impl ReadySet {
    pub(crate) const fn new(band: Band) -> Self {
        Self {
            band,
            entries: Vec::new(),
        }
    }

    /// Adds the calling thread at `key`. A thread that serves its own call enters once more.
    pub(crate) fn enter(&mut self, key: Key) -> io::Result<Before> {
        let thread = schedule::thread_number();
        let class = schedule::class()?;
        let place = self.place(thread);
        let before = Before {
            class,
            entry: place.map(|place| self.entries[place]),
        };
        let entry = Entry {
            thread,
            key,
            as_of: schedule::processor_time(),
            waits: false,
            native: 0,
        };
        match place {
            Some(place) => self.entries[place] = entry,
            None => self.entries.push(entry),
        }
        self.rank()
            .inspect_err(|_| self.put_back(thread, &before))?;
        Ok(before)
    }

    /// Gives the calling thread another key.
    pub(crate) fn change(&mut self, key: Key) -> io::Result<()> {
        self.with_own(|entry| entry.set(key))
    }

    /// Notes that the calling thread begins or ends to wait for a reply, and its key from then on.
    pub(crate) fn set_waits(&mut self, waits: bool, key: Key) -> io::Result<()> {
        self.with_own(|entry| {
            entry.waits = waits;
            entry.set(key);
        })
    }

    /// Removes the calling thread, and restores its state from before.
    pub(crate) fn leave(&mut self, before: &Before) {
        self.put_back(schedule::thread_number(), before);
        // The thread had this class before, and no other thread gets a lower priority. Both changes are permitted.
        let _ = schedule::set_class(before.class);
        let _ = self.rank();
    }

    /// Removes the calling thread, which is ending: the kernel may reuse its number for another thread.
    pub(crate) fn forget(&mut self) {
        let thread = schedule::thread_number();
        self.entries.retain(|entry| entry.thread != thread);
        // No other thread gets a lower priority: this is permitted.
        let _ = self.rank();
    }

    fn with_own(&mut self, change: impl FnOnce(&mut Entry)) -> io::Result<()> {
        match self.place(schedule::thread_number()) {
            Some(place) => change(&mut self.entries[place]),
            None => return Ok(()),
        }
        self.rank()
    }

    fn place(&self, thread: u32) -> Option<usize> {
        self.entries.iter().position(|entry| entry.thread == thread)
    }

    fn put_back(&mut self, thread: u32, before: &Before) {
        if let Some(place) = self.place(thread) {
            match before.entry {
                Some(entry) => self.entries[place] = entry,
                None => drop(self.entries.swap_remove(place)),
            }
        }
    }

    /// Sets every thread to the priority of its rank, the highest rank first, so that no thread overtakes another
    /// meanwhile.
    fn rank(&mut self) -> io::Result<()> {
        self.entries.iter_mut().for_each(Entry::age);
        self.entries.sort_unstable_by_key(|entry| entry.key.value);
        let band = self.band;
        let ready = self.entries.iter_mut().filter(|entry| !entry.waits);
        let (mut native, mut last) = (band.highest(), None);
        for entry in ready {
            if last.is_some_and(|last| last != entry.key.value) {
                native = native.saturating_sub(1).max(band.lowest());
            }
            last = Some(entry.key.value);
            if entry.native != native {
                match schedule::set_class_of(entry.thread, band.class(native)) {
                    // The thread has ended and is about to leave.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    set => set?,
                }
                entry.native = native;
            }
        }
        Ok(())
    }
}
