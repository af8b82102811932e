//! Filters against lists as TAO's consumers write them, and against an evaluator of expression trees.

mod naive;

use super::designator::{
    BITMASK, CONJUNCTION, DEADLINE_TIMEOUT, DISJUNCTION, GLOBAL, INTERVAL_TIMEOUT, LOGICAL_AND,
    MASKED_TYPE, NEGATION, NULL, TIMEOUT,
};
use super::{Entry, Filter, FilterError, FilterFact, Header, Index, Input, MatchState};
use crate::limits::{FILTER_ENTRIES_MAX, FILTER_NESTING_MAX, FILTER_TIMERS_MAX, TIMEOUT_MIN};

const A: Header = header(1, 20);
const B: Header = header(1, 21);
const C: Header = header(2, 20);
const D: Header = header(2, 22);

const fn header(source: i32, event_type: i32) -> Header {
    Header { event_type, source }
}

fn entry(event_type: i32, source: i32) -> Entry {
    Entry {
        event_type,
        source,
        time: 0,
    }
}

fn of(event: Header) -> Entry {
    entry(event.event_type, event.source)
}

fn timeout(kind: i32, time: u64) -> Entry {
    Entry {
        event_type: kind,
        source: 0,
        time,
    }
}

/// What a consumer with this filter gets: the events of each push that it emits.
fn emitted(list: &[Entry], stream: &[Header]) -> Vec<Vec<Header>> {
    let filter = Filter::build(list).expect("a filter");
    let mut state = MatchState::new(&filter, 0);
    let offer = |event: &Header| {
        let mut out = Vec::new();
        filter
            .offer(&mut state, Input::Event(*event), event, 0, &mut out)
            .then_some(out)
    };
    stream.iter().filter_map(offer).collect()
}

fn refused(list: &[Entry]) -> FilterError {
    Filter::build(list).expect_err("a malformed list")
}

#[test]
fn plain_list_matches_each_of_its_entries() {
    for list in [
        vec![of(A), of(C)],
        vec![entry(GLOBAL, 0), of(A), of(C)],
        vec![entry(DISJUNCTION, 2), of(A), of(C)],
    ] {
        assert_eq!(emitted(&list, &[A, B, C]), [[A], [C]]);
    }
    assert_eq!(
        emitted(&[], &[A]),
        [[]; 0],
        "who wants nothing gets nothing"
    );
    assert_eq!(emitted(&[entry(DISJUNCTION, 0)], &[A]), [[]; 0]);
}

#[test]
fn zero_is_any_in_the_entry_and_in_the_event() {
    assert_eq!(emitted(&[entry(20, 0)], &[A, B, C]), [[A], [C]]);
    assert_eq!(emitted(&[entry(0, 1)], &[A, B, C]), [[A], [B]]);
    assert_eq!(emitted(&[entry(0, 0)], &[A]), [[A]]);
    let (any_type, any_source) = (header(1, 0), header(0, 20));
    assert_eq!(emitted(&[of(A)], &[any_type]), [[any_type]]);
    assert_eq!(
        emitted(&[of(B)], &[any_source, header(0, 0)]),
        [[header(0, 0)]]
    );
}

#[test]
fn conjunction_emits_when_each_operand_has_its_event_and_starts_again() {
    let list = [entry(CONJUNCTION, 2), of(A), of(B)];
    let stream = [A, A, C, B, B, A];
    assert_eq!(emitted(&list, &stream), [[A, B], [B, A]]);
    let overlapping = [entry(CONJUNCTION, 2), entry(0, 1), of(A)];
    assert_eq!(
        emitted(&overlapping, &[A, A]),
        [[A, A]],
        "each operand takes one"
    );
}

#[test]
fn group_without_a_count_ends_at_the_next_group() {
    let list = [
        entry(CONJUNCTION, 0),
        of(A),
        of(B),
        entry(DISJUNCTION, 0),
        of(C),
    ];
    assert_eq!(emitted(&list, &[A, C, B]), [vec![C], vec![A, B]]);
}

#[test]
fn groups_with_a_count_nest() {
    let list = [
        entry(CONJUNCTION, 2),
        entry(DISJUNCTION, 2),
        of(A),
        of(B),
        of(C),
    ];
    assert_eq!(emitted(&list, &[B, A, C]), [[B, C]]);
}

#[test]
fn negation_masks_and_logical_and_look_at_one_event() {
    assert_eq!(
        emitted(&[entry(NEGATION, 0), of(A)], &[A, B, C]),
        [[B], [C]]
    );
    let masked = [entry(BITMASK, 0), entry(1, 3), entry(0, 0)];
    assert_eq!(emitted(&masked, &[A, B, C]), [[B]], "bits of both masks");
    let value = [entry(MASKED_TYPE, 0), entry(!1, 0), entry(20, 0)];
    assert_eq!(emitted(&value, &[A, B, header(1, 22)]), [[A], [B]]);
    let both = [entry(LOGICAL_AND, 2), entry(20, 0), entry(0, 1)];
    assert_eq!(emitted(&both, &[A, B, C]), [[A]]);
    assert_eq!(emitted(&[entry(NULL, 0)], &[A, B]), [[A], [B]]);
}

#[test]
fn deadline_is_restarted_by_what_the_filter_emits_and_an_interval_is_not() {
    let list = [
        of(A),
        timeout(DEADLINE_TIMEOUT, 100_000),
        timeout(INTERVAL_TIMEOUT, 100_000),
        timeout(TIMEOUT, 50_000),
    ];
    let filter = Filter::build(&list).unwrap();
    let mut state = MatchState::new(&filter, 0);
    const MS: u64 = 1_000_000;
    assert_eq!(state.next_due_ns(), Some(5 * MS));
    assert_eq!(filter.expired(&mut state, 5 * MS - 1), None);
    assert_eq!(filter.expired(&mut state, 5 * MS), Some(2), "fires once");
    assert_eq!(state.next_due_ns(), Some(10 * MS));
    let mut out = Vec::new();
    assert!(filter.offer(&mut state, Input::Event(A), &A, 6 * MS, &mut out));
    assert!(!filter.offer(&mut state, Input::Event(B), &B, 9 * MS, &mut out));
    assert_eq!(filter.expired(&mut state, 10 * MS), Some(1), "the interval");
    assert_eq!(state.next_due_ns(), Some(16 * MS), "the deadline");
    assert_eq!(filter.expired(&mut state, 43 * MS), Some(0));
    assert_eq!(filter.expired(&mut state, 43 * MS), Some(1));
    assert_eq!(
        filter.expired(&mut state, 43 * MS),
        None,
        "missed periods are left out"
    );
    assert_eq!(
        state.next_due_ns(),
        Some(50 * MS),
        "the interval keeps its phase"
    );
    out.clear();
    let own = header(0, DEADLINE_TIMEOUT);
    assert!(filter.offer(&mut state, Input::Timer(0), &own, 43 * MS, &mut out));
    assert_eq!(out, [own]);
}

#[test]
fn timeout_may_complete_a_conjunction() {
    let list = [entry(CONJUNCTION, 2), of(A), timeout(TIMEOUT, 1)];
    let filter = Filter::build(&list).unwrap();
    let mut state = MatchState::new(&filter, 0);
    let (own, mut out) = (header(0, TIMEOUT), Vec::new());
    assert!(!filter.offer(&mut state, Input::Timer(0), &own, 0, &mut out));
    assert_eq!(state.held(), 1);
    assert!(filter.offer(&mut state, Input::Event(A), &A, 0, &mut out));
    assert_eq!((out, state.held()), (vec![own, A], 0));
}

#[test]
fn malformed_list_is_refused_with_its_entry() {
    use FilterFact as Fact;
    let cases: [(&[Entry], Fact, u32); 8] = [
        (&[of(A), entry(NEGATION, 0)], Fact::OperandsMissing(1), 1),
        (&[entry(CONJUNCTION, 3), of(A)], Fact::OperandsMissing(2), 0),
        (&[entry(DISJUNCTION, -1)], Fact::CountNegative, 0),
        (&[of(A), entry(BITMASK, 0)], Fact::MasksMissing, 1),
        (
            &[entry(BITMASK, 0), entry(1, 1)],
            Fact::OperandsMissing(1),
            0,
        ),
        (&[entry(MASKED_TYPE, 0)], Fact::MasksMissing, 0),
        (&[entry(MASKED_TYPE, 0), of(A)], Fact::ValuesMissing, 0),
        (
            &[of(A), timeout(INTERVAL_TIMEOUT, 9_999)],
            Fact::TimeoutTooShort,
            1,
        ),
    ];
    for (list, fact, entry) in cases {
        let error = refused(list);
        assert_eq!(error, FilterError { fact, entry });
        assert!(
            error
                .to_string()
                .starts_with(&format!("dependency {entry}: "))
        );
    }
    let timers = vec![timeout(TIMEOUT, 1); FILTER_TIMERS_MAX + 1];
    assert_eq!(refused(&timers).fact, Fact::TooManyTimers);
}

#[test]
fn conjunction_without_operands_emits_nothing() {
    let list = [entry(CONJUNCTION, 0), entry(DISJUNCTION, 0), of(A)];
    assert_eq!(emitted(&list, &[B, A]), [[A]]);
}

#[test]
fn conjunction_that_emits_forgets_what_those_below_it_had_begun_to_collect() {
    let list = [
        entry(CONJUNCTION, 2),
        entry(DISJUNCTION, 2),
        entry(CONJUNCTION, 2),
        of(A),
        of(B),
        of(C),
        of(D),
    ];
    assert_eq!(emitted(&list, &[A, C, D, B, D]), [[C, D]]);
    assert_eq!(
        emitted(&list, &[A, C, D, B, D, A]),
        [vec![C, D], vec![D, B, A]]
    );
}

#[test]
fn hostile_lists_end_in_an_error_or_in_bounded_work() {
    let long = vec![of(A); 10_000];
    assert_eq!(refused(&long).fact, FilterFact::TooManyEntries);
    let mut longest = long;
    longest.truncate(FILTER_ENTRIES_MAX);
    assert_eq!(emitted(&longest, &[A]), [[A]]);
    for designator in [NEGATION, CONJUNCTION, LOGICAL_AND] {
        let mut deep = vec![entry(designator, 1); 1_000];
        deep.push(of(A));
        let error = refused(&deep);
        assert_eq!(
            (error.fact, error.entry as usize),
            (FilterFact::TooDeep, FILTER_NESTING_MAX)
        );
        let mut deepest = vec![entry(designator, 1); FILTER_NESTING_MAX];
        deepest.push(of(A));
        assert_eq!(emitted(&deepest, &[A]), [[A]]);
    }
    let ungrouped = vec![entry(DISJUNCTION, 0); FILTER_ENTRIES_MAX];
    assert_eq!(emitted(&ungrouped, &[A]), [[]; 0]);
    assert_eq!(
        refused(&[entry(CONJUNCTION, i32::MAX), of(A)]).fact,
        FilterFact::OperandsMissing(i32::MAX as u32 - 1)
    );
}

#[test]
fn index_visits_each_subscriber_that_may_match_once_and_no_other() {
    let mut index = Index::default();
    let filters: Vec<Filter> = (0..1_000)
        .map(|number| Filter::build(&[entry(100 + number, 9)]).unwrap())
        .collect();
    for (number, filter) in (0..).zip(&filters) {
        index.insert(number, filter, &number);
    }
    let wide = Filter::build(&[of(A), entry(20, 0), entry(0, 1), entry(NULL, 0)]).unwrap();
    index.insert(1_000, &wide, &1_000);
    let visited = |index: &Index<u64>, event| {
        let mut visited = Vec::new();
        index
            .candidates(event)
            .for_each(|number| visited.push(*number));
        visited
    };
    assert_eq!(visited(&index, A), [1_000]);
    assert_eq!(visited(&index, header(9, 140)), [40, 1_000]);
    assert_eq!(visited(&index, header(0, 140)), [40, 1_000]);
    assert_eq!(visited(&index, header(9, 0)).len(), 1_001);
    assert_eq!(visited(&index, header(0, 0)).len(), 1_001);
    index.remove(1_000, &wide);
    assert!(index.is_unwanted(A));
    assert_eq!(visited(&index, header(0, 0)).len(), 1_000);
}

#[test]
fn each_part_of_a_filter_has_its_entries_and_is_known_when_it_emits() {
    let list = [
        entry(DISJUNCTION, 2),
        of(A),
        entry(CONJUNCTION, 2),
        of(B),
        of(C),
        entry(NEGATION, 0),
        of(D),
    ];
    let filter = Filter::build(&list).unwrap();
    assert_eq!(filter.parts().collect::<Vec<_>>(), [1..2, 2..5, 5..7]);
    assert_eq!(filter.part(Input::Event(A)), Some(1));
    assert_eq!(filter.part(Input::Event(C)), Some(2));
    let other = Header {
        event_type: 99,
        source: 9,
    };
    assert_eq!(filter.part(Input::Event(other)), Some(5));
    assert_eq!(filter.part(Input::Event(D)), None);
    let mut state = MatchState::new(&filter, 0);
    let mut parts = |event: Header| {
        let mut out = Vec::new();
        let emits = filter.offer(&mut state, Input::Event(event), &event, 0, &mut out);
        emits.then(|| state.part())
    };
    // B is kept by the conjunction, so that the negation emits it; C completes the conjunction.
    assert_eq!(
        [A, B, C, other].map(&mut parts),
        [Some(1), Some(5), Some(2), Some(5)]
    );
    let masked = Filter::build(&[
        entry(BITMASK, 0),
        entry(1, 1),
        of(A),
        entry(MASKED_TYPE, 0),
        entry(3, 3),
        entry(2, 2),
        of(B),
    ])
    .unwrap();
    assert_eq!(masked.parts().collect::<Vec<_>>(), [2..3, 3..6, 6..7]);
}

#[test]
fn timeouts_that_repeat_count_as_often_as_they_fire_in_a_second() {
    let timers = [
        timeout(TIMEOUT, 1),
        timeout(INTERVAL_TIMEOUT, 20_000),
        timeout(DEADLINE_TIMEOUT, 100_000_000),
    ];
    let filter = Filter::build(&timers).expect("a filter");
    assert_eq!(filter.timeout_rate(), 500 + 1);
    assert_eq!(filter.entry_count(), 3);
}

#[test]
fn lists_at_the_limits_are_filters_and_one_more_is_refused() {
    let longest = vec![of(A); FILTER_ENTRIES_MAX];
    assert!(Filter::build(&longest).is_ok());
    let longer = vec![of(A); FILTER_ENTRIES_MAX + 1];
    assert_eq!(refused(&longer).fact, FilterFact::TooManyEntries);
    let timers = vec![timeout(TIMEOUT, 1); FILTER_TIMERS_MAX];
    assert!(Filter::build(&timers).is_ok());
    let nested = |depth: usize| {
        let mut list = vec![entry(NEGATION, 0); depth];
        list.push(of(A));
        Filter::build(&list).map(drop)
    };
    assert_eq!(nested(FILTER_NESTING_MAX), Ok(()));
    let deeper = nested(FILTER_NESTING_MAX + 1).expect_err("too deep");
    assert_eq!(deeper.fact, FilterFact::TooDeep);
    let units = u64::try_from(TIMEOUT_MIN.as_nanos() / 100).expect("short");
    let repeated = |time| Filter::build(&[timeout(INTERVAL_TIMEOUT, time)]).map(drop);
    assert_eq!(repeated(units), Ok(()));
    let shorter = repeated(units - 1).expect_err("too short");
    assert_eq!(shorter.fact, FilterFact::TimeoutTooShort);
    assert!(
        Filter::build(&[timeout(TIMEOUT, units - 1)]).is_ok(),
        "it fires once"
    );
}

#[test]
fn each_fault_of_a_list_says_what_to_write_instead() {
    for (fact, words) in [
        (FilterFact::TooManyEntries, "Connect several consumers."),
        (FilterFact::TooDeep, "Write a flatter one."),
        (FilterFact::CountNegative, "or 0 for all up to"),
        (FilterFact::OperandsMissing(2), "2 of its operands"),
        (FilterFact::MasksMissing, "Write an entry with both masks"),
        (FilterFact::ValuesMissing, "behind the masks."),
        (FilterFact::TooManyTimers, "timeouts."),
        (
            FilterFact::TimeoutTooShort,
            "Write a longer `creation_time`",
        ),
    ] {
        let text = FilterError { fact, entry: 7 }.to_string();
        assert!(text.starts_with("dependency 7: "), "{text}");
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn conjunctions_that_start_anew_forget_their_events_and_keep_their_timeouts() {
    let list = [
        entry(CONJUNCTION, 3),
        of(A),
        of(B),
        timeout(INTERVAL_TIMEOUT, 100_000),
    ];
    let filter = Filter::build(&list).expect("a filter");
    let mut state = MatchState::new(&filter, 5);
    assert_eq!(state.next_due_ns(), Some(10_000_005));
    let offer = |state: &mut MatchState<Header>, event: Header| {
        filter.offer(state, Input::Event(event), &event, 6, &mut Vec::new())
    };
    for event in [A, B, A] {
        assert!(!offer(&mut state, event));
    }
    assert_eq!(state.kept().copied().collect::<Vec<_>>(), [A, B]);
    assert_eq!((state.held(), state.restart(), state.held()), (2, 2, 0));
    assert_eq!(state.next_due_ns(), Some(10_000_005));
    assert!(!offer(&mut state, A));
    assert_eq!(state.held(), 1, "it is received anew");
}
