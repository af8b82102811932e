//! A pool of values of which any will do: taking one and giving it back is one atomic operation each, and never waits.

use std::fmt;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

use crate::primitive::{AtomicU64, Cell, Ordering};

/// Up to `capacity` values; which of them is taken is not said (in practice one of those given back lately).
pub struct Pool<T> {
    cells: Box<[Cell<MaybeUninit<T>>]>,
    /// One bit a cell: it holds a value.
    full: Box<[AtomicU64]>,
    /// One bit a cell: it holds none and nobody is filling it. A cell in neither set belongs to one thread.
    empty: Box<[AtomicU64]>,
}

// SAFETY: a cell is touched only by the thread that cleared its bit in one of the two sets.
unsafe impl<T: Send> Send for Pool<T> {}
// SAFETY: as above; values move between threads, they are never shared.
unsafe impl<T: Send> Sync for Pool<T> {}

impl<T> Pool<T> {
    /// An empty pool with room for `capacity` values.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let words = capacity.div_ceil(64);
        let room = |word: usize| {
            (0..64)
                .filter(|bit| word * 64 + bit < capacity)
                .fold(0, |set, bit| set | 1 << bit)
        };
        Self {
            cells: (0..capacity)
                .map(|_| Cell::new(MaybeUninit::uninit()))
                .collect(),
            full: (0..words).map(|_| AtomicU64::new(0)).collect(),
            empty: (0..words).map(|word| AtomicU64::new(room(word))).collect(),
        }
    }

    /// Takes a value out; `None` when there is none.
    pub fn take(&self) -> Option<T> {
        let cell = claim(&self.full)?;
        // SAFETY: the bit in `full` said that the cell is initialised, and clearing it made the cell ours.
        let value = self.cells[cell].with_mut(|held| unsafe { (*held).assume_init_read() });
        release(&self.empty, cell);
        Some(value)
    }

    /// A value to use where it lies; `None` when there is none. What taking it out and giving it in again costs, halved.
    #[inline]
    pub fn lend(&self) -> Option<Lent<'_, T>> {
        let cell = claim(&self.full)?;
        Some(Lent { pool: self, cell })
    }

    /// Gives a value in.
    ///
    /// # Errors
    /// The value itself when there is no room.
    pub fn put(&self, value: T) -> Result<(), T> {
        let Some(cell) = claim(&self.empty) else {
            return Err(value);
        };
        // SAFETY: clearing the bit in `empty` made the cell ours, and it holds nothing.
        self.cells[cell].with_mut(|held| unsafe { (*held).write(value) });
        release(&self.full, cell);
        Ok(())
    }

    /// Drops the values that `keep` does not want. Those that others have taken are passed over; who takes meanwhile misses at
    /// most the one that is looked at.
    pub fn retain(&self, mut keep: impl FnMut(&T) -> bool) {
        for cell in 0..self.cells.len() {
            if !claim_one(&self.full, cell) {
                continue;
            }
            // SAFETY: the bit in `full` said that the cell is initialised, and clearing it made the cell ours.
            let is_kept = self.cells[cell].with(|held| keep(unsafe { (*held).assume_init_ref() }));
            if is_kept {
                release(&self.full, cell);
                continue;
            }
            // SAFETY: the cell is still ours and initialised; it is not read again before it is filled.
            drop(self.cells[cell].with_mut(|held| unsafe { (*held).assume_init_read() }));
            release(&self.empty, cell);
        }
    }
}

/// A value of a pool in use by one thread, in its place. Others may have it when this is dropped.
pub struct Lent<'p, T> {
    pool: &'p Pool<T>,
    cell: usize,
}

impl<T> Lent<'_, T> {
    /// Takes the value out for good.
    #[must_use]
    pub fn into_value(self) -> T {
        let (pool, cell) = (self.pool, self.cell);
        std::mem::forget(self);
        // SAFETY: the bit in `full` said that the cell is initialised, and clearing it made the cell ours.
        let value = pool.cells[cell].with_mut(|held| unsafe { (*held).assume_init_read() });
        release(&pool.empty, cell);
        value
    }
}

impl<T> Deref for Lent<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the bit in `full` said that the cell is initialised, and clearing it made the cell ours for as long as `self` lives.
        self.pool.cells[self.cell].with(|held| unsafe { (*held).assume_init_ref() })
    }
}

impl<T> DerefMut for Lent<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; `self` is borrowed by one alone.
        self.pool.cells[self.cell].with_mut(|held| unsafe { (*held).assume_init_mut() })
    }
}

impl<T> Drop for Lent<'_, T> {
    #[inline]
    fn drop(&mut self) {
        release(&self.pool.full, self.cell);
    }
}

impl<T: fmt::Debug> fmt::Debug for Lent<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lent").field(&**self).finish()
    }
}

/// Clears the bit of this place; false where it was not set.
fn claim_one(set: &[AtomicU64], cell: usize) -> bool {
    let bit = 1 << (cell % 64);
    // SYNC: pairs with the release in `release`.
    set[cell / 64].fetch_and(!bit, Ordering::Acquire) & bit != 0
}

/// Clears one set bit and returns its place.
#[inline]
fn claim(set: &[AtomicU64]) -> Option<usize> {
    for (word, bits) in set.iter().enumerate() {
        let mut seen = bits.load(Ordering::Relaxed);
        while seen != 0 {
            // SYNC: pairs with the release in `release`.
            match bits.compare_exchange_weak(
                seen,
                seen & (seen - 1),
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(word * 64 + seen.trailing_zeros() as usize),
                Err(now) => seen = now,
            }
        }
    }
    None
}

#[inline]
fn release(set: &[AtomicU64], cell: usize) {
    // SYNC: pairs with the acquire in `claim`.
    set[cell / 64].fetch_or(1 << (cell % 64), Ordering::Release);
}

impl<T> Drop for Pool<T> {
    fn drop(&mut self) {
        while self.take().is_some() {}
    }
}

impl<T> fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("capacity", &self.cells.len())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_pool_holds_its_capacity_and_no_more() {
        let pool = Pool::with_capacity(70);
        assert_eq!(pool.take(), None);
        for value in 0..70 {
            pool.put(value).unwrap();
        }
        assert_eq!(pool.put(70), Err(70));
        let mut taken: Vec<u32> = std::iter::from_fn(|| pool.take()).collect();
        taken.sort_unstable();
        assert_eq!(taken, (0..70).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_lent_is_nobody_elses_and_comes_back_to_its_place() {
        let pool = Pool::with_capacity(2);
        pool.put(String::from("a")).unwrap();
        let mut lent = pool.lend().unwrap();
        assert!(pool.take().is_none() && pool.lend().is_none());
        lent.push('b');
        pool.put(String::new()).unwrap();
        assert!(pool.put(String::new()).is_err(), "its place stays taken");
        drop(lent);
        assert_eq!(pool.lend().unwrap().into_value(), "ab");
        pool.put(String::new()).unwrap();
    }

    #[test]
    fn what_is_left_in_a_pool_is_dropped_with_it() {
        let value = Arc::new(());
        let pool = Pool::with_capacity(3);
        pool.put(Arc::clone(&value)).unwrap();
        pool.put(Arc::clone(&value)).unwrap();
        drop(pool);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn no_value_is_lost_or_doubled_between_threads() {
        let pool = Arc::new(Pool::with_capacity(8));
        (0..8_u64).for_each(|value| pool.put(Box::new(1 << value)).unwrap());
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let pool = Arc::clone(&pool);
                std::thread::spawn(move || {
                    for _ in 0..20_000 {
                        let held: Vec<Box<u64>> = (0..2).filter_map(|_| pool.take()).collect();
                        assert!(held.len() < 2 || held[0] != held[1]);
                        held.into_iter().for_each(|value| pool.put(value).unwrap());
                    }
                })
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        assert_eq!(
            std::iter::from_fn(|| pool.take()).fold(0, |all, value| all | *value),
            0xff
        );
    }

    #[test]
    fn what_is_not_wanted_is_dropped_and_its_room_is_free() {
        let pool = Pool::with_capacity(100);
        let values: Vec<_> = (0..100).map(Arc::new).collect();
        for value in &values {
            pool.put(Arc::clone(value)).unwrap();
        }
        pool.retain(|value| **value % 3 == 0);
        let kept = |value: &&Arc<i32>| Arc::strong_count(value) == 2;
        assert_eq!(values.iter().filter(kept).count(), 34);
        for _ in 0..66 {
            pool.put(Arc::default()).unwrap();
        }
        assert!(pool.put(Arc::default()).is_err());
    }
}
