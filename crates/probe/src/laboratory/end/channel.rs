//! An event channel of our own as a server, and the supplier and consumers of any COS event channel.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use deckwatch_cdr::Any;
use deckwatch_event::cos_event_channel_admin::{
    EventChannelRef, ProxyPushConsumerRef, ProxyPushSupplierRef,
};
use deckwatch_event::cos_event_comm::{
    PushConsumer, PushConsumerPushError, PushConsumerRef, PushConsumerSkeleton,
};
use deckwatch_event::{ChannelOptions, EventChannel};
use deckwatch_orb::{ObjectId, Orb, Servant, SystemException};
use deckwatch_os::schedule::{Class, set_class};

use super::commands::{Command, Samples};
use super::fan::{Fan, Gate};
use super::{EndPlan, answer_questions, greet, place, refused, words};
use crate::laboratory::error::LaboratoryError;

/// Serves a channel until the standard input ends.
pub(super) fn serve(plan: &EndPlan) -> Result<(), LaboratoryError> {
    let orb = listening(plan).map_err(refused("The ORB"))?;
    // The channel's thread inherits the scheduling of this one.
    place(plan.fifo);
    let channel = EventChannel::start(&orb, ChannelOptions::default());
    let channel = channel.map_err(refused("The channel"))?;
    let root = orb.root_poa().map_err(refused("The root adapter"))?;
    root.the_poa_manager()
        .activate()
        .map_err(refused("The adapter's manager"))?;
    orb.seal();
    greet(&orb.object_to_string(channel.reference().object()))?;
    // It would take the processor from the serving threads; time sharing is always permitted.
    let _ = set_class(Class::Other);
    answer_questions(None)?;
    orb.shutdown(true).map_err(refused("The end of the ORB"))
}

/// An ORB whose threads have the plan's priority.
fn listening(plan: &EndPlan) -> Result<Orb, deckwatch_orb::BuildError> {
    let fifo = plan.fifo;
    Orb::builder()
        .listen("127.0.0.1:0")?
        .on_thread_start(move || place(fifo))
        .build()
}

/// A supplier and its consumers, all in this process. The supplier's ORB is not that of a consumer.
pub(super) struct Ends<'p> {
    plan: &'p EndPlan,
    channel: EventChannelRef,
    supplier: ProxyPushConsumerRef,
    /// The ORBs of consumers, as many as a run has needed. Consumers that are together are all of the first.
    orbs: Vec<Orb>,
    /// Consumers that are connected and get no event.
    idle: Vec<Connected>,
    _supplying: Orb,
}

impl<'p> Ends<'p> {
    pub(super) fn new(reference: &str, plan: &'p EndPlan) -> Result<Self, LaboratoryError> {
        let supplying = Orb::builder().build().map_err(refused("The ORB"))?;
        let object = supplying.string_to_object(reference);
        let object = object.map_err(refused("The reference"))?;
        let object = object.ok_or_else(|| refused("The reference")("it is nil"))?;
        let channel = EventChannelRef::unchecked_narrow(object);
        let admin = channel.for_suppliers().map_err(refused("The channel"))?;
        let admin = admin.ok_or_else(|| refused("The channel")(NIL))?;
        let supplier = admin.obtain_push_consumer();
        let supplier = supplier.map_err(refused("The channel"))?;
        let supplier = supplier.ok_or_else(|| refused("The channel")(NIL))?;
        supplier
            .connect_push_supplier(None)
            .map_err(refused("The channel"))?;
        Ok(Self {
            plan,
            channel,
            supplier,
            orbs: Vec::new(),
            idle: Vec::new(),
            _supplying: supplying,
        })
    }

    /// Runs one command of [`Fan::of`], or `idle`, which connects consumers that stay until the next `idle`.
    pub(super) fn run(&mut self, command: &Command, samples: &mut Samples) -> Result<(), String> {
        if command.kind == "idle" {
            self.idle.clear();
            let gate = Gate::new(u32::MAX);
            for _ in 0..command.count {
                let connected = self.connect(0, &gate)?;
                self.idle.push(connected);
            }
            samples.set_sum(command.count as u64, 1);
            return Ok(());
        }
        let (fan, traffic, rest) = Fan::of(command)?;
        if !rest.is_empty() {
            return Err(command.unknown());
        }
        let gate = Gate::new(fan.consumers);
        let of_orb = |number: u32| if fan.are_apart { number as usize } else { 0 };
        // They are disconnected when they are dropped, after the run.
        let connected: Result<Vec<Connected>, String> = (0..fan.consumers)
            .map(|number| self.connect(of_orb(number), &gate))
            .collect();
        let _connected = connected?;
        let event = Any::from_value(&vec![3_u8; command.there]).map_err(words)?;
        gate.supply(traffic, samples, || {
            self.supplier.push(&event).map_err(words)
        })
    }

    /// Connects a consumer that is served by the ORB of that number.
    fn connect(&mut self, number: usize, gate: &Arc<Gate>) -> Result<Connected, String> {
        while self.orbs.len() <= number {
            let orb = listening(self.plan).map_err(words)?;
            let root = orb.root_poa().map_err(words)?;
            root.the_poa_manager().activate().map_err(words)?;
            orb.seal();
            self.orbs.push(orb);
        }
        let orb = &self.orbs[number];
        let root = orb.root_poa().map_err(words)?;
        let consumer = Consumer {
            gate: Arc::clone(gate),
            received: AtomicU64::new(0),
        };
        let servant: Arc<dyn Servant> = Arc::new(PushConsumerSkeleton::new(consumer));
        let id = root.activate_object(servant).map_err(words)?;
        let own = root.id_to_reference(&id).map_err(words)?;
        let own = PushConsumerRef::unchecked_narrow(own);
        let admin = self.channel.for_consumers().map_err(words)?;
        let proxy = admin.ok_or(NIL)?.obtain_push_supplier().map_err(words)?;
        let connected = Connected {
            orb: orb.clone(),
            id,
            proxy: proxy.ok_or(NIL)?,
        };
        connected
            .proxy
            .connect_push_consumer(Some(&own))
            .map_err(words)?;
        Ok(connected)
    }
}

const NIL: &str = "the channel returned a nil reference";

/// A connected consumer. Dropping it disconnects it.
struct Connected {
    orb: Orb,
    id: ObjectId,
    proxy: ProxyPushSupplierRef,
}

impl Drop for Connected {
    fn drop(&mut self) {
        // If the channel has ended, there is nothing to disconnect.
        let _ = self.proxy.disconnect_push_supplier();
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

impl PushConsumer for Consumer {
    fn push<'a>(&'a self, _data: &'a Any) -> Result<(), PushConsumerPushError> {
        // One connection carries its events, so that no two are received at once.
        self.gate
            .receive(self.received.fetch_add(1, Ordering::Relaxed));
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}
