//! The connections of a lane, and which of them are overdue, idle or may be closed for a new one.

use std::sync::Arc;
use std::time::Duration;

use deckwatch_sync::{Budget, Pinned, SlotKey, SlotTable};

use crate::accounts::{Accounts, Bound};
use crate::connection::Connection;
use crate::counters::Counter;
use crate::limits::{GREETING_TIMEOUT, NEWCOMER_GRACE};
use crate::transport::Instant64;

pub(super) struct Connections {
    table: SlotTable<Connection>,
    /// What counts those that are open.
    accounts: Arc<Accounts>,
}

impl Connections {
    pub(super) fn new(accounts: Arc<Accounts>) -> Self {
        Self {
            table: SlotTable::new(),
            accounts,
        }
    }

    fn open(&self) -> &Budget {
        self.accounts.bound(Bound::Connections)
    }

    #[inline]
    pub(super) fn pin(&self, key: SlotKey) -> Option<Pinned<'_, Connection>> {
        self.table.pin(key)
    }

    /// Whether another connection may be accepted only if one is closed.
    pub(super) fn is_full(&self) -> bool {
        self.open().held() >= self.open().max()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open().held() == 0
    }

    /// Takes a connection in and sets its key. If the table is full, gives its places back and returns `None`.
    pub(super) fn insert(&self, connection: Connection) -> Option<Pinned<'_, Connection>> {
        let inserted = self.table.insert(connection);
        let key = inserted.map_err(|full| full.0.leave()).ok()?;
        let pinned = self.table.pin(key)?;
        pinned.set_key(key);
        Some(pinned)
    }

    /// Takes a connection out, and gives its places back. Returns whether it was there, and whether the lane was full
    /// with it.
    pub(super) fn remove(&self, key: SlotKey, connection: &Connection) -> Option<WasFull> {
        let is_removed = self.table.remove(key);
        is_removed.then(|| WasFull(connection.leave()))
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
    /// new one is excluded: its first request is on the way. `among`: those that are considered.
    pub(super) fn oldest_quiet(
        &self,
        now: Instant64,
        idle_for: Duration,
        tried: Instant64,
        among: impl Fn(&Connection) -> bool,
    ) -> Option<(Instant64, SlotKey)> {
        let may_go = |connection: &Connection| {
            let unused_for = now.since(connection.last_used(now));
            let is_new = !connection.has_brought() && unused_for < NEWCOMER_GRACE;
            !is_new && unused_for >= idle_for && connection.looks_quiet() && among(connection)
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

    /// A connection that has brought no whole message for [`GREETING_TIMEOUT`] since it was accepted.
    pub(super) fn never_greeted(
        &self,
        now: Instant64,
        among: impl Fn(&Connection) -> bool,
    ) -> Option<SlotKey> {
        let mut found = None;
        self.for_each(|key, connection| {
            if found.is_none()
                && !connection.has_brought()
                && !connection.is_opened_here()
                && now.since(connection.last_used(now)) >= GREETING_TIMEOUT
                && among(connection)
            {
                found = Some(key);
            }
        });
        found
    }
}

/// Whether the lane had as many connections as it may have.
pub(super) struct WasFull(pub(super) bool);
