//! The clock of another machine, related to this one's by exchanges of four stamps.
//!
//! An exchange `t1` (here), `t2`, `t3` (there), `t4` (here) bounds how far the other clock is ahead: at least `t3 - t4`,
//! and at most `t2 - t1`. The middle of the two is wrong by half the round trip at most, whatever the two directions
//! take. Between exchanges the two clocks drift apart by at most [`CLOCK_DRIFT_MAX_PPM`]. Within a window of exchanges,
//! and between windows that one constant rate explains, they do not leave the line.

pub use deckwatch_meter::clock::Exchange;
use deckwatch_meter::clock::{Relation, Window};
use serde::{Deserialize, Serialize};

use crate::limits::{
    CLOCK_COMPARED_MAX, CLOCK_DRIFT_MAX_PPM, CLOCK_EXCHANGES_MAX, CLOCK_KNOTS_MAX,
    FAR_STAMP_MARGIN_NS,
};

/// A moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Knot {
    near_ns: i64,
    far_ns: i64,
    /// Upper bound of the error of their difference.
    error_ns: u64,
    /// The same, if the shortest times of both directions are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    assumed_ns: Option<u64>,
    /// The `near_ns` of the knot up to which the rate is constant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    joined_ns: Option<i64>,
}

/// The clock of another machine as the exchanges of a run show it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostClock {
    /// In order of time.
    knots: Vec<Knot>,
    /// Exchanges that contradict earlier ones: the other clock jumped.
    contradictions: u64,
}

impl HostClock {
    /// Takes an exchange. One whose stamps are impossible is counted as a contradiction. Exchanges must be taken in
    /// order of `t4_ns`, up to the differences between the threads that read them.
    pub fn note(&mut self, exchange: Exchange) {
        match Knot::of(exchange) {
            Some(knot) => self.take(&[knot], CLOCK_EXCHANGES_MAX),
            None => self.contradictions += 1,
        }
    }

    /// Takes a window of exchanges. Windows must be taken in order.
    pub fn note_window(&mut self, window: &Window) {
        let [from, until] = window.ends;
        let is_time = |ns: i64| ns.unsigned_abs() <= FAR_TIME_MAX_NS;
        let all = [from.far_ns, from.near_ns, until.far_ns, until.near_ns];
        if !all.into_iter().all(is_time) || from.near_ns >= until.near_ns {
            self.contradictions += 1;
            return;
        }
        let knot = |of: &Relation, joined_ns| Knot {
            near_ns: of.near_ns,
            far_ns: of.far_ns,
            error_ns: of.rigorous_ns,
            assumed_ns: of.assumed_ns,
            joined_ns,
        };
        let until_knot = knot(&until, None);
        let last = self.knots.last_mut().filter(|_| window.follows);
        let Some(last) = last.filter(|last| last.near_ns < until.near_ns) else {
            let from_knot = knot(&from, Some(until.near_ns));
            self.take(&[from_knot, until_knot], CLOCK_KNOTS_MAX);
            return;
        };
        // A pause between two windows whose clocks stay on one line does not widen the bound. Where answers were held up,
        // the later window begins before the end of the earlier one.
        if from.near_ns <= last.near_ns {
            last.joined_ns = Some(until.near_ns);
            self.take(&[until_knot], CLOCK_KNOTS_MAX);
        } else {
            last.joined_ns = Some(from.near_ns);
            let from_knot = knot(&from, Some(until.near_ns));
            self.take(&[from_knot, until_knot], CLOCK_KNOTS_MAX);
        }
    }

    fn take(&mut self, knots: &[Knot], most: usize) {
        let recent = self.knots.iter().rev().take(CLOCK_COMPARED_MAX);
        if recent
            .clone()
            .any(|known| !knots.iter().all(|knot| known.agrees(knot)))
        {
            self.contradictions += 1;
            return;
        }
        for &knot in knots {
            let before = |known: &Knot| known.near_ns <= knot.near_ns;
            let at = self.knots.partition_point(before);
            self.knots.insert(at, knot);
        }
        if self.knots.len() > most {
            self.thin_out();
        }
    }

    /// Keeps the narrower knot of each two neighbours.
    fn thin_out(&mut self) {
        let narrower = |pair: &[Knot]| pair.iter().min_by_key(|knot| knot.error_ns).copied();
        self.knots = self.knots.chunks(2).filter_map(narrower).collect();
    }

    /// Keeps the knots by which the clocks are converted: a knot that another one bounds better at its own time only
    /// adds noise.
    #[must_use]
    pub fn settled(&self) -> Self {
        let mut knots = unbounded_by_others(self.knots.iter());
        knots = unbounded_by_others(knots.iter().rev());
        knots.reverse();
        knots.dedup_by_key(|knot| knot.near_ns);
        knots.dedup_by_key(|knot| knot.far_ns);
        // A clock does not run backwards, so neither do the knots.
        knots.dedup_by(|later, earlier| later.far_ns <= earlier.far_ns);
        Self {
            knots,
            contradictions: self.contradictions,
        }
    }

    /// Returns the relation of a clock to itself.
    #[must_use]
    pub fn itself() -> Self {
        Self {
            knots: vec![Knot {
                near_ns: 0,
                far_ns: 0,
                error_ns: 0,
                assumed_ns: Some(0),
                joined_ns: None,
            }],
            contradictions: 0,
        }
    }

    /// Whether there is any exchange to convert by.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        !self.knots.is_empty()
    }

    /// Number of exchanges that contradict the others.
    #[must_use]
    pub const fn contradictions(&self) -> u64 {
        self.contradictions
    }

    /// Converts a time of the other machine to this one's.
    #[must_use]
    pub fn to_near(&self, far_ns: i64) -> i64 {
        convert(&self.knots, far_ns, |knot| (knot.far_ns, knot.near_ns))
    }

    /// Converts a time of this machine to the other one's.
    #[must_use]
    pub fn to_far(&self, near_ns: i64) -> i64 {
        convert(&self.knots, near_ns, |knot| (knot.near_ns, knot.far_ns))
    }

    /// Returns how far the other clock is ahead at a time of this machine.
    #[must_use]
    pub fn offset_ns(&self, near_ns: i64) -> i64 {
        self.to_far(near_ns).saturating_sub(near_ns)
    }

    /// Returns the upper bound of the error of a conversion between the first and the last exchange. `None` as for
    /// [`Self::error_ns`].
    #[must_use]
    pub fn known_error_ns(&self) -> Option<u64> {
        let (first, last) = (self.knots.first()?, self.knots.last()?);
        self.error_ns(first.near_ns, last.near_ns)
    }

    /// Returns the upper bound of the error of a conversion between two times of this machine. `None` if nothing bounds
    /// it: there is no exchange, or the other clock jumped.
    #[must_use]
    pub fn error_ns(&self, from_ns: i64, to_ns: i64) -> Option<u64> {
        let (first, last) = (self.knots.first()?, self.knots.last()?);
        if self.contradictions > 0 {
            return None;
        }
        // Between two knots the error is at most the larger of theirs, and what the clocks drift in half the time.
        let between = self.knots_around(from_ns, to_ns).windows(2).map(|pair| {
            let larger_ns = pair[0].error_ns.max(pair[1].error_ns);
            larger_ns.saturating_add(pair[0].drift_to(&pair[1]))
        });
        let beyond = [
            first.error_at(from_ns.min(first.near_ns)),
            last.error_at(to_ns.max(last.near_ns)),
        ];
        between.chain(beyond).max()
    }

    /// As [`Self::error_ns`], if the shortest times of both directions are equal, and the rates constant from window to
    /// window. `None` if that was not estimated.
    #[must_use]
    pub fn assumed_ns(&self, from_ns: i64, to_ns: i64) -> Option<u64> {
        self.error_ns(from_ns, to_ns)?;
        let knots = self.knots_around(from_ns, to_ns);
        let (first, last) = (knots.first()?, knots.last()?);
        let mut all = knots.iter().map(|knot| knot.assumed_ns);
        let largest_ns = all.try_fold(0, |largest: u64, ns| Some(largest.max(ns?)))?;
        let before_ns = first.near_ns.saturating_sub(from_ns);
        let beyond_ns = before_ns.max(to_ns.saturating_sub(last.near_ns));
        let drift_ns = drift_ns(u64::try_from(beyond_ns).unwrap_or(0));
        Some(largest_ns.saturating_add(drift_ns))
    }

    /// Returns the knots by which times between these two are converted.
    fn knots_around(&self, from_ns: i64, to_ns: i64) -> &[Knot] {
        let before = |ns: i64| self.knots.partition_point(|knot| knot.near_ns <= ns);
        let from = before(from_ns).saturating_sub(1);
        let to = (before(to_ns) + 1).min(self.knots.len());
        &self.knots[from.min(to)..to]
    }
}

impl Knot {
    fn of(exchange: Exchange) -> Option<Self> {
        let under_way_ns = exchange.under_way_ns()?;
        Some(Self {
            near_ns: exchange.t1_ns + (exchange.t4_ns - exchange.t1_ns) / 2,
            far_ns: exchange.t2_ns + (exchange.t3_ns - exchange.t2_ns) / 2,
            error_ns: under_way_ns.div_ceil(2) + 1,
            assumed_ns: None,
            joined_ns: None,
        })
    }

    /// Returns by how much the clocks can drift from the line between this knot and the next one.
    fn drift_to(&self, next: &Self) -> u64 {
        if self.joined_ns == Some(next.near_ns) {
            return 0;
        }
        drift_ns(next.near_ns.abs_diff(self.near_ns) / 2)
    }

    /// Upper bound of the error when this knot alone is used at another time.
    fn error_at(&self, near_ns: i64) -> u64 {
        self.error_ns
            .saturating_add(drift_ns(near_ns.abs_diff(self.near_ns)))
    }

    fn agrees(&self, other: &Self) -> bool {
        let ahead = |knot: &Self| i128::from(knot.far_ns) - i128::from(knot.near_ns);
        let apart = (ahead(self) - ahead(other)).unsigned_abs();
        let passed = self.near_ns.abs_diff(other.near_ns);
        apart
            <= u128::from(self.error_ns) + u128::from(other.error_ns) + u128::from(drift_ns(passed))
    }
}

/// Returns the knots that no earlier one of the same order bounds better at their own time.
fn unbounded_by_others<'k>(knots: impl Iterator<Item = &'k Knot>) -> Vec<Knot> {
    let mut kept: Vec<Knot> = Vec::new();
    for knot in knots {
        // Of all that were kept, the last one bounds best here.
        let is_bounded = |last: &Knot| last.error_at(knot.near_ns) < knot.error_ns;
        if !kept.last().is_some_and(is_bounded) {
            kept.push(*knot);
        }
    }
    kept
}

/// Converts by the line through the two knots around a time; beyond the first and the last, by the nearest knot alone.
fn convert(knots: &[Knot], ns: i64, axes: impl Fn(&Knot) -> (i64, i64)) -> i64 {
    let after = knots.partition_point(|knot| axes(knot).0 <= ns);
    let knot = |index: Option<usize>| index.and_then(|index| knots.get(index)).map(&axes);
    match (knot(after.checked_sub(1)), knot(Some(after))) {
        (Some((from, to)), Some((from_next, to_next))) => {
            let (run, rise) = (
                i128::from(from_next) - i128::from(from),
                i128::from(to_next) - i128::from(to),
            );
            let along = i128::from(ns) - i128::from(from);
            clamp(i128::from(to) + along * rise / run.max(1))
        }
        (Some((from, to)), None) | (None, Some((from, to))) => {
            clamp(i128::from(ns) - i128::from(from) + i128::from(to))
        }
        (None, None) => ns,
    }
}

fn clamp(ns: i128) -> i64 {
    i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
}

const fn drift_ns(passed_ns: u64) -> u64 {
    passed_ns / 1_000_000 * CLOCK_DRIFT_MAX_PPM + CLOCK_DRIFT_MAX_PPM
}

/// The parts of a run on another machine: their clock, and when they started on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FarHost {
    /// Its clock, related to that of the reference.
    pub clock: HostClock,
    /// Nanoseconds to add to a time of the reference for this machine's clock; 0 if this machine is the reference.
    #[serde(default)]
    pub reference_ns: i64,
    /// The start of the schedule that its parts were given, on its own clock.
    pub start_ns: i64,
    /// The start of the schedule, on this machine's clock.
    pub near_start_ns: i64,
    /// When all parts had ended, on this machine's clock.
    pub until_ns: i64,
}

impl FarHost {
    /// Converts a time of its clock. Returns `None` for a time at which the run did not run: a stamp from the future
    /// is no stamp.
    #[must_use]
    pub fn to_near(&self, far_ns: i64) -> Option<i64> {
        let near_ns = self.convert(far_ns);
        let from_ns = self.near_start_ns.saturating_sub(FAR_STAMP_MARGIN_NS);
        let until_ns = self.until_ns.saturating_add(FAR_STAMP_MARGIN_NS);
        (from_ns..=until_ns).contains(&near_ns).then_some(near_ns)
    }

    /// Returns when a message is due that is due at `due_ns` of the schedule: its supplier counts from its own start
    /// on its own clock.
    #[must_use]
    pub fn due_ns(&self, due_ns: i64) -> i64 {
        let since_ns = due_ns.saturating_sub(self.near_start_ns);
        self.convert(self.start_ns.saturating_add(since_ns))
    }

    fn convert(&self, far_ns: i64) -> i64 {
        self.clock.to_near(far_ns).saturating_add(self.reference_ns)
    }
}

/// Times beyond this, in nanoseconds, are no times since a start: 146 years.
const FAR_TIME_MAX_NS: u64 = 1 << 62;

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    /// An exchange with a clock that is `offset_ns` ahead at 0 and gains `ppm`.
    fn exchange(at_ns: i64, out_ns: i64, back_ns: i64, offset_ns: i64, ppm: i64) -> Exchange {
        let far = |near_ns: i64| near_ns + offset_ns + near_ns / 1_000_000 * ppm;
        Exchange {
            t1_ns: at_ns,
            t2_ns: far(at_ns + out_ns),
            t3_ns: far(at_ns + out_ns + 5_000),
            t4_ns: at_ns + out_ns + 5_000 + back_ns,
        }
    }

    #[test]
    fn a_known_offset_and_skew_are_found_within_the_bound_whatever_the_asymmetry() {
        let (offset_ns, ppm) = (123 * S, 40);
        let mut clock = HostClock::default();
        for second in 0..20 {
            let (out_ns, back_ns) = if second % 3 == 0 {
                (20_000, 90_000)
            } else {
                (400_000, 30_000)
            };
            clock.note(exchange(second * S, out_ns, back_ns, offset_ns, ppm));
        }
        assert_eq!(clock.contradictions(), 0);
        let clock = clock.settled();
        let bound = clock.error_ns(0, 20 * S).expect("known");
        assert!((55_000..500_000).contains(&bound), "{bound}");
        for tenth in 0..200 {
            let near_ns = tenth * S / 10;
            let far_ns = near_ns + offset_ns + near_ns / 1_000_000 * ppm;
            let error = clock.to_near(far_ns).abs_diff(near_ns);
            assert!(
                error <= bound,
                "{error} at {near_ns}, and the bound is {bound}"
            );
            assert!(clock.to_far(clock.to_near(far_ns)).abs_diff(far_ns) <= 2);
        }
    }

    #[test]
    fn the_bound_is_half_of_the_smallest_round_trip() {
        let mut clock = HostClock::default();
        clock.note(exchange(0, 300_000, 100_000, S, 0));
        clock.note(exchange(1_000_000, 10_000, 30_000, S, 0));
        let bound = clock
            .settled()
            .error_ns(1_000_000, 1_000_000)
            .expect("known");
        assert!((20_000..21_000).contains(&bound), "{bound}");
        // The two directions differ by 20 us, so the middle is wrong by 10.
        assert_eq!(clock.settled().to_near(S), 10_000);
    }

    #[test]
    fn a_clock_that_jumps_has_no_bound_and_impossible_stamps_convert_nothing() {
        let mut clock = HostClock::default();
        clock.note(exchange(0, 10_000, 10_000, S, 0));
        clock.note(exchange(S, 10_000, 10_000, 2 * S, 0));
        assert_eq!((clock.contradictions(), clock.error_ns(0, S)), (1, None));
        let mut hostile = HostClock::default();
        for (t2_ns, t3_ns) in [
            (i64::MAX, i64::MIN),
            (i64::MIN, i64::MAX),
            (5, 4),
            (0, i64::MAX),
        ] {
            hostile.note(Exchange {
                t1_ns: 0,
                t2_ns,
                t3_ns,
                t4_ns: 1000,
            });
        }
        assert_eq!((hostile.contradictions(), hostile.is_known()), (4, false));
        assert_eq!(hostile.settled().error_ns(0, S), None);
    }

    #[test]
    fn a_stamp_outside_of_the_run_is_no_stamp() {
        let mut clock = HostClock::default();
        clock.note(exchange(0, 10_000, 10_000, 500 * S, 0));
        let mut far = FarHost {
            clock,
            reference_ns: 0,
            start_ns: 501 * S,
            near_start_ns: S,
            until_ns: 9 * S,
        };
        assert_eq!(far.to_near(505 * S), Some(5 * S));
        for ns in [i64::MIN, -9000 * S, 9000 * S, i64::MAX] {
            assert_eq!(far.to_near(ns), None, "{ns}");
        }
        assert_eq!(far.due_ns(3 * S), 3 * S);
        // The clock is related to that of a third machine, which is 50 s behind.
        (far.reference_ns, far.near_start_ns, far.until_ns) = (50 * S, 51 * S, 59 * S);
        assert_eq!(far.to_near(505 * S), Some(55 * S));
        assert_eq!(far.due_ns(53 * S), 53 * S);
    }

    /// A window of 300 ms whose far clock is `offset_ns` ahead and gains `ppm`.
    fn window(at_ns: i64, offset_ns: i64, ppm: i64) -> Window {
        let relation = |near_ns: i64| Relation {
            near_ns,
            far_ns: near_ns + offset_ns + near_ns / 1_000_000 * ppm,
            rigorous_ns: 5_000,
            assumed_ns: Some(300),
        };
        Window {
            relation: relation(at_ns + 150_000_000),
            ends: [relation(at_ns), relation(at_ns + 300_000_000)],
            skew_ppm: (0.0, 0.0, 0.0),
            round_trip_ns: 10_000,
            exchanges: 128,
            follows: false,
        }
    }

    #[test]
    fn a_pause_between_windows_that_one_rate_explains_does_not_widen_the_bound() {
        for (follows, most_ns) in [(true, 5_200), (false, 46_000)] {
            let mut clock = HostClock::default();
            for index in 0..20_i64 {
                // A pause of 400 ms, in which free clocks may leave the line by 40 us.
                let window = window(index * 700_000_000, S, 40);
                clock.note_window(&Window { follows, ..window });
            }
            let error_ns = clock.error_ns(0, 19 * 700_000_000).expect("known");
            assert!(error_ns <= most_ns, "{follows}: {error_ns}");
            assert_eq!(follows, error_ns == 5_200, "{error_ns}");
            let near_ns = 6 * S + 650_000_000;
            let far_ns = near_ns + S + near_ns / 1_000_000 * 40;
            assert!(clock.to_near(far_ns).abs_diff(near_ns) <= 2);
        }
    }

    #[test]
    fn windows_that_overlap_bound_the_clock_as_others_do_unless_the_rate_changed_between_them() {
        for (follows, is_narrow) in [(true, true), (false, false)] {
            let mut clock = HostClock::default();
            for index in 0..20_i64 {
                // An answer that was held up belongs to the earlier window, and ends it late.
                let window = window(index * 299_000_000, S, 40);
                clock.note_window(&Window { follows, ..window });
            }
            let last_ns = 19 * 299_000_000;
            let error_ns = clock.error_ns(0, last_ns).expect("known");
            assert_eq!(error_ns == 5_200, is_narrow, "{error_ns}");
            assert_eq!(clock.contradictions(), 0);
            let near_ns = 4 * 299_000_000 + 500_000;
            let far_ns = near_ns + S + near_ns / 1_000_000 * 40;
            assert!(clock.to_near(far_ns).abs_diff(near_ns) <= 50);
        }
    }

    #[test]
    fn windows_bound_the_clock_by_themselves_and_not_by_what_clocks_may_drift_within_them() {
        let mut clock = HostClock::default();
        for index in 0..30_000_i64 {
            // Between two windows 2 ms pass, in which the clocks may drift by 200 ns from the line.
            clock.note_window(&window(index * 302_000_000, S, 40));
        }
        let bounds = |clock: &HostClock, from_ns, to_ns| {
            (
                clock.error_ns(from_ns, to_ns),
                clock.assumed_ns(from_ns, to_ns),
            )
        };
        let whole_ns = 30_000 * 302_000_000 - 2_000_000;
        let (error_ns, assumed_ns) = bounds(&clock, 0, whole_ns);
        assert!(
            (5_200..5_600).contains(&error_ns.expect("known")),
            "{error_ns:?}"
        );
        assert!(assumed_ns == Some(500), "{assumed_ns:?}");
        let near_ns = 4_567 * S;
        let far_ns = near_ns + S + near_ns / 1_000_000 * 40;
        assert!(clock.to_near(far_ns).abs_diff(near_ns) <= 2);
        // A second after the last one they may have drifted by 200 us.
        let (error_ns, assumed_ns) = bounds(&clock, 0, whole_ns + S);
        assert!(error_ns > Some(200_000) && assumed_ns > Some(200_000));
        assert_eq!(clock.contradictions(), 0);
        clock.note_window(&window(whole_ns + 2_000_000, 2 * S, 40));
        assert_eq!((clock.contradictions(), clock.assumed_ns(0, S)), (1, None));
    }

    #[test]
    fn windows_that_lie_or_never_end_take_no_more_memory() {
        let mut clock = HostClock::default();
        for index in 0..CLOCK_KNOTS_MAX as i64 {
            clock.note_window(&window(index * 302_000_000, S, 0));
        }
        assert!(clock.knots.len() <= CLOCK_KNOTS_MAX);
        assert_eq!(clock.contradictions(), 0);
        // Where knots were dropped, nothing is claimed of the rate between the rest.
        let error_ns = clock.error_ns(0, 100 * S).expect("known");
        assert!(error_ns > 30_000, "{error_ns}");
        let mut hostile = HostClock::default();
        for (near_ns, far_ns) in [(0, i64::MAX), (i64::MIN, 0), (5, i64::MIN), (-1, S)] {
            let mut lie = window(0, S, 0);
            (lie.ends[1].near_ns, lie.ends[1].far_ns) = (near_ns, far_ns);
            hostile.note_window(&lie);
        }
        assert_eq!((hostile.contradictions(), hostile.is_known()), (4, false));
    }

    #[test]
    fn more_exchanges_than_are_kept_lose_the_wider_ones() {
        let mut clock = HostClock::default();
        for index in 0..CLOCK_EXCHANGES_MAX as i64 + 10 {
            let out_ns = if index == 7 { 1_000 } else { 50_000 };
            clock.note(exchange(index * 1_000_000, out_ns, 1_000, 0, 0));
        }
        assert!(clock.knots.len() <= CLOCK_EXCHANGES_MAX);
        assert!(clock.knots.iter().any(|knot| knot.error_ns < 1_100));
    }
}
