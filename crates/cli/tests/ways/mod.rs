//! Ways of a message that a stamp in the wrong place blames on the wrong layer: out of a host whose own link is
//! saturated, and back to the caller of a two-way call.

pub(super) mod unacknowledged;

use std::net::UdpSocket;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};

use deckwatch_meter::result::FlowResult;
use deckwatch_meter::sample::Layer;
use deckwatch_os::clock::sleep_until;
use deckwatch_os::namespace::Namespace;
use deckwatch_os::socket::set_send_buffer;
use rustix::process::Signal;

use super::watched::disturbance::Failure;
use super::watched::{Finished, WatchedRun, signal};
use super::{Beat, Span, bracket, failure, found};

/// Octets of a flooding datagram: a whole frame.
const FLOOD_OCTETS: usize = 1_472;
/// Bounds the frames of one flooding socket in its host's queue, which would drop them beyond 1,000. Together they take
/// more than the deadline to leave.
const FLOOD_BUFFER_BYTES: u32 = 150_000;
const FLOODERS: usize = 5;
/// The first and the last message due while the link is flooded.
const FLOODED: (u64, u64) = (11, 50);

fn saturated_mission() -> String {
    let flow = |carrier: &str| {
        format!(
            "[[flows]]\nname = \"NAV-{carrier}\"\noctets = 384\nfrom = \"RTS\"\nto = [\"SONAR\"]\ncarrier = \"{carrier}\"\n\
             rate_hz = 20\ndeadline = \"30ms\"\nlate = \"1 in 100\"\ncount = 66\nwarm_up = \"200ms\"\n"
        )
    };
    let flows: String = super::CARRIERS.map(flow).concat();
    format!(
        "name = \"saturated\"\nnetwork = {{ preset = \"fast-ethernet\" }}\n\
         hosts = [{{ name = \"RTS\" }}, {{ name = \"SONAR\" }}, {{ name = \"PLOT\" }}]\n{flows}"
    )
}

/// Sends datagrams from one host to another until `stopped`, as fast as the host's link permits.
fn flood(from: &str, to: std::net::Ipv4Addr, stopped: &AtomicBool) {
    let namespace = Namespace::named(from).expect("the host is there");
    let socket = namespace
        .run_inside(|| UdpSocket::bind("0.0.0.0:0"))
        .and_then(|bound| bound)
        .expect("a socket");
    set_send_buffer(&socket, FLOOD_BUFFER_BYTES).expect("set");
    let datagram = [0; FLOOD_OCTETS];
    while !stopped.load(Ordering::Relaxed) {
        // A refusal by the other host, where nobody listens, does not matter.
        let _ = socket.send_to(&datagram, (to, 9));
    }
}

pub(super) fn check_saturated() -> Result<(), Failure> {
    let run = WatchedRun::start("saturated", &saturated_mission(), &[]);
    let beat = Beat {
        start_ns: run.start_ns(),
    };
    let testbed = run.testbed();
    let from = testbed.namespace_of("RTS").expect("a host");
    let to = testbed.address_of("PLOT").expect("a host");
    let stopped = AtomicBool::new(false);
    sleep_until(beat.after(FLOODED.0 - 1));
    std::thread::scope(|scope| {
        for _ in 0..FLOODERS {
            scope.spawn(|| flood(&from, to, &stopped));
        }
        sleep_until(beat.after(FLOODED.1));
        stopped.store(true, Ordering::Relaxed);
    });
    let finished = run.finish();
    let mut wrong = Vec::new();
    for flow in &finished.document.flows {
        let late = found(finished.samples_of(flow));
        let by_network = late
            .values()
            .filter(|blame| **blame == Some(Layer::Network))
            .count();
        let flooded = FLOODED.1 - FLOODED.0;
        if (by_network as u64) < flooded / 2 || by_network != late.len() {
            wrong.push(said(flow, &late));
        }
    }
    failure(wrong, &finished)
}

fn said(flow: &FlowResult, late: &impl std::fmt::Debug) -> String {
    let result = &flow.destinations[0];
    format!(
        "{} over {}: {late:?}; layers when late {:?}, {:?}",
        flow.name, flow.carrier, result.late_layers_ns, result.counts
    )
}

/// The last message before half of the frames to RTS are dropped, and the last message meanwhile.
const LOSSY: (u64, u64) = (44, 58);

/// Two-way calls to SONAR, whose replies are held and lost on the way back, and calls whose supplier is stopped while the servant
/// works.
const RETURNS: &str = r#"
name = "returns"
network = { preset = "gigabit-ethernet" }
hosts = [{ name = "RTS" }, { name = "SONAR" }, { name = "SHORE" }, { name = "RADAR" }]

[[flows]]
name = "CALLS"
octets = 384
from = "RTS"
to = ["SONAR"]
carrier = "corba"
rate_hz = 20
deadline = "120ms"
late = "1 in 100"
count = 66
warm_up = "200ms"

[[flows]]
name = "PUSHES"
octets = 384
from = "RTS"
to = ["SONAR"]
carrier = "event"
rate_hz = 20
deadline = "120ms"
late = "1 in 100"
count = 66
warm_up = "200ms"

[[flows]]
name = "STOPPED"
octets = 384
from = "SHORE"
to = ["RADAR"]
carrier = "corba"
rate_hz = 20
handle_for = "10ms"
deadline = "120ms"
late = "1 in 100"
count = 66
warm_up = "200ms"
"#;

pub(super) fn check_returns() -> Result<(), Failure> {
    let run = WatchedRun::start("returns", RETURNS, &[]);
    let beat = Beat {
        start_ns: run.start_ns(),
    };
    let supplier = run.parts("supplier of STOPPED");
    let back = run.port("RTS");
    // The servant has message 8 and works; the reply finds a stopped supplier.
    let in_call_ns = beat.due_ns(8) + 5_000_000;
    let stopped = Span {
        from_ns: bracket(in_call_ns, || signal(&supplier, Signal::STOP)),
        to_ns: bracket(beat.after(12) + Beat::DEADLINE_NS, || {
            signal(&supplier, Signal::CONT);
        }),
    };
    let held = beat.between(
        30,
        36,
        || back.hold().expect("held"),
        || back.release().expect("released"),
    );
    let half = NonZeroU32::new(2).expect("not 0");
    sleep_until(beat.after(LOSSY.0));
    back.lose_every(half).expect("loses");
    sleep_until(beat.after(LOSSY.1));
    back.lose_none().expect("loses none");
    let finished = run.finish();
    let mut wrong = Vec::new();
    for name in ["CALLS", "PUSHES"] {
        // Which messages wait for a reply that is sent again is for TCP to say.
        let all = found(finished.samples_of(finished.flow(name)));
        let lossy: Vec<u64> = all.into_keys().filter(|late| *late > LOSSY.0).collect();
        wrong.extend(
            lossy
                .is_empty()
                .then(|| format!("{name}: no reply was lost")),
        );
        // The first message arrives; its reply does not, and the messages after it wait.
        let held = late_by(beat, held)?.into_iter().skip(1);
        let expected = held.chain(lossy);
        wrong.extend(differs(&finished, name, expected, Layer::Network, true));
    }
    // Message 8 itself has arrived, so the span begins after it.
    let after = beat.after(8);
    let stopped = Span {
        from_ns: (after, after),
        ..stopped
    };
    let expected = late_by(beat, stopped)?.into_iter();
    wrong.extend(differs(
        &finished,
        "STOPPED",
        expected,
        Layer::Sender,
        false,
    ));
    failure(wrong, &finished)
}

fn late_by(beat: Beat, span: Span) -> Result<Vec<u64>, Failure> {
    beat.late_by(span).map_err(|held_up| Failure {
        what: held_up.clone(),
        disturbance: Some(held_up),
    })
}

/// Returns what is wrong if these messages were not late, or any late one is blamed on another layer. `only`: no others
/// may be late; otherwise they may be late behind the backlog of a servant that works.
fn differs(
    finished: &Finished,
    name: &str,
    expected: impl Iterator<Item = u64>,
    layer: Layer,
    only: bool,
) -> Option<String> {
    let flow = finished.flow(name);
    let late = found(finished.samples_of(flow));
    let expected: Vec<u64> = expected.collect();
    let blamed = expected
        .iter()
        .all(|sequence| late.get(sequence) == Some(&Some(layer)));
    let others = late
        .iter()
        .filter(|(sequence, _)| !expected.contains(sequence))
        .all(|(_, blame)| !only && [Some(layer), Some(Layer::Application)].contains(blame));
    (expected.len() < 3 || !blamed || !others)
        .then(|| format!("{expected:?} by {layer:?}: {}", said(flow, &late)))
}
