//! A minute of `deckwatch soak`: every server under load, with kills and stops.
//!
//! This is a test program of its own: it takes a minute, in which the machine has time for other programs, and measures
//! nothing that they disturb.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use deckwatch_meter::experiment::{ExperimentDocument, MACHINE, Quantity, Soak};
use deckwatch_meter::result::VerdictKind;
use rustix::process::{Pid, Signal, kill_process};

const SERVERS: [&str; 7] = [
    "names",
    "channel",
    "real-time channel",
    "object over TCP",
    "object over a unix socket",
    "object over shared memory",
    "object over TLS",
];

fn soak(folder: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
    command
        .args(["soak", "--seed", "1", "--output"])
        .arg(folder)
        .args(more)
        .env("NO_COLOR", "1");
    command
}

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("deckwatch-soak-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path); // Absent, unless a process of this number left it.
    path
}

/// The whole result, whose processes have ended.
fn result(folder: &Path, output: &Output) -> Soak {
    let said = String::from_utf8_lossy(&output.stderr);
    let document = ExperimentDocument::load(&folder.join("result.json"));
    let document = document.unwrap_or_else(|error| panic!("{error}: {said}"));
    let report = std::fs::read_to_string(folder.join("report.html")).expect("a report");
    assert_eq!(report.matches("class=\"chart plot\"").count(), 4, "{said}");
    document.soak.expect("a verdict")
}

/// Processes whose command names a folder of this soak's stores.
fn left_of(soak: u32) -> Vec<String> {
    let work = format!("deckwatch-soak-{soak}/");
    let processes = std::fs::read_dir("/proc").expect("the kernel lists them");
    let commands = processes.filter_map(|one| {
        let command = std::fs::read(one.ok()?.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&command).replace('\0', " "))
    });
    commands.filter(|command| command.contains(&work)).collect()
}

#[test]
fn a_minute_under_load_and_faults_finds_nothing_that_fails() {
    let folder = folder("minute");
    let output = soak(&folder, &["--for", "60s"]).output().expect("it runs");
    let soak = result(&folder, &output);
    assert!(soak.verdict < VerdictKind::Fail, "{:#?}", soak.reasons);
    let status = if soak.verdict == VerdictKind::Pass {
        0
    } else {
        3
    };
    assert_eq!(output.status.code(), Some(status));
    for server in SERVERS {
        for quantity in Quantity::ALL {
            let is_it = |one: &&deckwatch_meter::experiment::SoakSeries| {
                one.server == server && one.quantity == quantity
            };
            let series = soak.series.iter().find(is_it).expect("a series");
            let points = series.segments.concat().len();
            let least = if quantity == Quantity::P99 { 5 } else { 100 };
            assert!(points >= least, "{server} {quantity:?}: {points}");
        }
        let of_calls = |name: &str| name.starts_with(&format!("calls of {server} succeed"));
        let calls = soak.checks.iter().find(|one| of_calls(&one.name));
        assert_eq!(
            calls.expect("a check").verdict,
            VerdictKind::Pass,
            "{calls:?}"
        );
    }
    assert!(soak.series.iter().any(|one| one.server == MACHINE));
    let kinds = ["kill", "stop", "cut", "silence", "death"];
    for kind in kinds {
        assert!(soak.faults.iter().any(|fault| fault.kind == kind), "{kind}");
    }
    let bindings = soak.checks.iter().find(|one| one.name.contains("bindings"));
    assert_eq!(
        bindings.expect("a check").verdict,
        VerdictKind::Pass,
        "{bindings:?}"
    );
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn an_interrupt_keeps_what_was_found_and_leaves_no_process() {
    let folder = folder("interrupt");
    let mut child = soak(&folder, &["--for", "10min", "--faults", "none", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let id = child.id();
    // The first line of progress comes some seconds after the load began; an end of the output ends the wait.
    let said = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut lines = said.lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains(" left; ")), "no progress");
    assert_eq!(left_of(id).len(), 5, "servers with a store or a socket");
    let process = Pid::from_raw(i32::try_from(id).expect("a number")).expect("not 0");
    kill_process(process, Signal::INT).expect("it runs");
    let rest: Vec<String> = lines.collect();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(left_of(id), Vec::<String>::new());
    assert_eq!(output.status.code(), Some(130), "{rest:?}");
    let soak = result(&folder, &output);
    assert!(soak.verdict == VerdictKind::Unproven, "{:?}", soak.reasons);
    let printed: ExperimentDocument = serde_json::from_slice(&output.stdout).expect("JSON");
    let printed = printed.soak.expect("a verdict");
    assert_eq!(printed.reasons, soak.reasons);
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn the_help_says_what_is_judged() {
    let output = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .args(["soak", "--help"])
        .env("NO_COLOR", "1")
        .output()
        .expect("it runs");
    let help = String::from_utf8_lossy(&output.stdout);
    insta::assert_snapshot!("help of soak", help);
    let output = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .args(["soak", "--for", "5s"])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2));
}
