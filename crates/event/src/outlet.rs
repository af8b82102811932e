//! The way out to one consumer: a bounded queue and the thread that empties it.

use std::sync::atomic::Ordering::Relaxed;

use deckwatch_cdr::Any;
use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::{BoundedQueue, Popped};

use crate::cos_event_comm::{PushConsumerPushError, PushConsumerRef};
use crate::counters::Counters;
use crate::limits;

/// Events on their way to one consumer.
pub(crate) struct Outlet {
    queue: BoundedQueue<Any>,
}

/// Why an outlet's thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The queue was closed: the consumer disconnected, or the channel ends.
    Closed,
    /// The consumer is gone, or failed too often in a row.
    ConsumerGone,
}

impl Outlet {
    pub(crate) fn new(queue_len: usize) -> Self {
        Self {
            queue: BoundedQueue::with_capacity(queue_len),
        }
    }

    /// Puts an event behind the others; the oldest gives way where the queue is full, since the newest state is what a late consumer needs.
    pub(crate) fn offer(&self, event: &Any, counters: &Counters) {
        match self.queue.push_displacing(event.clone()) {
            Ok(None) => {}
            Ok(Some(_oldest)) => _ = counters.displaced.fetch_add(1, Relaxed),
            Err(_closed) => {}
        }
    }

    pub(crate) fn close(&self) {
        self.queue.close();
    }

    /// Pushes what comes until the queue is closed or the consumer is gone.
    pub(crate) fn run(&self, consumer: &PushConsumerRef, counters: &Counters) -> Ended {
        let mut failures = 0;
        loop {
            let Popped::Value(event) = self.queue.pop(None) else {
                return Ended::Closed;
            };
            match consumer.push(&event) {
                Ok(()) => {
                    counters.delivered.fetch_add(1, Relaxed);
                    failures = 0;
                }
                Err(error) => {
                    counters.failed.fetch_add(1, Relaxed);
                    failures += 1;
                    if is_final(&error) || failures == limits::FAILURES_MAX {
                        return Ended::ConsumerGone;
                    }
                }
            }
        }
    }
}

/// Whether a consumer that answers so will never take an event again.
fn is_final(error: &PushConsumerPushError) -> bool {
    match error {
        PushConsumerPushError::Disconnected(_) => true,
        PushConsumerPushError::System(SystemException { kind, .. }) => {
            matches!(
                kind,
                Kind::ObjectNotExist | Kind::InvObjref | Kind::BadOperation
            )
        }
    }
}
