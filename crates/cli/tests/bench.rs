//! `deckwatch bench`: work inserted into the servant shows in times and counts, and a bench that ends early keeps its
//! results.

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::measuring::{Measuring, folder};
use serde_json::Value;

fn bench(test: &str, more: &[&str]) -> (Command, PathBuf) {
    let folder = folder(test);
    let mut command = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
    command
        .args(["bench", "call", "--condition", "default", "--json"])
        .args(["--run-time", "200ms", "--octets", "64"])
        .args(["--without", "jacorb,rustorb", "--output"])
        .arg(&folder)
        .args(more);
    (command, folder)
}

fn document(output: &Output) -> Value {
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaints}");
    printed(output)
}

fn printed(output: &Output) -> Value {
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for skip in document["skipped"].as_array().expect("a list") {
        let word = |key: &str| skip[key].as_str().unwrap_or_default().to_owned();
        // The test itself excluded it with `--without`.
        if word("reason") == "left out as asked" {
            continue;
        }
        deckwatch_testkit::skip_part(&word("what"), &word("reason"));
    }
    document
}

fn ours(document: &Value) -> &Value {
    let measurements = document["measurements"].as_array().expect("a list");
    measurements
        .iter()
        .find(|one| one["system"] == "deckwatch")
        .expect("our own ORB is always there")
}

fn pairs(document: &Value) -> usize {
    let ratios = ours(document)["runs"]["p50_ratio"].as_array();
    ratios.expect("a list").len()
}

#[test]
fn a_delay_in_the_servant_shows_in_the_round_trips_and_in_no_other() {
    const DELAY_NS: f64 = 400_000.0;
    let (mut command, folder) = bench(
        "bench-delay",
        &["--rounds", "2", "--servant-delay", "400us"],
    );
    let document = document(&command.output().expect("it runs"));
    let ours = ours(&document);
    let value = |name: &str| ours["values"][name].as_f64().expect("a number");
    let p50_ns = value("p50_ns");
    assert!(p50_ns >= DELAY_NS, "{p50_ns}");
    // Raw TCP has no servant and no delay.
    let raw_ns = value("beside_p50_ns");
    let ratio = value("p50_ratio");
    assert!(ratio > 1.0 && raw_ns < p50_ns, "{ratio}, {raw_ns}");
    let warned = document["warnings"].as_array().expect("a list");
    assert!(
        warned
            .iter()
            .any(|warning| warning["kind"] == "servant-delay")
    );
    let written = std::fs::read(folder.join("result.json")).expect("the result is kept");
    let written: Value = serde_json::from_slice(&written).expect("JSON");
    assert_eq!(written["measurements"], document["measurements"]);
    assert_eq!(written["standings"], document["standings"]);
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn the_report_is_written_where_it_is_asked_for_and_made_again_from_the_result() {
    let more = ["--quick", "--without", "omniorb", "--report"];
    let (mut command, folder) = bench("bench-report", &more);
    let report = folder.with_extension("html");
    let output = command.arg(&report).output().expect("it runs");
    document(&output);
    assert!(!folder.join("report.html").exists());
    let first = std::fs::read_to_string(&report).expect("a report");
    let again = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .arg("report")
        .arg(&folder)
        .args(["-o".as_ref(), report.as_os_str()])
        .status();
    assert!(again.expect("it runs").success());
    let second = std::fs::read_to_string(&report).expect("a report");
    assert!(first == second);
    std::fs::remove_file(&report).expect("removed");
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_bench_ended_early_keeps_what_it_has_and_says_so() {
    let (mut command, folder) = bench("bench-ended", &["--rounds", "10000"]);
    let measuring = Measuring::until_round_2(&mut command);
    measuring.send("-INT");
    let output = measuring.output();
    assert_eq!(output.status.code(), Some(130));
    let complaints = String::from_utf8_lossy(&output.stderr);
    let told = format!(
        "Ended early by SIGINT; what was measured until then is kept in {}.",
        folder.display()
    );
    assert!(complaints.contains(&told), "{complaints}");
    let document = printed(&output);
    let pairs = pairs(&document);
    assert!((1..10_000).contains(&pairs), "{pairs}");
    let warned = document["warnings"].as_array().expect("a list");
    assert!(
        warned
            .iter()
            .any(|warning| warning["kind"] == "ended-early")
    );
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn an_end_of_a_rest_is_not_waited_for_and_nothing_is_left_of_a_bench_that_measured_nothing() {
    // The first rest takes half an hour and comes after the first run.
    let more = ["--condition", "pinned", "--run-time", "3600s"];
    let folder = folder("bench-rest");
    let mut command = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
    command
        .args(["bench", "call", "--octets", "64", "--output"])
        .arg(&folder)
        .args(["--without", "omniorb,jacorb,rustorb"])
        .args(more);
    let measuring = Measuring::until(&mut command, "round 0 of");
    measuring.send("-TERM");
    let output = measuring.output();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(143), "{complaints}");
    assert!(complaints.contains("Ended by SIGTERM"), "{complaints}");
    assert!(!folder.exists());
}

#[test]
fn a_bench_whose_end_is_killed_keeps_what_it_has_and_says_so() {
    for end in ["orb-client", "orb-server"] {
        killed(end);
    }
}

fn killed(end: &str) {
    let (mut command, folder) = bench(&format!("bench-killed-{end}"), &["--rounds", "10000"]);
    let measuring = Measuring::until_round_2(&mut command);
    measuring.kill_end(&["laboratory-end", end]);
    let output = measuring.output();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{complaints}");
    let who = end.replace("orb-", "The ") + " of deckwatch cannot go on: it was killed by signal 9";
    assert!(complaints.contains(&who), "{complaints}");
    assert!(
        complaints.contains(&format!("is kept in {}", folder.display())),
        "{complaints}"
    );
    assert_eq!(
        printed(&output)["warnings"]
            .as_array()
            .expect("a list")
            .iter()
            .filter(|it| it["kind"] == "broken-off")
            .count(),
        1
    );
    assert!(folder.join("report.html").exists());
    let kept = std::fs::read(folder.join("result.json")).expect("the result is kept");
    let kept: Value = serde_json::from_slice(&kept).expect("JSON");
    assert!(pairs(&kept) > 0);
    let warned = kept["warnings"].as_array().expect("a list");
    let broken_off = warned.iter().find(|it| it["kind"] == "broken-off");
    let text = broken_off.expect("a warning")["text"].to_string();
    assert!(text.contains("it was killed"), "{text}");
    let reported = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .arg("report")
        .arg(&folder)
        .status();
    assert!(reported.expect("it runs").success());
    let page = std::fs::read_to_string(folder.join("report.html")).expect("a report");
    for said in [
        "The measurement could not go on",
        "two-way 64 B, p50 over raw TCP",
        "class=\"chart plot\"",
    ] {
        assert!(page.contains(said), "{said}");
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}

/// Returns the counts of a request at our server, with work inserted into its servant.
fn counted(insert: &[&str]) -> Option<Value> {
    let folder = folder(&format!("bench-counters{}", insert.concat()));
    let output = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .args(["bench", "counters", "--condition", "default", "--json"])
        .args(["--without", "omniorb,jacorb,rustorb", "--output"])
        .arg(&folder)
        .args(insert)
        .output()
        .expect("it runs");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaints}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    std::fs::remove_dir_all(&folder).expect("removed");
    let skipped = document["skipped"].as_array().expect("a list");
    if let Some(skip) = skipped.iter().find(|skip| skip["what"] == "deckwatch") {
        let reason = skip["reason"].as_str().unwrap_or_default();
        deckwatch_testkit::skip("perf events", reason);
        return None;
    }
    Some(ours(&document)["values"].clone())
}

#[test]
fn an_allocation_a_lock_of_each_kind_and_a_call_put_into_the_servant_are_counted_once_a_request_each()
 {
    let Some(plain) = counted(&[]) else {
        return;
    };
    let number = |counts: &Value, key: &str| counts[key].as_f64().expect("counted");
    const KEYS: [&str; 5] = [
        "allocations",
        "mutex_locks",
        "rust_locks",
        "futex_calls",
        "system_calls",
    ];
    // Periodic work of the server, and its starting and ending threads, affect a few of the thousands of requests.
    const SLACK: f64 = 0.1;
    for key in ["allocations", "mutex_locks", "rust_locks", "futex_calls"] {
        assert!(number(&plain, key) < SLACK, "{plain}");
    }
    // A lock is ours and one of the C library, a `Mutex` and a `RwLock` of Rust's, and a futex call.
    for (what, expected) in [
        ("allocation", [1.0, 0.0, 0.0, 0.0, 0.0]),
        ("lock", [0.0, 2.0, 2.0, 1.0, 1.0]),
        ("call", [0.0, 0.0, 0.0, 0.0, 1.0]),
    ] {
        let Some(counts) = counted(&["--insert", what]) else {
            return;
        };
        for (key, expected) in KEYS.into_iter().zip(expected) {
            let more = number(&counts, key) - number(&plain, key);
            assert!((more - expected).abs() < SLACK, "{what}: {key} {more}");
        }
    }
}
