//! The rate of an emulated network is within 1% of the theoretical value: the goodput of a sender that is fast enough,
//! and the speed of a queue.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};

use deckwatch_os::schedule::{Class, set_class};
use deckwatch_os::stamp;
use deckwatch_testbed::{NetworkSpec, Testbed, preset};

use crate::frames::sockets;
use crate::program::relayed;
use crate::{measuring, testbed, until_undisturbed};

/// The allowed deviation of the measured goodput from theory, at shapers.
const TOLERANCE: f64 = 0.01;
/// The same with a relay.
const RELAY_TOLERANCE: f64 = 0.005;
/// The duration of the measurement, after the shaper's first credit is spent.
const MEASURED_NS: i64 = 2_000_000_000;
/// Datagrams before the measurement: many times the credit of both shapers on the path. The kernel may not stamp the
/// first.
const FIRST_DATAGRAMS: usize = 200;

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
    let (from, to) = sockets(testbed);
    let stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(&to, payload_bytes));
        scope.spawn(|| send(&from, payload_bytes, &stopped));
        let goodput = receiver.join();
        stopped.store(true, Ordering::Relaxed);
        goodput.unwrap()
    })
}

fn assert_goodput_is_theoretical(network: &NetworkSpec, payload_bytes: usize, tolerance: f64) {
    let Some(testbed) = testbed(network) else {
        return;
    };
    let theory = network
        .udp_goodput_bits_per_s(payload_bytes as u64)
        .unwrap();
    until_undisturbed(&format!("{} {payload_bytes}", network.name), || {
        let ratio = goodput_bits_per_s(&testbed, payload_bytes) / theory;
        println!("{ratio:.4} of the theoretical goodput");
        ((ratio - 1.0).abs() > tolerance).then(|| format!("{ratio:.4} of the theoretical goodput"))
    });
}

/// One test, so that the networks are measured one after the other and do not disturb each other.
#[test]
fn emulated_networks_reach_their_theoretical_goodput_within_one_percent() {
    let _alone = measuring();
    assert_goodput_is_theoretical(&preset("fast-ethernet").unwrap(), 1472, TOLERANCE);
    assert_goodput_is_theoretical(&preset("atm-oc3").unwrap(), 1472, TOLERANCE);
    assert_goodput_is_theoretical(&preset("atm-oc3").unwrap(), 9152, TOLERANCE);
}

#[test]
fn relayed_networks_reach_their_theoretical_goodput_within_half_a_percent() {
    let _alone = measuring();
    assert_goodput_is_theoretical(&relayed("fast-ethernet"), 1472, RELAY_TOLERANCE);
    assert_goodput_is_theoretical(&relayed("atm-oc3"), 1472, RELAY_TOLERANCE);
    assert_goodput_is_theoretical(&relayed("atm-oc3"), 9152, RELAY_TOLERANCE);
}

/// Frames that wait at a held port; fewer than its queue takes.
const QUEUED_FRAMES: usize = 900;
/// Releases of a held port, of which the fastest counts: nothing makes a port faster than its shaper.
const RELEASES: usize = 30;
/// What a port must have as credit, as time at its rate: the lateness of its timer for which it makes up.
const LATE_TIMER_NS: f64 = 250_000.0;

/// Queues frames at a held port, releases it, and returns the time from the first to the last, in nanoseconds.
fn drain_ns(testbed: &Testbed, from: &UdpSocket, to: &UdpSocket, payload_bytes: usize) -> i64 {
    let port = testbed.port("B").unwrap();
    let mut datagram = vec![0; payload_bytes];
    port.hold().unwrap();
    for _ in 0..QUEUED_FRAMES {
        from.send(&datagram).unwrap();
    }
    port.release().unwrap();
    let mut stamps = (0..QUEUED_FRAMES).map(|_| {
        let received = stamp::receive(to, &mut datagram).unwrap();
        received.stamp_realtime_ns.unwrap()
    });
    let first_ns = stamps.next().unwrap();
    stamps.last().unwrap() - first_ns
}

/// A sender on this machine may be too slow for Gigabit Ethernet. A held port needs no sender: its queue must leave at
/// the rate, though the timers of the port's shaper come late. A port with too little credit leaves more slowly.
#[test]
fn what_waits_at_a_port_of_gigabit_ethernet_leaves_at_its_rate() {
    const PAYLOAD_BYTES: usize = 1472;
    let _alone = measuring();
    let network = preset("gigabit-ethernet").unwrap();
    let Some(testbed) = testbed(&network) else {
        return;
    };
    let (from, to) = sockets(&testbed);
    let frame_ns = network.transmission_s(PAYLOAD_BYTES as u64 + 28).unwrap() * 1e9;
    // The first frames leave at once, for the credit.
    let due_ns = frame_ns * QUEUED_FRAMES as f64 - LATE_TIMER_NS;
    let mut fastest = 0.0_f64;
    let is_theoretical = (0..RELEASES).any(|_| {
        let speed = due_ns / drain_ns(&testbed, &from, &to, PAYLOAD_BYTES) as f64;
        println!("{speed:.4} of the theoretical speed");
        fastest = fastest.max(speed);
        (fastest - 1.0).abs() <= TOLERANCE
    });
    assert!(
        is_theoretical,
        "{fastest:.4} of the theoretical speed, the fastest of {RELEASES}"
    );
}
