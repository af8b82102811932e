//! All lines between two convex hulls.

use super::Exchange;

/// All lines that no exchange of a span contradicts.
#[derive(Clone, Debug)]
pub struct Corridor {
    far_ns: i64,
    ahead_ns: i64,
    /// Lower hull of the upper limits.
    ceiling: Vec<Spot>,
    /// Upper hull of the lower limits.
    floor: Vec<Spot>,
    slopes: (f64, f64),
    widest: f64,
}

type Spot = (f64, f64);

impl Corridor {
    /// Returns `None` if there is no line: there is no exchange, or the rate of a clock changed.
    #[must_use]
    pub fn of(exchanges: &[Exchange]) -> Option<Self> {
        let first = exchanges.first()?;
        let (far_ns, ahead_ns) = (first.t2_ns, first.t1_ns - first.t2_ns);
        let spot = |far: i64, ahead: i64| ((far - far_ns) as f64, (ahead - ahead_ns) as f64);
        let upper = exchanges
            .iter()
            .map(|of| spot(of.t3_ns, of.t4_ns - of.t3_ns));
        let lower = exchanges
            .iter()
            .map(|of| spot(of.t2_ns, of.t1_ns - of.t2_ns));
        let mut found = Self {
            far_ns,
            ahead_ns,
            ceiling: lower_hull(upper.collect()),
            floor: lower_hull(lower.map(|(x, y)| (x, -y)).collect())
                .into_iter()
                .map(|(x, y)| (x, -y))
                .collect(),
            slopes: (0.0, 0.0),
            widest: 0.0,
        };
        let width = |slope| found.highest(slope, 0.0) - found.lowest(slope, 0.0);
        let widest = summit(width, -SLOPE_MAX, SLOPE_MAX);
        if width(widest) < 0.0 {
            return None;
        }
        let slopes = (
            edge(width, widest, -SLOPE_MAX),
            edge(width, widest, SLOPE_MAX),
        );
        (found.slopes, found.widest) = (slopes, widest);
        Some(found)
    }

    /// The rates at which this clock may gain on the other one: the smallest, the most likely and the largest.
    #[must_use]
    pub const fn skews(&self) -> (f64, f64, f64) {
        (self.slopes.0, self.widest, self.slopes.1)
    }

    /// Returns the limits of this clock less the other one at a time of the other one.
    #[must_use]
    pub fn limits(&self, far_ns: i64) -> (f64, f64) {
        let x = (far_ns - self.far_ns) as f64;
        let (from, to) = self.slopes;
        let highest = |slope| self.highest(slope, x);
        let lowest = |slope| -self.lowest(slope, x);
        (
            self.ahead_ns as f64 - lowest(summit(lowest, from, to)),
            self.ahead_ns as f64 + highest(summit(highest, from, to)),
        )
    }

    fn highest(&self, slope: f64, x: f64) -> f64 {
        let at = |(x0, y): &Spot| y + slope * (x - x0);
        self.ceiling.iter().map(at).fold(f64::INFINITY, f64::min)
    }

    fn lowest(&self, slope: f64, x: f64) -> f64 {
        let at = |(x0, y): &Spot| y + slope * (x - x0);
        self.floor.iter().map(at).fold(f64::NEG_INFINITY, f64::max)
    }
}

/// Andrew's monotone chain; keeps the points that a line from below can touch.
fn lower_hull(mut spots: Vec<Spot>) -> Vec<Spot> {
    spots.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let mut hull: Vec<Spot> = Vec::new();
    for spot in spots {
        while let [.., before, last] = hull[..] {
            let turn = (last.0 - before.0) * (spot.1 - before.1)
                - (last.1 - before.1) * (spot.0 - before.0);
            if turn > 0.0 {
                break;
            }
            hull.pop();
        }
        hull.push(spot);
    }
    hull
}

/// Returns where a concave function is largest.
fn summit(of: impl Fn(f64) -> f64, mut from: f64, mut to: f64) -> f64 {
    for _ in 0..STEPS {
        let third = (to - from) / 3.0;
        if of(from + third) < of(to - third) {
            from += third;
        } else {
            to -= third;
        }
    }
    (from + to) / 2.0
}

/// Returns where a function that is not negative at `inside` becomes negative towards `outside`.
fn edge(of: impl Fn(f64) -> f64, mut inside: f64, mut outside: f64) -> f64 {
    if of(outside) >= 0.0 {
        return outside;
    }
    for _ in 0..STEPS {
        let middle = (inside + outside) / 2.0;
        if of(middle) >= 0.0 {
            inside = middle;
        } else {
            outside = middle;
        }
    }
    // Rounded outwards: a bound may be too wide, never too narrow.
    outside
}

/// The largest rate between two clocks: 500 ppm each is the most that the kernel corrects.
const SLOPE_MAX: f64 = 1e-3;
/// Halvings of an interval of slopes: far below a thousandth of a part in a million.
const STEPS: usize = 90;
