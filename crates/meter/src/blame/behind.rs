//! The times when messages of a stream could not leave the supplier's kernel: the consumer was behind, handling a message
//! or with unread messages in its kernel, or the connection waited for the network.

use super::unanswered::unanswered;
use super::{Parts, Road, Seen, Timeline};
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
    /// When the last message left, or [`NO_STAMP`].
    last_left_ns: i64,
    /// The times in which a message waited in the supplier's kernel, or behind a call without its reply.
    waiting: Held,
    /// These times, and those in which messages were between the kernel stamps of the two ends.
    held_up: Held,
}

/// Times in which nothing could leave, whatever the consumer did.
#[derive(Clone, Debug, Default)]
struct Held {
    all: Timeline,
    /// Those in which the consumer was behind too.
    occupied: Timeline,
}

impl Held {
    fn new(spans: Vec<Span>, occupied: &Timeline) -> Self {
        let all = Timeline::new(spans);
        let occupied = all.common(occupied);
        Self { all, occupied }
    }

    /// Returns how much of an interval these times fill, without those up to `until_ns` in which the consumer was
    /// behind.
    fn within(&self, from_ns: i64, to_ns: i64, until_ns: i64) -> Parts {
        let all = self.all.within(from_ns, to_ns);
        all.less(&self.occupied.within(from_ns, until_ns))
    }
}

impl Behind {
    /// Computes the times from the samples of one destination. `seen` has at least their stamps.
    pub(super) fn new<'a>(
        road: Road,
        samples: impl Iterator<Item = &'a Sample> + Clone,
        seen: &Seen,
    ) -> Self {
        let stamps = samples.clone().map(|sample| sample.received_ns);
        let mut received_ns: Vec<i64> = stamps.filter(|&ns| ns != NO_STAMP).collect();
        received_ns.sort_unstable();
        let in_flight = Timeline::new(in_flight(samples.clone()));
        let for_room = Timeline::new(waited_for_room(samples.clone())).common(&in_flight);
        let mut waiting = accepted(samples.clone());
        waiting.extend(for_room.spans());
        waiting.extend(unanswered(road, samples.clone(), seen));
        let handling = Timeline::new(handling(samples.clone()));
        let occupied = Timeline::new(occupied(samples.clone()));
        let held_up = waiting.iter().copied().chain(in_flight.spans());
        let held_up = held_up.chain(never_arrived(samples.clone()));
        Self {
            held_up: Held::new(held_up.collect(), &occupied),
            waiting: Held::new(waiting, &occupied),
            handling,
            occupied,
            received_ns,
            last_left_ns: last(samples, |sample| sample.kernel_transmit_ns),
        }
    }

    /// Returns the times when the consumer was handling a message.
    pub(super) const fn handling(&self) -> &Timeline {
        &self.handling
    }

    /// Returns what kept a message from leaving in an interval that ends when it left:
    ///
    /// * The consumer was behind. Only time before the consumer's last receive counts: that receive made room.
    /// * The connection could send nothing: it had messages that the kernel had accepted, or that waited for room in
    ///   the send buffer behind messages in flight, or the call before had ended without its reply.
    pub(super) fn before_leaving(&self, from_ns: i64, left_ns: i64) -> Parts {
        let taken = self.received_ns.partition_point(|&ns| ns <= left_ns);
        let made_room_ns = taken
            .checked_sub(1)
            .map_or(from_ns, |last| self.received_ns[last]);
        let mut parts = self.occupied_within(from_ns, made_room_ns);
        parts.add_all(&self.waiting.within(from_ns, left_ns, made_room_ns));
        parts
    }

    /// Returns what may have kept a message from leaving that never left, in an interval after it was sent.
    pub(super) fn without_leaving(&self, from_ns: i64, to_ns: i64) -> Parts {
        let mut parts = self.occupied_within(from_ns, to_ns);
        parts.add_all(&self.held_up.within(from_ns, to_ns, to_ns));
        parts
    }

    /// Returns true if a message was sent after the last one that left, and its call returned: the kernel refused it,
    /// or accepted it and waited to the end.
    pub(super) const fn may_wait_to_the_end(&self, sample: &Sample) -> bool {
        self.last_left_ns != NO_STAMP
            && sample.sent_ns > self.last_left_ns
            && sample.returned_ns != NO_STAMP
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

pub(super) type Span = (i64, i64, Layer);

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

/// Returns the span from the transmit stamp of a message that never arrived, without end, if no later one arrived. On a
/// stream, the later ones wait for it.
fn never_arrived<'a>(samples: impl Iterator<Item = &'a Sample> + Clone) -> Option<Span> {
    let has_arrived =
        |sample: &&Sample| sample.kernel_receive_ns.max(sample.received_ns) != NO_STAMP;
    let arrived = samples.clone().filter(has_arrived);
    let last_ns = last(arrived, |sample| sample.kernel_transmit_ns);
    let under_way = samples.filter(|sample| !has_arrived(sample));
    let first_ns = under_way.map(|sample| sample.kernel_transmit_ns);
    let first_ns = first_ns.filter(|&ns| ns > last_ns).min()?;
    Some((first_ns, i64::MAX, Layer::Network))
}

/// Returns the spans from the return of a call, if it returned before its message left, to the transmit stamp. The
/// kernel had accepted the message: it waited for acknowledgements, for the peer's window, or for the queue of its
/// interface.
fn accepted<'a>(samples: impl Iterator<Item = &'a Sample>) -> Vec<Span> {
    before_transmit(samples, |sample| {
        (!sample.flags.waited_for_room).then_some(sample.returned_ns)
    })
}

/// Returns the spans in which a call waited for room in the send buffer, up to the transmit stamp.
fn waited_for_room<'a>(samples: impl Iterator<Item = &'a Sample>) -> Vec<Span> {
    before_transmit(samples, |sample| {
        sample.flags.waited_for_room.then_some(sample.sent_ns)
    })
}

fn before_transmit<'a>(
    samples: impl Iterator<Item = &'a Sample>,
    from_ns: impl Fn(&Sample) -> Option<i64>,
) -> Vec<Span> {
    let span = |sample: &Sample| {
        let from_ns = from_ns(sample).filter(|&ns| ns != NO_STAMP)?;
        let was_held = sample.kernel_transmit_ns > from_ns;
        was_held.then_some((from_ns, sample.kernel_transmit_ns, Layer::Network))
    };
    samples.filter_map(span).collect()
}

fn last_received<'a>(samples: impl Iterator<Item = &'a Sample>) -> i64 {
    last(samples, |sample| sample.received_ns)
}

fn last<'a>(samples: impl Iterator<Item = &'a Sample>, stamp: fn(&Sample) -> i64) -> i64 {
    samples.map(stamp).max().unwrap_or(NO_STAMP)
}
