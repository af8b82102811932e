//! The clock of another machine, related to this one's by exchanges of four stamps.
//!
//! An exchange `t1` (here), `t2`, `t3` (there), `t4` (here) bounds how far the other clock is ahead: at least `t3 - t4`,
//! and at most `t2 - t1`. The middle of the two is wrong by half the round trip at most, whatever the two directions
//! take. Between exchanges the two clocks drift apart by at most [`CLOCK_DRIFT_MAX_PPM`].

pub use deckwatch_meter::clock::Exchange;
use serde::{Deserialize, Serialize};

use crate::limits::{CLOCK_DRIFT_MAX_PPM, CLOCK_EXCHANGES_MAX, FAR_STAMP_MARGIN_NS};

/// A moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Knot {
    near_ns: i64,
    far_ns: i64,
    /// Upper bound of the error of their difference.
    error_ns: u64,
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
        let Some(knot) = Knot::of(exchange) else {
            self.contradictions += 1;
            return;
        };
        if self.knots.iter().any(|known| !known.agrees(&knot)) {
            self.contradictions += 1;
            return;
        }
        let at = self
            .knots
            .partition_point(|known| known.near_ns <= knot.near_ns);
        self.knots.insert(at, knot);
        if self.knots.len() > CLOCK_EXCHANGES_MAX {
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
        let best = |knot: &&Knot| {
            let better = |other: &Knot| other.error_at(knot.near_ns) < knot.error_ns;
            !self.knots.iter().any(better)
        };
        let mut knots: Vec<Knot> = self.knots.iter().filter(best).copied().collect();
        knots.dedup_by_key(|knot| knot.near_ns);
        knots.dedup_by_key(|knot| knot.far_ns);
        // A clock does not run backwards, so neither do the knots.
        knots.dedup_by(|later, earlier| later.far_ns <= earlier.far_ns);
        Self {
            knots,
            contradictions: self.contradictions,
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
        let between = self.knots.windows(2).map(|pair| {
            let half_ns = pair[1].near_ns.abs_diff(pair[0].near_ns) / 2;
            pair[0].error_ns.max(pair[1].error_ns) + drift_ns(half_ns)
        });
        let ends = [(from_ns, first), (to_ns, last)];
        let beyond = ends.map(|(ns, knot)| knot.error_at(ns));
        between.chain(beyond).max()
    }
}

impl Knot {
    fn of(exchange: Exchange) -> Option<Self> {
        let under_way_ns = exchange.under_way_ns()?;
        Some(Self {
            near_ns: exchange.t1_ns + (exchange.t4_ns - exchange.t1_ns) / 2,
            far_ns: exchange.t2_ns + (exchange.t3_ns - exchange.t2_ns) / 2,
            error_ns: under_way_ns.div_ceil(2) + 1,
        })
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
    /// Its clock.
    pub clock: HostClock,
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
        let near_ns = self.clock.to_near(far_ns);
        let from_ns = self.near_start_ns.saturating_sub(FAR_STAMP_MARGIN_NS);
        let until_ns = self.until_ns.saturating_add(FAR_STAMP_MARGIN_NS);
        (from_ns..=until_ns).contains(&near_ns).then_some(near_ns)
    }

    /// Returns when a message is due that is due at `due_ns` of the schedule: its supplier counts from its own start
    /// on its own clock.
    #[must_use]
    pub fn due_ns(&self, due_ns: i64) -> i64 {
        let since_ns = due_ns.saturating_sub(self.near_start_ns);
        self.clock.to_near(self.start_ns.saturating_add(since_ns))
    }
}

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
        let far = FarHost {
            clock,
            start_ns: 501 * S,
            near_start_ns: S,
            until_ns: 9 * S,
        };
        assert_eq!(far.to_near(505 * S), Some(5 * S));
        for ns in [i64::MIN, -9000 * S, 9000 * S, i64::MAX] {
            assert_eq!(far.to_near(ns), None, "{ns}");
        }
        assert_eq!(far.due_ns(3 * S), 3 * S);
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
