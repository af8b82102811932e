//! `deckwatch testbed`: network files with faults, and chains of switch ports.

use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

fn testbed(arguments: &[&str]) -> Output {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .arg("testbed")
        .args(arguments)
        .current_dir(root)
        .env("NO_COLOR", "1")
        .output()
        .expect("the program starts")
}

fn text(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).expect("UTF-8")
}

#[test]
fn a_network_file_with_a_loop_is_refused_where_the_loop_is() {
    let path = std::env::temp_dir().join(format!("deckwatch-loop-{}.toml", std::process::id()));
    let content = "name = \"n\"\nhosts = [\"A\"]\nswitches = [\"S\", \"T\"]\n\
        [[links]]\nbetween = [\"A\", \"S\"]\n[[links]]\nbetween = [\"S\", \"T\"]\n\
        [[links]]\nbetween = [\"T\", \"S\"]\n";
    std::fs::write(&path, content).expect("writable");
    let output = testbed(&["up", "--network", path.to_str().expect("UTF-8")]);
    std::fs::remove_file(&path).expect("there");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains(".toml:9:11: error: this link closes a loop"),
        "{said}"
    );
}

#[test]
fn hosts_are_needed_by_name_unless_a_network_file_has_them() {
    let output = testbed(&["up", "--network", "fast-ethernet"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--hosts RTS,SONAR"), "{said}");
    let shaped = [
        "up",
        "--network",
        "scenarios/two-decks.toml",
        "--emulation",
        "shaper",
    ];
    let output = testbed(&shaped);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("Only a relay carries a network file"));
}

#[test]
fn a_simulated_chain_is_near_theory_and_the_same_each_time() {
    let chain = [
        "chain",
        "--simulate",
        "--ports",
        "2,9",
        "--load",
        "0,75",
        "--count",
        "4000",
        "--json",
    ];
    let output = testbed(&chain);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = rows.as_array().expect("rows");
    assert_eq!(rows.len(), 4);
    for row in rows {
        let of = |key: &str| row[key].as_f64().expect("a number");
        let ratio = of("mean_ns") / of("theory_ns");
        assert!((0.85..1.15).contains(&ratio), "{row}");
        assert!(
            of("min_ns") <= of("mean_ns") && of("mean_ns") <= of("max_ns"),
            "{row}"
        );
    }
    assert_eq!(testbed(&chain).stdout, output.stdout);
}

#[test]
fn a_chain_that_would_wait_for_ever_is_refused() {
    let output = testbed(&["chain", "--simulate", "--load", "100"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("0 to 99 percent"), "{said}");
    let output = testbed(&[
        "chain",
        "--simulate",
        "--network",
        "fast-ethernet",
        "--bytes",
        "1473",
    ]);
    assert!(text(&output.stderr).contains("write at most 1472"));
    let output = testbed(&["chain", "--load", "0", "--emulation", "shaper"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("write relay or spinning-relay"), "{said}");
}

/// Another user runs a copy of the program, in a folder of its own.
#[test]
fn a_user_who_is_not_root_emulates_hosts_where_the_kernel_allows_it() {
    const NOBODY: u32 = 65_534;
    let folder = std::env::temp_dir().join(format!("deckwatch-not-root-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a fresh folder");
    let program = folder.join("deckwatch");
    std::fs::copy(env!("CARGO_BIN_EXE_deckwatch"), &program).expect("room");
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0);
    let mut command = Command::new(&program);
    command.args(["testbed", "chain", "--network", "fast-ethernet", "--json"]);
    command.args(["--ports", "2", "--load", "0", "--count", "20"]);
    if is_root {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.current_dir(&folder).output().expect("it runs");
    std::fs::remove_dir_all(&folder).expect("there");
    let said = text(&output.stderr);
    if said.contains("Emulated hosts need") {
        deckwatch_testkit::skip("user-namespaces", &said);
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("in a user namespace") || !is_root, "{said}");
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(rows[0]["arrived"], 20, "{rows}");
    assert_eq!(rows[0]["emulation"], "relay", "{rows}");
}

#[test]
fn a_mission_runs_over_a_relay_that_loses_nothing() {
    if let Some(reason) = deckwatch_testbed::Testbed::obstacle() {
        deckwatch_testkit::skip("namespaces", &reason);
        return;
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::temp_dir().join(format!("deckwatch-relay-{}", std::process::id()));
    let output = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .args([
            "run",
            "scenarios/nav.toml",
            "--duration",
            "1s",
            "--carriers",
            "udp",
            "--json",
        ])
        .args(["--network", "scenarios/two-decks.toml", "--output"])
        .arg(&folder)
        .current_dir(root)
        .output()
        .expect("the program starts");
    let said = text(&output.stderr);
    let document: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    std::fs::remove_dir_all(&folder).expect("a result");
    let environment = &document["environment"];
    assert_eq!(environment["kind"], "namespaces");
    let network = environment["network"].as_str().expect("words");
    assert!(network.contains("3 links by a relay"), "{network}");
    let warnings = document["warnings"].as_array().expect("a list");
    assert!(warnings.iter().all(|it| it["kind"] != "relay-overflow"));
    assert_eq!(
        output.status.code(),
        Some(3),
        "20 messages prove nothing: {said}"
    );
}

#[test]
fn a_kept_relay_holds_no_pipe_of_the_command_that_made_it() {
    if let Some(reason) = deckwatch_testbed::Testbed::obstacle() {
        deckwatch_testkit::skip("namespaces", &reason);
        return;
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    // The command and its copy of the descriptor are dropped at the end of this statement.
    let output = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .args(["testbed", "up", "--json", "--emulation", "relay"])
        .args(["--network", "fast-ethernet", "--hosts", "PIPE-A,PIPE-B"])
        .current_dir(root)
        .stderr(OwnedFd::from(theirs))
        .output()
        .expect("the program starts");
    ours.set_nonblocking(true).expect("set");
    let mut said = String::new();
    let ended = ours.read_to_string(&mut said);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let made: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let number = made[0]["number"].to_string();
    let down = testbed(&["down", &number]);
    assert_eq!(down.status.code(), Some(0), "{}", text(&down.stderr));
    ended.expect("no process has the other end");
}
