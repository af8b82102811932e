//! Frames from host A to host B, one after the other, and how long each took.

use std::net::UdpSocket;
use std::time::Duration;

use deckwatch_os::clock::{monotonic_ns, realtime_ns, sleep_until};
use deckwatch_os::schedule::{Class, set_class, set_timer_slack};
use deckwatch_os::socket::set_receive_buffer;
use deckwatch_os::stamp;
use deckwatch_testbed::Testbed;

use crate::socket_on;

/// Buffers the datagrams of a tenth of a second in which the receiver is not woken.
const RECEIVE_BUFFER_BYTES: u32 = 16 << 20;

/// Returns a socket on A connected to one on B, which stamps what it receives.
pub(crate) fn sockets(testbed: &Testbed) -> (UdpSocket, UdpSocket) {
    let (from, to) = (
        socket_on(&testbed.hosts()[0]),
        socket_on(&testbed.hosts()[1]),
    );
    set_receive_buffer(&to, RECEIVE_BUFFER_BYTES).unwrap();
    stamp::stamp_received(&to).unwrap();
    to.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    from.connect(to.local_addr().unwrap()).unwrap();
    (from, to)
}

/// One frame: when it was sent, and how long it took to the other host's kernel.
pub(crate) struct Passage {
    pub(crate) sent_ns: i64,
    pub(crate) took_ns: i64,
}

/// Sends datagrams from A to B, the next after each gap, and returns their passages.
pub(crate) fn passages(testbed: &Testbed, payload_bytes: usize, gaps_ns: &[i64]) -> Vec<Passage> {
    let (from, to) = sockets(testbed);
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(&to, payload_bytes, gaps_ns.len()));
        let sent = scope.spawn(|| send(&from, payload_bytes, gaps_ns));
        let (sent, received) = (sent.join().unwrap(), receiver.join().unwrap());
        let pairs = sent.into_iter().zip(received);
        let passage = |(sent_ns, at_ns): (i64, i64)| Passage {
            sent_ns,
            took_ns: at_ns - sent_ns,
        };
        // The kernel may not stamp the first.
        pairs.skip(1).map(passage).collect()
    })
}

fn send(socket: &UdpSocket, payload_bytes: usize, gaps_ns: &[i64]) -> Vec<i64> {
    // A thread that sleeps between frames; without the class its wake-ups are later, which the theory allows for.
    let _ = set_class(Class::Fifo(5));
    set_timer_slack(Duration::from_nanos(1));
    let datagram = vec![0; payload_bytes];
    let mut due_ns = monotonic_ns();
    let mut sent = Vec::with_capacity(gaps_ns.len());
    for gap_ns in gaps_ns {
        due_ns += gap_ns;
        sleep_until(due_ns);
        sent.push(realtime_ns());
        socket.send(&datagram).unwrap();
    }
    sent
}

/// Returns the kernel's stamps.
fn receive(socket: &UdpSocket, payload_bytes: usize, count: usize) -> Vec<i64> {
    let _ = set_class(Class::Fifo(6));
    let mut datagram = vec![0; payload_bytes];
    let mut next = || {
        let received = stamp::receive(socket, &mut datagram).unwrap();
        assert_eq!(received.dropped.unwrap_or(0), 0, "the buffer overflowed");
        received.stamp_realtime_ns.unwrap_or(0)
    };
    (0..count).map(|_| next()).collect()
}

pub(crate) fn median(mut values: Vec<i64>) -> f64 {
    values.sort_unstable();
    values[values.len() / 2] as f64
}

/// Returns the wait of each frame in nanoseconds: on a real link, by Lindley's recursion over the frames as they were
/// sent, and as measured. Frames that the host held up are left out: a real link would have passed them earlier.
pub(crate) fn waits(service_ns: f64, passed: &[Passage]) -> Vec<(f64, f64)> {
    let (mut wait, mut before_ns) = (0.0_f64, passed[0].sent_ns);
    let real: Vec<f64> = passed
        .iter()
        .map(|one| {
            wait = (wait + service_ns - (one.sent_ns - before_ns) as f64).max(0.0);
            before_ns = one.sent_ns;
            wait
        })
        .collect();
    let alone = passed.iter().zip(&real).filter(|(_, wait)| **wait == 0.0);
    let alone_ns = median(alone.map(|(one, _)| one.took_ns).collect());
    let measured = passed.iter().map(|one| one.took_ns as f64 - alone_ns);
    let pairs = real.into_iter().zip(measured);
    pairs
        .filter(|(real_ns, measured_ns)| *measured_ns <= real_ns + service_ns)
        .collect()
}

/// Gaps of `count` packets that arrive at random.
pub(crate) fn random_gaps(mean_ns: f64, count: usize) -> Vec<i64> {
    let mut state = 1_u64;
    let mut even = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    };
    let gap = |_| (-even().ln() * mean_ns) as i64;
    (0..count).map(gap).collect()
}

/// Sends datagrams from A to B, one each half millisecond, and returns how long those took that arrived.
pub(crate) fn arrivals(testbed: &Testbed, count: usize) -> Vec<i64> {
    const GAP_NS: i64 = 500_000;
    let (from, to) = (
        socket_on(&testbed.hosts()[0]),
        socket_on(&testbed.hosts()[1]),
    );
    set_receive_buffer(&to, RECEIVE_BUFFER_BYTES).unwrap();
    stamp::stamp_received(&to).unwrap();
    assert!(stamp::await_stamps(Duration::from_secs(10)));
    // After so long without a datagram the rest is lost.
    to.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    from.connect(to.local_addr().unwrap()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut due_ns = monotonic_ns();
            for _ in 0..count {
                due_ns += GAP_NS;
                sleep_until(due_ns);
                from.send(&realtime_ns().to_be_bytes()).unwrap();
            }
        });
        let mut datagram = [0; 8];
        std::iter::from_fn(|| {
            stamp::receive(&to, &mut datagram)
                .ok()
                .map(|one| (one, datagram))
        })
        .map(|(one, sent)| one.stamp_realtime_ns.unwrap() - i64::from_be_bytes(sent))
        .collect()
    })
}
