//! The connection with the channel: a consumer or a supplier for each direction of each mapping. It is made anew when
//! the channel has gone.

mod qos;

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use deckwatch_event::client::{Connected, address_towards};
use deckwatch_event::rtec_event_channel_admin::{
    ConsumerAdminRef, EventChannelRef, ProxyPushConsumerRef, ProxyPushSupplierRef, SupplierAdminRef,
};
use deckwatch_event::rtec_event_comm::{
    Event, PushConsumerRef, PushConsumerSkeleton, PushSupplier, PushSupplierRef,
    PushSupplierSkeleton,
};
use deckwatch_orb::{ObjectRef, Orb, Servant, SystemException};

use crate::Way;
use crate::config::{ChannelSource, Mapping, read_text};
use crate::counts::OutCounters;
use crate::inward::Supplier;
use crate::limits::{
    CALL_TIMEOUT, CHECK_INTERVAL, FAREWELL_TIMEOUT, RECONNECT_MAX, RECONNECT_MIN, WAIT_STEP,
};
use crate::outward::Consumer;
use crate::queue::QueueEnd;

/// Why the channel cannot be connected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct LinkError(String);

fn failed(what: &str, error: &dyn Display) -> LinkError {
    LinkError(format!("{what}: {error}"))
}

/// One direction of a mapping, as the channel sees it.
pub(crate) enum End {
    /// A consumer, whose events go to zenoh.
    Out(Way<OutCounters>, QueueEnd<Event>),
    /// A supplier of events from zenoh.
    In(Arc<Mapping>, Supplier),
}

/// Keeps the channel connected.
pub(crate) struct Link {
    pub(crate) channel: ChannelSource,
    pub(crate) listen: Option<String>,
    pub(crate) ends: Vec<End>,
    /// Set when the channel says that it ends, or a push fails.
    pub(crate) is_broken: Arc<AtomicBool>,
    pub(crate) connects: Arc<AtomicU64>,
    /// Takes what the user should know.
    pub(crate) log: Box<dyn Fn(&str) + Send>,
}

impl Link {
    /// Connects, watches and connects again until `ends` is set; then disconnects.
    pub(crate) fn run(self, ends: &AtomicBool) {
        let mut pause = RECONNECT_MIN;
        let mut last_error = None;
        while !ends.load(Acquire) {
            self.is_broken.store(false, Release);
            match self.connect() {
                Ok(connection) => {
                    (pause, last_error) = (RECONNECT_MIN, None);
                    self.connects.fetch_add(1, Relaxed);
                    (self.log)("connected with the channel");
                    let why = self.watch(&connection, ends);
                    self.forget_suppliers();
                    drop(connection);
                    if let Err(error) = why {
                        (self.log)(&format!(
                            "the channel is gone: {error}; looking for it again"
                        ));
                    }
                }
                Err(error) => {
                    if last_error.as_ref() != Some(&error) {
                        (self.log)(&format!(
                            "cannot connect with the channel: {error}; trying again"
                        ));
                    }
                    last_error = Some(error);
                    wait(pause, || ends.load(Acquire));
                    pause = (pause * 2).min(RECONNECT_MAX);
                }
            }
        }
    }

    /// Returns once `ends` is set.
    fn watch(&self, connection: &Connection, ends: &AtomicBool) -> Result<(), LinkError> {
        loop {
            let is_over = || ends.load(Acquire) || self.is_broken.load(Acquire);
            wait(CHECK_INTERVAL, is_over);
            if ends.load(Acquire) {
                return Ok(());
            }
            if self.is_broken.load(Acquire) {
                return Err(LinkError("it has ended".to_owned()));
            }
            connection.check()?;
        }
    }

    fn forget_suppliers(&self) {
        for end in &self.ends {
            if let End::In(_, supplier) = end {
                supplier.set(None);
            }
        }
    }

    fn connect(&self) -> Result<Connection, LinkError> {
        let reference = match &self.channel {
            ChannelSource::Reference(text) => text.clone(),
            ChannelSource::File(path) => {
                let text = read_text(path);
                let text = text.map_err(|error| failed(&format!("{}", path.display()), &error))?;
                text.trim().to_owned()
            }
        };
        let mut connection = Connection {
            orb: self.orb(&reference)?,
            consumers: Vec::new(),
            suppliers: Vec::new(),
        };
        let channel = resolve(&connection.orb, &reference)?;
        let channel = EventChannelRef::narrow(&channel)
            .map_err(|error| failed("it does not answer", &error))?
            .ok_or_else(|| LinkError("the object is no real-time event channel".to_owned()))?;
        for end in &self.ends {
            let connected = match end {
                End::Out(way, queue) => {
                    self.connect_consumer(&mut connection, &channel, way, queue)
                }
                End::In(mapping, supplier) => {
                    self.connect_supplier(&mut connection, &channel, mapping, supplier)
                }
            };
            connected.inspect_err(|_| self.forget_suppliers())?;
        }
        Ok(connection)
    }

    /// Returns an ORB that listens where the channel reaches it.
    fn orb(&self, reference: &str) -> Result<Orb, LinkError> {
        let at = match &self.listen {
            Some(at) => at.clone(),
            None => {
                let own = within(Orb::builder()).build();
                let own = own.map_err(|error| failed("its reference", &error))?;
                let towards = resolve(&own, reference).map(|object| address_towards(&object));
                // Nothing was served.
                let _ = own.shutdown(true);
                SocketAddr::new(towards?, 0).to_string()
            }
        };
        let listening = Orb::builder().listen(&at).and_then(|it| within(it).build());
        listening.map_err(|error| failed(&format!("cannot listen at {at} for its events"), &error))
    }

    fn connect_consumer(
        &self,
        connection: &mut Connection,
        channel: &EventChannelRef,
        way: &Way<OutCounters>,
        queue: &QueueEnd<Event>,
    ) -> Result<(), LinkError> {
        let refused = |error: &dyn Display| failed("it refused a consumer", error);
        let consumer = Consumer {
            mapping: Arc::clone(&way.mapping),
            identity: way.identity,
            queue: queue.clone(),
            counts: Arc::clone(&way.counts),
            has_ended: Arc::clone(&self.is_broken),
        };
        let own = connection.activate(Arc::new(PushConsumerSkeleton::new(consumer)))?;
        let proxy = Connected::obtain(
            channel.for_consumers(),
            ConsumerAdminRef::obtain_push_supplier,
            FAREWELL_TIMEOUT,
        );
        let proxy = proxy.map_err(|error| refused(&error))?;
        let own = PushConsumerRef::unchecked_narrow(own);
        let qos = qos::consumer_qos(&way.mapping.headers());
        let connected = proxy.connect_push_consumer(Some(&own), &qos);
        connected.map_err(|error| refused(&error))?;
        connection.consumers.push(proxy);
        Ok(())
    }

    fn connect_supplier(
        &self,
        connection: &mut Connection,
        channel: &EventChannelRef,
        mapping: &Mapping,
        supplier: &Supplier,
    ) -> Result<(), LinkError> {
        let refused = |error: &dyn Display| failed("it refused a supplier", error);
        let servant = Farewell(Arc::clone(&self.is_broken));
        let own = connection.activate(Arc::new(PushSupplierSkeleton::new(servant)))?;
        let proxy = Connected::obtain(
            channel.for_suppliers(),
            SupplierAdminRef::obtain_push_consumer,
            FAREWELL_TIMEOUT,
        );
        let proxy = proxy.map_err(|error| refused(&error))?;
        let own = PushSupplierRef::unchecked_narrow(own);
        let qos = qos::supplier_qos(&mapping.headers());
        let connected = proxy.connect_push_supplier(Some(&own), &qos);
        connected.map_err(|error| refused(&error))?;
        supplier.set(Some(proxy.clone()));
        connection.suppliers.push(proxy);
        Ok(())
    }
}

/// The servant of a supplier: the channel calls it when it ends.
struct Farewell(Arc<AtomicBool>);

impl PushSupplier for Farewell {
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        self.0.store(true, Release);
        Ok(())
    }
}

/// Our proxies in one channel. Dropping it disconnects them.
struct Connection {
    orb: Orb,
    consumers: Vec<Connected<ProxyPushSupplierRef>>,
    suppliers: Vec<Connected<ProxyPushConsumerRef>>,
}

impl Connection {
    fn activate(&self, servant: Arc<dyn Servant>) -> Result<ObjectRef, LinkError> {
        let own = |error: &dyn Display| failed("its servant", error);
        let poa = self.orb.root_poa().map_err(|error| own(&error))?;
        let manager = poa.the_poa_manager();
        manager.activate().map_err(|error| own(&error))?;
        poa.servant_to_reference(&servant)
            .map_err(|error| own(&error))
    }

    /// The references of our proxies.
    fn proxies(&self) -> impl Iterator<Item = &ObjectRef> {
        let consumers = self.consumers.iter().map(|proxy| proxy.object());
        consumers.chain(self.suppliers.iter().map(|proxy| proxy.object()))
    }

    /// Asks the channel whether it still has our consumers and suppliers.
    fn check(&self) -> Result<(), LinkError> {
        for proxy in self.proxies() {
            match proxy.non_existent() {
                Ok(false) => {}
                Ok(true) => return Err(LinkError("it has dropped this gateway".to_owned())),
                Err(error) => return Err(failed("it does not answer", &error)),
            }
        }
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut proxies = self.proxies();
        let answers = proxies.next().is_none_or(|proxy| {
            let hurried = proxy.with_round_trip_timeout(Some(FAREWELL_TIMEOUT));
            hurried.non_existent().is_ok()
        });
        drop(proxies);
        if answers {
            self.consumers.clear();
            self.suppliers.clear();
        }
        // Proxies of a channel that does not answer are dropped after it: their calls fail at once. The shutdown fails
        // only if the ORB was shut down before, and no other code shuts it down.
        let _ = self.orb.shutdown(true);
    }
}

fn within(builder: deckwatch_orb::OrbBuilder) -> deckwatch_orb::OrbBuilder {
    let builder = builder.connect_timeout(CALL_TIMEOUT);
    builder.round_trip_timeout(CALL_TIMEOUT)
}

fn resolve(orb: &Orb, reference: &str) -> Result<ObjectRef, LinkError> {
    let object = orb.string_to_object(reference);
    let object = object.map_err(|error| failed("its reference leads to no object", &error))?;
    object.ok_or_else(|| LinkError("its reference is nil".to_owned()))
}

/// Waits for a time, or until `is_over` holds.
fn wait(time: Duration, is_over: impl Fn() -> bool) {
    let until = Instant::now() + time;
    while !is_over() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(WAIT_STEP));
    }
}
