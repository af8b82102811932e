//! Wrong verdicts at the edge of the allowance, power, steps, segments and outliers.

use super::*;
use crate::statistics::noise::depending;
use crate::statistics::simulated::{Random, Wrong};

const RUNS: u32 = 300;

/// One point a second around 1,000, with the noise and `growth` over all segments; each begins at the level again.
fn series(
    shape: (usize, usize),
    kept: f64,
    growth: f64,
    random: &mut Random,
) -> Vec<Vec<(f64, f64)>> {
    let (segments, count) = shape;
    let time_s = (segments * count) as f64;
    (0..segments)
        .map(|segment| {
            let noise = depending(kept, count, random);
            let from = (segment * count) as f64;
            let point = |(index, noise): (usize, f64)| {
                let grown = growth * index as f64 / time_s;
                (from + index as f64, 1_000.0 + grown + noise)
            };
            noise.into_iter().enumerate().map(point).collect()
        })
        .collect()
}

fn time_s(shape: (usize, usize)) -> f64 {
    (shape.0 * shape.1) as f64
}

/// Counts verdicts at one growth and allowance.
fn simulated(shape: (usize, usize), kept: f64, growth: f64, allowed: f64) -> Wrong {
    let mut random = Random::new(5);
    let mut wrong = Wrong {
        runs: RUNS,
        ..Wrong::default()
    };
    for _ in 0..RUNS {
        let trend = Trend::of(&series(shape, kept, growth, &mut random)).expect("enough points");
        let judged = judge_trends(&[(&trend, allowed)], time_s(shape))[0];
        wrong.pass += u32::from(judged.kind == VerdictKind::Pass);
        wrong.fail += u32::from(judged.kind == VerdictKind::Fail);
    }
    wrong
}

#[test]
fn at_the_edge_of_the_allowance_either_verdict_is_wrong_in_at_most_5_percent_of_series() {
    for shape in [(1, 40), (1, 100), (1, 600), (4, 80)] {
        for kept in [0.0, 0.8] {
            let wrong = simulated(shape, kept, 3.0, 3.0);
            assert!(wrong.is_sound(), "{shape:?}, {kept}: {wrong:?}");
        }
    }
}

#[test]
fn of_twenty_series_without_growth_one_fails_in_at_most_5_percent_of_runs() {
    let mut random = Random::new(6);
    let shape = (1, 100);
    let mut wrong = Wrong {
        runs: 100,
        ..Wrong::default()
    };
    for run in 0..wrong.runs {
        let kept = if run % 2 == 0 { 0.0 } else { 0.5 };
        let all: Vec<Trend> = (0..20)
            .filter_map(|_| Trend::of(&series(shape, kept, 0.0, &mut random)))
            .collect();
        let pairs: Vec<(&Trend, f64)> = all.iter().map(|trend| (trend, 0.0)).collect();
        let judged = judge_trends(&pairs, time_s(shape));
        let is_fail = |one: &Judged| one.kind == VerdictKind::Fail;
        wrong.fail += u32::from(judged.iter().any(is_fail));
    }
    assert!(wrong.is_sound(), "{wrong:?}");
}

#[test]
fn a_leak_of_some_deviations_beyond_the_allowance_fails_and_none_passes() {
    for (shape, kept, growth) in [
        ((1, 100), 0.0, 6.0),
        ((1, 600), 0.8, 7.0),
        ((4, 80), 0.0, 12.0),
    ] {
        let leak = simulated(shape, kept, growth, 2.0);
        assert!(leak.fail > RUNS * 9 / 10, "{shape:?}, {kept}: {leak:?}");
        let none = simulated(shape, kept, 0.0, growth - 2.0);
        assert!(none.pass > RUNS * 9 / 10, "{shape:?}, {kept}: {none:?}");
    }
}

#[test]
fn the_slope_and_its_ends_are_those_of_a_line() {
    let line: Vec<(f64, f64)> = (0..60)
        .map(|n| (f64::from(n), 7.0 + 0.5 * f64::from(n)))
        .collect();
    let trend = Trend::of(&[line]).expect("enough points");
    assert!((trend.slope() - 0.5).abs() < 1e-9, "{trend:?}");
    assert!((trend.level() - 21.75).abs() < 1e-9, "{trend:?}");
    let (low, high) = trend.ends(0.05);
    assert!(
        (low - 0.5).abs() < 1e-5 && (high - 0.5).abs() < 1e-5,
        "{low} {high}"
    );
    let judged = judge_trends(&[(&trend, 29.0), (&trend, 31.0)], 60.0);
    assert_eq!(judged[0].kind, VerdictKind::Fail);
    assert_eq!(judged[1].kind, VerdictKind::Pass);
    for one in judged {
        for growth in [one.growth_low, one.growth, one.growth_high] {
            assert!((growth - 30.0).abs() < 1e-3, "{one:?}");
        }
        // One that does not FAIL has the level of the strictest of two tests.
        assert!((one.level - 0.025).abs() < 1e-9, "{one:?}");
    }
}

/// The verdict on whole numbers, one a second, where `allowed` more are allowed.
fn kind_of(value: impl Fn(u32) -> u32, allowed: f64) -> VerdictKind {
    let points = (0..200)
        .map(|n| (f64::from(n), f64::from(value(n))))
        .collect();
    let trend = Trend::of(&[points]).expect("enough points");
    judge_trends(&[(&trend, allowed)], 200.0)[0].kind
}

#[test]
fn one_step_is_no_trend_and_a_staircase_is_one() {
    assert_eq!(kind_of(|_| 12, 1.0), VerdictKind::Pass);
    for at in [20, 60, 100, 140, 180] {
        let kind = kind_of(|n| 12 + u32::from(n >= at), 2.0);
        assert_ne!(kind, VerdictKind::Fail, "a step at {at}");
    }
    assert_eq!(kind_of(|n| 12 + n / 30, 2.0), VerdictKind::Fail);
    assert_eq!(kind_of(|n| 42 - n / 30, 2.0), VerdictKind::Pass);
}

#[test]
fn outliers_and_the_levels_of_segments_make_no_trend() {
    // A tenth of the points is a hundred times as high, more of them towards the end.
    let outliers = |n: u32| if n % 10 == 9 { 12 * n } else { 12 + n % 2 };
    assert_eq!(kind_of(outliers, 2.0), VerdictKind::Pass);
    // Each segment begins a hundred higher than the one before, and grows by nothing.
    let segment =
        |at: u32| (0..50).map(move |n| (f64::from(50 * at + n), f64::from(100 * at + n % 3)));
    let segments: Vec<Vec<(f64, f64)>> = (0..4).map(|at| segment(at).collect()).collect();
    let trend = Trend::of(&segments).expect("enough points");
    let judged = judge_trends(&[(&trend, 2.0)], 200.0)[0];
    assert_ne!(judged.kind, VerdictKind::Fail, "{judged:?}");
    let whole: Vec<(f64, f64)> = segments.concat();
    let trend = Trend::of(&[whole]).expect("enough points");
    let judged = judge_trends(&[(&trend, 2.0)], 200.0)[0];
    assert_eq!(judged.kind, VerdictKind::Fail, "the same without segments");
}

#[test]
fn few_points_or_only_short_segments_have_no_trend() {
    let points = |count: u32| (0..count).map(|n| (f64::from(n), 1.0)).collect::<Vec<_>>();
    assert_eq!(Trend::of(&[]), None);
    assert_eq!(Trend::of(&[points(39)]), None);
    assert!(Trend::of(&[points(40)]).is_some());
    let short: Vec<Vec<(f64, f64)>> = (0..20).map(|_| points(2)).collect();
    assert_eq!(Trend::of(&short), None);
}

#[test]
fn many_short_segments_have_four_blocks_each() {
    let segment = |at: u32| -> Vec<(f64, f64)> {
        let points = (0..20).map(|n| f64::from(20 * at + n));
        points.map(|at_s| (at_s, 0.5 * at_s)).collect()
    };
    let segments: Vec<Vec<(f64, f64)>> = (0..8).map(segment).collect();
    let trend = Trend::of(&segments).expect("32 blocks of five points");
    assert!((trend.slope() - 0.5).abs() < 1e-9, "{trend:?}");
    // Of 32 blocks, eight levels and a slope.
    assert_eq!(trend.freedom, 23.0);
}

#[test]
fn blocks_that_are_all_equal_rise_by_nothing_for_certain() {
    let level: Vec<(f64, f64)> = (0..60).map(|n| (f64::from(n), 7.0)).collect();
    let trend = Trend::of(&[level]).expect("enough points");
    assert_eq!((trend.slope(), trend.error), (0.0, 0.0));
    let chances = [-0.1, 0.0, 0.1].map(|slope| trend.chance_at(slope));
    assert_eq!(chances, [0.0, 1.0, 1.0]);
}

#[test]
fn eight_blocks_are_enough_and_seven_are_not() {
    // Blocks of three points; segments with fewer than three blocks are left out.
    let of = |lengths: [u32; 4]| {
        let segment = |length: u32| (0..length).map(|n| (f64::from(n), f64::from(n % 2)));
        let segments = lengths.map(|length| segment(length).collect());
        Trend::of(&segments)
    };
    assert!(of([14, 14, 6, 6]).is_some());
    assert!(of([14, 11, 8, 7]).is_none());
}

#[test]
fn the_ends_are_as_far_below_the_slope_as_above_it() {
    let noise = (0..60).map(|n| (f64::from(n), f64::from(n * 7 % 11)));
    let trend = Trend::of(&[noise.collect()]).expect("enough points");
    let (low, high) = trend.ends(0.05);
    assert!(low < trend.slope() && trend.slope() < high, "{low} {high}");
    assert!((f64::midpoint(low, high) - trend.slope()).abs() < 1e-12);
}

/// A segment that begins at a time, with a wave of that length.
fn wave((from, count): (i32, i32), length: i32, more: impl Fn(i32) -> i32) -> Vec<(f64, f64)> {
    let value = |n: i32| 20 - (n % length - length / 2).abs() + more(n);
    let points = (0..count).map(|n| (f64::from(from + n), f64::from(value(n))));
    points.collect()
}

/// The figures of a second program, written in Python from the description at the top of this module.
#[test]
fn slopes_and_their_errors_are_those_of_a_second_program() {
    let one = |length| vec![wave((0, 67), length, |n| n * 5 % 13)];
    let two = vec![
        wave((0, 43), 24, |n| n * 3 % 7 + n / 4),
        wave((50, 31), 21, |n| 90 + n * 5 % 7),
        // One block is no segment.
        wave((90, 5), 3, |n| n),
    ];
    for (segments, [level, slope, error]) in [
        // Neighbours are correlated by 0.67, and by more than is corrected for.
        (
            one(28),
            [19.0, -0.035_164_835_164_835_16, 0.128_254_502_779_496_3],
        ),
        (
            one(40),
            [17.0, 0.035_164_835_164_835_165, 0.558_014_380_211_572_5],
        ),
        // Of two segments by 0.82.
        (
            two,
            [27.0, 0.198_319_327_731_092_43, 0.301_301_735_416_350_9],
        ),
    ] {
        let trend = Trend::of(&segments).expect("enough points");
        let found = [trend.level, trend.slope, trend.error];
        for (found, due) in found.into_iter().zip([level, slope, error]) {
            assert!((found - due).abs() < 1e-12 * due.abs(), "{trend:?}");
        }
        assert_eq!(trend.freedom, 11.0);
    }
}
