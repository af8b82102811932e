//! Sweeps between far hosts.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Output, Stdio};

use deckwatch_meter::experiment::ExperimentDocument;
use rustix::process::Signal;

use super::hosts::{DECKWATCH, Machine, TwoMachines, is_alive};
use super::{flow, one_run_at_a_time, words};
use crate::watched::{Folder, signal};

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
fn a_sweep_between_far_hosts_relates_their_clocks_by_stamped_exchanges_with_both_bounds() {
    let Some(machines) = TwoMachines::make() else {
        return;
    };
    let _alone = one_run_at_a_time();
    let hosts = machines.hosts([&machines.inside(0), &machines.inside_ahead(1)]);
    let folder = Folder::new("far-sweep");
    let more = ["--from=A", "--to=B", "--carriers=udp,corba,event,rt-event"];
    let (output, document) = sweep(&folder, &hosts, &more);
    let document = document.unwrap_or_else(|| panic!("{}", words(&output)));
    assert!(output.status.success(), "{}", words(&output));
    assert!(document.parameters["network"].starts_with("from A ("));
    assert_eq!(document.measurements.len(), 8, "two sizes of each carrier");
    assert_eq!(document.skipped, Vec::new());
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
    assert!(
        clock.latency_assumed_ns <= clock.latency_error_ns && clock.latency_assumed_ns.is_some(),
        "{clock:?}"
    );
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        printed.contains("whatever the two directions take, and within"),
        "both bounds stand under the table: {printed}"
    );
    for point in &document.measurements {
        let value = |key: &str| point.values[key];
        let whole = value("transaction_max_ns");
        assert!(value("one_way_bound_if_symmetric_ns") <= value("one_way_bound_ns"));
        for way in ["client_to_server", "server_to_client"] {
            let mean = format!("{way}_mean_ns");
            if let Some(ns) = point.values.get(&format!("not_comparable_{mean}")) {
                assert!(*ns <= value("one_way_bound_ns"), "{way}: {ns}");
                assert!(printed.contains("NOT COMPARABLE"), "{printed}");
                continue;
            }
            assert!(value(&mean) > value("one_way_bound_ns"), "{way}");
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

/// Returns this machine as A, and as B one that is reached by a shell script, whose arguments are the program's words.
fn scripted(script: &str) -> String {
    let reach = ["sh", "-c", script, "sh"].map(str::to_owned);
    format!(
        "hosts = [{{ name = \"A\", address = \"127.0.0.1\" }}, {}]",
        Machine::new("B", &reach, "127.0.0.1").line()
    )
}

const ENDS: [&str; 2] = ["--from=A", "--to=B"];

#[test]
fn what_far_ends_cannot_do_is_told_with_the_true_reason() {
    let _alone = one_run_at_a_time();
    let hosts = scripted("exec \"$@\"");
    let told = "Between hosts of --hosts leave --hops out";
    let folder = Folder::new("far-sweep-cannot");
    let (output, document) = sweep(&folder, &hosts, &[&ENDS[..], &["--hops=2"]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", words(&output));
    assert!(words(&output).contains(told), "{told}: {}", words(&output));
    assert!(document.is_none());
}

#[test]
fn a_far_end_that_writes_without_end_is_told_so_and_not_how_it_was_stopped() {
    let script = "case \"$*\" in *laboratory-end*) echo 'other ready'; read -r order; exec tr '\\0' x </dev/zero;; \
                  *) exec \"$@\";; esac";
    let folder = Folder::new("far-sweep-endless");
    let (output, document) = sweep(&folder, &scripted(script), &ENDS);
    assert_eq!(output.status.code(), Some(2), "{}", words(&output));
    let told = "it wrote a line of more than";
    assert!(words(&output).contains(told), "{}", words(&output));
    assert!(document.is_none());
}

#[test]
fn a_far_channel_that_writes_what_no_channel_writes_is_named() {
    let _alone = one_run_at_a_time();
    for (written, told) in [
        ("exec tr '\\0' x </dev/zero", "it wrote a line of more than"),
        (
            "printf '\\033[2Jno\\n'; read -r end",
            "its first line is '\\u001b[2Jno'",
        ),
        (
            "echo 'refused: \"busy\"'; read -r end",
            "cannot go on: \"busy\"",
        ),
    ] {
        let script = format!(
            "case \"$*\" in *' part --run '*) read -r plan; {written};; *) exec \"$@\";; esac"
        );
        let folder = Folder::new("far-channel-lies");
        let more = [&ENDS[..], &["--carriers=rt-event"]].concat();
        let (output, document) = sweep(&folder, &scripted(&script), &more);
        let said = words(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("A channel of rt-event on B"), "{said}");
        assert!(said.contains(told), "{told}: {said}");
        assert!(document.is_none());
    }
}

#[test]
fn a_far_host_is_in_one_measurement_at_a_time() {
    let _alone = one_run_at_a_time();
    let hosts = scripted("exec \"$@\"");
    let folder = Folder::new("far-busy");
    let free = Folder::new("far-busy-first");
    let (first, _) = sweep(&free, &hosts, &[&ENDS[..], &["--carriers=udp"]].concat());
    assert!(first.status.success(), "{}", words(&first));
    let file = free.path().join("mission.toml");
    let mut load = Command::new(DECKWATCH)
        .args([
            "load",
            "cpu",
            "--share=1%",
            "--for=10min",
            "--on=B",
            "--hosts",
        ])
        .arg(&file)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut lines = BufReader::new(load.stdout.take().expect("piped"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("text");
    assert!(line.contains("processor 0"), "{line}");
    let (refused, document) = sweep(&folder, &hosts, &[&ENDS[..], &["--carriers=udp"]].concat());
    let said = words(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("on B cannot go on: "), "{said}");
    assert!(said.contains("takes part in another run"), "{said}");
    assert!(document.is_none());
    signal(&[load.id()], Signal::INT);
    lines.read_to_string(&mut line).expect("text");
    assert_eq!(load.wait().expect("it ends").code(), Some(130), "{line}");
}

#[test]
fn a_far_end_that_is_stopped_ends_the_sweep_by_its_silence() {
    let _alone = one_run_at_a_time();
    let folder = Folder::new("far-stalled");
    let noted = folder.path().join("noted");
    let script = format!(
        "case \"$*\" in *laboratory-end*) echo $$ >> {};; esac; exec \"$@\"",
        noted.display()
    );
    let hosts = scripted(&script);
    let any = flow(
        "any",
        "A",
        "B",
        "octets = 64\ncarrier = \"udp\"\ncount = 1\ndeadline = \"100ms\"",
    );
    let file = folder.path().join("mission.toml");
    std::fs::write(&file, format!("name = \"stalled\"\n{hosts}\n{any}")).expect("writable");
    let mut sweeping = Command::new(DECKWATCH)
        .args([
            "sweep",
            "--carriers=udp",
            "--sizes=64",
            "--iterations=10000",
        ])
        .args(ENDS)
        .arg("--hosts")
        .arg(&file)
        .arg("--output")
        .arg(folder.path().join("result"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut lines = BufReader::new(sweeping.stderr.take().expect("piped"));
    let mut said = String::new();
    while !said.contains("64 octets") {
        assert!(lines.read_line(&mut said).expect("text") > 0, "{said}");
    }
    let ends = std::fs::read_to_string(&noted).expect("noted");
    let ends: Vec<u32> = ends.lines().filter_map(|line| line.parse().ok()).collect();
    signal(&ends, Signal::STOP);
    lines.read_to_string(&mut said).expect("text");
    assert_eq!(sweeping.wait().expect("it ends").code(), Some(2), "{said}");
    let told = "on B cannot go on: the pipe from there has carried nothing for 10s";
    assert!(said.contains(told), "{said}");
    while ends.iter().any(|&id| is_alive(id)) {
        std::thread::yield_now();
    }
}
