//! Properties of any schedule that passes its check: its due times rise, have the right count, and depend only on the
//! schedule.

use std::time::Duration;

use deckwatch_meter::pacing::{Arrivals, Due, Extent, Schedule};
use proptest::prelude::*;

fn nanoseconds(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_nanos)
}

fn schedules() -> impl Strategy<Value = Schedule> {
    let arrivals = prop_oneof![
        nanoseconds(0..100_000).prop_map(|period| Arrivals::Periodic { period }),
        (nanoseconds(0..100_000), any::<u64>())
            .prop_map(|(mean_period, seed)| Arrivals::Poisson { mean_period, seed }),
        (nanoseconds(0..100_000), 0..12_u32, nanoseconds(0..20_000))
            .prop_map(|(period, size, gap)| Arrivals::Bursts { period, size, gap }),
    ];
    let extent = prop_oneof![
        (0..500_u64).prop_map(|messages| Extent::Count { messages }),
        nanoseconds(0..20_000_000).prop_map(|duration| Extent::Duration { duration }),
    ];
    (
        any::<i64>(),
        nanoseconds(0..1_000_000),
        arrivals,
        extent,
        0..50_u64,
    )
        .prop_map(|(start_ns, offset, arrivals, extent, warm_up)| Schedule {
            start_ns: start_ns / 4,
            offset,
            arrivals,
            extent,
            warm_up,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn due_times_of_a_sound_schedule_rise_and_are_counted(schedule in schedules()) {
        prop_assume!(schedule.check().is_ok() && schedule.expected_messages() < 1e5);
        let dues: Vec<Due> = schedule.dues().collect();
        prop_assert!(dues.is_sorted_by_key(|due| due.due_ns));
        prop_assert!(dues.iter().zip(0..).all(|(due, sequence)| due.sequence == sequence && due.warm_up == (sequence < schedule.warm_up)));
        prop_assert!(dues.len() as u64 > schedule.warm_up, "something is judged");
        let is_random = matches!((&schedule.arrivals, schedule.extent), (Arrivals::Poisson { .. }, Extent::Duration { .. }));
        prop_assert!(is_random || dues.len() as f64 == schedule.expected_messages());
        prop_assert!(schedule.dues().eq(dues.iter().copied()), "the same again");
    }

    #[test]
    fn a_later_start_moves_every_due_time_by_as_much(schedule in schedules(), by_ns in 0..1_000_000_000_i64) {
        prop_assume!(schedule.check().is_ok() && schedule.expected_messages() < 1e5);
        let later = Schedule { start_ns: schedule.start_ns + by_ns, ..schedule.clone() };
        let moved = schedule.dues().map(|due| Due { due_ns: due.due_ns + by_ns, ..due });
        prop_assert!(later.dues().eq(moved));
    }

    #[test]
    fn a_schedule_survives_json(schedule in schedules()) {
        let text = serde_json::to_string(&schedule).expect("plain data");
        prop_assert_eq!(serde_json::from_str::<Schedule>(&text).expect("what was written"), schedule);
    }
}
