//! A measurement by a user without SCHED_FIFO contains a warning in each result, and judges nothing; what a run by such
//! a user will do is told before it.

use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use deckwatch_os::schedule::{Class, set_class};
use serde_json::Value;

/// A folder that contains our program, of a user without the right to the real-time class.
struct Unprivileged {
    folder: PathBuf,
    is_root: bool,
}

const NOBODY: u32 = 65_534;

impl Unprivileged {
    /// Returns `None`, and counts a skip, if such a user may have the real-time class too.
    fn new(test: &str) -> Option<Self> {
        let is_root = std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0);
        let limits = std::fs::read_to_string("/proc/self/limits").expect("the kernel tells");
        let limit = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max realtime priority"));
        let is_limited = limit.expect("a limit").split_whitespace().next() == Some("0");
        let try_it = || std::thread::spawn(|| set_class(Class::Fifo(1)).is_ok()).join();
        if !is_limited || (!is_root && try_it().expect("no panic")) {
            deckwatch_testkit::skip("real-time-class-refused", "every user may have it here");
            return None;
        }
        let name = format!("deckwatch-unprivileged-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).expect("a fresh folder");
        std::fs::copy(env!("CARGO_BIN_EXE_deckwatch"), folder.join("deckwatch"))
            .expect("room for a copy that others may run");
        if is_root {
            std::os::unix::fs::chown(&folder, Some(NOBODY), Some(NOBODY)).expect("root may");
        }
        Some(Self { folder, is_root })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.folder.join("deckwatch"));
        command.current_dir(&self.folder);
        if self.is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// Returns what a command prints, on both outputs.
    fn says(&self, words: &[&str]) -> String {
        let said = self.command().args(words).output().expect("it runs");
        let [out, complaints] = [said.stdout, said.stderr].map(String::from_utf8);
        out.expect("text") + &complaints.expect("text")
    }

    /// Returns the result of a command whose ends should be in the real-time class.
    fn result(&self, name: &str, words: &[&str]) -> Value {
        let output = self.folder.join(name);
        let mut command = self.command();
        command
            .args(words)
            .args(["--condition", "pinned", "--output"])
            .arg(&output);
        let said = command.output().expect("it runs");
        let complaints = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "{complaints}");
        assert!(output.join("report.html").exists(), "{complaints}");
        read(&output.join("result.json"))
    }
}

impl Drop for Unprivileged {
    fn drop(&mut self) {
        let _left_over = std::fs::remove_dir_all(&self.folder);
    }
}

fn read(path: &Path) -> Value {
    let written = std::fs::read(path).expect("the result is kept");
    serde_json::from_slice(&written).expect("JSON")
}

fn is_warned(document: &Value) -> bool {
    let warnings = document["warnings"].as_array().expect("a list");
    warnings.iter().any(|it| it["kind"] == "not-real-time")
}

const SAID: &str = "SCHED_OTHER for want of permission for SCHED_FIFO";

fn is_told(condition: &Value) -> bool {
    condition.as_str().is_some_and(|it| it.contains(SAID))
}

#[test]
fn every_result_says_that_the_real_time_class_was_not_to_be_had_and_none_is_judged() {
    let Some(unprivileged) = Unprivileged::new("measures") else {
        return;
    };
    let words = ["bench", "call", "--octets", "64", "--rounds", "1"];
    let more = ["--run-time", "50ms", "--without", "omniorb,jacorb,rustorb"];
    let words = [&words[..], &more].concat();
    let bench = unprivileged.result("bench", &words);
    assert!(is_warned(&bench), "{}", bench["warnings"]);
    let measurements = bench["measurements"].as_array().expect("a list");
    let standings = bench["standings"].as_array().expect("a list");
    assert!(!measurements.is_empty() && !standings.is_empty());
    for measurement in measurements {
        assert!(is_told(&measurement["group"]), "{}", measurement["group"]);
    }
    for standing in standings {
        assert!(is_told(&standing["condition"]), "{standing}");
        assert_eq!(standing["verdict"], Value::Null, "{standing}");
    }
    let words = ["invoke", "--quick", "--servants", "1", "--sizes", "64"];
    let invoke = unprivileged.result("invoke", &words);
    assert!(is_warned(&invoke), "{}", invoke["warnings"]);
    assert!(is_told(&invoke["condition"]), "{}", invoke["condition"]);
}

const SMALL: &str = r#"
name = "small"
network = { preset = "fast-ethernet" }
hosts = [{ name = "A" }, { name = "B" }]
[[flows]]
name = "F"
from = "A"
to = ["B"]
carrier = "udp"
rate_hz = 20
octets = 64
deadline = "50ms"
late = "1 in 2"
count = 10
"#;

#[test]
fn check_and_doctor_say_what_the_run_of_the_same_user_does() {
    let Some(unprivileged) = Unprivileged::new("runs") else {
        return;
    };
    std::fs::write(unprivileged.folder.join("small.toml"), SMALL).expect("room");
    let run = unprivileged.says(&["run", "small.toml", "--output", "small"]);
    let is_isolated = run.contains("in a user namespace of this process");
    let on_loopback = run.contains("NOT on emulated hosts");
    assert!(is_isolated != on_loopback, "{run}");
    let check = unprivileged.says(&["check", "small.toml"]);
    let for_hosts = check.lines().find(|line| line.starts_with("CAP_SYS_ADMIN"));
    let doctor = unprivileged.says(&["doctor"]);
    let emulated = doctor.lines().find(|line| line.contains("emulated hosts"));
    for said in [for_hosts, emulated] {
        let said = said.expect("a line");
        assert_eq!(
            said.contains("user namespace"),
            is_isolated,
            "{said}\n{run}"
        );
    }
    assert_eq!(check.contains("on plain loopback"), on_loopback, "{check}");
}
