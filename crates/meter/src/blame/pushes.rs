//! The times when an event channel was in a push to a consumer, and the layer that delayed each push.

use super::split::{Walk, in_flight};
use super::{Parts, Road, Timeline, largest_layer};
use crate::sample::{Layer, NO_STAMP, Sample};

/// Returns the pushes that forwarded the messages to one destination, each charged to the layer that took most of it. A
/// channel pushes to a consumer one message after the other. A push returns when the consumer has handled the message.
/// A push that did not return lasts until the next, or without end.
pub(super) fn pushes(road: Road, samples: &[Sample]) -> Timeline {
    if !road.channel {
        return Timeline::default();
    }
    let mut pushed: Vec<&Sample> = samples
        .iter()
        .filter(|sample| sample.channel_transmit_ns != NO_STAMP)
        .collect();
    pushed.sort_by_key(|sample| sample.channel_transmit_ns);
    let next_ns = pushed
        .iter()
        .skip(1)
        .map(|sample| sample.channel_transmit_ns)
        .chain([i64::MAX]);
    let span = |(sample, next_ns): (&&Sample, i64)| {
        let from_ns = sample.channel_transmit_ns;
        if sample.handled_ns == NO_STAMP {
            (from_ns, next_ns, in_flight(road, sample))
        } else {
            (
                from_ns,
                sample.handled_ns,
                largest_layer(&push_parts(sample)),
            )
        }
    };
    Timeline::new(pushed.iter().zip(next_ns).map(span).collect())
}

/// Returns the time of each layer in a push, up to the end of handling.
fn push_parts(sample: &Sample) -> Parts {
    let mut parts = Parts::default();
    let mut walk = Walk::new(sample.channel_transmit_ns, sample.handled_ns);
    for (stamp_ns, layer) in [
        (sample.kernel_receive_ns, Layer::Network),
        (sample.received_ns, Layer::WakeUp),
        (sample.handled_ns, Layer::Application),
    ] {
        if let Some((layer, from_ns, to_ns)) = walk.reach(super::Milestone { stamp_ns, layer }) {
            parts.add(layer, to_ns.saturating_sub(from_ns));
        }
    }
    parts
}
