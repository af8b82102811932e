//! Determines the layer in which a late message lost its time.
//!
//! **The parts.** The path of a message from due to received is divided at its stamps. The time between two stamps
//! belongs to the layer between them, with these exceptions:
//!
//! * Time that the consumer spent on earlier messages, after the kernel received this one, is the *application's*.
//! * Time that the supplier spent in calls for earlier messages, after this one was due, is charged to the largest
//!   layer of each such call ([`calls`]). So a chain of blocked calls leads back to the first one.
//! * Time that an event channel spent in pushes of earlier messages to the same consumer, after it received this one,
//!   is charged the same way.
//! * Time that a message waited to leave while its consumer was behind with earlier ones is the consumer's: a peer that
//!   does not read stops its sender, and messages are received in order.
//! * Time that a message waited to leave, accepted by the supplier's kernel, is the *network's*, and so is that of the
//!   messages behind it: the connection waits for acknowledgements, for the peer's window, or for the queue of its own
//!   interface. Time for room in the send buffer is the network's while earlier messages are between the two kernels.
//! * Time that a message waited to leave after a two-way call that ended without its reply is charged to the layer in
//!   which that call ended (`unanswered.rs`).
//!
//! If no message has a stamp, the layers around it are merged: their time is charged to the first of them, and
//! [`Road::merged`] names them. If only this message lacks it, the layer of that time is *unknown*. The parts of a
//! message always add up to its latency.
//!
//! **A two-way call** has a way back: the reply leaves the consumer's host, arrives at the supplier's, and the call
//! returns. Time until it leaves is the middleware's, on the way the network's, and after its arrival the sender's.
//! Without the stamps of the reply the layer of the way back is unknown.
//!
//! **The blame.** A message is late because some layer took longer than usual: the layer with the largest *excess over
//! its median* is blamed. A network that always takes 40 of 50 ms is not to blame for one message that a sleeping
//! consumer delays by 20 ms more. If the usual latency (the sum of the medians) is longer than the deadline, the
//! *largest part* is blamed.
//!
//! **A lost message** is blamed on the layer after its last stamp.

mod behind;
mod calls;
mod pushes;
mod split;
mod timeline;
mod unanswered;

pub use calls::{Calls, calls};
pub use split::{Parts, Splitter, excess_layer, largest_layer, medians};
pub use timeline::Timeline;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sample::{Layer, NO_STAMP, Sample};

/// The layers that a carrier's messages pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Road {
    /// There is a middleware between the send call and the kernel.
    pub middleware: bool,
    /// Messages pass an event channel, in a process of its own.
    pub channel: bool,
}

/// A stamp of a message, and the layer that ends at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Milestone {
    pub(crate) stamp_ns: i64,
    pub(crate) layer: Layer,
}

/// A message with every stamp that any message of a flow has; the values do not matter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen(Sample);

impl Seen {
    fn of<'a>(samples: impl Iterator<Item = &'a Sample>) -> Self {
        let mut seen = Sample::NONE;
        for sample in samples {
            for (place, stamp_ns) in [
                (&mut seen.sent_ns, sample.sent_ns),
                (&mut seen.kernel_transmit_ns, sample.kernel_transmit_ns),
                (&mut seen.channel_receive_ns, sample.channel_receive_ns),
                (&mut seen.channel_transmit_ns, sample.channel_transmit_ns),
                (&mut seen.kernel_receive_ns, sample.kernel_receive_ns),
                (&mut seen.received_ns, sample.received_ns),
                (&mut seen.handled_ns, sample.handled_ns),
                (&mut seen.reply_transmit_ns, sample.reply_transmit_ns),
                (&mut seen.reply_receive_ns, sample.reply_receive_ns),
                (&mut seen.channel_reply_ns, sample.channel_reply_ns),
                (&mut seen.returned_ns, sample.returned_ns),
            ] {
                *place = stamp_ns.max(*place);
            }
        }
        Self(seen)
    }

    /// Returns true if the calls of a road await replies. Where packets are stamped but no replies are, there are none.
    const fn await_replies(&self, road: Road) -> bool {
        road.middleware && (self.has_replies() || self.0.kernel_transmit_ns == NO_STAMP)
    }

    /// Returns true if replies are stamped.
    const fn has_replies(&self) -> bool {
        self.0.reply_transmit_ns != NO_STAMP
            || self.0.reply_receive_ns != NO_STAMP
            || self.0.channel_reply_ns != NO_STAMP
    }
}

impl Road {
    /// A carrier that uses sockets without middleware.
    pub const RAW: Self = Self {
        middleware: false,
        channel: false,
    };

    /// A middleware between the send call and the kernel.
    pub const MIDDLEWARE: Self = Self {
        middleware: true,
        channel: false,
    };

    /// A middleware, and an event channel between supplier and consumer.
    pub const CHANNEL: Self = Self {
        middleware: true,
        channel: true,
    };

    /// The layer between the send call and the kernel's transmit stamp, and between a servant's return and the transmit
    /// stamp of the reply.
    #[must_use]
    pub const fn send_layer(self) -> Layer {
        if self.middleware {
            Layer::Middleware
        } else {
            Layer::Stack
        }
    }

    /// Returns true if a message in this layer may wait for the consumer. A peer that does not read stops the sender of
    /// a stream, but not that of a channel.
    fn is_paced_by_consumer(self, layer: Layer) -> bool {
        layer == self.send_layer() && !self.channel
    }

    /// Returns true if each destination has a sending thread, so that a call for one does not delay another. This holds
    /// for a middleware without a channel: a raw carrier sends to all in turn, and a channel needs one push for all.
    #[must_use]
    pub const fn has_thread_for_each(self) -> bool {
        self.middleware && !self.channel
    }

    /// Returns the stamps after due, in order of the path.
    pub(crate) fn milestones(self, sample: &Sample) -> impl Iterator<Item = Milestone> {
        let all = [
            (sample.sent_ns, Layer::Sender),
            (sample.kernel_transmit_ns, self.send_layer()),
            (sample.channel_receive_ns, Layer::Network),
            (sample.channel_transmit_ns, Layer::Channel),
            (sample.kernel_receive_ns, Layer::Network),
            (sample.received_ns, Layer::WakeUp),
        ];
        let channel = self.channel;
        all.into_iter()
            .enumerate()
            .filter(move |(index, _)| channel || !matches!(index, 2 | 3))
            .map(|(_, (stamp_ns, layer))| Milestone { stamp_ns, layer })
    }

    /// Returns the stamps of a call after its beginning, up to its return. A call to a channel ends there. A call that
    /// awaits no reply has nothing to do after its message left.
    pub(crate) fn call(
        self,
        sample: &Sample,
        awaits_reply: bool,
    ) -> impl Iterator<Item = Milestone> {
        let milestone = |(stamp_ns, layer)| Milestone { stamp_ns, layer };
        let at_channel = [
            (sample.channel_receive_ns, Layer::Network),
            (sample.channel_reply_ns, Layer::Channel),
        ];
        let there = (awaits_reply && self.channel).then_some(at_channel);
        let push = (awaits_reply && !self.channel).then(|| self.push(sample));
        std::iter::once((sample.kernel_transmit_ns, self.send_layer()))
            .chain(there.into_iter().flatten())
            .map(milestone)
            .chain(push.into_iter().flatten())
            .chain([milestone((sample.returned_ns, Layer::Sender))])
    }

    /// Returns the stamps of a two-way call after its request left, up to the arrival of its reply.
    pub(crate) fn push(self, sample: &Sample) -> impl Iterator<Item = Milestone> {
        [
            (sample.kernel_receive_ns, Layer::Network),
            (sample.received_ns, Layer::WakeUp),
            (sample.handled_ns, Layer::Application),
            (sample.reply_transmit_ns, self.send_layer()),
            (sample.reply_receive_ns, Layer::Network),
        ]
        .into_iter()
        .map(|(stamp_ns, layer)| Milestone { stamp_ns, layer })
    }

    /// Returns the groups of layers that no received message of `samples` separates. Each group is one name, such as
    /// "network and wake-up".
    #[must_use]
    pub fn merged(self, samples: &[Sample]) -> Vec<String> {
        self.groups(samples)
            .into_iter()
            .filter(|group| group.len() > 1)
            .map(|group| join(&group))
            .collect()
    }

    /// Returns the name under which each layer's time is reported: its own name, or the name of the group that it is
    /// the first of.
    #[must_use]
    pub fn names(self, samples: &[Sample]) -> [String; Layer::ALL.len()] {
        let groups = self.groups(samples);
        Layer::ALL.map(|layer| {
            groups
                .iter()
                .find(|group| group[0] == layer)
                .map_or_else(|| layer.name().to_owned(), |group| join(group))
        })
    }

    /// Returns the layers of the path in order, grouped where no received message has a stamp between them.
    fn groups(self, samples: &[Sample]) -> Vec<Vec<Layer>> {
        let mut seen: Vec<(Layer, bool)> = Vec::new();
        for sample in samples
            .iter()
            .filter(|sample| sample.received_ns != NO_STAMP)
        {
            for (index, milestone) in self.milestones(sample).enumerate() {
                let stamped = milestone.stamp_ns != NO_STAMP;
                match seen.get_mut(index) {
                    Some((_, seen)) => *seen |= stamped,
                    None => seen.push((milestone.layer, stamped)),
                }
            }
        }
        let mut groups = vec![Vec::new()];
        for (layer, stamped) in seen {
            if let Some(group) = groups
                .last_mut()
                .filter(|group: &&mut Vec<Layer>| !group.contains(&layer))
            {
                group.push(layer);
            }
            if stamped {
                groups.push(Vec::new());
            }
        }
        groups.retain(|group| !group.is_empty());
        groups
    }
}

fn join(group: &[Layer]) -> String {
    group
        .iter()
        .map(|layer| layer.name())
        .collect::<Vec<_>>()
        .join(" and ")
}

#[cfg(test)]
pub(crate) mod tests;
