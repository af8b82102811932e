//! The suppliers of a real-time channel: connecting, leaving, and which of them are gone.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};

use super::Shared;
use crate::limits;
use crate::peers::Peer;
use crate::raise::raise;
use crate::rt::observers::Change;
use crate::rt::scheduling::Table;
use crate::rt::supplier::Supplier;

impl Shared {
    /// # Errors
    /// NO_PERMISSION for a publication that the access table refuses, NO_RESOURCES at the maximum of suppliers, or if
    /// an operation would miss its deadline, IMP_LIMIT at the share of the calling peer, OBJECT_NOT_EXIST after the
    /// end.
    pub(in crate::rt) fn connect_supplier(
        &self,
        number: u64,
        supplier: &Arc<Supplier>,
    ) -> Result<(), SystemException> {
        let home = &self.objects.home;
        home.check_events(number, supplier.published())?;
        let has_handles = !supplier.handles.is_empty();
        let Some(admission) = self.admission.as_ref().filter(|_| has_handles) else {
            return self.enter_supplier(number, supplier);
        };
        let consumed = || self.consumed(number, &supplier.handles);
        let handles: Vec<i32> = supplier.handles.iter().map(|each| each.1).collect();
        let enter = |table: &Table| {
            supplier.schedule(table);
            self.enter_supplier(number, supplier)
        };
        let of = (number, self.shares.caller(), &self.shares.pairs);
        let ((), table) = admission.connect(of, &handles, consumed, enter)?;
        self.reschedule(&table);
        Ok(())
    }

    fn enter_supplier(&self, number: u64, supplier: &Arc<Supplier>) -> Result<(), SystemException> {
        let (peer, publications) = (self.shares.caller(), supplier.publications.len());
        self.make_room_for_supplier(peer);
        let mut clients = self.clients.lock("rt.clients");
        self.check_alive()?;
        if !clients.suppliers.contains_key(&number) {
            if clients.suppliers.len() >= limits::SUPPLIERS_MAX {
                return Err(raise(Kind::NoResources));
            }
            let holding = self.shares.take_supplier(peer, publications)?;
            self.objects.settle(number)?;
            clients.places.insert(number, holding);
        } else if let Some(holding) = clients.places.get_mut(&number) {
            holding.resize(publications, 0)?;
        }
        clients.suppliers.insert(number, Arc::clone(supplier));
        drop(clients);
        if !supplier.is_gateway {
            self.observers.note(Change::Suppliers);
        }
        Ok(())
    }

    /// If the channel has its maximum of suppliers, or a peer its share, removes those suppliers, or those of the peer,
    /// whose connection is closed: they have pushed nothing since, and have probably died.
    fn make_room_for_supplier(&self, peer: Peer) {
        let is_full_for_peer = self.shares.suppliers.is_full_for(peer);
        let all: Vec<_> = {
            let clients = self.clients.lock("rt.clients");
            if !is_full_for_peer && clients.suppliers.len() < limits::SUPPLIERS_MAX {
                return;
            }
            let may_go = |number| {
                let place = clients.places.get(number);
                !is_full_for_peer || place.is_some_and(|place| place.peer() == peer)
            };
            let all = clients.suppliers.iter();
            all.filter(|(number, _)| may_go(number))
                .map(|(number, supplier)| (*number, Arc::clone(supplier)))
                .collect()
        };
        let open = self.shares.open_connections();
        for (number, supplier) in all {
            if !open.contains(&supplier.connection.load(Relaxed)) {
                self.counters.suppliers_lost.fetch_add(1, Relaxed);
                self.disconnect_supplier(number, Some(&supplier));
            }
        }
    }

    pub(in crate::rt) fn disconnect_supplier(&self, number: u64, supplier: Option<&Supplier>) {
        let place = {
            let mut clients = self.clients.lock("rt.clients");
            clients.suppliers.remove(&number);
            clients.places.remove(&number)
        };
        self.objects.retire(number);
        let Some(supplier) = supplier else {
            return;
        };
        self.leave_schedule(number, supplier.handles.is_empty());
        if !supplier.is_gateway {
            self.observers.note(Change::Suppliers);
        }
        if let (Some(reference), true) = (&supplier.reference, self.options.disconnect_callbacks) {
            let peer = place.map_or(Peer::Unknown, |place| place.peer());
            let farewells = &self.shares.farewells;
            farewells.say(peer, reference.object(), "disconnect_push_supplier");
        }
    }
}
