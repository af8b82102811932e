//! Judges all destinations of a run together: one FAIL among many must be surer than a FAIL alone.

use super::InvalidReason;
use super::sentences::{Facts, reasons};
use super::verdict::worst;
use crate::result::{Bursts, DestinationResult, FlowResult, LateBudget, Verdict, VerdictKind};
use crate::statistics::{Asked, LateShare, Longest, fails_of_many};
use crate::words;

/// What a flow promises.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promise {
    pub(super) budget: LateBudget,
    pub(super) rate_hz: f64,
}

/// Corrects the verdicts of all flows of a run for their number, so that a run whose destinations all keep their
/// budgets FAILs in at most 5% of runs. A FAIL that is not sure enough becomes UNPROVEN. A PASS needs no correction.
pub fn judge_together<'a>(flows: impl IntoIterator<Item = &'a mut FlowResult>) {
    let mut flows: Vec<&mut FlowResult> = flows.into_iter().collect();
    let mut together = Vec::new();
    for flow in &mut flows {
        let promise = Promise {
            budget: flow.budget,
            rate_hz: flow.rate_hz,
        };
        together.extend(flow.destinations.iter_mut().map(|one| (one, promise)));
    }
    correct(&mut together);
    for flow in flows {
        flow.verdict = worst(&flow.destinations);
    }
}

/// Makes the verdict of a destination (of all without one) FAIL if more of its messages were late than the budget
/// allows and `process`, without which they cannot arrive, died. A process that stays away is no burst that ends, so
/// the bounds for bursts do not apply.
pub fn fail_after_death(flow: &mut FlowResult, destination: Option<u16>, process: &str) {
    let budget = flow.budget;
    let hit = |one: &&mut DestinationResult| destination.is_none_or(|index| index == one.index);
    for one in flow.destinations.iter_mut().filter(hit) {
        let (due, late, lost) = (one.counts.due, one.counts.late, one.counts.lost);
        let is_beyond =
            u128::from(late) * u128::from(budget.of) > u128::from(budget.late) * u128::from(due);
        if one.verdict.kind == VerdictKind::Unproven && is_beyond {
            let [due, late, lost] = [due, late, lost].map(words::count);
            one.verdict = Verdict {
                kind: VerdictKind::Fail,
                reasons: vec![format!(
                    "{late} of {due} messages were late ({lost} of them lost), more than the budget of {} in {}: \
                     the {process} died.",
                    words::count(budget.late),
                    words::count(budget.of)
                )],
                remedies: Vec::new(),
                messages_needed: None,
            };
        }
    }
    flow.verdict = worst(&flow.destinations);
}

/// Makes the verdict of a destination (of all without one) INVALID for a reason that lies outside its messages.
pub fn invalidate(flow: &mut FlowResult, destination: Option<u16>, reason: &InvalidReason) {
    let hit = |one: &&mut DestinationResult| destination.is_none_or(|index| index == one.index);
    for one in flow.destinations.iter_mut().filter(hit) {
        one.verdict = Verdict {
            kind: VerdictKind::Invalid,
            reasons: vec![reason.to_string()],
            remedies: vec![reason.remedy()],
            messages_needed: None,
        };
    }
    flow.verdict = worst(&flow.destinations);
}

/// Corrects the verdicts of these destinations for their number.
pub(super) fn correct(destinations: &mut [(&mut DestinationResult, Promise)]) {
    let tests = destinations.len();
    if tests < 2 {
        return;
    }
    let failing: Vec<(usize, LateShare)> = destinations
        .iter()
        .enumerate()
        .filter(|(_, (destination, _))| destination.verdict.kind == VerdictKind::Fail)
        .filter_map(|(index, (destination, _))| Some((index, share_of(destination)?)))
        .collect();
    let chances: Vec<f64> = failing
        .iter()
        .map(|(index, share)| share.chance_within(destinations[*index].1.budget))
        .collect();
    let levels = fails_of_many(&chances, tests);
    for ((index, share), level) in failing.into_iter().zip(levels) {
        let (destination, promise) = &mut destinations[index];
        let kind = match level {
            Some(_) => VerdictKind::Fail,
            None => VerdictKind::Unproven,
        };
        let facts = Facts {
            counts: &destination.counts,
            share: &share,
            budget: promise.budget,
            rate_hz: promise.rate_hz,
            kind,
            level: level.unwrap_or_default(),
        };
        let mut verdict: Verdict = reasons(&facts);
        if level.is_none() {
            verdict.reasons.push(format!(
                "Alone, this destination would FAIL. One of {} does so by chance more often than in 5 % of runs.",
                words::count(tests as u64)
            ));
        }
        destination.bursts = Some(share.bursts(promise.budget, kind, facts.level));
        destination.verdict = verdict;
    }
}

/// Returns the share of late messages that a result was judged by; `None` for a document without bursts.
fn share_of(destination: &DestinationResult) -> Option<LateShare> {
    let Bursts {
        asked,
        asked_by,
        seen,
        assumed,
        ..
    } = destination.bursts?;
    let asked = Asked {
        burst: asked,
        by: asked_by,
    };
    let (count, late) = (destination.counts.due, destination.counts.late);
    let longest = Longest {
        seen,
        beyond_chance: seen.min(assumed),
    };
    Some(LateShare::restored(count, late, asked, longest, assumed))
}

#[cfg(test)]
mod tests;
