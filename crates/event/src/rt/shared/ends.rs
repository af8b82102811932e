//! How a real-time channel ends and notifies its clients.

use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use deckwatch_orb::{AccessWatcher, SystemException, SystemExceptionKind as Kind};

use super::{Shared, subscribed};
use crate::channel_group::ProxyKind;
use crate::farewells::{in_thread, say_farewell};
use crate::peers::Peer;
use crate::raise::raise;

impl AccessWatcher for Shared {
    fn ask_again(&self) -> usize {
        let refused = {
            let clients = self.clients.lock("rt.clients");
            let events = |number, kind| {
                let events = match kind {
                    ProxyKind::PushSupplier => {
                        let consumer = clients.consumers.get(&number)?;
                        subscribed(&consumer.filter).into_iter().collect()
                    }
                    _ => clients.suppliers.get(&number)?.published().collect(),
                };
                Some(events)
            };
            let all = |number, kind| Some(events(number, kind).unwrap_or_default());
            self.objects.home.refused_clients(all)
        };
        for (number, kind) in &refused {
            let clients = self.clients.lock("rt.clients");
            let place = clients.places.get(number);
            let peer = place.map_or(Peer::Unknown, |place| place.peer());
            let supplier = clients.suppliers.get(number).cloned();
            drop(clients);
            if *kind == ProxyKind::PushSupplier {
                self.disconnect_refused(*number, peer);
            } else {
                self.disconnect_supplier(*number, supplier.as_deref());
                let reference = supplier.as_ref().and_then(|it| it.reference.as_ref());
                if let (Some(reference), false) = (reference, self.options.disconnect_callbacks) {
                    let farewells = &self.shares.farewells;
                    farewells.say(peer, reference.object(), "disconnect_push_supplier");
                }
            }
        }
        refused.len() + self.observers.remove_refused(&self.objects.home.gate)
    }
}

impl Shared {
    /// Ends a consumer that may not stay, and notifies it: it did not ask for that. What is queued for it is not sent.
    fn disconnect_refused(&self, number: u64, peer: Peer) {
        let Some(consumer) = self.consumer(number) else {
            return;
        };
        if self.remove_consumer(number, false, |one| {
            Arc::ptr_eq(&one.outlet, &consumer.outlet)
        }) {
            consumer.outlet.leave();
            let farewells = &self.shares.farewells;
            farewells.say(peer, consumer.outlet.object(), "disconnect_push_consumer");
        }
    }

    /// Has consumers called back after their queued events.
    fn close_consumers(&self) {
        let clients = self.clients.lock("rt.clients");
        let consumers: Vec<_> = clients.consumers.values().cloned().collect();
        drop(clients);
        for consumer in consumers {
            consumer.outlet.close();
        }
    }

    /// Ends the threads. Clients are not notified.
    pub(in crate::rt) fn stop(&self) {
        if self.is_destroyed.swap(true, AcqRel) {
            return;
        }
        self.timeouts.close();
        self.observers.close();
        self.dispatcher.close();
        self.deliveries.close();
    }

    /// Ends the channel: all objects are deactivated, what is queued is sent, and all clients are notified.
    pub(in crate::rt) fn destroy(&self) -> Result<(), SystemException> {
        if self.is_destroyed.swap(true, AcqRel) {
            return Err(raise(Kind::ObjectNotExist));
        }
        self.objects.retire_all();
        self.objects.home.forget_all();
        self.timeouts.close();
        self.observers.close();
        // A concurrent connect has either finished or will find the channel destroyed.
        let suppliers: Vec<_> = {
            let clients = self.clients.lock("rt.clients");
            let suppliers = clients.suppliers.values();
            suppliers
                .filter_map(|each| each.reference.clone())
                .collect()
        };
        self.dispatcher.close();
        // Its owner may drop the channel meanwhile.
        let Some(shared) = self.own().upgrade() else {
            return Ok(());
        };
        let farewell = move || {
            // The lanes send what is queued before the farewell.
            while !shared.dispatcher.is_idle() {
                std::thread::yield_now();
            }
            shared.close_consumers();
            // The consumers do not wait for suppliers that are gone.
            for supplier in suppliers {
                say_farewell(supplier.object(), "disconnect_push_supplier");
            }
            shared.suppliers_told.store(true, Release);
        };
        if self.dispatcher.is_by_hand() {
            farewell();
        } else if !in_thread(farewell) {
            self.close_consumers();
            self.suppliers_told.store(true, Release);
        }
        Ok(())
    }

    pub(in crate::rt) fn has_ended(&self) -> bool {
        self.suppliers_told.load(Acquire) && self.clients.lock("rt.clients").consumers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use deckwatch_orb::Orb;

    use super::*;
    use crate::gate::Gate;
    use crate::home::Home;
    use crate::rt::RtChannelOptions;
    use crate::rtec_event_channel_admin::ObserverRef;

    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

    #[test]
    fn threads_of_a_channel_end_with_it() {
        let destroy = |shared: &Shared| shared.destroy().expect("it was alive");
        let ends: [&dyn Fn(&Shared); 2] = [&Shared::stop, &destroy];
        for end in ends {
            let orb = Orb::builder().build().expect("an ORB");
            let home = Home::transient(&orb, Gate::new(&orb, None, true)).expect("a home");
            let shared = Shared::new(home, &orb, RtChannelOptions::default());
            let shared = shared.expect("a channel");
            let watched = shared.timeouts.watch(&shared.own, u64::MAX, 1);
            watched.expect("a thread");
            let nobody = orb.string_to_object("corbaloc::127.0.0.1:1/nobody");
            let nobody = nobody.expect("a URL").expect("not nil");
            let observer = ObserverRef::unchecked_narrow(nobody);
            let place = shared.shares.observers.take(Peer::ThisProcess);
            let place = place.expect("a place");
            let observers = &shared.observers;
            let appended = observers.append(&shared.own, (&observer, None), place);
            let handle = appended.expect("a thread").expect("few");
            // Without an observer the thread waits for ever.
            assert!(observers.remove(handle));
            assert_eq!(shared.check_alive(), Ok(()));
            end(&shared);
            assert_eq!(shared.check_alive(), Err(raise(Kind::ObjectNotExist)));
            // The threads have the other references.
            let timeouts = Arc::downgrade(&shared.timeouts);
            let observers = Arc::downgrade(&shared.observers);
            drop(shared);
            let begun = std::time::Instant::now();
            while timeouts.strong_count() + observers.strong_count() > 0 {
                assert!(begun.elapsed() < PATIENCE, "a thread goes on");
                std::thread::yield_now();
            }
            orb.shutdown(true).expect("it ends");
        }
    }
}
