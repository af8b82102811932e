//! Clocks whose offset, skew and delays are known.

use super::*;
use crate::limits::{CLOCK_SPAN_WINDOWS, CLOCK_WINDOW_EXCHANGES};

mod figures;

struct Chance(u64);

impl Chance {
    fn even(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -self.even().ln() * mean
    }
}

/// The clocks and the line of a trial. The other clock is `OFFSET_NS` ahead at 0.
#[derive(Clone, Copy, Debug)]
struct Trial {
    /// Load of the line in the direction of the questions.
    load: f64,
    /// By how much the other clock gains.
    ppm: f64,
    seed: u64,
}

const OFFSET_NS: f64 = 7.0e12;

impl Trial {
    fn far(&self, near_ns: f64) -> i64 {
        (near_ns + OFFSET_NS + near_ns * self.ppm * 1e-6) as i64
    }

    fn near(&self, far_ns: i64) -> f64 {
        (far_ns as f64 - OFFSET_NS) / (1.0 + self.ppm * 1e-6)
    }

    /// 200 exchanges a second over a line of 100 Mbit/s. Each stamp is late by about 1 us.
    fn exchanges(&self, count: usize) -> Vec<Exchange> {
        let mut chance = Chance(self.seed);
        let (service, noise) = (123_040.0, 1_000.0);
        let (mut now, mut backlog, mut last, mut next_load) = (0.0, 0.0_f64, 0.0, 0.0);
        let mut all = Vec::new();
        for _ in 0..count {
            now += chance.exponential(5e6);
            while self.load > 0.0 && next_load < now {
                backlog = (backlog - (next_load - last)).max(0.0) + service;
                last = next_load;
                next_load += chance.exponential(service / self.load);
            }
            backlog = (backlog - (now - last)).max(0.0);
            last = now;
            let out = 5_000.0 + backlog + chance.exponential(noise);
            let back = 5_000.0 + chance.exponential(noise);
            let turn = now + out + 8_000.0;
            all.push(Exchange {
                t1_ns: now as i64,
                t2_ns: self.far(now + out),
                t3_ns: self.far(turn),
                t4_ns: (turn + back) as i64,
            });
        }
        all
    }
}

/// Returns the windows, with the error of each.
fn tracked(trial: Trial, count: usize) -> Vec<(Window, f64)> {
    let mut tracker = Tracker::default();
    let windows = trial.exchanges(count).into_iter();
    let windows: Vec<Window> = windows.filter_map(|one| tracker.note(one)).collect();
    assert_eq!((tracker.impossible(), tracker.breaks()), (0, 0));
    assert!(tracker.kept() <= (CLOCK_SPAN_WINDOWS + 1) * CLOCK_WINDOW_EXCHANGES);
    let error = |window: &Window| {
        let at = window.relation;
        (at.near_ns as f64 - trial.near(at.far_ns)).abs()
    };
    windows
        .iter()
        .map(|window| (*window, error(window)))
        .collect()
}

#[test]
fn a_known_offset_and_skew_are_found_within_1_us_under_load_in_one_direction() {
    for load in [0.0, 0.5, 0.9] {
        let (mut outside, mut all) = (0, 0);
        for ppm in [0.0, 23.0, -180.0] {
            for seed in 1..6 {
                let trial = Trial { load, ppm, seed };
                let windows = tracked(trial, 38 * CLOCK_WINDOW_EXCHANGES);
                assert_eq!(windows.len(), 38);
                for (window, error) in &windows {
                    for at in window.ends {
                        let error = (at.near_ns as f64 - trial.near(at.far_ns)).abs();
                        assert!(error <= at.rigorous_ns as f64, "{error} {window:?}");
                    }
                    let Relation {
                        rigorous_ns,
                        assumed_ns,
                        ..
                    } = window.relation;
                    assert!(*error <= rigorous_ns as f64, "{error} {window:?}");
                    all += 1;
                    outside += usize::from(*error > assumed_ns.expect("enough") as f64);
                    let (least, _, most) = window.skew_ppm;
                    assert!(least <= ppm && ppm <= most, "{trial:?} {window:?}");
                }
                let squares: f64 = windows.iter().map(|(_, error)| error * error).sum();
                let rms = (squares / windows.len() as f64).sqrt();
                assert!(rms < 1_000.0, "{trial:?}: {rms} ns");
                let (last, _) = windows.last().expect("38");
                assert!((last.skew_ppm.1 - ppm).abs() < 1.0, "{trial:?} {last:?}");
                assert!(last.relation.rigorous_ns < 10_000, "{trial:?} {last:?}");
            }
        }
        // The assumption holds here, so its bound may fail in one of twenty.
        assert!(outside * 20 <= all, "load {load}: {outside} of {all}");
    }
}

#[test]
fn one_direction_that_takes_longer_deceives_the_assumed_bound_and_not_the_rigorous_one() {
    let trial = Trial {
        load: 0.0,
        ppm: 23.0,
        seed: 9,
    };
    let mut tracker = Tracker::default();
    let mut outside = 0;
    for mut exchange in trial.exchanges(10 * CLOCK_WINDOW_EXCHANGES) {
        exchange.t1_ns -= 100_000;
        let Some(window) = tracker.note(exchange) else {
            continue;
        };
        let at = window.relation;
        let error = (at.near_ns as f64 - trial.near(at.far_ns)).abs();
        assert!(error <= at.rigorous_ns as f64, "{error} {window:?}");
        outside += usize::from(error > at.assumed_ns.expect("enough") as f64);
        assert!(
            (window.round_trip_ns as i64 - 110_000).abs() < 2_000,
            "{window:?}"
        );
    }
    assert_eq!(outside, 10);
}

#[test]
fn a_clock_that_jumps_or_changes_its_rate_breaks_the_span_and_is_followed() {
    let trial = Trial {
        load: 0.0,
        ppm: 10.0,
        seed: 3,
    };
    let mut all = trial.exchanges(6 * CLOCK_WINDOW_EXCHANGES);
    assert!(Corridor::of(&all).is_some());
    let jump_ns = 5_000_000;
    for of in &mut all[3 * CLOCK_WINDOW_EXCHANGES..] {
        of.t2_ns += jump_ns;
        of.t3_ns += jump_ns;
    }
    assert!(Corridor::of(&all).is_none());
    assert!(Corridor::of(&[]).is_none());
    let mut tracker = Tracker::default();
    let windows: Vec<Window> = all
        .into_iter()
        .filter_map(|one| tracker.note(one))
        .collect();
    assert_eq!((windows.len(), tracker.breaks()), (6, 1));
    // The first has none before it, and no rate explains the jump.
    let follows: Vec<bool> = windows.iter().map(|window| window.follows).collect();
    assert_eq!(follows, [false, true, true, false, true, true]);
    let last = windows[5].relation;
    let error = last.near_ns as f64 - trial.near(last.far_ns - jump_ns);
    assert!(error.abs() < 2_000.0, "{error}");
}

#[test]
fn stamps_that_no_clocks_can_show_are_counted_and_take_part_in_nothing() {
    let mut tracker = Tracker::default();
    let far = [
        (i64::MAX, i64::MIN),
        (i64::MIN, i64::MAX),
        (5, 4),
        (0, 2_000),
        (1 << 61, (1 << 61) + 1),
        (i64::MAX, i64::MAX),
    ];
    for (t2_ns, t3_ns) in far.into_iter().cycle().take(6_000) {
        let exchange = Exchange {
            t1_ns: 0,
            t2_ns,
            t3_ns,
            t4_ns: 1_000,
        };
        assert_eq!(tracker.note(exchange), None);
    }
    assert_eq!(tracker.impossible(), 6_000);
    assert_eq!(tracker.finish(), None);
}

#[test]
fn contradictions_in_each_window_give_no_relation_and_keep_no_memory() {
    let mut tracker = Tracker::default();
    for index in 0..50_000_i64 {
        // Now an hour ahead, now an hour behind.
        let ahead_ns = if index % 2 == 0 {
            3_600_000_000_000
        } else {
            -3_600_000_000_000
        };
        let t1_ns = index * 5_000_000;
        let exchange = Exchange {
            t1_ns,
            t2_ns: t1_ns + ahead_ns + 1,
            t3_ns: t1_ns + ahead_ns + 2,
            t4_ns: t1_ns + 10,
        };
        assert_eq!(tracker.note(exchange), None);
        assert!(tracker.kept() <= (CLOCK_SPAN_WINDOWS + 1) * CLOCK_WINDOW_EXCHANGES);
    }
    assert_eq!(tracker.breaks(), 50_000 / CLOCK_WINDOW_EXCHANGES as u64);
}

#[test]
fn a_last_window_of_few_exchanges_tells_nothing() {
    let all = Trial {
        load: 0.0,
        ppm: 0.0,
        seed: 4,
    }
    .exchanges(NEXT + 1);
    for (count, tells) in [(NEXT, false), (NEXT + 1, true)] {
        let mut tracker = Tracker::default();
        for exchange in &all[..count] {
            assert_eq!(tracker.note(*exchange), None);
        }
        assert_eq!(tracker.finish().is_some(), tells);
        assert_eq!(tracker.finish(), None);
    }
}
