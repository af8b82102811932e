//! Loads between far hosts.

use std::process::{Command, Output};

use deckwatch_meter::experiment::ExperimentDocument;

use super::hosts::{DECKWATCH, TwoMachines};
use super::{flow, words};
use crate::watched::Folder;

/// Runs a command between the hosts of a mission file.
fn between(folder: &Folder, hosts: &str, command: &[&str]) -> Output {
    let file = folder.path().join("mission.toml");
    let any = "octets = 64\ncarrier = \"udp\"\ncount = 1\ndeadline = \"100ms\"";
    let flow = flow("any", "A", "B", any);
    std::fs::write(&file, format!("name = \"two machines\"\n{hosts}\n{flow}")).expect("writable");
    Command::new(DECKWATCH)
        .args(command)
        .args(["--from=A", "--to=B", "--hosts"])
        .arg(&file)
        .env("NO_COLOR", "1")
        .output()
        .expect("it runs")
}

#[test]
fn a_load_between_far_hosts_is_sent_from_one_and_counted_by_the_other() {
    let Some(machines) = TwoMachines::make() else {
        return;
    };
    let hosts = machines.hosts([&machines.inside(0), &machines.inside(1)]);
    let folder = Folder::new("far-load");
    let words_of = "load net --rate 2Mb/s --size 500 --for 2300ms";
    let mut command: Vec<&str> = words_of.split(' ').collect();
    let output = between(&folder, &hosts, &command);
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.code().is_some_and(|code| code < 2), "{lines}");
    let to = format!(" to {}: asked 2.000 Mb/s", machines.address(1));
    // A line for each second, and the summary.
    let told = lines.lines().filter(|line| line.contains(&to)).count();
    assert!(told >= 3, "{lines}");

    command.push("--json");
    let output = between(&folder, &hosts, &command);
    let said = words(&output);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect(&said);
    let of = report["held"][0]["of"].as_str().unwrap_or_default();
    assert!(of.ends_with(&machines.address(1)), "{report}");
    let count = |what: &str, key: &str| report[what][key].as_u64().expect("a count");
    assert!(count("sent", "messages") > 0);
    let overflows = count("received", "overflows");
    let received = count("received", "datagrams") + overflows;
    assert_eq!(received, count("sent", "messages"), "{report}");
}

#[test]
fn a_sink_that_cannot_be_is_named_and_not_the_source_that_waits_for_it() {
    let Some(machines) = TwoMachines::make() else {
        return;
    };
    let hosts = machines.hosts([&machines.inside(0), &machines.inside(1)]);
    let taken = machines.testbed.hosts()[1]
        .namespace()
        .expect("a namespace");
    let address: std::net::IpAddr = machines.address(1).parse().expect("an address");
    let taken = taken.run_inside(|| std::net::TcpListener::bind((address, 0)));
    let taken = taken.expect("entered").expect("a port");
    let port = taken.local_addr().expect("bound").port().to_string();
    let folder = Folder::new("far-load-taken");
    let command = ["load", "net", "--rate=1Mb/s", "--for=1s", "--port", &port];
    let output = between(&folder, &hosts, &command);
    let said = words(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("The sink on B cannot go on"), "{said}");
    assert!(said.contains("Address already in use"), "{said}");
    // A host that the file does not have.
    let command = ["load", "net", "--rate=1Mb/s", "--from=C", "--to=B"];
    let file = folder.path().join("mission.toml");
    let mut asked = Command::new(DECKWATCH);
    let output = asked.args(command).arg("--hosts").arg(&file).output();
    let output = output.expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(words(&output).contains("has no host `C`. Name one of A, B."));
}

#[test]
fn a_grid_between_far_hosts_loads_the_processors_of_both() {
    let Some(machines) = TwoMachines::make() else {
        return;
    };
    let hosts = machines.hosts([&machines.inside(0), &machines.inside(1)]);
    let folder = Folder::new("far-grid");
    let result = folder.path().join("result");
    let words_of = "grid --carriers=udp --sizes=64 --iterations=1 --messages=20 --output";
    let mut command: Vec<&str> = words_of.split(' ').collect();
    let path = result.to_string_lossy().into_owned();
    command.push(&path);
    let output = between(&folder, &hosts, &command);
    let document = ExperimentDocument::load(&result.join("result.json"));
    let document = document.unwrap_or_else(|_| panic!("{}", words(&output)));
    assert_eq!(document.measurements.len(), 9, "{}", words(&output));
    assert!(document.parameters["network"].starts_with("from A ("));
    let note = &document.notes[0];
    assert!(note.contains("all processors of the end's host"), "{note}");
}
