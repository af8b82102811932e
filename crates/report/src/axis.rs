//! Axes: the position of a value in the drawing, and the choice of ticks.

/// One axis of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Axis {
    logarithmic: bool,
    low: f64,
    high: f64,
    low_px: f64,
    high_px: f64,
}

/// A tick of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tick {
    /// The value.
    pub(crate) value: f64,
    /// Its position on the axis.
    pub(crate) px: f64,
    /// Whether its value is written beside it; other ticks are only a line.
    pub(crate) labelled: bool,
}

impl Axis {
    /// A linear axis from `low` to `high`, drawn at the pixels `px`.
    pub(crate) fn linear(low: f64, high: f64, px: (f64, f64)) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self {
            logarithmic: false,
            low,
            high,
            low_px: px.0,
            high_px: px.1,
        }
    }

    /// A logarithmic axis; `low` must be above zero.
    pub(crate) fn logarithmic(low: f64, high: f64, px: (f64, f64)) -> Self {
        let low = low.max(f64::MIN_POSITIVE);
        let high = if high > low { high } else { low * 10.0 };
        Self {
            logarithmic: true,
            low,
            high,
            low_px: px.0,
            high_px: px.1,
        }
    }

    /// Returns the least value.
    pub(crate) fn low(&self) -> f64 {
        self.low
    }

    /// Returns the greatest value.
    pub(crate) fn high(&self) -> f64 {
        self.high
    }

    /// Returns the pixels of the least and the greatest value.
    pub(crate) fn px(&self) -> (f64, f64) {
        (self.low_px, self.high_px)
    }

    /// Whether the axis is logarithmic.
    pub(crate) fn is_logarithmic(&self) -> bool {
        self.logarithmic
    }

    /// Returns the position of `value` in pixels. A value outside the axis is put on its edge.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.low_px + share.clamp(0.0, 1.0) * (self.high_px - self.low_px)
    }

    /// Returns ticks whose labels are at least `apart_px` apart.
    pub(crate) fn ticks(&self, apart_px: f64) -> Vec<Tick> {
        if self.logarithmic {
            self.logarithmic_ticks(apart_px)
        } else {
            self.linear_ticks(apart_px)
        }
    }

    fn length_px(&self) -> f64 {
        (self.high_px - self.low_px).abs()
    }

    fn tick(&self, value: f64, labelled: bool) -> Tick {
        Tick {
            value,
            px: self.place(value),
            labelled,
        }
    }

    fn linear_ticks(&self, apart_px: f64) -> Vec<Tick> {
        let wanted = (self.length_px() / apart_px).max(1.0);
        let step = nice_step((self.high - self.low) / wanted);
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last)
            .map(|n| self.tick(n as f64 * step, true))
            .collect()
    }

    fn logarithmic_ticks(&self, apart_px: f64) -> Vec<Tick> {
        let (first, last) = (
            self.low.log10().floor() as i32,
            self.high.log10().ceil() as i32,
        );
        let decades = (self.high / self.low).log10();
        let decade_px = self.length_px() / decades;
        let every = (apart_px / decade_px).ceil().max(1.0) as i32;
        let written: &[u32] = match decade_px {
            px if px > 10.4 * apart_px => &[1, 2, 3, 4, 6, 8],
            px if px > 3.4 * apart_px => &[1, 2, 5],
            px if px > 2.2 * apart_px => &[1, 3],
            _ => &[1],
        };
        let mut ticks = Vec::new();
        for decade in first..=last {
            for digit in 1..=9_u32 {
                let value = f64::from(digit) * 10_f64.powi(decade);
                if value < self.low * 0.999_999 || value > self.high * 1.000_001 {
                    continue;
                }
                let labelled = written.contains(&digit) && decade.rem_euclid(every) == 0;
                if labelled || digit == 1 || decades < 7.0 && decade_px > 12.0 {
                    ticks.push(self.tick(value, labelled));
                }
            }
        }
        ticks
    }
}

/// Returns the least of 1, 2, 5, 10, 20, ... times a power of ten that is at least `least`.
fn nice_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|digit| digit * power)
        .find(|step| *step >= least * 0.999_999)
        .unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, apart_px: f64) -> Vec<f64> {
        axis.ticks(apart_px)
            .into_iter()
            .filter(|tick| tick.labelled)
            .map(|tick| tick.value)
            .collect()
    }

    #[test]
    fn linear_ticks_are_round_and_apart() {
        let axis = Axis::linear(0.0, 104.0, (0.0, 300.0));
        assert_eq!(labels(&axis, 60.0), [0.0, 50.0, 100.0]);
        assert_eq!(labels(&axis, 50.0), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
    }

    #[test]
    fn logarithmic_ticks_stand_at_the_decades() {
        let axis = Axis::logarithmic(1e-4, 1.0, (300.0, 0.0));
        assert_eq!(
            labels(&axis, 20.0).len(),
            13,
            "1, 2, 5 in four decades and the end"
        );
        assert_eq!(labels(&axis, 60.0).len(), 5);
        let sparse = labels(&Axis::logarithmic(1e-12, 1.0, (60.0, 0.0)), 20.0);
        assert!(sparse.len() <= 4, "{sparse:?}");
    }

    #[test]
    fn labels_never_come_closer_than_asked() {
        for (low, high) in [(1.0, 3.0), (0.5, 20.0), (1e3, 1e9), (1e-6, 1.0), (3.0, 4.0)] {
            for axis in [
                Axis::linear(low, high, (0.0, 400.0)),
                Axis::logarithmic(low, high, (0.0, 400.0)),
            ] {
                let places: Vec<f64> = axis
                    .ticks(50.0)
                    .iter()
                    .filter(|t| t.labelled)
                    .map(|t| t.px)
                    .collect();
                for pair in places.windows(2) {
                    assert!(pair[1] - pair[0] >= 49.0, "{axis:?} {places:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_outside_lies_on_the_edge() {
        let axis = Axis::logarithmic(1.0, 100.0, (10.0, 210.0));
        assert_eq!(axis.place(0.0), 10.0);
        assert!((axis.place(10.0) - 110.0).abs() < 1e-9);
        assert_eq!(axis.place(f64::INFINITY), 210.0);
    }

    #[test]
    fn an_empty_range_is_widened() {
        assert!(Axis::linear(5.0, 5.0, (0.0, 1.0)).place(5.0).is_finite());
        assert!(
            Axis::logarithmic(5.0, 5.0, (0.0, 1.0))
                .place(5.0)
                .is_finite()
        );
    }
}
