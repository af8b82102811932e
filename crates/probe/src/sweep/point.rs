//! One point of a sweep: the values of all its iterations, as one measurement.

use std::collections::BTreeMap;

use deckwatch_meter::experiment::Measurement;
use deckwatch_meter::histogram::LatencyHistogram;
use deckwatch_meter::metrics::{
    CHAIN, CLIENT_TO_SERVER, DataStream, METRICS, Metric, SERVER_TO_CLIENT, Scope, Spread,
    TRANSACTION, Transaction,
};

/// What one iteration has shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Iteration {
    pub(super) transactions: Vec<Transaction>,
    /// Transactions without an answer.
    pub(super) lost: u64,
    /// Times between the starts of successive transactions, if an interval was asked for.
    pub(super) intervals_ns: Vec<i64>,
    pub(super) stream: DataStream,
}

/// The place of a point: what is varied.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) system: String,
    pub(super) factors: BTreeMap<String, f64>,
}

/// One latency of a transaction.
type Latency = fn(&Transaction) -> i64;

const LATENCIES: [(Metric, Latency); 4] = [
    (TRANSACTION, Transaction::time_ns),
    (CLIENT_TO_SERVER, Transaction::client_to_server_ns),
    (SERVER_TO_CLIENT, Transaction::server_to_client_ns),
    (CHAIN, Transaction::chain_ns),
];

/// Returns the measurement of a point's iterations; `None` without any.
pub(super) fn measurement(place: &Place, iterations: &[Iteration]) -> Option<Measurement> {
    if iterations.is_empty() {
        return None;
    }
    let lost = iterations.iter().map(|one| one.lost).sum();
    let all = |of: Latency| -> Vec<i64> {
        let transactions = iterations.iter().flat_map(|one| &one.transactions);
        transactions.map(of).collect()
    };
    let mut values = BTreeMap::new();
    let mut runs: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (metric, of) in LATENCIES {
        values.extend(metric.of_messages(&all(of), lost));
        let means = iterations.iter().filter_map(|one| {
            let times: Vec<f64> = one.transactions.iter().map(|it| of(it) as f64).collect();
            Some(Spread::of(&times)?.mean)
        });
        runs.insert(metric.key("mean"), means.collect());
        // Only where each iteration has one: values are compared by their iterations.
        let medians = iterations.iter().map(|one| {
            let times: Vec<i64> = one.transactions.iter().map(of).collect();
            metric
                .of_messages(&times, one.lost)
                .remove(&metric.key("p50"))
        });
        if let Some(medians) = medians.collect() {
            runs.insert(metric.key("p50"), medians);
        }
    }
    for iteration in iterations {
        for (key, value) in iteration.stream.values() {
            runs.entry(key).or_default().push(value);
        }
        for (name, count) in iteration.stream.ledger().entries() {
            *values.entry(format!("ledger_{name}")).or_default() += count as f64;
        }
    }
    for metric in METRICS.iter().filter(|one| one.scope == Scope::Stream) {
        if let Some(found) = runs.get(&metric.run_key()) {
            values.extend(metric.of_streams(found));
        }
    }
    values.insert("transactions_lost".to_owned(), lost as f64);
    let messages: u64 = iterations.iter().map(|one| one.stream.messages).sum();
    values.insert("ledger_sent".to_owned(), messages as f64);
    let mut histogram = LatencyHistogram::new();
    let times = all(Transaction::time_ns);
    times.iter().for_each(|ns| histogram.record(*ns));
    Some(Measurement {
        system: place.system.clone(),
        case: "transactions, then a stream".to_owned(),
        group: String::new(),
        factors: place.factors.clone(),
        values,
        runs,
        ends: Vec::new(),
        samples: times.len() as u64,
        histogram: histogram.recorded().collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iteration(times: &[i64], received: u64) -> Iteration {
        let transaction = |time: &i64| Transaction {
            start_a_ns: 0,
            stop_b_ns: time / 2,
            start_c_ns: time / 2 + 10,
            stop_d_ns: *time,
            inside_ns: 0,
        };
        Iteration {
            transactions: times.iter().map(transaction).collect(),
            lost: 1,
            intervals_ns: Vec::new(),
            stream: DataStream {
                message_size_octets: 100,
                messages: 4,
                received,
                start_a_ns: 0,
                stop_a_ns: 1_000,
                start_b_ns: 500,
                stop_b_ns: 1_600,
                ..DataStream::default()
            },
        }
    }

    #[test]
    fn a_point_has_a_value_for_each_message_and_for_each_iteration() {
        let place = Place {
            system: "udp".to_owned(),
            factors: BTreeMap::from([("size_octets".to_owned(), 100.0)]),
        };
        let both = [iteration(&[100, 200], 4), iteration(&[300], 2)];
        let found = measurement(&place, &both).expect("two iterations");
        assert_eq!(found.values["transaction_mean_ns"], 200.0);
        assert_eq!(found.values["transaction_max_ns"], 300.0);
        assert_eq!(found.values["client_to_server_mean_ns"], 100.0);
        assert_eq!(found.values["server_to_client_mean_ns"], 90.0);
        assert_eq!(found.values["chain_mean_ns"], 190.0);
        assert_eq!(found.runs["transaction_mean_ns"], [150.0, 300.0]);
        assert_eq!(found.runs["received_share"], [1.0, 0.5]);
        assert_eq!(found.values["received_mean_share"], 0.75);
        assert_eq!(found.values["end_to_end_mean_bit_s"], 1.5e9);
        assert_eq!(found.values["ledger_sent"], 8.0);
        assert_eq!(found.values["ledger_received"], 6.0);
        assert_eq!(found.values["ledger_network"], 2.0);
        assert_eq!((found.samples, found.values["transactions_lost"]), (3, 2.0));
        assert_eq!(measurement(&place, &[]), None);
    }
}
