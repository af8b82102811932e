//! Exclusive access to a value without waiting: a thread that finds the value claimed goes on at once, and may flag
//! work for the owner.
//!
//! A claim is not a lock. No thread sleeps or spins on it, so it cannot delay a more urgent thread. To claim is one
//! atomic operation.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use crate::primitive::{AtomicU32, Cell, Ordering};

/// A value that one thread at a time may claim.
pub struct Claim<T> {
    /// [`FREE`], [`TAKEN`] or [`TOLD`].
    word: AtomicU32,
    value: Cell<T>,
}

/// Unclaimed.
const FREE: u32 = 0;
/// Claimed.
const TAKEN: u32 = 1;
/// Claimed, and another thread has called `claim_or_tell` meanwhile.
const TOLD: u32 = 2;

// SAFETY: the word hands the value to one thread at a time; moving access between threads needs `T: Send` only.
unsafe impl<T: Send> Send for Claim<T> {}
// SAFETY: as above; `&Claim` gives exclusive access to one thread at a time.
unsafe impl<T: Send> Sync for Claim<T> {}

impl<T> Claim<T> {
    /// An unclaimed value.
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Self {
        Self {
            word: AtomicU32::new(FREE),
            value: Cell::new(value),
        }
    }

    /// An unclaimed value.
    #[cfg(loom)]
    pub fn new(value: T) -> Self {
        Self {
            word: AtomicU32::new(FREE),
            value: Cell::new(value),
        }
    }

    /// Claims the value if no thread has it.
    #[inline]
    pub fn try_claim(&self) -> Option<Claimed<'_, T>> {
        // SYNC: pairs with the releases in `let_go`, in `Claimed::drop` and in `claim_or_tell`.
        self.word
            .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then(|| self.claimed())
    }

    /// The guard of the claim that the calling thread has just taken.
    #[inline]
    const fn claimed(&self) -> Claimed<'_, T> {
        Claimed {
            claim: self,
            _as: PhantomData,
        }
    }

    /// Claims the value, or flags the owner that there is work. The owner sees every write made before this call once
    /// [`Claimed::let_go`] returns true.
    pub fn claim_or_tell(&self) -> Option<Claimed<'_, T>> {
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            let next = if seen == FREE { TAKEN } else { TOLD };
            // SYNC: the release pairs with the acquire in `let_go`, the acquire with earlier owners.
            match self
                .word
                .compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(FREE) => return Some(self.claimed()),
                Ok(_) => return None,
                Err(now) => seen = now,
            }
        }
    }
}

impl<T> fmt::Debug for Claim<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").finish_non_exhaustive()
    }
}

/// The claim on the value. Dropping it releases it and ignores the flag of `claim_or_tell`.
#[must_use]
pub struct Claimed<'c, T> {
    claim: &'c Claim<T>,
    /// Send and Sync only if the value is.
    _as: PhantomData<&'c mut T>,
}

impl<T> Claimed<'_, T> {
    /// Releases the claim. Returns true if another thread called `claim_or_tell` meanwhile: the caller must do that
    /// thread's work. Writes made before a SeqCst fence by a thread whose claim failed are visible to SeqCst loads
    /// after this call.
    #[inline]
    #[must_use]
    pub fn let_go(self) -> bool {
        let claim = self.claim;
        std::mem::forget(self);
        // SYNC: the release pairs with the acquire of the next owner, the acquire with the release in `claim_or_tell`.
        claim.word.swap(FREE, Ordering::SeqCst) == TOLD
    }
}

impl<T> Deref for Claimed<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while its thread has the claim.
        self.claim.value.with(|held| unsafe { &*held })
    }
}

impl<T> DerefMut for Claimed<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard exists only while its thread has the claim.
        self.claim.value.with_mut(|held| unsafe { &mut *held })
    }
}

impl<T> Drop for Claimed<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SYNC: pairs with the acquire of the next owner.
        self.claim.word.store(FREE, Ordering::Release);
    }
}

impl<T: fmt::Debug> fmt::Debug for Claimed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn one_thread_has_it_and_hears_of_word_that_was_left() {
        let claim = Claim::new(1);
        let mut first = claim.try_claim().unwrap();
        *first += 1;
        assert!(claim.try_claim().is_none());
        assert!(!first.let_go());
        let second = claim.claim_or_tell().unwrap();
        assert!(claim.claim_or_tell().is_none());
        assert!(claim.claim_or_tell().is_none());
        assert!(second.let_go());
        let third = claim.try_claim().unwrap();
        assert!(!third.let_go(), "word is heard once");
        drop(claim.try_claim().unwrap());
        assert_eq!(claim.try_claim().map(|value| *value), Some(2));
    }

    #[test]
    fn a_panic_gives_it_back() {
        let claim = Arc::new(Claim::new(()));
        let in_thread = Arc::clone(&claim);
        let panicked = std::thread::spawn(move || {
            let _claimed = in_thread.try_claim();
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(panicked.join().is_err());
        assert!(claim.try_claim().is_some());
    }

    #[test]
    fn no_increment_is_lost_and_no_word_unheard_between_threads() {
        let claim = Arc::new(Claim::new(0_u32));
        let left = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (claim, left) = (Arc::clone(&claim), Arc::clone(&left));
                std::thread::spawn(move || {
                    for _ in 0..10_000 {
                        left.fetch_add(1, Ordering::Relaxed);
                        // The owner counts what all have flagged.
                        while let Some(mut value) = claim.claim_or_tell() {
                            *value += left.swap(0, Ordering::Relaxed);
                            if !value.let_go() {
                                break;
                            }
                        }
                    }
                })
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        assert_eq!(claim.try_claim().map(|value| *value), Some(40_000));
    }
}
