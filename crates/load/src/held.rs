//! [`Held`]: what a load reached, second by second, against what it was to reach.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The largest difference from a target that counts as held, as a share.
pub const TOLERANCE: f64 = 0.02;

/// The counters of the kernel have units of a hundredth of a second: one second is known to this share.
const TICK: f64 = 0.01;

/// Of so many seconds, one may be further away: another load that begins or ends takes a moment to be noticed.
const ONE_OFF_IN: u64 = 10;

/// The unit of the figures of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A share, from 0 to 1, of a processor or link.
    #[default]
    Share,
    /// Bits a second of payload.
    BitsPerS,
    /// Octets of memory.
    Octets,
    /// Octets a second.
    OctetsPerS,
}

impl Unit {
    fn words(self, value: f64) -> String {
        match self {
            Self::Share => format!("{:.1}%", value * 100.0),
            Self::BitsPerS => format!("{:.3} Mb/s", value / 1e6),
            Self::Octets => format!("{:.1} MiB", value / f64::from(1 << 20)),
            Self::OctetsPerS => format!("{:.1} MiB/s", value / f64::from(1 << 20)),
        }
    }

    /// The standard deviation of shares has points.
    fn spread_words(self, value: f64) -> String {
        match self {
            Self::Share => format!("{:.1} points", value * 100.0),
            Self::BitsPerS | Self::Octets | Self::OctetsPerS => self.words(value),
        }
    }

    /// Returns what a difference of a share is in this unit, at a target.
    const fn part(self, share: f64, asked: f64) -> f64 {
        match self {
            Self::Share => share,
            Self::BitsPerS | Self::Octets | Self::OctetsPerS => share * asked,
        }
    }

    /// Returns true if others use the same thing, and are counted with the load.
    const fn is_of_everything(self) -> bool {
        match self {
            Self::Share | Self::BitsPerS => true,
            Self::Octets | Self::OctetsPerS => false,
        }
    }
}

/// One second of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Whole seconds since the load began.
    pub at_s: u64,
    /// Index of the processor or link in the report.
    pub index: usize,
    /// Its name, for example `processor 0`.
    pub of: String,
    /// The target.
    pub asked: Option<f64>,
    /// The unit of all figures.
    #[serde(default)]
    pub unit: Unit,
    /// Use by everything, by the kernel's own counters.
    pub achieved: f64,
    /// The part of it that the load itself used, by its own count.
    pub own: f64,
    /// The part of it that the hypervisor took.
    pub stolen: f64,
}

impl fmt::Display for Second {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at_s, of, unit, .. } = self;
        let words = |value| unit.words(value);
        write!(f, "{at_s:>4} s  {of}: ")?;
        if let Some(asked) = self.asked {
            write!(f, "asked {}, ", words(asked))?;
        }
        write!(f, "achieved {}", words(self.achieved))?;
        if !unit.is_of_everything() {
            return Ok(());
        }
        let (own, others) = (words(self.own), words((self.achieved - self.own).max(0.0)));
        write!(f, " (own {own}, others {others}")?;
        if self.stolen > 0.0 {
            write!(f, ", of these stolen {}", words(self.stolen))?;
        }
        write!(f, ")")
    }
}

/// What a load reached on one processor or link. The first second, in which it settles, is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// The name of the processor or link.
    pub of: String,
    /// The target.
    pub asked: Option<f64>,
    /// The unit of all figures.
    #[serde(default)]
    pub unit: Unit,
    /// Seconds that were measured.
    pub seconds: u64,
    /// Seconds within the tolerance.
    pub seconds_within: u64,
    /// Mean of the seconds.
    pub mean: f64,
    /// The least second.
    pub min: f64,
    /// The greatest second.
    pub max: f64,
    /// Standard deviation of the seconds; 0 for fewer than two.
    pub deviation: f64,
    /// Mean of the load's own part.
    pub own_mean: f64,
    /// Mean of what the hypervisor took.
    pub stolen_mean: f64,
}

impl Held {
    /// Returns whether the target was held: the mean within [`TOLERANCE`], and nine of ten seconds too, give or take one
    /// unit of the kernel's counters. `None` without a target.
    #[must_use]
    pub fn is_held(&self) -> Option<bool> {
        let asked = self.asked?;
        let off = self.seconds - self.seconds_within;
        let mean_is_near = (self.mean - asked).abs() <= self.unit.part(TOLERANCE, asked);
        Some(self.seconds > 0 && mean_is_near && off <= self.seconds.div_ceil(ONE_OFF_IN))
    }

    /// Adds a second (Welford's algorithm; the sum of squares is kept in `deviation`'s square).
    pub(crate) fn add(&mut self, second: &Second) {
        let before = self.seconds as f64;
        let after = before + 1.0;
        let achieved = second.achieved;
        let squares = self.deviation.powi(2) * (before - 1.0).max(0.0);
        let delta = achieved - self.mean;
        self.mean += delta / after;
        let squares = squares + delta * (achieved - self.mean);
        self.deviation = if self.seconds == 0 {
            0.0
        } else {
            (squares / before).sqrt()
        };
        self.own_mean += (second.own - self.own_mean) / after;
        self.stolen_mean += (second.stolen - self.stolen_mean) / after;
        (self.min, self.max) = if self.seconds == 0 {
            (achieved, achieved)
        } else {
            (self.min.min(achieved), self.max.max(achieved))
        };
        self.seconds += 1;
        let is_within =
            |asked: f64| (achieved - asked).abs() <= self.unit.part(TOLERANCE + TICK, asked);
        self.seconds_within += u64::from(second.asked.is_none_or(is_within));
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |value: f64| self.unit.words(value);
        write!(f, "{}: ", self.of)?;
        if let Some(asked) = self.asked {
            write!(f, "asked {}, ", words(asked))?;
        }
        if self.seconds == 0 {
            return write!(f, "no whole second was measured after the first");
        }
        write!(
            f,
            "achieved mean {}, min {}, max {}, standard deviation {}, over {} seconds",
            words(self.mean),
            words(self.min),
            words(self.max),
            self.unit.spread_words(self.deviation),
            self.seconds
        )?;
        if self.unit.is_of_everything() {
            write!(f, "; own {}", words(self.own_mean))?;
        }
        if self.stolen_mean > 0.0005 {
            write!(f, "; stolen {}", words(self.stolen_mean))?;
        }
        match self.is_held() {
            None => Ok(()),
            Some(true) => write!(f, "; held"),
            Some(false) => {
                write!(f, "; NOT HELD: {} seconds within", self.seconds_within)?;
                let others = self.mean - self.own_mean;
                if self.asked.is_some_and(|asked| others > asked) {
                    write!(f, ", others alone take {}", words(others))?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(asked: f64, achieved: &[f64]) -> Held {
        let mut held = Held {
            asked: Some(asked),
            ..Held::default()
        };
        for (at_s, &achieved) in (1..).zip(achieved) {
            held.add(&Second {
                at_s,
                index: 0,
                of: "processor 0".to_owned(),
                asked: Some(asked),
                unit: Unit::Share,
                achieved,
                own: achieved / 2.0,
                stolen: 0.0,
            });
        }
        held
    }

    #[test]
    fn the_summary_is_that_of_the_seconds() {
        let held = held(0.5, &[0.49, 0.53, 0.48]);
        assert!((held.mean - 0.5).abs() < 1e-12);
        assert_eq!((held.min, held.max, held.seconds), (0.48, 0.53, 3));
        // The sample's: squares of -1, 3 and -2 points over 2.
        assert!(
            (held.deviation - 0.0007_f64.sqrt()).abs() < 1e-9,
            "{held:?}"
        );
        assert!((held.own_mean - 0.25).abs() < 1e-12);
    }

    #[test]
    fn a_target_is_held_by_its_mean_and_nine_of_ten_seconds() {
        assert_eq!(held(0.5, &[0.5; 5]).is_held(), Some(true));
        assert_eq!(held(0.5, &[0.525; 5]).is_held(), Some(false), "the mean");
        let one_off = [0.5, 0.5, 0.5, 0.5, 0.58];
        assert_eq!(held(0.5, &one_off).is_held(), Some(true));
        let swinging = [0.44, 0.56, 0.44, 0.56, 0.5];
        assert_eq!(held(0.5, &swinging).is_held(), Some(false), "the seconds");
        assert_eq!(held(0.5, &[]).is_held(), Some(false), "nothing measured");
        assert_eq!(Held::default().is_held(), None);
        let crowded = held(0.4, &[0.9; 5]).to_string();
        assert!(
            crowded.ends_with("NOT HELD: 0 seconds within, others alone take 45.0%"),
            "{crowded}"
        );
    }
}
