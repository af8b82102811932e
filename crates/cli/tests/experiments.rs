//! The experiments of the papers, each in a few seconds. Each must find the work or delay that the test inserts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::measuring::{Measuring, folder};
use deckwatch_meter::experiment::{ExperimentDocument, Measurement};

/// Returns a quick experiment in the time-sharing class, so that it runs on every machine.
fn experiment(name: &str, test: &str, more: &[&str]) -> (Command, PathBuf) {
    let folder = folder(test);
    let mut command = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
    command
        .args([name, "--quick", "--condition", "default", "--output"])
        .arg(&folder)
        .args(more);
    (command, folder)
}

/// Returns the result document, and removes the folder.
fn found(output: &Output, folder: &Path) -> ExperimentDocument {
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaints}");
    let document = ExperimentDocument::load(&folder.join("result.json")).expect("a document");
    let report = std::fs::read_to_string(folder.join("report.html")).expect("a report");
    assert!(report.matches("class=\"chart plot\"").count() == document.figures.len());
    for skip in &document.skipped {
        let is_counter = skip.what.contains(" at the ");
        let what = if is_counter {
            "perf events"
        } else {
            &skip.what
        };
        deckwatch_testkit::skip_part(what, &skip.reason);
    }
    for measurement in &document.measurements {
        let counted: u64 = measurement.histogram.iter().map(|(_, count)| count).sum();
        assert_eq!(counted, measurement.samples, "{}", measurement.case);
    }
    std::fs::remove_dir_all(folder).expect("removed");
    document
}

fn run(name: &str, test: &str, more: &[&str]) -> ExperimentDocument {
    let (mut command, folder) = experiment(name, test, more);
    let document = found(&command.output().expect("it runs"), &folder);
    assert_eq!(document.experiment, name);
    document
}

/// Returns the measurements of one system.
fn of<'d>(
    document: &'d ExperimentDocument,
    system: &'d str,
) -> impl Iterator<Item = &'d Measurement> {
    let all = document.measurements.iter();
    all.filter(move |one| one.system == system)
}

fn value(measurement: &Measurement, name: &str) -> f64 {
    let found = measurement.values.get(name);
    *found.unwrap_or_else(|| panic!("{name} of {}: {:?}", measurement.case, measurement.values))
}

#[test]
fn each_command_says_what_it_measures_and_how() {
    for name in [
        "bench call",
        "bench attacks",
        "sweep",
        "invert",
        "costs",
        "invoke",
        "marshal",
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
            .args(name.split(' '))
            .arg("--help")
            .output()
            .expect("it runs");
        assert!(output.status.success());
        let help = String::from_utf8(output.stdout).expect("text");
        insta::assert_snapshot!(format!("help of {name}"), help);
    }
}

#[test]
fn a_delay_in_the_servant_shows_in_every_two_way_call_and_in_no_one_way() {
    const DELAY_NS: f64 = 300_000.0;
    let arguments = [
        "--servant-delay",
        "300us",
        "--servants",
        "1,3",
        "--sizes",
        "64",
    ];
    let document = run("invoke", "invoke-delay", &arguments);
    let mut ways = BTreeMap::new();
    for measurement in of(&document, "deckwatch") {
        let least_ns = value(measurement, "min_ns");
        let is_two_way = measurement.case.starts_with("two-way");
        *ways.entry(is_two_way).or_insert(0) += 1;
        assert!(!is_two_way || least_ns >= DELAY_NS, "{}", measurement.case);
    }
    // Eight cases with one servant, twice as many with three, and two types at one size.
    assert_eq!(ways, BTreeMap::from([(false, 20), (true, 20)]));
    // The fastest one-way did not wait for the servant.
    let one_way = of(&document, "deckwatch").filter(|one| one.case.starts_with("one-way"));
    let least = one_way
        .map(|one| value(one, "min_ns"))
        .fold(f64::INFINITY, f64::min);
    assert!(least < DELAY_NS, "{least}");
    assert!(
        document
            .warnings
            .iter()
            .any(|warning| warning.kind == "servant-delay")
    );
}

#[test]
fn every_type_is_marshalled_in_both_ways_and_streamed() {
    let arguments = [
        "--types",
        "octet,wchar,double,string,enum,any,struct",
        "--size-max",
        "256",
    ];
    let document = run("marshal", "marshal-types", &arguments);
    for system in ["deckwatch", "raw TCP"] {
        // Each of the seven types at 1 and at 256 octets.
        assert_eq!(of(&document, system).count(), 14, "{system}");
        for measurement in of(&document, system) {
            assert!(value(measurement, "mean_ns") > 0.0);
            assert!(value(measurement, "throughput_bit_s") > 0.0);
        }
    }
    // A raw TCP message is larger than the payload by headers of constant size.
    for measurement in of(&document, "raw TCP") {
        let more = value(measurement, "request_octets") - measurement.factors["payload_octets"];
        assert!(
            (40.0..400.0).contains(&more),
            "{}: {more}",
            measurement.case
        );
    }
}

#[test]
fn work_for_low_priority_clients_shows_with_them_and_a_delay_with_everybody() {
    const WORK_NS: f64 = 400_000.0;
    const DELAY_NS: f64 = 200_000.0;
    let arguments = [
        "--low-work",
        "400us",
        "--servant-delay",
        "200us",
        "--low-clients",
        "0,2",
    ];
    let document = run("invert", "invert-work", &arguments);
    let leading = &document.figures[0];
    assert!(
        leading.title.contains("from due to done"),
        "{}",
        leading.title
    );
    assert!(!leading.curves.is_empty() && leading.notes.is_empty());
    let round_trip = document
        .figures
        .iter()
        .find(|it| it.title.starts_with("Latency"));
    let notes = &round_trip.expect("the slides' figure").notes;
    assert!(notes[0].contains("A round trip begins when the client sends"));
    for system in ["deckwatch", "deckwatch with lanes"] {
        let cases: Vec<(&str, f64)> = of(&document, system)
            .map(|one| (one.case.as_str(), value(one, "min_ns")))
            .collect();
        assert_eq!(cases.len(), 5, "{cases:?}");
        for (case, least_ns) in cases {
            let at_least = if case.starts_with("low") {
                WORK_NS + DELAY_NS
            } else {
                DELAY_NS
            };
            assert!(least_ns >= at_least, "{system}, {case}: {least_ns}");
        }
    }
}

#[test]
fn locks_put_into_the_servant_are_counted() {
    const LOCKS: f64 = 7.0;
    let counted = |test, locks| {
        let arguments = ["--insert", locks, "--rates", "200"];
        let document = run("costs", test, &arguments);
        let left = of(&document, "deckwatch")
            .find(|one| one.values.contains_key("factoring_left_share"))
            .map(|one| value(one, "factoring_left_share"));
        assert!(left.expect("measured") > 0.0);
        let server = of(&document, "deckwatch").find(|one| one.case.ends_with("at the server"));
        server.and_then(|one| one.values.get("locks_per_request").copied())
    };
    let (without, with) = (counted("costs-0", "lock:0"), counted("costs-7", "lock:7"));
    let Some((without, with)) = without.zip(with) else {
        return deckwatch_testkit::skip_part("perf events", "locks cannot be counted here");
    };
    // Each is one of ours and one of the C library. Those of Rust's library are counted by `bench counters` alone.
    let expected = 2.0 * LOCKS;
    assert!((with - without - expected).abs() < 0.1, "{without}, {with}");
}

#[test]
fn an_experiment_ended_early_keeps_what_it_has_and_says_so() {
    let more = ["--rounds", "1000", "--types", "char", "--size-max", "1"];
    let (mut command, folder) = experiment("marshal", "marshal-ended", &more);
    let measuring = Measuring::until_round_2(&mut command);
    measuring.send("-INT");
    let output = measuring.output();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{complaints}");
    assert!(complaints.contains("Ended early by SIGINT"), "{complaints}");
    let document = ExperimentDocument::load(&folder.join("result.json")).expect("a document");
    std::fs::remove_dir_all(&folder).expect("removed");
    assert!(of(&document, "deckwatch").count() >= 1);
    assert!(
        document
            .warnings
            .iter()
            .any(|warning| warning.kind == "ended-early")
    );
}

#[test]
fn an_experiment_whose_end_is_killed_keeps_what_it_has_and_says_so() {
    for end in ["client", "server"] {
        killed(end);
    }
}

fn killed(end: &str) {
    let more = ["--rounds", "1000", "--types", "char", "--size-max", "1"];
    let (mut command, folder) = experiment("marshal", &format!("marshal-killed-{end}"), &more);
    let measuring = Measuring::until_round_2(&mut command);
    measuring.kill_end(&["laboratory-end", &format!("orb-{end}")]);
    let output = measuring.output();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{complaints}");
    let who = format!("The {end} of deckwatch cannot go on: it was killed by signal 9");
    assert!(complaints.contains(&who), "{complaints}");
    let document = ExperimentDocument::load(&folder.join("result.json")).expect("a document");
    assert!(of(&document, "deckwatch").count() >= 1);
    let broken_off = document.warnings.iter().find(|it| it.kind == "broken-off");
    assert!(
        broken_off
            .expect("a warning")
            .text
            .contains("it was killed")
    );
    assert!(folder.join("report.html").exists());
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn nothing_is_measured_for_a_folder_that_is_taken() {
    let (mut command, folder) = experiment("marshal", "marshal-taken", &["--types", "char"]);
    std::fs::create_dir_all(folder.join("of somebody else")).expect("a folder");
    let output = command.output().expect("it runs");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{complaints}");
    assert!(complaints.starts_with("error: The folder"), "{complaints}");
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn an_experiment_that_nobody_can_hear_is_carried_out_all_the_same() {
    let more = ["--types", "char", "--size-max", "1"];
    let (mut command, folder) = experiment("marshal", "marshal-unheard", &more);
    let full = || std::fs::File::options().write(true).open("/dev/full");
    command.stderr(full().expect("a device"));
    let output = command.output().expect("it runs");
    assert!(of(&found(&output, &folder), "deckwatch").count() >= 1);
}

#[test]
fn what_no_run_can_keep_is_refused_in_words() {
    let refused: [(&[&str], &str); 4] = [
        (
            &["invert", "--high-rate", "1e-300"],
            "write a number of calls a second, from 0.001",
        ),
        (
            &["bench", "call", "--run-time", "18446744073s"],
            "One run takes at most 3600s",
        ),
        (
            &["marshal", "--types", "all,foo"],
            "write `all`, or one of octet",
        ),
        (&["ior", "/dev/zero"], "it is a device"),
    ];
    for (words, reason) in refused {
        let output = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
            .args(words)
            .output()
            .expect("it runs");
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{complaints}");
        assert!(complaints.contains(reason), "{complaints}");
    }
}
