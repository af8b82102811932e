//! Sweeps over an emulated network: what is lost on it, and what a full send buffer refuses.

use deckwatch_meter::experiment::ExperimentDocument;

use super::{check_point, complaints, document, resume, sweep};
use crate::measuring::folder;

/// Sweeps over an emulated Fast Ethernet. `None` without the privileges for it.
fn on_network(test: &str, more: &[&str]) -> Option<ExperimentDocument> {
    if let Some(reason) = deckwatch_testbed::Testbed::obstacle() {
        deckwatch_testkit::skip("namespaces", &reason);
        return None;
    }
    let folder = folder(test);
    let mut command = sweep(&folder, &["--network=fast-ethernet", "--carriers=udp"]);
    let output = command.args(more).output().expect("it runs");
    assert!(output.status.success(), "{}", complaints(&output));
    let found = document(&folder);
    std::fs::remove_dir_all(folder).expect("removed");
    Some(found)
}

#[test]
fn the_percent_of_data_received_is_what_an_injected_loss_leaves() {
    let more = [
        "--sizes=100",
        "--iterations=1",
        "--messages=50",
        "--lose-every=5",
    ];
    let Some(found) = on_network("sweep-loss", &more) else {
        return;
    };
    let [point] = &found.measurements[..] else {
        panic!("one point")
    };
    check_point(point, 50.0);
    // Every fifth frame to the server is dropped. A frame of another protocol may be among them.
    let network = point.values["ledger_network"];
    assert!((9.0..=11.0).contains(&network), "{:?}", point.values);
    assert_eq!(point.values["received_mean_share"], (50.0 - network) / 50.0);
    let lost = point.values["transactions_lost"];
    assert!((9.0..=11.0).contains(&lost), "{lost}");
    assert!(found.parameters["network"].contains("every 5th frame to SERVER is dropped"));
}

#[test]
fn a_full_send_buffer_is_a_sendto_error_or_is_waited_for() {
    for full in ["error", "wait"] {
        let full_is = format!("--full={full}");
        let more = [
            "--sizes=1472",
            "--iterations=1",
            "--messages=1000",
            "--buffers=own",
            &full_is,
        ];
        let Some(found) = on_network(&format!("sweep-full-{full}"), &more) else {
            return;
        };
        let [point] = &found.measurements[..] else {
            panic!("one point")
        };
        check_point(point, 1_000.0);
        // A megabyte and a half in a buffer of a quarter, at 12 octets a microsecond.
        let errors = point.values["sendto_errors_mean"];
        assert_eq!(errors > 0.0, full == "error", "{:?}", point.values);
        assert_eq!(
            point.values["ledger_received"],
            1_000.0 - errors,
            "{:?}",
            point.values
        );
        // No more than the line carries; a burst at the beginning passes unshaped.
        let line = point.values["end_to_end_line_mean_bit_s"];
        assert!(line < 1.15e8, "{line}");
    }
}

#[test]
fn a_smaller_send_buffer_is_full_sooner() {
    let more = [
        "--sizes=1472",
        "--iterations=1",
        "--messages=100",
        "--full=error",
        "--buffers=8K,own",
    ];
    let Some(found) = on_network("sweep-buffers", &more) else {
        return;
    };
    let errors = found
        .measurements
        .iter()
        .map(|one| one.values["sendto_errors_mean"]);
    let errors: Vec<f64> = errors.collect();
    // Our own buffer holds a hundred messages, and that of 8 KiB some ten.
    assert!(errors[0] > 0.0 && errors[1] == 0.0, "{errors:?}");
}

#[test]
fn what_a_switch_queue_drops_is_named_and_the_network_loses_nothing() {
    if let Some(reason) = deckwatch_testbed::Testbed::obstacle() {
        return deckwatch_testkit::skip("namespaces", &reason);
    }
    let folder = folder("sweep-queue");
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("narrow.toml");
    let text = "name = \"narrow\"\nhosts = [\"A\", \"B\"]\nswitches = [\"hub\"]\n\
                [[links]]\nbetween = [\"A\", \"hub\"]\npreset = \"fast-ethernet\"\n\
                [[links]]\nbetween = [\"B\", \"hub\"]\npreset = \"fast-ethernet\"\n\
                rate_mbit_s = 2\nqueue_frames = 10\n";
    std::fs::write(&file, text).expect("written");
    let network = format!("--network={}", file.display());
    let more = [
        &network[..],
        "--from=A",
        "--to=B",
        "--carriers=udp",
        "--sizes=1000",
        "--iterations=1",
        "--messages=60",
        "--sends=bulk",
    ];
    let output = sweep(&folder.join("result"), &more)
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", complaints(&output));
    let found = document(&folder.join("result"));
    let [point] = &found.measurements[..] else {
        panic!("one point")
    };
    check_point(point, 60.0);
    let of = |name: &str| point.values[&format!("ledger_{name}")];
    // The queue has ten frames, and the line one, whenever a frame is dropped.
    assert!(of("received") >= 11.0, "{:?}", point.values);
    assert!(of("network_queue_drops") > 0.0, "{:?}", point.values);
    assert_eq!(
        of("network_queue_drops") + of("received"),
        60.0,
        "{:?}",
        point.values
    );
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_sweep_over_a_relay_states_what_is_emulated_and_is_not_resumed_over_shapers() {
    let more = [
        "--emulation=relay",
        "--sizes=64",
        "--iterations=1",
        "--messages=20",
    ];
    let Some(reason) = deckwatch_testbed::Testbed::obstacle() else {
        let folder = folder("sweep-relay");
        let asked = ["--network=fast-ethernet", "--carriers=udp"];
        let output = sweep(&folder, &[&asked[..], &more].concat()).output();
        let output = output.expect("it runs");
        assert!(output.status.success(), "{}", complaints(&output));
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(printed.contains("  Emulated: "), "{printed}");
        assert!(printed.contains("  Not emulated: "), "{printed}");
        let found = document(&folder);
        let fidelity = found.fidelity.expect("stated");
        assert!(
            fidelity.emulated.join(" ").contains("head-of-line"),
            "{fidelity:?}"
        );
        let page = std::fs::read_to_string(folder.join("report.html")).expect("a report");
        assert!(page.contains("head-of-line"));
        let shaped = [&asked[..], &more[1..]].concat();
        let output = resume(&folder, &shaped);
        assert_eq!(output.status.code(), Some(2));
        let said = complaints(&output);
        assert!(
            said.contains("cannot be resumed: its network was"),
            "{said}"
        );
        std::fs::remove_dir_all(folder).expect("removed");
        return;
    };
    deckwatch_testkit::skip("namespaces", &reason);
}

#[test]
fn the_ends_of_a_network_file_are_named_by_the_user_from_its_list() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../scenarios/two-decks.toml"
    );
    let network = format!("--network={file}");
    let output = sweep(&folder("sweep-unnamed"), &[&network])
        .output()
        .expect("it runs");
    let said = complaints(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--from and --to: the network "), "{said}");
}
