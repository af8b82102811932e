//! At which priority a request is served, and whether by this lane (RTCORBA 1.2: PriorityModelPolicy, threadpools).
//!
//! The threads of a lane keep their priority: a request comes to the lane of its priority. Those of a pool without lanes
//! take the priority of the request while they serve it.

use std::cell::Cell;
use std::sync::Arc;

use deckwatch_giop::Request;
use deckwatch_os::schedule::{self, Class};

use super::dispatch::Outcome;
use super::upcall::Upcall;
use crate::adapter::{Found, Poa, PoaState, Realtime, Whereabouts};
use crate::contexts;
use crate::counters::Counter;
use crate::lane::Lane;
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

impl Lane {
    /// Takes the calling thread to the priority of a request that has been found; or says what the request comes to otherwise.
    pub(crate) fn take_ground(
        &self,
        upcall: &Upcall<'_>,
        found: &Found<'_>,
    ) -> Result<Option<AtPriority>, Outcome> {
        let (adapter, id, own) = match found {
            Found::Active(_, object) => (&object.adapter, &*object.id, object.priority),
            Found::Inactive { adapter, id } => (adapter, *id, adapter.reserved_priority(id)),
            Found::Elsewhere(_) => return Ok(None),
        };
        let realtime = &adapter.realtime;
        if realtime.is_plain_at(self.station.pool) {
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
            _ => match contexts::read::priority(upcall.request) {
                Ok(said) => said.unwrap_or(model.server_priority),
                Err(exception) => return Err(Outcome::Raise(exception)),
            },
        };
        self.at_priority_of_request(priority)
            .map_err(Outcome::Raise)
    }

    /// Whether this is a lane of the adapter's pool, and that of the priority which the server declares, if it does.
    fn has_ground_for(&self, realtime: &Realtime, declared: Option<Priority>) -> bool {
        realtime.pool.id.0 == self.station.pool
            && (!realtime.pool.has_lanes || declared.is_none() || declared == self.station.priority)
    }

    /// Where the object of a key is: a lane that would send its requests elsewhere says so when it is asked.
    pub(crate) fn locate(&self, key: &[u8]) -> Whereabouts {
        let whereabouts = self.adapter.locate(key, Some(&self.wait_permits));
        let is_here = matches!(whereabouts, Whereabouts::Here);
        let Some(found) = self.adapter.find_at_once(key).filter(|_| is_here) else {
            return whereabouts;
        };
        let (adapter, id, own) = match &found {
            Found::Active(_, object) => (&object.adapter, &*object.id, object.priority),
            Found::Inactive { adapter, id } => (adapter, *id, adapter.reserved_priority(id)),
            Found::Elsewhere(_) => return whereabouts,
        };
        let realtime = &adapter.realtime;
        if realtime.is_plain_at(self.station.pool)
            || self.has_ground_for(realtime, realtime.declared(own))
        {
            return whereabouts;
        }
        let target = Poa::of(adapter).own_reference(id);
        target.map_or(whereabouts, Whereabouts::Elsewhere)
    }

    /// Hears which priorities will come over a connection (`_bind_priority_band`).
    ///
    /// # Errors
    /// BAD_PARAM where it is not said, or cannot be; INV_POLICY where this is a lane whose priority is none of them.
    pub(crate) fn bind_band(&self, request: &Request<'_>) -> Result<(), SystemException> {
        let unsaid = raise::bad_param(minor::NONE, Completion::No);
        let (low, high) = contexts::read::priority_range(request)?.ok_or(unsaid)?;
        if low < 0 || low > high {
            return Err(unsaid);
        }
        // Threads of a pool without lanes take any.
        let own = self.station.priority.filter(|_| self.station.is_lane);
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

    /// Takes a thread of another lane to the priority of this one. Where the host does not permit it any more it serves as it is.
    pub(crate) fn lend_priority(&self) -> Option<AtPriority> {
        self.orb.upgrade()?.lend_priority(self.station.priority)
    }

    /// Takes a priority away that a servant has given its thread: it was for the request.
    #[inline]
    pub(crate) fn end_priority(&self, before: Option<Priority>) {
        if current::priority() != before {
            self.restore_priority(before);
        }
    }

    #[cold]
    fn restore_priority(&self, before: Option<Priority>) {
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
    fn at_priority_of_request(
        &self,
        priority: Priority,
    ) -> Result<Option<AtPriority>, SystemException> {
        if current::priority() == Some(priority) {
            return Ok(None);
        }
        let gone = raise::bad_inv_order(minor::ORB_SHUT_DOWN, Completion::No);
        let at_priority = self.orb.upgrade().ok_or(gone)?.at_priority(priority)?;
        self.counters.count(Counter::PriorityChanges);
        Ok(at_priority)
    }
}
