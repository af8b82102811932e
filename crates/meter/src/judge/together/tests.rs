//! One FAIL among many destinations.

use super::*;
use crate::blame::tests::{MS, hold_up, prompt};
use crate::disturbance::Disturbance;
use crate::judge::{self, Destination, FlowJudgement, Terms, judge};
use crate::sample::{Layer, Sample};

const BUDGET: LateBudget = LateBudget { late: 1, of: 100 };

fn terms(clusters: Option<u64>) -> Terms {
    Terms {
        budget: BUDGET,
        clusters,
        ..judge::tests::terms()
    }
}

fn judge_all(all: &mut [Vec<Sample>], terms: &Terms) -> FlowJudgement {
    let mut destinations: Vec<Destination<'_>> = (0..)
        .zip(all)
        .map(|(index, samples)| Destination {
            index,
            host: format!("H{index}"),
            samples,
            send_errors: 0,
            receive_overflows: 0,
        })
        .collect();
    judge(&mut destinations, terms, &Disturbance::default())
}

fn judged(late: &[usize]) -> FlowJudgement {
    let terms = terms(Some(1));
    let mut all: Vec<Vec<Sample>> = late
        .iter()
        .map(|&late| {
            let mut samples: Vec<Sample> = (0..1_000).map(prompt).collect();
            for index in 0..late {
                hold_up(
                    &mut samples[31 * index + index % 7],
                    Layer::Network,
                    48 * MS,
                );
            }
            samples
        })
        .collect();
    judge_all(&mut all, &terms)
}

fn kinds(flow: &FlowJudgement) -> Vec<VerdictKind> {
    let destinations = flow.destinations.iter();
    destinations
        .map(|destination| destination.verdict.kind)
        .collect()
}

/// At 1 in 100, 16 or more of 1,000 messages are late with a probability of 4.8%, 23 or more with 0.025%.
const NEAR: usize = 16;
const FAR: usize = 23;

#[test]
fn a_fail_of_one_destination_alone_needs_no_correction() {
    assert_eq!(kinds(&judged(&[NEAR])), [VerdictKind::Fail]);
}

#[test]
fn one_of_17_destinations_that_is_over_the_budget_by_chance_does_not_fail_the_flow() {
    let mut late = [0; 17];
    late[3] = NEAR;
    let flow = judged(&late);
    assert_eq!(flow.verdict.kind, VerdictKind::Unproven);
    let verdict = &flow.destinations[3].verdict;
    assert_eq!(
        verdict.reasons.last().map(String::as_str),
        Some(
            "Alone, this destination would FAIL. One of 17 does so by chance more often than in 5 % of runs."
        )
    );
    assert!(
        verdict.reasons[0].contains("does not yet prove"),
        "{verdict:?}"
    );
}

#[test]
fn one_of_17_destinations_that_is_far_over_the_budget_fails_the_flow() {
    let mut late = [0; 17];
    (late[3], late[5]) = (FAR, NEAR);
    let flow = judged(&late);
    assert_eq!(flow.verdict.kind, VerdictKind::Fail);
    let kinds = kinds(&flow);
    assert_eq!(
        (kinds[3], kinds[5]),
        (VerdictKind::Fail, VerdictKind::Unproven)
    );
}

fn flow_of(index: u16, judgement: FlowJudgement) -> FlowResult {
    FlowResult {
        index,
        name: format!("F{index}"),
        carrier: "udp".to_owned(),
        carrier_index: None,
        road: None,
        type_name: "octets".to_owned(),
        size_bytes: 384,
        from: "RTS".to_owned(),
        rate_hz: 20.0,
        arrivals: "periodic".to_owned(),
        deadline_ns: 50_000_000,
        budget: BUDGET,
        scheduling: String::new(),
        settings: None,
        merged_layers: Vec::new(),
        destinations: judgement.destinations,
        verdict: judgement.verdict,
    }
}

#[test]
fn flows_of_a_run_are_corrected_together() {
    let flow = |index: u16, late: usize| flow_of(index, judged(&[late]));
    let mut flows: Vec<FlowResult> = (0..4).map(|index| flow(index, 0)).collect();
    flows.push(flow(4, NEAR));
    assert_eq!(flows[4].verdict.kind, VerdictKind::Fail);
    judge_together(&mut flows);
    assert_eq!(flows[4].verdict.kind, VerdictKind::Unproven);
    let mut far = vec![flow(0, 0), flow(1, FAR)];
    judge_together(&mut far);
    assert_eq!(far[1].verdict.kind, VerdictKind::Fail);
}

#[test]
fn a_destination_that_lost_its_consumer_fails_though_one_burst_proves_nothing() {
    let terms = terms(None);
    let mut all: Vec<Vec<Sample>> = (0..2).map(|_| (0..200).map(prompt).collect()).collect();
    for sample in &mut all[1][100..] {
        sample.kernel_receive_ns = crate::sample::NO_STAMP;
        sample.received_ns = crate::sample::NO_STAMP;
        sample.handled_ns = crate::sample::NO_STAMP;
    }
    let judgement = judge_all(&mut all, &terms);
    let mut flow = flow_of(0, judgement);
    let kinds = |flow: &FlowResult| -> Vec<VerdictKind> {
        flow.destinations
            .iter()
            .map(|one| one.verdict.kind)
            .collect()
    };
    let undecided = [VerdictKind::Unproven, VerdictKind::Unproven];
    assert_eq!(kinds(&flow), undecided);
    fail_after_death(&mut flow, Some(0), "consumer at H0");
    assert_eq!(kinds(&flow), undecided, "no message of this one was late");
    fail_after_death(&mut flow, Some(1), "consumer at H1");
    assert_eq!(kinds(&flow), [VerdictKind::Unproven, VerdictKind::Fail]);
    assert_eq!(flow.verdict.kind, VerdictKind::Fail);
    let reason = "100 of 200 messages were late (100 of them lost), more than the budget of 1 in 100: the consumer at \
                  H1 died.";
    assert!(
        flow.verdict.reasons[0].ends_with(reason),
        "{:?}",
        flow.verdict
    );
}

#[test]
fn a_death_counts_only_where_more_messages_were_late_than_the_budget_allows() {
    let budget = LateBudget { late: 3, of: 100 };
    for (lost, kind) in [(6, VerdictKind::Unproven), (7, VerdictKind::Fail)] {
        let mut all: Vec<Vec<Sample>> = vec![(0..200).map(prompt).collect()];
        for sample in &mut all[0][..lost] {
            sample.received_ns = crate::sample::NO_STAMP;
        }
        let terms = Terms {
            budget,
            ..terms(None)
        };
        let mut flow = flow_of(0, judge_all(&mut all, &terms));
        flow.budget = budget;
        assert_eq!(flow.verdict.kind, VerdictKind::Unproven);
        fail_after_death(&mut flow, None, "consumer at H0");
        assert_eq!(flow.verdict.kind, kind, "{lost} of 200, 6 are allowed");
    }
}

#[test]
fn one_destination_or_all_can_be_made_invalid() {
    let reason = InvalidReason::LoadMissed {
        load: "none came".to_owned(),
    };
    let invalid = VerdictKind::Invalid;
    let before = kinds(&judged(&[0, 0]))[0];
    for (destination, expected) in [
        (Some(0), [invalid, before]),
        (Some(1), [before, invalid]),
        (None, [invalid, invalid]),
    ] {
        let mut flow = flow_of(0, judged(&[0, 0]));
        invalidate(&mut flow, destination, &reason);
        let found: Vec<VerdictKind> = (flow.destinations.iter())
            .map(|one| one.verdict.kind)
            .collect();
        assert_eq!(found, expected);
        assert_eq!(flow.verdict.kind, invalid);
        assert_eq!(flow.verdict.remedies, [reason.remedy()]);
    }
}

#[test]
fn handlers_of_flows_with_a_better_verdict_are_named_once() {
    let mut flows = [flow_of(0, judged(&[0])), flow_of(1, judged(&[FAR]))];
    flows[0].destinations[0].handler = Some(crate::result::HandlerResult {
        worst_case_ns: 2_000_000,
        executions: 1_000,
        exceeded: 3,
        longest_ns: 5_000_000,
        late_behind: 0,
    });
    let run = crate::judge::worst_of_flows(&flows);
    assert_eq!(run.kind, VerdictKind::Fail);
    let starts: Vec<bool> = ["F1 over udp: ", "F0 over udp: The handler at H0 "]
        .iter()
        .zip(&run.reasons)
        .map(|(start, reason)| reason.starts_with(start))
        .collect();
    assert_eq!((starts, run.reasons.len()), (vec![true, true], 2));
}
