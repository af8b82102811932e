//! Records of other machines, honest and hostile, joined.

use std::collections::BTreeMap;

use deckwatch_meter::sample::NO_STAMP;

use crate::host_clock::{Exchange, FarHost, HostClock};
use crate::join::{Joined, join};
use crate::part::playing::{UDP, stream};
use crate::plan::{JoinDestination, JoinPlan};
use crate::record::{ConsumerRecord, RecordFile, SupplierRecord};
use crate::scratch::Scratch;
use crate::stamp_clock::ClockEra;

const MS: i64 = 1_000_000;
/// How far the clocks of the supplier's and the consumer's host are ahead.
const AHEAD: [i64; 2] = [5_000_000 * MS, -3_000 * MS];
/// CLOCK_REALTIME less CLOCK_MONOTONIC of this machine.
const REALTIME: i64 = 1_700_000_000_000 * MS;

fn far(ahead_ns: i64) -> FarHost {
    let mut clock = HostClock::default();
    for t1_ns in [0, 50 * MS] {
        clock.note(Exchange {
            t1_ns,
            t2_ns: t1_ns + 10_000 + ahead_ns,
            t3_ns: t1_ns + 10_000 + ahead_ns,
            t4_ns: t1_ns + 20_000,
        });
    }
    FarHost {
        reference_ns: 0,
        clock,
        start_ns: 10 * MS + ahead_ns,
        near_start_ns: 10 * MS,
        until_ns: 100 * MS,
    }
}

/// Writes and joins records. Each message is sent at its due time and received 2 ms later.
fn joined(change: impl Fn(&mut SupplierRecord, &mut ConsumerRecord, usize)) -> Joined {
    let scratch = Scratch::new();
    let sent = RecordFile::supplier(&scratch.path("supplier"), 2, 1, 6, 64).expect("made");
    let got = RecordFile::consumer(&scratch.path("consumer"), 2, 0, 9, 64).expect("made");
    let (mut sent_page, mut sent) = sent.into_parts::<SupplierRecord>();
    let (mut got_page, mut got) = got.into_parts::<ConsumerRecord>();
    for (page, ahead_ns) in [&mut sent_page, &mut got_page].into_iter().zip(AHEAD) {
        let era = ClockEra {
            from_ns: ahead_ns,
            until_ns: 100 * MS + ahead_ns,
            offset_ns: REALTIME - ahead_ns,
            error_ns: 50,
        };
        page.update(|header| {
            header.set_eras(&[era]);
            header.overflows = u64::MAX;
            header.malformed = u64::MAX;
        });
    }
    for sequence in 0..6 {
        let due_ns = 10 * MS + sequence as i64 * MS;
        let record = &mut sent.slice_mut()[sequence];
        *record = SupplierRecord {
            sent_ns: due_ns + AHEAD[0],
            returned_ns: due_ns + 10 + AHEAD[0],
            transmit_realtime_ns: due_ns + 20 + REALTIME,
            ..SupplierRecord::default()
        };
        let arrival = &mut got.slice_mut()[sequence];
        *arrival = ConsumerRecord {
            sequence: sequence as u64,
            kernel_receive_realtime_ns: due_ns + MS + REALTIME,
            received_ns: due_ns + 2 * MS + AHEAD[1],
            handled_ns: due_ns + 3 * MS + AHEAD[1],
            execution_ns: 0,
            flags: 0,
        };
        change(record, arrival, sequence);
    }
    drop((sent_page, sent, got_page, got));
    join(&plan(&scratch, "supplier")).expect("joins")
}

fn plan(scratch: &Scratch, supplier: &str) -> JoinPlan {
    let mut stream = stream(UDP, 64, 1);
    stream.schedule.start_ns = 10 * MS;
    JoinPlan {
        far: BTreeMap::from([
            ("RTS".to_owned(), far(AHEAD[0])),
            ("H0".to_owned(), far(AHEAD[1])),
        ]),
        stream,
        from: "RTS".to_owned(),
        supplier_records: scratch.path(supplier),
        channel_endpoint: None,
        destinations: vec![JoinDestination {
            index: 0,
            host: "H0".to_owned(),
            listening: None,
            records: scratch.path("consumer"),
        }],
        captures: Vec::new(),
    }
}

#[test]
fn every_stamp_of_two_other_clocks_is_converted_to_this_one() {
    let joined = joined(|_, _, _| {});
    assert_eq!(joined.warnings, []);
    for (sample, sequence) in joined.destinations[0].samples.iter().zip(0..) {
        let due_ns = 10 * MS + sequence * MS;
        let stamps = [
            sample.due_ns,
            sample.sent_ns,
            sample.returned_ns,
            sample.kernel_transmit_ns,
            sample.kernel_receive_ns,
            sample.received_ns,
            sample.handled_ns,
        ];
        let since = stamps.map(|ns| ns - due_ns);
        assert_eq!(since, [0, 0, 10, 20, MS, 2 * MS, 3 * MS]);
        assert!(!sample.flags.clock_step);
    }
    // Counters are added up later.
    assert!(joined.destinations[0].receive_overflows <= 1 << 40);
    assert!(joined.destinations[0].malformed <= 1 << 40);
}

#[test]
fn stamps_from_another_year_are_not_used_and_nothing_overflows() {
    let joined = joined(|sent, got, sequence| match sequence {
        0 => got.received_ns = i64::MAX,
        1 => got.received_ns = i64::MIN,
        2 => (sent.sent_ns, sent.returned_ns) = (i64::MAX, i64::MIN),
        3 => (got.execution_ns, got.sequence) = (i64::MAX, u64::MAX),
        4 => got.kernel_receive_realtime_ns = i64::MAX,
        _ => sent.transmit_realtime_ns = i64::MIN,
    });
    let samples = &joined.destinations[0].samples;
    let lost: Vec<bool> = samples
        .iter()
        .map(|one| one.received_ns == NO_STAMP)
        .collect();
    assert_eq!(lost, [true, true, false, true, false, false]);
    assert_eq!(samples[2].sent_ns, NO_STAMP);
    let steps: Vec<bool> = samples.iter().map(|one| one.flags.clock_step).collect();
    assert_eq!(steps, [false, false, false, false, true, true]);
    let warnings: Vec<_> = joined
        .warnings
        .iter()
        .filter(|one| one.kind == "impossible-stamps")
        .collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[1].text.contains("H0 had 2 stamps"), "{warnings:?}");
}

#[test]
fn without_the_records_of_a_far_supplier_what_was_received_still_counts() {
    let scratch = Scratch::new();
    let got = RecordFile::consumer(&scratch.path("consumer"), 2, 0, 9, 64).expect("made");
    let (_, mut got) = got.into_parts::<ConsumerRecord>();
    got.slice_mut()[0] = ConsumerRecord {
        sequence: 3,
        received_ns: 15 * MS + AHEAD[1],
        ..ConsumerRecord::default()
    };
    let joined = join(&plan(&scratch, "nothing")).expect("joins");
    let samples = &joined.destinations[0].samples;
    assert_eq!(samples.len(), 6);
    assert_eq!(samples[3].received_ns, 15 * MS);
    assert!(samples.iter().all(|sample| sample.sent_ns == NO_STAMP));
    assert_eq!(joined.warnings[0].kind, "no-supplier-records");
    // A file that another machine made up.
    let forged = scratch.path("forged");
    let header = crate::record::Header {
        magic: crate::record::SUPPLIER_MAGIC,
        slots: 0,
        capacity: u64::MAX,
        ..Default::default()
    };
    let mut octets = zerocopy::IntoBytes::as_bytes(&header).to_vec();
    octets.resize(crate::record::HEADER_SIZE, 0);
    std::fs::write(&forged, octets).expect("writable");
    let joined = join(&plan(&scratch, "forged")).expect("joins");
    assert_eq!(joined.warnings[0].kind, "no-supplier-records");
}
