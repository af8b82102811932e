//! Consumers that stop reading: buffers stay bounded, losses are counted, and the right layer is blamed.

use deckwatch_os::clock::{monotonic_ns, sleep_until};
use rustix::process::Signal;

use super::watched::disturbance::Failure;
use super::watched::flows::{counts, flow, mission};
use super::watched::{Finished, WatchedRun, signal};

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
        let disturbance = finished.disturbance.clone();
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
                disturbance: finished.disturbance.clone(),
            });
        }
    }
    Ok(())
}

pub(super) fn check() -> Result<(), Failure> {
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
}
