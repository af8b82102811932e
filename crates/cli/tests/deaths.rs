//! Processes that die: deaths are reported, the other flows continue, and nothing is left behind.

use std::process::Command;

use deckwatch_meter::result::VerdictKind;
use deckwatch_os::clock::sleep_until;
use deckwatch_testbed::Testbed;
use rustix::process::Signal;

use crate::watched::flows::{counts, flow, mission};
use crate::watched::{Folder, WatchedRun, signal, testbed_of, work_of};

#[test]
fn deaths_are_told_other_flows_go_on_and_an_interrupt_keeps_the_result_and_leaves_nothing_else() {
    let rest = "octets = 384\nrate_hz = 50\ndeadline = \"200ms\"\nduration = \"10min\"";
    let flows = ["udp", "tcp", "corba", "event"].map(|carrier| flow(carrier, "SONAR", rest));
    let run = WatchedRun::start("deaths", &mission("deaths", flows.into_iter()), &[]);
    let id = run.id();
    let start_ns = run.start_ns();
    sleep_until(start_ns + 500_000_000);
    let victims = [
        "consumer of NAV-corba over corba at SONAR",
        "naming service on RTS",
        "packet tap on RTS",
        "supplier of NAV-tcp over tcp on RTS",
    ];
    for victim in victims {
        signal(&run.parts(victim), Signal::KILL);
    }
    sleep_until(start_ns + 1_500_000_000);
    signal(&[id], Signal::INT);
    let finished = run.finish();

    let mut died: Vec<&str> = finished
        .document
        .deaths
        .iter()
        .map(|death| {
            assert_eq!(death.how, "killed by signal 9", "{death:?}");
            death.process.as_str()
        })
        .collect();
    died.sort_unstable();
    assert_eq!(died, victims);
    for victim in victims {
        let told = |line: &&String| line.contains(&format!("The {victim} died"));
        assert!(finished.said.iter().any(|line| told(&line)), "{victim}");
    }
    for name in ["NAV-tcp", "NAV-corba"] {
        let flow = finished.flow(name);
        let counts = counts(flow);
        assert!(counts.received > 0 && counts.lost > 20, "{name} {counts:?}");
        assert!(flow.verdict.kind >= VerdictKind::Fail, "{:?}", flow.verdict);
    }
    for name in ["NAV-udp", "NAV-event"] {
        let counts = counts(finished.flow(name));
        // Fifty messages per second from the end of the warm-up to the interrupt, and none lost.
        assert!(counts.due >= 65 && counts.lost == 0, "{name} {counts:?}");
    }
    assert_eq!(finished.status, Some(130));
    let interrupted = |kind: &str| kind == "interrupted";
    let warnings = &finished.document.warnings;
    assert!(warnings.iter().any(|warning| interrupted(&warning.kind)));
    assert_eq!(testbed_of(id), None);
    assert_eq!(work_of(id), None);
}

#[test]
fn what_a_killed_run_leaves_is_removed_by_hand_too() {
    if let Some(reason) = Testbed::obstacle() {
        return deckwatch_testkit::skip("namespaces", &reason);
    }
    let rest = "octets = 384\nrate_hz = 50\ndeadline = \"200ms\"\nduration = \"10min\"";
    let text = mission("killed", std::iter::once(flow("udp", "SONAR", rest)));
    let run = WatchedRun::start("killed", &text, &[]);
    let id = run.id();
    assert!(testbed_of(id).is_some() && work_of(id).is_some());
    let _folder = run.kill();
    let cleaned = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .args(["testbed", "clean"])
        .output()
        .expect("it runs");
    assert!(cleaned.status.success(), "{cleaned:?}");
    assert_eq!(testbed_of(id), None);
    assert_eq!(work_of(id), None);
}

#[test]
fn a_full_disk_costs_the_files_and_not_the_verdict() {
    if let Some(reason) = Testbed::obstacle() {
        return deckwatch_testkit::skip("namespaces", &reason);
    }
    let folder = Folder::new("full");
    let file = folder.path().join("mission.toml");
    let rest = "octets = 384\nrate_hz = 50\ndeadline = \"200ms\"\nduration = \"400ms\"";
    let text = mission("full", std::iter::once(flow("udp", "SONAR", rest)));
    std::fs::write(&file, text).expect("writable");
    // A disk of three pages in a mount namespace of this run.
    let script = "mount -t tmpfs -o size=12k tmpfs \"$1\" && \"$2\" run \"$1.toml\" --no-emulation --output \"$1/result\"; s=$?; ls \"$1/result\" | sed 's/^/left: /' >&2; exit $s";
    let disk = folder.path().join("mission");
    std::fs::create_dir(&disk).expect("writable");
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(&disk)
        .arg(env!("CARGO_BIN_EXE_deckwatch"))
        .env("NO_COLOR", "1")
        .output()
        .expect("util-linux is there");
    let (printed, said) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(printed.contains("of 20 messages were late"), "{printed}");
    assert!(said.contains("No space left on device"), "{said}");
    for whole in ["result.json", "samples.parquet", "report.html"] {
        assert!(!said.contains(&format!("left: {whole}\n")), "{said}");
    }
}
