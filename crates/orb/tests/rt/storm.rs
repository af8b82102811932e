//! Many callers at a threadpool that is too small for them: each call has one outcome and none is lost, however threads
//! start, end and are borrowed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::support::{Bench, call, note};
use deckwatch_orb::{
    Counter, ObjectRef, Orb, OrbBuilder, Policies, Priority, PriorityModel, PriorityModelPolicy,
    RequestBuffering, Scheduling, SystemExceptionKind as Kind, ThreadpoolLane,
};

/// Time limit for each wait, long enough for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

const CALLERS: u64 = 8;
const CALLS: u64 = 250;

/// Counts of outcomes.
#[derive(Default)]
struct Seen {
    served: AtomicU64,
    refused: AtomicU64,
}

fn lane(number: i16, dynamic_threads: u32) -> ThreadpoolLane {
    ThreadpoolLane {
        lane_priority: Priority::new(number).expect("not negative"),
        static_threads: 1,
        dynamic_threads,
    }
}

/// Many clients call two objects, one in the low lane and one in the high lane.
fn storm(dynamic_threads: u32, allow_borrowing: bool, buffering: Option<RequestBuffering>) -> Seen {
    let builder = Orb::builder().scheduling(Scheduling::Other);
    let builder = builder.dynamic_thread_idle(Duration::from_millis(1));
    let orb = builder.listen("127.0.0.1:0").and_then(OrbBuilder::build);
    let orb = orb.expect("a free port");
    let root = orb.root_poa().expect("it listens");
    root.the_poa_manager().activate().expect("a fresh manager");
    let lanes = [lane(5, dynamic_threads), lane(90, dynamic_threads)];
    let pool = orb
        .rt_orb()
        .create_threadpool_with_lanes(0, &lanes, allow_borrowing, buffering)
        .expect("no permission is needed");
    let bench = Arc::new(Bench::default());
    let objects = lanes.map(|lane| {
        let policies = Policies {
            threadpool: Some(pool),
            priority_model: Some(PriorityModelPolicy {
                priority_model: PriorityModel::ServerDeclared,
                server_priority: lane.lane_priority,
            }),
            ..Policies::default()
        };
        let name = lane.lane_priority.to_string();
        let poa = root.create_poa(&name, Some(root.the_poa_manager()), &policies);
        let poa = poa.expect("policies that go together");
        let id = poa.activate_object(bench.clone()).expect("an id");
        poa.id_to_reference(&id).expect("it is active").to_string()
    });
    let seen = Arc::new(Seen::default());
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let text = objects[caller as usize % 2].clone();
            let seen = Arc::clone(&seen);
            std::thread::spawn(move || {
                let client = Orb::builder().build().expect("a client needs nothing");
                let object = client.string_to_object(&text).expect("ours");
                call_often(&object.expect("not nil"), &seen);
                client.shutdown(true).expect("once");
            })
        })
        .collect();
    for caller in callers {
        caller.join().expect("each call has an outcome");
    }
    let served = seen.served.load(Ordering::SeqCst);
    assert_eq!(
        bench.calls.load(Ordering::SeqCst),
        served,
        "no call is served twice"
    );
    orb.shutdown(true).expect("once");
    let refused = orb.counters().read(Counter::RequestsRefused);
    assert_eq!(refused, seen.refused.load(Ordering::SeqCst));
    Arc::try_unwrap(seen).ok().expect("all callers have ended")
}

fn call_often(object: &ObjectRef, seen: &Seen) {
    for _ in 0..CALLS {
        match call(object, "ping") {
            Ok(()) => seen.served.fetch_add(1, Ordering::SeqCst),
            Err(exception) => {
                assert_eq!(exception.kind, Kind::Transient);
                seen.refused.fetch_add(1, Ordering::SeqCst)
            }
        };
    }
}

#[test]
fn every_call_is_served_where_nothing_limits_what_waits() {
    for buffering in [None, Some(RequestBuffering::default())] {
        for allow_borrowing in [false, true] {
            for dynamic_threads in [0, 1] {
                let seen = storm(dynamic_threads, allow_borrowing, buffering);
                let served = seen.served.load(Ordering::SeqCst);
                assert_eq!(served, CALLERS * CALLS);
            }
        }
    }
}

#[test]
fn every_call_is_served_or_refused_where_one_may_wait() {
    let buffering = Some(RequestBuffering {
        max_buffered_requests: 1,
        max_request_buffer_size: 0,
    });
    for allow_borrowing in [false, true] {
        let seen = storm(0, allow_borrowing, buffering);
        let outcomes = [&seen.served, &seen.refused].map(|count| count.load(Ordering::SeqCst));
        assert_eq!(outcomes.iter().sum::<u64>(), CALLERS * CALLS);
        assert_ne!(outcomes[0], 0);
    }
}

#[test]
fn one_ways_of_many_callers_keep_their_order_and_none_is_lost() {
    for allow_borrowing in [false, true] {
        let builder = Orb::builder().scheduling(Scheduling::Other);
        let orb = builder.listen("127.0.0.1:0").and_then(OrbBuilder::build);
        let orb = orb.expect("a free port");
        let root = orb.root_poa().expect("it listens");
        root.the_poa_manager().activate().expect("a fresh manager");
        let buffering = Some(RequestBuffering::default());
        let lanes = [lane(5, 0), lane(90, 0)];
        let pool = orb
            .rt_orb()
            .create_threadpool_with_lanes(0, &lanes, allow_borrowing, buffering)
            .expect("no permission is needed");
        let policies = Policies {
            threadpool: Some(pool),
            priority_model: Some(PriorityModelPolicy {
                priority_model: PriorityModel::ServerDeclared,
                server_priority: lanes[1].lane_priority,
            }),
            ..Policies::default()
        };
        let poa = root.create_poa("a", Some(root.the_poa_manager()), &policies);
        let poa = poa.expect("policies that go together");
        let bench = Arc::new(Bench::default());
        let id = poa.activate_object(bench.clone()).expect("an id");
        let text = poa.id_to_reference(&id).expect("it is active").to_string();
        let callers: Vec<_> = (0..4_u32)
            .map(|caller| {
                let text = text.clone();
                std::thread::spawn(move || {
                    let client = Orb::builder().build().expect("a client needs nothing");
                    let object = client.string_to_object(&text).expect("ours");
                    let object = object.expect("not nil");
                    for number in 0..200 {
                        note(&object, caller * 1_000 + number).expect("it goes");
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.join().expect("all are sent");
        }
        // One-ways may still be in transit.
        let begun = std::time::Instant::now();
        let count = || bench.order.lock().expect("nobody panics with it").len();
        while count() < 800 {
            assert!(begun.elapsed() < PATIENCE, "only {} have come", count());
            std::thread::yield_now();
        }
        let noted = bench.order.lock().expect("nobody panics with it").clone();
        for caller in 0..4 {
            let own = noted.iter().filter(|number| **number / 1_000 == caller);
            assert!(own.is_sorted(), "of caller {caller}");
        }
        orb.shutdown(true).expect("once");
    }
}
