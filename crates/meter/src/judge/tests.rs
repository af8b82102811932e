//! Verdicts of synthetic samples, for which the right verdict is known.

mod invalid;

use super::*;
use crate::blame::tests::{MS, hold_up, prompt};
use crate::result::VerdictKind;

pub(in crate::judge) fn terms() -> Terms {
    Terms {
        deadline: Duration::from_millis(50),
        budget: LateBudget {
            late: 3,
            of: 10_000,
        },
        clusters: None,
        arrivals: Arrivals::Periodic {
            period: Duration::from_millis(50),
        },
        road: Road::RAW,
        supplier_disturbed: false,
        supplier_host: HostEntry::named("RTS"),
        supplier_real_time: false,
        worst_case: None,
    }
}

/// The result at one destination of a flow without a fault.
pub(in crate::judge) fn at_one() -> DestinationResult {
    let mut samples: Vec<Sample> = (0..100).map(prompt).collect();
    let mut one = None;
    at("SONAR", &mut samples, |result| one = Some(result));
    one.expect("one destination")
}

fn at(host: &str, samples: &mut [Sample], found: impl FnOnce(DestinationResult)) {
    let flow = judge(
        &mut [destination(host, samples)],
        &terms(),
        &Disturbance::default(),
    );
    found(
        flow.destinations
            .into_iter()
            .next()
            .expect("one destination"),
    );
}

fn destination<'a>(host: &str, samples: &'a mut [Sample]) -> Destination<'a> {
    Destination {
        index: 0,
        host: host.to_owned(),
        samples,
        send_errors: 0,
        receive_overflows: 0,
    }
}

fn lose(sample: &mut Sample) {
    (
        sample.kernel_receive_ns,
        sample.received_ns,
        sample.handled_ns,
    ) = (NO_STAMP, NO_STAMP, NO_STAMP);
}

#[test]
fn known_late_messages_are_counted_and_blamed_on_the_layer_that_held_them_up() {
    let mut samples: Vec<Sample> = (0..1_000).map(prompt).collect();
    for (count, layer) in [
        (2_usize, Layer::Sender),
        (3, Layer::Stack),
        (4, Layer::Network),
        (5, Layer::WakeUp),
    ] {
        for index in 0..count {
            hold_up(&mut samples[100 * count + 20 * index], layer, 48 * MS);
        }
    }
    at("SONAR", &mut samples, |result| {
        assert_eq!(
            (
                result.counts.due,
                result.counts.received,
                result.counts.late,
                result.counts.lost
            ),
            (1_000, 1_000, 14, 0)
        );
        let expected = [("network", 4), ("sender", 2), ("stack", 3), ("wake-up", 5)];
        assert_eq!(
            result
                .blame
                .iter()
                .map(|(layer, count)| (layer.as_str(), *count))
                .collect::<Vec<_>>(),
            expected
        );
        assert_eq!(
            result.layers_ns.values().copied().collect::<Vec<_>>(),
            [1_000_000; 4]
        );
        assert_eq!(result.verdict.kind, VerdictKind::Fail);
    });
    assert_eq!(
        samples.iter().filter(|sample| sample.flags.late).count(),
        14
    );
    assert!(
        samples
            .iter()
            .all(|sample| sample.flags.late == sample.blame.is_some())
    );
}

#[test]
fn exactly_the_deadline_is_in_time() {
    let mut samples: Vec<Sample> = (0..2).map(prompt).collect();
    hold_up(&mut samples[0], Layer::Network, 46 * MS);
    hold_up(&mut samples[1], Layer::Network, 46 * MS + 1);
    at("SONAR", &mut samples, |result| {
        assert_eq!(result.counts.late, 1)
    });
    assert!(samples[1].flags.late);
}

#[test]
fn a_lost_message_is_late_and_blamed_by_its_furthest_stamp() {
    let mut samples: Vec<Sample> = (0..10).map(prompt).collect();
    lose(&mut samples[3]);
    lose(&mut samples[9]);
    samples[9].kernel_transmit_ns = NO_STAMP;
    at("SONAR", &mut samples, |result| {
        assert_eq!(
            (
                result.counts.received,
                result.counts.late,
                result.counts.lost
            ),
            (8, 2, 2)
        );
        assert_eq!(
            result.blame,
            BTreeMap::from([("network".to_owned(), 1), ("unknown".to_owned(), 1)])
        );
    });
}

#[test]
fn the_inter_arrival_rule_counts_gaps_beyond_period_and_deadline() {
    let mut samples: Vec<Sample> = (0..10).map(prompt).collect();
    lose(&mut samples[3]);
    at("SONAR", &mut samples, |result| {
        assert_eq!(
            result.counts.late_by_inter_arrival, 0,
            "one lost makes a gap of just twice the period"
        )
    });
    lose(&mut samples[4]);
    at("SONAR", &mut samples, |result| {
        assert_eq!(result.counts.late_by_inter_arrival, 1);
        assert_eq!(result.inter_arrival_ns["max"], 150_000_000);
    });
    assert!(
        samples[5].flags.late_by_inter_arrival,
        "the arrival that ends the gap"
    );
    let poisson = Terms {
        arrivals: Arrivals::Poisson {
            mean_period: Duration::from_millis(50),
            seed: 1,
        },
        ..terms()
    };
    let flow = judge(
        &mut [destination("SONAR", &mut samples)],
        &poisson,
        &Disturbance::default(),
    );
    assert_eq!(
        flow.destinations[0].counts.late_by_inter_arrival, 0,
        "a flow that is not periodic has no such rule"
    );
}

#[test]
fn order_and_duplicates_are_counted_by_arrival() {
    let mut samples: Vec<Sample> = (0..6).map(prompt).collect();
    samples[2].received_ns = samples[4].received_ns + 1;
    samples[3].flags.duplicates = 2;
    at("SONAR", &mut samples, |result| {
        assert_eq!(
            (result.counts.out_of_order, result.counts.duplicates),
            (1, 2)
        )
    });
    assert!(samples[2].flags.out_of_order);
}

#[test]
fn the_warm_up_is_not_judged_but_its_arrivals_are_seen() {
    let mut samples: Vec<Sample> = (0..10).map(prompt).collect();
    for sample in &mut samples[..4] {
        sample.flags.warm_up = true;
        hold_up(sample, Layer::Network, 90 * MS);
    }
    hold_up(&mut samples[4], Layer::Network, 45 * MS);
    samples.reverse();
    at("SONAR", &mut samples, |result| {
        assert_eq!(
            (
                result.counts.due,
                result.counts.warm_up,
                result.counts.late,
                result.counts.out_of_order
            ),
            (6, 4, 0, 0)
        );
        assert_eq!(
            result.inter_arrival_ns["min"], 5_000_000,
            "from the last of the warm-up"
        );
    });
    assert!(
        samples[..4]
            .iter()
            .all(|sample| !sample.flags.late && sample.blame.is_none())
    );
    assert!(samples.is_sorted_by_key(|sample| sample.sequence));
}

#[test]
fn the_typical_time_of_a_layer_is_that_of_judged_messages_that_were_received() {
    for is_lost in [false, true] {
        let mut samples: Vec<Sample> = (0..20).map(prompt).collect();
        for sample in &mut samples[..14] {
            if is_lost {
                lose(sample);
            } else {
                sample.flags.warm_up = true;
                hold_up(sample, Layer::Network, 30 * MS);
            }
        }
        at("SONAR", &mut samples, |result| {
            let layers_ns: Vec<u64> = result.layers_ns.values().copied().collect();
            assert_eq!(layers_ns, [1_000_000; 4], "lost: {is_lost}");
        });
    }
}

#[test]
fn messages_under_way_when_the_clock_was_set_do_not_count_as_typical() {
    let mut samples: Vec<Sample> = (0..20).map(prompt).collect();
    for sample in &mut samples[..12] {
        (sample.kernel_transmit_ns, sample.kernel_receive_ns) = (NO_STAMP, NO_STAMP);
        sample.flags.clock_step = true;
    }
    at("SONAR", &mut samples, |result| {
        assert_eq!(
            result.layers_ns.values().copied().collect::<Vec<_>>(),
            [1_000_000; 4]
        );
    });
}

#[test]
fn messages_sent_later_than_a_tenth_of_the_deadline_are_warned_of() {
    let warnings = |ns| {
        let mut samples: Vec<Sample> = (0..1_000).map(prompt).collect();
        for sample in samples.iter_mut().step_by(50) {
            hold_up(sample, Layer::Sender, ns);
        }
        let flow = judge(
            &mut [destination("SONAR", &mut samples)],
            &terms(),
            &Disturbance::default(),
        );
        let texts = flow.warnings.into_iter().map(|warning| warning.text);
        texts.collect::<Vec<_>>()
    };
    // A message takes 1 ms to be sent, and the deadline is 50 ms.
    assert!(warnings(4 * MS).is_empty());
    assert_eq!(
        warnings(4 * MS + 1),
        [
            "To SONAR, 20 of 1,000 messages were sent more than 5 ms after they were due, by the supplier's own fault."
        ]
    );
}

#[test]
fn the_budget_decides_between_pass_and_unproven() {
    let mut samples: Vec<Sample> = (0..10_000).map(prompt).collect();
    at("SONAR", &mut samples, |result| {
        assert_eq!(
            (result.verdict.kind, result.verdict.messages_needed),
            (VerdictKind::Pass, None)
        );
        assert_eq!(
            result.verdict.reasons,
            [
                "0 of 10,000 messages were late: at most 0.030 % at 95% confidence, if late messages come one at a time (longest burst seen: 0), within the budget of 3 in 10,000 (0.030 %)."
            ]
        );
    });
    at("SONAR", &mut samples[..400], |result| {
        assert_eq!(
            (result.verdict.kind, result.verdict.messages_needed),
            (VerdictKind::Unproven, Some(9_585))
        );
        assert_eq!(
            result.verdict.reasons[1],
            "9,585 messages more (7 min 59 s) would prove it if none of them is late."
        );
    });
}

#[test]
fn the_worst_destination_decides_for_the_flow_and_says_so() {
    let mut good: Vec<Sample> = (0..400).map(prompt).collect();
    let mut bad = good.clone();
    for sample in bad.iter_mut().skip(7).step_by(3) {
        hold_up(sample, Layer::Network, 60 * MS);
    }
    let mut destinations = [
        destination("SONAR", &mut good),
        Destination {
            index: 1,
            ..destination("HELM", &mut bad)
        },
    ];
    let flow = judge(&mut destinations, &terms(), &Disturbance::default());
    assert_eq!(flow.verdict.kind, VerdictKind::Fail);
    assert!(
        flow.verdict.reasons[0].starts_with(
            "At HELM, the worst of 2 destinations: 131 of 400 messages were late: at least "
        ),
        "{:?}",
        flow.verdict.reasons
    );
    assert_eq!(flow.destinations[1].index, 1);
}

#[test]
fn destinations_with_the_same_verdict_are_counted_beside_the_worst() {
    let mut samples: Vec<Vec<Sample>> = vec![(0..400).map(prompt).collect(); 3];
    let hosts = ["SONAR", "RADAR", "HELM"];
    let mut destinations: Vec<Destination<'_>> = hosts
        .into_iter()
        .zip(&mut samples)
        .map(|(host, samples)| destination(host, samples))
        .collect();
    let flow = judge(&mut destinations, &terms(), &Disturbance::default());
    assert_eq!(flow.verdict.kind, VerdictKind::Unproven);
    assert!(
        flow.verdict.reasons[0].starts_with(
            "At HELM, the worst of 3 destinations (2 others alike): 0 of 400 messages were late: at most "
        ),
        "{:?}",
        flow.verdict.reasons
    );
    assert_eq!(flow.verdict.messages_needed, Some(9_585));
}

#[test]
fn a_call_for_one_destination_is_charged_when_it_delays_the_send_to_another() {
    let mut first: Vec<Sample> = (0..20).map(prompt).collect();
    let mut second: Vec<Sample> = (0..20).map(prompt).collect();
    first[10].kernel_transmit_ns += 70 * MS;
    first[10].returned_ns += 70 * MS;
    hold_up(&mut first[10], Layer::Network, 70 * MS);
    for sample in &mut second {
        hold_up(sample, Layer::Sender, 2 * MS);
    }
    hold_up(&mut second[10], Layer::Sender, 70 * MS);
    let mut destinations = [
        destination("SONAR", &mut first),
        destination("HELM", &mut second),
    ];
    let flow = judge(&mut destinations, &terms(), &Disturbance::default());
    assert_eq!(
        flow.destinations[1].blame,
        BTreeMap::from([("stack".to_owned(), 1)])
    );
}

#[test]
fn overflowing_receive_buffers_are_not_the_networks_fault() {
    let mut samples: Vec<Sample> = (0..100).map(prompt).collect();
    // The servant is busy from message 40 on: 41 waits behind it, and 42 to 44 find the buffer full. The network loses
    // 70.
    samples[40].handled_ns += 300 * MS;
    samples[41].received_ns = samples[40].handled_ns + MS;
    samples[41].handled_ns = samples[41].received_ns + MS;
    for index in [42, 43, 44, 70] {
        lose(&mut samples[index]);
    }
    let mut destinations = [Destination {
        receive_overflows: 3,
        ..destination("SONAR", &mut samples)
    }];
    let flow = judge(&mut destinations, &terms(), &Disturbance::default());
    assert_eq!(
        flow.destinations[0].blame,
        BTreeMap::from([("application".to_owned(), 4), ("network".to_owned(), 1)])
    );
    assert!(
        flow.warnings
            .iter()
            .any(|warning| warning.kind == "receive-overflow")
    );
    assert_eq!(samples[70].blame, Some(Layer::Network));
}

#[test]
fn a_buffer_that_was_full_of_equal_waits_is_charged_to_the_wake_up() {
    let mut samples: Vec<Sample> = (0..100).map(prompt).collect();
    for sample in &mut samples {
        sample.handled_ns = sample.received_ns;
    }
    // Message 41 waits 100 ms for the end of 40, and as long again for its thread to run.
    let arrived_ns = samples[41].kernel_receive_ns;
    samples[40].handled_ns = arrived_ns + 100 * MS;
    samples[41].received_ns = arrived_ns + 200 * MS;
    samples[41].handled_ns = samples[41].received_ns;
    lose(&mut samples[42]);
    let mut destinations = [Destination {
        receive_overflows: 1,
        ..destination("SONAR", &mut samples)
    }];
    let _ = judge(&mut destinations, &terms(), &Disturbance::default());
    assert_eq!(samples[42].blame, Some(Layer::WakeUp));
}

#[test]
fn overflows_that_a_tap_saw_arrive_leave_the_networks_losses_to_the_network() {
    let mut samples: Vec<Sample> = (0..100).map(prompt).collect();
    samples[40].handled_ns += 300 * MS;
    samples[41].received_ns = samples[40].handled_ns + MS;
    samples[41].handled_ns = samples[41].received_ns + MS;
    for index in [42, 43] {
        (samples[index].received_ns, samples[index].handled_ns) = (NO_STAMP, NO_STAMP);
    }
    lose(&mut samples[44]);
    let mut destinations = [Destination {
        receive_overflows: 2,
        ..destination("SONAR", &mut samples)
    }];
    let flow = judge(&mut destinations, &terms(), &Disturbance::default());
    assert_eq!(
        flow.destinations[0].blame,
        BTreeMap::from([("application".to_owned(), 3), ("network".to_owned(), 1)])
    );
}

#[test]
fn percentiles_are_those_that_the_sample_supports() {
    let mut samples: Vec<Sample> = (0..400).map(prompt).collect();
    at("SONAR", &mut samples, |result| {
        assert_eq!(
            result
                .latency_ns
                .keys()
                .map(String::as_str)
                .collect::<Vec<_>>(),
            ["max", "min", "p50", "p90", "p95"]
        );
        assert_eq!(result.latency_ns["p50"], 4_000_000);
        assert_eq!(
            result.latency_intervals_ns["p50"],
            Interval {
                lower: 4_000_000,
                upper: Some(4_000_000)
            }
        );
        assert_eq!(result.latency_intervals_ns.len(), 3);
    });
}

#[test]
fn the_layers_of_late_messages_are_the_means_over_them() {
    let mut samples: Vec<Sample> = (0..20).map(prompt).collect();
    hold_up(&mut samples[3], Layer::Network, 48 * MS);
    hold_up(&mut samples[9], Layer::Network, 58 * MS);
    at("SONAR", &mut samples, |result| {
        let layers: Vec<(&str, u64)> = (result.late_layers_ns.iter())
            .map(|(layer, ns)| (layer.as_str(), *ns))
            .collect();
        assert_eq!(
            layers,
            [
                ("network", 54_000_000),
                ("sender", 1_000_000),
                ("stack", 1_000_000),
                ("wake-up", 1_000_000)
            ]
        );
    });
    let mut samples: Vec<Sample> = (0..20).map(prompt).collect();
    at("SONAR", &mut samples, |result| {
        assert!(result.late_layers_ns.is_empty(), "none is late");
    });
}

#[test]
fn missing_stamps_are_reported_as_merged_layers_with_a_warning() {
    let mut samples: Vec<Sample> = (0..20).map(prompt).collect();
    for sample in &mut samples {
        (sample.kernel_transmit_ns, sample.kernel_receive_ns) = (NO_STAMP, NO_STAMP);
    }
    hold_up(&mut samples[9], Layer::WakeUp, 60 * MS);
    let flow = judge(
        &mut [destination("SONAR", &mut samples)],
        &terms(),
        &Disturbance::default(),
    );
    assert_eq!(flow.merged_layers, ["stack and network and wake-up"]);
    assert_eq!(
        flow.destinations[0].blame,
        BTreeMap::from([("stack and network and wake-up".to_owned(), 1)])
    );
    assert_eq!(
        flow.warnings
            .iter()
            .map(|warning| warning.kind.as_str())
            .collect::<Vec<_>>(),
        ["merged-layers"]
    );
}

#[test]
fn the_worst_flow_decides_for_the_run_and_needs_the_most_messages() {
    let verdict = |kind, needed| Verdict {
        kind,
        reasons: vec!["So it is.".to_owned()],
        remedies: Vec::new(),
        messages_needed: needed,
    };
    let flow = |carrier: &str, verdict| crate::samples::tests::flow_with(carrier, verdict);
    let flows = [
        flow("udp", verdict(VerdictKind::Pass, None)),
        flow("tcp", verdict(VerdictKind::Unproven, Some(10))),
        flow("event", verdict(VerdictKind::Unproven, Some(90))),
    ];
    let run = worst_of_flows(&flows);
    assert_eq!(
        (run.kind, run.messages_needed),
        (VerdictKind::Unproven, Some(90))
    );
    assert_eq!(
        run.reasons,
        ["NAV over tcp: So it is.", "NAV over event: So it is."]
    );
    let never = [
        flows[1].clone(),
        flow("corba", verdict(VerdictKind::Unproven, None)),
    ];
    assert_eq!(worst_of_flows(&never).messages_needed, None);
    assert_eq!(
        worst_of_flows(&flows[..1]).messages_needed,
        None,
        "a PASS needs none"
    );
    assert_eq!(worst_of_flows(&[]).kind, VerdictKind::Invalid);
    let invalid = |remedy: &str| Verdict {
        remedies: vec![remedy.to_owned()],
        ..verdict(VerdictKind::Invalid, None)
    };
    let flows = ["Wait.", "Stop it.", "Wait."].map(|remedy| flow("udp", invalid(remedy)));
    assert_eq!(worst_of_flows(&flows).remedies, ["Wait.", "Stop it."]);
}
