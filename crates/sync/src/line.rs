//! A line before what is done by one at a time: who finds nobody there goes in at once, others wait in the order in which they came.
//!
//! While nobody waits, to go in and to leave take no lock. Those who wait take memory as they come: who lets them bounds them.

use std::collections::VecDeque;

use crate::PiMutex;
use crate::limits::LINE_KEPT;
use crate::primitive::{AtomicUsize, Ordering};

/// At most one is in; what the others are is kept for who leaves.
#[derive(Debug)]
pub struct Line<T> {
    /// Who is in and all who wait. Only who is in makes it 0, and nobody waits then.
    count: AtomicUsize,
    waiting: PiMutex<VecDeque<T>>,
}

impl<T> Line<T> {
    /// A line without anybody.
    #[must_use]
    pub fn new() -> Self {
        Self {
            count: AtomicUsize::new(0),
            waiting: PiMutex::new(VecDeque::new()),
        }
    }

    /// Who is in and all who wait; 0: the next one goes in.
    #[inline]
    #[must_use]
    pub fn count(&self) -> usize {
        // SYNC: pairs with the exchange in `leave`: who finds nobody sees what was done before.
        self.count.load(Ordering::SeqCst)
    }

    /// Goes in if nobody is in.
    #[inline]
    #[must_use]
    pub fn enter(&self) -> bool {
        // SYNC: pairs with the exchange in `leave`.
        self.count
            .compare_exchange(0, 1, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
    }

    /// Waits behind the others. The value comes back where nobody is in: the caller is, from here on.
    #[must_use]
    pub fn join(&self, value: T) -> Option<T> {
        let mut waiting = self.waiting.lock("line.join");
        // SYNC: pairs with the exchange in `leave`: who is in sees that one waits, or we see that he has left.
        if self.count.fetch_add(1, Ordering::SeqCst) == 0 {
            return Some(value);
        }
        waiting.push_back(value);
        None
    }

    /// Who is in leaves. The first of those who wait is in from here on.
    #[inline]
    #[must_use]
    pub fn leave(&self) -> Option<T> {
        // SYNC: the release pairs with the acquire of who goes in next.
        while self
            .count
            .compare_exchange(1, 0, Ordering::SeqCst, Ordering::Relaxed)
            .is_err()
        {
            // Another may have taken out the last who waited.
            if let Some(first) = self.take_first() {
                return Some(first);
            }
        }
        None
    }

    /// Takes the first of those who wait out of the line; who is in stays.
    #[must_use]
    pub fn take_first(&self) -> Option<T> {
        let mut waiting = self.waiting.lock("line.take");
        let first = waiting.pop_front()?;
        if waiting.is_empty() && waiting.capacity() > LINE_KEPT {
            *waiting = VecDeque::new();
        }
        self.count.fetch_sub(1, Ordering::SeqCst);
        Some(first)
    }
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_first_goes_in_and_the_others_follow_in_their_order() {
        let line = Line::new();
        assert!(line.enter());
        assert!(!line.enter());
        assert_eq!(line.join(1), None);
        assert_eq!(line.join(2), None);
        assert_eq!(line.count(), 3);
        assert_eq!(line.leave(), Some(1));
        assert!(!line.enter());
        assert_eq!(line.join(3), None);
        assert_eq!(line.take_first(), Some(2));
        assert_eq!(line.leave(), Some(3));
        assert_eq!(line.leave(), None);
        assert_eq!(line.count(), 0);
        assert_eq!(line.join(4), Some(4));
        assert!(!line.enter());
        assert_eq!(line.leave(), None);
    }

    #[test]
    fn memory_of_many_who_waited_is_given_back() {
        let line = Line::new();
        assert!(line.enter());
        for value in 0..1_000 {
            assert_eq!(line.join(value), None);
        }
        while line.leave().is_some() {}
        assert!(line.waiting.lock("test").capacity() <= LINE_KEPT);
    }
}
