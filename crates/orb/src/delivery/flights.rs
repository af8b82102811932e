//! Requests under way on one connection, found by their ids without a search and without an allocation per request.

use std::sync::Arc;
use std::time::Duration;

use super::Marshalled;
use super::outlet::Outlet;
use crate::limits::DELIVERIES_UNDER_WAY_MAX;
use crate::transport::Instant64;

/// Requests under way. A request id is a place in the lower half and the place's generation in the upper half.
#[derive(Default)]
pub(super) struct Flights {
    places: Vec<Place>,
    free: Vec<u16>,
}

struct Place {
    generation: u16,
    flight: Option<Flight>,
}

/// A request under way.
pub(super) struct Flight {
    pub(super) outlet: Arc<Outlet>,
    /// What it carries, for the case that its receiver has certainly not served it. The bound may have taken it away.
    pub(super) event: Option<Marshalled>,
    pub(super) since: Instant64,
}

impl Flight {
    /// It is the question whether the receiver of one-ways exists.
    pub(super) fn is_question(&self) -> bool {
        self.outlet.is_oneway()
    }
}

impl Flights {
    /// Returns the id of a new request; `None` at [`DELIVERIES_UNDER_WAY_MAX`].
    pub(super) fn begin(
        &mut self,
        outlet: &Arc<Outlet>,
        event: Option<Marshalled>,
        since: Instant64,
    ) -> Option<u32> {
        let outlet = Arc::clone(outlet);
        let flight = Some(Flight {
            outlet,
            event,
            since,
        });
        if let Some(index) = self.free.pop() {
            let place = &mut self.places[usize::from(index)];
            place.flight = flight;
            return Some(u32::from(place.generation) << 16 | u32::from(index));
        }
        let index = u16::try_from(self.places.len()).ok()?;
        debug_assert!(self.places.len() < DELIVERIES_UNDER_WAY_MAX);
        let generation = 0;
        self.places.push(Place { generation, flight });
        Some(u32::from(index))
    }

    /// Ends a request; `None`: no such request is under way.
    pub(super) fn end(&mut self, id: u32) -> Option<Flight> {
        let index = (id & 0xffff) as u16;
        let place = self.places.get_mut(usize::from(index))?;
        if u32::from(place.generation) != id >> 16 {
            return None;
        }
        let flight = place.flight.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(index);
        Some(flight)
    }

    /// Ends every request for which `is_over` holds, and hands it to `ended`.
    pub(super) fn end_where(
        &mut self,
        is_over: impl Fn(&Flight) -> bool,
        mut ended: impl FnMut(Flight),
    ) {
        for (index, place) in self.places.iter_mut().enumerate() {
            if let Some(flight) = place.flight.take_if(|flight| is_over(flight)) {
                place.generation = place.generation.wrapping_add(1);
                self.free.push(index as u16);
                ended(flight);
            }
        }
    }

    /// Ends the requests that have been under way for `limit`.
    pub(super) fn end_late(&mut self, now: Instant64, limit: Duration, ended: impl FnMut(Flight)) {
        self.end_where(|flight| now.since(flight.since) >= limit, ended);
    }

    /// The number of the oldest event that a request carries.
    pub(super) fn oldest(&self) -> Option<u64> {
        let flights = self.places.iter().filter_map(|place| place.flight.as_ref());
        let events = flights.filter_map(|flight| flight.event.as_ref());
        events.map(Marshalled::number).min()
    }

    /// Drops the events of the requests for which `is_its` holds: they are not sent again.
    pub(super) fn drop_events(&mut self, is_its: impl Fn(&Flight) -> bool) {
        let flights = self
            .places
            .iter_mut()
            .filter_map(|place| place.flight.as_mut());
        for flight in flights.filter(|flight| is_its(flight)) {
            flight.event = None;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }
}
