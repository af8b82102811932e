//! `deckwatch events` beside a running mission, by the command that the run prints.

use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::watched::{WatchedRun, signal};

const MISSION: &str = "name = \"looked-into\"\nnetwork = { preset = \"loopback\" }\n\
    hosts = [{ name = \"RTS\" }, { name = \"SONAR\" }]\n[[flows]]\nname = \"NAV\"\noctets = 384\n\
    from = \"RTS\"\nto = [\"SONAR\"]\ncarrier = \"event\"\nrate_hz = 50\ndeadline = \"2s\"\n\
    late = \"1 in 2\"\nduration = \"10min\"\nwarm_up = \"100ms\"\n";

/// Runs the command of a notice, with another action and further arguments. Returns the lines of JSON that it prints.
fn looked(notice: &str, action: &str, more: &[&str]) -> Vec<serde_json::Value> {
    let mut words = notice.split(' ');
    assert_eq!(words.next(), Some("deckwatch"), "{notice}");
    let words = words.map(|word| if word == "echo" { action } else { word });
    let output = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .args(words)
        .args(["--json", "--count", "3"])
        .args(more)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .expect("the program starts");
    let errors = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!((output.status.code(), &*errors), (Some(0), ""), "{notice}");
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    lines.collect()
}

#[test]
fn the_events_of_a_running_mission_are_printed_by_the_command_that_the_run_shows() {
    let arguments = ["--carriers", "event,rt-event"];
    let run = WatchedRun::start("looked-into", MISSION, &arguments);
    let notice = |carrier: &str| {
        let start = format!("Events of NAV over {carrier}: ");
        let found = run.said().iter().find_map(|line| line.strip_prefix(&start));
        found.unwrap_or_else(|| panic!("{:#?}", run.said()))
    };
    let cos = looked(notice("event"), "echo", &[]);
    assert_eq!(cos.len(), 3);
    assert!(
        cos.iter()
            .all(|line| line["header"].is_null() && line["value"].is_string())
    );
    let real_time = looked(notice("rt-event"), "echo", &[]);
    assert!(real_time.iter().all(|line| line["header"]["source"] == 1));
    // The header has the time of sending.
    let ages = looked(notice("rt-event"), "delay", &["--window", "1h"]);
    let total = &ages.last().expect("a line")["total"];
    assert_eq!((&total["events"], &total["future"]), (&3.into(), &0.into()));
    signal(&[run.id()], Signal::INT);
    assert_eq!(run.finish().status, Some(130));
}
