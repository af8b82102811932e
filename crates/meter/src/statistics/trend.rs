//! Does a value of a process grow with time: memory, descriptors, threads, the time of a call?
//!
//! Values of a process depend on the ones before them. The points are therefore cut into about [`BLOCKS`] blocks, and
//! each block counts by its median.
//!
//! * Slope: least squares through the blocks.
//! * Interval and test: Student's. The variance of the slope is multiplied by `(1 + r) / (1 - r)`, where `r` is the
//!   correlation of one block's residual with the next (G. E. P. Box, G. M. Jenkins and G. C. Reinsel, Time Series
//!   Analysis, 1994). `r` is corrected for its bias and is never taken below 0. One step is a residual whose blocks
//!   depend on each other, so that it widens the interval.
//! * Segments: a process that starts anew begins a new segment with a level of its own. All segments have one slope.
//!
//! A test by ranks, that of Mann and Kendall, was tried: it does not see how small the residuals of a leak are, so that
//! leaks whose residuals depended on each other were never proved.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

use super::fails_of_many;
use crate::limits::{CONFIDENCE, TREND_BLOCKS_MIN, TREND_POINTS_MIN};
use crate::result::VerdictKind;

/// The trend of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct Trend {
    /// The median of all points.
    level: f64,
    /// Growth in a second.
    slope: f64,
    /// The standard error of the slope.
    error: f64,
    /// Degrees of freedom of that error.
    freedom: f64,
}

/// The points of a time, as one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Block {
    at_s: f64,
    value: f64,
}

/// The judgement of one series among several.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// PASS: the upper end of the growth is within the allowance. FAIL: the lower end is beyond it. Else UNPROVEN.
    pub kind: VerdictKind,
    /// The probability of a wrong FAIL at which the lower end is taken; smaller than 5% among several series.
    pub level: f64,
    /// Growth over the whole time, and the one-sided ends of its interval.
    pub growth: f64,
    /// The lower end.
    pub growth_low: f64,
    /// The upper end, at 5%.
    pub growth_high: f64,
}

impl Trend {
    /// Returns the trend of points `(seconds, value)`, in segments in which the process was the same. Returns `None` for
    /// less than [`TREND_POINTS_MIN`] points, or where they make less than [`TREND_BLOCKS_MIN`] blocks.
    #[must_use]
    pub fn of(segments: &[Vec<(f64, f64)>]) -> Option<Self> {
        let points: Vec<(f64, f64)> = segments.iter().flatten().copied().collect();
        if points.len() < TREND_POINTS_MIN {
            return None;
        }
        let blocks = BLOCKS.max(BLOCKS_OF_SEGMENT * segments.len());
        let length = points.len().div_ceil(blocks);
        let segments: Vec<Vec<Block>> = segments
            .iter()
            .map(|segment| in_blocks(segment, length))
            .filter(|segment| segment.len() >= SEGMENT_BLOCKS_MIN)
            .collect();
        let count = segments.iter().map(Vec::len).sum::<usize>();
        if count < TREND_BLOCKS_MIN {
            return None;
        }
        let (slope, spread) = slope(&segments);
        let freedom = (count - segments.len() - 1) as f64;
        Some(Self {
            level: median(points.iter().map(|point| point.1).collect()),
            slope,
            error: residual_error(&segments, slope, freedom) / spread.sqrt(),
            freedom,
        })
    }

    /// The median of all points.
    #[must_use]
    pub fn level(&self) -> f64 {
        self.level
    }

    /// Growth in a second.
    #[must_use]
    pub fn slope(&self) -> f64 {
        self.slope
    }

    /// Returns the probability that blocks whose true slope is `slope` rise as much as these, or more.
    #[must_use]
    pub fn chance_at(&self, slope: f64) -> f64 {
        let beyond = self.slope - slope;
        match StudentsT::new(0.0, 1.0, self.freedom) {
            Ok(student) if self.error > 0.0 => student.sf(beyond / self.error),
            // All blocks lie on one line.
            _ if beyond > 0.0 => 0.0,
            _ => 1.0,
        }
    }

    /// Returns the ends of an interval of the slope. The true slope is below `low`, and above `high`, with the
    /// probability `level` each.
    #[must_use]
    pub fn ends(&self, level: f64) -> (f64, f64) {
        let student = StudentsT::new(0.0, 1.0, self.freedom);
        let half = student.map_or(f64::INFINITY, |student| student.inverse_cdf(1.0 - level));
        let half = half * self.error;
        (self.slope - half, self.slope + half)
    }
}

/// Judges series that share one conclusion: each a trend, and the growth that is allowed over `time_s`. At the true
/// growth allowed, or below, at least one of them FAILs with a probability of at most 5% ([`fails_of_many`]).
#[must_use]
pub fn judge_trends(series: &[(&Trend, f64)], time_s: f64) -> Vec<Judged> {
    let chance = |&(trend, allowed): &(&Trend, f64)| trend.chance_at(allowed / time_s);
    let chances: Vec<f64> = series.iter().map(chance).collect();
    let fails = fails_of_many(&chances, chances.len());
    let judged = series.iter().zip(fails);
    judged
        .map(|(&(trend, allowed), fail)| {
            // One that does not FAIL is reported at the strictest level that it could have had to meet.
            let level = fail.unwrap_or((1.0 - CONFIDENCE) / series.len() as f64);
            let (growth_low, _) = trend.ends(level);
            let (_, growth_high) = trend.ends(1.0 - CONFIDENCE);
            let is_within = trend.chance_at(allowed / time_s) >= CONFIDENCE;
            let kind = match (fail, is_within) {
                (Some(_), _) => VerdictKind::Fail,
                (None, true) => VerdictKind::Pass,
                (None, false) => VerdictKind::Unproven,
            };
            Judged {
                kind,
                level,
                growth: trend.slope * time_s,
                growth_low: growth_low * time_s,
                growth_high: growth_high * time_s,
            }
        })
        .collect()
}

/// The blocks of a segment. Points that fill no block are left out at its beginning.
fn in_blocks(segment: &[(f64, f64)], length: usize) -> Vec<Block> {
    let blocks = segment.rchunks_exact(length).rev();
    blocks
        .map(|block| Block {
            at_s: block.iter().map(|point| point.0).sum::<f64>() / block.len() as f64,
            value: median(block.iter().map(|point| point.1).collect()),
        })
        .collect()
}

/// The slope of the line through the blocks of each segment, and the spread of their times around their means.
fn slope(segments: &[Vec<Block>]) -> (f64, f64) {
    let (mut together, mut spread) = (0.0, 0.0);
    for segment in segments {
        let at_s = mean(segment.iter().map(|block| block.at_s));
        let value = mean(segment.iter().map(|block| block.value));
        for block in segment {
            together += (block.at_s - at_s) * (block.value - value);
            spread += (block.at_s - at_s).powi(2);
        }
    }
    (together / spread, spread)
}

/// The standard error of one block, widened for blocks that depend on the ones before.
fn residual_error(segments: &[Vec<Block>], slope: f64, freedom: f64) -> f64 {
    let (mut products, mut squares, mut neighbours, mut count) = (0.0, 0.0, 0.0, 0.0);
    for segment in segments {
        let less = segment.iter().map(|block| block.value - slope * block.at_s);
        let level = mean(less.clone());
        let around: Vec<f64> = less.map(|value| value - level).collect();
        products += around.windows(2).map(|two| two[0] * two[1]).sum::<f64>();
        squares += around.iter().map(|value| value * value).sum::<f64>();
        neighbours += (segment.len() - 1) as f64;
        count += segment.len() as f64;
    }
    if squares <= 0.0 {
        return 0.0;
    }
    let found = (products / neighbours) / (squares / count);
    // A level for each segment and one slope were taken from the same blocks, so that the correlation is found too small.
    // Of at least eight blocks, and three of each segment, the share is at least 0.375.
    let segments = segments.len() as f64;
    let share = 1.0 - (3.0 + segments) / count;
    let correlation = ((found + (1.0 + segments) / count) / share).clamp(0.0, CORRELATION_MAX);
    (squares / freedom * (1.0 + correlation) / (1.0 - correlation)).sqrt()
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

/// The median; 0 of no values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = |index: usize| values.get(index).copied().unwrap_or_default();
    f64::midpoint(
        middle(values.len().saturating_sub(1) / 2),
        middle(values.len() / 2),
    )
}

/// Number of blocks of a series. More blocks are shorter and depend more on each other; fewer lose power.
const BLOCKS: usize = 16;

/// Blocks of a segment where there are many segments.
const BLOCKS_OF_SEGMENT: usize = 4;

/// A segment with fewer blocks says nothing of a slope.
const SEGMENT_BLOCKS_MIN: usize = 3;

/// The largest correlation that is corrected for: beyond it the blocks are one value.
const CORRELATION_MAX: f64 = 0.95;

#[cfg(test)]
mod tests;
