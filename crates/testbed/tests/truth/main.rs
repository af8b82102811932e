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

use deckwatch_meter::disturbance::Disturbance;
use deckwatch_meter::provenance::Readings;
use program::relay_program;

use deckwatch_testbed::{Host, HostSpec, NetworkSpec, Testbed};

/// The maximum of attempts. A failed attempt is repeated.
const TRIES: usize = 3;
/// Share of the time in which a task waited for a processor, or the hypervisor ran something else. A run with a higher
/// share is disturbed.
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

/// Returns the share of the time in which a thread waited for a processor, or processor time was withheld.
fn share(disturbance: &Disturbance) -> f64 {
    let waiting = disturbance.processor_pressure.unwrap_or_default();
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
fn until_undisturbed(what: &str, judge: impl FnMut() -> Option<String>) {
    until_undisturbed_beyond(DISTURBED_SHARE, what, judge);
}

/// The same for a measurement whose own threads wait for each other for up to this share of the time.
fn until_undisturbed_beyond(own_share: f64, what: &str, mut judge: impl FnMut() -> Option<String>) {
    let mut undisturbed = None;
    for try_number in 1..=TRIES {
        let before = Readings::take();
        let complaint = judge();
        let disturbed = share(&before.until(&Readings::take()));
        println!("{what}: try {try_number}, disturbed {disturbed:.3}");
        let Some(complaint) = complaint else { return };
        if disturbed <= own_share {
            undisturbed = Some(complaint);
        }
    }
    if let Some(complaint) = undisturbed {
        panic!("{what}: {complaint}, undisturbed");
    }
    let taken = format!("{what}: disturbed in each of {TRIES} tries");
    deckwatch_testkit::skip("processor time", &taken);
}
