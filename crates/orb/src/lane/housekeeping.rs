//! What a lane does by the clock, because nobody would tell of it: listeners that rest, adopted connections with a long request,
//! messages that do not end, replies that are not taken, connections that bring nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use deckwatch_sync::SlotKey;

use crate::connection::Connection;
use crate::counters::Counter;
use crate::lane::Lane;
use crate::limits::{ACCEPT_REST, ADOPTION_SWEEP, ARRIVAL_SWEEP, NEWCOMER_GRACE};
use crate::transport::Instant64;

/// How a thread waits in the poller.
pub(crate) struct Wait {
    /// How long at most.
    pub(crate) limit: Option<Duration>,
    /// That is the thread's own patience, and not the lane's business.
    pub(crate) is_patience: bool,
    /// Until when it keeps the lane; 0: it does not.
    keeps_until: u64,
}

impl Lane {
    /// One of the threads that wait comes back in time for the housekeeping and for the next request that waits for its start; the others sleep until there is something to serve.
    pub(crate) fn begin_wait(&self, patience: Option<Duration>) -> Wait {
        let others = Wait {
            limit: patience,
            is_patience: true,
            keeps_until: 0,
        };
        let (housekeeping, start) = (self.housekeeping_period(), self.early.next());
        if housekeeping.is_none() && start.is_none() {
            return others;
        }
        let now = self.transport.now();
        let start = start.map(|start| start.since(now));
        let Some(period) = housekeeping.into_iter().chain(start).min() else {
            return others;
        };
        if patience.is_some_and(|patience| patience <= period) {
            return others;
        }
        let until = now.after(period).0;
        let kept = self.kept_until.load(Ordering::SeqCst);
        // One that is overdue is not relied on.
        let is_kept = now.0 <= kept && kept <= until;
        let swap = || {
            self.kept_until
                .compare_exchange(kept, until, Ordering::AcqRel, Ordering::Relaxed)
        };
        if is_kept || swap().is_err() {
            return others;
        }
        Wait {
            limit: Some(period),
            is_patience: false,
            keeps_until: until,
        }
    }

    /// Who has kept the lane and leaves the poller to serve has another thread keep it.
    pub(crate) fn end_wait(&self, wait: &Wait, leaves: bool) {
        if wait.keeps_until == 0 {
            return;
        }
        let was_keeper = self.kept_until.compare_exchange(
            wait.keeps_until,
            0,
            Ordering::SeqCst,
            Ordering::Relaxed,
        );
        // SYNC: pairs with the count in `turn`: a thread that relied on us is seen, or sees that nobody keeps.
        if leaves && was_keeper.is_ok() && self.waiting.load(Ordering::SeqCst) != 0 {
            self.poller.wake();
        }
    }

    /// How often the lane has to look after itself now, if at all.
    pub(crate) fn housekeeping_period(&self) -> Option<Duration> {
        if self.adopted.load(Ordering::Relaxed) != 0 {
            return Some(ADOPTION_SWEEP);
        }
        if self.resting.load(Ordering::Relaxed) {
            return Some(ACCEPT_REST);
        }
        let unfinished = self.unfinished.load(Ordering::Relaxed);
        let unfinished = unfinished.then(|| self.unfinished_period());
        let idle = self.idle_period();
        unfinished.into_iter().chain(idle).min()
    }

    fn unfinished_period(&self) -> Duration {
        let limit = self.shape.arrival_timeout.min(self.shape.reply_timeout);
        ARRIVAL_SWEEP.min(limit)
    }

    /// A connection may be idle for a quarter longer than it should.
    fn idle_period(&self) -> Option<Duration> {
        let limit = self.shape.idle_timeout?;
        (self.open.load(Ordering::Relaxed) != 0).then_some(limit / 4)
    }

    /// Looks after listeners and connections that nobody would tell of; by one thread, as often as there is reason to, and
    /// however many events come.
    pub(crate) fn keep_house(self: &Arc<Self>) {
        let Some(period) = self.housekeeping_period() else {
            return;
        };
        let now = self.transport.now();
        let due = self.housekeeping_due.load(Ordering::Relaxed);
        let next = now.after(period).0;
        // What was put off for longer than this period was put off for less urgent housekeeping.
        if now.0 < due && due <= next {
            return;
        }
        let swap =
            self.housekeeping_due
                .compare_exchange(due, next, Ordering::AcqRel, Ordering::Relaxed);
        if swap.is_err() {
            return;
        }
        if self.resting.load(Ordering::Relaxed) {
            self.resume_accepting();
        }
        self.sweep();
        if self.unfinished.load(Ordering::Relaxed)
            && now.0 >= self.arrivals_due.load(Ordering::Relaxed)
        {
            let next = now.after(self.unfinished_period());
            self.arrivals_due.store(next.0, Ordering::Relaxed);
            self.close_overdue(now);
        }
        if let Some(period) = self.idle_period()
            && now.0 >= self.idle_due.load(Ordering::Relaxed)
        {
            self.idle_due.store(now.after(period).0, Ordering::Relaxed);
            self.close_idle(now);
        }
    }

    /// Closes the connections whose message takes too long to arrive, or whose peer takes none of what waits for it.
    fn close_overdue(&self, now: Instant64) {
        self.unfinished.store(false, Ordering::SeqCst);
        let mut any = false;
        let mut overdue = Vec::new();
        self.connections.for_each(|key, connection| {
            for (since, limit, counter) in [
                (
                    &connection.begun,
                    self.shape.arrival_timeout,
                    Counter::ArrivalsTimedOut,
                ),
                (
                    &connection.owed_since,
                    self.shape.reply_timeout,
                    Counter::RepliesTimedOut,
                ),
            ] {
                let since = since.load(Ordering::SeqCst);
                any |= since != 0;
                if since != 0 && now.since(Instant64(since)) >= limit {
                    overdue.push((key, counter));
                }
            }
        });
        if any {
            self.unfinished.store(true, Ordering::SeqCst);
        }
        for (key, counter) in overdue {
            if let Some(connection) = self.connections.pin(key) {
                self.counters.count(counter);
                self.close(key, &connection);
            }
        }
    }

    /// Closes the connections that have brought nothing for too long.
    fn close_idle(&self, now: Instant64) {
        let Some(limit) = self.shape.idle_timeout else {
            return;
        };
        let mut idle = Vec::new();
        self.connections.for_each(|key, connection| {
            if now.since(last_used(connection, now)) >= limit {
                idle.push(key);
            }
        });
        for key in idle {
            if let Some(connection) = self.connections.pin(key)
                && self.close_if_quiet(key, &connection)
            {
                self.counters.count(Counter::ConnectionsIdle);
            }
        }
    }

    /// Closes the connection that has brought nothing for the longest, to make room for another. False: none is idle, for so long at
    /// least. One that has just come is not: its first request is on the way.
    pub(crate) fn evict(&self, for_so_long: Duration) -> bool {
        let now = self.transport.now_coarse();
        let may_go = |connection: &Connection| {
            let unused_for = now.since(last_used(connection, now));
            let has_brought = connection.has_brought.load(Ordering::Relaxed);
            let is_new = !has_brought && unused_for < NEWCOMER_GRACE;
            !is_new && unused_for >= for_so_long && connection.looks_quiet()
        };
        let mut tried = Instant64(0);
        loop {
            let mut oldest: Option<(Instant64, SlotKey)> = None;
            self.connections.for_each(|key, connection| {
                let used = last_used(connection, now);
                let is_older = oldest.is_none_or(|(other, _)| used < other);
                if used > tried && is_older && may_go(connection) {
                    oldest = Some((used, key));
                }
            });
            let Some((used, key)) = oldest else {
                return false;
            };
            if let Some(connection) = self.connections.pin(key)
                && self.close_if_quiet(key, &connection)
            {
                self.counters.count(Counter::ConnectionsEvicted);
                return true;
            }
            tried = used;
        }
    }
}

/// When a connection has last brought something: now, where a thread stays with it.
fn last_used(connection: &Connection, now: Instant64) -> Instant64 {
    match connection.is_adopted() {
        true => now,
        false => Instant64(connection.used.load(Ordering::Relaxed)),
    }
}
