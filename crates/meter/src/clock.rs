//! The relation of two clocks from exchanges of four stamps, as arithmetic alone.
//!
//! An exchange leaves here at `t1`, arrives there at `t2`, leaves there at `t3` and arrives here at `t4`. Let `D(f)` be
//! this clock less the other one at the other clock's time `f`. Nothing arrives before it was sent, so
//! `t1 - t2 <= D(t2)` and `D(t3) <= t4 - t3`, whatever the two directions take. While the other clock gains at a constant
//! rate, `D` is a line between the upper convex hull of the first and the lower convex hull of the second (Zhang, Liu and
//! Xia, INFOCOM 2002). All such lines together are a *corridor*: its ends at a time are a rigorous bound.
//!
//! A narrower bound needs an assumption: the smallest delays of the two directions are equal. How far the smallest delay
//! seen is above the smallest possible is estimated from the next larger ones.

mod corridor;
mod sync;
mod tracker;

use serde::{Deserialize, Serialize};

pub use corridor::Corridor;
pub use sync::{SERVICES, SyncState};
pub use tracker::{Tracker, Window};

/// The four stamps of one exchange, nanoseconds of the clock of the machine that took them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// The question left here.
    pub t1_ns: i64,
    /// The question arrived there.
    pub t2_ns: i64,
    /// The answer left there.
    pub t3_ns: i64,
    /// The answer arrived here.
    pub t4_ns: i64,
}

impl Exchange {
    /// Returns the time under way in both directions together. Returns `None` for stamps that no two clocks can show.
    #[must_use]
    pub fn under_way_ns(&self) -> Option<u64> {
        let round_trip_ns = self.t4_ns.checked_sub(self.t1_ns)?;
        let there_ns = self.t3_ns.checked_sub(self.t2_ns)?;
        let near = [self.t1_ns, self.t2_ns, self.t3_ns, self.t4_ns];
        let is_time = |ns: &i64| ns.unsigned_abs() <= TIME_MAX_NS;
        if there_ns < 0 || !near.iter().all(is_time) {
            return None;
        }
        u64::try_from(round_trip_ns.checked_sub(there_ns)?).ok()
    }
}

/// The relation of two clocks at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Relation {
    /// A time of the other clock, nanoseconds.
    pub far_ns: i64,
    /// This clock at that time.
    pub near_ns: i64,
    /// Upper bound of the error of `near_ns`, whatever the delays.
    pub rigorous_ns: u64,
    /// Upper bound of the error at 95% confidence, if the smallest delays of both directions are equal. `None` with too
    /// few exchanges.
    pub assumed_ns: Option<u64>,
}

/// Relates the clocks at the first, the middle and the last moment of a window of exchanges, with the skew of a longer
/// span around it. Returns `None` for no exchanges.
#[must_use]
pub fn relate(window: &[Exchange], span: &Corridor) -> Option<[Relation; 3]> {
    let (least, slope, most) = span.skews();
    let (first, last) = (window.first()?, window.last()?);
    let middle_ns = first.t2_ns + (last.t3_ns - first.t2_ns) / 2;
    let base = first.t1_ns - first.t2_ns;
    let along =
        |at_ns: i64, ahead_ns: i64| (ahead_ns - base) as f64 + slope * (middle_ns - at_ns) as f64;
    let back = sorted(window, |of| along(of.t3_ns, of.t4_ns - of.t3_ns));
    let out = sorted(window, |of| -along(of.t2_ns, of.t1_ns - of.t2_ns));
    let assumed = beyond(&back)
        .zip(beyond(&out))
        .map(|(back, out)| back.max(out) / 2.0);
    let ahead_in_middle = (back[0] - out[0]) / 2.0;
    let at = |far_ns: i64| {
        let since = (far_ns - middle_ns) as f64;
        let (low, high) = span.limits(far_ns);
        // What the assumption says and the corridor excludes is false.
        let (low, high) = (low - base as f64, high - base as f64);
        let ahead = (ahead_in_middle + slope * since).max(low).min(high);
        let rigorous = (high - ahead).max(ahead - low).max(0.0);
        let turned = since.abs() * (most - slope).max(slope - least);
        Relation {
            far_ns,
            near_ns: far_ns + base + ahead.round() as i64,
            rigorous_ns: up(rigorous),
            assumed_ns: assumed.map(|ns| up(ns + turned).min(up(rigorous))),
        }
    };
    Some([first.t2_ns, middle_ns, last.t3_ns].map(at))
}

fn sorted(window: &[Exchange], delay: impl Fn(&Exchange) -> f64) -> Vec<f64> {
    let mut all: Vec<f64> = window.iter().map(delay).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// Rounds up, and adds what rounding the stamps took.
fn up(ns: f64) -> u64 {
    ns.ceil() as u64 + 1
}

/// Returns how far the smallest value may be above the smallest possible one, at 97.5% confidence.
///
/// The delays next to the smallest possible one arrive as a Poisson process. With `k` more of them, the ratio of the
/// first gap to the mean of the next `k` has the distribution F(2, 2k).
fn beyond(sorted: &[f64]) -> Option<f64> {
    let next = sorted.get(NEXT)? - sorted[0];
    Some(next * (0.025_f64.powf(-1.0 / NEXT as f64) - 1.0))
}

/// Delays after the smallest one that tell how far it is above the smallest possible.
const NEXT: usize = 8;

/// Times beyond this, in nanoseconds, are no times since a start: 36 years. Differences of them do not overflow, and 64
/// bits of floating point resolve the differences that matter.
const TIME_MAX_NS: u64 = 1 << 60;

#[cfg(test)]
mod tests;
