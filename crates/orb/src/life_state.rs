//! The life-cycle state of an ORB, read by the threads that call and serve.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::{Completion, SystemException, minor, raise};

/// A life-cycle state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Life {
    /// The ORB serves and calls.
    #[default]
    Lives,
    /// Requests in progress finish.
    Drains,
    /// The ORB has shut down.
    Ended,
    /// The ORB has been destroyed.
    Destroyed,
}

/// The life-cycle state of one ORB. It only advances.
#[derive(Default)]
pub(crate) struct LifeState {
    life: Mutex<Life>,
    /// Notified of every step.
    changed: Condvar,
    /// The ORB has shut down; read by every call.
    has_ended: AtomicBool,
}

impl LifeState {
    fn lock(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self) -> Life {
        *self.lock()
    }

    /// Succeeds while the ORB may be used. Takes one load then.
    ///
    /// # Errors
    /// BAD_INV_ORDER with minor code 4 after a shutdown, OBJECT_NOT_EXIST after `destroy`.
    #[inline]
    pub(crate) fn require(&self) -> Result<(), SystemException> {
        if !self.has_ended.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(match self.get() {
            Life::Destroyed => raise::object_not_exist(0, Completion::No),
            _ => raise::bad_inv_order(minor::ORB_SHUT_DOWN, Completion::No),
        })
    }

    /// Returns true to the one thread that must drain the ORB. Other threads wait until the ORB is drained and get
    /// false.
    pub(crate) fn begin_drain(&self) -> bool {
        let mut life = self.lock();
        if *life == Life::Lives {
            *life = Life::Drains;
            return true;
        }
        let drained = self.changed.wait_while(life, |life| *life == Life::Drains);
        drop(drained.unwrap_or_else(PoisonError::into_inner));
        false
    }

    pub(crate) fn advance(&self, to: Life) {
        let mut life = self.lock();
        *life = to;
        // SYNC: pairs with the acquire in `require`.
        let has_ended = matches!(to, Life::Ended | Life::Destroyed);
        self.has_ended.store(has_ended, Ordering::Release);
        self.changed.notify_all();
    }
}
