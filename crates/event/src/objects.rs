//! The active objects of a channel: its administrations and proxies, by number.

use std::collections::HashMap;
use std::sync::Arc;

use deckwatch_orb::{ObjectId, ObjectRef, Servant, SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::PiMutex;

use crate::home::Home;
use crate::peers::{Shares, WaitingProxies};
use crate::raise::raise;

/// The active objects of one channel.
pub(crate) struct Objects {
    pub(crate) home: Home,
    active: PiMutex<Active>,
}

#[derive(Default)]
struct Active {
    ids: HashMap<u64, ObjectId>,
    waiting: WaitingProxies,
    is_closed: bool,
}

impl Objects {
    pub(crate) fn new(home: Home) -> Self {
        Self {
            home,
            active: PiMutex::default(),
        }
    }

    /// Activates an object.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST once all objects were retired; the exceptions of the adapter.
    pub(crate) fn activate(
        &self,
        number: u64,
        servant: Arc<dyn Servant>,
    ) -> Result<ObjectRef, SystemException> {
        let (id, reference) = self.home.activate(number, servant)?;
        let mut active = self.active.lock("event.objects");
        if active.is_closed {
            drop(active);
            self.home.deactivate(&id);
            return Err(raise(Kind::ObjectNotExist));
        }
        active.ids.insert(number, id);
        Ok(reference)
    }

    /// Activates a proxy that waits for a client of the calling peer to connect. If too many wait, the oldest is
    /// retired.
    ///
    /// # Errors
    /// As [`Objects::activate`].
    pub(crate) fn offer(
        &self,
        number: u64,
        servant: Arc<dyn Servant>,
        shares: &Shares,
    ) -> Result<ObjectRef, SystemException> {
        let reference = self.activate(number, servant)?;
        let oldest = {
            let mut active = self.active.lock("event.objects");
            let share = shares.waiting_max();
            active.waiting.push(number, shares.caller(), share)
        };
        if let Some(oldest) = oldest {
            self.retire(oldest);
        }
        Ok(reference)
    }

    /// Marks a proxy as connected.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if the proxy has been retired.
    pub(crate) fn settle(&self, number: u64) -> Result<(), SystemException> {
        let mut active = self.active.lock("event.objects");
        active.waiting.remove(number);
        if active.ids.contains_key(&number) {
            Ok(())
        } else {
            Err(raise(Kind::ObjectNotExist))
        }
    }

    /// Deactivates an object.
    pub(crate) fn retire(&self, number: u64) {
        let id = {
            let mut active = self.active.lock("event.objects");
            active.waiting.remove(number);
            active.ids.remove(&number)
        };
        if let Some(id) = id {
            self.home.deactivate(&id);
            self.home.forget_later(number);
        }
    }

    /// Deactivates all objects, and activates no more.
    pub(crate) fn retire_all(&self) {
        let ids = {
            let mut active = self.active.lock("event.objects");
            active.is_closed = true;
            active.waiting.clear();
            std::mem::take(&mut active.ids)
        };
        for id in ids.into_values() {
            self.home.deactivate(&id);
        }
    }

    /// Returns true if the reference is to one of these objects.
    pub(crate) fn is_own(&self, reference: &ObjectRef) -> bool {
        let Some(id) = self.home.own_id(reference) else {
            return false;
        };
        let active = self.active.lock("event.objects");
        active.ids.values().any(|own| *own == id)
    }
}
