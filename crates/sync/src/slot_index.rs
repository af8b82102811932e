//! An index from hashes to slots of a [`crate::SlotTable`], whose readers never wait for writers.
//!
//! A reader gets every slot under its hash and confirms the one it means: other values may have the same hash, and the
//! value may be gone. Writers take turns. Removing an entry fills its place by moving later entries, each written to
//! its new place before the old one is overwritten. A reader that found nothing searches again if an entry was moved
//! meanwhile.

use std::fmt;
use std::sync::OnceLock;

use crate::limits::{INDEX_TABLE_FIRST, INDEX_TABLES_MAX};
use crate::pi_mutex::PiMutex;
use crate::primitive::{AtomicU64, AtomicUsize, Ordering};

/// Slots by the hash of their values.
pub struct SlotIndex {
    /// Each twice as long as the one before. Outgrown tables stay allocated, because readers may still use them.
    tables: [OnceLock<Box<[AtomicU64]>>; INDEX_TABLES_MAX],
    current: AtomicUsize,
    /// Number of moves of entries so far.
    moves: AtomicUsize,
    /// Number of entries.
    count: PiMutex<usize>,
}

/// Upper half of the hash, lower half the slot plus one: an entry is never 0.
const fn entry(hash: u64, slot: u32) -> u64 {
    hash & !0xffff_ffff | (slot as u64 + 1)
}

const FREE: u64 = 0;

impl SlotIndex {
    /// An empty index; it allocates with its first entry.
    #[must_use]
    pub fn new() -> Self {
        Self {
            tables: [const { OnceLock::new() }; INDEX_TABLES_MAX],
            current: AtomicUsize::new(0),
            moves: AtomicUsize::new(0),
            count: PiMutex::new(0),
        }
    }

    /// Returns the first `Some` that `confirm` returns for a slot under `hash`. Finds every slot that was inserted
    /// before the call and is not removed during it.
    #[inline]
    pub fn find<T>(&self, hash: u64, mut confirm: impl FnMut(u32) -> Option<T>) -> Option<T> {
        loop {
            // SYNC: pairs with the release in `close_gap`.
            let moves = self.moves.load(Ordering::Acquire);
            // SYNC: pairs with the release in `grow`.
            let table = self.tables[self.current.load(Ordering::Acquire)].get()?;
            let mut place = home(hash, table);
            for _ in 0..table.len() {
                // SYNC: pairs with the release in `insert` and `close_gap`.
                let seen = table[place].load(Ordering::Acquire);
                if seen == FREE {
                    break;
                }
                if seen >> 32 == hash >> 32
                    && let Some(found) = confirm(seen as u32 - 1)
                {
                    return Some(found);
                }
                place = next(place, table);
            }
            if self.moves.load(Ordering::Acquire) == moves {
                return None;
            }
        }
    }

    /// Inserts a slot under a hash.
    ///
    /// # Panics
    /// If there are more entries than a [`crate::SlotTable`] has slots.
    pub fn insert(&self, hash: u64, slot: u32) {
        let mut count = self.count.lock("index.insert");
        let table = self.room_for(*count + 1);
        let mut place = home(hash, table);
        while table[place].load(Ordering::Relaxed) != FREE {
            place = next(place, table);
        }
        // SYNC: pairs with the acquire in `find`.
        table[place].store(entry(hash, slot), Ordering::Release);
        *count += 1;
    }

    /// Removes a slot. Returns false if it is not under this hash.
    pub fn remove(&self, hash: u64, slot: u32) -> bool {
        let mut count = self.count.lock("index.remove");
        let Some(table) = self.tables[self.current.load(Ordering::Relaxed)].get() else {
            return false;
        };
        let mut place = home(hash, table);
        loop {
            match table[place].load(Ordering::Relaxed) {
                FREE => return false,
                seen if seen == entry(hash, slot) => break,
                _ => place = next(place, table),
            }
        }
        self.close_gap(table, place);
        *count -= 1;
        true
    }

    /// Frees a place, moving into it entries that a search would miss behind a free place.
    fn close_gap(&self, table: &[AtomicU64], mut gap: usize) {
        let mask = table.len() - 1;
        let mut place = gap;
        loop {
            place = next(place, table);
            let seen = table[place].load(Ordering::Relaxed);
            if seen == FREE {
                break;
            }
            // Its search begins at or before the gap, so it may move there.
            let searched = place.wrapping_sub(home(seen, table)) & mask;
            if searched >= place.wrapping_sub(gap) & mask {
                table[gap].store(seen, Ordering::Release);
                // SYNC: pairs with the acquires in `find`: a reader that misses it at its old place sees the move.
                self.moves.fetch_add(1, Ordering::Release);
                gap = place;
            }
        }
        table[gap].store(FREE, Ordering::Release);
    }

    /// The table, grown so that `count` entries fill at most half of it.
    fn room_for(&self, count: usize) -> &[AtomicU64] {
        let mut current = self.current.load(Ordering::Relaxed);
        let first = self.tables[current].get_or_init(|| free(INDEX_TABLE_FIRST));
        if 2 * count <= first.len() || current + 1 == self.tables.len() {
            assert!(count < first.len(), "it has room for every slot there is");
            return first;
        }
        let grown = free(2 * first.len());
        for seen in first.iter().map(|place| place.load(Ordering::Relaxed)) {
            let mut place = home(seen, &grown);
            while seen != FREE && grown[place].load(Ordering::Relaxed) != FREE {
                place = next(place, &grown);
            }
            if seen != FREE {
                grown[place].store(seen, Ordering::Relaxed);
            }
        }
        current += 1;
        let grown = self.tables[current].get_or_init(|| grown);
        // SYNC: pairs with the acquire in `find`.
        self.current.store(current, Ordering::Release);
        grown
    }
}

fn free(len: usize) -> Box<[AtomicU64]> {
    (0..len).map(|_| AtomicU64::new(FREE)).collect()
}

/// Where the search for a hash begins.
#[inline]
fn home(hash: u64, table: &[AtomicU64]) -> usize {
    (hash >> 32) as usize & (table.len() - 1)
}

#[inline]
fn next(place: usize, table: &[AtomicU64]) -> usize {
    (place + 1) & (table.len() - 1)
}

impl Default for SlotIndex {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SlotIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotIndex").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    fn has(index: &SlotIndex, hash: u64, slot: u32) -> bool {
        let found = index.find(hash, |found| (found == slot).then_some(()));
        found.is_some()
    }

    /// Many hashes whose search begins at the same place, also at the end of the table.
    fn hash(number: u32) -> u64 {
        u64::from(number.wrapping_mul(0x9e37_79b1) | 0x7c) << 32
    }

    #[test]
    fn what_is_entered_is_found_until_it_is_taken_out_and_nothing_else_is_lost() {
        let index = SlotIndex::new();
        assert!(!has(&index, 0, 0) && !index.remove(0, 0));
        (0..1_000).for_each(|slot| index.insert(hash(slot), slot));
        for gone in (0..1_000).step_by(3) {
            assert!(index.remove(hash(gone), gone));
            assert!(!index.remove(hash(gone), gone));
        }
        for slot in 0..1_000 {
            assert_eq!(has(&index, hash(slot), slot), slot % 3 != 0, "{slot}");
        }
    }

    #[test]
    fn a_full_round_of_changes_at_one_size_leaves_no_trace() {
        let index = SlotIndex::new();
        for slot in 0..100_000 {
            index.insert(hash(slot), slot);
            if slot >= 20 {
                assert!(index.remove(hash(slot - 20), slot - 20));
            }
        }
        assert_eq!(index.current.load(Ordering::Relaxed), 0);
        let table = index.tables[0].get().unwrap();
        let taken = table
            .iter()
            .filter(|place| place.load(Ordering::Relaxed) != FREE);
        assert_eq!(taken.count(), 20);
    }

    #[test]
    fn what_stays_is_found_while_others_come_and_go() {
        let index = Arc::new(SlotIndex::new());
        (0..64).for_each(|slot| index.insert(hash(slot), slot));
        let is_over = Arc::new(AtomicBool::new(false));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (index, is_over) = (Arc::clone(&index), Arc::clone(&is_over));
                std::thread::spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        assert!((0..64).step_by(2).all(|slot| has(&index, hash(slot), slot)));
                    }
                })
            })
            .collect();
        for round in 0..200 {
            (1..64)
                .step_by(2)
                .for_each(|slot| assert!(index.remove(hash(slot), slot)));
            (1..64)
                .step_by(2)
                .for_each(|slot| index.insert(hash(slot), slot));
            (0..8).for_each(|more| index.insert(hash(1_000 + round * 8 + more), 1_000 + more));
        }
        is_over.store(true, Ordering::Relaxed);
        readers
            .into_iter()
            .for_each(|reader| reader.join().unwrap());
    }
}
