//! The times after a two-way call that ended without its reply, while nothing left for the same destination.

use super::behind::Span;
use super::calls::call_parts;
use super::{Road, Seen, largest_layer};
use crate::sample::{Layer, NO_STAMP, Sample};

/// Returns the spans from the end of each call without its reply to the instant at which the next message left. They
/// are charged to the layer in which that call ended: the octets of the next call wait in the kernel behind those of
/// the first, or the connection is broken and the next one is not yet open. A call whose message did not leave ends a
/// span too, and the next span has the same layer.
pub(super) fn unanswered<'a>(
    road: Road,
    samples: impl Iterator<Item = &'a Sample>,
    seen: &Seen,
) -> Vec<Span> {
    if road.channel || !seen.has_replies() {
        return Vec::new();
    }
    let mut sent: Vec<&Sample> = samples
        .filter(|sample| sample.sent_ns != NO_STAMP)
        .collect();
    sent.sort_by_key(|sample| sample.sent_ns);
    let mut spans = Vec::new();
    let mut before: Option<(i64, Layer)> = None;
    for sample in sent {
        let returned = sample.returned_ns != NO_STAMP;
        let end_ns = if returned {
            sample.returned_ns
        } else {
            i64::MAX
        };
        let left_ns = sample.kernel_transmit_ns;
        if left_ns == NO_STAMP && (sample.received_ns != NO_STAMP || sample.flags.clock_step) {
            // It left, but has no stamp.
            before = None;
            continue;
        }
        let has_left = left_ns != NO_STAMP && left_ns < end_ns;
        let to_ns = if has_left { left_ns } else { end_ns };
        spans.extend(before.map(|(from_ns, layer)| (from_ns, to_ns, layer)));
        before = if !returned {
            None
        } else if let Some((_, layer)) = before.filter(|_| !has_left) {
            Some((end_ns, layer))
        } else {
            ends_without_reply(sample)
                .then(|| (end_ns, largest_layer(&call_parts(road, sample, None, seen))))
        };
    }
    spans
}

/// Returns true if a call returned before its reply arrived, or its reply never arrived.
const fn ends_without_reply(sample: &Sample) -> bool {
    sample.reply_receive_ns == NO_STAMP || sample.reply_receive_ns > sample.returned_ns
}
