//! The objects of an adapter: activation, references, and the mappings between id, servant and reference
//! (CORBA 3.3 part 1, 15.3.9.19 ff.).

use std::borrow::Borrow;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::active_map::Entry;
use super::priority::priority_of;
use super::{
    Adapter, IdAssignment, ImplicitActivation, Lifespan, ObjectKey, Phase, Poa, PoaError, PoaState,
    RequestProcessing, frames, unknown_adapter,
};
use crate::limits::OBJECT_ID_SIZE_MAX;
use crate::rt::Priority;
use crate::wire;
use crate::{Completion, ObjectRef, Servant, SlotKey, SystemException, minor};
use crate::{raise, raise::own};

/// Identifies an object within its adapter.
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

impl Borrow<[u8]> for ObjectId {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl PoaState {
    /// The key under which an object is found by its id.
    pub(super) fn key_of(&self, id: &[u8]) -> Vec<u8> {
        match self.policies.lifespan {
            Lifespan::Persistent => ObjectKey::Persistent {
                path: &self.identity.path,
                id,
            },
            Lifespan::Transient => ObjectKey::TransientNamed {
                incarnation: self.identity.incarnation,
                adapter: self.slot(),
                id,
            },
        }
        .to_octets()
    }

    /// Makes a new id. Ids of a persistent adapter are new among those of earlier runs too.
    fn new_id(&self) -> ObjectId {
        let number = self.ids.fetch_add(1, Ordering::Relaxed);
        let mut octets = number.to_be_bytes().to_vec();
        if self.policies.lifespan == Lifespan::Persistent {
            octets.extend(self.identity.incarnation.to_be_bytes());
        }
        ObjectId(octets)
    }

    /// Returns whether [`PoaState::new_id`] can have made the id, in this run or an earlier one. A priority may follow
    /// it.
    fn can_have_made(&self, id: &[u8]) -> bool {
        let Some((number, rest)) = id.split_first_chunk() else {
            return false;
        };
        let is_ours = u64::from_be_bytes(*number) < self.ids.load(Ordering::Relaxed);
        let (is_made, priority) = match self.policies.lifespan {
            Lifespan::Transient => (is_ours, rest),
            Lifespan::Persistent => match rest.split_first_chunk() {
                Some((life, rest)) => (
                    is_ours || *life != self.identity.incarnation.to_be_bytes(),
                    rest,
                ),
                None => return false,
            },
        };
        let may_tell = self.realtime.declared(None).is_some();
        is_made && (priority.is_empty() || may_tell && priority.len() == size_of::<i16>())
    }

    /// Returns the object that this thread serves, if it belongs to this adapter and `servant` serves it.
    fn current_id(&self, servant: &Arc<dyn Servant>) -> Option<ObjectId> {
        let current = self.adapter.upgrade()?.current()?;
        let is_here = std::ptr::eq(&raw const *current.adapter, self);
        let is_it = current
            .servant
            .is_some_and(|serving| is_same(&serving, servant));
        (is_here && is_it).then_some(current.id)
    }
}

impl Adapter {
    /// The adapter of the object that this thread serves.
    pub(crate) fn current_poa(&self) -> Option<Poa> {
        self.current().map(|serving| Poa(serving.adapter))
    }

    /// The innermost request that this thread serves.
    pub(super) fn current(&self) -> Option<Serving> {
        let without = |frame: &frames::Frame| {
            let without = frame.without.as_ref()?;
            Some(Serving {
                id: ObjectId(frame.id.clone()),
                adapter: Arc::clone(&without.adapter),
                servant: without.servant.clone(),
            })
        };
        let (slot, without) =
            frames::innermost(self.incarnation, |frame| (frame.object, without(frame)))?;
        let Some(slot) = slot else { return without };
        let object = self.objects.pin_again(slot)?;
        Some(Serving {
            id: object.id.clone(),
            adapter: Arc::clone(&object.adapter),
            servant: Some(Arc::clone(&object.servant)),
        })
    }
}

/// The request that a thread serves.
pub(super) struct Serving {
    pub(super) id: ObjectId,
    pub(super) adapter: Arc<PoaState>,
    /// `None` while a servant manager is called for it.
    pub(super) servant: Option<Arc<dyn Servant>>,
}

impl Poa {
    /// Activates `servant` under an id that the adapter chooses.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] unless SYSTEM_ID and RETAIN; [`PoaError::ServantAlreadyActive`] under UNIQUE_ID.
    pub fn activate_object(&self, servant: Arc<dyn Servant>) -> Result<ObjectId, PoaError> {
        let id = self.new_reference_id()?;
        self.insert(&id, servant, None)?;
        Ok(id)
    }

    /// Activates `servant` under `id`. Waits while an earlier activation of the id ends.
    ///
    /// # Errors
    /// [`PoaError::ObjectAlreadyActive`], [`PoaError::ServantAlreadyActive`] under UNIQUE_ID, [`PoaError::WrongPolicy`]
    /// unless RETAIN; BAD_PARAM under SYSTEM_ID for an id that the adapter cannot have made, and for one longer than
    /// [`OBJECT_ID_SIZE_MAX`]; BAD_INV_ORDER in a servant that would wait for the end of its own activation.
    pub fn activate_object_with_id(
        &self,
        id: &[u8],
        servant: Arc<dyn Servant>,
    ) -> Result<(), PoaError> {
        self.require(self.0.retains())?;
        self.check_id(id)?;
        self.insert(&ObjectId(id.to_vec()), servant, None)
    }

    /// Deactivates the object. After the requests in progress the servant is dropped, or etherealized by the servant
    /// activator. Does not wait for that.
    ///
    /// # Errors
    /// [`PoaError::ObjectNotActive`], [`PoaError::WrongPolicy`] unless RETAIN.
    pub fn deactivate_object(&self, id: &[u8]) -> Result<(), PoaError> {
        self.require(self.0.retains())?;
        self.adapter()?;
        self.0.retire(id)
    }

    /// A reference to an object that need not be active yet, under an id the adapter chooses.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] unless SYSTEM_ID.
    pub fn create_reference(&self, repository_id: &str) -> Result<ObjectRef, PoaError> {
        self.reference(None, &self.new_reference_id()?, repository_id)
    }

    pub(super) fn new_reference_id(&self) -> Result<ObjectId, PoaError> {
        self.require(self.0.policies.id_assignment == IdAssignment::SystemId)?;
        Ok(self.0.new_id())
    }

    /// A reference to the object `id`, which need not be active yet.
    ///
    /// # Errors
    /// BAD_PARAM under SYSTEM_ID for an id that the adapter cannot have made, and for one longer than
    /// [`OBJECT_ID_SIZE_MAX`].
    pub fn create_reference_with_id(
        &self,
        id: &[u8],
        repository_id: &str,
    ) -> Result<ObjectRef, PoaError> {
        self.check_id(id)?;
        self.reference(None, id, repository_id)
    }

    /// The id of `servant`. Activates it first if the policies permit that and it is not active (or may be active more
    /// than once). In a request of the default servant: the id of the target.
    ///
    /// # Errors
    /// [`PoaError::ServantNotActive`] if it may not be activated here; [`PoaError::WrongPolicy`] unless
    /// USE_DEFAULT_SERVANT, or RETAIN with UNIQUE_ID or IMPLICIT_ACTIVATION.
    pub fn servant_to_id(&self, servant: &Arc<dyn Servant>) -> Result<ObjectId, PoaError> {
        let has_default =
            self.0.policies.request_processing == RequestProcessing::UseDefaultServant;
        self.require(has_default || self.tells_servants())?;
        self.adapter()?;
        if let Some((id, _)) = self.known(servant)? {
            return Ok(id);
        }
        let is_default = has_default
            && self
                .0
                .default_servant
                .read(|default| is_same(default, servant))
                == Some(true);
        let current = is_default.then(|| self.0.current_id(servant)).flatten();
        current.ok_or(PoaError::ServantNotActive)
    }

    /// A reference to `servant`. Activates it first if the policies permit that and it is not active (or may be active
    /// more than once). In a request that the servant serves: a reference to the target.
    ///
    /// # Errors
    /// [`PoaError::ServantNotActive`] if it may not be activated here; outside of such a request
    /// [`PoaError::WrongPolicy`] unless RETAIN with UNIQUE_ID or IMPLICIT_ACTIVATION.
    pub fn servant_to_reference(&self, servant: &Arc<dyn Servant>) -> Result<ObjectRef, PoaError> {
        self.adapter()?;
        if self.tells_servants()
            && let Some((id, slot)) = self.known(servant)?
        {
            return self.reference(slot, &id, &servant.primary_interface(&id, self));
        }
        if let Some(id) = self.0.current_id(servant) {
            return self.reference_to(&id, &servant.primary_interface(&id, self));
        }
        self.require(self.tells_servants())?;
        Err(PoaError::ServantNotActive)
    }

    /// The servant of an object of this adapter.
    ///
    /// # Errors
    /// [`PoaError::WrongAdapter`]; as [`Poa::id_to_servant`].
    pub fn reference_to_servant(
        &self,
        reference: &ObjectRef,
    ) -> Result<Arc<dyn Servant>, PoaError> {
        self.require(self.has_servants())?;
        let id = self.reference_to_id(reference)?;
        self.id_to_servant(&id)
    }

    /// The id of an object of this adapter, active or not.
    ///
    /// # Errors
    /// [`PoaError::WrongAdapter`] for any other reference.
    pub fn reference_to_id(&self, reference: &ObjectRef) -> Result<ObjectId, PoaError> {
        self.adapter()?;
        let key = reference.object_key().ok_or(PoaError::WrongAdapter)?;
        let (is_ours, id) = match ObjectKey::parse(key) {
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
                let is_ours =
                    incarnation == self.0.identity.incarnation && adapter == self.0.slot();
                (is_ours, id)
            }
            ObjectKey::Persistent { path, id } => {
                let is_ours = self.0.policies.lifespan == Lifespan::Persistent;
                (is_ours && path == self.0.identity.path, id)
            }
            ObjectKey::Plain(_) => return Err(PoaError::WrongAdapter),
        };
        if !is_ours {
            return Err(PoaError::WrongAdapter);
        }
        Ok(ObjectId(id.to_vec()))
    }

    /// The servant of the active object `id`, or the default servant.
    ///
    /// # Errors
    /// [`PoaError::ObjectNotActive`] if there is neither; [`PoaError::WrongPolicy`] unless RETAIN or
    /// USE_DEFAULT_SERVANT.
    pub fn id_to_servant(&self, id: &[u8]) -> Result<Arc<dyn Servant>, PoaError> {
        self.require(self.has_servants())?;
        let adapter = self.adapter()?;
        let slot = self.0.map.slot_of(id);
        if let Some(object) = slot.and_then(|slot| adapter.objects.pin(slot)) {
            return Ok(Arc::clone(&object.servant));
        }
        self.0
            .default_servant
            .get()
            .ok_or(PoaError::ObjectNotActive)
    }

    /// A reference to the active object `id`.
    ///
    /// # Errors
    /// [`PoaError::ObjectNotActive`], [`PoaError::WrongPolicy`] unless RETAIN.
    pub fn id_to_reference(&self, id: &[u8]) -> Result<ObjectRef, PoaError> {
        self.require(self.0.retains())?;
        let adapter = self.adapter()?;
        let slot = self.0.map.slot_of(id).ok_or(PoaError::ObjectNotActive)?;
        let object = adapter.objects.pin(slot).ok_or(PoaError::ObjectNotActive)?;
        self.reference(Some(slot), id, &object.servant.primary_interface(id, self))
    }

    /// Returns whether the adapter knows the ids of its servants, or makes ids for them.
    fn tells_servants(&self) -> bool {
        self.0.retains() && (self.0.is_unique() || self.is_implicit())
    }

    fn is_implicit(&self) -> bool {
        self.0.policies.implicit_activation == ImplicitActivation::ImplicitActivation
    }

    fn has_servants(&self) -> bool {
        self.0.retains()
            || self.0.policies.request_processing == RequestProcessing::UseDefaultServant
    }

    /// The id that `servant` is active under. Activates it if needed.
    fn known(
        &self,
        servant: &Arc<dyn Servant>,
    ) -> Result<Option<(ObjectId, Option<SlotKey>)>, PoaError> {
        let id = match self.0.map.id_of(servant) {
            Some(id) => id,
            None if self.is_implicit() => self.activate_object(Arc::clone(servant))?,
            None => return Ok(None),
        };
        let slot = self.0.map.slot_of(&id);
        Ok(Some((id, slot)))
    }

    pub(super) fn check_id(&self, id: &[u8]) -> Result<(), SystemException> {
        if id.len() > OBJECT_ID_SIZE_MAX {
            return Err(raise::bad_param(own::INVALID_ID, Completion::No));
        }
        let is_theirs = self.0.policies.id_assignment == IdAssignment::UserId;
        if is_theirs || self.0.can_have_made(id) {
            return Ok(());
        }
        Err(raise::bad_param(minor::OBJECT_ID_INVALID, Completion::No))
    }

    pub(super) fn insert(
        &self,
        id: &ObjectId,
        servant: Arc<dyn Servant>,
        priority: Option<Priority>,
    ) -> Result<(), PoaError> {
        self.require(self.0.retains())?;
        let adapter = self.adapter()?;
        loop {
            self.await_end(id)?;
            let inserted = self.0.map.change(|entries| {
                if self.0.phase() >= Phase::Dying {
                    return Ok(Err(PoaError::System(unknown_adapter())));
                }
                match entries.ids.get(id) {
                    None => {}
                    Some(Entry::Active(_) | Entry::Arriving(_)) => {
                        return Ok(Err(PoaError::ObjectAlreadyActive));
                    }
                    Some(_) => return Ok(Ok(false)),
                }
                if self.0.is_unique() && entries.unique_id(&servant).is_some() {
                    return Ok(Err(PoaError::ServantAlreadyActive));
                }
                let servant = Arc::clone(&servant);
                let inserted = self.0.insert(entries, &adapter, id, servant, priority);
                inserted.map(|_| Ok(true))
            });
            // The object is dropped outside of the change: its drop locks the map.
            let inserted = inserted
                .map_err(|_object| PoaError::System(raise::no_resources(0, Completion::No)))?;
            if inserted? {
                return Ok(());
            }
        }
    }

    /// Waits until an earlier activation of the id has ended.
    fn await_end(&self, id: &ObjectId) -> Result<(), SystemException> {
        let state = &self.0;
        let deadlock = raise::bad_inv_order(minor::WOULD_DEADLOCK, Completion::No);
        let is_within = frames::is_within_adapter(state.identity.incarnation, state.slot());
        let waits_for_me = |entry: &Entry| match entry {
            Entry::Leaving { slot, .. } => {
                frames::is_within_object(state.identity.incarnation, *slot)
            }
            // Etherealization waits for the activator, for the lock of SINGLE_THREAD_MODEL, and during destruction for
            // all requests of the adapter.
            _ => state.turns.is_mine() || state.is_serial() || state.phase() == Phase::Dying,
        };
        state
            .map
            .wait_until(None, |entries| match entries.ids.get(id) {
                Some(entry @ (Entry::Leaving { .. } | Entry::Parting)) => {
                    (is_within && waits_for_me(entry)).then_some(Err(deadlock))
                }
                _ => Some(Ok(())),
            })?
    }

    /// A reference to the object `id`, with its slot if it is active.
    pub(super) fn reference_to(
        &self,
        id: &[u8],
        repository_id: &str,
    ) -> Result<ObjectRef, PoaError> {
        self.reference(self.0.map.slot_of(id), id, repository_id)
    }

    /// Makes a reference. The key of an active transient object with a system id contains its slot. All other keys
    /// contain only the id, also those of objects that a servant manager activates again and again.
    fn reference(
        &self,
        slot: Option<SlotKey>,
        id: &[u8],
        repository_id: &str,
    ) -> Result<ObjectRef, PoaError> {
        let adapter = self.adapter()?;
        let orb = adapter.orb.upgrade().ok_or_else(unknown_adapter)?;
        let policies = &self.0.policies;
        let by_slot = policies.lifespan == Lifespan::Transient
            && policies.id_assignment == IdAssignment::SystemId
            && policies.request_processing != RequestProcessing::UseServantManager;
        let key = match slot {
            Some(slot) if by_slot => ObjectKey::Transient {
                incarnation: self.0.identity.incarnation,
                slot,
                adapter: self.0.slot(),
                id,
            }
            .to_octets(),
            _ => self.0.key_of(id),
        };
        let priority = priority_of(&self.0, slot, id);
        let mut reach = self.0.realtime.reach(policies, priority)?;
        reach.add(self.0.components());
        let ior = wire::make_ior(repository_id, &reach, &key).map_err(SystemException::from)?;
        Ok(ObjectRef::new(ior, orb))
    }
}

fn is_same(one: &Arc<dyn Servant>, other: &Arc<dyn Servant>) -> bool {
    Arc::as_ptr(one).cast::<()>() == Arc::as_ptr(other).cast::<()>()
}
