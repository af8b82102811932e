//! The threads that are ready to run, ranked, and the native priorities that follow from their ranks.

use std::io;

use deckwatch_os::schedule::{self, Class};

use crate::Band;

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
    key: u64,
    /// The thread waits for a reply: it has no rank, and keeps its priority until it wakes.
    waits: bool,
    native: u8,
}

impl ReadySet {
    pub(crate) const fn new(band: Band) -> Self {
        Self {
            band,
            entries: Vec::new(),
        }
    }

    /// Adds the calling thread at `key`. A thread that serves its own call enters once more.
    pub(crate) fn enter(&mut self, key: u64) -> io::Result<Before> {
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
    pub(crate) fn change(&mut self, key: u64) -> io::Result<()> {
        self.with_own(|entry| entry.key = key)
    }

    /// Notes that the calling thread begins or ends to wait for a reply.
    pub(crate) fn set_waits(&mut self, waits: bool) -> io::Result<()> {
        self.with_own(|entry| entry.waits = waits)
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
        self.entries.sort_unstable_by_key(|entry| entry.key);
        let band = self.band;
        let ready = self.entries.iter_mut().filter(|entry| !entry.waits);
        let (mut native, mut last) = (band.highest(), None);
        for entry in ready {
            if last.is_some_and(|last| last != entry.key) {
                native = native.saturating_sub(1).max(band.lowest());
            }
            last = Some(entry.key);
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
