//! Indexes by name: objects by adapter and id, adapters by path, and a directory by octets.
//!
//! Requests of every priority read them while other threads change them. A reader never waits for a writer.

use std::hash::{BuildHasher, Hasher, RandomState};

use deckwatch_sync::{PiMutex, Pinned, SlotIndex, SlotTable, TableFull};

use super::{Lifespan, PoaState};
use crate::SlotKey;

/// The slots of the objects and the adapters of one ORB.
pub(super) struct Names {
    hasher: RandomState,
    objects: SlotIndex,
    paths: SlotIndex,
}

impl Names {
    pub(super) fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            objects: SlotIndex::new(),
            paths: SlotIndex::new(),
        }
    }

    /// The hash of an object of a transient adapter.
    #[inline]
    pub(super) fn of_slot(&self, adapter: SlotKey, id: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u64(u64::from(adapter.slot) << 32 | u64::from(adapter.generation));
        hasher.write(id);
        hasher.finish()
    }

    /// The hash of an object of a persistent adapter.
    #[inline]
    pub(super) fn of_path(&self, path: &[u8], id: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_usize(path.len());
        hasher.write(path);
        hasher.write(id);
        hasher.finish()
    }

    pub(super) fn of(&self, state: &PoaState, id: &[u8]) -> u64 {
        match state.policies.lifespan {
            Lifespan::Transient => self.of_slot(state.slot(), id),
            Lifespan::Persistent => self.of_path(&state.identity.path, id),
        }
    }

    pub(super) fn enter_object(&self, state: &PoaState, id: &[u8], slot: SlotKey) {
        self.objects.insert(self.of(state, id), slot.slot);
    }

    pub(super) fn strike_object(&self, state: &PoaState, id: &[u8], slot: SlotKey) {
        let _ = self.objects.remove(self.of(state, id), slot.slot);
    }

    pub(super) fn enter_adapter(&self, path: &[u8], slot: SlotKey) {
        self.paths.insert(self.hasher.hash_one(path), slot.slot);
    }

    pub(super) fn strike_adapter(&self, path: &[u8], slot: SlotKey) {
        let _ = self.paths.remove(self.hasher.hash_one(path), slot.slot);
    }

    /// Returns the first value that `confirm` returns for the slots with this hash of an object.
    #[inline]
    pub(super) fn object<T>(&self, hash: u64, confirm: impl FnMut(u32) -> Option<T>) -> Option<T> {
        self.objects.find(hash, confirm)
    }

    /// Returns the first value that `confirm` returns for the slots with the hash of this path.
    pub(super) fn adapter<T>(
        &self,
        path: &[u8],
        confirm: impl FnMut(u32) -> Option<T>,
    ) -> Option<T> {
        self.paths.find(self.hasher.hash_one(path), confirm)
    }
}

/// Values by octets.
pub(super) struct Directory<V> {
    hasher: RandomState,
    entries: SlotTable<Entry<V>>,
    index: SlotIndex,
    /// How many there are.
    count: PiMutex<usize>,
}

struct Entry<V> {
    name: Box<[u8]>,
    value: V,
}

impl<V> Directory<V> {
    /// An empty directory, which allocates with its first value.
    pub(super) fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            entries: SlotTable::without_memory(),
            index: SlotIndex::new(),
            count: PiMutex::new(0),
        }
    }

    pub(super) fn look<T>(&self, name: &[u8], at: impl FnOnce(&V) -> T) -> Option<T> {
        let (_, entry) = self.find(self.hasher.hash_one(name), name)?;
        Some(at(&entry.value))
    }

    fn find(&self, hash: u64, name: &[u8]) -> Option<(SlotKey, Pinned<'_, Entry<V>>)> {
        self.index.find(hash, |slot| {
            let found = self.entries.pin_at(slot)?;
            (*found.1.name == *name).then_some(found)
        })
    }

    /// Sets the value of a name to what `by` returns for the current value and the number of values. `None` changes
    /// nothing.
    ///
    /// # Errors
    /// That of `by`; `full` if there is no room.
    pub(super) fn change<E>(
        &self,
        name: &[u8],
        full: E,
        by: impl FnOnce(Option<&V>, usize) -> Result<Option<V>, E>,
    ) -> Result<(), E> {
        let hash = self.hasher.hash_one(name);
        let mut count = self.count.lock("names.change");
        let before = self.find(hash, name);
        let value = by(before.as_ref().map(|(_, entry)| &entry.value), *count)?;
        let Some(value) = value else { return Ok(()) };
        let name = name.into();
        let inserted = self.entries.insert(Entry { name, value });
        let slot = inserted.map_err(|TableFull(_)| full)?;
        self.index.insert(hash, slot.slot);
        match before {
            None => *count += 1,
            // Dropped after the lock: the drop of a value can run any code.
            Some((key, _ending)) => {
                self.index.remove(hash, key.slot);
                self.entries.remove(key);
                drop(count);
            }
        }
        Ok(())
    }

    /// Removes a name if `is_such` returns true for its value.
    pub(super) fn forget_if(&self, name: &[u8], is_such: impl FnOnce(&V) -> bool) {
        let hash = self.hasher.hash_one(name);
        let mut count = self.count.lock("names.forget");
        let Some((key, ending)) = self.find(hash, name) else {
            return;
        };
        if is_such(&ending.value) {
            let _ = self.index.remove(hash, key.slot);
            self.entries.remove(key);
            *count -= 1;
        }
        // Dropped after the lock: the drop of a value can run any code.
        drop(count);
        drop(ending);
    }

    /// Removes all names.
    pub(super) fn clear(&self) {
        let mut count = self.count.lock("names.clear");
        let mut gone = Vec::new();
        self.entries.for_each(|key, entry| {
            let _ = self
                .index
                .remove(self.hasher.hash_one(&*entry.name), key.slot);
            gone.push(key);
        });
        *count = 0;
        drop(count);
        for key in gone {
            self.entries.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_value_that_it_was_given_last() {
        let names = Directory::new();
        let set = |name: &[u8], value| names.change(name, (), |_, _| Ok(Some(value)));
        assert_eq!(names.look(b"one", |value| *value), None);
        assert_eq!(set(b"one", 1), Ok(()));
        assert_eq!(set(b"two", 2), Ok(()));
        let counted = names.change(b"one", 0, |before, count| {
            assert_eq!((before, count), (Some(&1), 2));
            Ok(Some(3))
        });
        assert_eq!(counted, Ok(()));
        let refused = names.change(b"two", 0, |_, count| Err(count));
        assert_eq!(refused, Err(2));
        assert_eq!(names.look(b"one", |value| *value), Some(3));
        names.forget_if(b"one", |value| *value == 1);
        assert_eq!(names.look(b"one", |value| *value), Some(3));
        names.forget_if(b"one", |value| *value == 3);
        names.forget_if(b"none", |_| true);
        assert_eq!(names.look(b"one", |value| *value), None);
        let counted = names.change(b"three", 0, |_, count| Err(count));
        assert_eq!(counted, Err(1));
        names.clear();
        assert_eq!(names.look(b"two", |value| *value), None);
    }
}
