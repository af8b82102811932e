//! What a relay emulates, measured with real frames against theory: the time of one frame, and the waits of a queue.

use deckwatch_testbed::{Emulation, Impairment, Layout, NetworkSpec, preset};

use crate::frames::{arrivals, median, passages, random_gaps, waits};
use crate::program::{carried, relayed};
use crate::{measuring, testbed, until_undisturbed};

/// Frames for the time of one frame; far apart, so that each finds the lines idle.
const LEARNED_FRAMES: usize = 100;
const SINGLE_FRAMES: usize = 200;
const SINGLE_GAP_NS: i64 = 3_000_000;
/// Frames for the mean of a wait.
const QUEUED_FRAMES: usize = 5_000;
const HEADERS: usize = 28;
/// The allowed deviation of one frame's delay, beside the hosts' own time.
const DELAY_TOLERANCE: f64 = 0.05;
/// The allowed deviation of a mean wait.
const WAIT_TOLERANCE: f64 = 0.15;

/// The median delay of one frame, and the mean lateness that the relay itself states for these frames. A network without
/// a relay has no lateness.
struct Delay {
    took_ns: f64,
    late_ns: f64,
}

fn delay(network: &NetworkSpec, payload_bytes: usize) -> Option<Delay> {
    let testbed = testbed(network)?;
    // The relay learns how late its timer wakes it.
    passages(&testbed, payload_bytes, &[SINGLE_GAP_NS; LEARNED_FRAMES]);
    let before = testbed.relay_state().unwrap().unwrap_or_default();
    let passed = passages(&testbed, payload_bytes, &[SINGLE_GAP_NS; SINGLE_FRAMES]);
    let after = testbed.relay_state().unwrap().unwrap_or_default();
    let sent = (after.sent - before.sent).max(1);
    Some(Delay {
        took_ns: median(passed.iter().map(|one| one.took_ns).collect()),
        late_ns: (after.lateness_ns_sum - before.lateness_ns_sum) as f64 / sent as f64,
    })
}

/// The hosts' own time is that of a frame on a network without transmission time. A processor that wakes up late delays
/// a departure, and the relay states by how much: what it does not state would be an error of its computation.
#[test]
fn a_frame_takes_its_transmission_time_on_both_hops_beside_the_hosts_own_time() {
    let _alone = measuring();
    let (relay, spinning) = (Emulation::Relay, Emulation::SpinningRelay);
    for (name, emulation, payload_bytes) in [
        ("fast-ethernet", relay, 1024),
        ("fast-ethernet", relay, 1472),
        ("atm-oc3", relay, 4096),
        ("atm-oc3", relay, 9152),
        ("fast-ethernet", spinning, 64),
        ("fast-ethernet", spinning, 512),
        ("atm-oc3", spinning, 512),
    ] {
        let network = carried(name, emulation);
        let packet = (payload_bytes + HEADERS) as u64;
        let due_ns = 2e9 * network.transmission_s(packet).unwrap();
        until_undisturbed(
            &format!("{name} {} {payload_bytes}", emulation.name()),
            || {
                let host_ns = delay(&preset(name).unwrap(), payload_bytes)?.took_ns;
                let Delay { took_ns, late_ns } = delay(&network, payload_bytes)?;
                let words = format!(
                    "a frame of {payload_bytes} octets took {:.1} us; two hops take {:.1}, the hosts {:.1}; \
                 the relay was {:.1} late",
                    took_ns / 1e3,
                    due_ns / 1e3,
                    host_ns / 1e3,
                    late_ns / 1e3
                );
                println!("{words}");
                let fits = took_ns >= due_ns * (1.0 - DELAY_TOLERANCE)
                    && took_ns <= due_ns * (1.0 + DELAY_TOLERANCE) + host_ns + late_ns;
                (!fits).then_some(words)
            },
        );
    }
}

#[test]
fn waits_behind_other_frames_are_those_of_a_real_link() {
    const PAYLOAD_BYTES: usize = 1472;
    let _alone = measuring();
    let network = relayed("fast-ethernet");
    let Some(testbed) = testbed(&network) else {
        return;
    };
    let packet = (PAYLOAD_BYTES + HEADERS) as u64;
    let service_ns = network.transmission_s(packet).unwrap() * 1e9;
    for load in [0.5, 0.75, 0.9] {
        until_undisturbed(&format!("relayed waits at {load}"), || {
            let gaps = random_gaps(service_ns / load, QUEUED_FRAMES);
            let passed = passages(&testbed, PAYLOAD_BYTES, &gaps);
            let waits = waits(service_ns, &passed);
            let count = waits.len() as f64;
            let theory_ns = waits.iter().map(|(real_ns, _)| real_ns).sum::<f64>() / count;
            let measured_ns = waits.iter().map(|(_, own_ns)| own_ns).sum::<f64>() / count;
            let queue_ns = service_ns * load / (2.0 * (1.0 - load));
            let words = format!(
                "mean wait {:.1} us; a real link has {:.1} with these arrivals, and {:.1} in the long run (M/D/1)",
                measured_ns / 1e3,
                theory_ns / 1e3,
                queue_ns / 1e3
            );
            println!("{words}");
            ((measured_ns / theory_ns - 1.0).abs() > WAIT_TOLERANCE).then_some(words)
        });
    }
}

/// Frames for a share of losses.
const LOSSY_FRAMES: usize = 2_000;
const LOSS: f64 = 0.05;
const DELAY_NS: u64 = 2_000_000;

#[test]
fn a_lossy_link_loses_its_share_and_delays_the_rest() {
    let _alone = measuring();
    let mut network = relayed("fast-ethernet");
    let mut layout = Layout::star(
        ["A", "B", "C"].map(str::to_owned).into(),
        &network.link().unwrap(),
    );
    layout.links[1].spec.impairment = Impairment {
        delay_ns: DELAY_NS,
        loss: LOSS,
        ..Impairment::default()
    };
    network.layout = Some(layout);
    let Some(testbed) = testbed(&network) else {
        return;
    };
    let latencies = arrivals(&testbed, LOSSY_FRAMES);
    let lost = (LOSSY_FRAMES - latencies.len()) as f64;
    let expected = LOSSY_FRAMES as f64 * LOSS;
    let deviation = (expected * (1.0 - LOSS)).sqrt();
    println!("{lost} of {LOSSY_FRAMES} lost, {expected} expected");
    // The seed decides which; a frame that the machine loses would be one more.
    assert!((lost - expected).abs() <= 4.0 * deviation);
    let fastest_ns = *latencies.iter().min().unwrap();
    println!("fastest {fastest_ns} ns");
    assert!(fastest_ns as f64 >= DELAY_NS as f64 * (1.0 - DELAY_TOLERANCE));
}
