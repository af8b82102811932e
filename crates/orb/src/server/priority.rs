//! At which priority a request is served, and whether by this lane (RTCORBA 1.2: PriorityModelPolicy, threadpools).
//!
//! The threads of a lane keep their priority: a request comes to the lane of its priority. Those of a pool without lanes
//! take the priority of the request while they serve it.

use std::cell::Cell;
use std::sync::{Arc, Weak};

use deckwatch_giop::Request;
use deckwatch_os::schedule::{self, Class};

use super::outcome::Outcome;
use crate::adapter::{Found, Poa, PoaState, Realtime};
use crate::contexts;
use crate::counters::{Counter, Counters};
use crate::orb::OrbCore;
use crate::rt::current::{self, AtPriority};
use crate::rt::{Priority, PriorityModel};
use crate::{Completion, SystemException};
use crate::{minor, raise, raise::own};

thread_local! {
    /// The class that a thread of a lane has begun in.
    static BEGUN: Cell<Option<Class>> = const { Cell::new(None) };
}

/// The calling thread belongs to a lane, and is in the class that it has there.
pub(crate) fn note_class() {
    BEGUN.set(schedule::class().ok());
}

/// The place of a lane among threadpools and priorities.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolPlace {
    /// The number of its threadpool.
    pub(crate) pool: u32,
    /// The priority of its threads; none: as threads of the process begin.
    pub(crate) priority: Option<Priority>,
    /// It is one of several that are told apart by their priorities, and its threads keep theirs.
    pub(crate) is_lane: bool,
}

/// Finds the priority at which a request is served.
pub(super) struct ServerPriority {
    orb: Weak<OrbCore>,
    counters: Arc<Counters>,
    place: PoolPlace,
}

impl ServerPriority {
    pub(super) const fn new(orb: Weak<OrbCore>, counters: Arc<Counters>, place: PoolPlace) -> Self {
        Self {
            orb,
            counters,
            place,
        }
    }

    /// Whether an adapter asks for no priority and no other pool.
    #[inline]
    pub(super) fn is_plain(&self, realtime: &Realtime) -> bool {
        realtime.is_plain_at(self.place.pool)
    }

    /// Takes the calling thread to the priority of a request that has been found; or says what the request comes to otherwise.
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

    /// Whether this is a lane of the adapter's pool, and that of the priority which the server declares, if it does.
    fn has_ground_for(&self, realtime: &Realtime, declared: Option<Priority>) -> bool {
        realtime.pool.id.0 == self.place.pool
            && (!realtime.pool.has_lanes || declared.is_none() || declared == self.place.priority)
    }

    /// Whether requests for an object are served by this lane. `own`: the priority of the object, where it has one.
    pub(super) fn serves(&self, realtime: &Realtime, own: Option<Priority>) -> bool {
        self.is_plain(realtime) || self.has_ground_for(realtime, realtime.declared(own))
    }

    /// Hears which priorities will come over a connection (`_bind_priority_band`).
    ///
    /// # Errors
    /// BAD_PARAM where it is not said, or cannot be; INV_POLICY where this is a lane whose priority is none of them.
    pub(super) fn bind_band(&self, request: &Request<'_>) -> Result<(), SystemException> {
        let unsaid = raise::bad_param(minor::NONE, Completion::No);
        let (low, high) = contexts::read::priority_range(request)?.ok_or(unsaid)?;
        if low < 0 || low > high {
            return Err(unsaid);
        }
        // Threads of a pool without lanes take any.
        let own = self.place.priority.filter(|_| self.place.is_lane);
        let own = own.map(Priority::value);
        if own.is_some_and(|own| !(low..=high).contains(&own)) {
            return Err(raise::inv_policy(own::LANES_MISSED, Completion::No));
        }
        Ok(())
    }

    /// The lane or pool is not the object's: the caller is told where it is.
    fn send_elsewhere(&self, adapter: &Arc<PoaState>, id: &[u8]) -> Outcome {
        self.counters.count(Counter::LanesMissed);
        match Poa::of(adapter).own_reference(id) {
            Ok(target) => Outcome::Forward(target),
            Err(exception) => Outcome::Raise(exception),
        }
    }

    /// Takes a priority away that a servant has given its thread: it was for the request.
    #[inline]
    pub(super) fn end(&self, before: Option<Priority>) {
        if current::priority() != before {
            self.restore(before);
        }
    }

    #[cold]
    fn restore(&self, before: Option<Priority>) {
        match (before, self.orb.upgrade(), BEGUN.get()) {
            // What the thread has had it may have again.
            (Some(before), Some(orb), _) => drop(orb.enter_priority(before)),
            (None, _, Some(class)) => drop(schedule::set_class(class)),
            // One of the application's, whose class is its own.
            _ => return,
        }
        current::replace(before);
    }

    /// As [`OrbCore::at_priority`], for a request; counted.
    fn at_priority(&self, priority: Priority) -> Result<Option<AtPriority>, SystemException> {
        if current::priority() == Some(priority) {
            return Ok(None);
        }
        let gone = raise::bad_inv_order(minor::ORB_SHUT_DOWN, Completion::No);
        let at_priority = self.orb.upgrade().ok_or(gone)?.at_priority(priority)?;
        self.counters.count(Counter::PriorityChanges);
        Ok(at_priority)
    }
}
