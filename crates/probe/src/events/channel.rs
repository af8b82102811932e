//! The kinds of channel, behind one trait.

use std::fmt::Display;
use std::sync::Arc;

use deckwatch_event::client::{Connected, Proxy};
use deckwatch_orb::{ObjectRef, Orb, Servant, SystemException};
use deckwatch_text::escaped;

use super::cos::CosChannel;
use super::inbox::Inbox;
use super::realtime::RealTimeChannel;
use super::status::consumer_report;
use super::{Event, EventsError};
use crate::limits::{CHANNEL_CHECK_TIMEOUT, FAREWELL_TIMEOUT};

/// A channel of one kind.
pub trait Channel: Send {
    /// Returns the name of the kind, for the user.
    fn kind(&self) -> &'static str;

    /// Whether its events have a header and a payload beside their value.
    fn has_headers(&self) -> bool;

    /// Connects a consumer. The events that it receives go to `inbox`. The servant is active in `orb`, which listens.
    ///
    /// # Errors
    /// [`EventsError`] if the channel does not answer or refuses.
    fn subscribe(&self, orb: &Orb, inbox: Inbox) -> Result<Box<dyn Source>, EventsError>;

    /// Connects a supplier of events with these headers: pairs of type and source. An event with another header is
    /// sent, too, once the supplier is connected anew. A COS channel has no headers.
    ///
    /// # Errors
    /// [`EventsError`] if the channel does not answer or refuses.
    fn supply(&self, headers: &[(i32, i32)]) -> Result<Box<dyn Sink>, EventsError>;
}

/// A connected consumer. Dropping it disconnects it, so that no proxy stays in the channel.
pub trait Source: Send {
    /// Asks the channel whether it still has this consumer.
    ///
    /// # Errors
    /// [`EventsError::Gone`] if it has not, or does not answer.
    fn check(&self) -> Result<(), EventsError>;

    /// The events of this consumer that the channel has dropped; `None` if it does not report them.
    fn dropped(&self) -> Option<u64>;
}

/// A connected supplier. Dropping it disconnects it, so that no proxy stays in the channel.
pub trait Sink: Send {
    /// Sends one event. The channel has taken it once [`Sink::flush`] has returned.
    ///
    /// # Errors
    /// [`EventsError`] if the channel does not take it.
    fn push(&mut self, event: &Event) -> Result<(), EventsError>;

    /// Waits until the channel has taken all events that were sent.
    ///
    /// # Errors
    /// [`EventsError`] if the channel may not have taken the last ones.
    fn flush(&mut self) -> Result<(), EventsError>;
}

/// Finds the kind of a channel: from the type in its reference, else by `_is_a`.
///
/// # Errors
/// [`EventsError::NotAChannel`]; [`EventsError::Unreachable`] if the object does not answer.
pub fn open(object: &ObjectRef) -> Result<Box<dyn Channel>, EventsError> {
    if let Some(channel) = CosChannel::of(object)? {
        return Ok(Box::new(channel));
    }
    if let Some(channel) = RealTimeChannel::of(object)? {
        return Ok(Box::new(channel));
    }
    Err(EventsError::NotAChannel(match object.type_id() {
        "" => "no type".to_owned(),
        id => escaped(id).to_string(),
    }))
}

/// Activates the servant of a consumer.
pub(super) fn activate(orb: &Orb, servant: Arc<dyn Servant>) -> Result<ObjectRef, EventsError> {
    let failed = |error: &dyn Display| EventsError::Orb(error.to_string());
    let poa = orb.root_poa().map_err(|error| failed(&error))?;
    let manager = poa.the_poa_manager();
    manager.activate().map_err(|error| failed(&error))?;
    Ok(poa.servant_to_reference(&servant)?)
}

/// Obtains the proxy of a client; `what` is [`CONSUMER`] or [`SUPPLIER`].
pub(super) fn proxy<A, P: Proxy>(
    what: &'static str,
    admin: Result<Option<A>, SystemException>,
    obtain: impl FnOnce(&A) -> Result<Option<P>, SystemException>,
) -> Result<Connected<P>, EventsError> {
    let proxy = Connected::obtain(admin, obtain, FAREWELL_TIMEOUT);
    proxy.map_err(|error| refused(what, &error))
}

/// What a channel refuses.
pub(super) const CONSUMER: &str = "a consumer";
pub(super) const SUPPLIER: &str = "a supplier";

impl<P: Proxy + Send> Source for Connected<P> {
    fn check(&self) -> Result<(), EventsError> {
        let hurried = self
            .reference()
            .with_round_trip_timeout(Some(CHANNEL_CHECK_TIMEOUT));
        match hurried.non_existent() {
            Ok(false) => Ok(()),
            Ok(true) => Err(EventsError::Gone("it has dropped this consumer".to_owned())),
            Err(exception) => Err(EventsError::Gone(exception.to_string())),
        }
    }

    fn dropped(&self) -> Option<u64> {
        let report = consumer_report(self.reference()).ok().flatten();
        report.map(|report| report.dropped)
    }
}

pub(super) fn refused(what: &'static str, error: &dyn Display) -> EventsError {
    EventsError::Refused {
        what,
        reason: error.to_string(),
    }
}
