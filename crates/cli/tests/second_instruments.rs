//! Compares measurements with theory and with a second instrument, each on an emulated link that sets the number: irtt
//! where the delay is long, nuttcp where the rate is low. What the machine itself takes is small beside both. It only
//! ever adds time, so the shortest time and the highest rate of several count.

use std::io::BufReader;
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};

use deckwatch_meter::experiment::{ExperimentDocument, Measurement};
use deckwatch_testbed::{Host, HostSpec, NetworkSpec, RelayProgram, Testbed, preset};
use serde_json::Value;

use crate::known_clocks::{DECKWATCH, Ended, line, namespace, started};
use crate::watched::Folder;
use crate::watched::disturbance::{Before, Failure};

/// Returns true, and counts a skip, where the instrument is not installed.
pub(super) fn is_absent(instrument: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|folder| folder.join(instrument).is_file());
    if !is_there {
        let why = format!("it is not installed (Debian's package {instrument})");
        deckwatch_testkit::skip(instrument, &why);
    }
    !is_there
}

/// Runs a sweep with these words. Returns its document.
fn sweep_with(folder: &Folder, words: &[&str]) -> ExperimentDocument {
    let result = folder.path().join("result");
    let output = Command::new(DECKWATCH)
        .arg("sweep")
        .arg("--output")
        .arg(&result)
        .args(words)
        .output()
        .expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    ExperimentDocument::load(&result.join("result.json")).expect("a document")
}

/// Runs a sweep between the hosts A and B of a network. Returns its points.
fn sweep(folder: &Folder, network: &str, more: &[&str]) -> Vec<Measurement> {
    let between = ["--from=A", "--to=B", "--network", network];
    sweep_with(folder, &[&between, more].concat()).measurements
}

/// Runs a program to its end on a host. Returns what it printed.
fn run_on(host: &Host, words: &[&str]) -> String {
    let output = Command::new("ip")
        .args(["netns", "exec", namespace(host)])
        .args(["timeout", "-s", "KILL", "20"])
        .args(words)
        .stdin(Stdio::null())
        .output()
        .expect("ip is there");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {told}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Starts a server on a host, and waits until it has its port. Returns it with its output, which must stay open.
fn serving(host: &Host, words: &[&str], port: u16) -> (Ended, BufReader<ChildStdout>) {
    let (mut server, output) = started(host, words);
    let local = format!(":{port:04X} ");
    let tables = ["udp", "udp6", "tcp", "tcp6"];
    let tables = tables.map(|name| format!("/proc/{}/net/{name}", server.0.id()));
    let has_port = |path: &String| {
        let table = std::fs::read_to_string(path).unwrap_or_default();
        table.contains(&local)
    };
    while !tables.iter().any(has_port) {
        let status = server.0.try_wait().expect("a child");
        assert_eq!(status, None, "{words:?}");
        std::thread::yield_now();
    }
    (server, output)
}

/// The time from A to B, and back.
const ONE_WAY_NS: f64 = 5_000_000.0;

/// Two hosts, whose frames a relay delays by [`ONE_WAY_NS`].
const FAR_APART: &str = r#"
name = "far apart"
hosts = ["A", "B"]
switches = ["hub"]

[[links]]
between = ["A", "hub"]
delay = "4ms"

[[links]]
between = ["hub", "B"]
delay = "1ms"
"#;

/// Checks a shortest time against what the link takes: at most a twentieth above it, for the ends and two passages of
/// the relay; and hardly below it, because a relay sends up to 40 us early at each of two passages.
fn check_time(what: &str, found_ns: f64, link_ns: f64) -> Option<String> {
    println!("{what}: {found_ns:.0} ns of {link_ns:.0}");
    let is_right = (link_ns * 0.98..=link_ns * 1.05).contains(&found_ns);
    (!is_right).then(|| format!("{what}: {found_ns:.0} ns, and the link takes {link_ns:.0}"))
}

/// Compares the times of a sweep and of `deckwatch clock` with those of irtt.
pub(super) fn check_delay() -> Result<(), Failure> {
    let before = Before::now();
    let folder = Folder::new("second-delay");
    let file = folder.path().join("far-apart.toml");
    std::fs::write(&file, FAR_APART).expect("writable");
    let more = [
        "--carriers=udp",
        "--sizes=64",
        "--iterations=1",
        "--messages=60",
    ];
    let points = sweep(&folder, &file.display().to_string(), &more);
    let own = |key: &str| points[0].values[key];

    let testbed = emulated(&deckwatch_scenario::network::load(&file).expect("a network"));
    let [near, far] = [0, 1].map(|index| &testbed.hosts()[index]);
    let at = format!("{}:22112", far.address());
    let _server = serving(far, &["irtt", "server", "-i", "0", "-b", &at], 22_112);
    let client = [
        "irtt", "client", "-Q", "-i", "10ms", "-d", "600ms", "-l", "64", "-o", "-",
    ];
    let printed = run_on(near, &[&client[..], &[&at]].concat());
    let irtt: Value = serde_json::from_str(&printed).expect("JSON");
    let irtt = |of: &str| irtt["stats"][of]["min"].as_f64().expect("a number");

    let at = format!("{}:0", far.address());
    let (_clock, mut output) = started(far, &[DECKWATCH, "clock", "--serve", &at, "--json"]);
    let at = line(&mut output).expect("it serves")["serving"].clone();
    let at = at.as_str().expect("an address");
    let printed = run_on(near, &[DECKWATCH, "clock", at, "--for", "1s", "--json"]);
    let total: Value =
        serde_json::from_str(printed.lines().last().expect("a total")).expect("JSON");
    let clock_ns = total["total"]["best"]["window"]["round_trip_ns"].as_f64();

    let both_ns = 2.0 * ONE_WAY_NS;
    let times = [
        ("a transaction", own("transaction_min_ns"), both_ns),
        ("to the server", own("client_to_server_min_ns"), ONE_WAY_NS),
        ("to the client", own("server_to_client_min_ns"), ONE_WAY_NS),
        (
            "a round trip of the clock",
            clock_ns.expect("a window"),
            both_ns,
        ),
        ("a round trip of irtt", irtt("rtt"), both_ns),
        ("irtt to its server", irtt("send_delay"), ONE_WAY_NS),
        ("irtt to its client", irtt("receive_delay"), ONE_WAY_NS),
    ];
    let check = |(what, found_ns, link_ns): (&str, f64, f64)| check_time(what, found_ns, link_ns);
    let wrong: Vec<String> = times.into_iter().filter_map(check).collect();
    before.failure(&wrong)
}

/// Payload that fills a packet over TCP, with its time stamps.
const PAYLOAD: u32 = 1_448;
/// Headers of IP and TCP, with time stamps.
const TCP_HEADERS: u64 = 52;
/// Runs of nuttcp over each protocol, at most. Its stream of a third of a second loses 3% by one pause of 10 ms. After
/// one over UDP, it waits for two seconds.
const TRIES: usize = 3;

/// Compares the throughput of a sweep over UDP and TCP with that of nuttcp and of theory, on Fast Ethernet.
pub(super) fn check_rate() -> Result<(), Failure> {
    let before = Before::now();
    let network = preset("fast-ethernet").expect("a preset");
    let folder = Folder::new("second-rate");
    let payload = format!("--sizes={PAYLOAD}");
    let more = [
        "--carriers=udp,tcp",
        "--iterations=3",
        "--messages=600",
        &payload,
    ];
    let points = sweep(&folder, &network.name, &more);

    let testbed = emulated(&network);
    let [near, far] = [0, 1].map(|index| &testbed.hosts()[index]);
    let server = ["nuttcp", "-S", "--nofork", "-P", "22500", "-p", "22501"];
    let _server = serving(far, &server, 22_500);
    let to = far.address().to_string();
    let octets = PAYLOAD.to_string();
    let mut wrong = Vec::new();
    for (carrier, options) in [("udp", &["-u", "-Ru"][..]), ("tcp", &["-D"])] {
        let words = [
            "nuttcp", "-fparse", "-P", "22500", "-p", "22501", "-n", "2500", "-l", &octets,
        ];
        let words = [&words[..], options, &[&to]].concat();
        let link = goodput_bit_s(&network, carrier);
        let mut theirs = f64::NAN;
        for _ in 0..TRIES {
            theirs = rate_bit_s(&run_on(near, &words)).max(theirs);
            if is_of_link(theirs, link) {
                break;
            }
        }
        let point = points.iter().find(|point| point.system == carrier);
        let own = &point.expect("a point").runs["end_to_end_bit_s"];
        let own = own.iter().copied().fold(0.0, f64::max);
        println!("{carrier}: {own:.0}, nuttcp {theirs:.0}, the link {link:.0} bit/s");
        for (what, found) in [("the sweep", own), ("nuttcp", theirs)] {
            if !is_of_link(found, link) {
                let text =
                    format!("{carrier}: {what} has {found:.0} bit/s, and the link {link:.0}");
                wrong.push(text);
            }
        }
    }
    before.failure(&wrong)
}

/// Returns whether a rate is that of the link, from 3% below it.
fn is_of_link(found: f64, link: f64) -> bool {
    // A port sends a burst of two frames unshaped: 0.2% of a stream of a seventh of a second.
    (0.97..=1.01).contains(&(found / link))
}

/// The rate of payload that fills the link.
fn goodput_bit_s(network: &NetworkSpec, carrier: &str) -> f64 {
    let payload = u64::from(PAYLOAD);
    if carrier == "udp" {
        return network.udp_goodput_bits_per_s(payload).expect("a rate");
    }
    let packet_s = network.transmission_s(payload + TCP_HEADERS);
    f64::from(PAYLOAD) * 8.0 / packet_s.expect("a rate")
}

/// Reads the received bits a second from a line of nuttcp.
fn rate_bit_s(printed: &str) -> f64 {
    let word = printed
        .split_whitespace()
        .find_map(|word| word.strip_prefix("rate_Mbps="));
    word.and_then(|word| word.parse::<f64>().ok())
        .expect(printed)
        * 1e6
}

fn emulated(network: &NetworkSpec) -> Testbed {
    let program = RelayProgram::at(Path::new(DECKWATCH).to_owned());
    let hosts = [HostSpec::new("A"), HostSpec::new("B")];
    Testbed::create_by(&program, network, &hosts).expect("namespaces")
}

/// Compares a sweep on loopback with the instruments that it runs beside itself. Nothing sets the numbers there, so they
/// agree within reason only.
pub(super) fn check_beside() -> Result<(), Failure> {
    let before = Before::now();
    let mut wrong = Vec::new();
    let folder = Folder::new("sweep-beside");
    let words = [
        "--sizes=1024",
        "--iterations=1",
        "--messages=500",
        "--beside=sockperf,iperf3",
    ];
    let found = sweep_with(&folder, &words);
    for skip in &found.skipped {
        deckwatch_testkit::skip_part(&skip.what, &skip.reason);
    }
    let is_there = |name: &str| !found.skipped.iter().any(|skip| skip.what == name);
    for point in &found.measurements {
        let own = [
            (
                "sockperf",
                "p50_over_sockperf_ratio",
                "transaction_p50_ns",
                "beside_sockperf_p50_ns",
            ),
            (
                "iperf3",
                "throughput_over_iperf3_ratio",
                "end_to_end_bit_s",
                "beside_iperf3_bit_s",
            ),
        ];
        for (name, ratio, own, theirs) in own.into_iter().filter(|of| is_there(of.0)) {
            let (own, theirs) = (point.runs[own][0], point.runs[theirs][0]);
            assert_eq!(point.runs[ratio], [own / theirs], "{name}");
            if !(0.05..20.0).contains(&(own / theirs)) {
                wrong.push(format!("{name}: {own} {theirs}"));
            }
        }
    }
    before.failure(&wrong)
}
