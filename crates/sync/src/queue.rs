//! A bounded queue between threads: a push never blocks and returns an error if the queue is full.

use std::collections::VecDeque;

use crate::pi_mutex::{PiMutex, PiMutexGuard, sleep_while, wake};
use crate::primitive::{AtomicU32, AtomicUsize, Ordering};

/// First in, first out, at most `capacity` values; all memory is allocated at creation.
#[derive(Debug)]
pub struct BoundedQueue<T> {
    ring: PiMutex<Ring<T>>,
    /// Incremented by every push and by the close: the futex word that a waiting consumer sleeps on.
    turn: AtomicU32,
    waiting: AtomicUsize,
}

#[derive(Debug)]
struct Ring<T> {
    values: VecDeque<T>,
    capacity: usize,
    closed: bool,
}

/// Result of a pop.
#[derive(Debug, PartialEq, Eq)]
pub enum Popped<T> {
    /// The oldest value.
    Value(T),
    /// The deadline has passed.
    TimedOut,
    /// The queue is closed and empty.
    Closed,
}

/// Why a push failed, with the value.
#[derive(Debug, PartialEq, Eq)]
pub enum PushError<T> {
    /// The queue is full.
    Full(T),
    /// The queue is closed.
    Closed(T),
}

impl<T> BoundedQueue<T> {
    /// An empty queue for at most `capacity` values.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let ring = Ring {
            values: VecDeque::with_capacity(capacity),
            capacity,
            closed: false,
        };
        Self {
            ring: PiMutex::new(ring),
            turn: AtomicU32::new(0),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Appends `value`. Never waits for room.
    ///
    /// # Errors
    /// [`PushError`] with the value when the queue is full or closed.
    pub fn push(&self, value: T) -> Result<(), PushError<T>> {
        let mut ring = self.ring.lock("queue.push");
        if ring.closed {
            return Err(PushError::Closed(value));
        }
        if ring.values.len() == ring.capacity {
            return Err(PushError::Full(value));
        }
        ring.values.push_back(value);
        self.move_on(ring, 1);
        Ok(())
    }

    /// Appends `value`. A full queue drops its oldest value first and returns it.
    ///
    /// # Errors
    /// [`PushError::Closed`] with the value when the queue is closed.
    pub fn push_displacing(&self, value: T) -> Result<Option<T>, PushError<T>> {
        let mut ring = self.ring.lock("queue.push");
        if ring.closed {
            return Err(PushError::Closed(value));
        }
        let displaced = if ring.values.len() == ring.capacity {
            ring.values.pop_front()
        } else {
            None
        };
        if ring.values.len() < ring.capacity {
            ring.values.push_back(value);
        }
        self.move_on(ring, 1);
        Ok(displaced)
    }

    /// Takes the oldest value out; waits for one until `deadline_ns` (CLOCK_MONOTONIC), without limit if that is
    /// `None`.
    pub fn pop(&self, deadline_ns: Option<u64>) -> Popped<T> {
        loop {
            let mut ring = self.ring.lock("queue.pop");
            if let Some(value) = ring.values.pop_front() {
                return Popped::Value(value);
            }
            if ring.closed {
                return Popped::Closed;
            }
            let seen = self.turn.load(Ordering::Relaxed);
            self.waiting.fetch_add(1, Ordering::Relaxed);
            drop(ring);
            let in_time = sleep_while(&self.turn, seen, deadline_ns);
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            if !in_time {
                return self.try_pop().map_or(Popped::TimedOut, Popped::Value);
            }
        }
    }

    /// Takes the oldest value out if there is one.
    pub fn try_pop(&self) -> Option<T> {
        self.ring.lock("queue.pop").values.pop_front()
    }

    /// Refuses further values. Consumers get the remaining values and then [`Popped::Closed`].
    pub fn close(&self) {
        let mut ring = self.ring.lock("queue.close");
        ring.closed = true;
        self.move_on(ring, u32::MAX >> 1);
    }

    /// Number of values now.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ring.lock("queue.len").values.len()
    }

    /// Whether it is empty now.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its capacity.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.ring.lock("queue.capacity").capacity
    }

    /// Both counters change under the lock, so a consumer that found nothing is either counted or sees the new turn.
    fn move_on(&self, ring: PiMutexGuard<'_, Ring<T>>, sleepers: u32) {
        self.turn.fetch_add(1, Ordering::Relaxed);
        let anybody = self.waiting.load(Ordering::Relaxed) != 0;
        drop(ring);
        if anybody {
            wake(&self.turn, sleepers);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn values_come_out_in_the_order_they_went_in_and_a_full_queue_gives_the_value_back() {
        let queue = BoundedQueue::with_capacity(2);
        queue.push(1).unwrap();
        queue.push(2).unwrap();
        assert_eq!(queue.push(3), Err(PushError::Full(3)));
        assert_eq!(queue.push_displacing(4), Ok(Some(1)));
        assert_eq!(
            (queue.try_pop(), queue.try_pop(), queue.try_pop()),
            (Some(2), Some(4), None)
        );
    }

    #[test]
    fn a_queue_without_room_displaces_nothing_into_itself() {
        let queue = BoundedQueue::with_capacity(0);
        assert_eq!(queue.push(1), Err(PushError::Full(1)));
        assert_eq!(queue.push_displacing(1), Ok(None));
        assert!(queue.is_empty());
    }

    #[test]
    fn a_pop_ends_at_its_deadline() {
        let queue = BoundedQueue::<u8>::with_capacity(2);
        let deadline_ns = deckwatch_os::stream::monotonic_ns() + 2_000_000;
        assert_eq!(queue.pop(Some(deadline_ns)), Popped::TimedOut);
        assert!(deckwatch_os::stream::monotonic_ns() >= deadline_ns);
    }

    #[test]
    fn a_closed_queue_gives_what_is_left_and_wakes_all_who_wait() {
        let queue = Arc::new(BoundedQueue::with_capacity(4));
        let consumers: Vec<_> = (0..2)
            .map(|_| {
                let queue = Arc::clone(&queue);
                std::thread::spawn(move || {
                    std::iter::from_fn(|| match queue.pop(None) {
                        Popped::Value(value) => Some(value),
                        Popped::TimedOut | Popped::Closed => None,
                    })
                    .sum::<u64>()
                })
            })
            .collect();
        let mut pushed = 0;
        for value in 1..=20_000_u64 {
            let mut value = value;
            while let Err(PushError::Full(back)) = queue.push(value) {
                value = back;
                std::thread::yield_now();
            }
            pushed += value;
        }
        queue.close();
        assert_eq!(queue.push(1), Err(PushError::Closed(1)));
        let popped: u64 = consumers
            .into_iter()
            .map(|consumer| consumer.join().unwrap())
            .sum();
        assert_eq!(popped, pushed);
    }
}
