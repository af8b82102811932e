//! Performance targets, the results against them, and ratios.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One target and the results against it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Standing {
    /// The measured quantity and what it is compared with.
    pub measure: String,
    /// Processors and scheduling class, in words.
    pub condition: String,
    /// The result of our ORB.
    pub ours: Option<Ratio>,
    /// The target, in words.
    pub target: String,
    /// The results of other ORBs.
    pub peers: Vec<PeerRatio>,
    /// Whether our result meets the target. Absent if the condition is not judged or nothing was measured.
    pub is_met: Option<bool>,
}

/// The result of another ORB against a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PeerRatio {
    /// Its name.
    pub peer: String,
    /// Its result.
    pub ratio: Ratio,
}

/// Median and quartiles of the ratios of pairs of runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// The median.
    pub median: f64,
    /// The lower quartile.
    pub lower_quartile: f64,
    /// The upper quartile.
    pub upper_quartile: f64,
    /// Number of pairs.
    pub pairs: usize,
}

impl Ratio {
    /// A single value that is no ratio of pairs, such as a count.
    #[must_use]
    pub const fn exactly(value: f64) -> Self {
        Self {
            median: value,
            lower_quartile: value,
            upper_quartile: value,
            pairs: 1,
        }
    }

    /// Median and quartiles of `ratios`. Returns `None` if there are none.
    #[must_use]
    pub fn of(mut ratios: Vec<f64>) -> Option<Self> {
        ratios.sort_by(f64::total_cmp);
        Some(Self {
            median: quantile(&ratios, 0.5)?,
            lower_quartile: quantile(&ratios, 0.25)?,
            upper_quartile: quantile(&ratios, 0.75)?,
            pairs: ratios.len(),
        })
    }

    /// The median, and the quartiles if there are several pairs: `1.050 (1.040-1.070)`.
    #[must_use]
    pub fn words(self) -> String {
        let Self {
            median,
            lower_quartile,
            upper_quartile,
            pairs,
        } = self;
        if pairs == 1 {
            return format!("{median:.3}");
        }
        format!("{median:.3} ({lower_quartile:.3}-{upper_quartile:.3})")
    }
}

/// The quantile of ascending values, interpolated between neighbours.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let place = share * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (
        sorted[place.floor() as usize],
        sorted[place.ceil() as usize],
    );
    Some(below + (above - below) * place.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_interpolated_and_nothing_has_no_ratio() {
        let ratio = Ratio::of(vec![2.5, 1.5, 1.1]).expect("three");
        assert_eq!((ratio.median, ratio.pairs), (1.5, 3));
        assert_eq!((ratio.lower_quartile, ratio.upper_quartile), (1.3, 2.0));
        assert_eq!(ratio.words(), "1.500 (1.300-2.000)");
        assert_eq!(Ratio::of(Vec::new()), None);
        assert_eq!(Ratio::exactly(2.0).words(), "2.000");
    }
}
