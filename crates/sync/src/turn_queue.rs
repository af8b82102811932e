//! A queue in front of a task that handles one value at a time: the first caller enters at once, the others take turns
//! in arrival order.
//!
//! `enter` and `leave` take no lock while nothing waits. The queue grows as values wait in it: the caller bounds it.

use std::collections::VecDeque;

use crate::PiMutex;
use crate::limits::TURN_QUEUE_KEPT;
use crate::primitive::{AtomicUsize, Ordering};

/// At most one occupant; the values of those that wait are kept for the occupant that leaves.
#[derive(Debug)]
pub struct TurnQueue<T> {
    /// Occupant plus waiters. Only the occupant stores 0, and only when nobody waits.
    count: AtomicUsize,
    waiting: PiMutex<VecDeque<T>>,
}

impl<T> TurnQueue<T> {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self {
            count: AtomicUsize::new(0),
            waiting: PiMutex::new(VecDeque::new()),
        }
    }

    /// Occupant plus waiters; at 0 the next caller of [`TurnQueue::enter`] succeeds.
    #[inline]
    #[must_use]
    pub fn count(&self) -> usize {
        // SYNC: pairs with the exchange in `leave`: a caller that reads 0 sees what the last occupant did.
        self.count.load(Ordering::SeqCst)
    }

    /// Becomes the occupant if there is none.
    #[inline]
    #[must_use]
    pub fn enter(&self) -> bool {
        // SYNC: pairs with the exchange in `leave`.
        self.count
            .compare_exchange(0, 1, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
    }

    /// Queues `value` behind the others. Returns it if there is no occupant: the caller is the occupant from here on.
    #[must_use]
    pub fn join(&self, value: T) -> Option<T> {
        let mut waiting = self.waiting.lock("turn_queue.join");
        // SYNC: pairs with the exchange in `leave`: the occupant sees the waiter, or we see that it has left.
        if self.count.fetch_add(1, Ordering::SeqCst) == 0 {
            return Some(value);
        }
        waiting.push_back(value);
        None
    }

    /// Ends the occupant's turn. Returns the first waiter, which is the occupant from here on.
    #[inline]
    #[must_use]
    pub fn leave(&self) -> Option<T> {
        // SYNC: the release pairs with the acquire of the next occupant.
        while self
            .count
            .compare_exchange(1, 0, Ordering::SeqCst, Ordering::Relaxed)
            .is_err()
        {
            // Another thread may have taken out the last waiter.
            if let Some(first) = self.take_first() {
                return Some(first);
            }
        }
        None
    }

    /// Takes the first waiter out of the queue; the occupant stays.
    #[must_use]
    pub fn take_first(&self) -> Option<T> {
        let mut waiting = self.waiting.lock("turn_queue.take");
        let first = waiting.pop_front()?;
        if waiting.is_empty() && waiting.capacity() > TURN_QUEUE_KEPT {
            *waiting = VecDeque::new();
        }
        self.count.fetch_sub(1, Ordering::SeqCst);
        Some(first)
    }
}

impl<T> Default for TurnQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_first_enters_and_the_others_follow_in_their_order() {
        let queue = TurnQueue::new();
        assert!(queue.enter());
        assert!(!queue.enter());
        assert_eq!(queue.join(1), None);
        assert_eq!(queue.join(2), None);
        assert_eq!(queue.count(), 3);
        assert_eq!(queue.leave(), Some(1));
        assert!(!queue.enter());
        assert_eq!(queue.join(3), None);
        assert_eq!(queue.take_first(), Some(2));
        assert_eq!(queue.leave(), Some(3));
        assert_eq!(queue.leave(), None);
        assert_eq!(queue.count(), 0);
        assert_eq!(queue.join(4), Some(4));
        assert!(!queue.enter());
        assert_eq!(queue.leave(), None);
    }

    #[test]
    fn memory_of_many_waiters_is_given_back() {
        let queue = TurnQueue::new();
        assert!(queue.enter());
        for value in 0..1_000 {
            assert_eq!(queue.join(value), None);
        }
        while queue.leave().is_some() {}
        assert!(queue.waiting.lock("test").capacity() <= TURN_QUEUE_KEPT);
    }
}
