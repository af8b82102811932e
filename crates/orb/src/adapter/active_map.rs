//! The active object map of one adapter (CORBA 3.3 part 1, 15.2.1): the state of each id that has, gets or loses a
//! servant.
//!
//! Requests do not read it: the index of names has their slot.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::ThreadId;

use deckwatch_sync::{Bell, PiMutex};

use super::ObjectId;
use super::wait_permits::{Patience, permit};
use crate::{Servant, SlotKey, SystemException};

#[derive(Default)]
pub(super) struct ActiveObjectMap {
    entries: PiMutex<Entries>,
    changed: Bell,
}

#[derive(Default)]
pub(super) struct Entries {
    pub(super) ids: HashMap<ObjectId, Entry>,
    /// Servants by address.
    servants: HashMap<usize, Serving>,
}

/// The state of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// The object is active.
    Active(SlotKey),
    /// A servant activator incarnates it on this thread.
    Arriving(ThreadId),
    /// It is deactivated, and earlier requests are in progress.
    Leaving {
        slot: SlotKey,
        etherealize: bool,
        cleanup: bool,
    },
    /// Its servant is being etherealized.
    Parting,
}

/// The objects of a servant.
struct Serving {
    /// The number of ids that it still serves.
    count: usize,
    /// The id it is active under, under UNIQUE_ID.
    unique: Option<ObjectId>,
}

impl ActiveObjectMap {
    pub(super) fn look<T>(&self, at: impl FnOnce(&Entries) -> T) -> T {
        at(&self.entries.lock("adapter.look"))
    }

    /// Changes the map and wakes the threads that wait for changes.
    pub(super) fn change<T>(&self, by: impl FnOnce(&mut Entries) -> T) -> T {
        let result = by(&mut self.entries.lock("adapter.change"));
        self.tell();
        result
    }

    /// Wakes the threads that wait, which check their condition again.
    pub(super) fn tell(&self) {
        self.changed.ring();
    }

    /// Waits until `ready` returns a value.
    ///
    /// # Errors
    /// TRANSIENT if the thread may not wait.
    pub(super) fn wait_until<T>(
        &self,
        patience: Patience<'_>,
        ready: impl Fn(&Entries) -> Option<T>,
    ) -> Result<T, SystemException> {
        if let Some(value) = self.look(&ready) {
            return Ok(value);
        }
        let _hold = permit(patience)?;
        loop {
            let turn = self.changed.turn();
            if let Some(value) = self.look(&ready) {
                return Ok(value);
            }
            self.changed.wait(turn);
        }
    }

    /// The slot of an active object.
    pub(super) fn slot_of(&self, id: &[u8]) -> Option<SlotKey> {
        self.look(|entries| match entries.ids.get(id) {
            Some(Entry::Active(slot)) => Some(*slot),
            _ => None,
        })
    }

    /// The id a servant is active under, under UNIQUE_ID.
    pub(super) fn id_of(&self, servant: &Arc<dyn Servant>) -> Option<ObjectId> {
        self.look(|entries| entries.unique_id(servant).cloned())
    }
}

impl Entries {
    pub(super) fn unique_id(&self, servant: &Arc<dyn Servant>) -> Option<&ObjectId> {
        self.servants.get(&address(servant))?.unique.as_ref()
    }

    /// Notes that `servant` serves `id` from now on.
    pub(super) fn take_up(
        &mut self,
        id: &ObjectId,
        slot: SlotKey,
        servant: &Arc<dyn Servant>,
        is_unique: bool,
    ) {
        self.ids.insert(id.clone(), Entry::Active(slot));
        let serving = self.servants.entry(address(servant)).or_insert(Serving {
            count: 0,
            unique: None,
        });
        serving.count += 1;
        if is_unique {
            serving.unique = Some(id.clone());
        }
    }

    /// Notes that a servant is no longer active under its id. Requests in progress continue.
    pub(super) fn leave(&mut self, servant: &Arc<dyn Servant>) {
        if let Some(serving) = self.servants.get_mut(&address(servant)) {
            serving.unique = None;
        }
    }

    /// As [`Entries::leave`], for all servants.
    pub(super) fn leave_all(&mut self) {
        for serving in self.servants.values_mut() {
            serving.unique = None;
        }
    }

    /// Removes one id of `servant`. Returns how many are left.
    pub(super) fn let_go(&mut self, servant: &Arc<dyn Servant>) -> usize {
        let at = address(servant);
        let Some(serving) = self.servants.get_mut(&at) else {
            return 0;
        };
        serving.count -= 1;
        let left = serving.count;
        if left == 0 {
            self.servants.remove(&at);
        }
        left
    }
}

/// The address that all handles on one servant have in common.
fn address(servant: &Arc<dyn Servant>) -> usize {
    Arc::as_ptr(servant).cast::<()>().addr()
}
