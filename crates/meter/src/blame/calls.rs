//! The times when a supplier was in a call, and the layer that delayed each call.

use std::collections::BTreeMap;

use super::behind::Behind;
use super::split::{Walk, in_flight};
use super::{Milestone, Parts, Road, Timeline, largest_layer};
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
    let behind = by_destination
        .into_iter()
        .map(|(destination, of)| (destination, Behind::new(of.iter().copied())))
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
        .map(|(thread, sent)| (thread, calls_of_thread(road, &sent, &behind)))
        .collect();
    Calls {
        threads,
        thread_for_each,
        idle: Timeline::default(),
    }
}

fn calls_of_thread(road: Road, sent: &[&Sample], behind: &BTreeMap<u16, Behind>) -> Timeline {
    let returned = sent.iter().any(|sample| sample.returned_ns != NO_STAMP);
    let last_sent_ns = sent
        .iter()
        .map(|sample| sample.sent_ns)
        .max()
        .unwrap_or(NO_STAMP);
    let spans = sent.iter().filter_map(|sample| {
        if sample.returned_ns != NO_STAMP {
            Some((
                sample.sent_ns,
                sample.returned_ns,
                largest_layer(&call_parts(road, sample, behind.get(&sample.destination))),
            ))
        } else if returned && sample.sent_ns == last_sent_ns {
            Some((sample.sent_ns, i64::MAX, in_flight(road, sample)))
        } else {
            None
        }
    });
    Timeline::new(spans.collect())
}

/// Returns the time of each layer in a call. The return path is not stamped; its time is charged to whichever of
/// network and upper layers took longer outbound.
fn call_parts(road: Road, sample: &Sample, behind: Option<&Behind>) -> Parts {
    let mut parts = Parts::default();
    let mut walk = Walk::new(sample.sent_ns, sample.returned_ns);
    let handled = Milestone {
        stamp_ns: sample.handled_ns,
        layer: Layer::Application,
    };
    for milestone in road.milestones(sample).skip(1).chain([handled]) {
        if let Some((layer, from_ns, to_ns)) = walk.reach(milestone) {
            let before = behind
                .filter(|_| road.is_paced_by_consumer(layer))
                .map_or(Parts::default(), |behind| {
                    behind.before_leaving(from_ns, to_ns)
                });
            parts.add_all(&before);
            let rest_ns = to_ns.saturating_sub(from_ns);
            parts.add(layer, rest_ns.saturating_sub(before.sum()));
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
