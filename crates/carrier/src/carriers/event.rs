//! The carrier `event`: supplier and consumers use the push model of an event channel on the supplier's host. They find
//! the channel through the naming service. The `any` of an event has the flow's type.

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
use deckwatch_meter::blame::Road;
use deckwatch_orb::{Completion, ObjectRef, Orb, SystemException, SystemExceptionKind, minor};

use super::orb::{
    Deliveries, activate, await_stop, call_time_max, calling_orb, naming_service, send_error,
    serving_orb,
};
use crate::arrival::{Handler, Shared};
use crate::body::Body;
use crate::carrier::{
    Argument, Carrier, ChannelAt, ChannelKind, ConnectTo, Delivery, Framing, ListenAt, Needs,
    NetworkPriority,
};
use crate::error::PartError;
use crate::receiver::Receiver;
use crate::sender::{SendError, Sender, Sent};
use crate::talk::Ready;

/// A push to an event channel, which pushes to each destination.
#[derive(Debug)]
pub struct Event;

impl Carrier for Event {
    fn name(&self) -> &'static str {
        "event"
    }

    fn summary(&self) -> &'static str {
        "A push to an event channel"
    }

    fn road(&self) -> Road {
        Road::CHANNEL
    }

    fn framing(&self) -> Framing {
        Framing::Giop {
            operation: "push",
            argument: Argument::Any,
        }
    }

    fn delivery(&self) -> Delivery {
        Delivery::InOrder
    }

    /// The channel's connections belong to all of its flows.
    fn marks_packets(&self) -> bool {
        false
    }

    fn needs(&self) -> Needs {
        Needs {
            channel: Some(ChannelKind::Cos),
            one_slot: true,
            ..Needs::default()
        }
    }

    fn connect(&self, to: &ConnectTo<'_>) -> Result<Box<dyn Sender>, PartError> {
        let orb = calling_orb(call_time_max(to.deadline), NetworkPriority::default())?;
        let suppliers = channel(&orb, to.channel, EventChannelRef::narrow)?
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
        Ok(Box::new(EventSender { _orb: orb, proxy }))
    }

    fn listen(&self, at: &ListenAt<'_>) -> Result<Box<dyn Receiver>, PartError> {
        let (orb, listening) = serving_orb(
            call_time_max(at.deadline),
            SocketAddr::new(at.address, 0),
            1,
            at.scheduling,
        )?;
        let consumer = Arc::new(Consumer(Deliveries::new(at.body, at.shared)));
        let servant = PushConsumerSkeleton::new(Arc::clone(&consumer));
        let own = PushConsumerRef::unchecked_narrow(activate(&orb, Arc::new(servant))?);
        let consumers = channel(&orb, at.channel, EventChannelRef::narrow)?
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
        Ok(Box::new(EventReceiver {
            orb,
            listening,
            consumer,
            proxy,
        }))
    }
}

/// Resolves an event channel by its name in the naming service.
pub(super) fn channel<T>(
    orb: &Orb,
    at: Option<&ChannelAt>,
    narrow: impl FnOnce(&ObjectRef) -> Result<Option<T>, SystemException>,
) -> Result<T, PartError> {
    let at = at.ok_or(PartError::ChannelUnplanned)?;
    let unfound = |reason: &dyn Display| PartError::Channel {
        name: at.name.clone(),
        reason: reason.to_string(),
    };
    let object = naming_service(orb, &at.names)?
        .resolve_str(&at.name)
        .map_err(|error| unfound(&error))?;
    let channel = object
        .as_ref()
        .map(narrow)
        .transpose()
        .map_err(|error| unfound(&error))?
        .flatten();
    channel.ok_or_else(|| unfound(&"the name is bound to something else"))
}

/// Maps an exception raised when a part connects to the channel.
pub(super) fn refused(error: &dyn Display) -> PartError {
    PartError::ChannelRefused(error.to_string())
}

pub(super) fn nil() -> PartError {
    refused(&"it returned a nil reference")
}

/// Pushes to the channel.
struct EventSender {
    /// Keeps the ORB alive: a reference does not own its ORB.
    _orb: Orb,
    proxy: ProxyPushConsumerRef,
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

/// The PushConsumer servant of a destination.
struct Consumer(Deliveries);

impl PushConsumer for Consumer {
    fn push(&self, data: &Any) -> Result<(), PushConsumerPushError> {
        // An event of another type is counted as malformed. An exception would disconnect this consumer.
        self.0.deliver(|body| {
            let of_type = data.type_code().equivalent(body.type_code());
            of_type.then(|| body.read(&mut data.reader())).flatten()
        });
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// Serves one destination.
struct EventReceiver {
    orb: Orb,
    listening: SocketAddr,
    consumer: Arc<Consumer>,
    proxy: ProxyPushSupplierRef,
}

impl Receiver for EventReceiver {
    fn announce(&self, ready: &mut Ready) {
        ready.listening = Some(self.listening);
    }

    fn receive_all(&mut self, handler: Box<dyn Handler>, shared: &Arc<Shared>) {
        self.consumer.0.begin(handler);
        await_stop(shared);
        // Fails if the channel has already ended; then there is nothing to disconnect.
        let _ = self.proxy.disconnect_push_supplier();
        // Fails only if the ORB was shut down before, and no other code shuts it down.
        let _ = self.orb.shutdown(true);
    }
}
