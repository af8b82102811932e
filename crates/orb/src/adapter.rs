//! The object adapter: from an object key to the servant, and the tables behind it.
//!
//! Requests read the tables without a lock. An object key contains the slot and the generation of an active object, or
//! the index of names has them. Only the code that creates and destroys objects and adapters takes locks.

mod activator;
mod active_map;
mod components;
mod error;
mod etherealization;
mod frames;
mod incarnation;
mod main_thread;
mod manager;
mod manager_factory;
mod names;
mod object_key;
mod objects;
mod poa;
mod poa_current;
mod policies;
mod priority;
mod servant_manager;
mod state;
pub(crate) mod wait_permits;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread::ThreadId;
use std::time::Duration;

use deckwatch_sync::{Bell, PiMutex, PiMutexGuard, Pinned, SlotTable};

pub use activator::AdapterActivator;
pub use error::PoaError;
pub(crate) use frames::{enter, enter_without_object, prepare};
pub(crate) use main_thread::is_here as is_main_here;
pub use manager::{ManagerState, PoaManager, PoaManagerError};
pub use manager_factory::{ManagerAlreadyExists, PoaManagerFactory};
pub use object_key::ObjectKey;
pub use objects::ObjectId;
pub use poa::Poa;
pub use poa_current::{NoContext, PoaCurrent};
pub use policies::{
    IdAssignment, IdUniqueness, ImplicitActivation, Lifespan, Policies, RequestProcessing,
    ServantRetention, ThreadPolicy,
};
pub(crate) use priority::Realtime;
pub use servant_manager::{
    Cookie, ServantActivator, ServantLocator, ServantManager, ServantManagerError,
};
pub(crate) use state::{Phase, PoaState};
pub(crate) use wait_permits::{Patience, WaitPermits};

use crate::access::AccessLog;
use crate::call_side::CallSide;
use crate::counters::Counter;
use crate::interceptor::Registry;
use crate::limits::{OBJECT_ID_SIZE_MAX, PLAIN_KEYS_MAX};
use crate::rt::Priority;
use crate::rtorb::Threadpools;
use crate::{Completion, ObjectRef, Servant, SlotKey, SystemException, minor};
use crate::{raise, raise::own};

/// Separates the names of an adapter's path. No name can contain it.
const PATH_SEPARATOR: u8 = 0;

/// All adapters and active objects of one ORB.
pub(crate) struct Adapter {
    /// Differs in each run of the ORB, so that transient references of earlier runs are detected as stale.
    pub(crate) incarnation: u64,
    orb: Weak<CallSide>,
    pools: Weak<Threadpools>,
    pub(crate) interceptors: Arc<Registry>,
    /// Is told what tables refuse, who connects, and who administers.
    pub(crate) log: Option<Arc<dyn AccessLog>>,
    /// Whether an adapter permits bidirectional connections.
    bidirectional: AtomicBool,
    objects: SlotTable<ActiveObject>,
    adapters: SlotTable<Arc<PoaState>>,
    names: names::Names,
    /// Held while an adapter is made.
    making: PiMutex<()>,
    /// The paths that adapter activators work on, with their threads.
    activating: PiMutex<HashMap<Vec<u8>, ThreadId>>,
    activated: Bell,
    pub(crate) managers: manager_factory::Managers,
    plain: names::Directory<Elsewhere>,
    /// Serves adapters with MAIN_THREAD_MODEL.
    pub(crate) main: main_thread::MainThread,
    /// Adapters that have not released everything of the application yet.
    unfinished: AtomicUsize,
}

/// An active object: a servant under an id.
pub(crate) struct ActiveObject {
    pub(crate) servant: Arc<dyn Servant>,
    pub(crate) id: ObjectId,
    pub(crate) adapter: Arc<PoaState>,
    /// Its own priority, if it has one.
    pub(crate) priority: Option<Priority>,
}

impl Drop for ActiveObject {
    fn drop(&mut self) {
        self.adapter.forget(&self.id, &self.servant);
    }
}

/// Where an object is, as far as this ORB knows.
pub(crate) enum Whereabouts {
    Here,
    Elsewhere(ObjectRef),
    Nowhere,
}

/// The result of a lookup by object key.
pub(crate) enum Found<'a> {
    /// An active object, pinned until the request ends.
    Active(SlotKey, Pinned<'a, ActiveObject>),
    /// An adapter without an active object of this id. Its policies decide what serves the request.
    Inactive {
        adapter: Arc<PoaState>,
        id: &'a [u8],
    },
    /// The reference of a plain key.
    Elsewhere(Elsewhere),
}

/// The reference that a plain key stands for.
#[derive(Clone)]
pub(crate) struct Elsewhere {
    pub(crate) target: ObjectRef,
    /// It refers to an object of this ORB. The key alone does not show that: a persistent object of another ORB can
    /// have the same key.
    pub(crate) is_ours: bool,
}

/// Why a request has no servant.
pub(crate) enum Refusal {
    Raise(SystemException),
    Forward(ObjectRef),
}

impl From<SystemException> for Refusal {
    fn from(exception: SystemException) -> Self {
        Self::Raise(exception)
    }
}

impl Found<'_> {
    pub(crate) fn adapter(&self) -> Option<&PoaState> {
        match self {
            Self::Active(_, object) => Some(&object.adapter),
            Self::Inactive { adapter, .. } => Some(adapter),
            Self::Elsewhere(_) => None,
        }
    }
}

impl Adapter {
    /// The threadpools of its ORB, while that exists.
    pub(crate) fn pools(&self) -> Option<Arc<Threadpools>> {
        self.pools.upgrade()
    }

    pub(crate) fn new(
        incarnation: u64,
        orb: Weak<CallSide>,
        pools: Weak<Threadpools>,
        interceptors: Arc<Registry>,
        log: Option<Arc<dyn AccessLog>>,
    ) -> Self {
        Self {
            incarnation,
            orb,
            pools,
            interceptors,
            log,
            bidirectional: AtomicBool::new(false),
            objects: SlotTable::new(),
            adapters: SlotTable::new(),
            names: names::Names::new(),
            making: PiMutex::new(()),
            activating: PiMutex::default(),
            activated: Bell::new(),
            managers: manager_factory::Managers::default(),
            plain: names::Directory::new(),
            main: main_thread::MainThread::default(),
            unfinished: AtomicUsize::new(0),
        }
    }

    /// Returns whether an adapter permits bidirectional connections.
    #[inline]
    pub(crate) fn is_bidirectional(&self) -> bool {
        self.bidirectional.load(Ordering::Relaxed)
    }

    /// Notes that an adapter permits bidirectional connections. From now on, offers of clients are accepted, and offers
    /// are sent to servers.
    fn allow_bidirectional(&self) {
        self.bidirectional.store(true, Ordering::Relaxed);
        let orb = self.orb.upgrade().and_then(|orb| orb.whole());
        if let Some(orb) = orb {
            orb.offer_bidirectional();
        }
    }

    /// Looks up an object key.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if its adapter does not exist and no activator makes it; the exception of an adapter activator.
    pub(crate) fn find<'a>(
        self: &'a Arc<Self>,
        key: &'a [u8],
        patience: Patience<'_>,
    ) -> Result<Found<'a>, SystemException> {
        if let Some(slot) = ObjectKey::slot_in(key, self.incarnation)
            && let Some(object) = self.objects.pin(slot)
            && object.adapter.phase() == Phase::Serving
        {
            return Ok(Found::Active(slot, object));
        }
        self.find_otherwise(key, patience)
    }

    /// Looks up a key that has no slot, or whose slot is no longer valid.
    #[inline(never)]
    fn find_otherwise<'a>(
        self: &'a Arc<Self>,
        key: &'a [u8],
        patience: Patience<'_>,
    ) -> Result<Found<'a>, SystemException> {
        match ObjectKey::parse(key) {
            ObjectKey::Transient {
                incarnation,
                adapter,
                id,
                ..
            }
            | ObjectKey::TransientNamed {
                incarnation,
                adapter,
                id,
            } => {
                if incarnation != self.incarnation {
                    return Err(unknown_adapter());
                }
                let serving = self.serving_at(adapter, id);
                serving.map_or_else(|| self.find_at(adapter, id, patience), Ok)
            }
            ObjectKey::Persistent { path, id } => {
                if let Some(found) = self.serving_under(path, id) {
                    return Ok(found);
                }
                let adapter = self.adapter_at(path, patience)?;
                if adapter.policies.lifespan != Lifespan::Persistent {
                    return Err(unknown_adapter());
                }
                self.find_in(adapter, id, patience)
            }
            ObjectKey::Plain(plain) => {
                let target = self.plain.look(plain, Elsewhere::clone);
                Ok(Found::Elsewhere(target.ok_or_else(unknown_adapter)?))
            }
        }
    }

    /// Looks up an object key without waiting and without calling an activator.
    pub(crate) fn find_at_once<'a>(self: &'a Arc<Self>, key: &'a [u8]) -> Option<Found<'a>> {
        static NONE: WaitPermits = WaitPermits::new(0);
        if let ObjectKey::Persistent { path, id } = ObjectKey::parse(key) {
            let adapter = self.known_at(path)?;
            return self.find_in(adapter, id, Some(&NONE)).ok();
        }
        self.find(key, Some(&NONE)).ok()
    }

    /// Returns where the object of a key would be served, for a LocateRequest. Servant managers are not called.
    pub(crate) fn locate(self: &Arc<Self>, key: &[u8], patience: Patience<'_>) -> Whereabouts {
        let is_here = match self.find(key, patience) {
            Ok(Found::Inactive { adapter, .. }) => match adapter.policies.request_processing {
                RequestProcessing::UseActiveObjectMapOnly => false,
                RequestProcessing::UseDefaultServant => adapter.default_servant().is_some(),
                RequestProcessing::UseServantManager => adapter.servant_manager().is_some(),
            },
            Ok(Found::Elsewhere(elsewhere)) if !elsewhere.is_ours => {
                return Whereabouts::Elsewhere(elsewhere.target);
            }
            Ok(_) => true,
            Err(_) => false,
        };
        if is_here {
            Whereabouts::Here
        } else {
            Whereabouts::Nowhere
        }
    }

    fn find_at<'a>(
        &'a self,
        adapter: SlotKey,
        id: &'a [u8],
        patience: Patience<'_>,
    ) -> Result<Found<'a>, SystemException> {
        let state = self.adapters.pin(adapter).ok_or_else(unknown_adapter)?;
        self.find_in(Arc::clone(&state), id, patience)
    }

    fn find_in<'a>(
        &'a self,
        adapter: Arc<PoaState>,
        id: &'a [u8],
        patience: Patience<'_>,
    ) -> Result<Found<'a>, SystemException> {
        if adapter.phase() == Phase::Initialising {
            self.await_activation(&adapter.identity.path, patience)?;
        }
        match adapter.phase() {
            Phase::Initialising | Phase::Serving => {}
            Phase::Dying => {
                return Err(raise::transient(minor::ADAPTER_DESTROYED, Completion::No));
            }
            Phase::Destroyed => return Err(unknown_adapter()),
        }
        if id.len() > OBJECT_ID_SIZE_MAX {
            return Err(unknown_adapter());
        }
        if adapter.retains()
            && let Some(found) = self.active(&adapter, id)
        {
            return Ok(found);
        }
        Ok(Found::Inactive { adapter, id })
    }

    /// The active object of a serving adapter, by the slot of the adapter.
    fn serving_at(&self, adapter: SlotKey, id: &[u8]) -> Option<Found<'_>> {
        let is_it = |state: &PoaState| state.slot() == adapter && state.phase() == Phase::Serving;
        self.named(self.names.of_slot(adapter, id), id, is_it)
    }

    /// The active object of a serving adapter, by the path of the adapter.
    fn serving_under(&self, path: &[u8], id: &[u8]) -> Option<Found<'_>> {
        let is_it = |state: &PoaState| {
            state.identity.path == path
                && state.policies.lifespan == Lifespan::Persistent
                && state.phase() == Phase::Serving
        };
        self.named(self.names.of_path(path, id), id, is_it)
    }

    /// The active object of one adapter.
    fn active(&self, state: &PoaState, id: &[u8]) -> Option<Found<'_>> {
        let is_it = |found: &PoaState| std::ptr::eq(found, state);
        self.named(self.names.of(state, id), id, is_it)
    }

    #[inline]
    fn named(
        &self,
        hash: u64,
        id: &[u8],
        is_adapter: impl Fn(&PoaState) -> bool,
    ) -> Option<Found<'_>> {
        self.names.object(hash, |slot| {
            let (key, object) = self.objects.pin_at(slot)?;
            let is_it = *object.id == *id && is_adapter(&object.adapter);
            is_it.then_some(Found::Active(key, object))
        })
    }

    /// The adapter at `path`. One that is destroyed is not found, even if it is still in the table.
    fn known_at(&self, path: &[u8]) -> Option<Arc<PoaState>> {
        self.names.adapter(path, |slot| {
            let (_, state) = self.adapters.pin_at(slot)?;
            let is_it = state.identity.path == path && state.phase() != Phase::Destroyed;
            is_it.then(|| Arc::clone(&state))
        })
    }

    fn activating(&self) -> PiMutexGuard<'_, HashMap<Vec<u8>, ThreadId>> {
        self.activating.lock("adapter.activating")
    }

    /// Removes a destroyed adapter: its name is free, and its references are stale.
    fn strike_out(&self, state: &Arc<PoaState>) {
        let slot = state.slot();
        self.names.strike_adapter(&state.identity.path, slot);
        self.adapters.remove(slot);
    }

    /// Counts a panic of the application's code. Returns the exception for it.
    pub(crate) fn count_panic(&self) -> SystemException {
        if let Some(orb) = self.orb.upgrade() {
            orb.client.counters.count(Counter::ServantPanics);
        }
        raise::unknown(0, Completion::Maybe)
    }

    /// Binds a key of the application's choice to `target`.
    ///
    /// # Errors
    /// NO_RESOURCES at the limit of such keys; BAD_PARAM for a key that has the form of the adapter's own keys.
    pub(crate) fn bind_plain(&self, key: &[u8], target: ObjectRef) -> Result<(), SystemException> {
        if !matches!(ObjectKey::parse(key), ObjectKey::Plain(_)) {
            return Err(raise::bad_param(own::INVALID_ID, Completion::No));
        }
        let Some(orb) = self.orb.upgrade() else {
            return Ok(());
        };
        let is_ours = target.leads_to(&orb);
        let target = target.kept_by(&orb);
        let full = raise::no_resources(0, Completion::No);
        self.plain.change(key, full, |before, count| {
            if count >= PLAIN_KEYS_MAX && before.is_none() {
                return Err(full);
            }
            Ok(Some(Elsewhere { target, is_ours }))
        })
    }

    /// Refuses the requests that are held: no manager will be activated any more.
    pub(crate) fn release_held(&self) {
        self.main.close();
        for adapter in self.all() {
            if adapter.manager.state() == ManagerState::Holding {
                let _ = adapter.manager.deactivate(false, false); // An earlier deactivation does not matter.
            }
        }
    }

    /// Destroys every adapter, etherealizes servants and removes every key. Waits for the end of that while `is_time`,
    /// unless this thread serves a request.
    pub(crate) fn clear(&self, is_time: impl Fn() -> bool) {
        self.plain.clear();
        for adapter in &self.all() {
            let _ = adapter.manager.deactivate(false, false); // An earlier deactivation does not matter.
            if adapter.identity.parent.is_none() {
                Poa(Arc::clone(adapter)).begin_destroy(true);
            }
        }
        // This thread becomes the main thread if the application has provided none.
        self.main.claim();
        // This includes adapters that were destroyed earlier and still etherealize.
        let is_over = || self.unfinished.load(Ordering::Acquire) == 0;
        while !frames::is_within(self.incarnation) && !is_over() && is_time() {
            if !self.main.perform() {
                std::thread::park_timeout(Duration::from_millis(1));
            }
        }
    }

    fn all(&self) -> Vec<Arc<PoaState>> {
        let mut all = Vec::new();
        self.adapters
            .for_each(|_, state| all.push(Arc::clone(state)));
        all
    }
}

/// The exception for a key without a servant: its object is not active, or its adapter does not exist.
fn unknown_adapter() -> SystemException {
    raise::object_not_exist(minor::ADAPTER_UNKNOWN, Completion::No)
}
