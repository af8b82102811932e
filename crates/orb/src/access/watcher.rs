//! Services that are asked about their clients when another table comes into force.

use std::fmt;
use std::sync::Weak;

use deckwatch_sync::PiMutex;

/// A service whose clients stay connected between their requests.
pub trait AccessWatcher: Send + Sync {
    /// Disconnects the clients that the table in force does not permit what they do. Returns their number.
    fn ask_again(&self) -> usize;
}

#[derive(Default)]
pub(super) struct Watchers(PiMutex<Vec<Weak<dyn AccessWatcher>>>);

impl Watchers {
    pub(super) fn add(&self, watcher: Weak<dyn AccessWatcher>) {
        let mut watchers = self.0.lock("access.watch");
        watchers.retain(|watcher| watcher.strong_count() > 0);
        watchers.push(watcher);
    }

    pub(super) fn ask_again(&self) -> usize {
        let watchers = self.0.lock("access.ask_again").clone();
        let watchers = watchers.iter().filter_map(Weak::upgrade);
        watchers.map(|watcher| watcher.ask_again()).sum()
    }
}

impl fmt::Debug for Watchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchers").finish_non_exhaustive()
    }
}
