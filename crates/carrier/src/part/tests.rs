//! Parts as a coordinator uses them: through their pipes and their files.

use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

use deckwatch_meter::pacing::Arrivals;

use super::playing::*;
use super::*;
use crate::body::BodyPlan;
use crate::limits::{BACKLOG_BYTES_MAX, SEND_BUFFER_BYTES};
use crate::plan::*;
use crate::record::{ConsumerRecord, ReadRecords, SupplierRecord};
use crate::scratch::Scratch;
use crate::sender::SendError;
use crate::stamp_clock::Eras;
use crate::talk::{PartCommand, Progress};

/// Returns the stamps of each message that has all of them, from the records of both ends.
fn roads(
    supplier: &ReadRecords<SupplierRecord>,
    consumer: &ReadRecords<ConsumerRecord>,
    destination: u16,
) -> Vec<[i64; 5]> {
    let sent = supplier.of_destination(destination);
    let clocks = [supplier.header.clock(), consumer.header.clock()];
    let road = |arrival: &ConsumerRecord| {
        let sent = sent[usize::try_from(arrival.sequence).expect("small")];
        let convert = |clock: &Eras, realtime_ns| {
            let era = clock.around(sent.sent_ns, arrival.received_ns);
            era?.to_monotonic(realtime_ns)
        };
        Some([
            sent.sent_ns,
            convert(&clocks[0], sent.transmit_realtime_ns)?,
            convert(&clocks[1], arrival.kernel_receive_realtime_ns)?,
            arrival.received_ns,
            arrival.handled_ns,
        ])
    };
    let stamped = consumer.records.iter().filter(|arrival| {
        let sent = sent[usize::try_from(arrival.sequence).expect("small")];
        sent.transmit_realtime_ns != 0 && arrival.kernel_receive_realtime_ns != 0
    });
    stamped.filter_map(road).collect()
}

#[test]
fn a_stream_over_a_raw_carrier_leaves_whole_records_with_stamps_in_order() {
    for carrier in [UDP, TCP] {
        let scratch = Scratch::new();
        let stream = stream(carrier, 384, 200);
        let mut consumers: Vec<Playing> = [0, 1]
            .map(|destination| Playing::start(consumer(&stream, destination, &scratch)))
            .into();
        let endpoints: Vec<String> = consumers
            .iter_mut()
            .map(|consumer| consumer.ready().endpoint)
            .collect();
        let mut sending = Playing::start(supplier(&stream, &endpoints, &scratch));
        assert_eq!(sending.ready().size_bytes, Some(384));
        let go = soon();
        for playing in consumers.iter_mut().chain([&mut sending]) {
            playing.tell(go);
        }
        let done = sending.done();
        assert_eq!((done.progress.sent, done.progress.send_errors), (410, 0));
        let sent = ReadRecords::supplier(&scratch.path("supplier")).expect("whole");
        assert_eq!(sent.header.finished, 1);
        for (mut consumer, destination) in consumers.into_iter().zip(0..) {
            consumer.tell(PartCommand::Stop);
            assert_eq!(consumer.done().progress.received, 205);
            let got = ReadRecords::consumer(&scratch.path(&format!("consumer-{destination}")))
                .expect("whole");
            let sequences: Vec<u64> = got.records.iter().map(|record| record.sequence).collect();
            assert_eq!(sequences, (0..205).collect::<Vec<_>>(), "{carrier}");
            let roads = roads(&sent, &got, destination);
            // The kernel begins to stamp shortly after it is asked to.
            assert!(
                roads.len() > 150,
                "{carrier}: {} with all stamps",
                roads.len()
            );
            let errors = sent.header.clock().error_ns() + got.header.clock().error_ns();
            let error = i64::try_from(errors).expect("small");
            for road in roads {
                let in_order = road.windows(2).all(|pair| pair[0] <= pair[1] + error);
                assert!(in_order, "{carrier}: {road:?}, each +- {error}");
            }
        }
        for (due, record) in (0..).zip(sent.of_destination(0)) {
            let due_ns = sent.header.start_ns + due * 1_000_000;
            assert!(record.sent_ns >= due_ns, "sent before it was due");
            assert!(record.returned_ns >= record.sent_ns);
        }
    }
}

#[test]
fn a_dead_udp_consumer_costs_refusals_and_no_other_destination_anything() {
    let scratch = Scratch::new();
    let stream = stream(UDP, 64, 50);
    let gone = UdpSocket::bind((HOME, 0))
        .expect("loopback")
        .local_addr()
        .expect("bound");
    let mut alive = Playing::start(consumer(&stream, 0, &scratch));
    let endpoints = [alive.ready().endpoint, gone.to_string()];
    let mut sending = Playing::start(supplier(&stream, &endpoints, &scratch));
    sending.ready();
    sending.tell(soon());
    let done = sending.done();
    assert_eq!((done.progress.sent, done.progress.send_errors), (110, 0));
    alive.tell(PartCommand::Stop);
    assert_eq!(alive.done().progress.received, 55);
    let sent = ReadRecords::supplier(&scratch.path("supplier")).expect("whole");
    assert_eq!(sent.header.refusals, 55);
}

#[test]
fn a_peer_that_does_not_read_costs_its_own_messages_only() {
    let scratch = Scratch::new();
    let size = 64 << 10;
    let room = u64::from((SEND_BUFFER_BYTES * 2 + (8 << 20)) / size)
        + (BACKLOG_BYTES_MAX as u64 / u64::from(size));
    let stream = stream(TCP, size, room * 2);
    // Never accepts; the kernel completes the connection and buffers some octets.
    let deaf = TcpListener::bind((HOME, 0)).expect("loopback");
    let mut alive = Playing::start(consumer(&stream, 0, &scratch));
    let endpoints = [
        alive.ready().endpoint,
        deaf.local_addr().expect("bound").to_string(),
    ];
    let mut sending = Playing::start(supplier(&stream, &endpoints, &scratch));
    sending.ready();
    sending.tell(soon());
    // The backlog for the peer that does not read keeps the supplier running until `stop`. Wait until the other
    // destination has received every message accepted for it.
    let taken = loop {
        let sent = ReadRecords::supplier(&scratch.path("supplier")).expect("whole");
        let got = ReadRecords::consumer(&scratch.path("consumer-0")).expect("whole");
        let of_alive = sent.of_destination(0);
        let taken = of_alive.iter().filter(|record| record.error == 0).count();
        if sent.records.iter().all(|record| record.sent_ns != 0) && got.records.len() == taken {
            break taken;
        }
        std::thread::yield_now();
    };
    sending.tell(PartCommand::Stop);
    let done = sending.done();
    alive.tell(PartCommand::Stop);
    assert_eq!(alive.done().progress.received, taken as u64);
    let sent = ReadRecords::supplier(&scratch.path("supplier")).expect("whole");
    let errors = |index| {
        let records = sent.of_destination(index).iter();
        records
            .filter_map(|record| SendError::from_code(record.error))
            .collect::<Vec<_>>()
    };
    assert!(errors(1).len() > errors(0).len());
    assert_eq!(
        (errors(0).len() + errors(1).len()) as u64,
        done.progress.send_errors
    );
    assert!(
        errors(1)
            .iter()
            .all(|&error| error == SendError::BacklogFull)
    );
}

#[test]
fn a_killed_tcp_consumer_is_noted_and_the_schedule_goes_on() {
    let scratch = Scratch::new();
    let stream = stream(TCP, 64, 50);
    let listener = TcpListener::bind((HOME, 0)).expect("loopback");
    let endpoint = listener.local_addr().expect("bound").to_string();
    let mut sending = Playing::start(supplier(&stream, &[endpoint], &scratch));
    sending.ready();
    drop(listener);
    sending.tell(soon());
    let done = sending.done();
    assert_eq!(done.progress.sent, 55);
    let sent = ReadRecords::supplier(&scratch.path("supplier")).expect("whole");
    let last = sent.records.last().expect("there are records");
    assert_eq!(
        SendError::from_code(last.error),
        Some(SendError::Disconnected)
    );
}

#[test]
fn a_stopped_consumer_overflows_and_counts_it() {
    let scratch = Scratch::new();
    let mut stream = stream(UDP, 1000, 300);
    stream.schedule.arrivals = Arrivals::Bursts {
        period: Duration::from_millis(500),
        size: 305,
        gap: Duration::ZERO,
    };
    let mut plan = consumer(&stream, 0, &scratch);
    if let PartPlan::Consumer(plan) = &mut plan {
        plan.receive_buffer_bytes = Some(4096);
        plan.handle_for = Duration::from_millis(1);
    }
    let mut receiving = Playing::start(plan);
    let endpoint = receiving.ready().endpoint;
    let mut sending = Playing::start(supplier(&stream, &[endpoint], &scratch));
    sending.ready();
    sending.tell(soon());
    assert_eq!(sending.done().progress.sent, 305);
    receiving.tell(soon());
    let counted = |progress: Progress| progress.received + progress.overflows;
    while !matches!(receiving.hear(), PartEvent::Progress(progress) if counted(progress) == 305) {}
    receiving.tell(PartCommand::Stop);
    let done = receiving.done();
    assert!(done.progress.overflows > 0);
    assert_eq!(counted(done.progress), 305);
}

#[test]
fn a_part_ends_when_its_coordinator_is_gone() {
    let scratch = Scratch::new();
    let mut playing = Playing::start(consumer(&stream(UDP, 64, 1), 0, &scratch));
    playing.ready();
    let Playing {
        commands,
        mut events,
        thread,
    } = playing;
    drop(commands);
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut events, &mut rest).expect("read to its end");
    assert!(rest.contains("\"done\""), "{rest}");
    assert!(thread.join().expect("no panic"));
}

#[test]
fn what_cannot_be_is_said_and_nothing_started() {
    let scratch = Scratch::new();
    let mut large = stream(UDP, 70_000, 10);
    let plans = [
        supplier(&large, &["127.0.0.1:9".to_owned()], &scratch),
        supplier(&stream(UDP, 64, 10), &["nowhere".to_owned()], &scratch),
        supplier(&stream(UDP, 64, 10), &[], &scratch),
        {
            large.body = BodyPlan::Octets { size_bytes: 7 };
            consumer(&large, 0, &scratch)
        },
    ];
    for plan in plans {
        let mut playing = Playing::start(plan);
        let PartEvent::Error { text } = playing.hear() else {
            panic!("an error was to come");
        };
        assert!(text.ends_with('.'), "{text}");
        assert!(!playing.thread.join().expect("no panic"));
        drop(std::fs::remove_file(scratch.path("supplier")));
    }
}

#[test]
fn what_scheduling_is_refused_is_told_with_what_to_do() {
    let scratch = Scratch::new();
    let mut plan = consumer(&stream(UDP, 64, 1), 0, &scratch);
    if let PartPlan::Consumer(plan) = &mut plan {
        plan.scheduling.cpus = vec![4_000];
    }
    let mut playing = Playing::start(plan);
    let ready = playing.ready();
    assert_eq!(ready.warnings[0].kind, "scheduling-refused");
    assert!(
        ready.warnings[0].text.contains("taskset"),
        "{:?}",
        ready.warnings
    );
    assert!(ready.scheduling.contains("refused"), "{}", ready.scheduling);
    playing.tell(PartCommand::Stop);
    playing.done();
}

#[test]
fn a_dead_servant_costs_its_own_messages_only() {
    for carrier in [CORBA, ONEWAY] {
        let scratch = Scratch::new();
        let stream = stream(carrier, 64, 50);
        let [mut alive, mut dying] =
            [0, 1].map(|index| Playing::start(consumer(&stream, index, &scratch)));
        let endpoints = [alive.ready().endpoint, dying.ready().endpoint];
        let mut sending = Playing::start(supplier(&stream, &endpoints, &scratch));
        sending.ready();
        dying.tell(PartCommand::Stop);
        dying.done();
        sending.tell(soon());
        let done = sending.done();
        assert_eq!(done.progress.sent, 110);
        let path = scratch.path("consumer-0");
        while ReadRecords::consumer(&path).expect("whole").records.len() < 55 {
            std::thread::yield_now();
        }
        alive.tell(PartCommand::Stop);
        assert_eq!(alive.done().progress.received, 55);
        let sent = ReadRecords::supplier(&scratch.path("supplier")).expect("whole");
        assert!(
            sent.of_destination(0)
                .iter()
                .all(|record| record.error == 0)
        );
        let errors = sent
            .of_destination(1)
            .iter()
            .map(|record| SendError::from_code(record.error));
        assert!(
            errors
                .clone()
                .filter(|error| *error == Some(SendError::Disconnected))
                .count()
                >= 54,
            "{:?}",
            errors.collect::<Vec<_>>()
        );
    }
}

#[test]
fn events_that_give_way_in_a_full_queue_are_counted_and_said() {
    let scratch = Scratch::new();
    let mut stream = stream(EVENT, 64, 95);
    stream.schedule.arrivals = Arrivals::Bursts {
        period: Duration::from_secs(10),
        size: 100,
        gap: Duration::ZERO,
    };
    let ([mut names, mut serving], at, _) = channel(&stream, Some(2), &scratch);
    let mut plan = consumer(&stream, 0, &scratch);
    if let PartPlan::Consumer(plan) = &mut plan {
        plan.handle_for = Duration::from_millis(5);
    }
    let mut receiving = Playing::start(finding(plan, Some(&at)));
    receiving.ready();
    let mut sending = Playing::start(finding(
        supplier(&stream, &[String::new()], &scratch),
        Some(&at),
    ));
    sending.ready();
    for playing in [&mut sending, &mut serving, &mut receiving] {
        playing.tell(soon());
    }
    assert_eq!(sending.done().progress.sent, 100);
    // Each of the hundred messages is dropped, received, in the queue of two, or on the way.
    let all = |progress: Progress| progress.sent + progress.overflows == 100;
    while !matches!(serving.hear(), PartEvent::Progress(progress) if all(progress)) {}
    serving.tell(PartCommand::Stop);
    let done = serving.done();
    assert!(done.progress.overflows > 0);
    assert_eq!(done.warnings[0].kind, "channel-overflow");
    receiving.tell(PartCommand::Stop);
    let received = receiving.done().progress.received;
    assert_eq!(received + done.progress.overflows, 100);
    names.tell(PartCommand::Stop);
    names.done();
}
