//! Streams between the parts of a carrier, as in a run: a supplier and a consumer, each a process, with their records.
//!
//! An adapter is a program that sends by a schedule and answers nothing. It has no transactions, and this is all that a
//! sweep measures of it. Where a sweep has an adapter, the built-in carriers are measured in the same way beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use deckwatch_carrier::carrier::NetworkPriority;
use deckwatch_carrier::carriers::{CarrierRef, found};
use deckwatch_carrier::conformance::{Launcher, Recorded, Spot, StreamOrder, record};
use deckwatch_carrier::external::FOLDERS_VARIABLE;
use deckwatch_meter::experiment::Measurement;
use deckwatch_meter::metrics::{
    CLIENT_TO_SERVER, DATA_RECEIVED, DataStream, END_TO_END_THROUGHPUT, Metric, Spread,
};
use deckwatch_testbed::Testbed;

use super::Sweep;
use super::hosts::Network;
use super::point::Place;
use crate::laboratory::LaboratoryError;
use crate::laboratory::condition::Places;
use crate::limits::{PARTS_PACED_MAX, PARTS_STREAM_MAX};

/// Equation 2, of messages that are sent by a schedule.
pub(super) const ONE_WAY: Metric = Metric {
    name: "one-way latency between parts",
    stem: "parts_one_way",
    ..CLIENT_TO_SERVER
};

/// Equation 7.
pub(super) const THROUGHPUT: Metric = Metric {
    name: "end-to-end throughput between parts",
    stem: "parts_end_to_end",
    ..END_TO_END_THROUGHPUT
};

/// Equation 12.
pub(super) const RECEIVED: Metric = Metric {
    name: "percent data received between parts",
    stem: "parts_received",
    ..DATA_RECEIVED
};

/// What one iteration between parts has shown.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Between {
    /// Messages that were due one at a time.
    paced: Recorded,
    /// How many they were.
    paced_messages: u64,
    /// Messages without pause.
    stream: DataStream,
}

/// Whether the carriers of a sweep are measured between parts too.
pub(super) fn are_measured(asked: &Sweep) -> bool {
    asked.far.is_none() && asked.carriers.iter().any(|it| it.external().is_some())
}

/// Runs streams between parts.
pub(super) struct Streams {
    launcher: Launcher,
    spots: [Spot; 2],
    paced_messages: u64,
    period: Duration,
    stream_messages: u64,
    network_priority: NetworkPriority,
    /// Adapters that have failed. They are left out from then on.
    pub(super) failed: BTreeSet<&'static str>,
}

impl Streams {
    pub(super) fn new(
        asked: &Sweep,
        places: &Places,
        bed: Option<&Testbed>,
    ) -> Result<Self, LaboratoryError> {
        let mut spots = [places.client, places.server].map(|place| {
            let mut spot = Spot::default();
            spot.placement.processors = place.processor.into_iter().collect();
            spot
        });
        if let (Some(Network { from, to, .. }), Some(bed)) = (&asked.network, bed) {
            for (spot, name) in spots.iter_mut().zip([from, to]) {
                let host = bed.host(name)?;
                spot.placement.namespace = host.namespace().cloned();
                spot.address = host.address().into();
            }
        }
        // No folder has a colon: each came out of such a list, or from the command line.
        let folders = std::env::join_paths(&found().folders).unwrap_or_default();
        Ok(Self {
            launcher: Launcher {
                program: asked.setup.program.clone(),
                arguments: vec!["part".into()],
                environment: vec![(FOLDERS_VARIABLE.into(), folders)],
            },
            spots,
            paced_messages: asked.messages.min(PARTS_PACED_MAX),
            period: asked.every.max(PERIOD),
            stream_messages: asked.messages.min(PARTS_STREAM_MAX),
            network_priority: asked.network_priority,
            failed: BTreeSet::new(),
        })
    }

    /// Measures one iteration.
    ///
    /// # Errors
    /// Why the carrier cannot be measured, as a sentence.
    pub(super) fn iterate(&self, carrier: CarrierRef, size: u32) -> Result<Between, String> {
        let run = |messages, period| {
            let order = StreamOrder {
                size_bytes: size,
                messages,
                warm_up: WARM_UP,
                period,
                network_priority: self.network_priority,
            };
            record(&self.launcher, carrier, order, self.spots.clone())
        };
        let paced = run(self.paced_messages, self.period)?;
        if paced.received == 0 {
            return Err("None of its messages arrived.".to_owned());
        }
        let streamed = run(self.stream_messages, NO_PAUSE)?;
        let stream = DataStream {
            message_size_octets: u64::from(size),
            messages: self.stream_messages,
            send_errors: streamed.send_errors,
            overflows: streamed.overflows,
            received: streamed.received,
            start_a_ns: streamed.start_a_ns,
            stop_a_ns: streamed.stop_a_ns,
            start_b_ns: streamed.start_b_ns,
            stop_b_ns: streamed.stop_b_ns,
            ..DataStream::default()
        };
        Ok(Between {
            paced,
            paced_messages: self.paced_messages,
            stream,
        })
    }
}

/// The time that an iteration between parts takes: its messages, and the start of its programs.
pub(super) fn planned(messages: u64) -> Duration {
    let paced = u32::try_from(messages.min(PARTS_PACED_MAX)).unwrap_or(u32::MAX);
    PERIOD * paced + START
}

/// A point of a carrier that is measured between parts alone.
pub(super) fn point(place: Place, between: &[Between]) -> Measurement {
    let mut point = Measurement {
        system: place.system,
        case: "streams between parts".to_owned(),
        group: String::new(),
        factors: place.factors,
        values: BTreeMap::new(),
        runs: BTreeMap::new(),
        ends: Vec::new(),
        // The histogram has transactions, of which there are none.
        samples: between.iter().map(|one| one.paced.received).sum(),
        histogram: Vec::new(),
    };
    add(&mut point, between);
    point
}

/// Adds what the iterations between parts have shown.
pub(super) fn add(point: &mut Measurement, between: &[Between]) {
    if between.is_empty() {
        return;
    }
    let latencies = |one: &Between| one.paced.latencies_ns.clone();
    let lost = |one: &Between| one.paced_messages.saturating_sub(one.paced.received);
    let all: Vec<i64> = between.iter().flat_map(latencies).collect();
    let values = &mut point.values;
    values.extend(ONE_WAY.of_messages(&all, between.iter().map(lost).sum()));
    values.insert("parts_one_way_samples".to_owned(), all.len() as f64);
    let medians = between.iter().map(|one| {
        let mut found = ONE_WAY.of_messages(&latencies(one), lost(one));
        found.remove(&ONE_WAY.key("p50"))
    });
    // Only where each iteration has one: values are compared by their iterations.
    if let Some(medians) = medians.collect() {
        point.runs.insert(ONE_WAY.key("p50"), medians);
    }
    let means = between.iter().filter_map(|one| {
        let times: Vec<f64> = latencies(one).into_iter().map(|ns| ns as f64).collect();
        Some(Spread::of(&times)?.mean)
    });
    point.runs.insert(ONE_WAY.key("mean"), means.collect());
    for (metric, of) in [
        (THROUGHPUT, END_TO_END_THROUGHPUT),
        (RECEIVED, DATA_RECEIVED),
    ] {
        let found = between.iter().map(|one| one.stream.values());
        let found: Vec<f64> = found
            .filter_map(|it| it.get(&of.run_key()).copied())
            .collect();
        values.extend(metric.of_streams(&found));
        point.runs.insert(metric.run_key(), found);
    }
    for one in between {
        *values.entry("parts_ledger_sent".to_owned()).or_default() += one.stream.messages as f64;
        for (name, count) in one.stream.ledger().entries() {
            *values.entry(format!("parts_ledger_{name}")).or_default() += count as f64;
        }
    }
}

/// Least time between two paced messages: each finds its receiver asleep, and none waits for another.
const PERIOD: Duration = Duration::from_millis(1);

/// The shortest period of a schedule: every message is due at once.
const NO_PAUSE: Duration = Duration::from_nanos(1);

/// Messages in front of each stream that do not count: they set up connections and warm up caches.
const WARM_UP: u64 = 20;

/// The usual time to start the programs of two streams.
const START: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn between(latencies_ns: &[i64], received: u64) -> Between {
        Between {
            paced: Recorded {
                received: latencies_ns.len() as u64,
                latencies_ns: latencies_ns.to_vec(),
                ..Recorded::default()
            },
            paced_messages: 3,
            stream: DataStream {
                message_size_octets: 100,
                messages: 4,
                received,
                stop_a_ns: 1_000,
                start_b_ns: 500,
                stop_b_ns: 1_600,
                ..DataStream::default()
            },
        }
    }

    #[test]
    fn an_adapter_has_one_way_latency_throughput_and_loss_and_no_transactions() {
        let place = Place {
            system: "zeromq".to_owned(),
            factors: BTreeMap::from([("size_octets".to_owned(), 100.0)]),
        };
        let found = point(place, &[between(&[10, 20, 30], 4), between(&[40, 60], 2)]);
        assert_eq!(found.values["parts_one_way_mean_ns"], 32.0);
        assert_eq!(found.values["parts_one_way_samples"], 5.0);
        assert_eq!(found.runs["parts_one_way_mean_ns"], [20.0, 50.0]);
        assert_eq!(found.runs["parts_received_share"], [1.0, 0.5]);
        assert_eq!(found.runs["parts_end_to_end_bit_s"], [2e9, 1e9]);
        assert_eq!(found.values["parts_ledger_sent"], 8.0);
        assert_eq!(found.values["parts_ledger_network"], 2.0);
        assert_eq!(found.samples, 5);
        let transactions = found
            .values
            .keys()
            .filter(|key| key.starts_with("transaction"));
        assert_eq!(transactions.count(), 0);
    }
}
