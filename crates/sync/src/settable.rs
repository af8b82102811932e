//! A value that is replaced now and then and read without a lock, such as the default servant of an adapter.

use crate::pi_mutex::PiMutex;
use crate::primitive::{AtomicU64, Ordering, fence};
use crate::slot_table::{SlotKey, SlotTable};
use std::convert::Infallible;
use std::fmt;

/// At most one value at a time. Readers never wait for the thread that sets it.
pub struct Settable<T> {
    /// The current value, and earlier ones that still have a reader.
    values: SlotTable<T>,
    /// The key of the current value, or [`NONE`].
    current: AtomicU64,
    setting: PiMutex<()>,
}

/// No value is set. No slot has this number.
const NONE: u64 = u64::MAX;

impl<T> Settable<T> {
    /// Returns a cell without a value. It takes no memory before the first value is set.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            values: SlotTable::without_memory(),
            current: AtomicU64::new(NONE),
            setting: PiMutex::new(()),
        }
    }

    /// Returns a cell with a first value.
    #[must_use]
    pub fn new(value: T) -> Self {
        let cell = Self::empty();
        cell.set(value);
        cell
    }

    /// Replaces the value.
    pub fn set(&self, to: T) {
        let Ok(()) = self.set_if(Some(to), |_| Ok::<(), Infallible>(()));
    }

    /// Removes the value.
    pub fn clear(&self) {
        let Ok(()) = self.set_if(None, |_| Ok::<(), Infallible>(()));
    }

    /// Replaces the value if `allow(was_set)` agrees. The old value is dropped after its last reader has left.
    ///
    /// # Errors
    /// The error of `allow`.
    pub fn set_if<E>(
        &self,
        to: Option<T>,
        allow: impl FnOnce(bool) -> Result<(), E>,
    ) -> Result<(), E> {
        let setting = self.setting.lock("settable.set");
        let before = self.current.load(Ordering::Relaxed);
        allow(before != NONE)?;
        let now = to.map_or(NONE, |to| match self.values.insert(to) {
            Ok(key) => u64::from(key.slot) << 32 | u64::from(key.generation),
            Err(_) => panic!("only values with readers are in the table besides"),
        });
        // SYNC: pairs with the acquire in `read`.
        self.current.store(now, Ordering::Release);
        // The destructor of the old value may use this cell.
        drop(setting);
        if before != NONE {
            self.values.remove(unpacked(before));
        }
        Ok(())
    }

    /// Returns what `look` makes of the current value; `None` if no value is set. Takes two atomic operations and no
    /// lock.
    #[inline]
    pub fn read<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        loop {
            // SYNC: pairs with the release in `set_if`.
            let current = self.current.load(Ordering::Acquire);
            if current == NONE {
                return None;
            }
            // `pin` fails if another thread has replaced the value meanwhile.
            if let Some(value) = self.values.pin(unpacked(current)) {
                return Some(look(&value));
            }
            // SYNC: pairs with the release by which `remove` removes the old value: the next load finds the new one.
            fence(Ordering::Acquire);
        }
    }

    /// Returns a copy of the current value; `None` if no value is set.
    pub fn get(&self) -> Option<T>
    where
        T: Clone,
    {
        self.read(T::clone)
    }
}

const fn unpacked(key: u64) -> SlotKey {
    SlotKey {
        slot: (key >> 32) as u32,
        generation: key as u32,
    }
}

impl<T> fmt::Debug for Settable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settable").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_last_value_set_is_current_and_the_one_before_it_is_dropped() {
        let cell = Settable::empty();
        assert_eq!(cell.get(), None);
        let first = Arc::new(1);
        let may = |_| Ok::<(), ()>(());
        assert_eq!(cell.set_if(Some(Arc::clone(&first)), may), Ok(()));
        assert_eq!(cell.get(), Some(Arc::clone(&first)));
        let once = |is_set: bool| if is_set { Err("set") } else { Ok(()) };
        assert_eq!(cell.set_if(Some(Arc::new(2)), once), Err("set"));
        assert_eq!(cell.get(), Some(Arc::clone(&first)));
        cell.set(Arc::new(3));
        assert_eq!(Arc::strong_count(&first), 1);
        assert_eq!(cell.read(|set| **set), Some(3));
        cell.clear();
        assert_eq!(cell.get(), None);
    }

    #[test]
    fn a_value_may_be_set_anew_any_number_of_times() {
        let cell = Settable::new(0);
        for number in 1..1_000 {
            cell.set(number);
            assert_eq!(cell.get(), Some(number));
        }
    }

    #[test]
    fn a_replaced_value_is_dropped_after_its_last_reader() {
        let first = Arc::new(());
        let cell = Settable::new(Arc::clone(&first));
        cell.read(|value| {
            cell.clear();
            assert_eq!(Arc::strong_count(value), 2);
        });
        assert_eq!(Arc::strong_count(&first), 1);
    }
}
