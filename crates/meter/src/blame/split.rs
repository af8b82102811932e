//! Splits a message's latency into the parts of its layers.

use super::behind::Behind;
use super::pushes::{GivenUp, pushes};
use super::{Calls, Milestone, Road, Seen, Timeline};
use crate::sample::{Layer, NO_STAMP, Sample};

/// Nanoseconds by layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts([i64; Layer::ALL.len()]);

impl Parts {
    /// Returns the part of a layer.
    #[must_use]
    pub const fn of(&self, layer: Layer) -> i64 {
        self.0[layer as usize]
    }

    /// Returns the sum over all layers.
    #[must_use]
    pub fn sum(&self) -> i64 {
        self.0.iter().fold(0, |sum, part| sum.saturating_add(*part))
    }

    /// Adds time to the part of a layer.
    pub fn add(&mut self, layer: Layer, ns: i64) {
        let part = &mut self.0[layer as usize];
        *part = part.saturating_add(ns);
    }

    /// Returns the difference of each layer's parts.
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

/// Returns the layer with the largest part; of equal parts, the first on the path.
#[must_use]
pub fn largest_layer(parts: &Parts) -> Layer {
    Layer::ALL
        .into_iter()
        .rev()
        .max_by_key(|layer| parts.of(*layer))
        .unwrap_or(Layer::Sender)
}

/// Returns the layer to blame for a message with these parts. This is the layer with the largest excess over the
/// typical parts if those add up to at most the deadline; otherwise the layer with the largest part.
#[must_use]
pub fn excess_layer(parts: &Parts, typical: &Parts, deadline_ns: i64) -> Layer {
    if typical.sum() <= deadline_ns {
        largest_layer(&parts.less(typical))
    } else {
        largest_layer(parts)
    }
}

/// Returns the median of each layer's part.
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

/// Splits the latencies of the messages of one destination.
#[derive(Clone, Debug)]
pub struct Splitter<'a> {
    road: Road,
    /// The supplying thread's calls, each charged to the layer that delayed it.
    calls: &'a Timeline,
    /// When the consumer was behind with earlier messages.
    behind: Behind,
    /// The channel's pushes to the consumer, each charged to the layer that delayed it.
    pushes: Timeline,
    given_up: Option<GivenUp>,
    seen: Seen,
}

impl<'a> Splitter<'a> {
    /// Creates a splitter for the messages of one destination, warm-up included, and the calls of the flow's supplier.
    #[must_use]
    pub fn new(road: Road, samples: &[Sample], calls: &'a Calls) -> Self {
        let seen = Seen::of(samples.iter());
        let calls = calls.of_destination(samples.first().map_or(0, |sample| sample.destination));
        Self {
            road,
            calls,
            behind: Behind::new(road, samples.iter(), &seen),
            pushes: pushes(road, samples, &seen),
            given_up: GivenUp::find(samples),
            seen,
        }
    }

    /// Returns the part of each layer in a received message's latency; the parts add up to the latency. Returns zeros
    /// for a lost message and for one received before it was due.
    #[must_use]
    pub fn split(&self, sample: &Sample) -> Parts {
        let mut parts = Parts::default();
        if sample.received_ns == NO_STAMP {
            return parts;
        }
        let mut walk = Walk::new(sample.due_ns, sample.received_ns);
        let seen = self.road.milestones(&self.seen.0);
        for (milestone, seen) in self.road.milestones(sample).zip(seen) {
            let Some(reached) = walk.reach(milestone, seen) else {
                continue;
            };
            let (from_ns, to_ns) = (reached.from_ns, reached.to_ns);
            let mut rest_ns = to_ns.saturating_sub(from_ns);
            let before = match reached.first {
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
            parts.add(reached.layer, rest_ns);
        }
        parts
    }

    /// Returns the layer after the last stamp of a lost message, with these exceptions:
    ///
    /// * The layer of a message without stamps, because the clock was set meanwhile, is unknown.
    /// * A message that was not sent within a deadline of its due time, because a call had not returned, is charged
    ///   like that call.
    /// * A message that a channel held that long and did not forward is charged like the push that it waited for. If
    ///   the channel forwarded no later one either, all of them are charged like the first.
    /// * A message that never left because its consumer was behind is charged to the layer that delayed the consumer. If
    ///   earlier messages waited or were in flight instead, it is charged to the network. If the call before had ended
    ///   without its reply, it is charged like that call. Else, if nothing left after it, its layer is unknown.
    #[must_use]
    pub fn lost_in(&self, sample: &Sample, deadline_ns: i64) -> Layer {
        if sample.flags.clock_step {
            return Layer::Unknown;
        }
        let layer = after_furthest_stamp(self.road, sample);
        let within_deadline = |from_ns: i64| (from_ns, from_ns.saturating_add(deadline_ns));
        let rest = if self.is_refused_or_waits(sample) {
            Layer::Unknown
        } else {
            layer
        };
        let largest = |mut parts: Parts| {
            parts.add(rest, deadline_ns.saturating_sub(parts.sum()));
            largest_layer(&parts)
        };
        match layer {
            Layer::Sender => {
                let (from_ns, to_ns) = within_deadline(sample.due_ns);
                largest(self.calls.within(from_ns, to_ns))
            }
            Layer::Channel if sample.channel_receive_ns != NO_STAMP => {
                let received_ns = sample.channel_receive_ns;
                let given_up = self.given_up.and_then(|since| since.first_ns(received_ns));
                let (from_ns, to_ns) = within_deadline(given_up.unwrap_or(received_ns));
                largest(self.pushes.within(from_ns, to_ns))
            }
            layer if self.road.is_paced_by_consumer(layer) => {
                let (from_ns, to_ns) = within_deadline(sample.sent_ns);
                largest(self.behind.without_leaving(from_ns, to_ns))
            }
            Layer::WakeUp if self.is_handling(sample.kernel_receive_ns) => Layer::Application,
            layer => layer,
        }
    }

    /// Returns true if the call for a message that did not leave returned without a reply, and nothing left after it.
    /// It is not known whether the kernel had accepted it.
    fn is_refused_or_waits(&self, sample: &Sample) -> bool {
        let awaits_reply = self.seen.await_replies(self.road);
        sample.kernel_transmit_ns == NO_STAMP
            && !awaits_reply
            && self.behind.may_wait_to_the_end(sample)
    }

    /// Returns true if the consumer was handling a message at this instant.
    #[must_use]
    pub fn is_handling(&self, instant_ns: i64) -> bool {
        self.behind
            .handling()
            .within(instant_ns, instant_ns.saturating_add(1))
            .sum()
            > 0
    }
}

/// Returns the layer in which a message was after its last stamp; the last layer of the path for a received message.
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

/// Returns the layer of a call or push that did not return. Its message may have arrived, and even its reply.
pub(super) fn in_flight(road: Road, sample: &Sample, seen: &Seen) -> Layer {
    if sample.received_ns == NO_STAMP {
        after_furthest_stamp(road, sample)
    } else if sample.handled_ns == NO_STAMP {
        Layer::Application
    } else {
        let after = |stamp_ns: i64, seen_ns: i64, layer| {
            (stamp_ns == NO_STAMP).then_some(if seen_ns == NO_STAMP {
                Layer::Unknown
            } else {
                layer
            })
        };
        after(
            sample.reply_transmit_ns,
            seen.0.reply_transmit_ns,
            road.send_layer(),
        )
        .or_else(|| {
            after(
                sample.reply_receive_ns,
                seen.0.reply_receive_ns,
                Layer::Network,
            )
        })
        .unwrap_or(if road.channel {
            Layer::Channel
        } else {
            Layer::Sender
        })
    }
}

/// Moves from stamp to stamp; never backwards, and never beyond the end.
pub(super) struct Walk {
    from_ns: i64,
    end_ns: i64,
    /// The first of the layers passed since the last stamp.
    leading: Option<Layer>,
    /// A stamp that other messages have was missing since the last stamp.
    lacking: bool,
    has_moved: bool,
}

/// The time between two stamps.
pub(super) struct Reached {
    /// The first of the layers between them.
    pub(super) first: Layer,
    /// The layer that the time belongs to. If other messages have a stamp in between that this one lacks, it is not
    /// known.
    pub(super) layer: Layer,
    pub(super) from_ns: i64,
    pub(super) to_ns: i64,
}

impl Walk {
    pub(super) const fn new(from_ns: i64, end_ns: i64) -> Self {
        Self {
            from_ns,
            end_ns,
            leading: None,
            lacking: false,
            has_moved: false,
        }
    }

    /// Returns true after the first milestone that has a stamp.
    pub(super) const fn has_moved(&self) -> bool {
        self.has_moved
    }

    /// Returns the time since the last stamp; `None` if this milestone has no stamp. `seen` is the same milestone of a
    /// message with every stamp that any message has.
    pub(super) fn reach(&mut self, milestone: Milestone, seen: Milestone) -> Option<Reached> {
        let first = *self.leading.get_or_insert(milestone.layer);
        if milestone.stamp_ns == NO_STAMP {
            self.lacking |= seen.stamp_ns != NO_STAMP;
            return None;
        }
        let from_ns = self.from_ns;
        self.from_ns = milestone.stamp_ns.min(self.end_ns).max(from_ns);
        self.leading = None;
        self.has_moved = true;
        let layer = if std::mem::take(&mut self.lacking) {
            Layer::Unknown
        } else {
            first
        };
        Some(Reached {
            first,
            layer,
            from_ns,
            to_ns: self.from_ns,
        })
    }
}
