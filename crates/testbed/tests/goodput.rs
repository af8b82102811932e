//! The goodput of an emulated network is within 1% of the theoretical value. The test needs namespaces; without them it
//! is skipped and the skip is counted.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deckwatch_meter::disturbance::Disturbance;
use deckwatch_meter::provenance::Readings;
use deckwatch_os::schedule::{Class, set_class};
use deckwatch_os::socket::set_receive_buffer;
use deckwatch_os::stamp;
use deckwatch_testbed::{Host, HostSpec, NetworkSpec, Testbed, preset};

/// The allowed deviation of the measured goodput from theory.
const TOLERANCE: f64 = 0.01;
/// The duration of the measurement, after the shaper's first credit is spent.
const MEASURED_NS: i64 = 2_000_000_000;
/// Datagrams before the measurement: many times the credit of both shapers on the path. The kernel may not stamp the
/// first.
const FIRST_DATAGRAMS: usize = 200;
/// The maximum of attempts. A failed attempt is repeated if it was disturbed.
const TRIES: usize = 3;
/// Share of the time in which a task waited for a processor, or the hypervisor ran something else. A run with a higher
/// share is disturbed.
const DISTURBED_SHARE: f64 = 0.02;
/// Buffers the datagrams of a tenth of a second in which the receiver is not woken.
const RECEIVE_BUFFER_BYTES: u32 = 16 << 20;

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

/// Sends as fast as the socket allows; it blocks while the host's interface is busy.
fn send(socket: &UdpSocket, payload_bytes: usize, stopped: &AtomicBool) {
    // A sender or receiver that waited for a processor would falsify the measurement of the network.
    let _ = set_class(Class::Fifo(5));
    let datagram = vec![0; payload_bytes];
    while !stopped.load(Ordering::Relaxed) {
        socket.send(&datagram).unwrap();
    }
}

/// Returns the payload rate in bits a second, by the kernel's stamps of the first and last datagram of the measured
/// time.
fn receive(socket: &UdpSocket, payload_bytes: usize) -> f64 {
    let _ = set_class(Class::Fifo(6));
    let mut datagram = vec![0; payload_bytes];
    for _ in 0..FIRST_DATAGRAMS {
        assert_eq!(
            stamp::receive(socket, &mut datagram).unwrap().len,
            payload_bytes
        );
    }
    let mut next = || {
        let received = stamp::receive(socket, &mut datagram).unwrap();
        assert_eq!(
            received.dropped.unwrap_or(0),
            0,
            "the receive buffer overflowed"
        );
        (received.len, received.stamp_realtime_ns.unwrap())
    };
    let (_, begin_ns) = next();
    let mut octets = 0;
    loop {
        let (len, at_ns) = next();
        octets += len;
        if at_ns - begin_ns >= MEASURED_NS {
            return octets as f64 * 8.0 * 1e9 / (at_ns - begin_ns) as f64;
        }
    }
}

fn goodput_bits_per_s(testbed: &Testbed, payload_bytes: usize) -> f64 {
    let (from, to) = (
        socket_on(&testbed.hosts()[0]),
        socket_on(&testbed.hosts()[1]),
    );
    set_receive_buffer(&to, RECEIVE_BUFFER_BYTES).unwrap();
    stamp::stamp_received(&to).unwrap();
    to.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    from.connect(to.local_addr().unwrap()).unwrap();
    let stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(&to, payload_bytes));
        scope.spawn(|| send(&from, payload_bytes, &stopped));
        let goodput = receiver.join();
        stopped.store(true, Ordering::Relaxed);
        goodput.unwrap()
    })
}

fn assert_goodput_is_theoretical(network: &NetworkSpec, payload_bytes: usize) {
    if let Some(reason) = Testbed::obstacle() {
        deckwatch_testkit::skip("namespaces", &reason);
        return;
    }
    let theory = network
        .udp_goodput_bits_per_s(payload_bytes as u64)
        .unwrap();
    let testbed = Testbed::create(network, &[HostSpec::new("A"), HostSpec::new("B")]).unwrap();
    for try_number in 1..=TRIES {
        let before = Readings::take();
        let ratio = goodput_bits_per_s(&testbed, payload_bytes) / theory;
        let disturbed = share(&before.until(&Readings::take()));
        println!(
            "{} {payload_bytes}: {ratio:.4} of theory, try {try_number}, disturbed {disturbed:.3}",
            network.name
        );
        if (ratio - 1.0).abs() <= TOLERANCE {
            return;
        }
        assert!(
            disturbed > DISTURBED_SHARE,
            "{ratio:.4} of the theoretical goodput, undisturbed"
        );
        if try_number == TRIES {
            // Processor time that other guests of the machine took says nothing about the network.
            let taken = format!(
                "{} {payload_bytes}: {disturbed:.3} to the last",
                network.name
            );
            deckwatch_testkit::skip("processor time", &taken);
        }
    }
}

/// One test, so that the networks are measured one after the other and do not disturb each other.
#[test]
fn emulated_networks_reach_their_theoretical_goodput_within_one_percent() {
    assert_goodput_is_theoretical(&preset("fast-ethernet").unwrap(), 1472);
    assert_goodput_is_theoretical(&preset("atm-oc3").unwrap(), 1472);
    assert_goodput_is_theoretical(&preset("atm-oc3").unwrap(), 9152);
}
