//! What a shaped link does not emulate, measured: transmission time at low load, and the waits of a real queue. The
//! book, `check` and every report state these figures (`deckwatch_testbed::Fidelity`). If a link is emulated better one
//! day, these tests fail, and what the users read must change.

use deckwatch_os::clock::{monotonic_ns, realtime_ns, sleep_until};
use deckwatch_os::{socket, stamp};
use deckwatch_testbed::{NetworkSpec, Testbed, preset};

use crate::frames::{self, Passage, median, passages, random_gaps};
use crate::{measuring, testbed, until_undisturbed};

/// Frames for the time of one frame; far apart, so that each finds the ports idle.
const SINGLE_FRAMES: usize = 200;
const SINGLE_GAP_NS: i64 = 3_000_000;
/// Mean number of frames for a wait.
const QUEUED_FRAMES: usize = 5_000;
const HEADERS: usize = 28;
/// Octets of the largest datagram of Ethernet.
const LARGEST: usize = 1472;
/// Octets of a datagram in a frame of the smallest size.
const SMALL: usize = 18;
/// The code point of expedited forwarding.
const EXPEDITED: u8 = 46;

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

/// Sends single frames of two sizes by turns, so that the host's own time is the same for both. Returns how much longer
/// the large ones took, nanoseconds.
fn large_beyond_small(testbed: &Testbed, large: usize) -> f64 {
    let (from, to) = frames::sockets(testbed);
    let (octets, mut buffer) = (vec![0; large], vec![0; large]);
    let mut pass = |payload_bytes: usize| {
        // So that the ports have their credit again.
        sleep_until(monotonic_ns() + SINGLE_GAP_NS);
        let sent_ns = realtime_ns();
        from.send(&octets[..payload_bytes]).unwrap();
        let received = stamp::receive(&to, &mut buffer).unwrap();
        received.stamp_realtime_ns.unwrap_or(sent_ns) - sent_ns
    };
    // The kernel may not stamp the first.
    pass(SMALL);
    let (small, large): (Vec<i64>, Vec<i64>) = (0..SINGLE_FRAMES)
        .map(|_| (pass(SMALL), pass(large)))
        .unzip();
    median(large) - median(small)
}

/// Two transmission times of Gigabit Ethernet are as short as the host's own time, so only differences show them.
#[test]
fn a_large_frame_on_idle_gigabit_ethernet_takes_as_long_as_a_small_one() {
    let _alone = measuring();
    let network = preset("gigabit-ethernet").unwrap();
    let Some(testbed) = testbed(&network) else {
        return;
    };
    let hop_ns = |payload: usize| network.transmission_s((payload + HEADERS) as u64).unwrap() * 1e9;
    let longer_ns = hop_ns(LARGEST) - hop_ns(SMALL);
    until_undisturbed("a large frame on gigabit-ethernet", || {
        let beyond_ns = large_beyond_small(&testbed, LARGEST);
        let words = format!(
            "a frame of {LARGEST} octets took {:.1} us more than one of {SMALL}; a real link takes {:.1} us more a hop, \
             and there are two",
            beyond_ns / 1e3,
            longer_ns / 1e3
        );
        println!("{words}");
        (beyond_ns > longer_ns / 4.0).then_some(words)
    });
}

/// Sends urgent datagrams from A to B, each behind a less urgent one of this size. Returns how long the urgent ones took,
/// nanoseconds.
fn urgent_behind(testbed: &Testbed, low_bytes: usize) -> f64 {
    let (low, low_sink) = frames::sockets(testbed);
    let (urgent, sink) = frames::sockets(testbed);
    socket::set_priority(&urgent, false, Some(EXPEDITED), None).unwrap();
    let (octets, mut buffer) = (vec![0; low_bytes], vec![0; low_bytes]);
    let mut round = || {
        low.send(&octets).unwrap();
        let sent_ns = realtime_ns();
        urgent.send(&[0]).unwrap();
        let received = stamp::receive(&sink, &mut buffer).unwrap();
        stamp::receive(&low_sink, &mut buffer).unwrap();
        // So that the ports have their credit again.
        sleep_until(monotonic_ns() + SINGLE_GAP_NS);
        received.stamp_realtime_ns.unwrap_or(sent_ns) - sent_ns
    };
    // The kernel may not stamp the first.
    round();
    median((0..SINGLE_FRAMES).map(|_| round()).collect())
}

/// The urgent frame behind a small one is as long on its way as without a wait: its processor is awake. A real link would
/// send the large frame for most of its time after the urgent one is there: some 10 us pass between the two calls.
fn assert_no_head_of_line_wait(network: &NetworkSpec) {
    let Some(testbed) = testbed(network) else {
        return;
    };
    let large = network.mtu_bytes as usize - HEADERS;
    let large_ns = network.transmission_s(network.mtu_bytes.into()).unwrap() * 1e9;
    until_undisturbed(&format!("{} head-of-line wait", network.name), || {
        let behind_small_ns = urgent_behind(&testbed, SMALL);
        let behind_large_ns = urgent_behind(&testbed, large);
        let words = format!(
            "an urgent frame took {:.0} us behind one of {SMALL} octets and {:.0} us behind one of {large}, which a real \
             link sends for {:.0} us",
            behind_small_ns / 1e3,
            behind_large_ns / 1e3,
            large_ns / 1e3
        );
        println!("{words}");
        (behind_large_ns - behind_small_ns > large_ns / 4.0).then_some(words)
    });
}

#[test]
fn an_urgent_frame_does_not_wait_for_the_end_of_a_less_urgent_one() {
    let _alone = measuring();
    assert_no_head_of_line_wait(&preset("fast-ethernet").unwrap());
    // A frame of 1,500 octets would have left before the next one is sent.
    let mut jumbo = preset("gigabit-ethernet").unwrap();
    jumbo.mtu_bytes = 9_000;
    assert_no_head_of_line_wait(&jumbo);
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
    let waits = frames::waits(service_ns, passed);
    let mut sums = [0.0; 3];
    for &(real_ns, measured_ns) in &waits {
        let bucket_ns = (real_ns - spare_ns).max(0.0);
        for (sum, value) in sums.iter_mut().zip([real_ns, bucket_ns, measured_ns]) {
            *sum += value;
        }
    }
    let count = waits.len() as f64;
    let [real_ns, bucket_ns, measured_ns] = sums.map(|sum| sum / count);
    Waits {
        real_ns,
        bucket_ns,
        measured_ns,
    }
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
            let gaps = random_gaps(service_ns / load, QUEUED_FRAMES);
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
