//! One pushed event and its marshalled forms, each made when the first consumer needs it.

use std::sync::Arc;

use deckwatch_cdr::{EncodeError, Parse as _, Reader, Write as _, Writer};
use deckwatch_orb::delivery::{Form, Marshalled, Outlet};

use super::hop::Hop;
use super::shared::Shared;
use crate::deckwatch_federation::EventId;
use crate::filter::Header;
use crate::kept::Kept;
use crate::limits::TTL_MAX;
use crate::rtec_event_comm::{Event, EventHeader};

/// One event on its way to its consumers.
pub(super) struct Pushed<'r> {
    pub(super) header: EventHeader,
    /// The arguments of a push of this event alone, and their octets once they were taken.
    came: Came<'r>,
    event: Option<Arc<Event>>,
    /// The event for conjunctions.
    held: Option<HeldEvent>,
    /// Bodies in other forms, and those for other channels; `None` for one that cannot be made.
    bodies: [Option<(Shape, Form, Option<Marshalled>)>; FORMS],
    next: usize,
    /// Its identity among federated channels, once it has one.
    id: Option<EventId>,
    /// The identity of the channel or the group that it came from; 0 for a supplier.
    sender: u64,
}

/// An event that a conjunction may keep.
pub(super) type HeldEvent = Arc<Kept<Arc<Event>>>;

/// Charges an event to the channel's bound. Returns `None` without room.
pub(super) fn keep(event: Arc<Event>, shared: &Shared) -> Option<HeldEvent> {
    let data = &event.data;
    let size = size_of::<Event>() + data.payload.len() + data.any_value.size();
    Kept::new(event, size, &shared.kept, &shared.deliveries)
}

/// What stands in a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// The set as it came.
    Same,
    /// The set, with another `ttl`.
    Ttl(i32),
    /// The arguments of `forward`.
    Forward,
}

enum Came<'r> {
    Arguments(Reader<'r>),
    Taken(Reader<'r>, Marshalled),
    /// They depend on where they stood in their message.
    Bound(Reader<'r>),
    /// The event came with others, or was made here.
    Apart,
}

/// Forms that are kept: byte orders and code sets of the consumers of one event mostly agree.
const FORMS: usize = 4;

impl<'r> Pushed<'r> {
    /// An event that was pushed alone. Only its header is read.
    pub(super) fn alone(arguments: Reader<'r>, header: EventHeader) -> Self {
        Self::new(header, Came::Arguments(arguments), None)
    }

    pub(super) fn of(event: Event) -> Self {
        Self::new(event.header, Came::Apart, Some(Arc::new(event)))
    }

    fn new(header: EventHeader, came: Came<'r>, event: Option<Arc<Event>>) -> Self {
        Self {
            header,
            came,
            event,
            held: None,
            bodies: [const { None }; FORMS],
            next: 0,
            id: None,
            sender: 0,
        }
    }

    /// An event that came from another channel or from a group.
    pub(super) fn having_come(self, id: Option<EventId>, sender: u64) -> Self {
        Self { id, sender, ..self }
    }

    /// Returns true if the event came from this channel, directly or not.
    pub(super) fn came_from(&self, channel: u64) -> bool {
        self.sender == channel || self.id.is_some_and(|id| id.channel == channel)
    }

    /// The bodies that were made for consumers.
    pub(super) fn into_bodies(self) -> impl Iterator<Item = Marshalled> {
        let came = match self.came {
            Came::Taken(_, body) => Some(body),
            Came::Arguments(_) | Came::Bound(_) | Came::Apart => None,
        };
        let others = self.bodies.into_iter().flatten();
        let others = others.filter_map(|(_, _, body)| body);
        came.into_iter().chain(others)
    }

    /// What filters read.
    pub(super) fn key(&self) -> Header {
        Header {
            event_type: self.header.r#type,
            source: self.header.source,
        }
    }

    /// The whole event. `None` if its octets are malformed.
    pub(super) fn event(&mut self) -> Option<Arc<Event>> {
        if self.event.is_none() {
            let (Came::Arguments(arguments) | Came::Taken(arguments, _) | Came::Bound(arguments)) =
                &self.came
            else {
                return None;
            };
            let mut r = *arguments;
            let events = Vec::<Event>::parse(&mut r).ok()?;
            self.event = events.into_iter().next().map(Arc::new);
        }
        self.event.clone()
    }

    /// The whole event, as conjunctions keep it. `None` if its octets are malformed, or have no room.
    pub(super) fn held(&mut self, shared: &Shared) -> Option<HeldEvent> {
        if self.held.is_none() {
            self.held = keep(self.event()?, shared);
        }
        self.held.clone()
    }

    /// The body for a consumer. `None` if there can be none.
    pub(super) fn body(
        &mut self,
        shared: &Shared,
        outlet: &Outlet,
        hop: Hop,
    ) -> Option<Marshalled> {
        let shape = match hop {
            Hop::None => Shape::Same,
            Hop::Gateway if self.header.ttl <= TTL_MAX => Shape::Same,
            Hop::Gateway => Shape::Ttl(TTL_MAX),
            Hop::Proxy => Shape::Ttl(lowered(self.header.ttl)),
            Hop::Channel(_) => Shape::Forward,
        };
        if shape == Shape::Same
            && let Some(came) = self.came(shared, outlet)
        {
            return Some(came);
        }
        let mut made = self.bodies.iter().flatten();
        let is_fitting =
            |(made, form, _): &&(Shape, Form, _)| *made == shape && outlet.takes(*form);
        if let Some((_, _, body)) = made.find(is_fitting) {
            return body.clone();
        }
        let event = self.event()?;
        let mut header = event.header;
        match shape {
            Shape::Same => {}
            Shape::Ttl(ttl) => header.ttl = ttl,
            Shape::Forward => header.ttl = lowered(header.ttl),
        }
        let hops = &shared.hops;
        let id = (shape == Shape::Forward).then(|| *self.id.get_or_insert_with(|| hops.next_id()));
        let write = |w: &mut Writer<'_>| {
            if let Some(id) = id {
                id.write(w)?;
                hops.identity().write(w)?;
            }
            w.write_u32(1)?;
            header.write(w)?;
            event.data.write(w)
        };
        let form = outlet.form();
        // What has no room for one consumer has none for the next: it is not tried again.
        let body = shared.deliveries.marshal(form, write).ok();
        self.bodies[self.next % FORMS] = Some((shape, form, body.clone()));
        self.next += 1;
        body
    }

    /// The octets as they came, if the consumer takes them.
    fn came(&mut self, shared: &Shared, outlet: &Outlet) -> Option<Marshalled> {
        if let Came::Arguments(arguments) = self.came {
            let form = Form {
                order: arguments.order(),
                codec: arguments.codec(),
            };
            if !outlet.takes(form) {
                return None;
            }
            self.came = match shared.deliveries.take_arguments(&arguments) {
                Ok(Some(body)) => Came::Taken(arguments, body),
                _ => Came::Bound(arguments),
            };
        }
        match &self.came {
            Came::Taken(_, body) if outlet.takes(body.form()) => Some(body.clone()),
            _ => None,
        }
    }
}

/// The `ttl` with which an event reaches another channel.
pub(super) fn lowered(ttl: i32) -> i32 {
    ttl.saturating_sub(1).min(TTL_MAX)
}

/// Writes a set of several events, each with this `ttl` in place of its own.
pub(super) fn write_set(
    events: &[HeldEvent],
    ttl: impl Fn(i32) -> i32,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    w.write_u32(events.len() as u32)?;
    events.iter().try_for_each(|held| {
        let mut header = held.event.header;
        header.ttl = ttl(header.ttl);
        header.write(w)?;
        held.event.data.write(w)
    })
}
