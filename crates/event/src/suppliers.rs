//! Who supplies a channel. Where there is room for no other, those that are gone are let go: who dies disconnects from nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use deckwatch_orb::{SystemException, SystemExceptionKind as Kind, own_minor};
use deckwatch_sync::PiMutex;

use crate::channel::raise;
use crate::cos_event_comm::PushSupplierRef;
use crate::limits;

/// Connected suppliers, the one that is looked at next first. Not on the road of an event.
#[derive(Default)]
pub(crate) struct SupplierList(PiMutex<VecDeque<Supplier>>);

struct Supplier {
    /// The number of its proxy.
    proxy: u64,
    /// Told at the end, and asked whether it is there; the others gave no reference.
    reference: Option<PushSupplierRef>,
    has_pushed: Activity,
    /// Times in a row that it was asked in vain.
    misses: u32,
}

/// Whether a supplier has pushed since it was last looked at; its proxy says so.
pub(crate) type Activity = Arc<AtomicBool>;

/// Proxies of suppliers that have pushed nothing since they were last looked at.
#[derive(Default)]
struct Quiet {
    /// Those that can be asked whether they are there.
    asked: Vec<(u64, PushSupplierRef)>,
    /// The one that cannot, and was looked at first.
    unasked: Option<u64>,
}

/// What a supplier says where it is asked whether it is there.
enum Answer {
    There,
    /// It will never push again.
    Gone,
    /// It could not be asked, or not in time.
    Missed,
}

impl SupplierList {
    /// Puts one behind the others, where `admit` lets it.
    ///
    /// # Errors
    /// NO_RESOURCES where there are too many; those of `admit`.
    pub(crate) fn connect(
        &self,
        proxy: u64,
        reference: Option<&PushSupplierRef>,
        admit: impl FnOnce() -> Result<(), SystemException>,
    ) -> Result<Activity, SystemException> {
        let mut suppliers = self.0.lock("event.suppliers");
        if suppliers.len() >= limits::SUPPLIERS_MAX {
            return Err(raise(Kind::NoResources));
        }
        admit()?;
        let has_pushed = Activity::default();
        suppliers.push_back(Supplier {
            proxy,
            reference: reference.cloned(),
            has_pushed: has_pushed.clone(),
            misses: 0,
        });
        Ok(has_pushed)
    }

    pub(crate) fn disconnect(&self, proxy: u64) {
        self.0
            .lock("event.suppliers")
            .retain(|supplier| supplier.proxy != proxy);
    }

    /// Takes them all; the references of those that gave one.
    pub(crate) fn take(&self) -> Vec<PushSupplierRef> {
        let suppliers = std::mem::take(&mut *self.0.lock("event.suppliers"));
        let references = suppliers.into_iter().map(|supplier| supplier.reference);
        references.flatten().collect()
    }

    /// The proxy of one that can be let go where there is room for no other: it does not exist any more; or it has given no reference
    /// and pushed nothing since it was last looked at, and may be disconnected without being told (Event Service 1.2, clause 2.5.4).
    pub(crate) fn one_to_let_go(&self) -> Option<u64> {
        let quiet = self.look()?;
        let gone = quiet.asked.into_iter().find_map(|(proxy, reference)| {
            let is_gone = match ask(&reference) {
                Answer::There => self.note(proxy, |_| 0),
                Answer::Missed => self.note(proxy, |misses| misses + 1),
                Answer::Gone => true,
            };
            is_gone.then_some(proxy)
        });
        gone.or(quiet.unasked)
    }

    /// Looks on from where it stopped. None: there is room.
    fn look(&self) -> Option<Quiet> {
        let mut suppliers = self.0.lock("event.suppliers");
        if suppliers.len() < limits::SUPPLIERS_MAX {
            return None;
        }
        let mut quiet = Quiet::default();
        for _ in 0..suppliers.len() {
            let supplier = suppliers.pop_front()?;
            if !supplier.has_pushed.swap(false, Relaxed) {
                match &supplier.reference {
                    Some(reference) => quiet.asked.push((supplier.proxy, reference.clone())),
                    None => quiet.unasked = quiet.unasked.or(Some(supplier.proxy)),
                }
            }
            suppliers.push_back(supplier);
            if quiet.asked.len() == limits::SUPPLIERS_ASKED_MAX {
                break;
            }
        }
        Some(quiet)
    }

    /// Counts what asking has come to; whether it was in vain too often.
    fn note(&self, proxy: u64, count: impl FnOnce(u32) -> u32) -> bool {
        let mut suppliers = self.0.lock("event.suppliers");
        let asked = suppliers
            .iter_mut()
            .find(|supplier| supplier.proxy == proxy);
        asked.is_some_and(|supplier| {
            supplier.misses = count(supplier.misses);
            supplier.misses >= limits::FAILURES_MAX
        })
    }
}

fn ask(reference: &PushSupplierRef) -> Answer {
    let hurried = reference
        .object()
        .with_round_trip_timeout(Some(limits::SUPPLIER_ASK_TIMEOUT));
    match hurried.non_existent() {
        Ok(false) => Answer::There,
        Ok(true) => Answer::Gone,
        // Nobody listens where it did.
        Err(exception) if exception.minor == own_minor::CONNECT_REFUSED => Answer::Gone,
        Err(_) => Answer::Missed,
    }
}
