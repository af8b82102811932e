//! Does a value of a process grow with time: memory, descriptors, threads, the time of a call?
//!
//! Values of a process depend on the ones before them. The points are therefore cut into about [`BLOCKS`] blocks, and
//! each block counts by its median.
//!
//! * Slope: the median of the slopes of all pairs of blocks (P. K. Sen, Journal of the American Statistical Association
//!   63, 1968). Outliers and one step hardly move it.
//! * Test: the statistic of Mann and Kendall (M. G. Kendall, Rank Correlation Methods, 1975), with the correction for
//!   ties. Its variance is multiplied by `(1 + r) / (1 - r)`, where `r` is the correlation of one block with the next
//!   around the slope (S. Yue and C. Wang, Water Resources Management 18, 2004). `r` is corrected for its bias and is
//!   never taken below 0.
//! * Segments: a process that starts anew begins a new segment, and only blocks of one segment are compared. Statistics
//!   and variances of segments are added, as those of seasons in R. M. Hirsch, J. R. Slack and R. A. Smith, Water
//!   Resources Research 18, 1982.

use statrs::distribution::{ContinuousCDF as _, Normal};

use super::fails_of_many;
use crate::limits::{CONFIDENCE, TREND_BLOCKS_MIN, TREND_POINTS_MIN};
use crate::result::VerdictKind;

/// The trend of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct Trend {
    segments: Vec<Vec<Block>>,
    /// The median of all points.
    level: f64,
    /// Growth in a second.
    slope: f64,
    /// The factor of the variance that corrects for the correlation of blocks.
    widened: f64,
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
        if segments.iter().map(Vec::len).sum::<usize>() < TREND_BLOCKS_MIN {
            return None;
        }
        let slope = median(slopes(&segments));
        Some(Self {
            level: median(points.iter().map(|point| point.1).collect()),
            slope,
            widened: widened(&segments, slope),
            segments,
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
        1.0 - normal(self.deviations(slope))
    }

    /// Returns the ends of an interval of the slope. The true slope is below `low`, and above `high`, with the
    /// probability `level` each.
    #[must_use]
    pub fn ends(&self, level: f64) -> (f64, f64) {
        let all = slopes(&self.segments);
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let beyond = (greatest - least).max(greatest.abs() * EDGE).max(EDGE);
        let range = (least - beyond, greatest + beyond);
        let low = edge(range, |slope| self.chance_at(slope) <= level);
        let high = edge(range, |slope| self.chance_at(slope) < 1.0 - level);
        (low, high)
    }

    /// Returns how many standard deviations the blocks, less `slope`, rise. It falls as `slope` grows.
    fn deviations(&self, slope: f64) -> f64 {
        let (mut score, mut variance) = (0.0, 0.0);
        for segment in &self.segments {
            let less = |block: &Block| block.value - slope * block.at_s;
            let mut values: Vec<f64> = segment.iter().map(less).collect();
            score += pairs(&values)
                .map(|(one, next)| f64::from(i8::from(next > one) - i8::from(next < one)))
                .sum::<f64>();
            values.sort_by(f64::total_cmp);
            let ties = values.chunk_by(|one, next| one == next);
            let tied: f64 = ties.map(|tie| spread_of(tie.len())).sum();
            variance += spread_of(values.len()) - tied;
        }
        if variance <= 0.0 {
            return 0.0;
        }
        // The score has steps of 2; a normal distribution has none.
        let continuous = score - score.clamp(-1.0, 1.0);
        continuous / (variance * self.widened).sqrt()
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

/// Each value with each later one.
fn pairs<T: Copy>(values: &[T]) -> impl Iterator<Item = (T, T)> {
    let later = |index: usize| values[index + 1..].iter();
    (0..values.len()).flat_map(move |index| later(index).map(move |next| (values[index], *next)))
}

/// The slopes of all pairs of blocks within a segment.
fn slopes(segments: &[Vec<Block>]) -> Vec<f64> {
    let all = segments.iter().flat_map(|segment| pairs(segment));
    all.filter(|(one, next)| next.at_s > one.at_s)
        .map(|(one, next)| (next.value - one.value) / (next.at_s - one.at_s))
        .collect()
}

/// The factor of the variance for blocks that depend on the ones before.
fn widened(segments: &[Vec<Block>], slope: f64) -> f64 {
    let (mut products, mut squares, mut neighbours, mut count) = (0.0, 0.0, 0.0, 0.0);
    for segment in segments {
        let less = segment.iter().map(|block| block.value - slope * block.at_s);
        let mean = less.clone().sum::<f64>() / segment.len() as f64;
        let around: Vec<f64> = less.map(|value| value - mean).collect();
        products += around.windows(2).map(|two| two[0] * two[1]).sum::<f64>();
        squares += around.iter().map(|value| value * value).sum::<f64>();
        neighbours += (segment.len() - 1) as f64;
        count += segment.len() as f64;
    }
    if squares <= 0.0 {
        return 1.0;
    }
    let found = (products / neighbours) / (squares / count);
    // A mean for each segment and one slope were taken from the same blocks, so that the correlation is found too small.
    let segments = segments.len() as f64;
    let share = (1.0 - (3.0 + segments) / count).max(CORRELATION_SHARE_MIN);
    let correlation = ((found + (1.0 + segments) / count) / share).clamp(0.0, CORRELATION_MAX);
    (1.0 + correlation) / (1.0 - correlation)
}

/// The variance of the statistic of Mann and Kendall for so many values; of so many equal ones, what they take from it.
fn spread_of(count: usize) -> f64 {
    let count = count as f64;
    count * (count - 1.0) * (2.0 * count + 5.0) / 18.0
}

fn normal(deviations: f64) -> f64 {
    Normal::standard().cdf(deviations)
}

/// Returns the greatest value for which `holds`, where it holds for the lower values alone.
fn edge((mut low, mut high): (f64, f64), holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
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

/// The bias of a correlation from many short segments is corrected at most by this.
const CORRELATION_SHARE_MIN: f64 = 0.2;

/// Steps in which an end of an interval is found; each halves the error.
const HALVINGS: usize = 40;

/// How far the search goes beyond slopes that are all the same, as a share of them.
const EDGE: f64 = 1e-6;

#[cfg(test)]
mod tests;
