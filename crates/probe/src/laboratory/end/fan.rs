//! Events to many consumers: what a run asks for, and the count of receipts.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

use deckwatch_os::clock::monotonic_ns;

use super::commands::{Command, Samples};
use crate::limits::END_PATIENCE;

/// The consumers of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fan {
    pub(super) consumers: u32,
    /// Each consumer has an endpoint and a thread of its own.
    pub(super) are_apart: bool,
    /// They are those of a real-time channel.
    pub(super) is_real_time: bool,
}

/// What a run does with the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Traffic {
    /// Each is sent once all consumers have received the one before.
    OneByOne,
    /// Without pause, with at most [`WINDOW`] events that not all consumers have received.
    Stream,
}

impl Fan {
    /// Reads `KIND/CONSUMERS/SHAPE`. KIND is `push` or `push-stream`, with `rt-` before it for a real-time channel.
    /// SHAPE is `together` or `apart`. Returns what follows it too.
    pub(super) fn of(command: &Command) -> Result<(Self, Traffic, Vec<&str>), String> {
        let mut words = command.kind.split('/');
        let unknown = || command.unknown();
        let kind = words.next();
        let plain = kind.and_then(|kind| kind.strip_prefix("rt-"));
        let traffic = match plain.or(kind) {
            Some("push") => Traffic::OneByOne,
            Some("push-stream") => Traffic::Stream,
            _ => return Err(unknown()),
        };
        let consumers = words.next().and_then(|count| count.parse().ok());
        let consumers = consumers.filter(|count| (1..=CONSUMERS_MAX).contains(count));
        let consumers = consumers.ok_or_else(unknown)?;
        let are_apart = match words.next() {
            Some("together") => false,
            Some("apart") => true,
            _ => return Err(unknown()),
        };
        let fan = Self {
            consumers,
            are_apart,
            is_real_time: plain.is_some(),
        };
        Ok((fan, traffic, words.collect()))
    }
}

/// Consumers of one run: each that is apart takes a thread.
pub(super) const CONSUMERS_MAX: u32 = 1_000;

/// Events of a stream that not all consumers have received: fewer than the queue of a consumer in any channel.
const WINDOW: u64 = 64;

/// Counts the receipts of all consumers, and wakes the supplier once all have received an event.
pub(super) struct Gate {
    consumers: u32,
    /// Receipts of the events under way, by event modulo [`WINDOW`].
    receipts: [AtomicU32; WINDOW as usize],
    /// Events that all consumers have received. They become so in their order.
    whole: AtomicU64,
    /// When the last consumer received the last of them: CLOCK_MONOTONIC.
    last_ns: AtomicI64,
    /// Consumers that the channel has called back after they left it.
    left: AtomicU32,
    /// The thread that supplies.
    supplier: Thread,
}

impl Gate {
    /// A gate whose supplier is the calling thread.
    pub(super) fn new(consumers: u32) -> Arc<Self> {
        Arc::new(Self {
            consumers,
            receipts: std::array::from_fn(|_| AtomicU32::new(0)),
            whole: AtomicU64::new(0),
            last_ns: AtomicI64::new(0),
            left: AtomicU32::new(0),
            supplier: std::thread::current(),
        })
    }

    /// Notes that a consumer has received its event of this number, counted from 0.
    pub(super) fn receive(&self, number: u64) {
        let receipts = &self.receipts[(number % WINDOW) as usize];
        // SYNC: pairs with the same addition of the other consumers; the last of them resets the place.
        if receipts.fetch_add(1, Ordering::AcqRel) + 1 < self.consumers {
            return;
        }
        self.last_ns.store(monotonic_ns(), Ordering::Relaxed);
        receipts.store(0, Ordering::Relaxed);
        // SYNC: pairs with `await_whole`.
        self.whole.fetch_add(1, Ordering::Release);
        self.supplier.unpark();
    }

    /// Waits until all consumers have received `count` events.
    fn await_whole(&self, count: u64) -> Result<(), String> {
        let mut until = None;
        // SYNC: pairs with `receive`.
        while self.whole.load(Ordering::Acquire) < count {
            let until = *until.get_or_insert_with(|| Instant::now() + PATIENCE);
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(format!(
                    "event {count} has not reached all {} consumers within {PATIENCE:?}",
                    self.consumers
                ));
            }
            std::thread::park_timeout(left);
        }
        Ok(())
    }

    /// Notes that the channel has called back a consumer that has left it.
    pub(super) fn leave(&self) {
        // SYNC: pairs with `await_left`.
        self.left.fetch_add(1, Ordering::Release);
        self.supplier.unpark();
    }

    /// Waits until the channel has called back all consumers: else it would do so in the next run, and be counted there.
    pub(super) fn await_left(&self) {
        let until = Instant::now() + CALLED_BACK_WITHIN;
        // SYNC: pairs with `leave`.
        while self.left.load(Ordering::Acquire) < self.consumers {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::park_timeout(left);
        }
    }

    /// Sends events with `push`, one by one or as a stream. The time of an event is from the beginning of its push, or
    /// from when that was due if an event before it has delayed it, to its last receipt.
    pub(super) fn supply(
        &self,
        traffic: Traffic,
        samples: &mut Samples,
        mut push: impl FnMut() -> Result<(), String>,
    ) -> Result<(), String> {
        let mut pushed = 0;
        match traffic {
            Traffic::OneByOne => samples.take_ended(|| {
                push()?;
                pushed += 1;
                self.await_whole(pushed)?;
                Ok(self.last_ns.load(Ordering::Relaxed))
            }),
            Traffic::Stream => {
                let send = || {
                    self.await_whole((pushed + 1_u64).saturating_sub(WINDOW))?;
                    push()?;
                    pushed += 1;
                    Ok(())
                };
                samples.stream(send, |count| self.await_whole(count))
            }
        }
    }
}

/// The longest wait for a receipt: an event that a channel has dropped never arrives. It is below the time that the
/// bench waits for this end.
const PATIENCE: Duration = Duration::from_secs(10);
const _: () = assert!(PATIENCE.as_secs() < END_PATIENCE.as_secs());

/// How long a channel may take to call back the consumers that have left it. It gives up a call after 1 s.
const CALLED_BACK_WITHIN: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_run_waits_for_the_call_of_each_consumer_that_left() {
        let gate = Gate::new(2);
        let calls = {
            let gate = Arc::clone(&gate);
            std::thread::spawn(move || {
                gate.leave();
                std::thread::sleep(Duration::from_millis(20));
                gate.leave();
            })
        };
        gate.await_left();
        assert_eq!(gate.left.load(Ordering::Acquire), 2);
        calls.join().expect("it ends");
    }

    #[test]
    fn an_event_is_whole_once_every_consumer_has_received_it() {
        let gate = Gate::new(3);
        for number in 0..2 * WINDOW {
            for consumer in 0..3 {
                assert_eq!(gate.whole.load(Ordering::Acquire), number, "{consumer}");
                gate.receive(number);
            }
            gate.await_whole(number + 1).expect("received");
        }
    }

    #[test]
    fn consumers_that_are_ahead_of_the_others_make_no_event_whole() {
        let gate = Gate::new(2);
        (0..WINDOW).for_each(|number| gate.receive(number));
        assert_eq!(gate.whole.load(Ordering::Acquire), 0);
        (0..WINDOW).for_each(|number| gate.receive(number));
        assert_eq!(gate.whole.load(Ordering::Acquire), WINDOW);
    }
}
