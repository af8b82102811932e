//! A message's latency, cut into the parts that its layers took.

use super::{Milestone, Road, Timeline};
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

    fn add_all(&mut self, other: &Self) {
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

/// The layer to blame for a message of these parts: the largest excess over the typical parts where those add up to no more than the deadline, else the largest part.
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
    /// When the supplier's thread was in a call, charged to what held that call up.
    calls: &'a Timeline,
    /// When the consumer was handling a message.
    handling: Timeline,
}

impl<'a> Splitter<'a> {
    /// For the messages of one destination, warm-up included, given the calls of the thread that supplies them.
    #[must_use]
    pub fn new(road: Road, samples: &[Sample], calls: &'a Timeline) -> Self {
        Self {
            road,
            calls,
            handling: handling(samples),
        }
    }

    /// What each layer took of a received message, together its latency; nothing for one that was lost or came before it was due.
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
            if layer == Layer::Sender {
                let blocked = self.calls.within(from_ns, to_ns);
                parts.add_all(&blocked);
                rest_ns -= blocked.sum();
            }
            if milestone.layer == Layer::WakeUp {
                let waited_ns = self.handling.within(from_ns, to_ns).sum().min(rest_ns);
                parts.add(Layer::Application, waited_ns);
                rest_ns -= waited_ns;
            }
            parts.add(layer, rest_ns);
        }
        parts
    }

    /// The layer after the furthest stamp of a message that never came. One that was never sent within a deadline of its due time because a call had not come back is charged like that call.
    #[must_use]
    pub fn lost_in(&self, sample: &Sample, deadline_ns: i64) -> Layer {
        let layer = after_furthest_stamp(self.road, sample);
        match layer {
            Layer::Sender => {
                let until_ns = sample.due_ns.saturating_add(deadline_ns);
                let mut parts = self.calls.within(sample.due_ns, until_ns);
                parts.add(Layer::Sender, deadline_ns.saturating_sub(parts.sum()));
                largest_layer(&parts)
            }
            Layer::WakeUp if self.is_handling(sample.kernel_receive_ns) => Layer::Application,
            layer => layer,
        }
    }

    /// Whether the consumer was handling a message at an instant.
    #[must_use]
    pub fn is_handling(&self, instant_ns: i64) -> bool {
        self.handling
            .within(instant_ns, instant_ns.saturating_add(1))
            .sum()
            > 0
    }
}

/// When the supplier's thread was in a call, from all messages that it sent, to whatever destination, each call charged to the layer that took most of it.
///
/// A call that never came back is charged to the layer after its message's furthest stamp, for ever; provided that it is the last one and that others did come back.
#[must_use]
pub fn calls<'a>(road: Road, samples: impl Iterator<Item = &'a Sample> + Clone) -> Timeline {
    let returned = samples.clone().any(|sample| sample.returned_ns != NO_STAMP);
    let last_sent_ns = samples
        .clone()
        .map(|sample| sample.sent_ns)
        .max()
        .unwrap_or(NO_STAMP);
    let spans = samples
        .filter(|sample| sample.sent_ns != NO_STAMP)
        .filter_map(|sample| {
            if sample.returned_ns != NO_STAMP {
                Some((
                    sample.sent_ns,
                    sample.returned_ns,
                    largest_layer(&call_parts(road, sample)),
                ))
            } else if returned && sample.sent_ns == last_sent_ns {
                let layer = match after_furthest_stamp(road, sample) {
                    Layer::WakeUp => Layer::Application,
                    layer => layer,
                };
                Some((sample.sent_ns, i64::MAX, layer))
            } else {
                None
            }
        });
    Timeline::new(spans.collect())
}

/// What each layer took of a call. The way back has no stamps: it goes to the layer, of the network and what lies above it, that took more of the way there.
fn call_parts(road: Road, sample: &Sample) -> Parts {
    let mut parts = Parts::default();
    let mut walk = Walk::new(sample.sent_ns, sample.returned_ns);
    let handled = Milestone {
        stamp_ns: sample.handled_ns,
        layer: Layer::Application,
    };
    for milestone in road.milestones(sample).skip(1).chain([handled]) {
        if let Some((layer, from_ns, to_ns)) = walk.reach(milestone) {
            parts.add(layer, to_ns.saturating_sub(from_ns));
        }
    }
    let way_back = [road.send_layer(), Layer::Network]
        .into_iter()
        .rev()
        .max_by_key(|layer| parts.of(*layer));
    parts.add(
        way_back.unwrap_or(Layer::Network),
        sample.returned_ns.saturating_sub(walk.from_ns).max(0),
    );
    parts
}

/// When the consumer was handling a message. The last one received, if it alone was never done with, is still being handled.
fn handling(samples: &[Sample]) -> Timeline {
    let received = || {
        samples
            .iter()
            .filter(|sample| sample.received_ns != NO_STAMP)
    };
    let handled = received().any(|sample| sample.handled_ns != NO_STAMP);
    let last_ns = received()
        .map(|sample| sample.received_ns)
        .max()
        .unwrap_or(NO_STAMP);
    let spans = received().filter_map(|sample| {
        let open = handled && sample.received_ns == last_ns && sample.handled_ns == NO_STAMP;
        let until_ns = if open { i64::MAX } else { sample.handled_ns };
        (until_ns != NO_STAMP).then_some((sample.received_ns, until_ns, Layer::Application))
    });
    Timeline::new(spans.collect())
}

/// The layer in which a message was when it was last seen; the last one of the road for a message that came.
fn after_furthest_stamp(road: Road, sample: &Sample) -> Layer {
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

/// Goes from stamp to stamp, never back and never beyond the end.
struct Walk {
    from_ns: i64,
    end_ns: i64,
    /// First of the layers passed since the last stamp.
    leading: Option<Layer>,
}

impl Walk {
    const fn new(from_ns: i64, end_ns: i64) -> Self {
        Self {
            from_ns,
            end_ns,
            leading: None,
        }
    }

    /// The layer that takes the time since the last stamp, and that time; `None` where this milestone was not stamped.
    fn reach(&mut self, milestone: Milestone) -> Option<(Layer, i64, i64)> {
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
