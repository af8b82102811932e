//! The events that one consumer has not pulled yet.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use deckwatch_cdr::Any;
use deckwatch_orb::delivery::WhenFull;
use deckwatch_orb::transport::Instant64;
use deckwatch_sync::{BoundedQueue, Popped};

use crate::counters::Counters;
use crate::limits;
use crate::shared::ChannelOptions;

/// An event that waits to be pulled. A clone shares its octets.
pub(crate) trait Queued: Clone {
    /// Its octets.
    fn size(&self) -> usize;
}

impl Queued for Any {
    fn size(&self) -> usize {
        Self::size(self)
    }
}

/// A bounded queue that a consumer empties by `pull` and `try_pull`.
pub(crate) struct PullQueue<E = Any> {
    queue: BoundedQueue<E>,
    /// Octets of the queued events.
    held: AtomicUsize,
    drops_newest: bool,
}

impl<E: Queued> PullQueue<E> {
    /// A queue with the length and the policy of the channel. A consumer that pulls is not disconnected by the policy.
    pub(crate) fn new(options: &ChannelOptions) -> Self {
        Self {
            queue: BoundedQueue::with_capacity(options.queue_len),
            held: AtomicUsize::new(0),
            drops_newest: options.when_full == WhenFull::DropNewest,
        }
    }

    /// Queues an event. A full queue drops its oldest events or this one, by the policy.
    pub(crate) fn offer(&self, event: &E, counters: &Counters) {
        let size = event.size();
        let is_full = || {
            self.queue.len() >= self.queue.capacity()
                || self.held.load(Relaxed).saturating_add(size) > limits::QUEUE_SIZE_MAX
        };
        if self.drops_newest && is_full() {
            counters.displaced.fetch_add(1, Relaxed);
            return;
        }
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

    fn displace(&self, oldest: &E, counters: &Counters) {
        self.held.fetch_sub(oldest.size(), Relaxed);
        counters.displaced.fetch_add(1, Relaxed);
    }

    /// Takes the oldest event, if there is one.
    pub(crate) fn try_take(&self) -> Option<E> {
        self.queue.try_pop().inspect(|event| self.release(event))
    }

    /// Takes the oldest event. Waits for one until `deadline`, or until the queue is closed.
    pub(crate) fn take_until(&self, deadline: Instant64) -> Popped<E> {
        let popped = self.queue.pop(Some(deadline.0));
        if let Popped::Value(event) = &popped {
            self.release(event);
        }
        popped
    }

    fn release(&self, event: &E) {
        self.held.fetch_sub(event.size(), Relaxed);
    }

    /// Ends the pulls that wait.
    pub(crate) fn close(&self) {
        self.queue.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_a_consumer_that_does_not_pull_are_bounded_by_their_octets() {
        const EVENT: usize = 16 << 20;
        let (queue, counters) = (
            PullQueue::new(&ChannelOptions::default()),
            Counters::default(),
        );
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

    #[test]
    fn a_queue_that_drops_the_newest_keeps_the_first() {
        let options = ChannelOptions {
            queue_len: 2,
            when_full: WhenFull::DropNewest,
            ..ChannelOptions::default()
        };
        let (queue, counters) = (PullQueue::new(&options), Counters::default());
        for value in 0..5_u32 {
            queue.offer(&Any::from_value(&value).unwrap(), &counters);
        }
        let kept: Vec<_> = std::iter::from_fn(|| queue.try_take())
            .map(|event| event.extract::<u32>().unwrap())
            .collect();
        assert_eq!(kept, [0, 1]);
        assert_eq!(counters.displaced.load(Relaxed), 3);
    }
}
