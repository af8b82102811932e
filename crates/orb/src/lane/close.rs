//! The end of a connection, of those that nothing happens on, and of the lane.
//!
//! CloseConnection promises that what has not been answered has not been served, so that the client may ask again elsewhere. It
//! is said by whoever holds the right to read, so that no request can come meanwhile, and never while one is served.

use std::sync::PoisonError;
use std::sync::atomic::{Ordering, fence};
use std::thread::JoinHandle;
use std::time::Duration;

use deckwatch_sync::SlotKey;

use crate::connection::Connection;
use crate::counters::Counter;
use crate::lane::Lane;
use crate::limits::DRAIN_TIMEOUT;
use crate::transport::Instant64;

impl Connection {
    /// Whether requests of it are being served, or their replies are on the way.
    pub(crate) fn answers(&self) -> bool {
        self.serving.load(Ordering::SeqCst) != 0 || self.owes()
    }

    /// Whether nothing seems to happen on it, to somebody who has no right to read.
    pub(crate) fn looks_quiet(&self) -> bool {
        let is_awaited = self.bidirectional.get().is_some_and(|bidirectional| {
            bidirectional.is_opened_here || bidirectional.is_awaited()
        });
        !is_awaited && !self.answers() && self.begun.load(Ordering::Relaxed) == 0
    }
}

impl Lane {
    pub(crate) fn close(&self, key: SlotKey, connection: &Connection) {
        self.end_bidirectional(connection, false);
        self.poller.forget(connection.stream.source());
        if connection.owes() {
            self.poller.forget_room(connection.stream.source());
        }
        connection.stream.shutdown();
        if self.connections.remove(key) {
            self.forget_early(key);
            self.forget_line(connection);
            self.counters.count(Counter::ConnectionsClosed);
            self.trace.closed(connection.number);
            if self.open.fetch_sub(1, Ordering::SeqCst) >= self.shape.connections_max {
                fence(Ordering::SeqCst);
                self.resume_accepting();
            }
        }
    }

    /// Closes a connection that has brought what cannot be read.
    pub(crate) fn close_by_token(&self, connection: &Connection) {
        self.close(connection.key(), connection);
    }

    /// Closes a connection with a farewell if nothing happens on it: no request is served or has come, no reply waits.
    pub(crate) fn close_if_quiet(&self, key: SlotKey, connection: &Connection) -> bool {
        let Some(reading) = connection.inbound.try_claim() else {
            return false;
        };
        let has_begun = reading.is_within_message() || reading.begun().is_some();
        if has_begun || !connection.looks_quiet() || connection.stream.is_readable() {
            drop(reading);
            // SYNC: as in `serve`: who found us with the right to read has left the signal, and we see it.
            fence(Ordering::SeqCst);
            if connection.signalled.load(Ordering::SeqCst) {
                self.tell_of_rest(connection);
            }
            return false;
        }
        connection.parted.store(true, Ordering::Relaxed);
        self.say_goodbye(connection);
        self.close(key, connection);
        true
    }

    /// Takes no new request, lets those in progress finish, tells every client that the connection closes.
    pub(crate) fn shutdown(&self) {
        if self.close_entrance() {
            self.drain(self.transport.now().after(DRAIN_TIMEOUT));
        }
    }

    /// Takes no new request from here on. False: it takes none already.
    pub(crate) fn close_entrance(&self) -> bool {
        if self.closing.swap(true, Ordering::SeqCst) {
            return false;
        }
        self.server.close();
        self.poller.close();
        if let Some(room) = &self.room {
            room.close();
        }
        self.listeners.lock("lane.close").clear();
        true
    }

    /// Lets the requests in progress finish until `deadline`, and tells every client that the connection closes.
    pub(crate) fn drain(&self, deadline: Instant64) {
        self.discard_waiting();
        self.discard_early();
        self.wait_until(deadline, || self.server.is_idle());
        let mut keys = Vec::new();
        // SYNC: pairs with the fence in `admit`.
        fence(Ordering::SeqCst);
        self.connections
            .for_each(|key, connection| keys.push((connection.owes(), key)));
        // Those that do not read keep nobody else from hearing of it.
        keys.sort_by_key(|(owes, _)| *owes);
        for (_, key) in keys {
            if let Some(connection) = self.connections.pin(key) {
                self.part_from(key, &connection, deadline);
            }
        }
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            if thread.thread().id() != std::thread::current().id() {
                self.join(thread, deadline);
            }
        }
    }

    /// Closes a connection at the end: with a farewell, unless a request of it is still served at the deadline.
    fn part_from(&self, key: SlotKey, connection: &Connection, deadline: Instant64) {
        let mut reading = None;
        let is_quiet = self.flush(connection, deadline)
            && self.wait_until(deadline, || {
                // Whoever serves needs the right to read to come to an end.
                drop(reading.take());
                reading = connection.inbound.try_claim();
                reading.is_some() && connection.serving.load(Ordering::SeqCst) == 0
            });
        if is_quiet {
            connection.parted.store(true, Ordering::Relaxed);
            if self.flush(connection, deadline) {
                self.say_goodbye(connection);
            }
        }
        self.close(key, connection);
    }

    /// Joins a thread that is ending; one that a servant holds beyond the deadline is left to end by itself.
    fn join(&self, thread: JoinHandle<()>, deadline: Instant64) {
        if self.wait_until(deadline, || thread.is_finished()) {
            let _panicked = thread.join();
        }
    }

    /// Waits for what no one tells of; false at the deadline.
    pub(crate) fn wait_until(&self, deadline: Instant64, mut is_so: impl FnMut() -> bool) -> bool {
        loop {
            if is_so() {
                return true;
            }
            if self.transport.now() >= deadline {
                return false;
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
    }
}
