//! The object adapter: from an object key to the servant, and the tables behind it.
//!
//! Requests read the tables without a contended lock: an active object is a slot and a generation; ids and paths are
//! looked up under read locks that are written only when objects or adapters come and go.

mod manager;
mod object_key;
mod poa;
mod policies;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use deckwatch_sync::{Pinned, SlotTable};

pub use manager::{AdapterInactive, ManagerState, PoaManager};
pub use object_key::ObjectKey;
pub use poa::{ObjectId, Poa, PoaError};
pub use policies::{
    IdAssignment, IdUniqueness, ImplicitActivation, Lifespan, Policies, RequestProcessing,
    ServantRetention, ThreadPolicy,
};

use crate::limits::PLAIN_KEYS_MAX;
use crate::orb::OrbCore;
use crate::{Completion, ObjectRef, Servant, SlotKey, SystemException, minor};
use crate::{raise, raise::own};
use poa::PoaState;

/// All adapters and active objects of one ORB.
pub(crate) struct Adapter {
    /// Tells references of this life of the ORB from those of earlier ones.
    incarnation: u64,
    orb: Weak<OrbCore>,
    objects: SlotTable<ActiveObject>,
    /// Objects with a name of their own, by their whole object key.
    named: RwLock<HashMap<Vec<u8>, SlotKey>>,
    /// Adapters by path.
    adapters: RwLock<HashMap<Vec<u8>, Arc<PoaState>>>,
    plain: RwLock<HashMap<Vec<u8>, Elsewhere>>,
}

/// A servant under an id.
pub(crate) struct ActiveObject {
    pub(crate) servant: Arc<dyn Servant>,
    pub(crate) id: ObjectId,
    pub(crate) adapter: Arc<PoaState>,
}

/// Who serves a request.
pub(crate) enum Found<'a> {
    /// An active object, kept until the request is done.
    Active(Pinned<'a, ActiveObject>),
    /// The default servant of an adapter.
    Default {
        adapter: Arc<PoaState>,
        servant: Arc<dyn Servant>,
        id: &'a [u8],
    },
    /// What a plain key stands for.
    Elsewhere(Elsewhere),
}

/// What a plain key stands for.
#[derive(Clone)]
pub(crate) struct Elsewhere {
    pub(crate) target: ObjectRef,
    /// It leads to this ORB. Its key alone does not tell: another ORB's persistent object can have the same.
    pub(crate) is_ours: bool,
}

impl Found<'_> {
    pub(crate) fn servant(&self) -> Option<&dyn Servant> {
        match self {
            Self::Active(object) => Some(&*object.servant),
            Self::Default { servant, .. } => Some(&**servant),
            Self::Elsewhere(_) => None,
        }
    }

    pub(crate) fn adapter(&self) -> Option<&PoaState> {
        match self {
            Self::Active(object) => Some(&object.adapter),
            Self::Default { adapter, .. } => Some(adapter),
            Self::Elsewhere(_) => None,
        }
    }

    pub(crate) fn object_id(&self) -> &[u8] {
        match self {
            Self::Active(object) => &object.id,
            Self::Default { id, .. } => id,
            Self::Elsewhere(_) => &[],
        }
    }
}

impl Adapter {
    pub(crate) fn new(incarnation: u64, orb: Weak<OrbCore>) -> Self {
        Self {
            incarnation,
            orb,
            objects: SlotTable::new(),
            named: RwLock::default(),
            adapters: RwLock::default(),
            plain: RwLock::default(),
        }
    }

    /// The servant for an object key.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST where there is none.
    pub(crate) fn find<'a>(&'a self, key: &'a [u8]) -> Result<Found<'a>, SystemException> {
        match ObjectKey::parse(key) {
            ObjectKey::Transient { incarnation, slot } => {
                let object = (incarnation == self.incarnation)
                    .then(|| self.objects.pin(slot))
                    .flatten();
                object.map(Found::Active).ok_or_else(no_object)
            }
            ObjectKey::TransientNamed {
                incarnation,
                path,
                id,
            } => {
                if incarnation == self.incarnation {
                    self.find_named(key, path, id)
                } else {
                    Err(no_object())
                }
            }
            ObjectKey::Persistent { path, id } => self.find_named(key, path, id),
            ObjectKey::Plain(plain) => {
                let target = read(&self.plain).get(plain).cloned();
                Ok(Found::Elsewhere(target.ok_or_else(no_object)?))
            }
        }
    }

    fn find_named<'a>(
        &'a self,
        key: &[u8],
        path: &[u8],
        id: &'a [u8],
    ) -> Result<Found<'a>, SystemException> {
        let slot = read(&self.named).get(key).copied();
        if let Some(object) = slot.and_then(|slot| self.objects.pin(slot)) {
            return Ok(Found::Active(object));
        }
        let adapter = read(&self.adapters).get(path).cloned();
        let adapter = adapter.ok_or(raise::object_not_exist(
            minor::ADAPTER_UNKNOWN,
            Completion::No,
        ))?;
        if adapter.policies.request_processing != RequestProcessing::UseDefaultServant {
            return Err(no_object());
        }
        let servant = read(&adapter.default_servant).clone();
        let servant = servant.ok_or(raise::obj_adapter(minor::NO_SERVANT, Completion::No))?;
        Ok(Found::Default {
            adapter,
            servant,
            id,
        })
    }

    /// Makes `target` reachable under a key of the application's choice.
    ///
    /// # Errors
    /// NO_RESOURCES at the limit of such keys; BAD_PARAM for a key that looks like one of the adapter's own.
    pub(crate) fn bind_plain(&self, key: &[u8], target: ObjectRef) -> Result<(), SystemException> {
        if !matches!(ObjectKey::parse(key), ObjectKey::Plain(_)) {
            return Err(raise::bad_param(own::INVALID_ID, Completion::No));
        }
        let orb = self.orb.upgrade();
        let is_ours = orb.is_some_and(|orb| target.leads_to(&orb));
        let mut plain = write(&self.plain);
        if plain.len() >= PLAIN_KEYS_MAX && !plain.contains_key(key) {
            return Err(raise::no_resources(0, Completion::No));
        }
        plain.insert(key.to_vec(), Elsewhere { target, is_ours });
        Ok(())
    }

    /// Turns away the requests that are held: nobody will let them through any more.
    pub(crate) fn release_held(&self) {
        for adapter in read(&self.adapters).values() {
            if adapter.manager.state() == ManagerState::Holding {
                let _deactivated_before = adapter.manager.deactivate();
            }
        }
    }

    /// Forgets every servant, adapter and key; requests that are being served keep theirs until they are done.
    pub(crate) fn clear(&self) {
        write(&self.plain).clear();
        let adapters: Vec<_> = write(&self.adapters)
            .drain()
            .map(|(_, adapter)| adapter)
            .collect();
        for adapter in &adapters {
            *write(&adapter.default_servant) = None;
            let _deactivated_before = adapter.manager.deactivate();
        }
        write(&self.named).clear();
        self.remove_objects(|_| true);
    }

    fn remove_objects(&self, chosen: impl Fn(&ActiveObject) -> bool) {
        let mut keys = Vec::new();
        self.objects.for_each(|key, object| {
            if chosen(object) {
                keys.push(key);
            }
        });
        for key in keys {
            self.objects.remove(key);
        }
    }
}

fn no_object() -> SystemException {
    raise::object_not_exist(raise::NO_OBJECT, Completion::No)
}

/// A table is whole at every point where a panic could leave its lock.
fn read<T>(table: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    table.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(table: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    table.write().unwrap_or_else(PoisonError::into_inner)
}
