//! Programs that fail or lie. Each is a shell script; none of them may cost more than its own stream.

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use deckwatch_os::namespace::start_time_of_process;

use crate::carriers::CarrierRef;
use crate::external::{External, Manifest};
use crate::limits::PROGRAM_READY_MAX;
use crate::part::playing::{Playing, consumer, soon, stream, supplier};
use crate::plan::PartPlan;
use crate::record::ReadRecords;
use crate::scratch::Scratch;
use crate::talk::{PartCommand, PartEvent, Setting};

/// Makes a carrier whose program is a script. The script has the plan's values as variables, such as `$records_at`.
fn carrier(scratch: &Scratch, script: &str) -> CarrierRef {
    CarrierRef::new(external(scratch, script, PROGRAM_READY_MAX))
}

/// The same, which must be ready within this time.
fn external(scratch: &Scratch, script: &str, ready_max: Duration) -> &'static External {
    let text = "name = \"liar\"\nsummary = \"s\"\nfamily = \"f\"\nprogram = \"p\"\nprotocol = 1\n";
    let manifest = Manifest::parse(std::path::Path::new("carrier.toml"), text).expect("sound");
    let program = scratch.path("p");
    let text = format!(
        r#"#!/bin/sh
while read -r key value && [ -n "$key" ]; do
    eval "$(echo "$key" | tr - _)=\$value"
done
ready() {{ echo '{{"event":"ready","honoured":["deadline","later"]}}'; }}
# put OFFSET VALUE...: writes integers of 8 octets into the first record.
put() {{
    at=$(($records_at + $1)); shift
    for value in "$@"; do
        octets=
        for _ in 0 1 2 3 4 5 6 7; do
            octets="$octets\\$(printf %03o $((value & 255)))"
            value=$((value >> 8))
        done
        printf "$octets" | dd of="$records" bs=1 seek=$at conv=notrunc 2>/dev/null
        at=$((at + 8))
    done
}}
{script}
"#
    );
    std::fs::write(&program, text).expect("writable");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&program, mode).expect("ours");
    External::leak_ready_within(manifest, program, ready_max)
}

/// Plays a consumer whose program is a script, stops it when it is ready, and returns its last event.
fn last_event(script: &str) -> PartEvent {
    let scratch = Scratch::new();
    let stream = stream(carrier(&scratch, script), 64, 10);
    last_event_of(consumer(&stream, 0, &scratch))
}

fn last_event_of(plan: PartPlan) -> PartEvent {
    let mut part = Playing::start(plan);
    loop {
        match part.hear() {
            PartEvent::Ready(_) => {
                part.tell(soon());
                part.tell(PartCommand::Stop);
            }
            PartEvent::Progress(_) => {}
            event => {
                part.thread.join().expect("no panic");
                return event;
            }
        }
    }
}

fn error(script: &str) -> String {
    match last_event(script) {
        PartEvent::Error { text } => text,
        event => panic!("{script}: {event:?}"),
    }
}

#[test]
fn a_program_that_fails_is_reported_in_its_own_words() {
    for (script, words) in [
        ("exit 3", "exit status: 3"),
        ("echo no such bus >&2; exit 1", "no such bus"),
        ("echo hello; exit 0", "hello"),
        (
            r#"echo '{"event":"error","text":"The bus is gone. Start it."}'; sleep 9"#,
            "The bus is gone. Start it",
        ),
        (
            r#"echo '{"event":"ready","endpoint":7}'; sleep 9"#,
            "no event",
        ),
        (r#"echo '{"event":"done"}'; sleep 9"#, "`done`"),
        ("exec >&-; sleep 9", "closed its output"),
        ("yes", "MiB"),
        ("yes >&2", "MiB"),
        ("head -c 40000 /dev/zero | tr '\\0' x; sleep 9", "no event"),
        (
            r#"while :; do echo '{"event":"warning","text":"again"}'; done"#,
            "loop",
        ),
    ] {
        let text = error(script);
        assert!(text.contains(words), "{script}: {text}");
        assert!(text.starts_with("The program of carrier liar "), "{text}");
    }
}

#[test]
fn a_program_that_is_not_ready_in_time_is_given_up_with_what_it_wrote() {
    let scratch = Scratch::new();
    let script = "echo no master yet >&2; exec sleep 60";
    let slow = external(&scratch, script, Duration::from_millis(700));
    let stream = stream(CarrierRef::new(slow), 64, 10);
    let PartEvent::Error { text } = last_event_of(consumer(&stream, 0, &scratch)) else {
        panic!("it became ready");
    };
    let wanted = "The program of carrier liar was not ready within 700ms. It wrote: no master yet";
    assert!(text.starts_with(wanted), "{text}");
}

#[test]
fn records_that_cannot_be_true_are_removed_and_the_part_fails() {
    // The script writes the record when it is told to start.
    let after_go =
        |record: &str| format!("ready; read -r _ start; now=$start; {record}; read -r _");
    for (record, fact) in [
        (
            "put 0 1 0 9000000000000000000 9000000000000000000 0 0",
            "in the future",
        ),
        ("put 0 1 0 $((now - 1)) $now 0 0", "before the start"),
        ("put 0 99 0 $now $now 0 0", "was not sent"),
        ("put 0 1 0 $now $((now - 1)) 0 0", "before it was received"),
        ("put 0 1 0 $now $now 900000000000000 0", "processor time"),
        ("put 0 1 7 $now $now 0 0", "time of the kernel"),
        ("put 48 1 0 $now $now 0 0", "empty record"),
        (": > \"$records\"", "octets instead of"),
    ] {
        let scratch = Scratch::new();
        // The stop comes only after the start: the stamps are not in the future.
        let script = after_go(&format!("sleep 0.1; {record}"));
        let stream = stream(carrier(&scratch, &script), 64, 10);
        let event = last_event_of(consumer(&stream, 0, &scratch));
        let PartEvent::Error { text } = event else {
            panic!("{record}: {event:?}");
        };
        assert!(text.contains(fact), "{record}: {text}");
        let read = ReadRecords::consumer(&scratch.path("consumer-0")).expect("a whole file");
        assert_eq!(read.records, [], "{record}");
    }
}

#[test]
fn a_suppliers_records_are_checked_against_its_schedule() {
    for (record, fact) in [
        (
            "put 0 9000000000000000000 9000000000000000000 0 0",
            "in the future",
        ),
        ("put 0 $((now - 2000000)) $now 0 0", "before it was due"),
        ("put 0 $now $((now - 1)) 0 0", "before it was sent"),
        ("put 0 $now $now 7 0", "time of the kernel"),
        ("put 0 $now $now 0 77", "does not exist"),
    ] {
        let scratch = Scratch::new();
        let script = format!("ready; read -r _ now; sleep 0.1; {record}; read -r _");
        let stream = stream(carrier(&scratch, &script), 64, 10);
        let event = last_event_of(supplier(&stream, &["e".to_owned()], &scratch));
        let PartEvent::Error { text } = event else {
            panic!("{record}: {event:?}");
        };
        assert!(text.contains(fact), "{record}: {text}");
        let read = ReadRecords::supplier(&scratch.path("supplier")).expect("a whole file");
        assert_eq!(read.of_destination(0)[0].sent_ns, 0, "{record}");
    }
}

#[test]
fn a_program_that_does_not_end_is_killed_with_what_it_started() {
    let scratch = Scratch::new();
    let note = scratch.path("child");
    let script = format!(
        "trap '' TERM; sleep 60 & echo $! > {}; ready; while :; do sleep 1; done",
        note.display()
    );
    let stream = stream(carrier(&scratch, &script), 64, 10);
    let event = last_event_of(consumer(&stream, 0, &scratch));
    let PartEvent::Done(done) = event else {
        panic!("{event:?}");
    };
    let texts: Vec<&str> = done.warnings.iter().map(|one| &*one.text).collect();
    assert!(
        texts.iter().any(|text| text.contains("was killed")),
        "{texts:?}"
    );
    let child = std::fs::read_to_string(&note).expect("noted");
    let child = child.trim().parse().expect("a process id");
    while start_time_of_process(child).is_some() {
        std::thread::yield_now();
    }
}

#[test]
fn a_true_record_counts_and_settings_that_are_not_named_are_ignored() {
    let scratch = Scratch::new();
    let script = "echo a greeting; ready; read -r _ now; sleep 0.1; \
                  put 0 1 0 $now $((now + 5)) 0 0; \
                  read -r _; echo '{\"event\":\"done\",\"malformed\":2}'";
    let stream = stream(carrier(&scratch, script), 64, 10);
    let mut plan = consumer(&stream, 0, &scratch);
    if let PartPlan::Consumer(plan) = &mut plan {
        plan.priority = Some(7);
    }
    let mut part = Playing::start(plan);
    let ready = part.ready();
    assert!(ready.settings.honoured.iter().eq(&[Setting::Deadline]));
    assert!(ready.settings.ignored.iter().eq(&[Setting::Priority]));
    assert!(ready.program.is_some());
    part.tell(soon());
    part.tell(PartCommand::Stop);
    let done = part.done();
    assert_eq!((done.progress.received, done.progress.late), (1, 0));
    let read = ReadRecords::consumer(&scratch.path("consumer-0")).expect("a whole file");
    assert_eq!((read.header.malformed, read.header.finished), (2, 1));
    assert_eq!(read.records[0].sequence, 1);
    assert!(!scratch.path("consumer-0.body").exists());
}

#[test]
fn a_program_that_is_not_there_is_an_error_with_its_path() {
    let scratch = Scratch::new();
    let carrier = carrier(&scratch, "");
    std::fs::remove_file(scratch.path("p")).expect("ours");
    let stream = stream(carrier, 64, 10);
    let event = last_event_of(consumer(&stream, 0, &scratch));
    let PartEvent::Error { text } = event else {
        panic!("{event:?}");
    };
    assert!(
        text.contains("cannot be started") && text.contains("/p"),
        "{text}"
    );
}

#[test]
fn the_plan_tells_a_supplier_all_that_it_needs() {
    let scratch = Scratch::new();
    let copy = scratch.path("copy");
    let script = format!(
        "set > {}; cp \"$dues\" {}; ready; read -r _; echo '{{\"event\":\"done\"}}'",
        copy.display(),
        scratch.path("dues").display()
    );
    let stream = stream(carrier(&scratch, &script), 64, 10);
    let plan = supplier(&stream, &["tcp://a b".to_owned()], &scratch);
    let event = last_event_of(plan);
    assert!(matches!(event, PartEvent::Done(_)), "{event:?}");
    let mut variables = String::new();
    let mut file = std::fs::File::open(&copy).expect("copied");
    file.read_to_string(&mut variables).expect("text");
    for wanted in [
        "deckwatch_carrier='1'",
        "role='supplier'",
        "size_bytes='64'",
        "sequence_at='0'",
        "sequence_order='big'",
        "records_at='4096'",
        "capacity='15'",
        "slots='1'",
        "gap_ns='1000000'",
        "destination='0 H0 tcp://a b'",
        "deadline_ns='1000000000'",
    ] {
        assert!(variables.contains(wanted), "{wanted} in {variables}");
    }
    let dues = std::fs::read(scratch.path("dues")).expect("copied");
    assert_eq!(dues.len(), 15 * 8);
    assert_eq!(dues[8..16], 1_000_000_i64.to_ne_bytes());
}
