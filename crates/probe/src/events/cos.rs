//! The push model of a COS event channel (Event Service 1.2, clause 2.5), ours or foreign.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use deckwatch_cdr::Any;
use deckwatch_event::cos_event_channel_admin::{
    EventChannelRef, ProxyPushConsumerRef, ProxyPushSupplierRef,
};
use deckwatch_event::cos_event_comm::{
    PushConsumer, PushConsumerPushError, PushConsumerRef, PushConsumerSkeleton,
};
use deckwatch_orb::{ObjectRef, Orb, Servant, SystemException};

use super::channel::{Channel, Sink, Source};
use super::inbox::Inbox;
use super::{Event, EventsError};
use crate::limits::{CHANNEL_CHECK_TIMEOUT, FAREWELL_TIMEOUT};

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
        let poa = orb.root_poa().map_err(|error| refused(WHAT, &error))?;
        poa.the_poa_manager()
            .activate()
            .map_err(|error| EventsError::Orb(error.to_string()))?;
        let servant: Arc<dyn Servant> = Arc::new(PushConsumerSkeleton::new(Consumer(inbox)));
        let own = PushConsumerRef::unchecked_narrow(poa.servant_to_reference(&servant)?);
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

fn refused(what: &'static str, error: &dyn Display) -> EventsError {
    EventsError::Refused {
        what,
        reason: error.to_string(),
    }
}

fn nil(what: &'static str) -> EventsError {
    refused(what, &"it returned a nil reference")
}

/// The servant that the channel pushes to.
struct Consumer(Inbox);

impl PushConsumer for Consumer {
    fn push<'a>(&'a self, data: &'a Any) -> Result<(), PushConsumerPushError> {
        self.0.offer(Event { data: data.clone() });
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
        let hurried = within(self.0.object(), CHANNEL_CHECK_TIMEOUT);
        match hurried.non_existent() {
            Ok(false) => Ok(()),
            Ok(true) => Err(EventsError::Gone("it has dropped this consumer".to_owned())),
            Err(exception) => Err(EventsError::Gone(exception.to_string())),
        }
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

fn within(object: &ObjectRef, limit: Duration) -> ObjectRef {
    object.with_round_trip_timeout(Some(limit))
}
