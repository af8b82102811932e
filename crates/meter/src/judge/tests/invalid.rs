//! What makes a run INVALID, and what its verdict says to do next.

use super::*;
use crate::disturbance::tests::taken;

fn kind_under(
    samples: &[Sample],
    terms: &Terms,
    disturbance: &Disturbance,
) -> (VerdictKind, Vec<String>) {
    let mut samples = samples.to_vec();
    let verdict = judge(
        &mut [destination("SONAR", &mut samples)],
        terms,
        disturbance,
    )
    .verdict;
    (verdict.kind, verdict.reasons)
}

fn held_up(layer: Layer, every: usize) -> Vec<Sample> {
    let mut samples: Vec<Sample> = (0..1_000).map(prompt).collect();
    for sample in samples.iter_mut().skip(3).step_by(every) {
        hold_up(sample, layer, 60 * MS);
    }
    samples
}

#[test]
fn an_undeclared_failure_of_the_supplier_invalidates_and_a_declared_one_counts() {
    let samples = held_up(Layer::Sender, 50);
    let (kind, reasons) = kind_under(&samples, &terms(), &Disturbance::default());
    assert_eq!(kind, VerdictKind::Invalid);
    assert!(
        reasons[0].contains("The schedule was not kept: 20 messages"),
        "{reasons:?}"
    );
    let declared = Terms {
        supplier_disturbed: true,
        ..terms()
    };
    assert_eq!(
        kind_under(&samples, &declared, &Disturbance::default()).0,
        VerdictKind::Fail
    );
    assert_eq!(
        kind_under(
            &held_up(Layer::Network, 50),
            &terms(),
            &Disturbance::default()
        )
        .0,
        VerdictKind::Fail
    );
}

#[test]
fn a_cluster_that_is_excused_does_not_widen_what_remains() {
    // One stop of the supplier delays four messages in a row of 66; those alone are too few to judge by.
    let mut samples: Vec<Sample> = (0..66).map(prompt).collect();
    for sample in &mut samples[8..12] {
        hold_up(sample, Layer::Sender, 60 * MS);
    }
    let budget = LateBudget { late: 1, of: 20 };
    let terms = Terms { budget, ..terms() };
    let quiet = Disturbance::default();
    let (kind, reasons) = kind_under(&samples, &terms, &quiet);
    assert_eq!(kind, VerdictKind::Invalid, "{reasons:?}");
    let declared = Terms {
        supplier_disturbed: true,
        ..terms
    };
    assert_eq!(
        kind_under(&samples, &declared, &quiet).0,
        VerdictKind::Unproven
    );
}

#[test]
fn stolen_time_invalidates_only_what_it_can_explain() {
    let samples = held_up(Layer::WakeUp, 50);
    let stolen = |ms| Disturbance {
        stolen: Duration::from_millis(ms),
        ..Disturbance::default()
    };
    assert_eq!(
        kind_under(&samples, &terms(), &stolen(40)).0,
        VerdictKind::Fail,
        "less than the slack delays nothing beyond its deadline"
    );
    assert_eq!(
        kind_under(&samples, &terms(), &stolen(100)).0,
        VerdictKind::Fail,
        "four messages do not explain twenty"
    );
    let (kind, reasons) = kind_under(&samples, &terms(), &stolen(2_000));
    assert_eq!(kind, VerdictKind::Invalid);
    assert!(
        reasons[0].contains("stolen by the hypervisor"),
        "{reasons:?}"
    );
    let prompt_ones: Vec<Sample> = (0..10_000).map(prompt).collect();
    assert_eq!(
        kind_under(&prompt_ones, &terms(), &stolen(20_000)).0,
        VerdictKind::Pass,
        "a disturbance makes no message early"
    );
}

#[test]
fn time_that_a_quota_withholds_is_like_stolen_time() {
    let throttled = Disturbance {
        throttled: Duration::from_secs(2),
        ..Disturbance::default()
    };
    let samples = held_up(Layer::WakeUp, 50);
    let (kind, reasons) = kind_under(&samples, &terms(), &throttled);
    assert_eq!(kind, VerdictKind::Invalid, "{reasons:?}");
}

#[test]
fn withheld_time_excuses_one_message_for_each_slack_and_one_for_each_period() {
    let stolen = |ms| Disturbance {
        stolen: Duration::from_millis(ms),
        ..Disturbance::default()
    };
    // The slack is 46 ms, the period 50 ms. Of 1,000 messages two late ones fail, and one leaves the budget unproven.
    let samples = held_up(Layer::WakeUp, 500);
    assert_eq!(
        kind_under(&samples, &terms(), &stolen(45)).0,
        VerdictKind::Fail
    );
    assert_eq!(
        kind_under(&samples, &terms(), &stolen(46)).0,
        VerdictKind::Invalid
    );
    // Ten and nine of twenty.
    let (kind, reasons) = kind_under(&held_up(Layer::WakeUp, 50), &terms(), &stolen(460));
    assert_eq!(kind, VerdictKind::Invalid);
    assert!(
        reasons[0].ends_with("enough to have made 19 messages late."),
        "{reasons:?}"
    );
}

#[test]
fn withheld_time_excuses_nothing_where_messages_are_usually_on_the_deadline() {
    let mut samples = held_up(Layer::WakeUp, 50);
    for sample in &mut samples {
        hold_up(sample, Layer::Network, 46 * MS);
    }
    let stolen = Disturbance {
        stolen: Duration::from_secs(2),
        ..Disturbance::default()
    };
    assert_eq!(kind_under(&samples, &terms(), &stolen).0, VerdictKind::Fail);
}

#[test]
fn stolen_time_excuses_no_lost_message() {
    let mut samples: Vec<Sample> = (0..1_000).map(prompt).collect();
    for sample in samples.iter_mut().skip(3).step_by(50) {
        lose(sample);
    }
    let stolen = Disturbance {
        stolen: Duration::from_secs(20),
        ..Disturbance::default()
    };
    assert_eq!(
        kind_under(&samples, &terms(), &stolen).0,
        VerdictKind::Fail,
        "withheld processor time delays messages, it loses none"
    );
    // As many late ones beside the lost ones: only the late ones are excused, and the lost ones still fail.
    for sample in samples.iter_mut().skip(13).step_by(50) {
        hold_up(sample, Layer::WakeUp, 60 * MS);
    }
    assert_eq!(kind_under(&samples, &terms(), &stolen).0, VerdictKind::Fail);
}

#[test]
fn time_taken_from_a_consumer_invalidates_its_own_destination_and_names_the_process() {
    let by = |destination, ms| Disturbance {
        taken: vec![taken(destination, ms)],
        ..Disturbance::default()
    };
    // Four times 150 ms of 20 s at 20 messages a second: three late messages each time.
    let mut samples: Vec<Sample> = (0..400).map(prompt).collect();
    for sample in (0..4).flat_map(|stop| stop * 100..stop * 100 + 3) {
        hold_up(&mut samples[sample], Layer::WakeUp, 60 * MS);
    }
    assert_eq!(
        kind_under(&samples, &terms(), &Disturbance::default()).0,
        VerdictKind::Fail
    );
    assert_eq!(
        kind_under(&samples, &terms(), &by(Some(1), 600)).0,
        VerdictKind::Fail,
        "another destination's"
    );
    assert_eq!(
        kind_under(&samples, &terms(), &by(Some(0), 40)).0,
        VerdictKind::Fail,
        "less than the slack"
    );
    for whose in [Some(0), None] {
        let verdict = judge(
            &mut [destination("SONAR", &mut samples.clone())],
            &terms(),
            &by(whose, 600),
        )
        .verdict;
        assert_eq!(verdict.kind, VerdictKind::Invalid);
        assert_eq!(
            verdict.reasons,
            [
                "Processor time was withheld (600 ms from thread receive of the consumer of NAV over udp at SONAR by processes outside the run, probably by burner (process 4711, SCHED_FIFO 50)), enough to have made 12 messages late."
            ]
        );
        assert!(
            verdict.remedies[0].starts_with("Stop burner (process 4711)"),
            "{:?}",
            verdict.remedies
        );
        assert!(
            verdict.remedies[0].contains("{ name = \"SONAR\", scheduling = { class = \"fifo\"")
        );
    }
}

#[test]
fn stops_that_hold_up_many_messages_in_a_row_are_no_reason_for_long_bursts_once_excused() {
    // 20 s at 100 messages a second. Four times 150 ms: each stop holds up fifteen, the last of them for 10 ms.
    let terms = Terms {
        budget: LateBudget { late: 1, of: 100 },
        arrivals: Arrivals::Periodic {
            period: Duration::from_millis(10),
        },
        ..terms()
    };
    for layer in [Layer::WakeUp, Layer::Sender] {
        let mut samples: Vec<Sample> = (0..2_000).map(prompt).collect();
        for (sample, left) in samples.iter_mut().zip(0..) {
            sample.due_ns -= left * 40 * MS;
            for stamp in [
                &mut sample.sent_ns,
                &mut sample.returned_ns,
                &mut sample.kernel_transmit_ns,
                &mut sample.kernel_receive_ns,
                &mut sample.received_ns,
                &mut sample.handled_ns,
            ] {
                *stamp -= left * 40 * MS;
            }
        }
        for (stop, place) in (0..4).flat_map(|stop| (0..15).map(move |place| (stop, place))) {
            let held = &mut samples[900 + stop * 95 + place];
            hold_up(held, layer, (150 - 10 * place as i64) * MS);
        }
        let quiet = Disturbance::default();
        let theft = Disturbance {
            taken: vec![taken(Some(0), 600)],
            ..Disturbance::default()
        };
        let (kind, _) = kind_under(&samples, &terms, &quiet);
        let expected = match layer {
            Layer::Sender => VerdictKind::Invalid,
            _ => VerdictKind::Unproven,
        };
        assert_eq!(kind, expected);
        let (kind, reasons) = kind_under(&samples, &terms, &theft);
        assert_eq!(kind, VerdictKind::Invalid, "{reasons:?}");
    }
}

#[test]
fn time_taken_from_a_consumer_excuses_nothing_that_the_network_held_up() {
    let samples = held_up(Layer::Network, 50);
    let theft = Disturbance {
        taken: vec![taken(Some(0), 2_000)],
        ..Disturbance::default()
    };
    assert_eq!(kind_under(&samples, &terms(), &theft).0, VerdictKind::Fail);
    // Without stamps nobody knows where they were held up.
    let mut unstamped = samples.clone();
    for sample in &mut unstamped {
        sample.kernel_receive_ns = NO_STAMP;
    }
    let (kind, reasons) = kind_under(&unstamped, &terms(), &theft);
    assert_eq!(kind, VerdictKind::Invalid, "{reasons:?}");
    let stolen = Disturbance {
        stolen: Duration::from_secs(2),
        ..Disturbance::default()
    };
    let (kind, reasons) = kind_under(&samples, &terms(), &stolen);
    assert_eq!(
        kind,
        VerdictKind::Invalid,
        "a virtual network stands still, too: {reasons:?}"
    );
    let mut both = samples;
    for sample in both.iter_mut().skip(13).step_by(50) {
        hold_up(sample, Layer::WakeUp, 60 * MS);
    }
    assert_eq!(
        kind_under(&both, &terms(), &theft).0,
        VerdictKind::Fail,
        "half of them"
    );
}

#[test]
fn an_invalid_run_says_what_to_do_next() {
    let remedies = |samples: &[Sample], terms: &Terms, disturbance: &Disturbance| {
        let mut samples = samples.to_vec();
        let flow = judge(
            &mut [destination("SONAR", &mut samples)],
            terms,
            disturbance,
        );
        assert_eq!(flow.verdict.kind, VerdictKind::Invalid);
        assert_eq!(flow.verdict.remedies.len(), flow.verdict.reasons.len());
        flow.verdict.remedies[0].clone()
    };
    let late_sends = held_up(Layer::Sender, 50);
    let quiet = Disturbance::default();
    let of_schedule = remedies(&late_sends, &terms(), &quiet);
    assert!(
        of_schedule.starts_with(
            "Give the host a real-time class in the mission's file: { name = \"RTS\", scheduling = { class = \"fifo\", native_priority = 20 } }"
        ),
        "{of_schedule}"
    );
    assert!(of_schedule.contains("loads = [{ hosts = [\"RTS\"]"));
    let real_time = Terms {
        supplier_real_time: true,
        ..terms()
    };
    let of_real_time = remedies(&late_sends, &real_time, &quiet);
    assert!(
        of_real_time.starts_with("RTS has a real-time class already"),
        "{of_real_time}"
    );
    let late = held_up(Layer::WakeUp, 50);
    let seconds = Duration::from_secs;
    let stolen = Disturbance {
        stolen: seconds(2),
        throttled: seconds(1),
        ..Disturbance::default()
    };
    assert!(remedies(&late, &terms(), &stolen).contains("hypervisor"));
    let alike = Disturbance {
        throttled: seconds(2),
        ..stolen.clone()
    };
    assert!(remedies(&late, &terms(), &alike).contains("hypervisor"));
    for (taken_ms, word) in [(1_999, "hypervisor"), (2_000, "Stop burner")] {
        let both = Disturbance {
            taken: vec![taken(None, taken_ms)],
            ..stolen.clone()
        };
        let remedy = remedies(&late, &terms(), &both);
        assert!(remedy.contains(word), "{taken_ms} ms: {remedy}");
    }
    let throttled = Disturbance {
        stolen: seconds(1),
        throttled: seconds(2),
        ..Disturbance::default()
    };
    assert!(remedies(&late, &terms(), &throttled).contains("CPUQuota="));
    assert!(remedies(&[], &terms(), &quiet).contains("duration = "));
    let passes = |samples: &[Sample]| {
        let mut samples = samples.to_vec();
        judge(&mut [destination("SONAR", &mut samples)], &terms(), &quiet).verdict
    };
    assert!(passes(&late).remedies.is_empty(), "only INVALID has one");
}

#[test]
fn clocks_that_decide_what_is_late_invalidate() {
    let mut samples: Vec<Sample> = (0..10_000).map(prompt).collect();
    for sample in samples.iter_mut().skip(3).step_by(50) {
        hold_up(sample, Layer::Network, 40 * MS);
    }
    let error = |ms| Disturbance {
        clock_error: Duration::from_millis(ms),
        ..Disturbance::default()
    };
    assert_eq!(
        kind_under(&samples, &terms(), &error(0)).0,
        VerdictKind::Pass
    );
    assert_eq!(
        kind_under(&samples, &terms(), &error(5)).0,
        VerdictKind::Pass
    );
    let (kind, reasons) = kind_under(&samples, &terms(), &error(7));
    assert_eq!(kind, VerdictKind::Invalid);
    assert!(reasons[0].contains("larger than the slack"), "{reasons:?}");
}

#[test]
fn latencies_of_two_clocks_carry_their_bound_and_are_comparable_with_longer_deadlines_only() {
    let mut samples: Vec<Sample> = (0..1_000).map(prompt).collect();
    let mut judged = |clock_error| {
        let disturbance = Disturbance {
            clock_error,
            clock_assumed: Some(Duration::from_millis(2)),
            ..Disturbance::default()
        };
        let flow = judge(
            &mut [destination("SONAR", &mut samples)],
            &terms(),
            &disturbance,
        );
        flow.destinations[0].clone()
    };
    let one_clock = judged(Duration::ZERO);
    assert_eq!(one_clock.clock_error_ns, None);
    assert_eq!(one_clock.clock_assumed_ns, None);
    assert!(one_clock.is_comparable(1));
    let two_clocks = judged(Duration::from_millis(3));
    assert_eq!(two_clocks.clock_error_ns, Some(3_000_000));
    assert_eq!(two_clocks.clock_assumed_ns, Some(2_000_000));
    assert!(two_clocks.is_comparable(3_000_001));
    assert!(!two_clocks.is_comparable(3_000_000));
}

#[test]
fn clocks_decide_nothing_about_lost_messages_and_all_about_those_at_their_bound() {
    let error = |ms| Disturbance {
        clock_error: Duration::from_millis(ms),
        ..Disturbance::default()
    };
    let mut samples: Vec<Sample> = (0..1_000).map(prompt).collect();
    for sample in samples.iter_mut().skip(3).step_by(50) {
        lose(sample);
    }
    assert_eq!(
        kind_under(&samples, &terms(), &error(5)).0,
        VerdictKind::Fail
    );
    // Twenty messages are late by 5 ms.
    let mut samples: Vec<Sample> = (0..1_000).map(prompt).collect();
    for sample in samples.iter_mut().skip(3).step_by(50) {
        hold_up(sample, Layer::Network, 51 * MS);
    }
    assert_eq!(
        kind_under(&samples, &terms(), &error(4)).0,
        VerdictKind::Fail
    );
    assert_eq!(
        kind_under(&samples, &terms(), &error(5)).0,
        VerdictKind::Invalid
    );
}

#[test]
fn a_capture_that_dropped_packets_or_a_run_without_messages_is_invalid() {
    let samples: Vec<Sample> = (0..10_000).map(prompt).collect();
    let dropped = |packets| Disturbance {
        capture_dropped: packets,
        ..Disturbance::default()
    };
    assert_eq!(
        kind_under(&samples, &terms(), &dropped(10)).0,
        VerdictKind::Pass
    );
    assert_eq!(
        kind_under(&samples, &terms(), &dropped(11)).0,
        VerdictKind::Invalid
    );
    assert_eq!(
        kind_under(&[], &terms(), &Disturbance::default()),
        (
            VerdictKind::Invalid,
            vec!["No message was judged.".to_owned()]
        )
    );
    assert_eq!(
        judge(&mut [], &terms(), &Disturbance::default())
            .verdict
            .kind,
        VerdictKind::Invalid
    );
}
