//! Something of an ORB that is chosen by its user, and may be chosen anew: read without a lock, by threads at every priority.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use deckwatch_sync::PiMutex;

use crate::limits::MAPPINGS_MAX;
use crate::{Completion, SystemException, minor, raise};

/// The current one and those before it, which stay.
pub(crate) struct Kept<T: ?Sized> {
    made: [OnceLock<Arc<T>>; MAPPINGS_MAX],
    current: AtomicUsize,
    changing: PiMutex<()>,
}

impl<T: ?Sized> Kept<T> {
    pub(crate) fn new(first: Arc<T>) -> Self {
        let made = [const { OnceLock::new() }; MAPPINGS_MAX];
        let _empty = made[0].set(first);
        Self {
            made,
            current: AtomicUsize::new(0),
            changing: PiMutex::new(()),
        }
    }

    pub(crate) fn current(&self) -> &Arc<T> {
        // SYNC: pairs with `Kept::change`.
        let current = self.made[self.current.load(Ordering::Acquire)].get();
        current.expect("it is set before it is current")
    }

    /// # Errors
    /// NO_RESOURCES at [`MAPPINGS_MAX`].
    pub(crate) fn change(&self, to: Arc<T>) -> Result<(), SystemException> {
        let _one_at_a_time = self.changing.lock("rt.mapping");
        let next = self.current.load(Ordering::Relaxed) + 1;
        let exhausted = raise::no_resources(minor::NONE, Completion::No);
        let _empty = self.made.get(next).ok_or(exhausted)?.set(to);
        // SYNC: pairs with `Kept::current`.
        self.current.store(next, Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_chosen_is_current_until_there_is_no_room() {
        let kept = Kept::new(Arc::new(0));
        for number in 1..MAPPINGS_MAX {
            kept.change(Arc::new(number)).expect("room");
            assert_eq!(**kept.current(), number);
        }
        let full = raise::no_resources(minor::NONE, Completion::No);
        assert_eq!(kept.change(Arc::new(99)), Err(full));
        assert_eq!(**kept.current(), MAPPINGS_MAX - 1);
    }
}
