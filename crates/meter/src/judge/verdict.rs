//! Decides the verdict: PASS, FAIL, UNPROVEN or INVALID.
//!
//! A disturbance that the mission does not declare can make messages late, never early, so it does not change a PASS.
//! Any other verdict becomes INVALID if it would differ without the messages that the disturbance can have made late.

use std::time::Duration;

use super::invalid::InvalidReason;
use super::sentences::{Facts, reasons};
use super::{Terms, handler, nanoseconds};
use crate::disturbance::Disturbance;
use crate::limits::CAPTURE_DROPPED_SHARE_MAX;
use crate::result::{Counts, DestinationResult, FlowResult, Verdict, VerdictKind, deciding};
use crate::statistics::{FAIL_LEVEL, LateShare};

/// The data from which a verdict is made.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The promises of the flow.
    pub terms: &'a Terms,
    /// The disturbances that the mission does not declare.
    pub disturbance: &'a Disturbance,
    /// Counts of the judged messages.
    pub counts: &'a Counts,
    /// The share of late messages.
    pub share: &'a LateShare,
    /// Latencies of the received messages, from due to received, nanoseconds.
    pub latencies: &'a [i64],
    /// The share of late messages, without those blamed on the supplier itself.
    pub share_without_sender: &'a LateShare,
    /// The share of late messages, without those that processor time taken from the run can have made late.
    pub share_without_held: &'a LateShare,
}

/// Returns the verdict on one destination.
#[must_use]
pub fn verdict(evidence: &Evidence<'_>) -> Verdict {
    let invalid = invalid_reasons(evidence);
    let kind = kind_of(evidence.share, evidence.terms);
    if !invalid.is_empty() {
        return Verdict {
            kind: VerdictKind::Invalid,
            reasons: invalid.iter().map(ToString::to_string).collect(),
            remedies: invalid.iter().map(InvalidReason::remedy).collect(),
            messages_needed: None,
        };
    }
    let terms = evidence.terms;
    reasons(&Facts {
        counts: evidence.counts,
        share: evidence.share,
        budget: terms.budget,
        rate_hz: terms.arrivals.rate_hz(),
        kind,
        level: FAIL_LEVEL,
    })
}

/// Returns the verdict of the worst destination, with the largest number of messages needed. If there are several
/// destinations, the reason names the worst and says how many others are as bad. Without destinations: INVALID.
#[must_use]
pub fn worst(destinations: &[DestinationResult]) -> Verdict {
    let Some(worst) = deciding(destinations) else {
        return nothing_to_judge();
    };
    let kind = worst.verdict.kind;
    let alike = || {
        destinations
            .iter()
            .filter(|other| other.verdict.kind == kind)
    };
    let mut reasons = worst.verdict.reasons.clone();
    if let ([_, _, ..], Some(first)) = (destinations, reasons.first_mut()) {
        let others = match alike().count() - 1 {
            0 => String::new(),
            1 => " (1 other alike)".to_owned(),
            others => format!(" ({others} others alike)"),
        };
        let (host, count) = (&worst.host, destinations.len());
        *first = format!("At {host}, the worst of {count} destinations{others}: {first}");
    }
    reasons.extend(handler::sentence(destinations));
    Verdict {
        kind,
        reasons,
        remedies: worst.verdict.remedies.clone(),
        messages_needed: most_needed(alike().map(|destination| &destination.verdict)),
    }
}

/// Returns the worst verdict of all flows, for a whole run, with the largest number of messages needed. It has one
/// reason for each flow that is as bad. Without flows: INVALID.
#[must_use]
pub fn worst_of_flows(flows: &[FlowResult]) -> Verdict {
    let Some(kind) = flows.iter().map(|flow| flow.verdict.kind).max() else {
        return nothing_to_judge();
    };
    let alike = || flows.iter().filter(|flow| flow.verdict.kind == kind);
    let reason = |flow: &FlowResult| {
        let (name, carrier) = (&flow.name, &flow.carrier);
        format!("{name} over {carrier}: {}", flow.verdict.reasons.join(" "))
    };
    let mut remedies: Vec<String> = Vec::new();
    for remedy in alike().flat_map(|flow| &flow.verdict.remedies) {
        if !remedies.contains(remedy) {
            remedies.push(remedy.clone());
        }
    }
    // The verdicts of these flows are no reasons, but their handlers are named.
    let better = flows.iter().filter(|flow| flow.verdict.kind != kind);
    let handlers = better.filter_map(|flow| {
        let sentence = handler::sentence(&flow.destinations)?;
        Some(format!("{} over {}: {sentence}", flow.name, flow.carrier))
    });
    Verdict {
        kind,
        reasons: alike().map(reason).chain(handlers).collect(),
        remedies,
        messages_needed: most_needed(alike().map(|flow| &flow.verdict)),
    }
}

fn nothing_to_judge() -> Verdict {
    Verdict {
        kind: VerdictKind::Invalid,
        reasons: vec![InvalidReason::NothingToJudge.to_string()],
        remedies: vec![InvalidReason::NothingToJudge.remedy()],
        messages_needed: None,
    }
}

/// Returns the largest number of messages needed. Returns `None` if one verdict cannot be proved by any number.
fn most_needed<'a>(mut verdicts: impl Iterator<Item = &'a Verdict>) -> Option<u64> {
    verdicts.try_fold(0, |most, verdict| Some(verdict.messages_needed?.max(most)))
}

fn kind_of(share: &LateShare, terms: &Terms) -> VerdictKind {
    share.kind(terms.budget)
}

fn invalid_reasons(evidence: &Evidence<'_>) -> Vec<InvalidReason> {
    let Evidence {
        terms,
        disturbance,
        counts,
        share,
        ..
    } = *evidence;
    if counts.due == 0 {
        return vec![InvalidReason::NoMessage];
    }
    let mut reasons = Vec::new();
    let kind = kind_of(share, terms);
    let would_differ =
        |without: &LateShare| kind != VerdictKind::Pass && kind_of(without, terms) != kind;
    let sender_blamed = share
        .late
        .saturating_sub(evidence.share_without_sender.late);
    if !terms.supplier_disturbed && would_differ(evidence.share_without_sender) {
        reasons.push(InvalidReason::ScheduleNotKept {
            messages: sender_blamed,
            host: terms.supplier_host.clone(),
            real_time: terms.supplier_real_time,
        });
    }
    let excusable = excusable_by_withheld(evidence);
    let left = share.late.saturating_sub(excusable);
    // The excused messages are no bursts of the others.
    if excusable > 0 && would_differ(&evidence.share_without_held.with_late(left)) {
        reasons.push(InvalidReason::TimeWithheld {
            stolen: disturbance.stolen,
            throttled: disturbance.throttled,
            taken: disturbance.most_taken().cloned(),
            messages: excusable,
        });
    }
    if clocks_decide(evidence) {
        reasons.push(InvalidReason::ClocksDecide {
            error: disturbance.clock_error,
        });
    }
    if disturbance.capture_dropped as f64 > counts.due as f64 * CAPTURE_DROPPED_SHARE_MAX {
        reasons.push(InvalidReason::CaptureDropped {
            packets: disturbance.capture_dropped,
        });
    }
    reasons
}

/// Returns how many received late messages the withheld processor time can explain, at most. What the stamps show in
/// the network was not held up by a thread of the run: only time that was withheld from the whole machine explains it.
fn excusable_by_withheld(evidence: &Evidence<'_>) -> u64 {
    let (disturbance, counts) = (evidence.disturbance, evidence.counts);
    let received = counts.late.saturating_sub(counts.lost);
    let left = evidence.share_without_held.late;
    let in_network = left.saturating_sub(counts.lost).min(received);
    let of_machine = disturbance.stolen.saturating_add(disturbance.throttled);
    let all = explained(evidence, disturbance.withheld()).min(received);
    all.min(received - in_network + in_network.min(explained(evidence, of_machine)))
}

/// Returns how many late messages so much withheld processor time can explain, at most. A delay beyond the deadline
/// takes at least the slack (deadline less median latency). A stop of that length delays one message, and each further
/// period one more.
fn explained(evidence: &Evidence<'_>, withheld: Duration) -> u64 {
    let terms = evidence.terms;
    let slack_ns = nanoseconds(terms.deadline).saturating_sub(median(evidence.latencies));
    let withheld_ns = nanoseconds(withheld);
    if slack_ns <= 0 || withheld_ns < slack_ns {
        return 0;
    }
    let one_each = withheld_ns as f64 / slack_ns as f64;
    let further = withheld.as_secs_f64() * terms.arrivals.rate_hz();
    (one_each + further) as u64
}

/// Returns true if the verdict would differ with all latencies shorter, or longer, by the error bound of the clocks.
fn clocks_decide(evidence: &Evidence<'_>) -> bool {
    let error_ns = nanoseconds(evidence.disturbance.clock_error);
    if error_ns == 0 {
        return false;
    }
    let deadline_ns = nanoseconds(evidence.terms.deadline);
    let kind_at = |deadline_ns: i64| {
        let late = evidence
            .latencies
            .iter()
            .filter(|latency| **latency > deadline_ns)
            .count() as u64
            + evidence.counts.lost;
        kind_of(&evidence.share.with_late(late), evidence.terms)
    };
    kind_at(deadline_ns.saturating_sub(error_ns)) != kind_at(deadline_ns.saturating_add(error_ns))
}

fn median(latencies: &[i64]) -> i64 {
    let mut sorted = latencies.to_vec();
    let middle = sorted.len().saturating_sub(1) / 2;
    if sorted.is_empty() {
        i64::MAX
    } else {
        *sorted.select_nth_unstable(middle).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_value_and_the_lower_of_two() {
        assert_eq!(median(&[7, 1, 9, 3, 5]), 5);
        assert_eq!(median(&[9, 1, 5, 3, 8, 2]), 3);
        assert_eq!(median(&[]), i64::MAX);
    }
}
