//! Compares the relation of two clocks with the truth: two hosts of one kernel, the second in a time namespace, and a
//! link that is loaded in one direction.

use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deckwatch_os::clock::{monotonic_ns, sleep_until};
use deckwatch_os::namespace::Namespace;
use deckwatch_os::schedule::{Class, set_class, set_timer_slack};
use deckwatch_testbed::{Host, HostSpec, Testbed, preset};
use serde_json::Value;

use crate::watched::disturbance::Failure;

pub(super) const DECKWATCH: &str = env!("CARGO_BIN_EXE_deckwatch");

/// By how much the far CLOCK_MONOTONIC is ahead.
const AHEAD_NS: i64 = 500_000_000_000_000;

/// What was found in one trial, each window's error in nanoseconds.
#[derive(Debug, Default)]
struct Found {
    errors_ns: Vec<f64>,
    beyond_rigorous: usize,
    beyond_assumed: usize,
    rigorous_ns_max: i64,
    round_trip_ns: i64,
    /// By how much the sender of the load was late at most.
    load_late_ns_max: i64,
}

impl Found {
    fn rms_ns(&self) -> f64 {
        let squares: f64 = self.errors_ns.iter().map(|error| error * error).sum();
        (squares / self.errors_ns.len().max(1) as f64).sqrt()
    }
}

pub(super) struct Ended(pub(super) Child);

impl Drop for Ended {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

pub(super) fn namespace(host: &Host) -> &str {
    host.namespace_name().expect("a namespace")
}

pub(super) fn started(host: &Host, words: &[&str]) -> (Ended, BufReader<ChildStdout>) {
    let mut child = Command::new("ip")
        .args(["netns", "exec", namespace(host)])
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("ip is there");
    let output = BufReader::new(child.stdout.take().expect("piped"));
    (Ended(child), output)
}

pub(super) fn line(output: &mut BufReader<ChildStdout>) -> Option<Value> {
    let mut line = String::new();
    output.read_line(&mut line).expect("readable");
    serde_json::from_str(&line).ok()
}

/// Lateness of the load's sender from which the machine disturbed the trial: the frames of the hosts' other processes
/// are then held up too. In this time the line carries 16 frames.
const LOAD_LATE_NS_MAX: i64 = 2_000_000;

/// Checks a trial: 1 us root mean square, and no error beyond the bound that assumes nothing.
pub(super) fn check(load: f64) -> Result<(), Failure> {
    let found = trial(load);
    let what = format!("load {load}: {:.0} ns rms, {found:?}", found.rms_ns());
    println!("{what}");
    assert_eq!(found.beyond_rigorous, 0, "{what}");
    if found.errors_ns.len() >= 10 && found.rms_ns() <= 1_000.0 {
        return Ok(());
    }
    let disturbance = (found.load_late_ns_max > LOAD_LATE_NS_MAX)
        .then(|| format!("the load was {} ns late", found.load_late_ns_max));
    Err(Failure { what, disturbance })
}

/// Relates the clocks for 5 s, while frames of 1,538 octets on the wire load the line from the near host to the far one.
fn trial(load: f64) -> Found {
    let network = preset("fast-ethernet").expect("a preset");
    let testbed = Testbed::create(&network, &[HostSpec::new("A"), HostSpec::new("B")]);
    let testbed = testbed.expect("namespaces");
    let [near, far] = [0, 1].map(|index| &testbed.hosts()[index]);
    let at = format!("{}:0", far.address());
    let serve = [
        "unshare",
        "-T",
        "--monotonic",
        "500000",
        DECKWATCH,
        "clock",
        "--serve",
        &at,
        "--json",
    ];
    let (_far_end, mut far_output) = started(far, &serve);
    let serving = line(&mut far_output).expect("it serves");
    let to = serving["serving"].as_str().expect("an address").to_owned();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let loading = || {
            Namespace::named(namespace(near))
                .and_then(|inside| inside.run_inside(|| send_load(far, load, &is_over)))
        };
        let sender = scope.spawn(move || loading().expect("a namespace"));
        let near_words = [DECKWATCH, "clock", &to, "--json", "--for", "5s"];
        let (_near_end, mut output) = started(near, &near_words);
        let mut found = Found::default();
        while let Some(line) = line(&mut output) {
            let window = &line["window"];
            if window.is_null() {
                break;
            }
            let relation = &window["window"]["relation"];
            let ns = |value: &Value| value.as_i64().expect("a number");
            let error_ns = ns(&window["ahead_ns"]) - AHEAD_NS;
            let rigorous_ns = ns(&relation["rigorous_ns"]);
            found.errors_ns.push(error_ns as f64);
            found.beyond_rigorous += usize::from(error_ns.abs() > rigorous_ns);
            found.beyond_assumed += usize::from(error_ns.abs() > ns(&relation["assumed_ns"]));
            found.rigorous_ns_max = found.rigorous_ns_max.max(rigorous_ns);
            found.round_trip_ns = ns(&window["window"]["round_trip_ns"]);
        }
        is_over.store(true, Ordering::Relaxed);
        found.load_late_ns_max = sender.join().expect("no panic");
        found
    })
}

/// Sends frames at random times, so that the line is busy for at most this share of the time: a sender that was held up
/// does not make up for it. Returns by how much it was late at most.
fn send_load(far: &Host, load: f64, is_over: &AtomicBool) -> i64 {
    let _ = set_class(Class::Fifo(5));
    set_timer_slack(Duration::from_nanos(1));
    let sink = (far.address(), 9);
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    // A wait for room would be this test's own lateness, and no disturbance.
    socket.set_nonblocking(true).expect("set");
    // Without load the thread only looks how late it wakes up.
    let mean_ns = 123_040.0 / if load > 0.0 { load } else { 0.1 };
    let mut state = 1_u64;
    let mut due_ns = monotonic_ns();
    let mut late_ns_max = 0;
    while !is_over.load(Ordering::Relaxed) {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let even = ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        due_ns += (-even.ln() * mean_ns) as i64;
        sleep_until(due_ns);
        let late_ns = monotonic_ns() - due_ns;
        late_ns_max = late_ns_max.max(late_ns);
        if late_ns > 1_000_000 {
            due_ns += late_ns;
        }
        if load > 0.0 {
            // A full queue drops it, and a port that is closed refuses it: it has loaded the line.
            let _ = socket.send_to(&[0; 1472], sink);
        }
    }
    late_ns_max
}
