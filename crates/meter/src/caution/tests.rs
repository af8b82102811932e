//! Words of cautions, and the groups of facts.

use super::*;
use crate::host_entry::HostEntry;

#[test]
fn a_clock_part_that_was_kept_from_its_processor_is_named_with_its_thread() {
    let starved = TakenTime {
        part: "clock part on RTS".to_owned(),
        host: HostEntry::named("RTS"),
        thread: "part-clock".to_owned(),
        time: Duration::from_secs(2),
        ..TakenTime::default()
    };
    let by_pipe = |starved| Caution::ClockByPipe {
        hosts: "SONAR".to_owned(),
        starved,
    };
    let said = by_pipe(Some(starved)).to_string();
    let cause = "The part that asks was ready and did not run: 2 s from thread part-clock of the clock part on RTS by";
    assert!(said.contains(cause), "{said}");
    let unknown = by_pipe(None).to_string();
    assert!(
        unknown.contains("Let UDP pass between the hosts"),
        "{unknown}"
    );
}

fn text() -> String {
    "X".to_owned()
}

fn cautions() -> Vec<Caution> {
    [
        of_machine_and_destinations(),
        of_run_and_parts(),
        of_files(),
    ]
    .concat()
}

fn of_machine_and_destinations() -> Vec<Caution> {
    let (hosts, number) = (text, text);
    let time = Duration::from_millis(5);
    vec![
        Caution::StolenProcessor(time),
        Caution::Throttled(time),
        Caution::ProcessorPressure {
            waited: time,
            of: time,
        },
        Caution::ProcessorTaken {
            worst: TakenTime::default(),
            others: 1,
        },
        Caution::ReceiveOverflowHere(1),
        Caution::SendErrorsHere(1),
        Caution::CaptureDropped(1),
        Caution::ClockError(time),
        Caution::ScheduleNotKept {
            hosts: hosts(),
            number: number(),
            of: 2,
            after: time,
            by_mission: false,
        },
        Caution::SendErrors {
            hosts: hosts(),
            number: number(),
        },
        Caution::ReceiveOverflow {
            hosts: hosts(),
            number: number(),
        },
        Caution::DroppedAtSocket { messages: 1 },
        Caution::SendWaits { sends: 1 },
        Caution::MergedLayers {
            hosts: hosts(),
            layers: text(),
        },
    ]
}

fn of_run_and_parts() -> Vec<Caution> {
    vec![
        Caution::Loopback {
            reason: "So.".to_owned(),
        },
        Caution::LoadMissed { load: text() },
        Caution::FarHosts { hosts: text() },
        Caution::FarClock {
            host: text(),
            contradictions: 1,
        },
        Caution::Interrupted { signal: "SIGINT" },
        Caution::Death {
            process: text(),
            at_ns: 1,
            how: text(),
        },
        Caution::NoCaptures {
            reason: "So.".to_owned(),
        },
        Caution::NoTap {
            process: text(),
            how: text(),
        },
        Caution::SchedulingRefused {
            what: text(),
            error: text(),
            remedy: "so",
        },
        Caution::PriorityUnapplied {
            flow: text(),
            carrier: "udp",
        },
        Caution::ChannelOverflow {
            flow: text(),
            events: 1,
        },
        Caution::ChannelConsumerLost {
            flow: text(),
            consumers: 1,
        },
        Caution::TapDropped {
            host: text(),
            packets: 1,
            cause: Some(TapLoss::FileFull),
        },
    ]
}

fn of_files() -> Vec<Caution> {
    vec![
        Caution::RecordsFull {
            host: text(),
            messages: 1,
        },
        Caution::NoRecords {
            host: text(),
            reason: text(),
        },
        Caution::ClockSet { messages: 3 },
        Caution::NoSupplierRecords {
            host: text(),
            reason: text(),
        },
        Caution::ImpossibleStamps {
            host: text(),
            stamps: 1,
        },
        Caution::CaptureCut { host: text() },
        Caution::CaptureUnread {
            flow: text(),
            carrier: "udp",
            messages: 1,
        },
        Caution::StampsMissing {
            flow: text(),
            carrier: "udp",
            hosts: text(),
            messages: 1,
        },
        Caution::StampsDisagree {
            flow: text(),
            carrier: "udp",
            compared: 1,
            beyond: 1,
            bound_ns: 1,
            most_ns: 1,
        },
    ]
}

#[test]
fn every_fact_is_a_whole_sentence() {
    for caution in cautions() {
        let text = caution.to_string();
        assert_ne!(text, caution.kind(), "{caution:?} is in the wrong group");
        assert!(text.ends_with('.') && text.contains(' '), "{text}");
    }
}
