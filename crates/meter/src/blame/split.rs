//! A message's latency, cut into the parts that its layers took.

use super::behind::Behind;
use super::pushes::pushes;
use super::{Calls, Milestone, Road, Timeline};
use crate::sample::{Layer, NO_STAMP, Sample};

/// Nanoseconds by layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts([i64; Layer::ALL.len()]);

impl Parts {
    /// What a layer took.
    #[must_use]
    pub const fn of(&self, layer: Layer) -> i64 {
        self.0[layer as usize]
    }

    /// All layers together.
    #[must_use]
    pub fn sum(&self) -> i64 {
        self.0.iter().fold(0, |sum, part| sum.saturating_add(*part))
    }

    /// Charges a layer with more.
    pub fn add(&mut self, layer: Layer, ns: i64) {
        let part = &mut self.0[layer as usize];
        *part = part.saturating_add(ns);
    }

    /// What remains of each layer's part.
    #[must_use]
    pub fn less(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|index| {
            self.0[index].saturating_sub(other.0[index])
        }))
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        for layer in Layer::ALL {
            self.add(layer, other.of(layer));
        }
    }
}

/// The layer with the largest part; of equal ones the first on the road.
#[must_use]
pub fn largest_layer(parts: &Parts) -> Layer {
    Layer::ALL
        .into_iter()
        .rev()
        .max_by_key(|layer| parts.of(*layer))
        .unwrap_or(Layer::Sender)
}

/// The layer to blame for a message of these parts: the largest excess over the typical parts where those add up to no
/// more than the deadline, else the largest part.
#[must_use]
pub fn excess_layer(parts: &Parts, typical: &Parts, deadline_ns: i64) -> Layer {
    if typical.sum() <= deadline_ns {
        largest_layer(&parts.less(typical))
    } else {
        largest_layer(parts)
    }
}

/// The median of each layer's part.
#[must_use]
pub fn medians(all: &[Parts]) -> Parts {
    let mut column = Vec::with_capacity(all.len());
    Parts(Layer::ALL.map(|layer| {
        column.clear();
        column.extend(all.iter().map(|parts| parts.of(layer)));
        let middle = column.len().saturating_sub(1) / 2;
        if column.is_empty() {
            0
        } else {
            *column.select_nth_unstable(middle).1
        }
    }))
}

/// Splits the messages of one destination.
#[derive(Clone, Debug)]
pub struct Splitter<'a> {
    road: Road,
    /// When the supplying thread was in a call, charged to what held that call up.
    calls: &'a Timeline,
    /// When the consumer was behind with earlier messages.
    behind: Behind,
    /// When the channel was in a push to the consumer, charged to what held that push up.
    pushes: Timeline,
}

impl<'a> Splitter<'a> {
    /// For the messages of one destination, warm-up included, given the calls of the flow's supplier.
    #[must_use]
    pub fn new(road: Road, samples: &[Sample], calls: &'a Calls) -> Self {
        let calls = calls.of_destination(samples.first().map_or(0, |sample| sample.destination));
        Self {
            road,
            calls,
            behind: Behind::new(samples.iter()),
            pushes: pushes(road, samples),
        }
    }

    /// What each layer took of a received message, together its latency; nothing for one that was lost or came before
    /// it was due.
    #[must_use]
    pub fn split(&self, sample: &Sample) -> Parts {
        let mut parts = Parts::default();
        if sample.received_ns == NO_STAMP {
            return parts;
        }
        let mut walk = Walk::new(sample.due_ns, sample.received_ns);
        for milestone in self.road.milestones(sample) {
            let Some((layer, from_ns, to_ns)) = walk.reach(milestone) else {
                continue;
            };
            let mut rest_ns = to_ns.saturating_sub(from_ns);
            let before = match layer {
                Layer::Sender => self.calls.within(from_ns, to_ns),
                Layer::Channel => self.pushes.within(from_ns, to_ns),
                layer if self.road.is_paced_by_consumer(layer) => {
                    self.behind.before_leaving(from_ns, to_ns)
                }
                _ => Parts::default(),
            };
            parts.add_all(&before);
            rest_ns -= before.sum();
            if milestone.layer == Layer::WakeUp {
                let waited_ns = self
                    .behind
                    .handling()
                    .within(from_ns, to_ns)
                    .sum()
                    .min(rest_ns);
                parts.add(Layer::Application, waited_ns);
                rest_ns -= waited_ns;
            }
            parts.add(layer, rest_ns);
        }
        parts
    }

    /// The layer after the furthest stamp of a lost message. One that was never sent within a deadline of its due time
    /// because a call had not come back is charged like that call, one that a channel had so long and did not pass on
    /// like the push that it waited behind, and one that never left because its consumer was behind to what held up the
    /// consumer.
    #[must_use]
    pub fn lost_in(&self, sample: &Sample, deadline_ns: i64) -> Layer {
        let layer = after_furthest_stamp(self.road, sample);
        let within_deadline = |from_ns: i64| (from_ns, from_ns.saturating_add(deadline_ns));
        let largest = |mut parts: Parts| {
            parts.add(layer, deadline_ns.saturating_sub(parts.sum()));
            largest_layer(&parts)
        };
        match layer {
            Layer::Sender => {
                let (from_ns, to_ns) = within_deadline(sample.due_ns);
                largest(self.calls.within(from_ns, to_ns))
            }
            Layer::Channel if sample.channel_receive_ns != NO_STAMP => {
                let (from_ns, to_ns) = within_deadline(sample.channel_receive_ns);
                largest(self.pushes.within(from_ns, to_ns))
            }
            layer if self.road.is_paced_by_consumer(layer) => {
                let (from_ns, to_ns) = within_deadline(sample.sent_ns);
                largest(self.behind.within(from_ns, to_ns))
            }
            Layer::WakeUp if self.is_handling(sample.kernel_receive_ns) => Layer::Application,
            layer => layer,
        }
    }

    /// Whether the consumer was handling a message at an instant.
    #[must_use]
    pub fn is_handling(&self, instant_ns: i64) -> bool {
        self.behind
            .handling()
            .within(instant_ns, instant_ns.saturating_add(1))
            .sum()
            > 0
    }
}

/// The layer in which a message was when it was last seen; the last one of the road for a message that came.
pub(super) fn after_furthest_stamp(road: Road, sample: &Sample) -> Layer {
    let stamped = |milestone: &Milestone| milestone.stamp_ns != NO_STAMP;
    let behind = road
        .milestones(sample)
        .enumerate()
        .filter(|(_, milestone)| stamped(milestone))
        .last()
        .map_or(0, |(index, _)| index + 1);
    road.milestones(sample)
        .nth(behind)
        .map_or(Layer::WakeUp, |milestone| milestone.layer)
}

/// The layer in which an unreturned call or push is; its message may have arrived.
pub(super) fn in_flight(road: Road, sample: &Sample) -> Layer {
    if sample.received_ns == NO_STAMP {
        after_furthest_stamp(road, sample)
    } else {
        Layer::Application
    }
}

/// Goes from stamp to stamp, never back and never beyond the end.
pub(super) struct Walk {
    pub(super) from_ns: i64,
    end_ns: i64,
    /// First of the layers passed since the last stamp.
    leading: Option<Layer>,
}

impl Walk {
    pub(super) const fn new(from_ns: i64, end_ns: i64) -> Self {
        Self {
            from_ns,
            end_ns,
            leading: None,
        }
    }

    /// The layer that takes the time since the last stamp, and that time; `None` where this milestone was not stamped.
    pub(super) fn reach(&mut self, milestone: Milestone) -> Option<(Layer, i64, i64)> {
        let leading = *self.leading.get_or_insert(milestone.layer);
        if milestone.stamp_ns == NO_STAMP {
            return None;
        }
        let from_ns = self.from_ns;
        self.from_ns = milestone.stamp_ns.min(self.end_ns).max(from_ns);
        self.leading = None;
        Some((leading, from_ns, self.from_ns))
    }
}
