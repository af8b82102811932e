//! Converts the kernel's stamps (CLOCK_REALTIME) to the clock of all records (CLOCK_MONOTONIC).
//!
//! A part reads both clocks again and again during a run, and records kernel stamps as they are. The join converts them
//! after the run. The offset of the two clocks changes only when CLOCK_REALTIME is set: such a step ends an *era*. A
//! stamp is converted by the offset of its own era. If a message was under way at a step, it is not known on which side
//! of the step its stamps were taken, so they are not converted.

use deckwatch_os::clock::ClockPair;
use serde::{Deserialize, Serialize};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::host_clock::FarHost;
use crate::limits::CLOCK_ERAS_MAX;

/// A time in which CLOCK_REALTIME was not set.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
#[repr(C)]
pub struct ClockEra {
    /// The first reading of both clocks, nanoseconds of CLOCK_MONOTONIC.
    pub from_ns: i64,
    /// The last reading.
    pub until_ns: i64,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC, by the narrowest of the readings.
    pub offset_ns: i64,
    /// Upper bound of the error of `offset_ns`.
    pub error_ns: u64,
}

impl ClockEra {
    const fn new(pair: &ClockPair) -> Self {
        Self {
            from_ns: pair.monotonic_ns,
            until_ns: pair.monotonic_ns,
            offset_ns: pair.offset_ns(),
            error_ns: pair.error_ns,
        }
    }

    /// Returns true if the clock was set between this era's readings and a later one.
    const fn is_ended_by(&self, pair: &ClockPair) -> bool {
        let step_ns = pair.offset_ns().saturating_sub(self.offset_ns);
        step_ns.unsigned_abs() > self.error_ns.saturating_add(pair.error_ns)
    }
}

/// Reads both clocks during a run.
#[derive(Clone, Debug)]
pub struct StampClock {
    eras: Vec<ClockEra>,
    latest: ClockPair,
}

impl StampClock {
    /// Reads both clocks for the first time.
    #[must_use]
    pub fn new() -> Self {
        Self::starting_with(ClockPair::read())
    }

    fn starting_with(pair: ClockPair) -> Self {
        let mut eras = Vec::with_capacity(CLOCK_ERAS_MAX);
        eras.push(ClockEra::new(&pair));
        Self { eras, latest: pair }
    }

    /// Reads both clocks again. Returns true if CLOCK_REALTIME was set since the last reading.
    pub fn renew(&mut self) -> bool {
        self.note(ClockPair::read())
    }

    /// Takes a reading. Beyond [`CLOCK_ERAS_MAX`] eras, readings are dropped, and stamps after the last era are not
    /// converted.
    fn note(&mut self, pair: ClockPair) -> bool {
        self.latest = pair;
        let room = self.eras.len() < CLOCK_ERAS_MAX;
        let Some(era) = self.eras.last_mut() else {
            return false;
        };
        if era.is_ended_by(&pair) {
            if room {
                self.eras.push(ClockEra::new(&pair));
            }
            return true;
        }
        era.until_ns = pair.monotonic_ns;
        if pair.error_ns < era.error_ns {
            era.offset_ns = pair.offset_ns();
            era.error_ns = pair.error_ns;
        }
        false
    }

    /// The last reading.
    #[must_use]
    pub const fn latest(&self) -> ClockPair {
        self.latest
    }

    /// The eras so far; at least one.
    #[must_use]
    pub fn eras(&self) -> &[ClockEra] {
        &self.eras
    }
}

impl Default for StampClock {
    fn default() -> Self {
        Self::new()
    }
}

/// The eras of one part, after the run.
#[derive(Clone, Debug, Default)]
pub struct Eras {
    eras: Vec<ClockEra>,
    /// The machine whose clocks they are, if it is another one.
    far: Option<FarHost>,
}

impl Eras {
    /// Takes the eras that a part recorded. The first and the last have no outer end: the part was not yet, or no
    /// longer, reading the clocks. But if there was no room for another era, the last ends with its last reading.
    #[must_use]
    pub fn new(recorded: &[ClockEra]) -> Self {
        let mut eras = recorded.to_vec();
        let has_room = eras.len() < CLOCK_ERAS_MAX;
        if let Some(first) = eras.first_mut() {
            first.from_ns = i64::MIN;
        }
        if let Some(last) = eras.last_mut().filter(|_| has_room) {
            last.until_ns = i64::MAX;
        }
        Self { eras, far: None }
    }

    /// Sets the machine whose clocks these are. Stamps are then converted to the clock of this one.
    #[must_use]
    pub fn of_host(self, far: Option<&FarHost>) -> Self {
        Self {
            far: far.cloned(),
            ..self
        }
    }

    /// Converts the stamp of a message that was under way in an interval of this machine's CLOCK_MONOTONIC. Returns
    /// `None` if the clock was, or may have been, set meanwhile.
    #[must_use]
    pub fn convert(&self, (from_ns, to_ns): (i64, i64), realtime_ns: i64) -> Option<i64> {
        let Some(far) = &self.far else {
            return self.around(from_ns, to_ns)?.to_monotonic(realtime_ns);
        };
        let era = self.around(far.clock.to_far(from_ns), far.clock.to_far(to_ns))?;
        far.to_near(era.to_monotonic(realtime_ns)?)
    }

    /// Returns the era that contains an interval of CLOCK_MONOTONIC. Returns `None` if the clock was, or may have been,
    /// set within it.
    #[must_use]
    pub fn around(&self, from_ns: i64, to_ns: i64) -> Option<ClockEra> {
        let holds = |era: &&ClockEra| era.from_ns <= from_ns && to_ns <= era.until_ns;
        self.eras.iter().find(holds).copied()
    }

    /// How many times the clock was set.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.eras.len().saturating_sub(1)
    }

    /// Upper bound of the error of each conversion.
    #[must_use]
    pub fn error_ns(&self) -> u64 {
        self.eras.iter().map(|era| era.error_ns).max().unwrap_or(0)
    }
}

impl ClockEra {
    /// Converts a stamp that was taken in this era. Returns `None` if it was not.
    #[must_use]
    pub fn to_monotonic(&self, realtime_ns: i64) -> Option<i64> {
        let ns = realtime_ns.saturating_sub(self.offset_ns);
        (self.from_ns..=self.until_ns).contains(&ns).then_some(ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFSET: i64 = 1_700_000_000_000_000_000;
    const STEP: i64 = 100_000_000;

    fn reading(monotonic_ns: i64, offset_ns: i64, error_ns: u64) -> ClockPair {
        ClockPair {
            realtime_ns: monotonic_ns + offset_ns,
            monotonic_ns,
            error_ns,
        }
    }

    /// Returns the eras of a clock that is read each second and set back by 100 ms between 2 and 3 s.
    fn set_back() -> Eras {
        let mut clock = StampClock::starting_with(reading(0, OFFSET, 90));
        let readings = [(1, 0), (2, 0), (3, STEP), (4, STEP)];
        let stepped = readings.map(|(second, back_ns)| {
            clock.note(reading(second * 1_000_000_000, OFFSET - back_ns, 80))
        });
        assert_eq!(stepped, [false, false, true, false]);
        Eras::new(clock.eras())
    }

    #[test]
    fn each_stamp_is_converted_by_the_readings_on_its_side_of_a_step() {
        let eras = set_back();
        assert_eq!((eras.steps(), eras.error_ns()), (1, 80));
        let convert = |from_ns, to_ns, realtime_ns| {
            eras.around(from_ns, to_ns)
                .and_then(|era| era.to_monotonic(realtime_ns))
        };
        let at = 1_500_000_000;
        assert_eq!(convert(at - 5, at + 5, at + OFFSET), Some(at));
        let at = 3_500_000_000;
        assert_eq!(convert(at - 5, at + 5, at + OFFSET - STEP), Some(at));
        // Before the first reading and after the last.
        assert_eq!(convert(-9, -1, OFFSET - 5), Some(-5));
        let at = 9_000_000_000;
        assert_eq!(convert(at, at + 9, at + OFFSET - STEP), Some(at));
    }

    #[test]
    fn a_stamp_of_a_message_that_was_under_way_at_a_step_is_not_converted() {
        let eras = set_back();
        assert_eq!(eras.around(1_999_999_999, 3_000_000_001), None);
        assert_eq!(eras.around(1_999_999_999, 2_000_000_001), None);
        assert_eq!(eras.around(2_500_000_000, 2_500_000_009), None);
        // A stamp of the other side of the step, which would be wrong by it.
        let after = eras.around(3_000_000_000, 3_000_000_009).expect("whole");
        assert_eq!(after.to_monotonic(1_999_999_999 + OFFSET), None);
        let before = eras.around(1_000_000_000, 2_000_000_000).expect("whole");
        assert_eq!(before.to_monotonic(2_000_000_001 + OFFSET), None);
    }

    #[test]
    fn a_narrower_reading_makes_the_conversion_more_exact_and_a_wider_one_does_not_matter() {
        let mut clock = StampClock::starting_with(reading(0, OFFSET, 90));
        assert!(!clock.note(reading(1, OFFSET + 60, 40)));
        assert!(!clock.note(reading(2, OFFSET - 900, 2_000)));
        let [era] = clock.eras() else {
            panic!("{clock:?}")
        };
        assert_eq!(
            (era.offset_ns, era.error_ns, era.until_ns),
            (OFFSET + 60, 40, 2)
        );
        assert_eq!(clock.latest().error_ns, 2_000);
    }

    #[test]
    fn a_clock_that_is_set_all_the_time_leaves_stamps_without_conversion_and_takes_no_more_memory()
    {
        let mut clock = StampClock::starting_with(reading(0, OFFSET, 1));
        let most = i64::try_from(CLOCK_ERAS_MAX).expect("small");
        for second in 1..=most + 3 {
            assert!(clock.note(reading(second, OFFSET + second * STEP, 1)));
        }
        let eras = Eras::new(clock.eras());
        assert_eq!(eras.steps(), CLOCK_ERAS_MAX - 1);
        assert!(eras.around(most - 1, most - 1).is_some());
        assert_eq!(eras.around(most, most + 1), None);
    }
}
