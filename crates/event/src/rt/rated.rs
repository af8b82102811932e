//! Which RT_Infos depend on each other through the connections of a channel.

use std::sync::Arc;

use deckwatch_orb::Priority;

use super::admission::Pair;
use super::scheduling::{Edge, Table};
use super::shared::Shared;
use crate::dispatch::Dispatching;
use crate::filter::{Filter, Header, Input};

impl Shared {
    /// The dependencies of a consumer with this filter on the suppliers that are connected.
    pub(super) fn supplied(
        &self,
        consumer: u64,
        filter: &Filter,
        handles: &[i32],
    ) -> Vec<(Edge, Pair)> {
        let clients = self.clients.lock("rt.clients");
        let mut needed = Vec::new();
        for (&number, supplier) in &clients.suppliers {
            for &(publication, on) in &supplier.handles {
                let pair = (consumer, number);
                depend(
                    filter,
                    handles,
                    publication,
                    |of| needed.push(((of, on), pair)),
                    on,
                );
            }
        }
        needed
    }

    /// The dependencies on a supplier with these publications of the consumers that are connected.
    pub(super) fn consumed(&self, supplier: u64, published: &[(Header, i32)]) -> Vec<(Edge, Pair)> {
        let mut needed = Vec::new();
        for &(publication, on) in published {
            self.candidates(publication).for_each(|consumer| {
                let pair = (consumer.number, supplier);
                let add = |of| needed.push(((of, on), pair));
                depend(&consumer.filter, &consumer.handles, publication, add, on);
            });
        }
        needed
    }

    /// Gives all clients that name RT_Infos the priorities of a schedule.
    pub(super) fn reschedule(&self, table: &Table) {
        let (consumers, suppliers) = {
            let clients = self.clients.lock("rt.clients");
            let consumers: Vec<_> = clients.consumers.values().map(Arc::clone).collect();
            let suppliers: Vec<_> = clients.suppliers.values().map(Arc::clone).collect();
            (consumers, suppliers)
        };
        for consumer in consumers {
            consumer.schedule(table);
        }
        for supplier in suppliers {
            supplier.schedule(table);
        }
    }

    /// The priority of the lowest lane, if there are lanes: a supplier without a priority gets it.
    pub(super) fn lowest_lane(&self) -> Option<Priority> {
        match &self.options.dispatching {
            Dispatching::Lanes(lanes) => lanes.iter().map(|lane| lane.priority).min(),
            Dispatching::Reactive | Dispatching::Pool { .. } => None,
        }
    }

    pub(super) fn leave_schedule(&self, number: u64, is_unscheduled: bool) {
        if let Some(admission) = self.admission.as_ref().filter(|_| !is_unscheduled) {
            admission.leave(number);
        }
    }
}

/// Calls `add` with each RT_Info of the part of a filter that matches a publication, but for the publication's own.
fn depend(
    filter: &Filter,
    handles: &[i32],
    publication: Header,
    mut add: impl FnMut(i32),
    on: i32,
) {
    if handles.is_empty() {
        return;
    }
    let Some(name) = filter.part(Input::Event(publication)) else {
        return;
    };
    let part = filter.parts().find(|part| part.start == name);
    for entry in part.into_iter().flatten() {
        match handles.get(entry as usize) {
            Some(&of) if of != 0 && of != on => add(of),
            _ => {}
        }
    }
}
