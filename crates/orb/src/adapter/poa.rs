//! The API of the portable object adapter: its position in the tree of adapters, and its life cycle (CORBA 3.3 part 1,
//! 15.3.9).

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use super::activator::AdapterActivator;
use super::priority::{Realtime, THREADPOOL};
use super::servant_manager::ServantManager;
use super::state::Identity;
use super::{
    Adapter, PATH_SEPARATOR, Phase, PoaError, PoaManager, PoaState, Policies, RequestProcessing,
    ServantRetention, frames, unknown_adapter,
};
use crate::access::{Access, Guard};
use crate::life_state::Life;
use crate::limits::ADAPTER_PATH_SIZE_MAX;
use crate::rtorb::Threadpool;
use crate::{Completion, Servant, SlotKey, SystemException, minor};
use crate::{raise, raise::own};
use deckwatch_giop::ior::TaggedComponent;

/// A handle on one adapter.
#[derive(Clone)]
pub struct Poa(pub(super) Arc<PoaState>);

impl Adapter {
    /// Makes an adapter; the root has no parent.
    pub(crate) fn make_poa(
        self: &Arc<Self>,
        parent: Option<&Arc<PoaState>>,
        name: &str,
        manager: PoaManager,
        policies: Policies,
    ) -> Result<Poa, PoaError> {
        policies.check()?;
        let mut entered = self.enter_pool(&policies)?;
        let realtime = Realtime::new(&policies, Arc::clone(&entered.pool))?;
        let path = parent.map_or_else(Vec::new, |parent| parent.child_path(name));
        if path.len() > ADAPTER_PATH_SIZE_MAX {
            return Err(raise::imp_limit(0, Completion::No).into());
        }
        let components = self.establish_components(parent, name, &manager, &policies)?;
        let phase = if self.activating().contains_key(&path) {
            Phase::Initialising
        } else {
            Phase::Serving
        };
        let making = self.making.lock("adapter.make");
        if self.known_at(&path).is_some() {
            return Err(PoaError::AdapterAlreadyExists);
        }
        if let Some(orb) = self.orb.upgrade() {
            realtime.set_protocols(&policies, &orb)?;
        }
        if let Some(parent) = parent {
            parent.life.children.fetch_add(1, Ordering::SeqCst);
            if parent.phase() >= Phase::Dying {
                parent.life.children.fetch_sub(1, Ordering::SeqCst);
                drop(making);
                parent.try_end();
                let dying = raise::bad_inv_order(minor::ADAPTER_BEING_DESTROYED, Completion::No);
                return Err(dying.into());
            }
        }
        let state = Arc::new(PoaState::new(
            self,
            Identity {
                name: name.to_owned(),
                path: path.clone(),
                parent: parent.cloned(),
                incarnation: self.incarnation,
                slot: OnceLock::new(),
                components: OnceLock::new(),
            },
            manager,
            policies,
            realtime,
            phase,
        ));
        let Ok(slot) = self.adapters.insert(Arc::clone(&state)) else {
            if let Some(parent) = parent {
                parent.life.children.fetch_sub(1, Ordering::SeqCst);
            }
            return Err(raise::no_resources(0, Completion::No).into());
        };
        state
            .identity
            .slot
            .set(slot)
            .expect("the adapter has just been made");
        let _ = state.identity.components.set(components); // The only call for a new adapter.
        if state.is_bidirectional() {
            self.allow_bidirectional();
        }
        self.names.enter_adapter(&path, slot);
        self.unfinished.fetch_add(1, Ordering::AcqRel);
        state.manager.gain(&state);
        // The adapter leaves the pool at its own end.
        entered.is_kept = true;
        Ok(Poa(state))
    }

    /// Enters the pool that the policies name, for an adapter that is being made.
    fn enter_pool(&self, policies: &Policies) -> Result<EnteredPool, PoaError> {
        let pools = self.pools.upgrade().ok_or_else(unknown_adapter)?;
        let pool = pools.enter(policies.threadpool.unwrap_or_default());
        pool.map(|pool| EnteredPool {
            pool,
            is_kept: false,
        })
        .ok_or(PoaError::InvalidPolicy(THREADPOOL))
    }
}

/// A pool that an adapter uses. Dropping leaves the pool, unless the adapter has been made.
struct EnteredPool {
    pool: Arc<Threadpool>,
    is_kept: bool,
}

impl Drop for EnteredPool {
    fn drop(&mut self) {
        if !self.is_kept {
            self.pool.leave();
        }
    }
}

impl Adapter {
    /// The components that interceptors add to the references of an adapter.
    ///
    /// # Errors
    /// OBJ_ADAPTER if one of them refuses the adapter.
    fn establish_components(
        &self,
        parent: Option<&Arc<PoaState>>,
        name: &str,
        manager: &PoaManager,
        policies: &Policies,
    ) -> Result<Vec<TaggedComponent>, PoaError> {
        let Some(all) = self.interceptors.all() else {
            return Ok(Vec::new());
        };
        let mut adapter_name =
            parent.map_or_else(Vec::new, |parent| Poa::of(parent).adapter_name());
        adapter_name.push(name.to_owned());
        let established = all.establish(manager, policies, adapter_name);
        established.map_err(|_| raise::obj_adapter(minor::ADAPTER_REFUSED, Completion::No).into())
    }
}

impl Poa {
    /// Its place in the table of adapters, which no other one has had.
    pub(crate) fn slot(&self) -> SlotKey {
        self.0.slot()
    }

    pub(crate) fn of(state: &Arc<PoaState>) -> Self {
        Self(Arc::clone(state))
    }

    /// The adapter's name; `RootPOA` for the root.
    #[must_use]
    pub fn the_name(&self) -> &str {
        &self.0.identity.name
    }

    /// The names from the root's to this adapter's own.
    pub(crate) fn adapter_name(&self) -> Vec<String> {
        let mut names: Vec<_> =
            std::iter::successors(Some(&self.0), |state| state.identity.parent.as_ref())
                .map(|state| state.identity.name.clone())
                .collect();
        names.reverse();
        names
    }

    /// The parent; `None` for the root.
    #[must_use]
    pub fn the_parent(&self) -> Option<Self> {
        self.0.identity.parent.clone().map(Self)
    }

    /// The children.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if the adapter is destroyed.
    pub fn the_children(&self) -> Result<Vec<Self>, PoaError> {
        let mut children = self.children_of(&*self.adapter()?);
        children.retain(|child| child.0.phase() < Phase::Dying);
        Ok(children)
    }

    /// Returns an id that no other adapter of this ORB has. A persistent adapter has the same id in later runs.
    #[must_use]
    pub fn id(&self) -> Vec<u8> {
        self.0.key_of(&[])
    }

    /// Returns false once the ORB shuts down. A servant that waits within an operation must check it: the shutdown waits
    /// for the operation, at most for [`crate::limits::DRAIN_TIMEOUT`].
    #[must_use]
    pub fn is_orb_alive(&self) -> bool {
        let orb = self.0.adapter.upgrade().and_then(|it| it.orb.upgrade());
        orb.is_some_and(|orb| orb.life.get() == Life::Lives)
    }

    /// The manager of the adapter.
    #[must_use]
    pub fn the_poa_manager(&self) -> &PoaManager {
        &self.0.manager
    }

    /// The adapter's policies.
    #[must_use]
    pub fn policies(&self) -> &Policies {
        &self.0.policies
    }

    /// The adapter activator, which makes children at their first use.
    #[must_use]
    pub fn the_activator(&self) -> Option<Arc<dyn AdapterActivator>> {
        self.0.activator.get()
    }

    /// Sets the adapter activator, which makes children at their first use.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if the adapter is destroyed.
    pub fn set_the_activator(
        &self,
        activator: Option<Arc<dyn AdapterActivator>>,
    ) -> Result<(), PoaError> {
        // Checked under the lock: a value set after destruction would never be released.
        let may = |_| self.adapter().map(drop).map_err(PoaError::from);
        self.0.activator.set_if(activator, may)
    }

    /// Makes a child adapter, with a manager of its own if none is given. Waits while a child of the same name is being
    /// destroyed.
    ///
    /// # Errors
    /// [`PoaError::AdapterAlreadyExists`], [`PoaError::InvalidPolicy`]; BAD_PARAM for a name that is empty or contains
    /// a zero octet; BAD_INV_ORDER while this adapter is being destroyed, and in a servant that would wait for itself;
    /// IMP_LIMIT if the path exceeds [`ADAPTER_PATH_SIZE_MAX`]; INV_POLICY for bands without a priority model, for
    /// server protocols that the threadpool does not listen on, and for server protocols that differ from those of
    /// another adapter of the threadpool.
    pub fn create_poa(
        &self,
        name: &str,
        manager: Option<&PoaManager>,
        policies: &Policies,
    ) -> Result<Self, PoaError> {
        if name.is_empty() || name.as_bytes().contains(&PATH_SEPARATOR) {
            return Err(raise::bad_param(own::INVALID_ID, Completion::No).into());
        }
        let adapter = self.adapter()?;
        if let Some(before) = adapter.known_at(&self.0.child_path(name))
            && before.phase() == Phase::Dying
        {
            self.refuse_deadlock(true)?;
            before
                .map
                .wait_until(None, |_| (before.phase() == Phase::Destroyed).then_some(()))?;
        }
        let manager = manager.cloned();
        let manager = manager.unwrap_or_else(|| adapter.managers.make(adapter.incarnation));
        adapter.make_poa(Some(&self.0), name, manager, *policies)
    }

    /// The child adapter of this name. With `activate_it`, the adapter activator makes it if it does not exist.
    ///
    /// # Errors
    /// [`PoaError::AdapterNonExistent`]; OBJ_ADAPTER if the activator raises a system exception.
    pub fn find_poa(&self, name: &str, activate_it: bool) -> Result<Self, PoaError> {
        let adapter = self.adapter()?;
        let known = adapter.known_at(&self.0.child_path(name));
        let found = match known.filter(|child| child.phase() < Phase::Dying) {
            Some(child) => Some(child),
            None if activate_it => adapter.activate_child(&self.0, name, None)?,
            None => None,
        };
        found.map(Self).ok_or(PoaError::AdapterNonExistent)
    }

    /// Destroys this adapter and its descendants. Requests in progress finish, new ones get TRANSIENT. After that the
    /// name is free. With `etherealize_objects`, the servant activator then etherealizes its servants.
    /// `wait_for_completion` waits until all of that is done.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if the adapter is destroyed already; BAD_INV_ORDER in a servant of the ORB that would wait for
    /// itself.
    pub fn destroy(
        &self,
        etherealize_objects: bool,
        wait_for_completion: bool,
    ) -> Result<(), PoaError> {
        self.refuse_deadlock(wait_for_completion)?;
        let adapter = self.adapter()?;
        self.begin_destroy(etherealize_objects);
        if wait_for_completion && adapter.main.is_main() {
            // The work that is waited for may need this thread.
            adapter.main.perform_while(|| !self.0.is_over());
        } else if wait_for_completion {
            let is_over = |_: &_| self.0.is_over().then_some(());
            self.0.map.wait_until(None, is_over)?;
        }
        Ok(())
    }

    pub(super) fn begin_destroy(&self, etherealize: bool) {
        if !self.0.begin_end(etherealize) {
            return;
        }
        if let Some(adapter) = self.0.adapter.upgrade() {
            if let Some(all) = adapter.interceptors.all() {
                all.tell_of_destruction(self);
            }
            for child in self.children_of(&adapter) {
                child.begin_destroy(etherealize);
            }
        }
        self.0.retire_all(etherealize);
        self.0.try_end();
    }

    fn children_of(&self, adapter: &Adapter) -> Vec<Self> {
        // `make_poa` holds this lock from its check of the parent's phase on.
        let _lock = adapter.making.lock("adapter.children");
        let mut children = Vec::new();
        adapter.adapters.for_each(|_, state| {
            let parent = state.identity.parent.as_ref();
            if parent.is_some_and(|parent| Arc::ptr_eq(parent, &self.0)) {
                children.push(Self(Arc::clone(state)));
            }
        });
        children
    }

    /// The servant manager, if one has been set (`get_servant_manager`).
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] unless USE_SERVANT_MANAGER.
    pub fn servant_manager(&self) -> Result<Option<ServantManager>, PoaError> {
        self.require(self.0.policies.request_processing == RequestProcessing::UseServantManager)?;
        self.adapter()?;
        Ok(self.0.servant_manager.get())
    }

    /// Sets the servant manager, once: an activator for RETAIN, a locator for NON_RETAIN.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] unless USE_SERVANT_MANAGER; BAD_INV_ORDER if one has been set; OBJ_ADAPTER for one of
    /// the wrong kind.
    pub fn set_servant_manager(&self, manager: ServantManager) -> Result<(), PoaError> {
        self.require(self.0.policies.request_processing == RequestProcessing::UseServantManager)?;
        let is_fit = match (&manager, self.0.policies.servant_retention) {
            (ServantManager::Activator(_), retention) => retention == ServantRetention::Retain,
            (ServantManager::Locator(_), retention) => retention == ServantRetention::NonRetain,
        };
        if !is_fit {
            return Err(raise::obj_adapter(minor::NO_SERVANT_MANAGER, Completion::No).into());
        }
        let may = |is_set| {
            self.adapter()?;
            let set = raise::bad_inv_order(minor::SERVANT_MANAGER_SET, Completion::No);
            if is_set { Err(set.into()) } else { Ok(()) }
        };
        self.0.servant_manager.set_if(Some(manager), may)
    }

    /// The default servant, which serves requests for ids that are not active (`get_servant`).
    ///
    /// # Errors
    /// [`PoaError::NoServant`] if none has been set, [`PoaError::WrongPolicy`] unless USE_DEFAULT_SERVANT.
    pub fn servant(&self) -> Result<Arc<dyn Servant>, PoaError> {
        self.require(self.0.policies.request_processing == RequestProcessing::UseDefaultServant)?;
        self.adapter()?;
        self.0.default_servant.get().ok_or(PoaError::NoServant)
    }

    /// Sets the default servant, which serves requests for ids that are not active.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] unless USE_DEFAULT_SERVANT.
    pub fn set_servant(&self, servant: Arc<dyn Servant>) -> Result<(), PoaError> {
        self.require(self.0.policies.request_processing == RequestProcessing::UseDefaultServant)?;
        let may = |_| self.adapter().map(drop).map_err(PoaError::from);
        self.0.default_servant.set_if(Some(servant), may)
    }

    /// Has a table checked before each request for an object of this adapter: what no rule permits raises NO_PERMISSION.
    /// Rules permit operations by their names, for objects by the path of the adapter and the id. Set it before the
    /// adapter has objects; it lasts as long as the adapter. Children are not checked by it.
    ///
    /// # Errors
    /// BAD_INV_ORDER if it has been set; OBJECT_NOT_EXIST after the end of the adapter.
    pub fn set_access(&self, access: Access) -> Result<Arc<Guard>, SystemException> {
        let guard = Arc::new(Guard::of_operations(&self.adapter()?, access));
        self.set_guard(&guard)?;
        Ok(guard)
    }

    /// As [`Poa::set_access`], with a guard that may belong to several adapters of a service.
    ///
    /// # Errors
    /// As [`Poa::set_access`].
    pub fn set_guard(&self, guard: &Arc<Guard>) -> Result<(), SystemException> {
        if self.0.set_guard(Arc::clone(guard)) {
            Ok(())
        } else {
            Err(raise::bad_inv_order(own::ACCESS_SET, Completion::No))
        }
    }

    pub(super) fn require(&self, allowed: bool) -> Result<(), PoaError> {
        allowed.then_some(()).ok_or(PoaError::WrongPolicy)
    }

    pub(super) fn refuse_deadlock(&self, wait: bool) -> Result<(), SystemException> {
        if wait && frames::is_within(self.0.identity.incarnation) {
            return Err(raise::bad_inv_order(minor::WOULD_DEADLOCK, Completion::No));
        }
        Ok(())
    }

    /// The tables, unless the adapter has been destroyed.
    pub(super) fn adapter(&self) -> Result<Arc<Adapter>, SystemException> {
        if self.0.phase() == Phase::Destroyed {
            return Err(unknown_adapter());
        }
        self.0.adapter.upgrade().ok_or_else(unknown_adapter)
    }
}

impl fmt::Debug for Poa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poa")
            .field("name", &self.0.identity.name)
            .field("policies", &self.0.policies)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Poa {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
