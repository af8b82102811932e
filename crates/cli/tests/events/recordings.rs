//! `deckwatch events record` and `replay`, on a channel in the test's hand.

use deckwatch_probe::events::recording::{Recording, Tail, survey};
use deckwatch_probe::events::selection::Selection;
use rustix::process::Signal;

use super::hand::Hand;
use super::{Events, nav, number};
use crate::watched::Folder;

/// Records the numbers from 0 to `count` in `file`, and returns the recorder while it still runs.
fn recording(hand: &Hand, file: &std::path::Path, count: u32) -> Events {
    let file = file.to_str().expect("UTF-8");
    let record = Events::start(hand, &["record", "--output", file]);
    let consumer = hand.consumer();
    for event in 0..count {
        consumer.push(&number(event)).expect("pushed");
    }
    record
}

/// Waits until a recording holds so many whole events.
fn wait_for_events(file: &std::path::Path, count: u64) {
    while !survey(file, &Selection::default()).is_ok_and(|found| found.events == count) {
        std::thread::yield_now();
    }
}

/// Replays a file with these further arguments. Returns standard error and the numbers sent.
fn replayed(file: &std::path::Path, arguments: &[&str]) -> (String, Vec<u32>) {
    let hand = Hand::new();
    let file = file.to_str().expect("UTF-8");
    let replay = Events::start(&hand, &[&["replay", file][..], arguments].concat());
    let (status, _, errors) = replay.end();
    assert_eq!(status, Some(0), "{errors}");
    assert_eq!(hand.proxies(), 0);
    let numbers = hand
        .pushed
        .try_iter()
        .map(|event| event.extract().expect("a number"));
    (errors, numbers.collect())
}

#[test]
fn a_recorder_killed_in_mid_stream_has_kept_all_that_it_received() {
    let folder = Folder::new("events-killed");
    let file = folder.path().join("nav.events");
    let hand = Hand::new();
    let record = recording(&hand, &file, 50);
    wait_for_events(&file, 50);
    record.signal(Signal::KILL);
    assert_eq!(record.end().0, None);
    let (errors, numbers) = replayed(&file, &["--speed", "0"]);
    assert_eq!(numbers, (0..50).collect::<Vec<_>>());
    let words = "The recording was not ended in order; its 50 events are whole.\nSent 50 events.\n";
    assert_eq!(errors, words);
    // Killed in the middle of a write.
    let size = std::fs::metadata(&file).expect("a file").len();
    let cut = std::fs::OpenOptions::new().write(true).open(&file);
    cut.expect("writable").set_len(size - 3).expect("cut");
    let (errors, numbers) = replayed(&file, &["--speed", "0"]);
    assert_eq!(numbers, (0..49).collect::<Vec<_>>());
    assert!(
        errors.contains("octets of the recording are torn; the 49 events before them are whole."),
        "{errors}"
    );
}

#[test]
fn a_recording_has_its_end_when_the_channel_dies() {
    let folder = Folder::new("events-orphan");
    let file = folder.path().join("nav.events");
    let hand = Hand::new();
    let record = recording(&hand, &file, 7);
    drop(hand);
    let (status, _, errors) = record.end();
    assert_eq!(status, Some(2), "{errors}");
    let kept = "the recording has ended; 7 events are kept in";
    assert!(errors.contains(kept), "{errors}");
    let found = survey(&file, &Selection::default()).expect("a recording");
    let Tail::Ended(end) = found.tail else {
        panic!("{found:?}");
    };
    assert_eq!((found.events, end.events, end.dropped), (7, 7, 0));
    assert_eq!(end.dropped_by_channel, None);
}

#[test]
fn every_event_that_a_recorder_has_taken_from_the_channel_is_counted() {
    let folder = Folder::new("events-counted");
    let hand = Hand::new();
    for (name, more, asked) in [("signal", &[][..], 400), ("count", &["--count", "30"], 30)] {
        let file = folder.path().join(name);
        let text = file.to_str().expect("UTF-8");
        let record = Events::start(&hand, &[&["record", "--output", text][..], more].concat());
        let consumer = hand.consumer();
        for event in 0..400 {
            // Once the recorder has its events, it is gone.
            if consumer.push(&number(event)).is_err() {
                assert!(event >= asked);
                break;
            }
        }
        record.signal(Signal::TERM);
        let (_, _, errors) = record.end();
        let found = survey(&file, &Selection::default()).expect("a recording");
        let Tail::Ended(end) = found.tail else {
            panic!("{errors}");
        };
        assert_eq!((end.events, end.dropped), (u64::from(asked), 0), "{errors}");
    }
}

#[test]
fn the_counts_of_a_recording_are_one_json_object() {
    let folder = Folder::new("events-json");
    let file = folder.path().join("nav.events");
    let text = file.to_str().expect("UTF-8");
    let hand = Hand::new();
    let arguments = [
        "record",
        "--output",
        text,
        "--json",
        "--type",
        "unsigned long",
    ];
    let record = Events::start(&hand, &[&arguments[..], &["--count", "2"]].concat());
    let consumer = hand.consumer();
    for event in [nav(), number(1), number(2)] {
        consumer.push(&event).expect("pushed");
    }
    let (status, output, errors) = record.end();
    assert_eq!((status, &*errors), (Some(0), ""));
    let counts: serde_json::Value = serde_json::from_str(&output).expect("one object");
    assert_eq!(
        (&counts["events"], &counts["unwanted"]),
        (&2.into(), &1.into())
    );
    assert!(counts["size_bytes"].as_u64() > Some(0), "{output}");
}

#[test]
fn the_events_before_a_damaged_one_are_replayed_with_a_warning() {
    let folder = Folder::new("events-damaged");
    let file = folder.path().join("nav.events");
    let hand = Hand::new();
    let record = recording(&hand, &file, 4);
    wait_for_events(&file, 4);
    let damaged = usize::try_from(std::fs::metadata(&file).expect("a file").len()).expect("small");
    // The end of the recording follows the last event.
    record.signal(Signal::INT);
    assert_eq!(record.end().0, Some(0));
    let mut octets = std::fs::read(&file).expect("readable");
    octets[damaged - 1] ^= 1;
    std::fs::write(&file, octets).expect("written");
    let (errors, numbers) = replayed(&file, &["--speed", "0"]);
    assert_eq!(numbers, [0, 1, 2]);
    let told = "is damaged (its checksum is wrong). The 3 events before it are whole; those behind it are not sent.\nSent 3 events.\n";
    assert!(errors.ends_with(told), "{errors}");
}

#[test]
fn a_recording_ended_by_a_signal_is_whole_and_is_replayed_again_and_again() {
    let folder = Folder::new("events-looped");
    let file = folder.path().join("nav.events");
    let hand = Hand::new();
    let record = recording(&hand, &file, 3);
    wait_for_events(&file, 3);
    record.signal(Signal::TERM);
    let (status, output, errors) = record.end();
    assert_eq!((status, &*output), (Some(0), ""), "{errors}");
    assert!(errors.starts_with("Recorded 3 events ("), "{errors}");
    assert_eq!(hand.proxies(), 0);
    let (errors, numbers) = replayed(&file, &["--speed", "0", "--loop", "--count", "7"]);
    assert_eq!(
        (&*errors, numbers),
        ("Sent 7 events.\n", vec![0, 1, 2, 0, 1, 2, 0])
    );
    let (_, numbers) = replayed(&file, &["--speed", "1000", "--count", "2"]);
    assert_eq!(numbers, [0, 1]);
}

#[test]
fn the_schedule_of_a_replay_has_the_recorded_gaps() {
    let folder = Folder::new("events-gaps");
    let file = folder.path().join("nav.events");
    let hand = Hand::new();
    let record = recording(&hand, &file, 5);
    wait_for_events(&file, 5);
    record.signal(Signal::INT);
    assert_eq!(record.end().0, Some(0));
    let mut recorded = Recording::open(&file).expect("a recording");
    let mut after = Vec::new();
    while let Some(event) = recorded.read().expect("whole records") {
        after.push(event.after);
    }
    let hand = Hand::new();
    let file = file.to_str().expect("UTF-8");
    for (speed, times) in [("1", 1.0), ("4", 4.0)] {
        let arguments = ["replay", file, "--dry-run", "--json", "--speed", speed];
        let (status, output, errors) = Events::start(&hand, &arguments).end();
        assert_eq!((status, &*errors), (Some(0), ""));
        let due = output.lines().map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
            assert_eq!(line["type"], "unsigned long");
            line["due_ns"].as_u64().expect("a time")
        });
        let due: Vec<u64> = due.collect();
        let expected = after.iter().map(|time| {
            let since_first = *time - after[0];
            (since_first.as_nanos() as f64 / times).round() as u64
        });
        assert_eq!(due, expected.collect::<Vec<_>>());
    }
    assert_eq!(hand.proxies(), 0);
}

#[test]
fn a_file_that_exists_or_is_no_recording_is_refused() {
    let folder = Folder::new("events-refused");
    let file = folder.path().join("nav.events");
    std::fs::write(&file, "sequence_number: 1\n").expect("written");
    let text = file.to_str().expect("UTF-8");
    let hand = Hand::new();
    let mut errors = String::new();
    for arguments in [["record", "--output", text], ["replay", text, "--loop"]] {
        let (status, output, words) = Events::start(&hand, &arguments).end();
        assert_eq!((status, &*output), (Some(2), ""), "{words}");
        errors += &words.replace(text, "FILE");
    }
    insta::assert_snapshot!(errors);
    assert_eq!(hand.proxies(), 0);
}

#[test]
fn a_recording_of_events_is_chosen_by_type_when_it_is_replayed() {
    let folder = Folder::new("events-types");
    let file = folder.path().join("nav.events");
    let text = file.to_str().expect("UTF-8");
    let hand = Hand::new();
    let record = Events::start(&hand, &["record", "--output", text, "--count", "3"]);
    let consumer = hand.consumer();
    for event in [number(1), nav(), number(2)] {
        consumer.push(&event).expect("pushed");
    }
    assert_eq!(record.end().0, Some(0));
    let (_, numbers) = replayed(&file, &["--speed", "0", "--type", "unsigned long"]);
    assert_eq!(numbers, [1, 2]);
}
