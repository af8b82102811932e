//! The delivery to one consumer: a bounded queue and the thread that empties it.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use deckwatch_cdr::{Any, Parse as _, UserException as _, Write as _, Writer};
use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::{BoundedQueue, Popped};

use crate::cos_event_comm::{Disconnected, PushConsumerPushError, PushConsumerRef};
use crate::counters::Counters;
use crate::limits;

/// The queue of events for one consumer.
pub(crate) struct Outlet {
    queue: BoundedQueue<Any>,
    /// Octets of the queued events.
    held: AtomicUsize,
    /// The consumer has disconnected.
    left: AtomicBool,
}

/// Why an outlet's thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The queue is closed because the channel ends.
    Closed,
    /// The consumer disconnected.
    Left,
    /// The consumer is gone, or failed too often in a row.
    ConsumerGone,
}

impl Outlet {
    pub(crate) fn new(queue_len: usize) -> Self {
        Self {
            queue: BoundedQueue::with_capacity(queue_len),
            held: AtomicUsize::new(0),
            left: AtomicBool::new(false),
        }
    }

    /// Queues an event. If the queue is full, the oldest events are dropped: a late consumer needs the newest state.
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

    /// Closes the queue; the queued events are still pushed.
    pub(crate) fn close(&self) {
        self.queue.close();
    }

    /// Marks the consumer as disconnected; the queued events are not pushed any more.
    pub(crate) fn leave(&self) {
        self.left.store(true, Relaxed);
        self.queue.close();
    }

    /// Pushes events until the queue is closed or the consumer is gone.
    pub(crate) fn run(&self, consumer: &PushConsumerRef, counters: &Counters) -> Ended {
        let mut failures = 0;
        loop {
            let popped = self.queue.pop(None);
            if self.left.load(Relaxed) {
                return Ended::Left;
            }
            let Popped::Value(event) = popped else {
                return Ended::Closed;
            };
            self.held.fetch_sub(event.size(), Relaxed);
            match push(consumer, &event) {
                Ok(()) => {
                    counters.delivered.fetch_add(1, Relaxed);
                    failures = 0;
                }
                Err(Unpushed::Unwritten) => _ = counters.failed.fetch_add(1, Relaxed),
                Err(Unpushed::Refused(error)) => {
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

/// Why a push to a consumer failed.
enum Unpushed {
    /// The event cannot be encoded for this consumer, for example wide text for one without a wide code set. Nothing is
    /// sent, and the failure does not count against the consumer.
    Unwritten,
    /// The consumer or the connection to it has failed.
    Refused(PushConsumerPushError),
}

/// [`PushConsumerRef::push`], with a separate error for an event that cannot be encoded.
fn push(consumer: &PushConsumerRef, event: &Any) -> Result<(), Unpushed> {
    let is_unwritten = Cell::new(false);
    let write = |w: &mut Writer<'_>| {
        let written = event.write_last(w);
        is_unwritten.set(written.is_err());
        written
    };
    let pushed = consumer.object().invoke(
        "push",
        write,
        |_| Ok(()),
        |id, r| match id {
            Disconnected::REPOSITORY_ID => Ok(Some(Disconnected::parse(r)?.into())),
            _ => Ok(None),
        },
    );
    pushed.map_err(|error| {
        if is_unwritten.get() {
            Unpushed::Unwritten
        } else {
            Unpushed::Refused(error)
        }
    })
}

/// Returns true if a consumer that raises this error will never accept an event again.
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

#[cfg(test)]
mod tests {
    use super::*;
    use deckwatch_cdr::TypeCode;
    use deckwatch_cdr::value::Value;

    #[test]
    fn large_events_give_way_before_the_queue_is_full() {
        const EVENT: usize = 16 << 20;
        let (outlet, counters) = (Outlet::new(256), Counters::default());
        let event = Any::from_value(&vec![0_u8; EVENT]).unwrap();
        for _ in 0..10 {
            outlet.offer(&event, &counters);
        }
        let kept = limits::QUEUE_SIZE_MAX / event.size();
        assert_eq!(outlet.queue.len(), kept);
        assert_eq!(counters.read().displaced, 10 - kept as u64);
        assert_eq!(outlet.held.load(Relaxed), kept * event.size());
    }

    #[test]
    fn events_of_large_types_give_way_though_their_values_are_small() {
        const NAME: usize = 16 << 20;
        let (outlet, counters) = (Outlet::new(256), Counters::default());
        let long = TypeCode::alias("IDL:Long:1.0", &"x".repeat(NAME), &TypeCode::octet());
        let event = Any::from_dynamic(&long, &Value::Octet(7)).unwrap();
        for _ in 0..10 {
            outlet.offer(&event, &counters);
        }
        assert_eq!(outlet.queue.len(), limits::QUEUE_SIZE_MAX / event.size());
        assert!(outlet.queue.len() * NAME <= limits::QUEUE_SIZE_MAX);
    }
}
