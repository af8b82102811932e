//! The state of one adapter, which its requests share, and its life cycle from `create_poa` to its apparent
//! destruction.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use deckwatch_giop::Request;
use deckwatch_giop::ior::TaggedComponent;
use deckwatch_sync::{PiMutex, PiMutexGuard, Settable, TableFull};

use super::activator::AdapterActivator;
use super::active_map::{ActiveObjectMap, Entries, Entry};
use super::etherealization::{ActivatorTurns, Parting};
use super::frames;
use super::priority::Realtime;
use super::servant_manager::ServantManager;
use super::{
    ActiveObject, Adapter, IdUniqueness, ObjectId, PATH_SEPARATOR, Poa, PoaError, PoaManager,
    Policies, RequestProcessing, ServantRetention, ThreadPolicy,
};
use crate::access::Guard;
use crate::connection::bidirectional::BidirectionalPolicyValue;
use crate::rt::Priority;
use crate::{Completion, Servant, SlotKey, SystemException, minor, raise};

pub(crate) struct PoaState {
    pub(crate) policies: Policies,
    pub(crate) realtime: Realtime,
    pub(crate) manager: PoaManager,
    pub(super) identity: Identity,
    pub(super) life: Life,
    pub(super) adapter: Weak<Adapter>,
    pub(super) map: ActiveObjectMap,
    pub(super) default_servant: Settable<Arc<dyn Servant>>,
    pub(super) servant_manager: Settable<ServantManager>,
    pub(super) activator: Settable<Arc<dyn AdapterActivator>>,
    pub(super) turns: ActivatorTurns,
    /// What upcalls have to pass: [`SERIAL`] and [`GUARDED`].
    barriers: AtomicU8,
    /// Held during each upcall under SINGLE_THREAD_MODEL.
    serial: PiMutex<()>,
    /// Checks the callers of the objects.
    guard: OnceLock<Arc<Guard>>,
    pub(super) ids: AtomicU64,
}

/// One upcall at a time.
const SERIAL: u8 = 1;
/// Callers are checked.
const GUARDED: u8 = 2;

/// What identifies an adapter, and what its references are made with.
pub(super) struct Identity {
    pub(super) name: String,
    pub(super) path: Vec<u8>,
    pub(super) parent: Option<Arc<PoaState>>,
    /// A copy of the incarnation of the ORB.
    pub(super) incarnation: u64,
    pub(super) slot: OnceLock<SlotKey>,
    /// The components that interceptors have added to its references.
    pub(super) components: OnceLock<Vec<TaggedComponent>>,
}

/// The phase of an adapter, and what its destruction waits for.
pub(super) struct Life {
    phase: AtomicU8,
    /// Requests in progress that have no active object. Requests of an active object pin that.
    executing: AtomicUsize,
    /// Children that have not been destroyed.
    pub(super) children: AtomicUsize,
    /// The argument of the call to `destroy`.
    pub(super) etherealize: AtomicBool,
    /// Whether the adapter is destroyed and every servant and activator is released.
    over: AtomicBool,
}

/// The phase of an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Phase {
    /// An adapter activator is working on it: requests wait.
    Initialising,
    Serving,
    /// `destroy` has been called, and requests are in progress.
    Dying,
    Destroyed,
}

/// Counts a request without an active object until it is dropped.
pub(crate) struct Executing(Arc<PoaState>);

impl PoaState {
    pub(super) fn new(
        adapter: &Arc<Adapter>,
        identity: Identity,
        manager: PoaManager,
        policies: Policies,
        realtime: Realtime,
        phase: Phase,
    ) -> Self {
        let is_serial = policies.thread == ThreadPolicy::SingleThreadModel;
        Self {
            barriers: AtomicU8::new(if is_serial { SERIAL } else { 0 }),
            policies,
            realtime,
            manager,
            identity,
            life: Life {
                phase: AtomicU8::new(phase as u8),
                executing: AtomicUsize::new(0),
                children: AtomicUsize::new(0),
                etherealize: AtomicBool::new(false),
                over: AtomicBool::new(false),
            },
            adapter: Arc::downgrade(adapter),
            map: ActiveObjectMap::default(),
            default_servant: Settable::empty(),
            servant_manager: Settable::empty(),
            activator: Settable::empty(),
            turns: ActivatorTurns::default(),
            serial: PiMutex::default(),
            guard: OnceLock::new(),
            ids: AtomicU64::new(0),
        }
    }

    pub(super) fn child_path(&self, name: &str) -> Vec<u8> {
        let path = &self.identity.path;
        if path.is_empty() {
            return name.as_bytes().to_vec();
        }
        [path.as_slice(), &[PATH_SEPARATOR], name.as_bytes()].concat()
    }

    pub(crate) fn slot(&self) -> SlotKey {
        *self
            .identity
            .slot
            .get()
            .expect("an adapter is in the table before anybody sees it")
    }

    /// Returns the components that interceptors have added to the adapter's references.
    pub(super) fn components(&self) -> &[TaggedComponent] {
        self.identity.components.get().map_or(&[], Vec::as_slice)
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.life.phase.load(Ordering::Acquire) {
            0 => Phase::Initialising,
            1 => Phase::Serving,
            2 => Phase::Dying,
            _ => Phase::Destroyed,
        }
    }

    pub(super) fn retains(&self) -> bool {
        self.policies.servant_retention == ServantRetention::Retain
    }

    /// Returns whether requests for its objects may arrive over connections that this ORB has opened.
    pub(crate) fn is_bidirectional(&self) -> bool {
        self.policies.bidirectional == BidirectionalPolicyValue::Both
    }

    pub(super) fn is_unique(&self) -> bool {
        self.policies.id_uniqueness == IdUniqueness::UniqueId
    }

    /// Returns whether only the main thread serves the adapter.
    pub(crate) fn is_for_main(&self) -> bool {
        self.policies.thread == ThreadPolicy::MainThreadModel
    }

    pub(crate) fn is_serial(&self) -> bool {
        self.policies.thread == ThreadPolicy::SingleThreadModel
    }

    /// Lets an upcall pass: checks its caller, and locks the upcalls under SINGLE_THREAD_MODEL. Each road to a servant
    /// leads through here. `servant` is `None` before a servant locator has been called.
    ///
    /// # Errors
    /// NO_PERMISSION if the adapter is guarded and its table does not permit the request.
    #[inline]
    pub(crate) fn admit(
        self: &Arc<Self>,
        request: &Request<'_>,
        id: &[u8],
        servant: Option<&dyn Servant>,
    ) -> Result<Option<PiMutexGuard<'_, ()>>, SystemException> {
        // SYNC: pairs with the store in `set_guard`.
        let barriers = self.barriers.load(Ordering::Acquire);
        if barriers == 0 {
            return Ok(None);
        }
        if barriers & GUARDED != 0 {
            self.check_access(request, id, servant)?;
        }
        Ok(self.serialise())
    }

    /// Checks the caller of a request, if the adapter is guarded.
    ///
    /// # Errors
    /// NO_PERMISSION.
    pub(crate) fn check_access(
        self: &Arc<Self>,
        request: &Request<'_>,
        id: &[u8],
        servant: Option<&dyn Servant>,
    ) -> Result<(), SystemException> {
        match self.guard.get() {
            Some(guard) => guard.check_request(&Poa::of(self), request, id, servant),
            None => Ok(()),
        }
    }

    /// Has a guard check all callers from now on, once. Returns false if there is a guard already.
    pub(super) fn set_guard(&self, guard: Arc<Guard>) -> bool {
        let is_first = self.guard.set(guard).is_ok();
        // SYNC: pairs with the load in `admit`.
        self.barriers.fetch_or(GUARDED, Ordering::Release);
        is_first
    }

    /// Locks the upcalls under SINGLE_THREAD_MODEL. A thread that is in an upcall of the adapter already needs no lock.
    pub(super) fn serialise(&self) -> Option<PiMutexGuard<'_, ()>> {
        (self.is_serial() && !frames::is_within_adapter(self.identity.incarnation, self.slot()))
            .then(|| self.serial.lock("adapter.single_thread"))
    }

    /// Opens the adapter after its activator has returned.
    pub(super) fn open(&self) {
        // Fails if destruction has begun.
        let _ = self.life.phase.compare_exchange(
            Phase::Initialising as u8,
            Phase::Serving as u8,
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
    }

    /// Admits a request that has no active object.
    ///
    /// # Errors
    /// TRANSIENT if the adapter is being destroyed.
    pub(crate) fn execute(self: &Arc<Self>) -> Result<Executing, SystemException> {
        self.life.executing.fetch_add(1, Ordering::SeqCst);
        let executing = Executing(Arc::clone(self));
        if self.phase() >= Phase::Dying {
            return Err(raise::transient(minor::ADAPTER_DESTROYED, Completion::No));
        }
        Ok(executing)
    }

    /// Activates a servant under an id that the caller has reserved or found free under the lock.
    pub(super) fn insert(
        self: &Arc<Self>,
        entries: &mut Entries,
        adapter: &Adapter,
        id: &ObjectId,
        servant: Arc<dyn Servant>,
        priority: Option<Priority>,
    ) -> Result<SlotKey, ActiveObject> {
        let of_reference = self.realtime.take_up(id);
        let object = ActiveObject {
            priority: priority.or(of_reference),
            servant: Arc::clone(&servant),
            id: id.clone(),
            adapter: Arc::clone(self),
        };
        let slot = adapter
            .objects
            .insert(object)
            .map_err(|TableFull(object)| object)?;
        entries.take_up(id, slot, &servant, self.is_unique());
        adapter.names.enter_object(self, id, slot);
        Ok(slot)
    }

    pub(crate) fn default_servant(&self) -> Option<Arc<dyn Servant>> {
        self.default_servant.get()
    }

    pub(crate) fn servant_manager(&self) -> Option<ServantManager> {
        self.servant_manager.get()
    }

    pub(super) fn servant_activator(&self) -> Option<Arc<dyn super::ServantActivator>> {
        self.servant_manager.read(|manager| match manager {
            ServantManager::Activator(activator) => Some(Arc::clone(activator)),
            ServantManager::Locator(_) => None,
        })?
    }

    /// Deactivates an object. Its servant is released after the last of its requests.
    pub(super) fn retire(&self, id: &[u8]) -> Result<(), PoaError> {
        let adapter = self.adapter.upgrade().ok_or_else(super::unknown_adapter)?;
        let etherealize = self.servant_activator().is_some();
        let slot = self.map.slot_of(id).ok_or(PoaError::ObjectNotActive)?;
        let object = adapter.objects.pin(slot).ok_or(PoaError::ObjectNotActive)?;
        let is_first = self.map.change(|entries| {
            let found = entries.ids.get_mut(id);
            let found = found.filter(|entry| **entry == Entry::Active(slot));
            let Some(entry) = found else { return false };
            *entry = Entry::Leaving {
                slot,
                etherealize,
                cleanup: false,
            };
            entries.leave(&object.servant);
            true
        });
        if !is_first {
            return Err(PoaError::ObjectNotActive);
        }
        adapter.names.strike_object(self, id, slot);
        adapter.objects.remove(slot);
        Ok(())
    }

    /// As [`PoaState::retire`], for all objects.
    pub(super) fn retire_all(&self, etherealize: bool) {
        let Some(adapter) = self.adapter.upgrade() else {
            return;
        };
        let etherealize = etherealize && self.servant_activator().is_some();
        let slots = self.map.change(|entries| {
            entries.leave_all();
            let mut slots = Vec::new();
            for (id, entry) in &mut entries.ids {
                if let Entry::Active(slot) = *entry {
                    adapter.names.strike_object(self, id, slot);
                    slots.push(slot);
                    *entry = Entry::Leaving {
                        slot,
                        etherealize,
                        cleanup: true,
                    };
                }
            }
            slots
        });
        for slot in slots {
            adapter.objects.remove(slot);
        }
    }

    /// As [`PoaState::retire_all`], if the adapter has a servant activator.
    pub(super) fn give_all_back(&self) {
        if self.servant_activator().is_some() {
            self.retire_all(true);
        }
    }

    /// Ends the deactivation of an object after its last request.
    pub(super) fn forget(self: &Arc<Self>, id: &ObjectId, servant: &Arc<dyn Servant>) {
        let parting = self.map.change(|entries| {
            let Some(Entry::Leaving {
                etherealize,
                cleanup,
                ..
            }) = entries.ids.get(id).copied()
            else {
                return None;
            };
            if etherealize {
                entries.ids.insert(id.clone(), Entry::Parting);
                return Some(cleanup);
            }
            if self.policies.request_processing == RequestProcessing::UseActiveObjectMapOnly {
                self.realtime.give_back(id);
            }
            entries.ids.remove(id);
            entries.let_go(servant);
            None
        });
        if let Some(cleanup) = parting {
            self.turns.queue(Parting {
                id: id.clone(),
                servant: Arc::clone(servant),
                cleanup,
            });
            // During destruction servants are etherealized at its end.
            if self.phase() != Phase::Dying {
                self.turns.drain(self);
            }
        }
        self.try_end();
    }

    /// Calls `etherealize` of the servant activator. The caller has the turn.
    pub(super) fn etherealize(self: &Arc<Self>, parting: Parting) {
        let Parting {
            id,
            servant,
            cleanup,
        } = parting;
        let left = self.map.change(|entries| entries.let_go(&servant));
        if let Some(activator) = self.servant_activator() {
            let _serial = self.serialise();
            let _frame = frames::enter_without_object(self, None, &id);
            let poa = Poa(Arc::clone(self));
            let call = AssertUnwindSafe(|| {
                activator.etherealize(&id, &poa, servant, cleanup, left > 0);
            });
            if catch_unwind(call).is_err()
                && let Some(adapter) = self.adapter.upgrade()
            {
                adapter.count_panic();
            }
        }
        self.map.change(|entries| entries.ids.remove(&id));
        self.release_if_over();
    }

    /// Begins destruction. Returns false if it had begun before.
    pub(super) fn begin_end(&self, etherealize: bool) -> bool {
        self.life.etherealize.store(etherealize, Ordering::Release);
        let begin = |phase| (phase < Phase::Dying as u8).then_some(Phase::Dying as u8);
        self.life
            .phase
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, begin)
            .is_ok()
    }

    /// Completes the apparent destruction, if no request is in progress.
    pub(super) fn try_end(self: &Arc<Self>) {
        if self.phase() != Phase::Dying || !self.is_idle() {
            return;
        }
        let ended = self.map.change(|entries| {
            entries.ids.values().all(|entry| *entry == Entry::Parting)
                && self
                    .life
                    .phase
                    .compare_exchange(
                        Phase::Dying as u8,
                        Phase::Destroyed as u8,
                        Ordering::SeqCst,
                        Ordering::SeqCst,
                    )
                    .is_ok()
        });
        if !ended {
            return;
        }
        if let Some(adapter) = self.adapter.upgrade() {
            adapter.strike_out(self);
        }
        self.manager.lose(self);
        self.map.tell();
        self.turns.drain(self);
        self.release_if_over();
    }

    fn is_idle(&self) -> bool {
        self.life.executing.load(Ordering::SeqCst) == 0
            && self.life.children.load(Ordering::SeqCst) == 0
    }

    /// Returns whether the adapter is destroyed and every servant etherealized.
    pub(super) fn is_over(&self) -> bool {
        self.life.over.load(Ordering::Acquire)
    }

    /// Drops servants and managers of the application, which often own handles on the adapter: this breaks the cycle.
    fn release_if_over(&self) {
        if self.phase() == Phase::Destroyed && self.map.look(|entries| entries.ids.is_empty()) {
            self.servant_manager.clear();
            self.activator.clear();
            self.default_servant.clear();
            if self.life.over.swap(true, Ordering::AcqRel) {
                return;
            }
            self.realtime.pool.leave();
            self.map.tell();
            if let Some(adapter) = self.adapter.upgrade() {
                adapter.unfinished.fetch_sub(1, Ordering::AcqRel);
                adapter.main.tell();
            }
            // The parent ends after its children have released everything.
            if let Some(parent) = &self.identity.parent {
                parent.life.children.fetch_sub(1, Ordering::AcqRel);
                parent.try_end();
            }
        }
    }

    /// Returns whether a request is in progress.
    pub(super) fn is_executing(&self) -> bool {
        let Some(adapter) = self.adapter.upgrade() else {
            return false;
        };
        self.life.executing.load(Ordering::SeqCst) != 0
            || self.map.look(|entries| {
                entries.ids.values().any(|entry| match entry {
                    Entry::Active(slot) | Entry::Leaving { slot, .. } => {
                        adapter.objects.pins(*slot) != 0
                    }
                    Entry::Arriving(_) => true,
                    Entry::Parting => false,
                })
            })
    }

    /// Returns whether servants are to be etherealized.
    pub(super) fn is_parting(&self) -> bool {
        self.map.look(|entries| {
            let mut all = entries.ids.values();
            all.any(|entry| matches!(entry, Entry::Parting | Entry::Leaving { .. }))
        })
    }
}

impl Drop for Executing {
    fn drop(&mut self) {
        self.0.life.executing.fetch_sub(1, Ordering::SeqCst);
        self.0.try_end();
    }
}
