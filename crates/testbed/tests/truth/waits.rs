//! What a shaped link does not emulate, measured: transmission time at low load, and the waits of a real queue. The
//! book, `check` and every report state these figures (`deckwatch_testbed::Fidelity`). If a link is emulated better one
//! day, these tests fail, and what the users read must change.

use std::net::UdpSocket;
use std::time::Duration;

use deckwatch_os::clock::{monotonic_ns, realtime_ns, sleep_until};
use deckwatch_os::schedule::{Class, set_class, set_timer_slack};
use deckwatch_os::socket::set_receive_buffer;
use deckwatch_os::stamp;
use deckwatch_testbed::{NetworkSpec, Testbed, preset};

use crate::{measuring, socket_on, testbed, until_undisturbed};

/// Frames for the time of one frame; far apart, so that each finds the ports idle.
const SINGLE_FRAMES: usize = 200;
const SINGLE_GAP_NS: i64 = 3_000_000;
/// Mean number of frames for a wait.
const QUEUED_FRAMES: usize = 5_000;
const RECEIVE_BUFFER_BYTES: u32 = 16 << 20;
const HEADERS: usize = 28;

/// One frame: when it was sent, and how long it took to the other host's kernel.
struct Passage {
    sent_ns: i64,
    took_ns: i64,
}

/// Sends datagrams from A to B, the next after each gap, and returns their passages.
fn passages(testbed: &Testbed, payload_bytes: usize, gaps_ns: &[i64]) -> Vec<Passage> {
    let (from, to) = (
        socket_on(&testbed.hosts()[0]),
        socket_on(&testbed.hosts()[1]),
    );
    set_receive_buffer(&to, RECEIVE_BUFFER_BYTES).unwrap();
    stamp::stamp_received(&to).unwrap();
    to.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    from.connect(to.local_addr().unwrap()).unwrap();
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

fn median(mut values: Vec<i64>) -> f64 {
    values.sort_unstable();
    values[values.len() / 2] as f64
}

/// A frame passes two shapers, so a real network would take two transmission times.
fn assert_one_frame_has_no_transmission_time(network: &NetworkSpec, payload_bytes: usize) {
    let Some(testbed) = testbed(network) else {
        return;
    };
    let packet = (payload_bytes + HEADERS) as u64;
    let hop_ns = network.transmission_s(packet).unwrap() * 1e9;
    until_undisturbed(&format!("{} one frame", network.name), || {
        let passed = passages(&testbed, payload_bytes, &[SINGLE_GAP_NS; SINGLE_FRAMES]);
        let took_ns = median(passed.iter().map(|one| one.took_ns).collect());
        let words = format!(
            "a frame of {payload_bytes} octets took {:.0} us; a real link takes {:.0} us a hop, and there are two",
            took_ns / 1e3,
            hop_ns / 1e3
        );
        println!("{words}");
        (took_ns > 0.75 * hop_ns).then_some(words)
    });
}

#[test]
fn a_frame_on_an_idle_network_has_no_transmission_time() {
    let _alone = measuring();
    assert_one_frame_has_no_transmission_time(&preset("fast-ethernet").unwrap(), 1472);
    assert_one_frame_has_no_transmission_time(&preset("atm-oc3").unwrap(), 9152);
}

/// Waits by theory and as measured, nanoseconds: means over the same frames.
struct Waits {
    /// On a real link: Lindley's recursion over the frames as they were sent.
    real_ns: f64,
    /// At a token bucket: the same less the spare credit.
    bucket_ns: f64,
    measured_ns: f64,
}

/// Compares frame by frame, so that it does not matter how punctual the sender was.
fn waits(network: &NetworkSpec, payload_bytes: usize, passed: &[Passage]) -> Waits {
    let packet = (payload_bytes + HEADERS) as u64;
    let service_ns = network.transmission_s(packet).unwrap() * 1e9;
    let frame = network.wire_octets(packet) as f64;
    let spare_ns = service_ns * (network.credit_octets() as f64 / frame - 1.0);
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
    let host_ns = median(alone.map(|(one, _)| one.took_ns).collect());
    let mut sums = [0.0; 3];
    let mut count = 0.0;
    for (one, &real_ns) in passed.iter().zip(&real) {
        let measured_ns = one.took_ns as f64 - host_ns;
        // The host held this frame up: a real link would have passed it earlier.
        if measured_ns > real_ns + service_ns {
            continue;
        }
        let bucket_ns = (real_ns - spare_ns).max(0.0);
        for (sum, value) in sums.iter_mut().zip([real_ns, bucket_ns, measured_ns]) {
            *sum += value;
        }
        count += 1.0;
    }
    let [real_ns, bucket_ns, measured_ns] = sums.map(|sum| sum / count);
    Waits {
        real_ns,
        bucket_ns,
        measured_ns,
    }
}

/// Gaps of packets that arrive at random.
fn random_gaps(mean_ns: f64) -> Vec<i64> {
    let mut state = 1_u64;
    let mut even = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    };
    let gap = |_| (-even().ln() * mean_ns) as i64;
    (0..QUEUED_FRAMES).map(gap).collect()
}

#[test]
fn waits_are_below_those_of_a_real_link_by_the_spare_credit() {
    const PAYLOAD_BYTES: usize = 1472;
    let _alone = measuring();
    let network = preset("fast-ethernet").unwrap();
    let Some(testbed) = testbed(&network) else {
        return;
    };
    let packet = (PAYLOAD_BYTES + HEADERS) as u64;
    let service_ns = network.transmission_s(packet).unwrap() * 1e9;
    for load in [0.5, 0.75, 0.9] {
        until_undisturbed(&format!("waits at {load}"), || {
            let gaps = random_gaps(service_ns / load);
            let waits = waits(
                &network,
                PAYLOAD_BYTES,
                &passages(&testbed, PAYLOAD_BYTES, &gaps),
            );
            let share = waits.measured_ns / waits.real_ns;
            let bucket = waits.bucket_ns / waits.real_ns;
            let stated = network.wait_share(packet, load).unwrap();
            let words = format!(
                "mean wait {:.0} us, {share:.2} of a real link's {:.0} us; by the credit {bucket:.2}, stated {stated:.2}",
                waits.measured_ns / 1e3,
                waits.real_ns / 1e3
            );
            println!("{words}");
            // Nearer to the token bucket than to a real link.
            (share > (1.0 + bucket) / 2.0 || share < bucket - 0.1).then_some(words)
        });
    }
}
