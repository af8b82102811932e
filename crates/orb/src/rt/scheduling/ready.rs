//! The threads that could run now, ranked, and the native priorities that follow from their ranks.

use std::io;

use deckwatch_os::schedule::{self, Class};

use super::Band;

/// Ranks threads by a key, the lowest first, and gives each rank a priority of the band: the first the highest, those of one key the
/// same, and those for whom the band is too narrow its lowest.
pub(super) struct ReadySet {
    band: Band,
    entries: Vec<Entry>,
}

/// What a thread was before it came, to be given back when it goes.
pub(super) struct Before {
    class: Class,
    entry: Option<Entry>,
}

#[derive(Clone, Copy)]
struct Entry {
    /// The kernel's number.
    thread: u32,
    key: u64,
    /// It waits for the reply to a call: it has no rank, and keeps its priority for when it wakes.
    waits: bool,
    native: u8,
}

impl ReadySet {
    pub(super) const fn new(band: Band) -> Self {
        Self {
            band,
            entries: Vec::new(),
        }
    }

    /// The calling thread comes, or comes again with a call of its own host, at `key`.
    pub(super) fn enter(&mut self, key: u64) -> io::Result<Before> {
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

    /// The calling thread goes on at another key.
    pub(super) fn change(&mut self, key: u64) -> io::Result<()> {
        self.with_own(|entry| entry.key = key)
    }

    /// The calling thread waits for a reply, or does no longer.
    pub(super) fn set_waits(&mut self, waits: bool) -> io::Result<()> {
        self.with_own(|entry| entry.waits = waits)
    }

    /// The calling thread goes; it is what it was before it came.
    pub(super) fn leave(&mut self, before: &Before) {
        self.put_back(schedule::thread_number(), before);
        // What the thread has had it may have again, and the others no less than they have.
        let _restored = schedule::set_class(before.class);
        let _ranked = self.rank();
    }

    /// The calling thread ends: its number may soon be another's.
    pub(super) fn forget(&mut self) {
        let thread = schedule::thread_number();
        self.entries.retain(|entry| entry.thread != thread);
        let _ranked = self.rank();
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

    /// Gives every thread the priority of its rank. Those that rise go first, so that none passes another in between.
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
                    // It has ended, and is about to go.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    set => set?,
                }
                entry.native = native;
            }
        }
        Ok(())
    }
}
