//! Loads between far hosts.

use std::process::{Command, Output};

use deckwatch_meter::experiment::ExperimentDocument;

use super::hosts::{DECKWATCH, Machine, TwoMachines};
use super::{flow, one_run_at_a_time, words};
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
    let _alone = one_run_at_a_time();
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
    let _alone = one_run_at_a_time();
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
    let _alone = one_run_at_a_time();
    let hosts = machines.hosts([&machines.inside(0), &machines.inside(1)]);
    let folder = Folder::new("far-grid");
    let result = folder.path().join("result");
    let words_of = "grid --carriers=udp,event --sizes=64 --iterations=1 --messages=20 --output";
    let mut command: Vec<&str> = words_of.split(' ').collect();
    let path = result.to_string_lossy().into_owned();
    command.push(&path);
    let output = between(&folder, &hosts, &command);
    let document = ExperimentDocument::load(&result.join("result.json"));
    let document = document.unwrap_or_else(|_| panic!("{}", words(&output)));
    // Nine states of each carrier.
    assert_eq!(document.measurements.len(), 18, "{}", words(&output));
    assert!(document.parameters["network"].starts_with("from A ("));
    let note = &document.notes[0];
    assert!(note.contains("all processors of the end's host"), "{note}");
}

#[test]
fn a_sink_that_writes_what_no_load_writes_is_named_and_a_share_needs_a_link() {
    let script = "case \"$*\" in *--seconds*) read -r plan; echo garbage; exec sleep 60;; *) exec \"$@\";; esac";
    let reach = ["sh", "-c", script, "sh"].map(str::to_owned);
    let hosts = format!(
        "hosts = [{{ name = \"A\", address = \"127.0.0.1\" }}, {}]",
        Machine::new("B", &reach, "127.0.0.1").line()
    );
    let folder = Folder::new("far-load-garbage");
    // Nobody listens at this port.
    let command = ["load", "net", "--rate=1Mb/s", "--for=1s", "--port=9"];
    let output = between(&folder, &hosts, &command);
    let said = words(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let told = "The sink on B cannot go on: it says 'garbage', which no load says";
    assert!(said.contains(told), "{said}");
    let command = ["load", "net", "--share=50%", "--for=1s"];
    let said = words(&between(&folder, &hosts, &command));
    assert_eq!(
        said.matches("needs the rate of the link").count(),
        1,
        "{said}"
    );
}

#[test]
fn a_load_of_processors_runs_on_the_host_that_is_named() {
    let Some(machines) = TwoMachines::make() else {
        return;
    };
    let _alone = one_run_at_a_time();
    let hosts = machines.hosts([&machines.inside(0), &machines.inside(1)]);
    let folder = Folder::new("far-load-cpu");
    let file = folder.path().join("mission.toml");
    let any = "octets = 64\ncarrier = \"udp\"\ncount = 1\ndeadline = \"100ms\"";
    let text = format!("name = \"m\"\n{hosts}\n{}", flow("any", "A", "B", any));
    std::fs::write(&file, text).expect("writable");
    let output = Command::new(DECKWATCH)
        .args([
            "load",
            "cpu",
            "--share=5%",
            "--for=2300ms",
            "--json",
            "--on=B",
        ])
        .arg("--hosts")
        .arg(&file)
        .output()
        .expect("it runs");
    let said = words(&output);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect(&said);
    assert_eq!(report["held"][0]["of"], "processor 0", "{report}");
    let doctor = Command::new(DECKWATCH)
        .args(["doctor", "--json", "--hosts"])
        .arg(&file)
        .args(["--on", "B"])
        .output()
        .expect("it runs");
    let found: serde_json::Value =
        serde_json::from_slice(&doctor.stdout).unwrap_or_else(|_| panic!("{}", words(&doctor)));
    assert!(found["findings"].is_array(), "{found}");
    for words_of in [&["doctor", "--hosts"][..], &["clock", "C", "--hosts"]] {
        let mut command = Command::new(DECKWATCH);
        command.args(words_of).arg(&file);
        if words_of[0] == "doctor" {
            command.args(["--on", "C"]);
        }
        let output = command.output().expect("it runs");
        assert_eq!(output.status.code(), Some(2));
        let told = "has no host `C` with `reach`. Those with it: A, B.";
        assert!(words(&output).contains(told), "{}", words(&output));
    }
}
