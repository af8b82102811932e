//! A lock with priority inheritance (futex PI protocol), without a value.
//!
//! Uncontended, `lock` and `unlock` are one atomic operation each; the kernel is entered only under contention. The
//! kernel identifies the holder by its thread: only the thread that took the lock can release it.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Mutual exclusion with priority inheritance, by two calls. [`crate::PiMutex`] guards a value with it.
#[derive(Default)]
pub struct PiLock {
    /// 0, or the holder's kernel thread id and `FUTEX_WAITERS`.
    word: AtomicU32,
}

/// Why waiting for the lock would never end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeverFree {
    /// The calling thread holds it, or its holder waits for a lock that the calling thread holds.
    WouldDeadlock,
    /// The thread that holds it has ended.
    HolderGone,
}

impl fmt::Display for NeverFree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WouldDeadlock => "The thread would wait for itself.",
            Self::HolderGone => "The thread that holds the lock has ended.",
        })
    }
}

impl std::error::Error for NeverFree {}

/// The calling thread does not hold the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotHeld;

impl fmt::Display for NotHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("The calling thread does not hold the lock.")
    }
}

impl std::error::Error for NotHeld {}

impl PiLock {
    /// A free lock.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            word: AtomicU32::new(0),
        }
    }

    /// Waits for the lock and takes it.
    ///
    /// # Errors
    /// [`NeverFree`].
    #[inline]
    pub fn lock(&self) -> Result<(), NeverFree> {
        if self.try_lock() {
            return Ok(());
        }
        self.lock_in_kernel(libc::FUTEX_LOCK_PI, None).map(drop)
    }

    /// Waits at most `wait` for the lock. Returns false if the time has passed. Linux before 5.14 has no such wait on
    /// the monotonic clock: there it waits as [`PiLock::lock`] does.
    ///
    /// # Errors
    /// [`NeverFree`].
    pub fn lock_within(&self, wait: Duration) -> Result<bool, NeverFree> {
        if self.try_lock() {
            return Ok(true);
        }
        self.lock_in_kernel(libc::FUTEX_LOCK_PI2, Some(monotonic_after(wait)))
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> bool {
        // SYNC: pairs with the release in `unlock`.
        self.word
            .compare_exchange(0, thread_id(), Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Releases the lock.
    ///
    /// # Errors
    /// [`NotHeld`] if the calling thread does not hold it; the lock is unchanged.
    #[inline]
    pub fn unlock(&self) -> Result<(), NotHeld> {
        // SYNC: pairs with the acquire in `try_lock`.
        if self
            .word
            .compare_exchange(thread_id(), 0, Ordering::Release, Ordering::Relaxed)
            .is_ok()
        {
            return Ok(());
        }
        self.unlock_in_kernel()
    }

    /// Whether the calling thread holds it.
    #[must_use]
    pub fn is_held_here(&self) -> bool {
        self.word.load(Ordering::Relaxed) & libc::FUTEX_TID_MASK == thread_id()
    }

    /// Whether a thread waits for it.
    #[must_use]
    pub fn is_waited_for(&self) -> bool {
        self.word.load(Ordering::Relaxed) & libc::FUTEX_WAITERS != 0
    }

    #[cold]
    fn unlock_in_kernel(&self) -> Result<(), NotHeld> {
        if !self.is_held_here() {
            return Err(NotHeld);
        }
        // SYNC: pairs with the acquire in `lock_in_kernel`: the kernel orders the two as well, but sanitizers do not
        // see that.
        self.word.fetch_or(0, Ordering::Release);
        let operation = libc::FUTEX_UNLOCK_PI | libc::FUTEX_PRIVATE_FLAG;
        let result = futex(&self.word, operation, 0, None);
        debug_assert_eq!(result, 0, "the kernel refused to unlock");
        Ok(())
    }

    /// Returns false once `until` (CLOCK_MONOTONIC) has passed.
    #[cold]
    fn lock_in_kernel(
        &self,
        operation: i32,
        until: Option<libc::timespec>,
    ) -> Result<bool, NeverFree> {
        let private = operation | libc::FUTEX_PRIVATE_FLAG;
        while futex(&self.word, private, 0, until.as_ref()) != 0 {
            match last_errno() {
                libc::EINTR | libc::EAGAIN => {}
                libc::ETIMEDOUT => return Ok(false),
                libc::EDEADLK => return Err(NeverFree::WouldDeadlock),
                libc::ESRCH => return Err(NeverFree::HolderGone),
                // Linux before 5.14: no FUTEX_LOCK_PI2, wait without a deadline.
                libc::ENOSYS if operation == libc::FUTEX_LOCK_PI2 => {
                    return self.lock_in_kernel(libc::FUTEX_LOCK_PI, None);
                }
                errno => panic!("the kernel refused a wait for a lock (errno {errno})"),
            }
        }
        // SYNC: pairs with the release in `unlock_in_kernel`.
        self.word.load(Ordering::Acquire);
        Ok(true)
    }
}

impl fmt::Debug for PiLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word.load(Ordering::Relaxed);
        let state = if word == 0 { "free" } else { "held" };
        f.debug_tuple("PiLock").field(&state).finish()
    }
}

/// The kernel's id of this thread, cached per thread.
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

fn futex(
    word: &AtomicU32,
    operation: i32,
    value: u32,
    until: Option<&libc::timespec>,
) -> libc::c_long {
    let until = until.map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: word and time outlive the call, and these operations read or write nothing else.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, until) }
}

/// The time of CLOCK_MONOTONIC when `wait` has passed.
fn monotonic_after(wait: Duration) -> libc::timespec {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time outlives the call; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let nanoseconds = now.tv_nsec + i64::from(wait.subsec_nanos());
    let seconds = i64::try_from(wait.as_secs()).unwrap_or(i64::MAX / 2);
    libc::timespec {
        tv_sec: (now.tv_sec + nanoseconds / 1_000_000_000).saturating_add(seconds),
        tv_nsec: nanoseconds % 1_000_000_000,
    }
}

fn last_errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Sleeps while `word` holds `seen`, until woken. Returns false once `deadline_ns` (CLOCK_MONOTONIC) has passed.
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
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    futex(word, operation, count, None);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn only_the_thread_that_holds_it_gives_it_back() {
        let lock = Arc::new(PiLock::new());
        assert_eq!(lock.unlock(), Err(NotHeld));
        assert_eq!(lock.lock(), Ok(()));
        assert!(lock.is_held_here());
        let other = Arc::clone(&lock);
        let unlocked = std::thread::spawn(move || (other.is_held_here(), other.unlock()));
        assert_eq!(unlocked.join().unwrap(), (false, Err(NotHeld)));
        assert_eq!(lock.unlock(), Ok(()));
        assert_eq!(lock.unlock(), Err(NotHeld));
    }

    #[test]
    fn a_thread_that_would_wait_for_itself_is_told() {
        let lock = PiLock::new();
        assert_eq!(lock.lock(), Ok(()));
        assert_eq!(lock.lock(), Err(NeverFree::WouldDeadlock));
        let wait = Duration::from_secs(600);
        assert_eq!(lock.lock_within(wait), Err(NeverFree::WouldDeadlock));
        assert_eq!(lock.unlock(), Ok(()));
    }

    #[test]
    fn two_threads_that_would_wait_for_each_other_are_told() {
        let locks = Arc::new([PiLock::new(), PiLock::new()]);
        assert_eq!(locks[0].lock(), Ok(()));
        let other = {
            let locks = Arc::clone(&locks);
            std::thread::spawn(move || {
                assert_eq!(locks[1].lock(), Ok(()));
                let waited = locks[0].lock();
                assert_eq!(locks[1].unlock(), Ok(()));
                waited
            })
        };
        while !locks[0].is_waited_for() {
            std::thread::yield_now();
        }
        assert_eq!(locks[1].lock(), Err(NeverFree::WouldDeadlock));
        assert_eq!(locks[0].unlock(), Ok(()));
        assert_eq!(other.join().unwrap(), Ok(()));
    }

    #[test]
    fn a_lock_whose_holder_has_ended_is_not_waited_for() {
        let lock = Arc::new(PiLock::new());
        let in_thread = Arc::clone(&lock);
        std::thread::spawn(move || in_thread.lock())
            .join()
            .unwrap()
            .unwrap();
        assert!(!lock.try_lock());
        assert_eq!(lock.lock(), Err(NeverFree::HolderGone));
    }
}
