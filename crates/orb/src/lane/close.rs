//! The end of a connection, of quiet and overdue ones, and of the lane.
//!
//! CloseConnection promises that requests without a reply have not been served, so that the client may send them again
//! elsewhere. The thread that writes it has the claim to read, so that no request can arrive meanwhile; it is never
//! written while a request is served.

use std::sync::atomic::{Ordering, fence};
use std::thread::JoinHandle;
use std::time::Duration;

use deckwatch_sync::SlotKey;

use super::Lane;
use super::service::Service;
use crate::connection::{Connection, RequestQueue};
use crate::counters::Counter;
use crate::limits::DRAIN_TIMEOUT;
use crate::transport::Instant64;

impl Lane {
    /// Closes a connection.
    pub(super) fn close(&self, key: SlotKey, connection: &Connection) {
        connection.shut(&self.io);
        if let Some(was_full) = self.connections.remove(key, connection) {
            self.forget_early(connection);
            Service::new(self, connection).forget_queue();
            self.io.count(Counter::ConnectionsClosed);
            self.io.trace.closed(connection.number());
            if was_full.0 {
                fence(Ordering::SeqCst);
                self.acceptor.resume(&*self.io.poller);
            }
        }
    }

    /// Closes a connection with a farewell if nothing happens on it: no request is served or has come, no reply waits.
    fn close_if_quiet(&self, key: SlotKey, connection: &Connection) -> bool {
        let Some(reading) = connection.try_claim() else {
            return false;
        };
        let has_begun = reading.is_within_message() || reading.begun().is_some();
        if has_begun || !connection.looks_quiet() || connection.is_readable() {
            connection.settle_claim(&self.io, reading);
            return false;
        }
        connection.part();
        connection.write_goodbye(&self.io);
        self.close(key, connection);
        true
    }

    /// Closes the connection among some that has brought nothing for the longest time, and for `idle_for` at least, to
    /// make room for another. If there is none, closes one that has never brought a whole message. Returns false if
    /// there is none of those either.
    pub(super) fn evict(&self, idle_for: Duration, among: impl Fn(&Connection) -> bool) -> bool {
        let now = self.io.transport.now_coarse();
        let mut tried = Instant64(0);
        while let Some((used, key)) = self.connections.oldest_quiet(now, idle_for, tried, &among) {
            if let Some(connection) = self.connections.pin(key)
                && self.close_if_quiet(key, &connection)
            {
                self.io.count(Counter::ConnectionsEvicted);
                return true;
            }
            tried = used;
        }
        let silent = self.connections.never_greeted(now, &among);
        let silent = silent.and_then(|key| self.connections.pin(key));
        silent.is_some_and(|connection| {
            self.io.count(Counter::ConnectionsEvicted);
            self.close(connection.key(), &connection);
            true
        })
    }

    /// Closes connections whose message takes too long to arrive, or whose peer reads nothing of what waits for it.
    pub(super) fn close_overdue(&self, now: Instant64) {
        self.io.set_unfinished(false);
        let (arrival, reply) = (self.shape.arrival_timeout, self.shape.reply_timeout);
        let (overdue, any) = self.connections.overdue(now, arrival, reply);
        if any {
            self.io.set_unfinished(true);
        }
        for (key, counter) in overdue {
            if let Some(connection) = self.connections.pin(key) {
                self.io.count(counter);
                self.close(key, &connection);
            }
        }
    }

    /// Closes connections that have brought nothing for too long.
    pub(super) fn close_idle(&self, now: Instant64) {
        let Some(limit) = self.shape.idle_timeout else {
            return;
        };
        for key in self.connections.idle(now, limit) {
            if let Some(connection) = self.connections.pin(key)
                && self.close_if_quiet(key, &connection)
            {
                self.io.count(Counter::ConnectionsIdle);
            }
        }
    }

    /// Discards the requests that wait in a queue, and returns how many there were.
    pub(super) fn discard_requests(&self, requests: &RequestQueue) -> usize {
        let mut count = 0;
        while let Some(arrived) = requests.take_first() {
            self.io.count(Counter::RequestsDiscarded);
            self.give_queued(arrived.size());
            self.io.slab.take_back(arrived.buffer);
            count += 1;
        }
        count
    }

    /// Takes no new request, lets those in progress finish, and writes a farewell to every client.
    pub(crate) fn shutdown(&self) {
        if self.close_entrance() {
            self.drain(self.io.now().after(DRAIN_TIMEOUT));
        }
    }

    /// Takes no new request from here on. Returns false if it took none already.
    pub(crate) fn close_entrance(&self) -> bool {
        if self.closing.swap(true, Ordering::SeqCst) {
            return false;
        }
        self.server.close();
        self.io.poller.close();
        self.waiting.close();
        self.acceptor.close();
        true
    }

    /// Lets requests in progress finish until `deadline`, and writes a farewell to every client.
    pub(crate) fn drain(&self, deadline: Instant64) {
        self.discard_waiting();
        self.discard_early();
        // At the deadline the connections are closed all the same.
        let _ = self.io.poll_until(deadline, || self.server.is_idle());
        let mut keys = Vec::new();
        // SYNC: pairs with the fence in `admit`.
        fence(Ordering::SeqCst);
        self.connections
            .for_each(|key, connection| keys.push((connection.owes(), key)));
        // Peers that do not read must not delay the farewell to the others.
        keys.sort_by_key(|(owes, _)| *owes);
        for (_, key) in keys {
            if let Some(connection) = self.connections.pin(key) {
                self.part_from(key, &connection, deadline);
            }
        }
        for thread in self.threads.take_handles() {
            if thread.thread().id() != std::thread::current().id() {
                self.join(thread, deadline);
            }
        }
    }

    /// Closes a connection at the end of the lane: with a farewell, unless a request of it is still served at the
    /// deadline.
    fn part_from(&self, key: SlotKey, connection: &Connection, deadline: Instant64) {
        let mut reading = None;
        let is_quiet = connection.flush(&self.io, deadline)
            && self.io.poll_until(deadline, || {
                // A thread that serves needs the claim to finish.
                drop(reading.take());
                reading = connection.try_claim();
                reading.is_some() && !connection.is_serving()
            });
        if is_quiet {
            connection.part();
            if connection.flush(&self.io, deadline) {
                connection.write_goodbye(&self.io);
            }
        }
        self.close(key, connection);
    }

    /// Joins a thread that is ending. A thread whose servant does not return by the deadline is left behind.
    fn join(&self, thread: JoinHandle<()>, deadline: Instant64) {
        if self.io.poll_until(deadline, || thread.is_finished()) {
            // A panic has been reported by the thread itself.
            let _ = thread.join();
        }
    }
}
