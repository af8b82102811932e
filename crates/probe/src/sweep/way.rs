//! Joins what the processes along a way have seen of its messages.

use std::collections::HashMap;

use deckwatch_meter::metrics::{DataStream, Transaction};

use super::point::Iteration;
use super::talk::{Arrived, Streamed};

/// All views of the transactions of one stream in one iteration.
pub(super) struct Answered {
    pub(super) first: u64,
    /// Sent, and the answer received (0: never).
    pub(super) sent: Vec<(i64, i64)>,
    /// Of each process behind the client, in the order of the way.
    pub(super) arrived: Vec<Arrived>,
}

/// Of each stream: what its transmitter did, and what arrived at each process behind it.
pub(super) type Streams = Vec<(Streamed, Vec<Arrived>)>;

/// Joins an iteration of one or more simultaneous streams.
pub(super) fn iteration(
    (size_octets, messages): (u32, u64),
    answered: &[Answered],
    streams: &Streams,
) -> Iteration {
    let transactions: Vec<Transaction> = answered.iter().flat_map(transactions).collect();
    let all = messages * answered.len() as u64;
    let streams = streams
        .iter()
        .map(|(streamed, arrived)| stream((size_octets, messages), *streamed, arrived));
    Iteration {
        lost: all.saturating_sub(transactions.len() as u64),
        transactions,
        intervals_ns: Vec::new(),
        stream: streams.reduce(together).unwrap_or_default(),
    }
}

/// The times between the starts of successive transactions.
pub(super) fn intervals_ns(answered: &[Answered]) -> Vec<i64> {
    let of_one = |one: &Answered| {
        let pairs = one.sent.windows(2);
        pairs.map(|pair| pair[1].0 - pair[0].0).collect::<Vec<_>>()
    };
    answered.iter().flat_map(of_one).collect()
}

/// Joins the stamps of all processes by sequence number.
fn transactions(answered: &Answered) -> Vec<Transaction> {
    let Some((server, between)) = answered.arrived.split_last() else {
        return Vec::new();
    };
    let mut inside_ns: HashMap<u64, i64> = HashMap::new();
    for (sequence, received_ns, sent_ns) in between.iter().flat_map(|one| &one.answered) {
        *inside_ns.entry(*sequence).or_default() += sent_ns - received_ns;
    }
    let join = |(sequence, stop_b_ns, start_c_ns): &(u64, i64, i64)| {
        let place = usize::try_from(sequence.checked_sub(answered.first)?).ok()?;
        let (start_a_ns, stop_d_ns) = answered.sent.get(place)?;
        (*stop_d_ns != 0).then(|| Transaction {
            start_a_ns: *start_a_ns,
            stop_b_ns: *stop_b_ns,
            start_c_ns: *start_c_ns,
            stop_d_ns: *stop_d_ns,
            inside_ns: inside_ns.get(sequence).copied().unwrap_or_default(),
        })
    };
    server.answered.iter().filter_map(join).collect()
}

fn stream(
    (size_octets, messages): (u32, u64),
    streamed: Streamed,
    arrived: &[Arrived],
) -> DataStream {
    let nothing = Arrived::default();
    let (server, between) = arrived.split_last().unwrap_or((&nothing, &[]));
    DataStream {
        message_size_octets: u64::from(size_octets),
        messages,
        send_errors: streamed.send_errors,
        queue_drops: streamed.queue_drops,
        hop_drops: between.iter().map(|one| one.overflows + one.refused).sum(),
        channel_drops: 0,
        network_queue_drops: 0,
        overflows: server.overflows,
        received: server.received,
        start_a_ns: streamed.start_a_ns,
        stop_a_ns: streamed.stop_a_ns,
        start_b_ns: server.first_ns,
        stop_b_ns: server.last_ns,
    }
}

/// Two simultaneous streams as one: from the earlier start to the later stop.
fn together(one: DataStream, other: DataStream) -> DataStream {
    let heard = [one, other].into_iter().filter(|of| of.received > 0);
    DataStream {
        message_size_octets: one.message_size_octets,
        messages: one.messages + other.messages,
        send_errors: one.send_errors + other.send_errors,
        queue_drops: one.queue_drops + other.queue_drops,
        hop_drops: one.hop_drops + other.hop_drops,
        channel_drops: one.channel_drops + other.channel_drops,
        network_queue_drops: one.network_queue_drops + other.network_queue_drops,
        overflows: one.overflows + other.overflows,
        received: one.received + other.received,
        start_a_ns: one.start_a_ns.min(other.start_a_ns),
        stop_a_ns: one.stop_a_ns.max(other.stop_a_ns),
        start_b_ns: heard.clone().map(|of| of.start_b_ns).min().unwrap_or(0),
        stop_b_ns: heard.map(|of| of.stop_b_ns).max().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streamed() -> Streamed {
        Streamed {
            start_a_ns: 1,
            stop_a_ns: 5,
            send_errors: 1,
            queue_drops: 0,
        }
    }

    #[test]
    fn stamps_are_joined_by_sequence_number_and_a_missing_answer_is_lost() {
        let answered = Answered {
            first: 10,
            sent: vec![(100, 190), (200, 0), (300, 395)],
            arrived: vec![Arrived {
                // The answer to 11 was lost on the way back; 12 and 10 came in another order; 9 is of an earlier run.
                answered: vec![(12, 340, 345), (9, 1, 2), (11, 250, 255), (10, 140, 150)],
                ..Arrived::default()
            }],
        };
        let arrived = Arrived {
            received: 2,
            first_ns: 3,
            last_ns: 9,
            ..Arrived::default()
        };
        let found = iteration((16, 3), &[answered], &vec![(streamed(), vec![arrived])]);
        let times: Vec<i64> = found
            .transactions
            .iter()
            .map(Transaction::time_ns)
            .collect();
        assert_eq!((times, found.lost), (vec![95, 90], 1));
        assert_eq!(found.stream.ledger().sum(), 3);
        assert_eq!(found.stream.stop_b_ns, 9);
    }

    #[test]
    fn the_latency_of_a_chain_has_no_time_inside_its_processes() {
        let hop = |answered| Arrived {
            answered,
            ..Arrived::default()
        };
        // 100 -> 120, inside 7, 127 -> 150, inside 9, 159 -> 170, inside 4, 174 -> 200.
        let answered = Answered {
            first: 5,
            sent: vec![(100, 200)],
            arrived: vec![
                hop(vec![(5, 120, 127)]),
                hop(vec![(5, 150, 159)]),
                hop(vec![(5, 170, 174)]),
            ],
        };
        let found = transactions(&answered);
        assert_eq!(found[0].chain_ns(), 20 + 23 + 11 + 26);
        assert_eq!(found[0].client_to_server_ns(), 70);
    }

    #[test]
    fn simultaneous_streams_last_from_the_first_start_to_the_last_stop() {
        let one = |start_a_ns, received, stop_b_ns| {
            let arrived = Arrived {
                received,
                first_ns: 10 * i64::from(received > 0),
                last_ns: stop_b_ns,
                ..Arrived::default()
            };
            let between = Arrived {
                overflows: 1,
                refused: 2,
                ..Arrived::default()
            };
            let streamed = Streamed {
                start_a_ns,
                stop_a_ns: 6,
                ..Streamed::default()
            };
            (streamed, vec![between, arrived])
        };
        let found = iteration(
            (16, 5),
            &[],
            &vec![one(4, 5, 30), one(2, 2, 20), one(3, 0, 0)],
        );
        let stream = found.stream;
        assert_eq!(
            (stream.messages, stream.received, stream.hop_drops),
            (15, 7, 9)
        );
        assert_eq!(
            (stream.start_a_ns, stream.start_b_ns, stream.stop_b_ns),
            (2, 10, 30)
        );
        let ledger = stream.ledger();
        assert_eq!((ledger.hops, ledger.network, ledger.sum()), (8, 0, 15));
    }
}
