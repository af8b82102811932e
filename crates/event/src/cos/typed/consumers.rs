//! Typed push consumers: an outlet for the calls of each, and one for its farewell, which goes to another object. No
//! thread.

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use deckwatch_cdr::Writer;
use deckwatch_orb::delivery::{Batch, End, Form, Marshalled, Outlet, OutletOptions, OutletOwner};
use deckwatch_orb::{ObjectRef, SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::{PiMutex, SlotKey, SlotTable};

use super::channel::Typed;
use super::event::TypedEvent;
use crate::cos_event_comm::PushConsumerRef;
use crate::limits;
use crate::peers::Place;
use crate::raise::raise;

/// The consumers of one typed channel that are pushed to.
#[derive(Default)]
pub(super) struct TypedConsumers {
    /// Read for each event, without a lock.
    table: SlotTable<Arc<Consumer>>,
    /// By the number of the proxy. Also held while the channel is destroyed.
    places: PiMutex<HashMap<u64, Connected>>,
}

struct Connected {
    slot: SlotKey,
    consumer: Arc<Consumer>,
    _place: Place,
}

struct Consumer {
    interface: usize,
    /// Calls the operations of the typed object.
    calls: Arc<Outlet>,
    /// Notifies the consumer of the end, after its last call.
    farewell: Arc<Outlet>,
}

/// A typed consumer that connects.
pub(super) struct Newcomer {
    pub(super) proxy: u64,
    pub(super) interface: usize,
    /// The object that has the operations.
    pub(super) object: ObjectRef,
    /// Notified of the end.
    pub(super) reference: PushConsumerRef,
}

impl TypedConsumers {
    /// Offers an event to each consumer of its interface; never waits. It is marshalled once for each form.
    pub(super) fn offer(&self, typed: &Typed, event: &TypedEvent) {
        let mut bodies: Vec<(Form, Option<Marshalled>)> = Vec::new();
        let mut batch = Batch::new();
        self.table.for_each(|_, consumer| {
            if consumer.interface != event.interface {
                return;
            }
            let form = consumer.calls.form();
            let known = bodies.iter().position(|(known, _)| *known == form);
            let place = known.unwrap_or_else(|| {
                bodies.push((form, marshal(typed, form, event)));
                bodies.len() - 1
            });
            match &bodies[place].1 {
                Some(body) => consumer.calls.offer_in(body, &mut batch),
                None => consumer.calls.refuse(),
            }
        });
    }

    /// Removes a consumer; its queued events are not pushed any more. It is notified.
    pub(super) fn disconnect(&self, proxy: u64) {
        if let Some(consumer) = self.remove(proxy) {
            consumer.calls.leave();
            consumer.farewell.close();
        }
    }

    fn consumer(&self, proxy: u64) -> Option<Arc<Consumer>> {
        let places = self.places.lock("event.typed");
        Some(Arc::clone(&places.get(&proxy)?.consumer))
    }

    fn remove(&self, proxy: u64) -> Option<Arc<Consumer>> {
        let connected = self.places.lock("event.typed").remove(&proxy)?;
        self.table.remove(connected.slot);
        Some(connected.consumer)
    }

    /// Ends the channel. Each consumer is notified after its queued events.
    pub(super) fn close(&self) {
        let _nobody_connects = self.places.lock("event.typed");
        self.table.for_each(|_, consumer| consumer.calls.close());
    }

    /// Returns true if no consumer is connected.
    pub(super) fn is_empty(&self) -> bool {
        self.places.lock("event.typed").is_empty()
    }
}

impl Typed {
    /// Makes the outlets of a consumer. The connection to it is begun, and not waited for.
    ///
    /// # Errors
    /// NO_RESOURCES at the maximum, IMP_LIMIT at the share of the calling peer; OBJECT_NOT_EXIST if the channel or the
    /// proxy is gone.
    pub(super) fn connect_consumer(
        self: &Arc<Self>,
        newcomer: &Newcomer,
    ) -> Result<(), SystemException> {
        let (shared, proxy) = (&self.shared, newcomer.proxy);
        let owner: Weak<dyn OutletOwner> = Arc::<Self>::downgrade(self);
        // Without the lock: to resolve a host name takes time.
        let outlet = |object: &ObjectRef, farewell| {
            let options = OutletOptions {
                farewell,
                queue_size_max: shared.options().size_max / limits::TYPED_QUEUE_SHARE,
                ..shared.outlet_options(proxy)
            };
            shared.deliveries.outlet(object, options, owner.clone())
        };
        let calls = outlet(&newcomer.object, None)?;
        let farewell = outlet(
            newcomer.reference.object(),
            Some("disconnect_push_consumer"),
        );
        let farewell = farewell.inspect_err(|_| calls.leave())?;
        let consumer = Arc::new(Consumer {
            interface: newcomer.interface,
            calls,
            farewell,
        });
        let entered = self.enter_consumer(proxy, &consumer);
        if entered.is_err() {
            consumer.calls.leave();
            consumer.farewell.leave();
        }
        entered
    }

    fn enter_consumer(&self, proxy: u64, consumer: &Arc<Consumer>) -> Result<(), SystemException> {
        let (shared, consumers) = (&self.shared, &self.consumers);
        let mut places = consumers.places.lock("event.typed");
        shared.check_alive()?;
        if places.len() >= limits::TYPED_CONSUMERS_MAX {
            return Err(raise(Kind::NoResources));
        }
        let place = shared.shares.typed.take(shared.shares.caller())?;
        shared.objects.settle(proxy)?;
        let slot = consumers.table.insert(Arc::clone(consumer));
        let connected = Connected {
            slot: slot.map_err(|_| raise(Kind::NoResources))?,
            consumer: Arc::clone(consumer),
            _place: place,
        };
        places.insert(proxy, connected);
        Ok(())
    }
}

impl OutletOwner for Typed {
    fn outlet_ended(&self, outlet: &Arc<Outlet>, why: End) {
        let proxy = outlet.number();
        let Some(consumer) = self.consumers.consumer(proxy) else {
            return;
        };
        if Arc::ptr_eq(outlet, &consumer.calls) && why == End::Closed {
            return consumer.farewell.close();
        }
        self.consumers.remove(proxy);
        consumer.calls.leave();
        consumer.farewell.leave();
        self.shared.objects.retire(proxy);
        if why != End::Closed {
            self.shared.counters.consumers_lost.fetch_add(1, Relaxed);
        }
    }
}

/// The body of a call; `None` if there can be none.
fn marshal(typed: &Typed, form: Form, event: &TypedEvent) -> Option<Marshalled> {
    let operation = &typed.interfaces[event.interface].operations[event.operation];
    let write = |w: &mut Writer<'_>| {
        let mut values = event.arguments.0.iter();
        values.try_for_each(|value| value.write_value(w))
    };
    let deliveries = &typed.shared.deliveries;
    deliveries.marshal_call(form, &operation.name, write).ok()
}
