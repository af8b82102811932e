//! A pool of interchangeable values. Taking one is one atomic operation, returning it is another; neither ever waits.

use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

use crate::primitive::{AtomicU8, Cell, Ordering};

/// Up to `capacity` values. Which one `take` returns is unspecified (in practice one returned recently).
///
/// Under contention `take` may miss the last value and `put` may miss the last place.
pub struct Pool<T>(Box<[Place<T>]>);

/// Room for one value. The thread that took a place releases it by a plain store: no other thread writes a taken state.
struct Place<T> {
    /// [`EMPTY`], [`FULL`] or [`TAKEN`].
    state: AtomicU8,
    value: Cell<MaybeUninit<T>>,
}

/// No value.
const EMPTY: u8 = 0;
/// A value.
const FULL: u8 = 1;
/// Owned by one thread.
const TAKEN: u8 = 2;

// SAFETY: the value is touched only by the thread that brought the state to `TAKEN`; values move between threads, they
// are never shared.
unsafe impl<T: Send> Sync for Place<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Place<T> {}

impl<T> Place<T> {
    /// Takes the place if it is in `state`.
    #[inline]
    fn claim(&self, state: u8) -> bool {
        // SYNC: pairs with the release in `release`.
        self.state.load(Ordering::Relaxed) == state
            && self
                .state
                .compare_exchange(state, TAKEN, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    /// Releases the place; called by the thread that took it.
    #[inline]
    fn release(&self, state: u8) {
        // SYNC: pairs with the acquire in `claim`.
        self.state.store(state, Ordering::Release);
    }

    /// Moves the value out and releases the place as empty.
    #[inline]
    fn vacate(&self) -> T {
        // SAFETY: called only by the thread that took the place when it was full, so the value is initialised; it is
        // not read again before the next write.
        let value = self
            .value
            .with_mut(|held| unsafe { (*held).assume_init_read() });
        self.release(EMPTY);
        value
    }
}

impl<T> Pool<T> {
    /// An empty pool with room for `capacity` values.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let place = || Place {
            state: AtomicU8::new(EMPTY),
            value: Cell::new(MaybeUninit::uninit()),
        };
        Self((0..capacity).map(|_| place()).collect())
    }

    /// Takes a value out, or returns `None` if the pool is empty.
    pub fn take(&self) -> Option<T> {
        self.lend().map(Lent::into_value)
    }

    /// Borrows a value in place; it returns to the pool on drop, by a plain store. Returns `None` if the pool is empty.
    #[inline]
    pub fn lend(&self) -> Option<Lent<'_, T>> {
        self.claim(FULL).map(Lent::of)
    }

    /// Puts a value in.
    ///
    /// # Errors
    /// The value itself if the pool is full.
    pub fn put(&self, value: T) -> Result<(), T> {
        let Some(place) = self.claim(EMPTY) else {
            return Err(value);
        };
        // SAFETY: the place was empty, and is ours now.
        place.value.with_mut(|held| unsafe { (*held).write(value) });
        place.release(FULL);
        Ok(())
    }

    /// Drops the values for which `keep` returns false. Values in use are skipped; a concurrent `take` misses at most
    /// the value being examined.
    pub fn retain(&self, mut keep: impl FnMut(&T) -> bool) {
        for place in self.0.iter().filter(|place| place.claim(FULL)) {
            let lent = Lent::of(place);
            if !keep(&lent) {
                drop(lent.into_value());
            }
        }
    }

    /// Finds and takes a place in `state`.
    #[inline]
    fn claim(&self, state: u8) -> Option<&Place<T>> {
        self.0.iter().find(|place| place.claim(state))
    }
}

/// A value borrowed from a pool in place; dropping this returns it.
pub struct Lent<'p, T>(&'p Place<T>, PhantomData<&'p mut T>);

impl<'p, T> Lent<'p, T> {
    /// The value of a full place that the calling thread has just taken.
    #[inline]
    const fn of(place: &'p Place<T>) -> Self {
        Self(place, PhantomData)
    }
}

impl<T> Lent<'_, T> {
    /// Takes the value out for good.
    #[must_use]
    #[inline]
    pub fn into_value(self) -> T {
        let place = self.0;
        std::mem::forget(self);
        place.vacate()
    }
}

impl<T> Deref for Lent<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the place was full when it was taken, and is ours for as long as `self` lives.
        self.0
            .value
            .with(|held| unsafe { (*held).assume_init_ref() })
    }
}

impl<T> DerefMut for Lent<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; `self` is borrowed by one alone.
        self.0
            .value
            .with_mut(|held| unsafe { (*held).assume_init_mut() })
    }
}

impl<T> Drop for Lent<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.release(FULL);
    }
}

impl<T: fmt::Debug> fmt::Debug for Lent<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lent").field(&**self).finish()
    }
}

impl<T> Drop for Pool<T> {
    fn drop(&mut self) {
        while self.take().is_some() {}
    }
}

impl<T> fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("capacity", &self.0.len())
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
