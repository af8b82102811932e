//! Asynchronous calls (CORBA 3.3 part 1, clause 17.3): many requests under way on one connection, none has a thread.
//!
//! One connection to each endpoint carries them all; replies arrive in any order. The ORB has two threads for them. The
//! reading thread reads replies and ends calls at their deadlines; it has the highest priority that a caller has had.
//! The callback thread calls handlers and retries requests; it has the priority of the call whose handler it calls, and
//! takes the highest first. An ORB that is turned by hand has neither: [`Replies::turn`] does their work, and so does a
//! thread that waits.

mod outstanding;
mod shared;
mod timers;
mod wait;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use deckwatch_sync::{Bell, PiMutex};

use super::Client;
use super::attempt::Attempt;
use super::retry::Failure;
use crate::call_side::CallSide;
use crate::connection::inbound::Arrived;
use crate::limits::DRAIN_TIMEOUT;
use crate::rt::Priority;
use crate::transport::{Instant64, Interest, Poller};
use crate::{Completion, SystemException, minor, raise, raise::own};

use outstanding::ReplySource;
pub(crate) use outstanding::{End, Handler, Outstanding};
pub(crate) use shared::SharedConnection;
use timers::Timer;

/// All asynchronous calls of one ORB.
pub(crate) struct Replies {
    poller: Box<dyn Poller>,
    /// It has no threads: the application turns it.
    is_by_hand: bool,
    /// `None` once it is closed.
    connections: PiMutex<Option<HashMap<u64, Arc<SharedConnection>>>>,
    next_token: AtomicU64,
    /// When a connection may have been unused for too long; [`NEVER`] without connections.
    idle_due: AtomicU64,
    /// When calls end by their deadlines, and when early replies may be returned.
    deadlines: PiMutex<BinaryHeap<Reverse<Timer>>>,
    jobs: PiMutex<Jobs>,
    /// Rings for jobs, for calls that have ended, and at the close.
    changed: Bell,
    is_closed: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// The highest priority of a call; below 0 if no call has had one.
    highest: AtomicI16,
}

const NEVER: Instant64 = Instant64(u64::MAX);

#[derive(Default)]
struct Jobs {
    /// Calls whose handlers are due: the highest priority first, else in their order.
    calls: VecDeque<Arc<Outstanding>>,
    /// Requests to retry. Waiting threads do that too, so that a handler may wait for another call.
    moves: VecDeque<Arc<Outstanding>>,
    /// Replies that lanes have read, or how their connections ended.
    arrived: VecDeque<(Arc<Outstanding>, Result<Arrived, SystemException>)>,
    /// How many calls have ended: waiting threads check theirs when it changes.
    ended: u64,
}

impl Replies {
    /// # Errors
    /// NO_RESOURCES without a poller or threads.
    pub(super) fn start(orb: &Arc<CallSide>) -> Result<Arc<Self>, SystemException> {
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
            highest: AtomicI16::new(-1),
        });
        if !replies.is_by_hand {
            for (name, run) in [
                ("orb-replies", Self::read as fn(&Self, &Weak<CallSide>)),
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

    /// The open connection for asynchronous calls of a target, or a new one.
    pub(super) fn connection(
        &self,
        attempt: &Attempt<'_>,
    ) -> Result<Arc<SharedConnection>, Failure> {
        let (client, deadline) = (attempt.client, attempt.deadlines.request);
        let target = attempt.target;
        let ended = || Failure::last(raise::bad_inv_order(minor::ORB_SHUT_DOWN, Completion::No));
        if self.is_closed() {
            return Err(ended());
        }
        // Another thread may be connecting.
        let kept = client.lock_until(&target.binding.shared, "client.shared", deadline);
        let mut kept = kept
            .ok_or_else(|| Failure::timed_out(client, own::TIMED_OUT_CONNECTING, Completion::No))?;
        if let Some(connection) = &*kept
            && !connection.has_ended()
        {
            return Ok(Arc::clone(connection));
        }
        let made = attempt.connect()?;
        let token = self.next_token.fetch_add(1, Ordering::Relaxed);
        let max = client.sizes.message_max;
        let connection = Arc::new(SharedConnection::new(made, token, target, max));
        // `close` ends the connections that it finds here; it may have run meanwhile.
        match &mut *self.connections.lock("replies.connections") {
            Some(all) => {
                all.insert(token, Arc::clone(&connection));
                let due = connection.idle_due(client.bindings.idle_timeout());
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

    /// Queues a call whose handler is due, a retry, or the end of a call.
    fn queue(&self, put: impl FnOnce(&mut Jobs)) {
        put(&mut self.jobs.lock("replies.jobs"));
        self.changed.ring();
    }

    /// Raises the reading thread to at least this priority.
    fn rise_to(&self, priority: Option<Priority>) {
        let Some(value) = priority.map(Priority::value) else {
            return;
        };
        if self.highest.load(Ordering::Relaxed) < value
            && self.highest.fetch_max(value, Ordering::Relaxed) < value
        {
            self.poller.wake();
        }
    }

    /// The reading thread.
    fn read(&self, orb: &Weak<CallSide>) {
        let mut wait = None;
        let mut at_priority = None;
        let mut highest = -1;
        while !self.is_closed() {
            let event = self.poller.wait(wait);
            let Some(orb) = orb.upgrade() else {
                return;
            };
            if highest < self.highest.load(Ordering::Relaxed) {
                highest = self.highest.load(Ordering::Relaxed);
                drop(at_priority.take());
                at_priority = orb.lend_priority(Priority::try_from(highest).ok());
            }
            if let Some(event) = event {
                self.handle(&orb.client, event.token);
            }
            self.take_arrived();
            wait = self.expire(&orb.client);
        }
    }

    /// A lane has read the reply to a call, or its connection has ended.
    fn bring(&self, call: Arc<Outstanding>, got: Result<Arrived, SystemException>) {
        let mut jobs = self.jobs.lock("replies.bring");
        jobs.arrived.push_back((call, got));
        drop(jobs);
        if self.is_closed() {
            self.take_arrived();
        }
        self.poller.wake();
    }

    /// Takes what lanes have queued. Returns whether there was anything.
    fn take_arrived(&self) -> bool {
        let next = || self.jobs.lock("replies.arrived").arrived.pop_front();
        let mut any = false;
        while let Some((call, got)) = next() {
            any = true;
            call.take_arrived(self, got);
        }
        any
    }

    /// The callback thread.
    fn work(&self, orb: &Weak<CallSide>) {
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

    /// Reads what has arrived on a connection.
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

    /// Closes connections that were unused for too long. Returns how long until the next check.
    fn end_idle(&self, client: &Client, now: Instant64) -> Option<Duration> {
        let due = Instant64(self.idle_due.load(Ordering::Relaxed));
        if now < due {
            return (due != NEVER).then(|| due.since(now));
        }
        let limit = client.bindings.idle_timeout();
        let mut next = NEVER;
        let mut connections = self.connections.lock("replies.idle");
        if let Some(all) = &mut *connections {
            all.retain(|_, connection| {
                if connection.end_idle(now, limit) {
                    self.poller.forget(connection.source());
                    return false;
                }
                let due = connection.idle_due(limit);
                // A connection that awaits replies is checked at intervals.
                let looked_at = if due > now { due } else { now.after(limit / 4) };
                next = next.min(looked_at);
                true
            });
        }
        // Under the lock: a thread that adds a connection lowers it after this.
        self.idle_due.store(next.0, Ordering::Relaxed);
        drop(connections);
        (next != NEVER).then(|| next.since(now))
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    fn shut(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.poller.close();
        self.changed.ring();
    }

    /// Ends every call, calls their handlers, and ends the threads.
    pub(crate) fn close(&self, orb: &CallSide) {
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
                let _ = thread.join(); // A panic has been reported by its hook.
            }
        }
        // The reading thread may have queued calls while the callback thread ended.
        self.end_jobs(orb, &ended);
    }

    /// Fails retries and early replies. Without threads, or after they have ended, the calling thread calls the
    /// handlers.
    fn end_jobs(&self, orb: &CallSide, ended: &Failure) {
        self.take_arrived();
        let moves = std::mem::take(&mut self.jobs.lock("replies.jobs").moves);
        let dues = std::mem::take(&mut *self.deadlines.lock("replies.deadlines"));
        let early = dues.into_iter().filter_map(|Reverse(due)| due.replied);
        for call in early.chain(moves) {
            call.fail(self, ended.exception);
        }
        if self.is_by_hand || self.is_closed() {
            while let Some(call) = { self.jobs.lock("replies.jobs").calls.pop_front() } {
                call.call_handler(orb);
            }
        }
    }
}

type Job = Box<dyn FnOnce(&Arc<CallSide>, &Replies)>;

impl Jobs {
    /// Queues a call whose handler is due.
    fn add_call(&mut self, call: Arc<Outstanding>) {
        let before = |other: &Arc<Outstanding>| other.priority() >= call.priority();
        let place = self.calls.partition_point(before);
        self.calls.insert(place, call);
    }

    fn take(&mut self) -> Option<Job> {
        if let Some(call) = self.moves.pop_front() {
            return Some(Box::new(move |orb, replies| {
                call.go_elsewhere(orb, replies);
            }));
        }
        let call = self.calls.pop_front()?;
        Some(Box::new(move |orb, _| call.call_handler(orb)))
    }

    fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.moves.is_empty() && self.arrived.is_empty()
    }
}

impl Client {
    /// The asynchronous calls of `orb`; the first use starts their threads.
    pub(super) fn replies(&self, orb: &Arc<CallSide>) -> Result<Arc<Replies>, SystemException> {
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
