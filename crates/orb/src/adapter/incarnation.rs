//! Incarnation: a servant activator makes the servant of an object at its first request, once (CORBA 3.3 part 1,
//! 15.3.6).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use super::active_map::Entry;
use super::frames;
use super::servant_manager::ServantManagerError;
use super::state::{Phase, PoaState};
use super::wait_permits::Patience;
use super::{Adapter, ObjectId, Poa, Refusal, unknown_adapter};
use crate::{Completion, Servant, SystemException, minor, raise};

impl PoaState {
    /// Calls the servant activator, which makes the servant of `id`, unless another thread does so already.
    ///
    /// # Errors
    /// The exception of the activator; OBJ_ADAPTER if there is none or its servant is active under another id.
    pub(crate) fn incarnate(
        self: &Arc<Self>,
        id: &[u8],
        patience: Patience<'_>,
    ) -> Result<(), Refusal> {
        let none = raise::obj_adapter(minor::NO_SERVANT_MANAGER, Completion::No);
        let activator = self.servant_activator().ok_or(none)?;
        let adapter = self.adapter.upgrade().ok_or_else(unknown_adapter)?;
        let id = ObjectId::new(id);
        if !self.reserve(&id, patience)? {
            return Ok(());
        }
        let reserved = Reserved {
            state: self,
            id: &id,
        };
        let servant = {
            let _turn = self.turns.take(patience)?;
            let _serial = self.serialise();
            let _frame = frames::enter_without_object(self, None, &id);
            let poa = Poa(Arc::clone(self));
            catch_unwind(AssertUnwindSafe(|| activator.incarnate(&id, &poa)))
        };
        let servant = servant.unwrap_or_else(|_| Err(adapter.count_panic().into()))?;
        reserved.settle(&adapter, servant)
    }

    /// Takes the right to make the servant of `id`. Returns false if another thread has made it.
    fn reserve(&self, id: &ObjectId, patience: Patience<'_>) -> Result<bool, SystemException> {
        let me = thread::current().id();
        loop {
            let is_free =
                self.map
                    .wait_until(patience, |entries| match entries.ids.get(id) {
                        // Destruction waits for this request, so the request must not wait for etherealizations after
                        // it.
                        _ if self.phase() >= Phase::Dying => Some(Err(dying())),
                        None => Some(Ok(true)),
                        Some(Entry::Active(_)) => Some(Ok(false)),
                        Some(Entry::Arriving(thread)) if *thread == me => Some(Err(
                            raise::bad_inv_order(minor::WOULD_DEADLOCK, Completion::No),
                        )),
                        Some(_) => None,
                    })??;
            if !is_free {
                return Ok(false);
            }
            let reserved = self.map.change(|entries| {
                let is_still_free = !entries.ids.contains_key(id);
                if is_still_free {
                    entries.ids.insert(id.clone(), Entry::Arriving(me));
                }
                is_still_free
            });
            if reserved {
                return Ok(true);
            }
        }
    }
}

/// An id whose servant is being made. Dropping frees the id if it has no servant then.
struct Reserved<'s> {
    state: &'s Arc<PoaState>,
    id: &'s ObjectId,
}

impl Reserved<'_> {
    /// Activates the object, unless the policies forbid this servant.
    fn settle(self, adapter: &Adapter, servant: Arc<dyn Servant>) -> Result<(), Refusal> {
        let against_policy = raise::obj_adapter(minor::INCARNATION_AGAINST_POLICY, Completion::No);
        let settled = self.state.map.change(|entries| {
            if self.state.is_unique() && entries.unique_id(&servant).is_some() {
                return Ok(Err(against_policy));
            }
            let inserted = self
                .state
                .insert(entries, adapter, self.id, Arc::clone(&servant), None);
            inserted.map(|_| Ok(()))
        });
        match settled {
            Ok(settled) => settled?,
            // Dropped outside of the change: the drop of an object locks the map.
            Err(_object) => return Err(raise::no_resources(0, Completion::No).into()),
        }
        if self.state.phase() >= Phase::Dying {
            self.state
                .retire_all(self.state.life.etherealize.load(Ordering::Acquire));
            return Err(dying().into());
        }
        Ok(())
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let freed = self.state.map.change(|entries| {
            // If the object was activated, it may be deactivated and reserved by another thread by now.
            let reserved = Entry::Arriving(thread::current().id());
            let is_reserved = entries.ids.get(self.id) == Some(&reserved);
            if is_reserved {
                entries.ids.remove(self.id);
            }
            is_reserved
        });
        if freed {
            self.state.try_end();
        }
    }
}

impl From<ServantManagerError> for Refusal {
    fn from(error: ServantManagerError) -> Self {
        match error {
            ServantManagerError::ForwardRequest(forward) => {
                Self::Forward(forward.forward_reference)
            }
            ServantManagerError::System(exception) => Self::Raise(exception),
        }
    }
}

fn dying() -> SystemException {
    raise::transient(minor::ADAPTER_DESTROYED, Completion::No)
}
