//! Requests over a bidirectional connection. They never keep the connection from being read, because replies to this
//! ORB come over it too.
//!
//! The requests of a connection are served in a queue. Its head enters at once, and the claim to read is released while
//! it is served, as for every two-way request. A request behind a one-way is queued by the thread that reads it, and
//! served in order. When the queue is full, the connection is held up while this ORB awaits no reply over it; while it
//! does, the connection is read on, and requests without room are refused.

use std::sync::atomic::{AtomicUsize, Ordering};

use deckwatch_sync::TurnQueue;

use super::Arrived;
use crate::limits::{REQUEST_QUEUE_MAX, REQUEST_QUEUE_SIZE_MAX};

/// Requests of one connection: one that is served, and those that wait behind it.
#[derive(Debug, Default)]
pub(crate) struct RequestQueue {
    queue: TurnQueue<Arrived>,
    /// Octets of the requests that wait.
    size: AtomicUsize,
}

impl RequestQueue {
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.count() == 0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.queue.count() > REQUEST_QUEUE_MAX
            || self.size.load(Ordering::SeqCst) >= REQUEST_QUEUE_SIZE_MAX
    }

    /// Whether a connection that was held up may be read on: not with each place that comes free.
    pub(super) fn has_much_room(&self) -> bool {
        self.queue.count() <= REQUEST_QUEUE_MAX / 2
            && self.size.load(Ordering::SeqCst) <= REQUEST_QUEUE_SIZE_MAX / 2
    }

    /// Becomes the request that is served, if there is none.
    pub(crate) fn enter(&self) -> bool {
        self.queue.enter()
    }

    /// Queues a request. Returns it if there is none before it any more: it is the one that is served.
    pub(crate) fn join(&self, arrived: Arrived) -> Option<Arrived> {
        let octets = arrived.size();
        self.size.fetch_add(octets, Ordering::SeqCst);
        let first = self.queue.join(arrived);
        if first.is_some() {
            self.size.fetch_sub(octets, Ordering::SeqCst);
        }
        first
    }

    /// Takes out the first request that waits; the one that is served stays.
    pub(crate) fn take_first(&self) -> Option<Arrived> {
        let arrived = self.queue.take_first()?;
        self.size.fetch_sub(arrived.size(), Ordering::SeqCst);
        Some(arrived)
    }

    pub(super) fn leave(&self) -> Option<Arrived> {
        let arrived = self.queue.leave()?;
        self.size.fetch_sub(arrived.size(), Ordering::SeqCst);
        Some(arrived)
    }
}
