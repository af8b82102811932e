//! Other instruments in the same run, of the same protocol and size, and the targets against them.

mod instrument;
mod server;

use std::collections::BTreeMap;
use std::time::Instant;

use deckwatch_carrier::carrier::Framing;
use deckwatch_meter::experiment::{Bound, Measurement, Ratio, Standing, TargetVerdict};
use deckwatch_meter::metrics::{END_TO_END_THROUGHPUT, TRANSACTION};

pub use instrument::Instrument;
use instrument::{Extent, Protocol};

use super::variant::Variant;
use super::{SIZE, Sweep};
use crate::laboratory::Condition;
use crate::laboratory::condition::Places;
use crate::laboratory::session::Session;

/// Results of other instruments beside one variant.
#[derive(Default)]
pub(super) struct Others {
    /// By key, an entry for each iteration.
    values: BTreeMap<&'static str, Vec<f64>>,
    /// Messages of a run of half a second, of instruments that send a number of messages.
    counts: BTreeMap<&'static str, u64>,
}

/// Runs the other instruments beside an iteration of udp or tcp. An instrument that is missing or fails is skipped.
pub(super) fn run_beside(
    session: &mut Session<'_>,
    asked: &Sweep,
    places: &Places,
    (variant, size): (Variant, u32),
    others: &mut Others,
) {
    let is_udp = variant.carrier.framing() == Framing::Datagram;
    let is_transport = is_udp || variant.carrier.framing() == Framing::Length;
    let delays = variant.socket.delays;
    let others_have = usize::from(delays);
    let is_alike =
        is_transport && variant.factors().len() == others_have && asked.network.is_none();
    let protocol = Protocol { is_udp, delays };
    for &instrument in asked.beside.iter().filter(|_| is_alike) {
        if !instrument.speaks(protocol) {
            continue;
        }
        if let Some(reason) = instrument.missing() {
            session.skip(instrument.name(), &reason);
            continue;
        }
        if instrument.is_of_throughput() && places.condition == Condition::Pinned {
            session.skip(instrument.name(), ONE_PROCESSOR);
            continue;
        }
        let begun = Instant::now();
        let ran = run(instrument, places, (protocol, size), others);
        places.rest(begun.elapsed());
        if let Some(value) = session.or_skip(instrument.name(), ran) {
            let (key, _) = instrument.keys();
            others.values.entry(key).or_default().push(value);
        }
    }
}

/// One run. An instrument that sends a number of messages first runs for a second, to learn its rate: a run of a second
/// meets the pause that the kernel makes in each second of a real-time thread.
fn run(
    instrument: Instrument,
    places: &Places,
    (protocol, size): (Protocol, u32),
    others: &mut Others,
) -> Result<f64, crate::laboratory::LaboratoryError> {
    let run = |extent| instrument.run(places, (protocol, size), extent);
    if !instrument.is_of_throughput() {
        return run(Extent::Second);
    }
    let count = match others.counts.get(instrument.name()) {
        Some(count) => *count,
        None => {
            let bit_s = run(Extent::Second)?;
            let count = (bit_s / 8.0 / f64::from(size) / 2.0).max(1.0) as u64;
            others.counts.insert(instrument.name(), count);
            count
        }
    };
    run(Extent::Messages(count))
}

/// Adds the results of other instruments, and ours over theirs, iteration by iteration.
pub(super) fn add_ratios(point: &mut Measurement, others: &Others) {
    for instrument in Instrument::ALL {
        let (key, ratio) = instrument.keys();
        let own = if instrument.is_of_throughput() {
            END_TO_END_THROUGHPUT.run_key()
        } else {
            TRANSACTION.key("p50")
        };
        let (Some(theirs), Some(own)) = (others.values.get(key), point.runs.get(&own)) else {
            continue;
        };
        // An iteration that it missed would shift the pairs.
        if theirs.len() != own.len() {
            continue;
        }
        let ratios: Vec<f64> = own
            .iter()
            .zip(theirs)
            .map(|(own, theirs)| own / theirs)
            .collect();
        for (key, values) in [(key, theirs.clone()), (ratio, ratios)] {
            let median = Ratio::of(values.clone()).map(|found| (key.to_owned(), found.median));
            point.values.extend(median);
            point.runs.insert(key.to_owned(), values);
        }
    }
}

/// Ours over the other instruments, point by point. Those of the fastest instrument of each metric are targets.
pub(super) fn standings(points: &[Measurement], places: &Places) -> Vec<Standing> {
    let of_point = |point: &Measurement| {
        let of = |instrument: &Instrument| standing(point, *instrument, places);
        Instrument::ALL.iter().filter_map(of).collect::<Vec<_>>()
    };
    points.iter().flat_map(of_point).collect()
}

fn standing(point: &Measurement, instrument: Instrument, places: &Places) -> Option<Standing> {
    let ratio = point.ratio(instrument.keys().1)?;
    let size = point.factors.get(SIZE).copied().unwrap_or_default();
    let metric = if instrument.is_of_throughput() {
        "end-to-end throughput"
    } else {
        "median transaction time"
    };
    let bound = instrument.bound();
    let reason = bound.and_then(|_| not_judged(instrument, places));
    let (mut verdict, mut rounds_more) = (None, None);
    if let (Some(bound), None) = (bound, &reason) {
        let (found, more) = ratio.against(bound);
        (verdict, rounds_more) = (Some(found), more);
    }
    let open = (verdict == Some(TargetVerdict::Open)).then(|| match ratio.lower {
        Some(_) => "the interval has the bound inside".to_owned(),
        None => "too few iterations for an interval, or they resemble their neighbours".to_owned(),
    });
    Some(Standing {
        measure: format!(
            "{} at {size} octets: {metric} over that of {}",
            point.system,
            instrument.name()
        ),
        condition: places.words(),
        ours: Some(ratio),
        target: bound.map_or_else(|| "shown beside it".to_owned(), Bound::words),
        peers: Vec::new(),
        verdict,
        reason: reason.or(open),
        rounds_more,
    })
}

/// Why throughput is not compared on one processor.
const ONE_PROCESSOR: &str = "on one processor, its client in a real-time class does not let its server run: compare \
                             throughput with --condition two-cores";

/// Why a target is not judged here. A comparison needs ends that are in the same places and meet the same pauses.
fn not_judged(instrument: Instrument, places: &Places) -> Option<String> {
    if cfg!(debug_assertions) {
        return Some("this program was built without optimisation".to_owned());
    }
    let (wanted, words) = if instrument.is_of_throughput() {
        let words = "throughput is judged with --condition two-cores";
        (Condition::TwoCores, words)
    } else {
        let words = "transactions are judged with --condition pinned";
        (Condition::Pinned, words)
    };
    if places.is_refused {
        return Some("this host does not permit SCHED_FIFO".to_owned());
    }
    (places.condition != wanted).then(|| words.to_owned())
}

#[cfg(test)]
mod tests;
