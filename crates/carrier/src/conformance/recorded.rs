//! [`record`]: one short stream between a supplier and a consumer, and what their records show.

use std::time::{Duration, Instant};

use super::PATIENCE;
use super::process::{Launcher, Spot};
use super::trial::{Traffic, Trial};
use crate::carrier::NetworkPriority;
use crate::carriers::CarrierRef;
use crate::record::{ConsumerRecord, ReadRecords, SupplierRecord};

/// The messages of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOrder {
    /// Octets of a message.
    pub size_bytes: u32,
    /// Messages that count.
    pub messages: u64,
    /// Messages in front of these, which do not count.
    pub warm_up: u64,
    /// Time between two messages. One nanosecond sends without pause.
    pub period: Duration,
    /// Priority of the packets of all parts.
    pub network_priority: NetworkPriority,
}

/// What a stream has shown. All times are nanoseconds of CLOCK_MONOTONIC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Sends that were refused.
    pub send_errors: u64,
    /// Different messages that were received.
    pub received: u64,
    /// Messages that the consumer's socket dropped, as far as the carrier counts them.
    pub overflows: u64,
    /// For each received message, the time from before its send until the consumer's code had it.
    pub latencies_ns: Vec<i64>,
    /// Before the first send.
    pub start_a_ns: i64,
    /// After the last send.
    pub stop_a_ns: i64,
    /// The consumer has the first message.
    pub start_b_ns: i64,
    /// The consumer has the last message.
    pub stop_b_ns: i64,
}

/// Runs one stream between two hosts that have one clock, with a process for each part.
///
/// # Errors
/// A sentence: a part cannot be started, failed, or did not end.
pub fn record(
    launcher: &Launcher,
    carrier: CarrierRef,
    order: StreamOrder,
    spots: [Spot; 2],
) -> Result<Recorded, String> {
    let traffic = Traffic {
        size_bytes: order.size_bytes,
        messages: order.messages,
        warm_up: order.warm_up,
        period: order.period,
    };
    let mut trial = Trial::between(launcher, carrier, (traffic, order.network_priority), spots)?;
    trial.listen(1)?;
    trial.connect()?;
    trial.go()?;
    trial.supplier_done()?;
    settle(&trial)?;
    trial.stop_parts()?;
    joined(order.warm_up, &trial.sent()?, &trial.received(0)?)
}

/// Waits until all accepted messages are there, or no more come.
fn settle(trial: &Trial<'_>) -> Result<(), String> {
    let accepted = accepted(trial.sent()?.of_destination(0)).count();
    let until = Instant::now() + PATIENCE;
    let mut last = (0, Instant::now());
    while Instant::now() < until && last.1.elapsed() < QUIET {
        let received = trial.received(0)?.records.len();
        if received >= accepted {
            break;
        }
        if received != last.0 {
            last = (received, Instant::now());
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

fn accepted(sent: &[SupplierRecord]) -> impl Iterator<Item = &SupplierRecord> {
    sent.iter()
        .filter(|record| record.sent_ns != 0 && record.error == 0)
}

/// Joins the records of both ends.
fn joined(
    warm_up: u64,
    sent: &ReadRecords<SupplierRecord>,
    received: &ReadRecords<ConsumerRecord>,
) -> Result<Recorded, String> {
    let sent = sent.of_destination(0);
    let mut first_receipts: Vec<Option<i64>> = vec![None; sent.len()];
    for record in &received.records {
        let place = usize::try_from(record.sequence).ok();
        let place = place.and_then(|place| first_receipts.get_mut(place));
        let place = place.ok_or_else(|| {
            let sequence = record.sequence;
            format!("Message {sequence} was received, and was never sent.")
        })?;
        place.get_or_insert(record.received_ns);
    }
    let warm_up = usize::try_from(warm_up).unwrap_or(usize::MAX);
    let counted: Vec<_> = sent.iter().zip(first_receipts).skip(warm_up).collect();
    let receipts = || counted.iter().filter_map(|(_, received_ns)| *received_ns);
    let tried = || counted.iter().filter(|(record, _)| record.sent_ns != 0);
    let is_refused = |record: &SupplierRecord| record.error != 0;
    Ok(Recorded {
        send_errors: tried().filter(|(record, _)| is_refused(record)).count() as u64,
        received: receipts().count() as u64,
        overflows: received.header.overflows,
        latencies_ns: (counted.iter())
            .filter_map(|(record, received_ns)| Some((*received_ns)? - record.sent_ns))
            .collect(),
        start_a_ns: tried().map(|(record, _)| record.sent_ns).min().unwrap_or(0),
        stop_a_ns: (tried().map(|(record, _)| record.returned_ns))
            .max()
            .unwrap_or(0),
        start_b_ns: receipts().min().unwrap_or(0),
        stop_b_ns: receipts().max().unwrap_or(0),
    })
}

/// Time without an arrival after which no more is expected.
const QUIET: Duration = Duration::from_millis(500);

/// Time between two looks at the consumer's records. Each reads all of them, beside the consumer.
const LOOK: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Header;

    fn records<R>(records: Vec<R>, capacity: u64) -> ReadRecords<R> {
        let header = Header {
            slots: 1,
            capacity,
            overflows: 3,
            ..Header::default()
        };
        ReadRecords { header, records }
    }

    fn sent(sent_ns: i64, error: u32) -> SupplierRecord {
        SupplierRecord {
            sent_ns,
            returned_ns: sent_ns + 10,
            error,
            ..SupplierRecord::default()
        }
    }

    fn received(sequence: u64, received_ns: i64) -> ConsumerRecord {
        ConsumerRecord {
            sequence,
            received_ns,
            ..ConsumerRecord::default()
        }
    }

    #[test]
    fn the_warm_up_refused_sends_and_second_copies_do_not_count() {
        let supplier = vec![sent(100, 0), sent(200, 0), sent(300, 7), sent(400, 0)];
        let consumer = vec![
            received(0, 900),
            received(3, 450),
            received(1, 260),
            received(3, 470),
        ];
        let found = joined(1, &records(supplier, 4), &records(consumer, 8)).expect("true records");
        let wanted = Recorded {
            send_errors: 1,
            received: 2,
            overflows: 3,
            latencies_ns: vec![60, 50],
            start_a_ns: 200,
            stop_a_ns: 410,
            start_b_ns: 260,
            stop_b_ns: 450,
        };
        assert_eq!(found, wanted);
    }

    #[test]
    fn a_message_that_was_never_sent_is_a_lie() {
        let error = joined(
            0,
            &records(vec![sent(1, 0)], 1),
            &records(vec![received(1, 2)], 2),
        );
        assert!(error.expect_err("a lie").contains("Message 1 was received"));
    }
}
