//! The metrics of a sweep, by the equations of Irey, Harrison and Marlow, "Evaluating LAN Communications Performance
//! for a Real-Time Environment" (NTTCP).
//!
//! [`METRICS`] is the one table of names, equations, units and definitions: help texts, reports and the book print it.
//! The stamps have the paper's names: `a` and `d` are taken at the client (the transmitter), `b` and `c` at the server
//! (the receiver).

use std::collections::BTreeMap;

use crate::statistics::{Interval, mean_interval, median_interval, percentiles};

/// One metric of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// The paper's name.
    pub name: &'static str,
    /// Number of the paper's equation.
    pub equation: u8,
    /// The beginning of its keys in a result: `transaction` in `transaction_p50_ns`.
    pub stem: &'static str,
    /// The end of its keys: `ns`, `bit_s`, `messages_s`, `count` or `share`.
    pub unit: Unit,
    /// Whether each message has a value, or only each stream of messages (table 1 of the paper).
    pub scope: Scope,
    /// The definition in words.
    pub definition: &'static str,
}

/// The unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Bits of the application's messages a second.
    BitsPerSecond,
    /// Messages a second.
    MessagesPerSecond,
    /// A number of messages.
    Count,
    /// A share of one.
    Share,
}

impl Unit {
    /// The end of keys.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::BitsPerSecond => "bit_s",
            Self::MessagesPerSecond => "messages_s",
            Self::Count => "count",
            Self::Share => "share",
        }
    }

    /// The unit of an axis, as figures name it.
    #[must_use]
    pub const fn axis(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::BitsPerSecond => "bit/s",
            Self::Share => "share",
            Self::MessagesPerSecond | Self::Count => "",
        }
    }

    /// The unit in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Nanoseconds => "nanoseconds",
            Self::BitsPerSecond => "bits a second",
            Self::MessagesPerSecond => "messages a second",
            Self::Count => "messages",
            Self::Share => "share",
        }
    }
}

/// What one value of a metric is measured over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One message: NUM_ITERATIONS x NUM_MESSAGES values a point.
    Message,
    /// A stream of NUM_MESSAGES: NUM_ITERATIONS values a point.
    Stream,
}

/// Makes the constants and the table.
macro_rules! metrics {
    ($($(#[$doc:meta])* $constant:ident $name:literal $equation:literal $stem:literal $unit:ident $scope:ident $definition:literal;)*) => {
        $($(#[$doc])* pub const $constant: Metric = Metric {
            name: $name,
            equation: $equation,
            stem: $stem,
            unit: Unit::$unit,
            scope: Scope::$scope,
            definition: $definition,
        };)*

        /// All metrics, in the order of their equations.
        pub const METRICS: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    /// Equation 1.
    TRANSACTION "transaction time" 1 "transaction" Nanoseconds Message
        "From the client's send until the client has the server's answer of the same size: stop_time_d - start_time_a.";
    /// Equation 2.
    CLIENT_TO_SERVER "client to server one-way latency" 2 "client_to_server" Nanoseconds Message
        "From the client's send until the server has the message: stop_time_b - start_time_a.";
    /// Equation 3.
    SERVER_TO_CLIENT "server to client one-way latency" 3 "server_to_client" Nanoseconds Message
        "From the server's send until the client has the answer: stop_time_d - start_time_c.";
    /// Equation 4.
    CHAIN "total communication latency" 4 "chain" Nanoseconds Message
        "The sum of the one-way latencies along a chain of processes that ends at the first one.";
    /// Equation 5.
    TRANSMITTER_THROUGHPUT "transmitter interface throughput" 5 "transmitter" BitsPerSecond Stream
        "Octets given to send over the time from before the first send to after the last: bytes_sent / (stop_time_a - start_time_a).";
    /// Equation 6.
    RECEIVER_THROUGHPUT "receiver interface throughput" 6 "receiver" BitsPerSecond Stream
        "Octets received over the time from the first message to the last: bytes_received / (stop_time_b - start_time_b).";
    /// Equation 7.
    END_TO_END_THROUGHPUT "end-to-end throughput" 7 "end_to_end" BitsPerSecond Stream
        "Octets received over the time from before the first send to the last message received: bytes_received / (stop_time_b - start_time_a).";
    /// Equation 8.
    TRANSMITTER_MESSAGES "transmitter messages/sec" 8 "transmitter" MessagesPerSecond Stream
        "NUM_MESSAGES / (stop_time_a - start_time_a).";
    /// Equation 9.
    RECEIVER_MESSAGES "receiver messages/sec" 9 "receiver" MessagesPerSecond Stream
        "bytes_received / (stop_time_b - start_time_b) / MESSAGE_SIZE.";
    /// Equation 10.
    END_TO_END_MESSAGES "end-to-end messages/sec" 10 "end_to_end" MessagesPerSecond Stream
        "bytes_received / (stop_time_b - start_time_a) / MESSAGE_SIZE.";
    /// Equation 11.
    SENDTO_ERRORS "sendto errors" 11 "sendto_errors" Count Stream
        "Messages that the transmitter's send refused, because its buffer or its interface's queue was full.";
    /// Equation 12.
    DATA_RECEIVED "percent data received" 12 "received" Share Stream
        "bytes_received / bytes_sent. Sent octets include the messages that ended in a sendto error.";
}

/// The four stamps of one transaction (figure 1 of the paper), nanoseconds of one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The client sends.
    pub start_a_ns: i64,
    /// The server has the message.
    pub stop_b_ns: i64,
    /// The server sends the answer.
    pub start_c_ns: i64,
    /// The client has the answer.
    pub stop_d_ns: i64,
    /// How long the processes between client and server had the message (figure 3 of the paper).
    pub inside_ns: i64,
}

impl Transaction {
    /// Equation 1.
    #[must_use]
    pub const fn time_ns(&self) -> i64 {
        self.stop_d_ns - self.start_a_ns
    }

    /// Equation 2.
    #[must_use]
    pub const fn client_to_server_ns(&self) -> i64 {
        self.stop_b_ns - self.start_a_ns
    }

    /// Equation 3.
    #[must_use]
    pub const fn server_to_client_ns(&self) -> i64 {
        self.stop_d_ns - self.start_c_ns
    }

    /// Equation 4: the sum of the one-way latencies along the chain that ends at the client.
    #[must_use]
    pub const fn chain_ns(&self) -> i64 {
        self.client_to_server_ns() - self.inside_ns + self.server_to_client_ns()
    }
}

/// What one stream of messages has shown (figure 2 of the paper).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataStream {
    /// MESSAGE_SIZE, octets.
    pub message_size_octets: u64,
    /// NUM_MESSAGES that were given to send.
    pub messages: u64,
    /// Messages that send refused, but for those of `queue_drops`.
    pub send_errors: u64,
    /// Messages that send refused because the queue of the interface was full.
    pub queue_drops: u64,
    /// Messages that a process between transmitter and receiver dropped: its socket's buffer was full, or its send
    /// refused.
    pub hop_drops: u64,
    /// Messages that an event channel dropped: the queue of the consumer was full, or its push failed.
    pub channel_drops: u64,
    /// Frames that a full queue of the emulated network dropped. A datagram that has one frame is lost with it.
    pub network_queue_drops: u64,
    /// Messages that the receiver's socket dropped because its buffer was full.
    pub overflows: u64,
    /// Different messages that the receiver got.
    pub received: u64,
    /// Before the first send.
    pub start_a_ns: i64,
    /// After the last send.
    pub stop_a_ns: i64,
    /// The receiver has the first message.
    pub start_b_ns: i64,
    /// The receiver has the last message.
    pub stop_b_ns: i64,
}

impl DataStream {
    /// Returns the values of equations 5 to 12 by key. A rate over no time, or of nothing received, is left out.
    #[must_use]
    pub fn values(&self) -> BTreeMap<String, f64> {
        let sent = self.messages as f64;
        let received = self.received as f64;
        let bits = self.message_size_octets as f64 * 8.0;
        let transmitting = seconds(self.start_a_ns, self.stop_a_ns);
        let heard = self.received > 0;
        let receiving = seconds(self.start_b_ns, self.stop_b_ns).filter(|_| heard);
        let whole = seconds(self.start_a_ns, self.stop_b_ns).filter(|_| heard);
        let over = |number: f64, time: Option<f64>| time.map(|time| number / time);
        let share = (self.messages > 0).then(|| received / sent);
        [
            (TRANSMITTER_THROUGHPUT, over(sent * bits, transmitting)),
            (RECEIVER_THROUGHPUT, over(received * bits, receiving)),
            (END_TO_END_THROUGHPUT, over(received * bits, whole)),
            (TRANSMITTER_MESSAGES, over(sent, transmitting)),
            (RECEIVER_MESSAGES, over(received, receiving)),
            (END_TO_END_MESSAGES, over(received, whole)),
            (
                SENDTO_ERRORS,
                Some((self.send_errors + self.queue_drops) as f64),
            ),
            (DATA_RECEIVED, share),
        ]
        .into_iter()
        .filter_map(|(metric, value)| Some((metric.run_key(), value?)))
        .collect()
    }
}

impl DataStream {
    /// Returns what became of each message.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        let refused = self.send_errors + self.queue_drops;
        let left = self.messages.saturating_sub(refused + self.received);
        // The socket's counter also counts what is no message of this stream.
        let overflows = self.overflows.min(left);
        let mut left = left - overflows;
        let mut take = |drops: u64| {
            let taken = drops.min(left);
            left -= taken;
            taken
        };
        Ledger {
            send_errors: self.send_errors,
            queue_drops: self.queue_drops,
            hops: take(self.hop_drops),
            channels: take(self.channel_drops),
            // Of a datagram in several frames, more than one may be dropped.
            network_queues: take(self.network_queue_drops),
            overflows,
            network: left,
            received: self.received,
        }
    }
}

/// What became of the messages of a stream. The sum is the number sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Refused by send.
    pub send_errors: u64,
    /// Dropped by the queue of the transmitter's interface.
    pub queue_drops: u64,
    /// Dropped by a process between transmitter and receiver.
    pub hops: u64,
    /// Dropped by an event channel.
    pub channels: u64,
    /// Dropped by a full queue of the emulated network.
    pub network_queues: u64,
    /// Dropped by the receiver's socket.
    pub overflows: u64,
    /// Lost in between: on the network, or in the middleware, where no counter saw it.
    pub network: u64,
    /// Received.
    pub received: u64,
}

impl Ledger {
    /// The entries by name, in the order of the way.
    #[must_use]
    pub const fn entries(&self) -> [(&'static str, u64); 8] {
        [
            ("send_errors", self.send_errors),
            ("queue_drops", self.queue_drops),
            ("hops", self.hops),
            ("channel_drops", self.channels),
            ("network_queue_drops", self.network_queues),
            ("receive_overflows", self.overflows),
            ("network", self.network),
            ("received", self.received),
        ]
    }

    /// The number of messages sent.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.entries().iter().map(|(_, count)| count).sum()
    }
}

fn seconds(start_ns: i64, stop_ns: i64) -> Option<f64> {
    (stop_ns > start_ns).then(|| (stop_ns - start_ns) as f64 / 1e9)
}

impl Metric {
    /// The key of its values of single iterations, for example `end_to_end_bit_s`.
    #[must_use]
    pub fn run_key(&self) -> String {
        if self.stem == SENDTO_ERRORS.stem {
            return self.stem.to_owned();
        }
        format!("{}_{}", self.stem, self.unit.key())
    }

    /// The key of one statistic, for example `transaction_mean_ns`.
    #[must_use]
    pub fn key(&self, statistic: &str) -> String {
        if self.stem == SENDTO_ERRORS.stem {
            return format!("{}_{statistic}", self.stem);
        }
        format!("{}_{statistic}_{}", self.stem, self.unit.key())
    }

    /// Returns the statistics of a metric that each message has: those of [`Self::of_streams`] and the percentiles that
    /// the sample supports. `lost` messages have no value; they are beyond every percentile.
    #[must_use]
    pub fn of_messages(&self, values_ns: &[i64], lost: u64) -> BTreeMap<String, f64> {
        let values: Vec<f64> = values_ns.iter().map(|ns| *ns as f64).collect();
        let mut found = self.of_streams(&values);
        for percentile in percentiles(values_ns, lost) {
            found.insert(self.key(percentile.name), percentile.value as f64);
        }
        // Lost messages have no place in the order, and are beyond the median.
        if lost == 0 && found.contains_key(&self.key("p50")) {
            self.add_interval("p50", median_interval(&values), &mut found);
        }
        found
    }

    /// Adds the ends of a 95% interval, which regards that values depend on the ones before.
    fn add_interval(
        &self,
        statistic: &str,
        interval: Option<Interval>,
        found: &mut BTreeMap<String, f64>,
    ) {
        if let Some(Interval { low, high }) = interval {
            found.insert(self.key(&format!("{statistic}_low")), low);
            found.insert(self.key(&format!("{statistic}_high")), high);
        }
    }

    /// Returns mean (equation 13) with the ends of its interval, variance (14), standard deviation (15), minimum and
    /// maximum by key. The values are in the order of their measurement.
    #[must_use]
    pub fn of_streams(&self, values: &[f64]) -> BTreeMap<String, f64> {
        let Some(spread) = Spread::of(values) else {
            return BTreeMap::new();
        };
        let mut found = BTreeMap::from([
            (self.key("mean"), spread.mean),
            (self.key("min"), spread.min),
            (self.key("max"), spread.max),
        ]);
        self.add_interval("mean", mean_interval(values), &mut found);
        if let Some(variance) = spread.variance {
            found.insert(self.key("sd"), variance.sqrt());
            found.insert(format!("{}2", self.key("variance")), variance);
        }
        found
    }
}

/// The statistics of equations 13 to 15, and the bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Equation 13.
    pub mean: f64,
    /// Equation 14, over one less than the number of values. One value has none.
    pub variance: Option<f64>,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
}

impl Spread {
    /// Returns the spread of the values; `None` without any.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let (first, count) = (*values.first()?, values.len() as f64);
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Self {
            mean,
            variance: (values.len() > 1).then(|| squares / (count - 1.0)),
            min: values.iter().copied().fold(first, f64::min),
            max: values.iter().copied().fold(first, f64::max),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_1_to_4_are_differences_and_a_sum_of_stamps() {
        let one = Transaction {
            start_a_ns: 1_000,
            stop_b_ns: 1_700,
            start_c_ns: 1_900,
            stop_d_ns: 2_400,
            inside_ns: 0,
        };
        let latencies = [one.client_to_server_ns(), one.server_to_client_ns()];
        assert_eq!((one.time_ns(), latencies), (1_400, [700, 500]));
        assert_eq!(one.chain_ns(), 1_200);
        let inside_ns = 40;
        assert_eq!(Transaction { inside_ns, ..one }.chain_ns(), 1_160);
    }

    #[test]
    fn equations_5_to_12_are_those_of_an_example_by_hand() {
        // 10 messages of 125 octets, 2 sendto errors, 6 received. The transmitter takes 1 ms, the receiver 2 ms from its
        // first message, which arrives 1 ms after the start.
        let stream = DataStream {
            message_size_octets: 125,
            messages: 10,
            send_errors: 1,
            queue_drops: 1,
            hop_drops: 0,
            channel_drops: 0,
            network_queue_drops: 0,
            overflows: 1,
            received: 6,
            start_a_ns: 5_000_000,
            stop_a_ns: 6_000_000,
            start_b_ns: 6_000_000,
            stop_b_ns: 8_000_000,
        };
        let values = stream.values();
        let expected = [
            ("transmitter_bit_s", 10_000_000.0),
            ("receiver_bit_s", 3_000_000.0),
            ("end_to_end_bit_s", 2_000_000.0),
            ("transmitter_messages_s", 10_000.0),
            ("receiver_messages_s", 3_000.0),
            ("end_to_end_messages_s", 2_000.0),
            ("sendto_errors", 2.0),
            ("received_share", 0.6),
        ];
        assert_eq!(values.len(), expected.len(), "{values:?}");
        for (key, value) in expected {
            assert!((values[key] - value).abs() < 1e-6, "{key}: {values:?}");
        }
    }

    #[test]
    fn the_ledger_adds_up_to_the_messages_sent() {
        let stream = DataStream {
            messages: 20,
            send_errors: 1,
            queue_drops: 2,
            hop_drops: 1,
            channel_drops: 4,
            network_queue_drops: 5,
            overflows: 3,
            received: 3,
            ..DataStream::default()
        };
        let ledger = stream.ledger();
        let counts = ledger.entries().map(|(_, count)| count);
        assert_eq!(counts, [1, 2, 1, 4, 5, 3, 1, 3]);
        assert_eq!(ledger.sum(), 20);
        // Two frames of one datagram may be dropped: what is left over is not lost twice.
        let frames = DataStream {
            network_queue_drops: 50,
            ..stream
        };
        assert_eq!(
            (frames.ledger().network_queues, frames.ledger().network),
            (6, 0)
        );
        assert_eq!(frames.ledger().sum(), 20);
        let more_dropped = DataStream {
            overflows: 90,
            ..stream
        };
        assert_eq!(more_dropped.ledger().overflows, 14);
        assert_eq!(more_dropped.ledger().sum(), 20);
    }

    #[test]
    fn a_stream_of_which_nothing_arrived_has_no_rate_of_the_receiver() {
        let stream = DataStream {
            message_size_octets: 64,
            messages: 3,
            start_a_ns: 1,
            stop_a_ns: 2,
            ..DataStream::default()
        };
        let values = stream.values();
        assert_eq!(values["received_share"], 0.0);
        assert!(!values.contains_key("receiver_bit_s"), "{values:?}");
        assert!(!values.contains_key("end_to_end_bit_s"), "{values:?}");
    }

    #[test]
    fn equations_13_to_15_divide_by_one_less_than_the_number_of_values() {
        let values = TRANSACTION.of_messages(&[2, 4, 4, 4, 5, 5, 7, 9], 0);
        assert_eq!(values["transaction_mean_ns"], 5.0);
        assert!((values["transaction_variance_ns2"] - 32.0 / 7.0).abs() < 1e-12);
        assert!((values["transaction_sd_ns"] - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        let bounds = (values["transaction_min_ns"], values["transaction_max_ns"]);
        assert_eq!(bounds, (2.0, 9.0));
        let one = END_TO_END_THROUGHPUT.of_streams(&[3.0]);
        assert!(!one.contains_key("end_to_end_sd_bit_s"), "{one:?}");
        assert!(TRANSACTION.of_messages(&[], 4).is_empty());
    }

    #[test]
    fn lost_messages_are_beyond_every_percentile() {
        let values: Vec<i64> = (1..=1_000).collect();
        let whole = TRANSACTION.of_messages(&values, 0);
        let lossy = TRANSACTION.of_messages(&values, 1_000);
        assert_eq!(whole["transaction_p50_ns"], 500.0);
        assert_eq!(lossy["transaction_p50_ns"], 1_000.0);
        assert!(!lossy.contains_key("transaction_p99_ns"), "{lossy:?}");
    }

    #[test]
    fn each_metric_has_keys_of_its_own_and_the_equations_are_in_order() {
        let mut keys: Vec<String> = METRICS.iter().map(Metric::run_key).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), METRICS.len());
        assert!(METRICS.is_sorted_by_key(|metric| metric.equation));
        assert_eq!(METRICS.len(), 12);
    }
}
