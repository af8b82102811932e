//! Lanes and callers that spin (poll without sleeping) for the next message.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::rt::limit_real_time;
use crate::support;
use crate::support::{Server, call, call_octets, socket_path};
use deckwatch_orb::transport::SPIN_FOREVER;
use deckwatch_orb::{BuildError, Counter, Orb};
use deckwatch_os::schedule::{self, Class};

fn endpoints() -> [String; 3] {
    [
        "127.0.0.1:0".to_owned(),
        format!("unix:{}", socket_path()),
        format!("shm:{}", socket_path()),
    ]
}

#[test]
fn calls_are_served_by_lanes_and_awaited_by_callers_that_spin() {
    for endpoint in endpoints() {
        for limit in [Duration::from_micros(50), SPIN_FOREVER] {
            let server = Orb::builder().spinning_lanes(limit).listen(&endpoint);
            let server = Server::with(server.unwrap().build().unwrap());
            let client = Orb::builder().spinning_calls(limit).build().unwrap();
            let bench = client.string_to_object(&server.text).unwrap().unwrap();
            for len in [0, 64, 60_000, 300_000] {
                let octets = vec![7; len];
                for _ in 0..20 {
                    let echoed = call_octets(&bench, &octets)
                        .map_err(|error| (&endpoint, len, error, server.orb.snapshot()));
                    assert!(echoed.unwrap() == octets);
                }
            }
            server.orb.shutdown(true).unwrap();
            assert!(call(&bench, "ping").is_err());
        }
    }
}

#[test]
fn a_lane_that_spins_for_ever_still_serves_the_others() {
    for endpoint in endpoints() {
        let server = Orb::builder()
            .threads(2)
            .dynamic_threads(0)
            .spinning_lanes(SPIN_FOREVER)
            .listen(&endpoint);
        let server = Server::with(server.unwrap().build().unwrap());
        let (_busy, bench) = support::client_of(&server);
        while server.orb.counters().read(Counter::Adoptions) == 0 {
            assert_eq!(call(&bench, "ping"), Ok(()));
        }
        for _ in 0..5 {
            let (_other, other) = support::client_of(&server);
            assert_eq!(call(&other, "ping"), Ok(()));
            assert_eq!(call(&bench, "ping"), Ok(()));
        }
    }
}

#[test]
fn a_deadline_ends_a_call_that_spins() {
    let server = Server::at("127.0.0.1:0");
    let limit = Duration::from_millis(20);
    let client = Orb::builder()
        .spinning_calls(SPIN_FOREVER)
        .round_trip_timeout(limit);
    let client = client.build().unwrap();
    let bench = client.string_to_object(&server.text).unwrap().unwrap();
    let root = server.orb.root_poa().unwrap();
    let manager = root.the_poa_manager();
    manager.hold_requests(false).unwrap();
    assert!(call(&bench, "ping").is_err());
    assert_eq!(client.counters().read(Counter::Timeouts), 1);
    manager.activate().unwrap();
}

#[test]
fn threads_of_a_real_time_class_do_not_spin() {
    let probe = std::thread::spawn(|| {
        limit_real_time();
        let class = schedule::set_class(Class::Fifo(1));
        let may = class.is_ok();
        if may {
            // A caller in the real-time class does not spin, so that a server in any class can run.
            let server = Server::at("127.0.0.1:0");
            let client = Orb::builder().spinning_calls(SPIN_FOREVER).build().unwrap();
            let bench = client.string_to_object(&server.text).unwrap().unwrap();
            assert_eq!(call(&bench, "ping"), Ok(()));
        }
        may
    });
    if !probe.join().unwrap() {
        return deckwatch_testkit::skip("real-time-class", "SCHED_FIFO needs CAP_SYS_NICE");
    }
    let refused = Orb::builder()
        .spinning_lanes(Duration::from_micros(1))
        .on_thread_start(|| schedule::set_class(Class::Fifo(1)).unwrap())
        .listen("127.0.0.1:0")
        .unwrap()
        .build();
    assert_eq!(refused.unwrap_err(), BuildError::SpinsInRealTime);

    // One of the two threads may spin. The lane cannot be created; its thread ends and releases the permission to spin.
    let place = format!("unix:{}", socket_path());
    let is_first = AtomicBool::new(true);
    let refused = Orb::builder()
        .threads(2)
        .spinning_lanes(Duration::from_micros(1))
        .on_thread_start(move || {
            if !is_first.swap(false, Ordering::Relaxed) {
                schedule::set_class(Class::Fifo(1)).unwrap();
            }
        })
        .listen(&place)
        .unwrap()
        .build();
    assert_eq!(refused.unwrap_err(), BuildError::SpinsInRealTime);
    assert!(Orb::builder().listen(&place).unwrap().build().is_ok());
}
