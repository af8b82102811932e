//! The times when messages of a stream could not leave the supplier's kernel: the consumer was behind, handling a message
//! or with unread messages in its kernel, or earlier messages were still on their way through the network.

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
    /// The times in which messages were between the kernel stamps of the two ends.
    in_flight: Timeline,
    /// The times in which a message waited in the supplier's kernel, or for room there, while an earlier one was in
    /// flight.
    waiting: Timeline,
}

impl Behind {
    /// Computes the times from the samples of one destination.
    pub(super) fn new<'a>(samples: impl Iterator<Item = &'a Sample> + Clone) -> Self {
        let stamps = samples.clone().map(|sample| sample.received_ns);
        let mut received_ns: Vec<i64> = stamps.filter(|&ns| ns != NO_STAMP).collect();
        received_ns.sort_unstable();
        let in_flight = Timeline::new(in_flight(samples.clone()));
        let waiting = Timeline::new(held_back(samples.clone())).common(&in_flight);
        Self {
            in_flight,
            waiting,
            handling: Timeline::new(handling(samples.clone())),
            occupied: Timeline::new(occupied(samples)),
            received_ns,
        }
    }

    /// Returns the times when the consumer was handling a message.
    pub(super) const fn handling(&self) -> &Timeline {
        &self.handling
    }

    /// Returns what kept a message from leaving in an interval that ends when it left:
    ///
    /// * The consumer was behind. Only time before the consumer's last receive counts: that receive made room.
    /// * The connection had messages that waited behind messages in flight: for acknowledgements, for room in the queue
    ///   of the interface, or for room in the send buffer. A saturated link does that, and this time belongs to the
    ///   network.
    pub(super) fn before_leaving(&self, from_ns: i64, left_ns: i64) -> Parts {
        let taken = self.received_ns.partition_point(|&ns| ns <= left_ns);
        let made_room_ns = taken
            .checked_sub(1)
            .map_or(from_ns, |last| self.received_ns[last]);
        let mut parts = self.occupied_within(from_ns, made_room_ns);
        let rest_ns = left_ns.saturating_sub(from_ns).saturating_sub(parts.sum());
        let waiting_ns = self.waiting.within(from_ns, left_ns).sum();
        parts.add(Layer::Network, waiting_ns.min(rest_ns).max(0));
        parts
    }

    /// Returns what may have kept a message from leaving that never left, in an interval after it was accepted.
    pub(super) fn without_leaving(&self, from_ns: i64, to_ns: i64) -> Parts {
        let mut parts = self.occupied_within(from_ns, to_ns);
        let rest_ns = to_ns.saturating_sub(from_ns).saturating_sub(parts.sum());
        let in_flight_ns = self.in_flight.within(from_ns, to_ns).sum();
        parts.add(Layer::Network, in_flight_ns.min(rest_ns).max(0));
        parts
    }

    /// Returns how much of an interval the consumer was behind. Handling is charged to the application; other time is
    /// charged to the wake-up.
    fn occupied_within(&self, from_ns: i64, to_ns: i64) -> Parts {
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

/// Returns the spans from the transmit stamp to the receive stamp.
fn in_flight<'a>(samples: impl Iterator<Item = &'a Sample>) -> Vec<Span> {
    let both = samples.filter(|sample| {
        sample.kernel_transmit_ns != NO_STAMP && sample.kernel_receive_ns != NO_STAMP
    });
    both.map(|sample| {
        (
            sample.kernel_transmit_ns,
            sample.kernel_receive_ns,
            Layer::Network,
        )
    })
    .collect()
}

/// Returns the spans in which the supplier's kernel held messages back, up to the transmit stamp: from the return of the
/// call, if it returned before the message left, and from its beginning if it waited for room.
fn held_back<'a>(samples: impl Iterator<Item = &'a Sample>) -> Vec<Span> {
    let span = |sample: &Sample| {
        let from_ns = if sample.flags.waited_for_room {
            sample.sent_ns
        } else {
            sample.returned_ns
        };
        let was_held = from_ns != NO_STAMP && sample.kernel_transmit_ns > from_ns;
        was_held.then_some((from_ns, sample.kernel_transmit_ns, Layer::Network))
    };
    samples.filter_map(span).collect()
}

fn last_received<'a>(samples: impl Iterator<Item = &'a Sample>) -> i64 {
    samples
        .map(|sample| sample.received_ns)
        .max()
        .unwrap_or(NO_STAMP)
}
