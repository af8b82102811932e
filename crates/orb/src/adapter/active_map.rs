//! The active object map of one adapter (CORBA 3.3 part 1, 15.2.1): which ids have a servant, are getting one, or lose theirs.
//!
//! Requests do not look here: the index of names tells them the slot.

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

/// What is the case with an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// Its requests are served.
    Active(SlotKey),
    /// A servant activator makes its servant, on this thread.
    Arriving(ThreadId),
    /// It has been deactivated, and requests that came before are being served.
    Leaving {
        slot: SlotKey,
        etherealize: bool,
        cleanup: bool,
    },
    /// The servant activator gets its servant back.
    Parting,
}

/// What a servant serves.
struct Serving {
    /// Ids that have not lost it yet.
    count: usize,
    /// The id it is active under, where it may have one only.
    unique: Option<ObjectId>,
}

impl ActiveObjectMap {
    pub(super) fn look<T>(&self, at: impl FnOnce(&Entries) -> T) -> T {
        at(&self.entries.lock("adapter.look"))
    }

    /// Changes the map and wakes those who wait for that.
    pub(super) fn change<T>(&self, by: impl FnOnce(&mut Entries) -> T) -> T {
        let result = by(&mut self.entries.lock("adapter.change"));
        self.tell();
        result
    }

    /// Wakes those who wait: what they wait for may be so now.
    pub(super) fn tell(&self) {
        self.changed.ring();
    }

    /// Waits until `ready` gives something.
    ///
    /// # Errors
    /// TRANSIENT where the thread may not wait.
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

    /// The id a servant is active under, where it may have one only.
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

    /// The servant is not active under its id any more, but serves on.
    pub(super) fn leave(&mut self, servant: &Arc<dyn Servant>) {
        if let Some(serving) = self.servants.get_mut(&address(servant)) {
            serving.unique = None;
        }
    }

    /// As [`Entries::leave`], for all.
    pub(super) fn leave_all(&mut self) {
        for serving in self.servants.values_mut() {
            serving.unique = None;
        }
    }

    /// Notes that `servant` has served one of its ids to the end; how many are left.
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

/// Two handles on one servant have one address.
fn address(servant: &Arc<dyn Servant>) -> usize {
    Arc::as_ptr(servant).cast::<()>().addr()
}
