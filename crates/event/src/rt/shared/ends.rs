//! How a real-time channel ends and notifies its clients.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};

use super::Shared;
use crate::farewells::{in_thread, say_farewell};
use crate::raise::raise;

impl Shared {
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
        let own = self.own();
        let farewell = move || {
            if let Some(shared) = own.upgrade() {
                // The lanes send what is queued before the farewell.
                while !shared.dispatcher.is_idle() {
                    std::thread::yield_now();
                }
                shared.close_consumers();
            }
            // The consumers do not wait for suppliers that are gone.
            for supplier in suppliers {
                say_farewell(supplier.object(), "disconnect_push_supplier");
            }
            if let Some(shared) = own.upgrade() {
                shared.suppliers_told.store(true, Release);
            }
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
