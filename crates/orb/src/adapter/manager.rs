//! POA managers: the state of a set of adapters, in which requests are served, held or refused (CORBA 3.3 part 1,
//! 15.3.2).

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use deckwatch_sync::Budget;

use super::{PoaState, frames};
use crate::limits::HELD_REQUESTS_MAX;
use crate::{Completion, SystemException, minor, raise, raise::own};

/// How the adapters of one manager treat requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ManagerState {
    /// Requests wait. The first state of a manager.
    Holding,
    /// Requests are served.
    Active,
    /// Requests get TRANSIENT.
    Discarding,
    /// Requests get OBJ_ADAPTER. The last state.
    Inactive,
}

/// Why a manager does not change its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoaManagerError {
    /// The state is already the last one.
    AdapterInactive,
    /// BAD_INV_ORDER: the calling request would wait for its own end.
    System(SystemException),
}

impl fmt::Display for PoaManagerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AdapterInactive => f.write_str("The manager has been deactivated for good."),
            Self::System(exception) => exception.fmt(f),
        }
    }
}

impl std::error::Error for PoaManagerError {}

/// A shared handle on the state.
#[derive(Clone)]
pub struct PoaManager(Arc<Inner>);

struct Inner {
    id: String,
    /// The incarnation of the ORB: used to check whether a thread serves a request of that ORB.
    incarnation: u64,
    state: AtomicU8,
    held: Budget,
    changing: Mutex<()>,
    changed: Condvar,
    adapters: Mutex<Vec<Weak<PoaState>>>,
}

/// A weak handle on a manager.
pub(super) struct WeakPoaManager(Weak<Inner>);

impl PoaManager {
    pub(super) fn new(id: String, incarnation: u64) -> Self {
        Self(Arc::new(Inner {
            id,
            incarnation,
            state: AtomicU8::new(ManagerState::Holding as u8),
            held: Budget::new(HELD_REQUESTS_MAX),
            changing: Mutex::new(()),
            changed: Condvar::new(),
            adapters: Mutex::default(),
        }))
    }

    pub(super) fn downgrade(&self) -> WeakPoaManager {
        WeakPoaManager(Arc::downgrade(&self.0))
    }

    /// The name of the manager, given by the application or by the ORB.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Serves requests from now on, held requests first.
    ///
    /// # Errors
    /// [`PoaManagerError::AdapterInactive`] after [`PoaManager::deactivate`].
    pub fn activate(&self) -> Result<(), PoaManagerError> {
        self.change(ManagerState::Active)
    }

    /// Holds new requests. Requests in progress continue; `wait_for_completion` waits until they end or the state
    /// changes again.
    ///
    /// # Errors
    /// [`PoaManagerError::AdapterInactive`] after [`PoaManager::deactivate`]; BAD_INV_ORDER if a servant of the ORB
    /// would wait for itself.
    pub fn hold_requests(&self, wait_for_completion: bool) -> Result<(), PoaManagerError> {
        self.change_and_wait(ManagerState::Holding, wait_for_completion)
    }

    /// Refuses new requests with TRANSIENT. Requests in progress continue; `wait_for_completion` waits until they end
    /// or the state changes again.
    ///
    /// # Errors
    /// As [`PoaManager::hold_requests`].
    pub fn discard_requests(&self, wait_for_completion: bool) -> Result<(), PoaManagerError> {
        self.change_and_wait(ManagerState::Discarding, wait_for_completion)
    }

    /// Refuses requests for good. With `etherealize_objects`, servant activators etherealize their servants, each
    /// after its last request. `wait_for_completion` waits until all of that is done.
    ///
    /// # Errors
    /// As [`PoaManager::hold_requests`].
    pub fn deactivate(
        &self,
        etherealize_objects: bool,
        wait_for_completion: bool,
    ) -> Result<(), PoaManagerError> {
        self.refuse_deadlock(wait_for_completion)?;
        self.change(ManagerState::Inactive)?;
        let adapters = self.adapters();
        if etherealize_objects {
            adapters.iter().for_each(|adapter| adapter.give_all_back());
        }
        let is_done = |adapter: &Arc<PoaState>| !adapter.is_executing() && !adapter.is_parting();
        while wait_for_completion && !adapters.iter().all(is_done) {
            pass_time(&adapters);
        }
        Ok(())
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

    pub(crate) fn is_active(&self) -> bool {
        // SYNC: pairs with the write in `SlotTable::pins`, through the pin before this: no request slips past a change.
        self.0.state.load(Ordering::Acquire) == ManagerState::Active as u8
    }

    /// Admits a request. While requests are held it waits, if it may, for at most `within`.
    pub(crate) fn admit(
        &self,
        may_wait: bool,
        within: Option<Duration>,
    ) -> Result<(), SystemException> {
        loop {
            match self.state() {
                ManagerState::Active => return Ok(()),
                ManagerState::Discarding => return Err(discarded()),
                ManagerState::Inactive => {
                    return Err(raise::obj_adapter(
                        minor::ADAPTER_UNAVAILABLE,
                        Completion::No,
                    ));
                }
                ManagerState::Holding => self.hold(may_wait, within)?,
            }
        }
    }

    pub(super) fn gain(&self, adapter: &Arc<PoaState>) {
        let mut adapters = self.lock_adapters();
        adapters.retain(|adapter| adapter.strong_count() != 0);
        adapters.push(Arc::downgrade(adapter));
    }

    pub(super) fn lose(&self, adapter: &Arc<PoaState>) {
        let lost = Arc::downgrade(adapter);
        self.lock_adapters().retain(|it| !it.ptr_eq(&lost));
    }

    pub(super) fn adapters(&self) -> Vec<Arc<PoaState>> {
        self.lock_adapters()
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }

    fn lock_adapters(&self) -> std::sync::MutexGuard<'_, Vec<Weak<PoaState>>> {
        self.0
            .adapters
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn hold(&self, may_wait: bool, within: Option<Duration>) -> Result<(), SystemException> {
        let inner = &self.0;
        if !may_wait || !inner.held.take(1) {
            return Err(discarded());
        }
        let guard = inner
            .changing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let held = |(): &mut ()| self.state() == ManagerState::Holding;
        let is_late = match within {
            None => {
                let waited = inner.changed.wait_while(guard, held);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
                false
            }
            Some(within) => {
                let waited = inner.changed.wait_timeout_while(guard, within, held);
                let (guard, timer) = waited.unwrap_or_else(PoisonError::into_inner);
                drop(guard);
                timer.timed_out()
            }
        };
        inner.held.give(1);
        if is_late {
            return Err(raise::timeout(own::TIMED_OUT_WAITING, Completion::No));
        }
        Ok(())
    }

    fn change(&self, to: ManagerState) -> Result<(), PoaManagerError> {
        self.set(to)?;
        let adapter = self
            .adapters()
            .first()
            .and_then(|state| state.adapter.upgrade());
        if let Some(all) = adapter
            .as_ref()
            .and_then(|adapter| adapter.interceptors.all())
        {
            all.tell_of_manager(self, to);
        }
        Ok(())
    }

    fn set(&self, to: ManagerState) -> Result<(), PoaManagerError> {
        let _guard = self
            .0
            .changing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if self.state() == ManagerState::Inactive {
            return Err(PoaManagerError::AdapterInactive);
        }
        self.0.state.store(to as u8, Ordering::Release);
        self.0.changed.notify_all();
        Ok(())
    }

    fn change_and_wait(&self, to: ManagerState, wait: bool) -> Result<(), PoaManagerError> {
        self.refuse_deadlock(wait)?;
        self.change(to)?;
        let adapters = self.adapters();
        // A request that pins its object after the check of `is_executing` sees the new state.
        while wait && self.state() == to && adapters.iter().any(|adapter| adapter.is_executing()) {
            pass_time(&adapters);
        }
        Ok(())
    }

    fn refuse_deadlock(&self, wait: bool) -> Result<(), PoaManagerError> {
        if wait && frames::is_within(self.0.incarnation) {
            let exception = raise::bad_inv_order(minor::WOULD_DEADLOCK, Completion::No);
            return Err(PoaManagerError::System(exception));
        }
        Ok(())
    }
}

impl WeakPoaManager {
    pub(super) fn upgrade(&self) -> Option<PoaManager> {
        self.0.upgrade().map(PoaManager)
    }
}

impl fmt::Debug for PoaManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoaManager")
            .field("id", &self.0.id)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

impl PartialEq for PoaManager {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The period at which a thread polls for the end of requests. Requests do not notify it, so that they pay nothing for
/// it.
const COMPLETION_POLL: Duration = Duration::from_millis(1);

/// Waits for the next poll. Meanwhile the main thread serves its own work, which may be what is waited for.
fn pass_time(adapters: &[Arc<PoaState>]) {
    let adapter = adapters.iter().find_map(|state| state.adapter.upgrade());
    if !adapter.is_some_and(|adapter| adapter.main.perform()) {
        std::thread::park_timeout(COMPLETION_POLL);
    }
}

fn discarded() -> SystemException {
    raise::transient(minor::REQUEST_DISCARDED, Completion::No)
}
