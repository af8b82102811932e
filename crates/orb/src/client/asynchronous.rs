//! Asynchronous calls (CORBA 3.3 part 1, clause 17.3): many requests under way on one connection, no thread for any of them.
//!
//! One connection to each endpoint carries them all; replies come in any order. A thread of the ORB reads what comes and ends
//! those whose time has passed, another one calls the application back and sends requests again that must go elsewhere. An ORB
//! that is turned by hand has neither: [`Replies::turn`] does both, and so does whoever waits.

mod outstanding;
mod shared;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use deckwatch_sync::{Bell, PiMutex, PiMutexGuard};

use super::exchange::Call;
use super::exchange::Failure;
use super::{Binding, Client};
use crate::adapter::{Patience, permit};
use crate::connection::Arrived;
use crate::lane::Lane;
use crate::limits::{DRAIN_TIMEOUT, ENDED_CALLS_FEW};
use crate::orb::OrbCore;
use crate::reference::Target;
use crate::transport::{Instant64, Interest, Poller, monotonic_after};
use crate::{Completion, SystemException, minor, raise, raise::own};

pub(crate) use outstanding::{End, Handler, Outstanding, Road};
pub(crate) use shared::SharedConnection;

/// All asynchronous calls of one ORB.
pub(crate) struct Replies {
    poller: Box<dyn Poller>,
    /// Whether it has threads.
    is_by_hand: bool,
    /// None from the end on.
    connections: PiMutex<Option<HashMap<u64, Arc<SharedConnection>>>>,
    next_token: AtomicU64,
    /// When a connection may have been unused for too long; [`NEVER`]: there is none.
    idle_due: AtomicU64,
    /// When calls end by their deadlines, and replies that came early may be given.
    deadlines: PiMutex<BinaryHeap<Reverse<Due>>>,
    jobs: PiMutex<Jobs>,
    /// Told of jobs, of calls that have ended, and of the end.
    changed: Bell,
    is_closed: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

const NEVER: Instant64 = Instant64(u64::MAX);

#[derive(Default)]
struct Jobs {
    /// Handlers to be called.
    calls: VecDeque<Arc<Outstanding>>,
    /// Requests to be sent again: whoever waits does that too, so that a handler may wait for another call.
    moves: VecDeque<Arc<Outstanding>>,
    /// What lanes have read for calls, or how their connections have ended.
    arrived: VecDeque<(Arc<Outstanding>, Result<Arrived, SystemException>)>,
    /// Calls that have ended, counted: who waits looks again.
    ended: u64,
}

/// A call that is to end at a time, if it has not by then; or whose reply may be given then.
struct Due {
    at: Instant64,
    call: Weak<Outstanding>,
    /// Its reply has come, and waits for its start: nobody else need know of it.
    replied: Option<Arc<Outstanding>>,
}

impl Due {
    /// Whether its call has not been ended by something else.
    fn is_wanted(&self) -> bool {
        self.replied.is_some() || self.call.strong_count() != 0
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

impl Replies {
    /// # Errors
    /// NO_RESOURCES without a poller or threads.
    pub(super) fn start(orb: &Arc<OrbCore>) -> Result<Arc<Self>, SystemException> {
        let none = raise::no_resources(0, Completion::No);
        let poller = orb.client.transport.poller().map_err(|_| none)?;
        let replies = Arc::new(Self {
            poller,
            is_by_hand: orb.is_turned_by_hand(),
            connections: PiMutex::new(Some(HashMap::new())),
            next_token: AtomicU64::new(0),
            idle_due: AtomicU64::new(NEVER.0),
            deadlines: PiMutex::default(),
            jobs: PiMutex::default(),
            changed: Bell::new(),
            is_closed: AtomicBool::new(false),
            threads: Mutex::default(),
        });
        if !replies.is_by_hand {
            for (name, run) in [
                ("orb-replies", Self::read as fn(&Self, &Weak<OrbCore>)),
                ("orb-callbacks", Self::work),
            ] {
                let (of, weak) = (Arc::clone(&replies), Arc::downgrade(orb));
                let thread = std::thread::Builder::new().name(name.to_owned());
                let started = thread.spawn(move || run(&of, &weak)).map_err(|_| {
                    replies.shut();
                    none
                })?;
                replies.threads().push(started);
            }
        }
        Ok(replies)
    }

    /// The connection for asynchronous calls of a target, a new one where there is none that lives.
    pub(super) fn connection(
        &self,
        client: &Client,
        target: &Target,
        call: &Call<'_>,
        may_reconnect: bool,
        deadline: Option<Instant64>,
    ) -> Result<Arc<SharedConnection>, Failure> {
        let ended = || Failure::last(raise::bad_inv_order(minor::ORB_SHUT_DOWN, Completion::No));
        if self.is_closed() {
            return Err(ended());
        }
        // Another caller may be connecting.
        let kept = client.lock_until(&target.binding.shared, "client.shared", deadline);
        let mut kept = kept.ok_or_else(|| {
            let late = client.timed_out(own::TIMED_OUT_CONNECTING, Completion::No);
            Failure::last(late)
        })?;
        if let Some(connection) = &*kept
            && !connection.has_ended()
        {
            return Ok(Arc::clone(connection));
        }
        let made = client.connect_for(target, call, may_reconnect, deadline)?;
        let token = self.next_token.fetch_add(1, Ordering::Relaxed);
        let max = client.sizes.message_max;
        let connection = Arc::new(SharedConnection::new(made, token, target, max));
        // The end, which ends those that it finds, may have come meanwhile.
        match &mut *self.connections.lock("replies.connections") {
            Some(all) => {
                all.insert(token, Arc::clone(&connection));
                let due = connection.idle_due(client.idle_timeout);
                self.idle_due.fetch_min(due.0, Ordering::Relaxed);
            }
            None => return Err(ended()),
        }
        let watched = self
            .poller
            .watch(connection.source(), token, Interest::Arrival);
        if watched.is_err() {
            self.forget(&connection);
            return Err(Failure::last(raise::no_resources(0, Completion::No)));
        }
        *kept = Some(Arc::clone(&connection));
        Ok(connection)
    }

    fn forget(&self, connection: &SharedConnection) {
        let mut connections = self.connections.lock("replies.connections");
        let all = connections.as_mut();
        if all.is_some_and(|all| all.remove(&connection.token()).is_some()) {
            self.poller.forget(connection.source());
        }
    }

    /// Ends a call at its deadline.
    fn note_deadline(&self, call: &Arc<Outstanding>) {
        let Some(at) = call.deadlines().reply else {
            return;
        };
        let mut deadlines = self.deadlines.lock("replies.deadlines");
        // Most calls end long before theirs: who has ended goes when there are more such than calls under way.
        let under_way = call.orb().client.outstanding.load(Ordering::Relaxed) as usize;
        if deadlines.len() >= 2 * under_way + ENDED_CALLS_FEW {
            deadlines.retain(|Reverse(due)| due.is_wanted());
        }
        self.note_due(
            deadlines,
            Due {
                at,
                call: Arc::downgrade(call),
                replied: None,
            },
        );
    }

    /// Gives the reply to a call at its start.
    fn note_start(&self, call: &Arc<Outstanding>, at: Instant64) {
        let due = Due {
            at,
            call: Weak::new(),
            replied: Some(Arc::clone(call)),
        };
        self.note_due(self.deadlines.lock("replies.deadlines"), due);
    }

    fn note_due(&self, mut deadlines: PiMutexGuard<'_, BinaryHeap<Reverse<Due>>>, due: Due) {
        let is_first = deadlines.peek().is_none_or(|first| due.at < first.0.at);
        deadlines.push(Reverse(due));
        drop(deadlines);
        if is_first {
            self.poller.wake();
        }
    }

    /// A call has ended, or must be sent again, or is to be told to its handler.
    fn queue(&self, put: impl FnOnce(&mut Jobs)) {
        put(&mut self.jobs.lock("replies.jobs"));
        self.changed.ring();
    }

    /// The thread that reads.
    fn read(&self, orb: &Weak<OrbCore>) {
        let mut wait = None;
        while !self.is_closed() {
            let event = self.poller.wait(wait);
            let Some(orb) = orb.upgrade() else {
                return;
            };
            if let Some(event) = event {
                self.handle(&orb.client, event.token);
            }
            self.take_arrived();
            wait = self.expire(&orb.client);
        }
    }

    /// A lane has read the reply to a call, or the end of its connection.
    fn bring(&self, call: Arc<Outstanding>, got: Result<Arrived, SystemException>) {
        let mut jobs = self.jobs.lock("replies.bring");
        jobs.arrived.push_back((call, got));
        drop(jobs);
        if self.is_closed() {
            self.take_arrived();
        }
        self.poller.wake();
    }

    /// Takes what lanes have brought; false: nothing.
    fn take_arrived(&self) -> bool {
        let next = || self.jobs.lock("replies.arrived").arrived.pop_front();
        let mut any = false;
        while let Some((call, got)) = next() {
            any = true;
            call.take_arrived(self, got);
        }
        any
    }

    /// The thread that calls back.
    fn work(&self, orb: &Weak<OrbCore>) {
        while let Some(job) = self.await_job() {
            let Some(orb) = orb.upgrade() else {
                return;
            };
            job(&orb, self);
        }
    }

    fn await_job(&self) -> Option<Job> {
        loop {
            let turn = self.changed.turn();
            if let Some(job) = self.jobs.lock("replies.jobs").take() {
                return Some(job);
            }
            if self.is_closed() {
                return None;
            }
            self.changed.wait(turn);
        }
    }

    fn threads(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what has come over a connection.
    fn handle(&self, client: &Client, token: u64) {
        let connection = match &*self.connections.lock("replies.connections") {
            Some(all) => all.get(&token).cloned(),
            None => None,
        };
        let Some(connection) = connection else {
            return;
        };
        connection.read_what_came(client, self);
        if connection.has_ended() {
            self.forget(&connection);
        }
    }

    /// Ends calls whose time has passed, and connections that nobody has used for long. Until when there is nothing of that to do.
    fn expire(&self, client: &Client) -> Option<Duration> {
        let now = client.transport.now();
        let mut next = None;
        loop {
            let mut deadlines = self.deadlines.lock("replies.deadlines");
            match deadlines.peek() {
                Some(Reverse(due)) if due.at <= now => {}
                Some(Reverse(due)) => {
                    next = Some(due.at.since(now));
                    break;
                }
                None => break,
            }
            let due = deadlines.pop();
            drop(deadlines);
            let Some(Reverse(due)) = due else { continue };
            if let Some(call) = due.replied {
                call.begin_reply(self);
            } else if let Some(call) = due.call.upgrade() {
                call.expire(client, self);
            }
        }
        let idle = self.end_idle(client, now);
        next.into_iter().chain(idle).min()
    }

    /// Ends connections that nobody has used for long; how long until one may have to be ended.
    fn end_idle(&self, client: &Client, now: Instant64) -> Option<Duration> {
        let due = Instant64(self.idle_due.load(Ordering::Relaxed));
        if now < due {
            return (due != NEVER).then(|| due.since(now));
        }
        let limit = client.idle_timeout;
        let mut next = NEVER;
        let mut connections = self.connections.lock("replies.idle");
        if let Some(all) = &mut *connections {
            all.retain(|_, connection| {
                if connection.end_idle(now, limit) {
                    self.poller.forget(connection.source());
                    return false;
                }
                let due = connection.idle_due(limit);
                // One that waits for replies is looked at now and then.
                let looked_at = if due > now { due } else { now.after(limit / 4) };
                next = next.min(looked_at);
                true
            });
        }
        // Under the lock: who adds another says so after this.
        self.idle_due.store(next.0, Ordering::Relaxed);
        drop(connections);
        (next != NEVER).then(|| next.since(now))
    }

    /// Does what there is to do in an ORB that is turned by hand; false: nothing.
    pub(crate) fn turn(&self, orb: &Arc<OrbCore>) -> bool {
        let before = self.jobs.lock("replies.jobs").ended;
        let event = self
            .poller
            .is_pending()
            .then(|| self.poller.wait(Some(Duration::ZERO)));
        let event = event.flatten();
        if let Some(event) = event {
            self.handle(&orb.client, event.token);
        }
        let has_arrived = self.take_arrived();
        self.expire(&orb.client);
        let job = self.jobs.lock("replies.jobs").take();
        let has_job = job.is_some();
        if let Some(job) = job {
            job(orb, self);
        }
        has_job || has_arrived || event.is_some() || self.jobs.lock("replies.jobs").ended != before
    }

    /// Whether [`Replies::turn`] would find something to do, where it is for somebody else to call it.
    pub(crate) fn is_pending(&self, client: &Client) -> bool {
        let has_jobs = || !self.jobs.lock("replies.jobs").is_empty();
        self.is_by_hand && (self.poller.is_pending() || has_jobs() || self.has_due(client))
    }

    /// Whether the time of a call has passed, or the start of a reply that has come.
    fn has_due(&self, client: &Client) -> bool {
        let deadlines = self.deadlines.lock("replies.due");
        let first = deadlines.peek();
        first.is_some_and(|first| first.0.at <= client.transport.now())
    }

    /// Waits until `is_over` of the calls that have ended; false: it was not by `until`. `reads`: what one of them waits on, to be read
    /// where nobody else does.
    ///
    /// # Errors
    /// TRANSIENT where the calling thread is the last that could read the reply.
    pub(crate) fn wait(
        &self,
        orb: &Arc<OrbCore>,
        until: Option<Instant64>,
        is_over: impl Fn() -> bool,
        reads: impl Fn() -> Option<Road>,
    ) -> Result<bool, SystemException> {
        let client = &orb.client;
        // Where nobody else reads, what has come is read even by who does not wait.
        while self.is_by_hand && !is_over() && self.turn(orb) {}
        let is_late = || until.is_some_and(|until| until <= client.transport.now());
        let waits = !is_over() && !self.is_closed() && !is_late();
        let lane = waits.then(&reads).flatten().and_then(|road| road.lane());
        let patience = lane.as_ref().map(|lane| self.patience_at(lane));
        let _hold = permit(patience.flatten())?;
        loop {
            // Whoever ends a call rings after that.
            let turn = self.changed.turn();
            if is_over() {
                return Ok(true);
            }
            let now = client.transport.now();
            if self.is_closed() || until.is_some_and(|until| until <= now) {
                return Ok(false);
            }
            if self.is_by_hand {
                self.wait_by_hand(orb, until, &reads);
            } else {
                self.wait_for_change(orb, turn, until.map(|until| until.since(now)));
            }
        }
    }

    /// How the calling thread may wait for what a lane reads; where that is turned by hand, whoever waits turns it, but for its servants.
    fn patience_at<'l>(&self, lane: &'l Lane) -> Patience<'l> {
        match self.is_by_hand && !lane.is_served_here() {
            true => None,
            false => lane.patience_for_replies(),
        }
    }

    fn wait_for_change(&self, orb: &Arc<OrbCore>, turn: u32, left: Option<Duration>) {
        // Requests that must go elsewhere are sent by whoever waits, who may be the thread that would.
        let moved = self.jobs.lock("replies.moves").moves.pop_front();
        match moved {
            Some(call) => call.go_elsewhere(orb, self),
            None => drop(
                self.changed
                    .wait_until(turn, left.and_then(monotonic_after)),
            ),
        }
    }

    fn wait_by_hand(
        &self,
        orb: &Arc<OrbCore>,
        until: Option<Instant64>,
        reads: &impl Fn() -> Option<Road>,
    ) {
        if self.turn(orb) {
            return;
        }
        let due = self
            .deadlines
            .lock("replies.deadlines")
            .peek()
            .map(|due| due.0.at);
        let until = [until, due].into_iter().flatten().min();
        match (reads(), until) {
            (Some(road), until) => {
                road.read_until(orb, self, until);
                if let Road::Shared(connection) = road
                    && connection.has_ended()
                {
                    self.forget(&connection);
                }
            }
            // A reply that has come waits for its start.
            (None, Some(until)) => orb.client.transport.sleep_until(until),
            (None, None) => {}
        }
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    fn shut(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.poller.close();
        self.changed.ring();
    }

    /// Ends every call, tells their handlers, and ends the threads.
    pub(crate) fn close(&self, orb: &OrbCore) {
        let client = &orb.client;
        let all = self
            .connections
            .lock("replies.connections")
            .take()
            .unwrap_or_default();
        let ended = Failure::last(raise::bad_inv_order(
            minor::ORB_SHUT_DOWN,
            Completion::Maybe,
        ));
        for connection in all.into_values() {
            self.poller.forget(connection.source());
            connection.end(client, self, &ended);
        }
        self.end_jobs(orb, &ended);
        self.shut();
        let deadline = client.transport.now().after(DRAIN_TIMEOUT);
        for thread in std::mem::take(&mut *self.threads()) {
            let is_here = thread.thread().id() == std::thread::current().id();
            while !is_here && !thread.is_finished() && client.transport.now() < deadline {
                std::thread::park_timeout(Duration::from_millis(1));
            }
            if !is_here && thread.is_finished() {
                let _panicked = thread.join();
            }
        }
        // What the thread that reads has found while the other one ended.
        self.end_jobs(orb, &ended);
    }

    /// Fails what would be sent again, and what would be given later; who has threads no longer calls handlers itself.
    fn end_jobs(&self, orb: &OrbCore, ended: &Failure) {
        self.take_arrived();
        let moves = std::mem::take(&mut self.jobs.lock("replies.jobs").moves);
        let dues = std::mem::take(&mut *self.deadlines.lock("replies.deadlines"));
        let early = dues.into_iter().filter_map(|Reverse(due)| due.replied);
        for call in early.chain(moves) {
            call.fail(self, ended.exception);
        }
        if self.is_by_hand || self.is_closed() {
            while let Some(call) = { self.jobs.lock("replies.jobs").calls.pop_front() } {
                call.tell_handler(orb);
            }
        }
    }
}

type Job = Box<dyn FnOnce(&Arc<OrbCore>, &Replies)>;

impl Jobs {
    fn take(&mut self) -> Option<Job> {
        if let Some(call) = self.moves.pop_front() {
            return Some(Box::new(move |orb, replies| {
                call.go_elsewhere(orb, replies);
            }));
        }
        let call = self.calls.pop_front()?;
        Some(Box::new(move |orb, _| call.tell_handler(orb)))
    }

    fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.moves.is_empty() && self.arrived.is_empty()
    }
}

impl Client {
    /// The asynchronous calls of `orb`, with their threads from the first one on.
    pub(super) fn replies(&self, orb: &Arc<OrbCore>) -> Result<Arc<Replies>, SystemException> {
        let mut made = self.replies.lock("client.replies");
        if let Some(replies) = &*made {
            return Ok(Arc::clone(replies));
        }
        let replies = Replies::start(orb)?;
        *made = Some(Arc::clone(&replies));
        Ok(replies)
    }

    pub(crate) fn replies_made(&self) -> Option<Arc<Replies>> {
        self.replies.lock("client.replies").clone()
    }
}

impl Binding {
    /// Lets go of the connection for asynchronous calls.
    pub(super) fn close_shared(&self) {
        *self.shared.lock("client.close") = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Orb;

    #[test]
    fn deadlines_of_calls_that_have_ended_are_not_kept() {
        let server = Orb::builder().listen("127.0.0.1:0").unwrap().build();
        let server = server.unwrap();
        let client = Orb::builder().build().unwrap();
        let url = format!("corbaloc:{}/nobody", server.endpoints()[0].url_address());
        let object = client.string_to_object(&url).unwrap().unwrap();
        let object = object.with_round_trip_timeout(Some(Duration::from_secs(3_600)));
        for _ in 0..3 * ENDED_CALLS_FEW {
            let poller = object.send_poller("ask", |_| Ok(())).unwrap();
            assert_eq!(poller.is_ready(u32::MAX), Ok(true));
        }
        let noted = client
            .0
            .client
            .replies_made()
            .unwrap()
            .deadlines
            .lock("test")
            .len();
        assert!(noted <= ENDED_CALLS_FEW + 4, "{noted}");
    }
}
