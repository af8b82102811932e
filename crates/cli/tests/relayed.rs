//! Messages that wait in a queue of a relay: two other hosts fill the port of their destination with more urgent frames
//! than it can send, so that none of the mission's frames leaves until they stop.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

use deckwatch_meter::sample::Layer;
use deckwatch_os::namespace::Namespace;
use deckwatch_os::socket::{set_priority, set_send_buffer};

use super::watched::WatchedRun;
use super::watched::disturbance::Failure;
use super::{Beat, Blamed, Span, bracket, compare, failure};

const FLOODERS: [&str; 2] = ["PLOT", "RADAR"];
/// Octets of a flooding datagram: a whole frame.
const FLOOD_OCTETS: usize = 1_472;
/// Some ten frames, which take a millisecond to leave.
const FLOOD_BUFFER_BYTES: u32 = 20_000;
/// Expedited forwarding: the first of the relay's three priorities.
const URGENT: u8 = 46;
/// The first message that waits, and the last one that is late.
const HELD_UP: (u64, u64) = (11, 15);
/// The longest time until the last urgent frame has left: 40 in the queue of the port, and ten of each host.
const LEAVES_NS: i64 = 10_000_000;

fn mission() -> String {
    let flow = |carrier: &str| {
        format!(
            "[[flows]]\nname = \"NAV-{carrier}\"\noctets = 384\nfrom = \"RTS\"\nto = [\"SONAR\"]\ncarrier = \"{carrier}\"\n\
             rate_hz = 20\ndeadline = \"120ms\"\nlate = \"1 in 100\"\ncount = 26\nwarm_up = \"200ms\"\nclusters = 1\n"
        )
    };
    let flows: String = ["udp", "tcp", "corba"].map(flow).concat();
    format!(
        "name = \"relayed\"\nnetwork = {{ preset = \"fast-ethernet\", emulation = \"relay\", queue_frames = 40 }}\n\
         hosts = [{{ name = \"RTS\" }}, {{ name = \"SONAR\" }}, {{ name = \"PLOT\" }}, {{ name = \"RADAR\" }}]\n{flows}"
    )
}

/// Sends urgent datagrams from one host to another until `stopped`, as fast as the host's link permits.
fn flood(from: &str, to: Ipv4Addr, stopped: &AtomicBool) {
    let namespace = Namespace::named(from).expect("the host is there");
    let socket = namespace
        .run_inside(|| UdpSocket::bind("0.0.0.0:0"))
        .and_then(|bound| bound)
        .expect("a socket");
    set_send_buffer(&socket, FLOOD_BUFFER_BYTES).expect("set");
    set_priority(&socket, false, Some(URGENT), None).expect("set");
    let datagram = [0; FLOOD_OCTETS];
    while !stopped.load(Ordering::Relaxed) {
        // A refusal by the other host, where nobody listens, does not matter.
        let _ = socket.send_to(&datagram, (to, 9));
    }
}

pub(super) fn check() -> Result<(), Failure> {
    let run = WatchedRun::start("relayed", &mission(), &[]);
    let beat = Beat {
        start_ns: run.start_ns(),
    };
    let testbed = run.testbed();
    let to = testbed.address_of("SONAR").expect("a host");
    let hosts = FLOODERS.map(|name| testbed.namespace_of(name).expect("a host"));
    let stopped = AtomicBool::new(false);
    let span = std::thread::scope(|scope| {
        let from_ns = bracket(beat.after(HELD_UP.0 - 1), || {
            for from in &hosts {
                scope.spawn(|| flood(from, to, &stopped));
            }
        });
        let end_ns = beat.after(HELD_UP.1) + Beat::DEADLINE_NS - LEAVES_NS / 2;
        let (stop_ns, done_ns) = bracket(end_ns, || stopped.store(true, Ordering::Relaxed));
        Span {
            from_ns,
            to_ns: (stop_ns, done_ns + LEAVES_NS),
        }
    });
    let finished = run.finish();
    let late = beat.late_by(span).map_err(|held_up| Failure {
        what: held_up.clone(),
        disturbance: Some(held_up),
    })?;
    let expected: Blamed = late
        .into_iter()
        .map(|sequence| (sequence, Layer::Network))
        .collect();
    let mut wrong = Vec::new();
    for flow in &finished.document.flows {
        wrong.extend(compare(&finished, flow, &expected).err());
    }
    if expected.len() < 4 {
        wrong.push(format!("late by the disturbance alone: {expected:?}"));
    }
    let fidelity = finished.document.environment.fidelity.as_ref();
    let is_relayed = fidelity.is_some_and(|of| of.emulated.join(" ").contains("head-of-line"));
    if !is_relayed {
        wrong.push(format!("no relay carried it: {fidelity:?}"));
    }
    failure(wrong, &finished)
}
