//! Sweeps between far hosts.

use std::process::{Command, Output};

use deckwatch_meter::experiment::ExperimentDocument;

use super::hosts::{DECKWATCH, TwoMachines};
use super::{flow, words};
use crate::watched::Folder;

pub(super) fn sweep(
    folder: &Folder,
    hosts: &str,
    more: &[&str],
) -> (Output, Option<ExperimentDocument>) {
    let file = folder.path().join("mission.toml");
    let flow = flow(
        "any",
        "A",
        "B",
        "octets = 64\ncarrier = \"udp\"\ncount = 1\ndeadline = \"100ms\"",
    );
    std::fs::write(&file, format!("name = \"two machines\"\n{hosts}\n{flow}")).expect("writable");
    let result = folder.path().join("result");
    let output = Command::new(DECKWATCH)
        .args([
            "sweep",
            "--sizes=64,2000",
            "--iterations=2",
            "--messages=50",
        ])
        .arg("--hosts")
        .arg(&file)
        .arg("--output")
        .arg(&result)
        .args(more)
        .output()
        .expect("it runs");
    let document = ExperimentDocument::load(&result.join("result.json")).ok();
    (output, document)
}

/// Two hosts in namespaces, the second with a CLOCK_MONOTONIC six days ahead: without a conversion one way would take
/// days, and the other one would end before it began.
#[test]
fn a_sweep_between_far_hosts_relates_their_clocks_by_its_own_transactions() {
    let Some(machines) = TwoMachines::make() else {
        return;
    };
    let hosts = machines.hosts([&machines.inside(0), &machines.inside_ahead(1)]);
    let folder = Folder::new("far-sweep");
    let more = ["--from=A", "--to=B", "--carriers=udp,corba,event"];
    let (output, document) = sweep(&folder, &hosts, &more);
    let document = document.unwrap_or_else(|| panic!("{}", words(&output)));
    assert!(output.status.success(), "{}", words(&output));
    assert!(document.parameters["network"].starts_with("from A ("));
    assert_eq!(document.measurements.len(), 4);
    assert_eq!(document.skipped[0].what, "event");
    let bound = document
        .notes
        .iter()
        .find(|note| note.contains("one-way latencies are within"));
    assert!(bound.is_some(), "{:?}", document.notes);
    let clock = &document.provenance.clock;
    assert!(
        !clock.shared && clock.latency_error_ns.is_some(),
        "{clock:?}"
    );
    for point in &document.measurements {
        let value = |key: &str| point.values[key];
        let whole = value("transaction_max_ns");
        for way in ["client_to_server", "server_to_client"] {
            let bounds = ["min", "max"].map(|of| value(&format!("{way}_{of}_ns")));
            // Within half a round trip of the truth.
            assert!(
                bounds[0] > -whole && bounds[1] < 2.0 * whole,
                "{way}: {bounds:?} {whole}"
            );
        }
        assert!(value("end_to_end_mean_bit_s") > 1e4, "{:?}", point.values);
        assert_eq!(value("ledger_received"), 100.0);
    }
}

#[test]
fn a_host_that_is_wrong_or_does_not_answer_is_told_before_anything_is_measured() {
    let emulated = "hosts = [{ name = \"A\" }, { name = \"B\" }]";
    let mute = "hosts = [{ name = \"A\", address = \"127.0.0.1\" }, \
                { name = \"B\", reach = [\"false\"], address = \"127.0.0.1\" }]";
    let folder = Folder::new("far-sweep-wrong");
    for (hosts, more, told) in [
        (
            emulated,
            &["--from=A", "--to=B"][..],
            "is emulated. Give it `reach` and `address`",
        ),
        (
            emulated,
            &["--from=A", "--to=C"],
            "has no host `C`. Name one of A, B.",
        ),
        (emulated, &["--from=A"], "Name two hosts of"),
        (
            mute,
            &["--from=A", "--to=B"],
            "B cannot be reached: `false` ended with status 1",
        ),
    ] {
        let (output, document) = sweep(&folder, hosts, more);
        assert_eq!(output.status.code(), Some(2), "{told}: {}", words(&output));
        assert!(words(&output).contains(told), "{told}: {}", words(&output));
        assert!(document.is_none());
    }
}
