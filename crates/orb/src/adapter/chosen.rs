//! What an application sets for an adapter and may set anew, such as its default servant: requests read it and never wait for who sets it.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};

use deckwatch_sync::{PiMutex, SlotTable};

use crate::SlotKey;

pub(super) struct Chosen<T> {
    /// The one that is set, and those before it that somebody is reading still.
    made: SlotTable<T>,
    current: AtomicU64,
    changing: PiMutex<()>,
}

/// Nothing is set. No slot has this number.
const NONE: u64 = u64::MAX;

impl<T> Chosen<T> {
    pub(super) fn none() -> Self {
        Self {
            made: SlotTable::without_memory(),
            current: AtomicU64::new(NONE),
            changing: PiMutex::new(()),
        }
    }

    /// Sets `to` where `allow` permits it, who is told whether something is set; gives nothing back before that has no reader any more.
    ///
    /// # Errors
    /// What `allow` ends in.
    pub(super) fn set<E>(
        &self,
        to: Option<T>,
        allow: impl FnOnce(bool) -> Result<(), E>,
    ) -> Result<(), E> {
        let changing = self.changing.lock("adapter.set");
        let before = self.current.load(Ordering::Relaxed);
        allow(before != NONE)?;
        let now = to.map_or(NONE, |to| match self.made.insert(to) {
            Ok(key) => u64::from(key.slot) << 32 | u64::from(key.generation),
            Err(_) => panic!("only what somebody reads is there besides"),
        });
        // SYNC: pairs with the acquire in `look`.
        self.current.store(now, Ordering::Release);
        // Its end may ask the adapter for anything.
        drop(changing);
        if before != NONE {
            self.made.remove(unpacked(before));
        }
        Ok(())
    }

    pub(super) fn forget(&self) {
        let Ok(()) = self.set(None, |_| Ok::<(), Infallible>(()));
    }

    pub(super) fn look<R>(&self, at: impl Fn(&T) -> R) -> Option<R> {
        loop {
            // SYNC: pairs with the release in `set`.
            let current = self.current.load(Ordering::Acquire);
            if current == NONE {
                return None;
            }
            // Where it is gone, another has been set meanwhile.
            if let Some(found) = self.made.pin(unpacked(current)) {
                return Some(at(&found));
            }
        }
    }

    pub(super) fn get(&self) -> Option<T>
    where
        T: Clone,
    {
        self.look(T::clone)
    }
}

const fn unpacked(key: u64) -> SlotKey {
    SlotKey {
        slot: (key >> 32) as u32,
        generation: key as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_last_one_set_is_had_and_the_one_before_it_let_go() {
        let chosen = Chosen::none();
        assert_eq!(chosen.get(), None);
        let first = Arc::new(1);
        let may = |_| Ok::<(), ()>(());
        assert_eq!(chosen.set(Some(Arc::clone(&first)), may), Ok(()));
        assert_eq!(chosen.get(), Some(Arc::clone(&first)));
        let once = |is_set: bool| if is_set { Err("set") } else { Ok(()) };
        assert_eq!(chosen.set(Some(Arc::new(2)), once), Err("set"));
        assert_eq!(chosen.set(Some(Arc::new(3)), may), Ok(()));
        assert_eq!(Arc::strong_count(&first), 1);
        assert_eq!(chosen.look(|set| **set), Some(3));
        chosen.forget();
        assert_eq!(chosen.get(), None);
    }
}
