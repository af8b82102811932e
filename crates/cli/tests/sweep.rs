//! `deckwatch sweep`: its metrics over carriers, and how it goes on after a stop.

mod failures;
mod marks;
mod networks;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use crate::measuring::{Measuring, folder};
use deckwatch_meter::experiment::{ExperimentDocument, Measurement};

fn sweep(folder: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
    command.arg("sweep").args(["--output"]).arg(folder);
    command.args(more);
    command
}

fn resume(folder: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
    command.arg("sweep").arg("--resume").arg(folder);
    command.args(more).output().expect("it runs")
}

fn document(folder: &Path) -> ExperimentDocument {
    ExperimentDocument::load(&folder.join("result.json")).expect("a document")
}

fn complaints(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// System and size of each point.
fn places(document: &ExperimentDocument) -> Vec<(String, u32)> {
    let all = document.measurements.iter();
    all.map(|one| (one.system.clone(), one.factors["size_octets"] as u32))
        .collect()
}

/// What holds of every point, whatever the machine does.
fn check_point(point: &Measurement, messages: f64) {
    let value = |key: &str| {
        let found = point.values.get(key);
        *found.unwrap_or_else(|| panic!("{key} of {}: {:?}", point.system, point.values))
    };
    let ledger = [
        "send_errors",
        "queue_drops",
        "hops",
        "channel_drops",
        "network_queue_drops",
        "receive_overflows",
        "network",
        "received",
    ];
    let sum: f64 = ledger
        .iter()
        .map(|name| value(&format!("ledger_{name}")))
        .sum();
    assert_eq!(sum, messages);
    assert_eq!(value("ledger_sent"), messages);
    // The server's own time is in the transaction, and in neither of the two ways.
    let ways = value("client_to_server_mean_ns") + value("server_to_client_mean_ns");
    assert!(value("transaction_mean_ns") >= ways, "{:?}", point.values);
    assert!(value("client_to_server_min_ns") > 0.0);
    let size = point.factors["size_octets"];
    for end in ["transmitter", "receiver", "end_to_end"] {
        let (bits, messages) = (
            &point.runs[&format!("{end}_bit_s")],
            &point.runs[&format!("{end}_messages_s")],
        );
        for (bits, messages) in bits.iter().zip(messages) {
            assert!((bits / messages / size / 8.0 - 1.0).abs() < 1e-9, "{end}");
        }
    }
    // The receiver's first message comes after the transmitter's start.
    let runs = point.runs["receiver_bit_s"]
        .iter()
        .zip(&point.runs["end_to_end_bit_s"]);
    for (interface, end_to_end) in runs {
        assert!(interface >= end_to_end);
    }
    let counted: u64 = point.histogram.iter().map(|(_, count)| count).sum();
    assert_eq!(counted, point.samples);
}

#[test]
fn every_point_has_every_metric_over_each_carrier() {
    let folder = folder("sweep-whole");
    let output = sweep(
        &folder,
        &[
            "--carriers=udp,tcp,corba,corba-oneway,event,rt-event",
            "--sizes=16..64:24,3000",
            "--iterations=2",
            "--messages=40",
            "--json",
        ],
    )
    .output()
    .expect("it runs");
    assert!(output.status.success(), "{}", complaints(&output));
    let document = document(&folder);
    let printed: ExperimentDocument = serde_json::from_slice(&output.stdout).expect("a document");
    assert_eq!(printed, document);
    let carriers = ["udp", "tcp", "corba", "corba-oneway", "event", "rt-event"];
    let expected: Vec<(String, u32)> = carriers
        .iter()
        .flat_map(|carrier| [16, 40, 64, 3000].map(|size| ((*carrier).to_owned(), size)))
        .collect();
    assert_eq!(places(&document), expected);
    for point in &document.measurements {
        check_point(point, 80.0);
    }
    let report = std::fs::read_to_string(folder.join("report.html")).expect("a report");
    assert_eq!(
        report.matches("class=\"chart plot\"").count(),
        document.figures.len()
    );
    assert!(
        report.matches("class=\"bars c0\"").count() > 3,
        "error bars"
    );
    std::fs::remove_dir_all(folder).expect("removed");
}

const LONG: [&str; 4] = [
    "--carriers=udp,tcp",
    "--sizes=16..320:16",
    "--iterations=2",
    "--messages=200",
];

#[test]
fn a_sweep_that_stops_keeps_its_points_and_goes_on_behind_them() {
    let folder = folder("sweep-stops");
    let mut first = sweep(&folder, &LONG);
    let running = Measuring::until(&mut first, "round 3 of 20");
    running.send("-INT");
    let output = running.output();
    assert_eq!(output.status.code(), Some(130), "{}", complaints(&output));
    let begun = document(&folder);
    assert!(
        begun
            .warnings
            .iter()
            .any(|warning| warning.kind == "ended-early")
    );
    let count = begun.measurements.len();
    assert!((4..40).contains(&count), "{count}");

    // A crash: the journal has whole points only, and perhaps half a line.
    let mut second = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
    second.arg("sweep").arg("--resume").arg(&folder).args(LONG);
    let running = Measuring::until(&mut second, "round 3 of ");
    running.send("-KILL");
    drop(running.output());
    let journal = folder.join("journal.jsonl");
    let mut text = std::fs::read_to_string(&journal).expect("a journal");
    text.push_str("{\"system\":\"udp\",\"fac");
    std::fs::write(&journal, text).expect("written");

    let changed = LONG.map(|word| {
        if word == "--messages=200" {
            "--messages=100"
        } else {
            word
        }
    });
    let output = resume(&folder, &changed);
    assert_eq!(output.status.code(), Some(2));
    let words = complaints(&output);
    assert!(
        words.contains("messages in an iteration was `200`, and `100` is asked for"),
        "{words}"
    );

    let output = resume(&folder, &LONG);
    assert!(output.status.success(), "{}", complaints(&output));
    let whole = document(&folder);
    let mut counts: BTreeMap<(String, u32), u32> = BTreeMap::new();
    for place in places(&whole) {
        *counts.entry(place).or_default() += 1;
    }
    assert_eq!(counts.len(), 40);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    for point in &whole.measurements {
        check_point(point, 400.0);
    }
    assert!(
        whole
            .notes
            .iter()
            .any(|note| note.contains("of an earlier run"))
    );
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn middleware_is_compared_with_both_transports_and_an_inserted_layer_shows() {
    let folder = folder("overhead");
    let mut command = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
    command.arg("overhead").arg("--output").arg(&folder).args([
        "--carriers=corba,event",
        "--sizes=64,2048",
        "--iterations=3",
        "--messages=100",
    ]);
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", complaints(&output));
    let found = document(&folder);
    assert_eq!(found.experiment, "overhead");
    for point in &found.measurements {
        check_point(point, 300.0);
        for transport in ["tcp", "udp"] {
            let added = point.runs.get(&format!("added_to_{transport}_ns"));
            assert_eq!(
                added.is_some(),
                point.system != transport,
                "{}",
                point.system
            );
        }
        // An event passes three processes and their ORBs, a datagram none.
        if point.system == "event" {
            let added = &point.runs["added_to_udp_ns"];
            assert!(added.iter().all(|ns| *ns > 0.0), "{added:?}");
        }
    }
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("Transaction time added to TCP"), "{text}");
    assert!(text.contains("table 3.4-1"), "{text}");
    let report = std::fs::read_to_string(folder.join("report.html")).expect("a report");
    assert!(report.contains("Distribution of transaction times, 64 octets"));
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn an_overhead_that_stops_goes_on_behind_its_points() {
    let folder = folder("overhead-stops");
    let options = [
        "--carriers=corba",
        "--sizes=64,128,192,256,320,384",
        "--iterations=2",
        "--messages=200",
    ];
    let mut first = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
    first
        .arg("overhead")
        .arg("--output")
        .arg(&folder)
        .args(options);
    let running = Measuring::until(&mut first, "round 3 of 6");
    running.send("-INT");
    let output = running.output();
    assert_eq!(output.status.code(), Some(130), "{}", complaints(&output));
    let begun = document(&folder).measurements.len();
    assert!((6..18).contains(&begun), "{begun}");
    let mut again = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
    again
        .arg("overhead")
        .arg("--resume")
        .arg(&folder)
        .args(options);
    let output = again.output().expect("it runs");
    assert!(output.status.success(), "{}", complaints(&output));
    let whole = document(&folder);
    assert_eq!(whole.experiment, "overhead");
    assert_eq!(whole.measurements.len(), 18);
    // The points of the first run are compared too.
    for point in &whole.measurements {
        let is_compared = point.runs.contains_key("added_to_tcp_ns");
        assert_eq!(is_compared, point.system != "tcp", "{}", point.system);
    }
    let notes = &whole.notes;
    assert!(notes.iter().any(|note| note.contains("of an earlier run")));
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn settings_of_sockets_are_compared_for_carriers_that_honour_them() {
    let folder = folder("sweep-axes");
    let more = [
        "--carriers=tcp,corba",
        "--sizes=64",
        "--iterations=2",
        "--messages=30",
        "--buffers=8K,own,default",
        "--no-delay=on,off",
    ];
    let output = sweep(&folder, &more).output().expect("it runs");
    assert!(output.status.success(), "{}", complaints(&output));
    let found = document(&folder);
    let systems: Vec<&str> = found
        .measurements
        .iter()
        .map(|one| one.system.as_str())
        .collect();
    let expected = [
        "tcp, buffers of 8192",
        "tcp, buffers of 8192, NODELAY off",
        "tcp, own buffers",
        "tcp, own buffers, NODELAY off",
        "tcp",
        "tcp, NODELAY off",
        "corba",
    ];
    assert_eq!(systems, expected);
    assert_eq!(found.measurements[0].factors["buffer_octets"], 8_192.0);
    for point in &found.measurements {
        check_point(point, 60.0);
    }
    let output = sweep(&folder, &["--buffers=64X"])
        .output()
        .expect("it runs");
    assert!(complaints(&output).contains("such as 8192 or 8K, `default` or `own`"));
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn streams_servants_and_hops_are_axes_of_their_own() {
    let folder = folder("sweep-counts");
    let more = [
        "--carriers=udp,corba,event",
        "--sizes=64",
        "--iterations=2",
        "--messages=20",
        "--streams=1,3",
        "--servants=1,5",
        "--hops=1..2",
    ];
    let output = sweep(&folder, &more).output().expect("it runs");
    assert!(output.status.success(), "{}", complaints(&output));
    let found = document(&folder);
    let systems: Vec<&str> = found
        .measurements
        .iter()
        .map(|one| one.system.as_str())
        .collect();
    assert_eq!(systems.len(), 4 + 8 + 4, "{systems:?}");
    assert!(systems.contains(&"corba, 3 streams, 5 servants, 2 hops"));
    for point in &found.measurements {
        let factor = |name: &str| point.factors.get(name).copied().unwrap_or(1.0);
        // Each stream has its own messages.
        let messages = 40.0 * factor("streams");
        check_point(point, messages);
        assert_eq!(
            point.values["ledger_received"], messages,
            "{}",
            point.system
        );
        assert_eq!(point.samples as f64, messages);
        // The process in between has each message for some time, which is in no one-way latency of the chain.
        let ways = ["client_to_server_mean_ns", "server_to_client_mean_ns"];
        let ways: f64 = ways.iter().map(|key| point.values[*key]).sum();
        let inside = ways - point.values["chain_mean_ns"];
        assert_eq!(
            inside > 1.0,
            factor("hops") > 1.0,
            "{}: {inside}",
            point.system
        );
    }
    let report = std::fs::read_to_string(folder.join("report.html")).expect("a report");
    assert!(report.contains("Total communication latency of the chain"));
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_chain_of_hosts_on_a_network_file_has_the_links_of_its_way() {
    if let Some(reason) = deckwatch_testbed::Testbed::obstacle() {
        return deckwatch_testkit::skip("namespaces", &reason);
    }
    let folder = folder("sweep-hops");
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("three.toml");
    let link = |host: &str| {
        format!(
            "[[links]]\nbetween = [\"{host}\", \"hub\"]\npreset = \"fast-ethernet\"\ndelay = \"5ms\"\n"
        )
    };
    let hosts = ["A", "B", "C"].map(link).concat();
    let text =
        format!("name = \"three\"\nhosts = [\"A\", \"B\", \"C\"]\nswitches = [\"hub\"]\n{hosts}");
    std::fs::write(&file, text).expect("written");
    let network = format!("--network={}", file.display());
    let more = [
        &network[..],
        "--from=A",
        "--to=C",
        "--carriers=udp",
        "--sizes=64",
        "--iterations=1",
        "--messages=5",
        "--hops=1,2",
    ];
    let output = sweep(&folder.join("result"), &more)
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    let told = complaints(&output);
    assert!(
        told.contains("A way of 2 hops passes 1 hosts, and --via names 0"),
        "{told}"
    );
    let with_via = [&more[..], &["--via=B"]].concat();
    let output = sweep(&folder.join("result"), &with_via)
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", complaints(&output));
    let found = document(&folder.join("result"));
    // Each leg passes two links of 5 ms: there and back are 20 ms, and one leg more 30.
    let least: Vec<f64> = (found.measurements.iter())
        .map(|point| point.values["chain_min_ns"])
        .collect();
    assert!(least[0] >= 20e6 && least[1] >= 30e6, "{least:?}");
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn an_adaptive_sweep_begins_with_some_sizes_and_keeps_its_budget() {
    let folder = folder("sweep-adaptive");
    let more = [
        "--carriers=tcp",
        "--sizes=16..16384:16",
        "--iterations=2",
        "--messages=5",
        "--adaptive=20",
    ];
    let output = sweep(&folder, &more).output().expect("it runs");
    assert!(output.status.success(), "{}", complaints(&output));
    let sizes: Vec<u32> = places(&document(&folder))
        .iter()
        .map(|place| place.1)
        .collect();
    assert!((17..=20).contains(&sizes.len()), "{sizes:?}");
    assert!(sizes.contains(&16) && sizes.contains(&16_384), "{sizes:?}");
    // Nothing is left to do, or the budget is spent.
    let output = resume(&folder, &more);
    assert!(output.status.success(), "{}", complaints(&output));
    assert_eq!(places(&document(&folder)).len(), sizes.len());
    let output = resume(&folder, &more[..4]);
    assert!(complaints(&output).contains("its sizes measured was `at most 20"));
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_mistake_is_told_with_what_to_write_instead() {
    for (more, words) in [
        (
            ["--sizes=64..16:16", "--seed=1"],
            "is no range: write sizes such as",
        ),
        (["--sizes=4", "--seed=1"], "8 to 1048576 octets"),
        (
            ["--carriers=dds", "--seed=1"],
            "is not a carrier. Name one of udp",
        ),
        (["--messages=0", "--seed=1"], "0 is not in 1..=100000"),
        (["--streams=5", "--seed=1"], "write numbers from 1 to 4"),
        (["--hops=3..1", "--seed=1"], "such as 1,3 or 1..3"),
        (
            ["--streams=1..4", "--hops=1..3"],
            "The settings need 180 processes",
        ),
    ] {
        let output = sweep(&folder("sweep-mistake"), &more)
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        let told = complaints(&output);
        assert!(told.contains(words), "{more:?}: {told}");
    }
    let nowhere = folder("sweep-nowhere");
    let output = resume(&nowhere, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(complaints(&output).contains("is no folder of a sweep"));
}

#[test]
fn the_book_has_the_table_of_metrics() {
    let book = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/sweeps.md");
    let book = std::fs::read_to_string(book).expect("the chapter");
    for metric in deckwatch_meter::metrics::METRICS {
        let (unit, definition) = (metric.unit.words(), metric.definition);
        let row = format!(
            "| {} | {} | {unit} | {definition} |",
            metric.equation, metric.name
        );
        assert!(book.contains(&row), "{row}");
    }
}

#[test]
fn a_grid_has_all_nine_states_and_goes_on_behind_a_finished_one() {
    let folder = folder("grid");
    let grid = |place: &str| {
        let words = "--carriers udp --sizes 64 --iterations 1 --messages 40";
        let mut command = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
        command.arg("grid").arg(place).arg(&folder);
        command.args(words.split(' ')).output().expect("it runs")
    };
    let output = grid("--output");
    let said = complaints(&output);
    if said.contains("processors") && output.status.code() == Some(2) {
        deckwatch_testkit::skip("processors", "each end needs a processor of its own");
        return;
    }
    assert!(output.status.success(), "{said}");
    let first = document(&folder);
    let states: Vec<(u64, u64)> = (first.measurements.iter())
        .map(|one| {
            let of = |factor: &str| one.factors[factor] as u64;
            (of("client_state"), of("server_state"))
        })
        .collect();
    let wanted: Vec<(u64, u64)> = (0..9).map(|state| (state / 3, state % 3)).collect();
    assert_eq!(states, wanted);
    assert_eq!(first.figures.len(), 3);
    let table = std::fs::read_to_string(folder.join("grid.csv")).expect("a table");
    assert_eq!(table.lines().count(), 1 + wanted.len());
    // The last state is taken back: only it is measured again.
    let journal = folder.join("journal.jsonl");
    let text = std::fs::read_to_string(&journal).expect("a journal");
    let kept: Vec<&str> = text.lines().take(1 + 8).collect();
    std::fs::write(&journal, kept.join("\n") + "\n").expect("writable");
    std::fs::remove_file(folder.join("state-2-2.jsonl")).expect("there");
    let again = grid("--resume");
    assert!(again.status.success(), "{}", complaints(&again));
    let second = document(&folder);
    assert_eq!(second.measurements.len(), wanted.len());
    for (one, other) in first.measurements.iter().zip(&second.measurements) {
        let is_last = one.group == "client 67-100%, server 67-100%";
        assert_eq!(one.histogram == other.histogram, !is_last, "{}", one.group);
    }
    drop(std::fs::remove_dir_all(&folder));
}
