//! Bidirectional GIOP: requests of both sides over one connection (CORBA 3.3 part 2, clause 9.9).
//!
//! A connection that both sides ask over belongs to a lane, on either side: whichever of its threads reads it gives replies to who waits for
//! them and serves requests. Its opener's requests have even numbers, the other side's odd ones.
//!
//! What a peer says of where it listens is believed of nothing but the references that it sends in requests of this very connection:
//! a reference of any other source leads where it leads, whatever a peer announces.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use deckwatch_cdr::Reader;
use deckwatch_giop::{Ior, ListenPoint};
use deckwatch_sync::{Bell, PiMutex, PiMutexGuard};

use crate::client::Outstanding;
use crate::connection::Arrived;
use crate::connection::request_queue::RequestQueue;
use crate::lane::Lane;
use crate::limits::BIDIRECTIONAL_CALLS_MAX;
use crate::transport::monotonic_after;
use crate::{Completion, SlotKey, SystemException};
use crate::{raise, raise::own};

/// Whether requests may go both ways over one connection (`BiDirPolicy::BidirectionalPolicyValue`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum BidirectionalPolicyValue {
    /// They may not.
    #[default]
    Normal = 0,
    /// They may. A servant whose thread is the last that could read the reply gets TRANSIENT: lanes that call back need two threads.
    Both = 1,
}

impl BidirectionalPolicyValue {
    /// The value of this number.
    #[must_use]
    pub const fn from_number(number: u16) -> Option<Self> {
        match number {
            0 => Some(Self::Normal),
            1 => Some(Self::Both),
            _ => None,
        }
    }
}

/// A connection that both sides ask over.
pub(crate) struct Bidirectional {
    /// Whose threads read it, and by what it is known there.
    lane: Weak<Lane>,
    key: OnceLock<SlotKey>,
    pub(crate) is_opened_here: bool,
    /// The number of our next request.
    next: AtomicU32,
    /// Where its opener listens, as it says.
    points: PiMutex<Vec<ListenPoint>>,
    /// The other side knows our code sets, and where we listen.
    pub(crate) has_said: AtomicBool,
    /// What its other side asks.
    pub(crate) requests: RequestQueue,
    calls: PiMutex<Calls>,
    /// Told of replies, and of the end.
    changed: Bell,
}

/// Our requests that are under way.
#[derive(Default)]
struct Calls {
    all: Vec<(u32, Waiter)>,
    ended: Option<SystemException>,
}

/// Who waits for a reply.
enum Waiter {
    /// A thread, which takes it as soon as it is here.
    Thread(Option<Arrived>),
    /// An asynchronous call, to which it is brought.
    Call(Arc<Outstanding>),
}

impl Calls {
    fn position(&self, id: u32) -> Option<usize> {
        self.all.iter().position(|(known, _)| *known == id)
    }

    /// The reply to a request, or what has ended the connection; none of either: not yet.
    fn take(&mut self, id: u32) -> Option<Result<Arrived, SystemException>> {
        let found = self.position(id);
        let has_come =
            found.is_some_and(|index| matches!(self.all[index].1, Waiter::Thread(Some(_))));
        if !has_come && self.ended.is_none() {
            return None;
        }
        match (found.map(|index| self.all.swap_remove(index).1), self.ended) {
            (Some(Waiter::Thread(Some(reply))), _) => Some(Ok(reply)),
            (_, ended) => ended.map(Err),
        }
    }
}

/// What an ORB offers to the servers it connects to: the lane that reads such a connection, and what it says of itself.
pub(crate) struct Offer {
    pub(crate) lane: Weak<Lane>,
    /// The service context.
    pub(crate) points: Vec<u8>,
}

impl Bidirectional {
    pub(crate) fn new(lane: Weak<Lane>, is_opened_here: bool) -> Self {
        Self {
            lane,
            key: OnceLock::new(),
            is_opened_here,
            next: AtomicU32::new(if is_opened_here { 2 } else { 1 }),
            points: PiMutex::default(),
            has_said: AtomicBool::new(false),
            requests: RequestQueue::default(),
            calls: PiMutex::default(),
            changed: Bell::new(),
        }
    }

    pub(crate) fn set_key(&self, key: SlotKey) {
        let _once = self.key.set(key);
    }

    /// The lane that reads it, and its key there; none after their end.
    pub(crate) fn lane(&self) -> Option<(Arc<Lane>, SlotKey)> {
        Some((self.lane.upgrade()?, *self.key.get()?))
    }

    pub(crate) fn is_open(&self) -> bool {
        self.calls().ended.is_none()
    }

    /// Adds to where its opener listens; none is known twice.
    pub(crate) fn add_points(&self, points: Vec<ListenPoint>) {
        let mut known = self.points.lock("bidirectional.points");
        for point in points {
            if known.len() < deckwatch_giop::limits::LISTEN_POINTS_MAX && !known.contains(&point) {
                known.push(point);
            }
        }
    }

    /// Whether a reference leads to its opener.
    fn leads_to(&self, ior: &Ior) -> bool {
        let known = self.points.lock("bidirectional.leads_to");
        ior.iiop_profiles().flatten().any(|profile| {
            let mut addresses = profile.addresses();
            profile.minor >= 2
                && addresses.any(|(host, port)| known.contains(&ListenPoint { host, port }))
        })
    }

    fn calls(&self) -> PiMutexGuard<'_, Calls> {
        self.calls.lock("bidirectional.calls")
    }

    /// The number of a request that is about to go.
    pub(crate) fn next_id(&self) -> u32 {
        self.next.fetch_add(2, Ordering::Relaxed)
    }

    /// From here on the reply to this request is kept.
    ///
    /// # Errors
    /// What has ended the connection; NO_RESOURCES at [`BIDIRECTIONAL_CALLS_MAX`].
    pub(crate) fn expect(&self, id: u32) -> Result<(), SystemException> {
        self.expect_by(id, Waiter::Thread(None))
    }

    /// From here on the reply to this request is brought to a call, or the end of the connection.
    ///
    /// # Errors
    /// As [`Bidirectional::expect`].
    pub(crate) fn expect_for(
        &self,
        id: u32,
        call: &Arc<Outstanding>,
    ) -> Result<(), SystemException> {
        self.expect_by(id, Waiter::Call(Arc::clone(call)))
    }

    fn expect_by(&self, id: u32, waiter: Waiter) -> Result<(), SystemException> {
        let mut calls = self.calls();
        if calls.ended.is_some() {
            return Err(raise::comm_failure(own::CONNECTION_CLOSED, Completion::No));
        }
        if calls.all.len() >= BIDIRECTIONAL_CALLS_MAX {
            return Err(raise::no_resources(0, Completion::No));
        }
        calls.all.push((id, waiter));
        Ok(())
    }

    /// Nobody waits for this reply any more; one that has come already.
    pub(crate) fn forget(&self, id: u32) -> Option<Arrived> {
        match self.remove(id)? {
            Waiter::Thread(reply) => reply,
            Waiter::Call(_) => None,
        }
    }

    /// A call waits for this reply no more. False: it, or the end, has been brought already.
    pub(crate) fn forget_call(&self, id: u32) -> bool {
        self.remove(id).is_some()
    }

    fn remove(&self, id: u32) -> Option<Waiter> {
        let mut calls = self.calls();
        let index = calls.position(id)?;
        Some(calls.all.swap_remove(index).1)
    }

    /// Waits for a reply, for so long at most; none: it has not come.
    ///
    /// # Errors
    /// What has ended the connection.
    pub(crate) fn wait(
        &self,
        id: u32,
        limit: Option<Duration>,
    ) -> Result<Option<Arrived>, SystemException> {
        let until = limit.and_then(monotonic_after);
        let mut is_late = false;
        loop {
            let turn = self.changed.turn();
            if let Some(ended) = self.calls().take(id) {
                return ended.map(Some);
            }
            if is_late {
                return Ok(None);
            }
            is_late = !self.changed.wait_until(turn, until);
        }
    }

    /// A reply has come. It comes back where nobody waits for it.
    pub(crate) fn give(&self, id: u32, reply: Arrived) -> Result<(), Arrived> {
        let mut calls = self.calls();
        let Some(index) = calls.position(id) else {
            return Err(reply);
        };
        match &mut calls.all[index].1 {
            Waiter::Thread(Some(_)) => return Err(reply),
            Waiter::Thread(place) => *place = Some(reply),
            Waiter::Call(_) => {
                let waiter = calls.all.swap_remove(index).1;
                drop(calls);
                if let Waiter::Call(call) = waiter {
                    call.bring(Ok(reply));
                }
                return Ok(());
            }
        }
        drop(calls);
        self.changed.ring();
        Ok(())
    }

    /// Whether replies are waited for.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.calls().all.is_empty()
    }

    /// The connection has ended; the first reason counts.
    pub(crate) fn end(&self, why: SystemException) {
        let mut calls = self.calls();
        let why = *calls.ended.get_or_insert(why);
        let is_call = |(_, waiter): &mut (u32, Waiter)| matches!(waiter, Waiter::Call(_));
        let waiting: Vec<_> = calls.all.extract_if(.., is_call).collect();
        drop(calls);
        self.changed.ring();
        for (_, waiter) in waiting {
            if let Waiter::Call(call) = waiter {
                call.bring(Err(why));
            }
        }
    }
}

impl Drop for Bidirectional {
    fn drop(&mut self) {
        // What was read of a connection that had ended already.
        if let Some(lane) = self.lane.upgrade() {
            let _count = lane.forget_requests(&self.requests);
        }
    }
}

impl std::fmt::Debug for Bidirectional {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bidirectional")
            .field("is_opened_here", &self.is_opened_here)
            .finish_non_exhaustive()
    }
}

/// A request that is being served, and the connection it came over.
struct Serving {
    over: Arc<Bidirectional>,
    /// Where its octets lie: what is read out of others came otherwise.
    start: usize,
    end: usize,
}

thread_local! {
    static SERVING: RefCell<Vec<Serving>> = const { RefCell::new(Vec::new()) };
}

/// The calling thread serves a request until this is dropped.
pub(crate) struct Entered(());

impl Drop for Entered {
    fn drop(&mut self) {
        SERVING.with_borrow_mut(|serving| drop(serving.pop()));
    }
}

/// From here on references that are read out of `message` may be called back over the connection.
pub(crate) fn enter(over: &Arc<Bidirectional>, message: &[u8]) -> Entered {
    let start = message.as_ptr().addr();
    let serving = Serving {
        over: Arc::clone(over),
        start,
        end: start + message.len(),
    };
    SERVING.with_borrow_mut(|all| all.push(serving));
    Entered(())
}

/// The connection over which a reference that was read by `r` is called back: the one that it came over, where it leads to its opener.
pub(crate) fn way_back(r: &Reader<'_>, ior: &Ior) -> Option<Weak<Bidirectional>> {
    SERVING.with_borrow(|all| {
        let serving = all.last()?;
        let at = r.bytes().as_ptr().addr();
        let is_of_it = (serving.start..serving.end).contains(&at);
        (is_of_it && serving.over.leads_to(ior)).then(|| Arc::downgrade(&serving.over))
    })
}

#[cfg(test)]
mod tests {
    use deckwatch_cdr::ByteOrder;
    use deckwatch_giop::ior::IiopProfile;

    use super::*;

    fn of_opener_at(host: &str) -> Arc<Bidirectional> {
        let bidirectional = Bidirectional::new(Weak::new(), false);
        let host = host.to_owned();
        bidirectional.add_points(vec![ListenPoint { host, port: 7 }]);
        Arc::new(bidirectional)
    }

    fn ior(host: &str) -> Ior {
        Ior::with_iiop("", &IiopProfile::new(host, 7, b"key")).unwrap()
    }

    #[test]
    fn only_what_is_read_out_of_the_request_itself_leads_back_over_its_connection() {
        let over = of_opener_at("a");
        let (message, reply) = (vec![0; 64], vec![0; 64]);
        let back = |octets: &[u8], host| {
            let r = Reader::new(octets, ByteOrder::Big);
            way_back(&r, &ior(host)).is_some()
        };
        assert!(!back(&message, "a"));
        let serving = enter(&over, &message);
        assert!(back(&message, "a"));
        assert!(!back(&message, "b"));
        // What the servant is told meanwhile by somebody else.
        assert!(!back(&reply, "a"));
        let within = enter(&of_opener_at("b"), &reply);
        assert!(!back(&message, "a"));
        drop(within);
        assert!(back(&message, "a"));
        drop(serving);
        assert!(!back(&message, "a"));
    }

    #[test]
    fn a_reply_is_given_once_to_who_waits_for_it_and_the_end_to_all() {
        let over = of_opener_at("a");
        let nothing = || Arrived {
            buffer: Vec::new(),
            place: 0..0,
            ends: Vec::new(),
        };
        assert!(over.give(1, nothing()).is_err());
        over.expect(1).unwrap();
        over.expect(3).unwrap();
        assert!(over.is_awaited());
        assert!(matches!(over.wait(1, Some(Duration::ZERO)), Ok(None)));
        assert!(over.give(1, nothing()).is_ok());
        assert!(over.give(1, nothing()).is_err());
        assert!(matches!(over.wait(1, None), Ok(Some(_))));
        let lost = raise::comm_failure(own::CONNECTION_LOST, Completion::Maybe);
        over.end(lost);
        over.end(raise::comm_failure(own::CONNECTION_CLOSED, Completion::No));
        assert!(matches!(over.wait(3, None), Err(why) if why == lost));
        assert!(over.expect(5).is_err());
        assert!(!over.is_awaited() && !over.is_open());
    }
}
