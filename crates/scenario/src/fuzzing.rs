//! The function that the fuzz target of far hosts runs. It panics where a promise of this crate is broken.

use std::path::{Path, PathBuf};

use deckwatch_carrier::host_clock::HostClock;
use deckwatch_carrier::limits::FAR_COUNTER_MAX;
use deckwatch_carrier::talk::{PartEvent, Progress};
use deckwatch_meter::clock::SERVICES;
use deckwatch_meter::result::Warning;

use crate::limits::FAR_WARNINGS_MAX;
use crate::reach::{Returned, Terms, read_all};
use crate::room::MEMORY;
use crate::run::{Line, from_far};

/// The build that a far host of the corpus has.
const BUILD: &str = "1";
const HELLO: &[u8] = b"{\"far\":\"hello\",\"build\":\"1\"}\n";
/// The most octets of the file that may come back.
const RETURNED_SIZE_MAX: u64 = 64;
/// Set in the first octet: the far part is a load.
const IS_LOAD: u8 = 1;
/// Set in the first octet: the first word precedes the octets.
const HAS_HELLO: u8 = 2;

/// Reads octets as the output of a far host, and takes each line as the coordinator does: no text changes a terminal,
/// counters are bounded, stamps can be converted, and the file that comes back has the size of the plan at most. The
/// first octet says what the far part is.
///
/// # Panics
/// When one of these does not hold.
pub fn far_end(octets: &[u8]) {
    let Some((flags, octets)) = octets.split_first() else {
        return;
    };
    let hello = if flags & HAS_HELLO == 0 { &[] } else { HELLO };
    let output = [hello, octets].concat();
    let kept = Kept::new();
    let terms = Terms {
        build: BUILD.to_owned(),
        plan: String::new(),
        returned: vec![Returned {
            path: kept.0.clone(),
            size_bytes_max: RETURNED_SIZE_MAX,
        }],
    };
    let lines = output.split(|octet| *octet == b'\n').count();
    let mut told = 0;
    let mut clock = HostClock::default();
    let ended = read_all(&output[..], terms, |heard| {
        told += 1;
        check(from_far(heard, flags & IS_LOAD != 0), &mut clock);
        true
    });
    assert!(told <= lines, "{told} lines of {lines}");
    let size_bytes = std::fs::metadata(&kept.0).map_or(0, |file| file.len());
    assert!(size_bytes <= RETURNED_SIZE_MAX);
    for clock in [&clock, &clock.settled()] {
        for ns in [0, 1_000_000, i64::MIN, i64::MAX] {
            let _ = (clock.to_far(clock.to_near(ns)), clock.offset_ns(ns));
            let _ = clock.error_ns(0, ns);
        }
    }
    if let Err(fault) = ended {
        assert!(is_plain(&fault), "{fault:?}");
    }
}

fn check(line: Line, clock: &mut HostClock) {
    let warned = |warnings: &[Warning]| {
        assert!(warnings.len() <= FAR_WARNINGS_MAX);
        for warning in warnings {
            assert!(is_plain(&warning.kind) && is_plain(&warning.text));
        }
    };
    let counted = |progress: Progress| {
        let all = [
            progress.sent,
            progress.send_errors,
            progress.received,
            progress.late,
            progress.overflows,
        ];
        assert!(all.iter().all(|count| *count <= FAR_COUNTER_MAX));
    };
    match line {
        Line::Event(PartEvent::Ready(ready)) => {
            assert!(is_plain(&ready.scheduling) && is_plain(&ready.endpoint));
            warned(&ready.warnings);
        }
        Line::Event(PartEvent::Progress(progress)) => counted(progress),
        Line::Event(PartEvent::Done(done)) => {
            counted(done.progress);
            warned(&done.warnings);
        }
        Line::Exchange(exchange) => clock.note(exchange),
        Line::Event(PartEvent::Error { text })
        | Line::FarEnd(Some(text), _)
        | Line::Broken(text)
        | Line::Garbled(text) => assert!(is_plain(&text), "{text:?}"),
        Line::Event(PartEvent::Clock(related)) => clock.note_window(&related.window),
        Line::Event(PartEvent::Sync(state)) => {
            assert!(state.services.len() <= SERVICES.len());
            let mut names = state.services.iter().chain([&state.status]);
            assert!(names.all(|name| is_plain(name)));
        }
        Line::Load(_) | Line::FarEnd(None, _) | Line::End => {}
    }
}

fn is_plain(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

/// Where the returned file is kept; removed when dropped.
struct Kept(PathBuf);

impl Kept {
    fn new() -> Self {
        let name = format!("deckwatch-fuzz-far-{}", std::process::id());
        Self(Path::new(MEMORY).join(name))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0); // There may be none.
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn corpus_is_taken() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/far");
        let mut seeds = 0;
        for file in std::fs::read_dir(folder).expect("the committed corpus") {
            super::far_end(&std::fs::read(file.expect("a file").path()).expect("its octets"));
            seeds += 1;
        }
        assert!(seeds > 0);
    }
}
