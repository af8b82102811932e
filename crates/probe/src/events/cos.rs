//! The push model of a COS event channel (Event Service 1.2, clause 2.5), ours or foreign.

use std::sync::Arc;

use deckwatch_event::client::Connected;
use deckwatch_event::cos_event_channel_admin::{
    ConsumerAdminRef, EventChannelRef, ProxyPushConsumerRef, SupplierAdminRef,
};
use deckwatch_event::cos_event_comm::{PushConsumerPushError, PushConsumerRef};
use deckwatch_event::received::{AnyConsumer, AnyConsumerServant, ReceivedAny};
use deckwatch_orb::{ObjectRef, Orb, SystemException};

use super::channel::{CONSUMER, Channel, SUPPLIER, Sink, Source, activate, proxy, refused};
use super::inbox::Inbox;
use super::{Event, EventsError};

/// A COS event channel.
pub(super) struct CosChannel(EventChannelRef);

impl CosChannel {
    /// Returns the channel that a reference leads to; `None` if its object is of another interface.
    pub(super) fn of(object: &ObjectRef) -> Result<Option<Self>, EventsError> {
        let found = EventChannelRef::narrow(object).map_err(EventsError::Unreachable)?;
        Ok(found.map(Self))
    }
}

impl Channel for CosChannel {
    fn kind(&self) -> &'static str {
        "COS event channel"
    }

    fn has_headers(&self) -> bool {
        false
    }

    fn subscribe(&self, orb: &Orb, inbox: Inbox) -> Result<Box<dyn Source>, EventsError> {
        if inbox.wanted().needs_header() {
            return Err(EventsError::NoHeader);
        }
        let own = activate(orb, Arc::new(AnyConsumerServant::new(Consumer(inbox))))?;
        let own = PushConsumerRef::unchecked_narrow(own);
        let proxy = proxy(
            CONSUMER,
            self.0.for_consumers(),
            ConsumerAdminRef::obtain_push_supplier,
        )?;
        let connected = proxy.connect_push_consumer(Some(&own));
        connected.map_err(|error| refused(CONSUMER, &error))?;
        Ok(Box::new(proxy))
    }

    fn supply(&self, _headers: &[(i32, i32)]) -> Result<Box<dyn Sink>, EventsError> {
        let proxy = proxy(
            SUPPLIER,
            self.0.for_suppliers(),
            SupplierAdminRef::obtain_push_consumer,
        )?;
        let connected = proxy.connect_push_supplier(None);
        connected.map_err(|error| refused(SUPPLIER, &error))?;
        Ok(Box::new(CosSink(proxy)))
    }
}

/// The servant that the channel pushes to.
struct Consumer(Inbox);

impl AnyConsumer for Consumer {
    fn push(&self, event: ReceivedAny<'_>) -> Result<(), PushConsumerPushError> {
        self.0
            .offer(Event::of(event.decode().map_err(SystemException::from)?));
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.0.end();
        Ok(())
    }
}

/// The channel's proxy of our supplier.
struct CosSink(Connected<ProxyPushConsumerRef>);

impl Sink for CosSink {
    fn push(&mut self, event: &Event) -> Result<(), EventsError> {
        let pushed = self.0.push(&event.data);
        pushed.map_err(|error| match error {
            PushConsumerPushError::Disconnected(_) => {
                EventsError::Gone("it has disconnected this supplier".to_owned())
            }
            PushConsumerPushError::System(exception) => refused("an event", &exception),
        })
    }

    /// Each push was two-way: nothing is under way.
    fn flush(&mut self) -> Result<(), EventsError> {
        Ok(())
    }
}
