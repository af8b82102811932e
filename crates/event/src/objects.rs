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
    /// By the number of the proxy or administration; a typed proxy has two.
    ids: HashMap<u64, Vec<ObjectId>>,
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

    /// Activates an object; [`Objects::retire`] deactivates it by `number`.
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
        active.ids.entry(number).or_default().push(id);
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

    /// Deactivates the objects with this number.
    pub(crate) fn retire(&self, number: u64) {
        let ids = {
            let mut active = self.active.lock("event.objects");
            active.waiting.remove(number);
            active.ids.remove(&number)
        };
        for id in ids.unwrap_or_default() {
            self.home.deactivate(&id);
        }
        self.home.forget_later(number);
    }

    /// Deactivates all objects, and activates no more.
    pub(crate) fn retire_all(&self) {
        let ids = {
            let mut active = self.active.lock("event.objects");
            active.is_closed = true;
            active.waiting.clear();
            std::mem::take(&mut active.ids)
        };
        for id in ids.into_values().flatten() {
            self.home.deactivate(&id);
        }
    }

    /// Returns true if the reference is to one of these objects.
    pub(crate) fn is_own(&self, reference: &ObjectRef) -> bool {
        let Some(id) = self.home.own_id(reference) else {
            return false;
        };
        let active = self.active.lock("event.objects");
        active.ids.values().flatten().any(|own| *own == id)
    }
}
