//! The portable object adapter as applications see it (CORBA 3.3 part 1, clause 15).

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock, Weak};

use std::collections::HashMap;

use deckwatch_sync::{PiMutex, TableFull};

use super::{
    ActiveObject, Adapter, IdAssignment, IdUniqueness, ImplicitActivation, Lifespan, ObjectKey,
    PoaManager, Policies, RequestProcessing, ServantRetention, ThreadPolicy, read, write,
};
use crate::limits::{ADAPTER_PATH_SIZE_MAX, OBJECT_ID_SIZE_MAX};
use crate::{Completion, ObjectRef, Servant, SlotKey, SystemException, minor};
use crate::{raise, raise::own};

/// Names an object within its adapter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectId(Vec<u8>);

impl ObjectId {
    /// The id of these octets.
    #[must_use]
    pub fn new(octets: impl Into<Vec<u8>>) -> Self {
        Self(octets.into())
    }
}

impl Deref for ObjectId {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Why an operation of an adapter failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PoaError {
    /// An adapter of this name exists already.
    AdapterAlreadyExists,
    /// No adapter of this name exists.
    AdapterNonExistent,
    /// The policy of this type id cannot be combined with the others, or is not served here.
    InvalidPolicy(u16),
    /// The id is active already.
    ObjectAlreadyActive,
    /// The id is not active.
    ObjectNotActive,
    /// The servant is active already and may serve only one id.
    ServantAlreadyActive,
    /// The servant is not active.
    ServantNotActive,
    /// No default servant has been set.
    NoServant,
    /// The reference is of another adapter.
    WrongAdapter,
    /// The adapter's policies do not allow the operation.
    WrongPolicy,
    /// A system exception.
    System(SystemException),
}

impl fmt::Display for PoaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AdapterAlreadyExists => "An adapter of this name exists already.",
            Self::AdapterNonExistent => "No adapter of this name exists.",
            Self::InvalidPolicy(id) => {
                return write!(
                    f,
                    "The policy of type {id} cannot be combined with the others."
                );
            }
            Self::ObjectAlreadyActive => "The object id is active already.",
            Self::ObjectNotActive => "The object id is not active.",
            Self::ServantAlreadyActive => {
                "The servant is active already and may serve only one object id."
            }
            Self::ServantNotActive => "The servant is not active.",
            Self::NoServant => "No default servant has been set.",
            Self::WrongAdapter => "The reference is of another adapter.",
            Self::WrongPolicy => "The adapter's policies do not allow the operation.",
            Self::System(exception) => return exception.fmt(f),
        })
    }
}

impl std::error::Error for PoaError {}

impl From<SystemException> for PoaError {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

/// What the requests of one adapter share.
pub(crate) struct PoaState {
    pub(crate) policies: Policies,
    pub(crate) manager: PoaManager,
    pub(crate) default_servant: RwLock<Option<Arc<dyn Servant>>>,
    /// Held around each request where the thread policy says one at a time.
    pub(crate) serial: PiMutex<()>,
    path: Vec<u8>,
    name: String,
    destroyed: AtomicBool,
    /// Active servants that may serve only one id, by address.
    unique: PiMutex<HashMap<usize, SlotKey>>,
    ids: AtomicU64,
    adapter: Weak<Adapter>,
}

impl PoaState {
    pub(crate) fn is_single_threaded(&self) -> bool {
        self.policies.thread == ThreadPolicy::SingleThreadModel
    }
}

/// A handle on one adapter.
#[derive(Clone)]
pub struct Poa(Arc<PoaState>);

impl Adapter {
    /// Makes an adapter; the root has an empty path.
    pub(crate) fn make_poa(
        self: &Arc<Self>,
        path: Vec<u8>,
        name: &str,
        manager: PoaManager,
        policies: Policies,
    ) -> Result<Poa, PoaError> {
        policies.check()?;
        if path.len() > ADAPTER_PATH_SIZE_MAX {
            return Err(raise::imp_limit(0, Completion::No).into());
        }
        let mut adapters = write(&self.adapters);
        if adapters.contains_key(&path) {
            return Err(PoaError::AdapterAlreadyExists);
        }
        let state = Arc::new(PoaState {
            policies,
            manager,
            default_servant: RwLock::default(),
            serial: PiMutex::default(),
            path: path.clone(),
            name: name.to_owned(),
            destroyed: AtomicBool::new(false),
            unique: PiMutex::default(),
            ids: AtomicU64::new(0),
            adapter: Arc::downgrade(self),
        });
        adapters.insert(path, Arc::clone(&state));
        Ok(Poa(state))
    }

    fn key_of(&self, state: &PoaState, id: &[u8]) -> Vec<u8> {
        let path = state.path.as_slice();
        match state.policies.lifespan {
            Lifespan::Persistent => ObjectKey::Persistent { path, id }.to_octets(),
            Lifespan::Transient => ObjectKey::TransientNamed {
                incarnation: self.incarnation,
                path,
                id,
            }
            .to_octets(),
        }
    }

    fn transient_key(&self, slot: SlotKey) -> Vec<u8> {
        ObjectKey::Transient {
            incarnation: self.incarnation,
            slot,
        }
        .to_octets()
    }
}

impl Poa {
    /// The adapter's name; `RootPOA` for the root.
    #[must_use]
    pub fn the_name(&self) -> &str {
        &self.0.name
    }

    /// The manager that lets requests through.
    #[must_use]
    pub fn the_poa_manager(&self) -> &PoaManager {
        &self.0.manager
    }

    /// The adapter's policies.
    #[must_use]
    pub fn policies(&self) -> &Policies {
        &self.0.policies
    }

    /// Makes a child adapter, with a manager of its own where none is given.
    ///
    /// # Errors
    /// [`PoaError::AdapterAlreadyExists`], [`PoaError::InvalidPolicy`]; BAD_PARAM for a name that is empty or holds `/`;
    /// IMP_LIMIT where the path passes [`ADAPTER_PATH_SIZE_MAX`].
    pub fn create_poa(
        &self,
        name: &str,
        manager: Option<&PoaManager>,
        policies: &Policies,
    ) -> Result<Self, PoaError> {
        if name.is_empty() || name.contains('/') {
            return Err(raise::bad_param(own::INVALID_ID, Completion::No).into());
        }
        let manager = manager.cloned().unwrap_or_else(PoaManager::new);
        self.adapter()?
            .make_poa(self.child_path(name), name, manager, *policies)
    }

    /// The child adapter of this name.
    ///
    /// # Errors
    /// [`PoaError::AdapterNonExistent`].
    pub fn find_poa(&self, name: &str) -> Result<Self, PoaError> {
        let found = read(&self.adapter()?.adapters)
            .get(&self.child_path(name))
            .cloned();
        found.map(Self).ok_or(PoaError::AdapterNonExistent)
    }

    /// Deactivates every object of this adapter and of its children, and forgets them; requests in progress finish.
    pub fn destroy(&self) {
        self.0.destroyed.store(true, Ordering::Release);
        let Ok(adapter) = self.adapter_anyway() else {
            return;
        };
        let below = if self.0.path.is_empty() {
            Vec::new()
        } else {
            [self.0.path.as_slice(), b"/"].concat()
        };
        let within = |path: &[u8]| path == self.0.path || path.starts_with(&below);
        write(&adapter.adapters).retain(|path, state| {
            state.destroyed.fetch_or(within(path), Ordering::AcqRel);
            !within(path)
        });
        write(&adapter.named).retain(|key, _| match ObjectKey::parse(key) {
            ObjectKey::Persistent { path, .. } | ObjectKey::TransientNamed { path, .. } => {
                !within(path)
            }
            ObjectKey::Transient { .. } | ObjectKey::Plain(_) => true,
        });
        adapter.remove_objects(|object| within(&object.adapter.path));
    }

    /// Activates `servant` under an id that the adapter chooses.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] unless SYSTEM_ID and RETAIN; [`PoaError::ServantAlreadyActive`] under UNIQUE_ID.
    pub fn activate_object(&self, servant: Arc<dyn Servant>) -> Result<ObjectId, PoaError> {
        self.require(self.0.policies.id_assignment == IdAssignment::SystemId)?;
        let number = self.0.ids.fetch_add(1, Ordering::Relaxed);
        let mut octets = number.to_be_bytes().to_vec();
        if self.0.policies.lifespan == Lifespan::Persistent {
            // An id must not come back in a later life of the ORB.
            octets.extend(self.adapter()?.incarnation.to_be_bytes());
        }
        let id = ObjectId(octets);
        self.insert(&id, servant)?;
        Ok(id)
    }

    /// Activates `servant` under `id`.
    ///
    /// # Errors
    /// [`PoaError::ObjectAlreadyActive`], [`PoaError::ServantAlreadyActive`] under UNIQUE_ID, [`PoaError::WrongPolicy`]
    /// unless RETAIN; BAD_PARAM for an id longer than [`OBJECT_ID_SIZE_MAX`].
    pub fn activate_object_with_id(
        &self,
        id: &[u8],
        servant: Arc<dyn Servant>,
    ) -> Result<(), PoaError> {
        if id.len() > OBJECT_ID_SIZE_MAX {
            return Err(raise::bad_param(own::INVALID_ID, Completion::No).into());
        }
        self.insert(&ObjectId(id.to_vec()), servant).map(|_| ())
    }

    /// Makes the object unreachable; requests in progress finish and then the servant is let go.
    ///
    /// # Errors
    /// [`PoaError::ObjectNotActive`], [`PoaError::WrongPolicy`] unless RETAIN.
    pub fn deactivate_object(&self, id: &[u8]) -> Result<(), PoaError> {
        self.require(self.0.policies.servant_retention == ServantRetention::Retain)?;
        let adapter = self.adapter()?;
        let slot = write(&adapter.named)
            .remove(&adapter.key_of(&self.0, id))
            .ok_or(PoaError::ObjectNotActive)?;
        self.0
            .unique
            .lock("adapter.deactivate")
            .retain(|_, active| *active != slot);
        adapter.objects.remove(slot);
        Ok(())
    }

    /// A reference to the active object `id`.
    ///
    /// # Errors
    /// [`PoaError::ObjectNotActive`], [`PoaError::WrongPolicy`] unless RETAIN.
    pub fn id_to_reference(&self, id: &[u8]) -> Result<ObjectRef, PoaError> {
        let (slot, repository_id) = self.active(id)?;
        self.reference(Some(slot), id, repository_id)
    }

    /// The servant of the active object `id`, else the default servant.
    ///
    /// # Errors
    /// [`PoaError::ObjectNotActive`] where there is neither.
    pub fn id_to_servant(&self, id: &[u8]) -> Result<Arc<dyn Servant>, PoaError> {
        let adapter = self.adapter()?;
        let slot = read(&adapter.named)
            .get(&adapter.key_of(&self.0, id))
            .copied();
        if let Some(object) = slot.and_then(|slot| adapter.objects.pin(slot)) {
            return Ok(Arc::clone(&object.servant));
        }
        read(&self.0.default_servant)
            .clone()
            .ok_or(PoaError::ObjectNotActive)
    }

    /// A reference to `servant`, activating it first where the policies allow that and it is not active
    /// (or may be active more than once).
    ///
    /// # Errors
    /// [`PoaError::ServantNotActive`] where it may not be activated here.
    pub fn servant_to_reference(&self, servant: &Arc<dyn Servant>) -> Result<ObjectRef, PoaError> {
        let id = self.servant_to_id(servant)?;
        self.id_to_reference(&id)
    }

    /// The id of `servant`, activating it first where the policies allow that and it is not active
    /// (or may be active more than once).
    ///
    /// # Errors
    /// [`PoaError::ServantNotActive`] where it may not be activated here.
    pub fn servant_to_id(&self, servant: &Arc<dyn Servant>) -> Result<ObjectId, PoaError> {
        let slot = self
            .0
            .unique
            .lock("adapter.servant")
            .get(&address(servant))
            .copied();
        if let Some(object) =
            slot.and_then(|slot| self.adapter().ok()?.objects.pin(slot).map(|o| o.id.clone()))
        {
            return Ok(object);
        }
        if self.0.policies.implicit_activation == ImplicitActivation::NoImplicitActivation {
            return Err(PoaError::ServantNotActive);
        }
        self.activate_object(Arc::clone(servant))
    }

    /// A reference to an object that need not be active yet, under an id the adapter chooses.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] unless SYSTEM_ID.
    pub fn create_reference(&self, repository_id: &str) -> Result<ObjectRef, PoaError> {
        self.require(self.0.policies.id_assignment == IdAssignment::SystemId)?;
        let number = self.0.ids.fetch_add(1, Ordering::Relaxed);
        self.reference(None, &number.to_be_bytes(), repository_id)
    }

    /// A reference to the object `id`, which need not be active yet.
    ///
    /// # Errors
    /// BAD_PARAM for an id longer than [`OBJECT_ID_SIZE_MAX`].
    pub fn create_reference_with_id(
        &self,
        id: &[u8],
        repository_id: &str,
    ) -> Result<ObjectRef, PoaError> {
        if id.len() > OBJECT_ID_SIZE_MAX {
            return Err(raise::bad_param(own::INVALID_ID, Completion::No).into());
        }
        self.reference(None, id, repository_id)
    }

    /// The id of an object of this adapter.
    ///
    /// # Errors
    /// [`PoaError::WrongAdapter`] for any other reference.
    pub fn reference_to_id(&self, reference: &ObjectRef) -> Result<ObjectId, PoaError> {
        let adapter = self.adapter()?;
        let key = reference.object_key().ok_or(PoaError::WrongAdapter)?;
        match ObjectKey::parse(key) {
            ObjectKey::Transient { incarnation, slot } if incarnation == adapter.incarnation => {
                let object = adapter.objects.pin(slot).ok_or(PoaError::WrongAdapter)?;
                if Arc::ptr_eq(&object.adapter, &self.0) {
                    Ok(object.id.clone())
                } else {
                    Err(PoaError::WrongAdapter)
                }
            }
            ObjectKey::Persistent { path, id } | ObjectKey::TransientNamed { path, id, .. }
                if path == self.0.path =>
            {
                Ok(ObjectId(id.to_vec()))
            }
            _ => Err(PoaError::WrongAdapter),
        }
    }

    /// Sets who serves requests for ids that are not active.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] unless USE_DEFAULT_SERVANT.
    pub fn set_servant(&self, servant: Arc<dyn Servant>) -> Result<(), PoaError> {
        self.require(self.0.policies.request_processing == RequestProcessing::UseDefaultServant)?;
        *write(&self.0.default_servant) = Some(servant);
        Ok(())
    }

    fn insert(&self, id: &ObjectId, servant: Arc<dyn Servant>) -> Result<SlotKey, PoaError> {
        self.require(self.0.policies.servant_retention == ServantRetention::Retain)?;
        let adapter = self.adapter()?;
        let name = adapter.key_of(&self.0, id);
        let mut unique = self.0.unique.lock("adapter.activate");
        let mut named = write(&adapter.named);
        if named.contains_key(&name) {
            return Err(PoaError::ObjectAlreadyActive);
        }
        let at = address(&servant);
        let is_unique = self.0.policies.id_uniqueness == IdUniqueness::UniqueId;
        if is_unique && unique.contains_key(&at) {
            return Err(PoaError::ServantAlreadyActive);
        }
        let object = ActiveObject {
            servant,
            id: id.clone(),
            adapter: Arc::clone(&self.0),
        };
        let slot = adapter
            .objects
            .insert(object)
            .map_err(|TableFull(_)| PoaError::System(raise::no_resources(0, Completion::No)))?;
        named.insert(name, slot);
        if is_unique {
            unique.insert(at, slot);
        }
        Ok(slot)
    }

    fn active(&self, id: &[u8]) -> Result<(SlotKey, &'static str), PoaError> {
        self.require(self.0.policies.servant_retention == ServantRetention::Retain)?;
        let adapter = self.adapter()?;
        let slot = read(&adapter.named)
            .get(&adapter.key_of(&self.0, id))
            .copied();
        let slot = slot.ok_or(PoaError::ObjectNotActive)?;
        let object = adapter.objects.pin(slot).ok_or(PoaError::ObjectNotActive)?;
        Ok((
            slot,
            object
                .servant
                .repository_ids()
                .first()
                .copied()
                .unwrap_or(""),
        ))
    }

    /// A transient object of a system id is reached by its slot; all others by their name.
    fn reference(
        &self,
        slot: Option<SlotKey>,
        id: &[u8],
        repository_id: &str,
    ) -> Result<ObjectRef, PoaError> {
        let adapter = self.adapter()?;
        let orb = adapter.orb.upgrade().ok_or_else(gone)?;
        let policies = &self.0.policies;
        let by_slot = policies.lifespan == Lifespan::Transient
            && policies.id_assignment == IdAssignment::SystemId;
        let key = match slot {
            Some(slot) if by_slot => adapter.transient_key(slot),
            _ => adapter.key_of(&self.0, id),
        };
        Ok(orb.make_reference(key, repository_id)?)
    }

    fn child_path(&self, name: &str) -> Vec<u8> {
        if self.0.path.is_empty() {
            return name.as_bytes().to_vec();
        }
        [self.0.path.as_slice(), b"/", name.as_bytes()].concat()
    }

    fn require(&self, allowed: bool) -> Result<(), PoaError> {
        if allowed {
            Ok(())
        } else {
            Err(PoaError::WrongPolicy)
        }
    }

    fn adapter(&self) -> Result<Arc<Adapter>, PoaError> {
        if self.0.destroyed.load(Ordering::Acquire) {
            return Err(gone().into());
        }
        self.adapter_anyway()
    }

    fn adapter_anyway(&self) -> Result<Arc<Adapter>, PoaError> {
        self.0.adapter.upgrade().ok_or_else(|| gone().into())
    }
}

impl fmt::Debug for Poa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poa")
            .field("name", &self.0.name)
            .field("policies", &self.0.policies)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Poa {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

fn gone() -> SystemException {
    raise::object_not_exist(minor::ADAPTER_UNKNOWN, Completion::No)
}

/// Two handles on one servant have one address.
fn address(servant: &Arc<dyn Servant>) -> usize {
    Arc::as_ptr(servant).cast::<()>().addr()
}
