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
    for words in [["cpu", "--help"], ["net", "--help"]] {
        let output = load(&words);
        assert!(output.status.success());
        insta::assert_snapshot!(format!("help of load {}", words[0]), text(&output.stdout));
    }
}

#[test]
fn what_cannot_be_a_load_is_refused_with_what_to_write() {
    let cases: [(&[&str], &str); 13] = [
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
    let folder = crate::measuring::folder("load-missed");
    let mission = folder.with_extension("toml");
    // The flow's own messages are a hundred times the rate, on the same interface.
    let text_of_mission = r#"
name = "missed"
network = { preset = "loopback" }
hosts = [{ name = "RTS" }, { name = "SONAR" }]
loads = [{ hosts = ["RTS"], to = "SONAR", octets = 8, rate_mbit_s = 0.001, must_hold = true }]

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
"#;
    std::fs::write(&mission, text_of_mission).expect("writable");
    let mut command = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
    command
        .arg("run")
        .arg(&mission)
        .arg("--output")
        .arg(&folder);
    let output = command.env("NO_COLOR", "1").output().expect("it runs");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    let document = ResultDocument::load(&folder.join("result.json")).expect("a document");
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
    drop(std::fs::remove_dir_all(&folder));
    drop(std::fs::remove_file(&mission));
}
