//! Random expressions and streams: [`Filter`] against a tree of boxes that evaluates itself.

use proptest::prelude::*;
use std::collections::BTreeSet;

use crate::filter::designator::{
    BITMASK, CONJUNCTION, DISJUNCTION, LOGICAL_AND, MASKED_TYPE, NEGATION, NULL,
};
use crate::filter::{Entry, Filter, Header, Index, Input, MatchState};

/// An expression as its author thinks of it.
#[derive(Clone, Debug)]
enum Tree {
    Type(Header),
    Null,
    Masked(Header, Header),
    Any(Vec<Tree>),
    /// With what each operand has emitted.
    Conjunction(Vec<(Tree, Option<Vec<usize>>)>),
    And(Vec<Tree>),
    Not(Box<Tree>),
    Bitmask(Header, Box<Tree>),
}

impl Tree {
    /// The list of the expression, each group with its count.
    fn list(&self, out: &mut Vec<Entry>) {
        let mut put = |event_type, source| {
            out.push(Entry {
                event_type,
                source,
                time: 0,
            });
        };
        match self {
            Self::Type(header) => put(header.event_type, header.source),
            Self::Null => put(NULL, 0),
            Self::Masked(masks, values) => {
                put(MASKED_TYPE, 0);
                put(masks.event_type, masks.source);
                put(values.event_type, values.source);
            }
            Self::Any(operands) | Self::And(operands) => {
                let is_and = matches!(self, Self::And(_));
                let designator = if is_and { LOGICAL_AND } else { DISJUNCTION };
                put(designator, operands.len() as i32);
                operands.iter().for_each(|each| each.list(out));
            }
            Self::Conjunction(operands) => {
                put(CONJUNCTION, operands.len() as i32);
                operands.iter().for_each(|(each, _)| each.list(out));
            }
            Self::Not(operand) => {
                put(NEGATION, 0);
                operand.list(out);
            }
            Self::Bitmask(masks, operand) => {
                put(BITMASK, 0);
                put(masks.event_type, masks.source);
                operand.list(out);
            }
        }
    }

    fn matches(&self, event: Header) -> bool {
        let equal = |one: i32, other: i32| one * other == 0 || one == other;
        match self {
            Self::Type(it) => {
                equal(it.event_type, event.event_type) && equal(it.source, event.source)
            }
            Self::Null => true,
            Self::Masked(masks, values) => {
                (
                    event.event_type & masks.event_type,
                    event.source & masks.source,
                ) == (values.event_type, values.source)
            }
            Self::Any(operands) => operands.iter().any(|each| each.matches(event)),
            Self::Conjunction(operands) => operands.iter().any(|(each, _)| each.matches(event)),
            Self::And(operands) => operands.iter().all(|each| each.matches(event)),
            Self::Not(operand) => !operand.matches(event),
            Self::Bitmask(masks, operand) => {
                event.event_type & masks.event_type != 0
                    && event.source & masks.source != 0
                    && operand.matches(event)
            }
        }
    }

    /// What the expression emits of event number `number`.
    fn offer(&mut self, event: Header, number: usize) -> Option<Vec<usize>> {
        match self {
            Self::Any(operands) => operands
                .iter_mut()
                .find_map(|each| each.offer(event, number)),
            Self::Bitmask(masks, operand) => {
                let passes =
                    event.event_type & masks.event_type != 0 && event.source & masks.source != 0;
                passes.then(|| operand.offer(event, number)).flatten()
            }
            Self::Conjunction(operands) => {
                for (operand, received) in operands.iter_mut() {
                    if received.is_none() {
                        *received = operand.offer(event, number);
                        if received.is_some() {
                            break;
                        }
                    }
                }
                let all = operands.iter().map(|(_, received)| received.clone());
                let all: Option<Vec<Vec<usize>>> = all.collect();
                let mut all = all?.concat();
                self.forget();
                // In the order of arrival, as far as an operand's own events go.
                all.sort_unstable();
                Some(all)
            }
            _ => self.matches(event).then(|| vec![number]),
        }
    }

    fn forget(&mut self) {
        match self {
            Self::Any(operands) => operands.iter_mut().for_each(Self::forget),
            Self::Bitmask(_, operand) => operand.forget(),
            Self::Conjunction(operands) => {
                for (operand, received) in operands {
                    operand.forget();
                    *received = None;
                }
            }
            _ => {}
        }
    }
}

/// Few types and sources, so that expressions and events meet.
fn small() -> impl Strategy<Value = Header> {
    (prop_oneof![Just(0), 16..20], 0..4_i32)
        .prop_map(|(event_type, source)| Header { event_type, source })
}

fn masks() -> impl Strategy<Value = Header> {
    (0..32_i32, 0..4_i32).prop_map(|(event_type, source)| Header { event_type, source })
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        6 => small().prop_map(Tree::Type),
        1 => Just(Tree::Null),
        1 => (masks(), small()).prop_map(|(masks, values)| Tree::Masked(masks, values)),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let some = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            3 => some.clone().prop_map(Tree::Any),
            4 => some.clone().prop_map(|operands| {
                Tree::Conjunction(operands.into_iter().map(|each| (each, None)).collect())
            }),
            1 => some.prop_map(Tree::And),
            1 => inner.clone().prop_map(|each| Tree::Not(Box::new(each))),
            1 => (masks(), inner).prop_map(|(masks, each)| Tree::Bitmask(masks, Box::new(each))),
        ]
    })
}

fn built(tree: &Tree) -> Filter {
    let mut list = Vec::new();
    tree.list(&mut list);
    Filter::build(&list).expect("a filter")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_500) })]

    #[test]
    fn filter_emits_what_the_tree_emits(
        mut tree in tree(),
        stream in prop::collection::vec(small(), 1..40),
    ) {
        let filter = built(&tree);
        let mut state = MatchState::new(&filter, 0);
        for (number, event) in stream.into_iter().enumerate() {
            prop_assert_eq!(filter.matches(Input::Event(event)), tree.matches(event));
            let mut out = Vec::new();
            let emits = filter.offer(&mut state, Input::Event(event), &number, 0, &mut out);
            out.sort_unstable();
            prop_assert_eq!(emits.then_some(out), tree.offer(event, number));
        }
    }

    #[test]
    fn index_finds_all_that_match(
        trees in prop::collection::vec(tree(), 1..12),
        stream in prop::collection::vec(small(), 1..20),
        gone in prop::collection::btree_set(0..12_u64, 0..6),
    ) {
        let filters: Vec<Filter> = trees.iter().map(built).collect();
        let mut index = Index::default();
        for (number, filter) in (0..).zip(&filters) {
            index.insert(number, filter, &number);
        }
        for (number, filter) in (0..).zip(&filters) {
            if gone.contains(&number) {
                index.remove(number, filter);
            }
        }
        for event in stream {
            let mut found = Vec::new();
            index.candidates(event).for_each(|number| found.push(*number));
            let once: BTreeSet<u64> = found.iter().copied().collect();
            prop_assert_eq!(found.len(), once.len(), "each once");
            for (number, filter) in (0..).zip(&filters) {
                let matches = filter.matches(Input::Event(event)) && !gone.contains(&number);
                prop_assert!(!matches || once.contains(&number), "{} misses {:?}", number, event);
                let is_exact = filter.is_exact() && once.contains(&number);
                prop_assert!(!is_exact || matches, "{} is exact", number);
            }
        }
    }

    #[test]
    fn no_list_breaks_the_builder_or_a_match(
        list in prop::collection::vec((0..18_i32, -1..4_i32, 0..20_000_u64), 0..60),
        stream in prop::collection::vec(small(), 0..10),
    ) {
        let entry = |(event_type, source, time)| Entry { event_type, source, time };
        let list: Vec<Entry> = list.into_iter().map(entry).collect();
        if let Ok(filter) = Filter::build(&list) {
            let mut state = MatchState::new(&filter, 0);
            for event in stream {
                let mut out = Vec::new();
                filter.offer(&mut state, Input::Event(event), &event, 0, &mut out);
                prop_assert!(out.len() <= list.len());
                prop_assert!(state.held() <= list.len());
            }
        }
    }
}
