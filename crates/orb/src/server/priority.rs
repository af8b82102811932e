//! The priority at which a request is served, and the lane that serves it (RTCORBA 1.2: PriorityModelPolicy,
//! threadpools).
//!
//! The threads of a lane keep their priority, and clients send a request to the lane of its priority. The threads of a
//! pool without lanes take the priority of each request while they serve it.

use std::cell::Cell;
use std::sync::Arc;

use deckwatch_giop::Request;
use deckwatch_os::schedule::{self, Class};

use super::outcome::Outcome;
use crate::adapter::{Found, Poa, PoaState, Realtime};
use crate::contexts;
use crate::counters::{Counter, Counters};
use crate::rt::current::{self, AtPriority, ThreadPriorities};
use crate::rt::{Priority, PriorityModel};
use crate::{Completion, SystemException};
use crate::{minor, raise, raise::own};

thread_local! {
    /// The scheduling class in which a thread of a lane started.
    static BEGUN: Cell<Option<Class>> = const { Cell::new(None) };
}

/// Notes the scheduling class of the calling thread, which belongs to a lane.
pub(crate) fn note_class() {
    BEGUN.set(schedule::class().ok());
}

/// The place of a lane among threadpools and priorities.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolPlace {
    /// The number of its threadpool.
    pub(crate) pool: u32,
    /// The priority of its threads; `None` if they keep that of the process.
    pub(crate) priority: Option<Priority>,
    /// Its pool has lanes by priority, and its threads keep theirs.
    pub(crate) is_lane: bool,
}

/// Finds the priority at which a request is served.
pub(super) struct ServerPriority {
    priorities: Arc<ThreadPriorities>,
    counters: Arc<Counters>,
    place: PoolPlace,
}

impl ServerPriority {
    pub(super) const fn new(
        priorities: Arc<ThreadPriorities>,
        counters: Arc<Counters>,
        place: PoolPlace,
    ) -> Self {
        Self {
            priorities,
            counters,
            place,
        }
    }

    /// Returns whether requests of an adapter need neither a priority nor another pool.
    #[inline]
    pub(super) fn is_plain(&self, realtime: &Realtime) -> bool {
        realtime.is_plain_at(self.place.pool)
    }

    /// Raises the calling thread to the priority of a request. Returns the outcome as an error if this lane cannot
    /// serve it.
    pub(super) fn enter(
        &self,
        request: &Request<'_>,
        found: &Found<'_>,
    ) -> Result<Option<AtPriority>, Outcome> {
        let (adapter, id, own) = match found {
            Found::Active(_, object) => (&object.adapter, &*object.id, object.priority),
            Found::Inactive { adapter, id } => (adapter, *id, adapter.realtime.reserved(id)),
            Found::Elsewhere(_) => return Ok(None),
        };
        let realtime = &adapter.realtime;
        if self.is_plain(realtime) {
            return Ok(None);
        }
        let declared = realtime.declared(own);
        if !self.has_ground_for(realtime, declared) {
            return Err(self.send_elsewhere(adapter, id));
        }
        let Some(model) = realtime.model.filter(|_| !realtime.pool.has_lanes) else {
            return Ok(None);
        };
        let priority = match (model.priority_model, declared) {
            (PriorityModel::ServerDeclared, Some(declared)) => declared,
            _ => match contexts::read::priority(request) {
                Ok(said) => said.unwrap_or(model.server_priority),
                Err(exception) => return Err(Outcome::Raise(exception)),
            },
        };
        self.at_priority(priority).map_err(Outcome::Raise)
    }

    /// Returns whether this lane belongs to the pool of the adapter and has the priority that the server declares, if
    /// it declares one.
    fn has_ground_for(&self, realtime: &Realtime, declared: Option<Priority>) -> bool {
        realtime.pool.id.0 == self.place.pool
            && (!realtime.pool.has_lanes || declared.is_none() || declared == self.place.priority)
    }

    /// Returns whether this lane serves requests for an object. `own` is the priority of the object itself, if it has
    /// one.
    pub(super) fn serves(&self, realtime: &Realtime, own: Option<Priority>) -> bool {
        self.is_plain(realtime) || self.has_ground_for(realtime, realtime.declared(own))
    }

    /// Checks the priorities that a client will send over a connection (`_bind_priority_band`).
    ///
    /// # Errors
    /// BAD_PARAM if the range is absent or invalid, INV_POLICY if it does not hold the priority of this lane.
    pub(super) fn bind_band(&self, request: &Request<'_>) -> Result<(), SystemException> {
        let unsaid = raise::bad_param(minor::NONE, Completion::No);
        let (low, high) = contexts::read::priority_range(request)?.ok_or(unsaid)?;
        if low < 0 || low > high {
            return Err(unsaid);
        }
        // Threads of a pool without lanes take any priority.
        let own = self.place.priority.filter(|_| self.place.is_lane);
        let own = own.map(Priority::value);
        if own.is_some_and(|own| !(low..=high).contains(&own)) {
            return Err(raise::inv_policy(own::LANES_MISSED, Completion::No));
        }
        Ok(())
    }

    /// Forwards the caller to the pool or lane of the object.
    fn send_elsewhere(&self, adapter: &Arc<PoaState>, id: &[u8]) -> Outcome {
        self.counters.count(Counter::LanesMissed);
        match Poa::of(adapter).own_reference(id) {
            Ok(target) => Outcome::Forward(target),
            Err(exception) => Outcome::Raise(exception),
        }
    }

    /// Restores the priority of the thread if the servant has changed it: such a change is for one request.
    #[inline]
    pub(super) fn end(&self, before: Option<Priority>) {
        if current::priority() != before {
            self.restore(before);
        }
    }

    #[cold]
    fn restore(&self, before: Option<Priority>) {
        match (before, BEGUN.get()) {
            // The host has permitted this priority before.
            (Some(before), _) => drop(self.priorities.enter(before)),
            (None, Some(class)) => drop(schedule::set_class(class)),
            // A thread of the application keeps its class.
            _ => return,
        }
        current::replace(before);
    }

    /// As [`ThreadPriorities::at`], and counts the change.
    fn at_priority(&self, priority: Priority) -> Result<Option<AtPriority>, SystemException> {
        if current::priority() == Some(priority) {
            return Ok(None);
        }
        let at_priority = self.priorities.at(priority)?;
        self.counters.count(Counter::PriorityChanges);
        Ok(at_priority)
    }
}
