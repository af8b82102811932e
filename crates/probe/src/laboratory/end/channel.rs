//! Event channels of our own as a server, and the supplier and consumers of any event channel.
//!
//! The reference of a server is that of its COS channel, a comma, and that of its real-time channel. A channel of
//! another product has the place of the other kind empty.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deckwatch_cdr::Any;
use deckwatch_event::client::Connected;
use deckwatch_event::cos_event_comm::PushConsumerPushError;
use deckwatch_event::dispatch::{Dispatching, LaneOptions, QueueOptions};
use deckwatch_event::filter::designator::UNDEFINED;
use deckwatch_event::received::{
    AnyConsumer, AnyConsumerServant, EventConsumer, EventConsumerServant, ReceivedAny,
    ReceivedEvents,
};
use deckwatch_event::rt::{RtChannelOptions, RtEventChannel, RtInfo, Scheduling};
use deckwatch_event::{
    ChannelOptions, EventChannel, cos_event_channel_admin as cos, cos_event_comm,
    rtec_event_channel_admin as rtec, rtec_event_comm,
};
use deckwatch_orb::{ObjectId, ObjectRef, Orb, Servant, SystemException};
use deckwatch_os::schedule::{Class, set_class};

use super::commands::{Command, Samples};
use super::fan::{Fan, Gate, Traffic};
use super::server::{builder, corba_priority};
use super::{EndPlan, Role, answer_questions, greet, place, refused, words};
use crate::bench::real_time_event;
use crate::laboratory::error::LaboratoryError;
use crate::limits::END_PATIENCE;

/// Serves a channel of each kind until the standard input ends.
pub(super) fn serve(plan: &EndPlan) -> Result<(), LaboratoryError> {
    let orb = listening(plan).map_err(refused("The ORB"))?;
    // The channels' threads inherit the scheduling of this one.
    place(plan.fifo);
    let channel = EventChannel::start(&orb, ChannelOptions::default());
    let channel = channel.map_err(refused("The channel"))?;
    let real_time = RtEventChannel::start(&orb, real_time_options(plan));
    let real_time = real_time.map_err(refused("The real-time channel"))?;
    let root = orb.root_poa().map_err(refused("The root adapter"))?;
    root.the_poa_manager()
        .activate()
        .map_err(refused("The adapter's manager"))?;
    orb.seal();
    let both = [channel.reference().object(), real_time.reference().object()];
    greet(&both.map(|object| orb.object_to_string(object)).join(","))?;
    // It would take the processor from the serving threads; time sharing is always permitted.
    let _ = set_class(Class::Other);
    answer_questions(None)?;
    orb.shutdown(true).map_err(refused("The end of the ORB"))
}

/// With lanes, each of two RT_Infos has a lane of the channel.
fn real_time_options(plan: &EndPlan) -> RtChannelOptions {
    let Some((high, low)) = plan.lanes else {
        return RtChannelOptions::default();
    };
    let priorities = [high, low].map(corba_priority);
    let lane = |priority| LaneOptions {
        priority,
        threads: 1,
        queue: QueueOptions::default(),
    };
    let info = |priority| RtInfo {
        priority,
        deadline: Duration::from_secs(1),
        worst_case: Duration::ZERO,
    };
    RtChannelOptions {
        dispatching: Dispatching::Lanes(priorities.map(lane).to_vec()),
        scheduling: Some(Scheduling::fixed(HashMap::from([
            (HIGH.rt_info, info(priorities[0])),
            (LOW.rt_info, info(priorities[1])),
        ]))),
        ..RtChannelOptions::default()
    }
}

/// An ORB whose threads have the plan's priority; with lanes the higher of theirs: what is of low priority leaves the
/// channel late, and enters it at once.
fn listening(plan: &EndPlan) -> Result<Orb, deckwatch_orb::BuildError> {
    let fifo = match plan.lanes {
        Some((high, _)) if plan.role == Role::Channel => plan.fifo.map(|_| high),
        _ => plan.fifo,
    };
    builder(plan)
        .listen("127.0.0.1:0")?
        .on_thread_start(move || place(fifo))
        .build()
}

/// The events of one supplier in a real-time channel.
#[derive(Clone, Copy)]
struct Flow {
    event_type: i32,
    rt_info: i32,
}

const HIGH: Flow = Flow {
    event_type: UNDEFINED,
    rt_info: 1,
};
const LOW: Flow = Flow {
    event_type: UNDEFINED + 1,
    rt_info: 2,
};
/// Events that no supplier has.
const OTHERS: i32 = UNDEFINED + 2;

/// A supplier and its consumers, all in this process. The supplier's ORB is not that of a consumer.
pub(super) struct Ends<'p> {
    plan: &'p EndPlan,
    cos: Option<(cos::EventChannelRef, Connected<cos::ProxyPushConsumerRef>)>,
    real_time: Option<(rtec::EventChannelRef, Connected<rtec::ProxyPushConsumerRef>)>,
    flow: Flow,
    /// The ORBs of consumers, as many as a run has needed. Consumers that are together are all of the first.
    orbs: Vec<Orb>,
    /// Consumers that are connected and get no event.
    idle: Vec<Consuming>,
    _supplying: Orb,
}

impl<'p> Ends<'p> {
    pub(super) fn new(references: &str, plan: &'p EndPlan) -> Result<Self, LaboratoryError> {
        let supplying = Orb::builder().build().map_err(refused("The ORB"))?;
        let object = |reference: &str| {
            let object = supplying.string_to_object(reference);
            object.map_err(refused("The reference"))
        };
        let (cos, real_time) = references.split_once(',').unwrap_or((references, ""));
        let flow = match plan.role {
            Role::ChannelLoad => LOW,
            _ => HIGH,
        };
        Ok(Self {
            cos: match cos {
                "" => None,
                _ => object(cos)?.map(supply_cos).transpose()?,
            },
            real_time: match real_time {
                "" => None,
                _ => object(real_time)?
                    .map(|channel| supply_real_time(channel, flow))
                    .transpose()?,
            },
            plan,
            flow,
            orbs: Vec::new(),
            idle: Vec::new(),
            _supplying: supplying,
        })
    }

    /// Runs one command of [`Fan::of`] beside as many consumers of other events as it has octets back, or `idle` or
    /// `rt-idle`, with `-apart` behind it for consumers that have an ORB each. These connect consumers that stay until
    /// the next such command.
    pub(super) fn run(&mut self, command: &Command, samples: &mut Samples) -> Result<(), String> {
        let plain = command.kind.strip_suffix("-apart");
        if let kind @ ("idle" | "rt-idle") = plain.unwrap_or(&command.kind) {
            self.idle.clear();
            self.idle = self.others(command.count, kind == "rt-idle", plain.is_some())?;
            samples.set_sum(command.count as u64, 1);
            return Ok(());
        }
        let (fan, mut traffic, rest) = Fan::of(command)?;
        if !rest.is_empty() {
            return Err(command.unknown());
        }
        if self.plan.role == Role::ChannelLoad {
            traffic = Traffic::Stream;
        }
        let _others = self.others(command.back, fan.is_real_time, false)?;
        let gate = Gate::new(fan.consumers);
        let of_orb = |number: u32| if fan.are_apart { number as usize } else { 0 };
        let connected: Result<Vec<Consuming>, String> = (0..fan.consumers)
            .map(|number| self.connect(of_orb(number), &gate, (fan.is_real_time, self.flow)))
            .collect();
        let connected = connected?.into_iter();
        // The servants are dropped after the proxies.
        let (_servants, proxies): (Vec<_>, Vec<_>) =
            connected.map(|(proxy, own)| (own, proxy)).unzip();
        if fan.is_real_time {
            let (_, supplier) = self.real_time.as_ref().ok_or(ABSENT)?;
            let events = [real_time_event(self.flow.event_type, command.there)];
            return gate.supply(traffic, samples, || supplier.push(&events).map_err(words));
        }
        let (_, supplier) = self.cos.as_ref().ok_or(ABSENT)?;
        let event = Any::from_value(&vec![3_u8; command.there]).map_err(words)?;
        gate.supply(traffic, samples, || supplier.push(&event).map_err(words))?;
        // They are disconnected. Our COS channel calls each of them back, with what it takes for that; another product,
        // which has one kind of channel here, need not.
        drop(proxies);
        if self.real_time.is_some() {
            gate.await_left();
        }
        Ok(())
    }

    /// Connects consumers that get no event.
    fn others(
        &mut self,
        count: usize,
        is_real_time: bool,
        are_apart: bool,
    ) -> Result<Vec<Consuming>, String> {
        let gate = Gate::new(u32::MAX);
        let flow = |number: usize| Flow {
            event_type: OTHERS + i32::try_from(number).unwrap_or(0),
            rt_info: 0,
        };
        (0..count)
            .map(|number| {
                let orb = if are_apart { number } else { 0 };
                self.connect(orb, &gate, (is_real_time, flow(number)))
            })
            .collect()
    }

    /// Connects a consumer of one flow that is served by the ORB of that number.
    fn connect(
        &mut self,
        number: usize,
        gate: &Arc<Gate>,
        (is_real_time, flow): (bool, Flow),
    ) -> Result<Consuming, String> {
        while self.orbs.len() <= number {
            let orb = listening(self.plan).map_err(words)?;
            let root = orb.root_poa().map_err(words)?;
            root.the_poa_manager().activate().map_err(words)?;
            orb.seal();
            self.orbs.push(orb);
        }
        let consumer = Consumer {
            gate: Arc::clone(gate),
            received: AtomicU64::new(0),
        };
        let orb = &self.orbs[number];
        if is_real_time {
            let (channel, _) = self.real_time.as_ref().ok_or(ABSENT)?;
            consume_real_time(channel, orb, consumer, flow)
        } else {
            let (channel, _) = self.cos.as_ref().ok_or(ABSENT)?;
            consume_cos(channel, orb, consumer)
        }
    }
}

const ABSENT: &str = "this channel is not of that kind";

type Supplied<C, P> = Result<(C, Connected<P>), LaboratoryError>;

fn supply_cos(channel: ObjectRef) -> Supplied<cos::EventChannelRef, cos::ProxyPushConsumerRef> {
    let channel = cos::EventChannelRef::unchecked_narrow(channel);
    let obtain = cos::SupplierAdminRef::obtain_push_consumer;
    let proxy = Connected::obtain(channel.for_suppliers(), obtain, END_PATIENCE);
    let proxy = proxy.map_err(refused("The channel"))?;
    let connected = proxy.connect_push_supplier(None);
    connected.map_err(refused("The channel"))?;
    Ok((channel, proxy))
}

fn supply_real_time(
    channel: ObjectRef,
    flow: Flow,
) -> Supplied<rtec::EventChannelRef, rtec::ProxyPushConsumerRef> {
    let channel = rtec::EventChannelRef::unchecked_narrow(channel);
    let obtain = rtec::SupplierAdminRef::obtain_push_consumer;
    let proxy = Connected::obtain(channel.for_suppliers(), obtain, END_PATIENCE);
    let proxy = proxy.map_err(refused("The channel"))?;
    let mut publication = rtec::Publication {
        event: real_time_event(flow.event_type, 0),
        ..rtec::Publication::default()
    };
    publication.dependency_info.rt_info = flow.rt_info;
    let qos = rtec::SupplierQOS {
        publications: vec![publication],
        is_gateway: false,
    };
    let connected = proxy.connect_push_supplier(None, &qos);
    connected.map_err(refused("The channel"))?;
    Ok((channel, proxy))
}

fn consume_cos(
    channel: &cos::EventChannelRef,
    orb: &Orb,
    consumer: Consumer,
) -> Result<Consuming, String> {
    let servant = AnyConsumerServant::new(consumer);
    let (active, own) = Active::new(orb, Arc::new(servant))?;
    let own = cos_event_comm::PushConsumerRef::unchecked_narrow(own);
    let obtain = cos::ConsumerAdminRef::obtain_push_supplier;
    let proxy = Connected::obtain(channel.for_consumers(), obtain, END_PATIENCE);
    let proxy = proxy.map_err(words)?;
    proxy.connect_push_consumer(Some(&own)).map_err(words)?;
    Ok((Box::new(proxy), active))
}

fn consume_real_time(
    channel: &rtec::EventChannelRef,
    orb: &Orb,
    consumer: Consumer,
    flow: Flow,
) -> Result<Consuming, String> {
    let servant = EventConsumerServant::new(consumer);
    let (active, own) = Active::new(orb, Arc::new(servant))?;
    let own = rtec_event_comm::PushConsumerRef::unchecked_narrow(own);
    let obtain = rtec::ConsumerAdminRef::obtain_push_supplier;
    let proxy = Connected::obtain(channel.for_consumers(), obtain, END_PATIENCE);
    let proxy = proxy.map_err(words)?;
    let wanted = rtec::Dependency {
        event: real_time_event(flow.event_type, 0),
        rt_info: flow.rt_info,
    };
    let qos = rtec::ConsumerQOS {
        dependencies: vec![wanted],
        is_gateway: false,
    };
    let connected = proxy.connect_push_consumer(Some(&own), &qos);
    connected.map_err(words)?;
    Ok((Box::new(proxy), active))
}

/// A connected consumer: its proxy, which disconnects it when dropped, and its servant.
type Consuming = (Box<dyn Send>, Active);

/// An active object. Dropping it deactivates it.
struct Active {
    orb: Orb,
    id: ObjectId,
}

impl Active {
    fn new(orb: &Orb, servant: Arc<dyn Servant>) -> Result<(Self, ObjectRef), String> {
        let root = orb.root_poa().map_err(words)?;
        let id = root.activate_object(servant).map_err(words)?;
        let reference = root.id_to_reference(&id).map_err(words)?;
        let orb = orb.clone();
        Ok((Self { orb, id }, reference))
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        let root = self.orb.root_poa();
        // It may be served a last time meanwhile.
        let _ = root.map(|root| root.deactivate_object(&self.id));
    }
}

/// The servant of a consumer. It counts what it receives.
struct Consumer {
    gate: Arc<Gate>,
    received: AtomicU64,
}

impl Consumer {
    fn receive(&self) {
        // One connection carries its events, so that no two are received at once.
        self.gate
            .receive(self.received.fetch_add(1, Ordering::Relaxed));
    }
}

impl AnyConsumer for Consumer {
    fn push(&self, _event: ReceivedAny<'_>) -> Result<(), PushConsumerPushError> {
        self.receive();
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.gate.leave();
        Ok(())
    }
}

impl EventConsumer for Consumer {
    fn push(&self, mut events: ReceivedEvents<'_>) -> Result<(), SystemException> {
        events.try_for_each(|event| {
            std::hint::black_box(event?.payload);
            self.receive();
            Ok(())
        })
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}
