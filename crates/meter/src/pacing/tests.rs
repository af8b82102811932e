//! Due times, and the statistics of the exponential gaps.

use super::*;

fn schedule(arrivals: Arrivals, extent: Extent) -> Schedule {
    Schedule {
        start_ns: 5_000,
        offset: Duration::from_nanos(7),
        arrivals,
        extent,
        warm_up: 3,
    }
}

fn poisson(seed: u64, mean_ns: u64, messages: u64) -> Vec<i64> {
    let arrivals = Arrivals::Poisson {
        mean_period: Duration::from_nanos(mean_ns),
        seed,
    };
    let schedule = Schedule {
        start_ns: 0,
        offset: Duration::ZERO,
        arrivals,
        extent: Extent::Count { messages },
        warm_up: 0,
    };
    schedule.dues().map(|due| due.due_ns).collect()
}

fn gaps(dues: &[i64]) -> Vec<f64> {
    std::iter::once(&0)
        .chain(dues)
        .zip(dues)
        .map(|(before, due)| (due - before) as f64)
        .collect()
}

#[test]
fn periodic_messages_are_due_at_multiples_of_the_period_after_start_and_offset() {
    let schedule = schedule(
        Arrivals::Periodic {
            period: Duration::from_millis(50),
        },
        Extent::Count { messages: 2 },
    );
    let dues: Vec<_> = schedule.dues().collect();
    assert_eq!(
        dues.iter().map(|due| due.due_ns).collect::<Vec<_>>(),
        [5_007, 50_005_007, 100_005_007, 150_005_007, 200_005_007]
    );
    assert_eq!(
        dues.iter().map(|due| due.warm_up).collect::<Vec<_>>(),
        [true, true, true, false, false]
    );
    assert!(
        dues.iter()
            .zip(0..)
            .all(|(due, sequence)| due.sequence == sequence)
    );
}

#[test]
fn a_duration_takes_what_is_due_before_its_end() {
    for (duration_ms, judged) in [(0, 1), (1, 1), (50, 1), (51, 2), (100, 2), (20_000, 400)] {
        let extent = Extent::Duration {
            duration: Duration::from_millis(duration_ms),
        };
        let schedule = schedule(
            Arrivals::Periodic {
                period: Duration::from_millis(50),
            },
            extent,
        );
        assert_eq!(schedule.dues().count(), 3 + judged, "{duration_ms} ms");
        assert_eq!(schedule.expected_messages(), (3 + judged) as f64);
    }
}

#[test]
fn bursts_keep_their_gap_inside_and_their_period_between() {
    let arrivals = Arrivals::Bursts {
        period: Duration::from_nanos(1_000),
        size: 3,
        gap: Duration::from_nanos(10),
    };
    let schedule = schedule(arrivals, Extent::Count { messages: 4 });
    assert_eq!(
        schedule
            .dues()
            .map(|due| due.due_ns - 5_007)
            .collect::<Vec<_>>(),
        [0, 10, 20, 1_000, 1_010, 1_020, 2_000]
    );
}

#[test]
fn expected_messages_of_bursts_over_a_duration_are_those_that_come() {
    for gap in [0, 10] {
        for warm_up in [0, 1, 2, 3, 5] {
            for duration in [
                0, 1, 9, 10, 11, 20, 21, 979, 980, 990, 999, 1_000, 1_001, 2_015,
            ] {
                let arrivals = Arrivals::Bursts {
                    period: Duration::from_nanos(1_000),
                    size: 3,
                    gap: Duration::from_nanos(gap),
                };
                let extent = Extent::Duration {
                    duration: Duration::from_nanos(duration),
                };
                let schedule = Schedule {
                    start_ns: 0,
                    offset: Duration::ZERO,
                    arrivals,
                    extent,
                    warm_up,
                };
                assert_eq!(
                    schedule.expected_messages(),
                    schedule.dues().count() as f64,
                    "gap {gap}, warm-up {warm_up}, duration {duration}"
                );
            }
        }
    }
}

#[test]
fn poisson_schedule_is_the_same_each_time_and_another_for_another_seed() {
    assert_eq!(poisson(1, 1_000_000, 1_000), poisson(1, 1_000_000, 1_000));
    assert_ne!(poisson(1, 1_000_000, 1_000), poisson(2, 1_000_000, 1_000));
}

#[test]
fn poisson_schedule_never_changes_between_versions() {
    // The values are fixed: a supplier and a judge of different builds must agree.
    assert_eq!(poisson(42, 1_000_000, 5), PINNED);
}

const PINNED: [i64; 5] = [561_097, 1_035_278, 3_414_048, 3_467_131, 4_337_439];

#[test]
fn poisson_gaps_have_the_mean_variance_and_distribution_of_an_exponential() {
    let n = 200_000;
    let gaps = gaps(&poisson(7, 1_000_000, n));
    let mean = gaps.iter().sum::<f64>() / n as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n as f64;
    // Four standard errors: 1/sqrt(n) for the mean, sqrt(8/n) for the variance of an exponential distribution.
    assert!(
        (mean / 1e6 - 1.0).abs() < 4.0 / (n as f64).sqrt(),
        "mean {mean}"
    );
    assert!(
        (variance / 1e12 - 1.0).abs() < 4.0 * (8.0 / n as f64).sqrt(),
        "variance {variance}"
    );
    // Kolmogorov-Smirnov test at 0.1%: 1.95/sqrt(n).
    let mut sorted = gaps;
    sorted.sort_by(f64::total_cmp);
    let distance = sorted
        .iter()
        .zip(0..)
        .map(|(gap, rank)| ((1.0 - (-gap / 1e6).exp()) - f64::from(rank) / n as f64).abs())
        .fold(0.0, f64::max);
    assert!(distance < 1.95 / (n as f64).sqrt(), "distance {distance}");
}

#[test]
fn poisson_gaps_are_independent_and_counts_of_equal_intervals_vary_as_their_mean() {
    let n = 200_000;
    let dues = poisson(11, 1_000_000, n);
    let gaps = gaps(&dues);
    for lag in [1, 2, 5] {
        let correlation = gaps
            .iter()
            .zip(&gaps[lag..])
            .map(|(a, b)| (a - 1e6) * (b - 1e6))
            .sum::<f64>()
            / (n as f64 * 1e12);
        assert!(
            correlation.abs() < 4.0 / (n as f64).sqrt(),
            "lag {lag}: {correlation}"
        );
    }
    let mut counts =
        vec![0.0_f64; usize::try_from(dues[dues.len() - 1] / 10_000_000).expect("positive")];
    for due in &dues {
        if let Some(count) = counts.get_mut(usize::try_from(due / 10_000_000).expect("positive")) {
            *count += 1.0;
        }
    }
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    let dispersion = counts
        .iter()
        .map(|count| (count - mean).powi(2))
        .sum::<f64>()
        / (mean * counts.len() as f64);
    assert!(
        (dispersion - 1.0).abs() < 4.0 * (2.0 / counts.len() as f64).sqrt(),
        "index of dispersion {dispersion}"
    );
}

#[test]
fn poisson_over_a_duration_ends_before_it_and_near_its_expectation() {
    let extent = Extent::Duration {
        duration: Duration::from_secs(100),
    };
    let schedule = schedule(
        Arrivals::Poisson {
            mean_period: Duration::from_millis(1),
            seed: 3,
        },
        extent,
    );
    let dues: Vec<_> = schedule.dues().collect();
    let first_judged = dues[3].due_ns;
    assert!(dues[dues.len() - 1].due_ns < first_judged + 100_000_000_000);
    assert!((dues.len() as f64 - schedule.expected_messages()).abs() < 4.0 * 100_000_f64.sqrt());
}

#[test]
fn an_ended_iterator_stays_ended() {
    let extent = Extent::Duration {
        duration: Duration::from_millis(60),
    };
    let mut dues = schedule(
        Arrivals::Periodic {
            period: Duration::from_millis(50),
        },
        extent,
    )
    .dues();
    assert_eq!(dues.by_ref().count(), 5);
    assert_eq!((dues.next(), dues.next()), (None, None));
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn assert_refused(arrivals: Arrivals, extent: Extent, error: ScheduleError) {
    let schedule = schedule(arrivals, extent);
    assert_eq!(schedule.check(), Err(error), "{schedule:?}");
    // Iterating an unchecked schedule must not panic either.
    assert!(schedule.dues().take(10).count() <= 10);
}

#[test]
fn unsound_arrivals_are_refused_by_name() {
    let count = Extent::Count { messages: 10 };
    let bursts = |period, size, gap| Arrivals::Bursts {
        period: ms(period),
        size,
        gap: ms(gap),
    };
    assert_refused(
        Arrivals::Periodic { period: ms(0) },
        count,
        ScheduleError::PeriodZero,
    );
    assert_refused(
        Arrivals::Poisson {
            mean_period: ms(0),
            seed: 0,
        },
        count,
        ScheduleError::PeriodZero,
    );
    assert_refused(bursts(1, 0, 0), count, ScheduleError::BurstEmpty);
    assert_refused(bursts(2, 3, 1), count, ScheduleError::BurstsOverlap);
    assert_eq!(schedule(bursts(2, 2, 1), count).check(), Ok(()));
}

#[test]
fn unsound_extents_are_refused_by_name() {
    let every = |period| Arrivals::Periodic { period };
    let count = |messages| Extent::Count { messages };
    assert_refused(every(ms(1)), count(0), ScheduleError::NothingToJudge);
    assert_refused(
        every(ms(1)),
        count(u64::MAX),
        ScheduleError::TooManyMessages,
    );
    assert_refused(every(ms(60_000)), count(100_000), ScheduleError::TooLong);
    assert_refused(
        every(Duration::MAX),
        Extent::Duration { duration: ms(1) },
        ScheduleError::TooLong,
    );
}

#[test]
fn a_schedule_at_its_limits_can_be_kept_and_one_beyond_them_cannot() {
    let every = |period| Arrivals::Periodic { period };
    let count = |messages| Extent::Count { messages };
    let day = Duration::from_secs(24 * 3600);
    let longest = Schedule {
        offset: 30 * day,
        warm_up: 0,
        ..schedule(every(30 * day), count(1))
    };
    assert_eq!(longest.check(), Ok(()));
    let later = Schedule {
        offset: 30 * day + Duration::from_nanos(1),
        ..longest.clone()
    };
    assert_eq!(later.check(), Err(ScheduleError::TooLong));
    let longer = Schedule {
        extent: count(2),
        ..longest
    };
    assert_eq!(longer.check(), Err(ScheduleError::TooLong));
    // Three messages of the warm-up count too.
    assert_eq!(schedule(every(ms(1)), count((1 << 28) - 3)).check(), Ok(()));
    assert_refused(
        every(ms(1)),
        count((1 << 28) - 2),
        ScheduleError::TooManyMessages,
    );
}

#[test]
fn rates_and_expected_messages_are_those_of_the_process() {
    let half = ms(500);
    let poisson = Arrivals::Poisson {
        mean_period: half,
        seed: 1,
    };
    let bursts = Arrivals::Bursts {
        period: half,
        size: 3,
        gap: ms(1),
    };
    let all = [Arrivals::Periodic { period: half }, poisson, bursts];
    let found = all.each_ref().map(|one| {
        let stalls = [0, 500, 501].map(|stall| one.messages_within(ms(stall)));
        (one.name(), one.rate_hz(), stalls)
    });
    assert_eq!(
        found,
        [
            ("periodic", 2.0, [1, 1, 2]),
            ("poisson", 2.0, [1, 1, 2]),
            ("bursts", 6.0, [1, 3, 6])
        ]
    );
    // The first judged message, 8 in the 4 s after it, and 3 of the warm-up.
    let extent = Extent::Duration {
        duration: ms(4_000),
    };
    let [_, poisson, _] = all;
    assert_eq!(schedule(poisson, extent).expected_messages(), 12.0);
}

#[test]
fn the_drain_is_ten_deadlines_but_at_least_a_second() {
    assert_eq!(drain(Duration::from_millis(50)), Duration::from_secs(1));
    assert_eq!(
        drain(Duration::from_millis(150)),
        Duration::from_millis(1_500)
    );
    assert_eq!(drain(Duration::MAX), Duration::MAX);
}

#[test]
fn a_schedule_survives_json() {
    let schedule = schedule(
        Arrivals::Poisson {
            mean_period: Duration::from_millis(50),
            seed: 9,
        },
        Extent::Duration {
            duration: Duration::from_secs(2),
        },
    );
    let text = serde_json::to_string(&schedule).expect("plain data");
    assert_eq!(
        text,
        r#"{"start_ns":5000,"offset_ns":7,"arrivals":{"kind":"poisson","mean_period_ns":50000000,"seed":9},"extent":{"kind":"duration","duration_ns":2000000000},"warm_up":3}"#
    );
    assert_eq!(
        serde_json::from_str::<Schedule>(&text).expect("what was written"),
        schedule
    );
}
