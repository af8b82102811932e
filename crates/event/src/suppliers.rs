//! The suppliers of a channel. At the maximum, suppliers that are gone are removed: a supplier that crashes does not
//! disconnect.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use deckwatch_orb::outward::UnderWay;
use deckwatch_orb::transport::Instant64;
use deckwatch_orb::{SystemException, SystemExceptionKind as Kind, own_minor};
use deckwatch_sync::PiMutex;

use crate::cos_event_comm::PushSupplierRef;
use crate::limits;
use crate::peers::{Peer, Place};
use crate::raise::raise;

/// Connected suppliers, in the order in which they are checked. A push does not take this lock.
#[derive(Default)]
pub(crate) struct SupplierList(PiMutex<VecDeque<Supplier>>);

struct Supplier {
    /// The number of its proxy.
    proxy: u64,
    /// Notified when the channel ends, and called to find out whether the supplier still exists. `None` for a supplier
    /// that gave no reference.
    reference: Option<PushSupplierRef>,
    has_pushed: Activity,
    /// The last known activity: the time of connecting, or of the check that found a push.
    active: Instant64,
    /// Calls in a row that the supplier did not answer.
    misses: u32,
    place: Place,
}

/// Whether a supplier has pushed since the last check; set by its proxy.
pub(crate) type Activity = Arc<AtomicBool>;

/// Proxies of suppliers that have pushed nothing for [`limits::SUPPLIER_QUIET_MIN`].
#[derive(Default)]
struct Quiet {
    /// Suppliers with a reference, which can be called.
    asked: Vec<(u64, PushSupplierRef)>,
    /// The first supplier without a reference.
    unasked: Option<u64>,
}

/// The result of calling a supplier to find out whether it still exists.
enum Answer {
    There,
    /// The supplier will never push again.
    Gone,
    /// The call failed or timed out.
    Missed,
}

impl SupplierList {
    /// Appends a supplier if `admit` returns `Ok`.
    ///
    /// # Errors
    /// NO_RESOURCES at the maximum of suppliers; the errors of `admit`, which takes its place in the shares.
    pub(crate) fn connect(
        &self,
        proxy: u64,
        reference: Option<&PushSupplierRef>,
        now: Instant64,
        admit: impl FnOnce() -> Result<Place, SystemException>,
    ) -> Result<Activity, SystemException> {
        let mut suppliers = self.0.lock("event.suppliers");
        if suppliers.len() >= limits::SUPPLIERS_MAX {
            return Err(raise(Kind::NoResources));
        }
        let place = admit()?;
        let has_pushed = Activity::default();
        suppliers.push_back(Supplier {
            proxy,
            reference: reference.cloned(),
            has_pushed: has_pushed.clone(),
            active: now,
            misses: 0,
            place,
        });
        Ok(has_pushed)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock("event.suppliers").len()
    }

    /// Removes a supplier. Returns its reference, if it gave one, and its peer.
    pub(crate) fn disconnect(&self, proxy: u64) -> Option<(PushSupplierRef, Peer)> {
        let mut suppliers = self.0.lock("event.suppliers");
        let place = suppliers.iter().position(|it| it.proxy == proxy)?;
        let gone = suppliers.remove(place)?;
        Some((gone.reference?, gone.place.peer()))
    }

    /// Removes all suppliers. Returns the references of those that gave one.
    pub(crate) fn take(&self) -> Vec<PushSupplierRef> {
        let suppliers = std::mem::take(&mut *self.0.lock("event.suppliers"));
        let references = suppliers.into_iter().map(|supplier| supplier.reference);
        references.flatten().collect()
    }

    /// If the list is full, or a peer holds its share (`full`), removes one supplier, of that peer then, and returns
    /// the number of its proxy. The supplier has pushed nothing for [`limits::SUPPLIER_QUIET_MIN`]. Either it no longer
    /// exists, or it gave no reference and may be disconnected without notice (Event Service 1.2, clause 2.5.4).
    ///
    /// `begin` takes the place of the calls that find out whether suppliers exist; without it they are not called.
    pub(crate) fn let_one_go<'o>(
        &self,
        now: Instant64,
        full: Option<Peer>,
        begin: impl FnOnce() -> Option<UnderWay<'o>>,
    ) -> Option<u64> {
        let quiet = self.look(now, full)?;
        let call = (!quiet.asked.is_empty()).then(begin).flatten();
        let gone = call.and_then(|call| self.find_gone(&call, quiet.asked));
        let proxy = gone.or(quiet.unasked)?;
        self.remove_quiet(proxy).then_some(proxy)
    }

    /// Calls suppliers until one of them is gone. Returns the number of its proxy.
    fn find_gone(&self, call: &UnderWay<'_>, asked: Vec<(u64, PushSupplierRef)>) -> Option<u64> {
        asked.into_iter().find_map(|(proxy, reference)| {
            let is_gone = match ask(call, &reference) {
                Answer::There => self.note(proxy, |_| 0),
                Answer::Missed => self.note(proxy, |misses| misses + 1),
                Answer::Gone => true,
            };
            is_gone.then_some(proxy)
        })
    }

    /// Checks suppliers, starting after the last one checked. Returns `None` if the list has room.
    fn look(&self, now: Instant64, full: Option<Peer>) -> Option<Quiet> {
        let mut suppliers = self.0.lock("event.suppliers");
        let is_full = suppliers.len() >= limits::SUPPLIERS_MAX;
        if !is_full && full.is_none() {
            return None;
        }
        let may_go = |supplier: &Supplier| full.is_none_or(|peer| supplier.place.peer() == peer);
        let mut quiet = Quiet::default();
        for _ in 0..suppliers.len() {
            let mut supplier = suppliers.pop_front()?;
            if supplier.has_pushed.swap(false, Relaxed) {
                // The push came at some time between the last check and now.
                supplier.active = now;
                supplier.misses = 0;
            } else if may_go(&supplier) && now.since(supplier.active) >= limits::SUPPLIER_QUIET_MIN
            {
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

    /// Removes a supplier unless it has pushed since the check. Returns true if it was still listed and was removed.
    fn remove_quiet(&self, proxy: u64) -> bool {
        let mut suppliers = self.0.lock("event.suppliers");
        let is_it = |it: &Supplier| it.proxy == proxy && !it.has_pushed.load(Relaxed);
        let place = suppliers.iter().position(is_it);
        place.and_then(|place| suppliers.remove(place)).is_some()
    }

    /// Sets the count of unanswered calls. Returns true if it has reached the limit.
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

fn ask(call: &UnderWay<'_>, reference: &PushSupplierRef) -> Answer {
    let limit = Some(limits::SUPPLIER_ASK_TIMEOUT);
    let asked = call.to(reference.object());
    match asked.and_then(|asked| asked.with_round_trip_timeout(limit).non_existent()) {
        Ok(false) => Answer::There,
        Ok(true) => Answer::Gone,
        // No process listens at the supplier's address any more.
        Err(exception) if exception.minor == own_minor::CONNECT_REFUSED => Answer::Gone,
        Err(_) => Answer::Missed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::Places;

    const QUIET_NS: u64 = limits::SUPPLIER_QUIET_MIN.as_nanos() as u64;

    /// A full list of suppliers without a reference, connected at `now`.
    fn full(now: Instant64) -> (SupplierList, Vec<Activity>) {
        let list = SupplierList::default();
        let places = Places::new(limits::SUPPLIERS_MAX, own_minor::SUPPLIER_SHARE_FULL);
        let admit = || places.take(Peer::Unknown);
        let connect = |proxy| list.connect(proxy, None, now, admit).expect("room");
        let all = (0..limits::SUPPLIERS_MAX as u64).map(connect).collect();
        (list, all)
    }

    #[test]
    fn who_has_connected_or_pushed_a_moment_ago_is_not_let_go_however_often_one_more_asks() {
        let (list, all) = full(Instant64(1));
        assert_eq!(
            list.let_one_go(Instant64(QUIET_NS), None, || None),
            None,
            "all are new"
        );
        let pushed = Instant64(3 * QUIET_NS);
        for supplier in &all {
            supplier.store(true, Relaxed);
        }
        for moments in 0..3 {
            let again = Instant64(pushed.0 + moments * (QUIET_NS / 3));
            assert_eq!(
                list.let_one_go(again, None, || None),
                None,
                "all have pushed"
            );
        }
        all[0].store(true, Relaxed);
        let late = Instant64(pushed.0 + QUIET_NS);
        assert_eq!(
            list.let_one_go(late, None, || None),
            Some(1),
            "the first that is quiet"
        );
        assert_eq!(list.let_one_go(late, None, || None), None, "there is room");
    }

    #[test]
    fn who_pushes_after_it_was_found_quiet_stays() {
        let (list, all) = full(Instant64(0));
        let found = list
            .look(Instant64(QUIET_NS), None)
            .and_then(|it| it.unasked);
        assert_eq!(found, Some(0));
        all[0].store(true, Relaxed);
        assert!(!list.remove_quiet(0));
        assert!(list.remove_quiet(1));
        assert!(!list.remove_quiet(1), "it is gone already");
    }

    #[test]
    fn supplier_that_does_not_answer_is_let_go_after_some_calls_unless_it_answers_between() {
        use deckwatch_orb::Orb;
        use deckwatch_orb::outward::Outward;
        // It accepts connections and never replies.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let orb = Orb::builder().build().expect("an ORB");
        let url = format!("corbaloc::{}/silent", silent.local_addr().expect("bound"));
        let silent = orb.string_to_object(&url).expect("sound").expect("not nil");
        let silent = PushSupplierRef::unchecked_narrow(silent);
        let list = SupplierList::default();
        let places = Places::new(limits::SUPPLIERS_MAX, own_minor::SUPPLIER_SHARE_FULL);
        let admit = || places.take(Peer::Unknown);
        let connected = list.connect(7, Some(&silent), Instant64(0), admit);
        connected.expect("room");
        let outward = Outward::new(&orb, 1, 1);
        let ask = || {
            let full = Some(Peer::Unknown);
            list.let_one_go(Instant64(QUIET_NS), full, || outward.begin().ok())
        };
        for _ in 1..limits::FAILURES_MAX {
            assert_eq!(ask(), None);
        }
        assert!(!list.note(7, |_| 0), "it has answered");
        for _ in 1..limits::FAILURES_MAX {
            assert_eq!(ask(), None);
        }
        assert_eq!(ask(), Some(7));
        assert_eq!(list.len(), 0);
    }
}
