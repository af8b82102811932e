//! The events that one consumer has not pulled yet.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use deckwatch_cdr::Any;
use deckwatch_orb::transport::Instant64;
use deckwatch_sync::{BoundedQueue, Popped};

use crate::counters::Counters;
use crate::limits;

/// A bounded queue that a consumer empties by `pull` and `try_pull`.
pub(crate) struct PullQueue {
    queue: BoundedQueue<Any>,
    /// Octets of the queued events.
    held: AtomicUsize,
    /// Time of the last call of the consumer, in nanoseconds of the transport's clock.
    called_ns: AtomicU64,
}

impl PullQueue {
    pub(crate) fn new(queue_len: usize, now: Instant64) -> Self {
        Self {
            queue: BoundedQueue::with_capacity(queue_len),
            held: AtomicUsize::new(0),
            called_ns: AtomicU64::new(now.0),
        }
    }

    /// Queues an event. A full queue drops its oldest events, as the queue of a push consumer does.
    pub(crate) fn offer(&self, event: &Any, counters: &Counters) {
        let size = event.size();
        while self.held.load(Relaxed).saturating_add(size) > limits::QUEUE_SIZE_MAX {
            let Some(oldest) = self.queue.try_pop() else {
                break;
            };
            self.displace(&oldest, counters);
        }
        self.held.fetch_add(size, Relaxed);
        match self.queue.push_displacing(event.clone()) {
            Ok(None) => {}
            Ok(Some(oldest)) => self.displace(&oldest, counters),
            Err(_closed) => _ = self.held.fetch_sub(size, Relaxed),
        }
    }

    fn displace(&self, oldest: &Any, counters: &Counters) {
        self.held.fetch_sub(oldest.size(), Relaxed);
        counters.displaced.fetch_add(1, Relaxed);
    }

    /// Takes the oldest event, if there is one.
    pub(crate) fn try_take(&self) -> Option<Any> {
        self.queue.try_pop().inspect(|event| self.release(event))
    }

    /// Takes the oldest event. Waits for one until `deadline`, or until the queue is closed.
    pub(crate) fn take_until(&self, deadline: Instant64) -> Popped<Any> {
        let popped = self.queue.pop(Some(deadline.0));
        if let Popped::Value(event) = &popped {
            self.release(event);
        }
        popped
    }

    fn release(&self, event: &Any) {
        self.held.fetch_sub(event.size(), Relaxed);
    }

    /// Ends the pulls that wait.
    pub(crate) fn close(&self) {
        self.queue.close();
    }

    /// Records that the consumer has called.
    pub(crate) fn note_call(&self, now: Instant64) {
        self.called_ns.store(now.0, Relaxed);
    }

    pub(crate) fn last_call(&self) -> Instant64 {
        Instant64(self.called_ns.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_a_consumer_that_does_not_pull_are_bounded_by_their_octets() {
        const EVENT: usize = 16 << 20;
        let (queue, counters) = (PullQueue::new(256, Instant64(0)), Counters::default());
        let event = Any::from_value(&vec![0_u8; EVENT]).unwrap();
        for _ in 0..10 {
            queue.offer(&event, &counters);
        }
        let kept = limits::QUEUE_SIZE_MAX / event.size();
        assert_eq!(queue.queue.len(), kept);
        assert_eq!(counters.displaced.load(Relaxed), 10 - kept as u64);
        while queue.try_take().is_some() {}
        assert_eq!(queue.held.load(Relaxed), 0, "octets stay counted");
    }
}
