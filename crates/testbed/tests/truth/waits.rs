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
/// Octets of the largest datagram of Fast Ethernet.
const LARGEST: usize = 1472;
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

/// Sends urgent datagrams from A to B, each behind this many less urgent ones of the largest size. Returns how long the
/// urgent ones took, nanoseconds.
fn urgent_behind(testbed: &Testbed, low_count: usize) -> f64 {
    let (low, low_sink) = frames::sockets(testbed);
    let (urgent, sink) = frames::sockets(testbed);
    socket::set_priority(&urgent, false, Some(EXPEDITED), None).unwrap();
    let mut buffer = vec![0; LARGEST];
    let mut round = || {
        for _ in 0..low_count {
            low.send(&[0; LARGEST]).unwrap();
        }
        let sent_ns = realtime_ns();
        urgent.send(&[0]).unwrap();
        let received = stamp::receive(&sink, &mut buffer).unwrap();
        for _ in 0..low_count {
            stamp::receive(&low_sink, &mut buffer).unwrap();
        }
        // So that the ports have their credit again.
        sleep_until(monotonic_ns() + SINGLE_GAP_NS);
        received.stamp_realtime_ns.unwrap_or(sent_ns) - sent_ns
    };
    // The kernel may not stamp the first.
    round();
    median((0..SINGLE_FRAMES).map(|_| round()).collect())
}

#[test]
fn an_urgent_frame_does_not_wait_for_the_end_of_a_less_urgent_one() {
    let _alone = measuring();
    let network = preset("fast-ethernet").unwrap();
    let Some(testbed) = testbed(&network) else {
        return;
    };
    let low_ns = network.transmission_s((LARGEST + HEADERS) as u64).unwrap() * 1e9;
    until_undisturbed("head-of-line wait", || {
        let (alone_ns, behind_ns) = (urgent_behind(&testbed, 0), urgent_behind(&testbed, 1));
        let words = format!(
            "an urgent frame took {:.0} us alone and {:.0} us behind one that a real link sends for {:.0} us",
            alone_ns / 1e3,
            behind_ns / 1e3,
            low_ns / 1e3
        );
        println!("{words}");
        (behind_ns - alone_ns > low_ns / 4.0).then_some(words)
    });
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
