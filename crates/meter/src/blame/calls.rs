//! The times when a supplier was in a call, and the layer that delayed each call.

use std::collections::BTreeMap;

use super::behind::Behind;
use super::split::{Walk, in_flight};
use super::{Parts, Road, Seen, Timeline, largest_layer};
use crate::sample::{Layer, NO_STAMP, Sample};

/// The calls of a flow's supplier, each charged to the layer that took most of it. Only calls of the same thread delay
/// each other.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// By destination; a single entry, under 0, if one thread supplies all destinations.
    threads: BTreeMap<u16, Timeline>,
    thread_for_each: bool,
    idle: Timeline,
}

impl Calls {
    /// Returns the calls of the thread that supplies a destination.
    #[must_use]
    pub fn of_destination(&self, destination: u16) -> &Timeline {
        let thread = if self.thread_for_each { destination } else { 0 };
        self.threads.get(&thread).unwrap_or(&self.idle)
    }
}

/// Returns the calls that sent a flow's messages, from the samples of all its destinations.
///
/// A call that did not return is charged to the layer after its message's last stamp, without end, if it is the
/// thread's last call and others returned.
#[must_use]
pub fn calls<'a>(road: Road, samples: impl Iterator<Item = &'a Sample>) -> Calls {
    let thread_for_each = road.has_thread_for_each();
    let samples: Vec<&Sample> = samples.collect();
    let mut by_destination: BTreeMap<u16, Vec<&Sample>> = BTreeMap::new();
    let mut by_thread: BTreeMap<u16, Vec<&Sample>> = BTreeMap::new();
    for &sample in &samples {
        by_destination
            .entry(sample.destination)
            .or_default()
            .push(sample);
    }
    let seen = Seen::of(samples.iter().copied());
    let behind = by_destination
        .into_iter()
        .map(|(destination, of)| (destination, Behind::new(road, of.iter().copied(), &seen)))
        .collect();
    for &sample in samples.iter().filter(|sample| sample.sent_ns != NO_STAMP) {
        let thread = if thread_for_each {
            sample.destination
        } else {
            0
        };
        by_thread.entry(thread).or_default().push(sample);
    }
    let threads = by_thread
        .into_iter()
        .map(|(thread, sent)| (thread, calls_of_thread(road, &sent, &behind, &seen)))
        .collect();
    Calls {
        threads,
        thread_for_each,
        idle: Timeline::default(),
    }
}

fn calls_of_thread(
    road: Road,
    sent: &[&Sample],
    behind: &BTreeMap<u16, Behind>,
    seen: &Seen,
) -> Timeline {
    let returned = sent.iter().any(|sample| sample.returned_ns != NO_STAMP);
    let last_sent_ns = sent
        .iter()
        .map(|sample| sample.sent_ns)
        .max()
        .unwrap_or(NO_STAMP);
    let spans = sent.iter().filter_map(|sample| {
        if sample.returned_ns != NO_STAMP {
            let parts = call_parts(road, sample, behind.get(&sample.destination), seen);
            Some((sample.sent_ns, sample.returned_ns, largest_layer(&parts)))
        } else if returned && sample.sent_ns == last_sent_ns {
            Some((sample.sent_ns, i64::MAX, in_flight(road, sample, seen)))
        } else {
            None
        }
    });
    Timeline::new(spans.collect())
}

/// Returns the time of each layer in a call that returned.
///
/// If a reply never arrived before the call returned, the time since the last stamp belongs to the layer after it, as
/// for a lost message. If no reply is stamped, the layer of the way back is unknown.
pub(super) fn call_parts(
    road: Road,
    sample: &Sample,
    behind: Option<&Behind>,
    seen: &Seen,
) -> Parts {
    let mut parts = Parts::default();
    let mut walk = Walk::new(sample.sent_ns, sample.returned_ns);
    let awaits_reply = seen.await_replies(road);
    for (milestone, seen_there) in road
        .call(sample, awaits_reply)
        .zip(road.call(&seen.0, awaits_reply))
    {
        let has_left = walk.has_moved();
        let Some(reached) = walk.reach(milestone, seen_there) else {
            continue;
        };
        let (from_ns, to_ns) = (reached.from_ns, reached.to_ns);
        let before = behind
            .filter(|_| road.is_paced_by_consumer(reached.first))
            .filter(|_| !has_left)
            .map_or(Parts::default(), |behind| {
                behind.before_leaving(from_ns, to_ns)
            });
        parts.add_all(&before);
        let layer = match milestone.layer {
            Layer::Sender if awaits_reply && has_left && !seen.has_replies() => Layer::Unknown,
            Layer::Sender => reached.first,
            _ => reached.layer,
        };
        let rest_ns = to_ns.saturating_sub(from_ns).saturating_sub(before.sum());
        parts.add(layer, rest_ns);
    }
    parts
}
