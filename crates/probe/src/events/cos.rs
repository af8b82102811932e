//! The push model of a COS event channel (Event Service 1.2, clause 2.5), ours or foreign.

use std::sync::Arc;

use deckwatch_cdr::Any;
use deckwatch_event::cos_event_channel_admin::{
    EventChannelRef, ProxyPushConsumerRef, ProxyPushSupplierRef,
};
use deckwatch_event::cos_event_comm::{
    PushConsumer, PushConsumerPushError, PushConsumerRef, PushConsumerSkeleton,
};
use deckwatch_orb::{ObjectRef, Orb, SystemException};

use super::channel::{Channel, Sink, Source, activate, check, nil, refused, within};
use super::inbox::Inbox;
use super::{Event, EventsError};
use crate::limits::FAREWELL_TIMEOUT;

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

    fn subscribe(&self, orb: &Orb, inbox: Inbox) -> Result<Box<dyn Source>, EventsError> {
        const WHAT: &str = "a consumer";
        if inbox.wanted().needs_header() {
            return Err(EventsError::NoHeader);
        }
        let own = activate(orb, Arc::new(PushConsumerSkeleton::new(Consumer(inbox))))?;
        let own = PushConsumerRef::unchecked_narrow(own);
        let admin = self
            .0
            .for_consumers()
            .map_err(|error| refused(WHAT, &error))?;
        let admin = admin.ok_or_else(|| nil(WHAT))?;
        let proxy = admin.obtain_push_supplier();
        let proxy = proxy.map_err(|error| refused(WHAT, &error))?;
        // From here on the proxy is disconnected whatever happens.
        let source = CosSource(proxy.ok_or_else(|| nil(WHAT))?);
        source
            .0
            .connect_push_consumer(Some(&own))
            .map_err(|error| refused(WHAT, &error))?;
        Ok(Box::new(source))
    }

    fn supply(&self) -> Result<Box<dyn Sink>, EventsError> {
        const WHAT: &str = "a supplier";
        let admin = self
            .0
            .for_suppliers()
            .map_err(|error| refused(WHAT, &error))?;
        let admin = admin.ok_or_else(|| nil(WHAT))?;
        let proxy = admin.obtain_push_consumer();
        let proxy = proxy.map_err(|error| refused(WHAT, &error))?;
        let sink = CosSink(proxy.ok_or_else(|| nil(WHAT))?);
        sink.0
            .connect_push_supplier(None)
            .map_err(|error| refused(WHAT, &error))?;
        Ok(Box::new(sink))
    }
}

/// The servant that the channel pushes to.
struct Consumer(Inbox);

impl PushConsumer for Consumer {
    fn push<'a>(&'a self, data: &'a Any) -> Result<(), PushConsumerPushError> {
        self.0.offer(Event::of(data.clone()));
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.0.end();
        Ok(())
    }
}

/// The channel's proxy of our consumer.
struct CosSource(ProxyPushSupplierRef);

impl Source for CosSource {
    fn check(&self) -> Result<(), EventsError> {
        check(self.0.object())
    }
}

impl Drop for CosSource {
    fn drop(&mut self) {
        let hurried =
            ProxyPushSupplierRef::unchecked_narrow(within(self.0.object(), FAREWELL_TIMEOUT));
        // Fails if the channel has ended; then there is nothing to disconnect.
        let _ = hurried.disconnect_push_supplier();
    }
}

/// The channel's proxy of our supplier.
struct CosSink(ProxyPushConsumerRef);

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
}

impl Drop for CosSink {
    fn drop(&mut self) {
        let hurried =
            ProxyPushConsumerRef::unchecked_narrow(within(self.0.object(), FAREWELL_TIMEOUT));
        // As above.
        let _ = hurried.disconnect_push_consumer();
    }
}
