//! Heads of request queues that wait for a thread.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use deckwatch_sync::PiMutex;

use super::room::WaitingRequest;

/// At most one request of each bidirectional connection: the one of its queue that is to be served next.
pub(super) struct QueueHeads {
    list: PiMutex<VecDeque<WaitingRequest>>,
    /// Read without the lock.
    count: AtomicUsize,
    /// One of them is served next, before a request of the waiting room.
    is_next: AtomicBool,
}

impl QueueHeads {
    pub(super) const fn new() -> Self {
        Self {
            list: PiMutex::new(VecDeque::new()),
            count: AtomicUsize::new(0),
            is_next: AtomicBool::new(true),
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        // SYNC: pairs with the addition in `push`: a thread that is about to wait has been counted before it looks
        // here.
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Whether one of them is served now although requests of the waiting room wait too: every other time.
    pub(super) fn take_turn(&self) -> bool {
        !self.is_empty() && self.is_next.fetch_xor(true, Ordering::Relaxed)
    }

    pub(super) fn push(&self, head: WaitingRequest) {
        let mut list = self.list.lock("lane.heads");
        list.push_back(head);
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    #[inline]
    pub(super) fn pop(&self) -> Option<WaitingRequest> {
        if self.is_empty() {
            return None;
        }
        let head = self.list.lock("lane.heads").pop_front()?;
        self.count.fetch_sub(1, Ordering::SeqCst);
        Some(head)
    }
}
