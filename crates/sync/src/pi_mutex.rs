//! A mutex with priority inheritance: a [`PiLock`] around a value.
//!
//! A panic of the holder releases it. There is no poisoning: the value must be valid at every point that can panic.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::lock_count::note_taken;
use crate::pi_lock::PiLock;
pub(crate) use crate::pi_lock::{sleep_while, wake};

/// Mutual exclusion with priority inheritance.
pub struct PiMutex<T: ?Sized> {
    lock: PiLock,
    value: UnsafeCell<T>,
}

// SAFETY: the lock hands the value to one thread at a time; moving access between threads needs `T: Send` only.
unsafe impl<T: ?Sized + Send> Send for PiMutex<T> {}
// SAFETY: as above; `&PiMutex` gives exclusive access to one thread at a time.
unsafe impl<T: ?Sized + Send> Sync for PiMutex<T> {}

impl<T> PiMutex<T> {
    /// A free lock around `value`.
    pub const fn new(value: T) -> Self {
        Self {
            lock: PiLock::new(),
            value: UnsafeCell::new(value),
        }
    }
}

impl<T: ?Sized> PiMutex<T> {
    /// Waits for the lock and takes it. `_purpose` documents the call site.
    ///
    /// # Panics
    /// If the wait would never end: the thread would wait for itself, or the holder has ended.
    #[inline]
    pub fn lock(&self, _purpose: &'static str) -> PiMutexGuard<'_, T> {
        if let Err(never) = self.lock.lock() {
            panic!("{never}");
        }
        self.taken()
    }

    /// Waits at most `wait` for the lock. Returns `None` if the time has passed. Linux before 5.14 has no such wait on
    /// the monotonic clock: there it waits as [`PiMutex::lock`] does.
    ///
    /// # Panics
    /// As [`PiMutex::lock`].
    pub fn lock_within(
        &self,
        _purpose: &'static str,
        wait: Duration,
    ) -> Option<PiMutexGuard<'_, T>> {
        match self.lock.lock_within(wait) {
            Ok(taken) => taken.then(|| self.taken()),
            Err(never) => panic!("{never}"),
        }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self, _purpose: &'static str) -> Option<PiMutexGuard<'_, T>> {
        self.lock.try_lock().then(|| self.taken())
    }

    /// The guard of a lock that the calling thread has just taken.
    #[inline]
    fn taken(&self) -> PiMutexGuard<'_, T> {
        note_taken();
        PiMutexGuard {
            mutex: self,
            _stays: PhantomData,
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for PiMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock("debug") {
            Some(guard) => f.debug_tuple("PiMutex").field(&&*guard).finish(),
            None => f.write_str("PiMutex(<held>)"),
        }
    }
}

impl<T: Default> Default for PiMutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

/// Access to the value; released on drop.
#[must_use]
pub struct PiMutexGuard<'a, T: ?Sized> {
    mutex: &'a PiMutex<T>,
    /// Not Send: the kernel identifies the holder by its thread.
    _stays: PhantomData<*const ()>,
}

impl<T: ?Sized> Deref for PiMutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while this thread holds the lock.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for PiMutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard exists only while this thread holds the lock.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for PiMutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let unlocked = self.mutex.lock.unlock();
        debug_assert!(unlocked.is_ok(), "a guard stays with its thread");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn no_increment_is_lost_between_threads() {
        let count = Arc::new(PiMutex::new(0_u32));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let count = Arc::clone(&count);
                std::thread::spawn(move || (0..10_000).for_each(|_| *count.lock("count") += 1))
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        assert_eq!(*count.lock("count"), 40_000);
    }

    #[test]
    fn a_held_lock_is_not_taken_twice_and_a_panic_gives_it_back() {
        let mutex = Arc::new(PiMutex::new(()));
        let guard = mutex.lock("first");
        assert!(mutex.try_lock("second").is_none());
        drop(guard);
        let in_thread = Arc::clone(&mutex);
        let panicked = std::thread::spawn(move || {
            let _guard = in_thread.lock("panic");
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(panicked.join().is_err());
        assert!(mutex.try_lock("after").is_some());
    }

    #[test]
    fn a_wait_with_an_end_gives_up_at_it_and_takes_what_is_given_back_before() {
        let mutex = Arc::new(PiMutex::new(1));
        let guard = mutex.lock("hold");
        let in_thread = Arc::clone(&mutex);
        let wait = Duration::from_millis(10);
        let gave_up = std::thread::spawn(move || in_thread.lock_within("wait", wait).is_none());
        assert!(gave_up.join().unwrap());
        let in_thread = Arc::clone(&mutex);
        let waiter = std::thread::spawn(move || {
            let guard = in_thread.lock_within("wait", Duration::from_secs(600));
            guard.map(|mut guard| *guard += 1).is_some()
        });
        while !mutex.lock.is_waited_for() {
            std::thread::yield_now();
        }
        drop(guard);
        assert!(waiter.join().unwrap());
        assert_eq!(
            mutex
                .lock_within("free", Duration::ZERO)
                .map(|guard| *guard),
            Some(2)
        );
    }

    #[test]
    fn a_waiter_gets_the_lock_when_its_holder_gives_it_back() {
        let mutex = Arc::new(PiMutex::new(1));
        let guard = mutex.lock("hold");
        let in_thread = Arc::clone(&mutex);
        let waiter = std::thread::spawn(move || *in_thread.lock("wait") += 1);
        // The kernel sets FUTEX_WAITERS when a thread waits.
        while !mutex.lock.is_waited_for() {
            std::thread::yield_now();
        }
        drop(guard);
        waiter.join().unwrap();
        assert_eq!(*mutex.lock("read"), 2);
    }
}
