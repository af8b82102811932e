//! Verdicts of the table's rows, and the bounds of each.

mod bounds;

use bounds::BOUNDS;

use super::super::kind;
use super::super::part::About;
use super::*;
use crate::laboratory::RAW;
use crate::laboratory::process::RunResult;
use crate::laboratory::samples::{Pairs, Samples};
use TargetVerdict::{Met, Missed, Open};

fn part(kind: Kind) -> Part {
    Part {
        kind,
        condition: "here".to_owned(),
        is_judged: true,
        variant: Variant::Plain,
        cases: Vec::new(),
        rows: Vec::new(),
    }
}

/// Nine rounds with these messages in the time of 100 over raw TCP.
fn streams(peers: &[(&str, u64)]) -> Part {
    let mut part = part(Kind::Stream);
    part.cases.push(kind::SMALL_STREAM);
    for (name, count) in peers {
        let mut pairs = Pairs::default();
        let ran = |count| RunResult::Sum {
            count,
            elapsed_ns: 1_000,
        };
        for round in 0..9 {
            assert!(pairs.add(&ran(*count), &ran(100), round % 2 == 0));
        }
        let found = pairs.system.measurement(name, "stream-octets", &[]);
        let about = About::Case(kind::SMALL_STREAM);
        part.add(about, found.expect("a pair"));
    }
    guard(&mut part, 1.0);
    part
}

/// Adds a guard of this ratio.
fn guard(part: &mut Part, ratio: f64) {
    part.add(About::BaselineCheck, measured("p50_ratio", &[ratio], RAW));
}

fn measured(name: &str, values: &[f64], system: &str) -> Measurement {
    let mut samples = Samples::default();
    for value in values {
        samples.add_value(name, *value);
    }
    samples.measurement(system, "here", &[]).expect("values")
}

/// The standing of `target` with these ratios in as many rounds.
fn of_target(target: &Target, ratios: &[f64]) -> Standing {
    let mut part = part(target.kind);
    part.variant = target.variant;
    part.cases.push(target.case);
    let name = target.statistic.value();
    let about = About::Case(target.case);
    part.add(about, measured(name, ratios, OURS));
    if let Over::Peer(peer) = target.over {
        let ones = vec![1.0; ratios.len()];
        part.add(about, measured(name, &ones, peer));
    }
    guard(&mut part, 1.0);
    target.standing(&part).expect("the part has its case")
}

#[test]
fn the_table_has_these_bounds_and_one_percent_beyond_each_is_missed() {
    let mut bounds = BOUNDS.into_iter();
    for target in table::all().filter(|target| target.bound.is_some()) {
        let (measure, sign, bound) = bounds.next().expect("as many");
        assert_eq!(target.measure, measure);
        let beyond = if sign == '<' { 1.01 } else { 0.99 };
        let of = |factor: f64| of_target(target, &[bound * factor; 9]);
        let (kept, broken) = (of(2.0 - beyond), of(beyond));
        // Nothing guards the raw fan-out.
        let is_unguarded = target.kind == Kind::Events
            && target.case.beside == Beside::RawTcp
            && target.over == Over::Baseline;
        let expected = if is_unguarded {
            let reason = "the baseline is unguarded: no second instrument shows that the raw \
                          fan-out was not slowed";
            (Some(Open), Some(reason.to_owned()))
        } else {
            (Some(Met), None)
        };
        assert_eq!((kept.verdict, kept.reason), expected, "{measure}");
        assert_eq!(broken.verdict, Some(Missed), "{measure}");
        assert!(
            kept.target.ends_with(&format!("{bound:.2}")),
            "{}",
            kept.target
        );
    }
    assert_eq!(bounds.next(), None);
}

#[test]
fn a_call_is_held_against_what_its_words_say_and_served_as_they_say() {
    for target in table::all().filter(|target| target.kind != Kind::Events) {
        let words = target.measure;
        let over_peer = target.over == Over::Peer(OMNIORB);
        assert_eq!(over_peer, words.contains("over omniORB's"), "{words}");
        let is_over_tls = target.variant == Variant::Tls;
        assert_eq!(is_over_tls, words.contains("over TLS"), "{words}");
    }
}

#[test]
fn a_bound_within_the_interval_leaves_the_target_open() {
    let target = table::all().next().expect("a target");
    let around = [1.05, 1.01, 1.08, 1.03, 1.07, 1.02, 1.09, 1.04, 1.06];
    let standing = of_target(target, &around);
    assert_eq!(standing.verdict, Some(Open));
    assert_eq!(
        standing.reason.as_deref(),
        Some("the interval has the bound inside")
    );
    assert!(standing.rounds_more.is_some_and(|more| more > 9));
    let few = of_target(target, &[0.5; 5]);
    assert_eq!((few.verdict, few.rounds_more), (Some(Open), Some(1)));
    assert_eq!(
        few.reason.as_deref(),
        Some("too few rounds for an interval")
    );
}

#[test]
fn a_result_without_a_bound_is_shown_and_not_judged() {
    const SHOWN: [&str; 6] = [
        "two-way 64 B over TLS, p50 over omniORB's over SSL",
        "one-way 64 KiB octets, rate over untuned raw TCP",
        "event to one consumer, receipt p50 over a raw relay",
        "event to one consumer, receipt p99 over a raw relay",
        "real-time event to one consumer, receipt p50 over a raw relay",
        "real-time event to one consumer, receipt p99 over a raw relay",
    ];
    let all = table::all().filter(|it| it.bound.is_none());
    let standings: Vec<Standing> = all.map(|it| of_target(it, &[3.3; 9])).collect();
    let measures: Vec<&str> = standings.iter().map(|it| it.measure.as_str()).collect();
    assert_eq!(measures, SHOWN);
    for standing in standings {
        assert_eq!(standing.ours.expect("shown").median, 3.3);
        assert_eq!((standing.verdict, standing.reason), (None, None));
    }
}

#[test]
fn a_rate_is_held_against_that_of_the_other_peer_in_the_same_rounds() {
    let met = |ours, theirs| standings(&[streams(&[(OURS, ours), (OMNIORB, theirs)])]);
    let [standing] = &met(75, 50)[..] else {
        panic!("one target");
    };
    assert_eq!(standing.ours.expect("both are there").median, 1.5);
    assert_eq!(standing.verdict, Some(Met));
    // It is not held against itself.
    assert!(standing.peers.is_empty());
    assert_eq!(met(74, 50)[0].verdict, Some(Missed));
}

#[test]
fn without_the_other_peer_or_elsewhere_nothing_is_judged() {
    let alone = standings(&[streams(&[(OURS, 75)])]);
    assert_eq!((alone[0].ours, alone[0].verdict), (None, None));
    let mut elsewhere = streams(&[(OURS, 75), (OMNIORB, 50)]);
    elsewhere.is_judged = false;
    let shown = &standings(&[elsewhere])[0];
    assert!(shown.ours.is_some() && shown.verdict.is_none());
    let reason = shown.reason.as_deref();
    assert_eq!(reason, Some("targets are not judged in this condition"));
}

#[test]
fn beside_a_slowed_or_displaced_baseline_nothing_is_judged() {
    let of = |ratio: f64| {
        let mut part = streams(&[(OURS, 75), (OMNIORB, 50)]);
        part.rows.retain(|row| row.about != About::BaselineCheck);
        guard(&mut part, ratio);
        standings(&[part]).swap_remove(0)
    };
    assert_eq!(of(1.03).verdict, Some(Met));
    let slowed = of(1.031);
    assert_eq!(slowed.verdict, None);
    let reason = slowed.reason.expect("a reason");
    assert!(
        reason.contains("1.031 times as long as sockperf"),
        "{reason}"
    );
    for displaced in 0..2 {
        let mut part = streams(&[(OURS, 75), (OMNIORB, 50)]);
        part.rows[displaced].measurement.ends.push(EndNote {
            end: "baseline's server".to_owned(),
            differs: Some("SCHED_OTHER on processors [0, 1]".to_owned()),
            ..EndNote::default()
        });
        let standing = standings(&[part]).swap_remove(0);
        assert_eq!(standing.verdict, None);
        let reason = standing.reason.as_deref();
        assert_eq!(
            reason,
            Some("the baseline's server: SCHED_OTHER on processors [0, 1]")
        );
    }
}

#[test]
fn beside_an_unguarded_baseline_a_target_may_be_missed_and_not_met() {
    let of = |ours: u64| {
        let mut part = streams(&[(OURS, ours), (OMNIORB, 50)]);
        part.rows.retain(|row| row.about != About::BaselineCheck);
        standings(&[part]).swap_remove(0)
    };
    assert_eq!(of(74).verdict, Some(Missed));
    let unguarded = of(75);
    assert_eq!(unguarded.verdict, Some(Open));
    let reason = "the baseline is unguarded: nothing shows that raw TCP was not slowed (is \
                  sockperf installed?)";
    assert_eq!(unguarded.reason.as_deref(), Some(reason));
}

#[test]
fn memory_is_judged_by_the_rounds_of_both_and_counts_at_their_bound() {
    let of = |ours: [f64; 9]| {
        let mut memory = part(Kind::Memory);
        for (system, octets) in [(OURS, ours), (OMNIORB, [6e6; 9])] {
            let found = measured("resident_octets", &octets, system);
            memory.add(About::Memory(1_000), found);
        }
        standings(&[memory]).swap_remove(0)
    };
    let met = of([5e6; 9]);
    assert_eq!(
        (met.ours.expect("MB").median, met.verdict),
        (5.0, Some(Met))
    );
    assert!(met.measure.contains("1000 connections"), "{}", met.measure);
    assert_eq!(of([6.1e6; 9]).verdict, Some(Missed));
    let mut either = [5e6; 9];
    either[4..].fill(6.5e6);
    either.swap(0, 8);
    either.swap(2, 6);
    assert_eq!(of(either).verdict, Some(Open));
    let mut counters = part(Kind::Counters);
    let mut samples = Samples::default();
    for (name, count) in [
        ("allocations", 0.0),
        ("mutex_locks", 2.0),
        ("futex_calls", 0.02),
        ("system_calls", 2.001),
    ] {
        samples.add_value(name, count);
    }
    let found = samples.measurement(OURS, "here", &[]).expect("values");
    counters.add(About::Counts(Variant::Plain), found);
    let other = measured("mutex_locks", &[5.0], OMNIORB);
    counters.add(About::Counts(Variant::Plain), other);
    let all = standings(&[counters]);
    let verdicts: Vec<_> = all.iter().map(|it| it.verdict).collect();
    let (yes, no) = (Some(Met), Some(Missed));
    assert_eq!(verdicts, [yes, no, None, no, None, yes, None]);
    let reason = all[2].reason.as_deref();
    assert_eq!(reason, Some("it was not counted: see what was skipped"));
    let peers: Vec<_> = all[1].peers.iter().map(|it| &*it.peer).collect();
    assert_eq!(peers, [OMNIORB], "only it counts mutex locks");
}

#[test]
fn events_in_a_mission_are_judged_over_two_calls_each_at_its_own_bound() {
    let mut samples = Samples::default();
    for round in 0..9 {
        let spread = f64::from(round % 3) * 0.001;
        samples.add_value("event_over_two_calls", 0.85 + spread);
        samples.add_value("rt_event_over_two_calls", 0.85 + spread);
    }
    let found = samples.measurement(OURS, "a mission", &[]).expect("values");
    let mut events = part(Kind::Events);
    assert!(of_mission(&events).is_empty(), "it had none");
    events.add(About::Mission, found);
    let of = |events: &Part| -> Vec<_> {
        let all = of_mission(events).into_iter();
        all.map(|it| (it.measure, it.verdict, it.reason)).collect()
    };
    let measure = |carrier| format!("`{carrier}` in a mission, p50 over twice that of `corba`");
    let judged = [("event", Met), ("rt-event", Missed)];
    let judged = judged.map(|(carrier, verdict)| (measure(carrier), Some(verdict), None));
    assert_eq!(of(&events), judged);
    assert_eq!(standings(&[events.clone()]).len(), 2);
    events.is_judged = false;
    let reason = "targets are not judged in this condition".to_owned();
    let not = ["event", "rt-event"].map(|carrier| (measure(carrier), None, Some(reason.clone())));
    assert_eq!(of(&events), not);
}

#[test]
fn allocations_of_an_event_are_judged_at_channel_supplier_and_consumers() {
    let case = Case::push(Operation::RtPush, kind::EVENT_SIZE, kind::ONE);
    let mut events = part(Kind::Events);
    let mut samples = Samples::default();
    for (name, count) in [
        ("allocations", 0.0),
        ("supplier_allocations", 0.005),
        ("consumer_allocations", 3.0),
        ("mutex_locks", 2.0),
    ] {
        samples.add_value(name, count);
    }
    let found = samples.measurement(OURS, "here", &[]).expect("values");
    events.add(About::EventCounts(case), found);
    let all = standings(&[events]);
    let counted = all.iter().filter(|it| it.measure.contains("allocations"));
    let found: Vec<_> = counted
        .map(|it| (it.measure.as_str(), it.verdict))
        .collect();
    let event = "a real-time event to one consumer";
    let words = ["the channel", "the supplier", "all consumers"]
        .map(|place| format!("heap allocations at {place}, {event}"));
    assert_eq!(found.len(), 3, "{found:?}");
    for ((words, found), verdict) in words.iter().zip(found).zip([Met, Met, Missed]) {
        assert_eq!(found, (words.as_str(), Some(verdict)));
    }
}

#[test]
fn a_part_is_held_against_the_targets_of_its_kind_and_variant_alone() {
    let mut calls = part(Kind::Call);
    calls.cases.push(kind::SMALL);
    let of = |variant: Variant| {
        let own = Part {
            variant,
            ..calls.clone()
        };
        let all = standings(&[own]).into_iter();
        all.map(|it| it.measure).collect::<Vec<String>>()
    };
    let plain = [
        "two-way 64 B, p50 over raw TCP",
        "two-way 64 B, p99 over raw TCP",
        "two-way 64 B, p50 over omniORB's",
    ];
    assert_eq!(of(Variant::Plain), plain);
    let shared = "two-way 64 B through a shared poller, p50 over raw TCP";
    assert_eq!(of(Variant::SharedPoller), [shared]);
}

#[test]
fn events_are_held_against_another_channel_without_a_guard_of_raw_tcp() {
    let is_between_channels = |it: &&Target| {
        it.kind == Kind::Events && it.case.beside == Beside::RawTcp && it.over != Over::Baseline
    };
    let target = table::all().find(is_between_channels).expect("a target");
    let Over::Peer(peer) = target.over else {
        panic!("over a peer");
    };
    let mut events = part(Kind::Events);
    events.cases.push(target.case);
    for (system, ratio) in [(OURS, 0.5), (peer, 1.0)] {
        let found = measured(target.statistic.value(), &[ratio; 9], system);
        events.add(About::Case(target.case), found);
    }
    let standing = target.standing(&events).expect("the part has its case");
    assert_eq!((standing.verdict, standing.reason), (Some(Met), None));
}

#[test]
fn other_systems_are_shown_with_their_own_ratios() {
    let all = standings(&[streams(&[(OURS, 75), (OMNIORB, 50), ("third", 25)])]);
    let shown: Vec<_> = all[0].peers.iter().map(|it| &*it.peer).collect();
    assert_eq!(shown, ["third"]);
    assert_eq!(all[0].peers[0].ratio.median, 0.5);
    let mut memory = part(Kind::Memory);
    for (system, octets) in [(OURS, 5e6), (OMNIORB, 6e6), ("third", 7e6)] {
        let found = measured("resident_octets", &[octets; 9], system);
        memory.add(About::Memory(0), found);
    }
    let idle = standings(&[memory]).swap_remove(0);
    let shown = idle.peers.iter().map(|it| (&*it.peer, it.ratio.median));
    assert_eq!(shown.collect::<Vec<_>>(), [(OMNIORB, 6.0), ("third", 7.0)]);
    assert_eq!(idle.measure, "memory of an idle server, MB resident");
}

#[test]
fn rounds_that_resemble_each_other_are_the_reason_for_an_open_target() {
    let widened = Ratio {
        is_widened: true,
        ..Ratio::exactly(1.0)
    };
    let judged = Judged::of(widened, Bound::AtMost(2.0));
    assert_eq!(judged.verdict, Some(Open));
    let reason = "the ratios of successive rounds resemble each other";
    assert_eq!(judged.reason.as_deref(), Some(reason));
}

#[test]
fn memory_of_an_idle_consumer_is_judged_where_consumers_share_an_endpoint() {
    let of = |operation, are_apart, octets| {
        let mut events = part(Kind::Events);
        let found = measured("octets_per_consumer", &[octets; 9], OURS);
        events.add(About::IdleConsumer(operation, are_apart), found);
        let all = standings(&[events]).into_iter();
        let mut own = all.filter(|it| it.measure.starts_with("memory of an idle consumer"));
        own.next().expect("a standing")
    };
    let together = of(Operation::Push, false, 4_096.0);
    assert_eq!(
        together.measure,
        "memory of an idle consumer at the channel, all at one endpoint, octets"
    );
    assert_eq!(
        (together.verdict, &*together.target),
        (Some(Met), "at most 4096")
    );
    let larger = of(Operation::Push, false, 4_097.0);
    assert_eq!(larger.verdict, Some(Missed));
    let apart = of(Operation::RtPush, true, 9_999.0);
    assert_eq!(
        apart.measure,
        "memory of an idle consumer at the real-time channel, an endpoint each, octets"
    );
    assert_eq!((apart.verdict, &*apart.target), (None, "shown beside it"));
}
