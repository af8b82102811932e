//! The state of a set of adapters: whether requests are served, held, or turned away (CORBA 3.3 part 1, 15.3.2).

use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::limits::HELD_REQUESTS_MAX;
use crate::{Completion, SystemException, minor};
use crate::{raise, raise::own};

/// What becomes of the requests of the adapters under one manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ManagerState {
    /// They wait; the state a manager begins in.
    Holding,
    /// They are served.
    Active,
    /// They are turned away with TRANSIENT.
    Discarding,
    /// They are turned away with OBJ_ADAPTER; the end.
    Inactive,
}

/// The state is already the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdapterInactive;

impl fmt::Display for AdapterInactive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("The manager has been deactivated for good.")
    }
}

impl std::error::Error for AdapterInactive {}

/// A shared handle on the state.
#[derive(Clone, Debug)]
pub struct PoaManager(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: AtomicU8,
    held: AtomicU32,
    changing: Mutex<()>,
    changed: Condvar,
}

impl PoaManager {
    pub(crate) fn new() -> Self {
        let state = AtomicU8::new(ManagerState::Holding as u8);
        Self(Arc::new(Inner {
            state,
            held: AtomicU32::new(0),
            changing: Mutex::new(()),
            changed: Condvar::new(),
        }))
    }

    /// Serves requests from now on, those held first.
    ///
    /// # Errors
    /// [`AdapterInactive`] after [`PoaManager::deactivate`].
    pub fn activate(&self) -> Result<(), AdapterInactive> {
        self.change(ManagerState::Active)
    }

    /// Holds requests; those that are being served go on.
    ///
    /// # Errors
    /// [`AdapterInactive`] after [`PoaManager::deactivate`].
    pub fn hold_requests(&self) -> Result<(), AdapterInactive> {
        self.change(ManagerState::Holding)
    }

    /// Turns requests away with TRANSIENT; those that are being served go on.
    ///
    /// # Errors
    /// [`AdapterInactive`] after [`PoaManager::deactivate`].
    pub fn discard_requests(&self) -> Result<(), AdapterInactive> {
        self.change(ManagerState::Discarding)
    }

    /// Turns requests away for good.
    ///
    /// # Errors
    /// [`AdapterInactive`] if that was so already.
    pub fn deactivate(&self) -> Result<(), AdapterInactive> {
        self.change(ManagerState::Inactive)
    }

    /// The state now.
    #[must_use]
    pub fn state(&self) -> ManagerState {
        match self.0.state.load(Ordering::Acquire) {
            0 => ManagerState::Holding,
            1 => ManagerState::Active,
            2 => ManagerState::Discarding,
            _ => ManagerState::Inactive,
        }
    }

    /// Lets a request through, after waiting where requests are held.
    pub(crate) fn admit(&self, may_wait: bool) -> Result<(), SystemException> {
        loop {
            match self.state() {
                ManagerState::Active => return Ok(()),
                ManagerState::Discarding => return Err(discarded()),
                ManagerState::Inactive => {
                    return Err(raise::obj_adapter(own::ADAPTER_INACTIVE, Completion::No));
                }
                ManagerState::Holding => self.hold(may_wait)?,
            }
        }
    }

    fn hold(&self, may_wait: bool) -> Result<(), SystemException> {
        let inner = &self.0;
        if !may_wait || inner.held.fetch_add(1, Ordering::Relaxed) >= HELD_REQUESTS_MAX {
            if may_wait {
                inner.held.fetch_sub(1, Ordering::Relaxed);
            }
            return Err(discarded());
        }
        let guard = inner
            .changing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let held = |(): &mut ()| self.state() == ManagerState::Holding;
        drop(
            inner
                .changed
                .wait_while(guard, held)
                .unwrap_or_else(PoisonError::into_inner),
        );
        inner.held.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }

    fn change(&self, to: ManagerState) -> Result<(), AdapterInactive> {
        let _guard = self
            .0
            .changing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if self.state() == ManagerState::Inactive {
            return Err(AdapterInactive);
        }
        self.0.state.store(to as u8, Ordering::Release);
        self.0.changed.notify_all();
        Ok(())
    }
}

fn discarded() -> SystemException {
    raise::transient(minor::REQUEST_DISCARDED, Completion::No)
}
