//! Properties of judging: for any stamps it returns a verdict, and its counts are consistent with the messages.

use std::time::Duration;

use deckwatch_meter::blame::{Road, Splitter, calls};
use deckwatch_meter::disturbance::Disturbance;
use deckwatch_meter::host_entry::HostEntry;
use deckwatch_meter::judge::{Destination, FlowJudgement, Terms, judge};
use deckwatch_meter::pacing::Arrivals;
use deckwatch_meter::result::{DestinationResult, LateBudget, VerdictKind};
use deckwatch_meter::sample::{NO_STAMP, Sample, SampleFlags};
use proptest::prelude::*;

/// Any stamp at all; extreme values are frequent.
fn wild_stamp() -> impl Strategy<Value = i64> {
    prop_oneof![
        3 => Just(NO_STAMP),
        1 => Just(i64::MIN + 1),
        1 => Just(i64::MAX),
        1 => Just(0),
        4 => -1_000_000_000_i64..1_000_000_000,
        2 => any::<i64>(),
    ]
}

/// A stamp as real instruments take it: missing, or within a second of the run, in any order.
fn sane_stamp() -> impl Strategy<Value = i64> {
    prop_oneof![1 => Just(NO_STAMP), 5 => 0..1_000_000_000_i64]
}

fn sample(
    stamp: impl Strategy<Value = i64>,
    sequence: impl Strategy<Value = u64>,
) -> impl Strategy<Value = Sample> {
    (
        prop::collection::vec(stamp, 12),
        sequence,
        any::<bool>(),
        any::<u8>(),
    )
        .prop_map(|(stamps, sequence, warm_up, duplicates)| Sample {
            flow: 0,
            destination: 0,
            sequence,
            due_ns: if stamps[0] == NO_STAMP { 0 } else { stamps[0] },
            sent_ns: stamps[1],
            returned_ns: stamps[2],
            channel_receive_ns: stamps[3],
            channel_transmit_ns: stamps[4],
            kernel_transmit_ns: stamps[5],
            kernel_receive_ns: stamps[6],
            received_ns: stamps[7],
            handled_ns: stamps[8],
            execution_ns: stamps[9],
            reply_transmit_ns: stamps[9],
            reply_receive_ns: stamps[10],
            channel_reply_ns: stamps[11],
            flags: SampleFlags {
                warm_up,
                duplicates,
                ..SampleFlags::default()
            },
            blame: None,
        })
}

/// Samples with the sequence numbers 0, 1, 2, ...
fn sane_samples() -> impl Strategy<Value = Vec<Sample>> {
    prop::collection::vec(sample(sane_stamp(), Just(0)), 0..120).prop_map(|mut samples| {
        for (sample, sequence) in samples.iter_mut().zip(0..) {
            sample.sequence = sequence;
        }
        samples
    })
}

fn wild_samples() -> impl Strategy<Value = Vec<Sample>> {
    prop::collection::vec(sample(wild_stamp(), any::<u64>()), 0..60)
}

fn wild_duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::MAX),
        (0..2_000_000_000_u64).prop_map(Duration::from_nanos)
    ]
}

fn terms() -> impl Strategy<Value = Terms> {
    let arrivals = prop_oneof![
        wild_duration().prop_map(|period| Arrivals::Periodic { period }),
        (wild_duration(), any::<u64>())
            .prop_map(|(mean_period, seed)| Arrivals::Poisson { mean_period, seed }),
    ];
    (
        wild_duration(),
        0..20_u64,
        0..100_u64,
        any::<Option<u64>>(),
        arrivals,
        any::<[bool; 3]>(),
    )
        .prop_map(
            |(
                deadline,
                late,
                of,
                clusters,
                arrivals,
                [middleware, channel, supplier_disturbed],
            )| Terms {
                deadline,
                budget: LateBudget { late, of },
                clusters,
                arrivals,
                road: Road {
                    middleware,
                    channel,
                },
                supplier_disturbed,
                supplier_host: HostEntry::named("RTS"),
                supplier_real_time: false,
                worst_case: Some(Duration::from_millis(1)),
            },
        )
}

fn disturbance() -> impl Strategy<Value = Disturbance> {
    (
        wild_duration(),
        wild_duration(),
        wild_duration(),
        any::<u64>(),
    )
        .prop_map(
            |(stolen, throttled, clock_error, capture_dropped)| Disturbance {
                stolen,
                throttled,
                clock_error,
                capture_dropped,
                ..Disturbance::default()
            },
        )
}

fn judge_one(
    samples: &mut [Sample],
    terms: &Terms,
    disturbance: &Disturbance,
    receive_overflows: u64,
) -> FlowJudgement {
    let destination = Destination {
        index: 0,
        host: "SONAR".to_owned(),
        samples,
        send_errors: 0,
        receive_overflows,
    };
    judge(&mut [destination], terms, disturbance)
}

fn assert_adds_up(samples: &[Sample], result: &DestinationResult) {
    let counts = &result.counts;
    assert_eq!(counts.due + counts.warm_up, samples.len() as u64);
    assert_eq!(counts.received + counts.lost, counts.due);
    assert!(counts.lost <= counts.late && counts.late <= counts.due);
    assert!(
        counts.late_by_inter_arrival <= counts.received && counts.out_of_order <= counts.received
    );
    assert_eq!(
        result.blame.values().sum::<u64>(),
        counts.late,
        "each late message is blamed once"
    );
    for sample in samples {
        let flags = sample.flags;
        assert_eq!(sample.blame.is_some(), flags.late);
        assert!(flags.late || !flags.lost);
        assert!(
            !flags.warm_up
                || !(flags.late || flags.lost || flags.late_by_inter_arrival || flags.out_of_order),
            "the warm-up is not judged"
        );
    }
    let rate = result.late_rate;
    assert!(
        0.0 <= rate.lower
            && rate.lower <= rate.estimate
            && rate.estimate <= rate.upper
            && rate.upper <= 1.0,
        "{rate:?}"
    );
    if let (Some(least), Some(most)) = (result.latency_ns.get("min"), result.latency_ns.get("max"))
    {
        assert!(
            result
                .latency_ns
                .values()
                .all(|value| least <= value && value <= most)
        );
    }
    for (name, interval) in &result.latency_intervals_ns {
        let value = result.latency_ns[name];
        assert!(
            interval.lower <= value && interval.upper.is_none_or(|upper| value <= upper),
            "{name}: {value} outside {interval:?}"
        );
    }
}

fn assert_verdict_follows(result: &DestinationResult, terms: &Terms) {
    let allowed = if terms.budget.of == 0 {
        0.0
    } else {
        terms.budget.late as f64 / terms.budget.of as f64
    };
    let (within, above) = (
        result.late_rate.upper <= allowed,
        result.late_rate.lower > allowed,
    );
    let verdict = &result.verdict;
    match verdict.kind {
        VerdictKind::Pass => assert!(within),
        VerdictKind::Fail => assert!(above),
        VerdictKind::Unproven => assert!(!within && !above),
        VerdictKind::Invalid => {}
    }
    assert!(!verdict.reasons.is_empty(), "every verdict says why");
    assert!(
        verdict
            .messages_needed
            .is_none_or(|more| more > 0 && verdict.kind == VerdictKind::Unproven)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_stamps_judging_ends_and_adds_up(mut samples in wild_samples(), terms in terms(), disturbance in disturbance(), overflows in any::<u64>()) {
        let flow = judge_one(&mut samples, &terms, &disturbance, overflows);
        assert_adds_up(&samples, &flow.destinations[0]);
        assert_verdict_follows(&flow.destinations[0], &terms);
        prop_assert_eq!(flow.verdict.kind, flow.destinations[0].verdict.kind);
    }

    #[test]
    fn judging_again_changes_nothing_and_the_order_given_does_not_matter(samples in sane_samples(), terms in terms(), disturbance in disturbance()) {
        let mut first = samples.clone();
        let judged = judge_one(&mut first, &terms, &disturbance, 2);
        let mut again = first.clone();
        prop_assert_eq!(&judge_one(&mut again, &terms, &disturbance, 2), &judged);
        let mut reversed = samples;
        reversed.reverse();
        prop_assert_eq!(&judge_one(&mut reversed, &terms, &disturbance, 2), &judged);
        prop_assert_eq!(reversed, first);
    }

    #[test]
    fn moving_the_whole_run_in_time_changes_nothing(samples in sane_samples(), terms in terms(), by_ns in 0..1_000_000_000_000_000_i64) {
        let mut here = samples;
        let mut there: Vec<Sample> = here.iter().map(|sample| moved(*sample, by_ns)).collect();
        let disturbance = Disturbance::default();
        prop_assert_eq!(judge_one(&mut here, &terms, &disturbance, 1), judge_one(&mut there, &terms, &disturbance, 1));
    }

    #[test]
    fn a_longer_deadline_makes_no_message_late(mut samples in sane_samples(), terms in terms(), more in wild_duration()) {
        let disturbance = Disturbance::default();
        let late = judge_one(&mut samples, &terms, &disturbance, 0).destinations[0].counts;
        let longer = Terms { deadline: terms.deadline.saturating_add(more), ..terms };
        let less_late = judge_one(&mut samples, &longer, &disturbance, 0).destinations[0].counts;
        prop_assert!(less_late.late <= late.late && less_late.late_by_inter_arrival <= late.late_by_inter_arrival);
        prop_assert_eq!(less_late.lost, late.lost);
    }

    #[test]
    fn the_parts_of_a_message_are_never_negative_and_add_up_to_its_latency(samples in sane_samples(), middleware in any::<bool>(), channel in any::<bool>()) {
        let road = Road { middleware, channel };
        let supplier = calls(road, samples.iter());
        let splitter = Splitter::new(road, &samples, &supplier);
        for sample in &samples {
            let parts = splitter.split(sample);
            let latency_ns = if sample.received_ns == NO_STAMP { 0 } else { (sample.received_ns - sample.due_ns).max(0) };
            prop_assert_eq!(parts.sum(), latency_ns);
            prop_assert!(deckwatch_meter::sample::Layer::ALL.iter().all(|layer| parts.of(*layer) >= 0), "{:?}", parts);
        }
    }
}

fn moved(sample: Sample, by_ns: i64) -> Sample {
    let by = |stamp_ns: i64| {
        if stamp_ns == NO_STAMP {
            NO_STAMP
        } else {
            stamp_ns + by_ns
        }
    };
    Sample {
        due_ns: by(sample.due_ns),
        sent_ns: by(sample.sent_ns),
        returned_ns: by(sample.returned_ns),
        channel_receive_ns: by(sample.channel_receive_ns),
        channel_transmit_ns: by(sample.channel_transmit_ns),
        kernel_transmit_ns: by(sample.kernel_transmit_ns),
        kernel_receive_ns: by(sample.kernel_receive_ns),
        received_ns: by(sample.received_ns),
        handled_ns: by(sample.handled_ns),
        reply_transmit_ns: by(sample.reply_transmit_ns),
        reply_receive_ns: by(sample.reply_receive_ns),
        channel_reply_ns: by(sample.channel_reply_ns),
        ..sample
    }
}
