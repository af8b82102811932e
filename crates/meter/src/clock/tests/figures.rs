//! The figures of a second program, written in Python with exact fractions from the
//! description at the top of the module.

use std::ops::Range;

use super::*;

/// The exchange that begins `index` times 5 ms after the start, with its times under way out and back. The other clock
/// is 7 s ahead and gains 40 ppm.
fn exchange(index: i64, out_ns: i64, back_ns: i64) -> Exchange {
    let far = |ns: i64| ns + 7_000_000_000 + ns * 40 / 1_000_000;
    let t1_ns = 5_000_000 * index;
    let there_ns = t1_ns + out_ns;
    Exchange {
        t1_ns,
        t2_ns: far(there_ns),
        t3_ns: far(there_ns + 8_000),
        t4_ns: there_ns + 8_000 + back_ns,
    }
}

fn exchanges(of: Range<i64>, under_way: impl Fn(i64) -> (i64, i64)) -> Vec<Exchange> {
    let one = |index| {
        let (out_ns, back_ns) = under_way(index);
        exchange(index, out_ns, back_ns)
    };
    of.map(one).collect()
}

fn uneven() -> Vec<Exchange> {
    exchanges(3..23, |index| {
        let out_ns = 5_000 + index * 37 % 23 * 100;
        (out_ns, 6_000 + index * index * 11 % 29 * 90)
    })
}

/// Thirty exchanges with small delays; those of the window, from 10 to 19, are slow in one direction.
fn one_sided(is_out: bool) -> Vec<Exchange> {
    exchanges(0..30, |index| {
        let (out_ns, back_ns) = (5_000 + index * 7 % 5 * 30, 5_000 + index * 3 % 7 * 20);
        let slow_ns = 40_000 + index * 7 % 11 * 300;
        match ((10..20).contains(&index), is_out) {
            (true, true) => (slow_ns, back_ns),
            (true, false) => (out_ns, slow_ns),
            (false, _) => (out_ns, back_ns),
        }
    })
}

const fn relation(
    far_ns: i64,
    near_ns: i64,
    rigorous_ns: u64,
    assumed_ns: Option<u64>,
) -> Relation {
    Relation {
        far_ns,
        near_ns,
        rigorous_ns,
        assumed_ns,
    }
}

#[test]
fn skews_and_limits_of_a_corridor_are_those_of_all_lines() {
    let all = uneven();
    let corridor = Corridor::of(&all).expect("a line");
    let (least, likely, most) = corridor.skews();
    for (found, due) in [
        (least, -0.000_174_230_933_768_910_68),
        (likely, -0.000_038_498_010_936_101_64),
        (most, 0.000_107_732_628_113_716_67),
    ] {
        assert!((found - due).abs() < 1e-13, "{found} {due}");
    }
    for (far_ns, due) in [
        (
            7_015_007_500,
            (-7_000_007_177.175_455, -6_999_993_747.573_445),
        ),
        (
            7_110_018_300,
            (-7_000_010_301.393_847, -6_999_996_941.412_272),
        ),
        // Before the first exchange.
        (
            6_965_007_500,
            (-7_000_012_563.806_861, -6_999_985_036.026_757),
        ),
    ] {
        let (low, high) = corridor.limits(far_ns);
        assert!((low - due.0).abs() < 1e-5, "{low} {due:?}");
        assert!((high - due.1).abs() < 1e-5, "{high} {due:?}");
    }
}

#[test]
fn relations_are_those_of_a_second_program() {
    let all = uneven();
    let span = Corridor::of(&all).expect("a line");
    let due = [
        relation(7_015_007_500, 15_007_429, 7_108, Some(7_108)),
        relation(7_062_512_900, 62_511_000, 5_852, Some(316)),
        relation(7_110_018_300, 110_014_571, 6_789, Some(6_789)),
    ];
    assert_eq!(relate(&all, &span), Some(due));
    // Eight exchanges are too few for the assumed bound.
    let due = [
        relation(7_015_007_500, 15_007_429, 7_108, None),
        relation(7_032_511_350, 32_510_605, 5_687, None),
        relation(7_050_015_200, 50_013_781, 5_783, None),
    ];
    assert_eq!(relate(&all[..NEXT], &span), Some(due));
    assert_eq!(relate(&[], &span), None);
}

/// A number of 64 bits of floating point is a multiple of 64 or 128 ns there.
#[test]
fn a_clock_that_is_eighteen_years_ahead_is_related_as_exactly() {
    let mut all = uneven();
    let more_ns = 1 << 59;
    for exchange in &mut all {
        exchange.t2_ns += more_ns;
        exchange.t3_ns += more_ns;
    }
    let span = Corridor::of(&all).expect("a line");
    let [_, middle, _] = relate(&all, &span).expect("a window");
    assert_eq!(middle.far_ns, 7_062_512_900 + more_ns);
    assert_eq!((middle.near_ns, middle.assumed_ns), (62_511_000, Some(316)));
}

#[test]
fn a_span_around_the_window_corrects_what_one_slow_direction_pretends() {
    let due = [
        relation(7_050_043_201, 50_036_200, 10_001, Some(2_358)),
        relation(7_072_547_651, 72_539_749, 10_001, Some(792)),
        relation(7_095_052_101, 95_043_299, 10_002, Some(2_358)),
    ];
    let all = one_sided(true);
    let span = Corridor::of(&all).expect("a line");
    assert_eq!(relate(&all[10..20], &span), Some(due));
    let due = [
        relation(7_050_007_000, 50_010_000, 10_002, Some(2_358)),
        relation(7_072_511_945, 72_514_045, 10_002, Some(792)),
        relation(7_095_016_890, 95_018_090, 10_002, Some(2_358)),
    ];
    let all = one_sided(false);
    let span = Corridor::of(&all).expect("a line");
    assert_eq!(relate(&all[10..20], &span), Some(due));
}

#[test]
fn one_exchange_allows_every_rate_that_a_kernel_corrects() {
    let one = exchange(0, 5_000, 6_000);
    let (least, _, most) = Corridor::of(&[one]).expect("a line").skews();
    assert_eq!((least, most), (-0.001, 0.001));
}

#[test]
fn exchanges_without_time_under_way_leave_one_line() {
    let at = |ns| Exchange {
        t1_ns: ns,
        t2_ns: ns,
        t3_ns: ns,
        t4_ns: ns,
    };
    let corridor = Corridor::of(&[at(0)]).expect("the clocks are equal");
    assert_eq!(corridor.limits(0), (0.0, 0.0));
}

#[test]
fn times_under_way_are_those_of_both_directions_and_none_of_stamps_that_no_clocks_show() {
    let of = |t1_ns, t2_ns, t3_ns, t4_ns| {
        let exchange = Exchange {
            t1_ns,
            t2_ns,
            t3_ns,
            t4_ns,
        };
        exchange.under_way_ns()
    };
    assert_eq!(of(100, 7_000, 7_030, 400), Some(270));
    // An answer without time between, and one that took no time under way.
    assert_eq!(of(100, 7_000, 7_000, 400), Some(300));
    assert_eq!(of(100, 7_000, 7_300, 400), Some(0));
    assert_eq!(of(100, 7_000, 7_301, 400), None);
    assert_eq!(of(100, 7_000, 6_999, 400), None);
    let most = 1_i64 << 60;
    assert_eq!(of(0, most, most, 5), Some(5));
    assert_eq!(of(0, -most, -most, 5), Some(5));
    assert_eq!(of(0, most, most + 1, 5), None);
    assert_eq!(of(0, -most - 1, -most, 5), None);
}

#[test]
fn a_window_is_related_with_the_span_of_the_last_windows() {
    let trial = Trial {
        load: 0.5,
        ppm: -180.0,
        seed: 11,
    };
    let windows = CLOCK_SPAN_WINDOWS + 2;
    let all = trial.exchanges(windows * CLOCK_WINDOW_EXCHANGES);
    let mut tracker = Tracker::default();
    for (index, exchange) in (1..).zip(&all) {
        let Some(found) = tracker.note(*exchange) else {
            continue;
        };
        let from = index - CLOCK_WINDOW_EXCHANGES;
        let window = &all[from..index];
        let first = index.saturating_sub(CLOCK_SPAN_WINDOWS * CLOCK_WINDOW_EXCHANGES);
        let span = Corridor::of(&all[first..index]).expect("one rate");
        let [one, middle, last] = relate(window, &span).expect("a window");
        assert_eq!((found.relation, found.ends), (middle, [one, last]));
        // A clock on which the other gains by the slope `s` gains `1 / (1 + s) - 1` on the other.
        let gain_ppm = |slope: f64| (1.0 / (1.0 + slope) - 1.0) * 1e6;
        let (least, likely, most) = span.skews();
        for (found, due) in [
            (found.skew_ppm.0, gain_ppm(most)),
            (found.skew_ppm.1, gain_ppm(likely)),
            (found.skew_ppm.2, gain_ppm(least)),
        ] {
            assert!((found - due).abs() < 1e-6, "{found} {due}");
        }
        let under_way = window.iter().filter_map(Exchange::under_way_ns);
        assert_eq!(Some(found.round_trip_ns), under_way.min());
        assert_eq!(found.exchanges as usize, CLOCK_WINDOW_EXCHANGES);
        assert_eq!(found.follows, from > 0);
        assert_eq!(tracker.kept(), index - first);
    }
}

#[test]
fn an_error_that_all_bounds_have_widens_all_relations_of_a_window() {
    let mut window = Window {
        relation: relation(1, 2, 30, Some(20)),
        ends: [relation(0, 1, 40, None), relation(2, 3, u64::MAX, Some(50))],
        skew_ppm: (0.0, 0.0, 0.0),
        round_trip_ns: 7,
        exchanges: 128,
        follows: false,
    };
    window.widen(5);
    assert_eq!(window.relation, relation(1, 2, 35, Some(25)));
    assert_eq!(
        window.ends,
        [relation(0, 1, 45, None), relation(2, 3, u64::MAX, Some(55))]
    );
    assert_eq!(window.round_trip_ns, 7);
}
