//! A table of values found by slot and generation, without a search and without a lock.
//!
//! A reader pins a value by one atomic operation. A value removed while pinned is dropped with the last pin. Only
//! inserting and freeing take a lock. Slots never move, so a growing table disturbs no reader.

use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::sync::OnceLock;

use crate::limits::{SLOT_CHUNK_FIRST, SLOT_CHUNKS_MAX};
use crate::pi_mutex::PiMutex;
use crate::primitive::{AtomicU64, Cell, Ordering};

/// The slot of a value and its generation, which tells it from earlier values of the same slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlotKey {
    /// Index of the slot.
    pub slot: u32,
    /// How often the slot was used before.
    pub generation: u32,
}

/// No slot is free and the table cannot grow.
#[derive(Debug, PartialEq, Eq)]
pub struct TableFull<T>(pub T);

/// Values by [`SlotKey`].
pub struct SlotTable<T> {
    chunks: [OnceLock<Box<[Slot<T>]>>; SLOT_CHUNKS_MAX],
    free: PiMutex<Free>,
}

struct Free {
    slots: Vec<u32>,
    chunks: usize,
}

/// Aligned to a cache line, so that a value that fits into one line is never spread over two.
#[repr(align(64))]
struct Slot<T> {
    /// Generation in the upper half; the flags and the count of pins in the lower.
    state: AtomicU64,
    value: Cell<MaybeUninit<T>>,
}

const LIVE: u64 = 1 << 31;
const PINS: u64 = LIVE - 1;

// SAFETY: values move in and out under the state protocol: written by the thread that took the slot from the free
// list, shared while LIVE or pinned, dropped by the one thread that brought the state to "not live, no pins".
unsafe impl<T: Send> Send for SlotTable<T> {}
// SAFETY: as above; pins hand out `&T` to several threads, hence `T: Sync`.
unsafe impl<T: Send + Sync> Sync for SlotTable<T> {}

impl<T> SlotTable<T> {
    /// An empty table with its first chunk allocated.
    #[must_use]
    pub fn new() -> Self {
        let table = Self::without_memory();
        table.grow(&mut table.free.lock("slots.grow"));
        table
    }

    /// An empty table that allocates its first chunk with its first value.
    #[must_use]
    pub fn without_memory() -> Self {
        Self {
            chunks: [const { OnceLock::new() }; SLOT_CHUNKS_MAX],
            free: PiMutex::new(Free {
                slots: Vec::new(),
                chunks: 0,
            }),
        }
    }

    /// Puts `value` into a free slot; doubles the table if there is none.
    ///
    /// # Errors
    /// [`TableFull`] with the value if the table has all its chunks.
    pub fn insert(&self, value: T) -> Result<SlotKey, TableFull<T>> {
        let mut free = self.free.lock("slots.insert");
        if free.slots.is_empty() {
            self.grow(&mut free);
        }
        let Some(index) = free.slots.pop() else {
            return Err(TableFull(value));
        };
        drop(free);
        let slot = self.slot(index).expect("free slots exist");
        // SAFETY: a slot of the free list is neither live nor pinned, and popping it made it ours.
        slot.value.with_mut(|held| unsafe { (*held).write(value) });
        let generation = slot.state.load(Ordering::Relaxed) >> 32;
        // SYNC: pairs with the acquire in `pin`.
        slot.state.store(generation << 32 | LIVE, Ordering::Release);
        Ok(SlotKey {
            slot: index,
            generation: generation as u32,
        })
    }

    /// Pins the value of `key`. Returns `None` if it has been removed or never existed.
    pub fn pin(&self, key: SlotKey) -> Option<Pinned<'_, T>> {
        self.pin_where(key, |state| state & LIVE != 0)
    }

    /// Pins the value that a slot holds now, and returns its key too.
    #[inline]
    pub fn pin_at(&self, slot: u32) -> Option<(SlotKey, Pinned<'_, T>)> {
        let state = &self.slot(slot)?.state;
        loop {
            let generation = (state.load(Ordering::Relaxed) >> 32) as u32;
            let key = SlotKey { slot, generation };
            if let Some(pinned) = self.pin(key) {
                return Some((key, pinned));
            }
            // The value is gone, unless another one was inserted meanwhile. SYNC: pairs with the releases in `remove`
            // and `release`: a reader that finds it gone sees its replacement, made before the removal.
            if (state.load(Ordering::Acquire) >> 32) as u32 == generation {
                return None;
            }
        }
    }

    /// As [`SlotTable::pin`], but also pins a removed value while another pin exists.
    pub fn pin_again(&self, key: SlotKey) -> Option<Pinned<'_, T>> {
        self.pin_where(key, |state| state & (LIVE | PINS) != 0)
    }

    /// Number of pins of the value of `key`, 0 if it is gone. A thread that pins it later sees every write that the
    /// caller made before.
    pub fn pins(&self, key: SlotKey) -> usize {
        let Some(slot) = self.slot(key.slot) else {
            return 0;
        };
        // SYNC: pairs with the acquire in `pin_where`: a write, so that a later pin reads from it.
        let seen = slot.state.fetch_or(0, Ordering::AcqRel);
        if (seen >> 32) as u32 == key.generation {
            (seen & PINS) as usize
        } else {
            0
        }
    }

    #[inline]
    fn pin_where(&self, key: SlotKey, may: impl Fn(u64) -> bool) -> Option<Pinned<'_, T>> {
        let slot = self.slot(key.slot)?;
        let mut seen = slot.state.load(Ordering::Relaxed);
        loop {
            if (seen >> 32) as u32 != key.generation || !may(seen) || seen & PINS == PINS {
                return None;
            }
            // SYNC: pairs with the release in `insert`.
            match slot.state.compare_exchange_weak(
                seen,
                seen + 1,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    return Some(Pinned {
                        table: self,
                        slot,
                        index: key.slot,
                    });
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Removes the value: it can no longer be found, and is dropped with its last pin. Returns false if it is not
    /// there.
    pub fn remove(&self, key: SlotKey) -> bool {
        let Some(slot) = self.slot(key.slot) else {
            return false;
        };
        let mut seen = slot.state.load(Ordering::Relaxed);
        loop {
            if (seen >> 32) as u32 != key.generation || seen & LIVE == 0 {
                return false;
            }
            // SYNC: pairs with the release in Pinned::drop, so that the value is dropped after its last use.
            match slot.state.compare_exchange_weak(
                seen,
                seen & !LIVE,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        if seen & PINS == 0 {
            self.release(slot, key.slot);
        }
        true
    }

    /// Calls `visit` with every value that is live now.
    pub fn for_each(&self, mut visit: impl FnMut(SlotKey, &T)) {
        for (chunk, slots) in self.chunks.iter().enumerate() {
            let Some(slots) = slots.get() else { return };
            for offset in 0..slots.len() {
                let index = (chunk_start(chunk) + offset) as u32;
                let generation = (slots[offset].state.load(Ordering::Relaxed) >> 32) as u32;
                let key = SlotKey {
                    slot: index,
                    generation,
                };
                if let Some(value) = self.pin(key) {
                    visit(key, &value);
                }
            }
        }
    }

    /// Drops the value of a slot that is neither live nor pinned, and frees the slot under its next generation.
    fn release(&self, slot: &Slot<T>, index: u32) {
        // SAFETY: this thread alone saw the state become "not live, no pins", and nobody can pin it in that state.
        slot.value
            .with_mut(|held| unsafe { (*held).assume_init_drop() });
        let generation = (slot.state.load(Ordering::Relaxed) >> 32) + 1;
        // SYNC: pairs with the acquire in `pin_at`.
        slot.state.store(generation << 32, Ordering::Release);
        // A slot whose generations are used up is retired: a key never refers to another value.
        if generation < u64::from(u32::MAX) {
            self.free.lock("slots.free").slots.push(index);
        }
    }

    fn slot(&self, index: u32) -> Option<&Slot<T>> {
        let position = index as usize / SLOT_CHUNK_FIRST;
        let chunk = (usize::BITS - position.leading_zeros()) as usize;
        self.chunks
            .get(chunk)?
            .get()?
            .get(index as usize - chunk_start(chunk))
    }

    fn grow(&self, free: &mut Free) {
        let Some(chunk) = self.chunks.get(free.chunks) else {
            return;
        };
        let start = chunk_start(free.chunks);
        let len = if free.chunks == 0 {
            SLOT_CHUNK_FIRST
        } else {
            start
        };
        let slot = || Slot {
            state: AtomicU64::new(0),
            value: Cell::new(MaybeUninit::uninit()),
        };
        // `free.chunks` counts the chunks that are set, under the lock: this one is not.
        let _ = chunk.set((0..len).map(|_| slot()).collect());
        free.slots.reserve(start + len);
        free.slots
            .extend((start as u32..(start + len) as u32).rev());
        free.chunks += 1;
    }
}

/// Index of the first slot of `chunk`: 0, 64, 128, 256, 512 ...
fn chunk_start(chunk: usize) -> usize {
    if chunk == 0 {
        0
    } else {
        SLOT_CHUNK_FIRST << (chunk - 1)
    }
}

impl<T> Default for SlotTable<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for SlotTable<T> {
    fn drop(&mut self) {
        for slot in self.chunks.iter().filter_map(OnceLock::get).flatten() {
            if slot.state.load(Ordering::Acquire) & LIVE != 0 {
                // SAFETY: the table is ours alone, and a live slot holds a value.
                slot.value
                    .with_mut(|held| unsafe { (*held).assume_init_drop() });
            }
        }
    }
}

impl<T> fmt::Debug for SlotTable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotTable").finish_non_exhaustive()
    }
}

/// A pinned value: it is not dropped while this exists.
pub struct Pinned<'a, T> {
    table: &'a SlotTable<T>,
    slot: &'a Slot<T>,
    index: u32,
}

// SAFETY: a pin is a shared reference to the value with a count; `T: Sync` makes sharing and moving it sound.
unsafe impl<T: Send + Sync> Send for Pinned<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Pinned<'_, T> {}

impl<T> Deref for Pinned<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: a pinned slot is initialised and is not dropped before the pin is gone.
        self.slot
            .value
            .with(|held| unsafe { (*held).assume_init_ref() })
    }
}

impl<T> Drop for Pinned<'_, T> {
    fn drop(&mut self) {
        // SYNC: pairs with the acquire in `remove` and with the acquire of the last unpin.
        let before = self.slot.state.fetch_sub(1, Ordering::AcqRel);
        if before & (LIVE | PINS) == 1 {
            self.table.release(self.slot, self.index);
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Pinned<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_key_finds_its_value_until_removed_and_never_the_next_one() {
        let table = SlotTable::new();
        let first = table.insert("first").unwrap();
        assert_eq!(table.pin(first).as_deref(), Some(&"first"));
        assert!(table.remove(first));
        assert!(!table.remove(first));
        let second = table.insert("second").unwrap();
        assert_eq!(
            (second.slot, second.generation),
            (first.slot, first.generation + 1)
        );
        assert!(table.pin(first).is_none());
        assert_eq!(table.pin(second).as_deref(), Some(&"second"));
    }

    #[test]
    fn a_value_removed_while_pinned_is_dropped_by_the_last_pin() {
        let value = Arc::new(());
        let table = SlotTable::new();
        let key = table.insert(Arc::clone(&value)).unwrap();
        let (one, two) = (table.pin(key).unwrap(), table.pin(key).unwrap());
        assert!(table.remove(key));
        assert!(table.pin(key).is_none());
        drop(one);
        assert_eq!(Arc::strong_count(&value), 2);
        drop(two);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn a_removed_value_can_be_pinned_again_only_while_somebody_has_it() {
        let table = SlotTable::new();
        let key = table.insert("value").unwrap();
        let held = table.pin(key).unwrap();
        assert_eq!(table.pins(key), 1);
        table.remove(key);
        assert!(table.pin(key).is_none());
        assert_eq!(table.pin_again(key).as_deref(), Some(&"value"));
        drop(held);
        assert!(table.pin_again(key).is_none());
        assert_eq!(table.pins(key), 0);
    }

    #[test]
    fn a_growing_table_keeps_every_key_and_visits_all() {
        let table = SlotTable::new();
        let keys: Vec<_> = (0..1_000_u32)
            .map(|value| table.insert(value).unwrap())
            .collect();
        assert!(
            keys.iter()
                .zip(0..)
                .all(|(key, value)| table.pin(*key).as_deref() == Some(&value))
        );
        assert!(
            table
                .pin(SlotKey {
                    slot: u32::MAX,
                    generation: 0
                })
                .is_none()
        );
        let mut sum = 0;
        table.for_each(|_, value| sum += value);
        assert_eq!(sum, 499_500);
    }

    #[test]
    fn what_is_left_is_dropped_with_the_table() {
        let value = Arc::new(());
        let table = SlotTable::new();
        let key = table.insert(Arc::clone(&value)).unwrap();
        table.insert(Arc::clone(&value)).unwrap();
        table.remove(key);
        drop(table);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn readers_never_see_a_value_of_another_key_while_slots_are_reused() {
        let table = Arc::new(SlotTable::<Box<u32>>::new());
        // Slot, value and generation of the only live value.
        let current = Arc::new(AtomicU64::new(0));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (table, current) = (Arc::clone(&table), Arc::clone(&current));
                std::thread::spawn(move || {
                    loop {
                        let seen = current.load(Ordering::Acquire);
                        if seen == u64::MAX {
                            return;
                        }
                        let key = SlotKey {
                            slot: (seen >> 56) as u32,
                            generation: seen as u32,
                        };
                        if let Some(value) = table.pin(key) {
                            assert_eq!(u64::from(**value), seen >> 32 & 0xff_ffff);
                        }
                    }
                })
            })
            .collect();
        for value in 0..20_000_u32 {
            let key = table.insert(Box::new(value)).unwrap();
            let packed =
                u64::from(key.slot) << 56 | u64::from(value) << 32 | u64::from(key.generation);
            current.store(packed, Ordering::Release);
            assert!(table.remove(key));
        }
        current.store(u64::MAX, Ordering::Release);
        readers
            .into_iter()
            .for_each(|reader| reader.join().unwrap());
    }
}
