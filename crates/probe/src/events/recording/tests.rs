//! A recording is read back, torn anywhere, and damaged anywhere.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use deckwatch_cdr::Any;
use deckwatch_event::rtec_event_comm::EventHeader;
use tempfile::TempDir;

use super::*;
use crate::events::selection::Selection;
use crate::events::subscription::Losses;
use crate::events::{Moment, Received};

const START_NS: i64 = 1_000;

fn head() -> Head {
    Head {
        started: "2026-01-31T12:34:56.789Z".to_owned(),
        channel: "NAV".to_owned(),
        ..Head::default()
    }
}

fn received(after_ns: i64, number: u32) -> Received {
    Received {
        event: Event {
            header: (number == 1).then(|| EventHeader {
                source: 9,
                ..EventHeader::default()
            }),
            payload: vec![3; number as usize],
            data: Any::from_value(&number).expect("an event"),
        },
        at: Moment {
            monotonic_ns: START_NS + after_ns,
            utc: std::time::SystemTime::UNIX_EPOCH,
        },
    }
}

/// A recording of the numbers 0, 1 and 2 at 5, 105 and 405 ns.
fn recorder(folder: &TempDir) -> (Recorder, PathBuf) {
    let path = folder.path().join("events");
    let mut recorder = Recorder::create(&path, &head(), START_NS).expect("a new file");
    let permissions = std::fs::metadata(&path).expect("a file").permissions();
    assert_eq!(
        permissions.mode() & 0o777,
        0o600,
        "only its user may read it"
    );
    for (number, after_ns) in [5, 105, 405].into_iter().enumerate() {
        let number = u32::try_from(number).expect("small");
        recorder.add(&received(after_ns, number)).expect("written");
    }
    (recorder, path)
}

fn numbers(path: &Path) -> Vec<(u128, u32)> {
    let mut recording = Recording::open(path).expect("a recording");
    let mut numbers = Vec::new();
    while let Some(recorded) = recording.read().expect("whole records") {
        let number = recorded.event.data.extract().expect("a number");
        assert_eq!(recorded.event.payload, vec![3; number as usize]);
        assert_eq!(
            recorded.event.header.map(|header| header.source),
            (number == 1).then_some(9)
        );
        numbers.push((recorded.after.as_nanos(), number));
    }
    numbers
}

#[test]
fn a_recording_is_read_back_with_its_times_and_its_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let (recorder, path) = recorder(&folder);
    let losses = Losses {
        dropped: 7,
        dropped_by_channel: Some(9),
    };
    let end = recorder.finish(losses, 8).expect("written");
    assert_eq!((end.events, end.dropped, end.unwanted), (3, 7, 8));
    assert_eq!(end.dropped_by_channel, Some(9));
    assert_eq!(numbers(&path), [(5, 0), (105, 1), (405, 2)]);
    let found = survey(&path, &Selection::default()).expect("a recording");
    assert_eq!((&found.head, found.events), (&head(), 3));
    let ns = Duration::from_nanos;
    assert_eq!(found.span, Some((ns(5), ns(405))));
    assert_eq!(found.tail, Tail::Ended(end));
    let wanted = Wanted {
        headers: [(0, 9)].into(),
        with_header: 1,
        without_header: 2,
        with_payload: 2,
    };
    assert_eq!(found.wanted, wanted);
    let from_nobody = Selection {
        sources: vec![8],
        ..Selection::default()
    };
    let found = survey(&path, &from_nobody).expect("a recording");
    assert_eq!((found.events, found.wanted), (3, Wanted::default()));
    let mut recording = Recording::open(&path).expect("a recording");
    while recording.read().expect("whole records").is_some() {}
    recording.rewind().expect("rewound");
    let first = recording.read().expect("whole records").expect("an event");
    assert_eq!(first.after, ns(5));
}

#[test]
fn a_file_that_exists_is_not_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, path) = recorder(&folder);
    let again = Recorder::create(&path, &head(), 0).expect_err("it exists");
    assert!(
        matches!(again, RecordingError::File(error) if error.kind() == io::ErrorKind::AlreadyExists)
    );
    assert_eq!(numbers(&path).len(), 3);
}

#[test]
fn a_recording_cut_at_any_octet_gives_its_whole_events() {
    let folder = tempfile::tempdir().expect("a folder");
    let (recorder, path) = recorder(&folder);
    let size = usize::try_from(recorder.size_bytes()).expect("small");
    drop(recorder);
    let whole = std::fs::read(&path).expect("readable");
    assert_eq!(
        whole.len(),
        size,
        "every event is in the file before the recorder ends"
    );
    assert_eq!(
        survey(&path, &Selection::default())
            .expect("a recording")
            .tail,
        Tail::Open
    );
    let cut = folder.path().join("cut");
    let mut opens = 0;
    for len in PREAMBLE_SIZE..size {
        std::fs::write(&cut, &whole[..len]).expect("written");
        let found = survey(&cut, &Selection::default()).expect("a recording");
        match found.tail {
            Tail::Open => opens += 1,
            Tail::Torn(octets) => assert!(octets > 0 && octets < size as u64),
            other => panic!("no end was written: {other:?}"),
        }
        let all = numbers(&path);
        assert_eq!(
            numbers(&cut),
            all[..usize::try_from(found.events).expect("small")]
        );
    }
    // Behind the preamble, the head and two events; the third makes the whole file.
    assert_eq!(opens, 4);
}

#[test]
fn a_changed_octet_is_found_and_the_events_before_it_are_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let (recorder, path) = recorder(&folder);
    drop(recorder);
    let whole = std::fs::read(&path).expect("readable");
    let all = numbers(&path);
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x10;
        std::fs::write(&path, &changed).expect("written");
        let (events, is_told) = match survey(&path, &Selection::default()) {
            Ok(found) => {
                let is_told = matches!(found.tail, Tail::Torn(_) | Tail::Damaged { .. });
                (found.events, is_told)
            }
            // Without its head it is no recording.
            Err(RecordingError::Damaged { events, .. }) => (events, events == 0),
            Err(_) => (0, at < PREAMBLE_SIZE),
        };
        assert!(is_told && events < 3, "octet {at}");
        let mut recording = Recording::open(&path).ok();
        for expected in &all[..usize::try_from(events).expect("small")] {
            let recording = recording.as_mut().expect("it opens");
            let found = recording.read().expect("whole").expect("an event");
            assert_eq!(found.after.as_nanos(), expected.0, "octet {at}");
        }
    }
}

#[test]
fn the_events_before_a_damaged_one_are_surveyed_and_those_behind_it_are_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut recorder, path) = recorder(&folder);
    let offset = recorder.size_bytes();
    for number in [3, 4] {
        recorder.add(&received(500, number)).expect("written");
    }
    drop(recorder);
    let mut octets = std::fs::read(&path).expect("readable");
    octets[usize::try_from(offset).expect("small") + FRAME_SIZE + 20] ^= 1;
    std::fs::write(&path, &octets).expect("written");
    let found = survey(&path, &Selection::default()).expect("a recording");
    let fact = "its checksum is wrong".to_owned();
    assert_eq!(found.tail, Tail::Damaged { offset, fact });
    assert_eq!(found.events, 3);
    let mut recording = Recording::open(&path).expect("a recording");
    for _ in 0..2 {
        let mut events = 0;
        while recording.read_whole().expect("readable").is_some() {
            events += 1;
        }
        assert_eq!(events, 3);
        recording.rewind().expect("rewound");
    }
}

#[test]
fn zeros_behind_the_records_are_a_torn_tail() {
    let folder = tempfile::tempdir().expect("a folder");
    let (recorder, path) = recorder(&folder);
    drop(recorder);
    let mut octets = std::fs::read(&path).expect("readable");
    octets.resize(octets.len() + 10_000, 0);
    std::fs::write(&path, &octets).expect("written");
    let found = survey(&path, &Selection::default()).expect("a recording");
    assert_eq!((found.events, found.tail), (3, Tail::Torn(10_000)));
}

#[test]
fn what_is_no_recording_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("other");
    for (octets, is_fitting) in [
        (&b""[..], |error: &RecordingError| {
            matches!(error, RecordingError::NotARecording)
        }),
        (b"DWEVENTX\x01\0\0\0", |error| {
            matches!(error, RecordingError::NotARecording)
        }),
        (b"DWEVENTS\x02\0\0\0", |error| {
            matches!(error, RecordingError::Version(2))
        }),
    ] as [(&[u8], fn(&RecordingError) -> bool); 3]
    {
        std::fs::write(&path, octets).expect("written");
        let error = survey(&path, &Selection::default()).expect_err("no recording");
        assert!(is_fitting(&error), "{error}");
    }
}
