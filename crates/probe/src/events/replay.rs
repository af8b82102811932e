//! The schedule of a replay: the gaps of the recording, at any speed, once or again and again.

use std::path::Path;
use std::time::Duration;

use super::Event;
use super::recording::{Recording, RecordingError, Survey, survey};
use super::selection::Selection;
use crate::limits::LONE_EVENT_PERIOD;

/// Events of a recording with their due times.
#[derive(Debug)]
pub struct Replay {
    recording: Recording,
    wanted: Selection,
    rounds: Rounds,
    round: u64,
    /// Whether this round had an event.
    has_events: bool,
}

/// How a recording is replayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// How many times as fast as recorded; 0 for as fast as the channel takes the events.
    pub speed: f64,
    /// Whether it begins again at its end.
    pub is_looped: bool,
}

/// The due times of all rounds.
#[derive(Clone, Copy, Debug)]
struct Rounds {
    pace: Pace,
    /// Time from the start of the recording to its first event.
    first: Duration,
    /// Time from the first event of a round to that of the next.
    period: Duration,
}

/// An event that is sent.
#[derive(Clone, Debug)]
pub struct Due {
    /// Time from the start of the replay; `None` at speed 0.
    pub after: Option<Duration>,
    /// The event.
    pub event: Event,
}

impl Replay {
    /// Opens a recording, and checks all of it.
    ///
    /// # Errors
    /// [`RecordingError`]; a torn end and a damaged event are none: the events before them are replayed.
    pub fn open(
        path: &Path,
        wanted: Selection,
        pace: Pace,
    ) -> Result<(Self, Survey), RecordingError> {
        let survey = survey(path, &wanted)?;
        let replay = Self {
            recording: Recording::open(path)?,
            wanted,
            rounds: Rounds::new(&survey, pace),
            round: 0,
            has_events: false,
        };
        Ok((replay, survey))
    }

    /// Returns the next event and its due time, or `None` at the end of the whole records.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn read(&mut self) -> Result<Option<Due>, RecordingError> {
        loop {
            match self.recording.read_whole()? {
                Some(recorded) if self.wanted.wants(&recorded.event) => {
                    self.has_events = true;
                    return Ok(Some(Due {
                        after: self.rounds.due(self.round, recorded.after),
                        event: recorded.event,
                    }));
                }
                Some(_) => {}
                None if self.rounds.pace.is_looped && self.has_events => {
                    self.recording.rewind()?;
                    self.round += 1;
                    self.has_events = false;
                }
                None => return Ok(None),
            }
        }
    }
}

impl Rounds {
    /// A round is followed by the mean gap of the recording.
    fn new(survey: &Survey, pace: Pace) -> Self {
        let (first, last) = survey.span.unwrap_or_default();
        let span = last.saturating_sub(first);
        let gaps = survey.events.saturating_sub(1);
        let gap = if gaps == 0 {
            LONE_EVENT_PERIOD
        } else {
            Duration::try_from_secs_f64(span.as_secs_f64() / gaps as f64).unwrap_or(Duration::MAX)
        };
        Self {
            pace,
            first,
            period: span.saturating_add(gap),
        }
    }

    fn due(&self, round: u64, after: Duration) -> Option<Duration> {
        if self.pace.speed == 0.0 {
            return None;
        }
        let in_round_ns = after.saturating_sub(self.first).as_nanos();
        let since_ns = self.period.as_nanos().saturating_mul(u128::from(round)) + in_round_ns;
        let due_ns = if self.pace.speed == 1.0 {
            since_ns
        } else {
            (since_ns as f64 / self.pace.speed).round() as u128
        };
        Some(Duration::from_nanos(
            u64::try_from(due_ns).unwrap_or(u64::MAX),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::recording::{Head, Recorder};
    use crate::events::selection::TypeTerm;
    use crate::events::{Moment, Received};
    use deckwatch_cdr::Any;

    const AFTER_NS: [u64; 4] = [500, 1_500, 1_600, 4_001];

    fn dues(pace: Pace, wanted: Selection, count: usize) -> Vec<Option<u64>> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events");
        let mut recorder = Recorder::create(&path, &Head::default(), 0).expect("a new file");
        for (number, after_ns) in AFTER_NS.into_iter().enumerate() {
            let data = if number == 1 {
                Any::from_value(&true)
            } else {
                Any::from_value(&7_u32)
            };
            let event = Event::of(data.expect("an event"));
            let at = Moment {
                monotonic_ns: i64::try_from(after_ns).expect("small"),
                ..Moment::now()
            };
            recorder.add(&Received { event, at }).expect("written");
        }
        drop(recorder);
        let (mut replay, _) = Replay::open(&path, wanted, pace).expect("a recording");
        let mut dues = Vec::new();
        while dues.len() < count
            && let Some(due) = replay.read().expect("whole records")
        {
            let ns = |after: Duration| u64::try_from(after.as_nanos()).expect("small");
            dues.push(due.after.map(ns));
        }
        dues
    }

    fn pace(speed: f64, is_looped: bool) -> Pace {
        Pace { speed, is_looped }
    }

    #[test]
    fn gaps_are_those_of_the_recorded_stamps_at_any_speed() {
        let all = Selection::default;
        let recorded = [0, 1_000, 1_100, 3_501].map(Some);
        assert_eq!(dues(pace(1.0, false), all(), 9), recorded);
        assert_eq!(
            dues(pace(2.0, false), all(), 9),
            [0, 500, 550, 1_751].map(Some)
        );
        assert_eq!(
            dues(pace(0.5, false), all(), 9),
            [0, 2_000, 2_200, 7_002].map(Some)
        );
        assert_eq!(dues(pace(0.0, false), all(), 9), [None; 4]);
    }

    #[test]
    fn rounds_follow_one_another_after_the_mean_gap() {
        let looped = dues(pace(1.0, true), Selection::default(), 6);
        let again = 3_501 + 3_501 / 3;
        assert_eq!(
            looped,
            [0, 1_000, 1_100, 3_501, again, again + 1_000].map(Some)
        );
    }

    #[test]
    fn events_that_are_not_wanted_leave_their_time() {
        let wanted = Selection {
            types: vec![TypeTerm::Name("unsigned long".to_owned())],
            ..Selection::default()
        };
        assert_eq!(
            dues(pace(1.0, false), wanted, 9),
            [0, 1_100, 3_501].map(Some)
        );
        let none = Selection {
            types: vec![TypeTerm::Name("string".to_owned())],
            ..Selection::default()
        };
        assert_eq!(
            dues(pace(1.0, true), none, 9),
            [],
            "a loop over nothing ends"
        );
    }
}
