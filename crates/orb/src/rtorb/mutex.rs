//! Mutexes that keep priorities (RTCORBA 1.x, clause 5.12: RTCORBA::Mutex): whoever holds one runs at the priority of the highest that waits for it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deckwatch_sync::{NeverFree, PiLock, PiMutex};

use super::RtOrb;
use crate::limits::NAMED_MUTEXES_MAX;
use crate::{Completion, SystemException, raise, raise::own};

/// A mutex of the kind that the ORB itself uses: priority inheritance by the kernel. A handle that is cheap to clone; only the thread that
/// has locked it unlocks it, and it cannot be locked twice.
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

    /// Waits for the mutex and takes it; meanwhile its holder has at least the calling thread's native priority.
    ///
    /// # Errors
    /// BAD_INV_ORDER where it would wait for ever: for itself, for a thread that waits for it, or for one that has ended;
    /// OBJECT_NOT_EXIST once it has been destroyed.
    pub fn lock(&self) -> Result<(), SystemException> {
        self.require_life()?;
        self.0.lock.lock().map_err(never)?;
        self.taken()
    }

    /// Takes the mutex if it can be had within `max_wait` (in the standard a TimeBase::TimeT); zero does not wait. Whether it was had:
    /// not by the thread that has it already.
    ///
    /// # Errors
    /// As [`RtMutex::lock`], but for a thread that would wait for itself.
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

    /// Gives the mutex to the highest of those who wait, and with it the priority that came from them.
    ///
    /// # Errors
    /// BAD_INV_ORDER where the calling thread does not hold it.
    pub fn unlock(&self) -> Result<(), SystemException> {
        let not_held = |_| raise::bad_inv_order(own::MUTEX_NOT_HELD, Completion::No);
        self.0.lock.unlock().map_err(not_held)
    }

    /// Its name, where it was made with one.
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

    /// Its lock has been taken, perhaps after its end.
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

/// Two handles are equal where they are of one mutex.
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

/// The mutexes of an ORB that have names.
#[derive(Debug, Default)]
pub(crate) struct NamedMutexes(PiMutex<HashMap<String, RtMutex>>);

impl RtOrb {
    /// A mutex without a name, unlocked.
    #[must_use]
    pub fn create_mutex(&self) -> RtMutex {
        RtMutex::new(None)
    }

    /// Ends a mutex: whoever has a handle of it gets OBJECT_NOT_EXIST from now on, and its name is free.
    ///
    /// # Errors
    /// BAD_INV_ORDER while a thread holds it; OBJECT_NOT_EXIST where that has been done before.
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

    /// The mutex of this name, made where there was none; whether it was.
    ///
    /// # Errors
    /// IMP_LIMIT where the ORB has [`NAMED_MUTEXES_MAX`] already.
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

    /// The mutex of this name.
    ///
    /// # Errors
    /// [`MutexNotFound`].
    pub fn open_named_mutex(&self, name: &str) -> Result<RtMutex, MutexNotFound> {
        let named = self.mutexes.0.lock("mutex.open");
        named.get(name).cloned().ok_or(MutexNotFound)
    }
}
