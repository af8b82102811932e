//! One receiver of marshalled requests: its bounded queue and the rule by which it ends.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use deckwatch_giop::Response;
use deckwatch_sync::{PiMutex, SlotKey};

use super::connection::Connection;
use super::{Batch, DeliveryCounts, Engine, Form, Marshalled};
use crate::ObjectRef;
use crate::rt::Priority;
use crate::transport::Instant64;
use crate::wire::Profile;

/// What happens to an event for which an outlet's queue has no place. The loss is always counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// The oldest queued event is dropped: a late receiver needs the newest state.
    #[default]
    DropOldest,
    /// The new event is dropped: a late receiver needs an unbroken beginning.
    DropNewest,
    /// The oldest is dropped. A receiver that has taken no event for so long since its queue was full ends.
    Disconnect(Duration),
}

/// Options of one outlet.
#[derive(Clone, Copy, Debug)]
pub struct OutletOptions {
    /// The owner's number for it.
    pub number: u64,
    /// The operation that each request calls, unless its body was marshalled for another.
    pub operation: &'static str,
    /// The operation without arguments that is called last, after [`Outlet::close`].
    pub farewell: Option<&'static str>,
    /// Requests under way before a reply must come. 0: requests are one-ways. With 1 the receiver gets its events in
    /// order whatever its threads do; with more, a receiver with several threads may serve two at once.
    pub window: u16,
    /// Events that wait in its queue.
    pub queue_len: usize,
    /// Octets that wait in its queue; at most a quarter of the engine's bound. One event is always taken.
    pub queue_size_max: usize,
    /// What happens when the queue is full.
    pub when_full: WhenFull,
    /// The priority of its connection's thread. Requests carry it if the reference asks for that.
    pub priority: Option<Priority>,
    /// Its connection is not shared.
    pub is_private: bool,
    /// Failures in a row after which it ends.
    pub failures_max: u32,
    /// User exceptions after which it ends at once, by repository id. OBJECT_NOT_EXIST, INV_OBJREF and BAD_OPERATION
    /// always end it.
    pub final_exceptions: &'static [&'static str],
}

/// Why an outlet has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// [`Outlet::close`]: its queue was delivered and its farewell was said, or could not be.
    Closed,
    /// The receiver has raised an exception after which it never takes an event.
    Gone,
    /// Too many requests in a row have failed.
    Failed,
    /// [`WhenFull::Disconnect`].
    TooSlow,
}

/// Is notified when an outlet has ended.
pub trait OutletOwner: Send + Sync {
    /// An outlet has ended by itself. Called by the I/O thread without a lock; a call that waits delays that thread.
    fn outlet_ended(&self, outlet: &Arc<Outlet>, why: End);
}

/// One receiver of marshalled requests.
///
/// [`Outlet::offer`] writes at once if nothing is queued in front, else it queues. It never waits and, once its queue
/// has grown, never allocates.
pub struct Outlet {
    pub(super) engine: Weak<Engine>,
    pub(super) key: OnceLock<SlotKey>,
    pub(super) owner: Weak<dyn OutletOwner>,
    pub(super) object: ObjectRef,
    pub(super) profile: Profile,
    pub(super) carries_priority: bool,
    pub(super) connection: Arc<Connection>,
    /// Requests go by calls of the ORB, in another thread: what a plain connection cannot do.
    pub(super) by_calls: AtomicBool,
    /// The object with the time limit of such a call; it remembers where the object has moved to.
    pub(super) called: OnceLock<ObjectRef>,
    pub(super) options: OutletOptions,
    state: PiMutex<State>,
    /// A one-way that was written changes the state: earlier ones have failed. Changes under the lock of the
    /// connection.
    is_troubled: AtomicBool,
    /// When its receiver was last asked whether it exists.
    asked_ns: AtomicU64,
    /// When a late reply was last counted as a failure.
    late_ns: AtomicU64,
    totals: Arc<Counts>,
    counts: Counts,
}

/// Live counts of one outlet, or of all.
#[derive(Default)]
pub(super) struct Counts {
    delivered: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

impl Counts {
    pub(super) fn read(&self) -> DeliveryCounts {
        DeliveryCounts {
            delivered: self.delivered.load(Relaxed),
            dropped: self.dropped.load(Relaxed),
            failed: self.failed.load(Relaxed),
        }
    }
}

#[derive(Default)]
struct State {
    queue: VecDeque<Marshalled>,
    /// Octets of the queue.
    size: usize,
    under_way: u16,
    /// It is in its connection's list of outlets with something to write.
    is_ready: bool,
    /// Its receiver is to be asked whether it exists, behind the queue.
    asks: bool,
    failures: u32,
    /// Since when the queue is full.
    full_since: Option<Instant64>,
    stage: Stage,
    /// It was ended while its farewell was under way, which is its last request then.
    farewell_left: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Open,
    /// The queue is still delivered.
    Closing,
    /// The farewell is under way.
    Parting,
    Ended,
}

/// What an outlet has to write next.
pub(super) enum Next {
    Event(Marshalled),
    Farewell(&'static str),
    /// Whether the receiver of one-ways still exists.
    Question,
    Nothing,
    /// It was closing, and nothing is left.
    Ended(End),
}

/// How one request has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Delivered,
    /// The receiver refuses all requests from now on.
    Final,
    /// It has failed.
    Failed,
    /// It has failed, and the receiver is not to blame.
    Blameless,
    /// The receiver wants it elsewhere: it is sent again, by a call.
    Redirected,
    /// The receiver has not served it, because it has closed the connection in order: it is sent again. Only the first
    /// such request of an outlet is a failure: the receiver has closed one connection.
    Unserved {
        is_first: bool,
    },
    /// It was the farewell, whether it was said or not.
    Parted,
}

impl Outlet {
    pub(super) fn new(
        engine: &Arc<Engine>,
        owner: Weak<dyn OutletOwner>,
        object: ObjectRef,
        (profile, carries_priority): (Profile, bool),
        connection: Arc<Connection>,
        by_calls: bool,
        options: OutletOptions,
    ) -> Self {
        Self {
            engine: Arc::downgrade(engine),
            key: OnceLock::new(),
            owner,
            object,
            profile,
            carries_priority,
            connection,
            by_calls: AtomicBool::new(by_calls),
            called: OnceLock::new(),
            options,
            state: PiMutex::default(),
            is_troubled: AtomicBool::new(false),
            asked_ns: AtomicU64::new(engine.now().0),
            late_ns: AtomicU64::new(0),
            totals: Arc::clone(&engine.counts),
            counts: Counts::default(),
        }
    }

    /// The form that a body for this outlet should be marshalled in.
    #[must_use]
    pub fn form(&self) -> Form {
        Form::native(self.profile.codec())
    }

    /// Whether a body in this form can be sent as it is, in whatever byte order.
    #[must_use]
    pub fn takes(&self, form: Form) -> bool {
        form.codec == self.profile.codec()
            && (form.order.is_native() || !self.by_calls.load(Relaxed))
    }

    /// Offers a body in a form that it [`takes`](Outlet::takes); another body is counted as failed.
    pub fn offer(self: &Arc<Self>, event: &Marshalled) {
        if self.put(event) {
            self.connection.add_ready(self, None);
        }
    }

    /// As [`Outlet::offer`]; what the batch collects is written when it is dropped.
    pub fn offer_in(self: &Arc<Self>, event: &Marshalled, batch: &mut Batch) {
        if self.put(event) {
            self.connection.add_ready(self, Some(batch));
        }
    }

    /// Its counters.
    #[must_use]
    pub fn counts(&self) -> DeliveryCounts {
        self.counts.read()
    }

    /// The events that wait in its queue.
    #[must_use]
    pub fn queue_len(&self) -> usize {
        self.state.lock("outlet.len").queue.len()
    }

    /// Counts an event as failed that could not be marshalled for it.
    pub fn refuse(&self) {
        self.count_unwritten();
    }

    /// The owner's number for it.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.options.number
    }

    /// The object that it delivers to.
    #[must_use]
    pub fn object(&self) -> &ObjectRef {
        &self.object
    }

    /// Takes no event any more. Its queue is still delivered, then its farewell is said; its owner is told the end.
    pub fn close(self: &Arc<Self>) {
        let mut state = self.state.lock("outlet.close");
        if state.stage != Stage::Open {
            return;
        }
        state.stage = Stage::Closing;
        let is_new = !state.is_ready && state.under_way == 0;
        state.is_ready |= is_new;
        drop(state);
        if is_new {
            self.connection.add_ready(self, None);
        }
    }

    /// Asks the receiver of one-ways whether it exists, if it was not asked for so long.
    pub(super) fn ask_after(self: &Arc<Self>, period: Duration, now: Instant64) {
        if !self.is_oneway() || now.since(Instant64(self.asked_ns.load(Relaxed))) < period {
            return;
        }
        self.asked_ns.store(now.0, Relaxed);
        let mut state = self.state.lock("outlet.ask");
        state.asks = state.stage == Stage::Open;
        let is_new = state.asks && !state.is_ready;
        state.is_ready |= is_new;
        drop(state);
        if is_new {
            self.connection.add_ready(self, None);
        }
    }

    /// Ends it at once: its queue is dropped, and its owner is not told.
    pub fn leave(self: &Arc<Self>) {
        self.end();
        self.connection.forget(self);
        if let (Some(engine), Some(key)) = (self.engine.upgrade(), self.key.get()) {
            engine.outlets.remove(*key);
        }
    }

    /// Drops its queue, and counts it. Returns whether it had not ended.
    pub(super) fn end(&self) -> bool {
        let mut state = self.state.lock("outlet.end");
        let queue = std::mem::take(&mut state.queue);
        state.size = 0;
        let was_live = state.stage != Stage::Ended;
        state.farewell_left |= state.stage == Stage::Parting;
        state.stage = Stage::Ended;
        drop(state);
        self.count_dropped(queue.len() as u64);
        was_live
    }

    /// Queues an event, by the policy if there is no place. Returns whether the connection must be told that the outlet
    /// is ready.
    fn put(self: &Arc<Self>, event: &Marshalled) -> bool {
        if !self.takes(event.form()) {
            self.count_unwritten();
            return false;
        }
        let (size, options) = (event.size(), &self.options);
        let mut state = self.state.lock("outlet.offer");
        if state.stage != Stage::Open {
            drop(state);
            return self.count_dropped(1);
        }
        let is_full = |state: &State| {
            state.queue.len() >= options.queue_len
                || !state.queue.is_empty() && state.size + size > options.queue_size_max
        };
        if is_full(&state) {
            if options.when_full == WhenFull::DropNewest {
                drop(state);
                return self.count_dropped(1);
            }
            let mut dropped = 0;
            while is_full(&state)
                && let Some(oldest) = state.queue.pop_front()
            {
                state.size -= oldest.size();
                dropped += 1;
            }
            self.count_dropped(dropped);
            if let WhenFull::Disconnect(after) = options.when_full
                && let Some(engine) = self.engine.upgrade()
            {
                let now = engine.now();
                let since = *state.full_since.get_or_insert(now);
                if now.since(since) >= after {
                    drop(state);
                    self.connection.worker.tell(self, End::TooSlow);
                    return self.count_dropped(1);
                }
            }
        }
        state.size += size;
        state.queue.push_back(event.clone());
        let window = self.window();
        let may_write = window == 0 || state.under_way < window;
        let is_new = !state.is_ready && may_write;
        state.is_ready |= is_new;
        is_new
    }

    /// Requests that may be under way. Calls are made one after the other, once nothing else is under way: what the
    /// receiver wants elsewhere is sent again in order.
    fn window(&self) -> u16 {
        if self.by_calls.load(Relaxed) {
            self.options.window.min(1)
        } else {
            self.options.window
        }
    }

    /// Takes what it has to write next out of its queue. The flag: it has more, and stays in the connection's list.
    pub(super) fn take(&self) -> (Next, bool) {
        let (window, mut state) = (self.window(), self.state.lock("outlet.take"));
        let next = if state.stage == Stage::Ended || window != 0 && state.under_way >= window {
            Next::Nothing
        } else if let Some(event) = state.queue.pop_front() {
            state.size -= event.size();
            state.full_since = None;
            Next::Event(event)
        } else if std::mem::take(&mut state.asks) && state.stage == Stage::Open {
            Next::Question
        } else if state.stage == Stage::Closing && state.under_way == 0 {
            match self.options.farewell {
                Some(farewell) => {
                    state.stage = Stage::Parting;
                    Next::Farewell(farewell)
                }
                None => Next::Ended(End::Closed),
            }
        } else {
            Next::Nothing
        };
        let is_sent = matches!(next, Next::Event(_) | Next::Farewell(_));
        state.under_way += u16::from(is_sent && window != 0);
        let may_write = window == 0 || state.under_way < window;
        let is_left = !state.queue.is_empty() || state.asks || state.stage == Stage::Closing;
        state.is_ready = is_sent && may_write && is_left;
        (next, state.is_ready)
    }

    /// One request has ended. Returns whether the outlet is ready again, or how it has ended. `event`: what the request
    /// carried, to be sent again if the receiver has not served it.
    pub(super) fn settle(&self, outcome: Outcome, event: Option<Marshalled>) -> Result<bool, End> {
        let is_oneway = self.is_oneway();
        if is_oneway && outcome == Outcome::Delivered && !self.is_troubled.load(Relaxed) {
            // What is queued behind it has put the outlet into its connection's list already.
            self.count_delivered();
            return Ok(false);
        }
        let mut state = self.state.lock("outlet.settle");
        if !is_oneway {
            state.under_way = state.under_way.saturating_sub(1);
        }
        // A two-way farewell goes alone; a one-way farewell goes behind events.
        let is_farewell = outcome == Outcome::Parted
            || !is_oneway && (state.stage == Stage::Parting || state.farewell_left);
        if is_farewell {
            return match state.stage {
                Stage::Ended => Ok(false),
                _ => Err(End::Closed),
            };
        }
        match (outcome, event) {
            (Outcome::Delivered, _) => {
                state.failures = 0;
                self.is_troubled.store(false, Relaxed);
                self.count_delivered();
            }
            (Outcome::Redirected | Outcome::Unserved { .. }, Some(event))
                if state.stage != Stage::Ended =>
            {
                state.size += event.size();
                // Others that were under way may be back already: each goes before those that came after it.
                let later = |it: &Marshalled| it.number() > event.number();
                let place = state.queue.iter().position(later);
                let place = place.unwrap_or(state.queue.len());
                state.queue.insert(place, event);
            }
            _ => self.count_unwritten(),
        }
        match outcome {
            Outcome::Failed | Outcome::Unserved { is_first: true } => {
                state.failures += 1;
                self.is_troubled.store(true, Relaxed);
            }
            Outcome::Redirected => self.by_calls.store(true, Relaxed),
            _ => {}
        }
        if state.stage == Stage::Ended {
            return Ok(false);
        }
        if outcome == Outcome::Final {
            return Err(End::Gone);
        }
        if state.failures >= self.options.failures_max {
            return Err(End::Failed);
        }
        let is_left = !state.queue.is_empty() || state.stage == Stage::Closing;
        let is_new = !state.is_ready && is_left;
        state.is_ready |= is_new;
        Ok(is_new)
    }

    /// Called by the I/O thread. Returns true if a late reply counts as one more failure. It does not count if its
    /// request was already under way at the last failure that counted: one silence of a receiver is one failure.
    pub(super) fn is_failure(&self, since: Instant64, now: Instant64) -> bool {
        let is_new = since.0 >= self.late_ns.load(Relaxed);
        if is_new {
            self.late_ns.store(now.0, Relaxed);
        }
        is_new
    }

    /// What has become of the question whether the receiver exists.
    pub(super) fn settle_answer(&self, outcome: Outcome) -> Result<bool, End> {
        let mut state = self.state.lock("outlet.answer");
        match outcome {
            _ if state.stage == Stage::Ended => {}
            Outcome::Final => return Err(End::Gone),
            Outcome::Delivered => {
                state.failures = 0;
                self.is_troubled.store(false, Relaxed);
            }
            Outcome::Failed => {
                state.failures += 1;
                self.is_troubled.store(true, Relaxed);
                if state.failures >= self.options.failures_max {
                    return Err(End::Failed);
                }
            }
            _ => {}
        }
        Ok(false)
    }

    /// Its connection could not be made: what it would write next is lost.
    pub(super) fn fail_next(&self) -> Result<bool, End> {
        self.state.lock("outlet.fail").is_ready = false;
        match self.take().0 {
            Next::Nothing => Ok(false),
            Next::Ended(end) => Err(end),
            Next::Event(_) => {
                self.state.lock("outlet.fail").is_ready = false;
                self.settle(Outcome::Failed, None)
            }
            Next::Farewell(_) => self.settle(Outcome::Parted, None),
            Next::Question => self.settle_answer(Outcome::Failed),
        }
    }

    /// The number of its oldest queued event.
    pub(super) fn oldest(&self) -> Option<u64> {
        let state = self.state.lock("outlet.oldest");
        state.queue.front().map(Marshalled::number)
    }

    /// Drops its oldest event if it has this number.
    pub(super) fn evict(&self, number: u64) {
        let mut state = self.state.lock("outlet.evict");
        let evicted = state.queue.pop_front_if(|oldest| oldest.number() == number);
        if let Some(evicted) = evicted {
            state.size -= evicted.size();
            drop(state);
            self.count_dropped(1);
        }
    }

    /// Its requests have no replies.
    pub(super) const fn is_oneway(&self) -> bool {
        self.options.window == 0
    }

    /// What a request with this body calls.
    pub(super) fn operation<'a>(&self, event: &'a Marshalled) -> &'a str {
        event.operation().unwrap_or(self.options.operation)
    }

    /// What a request asks of its receiver.
    pub(super) const fn response(&self) -> Response {
        match self.options.window {
            0 => Response::Nothing,
            _ => Response::Outcome,
        }
    }

    fn count_delivered(&self) {
        self.counts.delivered.fetch_add(1, Relaxed);
        self.totals.delivered.fetch_add(1, Relaxed);
    }

    fn count_dropped(&self, count: u64) -> bool {
        self.counts.dropped.fetch_add(count, Relaxed);
        self.totals.dropped.fetch_add(count, Relaxed);
        false
    }

    fn count_unwritten(&self) {
        self.counts.failed.fetch_add(1, Relaxed);
        self.totals.failed.fetch_add(1, Relaxed);
    }
}

impl std::fmt::Debug for Outlet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outlet")
            .field("operation", &self.options.operation)
            .finish_non_exhaustive()
    }
}
