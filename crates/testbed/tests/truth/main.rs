//! What an emulated network does as a real one, and what it does not, measured. The tests need namespaces; without them
//! they are skipped and the skips are counted.

mod chain;
mod frames;
mod goodput;
mod program;
mod queues;
mod relay;
mod waits;

use std::net::UdpSocket;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deckwatch_meter::disturbance::Disturbance;
use deckwatch_meter::provenance::Readings;
use deckwatch_testbed::{Host, HostSpec, NetworkSpec, Testbed};
use deckwatch_testkit::OtherProcesses;
use program::relay_program;

/// The maximum of attempts. A failed attempt is repeated.
const TRIES: usize = 3;
/// Share of the time in which a thread waited for a processor that other processes had, or the hypervisor ran something
/// else. A run with a higher share is disturbed.
const DISTURBED_SHARE: f64 = 0.02;

/// Held by the test that measures: others would disturb it.
fn measuring() -> MutexGuard<'static, ()> {
    static MEASURING: Mutex<()> = Mutex::new(());
    // A failed test changes nothing that another test measures.
    MEASURING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a network of three hosts. Returns `None` and counts a skip where namespaces cannot be created.
fn testbed(network: &NetworkSpec) -> Option<Testbed> {
    if let Some(reason) = Testbed::obstacle() {
        deckwatch_testkit::skip("namespaces", &reason);
        return None;
    }
    let hosts = ["A", "B", "C"].map(HostSpec::new);
    Some(Testbed::create_by(&relay_program(), network, &hosts).unwrap())
}

/// Returns the share of the time in which a thread waited for a processor that other processes had, or processor time
/// was withheld. The threads of a test and its relay wait for each other, too: that is no disturbance.
fn share(disturbance: &Disturbance, others: Duration) -> f64 {
    let waiting = disturbance.processor_pressure.unwrap_or(others).min(others);
    waiting.max(disturbance.withheld()).as_secs_f64() / disturbance.duration.as_secs_f64()
}

fn socket_on(host: &Host) -> UdpSocket {
    let bound = host
        .namespace()
        .unwrap()
        .run_inside(|| UdpSocket::bind((host.address(), 0)));
    bound.unwrap().unwrap()
}

/// Measures until `judge` returns no complaint. The test fails if every attempt has one, and one of them was undisturbed:
/// a fault repeats, and a busy machine does not. If all were disturbed the test is skipped: processor time that others
/// took says nothing about the network.
fn until_undisturbed(what: &str, mut judge: impl FnMut() -> Option<String>) {
    let mut undisturbed = None;
    for try_number in 1..=TRIES {
        let (before, others) = (Readings::take(), OtherProcesses::now());
        let complaint = judge();
        let others = others.used_since();
        let disturbed = share(&before.until(&Readings::take()), others);
        println!("{what}: try {try_number}, disturbed {disturbed:.3}");
        let Some(complaint) = complaint else { return };
        if disturbed <= DISTURBED_SHARE {
            undisturbed = Some(complaint);
        }
    }
    if let Some(complaint) = undisturbed {
        panic!("{what}: {complaint}, undisturbed");
    }
    let taken = format!("{what}: disturbed in each of {TRIES} tries");
    deckwatch_testkit::skip("processor time", &taken);
}

#[test]
fn what_a_measurement_itself_takes_is_no_disturbance() {
    let ms = Duration::from_millis;
    let pressed = Disturbance {
        duration: ms(1_000),
        processor_pressure: Some(ms(900)),
        ..Disturbance::default()
    };
    assert_eq!(share(&pressed, ms(10)), 0.01);
    assert_eq!(share(&pressed, ms(1_500)), 0.9);
    let stolen = Disturbance {
        stolen: ms(50),
        ..pressed
    };
    assert_eq!(share(&stolen, Duration::ZERO), 0.05);
}
