//! The active objects of a channel: its administrations and proxies, by number.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use deckwatch_orb::{ObjectId, ObjectRef, Servant, SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::PiMutex;

use crate::home::Home;
use crate::limits;
use crate::raise::raise;

/// The active objects of one channel.
pub(crate) struct Objects {
    pub(crate) home: Home,
    active: PiMutex<Active>,
}

#[derive(Default)]
struct Active {
    ids: HashMap<u64, ObjectId>,
    /// Proxies without a connected client, the oldest first.
    waiting: VecDeque<u64>,
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

    /// Activates a proxy that waits for a client to connect. If too many wait, the oldest is retired.
    ///
    /// # Errors
    /// As [`Objects::activate`].
    pub(crate) fn offer(
        &self,
        number: u64,
        servant: Arc<dyn Servant>,
    ) -> Result<ObjectRef, SystemException> {
        let reference = self.activate(number, servant)?;
        let oldest = {
            let mut active = self.active.lock("event.objects");
            active.waiting.push_back(number);
            let is_full = active.waiting.len() > limits::PROXIES_WAITING_MAX;
            is_full.then(|| active.waiting.pop_front()).flatten()
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
        active.waiting.retain(|waiting| *waiting != number);
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
            active.waiting.retain(|waiting| *waiting != number);
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
