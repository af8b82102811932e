//! `deckwatch check` as a user sees it: golden output and exit statuses. No mission is started.

use std::path::PathBuf;
use std::process::{Command, Output};

fn deckwatch(arguments: &[&str]) -> Output {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .args(arguments)
        .current_dir(root)
        .env("NO_COLOR", "1")
        .env("COLUMNS", "120")
        .output()
        .expect("the program starts")
}

fn text(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).expect("UTF-8")
}

/// Returns the output before the lines on privileges, which differ between users.
fn before_privileges(output: &Output) -> String {
    let printed = text(&output.stdout);
    let lines = printed.lines().take_while(|line| !line.starts_with("CAP_"));
    lines.map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[test]
fn nav_takes_83_minutes_and_can_prove_its_budget() {
    let output = deckwatch(&["check", "scenarios/nav.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    insta::assert_snapshot!(before_privileges(&output));
}

#[test]
fn twenty_seconds_over_four_carriers_cannot_prove_it() {
    let mut arguments = vec![
        "check",
        "scenarios/nav.toml",
        "--variant",
        "loaded",
        "--duration",
        "20s",
    ];
    arguments.extend(["--carriers", "udp,tcp,corba,event", "--network", "atm"]);
    let output = deckwatch(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    insta::assert_snapshot!(before_privileges(&output));
}

#[test]
fn the_fleet_has_35_destinations() {
    let output = deckwatch(&["check", "scenarios/nav-fleet.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    insta::assert_snapshot!(before_privileges(&output));
}

#[test]
fn json_says_the_same_in_numbers() {
    let output = deckwatch(&["check", "scenarios/nav.toml", "--json"]);
    let forecast: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(forecast["messages"], 100_020);
    assert_eq!(forecast["streams"][0]["needed"], 9985);
    assert_eq!(forecast["streams"][0]["late_max"], 20);
    assert_eq!(forecast["streams"][0]["carrier"], "event");
    assert_eq!(forecast["not_emulated"].as_array().map(Vec::len), Some(3));
}

#[test]
fn every_variant_of_every_scenario_is_sound() {
    for file in [
        "scenarios/nav.toml",
        "scenarios/nav-fleet.toml",
        "scenarios/nav-network.toml",
        "scenarios/nav-paper.toml",
    ] {
        let output = deckwatch(&["check", file, "--json"]);
        let forecast: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let output = deckwatch(&["check", file, "--variants", "all", "--json"]);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{file}: {errors}");
        let all: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).expect("JSON");
        let names: Vec<_> = all.iter().map(|one| one["variant"].clone()).collect();
        assert_eq!(
            forecast["variants"],
            serde_json::Value::from(names),
            "{file}"
        );
    }
}

#[test]
fn named_variants_are_shown_one_after_the_other() {
    let file = "scenarios/nav.toml";
    let shown = |list: &str| {
        let output = deckwatch(&["check", file, "--variants", list]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let both = shown("loaded,unloaded");
    assert_eq!(both, format!("{}\n{}", shown("loaded"), shown("unloaded")));
    assert!(both.contains(", variant loaded"), "{both}");
}

#[test]
fn an_error_in_a_variant_is_found_without_naming_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mission.toml");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mission = std::fs::read_to_string(format!("{root}/scenarios/nav.toml"));
    let mission = mission
        .expect("readable")
        .replace("../idl", &format!("{root}/idl"));
    let wrong = "\n[variants.wrong]\nloads = [{ hosts = [\"NOWHERE\"], processes = 1, count = 5, sleep = \"1us\" }]\n";
    std::fs::write(&file, mission + wrong).expect("written");
    let file = file.to_str().expect("UTF-8");
    for arguments in [
        &["check", file][..],
        &["check", file, "--variants", "all"],
        &["check", file, "--variant", "wrong"],
    ] {
        let output = deckwatch(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty());
        assert!(
            text(&output.stderr).contains("NOWHERE"),
            "{}",
            text(&output.stderr)
        );
    }
    let sound = deckwatch(&["check", file, "--variant", "loaded"]);
    assert_eq!(sound.status.code(), Some(0));
}

#[test]
fn a_malformed_mission_ends_with_status_2_and_its_place_on_stderr() {
    let file = "crates/scenario/tests/malformed/bad-budgets.toml";
    let output = deckwatch(&["check", file]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let said = text(&output.stderr);
    assert!(
        said.contains("bad-budgets.toml:12:8: error: `late` must be"),
        "{said}"
    );
}

#[test]
fn wrong_arguments_end_with_status_2_and_say_what_is_right() {
    for (arguments, expected) in [
        (
            &["check", "scenarios/nav.toml", "--variant", "loded"][..],
            "it has loaded",
        ),
        (
            &["check", "scenarios/nav.toml", "--carriers", "udp,dds"],
            "is not a carrier",
        ),
        (
            &["check", "scenarios/nav.toml", "--carriers", "udp,udp"],
            "named twice",
        ),
        (
            &["check", "scenarios/nav.toml", "--network", "token-ring"],
            "fast-ethernet",
        ),
        (
            &["check", "scenarios/nav.toml", "--duration", "20"],
            "a number and a unit",
        ),
        (&["check", "scenarios/nav.toml", "--count", "0"], "--count"),
        (&["check", "absent.toml"], "cannot be read"),
        (&["chekc"], "check"),
    ] {
        let output = deckwatch(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = text(&output.stderr);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn the_network_of_a_mission_is_simulated_alike_each_time_and_hosts_cost_nothing() {
    let arguments = [
        "check",
        "scenarios/nav.toml",
        "--duration",
        "10s",
        "--simulate",
    ];
    let output = deckwatch(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    assert!(printed.contains("in virtual time, seed 1"), "{printed}");
    assert!(printed.contains("Hosts cost nothing here"), "{printed}");
    assert_eq!(printed, text(&deckwatch(&arguments).stdout));
    let output = deckwatch(&[&arguments[..], &["--json"]].concat());
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let flow = &found["flows"][0];
    assert!(flow["median_ns"].as_i64() > Some(0), "{flow}");
    assert_eq!(
        (flow["lost"].as_u64(), flow["late"].as_u64()),
        (Some(0), Some(0))
    );
    let output = deckwatch(&[
        "check",
        "scenarios/nav.toml",
        "--simulate",
        "--network",
        "loopback",
    ]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("Name one with --network"));
}
