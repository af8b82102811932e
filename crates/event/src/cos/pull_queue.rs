//! The events that one consumer has not pulled yet.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use deckwatch_cdr::Any;
use deckwatch_orb::delivery::WhenFull;
use deckwatch_orb::transport::Instant64;
use deckwatch_sync::{BoundedQueue, Popped};

use crate::counters::Counters;
use crate::kept::Kept;
use crate::shared::ChannelOptions;

/// A bounded queue that a consumer empties by `pull` and `try_pull`.
pub(crate) struct PullQueue<E = Any> {
    queue: BoundedQueue<Arc<Kept<E>>>,
    /// Octets of the queued events.
    size: AtomicUsize,
    drops_newest: bool,
}

impl<E: Clone> PullQueue<E> {
    /// A queue with the length and the policy of the channel. A consumer that pulls is not disconnected by the policy.
    pub(crate) fn new(options: &ChannelOptions) -> Self {
        Self {
            queue: BoundedQueue::with_capacity(options.queue_len),
            size: AtomicUsize::new(0),
            drops_newest: options.when_full == WhenFull::DropNewest,
        }
    }

    /// Queues an event. A full queue drops its oldest event or this one, by the policy.
    pub(crate) fn offer(&self, event: &Arc<Kept<E>>, counters: &Counters) {
        if self.drops_newest && self.queue.len() >= self.queue.capacity() {
            counters.displaced.fetch_add(1, Relaxed);
            return;
        }
        self.size.fetch_add(event.size(), Relaxed);
        match self.queue.push_displacing(Arc::clone(event)) {
            Ok(None) => {}
            Ok(Some(oldest)) => self.displace(&oldest, counters),
            Err(_closed) => self.release(event),
        }
    }

    /// Drops the oldest event. Returns false if there is none.
    pub(crate) fn drop_oldest(&self, counters: &Counters) -> bool {
        let oldest = self.queue.try_pop();
        oldest.is_some_and(|oldest| {
            self.displace(&oldest, counters);
            true
        })
    }

    /// Octets of the queued events.
    pub(crate) fn size(&self) -> usize {
        self.size.load(Relaxed)
    }

    fn displace(&self, oldest: &Kept<E>, counters: &Counters) {
        self.release(oldest);
        counters.displaced.fetch_add(1, Relaxed);
    }

    /// Takes the oldest event, if there is one.
    pub(crate) fn try_take(&self) -> Option<E> {
        let taken = self.queue.try_pop()?;
        self.release(&taken);
        Some(taken.event.clone())
    }

    /// Takes the oldest event. Waits for one until `deadline`, or until the queue is closed.
    pub(crate) fn take_until(&self, deadline: Instant64) -> Popped<E> {
        match self.queue.pop(Some(deadline.0)) {
            Popped::Value(taken) => {
                self.release(&taken);
                Popped::Value(taken.event.clone())
            }
            Popped::TimedOut => Popped::TimedOut,
            Popped::Closed => Popped::Closed,
        }
    }

    fn release(&self, event: &Kept<E>) {
        self.size.fetch_sub(event.size(), Relaxed);
    }

    /// Ends the pulls that wait.
    pub(crate) fn close(&self) {
        self.queue.close();
    }
}

#[cfg(test)]
mod tests {
    use deckwatch_orb::Orb;
    use deckwatch_orb::delivery::{Deliveries, DeliveryOptions};

    use super::*;
    use crate::kept::Share;

    /// A queue with one event more than it holds: their numbers, from 0, and what they are counted by.
    fn overfull(when_full: WhenFull) -> (PullQueue<usize>, usize, Counters) {
        let orb = Orb::builder().build().unwrap();
        let deliveries = Deliveries::start(&orb, DeliveryOptions::default()).unwrap();
        let share = Share::of(1 << 20);
        let queue = PullQueue::new(&ChannelOptions {
            queue_len: 4,
            when_full,
            ..ChannelOptions::default()
        });
        let counters = Counters::default();
        let mut size = 0;
        for number in 0..=queue.queue.capacity() {
            let event = Kept::new(number, 10, &share, &deliveries).unwrap();
            size = event.size();
            queue.offer(&event, &counters);
        }
        (queue, size, counters)
    }

    #[test]
    fn a_full_queue_drops_the_oldest_event_or_the_newest() {
        for (when_full, first) in [(WhenFull::DropOldest, 1), (WhenFull::DropNewest, 0)] {
            let (queue, size, counters) = overfull(when_full);
            let count = queue.queue.capacity();
            assert_eq!(counters.displaced.load(Relaxed), 1);
            assert_eq!(queue.size(), count * size);
            let taken: Vec<usize> = std::iter::from_fn(|| queue.try_take()).collect();
            let expected: Vec<usize> = (first..first + count).collect();
            assert_eq!(taken, expected);
            assert_eq!(queue.size(), 0);
        }
    }

    #[test]
    fn the_oldest_event_is_dropped_to_make_room_for_others() {
        let (queue, size, counters) = overfull(WhenFull::DropOldest);
        let count = queue.queue.capacity();
        assert!(queue.drop_oldest(&counters));
        assert_eq!(queue.size(), (count - 1) * size);
        assert_eq!(queue.try_take(), Some(2));
        while queue.drop_oldest(&counters) {}
        assert_eq!(queue.size(), 0);
        assert_eq!(counters.displaced.load(Relaxed), count as u64);
    }

    #[test]
    fn a_pull_takes_an_event_or_ends_at_its_deadline_or_with_the_queue() {
        let (queue, size, counters) = overfull(WhenFull::DropOldest);
        let past = Instant64(0);
        assert_eq!(queue.take_until(past), Popped::Value(1));
        assert_eq!(queue.size(), (queue.queue.capacity() - 1) * size);
        while queue.drop_oldest(&counters) {}
        assert_eq!(queue.take_until(past), Popped::TimedOut);
        queue.close();
        assert_eq!(queue.take_until(Instant64(u64::MAX)), Popped::Closed);
    }
}
