//! The carriers `event` and `rt-event`: supplier and consumers use the push model of an event channel on the supplier's
//! host. They find the channel through the naming service.
//!
//! | carrier | an event has | a push is |
//! | --- | --- | --- |
//! | `event` | an `any` of the flow's type | two-way, to the channel and from it |
//! | `rt-event` | a payload with the flow's body | a one-way, to the channel and from it |

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use deckwatch_event::client::Connected;
use deckwatch_event::cos_event_channel_admin as cos_admin;
use deckwatch_event::cos_event_comm as cos;
use deckwatch_event::filter::designator::UNDEFINED;
use deckwatch_event::received::{
    AnyConsumer, AnyConsumerServant, EventConsumer, EventConsumerServant, ReceivedAny,
    ReceivedEvents,
};
use deckwatch_event::rtec_event_channel_admin as rtec_admin;
use deckwatch_event::rtec_event_comm::{self as rtec, EventHeader};
use deckwatch_giop::UtcT;
use deckwatch_meter::blame::Road;
use deckwatch_orb::{
    Completion, ObjectRef, Orb, Servant, SystemException, SystemExceptionKind, minor,
};
use deckwatch_os::clock::realtime_ns;

use super::orb::{
    Deliveries, activate, await_stop, call_time_max, calling_orb, naming_service, send_error,
    serving_orb,
};
use crate::arrival::{Handler, Shared};
use crate::body::{Body, SequenceReader};
use crate::carrier::{
    Argument, Carrier, ChannelAt, ChannelKind, ConnectTo, Delivery, Framing, ListenAt, Needs,
};
use crate::error::PartError;
use crate::receiver::Receiver;
use crate::sender::{SendError, Sender, Sent};
use crate::talk::Ready;

/// A push to an event channel, which pushes to each destination.
#[derive(Debug)]
pub struct Event(ChannelKind);

/// Over a COS event channel.
pub static COS: Event = Event(ChannelKind::Cos);

/// Over a real-time event channel.
pub static REAL_TIME: Event = Event(ChannelKind::RealTime);

impl Carrier for Event {
    fn name(&self) -> &'static str {
        match self.0 {
            ChannelKind::Cos => "event",
            ChannelKind::RealTime => "rt-event",
        }
    }

    fn summary(&self) -> &'static str {
        match self.0 {
            ChannelKind::Cos => "A push to an event channel",
            ChannelKind::RealTime => "A push to a real-time event channel",
        }
    }

    fn road(&self) -> Road {
        Road::CHANNEL
    }

    fn framing(&self) -> Framing {
        Framing::Giop {
            operation: "push",
            argument: match self.0 {
                ChannelKind::Cos => Argument::Any,
                ChannelKind::RealTime => Argument::EventSet,
            },
        }
    }

    /// The channel drops events of a consumer that does not keep up.
    fn delivery(&self) -> Delivery {
        Delivery::InOrder
    }

    fn needs(&self) -> Needs {
        Needs {
            channel: Some(self.0),
            one_slot: true,
            ..Needs::default()
        }
    }

    fn connect(&self, to: &ConnectTo<'_>) -> Result<Box<dyn Sender>, PartError> {
        let within = call_time_max(to.deadline);
        let orb = calling_orb(within, to.network_priority)?;
        match self.0 {
            ChannelKind::Cos => cos_sender(orb, to.channel, within),
            ChannelKind::RealTime => rt_sender(orb, to.channel, within),
        }
    }

    fn listen(&self, at: &ListenAt<'_>) -> Result<Box<dyn Receiver>, PartError> {
        let within = call_time_max(at.deadline);
        let address = SocketAddr::new(at.address, 0);
        let (orb, listening) = serving_orb(within, address, 1, at.scheduling, at.network_priority)?;
        let consumer = Arc::new(Consumer {
            deliveries: Deliveries::new(at.body, at.shared),
            reader: at.body.sequence_reader(),
        });
        let connected = match self.0 {
            ChannelKind::Cos => cos_consumer(&orb, at.channel, &consumer, within),
            ChannelKind::RealTime => rt_consumer(&orb, at.channel, &consumer, within),
        };
        Ok(Box::new(EventReceiver {
            connected: Some(connected?),
            orb,
            listening,
            consumer,
        }))
    }
}

/// The header of every event of a flow, but for its creation_time: each flow has a channel of its own.
const HEADER: EventHeader = EventHeader {
    r#type: UNDEFINED,
    source: 1,
    ttl: 1,
    creation_time: 0,
    ec_recv_time: 0,
    ec_send_time: 0,
};

fn cos_sender(
    orb: Orb,
    at: Option<&ChannelAt>,
    within: Duration,
) -> Result<Box<dyn Sender>, PartError> {
    let channel = channel(&orb, at, cos_admin::EventChannelRef::narrow)?;
    let obtain = cos_admin::SupplierAdminRef::obtain_push_consumer;
    let proxy = Connected::obtain(channel.for_suppliers(), obtain, within).map_err(refused)?;
    proxy.connect_push_supplier(None).map_err(refused)?;
    Ok(Box::new(CosSender { proxy, _orb: orb }))
}

fn rt_sender(
    orb: Orb,
    at: Option<&ChannelAt>,
    within: Duration,
) -> Result<Box<dyn Sender>, PartError> {
    let channel = channel(&orb, at, rtec_admin::EventChannelRef::narrow)?;
    let obtain = rtec_admin::SupplierAdminRef::obtain_push_consumer;
    let proxy = Connected::obtain(channel.for_suppliers(), obtain, within).map_err(refused)?;
    let event = bare();
    let qos = rtec_admin::SupplierQOS {
        publications: vec![rtec_admin::Publication {
            event: event.clone(),
            ..rtec_admin::Publication::default()
        }],
        is_gateway: false,
    };
    proxy.connect_push_supplier(None, &qos).map_err(refused)?;
    let event = [event];
    Ok(Box::new(RtSender {
        proxy,
        _orb: orb,
        event,
    }))
}

/// A consumer's proxy, which disconnects it when dropped.
type ConnectedConsumer = Box<dyn Send>;

fn cos_consumer(
    orb: &Orb,
    at: Option<&ChannelAt>,
    consumer: &Arc<Consumer>,
    within: Duration,
) -> Result<ConnectedConsumer, PartError> {
    let servant = AnyConsumerServant::new(Arc::clone(consumer));
    let own = cos::PushConsumerRef::unchecked_narrow(activate(orb, Arc::new(servant))?);
    let channel = channel(orb, at, cos_admin::EventChannelRef::narrow)?;
    let obtain = cos_admin::ConsumerAdminRef::obtain_push_supplier;
    let proxy = Connected::obtain(channel.for_consumers(), obtain, within).map_err(refused)?;
    proxy.connect_push_consumer(Some(&own)).map_err(refused)?;
    Ok(Box::new(proxy))
}

fn rt_consumer(
    orb: &Orb,
    at: Option<&ChannelAt>,
    consumer: &Arc<Consumer>,
    within: Duration,
) -> Result<ConnectedConsumer, PartError> {
    let servant = EventConsumerServant::new(Arc::clone(consumer));
    let servant: Arc<dyn Servant> = Arc::new(servant);
    let own = rtec::PushConsumerRef::unchecked_narrow(activate(orb, servant)?);
    let channel = channel(orb, at, rtec_admin::EventChannelRef::narrow)?;
    let obtain = rtec_admin::ConsumerAdminRef::obtain_push_supplier;
    let proxy = Connected::obtain(channel.for_consumers(), obtain, within).map_err(refused)?;
    let wanted = rtec_admin::Dependency {
        event: bare(),
        rt_info: 0,
    };
    let qos = rtec_admin::ConsumerQOS {
        dependencies: vec![wanted],
        is_gateway: false,
    };
    let connected = proxy.connect_push_consumer(Some(&own), &qos);
    connected.map_err(refused)?;
    Ok(Box::new(proxy))
}

/// An event of the header alone.
fn bare() -> rtec::Event {
    rtec::Event {
        header: HEADER,
        ..rtec::Event::default()
    }
}

/// Resolves an event channel by its name in the naming service.
fn channel<T>(
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
fn refused(error: impl Display) -> PartError {
    PartError::ChannelRefused(error.to_string())
}

/// Pushes to a COS channel.
struct CosSender {
    proxy: Connected<cos_admin::ProxyPushConsumerRef>,
    /// Keeps the ORB alive: a reference does not own its ORB.
    _orb: Orb,
}

impl Sender for CosSender {
    fn send(&mut self, _sequence: u64, body: &Body) -> Result<Sent, SendError> {
        let marshal =
            SystemException::new(SystemExceptionKind::Marshal, minor::NONE, Completion::No);
        let event = body.to_any().map_err(|_| send_error(marshal))?;
        match self.proxy.push(&event) {
            Ok(()) => Ok(Sent::Whole),
            Err(cos::PushConsumerPushError::Disconnected(_)) => Err(SendError::Disconnected),
            Err(cos::PushConsumerPushError::System(exception)) => Err(send_error(exception)),
        }
    }
}

/// Pushes to a real-time channel.
struct RtSender {
    proxy: Connected<rtec_admin::ProxyPushConsumerRef>,
    /// As above.
    _orb: Orb,
    /// Its payload keeps its memory.
    event: [rtec::Event; 1],
}

impl Sender for RtSender {
    fn send(&mut self, _sequence: u64, body: &Body) -> Result<Sent, SendError> {
        // The header has the field in any case: its value costs one reading of a clock and no octet.
        let now_ns = u64::try_from(realtime_ns()).unwrap_or(0);
        self.event[0].header.creation_time = UtcT::from_unix_ns(now_ns, Duration::ZERO).time;
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
    reader: SequenceReader,
}

impl AnyConsumer for Consumer {
    fn push(&self, event: ReceivedAny<'_>) -> Result<(), cos::PushConsumerPushError> {
        let data = event.decode().map_err(SystemException::from)?;
        // An event of another type is counted as malformed. An exception would disconnect this consumer.
        self.deliveries.deliver(|body| {
            let of_type = data.type_code().equivalent(body.type_code());
            of_type.then(|| body.read(&mut data.reader())).flatten()
        });
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl EventConsumer for Consumer {
    fn push(&self, events: ReceivedEvents<'_>) -> Result<(), SystemException> {
        for event in events {
            let payload = event?.payload;
            self.deliveries.deliver(|_| self.reader.read(payload));
        }
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// Serves one destination.
struct EventReceiver {
    /// `None` once it is disconnected.
    connected: Option<ConnectedConsumer>,
    orb: Orb,
    listening: SocketAddr,
    consumer: Arc<Consumer>,
}

impl Receiver for EventReceiver {
    fn announce(&self, ready: &mut Ready) {
        ready.listening = Some(self.listening);
    }

    fn receive_all(&mut self, handler: Box<dyn Handler>, shared: &Arc<Shared>) {
        self.consumer.deliveries.begin(handler);
        await_stop(shared);
        self.connected = None;
        // Fails only if the ORB was shut down before, and no other code shuts it down.
        let _ = self.orb.shutdown(true);
    }
}
