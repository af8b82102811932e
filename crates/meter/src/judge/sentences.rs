//! The sentences of a verdict: how sure it is, for which bursts it holds, and how many messages more would prove it.

use std::time::Duration;

use crate::result::{AskedBy, Bursts, Counts, LateBudget, Verdict, VerdictKind};
use crate::statistics::{LateShare, MessagesNeeded, allowed_share};
use crate::words;

/// The facts of which a verdict that is not INVALID is made.
pub(super) struct Facts<'a> {
    pub(super) counts: &'a Counts,
    pub(super) share: &'a LateShare,
    pub(super) budget: LateBudget,
    pub(super) rate_hz: f64,
    pub(super) kind: VerdictKind,
    /// Probability of a wrong FAIL.
    pub(super) level: f64,
}

/// Returns the verdict with its reasons.
pub(super) fn reasons(facts: &Facts<'_>) -> Verdict {
    let bursts = facts.share.bursts(facts.budget, facts.kind, facts.level);
    let mut reasons = vec![share_sentence(facts, &bursts)];
    reasons.extend(holds_sentence(facts, &bursts));
    let mut messages_needed = None;
    if facts.kind == VerdictKind::Unproven {
        let needed = facts.share.messages_needed(facts.budget);
        messages_needed = needed.at_present_rate.or(needed.if_none_late);
        reasons.push(needed_sentence(needed, facts.rate_hz));
    }
    Verdict {
        kind: facts.kind,
        reasons,
        remedies: Vec::new(),
        messages_needed,
    }
}

fn share_sentence(facts: &Facts<'_>, bursts: &Bursts) -> String {
    let Facts {
        counts,
        share,
        budget,
        kind,
        ..
    } = *facts;
    let (which, bound) = if kind == VerdictKind::Fail {
        ("at least", share.rate.lower)
    } else {
        ("at most", share.rate.upper)
    };
    let relation = match kind {
        VerdictKind::Pass => "within",
        VerdictKind::Fail => "more than",
        VerdictKind::Unproven | VerdictKind::Invalid => "which does not yet prove",
    };
    let lost = match counts.lost {
        0 => String::new(),
        lost => format!(" ({} of them lost)", words::count(lost)),
    };
    format!(
        "{} of {} were late{lost}: {which} {} at 95% confidence, {}, {relation} the budget of {} in {} ({}).",
        words::count(counts.late),
        words::messages(counts.due),
        words::share(bound),
        assumption(bursts),
        words::count(budget.late),
        words::count(budget.of),
        words::share(allowed_share(budget)),
    )
}

/// Returns the assumption of the bounds, and the longest burst of the run beside it.
fn assumption(bursts: &Bursts) -> String {
    let seen = words::count(bursts.seen);
    let by_chance = if bursts.seen > bursts.assumed {
        ", as chance makes it"
    } else {
        ""
    };
    match bursts.assumed {
        1 => format!("if late messages come one at a time (longest burst seen: {seen}{by_chance})"),
        assumed => format!(
            "if late messages come in bursts of at most {} (longest seen: {seen}{by_chance})",
            words::count(assumed)
        ),
    }
}

/// Returns a sentence with the largest burst for which the verdict holds, if the bounds do not already name it.
fn holds_sentence(facts: &Facts<'_>, bursts: &Bursts) -> Option<String> {
    let stall = |burst: u64| {
        Duration::try_from_secs_f64(burst as f64 / facts.rate_hz).map_or(String::new(), |stall| {
            format!(", a stall of {}", words::duration(stall))
        })
    };
    let up_to = |burst: u64| format!("bursts of up to {}{}", words::count(burst), stall(burst));
    let source = match bursts.asked_by {
        _ if bursts.assumed > bursts.asked => "the run had one so long",
        AskedBy::Mission => "the mission asks for them",
        AskedBy::Deadline => "a stall as long as the deadline holds up so many",
        AskedBy::Disturbance => {
            "a disturbance of the run delayed so many, beyond the deadline or nearly"
        }
    };
    match (facts.kind, bursts.holds_for) {
        (VerdictKind::Pass | VerdictKind::Fail, Some(burst)) if burst > bursts.assumed => {
            let verb = match facts.kind {
                VerdictKind::Pass => "kept",
                _ => "exceeded",
            };
            Some(format!("The budget is {verb} even with {}.", up_to(burst)))
        }
        (VerdictKind::Unproven, holds_for) if bursts.assumed > 1 => {
            let less = match holds_for {
                Some(1) => " If late messages come one at a time, the budget is proved.".to_owned(),
                Some(burst) => format!(" The budget is proved only for {}.", up_to(burst)),
                None => String::new(),
            };
            let assumed = words::count(bursts.assumed);
            Some(format!(
                "Bursts of {assumed} are assumed because {source}.{less}"
            ))
        }
        _ => None,
    }
}

/// Returns a sentence: how many messages would prove the budget, and how long that takes at `rate_hz`.
fn needed_sentence(needed: MessagesNeeded, rate_hz: f64) -> String {
    let with_time = |messages: u64, noun: &str| {
        let time = Duration::try_from_secs_f64(messages as f64 / rate_hz);
        let time = time.map_or(String::new(), |time| {
            format!(" ({})", words::duration(time))
        });
        format!("{noun}{time}")
    };
    let more = |messages: u64| with_time(messages, &format!("{} more", words::messages(messages)));
    match (needed.at_present_rate, needed.if_none_late) {
        (Some(at_present_rate), Some(if_none_late)) if at_present_rate == if_none_late => {
            format!(
                "{} would prove it if none of them is late.",
                more(if_none_late)
            )
        }
        (Some(at_present_rate), Some(if_none_late)) => {
            format!(
                "{} would prove it at the present rate of lates, {} if none of them is late.",
                more(at_present_rate),
                with_time(if_none_late, &words::count(if_none_late))
            )
        }
        (None, Some(if_none_late)) => {
            format!(
                "At the present rate of lates it will never be proved; {} would do if none of them is late.",
                more(if_none_late)
            )
        }
        _ => "No number of messages that a run can have would prove it.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{Asked, FAIL_LEVEL};

    const NAV: LateBudget = LateBudget {
        late: 3,
        of: 10_000,
    };

    fn said(count: u64, late: &[u64], asked: Asked) -> Vec<String> {
        let share = LateShare::new(count, late, asked);
        let counts = Counts {
            due: count,
            late: late.len() as u64,
            ..Counts::default()
        };
        let facts = Facts {
            counts: &counts,
            share: &share,
            budget: NAV,
            rate_hz: 20.0,
            kind: share.kind(NAV),
            level: FAIL_LEVEL,
        };
        reasons(&facts).reasons
    }

    #[test]
    fn a_pass_states_the_burst_that_it_is_asked_for_and_the_longest_for_which_it_holds() {
        assert_eq!(
            said(100_000, &[700, 701], Asked::by_mission(2)),
            [
                "2 of 100,000 messages were late: at most 0.010 % at 95% confidence, if late messages come in bursts of at most 2 (longest seen: 2), within the budget of 3 in 10,000 (0.030 %).",
                "The budget is kept even with bursts of up to 8, a stall of 400 ms."
            ]
        );
    }

    #[test]
    fn an_unproven_says_why_bursts_are_assumed_and_what_would_prove_it() {
        assert_eq!(
            said(50_000, &[], Asked::by_mission(10)),
            [
                "0 of 50,000 messages were late: at most 0.060 % at 95% confidence, if late messages come in bursts of at most 10 (longest seen: 0), which does not yet prove the budget of 3 in 10,000 (0.030 %).",
                "Bursts of 10 are assumed because the mission asks for them. The budget is proved only for bursts of up to 5, a stall of 250 ms.",
                "49,843 messages more (41 min 32 s) would prove it if none of them is late."
            ]
        );
    }

    #[test]
    fn a_fail_states_the_longest_burst_for_which_it_holds() {
        let late: Vec<u64> = (0..40).map(|k| 250 * k + k * k % 97).collect();
        let said = said(10_000, &late, Asked::by_mission(1));
        assert!(
            said[0].starts_with("40 of 10,000 messages were late: at least 0.30 % at 95% confidence, if late messages come one at a time (longest burst seen: 1), more than the budget"),
            "{said:?}"
        );
        assert!(
            said[1].starts_with("The budget is exceeded even with bursts of up to "),
            "{said:?}"
        );
    }

    #[test]
    fn late_messages_everywhere_are_no_burst_beyond_chance() {
        let all: Vec<u64> = (0..400).collect();
        let said = said(400, &all, Asked::by_mission(1));
        assert!(
            said[0].contains("if late messages come one at a time (longest burst seen: 400, as chance makes it), more than"),
            "{said:?}"
        );
    }
}
