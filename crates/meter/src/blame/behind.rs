//! The times when a consumer was behind: handling a message, or with unread messages of the stream in its kernel.

use super::{Parts, Timeline};
use crate::sample::{Layer, NO_STAMP, Sample};

/// The times in which no other message of the same stream could have been received, whenever it was sent: messages are
/// received in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Behind {
    handling: Timeline,
    /// The times of handling, and those in which messages were unread.
    occupied: Timeline,
    /// When the consumer received messages, ascending.
    received_ns: Vec<i64>,
}

impl Behind {
    /// Computes the times from the samples of one destination.
    pub(super) fn new<'a>(samples: impl Iterator<Item = &'a Sample> + Clone) -> Self {
        let stamps = samples.clone().map(|sample| sample.received_ns);
        let mut received_ns: Vec<i64> = stamps.filter(|&ns| ns != NO_STAMP).collect();
        received_ns.sort_unstable();
        Self {
            handling: Timeline::new(handling(samples.clone())),
            occupied: Timeline::new(occupied(samples)),
            received_ns,
        }
    }

    /// Returns the times when the consumer was handling a message.
    pub(super) const fn handling(&self) -> &Timeline {
        &self.handling
    }

    /// Returns how much of an interval the consumer was behind. The interval ends when a message left that may have
    /// waited for room at the consumer. Only time before the consumer's last receive counts: that receive made room.
    pub(super) fn before_leaving(&self, from_ns: i64, left_ns: i64) -> Parts {
        let taken = self.received_ns.partition_point(|&ns| ns <= left_ns);
        let made_room_ns = taken
            .checked_sub(1)
            .map_or(from_ns, |last| self.received_ns[last]);
        self.within(from_ns, made_room_ns)
    }

    /// Returns how much of an interval the consumer was behind. Handling is charged to the application; other time is
    /// charged to the wake-up.
    pub(super) fn within(&self, from_ns: i64, to_ns: i64) -> Parts {
        let handling_ns = self.handling.within(from_ns, to_ns).sum();
        let occupied_ns = self.occupied.within(from_ns, to_ns).sum();
        let mut parts = Parts::default();
        parts.add(Layer::Application, handling_ns);
        parts.add(Layer::WakeUp, occupied_ns.saturating_sub(handling_ns));
        parts
    }
}

type Span = (i64, i64, Layer);

/// Returns the spans of handling. If only the last received message has no handled stamp, it is still being handled.
fn handling<'a>(samples: impl Iterator<Item = &'a Sample> + Clone) -> Vec<Span> {
    let received = samples.filter(|sample| sample.received_ns != NO_STAMP);
    let handled = received.clone().any(|sample| sample.handled_ns != NO_STAMP);
    let last_ns = last_received(received.clone());
    let span = |sample: &Sample| {
        let open = handled && sample.received_ns == last_ns && sample.handled_ns == NO_STAMP;
        let until_ns = if open { i64::MAX } else { sample.handled_ns };
        (until_ns != NO_STAMP).then_some((sample.received_ns, until_ns, Layer::Application))
    };
    received.filter_map(span).collect()
}

/// Returns the spans from the kernel's receive stamp until received. A message that arrived after the last received one
/// is still unread. A message that arrived before it and was not received was dropped.
fn occupied<'a>(samples: impl Iterator<Item = &'a Sample> + Clone) -> Vec<Span> {
    let last_ns = last_received(samples.clone());
    let unread = samples.clone().filter_map(|sample| {
        let from_ns = sample.kernel_receive_ns;
        let until_ns = if sample.received_ns != NO_STAMP {
            sample.received_ns
        } else if from_ns > last_ns {
            i64::MAX
        } else {
            return None;
        };
        (from_ns != NO_STAMP).then_some((from_ns, until_ns, Layer::WakeUp))
    });
    unread.chain(handling(samples.clone())).collect()
}

fn last_received<'a>(samples: impl Iterator<Item = &'a Sample>) -> i64 {
    samples
        .map(|sample| sample.received_ns)
        .max()
        .unwrap_or(NO_STAMP)
}
