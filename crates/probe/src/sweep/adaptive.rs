//! Which sizes an adaptive sweep measures next: those between neighbours that differ by more than their error bars.
//!
//! A step between two sizes stays as high when the sizes come closer, and a slope does not. The intervals with the
//! greatest difference come first, so that the points gather at the steps.

use std::collections::BTreeMap;

/// One curve: mean and standard deviation by size.
pub(super) type Curve = BTreeMap<u32, (f64, f64)>;

/// The sizes to be measured next, at most `points` in all. None is left if no neighbours differ, or all are adjacent.
///
/// `grid` has all sizes in ascending order. A size that a curve lacks counts as measured if `is_measured` has it.
pub(super) fn next_sizes(
    grid: &[u32],
    curves: &[Curve],
    points: usize,
    is_measured: impl Fn(u32) -> bool,
) -> Vec<u32> {
    let measured: Vec<usize> = (0..grid.len())
        .filter(|at| is_measured(grid[*at]))
        .collect();
    let first: Vec<u32> = coarse(grid.len(), points)
        .map(|at| grid[at])
        .filter(|size| !is_measured(*size))
        .collect();
    if !first.is_empty() {
        return first;
    }
    let mut intervals: Vec<(f64, usize)> = measured
        .windows(2)
        .filter(|pair| pair[1] - pair[0] > 1)
        .filter_map(|pair| {
            let excess = excess(curves, grid[pair[0]], grid[pair[1]]);
            (excess > 0.0).then_some((excess, usize::midpoint(pair[0], pair[1])))
        })
        .collect();
    intervals.sort_by(|one, other| other.0.total_cmp(&one.0));
    let room = points.saturating_sub(measured.len()).min(BATCH);
    let best = intervals.iter().take(room);
    best.map(|(_, at)| grid[*at]).collect()
}

/// The places of the first sizes: evenly over the grid, both ends among them.
fn coarse(count: usize, points: usize) -> impl Iterator<Item = usize> {
    let first = COARSE.min(points).min(count).max(1);
    let spread = move |place: usize| match first {
        1 => 0,
        _ => place * (count - 1) / (first - 1),
    };
    (0..first).map(spread)
}

/// By how much more than their error bars two points differ, as a share of the curve's greatest value. That of the
/// curve that differs most.
fn excess(curves: &[Curve], low: u32, high: u32) -> f64 {
    let of = |curve: &Curve| {
        let (one, other) = (curve.get(&low)?, curve.get(&high)?);
        let scale = curve.values().map(|point| point.0.abs());
        let scale = scale.fold(f64::MIN_POSITIVE, f64::max);
        Some(((one.0 - other.0).abs() - one.1 - other.1) / scale)
    };
    curves.iter().filter_map(of).fold(0.0, f64::max)
}

/// Sizes that are measured first.
const COARSE: usize = 17;

/// Sizes that are chosen together. Their order is random.
const BATCH: usize = 8;

#[cfg(test)]
mod tests {
    use deckwatch_meter::statistics::simulated::Random;

    use super::*;

    const MTU_PAYLOAD: u32 = 1_472;

    /// A transaction over Ethernet: some time for each message, octet and packet, and noise.
    fn cost_ns(size: u32, random: &mut Random) -> f64 {
        let packets = size.div_ceil(MTU_PAYLOAD);
        let noise = random.below(400) as f64 - 200.0;
        20_000.0 + 2.0 * f64::from(size) + 6_000.0 * f64::from(packets) + noise
    }

    fn measure(grid: &[u32], points: usize) -> Curve {
        let mut random = Random::new(7);
        let mut curve = Curve::new();
        loop {
            let curves = [curve.clone()];
            let next = next_sizes(grid, &curves, points, |size| curves[0].contains_key(&size));
            if next.is_empty() {
                return curve;
            }
            for size in next {
                let values: Vec<f64> = (0..5).map(|_| cost_ns(size, &mut random)).collect();
                let spread = deckwatch_meter::metrics::Spread::of(&values).expect("values");
                let deviation = spread.variance.unwrap_or_default().sqrt();
                let before = curve.insert(size, (spread.mean, deviation));
                assert_eq!(before, None, "{size} is measured once");
            }
        }
    }

    #[test]
    fn the_steps_at_multiples_of_the_mtu_are_found_with_a_tenth_of_the_points() {
        let grid: Vec<u32> = (16..=16_384).step_by(16).collect();
        let points = grid.len() / 10;
        let curve = measure(&grid, points);
        assert!(curve.len() <= points, "{} of {points}", curve.len());
        let steps = (1..).map(|packets| packets * MTU_PAYLOAD);
        let steps: Vec<u32> = steps.take_while(|step| *step < 16_384).collect();
        assert_eq!(steps.len(), 11);
        for step in steps {
            // The last size of as many packets, and the first of one more.
            assert!(curve.contains_key(&step), "{step}: {:?}", curve.keys());
            assert!(
                curve.contains_key(&(step + 16)),
                "{step}: {:?}",
                curve.keys()
            );
        }
    }

    #[test]
    fn a_flat_curve_needs_no_more_than_the_first_points() {
        let grid: Vec<u32> = (16..=16_384).step_by(16).collect();
        let first = next_sizes(&grid, &[], 100, |_| false);
        assert_eq!((first.len(), first[0], first[16]), (17, 16, 16_384));
        let flat: Curve = first.iter().map(|size| (*size, (5.0, 0.1))).collect();
        let curves = [flat];
        let next = next_sizes(&grid, &curves, 100, |size| curves[0].contains_key(&size));
        assert!(next.is_empty(), "{next:?}");
    }

    #[test]
    fn few_sizes_are_all_measured_and_a_budget_is_kept() {
        assert_eq!(next_sizes(&[16, 32, 48], &[], 9, |_| false), [16, 32, 48]);
        assert_eq!(next_sizes(&[16, 32, 48], &[], 2, |_| false), [16, 48]);
        assert_eq!(next_sizes(&[16], &[], 9, |_| false), [16]);
    }

    #[test]
    fn the_greatest_step_is_a_share_of_its_own_curve() {
        // A step of 10 of at most 20, and one of 100 of at most 1,000.
        let small = Curve::from([(1, (0.0, 0.0)), (5, (10.0, 0.0)), (9, (20.0, 0.0))]);
        let large = Curve::from([(1, (900.0, 0.0)), (5, (1_000.0, 0.0))]);
        let both = [large, small];
        assert_eq!(excess(&both, 1, 5), 0.5);
        assert_eq!(excess(&both[..1], 1, 5), 0.1);
        assert_eq!(
            excess(&both, 5, 9),
            0.5,
            "a curve without a size is left out"
        );
    }

    #[test]
    fn a_step_counts_beyond_the_error_bars_of_both_ends() {
        let curve = |bars: f64| [Curve::from([(1, (0.0, bars)), (5, (8.0, 1.0))])];
        assert_eq!(excess(&curve(3.0), 1, 5), 0.5);
        assert_eq!(excess(&curve(7.0), 1, 5), 0.0);
        assert_eq!(excess(&curve(9.0), 1, 5), 0.0);
    }
}
