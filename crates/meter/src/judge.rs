//! Computes a verdict from samples: which messages were late, by which rule, which layer is to blame, and whether the
//! late share is within the mission's budget.

mod asked;
mod handler;
mod invalid;
mod marks;
mod remedies;
mod sentences;
mod together;
mod verdict;
mod warnings;

use std::collections::BTreeMap;
use std::time::Duration;

pub use invalid::InvalidReason;
pub use marks::mark;
pub use remedies::add_remedies;
use together::Promise;
pub use together::{fail_after_death, invalidate, judge_together};
pub use verdict::{Evidence, verdict, worst, worst_of_flows};
use warnings::Noted;

use crate::blame::{Calls, Parts, Road, Splitter, calls, excess_layer, medians};
use crate::disturbance::Disturbance;
use crate::host_entry::HostEntry;
use crate::limits::SENDER_DEADLINE_DIVISOR;
use crate::pacing::Arrivals;
use crate::result::{Counts, DestinationResult, Interval, LateBudget, Verdict, Warning};
use crate::sample::{Layer, NO_STAMP, Sample};
use crate::statistics::{FAIL_LEVEL, LateShare, Percentile, percentiles};

/// The promises of a flow, and the path of its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// A message received later than this after its due time is late.
    pub deadline: Duration,
    /// The number of late messages allowed.
    pub budget: LateBudget,
    /// The largest burst of late messages for which the verdict must hold; if the mission asks for none, the longest
    /// disturbance of the run, and at least as many messages as are due within a deadline.
    pub clusters: Option<u64>,
    /// The arrival process of the schedule.
    pub arrivals: Arrivals,
    /// The path of the carrier's messages.
    pub road: Road,
    /// The mission itself disturbs the supplier's host, with a load or a stopped process. Then messages that the
    /// supplier sends late count as late. Otherwise a run is INVALID if its verdict depends on them.
    pub supplier_disturbed: bool,
    /// The supplier's host, for the remedy of an INVALID run.
    pub supplier_host: HostEntry,
    /// The supplier's threads have a real-time class.
    pub supplier_real_time: bool,
    /// The declared worst-case execution time of the consumers' handlers, if the mission declares one.
    pub worst_case: Option<Duration>,
}

/// The samples of one flow (over one carrier) at one destination.
#[derive(Debug)]
pub struct Destination<'a> {
    /// Index within the flow, as in its samples.
    pub index: u16,
    /// Destination host, for the result and for sentences.
    pub host: String,
    /// One sample for each message of the schedule, with stamps and duplicates filled in. Judging sorts the samples by
    /// sequence number and fills in the other fields.
    pub samples: &'a mut [Sample],
    /// Sends that returned an error, including refusals by the peer.
    pub send_errors: u64,
    /// Messages dropped by a full receive buffer.
    pub receive_overflows: u64,
}

/// The result of judging a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowJudgement {
    /// The results, in the order of the input.
    pub destinations: Vec<DestinationResult>,
    /// The worst verdict of the destinations.
    pub verdict: Verdict,
    /// Layers that the stamps of any destination do not separate.
    pub merged_layers: Vec<String>,
    /// Warnings for the reader. Each names its destination, or the number of destinations that it concerns.
    pub warnings: Vec<Warning>,
}

/// Judges one flow with all its destinations together, because [a call for one may delay the sends to the
/// others](Road::has_thread_for_each).
#[must_use]
pub fn judge(
    destinations: &mut [Destination<'_>],
    terms: &Terms,
    disturbance: &Disturbance,
) -> FlowJudgement {
    for destination in destinations.iter_mut() {
        mark(destination.samples, terms);
    }
    let supplier = calls(
        terms.road,
        destinations
            .iter()
            .flat_map(|destination| destination.samples.iter()),
    );
    let mut flow = FlowJudgement {
        destinations: Vec::new(),
        verdict: worst(&[]),
        merged_layers: Vec::new(),
        warnings: Vec::new(),
    };
    let mut noted = Vec::new();
    for destination in destinations {
        let layers = Layers::find(destination, terms, &supplier);
        let result = conclude(
            destination,
            terms,
            &disturbance.at(destination.index),
            &layers,
        );
        let merged = terms.road.merged(destination.samples);
        for name in &merged {
            if !flow.merged_layers.contains(name) {
                flow.merged_layers.push(name.clone());
            }
        }
        noted.push(Noted::new(&result, layers.sent_late, merged));
        flow.destinations.push(result);
    }
    flow.warnings = warnings::warnings(&noted, terms);
    let promise = Promise {
        budget: terms.budget,
        rate_hz: terms.arrivals.rate_hz(),
    };
    let mut together: Vec<_> = flow
        .destinations
        .iter_mut()
        .map(|destination| (destination, promise))
        .collect();
    together::correct(&mut together);
    flow.verdict = worst(&flow.destinations);
    flow
}

/// The time that the layers took at one destination.
struct Layers {
    names: [String; Layer::ALL.len()],
    /// Medians over all judged messages that were received.
    typical: Parts,
    /// Means over the late messages that were received.
    late_mean: Parts,
    /// Judged messages that the supplier, by its own fault, sent later than a fraction of the deadline.
    sent_late: u64,
}

impl Layers {
    /// Splits the messages and blames the late ones.
    fn find(destination: &mut Destination<'_>, terms: &Terms, supplier: &Calls) -> Self {
        let deadline_ns = nanoseconds(terms.deadline);
        let splitter = Splitter::new(terms.road, destination.samples, supplier);
        let received: Vec<(usize, Parts)> = (0..)
            .zip(destination.samples.iter())
            .filter(|(_, sample)| !sample.flags.warm_up && sample.received_ns != NO_STAMP)
            .map(|(index, sample)| (index, splitter.split(sample)))
            .collect();
        let stamped = received
            .iter()
            .filter(|(index, _)| !destination.samples[*index].flags.clock_step);
        let all: Vec<Parts> = stamped.map(|(_, parts)| *parts).collect();
        let typical = medians(&all);
        let sender_limit_ns = deadline_ns / i64::from(SENDER_DEADLINE_DIVISOR);
        let sent_late = received
            .iter()
            .filter(|(_, parts)| parts.of(Layer::Sender) > sender_limit_ns)
            .count() as u64;
        let mut late = Vec::new();
        for (index, parts) in received {
            let sample = &mut destination.samples[index];
            if sample.flags.late {
                sample.blame = Some(excess_layer(&parts, &typical, deadline_ns));
                late.push(parts);
            }
        }
        for index in 0..destination.samples.len() {
            let sample = destination.samples[index];
            if sample.flags.lost {
                destination.samples[index].blame = Some(splitter.lost_in(&sample, deadline_ns));
            }
        }
        blame_overflows(destination, &splitter);
        let names = terms.road.names(destination.samples);
        Self {
            names,
            typical,
            late_mean: mean(&late),
            sent_late,
        }
    }

    fn by_name(&self, parts: &Parts) -> BTreeMap<String, u64> {
        let mut map = BTreeMap::new();
        for layer in Layer::ALL {
            if let Ok(ns @ 1..) = u64::try_from(parts.of(layer)) {
                map.insert(self.names[layer as usize].clone(), ns);
            }
        }
        map
    }
}

/// Charges overflows of the receive buffer to the consumer. Without a tap, a dropped message has no receive stamp, as
/// if the network had lost it. The buffer was fullest where the message before waited longest in it. So that many of
/// the messages blamed on the network are blamed on the consumer instead: the number dropped, less the messages known
/// by a stamp to have reached the host.
fn blame_overflows(destination: &mut Destination<'_>, splitter: &Splitter<'_>) {
    let mut candidates = Vec::new();
    let mut before: Option<Sample> = None;
    for (index, sample) in destination.samples.iter().enumerate() {
        if sample.received_ns != NO_STAMP {
            before = (sample.kernel_receive_ns != NO_STAMP).then_some(*sample);
        } else if sample.blame == Some(Layer::Network)
            && let Some(before) = before
        {
            candidates.push((
                before.received_ns.saturating_sub(before.kernel_receive_ns),
                index,
                before,
            ));
        }
    }
    candidates.sort_by_key(|&(waited_ns, index, _)| (std::cmp::Reverse(waited_ns), index));
    let arrived = destination
        .samples
        .iter()
        .filter(|sample| sample.received_ns == NO_STAMP && sample.kernel_receive_ns != NO_STAMP)
        .count();
    let dropped = usize::try_from(destination.receive_overflows)
        .unwrap_or(usize::MAX)
        .saturating_sub(arrived);
    for &(_, index, before) in candidates.iter().take(dropped) {
        let parts = splitter.split(&before);
        let layer = if parts.of(Layer::Application) > parts.of(Layer::WakeUp) {
            Layer::Application
        } else {
            Layer::WakeUp
        };
        destination.samples[index].blame = Some(layer);
    }
}

/// Returns true if the stamps at both hosts show that the network held the message up.
fn is_in_network(sample: &Sample) -> bool {
    sample.blame == Some(Layer::Network)
        && sample.kernel_transmit_ns != NO_STAMP
        && sample.kernel_receive_ns != NO_STAMP
}

fn conclude(
    destination: &Destination<'_>,
    terms: &Terms,
    disturbance: &Disturbance,
    layers: &Layers,
) -> DestinationResult {
    let judged: Vec<&Sample> = destination
        .samples
        .iter()
        .filter(|sample| !sample.flags.warm_up)
        .collect();
    let counts = count(destination, &judged);
    // As if the late messages of one cause had been in time, and those that the same stops held up with them.
    let share_without = |is_cause: fn(&Sample) -> bool| {
        let held = asked::with_their_tails(terms, &judged, is_cause);
        let others = (0..).zip(&judged);
        let others = others.filter(|(_, sample)| sample.flags.late && !is_cause(sample));
        let others: Vec<u64> = others.map(|(position, _)| position).collect();
        let asked = asked::asked(terms, &judged, |sample| held.contains(&sample.sequence));
        LateShare::new(counts.due, &others, asked)
    };
    let share_without_sender = share_without(|sample| sample.blame == Some(Layer::Sender));
    let share = share_without(|_| false);
    let share_without_held =
        share_without(|sample| sample.flags.late && !sample.flags.lost && !is_in_network(sample));
    let latencies: Vec<i64> = judged
        .iter()
        .filter(|sample| !sample.flags.lost)
        .map(|sample| sample.received_ns.saturating_sub(sample.due_ns))
        .collect();
    let evidence = Evidence {
        terms,
        disturbance,
        counts: &counts,
        share: &share,
        latencies: &latencies,
        share_without_sender: &share_without_sender,
        share_without_held: &share_without_held,
    };
    let mut blame = BTreeMap::new();
    for layer in judged.iter().filter_map(|sample| sample.blame) {
        *blame
            .entry(layers.names[layer as usize].clone())
            .or_insert(0) += 1;
    }
    let gaps = marks::gaps(destination.samples);
    let quantiles = percentiles(&latencies, counts.lost);
    let verdict = verdict(&evidence);
    DestinationResult {
        index: destination.index,
        host: destination.host.clone(),
        counts,
        late_rate: share.rate,
        bursts: Some(share.bursts(terms.budget, verdict.kind, FAIL_LEVEL)),
        latency_intervals_ns: intervals(&quantiles),
        latency_ns: distribution(&latencies, &quantiles),
        inter_arrival_ns: distribution(&gaps, &percentiles(&gaps, 0)),
        clock_error_ns: (!disturbance.clock_error.is_zero())
            .then(|| nanoseconds(disturbance.clock_error).unsigned_abs()),
        clock_assumed_ns: disturbance
            .clock_assumed
            .filter(|_| !disturbance.clock_error.is_zero())
            .map(|assumed| nanoseconds(assumed).unsigned_abs()),
        blame,
        late_layers_ns: layers.by_name(&layers.late_mean),
        layers_ns: layers.by_name(&layers.typical),
        handler: terms
            .worst_case
            .map(|worst_case| handler::measured(destination.samples, worst_case)),
        verdict,
    }
}

fn count(destination: &Destination<'_>, judged: &[&Sample]) -> Counts {
    let of =
        |holds: fn(&Sample) -> bool| judged.iter().filter(|sample| holds(sample)).count() as u64;
    Counts {
        due: judged.len() as u64,
        received: of(|sample| sample.received_ns != NO_STAMP),
        late: of(|sample| sample.flags.late),
        lost: of(|sample| sample.flags.lost),
        late_by_inter_arrival: of(|sample| sample.flags.late_by_inter_arrival),
        out_of_order: of(|sample| sample.flags.out_of_order),
        duplicates: judged
            .iter()
            .map(|sample| u64::from(sample.flags.duplicates))
            .sum(),
        send_errors: destination.send_errors,
        receive_overflows: destination.receive_overflows,
        warm_up: (destination.samples.len() - judged.len()) as u64,
    }
}

fn intervals(percentiles: &[Percentile]) -> BTreeMap<String, Interval> {
    let interval = |percentile: &Percentile| Interval {
        lower: unsigned(percentile.lower),
        upper: percentile.upper.map(unsigned),
    };
    percentiles
        .iter()
        .map(|percentile| (percentile.name.to_owned(), interval(percentile)))
        .collect()
}

/// Returns the percentiles by name, and the minimum and maximum.
fn distribution(values: &[i64], percentiles: &[Percentile]) -> BTreeMap<String, u64> {
    let ends = [("min", values.iter().min()), ("max", values.iter().max())];
    let ends = ends
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), unsigned(*value?))));
    percentiles
        .iter()
        .map(|percentile| (percentile.name.to_owned(), unsigned(percentile.value)))
        .chain(ends)
        .collect()
}

/// A message received before it was due counts as 0.
fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

fn mean(all: &[Parts]) -> Parts {
    let mut mean = Parts::default();
    for layer in Layer::ALL {
        let sum: i128 = all.iter().map(|parts| i128::from(parts.of(layer))).sum();
        mean.add(
            layer,
            i64::try_from(sum / (all.len().max(1) as i128)).unwrap_or(i64::MAX),
        );
    }
    mean
}

pub(crate) fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
