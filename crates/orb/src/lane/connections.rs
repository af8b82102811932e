//! The connections of a lane, and which of them are overdue, idle or may be closed for a new one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deckwatch_sync::{Pinned, SlotKey, SlotTable};

use crate::connection::Connection;
use crate::counters::Counter;
use crate::limits::NEWCOMER_GRACE;
use crate::transport::Instant64;

pub(super) struct Connections {
    table: SlotTable<Connection>,
    /// Connections that are open.
    open: AtomicUsize,
    max: usize,
}

impl Connections {
    pub(super) fn new(max: usize) -> Self {
        Self {
            table: SlotTable::new(),
            open: AtomicUsize::new(0),
            max,
        }
    }

    #[inline]
    pub(super) fn pin(&self, key: SlotKey) -> Option<Pinned<'_, Connection>> {
        self.table.pin(key)
    }

    /// Whether another connection may be accepted only if one is closed.
    pub(super) fn is_full(&self) -> bool {
        self.open.load(Ordering::SeqCst) >= self.max
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.load(Ordering::Relaxed) == 0
    }

    /// Takes a connection in and sets its key. Returns `None` if the table is full.
    pub(super) fn insert(&self, connection: Connection) -> Option<Pinned<'_, Connection>> {
        let key = self.table.insert(connection).ok()?;
        self.open.fetch_add(1, Ordering::AcqRel);
        let pinned = self.table.pin(key)?;
        pinned.set_key(key);
        Some(pinned)
    }

    /// Takes a connection out. Returns whether it was there, and whether the lane was full with it.
    pub(super) fn remove(&self, key: SlotKey) -> Option<WasFull> {
        let is_removed = self.table.remove(key);
        is_removed.then(|| WasFull(self.open.fetch_sub(1, Ordering::SeqCst) >= self.max))
    }

    pub(super) fn for_each(&self, visit: impl FnMut(SlotKey, &Connection)) {
        self.table.for_each(visit);
    }

    /// Connections whose message takes longer than `arrival` to arrive, or whose peer has read nothing for longer than
    /// `reply`; and whether there are others with such a time.
    pub(super) fn overdue(
        &self,
        now: Instant64,
        arrival: Duration,
        reply: Duration,
    ) -> (Vec<(SlotKey, Counter)>, bool) {
        let mut any = false;
        let mut overdue = Vec::new();
        self.for_each(|key, connection| {
            for (since, limit, counter) in [
                (connection.begun(), arrival, Counter::ArrivalsTimedOut),
                (connection.owed_since(), reply, Counter::RepliesTimedOut),
            ] {
                any |= since.is_some();
                if since.is_some_and(|since| now.since(since) >= limit) {
                    overdue.push((key, counter));
                }
            }
        });
        (overdue, any)
    }

    /// Connections that have brought nothing for `limit`.
    pub(super) fn idle(&self, now: Instant64, limit: Duration) -> Vec<SlotKey> {
        let mut idle = Vec::new();
        self.for_each(|key, connection| {
            if now.since(connection.last_used(now)) >= limit {
                idle.push(key);
            }
        });
        idle
    }

    /// The connection that has brought nothing for the longest time, for `idle_for` at least and since after `tried`. A
    /// new one is excluded: its first request is on the way.
    pub(super) fn oldest_quiet(
        &self,
        now: Instant64,
        idle_for: Duration,
        tried: Instant64,
    ) -> Option<(Instant64, SlotKey)> {
        let may_go = |connection: &Connection| {
            let unused_for = now.since(connection.last_used(now));
            let is_new = !connection.has_brought() && unused_for < NEWCOMER_GRACE;
            !is_new && unused_for >= idle_for && connection.looks_quiet()
        };
        let mut oldest: Option<(Instant64, SlotKey)> = None;
        self.for_each(|key, connection| {
            let used = connection.last_used(now);
            let is_older = oldest.is_none_or(|(other, _)| used < other);
            if used > tried && is_older && may_go(connection) {
                oldest = Some((used, key));
            }
        });
        oldest
    }
}

/// Whether the lane had as many connections as it may have.
pub(super) struct WasFull(pub(super) bool);
