//! Peers that stop reading, and processes that die. Buffers stay bounded, losses are counted, deaths are reported, the
//! other flows continue, and nothing is left behind.

use std::process::Command;

use deckwatch_meter::result::{FlowResult, VerdictKind};
use deckwatch_os::clock::{monotonic_ns, sleep_until};
use deckwatch_testbed::Testbed;
use rustix::process::Signal;

use crate::watched::{
    Failure, Finished, Folder, WatchedRun, signal, testbed_of, up_to_three_times_if_disturbed,
    work_of,
};

fn flow(carrier: &str, to: &str, rest: &str) -> String {
    format!(
        "[[flows]]\nname = \"NAV-{carrier}\"\nfrom = \"RTS\"\nto = [\"{to}\"]\ncarrier = \"{carrier}\"\nlate = \"1 in 10\"\nwarm_up = \"100ms\"\n{rest}\n"
    )
}

/// Returns a mission on an emulated network, if that is permitted. The tests hold on loopback too.
fn mission(name: &str, flows: impl Iterator<Item = String>) -> String {
    let hosts = "hosts = [{ name = \"RTS\" }, { name = \"SONAR\" }, { name = \"PLOT\" }]";
    format!(
        "name = \"{name}\"\n{hosts}\n{}",
        flows.collect::<Vec<_>>().concat()
    )
}

fn counts(flow: &FlowResult) -> deckwatch_meter::result::Counts {
    flow.destinations[0].counts
}

/// Returns the anonymous resident memory of these processes, in octets.
fn resident_bytes(processes: &[u32]) -> u64 {
    let of = |process: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("alive");
        let anonymous = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = anonymous.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kib.expect("a count of KiB") * 1024
    };
    processes.iter().map(of).sum()
}

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

/// Stops the consumers of four flows, of ten megabytes per second each, for one and a half seconds.
fn stop_consumers() -> Result<Finished, Failure> {
    let rest = "octets = 50_000\nrate_hz = 200\ndeadline = \"200ms\"\nduration = \"2900ms\"\nchannel_queue_len = 20";
    let flows = UNREAD.map(|carrier| flow(carrier, "SONAR", rest));
    let reader = flow(
        "corba",
        "PLOT",
        "octets = 384\nrate_hz = 50\ndeadline = \"200ms\"\nduration = \"2900ms\"",
    );
    let text = mission("unread", flows.into_iter().chain([reader]));
    let run = WatchedRun::start("unread", &text, &[]);
    let start_ns = run.start_ns();
    let consumers = run.parts("at SONAR");
    let mut senders = run.parts("supplier of NAV");
    senders.extend(run.parts("event channel"));
    sleep_until(start_ns + 500_000_000);
    signal(&consumers, Signal::STOP);
    let before = resident_bytes(&senders);
    sleep_until(start_ns + 2_000_000_000);
    let after = resident_bytes(&senders);
    signal(&consumers, Signal::CONT);
    let is_held_up = monotonic_ns() - start_ns >= 2_900_000_000;
    // Four flows sent 15 MB each in that time.
    let kept = after.saturating_sub(before);
    assert!(kept < 10_000_000, "{kept} octets kept for stopped peers");
    let finished = run.finish();
    if is_held_up {
        let what = "the test was held up itself".to_owned();
        let disturbance = finished.disturbance();
        return Err(Failure { what, disturbance });
    }
    Ok(finished)
}

const UNREAD: [&str; 4] = ["udp", "tcp", "corba-oneway", "event"];

/// Most messages waited for the stopped consumer: its wake-up is blamed, also for messages queued behind others. The
/// middleware is blamed if a caller waited for room on the connection. Few messages may be blamed on other layers. A
/// supplier or a channel that a host gives no processor delays its own messages, and is blamed for them.
fn check_blame(finished: &Finished) -> Result<(), Failure> {
    for carrier in UNREAD {
        let destination = &finished.flow(&format!("NAV-{carrier}")).destinations[0];
        let blame = &destination.blame;
        let of = |layer: &str| blame.get(layer).copied().unwrap_or(0);
        let late = destination.counts.late;
        let of_both = of("wake-up") + of("middleware");
        if of("wake-up") * 2 <= late || of_both * 4 <= late * 3 {
            return Err(Failure {
                what: format!("{carrier} {blame:?}"),
                disturbance: finished.disturbance(),
            });
        }
    }
    Ok(())
}

#[test]
fn a_peer_that_stops_reading_costs_its_flows_messages_and_nobody_memory() {
    if let Some(reason) = Testbed::obstacle() {
        return deckwatch_testkit::skip("namespaces", &reason);
    }
    up_to_three_times_if_disturbed(|| {
        let finished = stop_consumers()?;
        for carrier in ["udp", "tcp", "event"] {
            let counts = counts(finished.flow(&format!("NAV-{carrier}")));
            assert!(counts.lost > 50, "{carrier} {counts:?}");
            assert!(counts.lost + counts.received == counts.due, "{counts:?}");
        }
        // A call that blocks on its peer delays the calls after it, and loses none.
        let oneway = counts(finished.flow("NAV-corba-oneway"));
        assert!(oneway.late > 50, "{oneway:?}");
        let tcp = counts(finished.flow("NAV-tcp"));
        assert!(tcp.send_errors > 50, "{tcp:?}");
        let udp = counts(finished.flow("NAV-udp"));
        assert!(udp.receive_overflows > 50, "{udp:?}");
        let reader = counts(finished.flow("NAV-corba"));
        assert_eq!((reader.lost, reader.due), (0, 145), "{reader:?}");
        assert_eq!(finished.status, Some(finished.status_of_verdict()));
        let deaths = &finished.document.deaths;
        assert!(deaths.is_empty(), "{deaths:?}");
        check_blame(&finished)
    });
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
