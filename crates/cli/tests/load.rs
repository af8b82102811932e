//! `deckwatch load`: loads by hand, with their target, their end and their faults.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};

use deckwatch_meter::result::ResultDocument;
use rustix::process::{Pid, Signal, kill_process};

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
    command.arg("load").args(words).env("NO_COLOR", "1");
    command
}

fn load(words: &[&str]) -> Output {
    command(words).output().expect("the program starts")
}

fn text(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).expect("UTF-8")
}

#[test]
fn help_is_as_it_was_agreed() {
    for words in ["cpu", "net", "memory", "disk"].map(|load| [load, "--help"]) {
        let output = load(&words);
        assert!(output.status.success());
        insta::assert_snapshot!(format!("help of load {}", words[0]), text(&output.stdout));
    }
}

#[test]
fn what_cannot_be_a_load_is_refused_with_what_to_write() {
    let cases: [(&[&str], &str); 17] = [
        (&["cpu", "--share", "1.5"], "such as 0.5 or 50%"),
        (&["cpu", "--share", "0"], "such as 0.5 or 50%"),
        (&["cpu", "--class", "rr:5"], "such as fifo:10"),
        (&["cpu", "--class", "fifo:0"], "such as fifo:10"),
        (
            &["cpu", "--share", "0.9", "--class", "fifo:5"],
            "Write at most 0.8",
        ),
        (&["cpu", "--class", "fifo:5"], "Give a share"),
        (&["net"], "--to <SINK>"),
        (&["net", "--to", "ship"], "such as 10.0.0.2:7007"),
        (&["net", "--to", "127.0.0.1:9", "--rate", "5"], "10Mb/s"),
        (
            &["net", "--to", "127.0.0.1:9", "--share", "0.5"],
            "Give the link",
        ),
        (
            &["net", "--to", "127.0.0.1:9", "--arrivals", "bursts:0"],
            "such as bursts:8",
        ),
        (
            &[
                "net",
                "--to",
                "127.0.0.1:9",
                "--size",
                "7",
                "--rate",
                "1kb/s",
            ],
            "8 to 65507 octets",
        ),
        (
            &["cpu", "--share", "0.1", "--cpus", "4000"],
            "Processor 4000 cannot be used",
        ),
        (&["memory", "--size", "much"], "such as 512M or 4G"),
        (&["memory", "--size", "1M"], "at least 64 MiB"),
        (&["memory", "--size", "1000000G"], "Write at most "),
        (
            &["disk", "--path", "/nonexistent"],
            "Choose one that can be written",
        ),
    ];
    for (words, wanted) in cases {
        let output = load(words);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(wanted), "{words:?}: {said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_share_is_reported_as_json_with_an_exit_status_that_agrees() {
    let output = load(&["cpu", "--share", "5%", "--for", "2200ms", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let held = report["held"].as_array().expect("processors");
    assert!(!held.is_empty());
    for held in held {
        assert_eq!(held["asked"], 0.05);
        assert_eq!(held["seconds"], 1);
    }
    // Whether it was held depends on what else runs here.
    let is_near = |held: &serde_json::Value| {
        let mean = held["mean"].as_f64().expect("a number");
        (mean - 0.05).abs() <= 0.02
    };
    let wanted = if held.iter().all(is_near) { 0 } else { 1 };
    assert_eq!(output.status.code(), Some(wanted), "{report}");
}

#[test]
fn ctrl_c_ends_a_load_with_a_summary_of_what_it_reached() {
    let mut child = command(&[
        "cpu", "--loops", "1", "--count", "1000", "--sleep", "50ms", "--for", "10min",
    ])
    .stdout(Stdio::piped())
    .spawn()
    .expect("the program starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let first = lines.next().expect("a line a second").expect("UTF-8");
    assert!(first.contains("processor"), "{first}");
    let id = Pid::from_child(&child);
    kill_process(id, Signal::INT).expect("it runs");
    let rest: Vec<String> = lines.map(|line| line.expect("UTF-8")).collect();
    assert_eq!(child.wait().expect("it ended").code(), Some(130));
    assert!(
        rest.last()
            .expect("a summary")
            .contains("bursts, the shortest in"),
        "{rest:?}"
    );
}

/// Returns the live processes whose group is led by a child of this process.
fn group_below(parent: u32) -> Vec<u32> {
    let stat = |process: u32| {
        let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let fields: Vec<String> = text
            .rsplit(')')
            .next()?
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        let number = |field: usize| fields[field].parse::<u32>().ok();
        (fields[0] != "Z").then_some((number(1)?, number(2)?))
    };
    let processes = std::fs::read_dir("/proc").expect("the kernel lists them");
    let all: Vec<(u32, u32, u32)> = processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|process| stat(process).map(|(above, group)| (process, above, group)))
        .collect();
    let leads = |group: u32| {
        all.iter()
            .any(|&(process, above, _)| process == group && above == parent)
    };
    let of_group = |&(process, _, group): &(u32, u32, u32)| leads(group).then_some(process);
    all.iter().filter_map(of_group).collect()
}

#[test]
fn no_process_of_a_load_on_memory_outlives_it_though_it_is_killed() {
    if deckwatch_testkit::program("stress-ng").is_none() {
        return;
    }
    for signal in [Signal::KILL, Signal::INT] {
        let mut child = command(&["memory", "--size", "64M", "--for", "10min"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let first = lines.next().expect("a line a second").expect("UTF-8");
        assert!(first.contains("memory: asked 64.0 MiB"), "{first}");
        let group = group_below(child.id());
        assert!(group.len() >= 2, "stress-ng and its worker: {group:?}");
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        let rest: Vec<String> = lines.map(|line| line.expect("UTF-8")).collect();
        let status = child.wait().expect("it ended");
        if signal == Signal::INT {
            assert_eq!(status.code(), Some(130));
            let last = rest.last().expect("a summary");
            assert!(last.starts_with("stress-ng "), "{rest:?}");
        }
        let lives = |process: &u32| {
            std::fs::read_to_string(format!("/proc/{process}/stat"))
                .is_ok_and(|stat| !stat.contains(") Z ") && stat.contains("(stress-ng"))
        };
        // The kernel kills the workers after the process has ended. A test that hangs here has found one.
        while group.iter().any(lives) {
            std::thread::yield_now();
        }
    }
}

#[test]
fn an_absent_stress_ng_is_named_with_its_package() {
    let output = command(&["memory", "--size", "64M"])
        .env("PATH", "/nonexistent")
        .output()
        .expect("the program starts");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("apt-get install stress-ng"), "{said}");
}

#[test]
fn a_share_of_an_emulated_link_is_carried_and_every_message_is_accounted_for() {
    let words = "net --network fast-ethernet --share 20% --arrivals poisson --for 2300ms --json";
    let output = load(&words.split(' ').collect::<Vec<_>>());
    let said = text(&output.stderr);
    if said.contains("cannot be emulated") {
        deckwatch_testkit::skip("namespaces", "network namespaces need CAP_NET_ADMIN");
        return;
    }
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect(&said);
    let held = &report["held"][0];
    assert_eq!(held["of"], "eth0 to 198.18.0.2");
    assert_eq!(held["asked"], 0.2);
    let of = |key: &str| held[key].as_f64().expect("a number");
    // The interface counts what passed it, the load what the socket took: the queue between them has a bound.
    assert!((of("mean") - of("own_mean")).abs() < 0.1, "{held}");
    let count = |what: &str, key: &str| report[what][key].as_u64().expect("a count");
    assert!(count("sent", "messages") > 0);
    assert_eq!(count("sent", "errors"), 0);
    let overflows = count("received", "overflows");
    assert_eq!(
        count("received", "datagrams") + overflows,
        count("sent", "messages")
    );
}

#[test]
fn a_load_that_the_mission_needs_and_that_misses_its_target_makes_the_run_invalid() {
    // The flow's own messages are a hundred times the rate, on the same interface.
    let load = r#"to = "SONAR", octets = 8, rate_mbit_s = 0.001, must_hold = true"#;
    let (code, said, document) = run_with("load-missed", load);
    assert_eq!(code, Some(4), "{said}");
    let document = document.expect("a document");
    let [load] = &document.environment.loads[..] else {
        panic!("one load: {:?}", document.environment.loads)
    };
    assert!(
        load.contains("asked 0.001 Mb/s, ") && load.contains("sent "),
        "{load}"
    );
    assert!(load.contains("received "), "the sink: {load}");
    let reason = &document.verdict.reasons[0];
    assert!(
        reason.contains("A load that the mission needs missed its target: RTS, lo to"),
        "{reason}"
    );
    assert!(
        document
            .warnings
            .iter()
            .any(|warning| warning.kind == "load-missed")
    );
    let [data] = &document.environment.load_results[..] else {
        panic!("one load: {:?}", document.environment.load_results)
    };
    assert_eq!((data.host.as_str(), data.kind.as_str()), ("RTS", "link"));
    // The sink has no target.
    let mut reached = data.reached.iter();
    let reached = reached.find(|one| one.asked.is_some());
    let reached = reached.expect("the load's own");
    assert_eq!(
        (reached.unit.as_str(), reached.asked),
        ("bits/s", Some(1_000.0))
    );
    assert_eq!(reached.held, Some(false));
    assert!(data.counts["sent_messages"] > 0.0, "{data:?}");
}

#[test]
fn a_load_on_memory_stands_in_the_result_as_data() {
    if deckwatch_testkit::program("stress-ng").is_none() {
        return;
    }
    let (_, said, document) = run_with("load-memory", "memory_mib = 64");
    let document = document.expect(&said);
    let [data] = &document.environment.load_results[..] else {
        panic!("one load: {:?}", document.environment.load_results)
    };
    assert_eq!((data.host.as_str(), data.kind.as_str()), ("RTS", "memory"));
    let [reached] = &data.reached[..] else {
        panic!("one memory: {data:?}")
    };
    assert_eq!(reached.unit, "octets");
    assert_eq!(reached.asked, Some(f64::from(64 << 20)));
    assert!(data.counts["bogo_operations"] > 0.0, "{data:?}");
    assert!(document.environment.loads[0].contains("stress-ng "));
}

#[test]
fn a_mission_whose_load_cannot_be_carried_out_is_not_measured() {
    let (code, said, document) = run_with("load-refused", "memory_mib = 1_000_000_000");
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("load on RTS did not become ready") && said.contains("Write at most "),
        "{said}"
    );
    assert_eq!(document, None);
}

/// Runs a mission with a load on the supplier's host. Returns its exit status, what it said, and its result.
fn run_with(name: &str, load: &str) -> (Option<i32>, String, Option<ResultDocument>) {
    let folder = crate::measuring::folder(name);
    let mission = folder.with_extension("toml");
    let text_of_mission = format!(
        r#"
name = "loaded"
network = {{ preset = "loopback" }}
hosts = [{{ name = "RTS" }}, {{ name = "SONAR" }}]
loads = [{{ hosts = ["RTS"], {load} }}]

[[flows]]
name = "NAV"
octets = 384
from = "RTS"
to = ["SONAR"]
carrier = "udp"
rate_hz = 50
deadline = "100ms"
late = "1 in 10"
duration = "1s"
warm_up = "200ms"
"#
    );
    std::fs::write(&mission, text_of_mission).expect("writable");
    let mut command = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
    command
        .arg("run")
        .arg(&mission)
        .arg("--output")
        .arg(&folder);
    let output = command.env("NO_COLOR", "1").output().expect("it runs");
    let document = ResultDocument::load(&folder.join("result.json")).ok();
    drop(std::fs::remove_dir_all(&folder));
    drop(std::fs::remove_file(&mission));
    (output.status.code(), text(&output.stderr), document)
}

#[test]
fn datagrams_to_a_port_without_a_sink_are_told_of() {
    let words = "net --to 127.0.0.1:9 --rate 100kb/s --for 1300ms";
    let words: Vec<&str> = words.split(' ').collect();
    let said = text(&load(&words).stdout);
    assert!(said.contains("nobody listens at the sink: "), "{said}");
}

#[test]
fn a_load_on_an_emulated_network_states_what_is_emulated() {
    if let Some(reason) = deckwatch_testbed::Testbed::obstacle() {
        return deckwatch_testkit::skip("namespaces", &reason);
    }
    let words = "net --network fast-ethernet --emulation relay --rate 1Mb/s --for 1300ms";
    let mut words: Vec<&str> = words.split(' ').collect();
    let said = text(&load(&words).stdout);
    assert!(said.starts_with("  Emulated: "), "{said}");
    assert!(said.contains("head-of-line"), "{said}");
    words.push("--json");
    let said = text(&load(&words).stdout);
    let report: serde_json::Value = serde_json::from_str(&said).expect("a report");
    let clauses = report["fidelity"]["emulated"].as_array();
    assert!(clauses.is_some_and(|all| !all.is_empty()), "{report}");
}
