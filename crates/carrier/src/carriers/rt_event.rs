//! The carrier `rt-event`: as `event`, over a real-time event channel. The payload of an event has the flow's body. A
//! push is a one-way, to the channel and from it.

use std::net::SocketAddr;
use std::sync::Arc;

use deckwatch_event::filter::designator::UNDEFINED;
use deckwatch_event::rtec_event_channel_admin::{
    ConsumerQOS, Dependency, EventChannelRef, ProxyPushConsumerRef, ProxyPushSupplierRef,
    Publication, SupplierQOS,
};
use deckwatch_event::rtec_event_comm::{
    Event, EventHeader, PushConsumer, PushConsumerRef, PushConsumerSkeleton,
};
use deckwatch_meter::blame::Road;
use deckwatch_orb::{Orb, SystemException};

use super::event::{channel, nil, refused};
use super::orb::{
    Deliveries, activate, await_stop, call_time_max, calling_orb, send_error, serving_orb,
};
use crate::arrival::{Handler, Shared};
use crate::body::Body;
use crate::carrier::{
    Argument, Carrier, ChannelKind, ConnectTo, Delivery, Framing, ListenAt, Needs, NetworkPriority,
};
use crate::error::PartError;
use crate::receiver::Receiver;
use crate::sender::{SendError, Sender, Sent};
use crate::talk::Ready;

/// A push to a real-time event channel, which pushes to each destination.
#[derive(Debug)]
pub struct RtEvent;

/// The header of every event of a flow: each flow has a channel of its own.
const HEADER: EventHeader = EventHeader {
    r#type: UNDEFINED,
    source: 1,
    ttl: 1,
    creation_time: 0,
    ec_recv_time: 0,
    ec_send_time: 0,
};

impl Carrier for RtEvent {
    fn name(&self) -> &'static str {
        "rt-event"
    }

    fn summary(&self) -> &'static str {
        "A push to a real-time event channel"
    }

    fn road(&self) -> Road {
        Road::CHANNEL
    }

    fn framing(&self) -> Framing {
        Framing::Giop {
            operation: "push",
            argument: Argument::EventSet,
        }
    }

    /// The channel drops events of a consumer that does not keep up.
    fn delivery(&self) -> Delivery {
        Delivery::InOrder
    }

    /// The channel's connections belong to all of its flows.
    fn marks_packets(&self) -> bool {
        false
    }

    fn needs(&self) -> Needs {
        Needs {
            channel: Some(ChannelKind::RealTime),
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
        let event = Event {
            header: HEADER,
            ..Event::default()
        };
        let qos = SupplierQOS {
            publications: vec![Publication {
                event: event.clone(),
                ..Publication::default()
            }],
            is_gateway: false,
        };
        proxy
            .connect_push_supplier(None, &qos)
            .map_err(|error| refused(&error))?;
        Ok(Box::new(RtEventSender {
            _orb: orb,
            proxy,
            event: [event],
        }))
    }

    fn listen(&self, at: &ListenAt<'_>) -> Result<Box<dyn Receiver>, PartError> {
        let (orb, listening) = serving_orb(
            call_time_max(at.deadline),
            SocketAddr::new(at.address, 0),
            1,
            at.scheduling,
        )?;
        let consumer = Arc::new(Consumer {
            deliveries: Deliveries::new(at.body, at.shared),
            reader: at.body.sequence_reader(),
        });
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
        let wanted = Event {
            header: HEADER,
            ..Event::default()
        };
        let qos = ConsumerQOS {
            dependencies: vec![Dependency {
                event: wanted,
                rt_info: 0,
            }],
            is_gateway: false,
        };
        proxy
            .connect_push_consumer(Some(&own), &qos)
            .map_err(|error| refused(&error))?;
        Ok(Box::new(RtEventReceiver {
            orb,
            listening,
            consumer,
            proxy,
        }))
    }
}

/// Pushes to the channel.
struct RtEventSender {
    /// Keeps the ORB alive: a reference does not own its ORB.
    _orb: Orb,
    proxy: ProxyPushConsumerRef,
    /// Its payload keeps its memory.
    event: [Event; 1],
}

impl Sender for RtEventSender {
    fn send(&mut self, _sequence: u64, body: &Body) -> Result<Sent, SendError> {
        let payload = &mut self.event[0].data.payload;
        payload.clear();
        payload.extend_from_slice(body.octets());
        self.proxy.push(&self.event).map_err(send_error)?;
        Ok(Sent::Whole)
    }
}

/// The PushConsumer servant of a destination.
struct Consumer {
    deliveries: Deliveries,
    reader: crate::body::SequenceReader,
}

impl PushConsumer for Consumer {
    fn push(&self, data: &[Event]) -> Result<(), SystemException> {
        for event in data {
            self.deliveries
                .deliver(|_| self.reader.read(&event.data.payload));
        }
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// Serves one destination.
struct RtEventReceiver {
    orb: Orb,
    listening: SocketAddr,
    consumer: Arc<Consumer>,
    proxy: ProxyPushSupplierRef,
}

impl Receiver for RtEventReceiver {
    fn announce(&self, ready: &mut Ready) {
        ready.listening = Some(self.listening);
    }

    fn receive_all(&mut self, handler: Box<dyn Handler>, shared: &Arc<Shared>) {
        self.consumer.deliveries.begin(handler);
        await_stop(shared);
        // Fails if the channel has already ended; then there is nothing to disconnect.
        let _ = self.proxy.disconnect_push_supplier();
        // Fails only if the ORB was shut down before, and no other code shuts it down.
        let _ = self.orb.shutdown(true);
    }
}
