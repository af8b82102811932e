//! Performance targets, the results against them, and ratios.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::median::{INTERVAL_VALUES_MIN, median_interval};

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
    /// The verdict. Absent if the target is not judged; `reason` says why.
    #[serde(default)]
    pub verdict: Option<TargetVerdict>,
    /// Why the target is not judged, or why its verdict is open, in words.
    #[serde(default)]
    pub reason: Option<String>,
    /// How many rounds more would probably decide an open verdict.
    #[serde(default)]
    pub rounds_more: Option<usize>,
}

/// The verdict on a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TargetVerdict {
    /// The whole 95% interval keeps the target.
    Met,
    /// The whole 95% interval breaks it.
    Missed,
    /// The interval has the bound inside, or there is no interval yet.
    Open,
}

/// The bound of a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// The target is kept at this value and below.
    AtMost(f64),
    /// The target is kept at this value and above.
    AtLeast(f64),
}

impl Bound {
    /// Whether `value` keeps the target.
    #[must_use]
    pub fn holds(self, value: f64) -> bool {
        match self {
            Self::AtMost(bound) => value <= bound,
            Self::AtLeast(bound) => value >= bound,
        }
    }

    /// The bound as a table has it.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::AtMost(bound) => format!("at most {bound:.2}"),
            Self::AtLeast(bound) => format!("at least {bound:.2}"),
        }
    }

    const fn value(self) -> f64 {
        match self {
            Self::AtMost(bound) | Self::AtLeast(bound) => bound,
        }
    }
}

/// The result of another ORB against a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PeerRatio {
    /// Its name.
    pub peer: String,
    /// Its result.
    pub ratio: Ratio,
}

/// Median, quartiles and 95% interval of the ratios of pairs of runs.
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
    /// Lower end of the 95% interval of the median. Absent with fewer than six pairs.
    #[serde(default)]
    pub lower: Option<f64>,
    /// Upper end of the 95% interval of the median.
    #[serde(default)]
    pub upper: Option<f64>,
    /// The ratios of successive rounds resemble each other, so that the interval is wider, or absent.
    #[serde(default)]
    pub is_widened: bool,
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
            lower: None,
            upper: None,
            is_widened: false,
        }
    }

    /// Median, quartiles and interval of `ratios`, which are in the order of the rounds. Returns `None` if there are
    /// none.
    #[must_use]
    pub fn of(mut ratios: Vec<f64>) -> Option<Self> {
        let interval = median_interval(&ratios);
        let pairs = ratios.len();
        ratios.sort_by(f64::total_cmp);
        Some(Self {
            median: quantile(&ratios, 0.5)?,
            lower_quartile: quantile(&ratios, 0.25)?,
            upper_quartile: quantile(&ratios, 0.75)?,
            pairs,
            lower: interval.map(|interval| interval.lower),
            upper: interval.map(|interval| interval.upper),
            is_widened: interval
                .map_or(pairs >= INTERVAL_VALUES_MIN, |interval| interval.is_widened),
        })
    }

    /// The verdict on a target, and how many rounds more would probably decide an open one.
    #[must_use]
    pub fn against(&self, bound: Bound) -> (TargetVerdict, Option<usize>) {
        let (Some(lower), Some(upper)) = (self.lower, self.upper) else {
            // As many again, if there are enough already and they resemble each other.
            let missing = INTERVAL_VALUES_MIN.saturating_sub(self.pairs);
            let more = if missing > 0 { missing } else { self.pairs };
            return (TargetVerdict::Open, Some(more));
        };
        match (bound.holds(lower), bound.holds(upper)) {
            (true, true) => (TargetVerdict::Met, None),
            (false, false) => (TargetVerdict::Missed, None),
            _ => (
                TargetVerdict::Open,
                self.rounds_more(bound.value(), (lower, upper)),
            ),
        }
    }

    /// The half of the interval on the side of the bound must become shorter than its distance from the median. It
    /// shrinks with the square root of the number of rounds.
    fn rounds_more(&self, bound: f64, (lower, upper): (f64, f64)) -> Option<usize> {
        let half = if self.median <= bound {
            upper - self.median
        } else {
            self.median - lower
        };
        let distance = (self.median - bound).abs();
        let needed = self.pairs as f64 * (half / distance).powi(2);
        let more = needed.ceil() - self.pairs as f64;
        (more <= ROUNDS_MORE_MAX).then_some((more as usize).max(1))
    }

    /// The median, and the quartiles if there are several pairs: `1.050 (1.040-1.070)`.
    #[must_use]
    pub fn words(self) -> String {
        let Self {
            median,
            lower_quartile,
            upper_quartile,
            pairs,
            ..
        } = self;
        if pairs == 1 {
            return format!("{median:.3}");
        }
        format!("{median:.3} ({lower_quartile:.3}-{upper_quartile:.3})")
    }

    /// The median, and its interval if there is one: `1.050 (1.038-1.071)`.
    #[must_use]
    pub fn interval_words(self) -> String {
        let median = self.median;
        match (self.lower, self.upper) {
            (Some(lower), Some(upper)) => format!("{median:.3} ({lower:.3}-{upper:.3})"),
            _ => format!("{median:.3}"),
        }
    }
}

/// More rounds than these take days: no number is stated.
const ROUNDS_MORE_MAX: f64 = 10_000.0;

/// The quantile of ascending values, interpolated between neighbours.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let place = share * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (
        sorted[place.floor() as usize],
        sorted[place.ceil() as usize],
    );
    Some(below + (above - below) * place.fract())
}

impl Standing {
    /// The verdict in words: `met`, `MISSED`, `open: 12 rounds more`, or `-`.
    #[must_use]
    pub fn verdict_words(&self) -> String {
        match (self.verdict, self.rounds_more) {
            (Some(TargetVerdict::Met), _) => "met".to_owned(),
            (Some(TargetVerdict::Missed), _) => "MISSED".to_owned(),
            (Some(TargetVerdict::Open), Some(more)) => format!("open: {more} rounds more"),
            (Some(TargetVerdict::Open), None) => "open".to_owned(),
            (None, _) => "-".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Bound::{AtLeast, AtMost};
    use super::*;

    #[test]
    fn quartiles_are_interpolated_and_nothing_has_no_ratio() {
        let ratio = Ratio::of(vec![2.5, 1.5, 1.1]).expect("three");
        assert_eq!((ratio.median, ratio.pairs), (1.5, 3));
        assert_eq!((ratio.lower_quartile, ratio.upper_quartile), (1.3, 2.0));
        assert_eq!(ratio.words(), "1.500 (1.300-2.000)");
        assert_eq!(ratio.interval_words(), "1.500");
        assert_eq!(Ratio::of(Vec::new()), None);
        assert_eq!(Ratio::exactly(2.0).words(), "2.000");
    }

    /// Nine ratios whose interval is from 1.02 to 1.08, around 1.05.
    fn nine() -> Ratio {
        let hundredths = [105, 101, 108, 103, 107, 102, 109, 104, 106];
        let all = hundredths.map(|of| f64::from(of) / 100.0).to_vec();
        Ratio::of(all).expect("nine")
    }

    #[test]
    fn a_target_is_met_or_missed_by_the_whole_interval_alone() {
        use TargetVerdict::{Met, Missed, Open};
        assert_eq!(nine().interval_words(), "1.050 (1.020-1.080)");
        let of = |bound| nine().against(bound).0;
        let both = [
            (1.08, Met, Open),
            (1.079, Open, Open),
            (1.02, Open, Met),
            (1.019, Missed, Met),
        ];
        for (at, most, least) in both {
            assert_eq!((of(AtMost(at)), of(AtLeast(at))), (most, least), "{at}");
        }
        assert_eq!((of(AtLeast(1.081)), of(AtLeast(1.08))), (Missed, Open));
    }

    #[test]
    fn an_open_verdict_says_how_many_rounds_more_would_probably_decide() {
        use TargetVerdict::Open;
        // The half towards the bound is 0.03 long and has to become 0.02: 9 * 1.5^2 rounds.
        assert_eq!(nine().against(AtMost(1.07)), (Open, Some(12)));
        assert_eq!(nine().against(AtLeast(1.03)), (Open, Some(12)));
        assert_eq!(nine().against(AtMost(1.05)), (Open, None));
        // The halves differ: 0.03 towards a bound above the median, 0.01 towards one below it.
        let skewed = Ratio {
            lower: Some(1.04),
            ..nine()
        };
        assert_eq!(skewed.against(AtMost(1.07)), (Open, Some(12)));
        assert_eq!(skewed.against(AtLeast(1.046)), (Open, Some(48)));
        let four = Ratio::of(vec![1.0, 1.1, 1.0, 1.1]).expect("four");
        assert_eq!(four.against(AtMost(9.0)), (Open, Some(2)));
        assert!(!four.is_widened);
    }

    #[test]
    fn verdicts_and_bounds_have_words() {
        use TargetVerdict::{Met, Missed, Open};
        let words = |verdict, rounds_more| {
            let standing = Standing {
                measure: String::new(),
                condition: String::new(),
                ours: None,
                target: String::new(),
                peers: Vec::new(),
                verdict,
                reason: None,
                rounds_more,
            };
            standing.verdict_words()
        };
        assert_eq!(words(Some(Met), None), "met");
        assert_eq!(words(Some(Missed), None), "MISSED");
        assert_eq!(words(Some(Open), Some(12)), "open: 12 rounds more");
        assert_eq!(words(Some(Open), None), "open");
        assert_eq!(words(None, None), "-");
        assert_eq!(AtMost(1.05).words(), "at most 1.05");
        assert_eq!(AtLeast(2.0).words(), "at least 2.00");
    }

    #[test]
    fn rounds_that_resemble_their_predecessors_leave_the_verdict_open() {
        let drift = Ratio::of((0..9).map(|it| 1.0 + f64::from(it) / 100.0).collect());
        let drift = drift.expect("nine");
        assert!(drift.is_widened && drift.lower.is_none());
        assert_eq!(drift.against(AtMost(2.0)), (TargetVerdict::Open, Some(9)));
    }
}
