//! Which RT_Infos depend on each other through the connections of a channel.

use std::collections::BTreeSet;
use std::sync::Arc;

use deckwatch_orb::Priority;

use super::admission::{Needed, Pair};
use super::scheduling::Table;
use super::shared::Shared;
use crate::dispatch::Dispatching;
use crate::filter::{Filter, Header, Input};
use crate::limits::ADMITTED_PAIRS_MAX;

impl Shared {
    /// The dependencies of a consumer with this filter on the suppliers that are connected.
    pub(super) fn supplied(&self, consumer: u64, filter: &Filter, handles: &[i32]) -> Needed {
        let clients = self.clients.lock("rt.clients");
        let mut needed = BTreeSet::new();
        for (&number, supplier) in &clients.suppliers {
            for &publication in &supplier.handles {
                depend(
                    &mut needed,
                    filter,
                    handles,
                    publication,
                    (consumer, number),
                );
            }
        }
        needed
    }

    /// The dependencies on a supplier with these publications of the consumers that are connected.
    pub(super) fn consumed(&self, supplier: u64, published: &[(Header, i32)]) -> Needed {
        let mut needed = BTreeSet::new();
        for &publication in published {
            self.candidates(publication.0).for_each(|consumer| {
                let pair = (consumer.number, supplier);
                let (filter, handles) = (&consumer.filter, &consumer.handles);
                depend(&mut needed, filter, handles, publication, pair);
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

/// Adds a dependency for each RT_Info of the part of a filter that matches a publication, but for the publication's own.
/// [`super::admission::Admission::connect`] refuses more than [`ADMITTED_PAIRS_MAX`]: those beyond are left out.
fn depend(
    needed: &mut Needed,
    filter: &Filter,
    handles: &[i32],
    (publication, on): (Header, i32),
    pair: Pair,
) {
    if handles.is_empty() || needed.len() > ADMITTED_PAIRS_MAX {
        return;
    }
    let Some(name) = filter.part(Input::Event(publication)) else {
        return;
    };
    let part = filter.parts().find(|part| part.start == name);
    for entry in part.into_iter().flatten() {
        match handles.get(entry as usize) {
            Some(&of) if of != 0 && of != on => {
                needed.insert(((of, on), pair));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Entry;

    #[test]
    fn one_dependency_more_than_a_channel_admits_is_kept_and_no_other() {
        let event = Header {
            event_type: 20,
            source: 1,
        };
        let entry = Entry {
            event_type: 20,
            source: 1,
            time: 0,
        };
        let filter = Filter::build(&[entry]).expect("a filter");
        let last = ADMITTED_PAIRS_MAX as u64;
        let mut needed: Needed = (1..last).map(|number| ((1, 2), (number, 0))).collect();
        for (consumer, len) in [(last, last), (last + 1, last + 1), (last + 2, last + 1)] {
            depend(&mut needed, &filter, &[1], (event, 2), (consumer, 0));
            assert_eq!(needed.len() as u64, len);
        }
    }
}
