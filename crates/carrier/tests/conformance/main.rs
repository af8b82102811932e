//! The contract of every carrier, within what it promises: tested for the built-in ones and for one that a test adds.

mod bulk;
mod parts;
mod queue;
mod stand;

use deckwatch_carrier::carrier::Delivery;
use deckwatch_carrier::carriers::CarrierRef;
use deckwatch_carrier::join::join;
use deckwatch_carrier::plan::{
    ConsumerPlan, DestinationPlan, JoinDestination, JoinPlan, PartPlan, SupplierPlan,
};
use deckwatch_carrier::record::ReadRecords;
use deckwatch_carrier::scheduling::Scheduling;
use deckwatch_carrier::talk::PartCommand;
use deckwatch_meter::sample::Layer;
use deckwatch_os::clock;

use queue::Queue;
use stand::{End, HOME, Playing, Sending, Stand};

fn carriers() -> impl Iterator<Item = CarrierRef> {
    CarrierRef::all().chain([CarrierRef::new(&Queue)])
}

fn may_lose(carrier: CarrierRef) -> bool {
    carrier.delivery() == Delivery::BestEffort
}

/// Asserts that each accepted message arrived once and in order; for a carrier that may lose messages, that each
/// arrival was sent.
#[track_caller]
fn assert_delivered(carrier: CarrierRef, accepted: &[u64], taken: &[u64]) {
    if may_lose(carrier) {
        let invented = taken.iter().find(|sequence| !accepted.contains(sequence));
        assert_eq!(invented, None, "{carrier}");
        assert!(!taken.is_empty(), "{carrier}: nothing arrived");
    } else {
        assert_eq!(taken, accepted, "{carrier}");
    }
}

#[test]
fn messages_arrive_once_and_in_order() {
    for carrier in carriers() {
        let stand = Stand::new(carrier, 384);
        let end = stand.listen();
        let mut sending = stand.connect(&end);
        for sequence in 0..300 {
            assert!(sending.send(sequence), "{carrier}: {sequence}");
            // Like a schedule: no more than a few messages are on the way.
            end.taken
                .wait((sequence as usize).saturating_sub(8), may_lose(carrier));
        }
        end.taken.wait(300, may_lose(carrier));
        assert_delivered(carrier, &(0..300).collect::<Vec<_>>(), &end.stop());
    }
}

#[test]
fn messages_of_every_size_arrive_up_to_the_largest_that_the_carrier_takes() {
    for carrier in carriers() {
        let largest = carrier.needs().size_bytes_max;
        let sizes = [8, 9, 1_471, 1_473, 65_507, 65_508, 1 << 20];
        for size in sizes.into_iter().filter(|&size| size <= largest) {
            let stand = Stand::new(carrier, size);
            let end = stand.listen();
            let mut sending = stand.connect(&end);
            for sequence in 0..3 {
                assert!(sending.send(sequence), "{carrier}: {size} octets");
                while end.taken.sequences().len() as u64 <= sequence {
                    sending.flush();
                    std::thread::yield_now();
                }
            }
            assert_eq!(end.stop(), [0, 1, 2], "{carrier}: {size} octets");
        }
    }
}

#[test]
fn each_of_several_destinations_gets_every_message() {
    for carrier in carriers() {
        let stand = Stand::new(carrier, 64);
        let ends = [stand.listen(), stand.listen(), stand.listen()];
        let mut senders = senders(&stand, &ends);
        for sequence in 0..100 {
            for sending in &mut senders {
                assert!(sending.send(sequence), "{carrier}: {sequence}");
            }
            for end in &ends {
                end.taken.wait(sequence as usize, may_lose(carrier));
            }
        }
        for end in ends {
            end.taken.wait(100, may_lose(carrier));
            assert_delivered(carrier, &(0..100).collect::<Vec<_>>(), &end.stop());
        }
    }
}

/// Creates one sender for each destination, or one for all if one send of the carrier serves all.
fn senders(stand: &Stand, ends: &[End]) -> Vec<Sending> {
    let count = if stand.stream.carrier.needs().one_slot {
        1
    } else {
        ends.len()
    };
    ends[..count].iter().map(|end| stand.connect(end)).collect()
}

#[test]
fn a_peer_that_stops_taking_holds_up_neither_the_sender_nor_other_destinations() {
    for carrier in carriers() {
        let stand = Stand::new(carrier, 64);
        let ends = [stand.listen(), stand.listen()];
        let mut senders = senders(&stand, &ends);
        ends[0].taken.hold(true);
        let mut accepted = Vec::new();
        for sequence in 0..2 {
            // The call must return; it returns an error if it timed out. The end of the test checks the result.
            if senders[0].send(sequence) {
                accepted.push(sequence);
            }
            for sending in &mut senders[1..] {
                assert!(sending.send(sequence), "{carrier}: {sequence}");
            }
        }
        let [held, other] = ends;
        other.taken.wait(2, may_lose(carrier));
        held.taken.hold(false);
        held.taken.wait(accepted.len(), may_lose(carrier));
        assert_delivered(carrier, &[0, 1], &other.stop());
        // A call that timed out may have been delivered; its message is neither lost nor out of order.
        let taken = held.stop();
        assert!(taken.is_sorted(), "{carrier}: {taken:?}");
        if !may_lose(carrier) {
            let lost = accepted.iter().find(|sequence| !taken.contains(sequence));
            assert_eq!(lost, None, "{carrier}");
        }
    }
}

#[test]
fn a_sender_whose_peer_has_ended_still_returns() {
    for carrier in carriers() {
        let stand = Stand::new(carrier, 64);
        let end = stand.listen();
        let mut sending = stand.connect(&end);
        assert!(sending.send(0), "{carrier}");
        end.taken.wait(1, may_lose(carrier));
        assert_eq!(end.stop(), [0], "{carrier}");
        for sequence in 1..4 {
            // The result does not matter: the message has no receiver.
            let _ = sending.send(sequence);
        }
    }
}

#[test]
fn every_carrier_goes_through_parts_and_join() {
    for carrier in carriers().filter(|carrier| carrier.needs().channel.is_none()) {
        let stand = Stand::new(carrier, 384);
        let mut consumer = Playing::start(PartPlan::Consumer(ConsumerPlan {
            stream: stand.stream.clone(),
            destination: 0,
            host: "SONAR".to_owned(),
            address: HOME,
            channel: None,
            topic: None,
            handle_for: std::time::Duration::ZERO,
            is_measured: false,
            receive_buffer_bytes: None,
            scheduling: Scheduling::default(),
            priority: None,
            network_priority: Default::default(),
            records: stand.folder.join("consumer"),
        }));
        let ready = consumer.ready();
        let mut supplier = Playing::start(PartPlan::Supplier(SupplierPlan {
            stream: stand.stream.clone(),
            address: HOME,
            destinations: vec![DestinationPlan {
                index: 0,
                host: "SONAR".to_owned(),
                endpoint: ready.endpoint,
            }],
            channel: None,
            topic: None,
            priority: None,
            network_priority: Default::default(),
            scheduling: Scheduling::default(),
            records: stand.folder.join("supplier"),
        }));
        supplier.ready();
        let go = PartCommand::Go {
            start_ns: clock::monotonic_ns() + 5_000_000,
        };
        consumer.command(go);
        supplier.command(go);
        supplier.finish();
        while {
            let read = ReadRecords::consumer(&stand.folder.join("consumer")).expect("records");
            read.records.len() < 50 && !may_lose(carrier)
        } {
            std::thread::yield_now();
        }
        consumer.command(PartCommand::Stop);
        consumer.finish();
        let joined = join(&JoinPlan {
            far: std::collections::BTreeMap::new(),
            stream: stand.stream.clone(),
            from: "RTS".to_owned(),
            supplier_records: stand.folder.join("supplier"),
            channel_endpoint: None,
            destinations: vec![JoinDestination {
                index: 0,
                host: "SONAR".to_owned(),
                listening: ready.listening,
                records: stand.folder.join("consumer"),
            }],
            captures: Vec::new(),
        })
        .expect("joined");
        let samples = &joined.destinations[0].samples;
        assert_eq!(samples.len(), 50, "{carrier}");
        // Without captures, the stamps of a middleware are missing, and its layers are reported under one name.
        let merged = carrier.road().merged(samples);
        let middleware = merged
            .iter()
            .any(|name| name.contains(Layer::Middleware.name()));
        assert_eq!(
            middleware,
            carrier.road().middleware,
            "{carrier}: {merged:?}"
        );
    }
}
