//! The number of messages that prove a budget.

use super::*;

const NAV: LateBudget = LateBudget {
    late: 3,
    of: 10_000,
};

fn spread(count: u64, late: u64) -> LateShare {
    let positions: Vec<u64> = (0..late)
        .map(|index| index * (count / late.max(1)) + 1)
        .collect();
    LateShare::new(count, &positions, Asked::by_mission(1))
}

#[test]
fn without_a_late_one_the_papers_budget_needs_9985_messages() {
    let needed = spread(0, 0).messages_needed(NAV);
    assert_eq!(
        needed,
        MessagesNeeded {
            if_none_late: Some(9_985),
            at_present_rate: Some(9_985)
        }
    );
    assert_eq!(
        spread(400, 0).messages_needed(NAV).if_none_late,
        Some(9_585)
    );
    assert_eq!(spread(9_985, 0).messages_needed(NAV).if_none_late, Some(0));
}

#[test]
fn the_number_needed_is_the_least_that_proves() {
    for (count, late) in [(400, 1), (10_000, 2), (50_000, 10)] {
        let share = spread(count, late);
        let more = share
            .messages_needed(NAV)
            .if_none_late
            .expect("enough messages prove it");
        assert!(exact_bounds(late as f64, (count + more) as f64).1 <= allowed_share(NAV));
        assert!(exact_bounds(late as f64, (count + more - 1) as f64).1 > allowed_share(NAV));
    }
}

#[test]
fn at_the_present_rate_only_a_rate_below_the_budget_is_ever_proved() {
    let below = spread(10_000, 1)
        .messages_needed(NAV)
        .at_present_rate
        .expect("one in 10,000 is below three");
    let share = 1.0 + below as f64 * 1e-4;
    assert!(exact_bounds(share, (10_000 + below) as f64).1 <= allowed_share(NAV));
    assert_eq!(spread(10_000, 4).messages_needed(NAV).at_present_rate, None);
    assert!(
        spread(10_000, 4)
            .messages_needed(NAV)
            .if_none_late
            .is_some()
    );
}

#[test]
fn a_budget_of_nothing_is_never_proved() {
    let none = LateBudget {
        late: 0,
        of: 10_000,
    };
    assert_eq!(
        spread(100, 0).messages_needed(none),
        MessagesNeeded {
            if_none_late: None,
            at_present_rate: None
        }
    );
    assert_eq!(allowed_share(LateBudget { late: 3, of: 0 }), 0.0);
}

#[test]
fn spread_lates_keep_the_exact_bounds() {
    let share = spread(100_000, 21);
    assert!(!share.rate.widened);
    assert_eq!(
        (share.rate.lower, share.rate.upper),
        exact_bounds(21.0, 100_000.0)
    );
    assert_eq!(share.assumed, 1);
}

#[test]
fn clustered_lates_need_more_messages() {
    let clustered = LateShare::new(
        100_000,
        &(500..510).collect::<Vec<_>>(),
        Asked::by_mission(1),
    );
    assert!(clustered.rate.widened);
    let needed = |share: LateShare| {
        share
            .messages_needed(LateBudget { late: 1, of: 5_000 })
            .if_none_late
            .expect("provable")
    };
    assert!(needed(clustered) > needed(spread(100_000, 10)));
}

#[test]
fn shares_of_nothing_and_of_all_are_sound() {
    assert_eq!(
        LateShare::new(0, &[], Asked::by_mission(1)).rate,
        LateRate {
            estimate: 0.0,
            lower: 0.0,
            upper: 1.0,
            widened: false
        }
    );
    let all = LateShare::new(100, &(0..100).collect::<Vec<_>>(), Asked::by_mission(1)).rate;
    assert_eq!((all.estimate, all.upper, all.widened), (1.0, 1.0, false));
}

#[test]
fn a_mission_may_ask_for_bursts_that_the_run_does_not_show() {
    let asked = |burst| LateShare::new(100_000, &[], Asked::by_mission(burst));
    assert_eq!(asked(10).kind(NAV), VerdictKind::Pass);
    assert_eq!(asked(11).kind(NAV), VerdictKind::Unproven);
    let needed = asked(11).messages_needed(NAV);
    assert_eq!(needed.if_none_late, Some(9_828));
    assert_eq!(
        LateShare::new(109_828, &[], Asked::by_mission(11)).kind(NAV),
        VerdictKind::Pass
    );
}

#[test]
fn a_burst_in_the_run_counts_even_if_none_is_asked_for() {
    let late: Vec<u64> = (500..507).collect();
    let share = LateShare::new(100_000, &late, Asked::by_mission(1));
    assert_eq!((share.longest.seen, share.assumed), (7, 7));
    let bursts = share.bursts(NAV, share.kind(NAV), FAIL_LEVEL);
    assert_eq!(
        bursts.holds_for,
        share.in_bursts().longest(|one| one.is_within(0.000_3))
    );
}

#[test]
fn a_fail_holds_for_bursts_whose_chance_at_the_budget_is_at_most_5_percent() {
    let late: Vec<u64> = (0..40).map(|each| each * 25).collect();
    let share = LateShare::new(1_000, &late, Asked::by_mission(1));
    let budget = LateBudget { late: 1, of: 100 };
    assert_eq!(share.kind(budget), VerdictKind::Fail);
    let holds_for = share
        .bursts(budget, VerdictKind::Fail, FAIL_LEVEL)
        .holds_for;
    let in_bursts = share.in_bursts();
    assert_eq!(
        holds_for,
        in_bursts.longest(|one| one.chance_at(0.01) <= 0.05)
    );
    let holds_for = holds_for.expect("a few");
    assert!((2..40).contains(&holds_for), "{holds_for}");
}

#[test]
fn where_all_late_messages_are_excused_no_burst_of_them_is_left() {
    let late: Vec<u64> = (500..507).collect();
    let share = LateShare::new(100_000, &late, Asked::by_mission(2));
    assert_eq!((share.without(6).late, share.without(6).assumed), (1, 7));
    let none = share.without(9);
    assert_eq!((none.late, none.assumed), (0, 2));
    assert_eq!(none.rate.upper, exact_bounds(0.0, 50_000.0).1);
}
