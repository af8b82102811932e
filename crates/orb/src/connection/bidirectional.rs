//! Bidirectional GIOP: requests of both sides over one connection (CORBA 3.3 part 2, clause 9.9).
//!
//! A bidirectional connection belongs to a lane, on either side. Whichever of the lane's threads reads it delivers
//! replies to their callers and serves requests. Request ids of its opener are even, those of the other side odd.
//!
//! A peer's listen points are believed only for references that it sends in requests of the same connection. A
//! reference from any other source is called at its own address, whatever a peer announces.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use deckwatch_cdr::Reader;
use deckwatch_giop::{Ior, ListenPoint, Message, Request, Version};
use deckwatch_sync::{Bell, PiMutex, PiMutexGuard};

use super::{Arrived, Connection, Io, RequestQueue};
use crate::adapter::wait_permits::Patience;
use crate::contexts;
use crate::counters::Counter;
use crate::limits::BIDIRECTIONAL_CALLS_MAX;
use crate::transport::{Stream, monotonic_after};
use crate::{Completion, SlotKey, SystemException};
use crate::{raise, raise::own};

/// Whether requests may go both ways over one connection (`BiDirPolicy::BidirectionalPolicyValue`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum BidirectionalPolicyValue {
    /// They may not.
    #[default]
    Normal = 0,
    /// They may. A servant whose thread is the last that could read the reply gets TRANSIENT: lanes that call back need
    /// two threads.
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

/// The lane that a bidirectional connection belongs to, as its callers use it.
pub(crate) trait Owner: Send + Sync {
    /// Takes in a connection that this ORB has opened. Returns false if the lane is full or closed.
    fn take_in(&self, stream: Arc<dyn Stream>, bidirectional: &Arc<Bidirectional>) -> bool;

    /// Writes a message to the connection of this key. Returns false if the connection is closed.
    fn write_over(&self, key: SlotKey, message: &[u8]) -> bool;

    /// How the calling thread may wait for a reply that a thread of the lane has to read: not as the last of them.
    fn patience_for_replies(&self) -> Patience<'_>;

    /// Whether the calling thread serves a request of the lane, which cannot end before it returns.
    fn is_served_here(&self) -> bool;

    /// Waits at most `patience` for one event of a lane without threads, and handles it.
    fn turn_by_hand(self: Arc<Self>, patience: Option<Duration>);

    /// Discards the requests of a queue that nothing will serve.
    fn discard_queued(&self, requests: &RequestQueue);
}

/// An asynchronous call that awaits a reply over a bidirectional connection.
pub(crate) trait ReplySink: Send + Sync {
    /// Takes the reply, or the exception that has ended the connection.
    fn bring(self: Arc<Self>, got: Result<Arrived, SystemException>);
}

/// What makes a connection bidirectional.
pub(crate) struct Bidirectional {
    owner: Option<Weak<dyn Owner>>,
    /// Its key at the owner.
    key: OnceLock<SlotKey>,
    pub(crate) is_opened_here: bool,
    /// The id of our next request.
    next: AtomicU32,
    /// The listen points of its opener.
    points: PiMutex<Vec<ListenPoint>>,
    /// The other side has received our code sets and listen points.
    pub(crate) has_said: AtomicBool,
    /// Requests of the other side.
    pub(crate) requests: RequestQueue,
    calls: PiMutex<Calls>,
    /// Rung for replies and for the end.
    changed: Bell,
}

/// Our requests in progress.
#[derive(Default)]
struct Calls {
    all: Vec<(u32, Waiter)>,
    ended: Option<SystemException>,
}

/// What awaits a reply.
enum Waiter {
    /// A thread; its reply is kept here until it takes it.
    Thread(Option<Arrived>),
    /// An asynchronous call; its reply is passed on at once.
    Call(Arc<dyn ReplySink>),
}

impl Calls {
    fn position(&self, id: u32) -> Option<usize> {
        self.all.iter().position(|(known, _)| *known == id)
    }

    /// Takes the reply to a request, or the exception that has ended the connection. Returns `None` if neither is
    /// there.
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

/// What an ORB offers to servers it connects to: the lane that reads the connections, and its listen points.
pub(crate) struct Offer {
    pub(crate) lane: Weak<dyn Owner>,
    /// The BI_DIR_IIOP service context.
    pub(crate) points: Vec<u8>,
}

impl Bidirectional {
    pub(crate) fn new(owner: Option<Weak<dyn Owner>>, is_opened_here: bool) -> Self {
        Self {
            owner,
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
        // A connection gets one key.
        let _ = self.key.set(key);
    }

    /// The lane that reads it, and its key there. Returns `None` once the lane has ended.
    pub(crate) fn owner(&self) -> Option<(Arc<dyn Owner>, SlotKey)> {
        Some((self.owner.as_ref()?.upgrade()?, *self.key.get()?))
    }

    pub(crate) fn is_open(&self) -> bool {
        self.calls().ended.is_none()
    }

    /// Adds listen points of its opener that are new.
    pub(crate) fn add_points(&self, points: Vec<ListenPoint>) {
        let mut known = self.points.lock("bidirectional.points");
        for point in points {
            if known.len() < deckwatch_giop::limits::LISTEN_POINTS_MAX && !known.contains(&point) {
                known.push(point);
            }
        }
    }

    /// Whether a reference has an address of its opener.
    fn leads_to(&self, ior: &Ior) -> bool {
        let known = self.points.lock("bidirectional.leads_to");
        ior.iiop_profiles().flatten().any(|profile| {
            let mut addresses = profile.addresses().chain(profile.tls_addresses());
            profile.minor >= 2
                && addresses.any(|(host, port)| known.contains(&ListenPoint { host, port }))
        })
    }

    fn calls(&self) -> PiMutexGuard<'_, Calls> {
        self.calls.lock("bidirectional.calls")
    }

    /// The id of the next request.
    pub(crate) fn next_id(&self) -> u32 {
        self.next.fetch_add(2, Ordering::Relaxed)
    }

    /// Keeps the reply to this request from here on.
    ///
    /// # Errors
    /// COMM_FAILURE if the connection has ended; NO_RESOURCES at [`BIDIRECTIONAL_CALLS_MAX`].
    pub(crate) fn expect(&self, id: u32) -> Result<(), SystemException> {
        self.expect_by(id, Waiter::Thread(None))
    }

    /// Passes the reply to this request, or the end of the connection, to `call` from here on.
    ///
    /// # Errors
    /// As [`Bidirectional::expect`].
    pub(crate) fn expect_for(
        &self,
        id: u32,
        call: Arc<dyn ReplySink>,
    ) -> Result<(), SystemException> {
        self.expect_by(id, Waiter::Call(call))
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

    /// Stops waiting for a reply. Returns it if it has arrived already.
    pub(crate) fn forget(&self, id: u32) -> Option<Arrived> {
        match self.remove(id)? {
            Waiter::Thread(reply) => reply,
            Waiter::Call(_) => None,
        }
    }

    /// Stops waiting for the reply of an asynchronous call. Returns false if the call has got it, or the end, already.
    pub(crate) fn forget_call(&self, id: u32) -> bool {
        self.remove(id).is_some()
    }

    fn remove(&self, id: u32) -> Option<Waiter> {
        let mut calls = self.calls();
        let index = calls.position(id)?;
        Some(calls.all.swap_remove(index).1)
    }

    /// Waits for a reply, at most for `limit`. Returns `None` if it has not arrived in time.
    ///
    /// # Errors
    /// The exception that has ended the connection.
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

    /// Delivers a reply. Returns it if nothing awaits it.
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

    /// Whether a reply is awaited.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.calls().all.is_empty()
    }

    /// The connection has ended. The first reason counts.
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
        // Requests that were queued after the connection had ended.
        if let Some(owner) = self.owner.as_ref().and_then(Weak::upgrade) {
            owner.discard_queued(&self.requests);
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

impl Connection {
    /// Notes the listen points that a request carries for its connection, which becomes bidirectional with the first.
    pub(crate) fn note_listen_points(
        &self,
        io: &Io,
        request: &Request<'_>,
        owner: impl FnOnce() -> Option<Weak<dyn Owner>>,
    ) {
        if request.version < Version::V1_2 || self.is_opened_here() {
            return;
        }
        let Some(data) = contexts::read::listen_points(request) else {
            return;
        };
        let Ok(points) = ListenPoint::parse_all(data) else {
            return io.count(Counter::ProtocolErrors);
        };
        let bidirectional = self.bidirectional.get_or_init(|| {
            let bidirectional = Bidirectional::new(owner(), false);
            bidirectional.set_key(self.key());
            io.count(Counter::ConnectionsBidirectional);
            Arc::new(bidirectional)
        });
        bidirectional.add_points(points);
    }

    /// Delivers a reply to its caller.
    pub(crate) fn handle_reply(&self, io: &Io, arrived: Arrived) {
        let id = match Message::parse_joined(&arrived.message()) {
            Ok(Message::Reply(reply)) => Some(reply.id),
            Ok(Message::LocateReply(reply)) => Some(reply.id),
            _ => None,
        };
        let given = match (self.bidirectional(), id) {
            (Some(bidirectional), Some(id)) => bidirectional.give(id, arrived),
            _ => Err(arrived),
        };
        if let Err(unwanted) = given {
            io.count(Counter::RepliesToNobody);
            io.slab.take_back(unwanted.buffer);
        }
    }

    /// Ends the calls over it. `in_order`: by a CloseConnection, which promises that requests without a reply have not
    /// been served.
    pub(crate) fn end_bidirectional(&self, in_order: bool) {
        if let Some(bidirectional) = self.bidirectional() {
            bidirectional.end(if in_order {
                raise::comm_failure(own::CONNECTION_CLOSED, Completion::No)
            } else {
                raise::comm_failure(own::CONNECTION_LOST, Completion::Maybe)
            });
        }
    }
}

/// A request in progress, and the connection that it came over.
struct Serving {
    over: Arc<Bidirectional>,
    /// The address range of its octets: a reference read from other octets came from elsewhere.
    start: usize,
    end: usize,
}

thread_local! {
    static SERVING: RefCell<Vec<Serving>> = const { RefCell::new(Vec::new()) };
}

/// The calling thread serves the request until this is dropped.
pub(crate) struct Entered(());

impl Drop for Entered {
    fn drop(&mut self) {
        SERVING.with_borrow_mut(|serving| drop(serving.pop()));
    }
}

/// References that are read out of `message` may be called back over the connection from here on.
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

/// The connection over which a reference read by `r` is called back: the one that it came over, if it has an address of
/// that connection's opener.
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
        let bidirectional = Bidirectional::new(None, false);
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
        // A reply that the servant gets meanwhile from another server.
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
        let nothing = || Arrived::whole(Vec::new());
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

    #[test]
    fn calls_that_a_peer_does_not_answer_leave_room_for_those_to_others() {
        let silent = of_opener_at("a");
        let max = u32::try_from(BIDIRECTIONAL_CALLS_MAX).unwrap();
        for id in 0..max {
            assert_eq!(silent.expect(id), Ok(()));
        }
        let full = Err(raise::no_resources(0, Completion::No));
        assert_eq!(silent.expect(max), full);
        assert_eq!(of_opener_at("b").expect(max), Ok(()));
        // A call that has timed out gives its place back.
        assert!(silent.forget(0).is_none());
        assert_eq!(silent.expect(max), Ok(()));
        assert_eq!(silent.expect(0), full);
    }
}
