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
