//! The carrier `event`: an event channel, found through Naming, on the supplier's host; both sides push. The `any` of an event has the flow's type.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;

use deckwatch_cdr::Any;
use deckwatch_event::cos_event_channel_admin::{
    EventChannelRef, ProxyPushConsumerRef, ProxyPushSupplierRef,
};
use deckwatch_event::cos_event_comm::{
    PushConsumer, PushConsumerPushError, PushConsumerRef, PushConsumerSkeleton,
};
use deckwatch_orb::cos_naming::NamingContextExtRef;
use deckwatch_orb::{Completion, Orb, SystemException, SystemExceptionKind, minor};
use deckwatch_sync::PiMutex;

use crate::arrival::{Handler, Shared};
use crate::body::Body;
use crate::carriers::corba::{
    Inside, activate, await_stop, call_time_max, calling_orb, send_error, serving_orb,
};
use crate::part::PartError;
use crate::plan::{ChannelAt, ConsumerPlan, StreamPlan};
use crate::receiver::Receiver;
use crate::sender::{SendError, Sender, Sent};
use crate::talk::Ready;

/// The naming service behind a reference.
///
/// # Errors
/// [`PartError`] where it leads to none.
pub(crate) fn names(orb: &Orb, reference: &str) -> Result<NamingContextExtRef, PartError> {
    let of = |error: SystemException| {
        PartError::Plan(format!("The naming service {reference}: {error}."))
    };
    let object = orb.string_to_object(reference).map_err(of)?;
    let context = object
        .as_ref()
        .map(NamingContextExtRef::narrow)
        .transpose()
        .map_err(of)?
        .flatten();
    context.ok_or_else(|| PartError::Plan(format!("{reference} is no naming service.")))
}

/// The event channel of this name.
fn channel(orb: &Orb, at: Option<&ChannelAt>) -> Result<EventChannelRef, PartError> {
    let at = at.ok_or_else(|| {
        PartError::Plan("The plan does not say where the event channel is found.".to_owned())
    })?;
    let unfound =
        |error: &dyn Display| PartError::Plan(format!("The event channel {}: {error}.", at.name));
    let object = names(orb, &at.names)?
        .resolve_str(&at.name)
        .map_err(|error| unfound(&error))?;
    let channel = object
        .as_ref()
        .map(EventChannelRef::narrow)
        .transpose()
        .map_err(|error| unfound(&error))?
        .flatten();
    channel.ok_or_else(|| unfound(&"it is bound to something else"))
}

/// What a channel refuses while parts connect to it.
fn refused(error: &dyn Display) -> PartError {
    PartError::Plan(format!(
        "The event channel refuses the connection: {error}."
    ))
}

fn nil() -> PartError {
    refused(&"it answers with nil")
}

/// Pushes to the channel.
pub struct EventSender {
    /// Kept, because references do not keep their ORB.
    _orb: Orb,
    proxy: ProxyPushConsumerRef,
}

impl EventSender {
    /// Finds the channel and connects to it as a supplier.
    ///
    /// # Errors
    /// [`PartError`] where it is not found or refuses.
    pub fn connect(stream: &StreamPlan, at: Option<&ChannelAt>) -> Result<Self, PartError> {
        let orb = calling_orb(call_time_max(stream))?;
        let suppliers = channel(&orb, at)?
            .for_suppliers()
            .map_err(|error| refused(&error))?
            .ok_or_else(nil)?;
        let proxy = suppliers
            .obtain_push_consumer()
            .map_err(|error| refused(&error))?
            .ok_or_else(nil)?;
        proxy
            .connect_push_supplier(None)
            .map_err(|error| refused(&error))?;
        Ok(Self { _orb: orb, proxy })
    }
}

impl Sender for EventSender {
    fn send(&mut self, _sequence: u64, body: &Body) -> Result<Sent, SendError> {
        let marshal =
            SystemException::new(SystemExceptionKind::Marshal, minor::NONE, Completion::No);
        let event = body.to_any().map_err(|_| send_error(marshal))?;
        match self.proxy.push(&event) {
            Ok(()) => Ok(Sent::Whole),
            Err(PushConsumerPushError::Disconnected(_)) => Err(SendError::Disconnected),
            Err(PushConsumerPushError::System(exception)) => Err(send_error(exception)),
        }
    }
}

/// The consumer that the channel pushes to.
struct Consumer {
    shared: Arc<Shared>,
    inside: PiMutex<Inside>,
}

impl PushConsumer for Consumer {
    fn push(&self, data: &Any) -> Result<(), PushConsumerPushError> {
        let mut inside = self.inside.lock("carrier.consumer");
        let of_type = data.type_code().equivalent(inside.body.type_code());
        let sequence = if of_type {
            inside.body.read(&mut data.reader())
        } else {
            None
        };
        inside.handle(sequence, &self.shared);
        // An event of another type is none of ours, and no reason to be let go.
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// Serves one destination.
pub struct EventReceiver {
    orb: Orb,
    listening: SocketAddr,
    consumer: Arc<Consumer>,
    proxy: ProxyPushSupplierRef,
}

impl EventReceiver {
    /// Activates the consumer, finds the channel and connects to it.
    ///
    /// # Errors
    /// [`PartError`] where the ORB cannot listen, or the channel is not found or refuses.
    pub fn serve(
        plan: &ConsumerPlan,
        body: &Body,
        shared: &Arc<Shared>,
    ) -> Result<Self, PartError> {
        let (orb, listening) = serving_orb(
            call_time_max(&plan.stream),
            SocketAddr::new(plan.address, 0),
            1,
            &plan.scheduling,
        )?;
        let inside = Inside {
            body: body.clone(),
            handler: None,
        };
        let consumer = Arc::new(Consumer {
            shared: Arc::clone(shared),
            inside: PiMutex::new(inside),
        });
        let servant = PushConsumerSkeleton::new(Arc::clone(&consumer));
        let own = PushConsumerRef::unchecked_narrow(activate(&orb, Arc::new(servant))?);
        let consumers = channel(&orb, plan.channel.as_ref())?
            .for_consumers()
            .map_err(|error| refused(&error))?
            .ok_or_else(nil)?;
        let proxy = consumers
            .obtain_push_supplier()
            .map_err(|error| refused(&error))?
            .ok_or_else(nil)?;
        proxy
            .connect_push_consumer(Some(&own))
            .map_err(|error| refused(&error))?;
        Ok(Self {
            orb,
            listening,
            consumer,
            proxy,
        })
    }
}

impl Receiver for EventReceiver {
    fn announce(&self, ready: &mut Ready) -> Result<(), PartError> {
        ready.listening = Some(self.listening);
        Ok(())
    }

    fn receive_all(&mut self, handler: Box<dyn Handler>, shared: &Arc<Shared>) {
        self.consumer.inside.lock("carrier.consumer").handler = Some(handler);
        await_stop(shared);
        // A channel that has ended before needs no farewell.
        let _farewell = self.proxy.disconnect_push_supplier();
        let _ended = self.orb.shutdown(true);
    }
}
