//! The times when an event channel was in a push to a consumer, and the layer that delayed each push.

use super::split::{Walk, in_flight};
use super::{Parts, Road, Seen, Timeline, largest_layer};
use crate::sample::{NO_STAMP, Sample};

/// Returns the pushes that forwarded the messages to one destination, each charged to the layer that took most of it. A
/// channel pushes to a consumer one message after the other. A push returns when its reply arrives at the channel's host;
/// if replies are not stamped, it lasts at least until the consumer has handled the message. A push that did not return
/// lasts until the next, or without end.
pub(super) fn pushes(road: Road, samples: &[Sample], seen: &Seen) -> Timeline {
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
    let replies = seen.0.reply_receive_ns != NO_STAMP;
    let span = |(sample, next_ns): (&&Sample, i64)| {
        let from_ns = sample.channel_transmit_ns;
        let end_ns = if replies {
            sample.reply_receive_ns
        } else {
            sample.handled_ns
        };
        if end_ns == NO_STAMP {
            (from_ns, next_ns, in_flight(road, sample, seen))
        } else {
            let parts = push_parts(road, sample, end_ns, seen);
            (from_ns, end_ns, largest_layer(&parts))
        }
    };
    Timeline::new(pushed.iter().zip(next_ns).map(span).collect())
}

/// The time in which a channel forwarded nothing more to a consumer but still answered its supplier: it had given the
/// consumer up.
#[derive(Clone, Copy, Debug)]
pub(super) struct GivenUp {
    /// When the channel received the first message that it did not forward.
    from_ns: i64,
    /// When it received the first message that it did not answer.
    until_ns: i64,
}

impl GivenUp {
    pub(super) fn find(samples: &[Sample]) -> Option<Self> {
        let forwarded = |sample: &&Sample| sample.channel_transmit_ns != NO_STAMP;
        let last = samples.iter().filter(forwarded).map(|one| one.sequence);
        let last = last.max()?;
        let kept = samples
            .iter()
            .filter(|sample| sample.sequence > last && sample.channel_receive_ns != NO_STAMP);
        let not_answered = kept
            .clone()
            .filter(|sample| sample.channel_reply_ns == NO_STAMP);
        let first_ns = |sample: &Sample| sample.channel_receive_ns;
        Some(Self {
            from_ns: kept.map(first_ns).min()?,
            until_ns: not_answered.map(first_ns).min().unwrap_or(i64::MAX),
        })
    }

    /// Returns when the channel received the first message that it did not forward, if `received_ns` is within this
    /// time.
    pub(super) fn first_ns(&self, received_ns: i64) -> Option<i64> {
        (self.from_ns..self.until_ns)
            .contains(&received_ns)
            .then_some(self.from_ns)
    }
}

/// Returns the time of each layer in a push.
fn push_parts(road: Road, sample: &Sample, end_ns: i64, seen: &Seen) -> Parts {
    let mut parts = Parts::default();
    let mut walk = Walk::new(sample.channel_transmit_ns, end_ns);
    for (milestone, seen) in road.push(sample).zip(road.push(&seen.0)) {
        if let Some(reached) = walk.reach(milestone, seen) {
            parts.add(reached.layer, reached.to_ns.saturating_sub(reached.from_ns));
        }
    }
    parts
}
