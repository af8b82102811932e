//! The consumers that the channel pushes to: an outlet for each, no thread.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use deckwatch_orb::delivery::{Batch, End, Outlet, OutletOptions, OutletOwner};
use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::{PiMutex, SlotKey, SlotTable};

use crate::cos_event_comm::PushConsumerRef;
use crate::event::Event;
use crate::limits;
use crate::peers::{Peer, Place};
use crate::raise::raise;
use crate::shared::Shared;

/// The consumers of one channel that it pushes to.
#[derive(Default)]
pub(crate) struct Consumers {
    /// Read for each event, without a lock.
    outlets: SlotTable<Arc<Outlet>>,
    /// Also held while the channel is destroyed.
    places: PiMutex<Places>,
}

#[derive(Default)]
struct Places {
    /// Consumers that are connected, or about to be.
    taken: usize,
    by_proxy: HashMap<u64, (SlotKey, Place)>,
}

impl Consumers {
    /// Offers an event to every consumer; never waits. Consumers of one process get it by one write.
    pub(crate) fn offer(&self, event: &mut Event<'_>) {
        let mut batch = Batch::new();
        self.outlets
            .for_each(|_, outlet| match event.octets_for(outlet) {
                Some(octets) => outlet.offer_in(octets, &mut batch),
                None => outlet.refuse(),
            });
    }

    /// Calls `each` with every connected consumer.
    pub(crate) fn for_each(&self, mut each: impl FnMut(&Outlet)) {
        self.outlets.for_each(|_, outlet| each(outlet));
    }

    /// Returns true if no consumer is connected.
    pub(crate) fn is_empty(&self) -> bool {
        self.places.lock("event.consumers").taken == 0
    }

    /// Removes a consumer. Returns its peer, unless it was removed before.
    fn remove(&self, proxy: u64) -> Option<Peer> {
        let mut places = self.places.lock("event.consumers");
        let (slot, place) = places.by_proxy.remove(&proxy)?;
        places.taken -= 1;
        self.outlets.remove(slot);
        Some(place.peer())
    }

    /// Closes the outlets. A consumer that connects at the same time has either finished or will find the channel
    /// destroyed.
    pub(crate) fn close(&self) {
        let _nobody_connects = self.places.lock("event.consumers");
        self.outlets.for_each(|_, outlet| outlet.close());
    }
}

impl Shared {
    /// Makes the outlet of a consumer. The connection to it is begun, and not waited for.
    ///
    /// # Errors
    /// NO_RESOURCES at the maximum of consumers, IMP_LIMIT at the share of the calling peer; OBJECT_NOT_EXIST if the
    /// channel or the proxy is gone.
    pub(crate) fn connect_consumer(
        &self,
        proxy: u64,
        consumer: &PushConsumerRef,
    ) -> Result<Arc<Outlet>, SystemException> {
        let consumers = &self.consumers;
        let place = self.shares.consumers.take(self.shares.caller())?;
        {
            let mut places = consumers.places.lock("event.consumers");
            self.check_alive()?;
            if places.taken >= limits::CONSUMERS_MAX {
                return Err(raise(Kind::NoResources));
            }
            self.objects.settle(proxy)?;
            places.taken += 1;
        }
        // Without the lock: to resolve a host name takes time.
        let made = self.deliveries.outlet(
            consumer.object(),
            self.outlet_options(proxy),
            self.as_owner(),
        );
        let mut places = consumers.places.lock("event.consumers");
        let connected = made.and_then(|outlet| {
            let slot = self.check_alive().and_then(|()| {
                let slot = consumers.outlets.insert(outlet.clone());
                slot.map_err(|_| raise(Kind::NoResources))
            });
            let slot = slot.inspect_err(|_| outlet.leave())?;
            places.by_proxy.insert(proxy, (slot, place));
            Ok(outlet)
        });
        if connected.is_err() {
            places.taken -= 1;
            drop(places);
            // `settle` has taken the proxy off the waiting list.
            self.objects.retire(proxy);
        }
        connected
    }

    pub(crate) fn outlet_options(&self, proxy: u64) -> OutletOptions {
        let options = self.options();
        OutletOptions {
            number: proxy,
            operation: "push",
            farewell: Some("disconnect_push_consumer"),
            window: options.window,
            queue_len: options.queue_len,
            queue_size_max: limits::QUEUE_SIZE_MAX,
            when_full: options.when_full,
            priority: None,
            is_private: false,
            failures_max: limits::FAILURES_MAX,
            final_exceptions: &["IDL:omg.org/CosEventComm/Disconnected:1.0"],
        }
    }

    /// Removes a consumer that may not stay, as if it had disconnected.
    pub(crate) fn disconnect_refused(&self, proxy: u64) {
        let slot = {
            let places = self.consumers.places.lock("event.consumers");
            places.by_proxy.get(&proxy).map(|(slot, _)| *slot)
        };
        let mut found = None;
        self.consumers.outlets.for_each(|at, outlet| {
            if Some(at) == slot {
                found = Some(Arc::clone(outlet));
            }
        });
        if let Some(outlet) = found {
            self.disconnect_consumer(proxy, &outlet);
        }
    }

    /// Removes a consumer, and notifies it. Its queued events are dropped.
    pub(crate) fn disconnect_consumer(&self, proxy: u64, outlet: &Arc<Outlet>) {
        let peer = self.consumers.remove(proxy);
        outlet.leave();
        self.objects.retire(proxy);
        if let Some(peer) = peer {
            let farewells = &self.shares.farewells;
            farewells.say(peer, outlet.object(), "disconnect_push_consumer");
        }
    }
}

impl OutletOwner for Shared {
    fn outlet_ended(&self, outlet: &Arc<Outlet>, why: End) {
        self.objects.retire(outlet.number());
        if why != End::Closed {
            self.counters.consumers_lost.fetch_add(1, Relaxed);
        }
        self.consumers.remove(outlet.number());
    }
}
