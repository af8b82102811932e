//! Mutexes with priority inheritance (RTCORBA 1.x, clause 5.12: RTCORBA::Mutex). The owner runs at the priority of the
//! most urgent thread that waits.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deckwatch_sync::{NeverFree, PiLock, PiMutex};

use super::RtOrb;
use crate::limits::NAMED_MUTEXES_MAX;
use crate::{Completion, SystemException, raise, raise::own};

/// A mutex of the kind that the ORB itself uses, with priority inheritance by the kernel. The handle is cheap to clone.
/// Only the thread that has locked the mutex can unlock it, and it cannot lock it twice.
#[derive(Clone)]
pub struct RtMutex(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    lock: PiLock,
    is_destroyed: AtomicBool,
    name: Option<String>,
}

/// RTCORBA::RTORB::MutexNotFound: no mutex has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MutexNotFound;

impl fmt::Display for MutexNotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("No mutex has this name.")
    }
}

impl std::error::Error for MutexNotFound {}

impl RtMutex {
    fn new(name: Option<String>) -> Self {
        Self(Arc::new(Inner {
            lock: PiLock::new(),
            is_destroyed: AtomicBool::new(false),
            name,
        }))
    }

    /// Waits for the mutex and locks it. Until then the owner has at least the calling thread's native priority.
    ///
    /// # Errors
    /// BAD_INV_ORDER if the call would wait forever: the owner is the calling thread, waits for the calling thread, or
    /// has ended; OBJECT_NOT_EXIST once the mutex has been destroyed.
    pub fn lock(&self) -> Result<(), SystemException> {
        self.require_life()?;
        self.0.lock.lock().map_err(never)?;
        self.taken()
    }

    /// Locks the mutex if it becomes free within `max_wait` (in the standard a TimeBase::TimeT); zero does not wait.
    /// Returns whether it is locked now. Returns false to a thread that owns it already.
    ///
    /// # Errors
    /// As [`RtMutex::lock`], except for a thread that would wait for itself.
    pub fn try_lock(&self, max_wait: Duration) -> Result<bool, SystemException> {
        self.require_life()?;
        let lock = &self.0.lock;
        let is_taken = lock.try_lock()
            || !max_wait.is_zero()
                && !lock.is_held_here()
                && lock.lock_within(max_wait).map_err(never)?;
        if is_taken {
            self.taken()?;
        }
        Ok(is_taken)
    }

    /// Unlocks the mutex. The most urgent waiting thread gets it, and the caller loses the inherited priority.
    ///
    /// # Errors
    /// BAD_INV_ORDER if the calling thread does not own it.
    pub fn unlock(&self) -> Result<(), SystemException> {
        let not_held = |_| raise::bad_inv_order(own::MUTEX_NOT_HELD, Completion::No);
        self.0.lock.unlock().map_err(not_held)
    }

    /// Returns its name, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    fn require_life(&self) -> Result<(), SystemException> {
        if self.0.is_destroyed.load(Ordering::Acquire) {
            return Err(raise::object_not_exist(
                own::MUTEX_DESTROYED,
                Completion::No,
            ));
        }
        Ok(())
    }

    /// Called after the lock has been taken. Releases it and fails if the mutex has been destroyed meanwhile.
    fn taken(&self) -> Result<(), SystemException> {
        self.require_life().inspect_err(|_| {
            let unlocked = self.0.lock.unlock();
            debug_assert!(unlocked.is_ok(), "it was taken just now");
        })
    }
}

fn never(never: NeverFree) -> SystemException {
    let minor = match never {
        NeverFree::WouldDeadlock => own::MUTEX_DEADLOCK,
        NeverFree::HolderGone => own::MUTEX_ABANDONED,
    };
    raise::bad_inv_order(minor, Completion::No)
}

/// Two handles are equal if they refer to the same mutex.
impl PartialEq for RtMutex {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for RtMutex {}

impl fmt::Debug for RtMutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RtMutex")
            .field("name", &self.0.name)
            .field("lock", &self.0.lock)
            .finish()
    }
}

/// The named mutexes of an ORB.
#[derive(Debug, Default)]
pub(crate) struct NamedMutexes(PiMutex<HashMap<String, RtMutex>>);

impl RtOrb {
    /// Creates a mutex without a name, unlocked.
    #[must_use]
    pub fn create_mutex(&self) -> RtMutex {
        RtMutex::new(None)
    }

    /// Destroys a mutex: all handles of it raise OBJECT_NOT_EXIST from now on, and its name is free.
    ///
    /// # Errors
    /// BAD_INV_ORDER while a thread owns it; OBJECT_NOT_EXIST if it is already destroyed.
    pub fn destroy_mutex(&self, mutex: &RtMutex) -> Result<(), SystemException> {
        mutex.require_life()?;
        if !mutex.0.lock.try_lock() {
            return Err(raise::bad_inv_order(own::MUTEX_HELD, Completion::No));
        }
        mutex.taken()?;
        mutex.0.is_destroyed.store(true, Ordering::Release);
        if let Some(name) = mutex.name() {
            let mut named = self.mutexes.0.lock("mutex.destroy");
            if named.get(name) == Some(mutex) {
                named.remove(name);
            }
        }
        mutex.unlock()
    }

    /// Returns the mutex of this name, and whether this call has created it.
    ///
    /// # Errors
    /// IMP_LIMIT if the ORB has [`NAMED_MUTEXES_MAX`] already.
    pub fn create_named_mutex(&self, name: &str) -> Result<(RtMutex, bool), SystemException> {
        let mut named = self.mutexes.0.lock("mutex.create");
        if let Some(mutex) = named.get(name) {
            return Ok((mutex.clone(), false));
        }
        if named.len() >= NAMED_MUTEXES_MAX {
            return Err(raise::imp_limit(own::TOO_MANY_MUTEXES, Completion::No));
        }
        let mutex = RtMutex::new(Some(name.to_owned()));
        named.insert(name.to_owned(), mutex.clone());
        Ok((mutex, true))
    }

    /// Returns the mutex of this name.
    ///
    /// # Errors
    /// [`MutexNotFound`].
    pub fn open_named_mutex(&self, name: &str) -> Result<RtMutex, MutexNotFound> {
        let named = self.mutexes.0.lock("mutex.open");
        named.get(name).cloned().ok_or(MutexNotFound)
    }
}
