//! `deckwatch clock` at work: against another end, one that does not answer, one in another time, and a signal.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Output, Stdio};

use deckwatch_testbed::Testbed;
use rustix::process::Signal;
use serde_json::Value;

use crate::watched::signal;

const DECKWATCH: &str = env!("CARGO_BIN_EXE_deckwatch");

fn clock(words: &[&str]) -> Command {
    let mut command = Command::new(DECKWATCH);
    command
        .arg("clock")
        .args(words)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run(words: &[&str]) -> Output {
    clock(words).output().expect("it runs")
}

/// Returns the error of a command that ends with status 2.
fn refused(words: &[&str]) -> String {
    let output = run(words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
    said
}

/// Starts an end that answers. Returns it with its address.
fn serving() -> (Child, String) {
    let mut far = clock(&["--serve", "127.0.0.1:0", "--json"]);
    let mut far = far.spawn().expect("it runs");
    let mut line = String::new();
    let output = far.stdout.as_mut().expect("piped");
    BufReader::new(output).read_line(&mut line).expect("a line");
    let line: Value = serde_json::from_str(&line).expect("JSON");
    let address = line["serving"].as_str().expect("an address").to_owned();
    (far, address)
}

/// Ends a process by Ctrl-C.
fn interrupt(mut child: Child) -> String {
    signal(&[child.id()], Signal::INT);
    let mut rest = String::new();
    let mut output = child.stdout.take().expect("piped");
    output.read_to_string(&mut rest).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{rest}");
    rest
}

fn last_total(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().last().expect("a line");
    let line: Value = serde_json::from_str(line).expect("JSON");
    line["total"].clone()
}

#[test]
fn two_ends_of_one_machine_find_one_clock_within_the_bound() {
    let (far, address) = serving();
    let output = run(&[&address, &address, "--for", "2s", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let total = last_total(&output);
    let best = &total["best"];
    let ahead_ns = best["realtime_ahead_ns"].as_i64().expect("a number");
    let rigorous_ns = best["window"]["relation"]["rigorous_ns"].as_i64();
    assert!(ahead_ns.abs() <= rigorous_ns.expect("a bound"), "{total}");
    assert_eq!(total["impossible"], 0, "{total}");
    assert_eq!(total["counts"]["ignored"], 0, "{total}");
    for machine in ["near_sync", "far_sync"] {
        assert_eq!(
            total[machine]["status"], total["near_sync"]["status"],
            "{total}"
        );
    }
    let asked = total["counts"]["answered"].as_u64().expect("a number");
    let rest = interrupt(far);
    let served: Value = serde_json::from_str(&rest).expect("JSON");
    // Two probers asked.
    let answered = served["total"]["answered"].as_u64().expect("a number");
    assert!(answered > asked, "{rest} {total}");
}

#[test]
fn a_machine_in_another_time_is_reached_through_the_pipe_and_its_offset_is_found() {
    if let Some(reason) = Testbed::obstacle() {
        deckwatch_testkit::skip("namespaces", &reason);
        return;
    }
    let reach = ["unshare", "-T", "--monotonic", "500000"];
    let words = [
        "127.0.0.1",
        "--for",
        "1s",
        "--json",
        "--program",
        DECKWATCH,
        "--reach",
    ];
    let output = run(&[&words[..], &reach[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let total = last_total(&output);
    let best = &total["best"];
    let ahead_ns = best["ahead_ns"].as_i64().expect("a number");
    let rigorous_ns = best["window"]["relation"]["rigorous_ns"].as_i64();
    let error_ns = (ahead_ns - 500_000_000_000_000).abs();
    assert!(error_ns <= rigorous_ns.expect("a bound"), "{total}");
    // Its time of day is that of this machine.
    let ahead_ns = best["realtime_ahead_ns"].as_i64().expect("a number");
    assert!(ahead_ns.abs() <= rigorous_ns.expect("a bound"), "{total}");
}

#[test]
fn ctrl_c_prints_the_total_and_sets_the_status() {
    let (far, address) = serving();
    let mut near = clock(&[&address]).spawn().expect("it runs");
    let mut output = BufReader::new(near.stdout.take().expect("piped"));
    let mut lines = String::new();
    for _ in 0..2 {
        output.read_line(&mut lines).expect("a line");
    }
    assert!(lines.starts_with("host "), "{lines}");
    signal(&[near.id()], Signal::INT);
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("text");
    assert_eq!(near.wait().expect("it ends").code(), Some(130), "{rest}");
    let total = format!("\n{address}: ");
    for part in [&total[..], "at best: ", "far clock: ", "this clock: "] {
        assert!(rest.contains(part), "{part}: {rest}");
    }
    interrupt(far);
}

#[test]
fn what_does_not_answer_or_cannot_be_reached_is_told_with_what_to_do() {
    let closed = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback");
    let address = closed.local_addr().expect("bound").to_string();
    let silent = refused(&[&address, "--for", "200ms"]);
    assert!(silent.contains("Nothing came back"), "{silent}");
    drop(closed);
    let closed = refused(&[&address, "--for", "200ms"]);
    assert!(closed.contains("nothing listens at that port"), "{closed}");
    assert!(closed.contains("deckwatch clock --serve"), "{closed}");
    let name = refused(&["no such host"]);
    assert!(name.contains("`no such host` is no host"), "{name}");
    let address = refused(&["--serve", "192.0.2.1"]);
    assert!(
        address.contains("Write an address of this machine"),
        "{address}"
    );
    let busy = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback");
    let port = busy.local_addr().expect("bound").to_string();
    let told = refused(&["--serve", &port]);
    let place = format!("Nothing can be received at {port} (");
    for part in [&place[..], "another program has this port", "`ss -tunap`"] {
        assert!(told.contains(part), "{told}");
    }
    let none = refused(&[]);
    assert!(none.contains("HOST"), "{none}");
    let reach = ["--reach", "env"];
    let not_an_address = refused(&[&["rts.ship"], &reach[..]].concat());
    assert!(
        not_an_address.contains("an IP address of the far machine"),
        "{not_an_address}"
    );
    let two = refused(&[&["10.0.0.1", "10.0.0.2"], &reach[..]].concat());
    assert!(two.contains("no other host"), "{two}");
    let missing = ["127.0.0.1", "--program", "/nowhere/deckwatch"];
    let missing = refused(&[&missing, &reach[..]].concat());
    assert!(
        missing.contains("There is no `/nowhere/deckwatch`"),
        "{missing}"
    );
    let elsewhere = ["192.0.2.1", "--program", DECKWATCH];
    let elsewhere = refused(&[&elsewhere, &reach[..]].concat());
    assert!(
        elsewhere.contains("Write an address of that host"),
        "{elsewhere}"
    );
}

#[test]
fn the_help_explains_each_column_with_examples() {
    let output = run(&["--help"]);
    let help = String::from_utf8(output.stdout).expect("text");
    insta::assert_snapshot!("help of clock", help);
}
