//! A servant that records the priorities at which another servant is called.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use deckwatch_orb::{Orb, Priority, Servant, ServerRequest, SystemException};

/// Passes every request to the inner servant.
pub(crate) struct Watched {
    orb: Orb,
    inner: Arc<dyn Servant>,
    seen: Mutex<BTreeSet<i16>>,
}

impl Watched {
    pub(crate) fn new(orb: &Orb, inner: Arc<dyn Servant>) -> Arc<Self> {
        Arc::new(Self {
            orb: orb.clone(),
            inner,
            seen: Mutex::default(),
        })
    }

    /// Returns and removes the recorded priorities, in ascending order. -1 stands for a thread without a priority.
    pub(crate) fn take(&self) -> Vec<i16> {
        let seen = std::mem::take(&mut *self.seen.lock().expect("nobody panics holding it"));
        seen.into_iter().collect()
    }
}

impl Servant for Watched {
    fn repository_ids(&self) -> &'static [&'static str] {
        self.inner.repository_ids()
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let priority = self.orb.rt_current().the_priority();
        let number = priority.map_or(-1, Priority::value);
        self.seen
            .lock()
            .expect("nobody panics holding it")
            .insert(number);
        self.inner.dispatch(request)
    }
}
