//! A mutex whose holder inherits the priority of those who wait for it (futex PI protocol).
//!
//! Taking and giving it back uncontended is one atomic operation each; the kernel is asked only where somebody waits.
//! A panic while it is held gives it back: there is no poisoning, so what it guards must be left whole at any panic.

use deckwatch_os::stream::monotonic_ns;
use std::cell::{Cell, UnsafeCell};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::lock_count::note_taken;

/// Mutual exclusion with priority inheritance.
pub struct PiMutex<T: ?Sized> {
    /// 0, or the kernel's id of the holder with the "somebody waits" bit.
    word: AtomicU32,
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
            word: AtomicU32::new(0),
            value: UnsafeCell::new(value),
        }
    }
}

impl<T: ?Sized> PiMutex<T> {
    /// Waits for the lock and takes it. `_purpose` says what for, at the place where it is taken.
    ///
    /// # Panics
    /// Where the calling thread holds it already: it would wait for itself for ever.
    pub fn lock(&self, _purpose: &'static str) -> PiMutexGuard<'_, T> {
        // SYNC: pairs with the release in PiMutexGuard::drop.
        if self
            .word
            .compare_exchange(0, thread_id(), Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            self.lock_in_kernel();
        }
        self.taken()
    }

    /// Waits for the lock no longer than `wait` and takes it; none where it was not given back in time. Linux before 5.14 knows
    /// no such wait by the monotonic clock: there it waits as [`PiMutex::lock`] does.
    ///
    /// # Panics
    /// Where the calling thread holds it already.
    pub fn lock_within(
        &self,
        purpose: &'static str,
        wait: Duration,
    ) -> Option<PiMutexGuard<'_, T>> {
        if let Some(guard) = self.try_lock(purpose) {
            return Some(guard);
        }
        self.lock_in_kernel_until(monotonic_after(wait))
            .then(|| self.taken())
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self, _purpose: &'static str) -> Option<PiMutexGuard<'_, T>> {
        // SYNC: pairs with the release in PiMutexGuard::drop.
        let taken = self
            .word
            .compare_exchange(0, thread_id(), Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
        taken.then(|| self.taken())
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

    #[cold]
    fn lock_in_kernel(&self) {
        while futex(
            &self.word,
            libc::FUTEX_LOCK_PI | libc::FUTEX_PRIVATE_FLAG,
            0,
        ) != 0
        {
            let errno = last_errno();
            assert!(
                matches!(errno, libc::EINTR | libc::EAGAIN),
                "a thread waits for a lock that it or a dead thread holds (errno {errno})"
            );
        }
        self.handed_over();
    }

    /// The kernel has given the lock.
    fn handed_over(&self) {
        // SYNC: pairs with the release before the kernel is asked to unlock in PiMutexGuard::drop.
        self.word.load(Ordering::Acquire);
    }

    /// False: `until` (CLOCK_MONOTONIC) has passed.
    #[cold]
    fn lock_in_kernel_until(&self, until: libc::timespec) -> bool {
        loop {
            // SAFETY: the word and the time outlive the call.
            let result = unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.word.as_ptr(),
                    libc::FUTEX_LOCK_PI2 | libc::FUTEX_PRIVATE_FLAG,
                    0,
                    std::ptr::from_ref(&until),
                )
            };
            if result == 0 {
                self.handed_over();
                return true;
            }
            match last_errno() {
                libc::ETIMEDOUT => return false,
                libc::EINTR | libc::EAGAIN => {}
                // Before Linux 5.14 the kernel knows only waits without a deadline by this clock.
                libc::ENOSYS => {
                    self.lock_in_kernel();
                    return true;
                }
                errno => panic!(
                    "a thread waits for a lock that it or a dead thread holds (errno {errno})"
                ),
            }
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

/// The right to the value; given back on drop.
#[must_use]
pub struct PiMutexGuard<'a, T: ?Sized> {
    mutex: &'a PiMutex<T>,
    /// The kernel knows the holder by its thread: a guard must not move to another.
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
    fn drop(&mut self) {
        let word = &self.mutex.word;
        // SYNC: pairs with the acquire in PiMutex::lock.
        if word
            .compare_exchange(thread_id(), 0, Ordering::Release, Ordering::Relaxed)
            .is_err()
        {
            // SYNC: pairs with the acquire in `handed_over`: the kernel orders the two as well, but no tool sees it.
            word.fetch_or(0, Ordering::Release);
            let result = futex(word, libc::FUTEX_UNLOCK_PI | libc::FUTEX_PRIVATE_FLAG, 0);
            debug_assert_eq!(result, 0, "the kernel refused to unlock");
        }
    }
}

/// The kernel's id of this thread, asked once per thread.
fn thread_id() -> u32 {
    thread_local! {
        static ID: Cell<u32> = const { Cell::new(0) };
    }
    ID.with(|id| {
        if id.get() == 0 {
            // SAFETY: gettid takes nothing and cannot fail.
            id.set(unsafe { libc::gettid() }.cast_unsigned());
        }
        id.get()
    })
}

fn futex(word: &AtomicU32, operation: i32, value: u32) -> libc::c_long {
    // SAFETY: the word outlives the call, and these operations read or write nothing else: no timeout is given.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            operation,
            value,
            std::ptr::null::<libc::timespec>(),
        )
    }
}

/// The time of CLOCK_MONOTONIC when `wait` has passed.
fn monotonic_after(wait: Duration) -> libc::timespec {
    let wait_ns = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
    let until_ns = monotonic_ns().saturating_add(wait_ns);
    libc::timespec {
        tv_sec: (until_ns / 1_000_000_000).cast_signed(),
        tv_nsec: (until_ns % 1_000_000_000).cast_signed(),
    }
}

fn last_errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Sleeps while `word` holds `seen`, until woken or `deadline_ns` (CLOCK_MONOTONIC). False: the deadline has passed.
pub(crate) fn sleep_while(word: &AtomicU32, seen: u32, deadline_ns: Option<u64>) -> bool {
    let until = deadline_ns.map(|at| libc::timespec {
        tv_sec: i64::try_from(at / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(at % 1_000_000_000).unwrap_or(0),
    });
    let until_pointer = until.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let operation = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
    let all = u32::MAX;
    // SAFETY: the word and the time outlive the call; the unused second address is null.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            operation,
            seen,
            until_pointer,
            std::ptr::null::<u32>(),
            all,
        )
    };
    result == 0 || last_errno() != libc::ETIMEDOUT
}

/// Wakes up to `count` sleepers of `word`.
pub(crate) fn wake(word: &AtomicU32, count: u32) {
    futex(word, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, count);
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
        while mutex.word.load(Ordering::Relaxed) & libc::FUTEX_WAITERS == 0 {
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
        // The kernel marks the word when somebody waits for it.
        while mutex.word.load(Ordering::Relaxed) & libc::FUTEX_WAITERS == 0 {
            std::thread::yield_now();
        }
        drop(guard);
        waiter.join().unwrap();
        assert_eq!(*mutex.lock("read"), 2);
    }
}
