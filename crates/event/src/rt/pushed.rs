//! One pushed event and its marshalled forms, each made when the first consumer needs it.

use std::sync::Arc;

use deckwatch_cdr::{EncodeError, Parse as _, Reader, Write as _, Writer};
use deckwatch_orb::delivery::{Deliveries, Form, Marshalled, Outlet};

use crate::filter::Header;
use crate::rtec_event_comm::{Event, EventHeader};

/// One event on its way to its consumers.
pub(super) struct Pushed<'r> {
    pub(super) header: EventHeader,
    /// The arguments of a push of this event alone, and their octets once they were taken.
    came: Came<'r>,
    event: Option<Arc<Event>>,
    /// Bodies in other forms, and those for other channels.
    bodies: [Option<(bool, Marshalled)>; FORMS],
    next: usize,
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
            bodies: [const { None }; FORMS],
            next: 0,
        }
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

    /// The body for a consumer; for another channel with a lower `ttl`. `None` if there can be none.
    pub(super) fn body(
        &mut self,
        deliveries: &Deliveries,
        outlet: &Outlet,
        is_hop: bool,
    ) -> Option<Marshalled> {
        if !is_hop && let Some(came) = self.came(deliveries, outlet) {
            return Some(came);
        }
        let made = self.bodies.iter().flatten();
        let mut fitting = made.filter(|(hop, body)| *hop == is_hop && outlet.takes(body.form()));
        if let Some((_, body)) = fitting.next() {
            return Some(body.clone());
        }
        let event = self.event()?;
        let mut header = event.header;
        if is_hop {
            header.ttl = (header.ttl - 1).min(crate::limits::TTL_MAX);
        }
        let write = |w: &mut Writer<'_>| {
            w.write_u32(1)?;
            header.write(w)?;
            event.data.write(w)
        };
        let body = deliveries.marshal(outlet.form(), write).ok()?;
        self.bodies[self.next % FORMS] = Some((is_hop, body.clone()));
        self.next += 1;
        Some(body)
    }

    /// The octets as they came, if the consumer takes them.
    fn came(&mut self, deliveries: &Deliveries, outlet: &Outlet) -> Option<Marshalled> {
        if let Came::Arguments(arguments) = self.came {
            let form = Form {
                order: arguments.order(),
                codec: arguments.codec(),
            };
            if !outlet.takes(form) {
                return None;
            }
            self.came = match deliveries.take_arguments(&arguments) {
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

/// Writes a set of several events.
pub(super) fn write_set(events: &[Arc<Event>], w: &mut Writer<'_>) -> Result<(), EncodeError> {
    w.write_u32(events.len() as u32)?;
    events.iter().try_for_each(|event| event.write(w))
}
